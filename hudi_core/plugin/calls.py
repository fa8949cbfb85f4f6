"""Calling the hooks of one format, and what happens around each call.

A hook of an ability that the format does not declare is refused. Observers are called. What comes
back is checked. :mod:`hudi_core.extension.guard` handles errors.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Container, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Any, Final, get_args, get_origin

from hudi_core.errors import (
    HudiError,
    PluginContractError,
    TableClosedError,
    UnsupportedCapabilityError,
)
from hudi_core.extension.guard import Guard, Lease, Raised, attempt
from hudi_core.hookspecs import HOOKS, Hook
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.format import FormatCommit, Publication
from hudi_core.model.instant import Action
from hudi_core.plugin import contract
from hudi_core.plugin.members import Implementations

# --- observers: hook wrappers that watch, and never decide ----------------------------------------
# An observer is written like any pluggy wrapper (``@hookimpl(wrapper=True)``, one ``yield``), but
# is run here and not by pluggy, where a wrapper may replace the result or hide the error. Whatever
# it raises, returns or swallows is logged at most. It runs inside the action, so it costs the
# action its time, and it sees the same objects as the format.


UNUSABLE: Final[set[tuple[str, str, str]]] = set()
"""What was logged already of observers that cannot be used."""
Wrapper = Generator[None, object, object]


@dataclass(frozen=True, slots=True)
class Observer:
    """One observer and the hooks that it watches."""

    name: str
    plugin: object
    implementations: Implementations

    def begin(
        self, hook: str, arguments: Mapping[str, object], declared: Container[str]
    ) -> Observation | None:
        """Start observing a call; ``None`` when not interested or failed."""
        implementation = self.implementations.get(hook)
        if implementation is None:
            return None
        taken = {name: arguments[name] for name in implementation.arguments if name in arguments}
        taken |= implementation.former(declared)

        def start() -> Wrapper:
            wrapper: Wrapper = getattr(self.plugin, implementation.member)(**taken)
            next(wrapper)
            return wrapper

        outcome = attempt(start)
        if isinstance(outcome, Raised):
            _failed(self.name, hook, outcome.error)
            return None
        return Observation(self.name, hook, outcome.value)


@dataclass(frozen=True, slots=True)
class Observation:
    """One observer watching one call; stopped at its ``yield``."""

    name: str
    hook: str
    wrapper: Wrapper

    def returned(self, result: object) -> None:
        """Let the observer see the result."""
        self._finish(attempt(lambda: self.wrapper.send(result)))

    def raised(self, error: BaseException) -> None:
        """Pass the error to the observer; interrupts only end it."""
        if not isinstance(error, Exception):
            self._finish(attempt(self.wrapper.close), ended=True)
            return
        traceback = error.__traceback__
        outcome = attempt(lambda: self.wrapper.throw(error))
        error.__traceback__ = traceback  # without the observer's frames
        if not (isinstance(outcome, Raised) and outcome.error is error):
            self._finish(outcome)

    def _finish(self, outcome: object, *, ended: bool = False) -> None:
        if isinstance(outcome, Raised):
            if not isinstance(outcome.error, StopIteration):
                _failed(self.name, self.hook, outcome.error)
        elif not ended:
            attempt(self.wrapper.close)
            _failed(self.name, self.hook, RuntimeError("it has a second yield"))


@dataclass(frozen=True, slots=True)
class Watch:
    """All observers of one call, the first one outermost."""

    observations: tuple[Observation, ...]

    @classmethod
    def begin(
        cls,
        observers: tuple[Observer, ...],
        hook: str,
        arguments: Mapping[str, object],
        declared: Container[str],
    ) -> Watch:
        """Start every observer of the hook."""
        started = (observer.begin(hook, arguments, declared) for observer in observers)
        return cls(tuple(one for one in started if one is not None))

    def returned(self, result: object) -> None:
        """Hand the result to the observers."""
        for observation in reversed(self.observations):
            observation.returned(result)

    def raised(self, error: BaseException) -> None:
        """Hand the error to the observers."""
        for observation in reversed(self.observations):
            observation.raised(error)


def log_unusable(name: str, what: str, error: BaseException) -> None:
    """Log an observer that cannot be used, once in a process.

    A process may open thousands of tables, each of which finds the same.
    """
    fact = (name, what, str(error))
    if fact not in UNUSABLE:
        UNUSABLE.add(fact)
        _log.error("observer %s %s", name, what, exc_info=error)


def _failed(name: str, hook: str, error: Exception) -> None:
    if isinstance(error, StopIteration):
        error = RuntimeError("it did not yield")
    _log.error(
        "observer %s failed in %s; the outcome of the hook is kept", name, hook, exc_info=error
    )


# --- calls of hooks -------------------------------------------------------------------------------


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
