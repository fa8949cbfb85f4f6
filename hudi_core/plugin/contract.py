"""Checks of a plugin at load: what can be known to be wrong before a hook is ever called."""

from __future__ import annotations

from collections.abc import Mapping
from types import (
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import pluggy
from pluggy import HookimplOpts, HookspecOpts

from hudi_core.errors import PluginContractError
from hudi_core.hookspecs import PROJECT, TableFormatHooks
from hudi_core.model.capability import SCHEMA_EVOLUTION, Capability, FormatCapabilities
from hudi_core.plugin.foreign import Raised, attempt
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

_ABSENT: Final = object()
# what these are asked of could be answered by a metaclass, or by a property
_BASES_OF: Final = type.__dict__["__mro__"].__get__
_MEMBERS_OF: Final = type.__dict__["__dict__"].__get__
_MARKS: Final = (f"{PROJECT}_spec", f"{PROJECT}_impl")


class _Manager(pluggy.PluginManager):
    """Looks closely at members only that may be marked as hooks.

    Every table that is opened has a manager of its own, and a close look at each member of the
    contract and the plugin, which must run no code of theirs, would take half of the opening.
    """

    def parse_hookspec_opts(
        self, module_or_class: ModuleType | type, name: str
    ) -> HookspecOpts | None:
        if not _may_be_marked(module_or_class, name):
            return None
        return super().parse_hookspec_opts(module_or_class, name)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> HookimplOpts | None:
        return super().parse_hookimpl_opts(plugin, name) if _may_be_marked(plugin, name) else None


def new_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks and holds no plugin."""
    manager = _Manager(PROJECT)
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
    member = _member(plugin, hook)
    if member is _ABSENT or member is vars(TableFormatHooks)[hook]:
        return False  # a subclass of the contract inherits its methods, which implement nothing
    if not callable(member) and not isinstance(member, (classmethod, staticmethod)):
        return False
    return manager.parse_hookimpl_opts(plugin, hook) is None


def _may_be_marked(owner: object, name: str) -> bool:
    member = _member(owner, name)
    if isinstance(member, MemberDescriptorType):
        return True  # a slot: what is in it decides
    if not isinstance(member, (FunctionType, MethodType, classmethod, staticmethod)):
        return False
    return any(
        hasattr(one, mark) for one in (member, getattr(member, "__func__", None)) for mark in _MARKS
    )


def _member(owner: object, name: str) -> object:
    """Return a member as it is kept, or ``_ABSENT``.

    No code of the owner or of its classes is run. ``inspect.getattr_static`` finds the same, but
    takes ten times as long, and asks metaclasses.
    """
    kind = type(owner)
    if issubclass(kind, type):
        return _kept(owner, name)[0]
    found, _ = _kept(kind, name)
    descriptor, holder = _kept(kind, "__dict__")
    is_own = (
        type(descriptor) in (GetSetDescriptorType, MemberDescriptorType)
        and descriptor.__objclass__ is holder
        and descriptor.__name__ == "__dict__"
    )
    if not is_own:
        return found  # it has slots only, or hides what it keeps
    members = descriptor.__get__(owner)
    own = dict.get(members, name, _ABSENT) if issubclass(type(members), dict) else _ABSENT
    return found if own is _ABSENT or _goes_first(found) else own


def _goes_first(member: object) -> bool:
    """Tell whether a member of a class is one that goes before those of its instances."""
    kind = type(member)
    has = [_kept(kind, name)[0] is not _ABSENT for name in ("__get__", "__set__", "__delete__")]
    return has[0] and any(has[1:])


def _kept(cls: object, name: str) -> tuple[Any, object]:
    """Return a member of a class, and the one of its bases that has it."""
    for each in _BASES_OF(cls):
        members = _MEMBERS_OF(each)
        if name in members:
            return members[name], each
    return _ABSENT, None


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
