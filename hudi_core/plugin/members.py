"""The members of a plugin that are hooks, and their arguments."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pluggy

from hudi_core.errors import PluginContractError
from hudi_core.hookspecs import HOOKS, PROJECT, TableFormat
from hudi_core.hookspecs.version import parse_version
from hudi_core.model.capability import Capability
from hudi_core.plugin.versions import Contract, FormerHook

_NEAR: Final = 0.8
"""How like a hook's name a method's must be to be taken for a slip, as difflib counts."""
_MANAGER: Final = pluggy.PluginManager(PROJECT)


@dataclass(frozen=True, slots=True)
class Implementation:
    """How a plugin implements one hook.

    ``arguments`` are those of the hook that it takes; ``is_old_wrapper`` is for pluggy's former way
    to wrap; ``fixed`` are arguments that only a former contract had
    (:class:`~hudi_core.plugin.versions.FormerHook`).
    """

    member: str
    arguments: tuple[str, ...]
    is_wrapper: bool = False
    is_old_wrapper: bool = False
    fixed: Mapping[str, object] = field(default_factory=dict)

    def former(self, declared: Container[str]) -> dict[str, object]:
        """The values of :attr:`fixed` for a format of some abilities."""
        return {
            name: value in declared if isinstance(value, Capability) else value
            for name, value in self.fixed.items()
        }


Implementations = Mapping[str, Implementation]
"""By hook."""


@dataclass(frozen=True, slots=True)
class Members:
    """The hooks of a plugin."""

    implementations: Implementations
    former: tuple[FormerHook, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Member:
    """One method that implements a hook."""

    hook: str
    name: str
    function: Callable[..., Any]
    is_wrapper: bool
    is_old_wrapper: bool


def members_of(name: str, plugin: object, contract: Contract) -> Members:
    """Find the hooks of a plugin, and compare them with its contract."""
    found: dict[str, Implementation] = {}
    former: list[FormerHook] = []
    unknown: list[str] = []
    before = contract.former()
    for one in _members(name, plugin, contract, unknown):
        if (one.is_wrapper or one.is_old_wrapper) and not inspect.isgeneratorfunction(one.function):
            raise PluginContractError(name, f"{one.hook} is a wrapper and no generator function")
        if one.hook in before:
            gone = before[one.hook]
            former.append(gone)
            taken = _arguments(name, one, gone.arguments, contract, unknown)
            calls = {
                hook: {key: value for key, value in fixed.items() if key in taken}
                for hook, fixed in gone.now.items()
            }
        else:
            taken = _arguments(name, one, HOOKS[one.hook].arguments, contract, unknown)
            calls = {one.hook: {}}
        for hook, fixed in calls.items():
            if hook in found:
                raise PluginContractError(name, f"{hook} is implemented twice")
            rest = tuple(argument for argument in taken if argument not in fixed)
            found[hook] = Implementation(one.name, rest, one.is_wrapper, one.is_old_wrapper, fixed)
    return Members(found, tuple(former), tuple(unknown))


def _members(
    name: str, plugin: object, contract: Contract, unknown: list[str]
) -> Iterator[_Member]:
    """The methods that implement a hook."""
    hooks = {**HOOKS, **contract.former()}
    for member in dir(plugin):
        marks = _MANAGER.parse_hookimpl_opts(plugin, member)
        if marks is None:
            if _is_hook(name, plugin, member, contract, unknown):
                yield _Member(member, member, getattr(plugin, member), False, False)
            continue
        hook = marks.get("specname") or member
        if hook in hooks:
            is_wrapper, is_old = marks["wrapper"], marks["hookwrapper"]
            yield _Member(hook, member, getattr(plugin, member), is_wrapper, is_old)
        elif contract.is_later:
            unknown.append(f"the hook {hook}")
        elif not marks["optionalhook"]:
            raise PluginContractError(name, f"it has the unknown hook {hook!r}{_meant(hook)}")


def _is_hook(
    name: str, plugin: object, member: str, contract: Contract, unknown: list[str]
) -> bool:
    """Whether a member without a mark implements the hook of its name."""
    if member.startswith("_"):
        return False
    found = inspect.getattr_static(plugin, member)
    if not (inspect.isroutine(found) or isinstance(found, staticmethod | classmethod)):
        return False
    hook = HOOKS.get(member) or contract.former().get(member)
    if hook is None:
        return contract.is_derived and _refuse_slip(name, member, contract, unknown)
    if found is inspect.getattr_static(TableFormat, member, None):
        return False  # inherited: it says nothing
    since = getattr(hook, "since", "0")
    if contract.version < (parse_version(since) or (0, 0)):
        return False  # it was no hook yet, and is something else
    if not contract.is_derived:
        raise PluginContractError(
            name, f"{member} is named like a hook, but not marked with @hookimpl"
        )
    return True


def _refuse_slip(name: str, member: str, contract: Contract, unknown: list[str]) -> bool:
    near = difflib.get_close_matches(member, HOOKS, n=1, cutoff=_NEAR)
    if not near:
        return False
    if not contract.is_later:
        raise PluginContractError(
            name,
            f"its method {member} is no hook; did you mean {near[0]}? The name of a method that is "
            "something else is to be less like it, or to begin with an underscore",
        )
    unknown.append(f"the hook {member}")
    return False


def _arguments(
    name: str,
    one: _Member,
    known: tuple[str, ...],
    contract: Contract,
    unknown: list[str],
) -> tuple[str, ...]:
    """Those of a hook's arguments that a method takes."""
    parameters = inspect.signature(one.function).parameters.values()
    taken = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            return known
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            taken.append(parameter.name)
        elif parameter.default is not parameter.empty and contract.version < (1, 0):
            continue  # an argument of its own, as there could be
        elif parameter.default is parameter.empty or not contract.is_later:
            near = difflib.get_close_matches(parameter.name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else f": it has {', '.join(known)}"
            more = " without a default" if contract.is_later else ""
            raise PluginContractError(
                name,
                f"{one.name} takes the argument {parameter.name!r}{more}, which the hook does not "
                f"have{meant}",
            )
        else:
            unknown.append(f"the argument {parameter.name} of {one.hook}")
    return tuple(taken)


def _meant(hook: str) -> str:
    near = difflib.get_close_matches(hook, HOOKS, n=1)
    return f"; did you mean {near[0]}?" if near else ""
