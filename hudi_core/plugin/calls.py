"""Calling the hooks of one format, and what happens around each call.

A hook of an ability that the format does not declare is refused. Observers are called. What comes
back is checked. :mod:`hudi_core.extension.guard` handles errors.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import UnionType
from typing import Any, Final, get_args, get_origin

from hudi_core.errors import (
    HudiError,
    PluginContractError,
    TableClosedError,
    UnsupportedCapabilityError,
)
from hudi_core.extension.guard import Guard, Lease
from hudi_core.hookspecs import HOOKS, Hook
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.format import FormatCommit, Publication
from hudi_core.model.instant import Action
from hudi_core.plugin import contract
from hudi_core.plugin.observers import Observer, Watch, log_unusable

_NOTHING: Final = type(None)
_CLOSE: Final = "close"
_log = logging.getLogger(__name__)


def _kinds(hook: Hook) -> tuple[type, ...]:
    """Annotated return types of a hook."""
    found = hook.returns
    parts = get_args(found) if isinstance(found, UnionType) else (found,)
    return tuple(get_origin(part) or part for part in parts)


_ANSWERS: Final = {name: _kinds(hook) for name, hook in HOOKS.items()}


class HookCalls:
    """One format and its observers.

    ``observers`` are in order, the outermost first. A breach of the contract that can be seen at
    load is an error here.
    """

    def __init__(self, name: str, plugin: object, observers: Mapping[str, object]) -> None:
        self.name = name
        lease = self._lease = Lease()
        self.guard = Guard(name, lease=lease)
        self._plugin = plugin
        self._implementations = contract.implementations_of(name, plugin)
        contract.require_format_hooks(name, self._implementations)
        self._observers = tuple(_checked_observers(observers))
        self.capabilities = FormatCapabilities()
        self.capabilities = self.answer("get_capabilities")
        contract.require_declared_hooks(name, plugin, self.capabilities, self._implementations)
        self._watching = partial(
            Watch.begin, self._observers, arguments={}, declared=self.capabilities
        )
        own = self._implementations.get(_CLOSE)
        self._closing = (
            None
            if own is None
            else weakref.finalize(
                lease, _close_unasked, name, getattr(plugin, own.member), self._watching
            )
        )

    def close(self) -> None:
        """Close the format, once; it is not called again."""
        self._lease.is_closed = True
        found = None if self._closing is None else self._closing.detach()
        if found is not None:
            _, _, (_, close, watching), _ = found
            _close(self.name, close, watching)

    def require_open(self) -> None:
        """Refuse a format that was closed."""
        if self._lease.is_closed:
            raise TableClosedError(self.name)

    def answer(self, hook: str, **arguments: object) -> Any:
        """Call a hook."""
        self.require_open()
        abilities = HOOKS[hook].needed_by
        if abilities and not abilities & self.capabilities.declared:
            words = " or ".join(sorted(Capability(ability).words for ability in abilities))
            raise UnsupportedCapabilityError(self.name, words)
        watch = Watch.begin(self._observers, hook, arguments, self.capabilities)
        try:
            result = self._call(hook, arguments)
            self._check(hook, result, _ANSWERS[hook])
        except BaseException as error:
            watch.raised(error)
            raise
        watch.returned(result)
        return result

    def _call(self, hook: str, arguments: Mapping[str, object]) -> object:
        found = self._implementations.get(hook)
        if found is None:
            return None
        taken = {name: arguments[name] for name in found.arguments}
        if found.fixed:
            taken |= found.former(self.capabilities)
        return self.guard.call(hook, lambda: getattr(self._plugin, found.member)(**taken))

    def _check(self, hook: str, result: object, kinds: tuple[type, ...]) -> None:
        names = ["None" if kind is _NOTHING else kind.__name__ for kind in kinds]
        self.guard.require(hook, result, kinds, " or ".join(names))
        # frozen dataclasses do not check the types of their fields
        if isinstance(result, FormatCommit):
            whole = {"version": _is_named(result.version), "location": _is_text(result.location)}
            self._require_fields(f"the receipt of {hook}", result, whole)
        elif isinstance(result, Publication):
            whole = {
                "requested_time": _is_named(result.requested_time),
                "action": isinstance(result.action, Action),
                "version": _is_named(result.version),
                "completion_time": _is_text(result.completion_time),
            }
            self._require_fields(f"the publication of {hook}", result, whole)

    def _require_fields(self, what: str, result: object, whole: Mapping[str, bool]) -> None:
        for name in (name for name, is_right in whole.items() if not is_right):
            raise PluginContractError(self.name, f"{what} has the {name} {getattr(result, name)!r}")


def _close(name: str, close: Callable[[], object], watching: Callable[..., Watch]) -> None:
    """Close a format, whose lease is over, before its observers."""
    guard, watch = Guard(name), watching(hook=_CLOSE)
    try:
        guard.require(_CLOSE, guard.call(_CLOSE, close), (_NOTHING,), "None")
    except BaseException as error:
        watch.raised(error)
        raise
    watch.returned(None)


def _close_unasked(name: str, close: Callable[[], object], watching: Callable[..., Watch]) -> None:
    """Close a format whose table is gone; errors are logged."""
    try:
        _close(name, close, watching)
    except HudiError:
        _log.warning("the table format %s could not be closed", name, exc_info=True)


def _checked_observers(observers: Mapping[str, object]) -> Iterator[Observer]:
    seen: list[object] = []
    for name, plugin in observers.items():
        try:
            if any(plugin is one for one in seen):
                raise PluginContractError(name, "it is an observer under another name already")
            seen.append(plugin)
            implementations = contract.implementations_of(name, plugin)
            contract.require_observer_hooks(name, implementations)
        except PluginContractError as error:
            log_unusable(name, "is left out", error)
        else:
            yield Observer(name, plugin, implementations)


def _is_named(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)
