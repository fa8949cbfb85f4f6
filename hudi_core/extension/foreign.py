"""The one caller of foreign code, which may fail in any way."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hudi_core.errors import ForkedProcessError

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
