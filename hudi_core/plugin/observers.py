"""Observers: hook wrappers that watch, and never decide.

An observer is written like any pluggy wrapper (``@hookimpl(wrapper=True)``, one ``yield``), but is
run here and not by pluggy, where a wrapper may replace the result or hide the error. Whatever it
raises, returns or swallows is logged at most. It runs inside the action, so it costs the action its
time, and it sees the same objects as the format.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.extension.foreign import Raised, attempt
from hudi_core.plugin.members import Implementations

_log = logging.getLogger(__name__)

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
