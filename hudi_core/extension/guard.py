"""Calls into a plugin, of its hooks and of what they return.

Errors of the project pass as they are; any other becomes a ``PluginError``, once, so that the
callers have one family of errors to deal with: the two-step commit must see every failure, and must
not have to catch everything. An interrupt of the process passes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, NoReturn, TypeVar

from hudi_core.errors import (
    ExtensionCallError,
    ForkedProcessError,
    HudiError,
    PluginContractError,
    PluginHookError,
    TableClosedError,
)

# --- the one caller of foreign code, which may fail in any way ------------------------------------


T = TypeVar("T")

_began: Final[dict[str, int]] = {}
"""Libraries with threads of their own, and the process that used each first."""


def require_same_process(library: str) -> None:
    """Refuse a library whose threads are in another process.

    A process that was forked after the first use lacks them: a call would hang for ever, or panic.
    To be called before each use.

    Raises
    ------
    ForkedProcessError
        Names the library.
    """
    here = os.getpid()
    if _began.setdefault(library, here) != here:
        raise ForkedProcessError(library)


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The call came back with a value."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raised.

    Attributes
    ----------
    error
        What it raised.
    """

    error: Exception

    @property
    def reason(self) -> str:
        """The error in one line."""
        text = " ".join(str(self.error).split())
        kind = type(self.error).__name__
        return f"{kind}: {text}" if text else kind


def attempt(call: Callable[[], T]) -> Returned[T] | Raised:
    """Run code of a plugin and return what became of it.

    What ends the process (``KeyboardInterrupt``, ``SystemExit``) passes: it is not the plugin's to
    keep. A panic of a library in Rust, which Python does not count among the exceptions, is a
    failure like others.
    """
    try:
        return Returned(call())
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; every caller decides
        return Raised(error)
    except BaseException as panic:
        if type(panic).__module__ != "pyo3_runtime":
            raise
        failure = RuntimeError(str(panic))
        failure.__cause__ = panic
        return Raised(failure)


# --- guards of plugins ----------------------------------------------------------------------------


_FORMAT: Final = "table format"


class Lease:
    """Life of a plugin: open until it is closed.

    A plugin whose lease is closed is not called again.
    """

    def __init__(self) -> None:
        self.is_closed = False


@dataclass(frozen=True, slots=True)
class Guard:
    """Calls into one plugin."""

    name: str
    kind: str = _FORMAT
    lease: Lease | None = field(default=None, repr=False, compare=False)

    def call(self, method: str, call: Callable[[], T]) -> T:
        """Run code of the plugin.

        The project's own errors pass unchanged.
        """
        if self.lease is not None and self.lease.is_closed:
            raise TableClosedError(self.name)
        outcome = attempt(call)
        if not isinstance(outcome, Raised):
            return outcome.value
        if isinstance(outcome.error, HudiError):
            raise outcome.error
        if self.kind != _FORMAT:
            raise ExtensionCallError(
                self.kind, self.name, method, outcome.reason
            ) from outcome.error
        raise PluginHookError(self.name, method, outcome.reason) from outcome.error

    def each(self, method: str, items: Iterator[T]) -> Iterator[T]:
        """Yield what an iterator of the plugin yields; see :meth:`call`."""
        end = object()
        while (item := self.call(method, lambda: next(items, end))) is not end:
            yield item  # type: ignore[misc]

    def require(self, method: str, result: object, kinds: tuple[type, ...], wanted: str) -> None:
        """Refuse a result of another kind."""
        # looking whether an object has a property may call it
        if not self.call(method, lambda: isinstance(result, kinds)):
            self.refuse(method, result, wanted)

    def refuse(self, method: str, result: object, wanted: str) -> NoReturn:
        """Raise the error for a result that breaks the contract."""
        got = "None" if result is None else f"a {type(result).__name__}"
        self.raise_violation(f"{method} returned {got}, not {wanted}")

    def raise_violation(self, reason: str) -> NoReturn:
        """Raise the error that explains how the plugin breaks its contract."""
        raise PluginContractError(self.name, reason, kind=self.kind)
