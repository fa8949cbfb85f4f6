"""Checks of a plugin at load: what can be known to be wrong before a hook is ever called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final

import pluggy

from hudi_core.errors import PluginContractError
from hudi_core.hookspecs import PROJECT, TableFormatHooks
from hudi_core.model.capability import SCHEMA_EVOLUTION, Capability, FormatCapabilities
from hudi_core.model.promotions import PROMOTIONS
from hudi_core.plugin.foreign import Raised, attempt

HOOKS: Final = tuple(
    name for name, member in vars(TableFormatHooks).items() if hasattr(member, f"{PROJECT}_spec")
)
"""The names of all hooks, in the order of the contract."""

OPTIONAL: Final = frozenset(
    {"check_schema", "find_table", "get_lock_provider", "get_conflict_resolution_strategy"}
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

_ABSENT: Final = object()


def new_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks and holds no plugin."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(TableFormatHooks)
    return manager


def register(
    manager: pluggy.PluginManager, name: str, plugin: object
) -> dict[str, pluggy.HookImpl]:
    """Register a plugin; return its implementations by hook.

    Raises
    ------
    PluginContractError
        A method bears a hook's name without the marker, a marked method is no hook, an argument is
        none of the hook's, or a hook is implemented twice.
    """
    forgotten = [hook for hook in HOOKS if _is_forgotten(manager, plugin, hook)]
    if forgotten:
        raise PluginContractError(
            name, f"{_methods(forgotten)} named like a hook, but not marked with @hookimpl"
        )
    outcome = attempt(lambda: _register(manager, name, plugin))
    if isinstance(outcome, Raised):
        raise PluginContractError(name, outcome.reason) from outcome.error
    return outcome.value


def check_format(name: str, implementations: Mapping[str, pluggy.HookImpl]) -> None:
    """Refuse a format that wraps hooks, or lacks one that every format needs.

    Raises
    ------
    PluginContractError
        Names the methods.
    """
    wrappers = [hook for hook, one in implementations.items() if one.wrapper or one.hookwrapper]
    if wrappers:
        raise PluginContractError(name, f"{_methods(wrappers)} a wrapper; only observers wrap")
    _refuse_missing(
        name,
        [hook for hook in HOOKS if hook not in OPTIONAL and hook not in NEEDED_BY],
        implementations,
        "every format needs",
    )


def check_declared(
    name: str, declared: FormatCapabilities, implementations: Mapping[str, pluggy.HookImpl]
) -> None:
    """Refuse a format that declares an ability and lacks a hook of it, or a change of type that
    there is not.

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
    _refuse_missing(name, needed, implementations, "its capabilities need")


def check_observer(name: str, implementations: Mapping[str, pluggy.HookImpl]) -> None:
    """Refuse an observer that would answer a hook instead of watching it.

    Raises
    ------
    PluginContractError
        Names the methods.
    """
    plain = [hook for hook, one in implementations.items() if not one.wrapper]
    if plain:
        raise PluginContractError(
            name, f"{_methods(plain)} not marked with @hookimpl(wrapper=True), as observers must"
        )


def _register(
    manager: pluggy.PluginManager, name: str, plugin: object
) -> dict[str, pluggy.HookImpl]:
    manager.register(plugin, name)
    manager.check_pending()
    found: dict[str, pluggy.HookImpl] = {}
    for caller in manager.get_hookcallers(plugin) or ():
        for one in caller.get_hookimpls():
            if one.plugin is not plugin or caller.name not in HOOKS:
                continue
            if caller.name in found:
                raise TypeError(f"{caller.name} is implemented twice")
            found[caller.name] = one
    return found


def _is_forgotten(manager: pluggy.PluginManager, plugin: object, hook: str) -> bool:
    member = inspect.getattr_static(plugin, hook, _ABSENT)
    if member is _ABSENT or member is vars(TableFormatHooks)[hook]:
        return False  # a subclass of the contract inherits its methods, which implement nothing
    if not callable(member) and not isinstance(member, (classmethod, staticmethod)):
        return False
    return manager.parse_hookimpl_opts(plugin, hook) is None


def _refuse_missing(
    name: str,
    needed: list[str],
    implementations: Mapping[str, pluggy.HookImpl],
    who: str,
) -> None:
    missing = [hook for hook in needed if hook not in implementations]
    if missing:
        raise PluginContractError(name, f"it lacks {', '.join(missing)}, which {who}")


def _methods(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
