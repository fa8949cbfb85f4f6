"""Checks of a plugin at load, before any hook is called.

A class is checked once per process, by pluggy and against the contract.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final
from weakref import WeakKeyDictionary

import pluggy

from hudi_core.errors import PluginContractError
from hudi_core.extension.foreign import Raised, attempt
from hudi_core.hookspecs import PROJECT, TableFormatHooks
from hudi_core.model.capability import SCHEMA_EVOLUTION, Capability, FormatCapabilities
from hudi_core.schema.promotions import PROMOTIONS

HOOKS: Final = tuple(
    name for name, member in vars(TableFormatHooks).items() if hasattr(member, f"{PROJECT}_spec")
)
"""The names of all hooks, in the order of the contract."""

OPTIONAL: Final = frozenset(
    {
        "get_options",
        "check_schema",
        "check_files",
        "check_creation",
        "get_metadata_folders",
        "get_registration",
        "check_write",
        "find_table",
        "get_lock_provider",
        "get_conflict_resolution_strategy",
    }
)
NEEDED_BY: Final[Mapping[str, frozenset[Capability]]] = {
    "complete_clustering": frozenset({Capability.CLUSTERING}),
    "complete_schema_change": SCHEMA_EVOLUTION,
    "complete_savepoint": frozenset({Capability.SAVEPOINT}),
    "complete_delete_savepoint": frozenset({Capability.SAVEPOINT}),
    "before_restore": frozenset({Capability.RESTORE}),
    "complete_restore": frozenset({Capability.RESTORE}),
}
"""Hooks that only a format with one of these abilities needs; all others are required."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """How a plugin implements one hook.

    Attributes
    ----------
    member
        Name of its member.
    arguments
        Those of the hook's arguments that it takes.
    is_wrapper, is_old_wrapper
        Whether it wraps other implementations, in pluggy's present way or its former one.
    """

    member: str
    arguments: tuple[str, ...]
    is_wrapper: bool = False
    is_old_wrapper: bool = False


Implementations = Mapping[str, Implementation]
"""By hook."""
_CHECKED: Final[WeakKeyDictionary[object, Implementations]] = WeakKeyDictionary()
"""Of classes and modules that were found right. Opening a native table on a local disk takes 0.3 ms
of a processor instead of 1.6."""


def implementations_of(name: str, plugin: object) -> Implementations:
    """The hooks that a plugin implements.

    Raises
    ------
    PluginContractError
        A method bears a hook's name without the marker, a marked method is no hook, an argument is
        none of the hook's, or a hook is implemented twice.
    """
    outcome = attempt(lambda: _known_or_checked(name, plugin))
    if not isinstance(outcome, Raised):
        return outcome.value
    if isinstance(outcome.error, PluginContractError):
        raise outcome.error
    raise PluginContractError(name, outcome.reason) from outcome.error


def require_format_hooks(name: str, implementations: Implementations) -> None:
    """Refuse a format with hook wrappers, or without a required hook.

    Raises
    ------
    PluginContractError
        Names the methods.
    """
    wrappers = [
        hook for hook, one in implementations.items() if one.is_wrapper or one.is_old_wrapper
    ]
    if wrappers:
        raise PluginContractError(name, f"{_methods(wrappers)} a wrapper; only observers wrap")
    _require_hooks(
        name,
        [hook for hook in HOOKS if hook not in OPTIONAL and hook not in NEEDED_BY],
        implementations,
        "every format needs",
    )


def require_declared_hooks(
    name: str, declared: FormatCapabilities, implementations: Implementations
) -> None:
    """Refuse a declared ability without its hook, or an unknown promotion.

    Raises
    ------
    PluginContractError
        Names the hooks, or the changes.
    """
    unknown = sorted((declared.promotions or frozenset()) - {one.name for one in PROMOTIONS})
    if unknown:
        raise PluginContractError(
            name, f"it declares promotions that there are not: {', '.join(map(repr, unknown))}"
        )
    needed = [hook for hook, abilities in NEEDED_BY.items() if abilities & declared.declared]
    _require_hooks(name, needed, implementations, "its capabilities need")


def require_observer_hooks(name: str, implementations: Implementations) -> None:
    """Refuse an observer that would answer a hook instead of watching it.

    Raises
    ------
    PluginContractError
        Names the methods.
    """
    plain = [hook for hook, one in implementations.items() if not one.is_wrapper]
    if plain:
        raise PluginContractError(
            name, f"{_methods(plain)} not marked with @hookimpl(wrapper=True), as observers must"
        )


def _known_or_checked(name: str, plugin: object) -> Implementations:
    owner = plugin if isinstance(plugin, type | ModuleType) else type(plugin)
    # members of its own may be hooks, which the class does not know of
    if plugin is not owner and getattr(plugin, "__dict__", {}).keys() & set(HOOKS):
        return _checked(name, plugin)
    if owner not in _CHECKED:
        _CHECKED[owner] = _checked(name, plugin)
    return _CHECKED[owner]


def _checked(name: str, plugin: object) -> dict[str, Implementation]:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(TableFormatHooks)
    forgotten = [hook for hook in HOOKS if _is_forgotten(manager, plugin, hook)]
    if forgotten:
        raise PluginContractError(
            name, f"{_methods(forgotten)} named like a hook, but not marked with @hookimpl"
        )
    manager.register(plugin, name)
    manager.check_pending()
    members = {
        marks.get("specname") or member: member
        for member in dir(plugin)
        if (marks := manager.parse_hookimpl_opts(plugin, member)) is not None
    }
    found: dict[str, Implementation] = {}
    for caller in manager.get_hookcallers(plugin) or ():
        for one in caller.get_hookimpls():
            if caller.name in found:
                raise TypeError(f"{caller.name} is implemented twice")
            # a wrapper may have been made with any signature
            taken = inspect.signature(one.function).parameters if one.wrapper else one.argnames
            found[caller.name] = Implementation(
                members[caller.name], tuple(taken), one.wrapper, one.hookwrapper
            )
    return found


def _is_forgotten(manager: pluggy.PluginManager, plugin: object, hook: str) -> bool:
    member = getattr(plugin, hook, None)
    if not callable(member):
        return False
    if getattr(member, "__func__", member) is vars(TableFormatHooks)[hook]:
        return False  # a subclass of the contract inherits its methods, which implement nothing
    return manager.parse_hookimpl_opts(plugin, hook) is None


def _require_hooks(
    name: str,
    needed: list[str],
    implementations: Implementations,
    who: str,
) -> None:
    missing = [hook for hook in needed if hook not in implementations]
    if missing:
        raise PluginContractError(name, f"it lacks {', '.join(missing)}, which {who}")


def _methods(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
