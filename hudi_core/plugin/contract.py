"""Checks of a plugin at load, before any hook is called.

A class is checked once per process. :mod:`hudi_core.plugin.members` finds what it implements,
:mod:`hudi_core.plugin.versions` which contract that is to be compared with.
"""

from __future__ import annotations

import difflib
from collections.abc import Set
from types import ModuleType
from typing import Final
from weakref import WeakKeyDictionary

from hudi_core.errors import PluginContractError
from hudi_core.extension.guard import Raised, attempt
from hudi_core.hookspecs import HOOKS
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.plugin.members import Implementations, members_of
from hudi_core.plugin.versions import contract_of, warn_once
from hudi_core.schema.casting import PROMOTIONS

_CHECKED: Final[WeakKeyDictionary[object, Implementations]] = WeakKeyDictionary()
"""Of classes and modules that were found right. Opening a native table on a local disk takes 0.3 ms
of a processor instead of 1.6."""


def implementations_of(name: str, plugin: object) -> Implementations:
    """The hooks that a plugin implements.

    Warns once of a plugin of another contract.
    """
    outcome = attempt(lambda: _known_or_checked(name, plugin))
    if not isinstance(outcome, Raised):
        return outcome.value
    if isinstance(outcome.error, PluginContractError | Warning):
        raise outcome.error
    raise PluginContractError(name, outcome.reason) from outcome.error


def require_format_hooks(name: str, implementations: Implementations) -> None:
    """Refuse a format with hook wrappers, or without a required hook."""
    wrappers = [
        hook for hook, one in implementations.items() if one.is_wrapper or one.is_old_wrapper
    ]
    if wrappers:
        raise PluginContractError(name, f"{_methods(wrappers)} a wrapper; only observers wrap")
    _require_hooks(
        name,
        [one.name for one in HOOKS.values() if one.is_required],
        implementations,
        "every format needs",
    )


def require_declared_hooks(
    name: str, plugin: object, declared: FormatCapabilities, implementations: Implementations
) -> None:
    """Refuse abilities without their hooks, and unknown ones.

    Unknown abilities of a plugin of a later contract are warned of once.
    """
    _require_texts(name, declared)
    contract = contract_of(name, plugin)
    unknown = declared.unknown
    if unknown and not contract.is_later:
        near = difflib.get_close_matches(unknown[0].lower(), [*Capability], n=1)
        meant = f"; did you mean {str(near[0])!r}" if near else ""
        raise PluginContractError(
            name, f"it declares abilities that there are not: {', '.join(unknown)}{meant}"
        )
    others = sorted((declared.promotions or frozenset()) - {one.name for one in PROMOTIONS})
    if others and not contract.is_later:
        raise PluginContractError(
            name, f"it declares promotions that there are not: {', '.join(map(repr, others))}"
        )
    if unknown or others:
        warn_once(contract.ahead(name, [*map(repr, (*unknown, *others))]))
    needed = [one.name for one in HOOKS.values() if one.needed_by & declared.declared]
    _require_hooks(name, needed, implementations, "its capabilities need")


def require_observer_hooks(name: str, implementations: Implementations) -> None:
    """Refuse an observer that would answer a hook instead of watching it."""
    plain = [hook for hook, one in implementations.items() if not one.is_wrapper]
    if plain:
        raise PluginContractError(
            name, f"{_methods(plain)} not marked with @hookimpl(wrapper=True), as observers must"
        )


def _require_texts(name: str, declared: FormatCapabilities) -> None:
    """Refuse abilities and promotions that are no sets of strings."""
    for what, found in (("abilities", declared.declared), ("promotions", declared.promotions)):
        wrong = (
            [found]
            if not isinstance(found, Set | None)
            else [one for one in found or () if not isinstance(one, str)]
        )
        if wrong or (found is None and what == "abilities"):
            shown = repr(wrong[0] if wrong else None)
            raise PluginContractError(
                name,
                f"it declares the {what} {shown}, not strings; "
                "FormatCapabilities.of('copy_on_write') takes each as an argument",
            )


def _known_or_checked(name: str, plugin: object) -> Implementations:
    owner = plugin if isinstance(plugin, type | ModuleType) else type(plugin)
    # members of its own may be hooks, which the class does not know of
    if plugin is not owner and getattr(plugin, "__dict__", {}).keys() & HOOKS.keys():
        return _checked(name, plugin)
    if owner not in _CHECKED:
        _CHECKED[owner] = _checked(name, plugin)
    return _CHECKED[owner]


def _checked(name: str, plugin: object) -> Implementations:
    contract = contract_of(name, plugin)
    found = members_of(name, plugin, contract)
    if found.former:
        is_observer = all(one.is_wrapper for one in found.implementations.values())
        warn_once(contract.behind(name, found.former, is_observer=is_observer))
    elif contract.is_later:
        warn_once(contract.ahead(name, found.unknown))
    return found.implementations


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
