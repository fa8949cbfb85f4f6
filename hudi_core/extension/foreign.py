"""The one caller of foreign code, which may fail in any way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The call came back with a value."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raised."""

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
    keep.
    """
    try:
        return Returned(call())
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; every caller decides
        return Raised(error)
