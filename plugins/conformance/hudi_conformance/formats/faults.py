"""Processes that die around a hook, and answers that get lost on the way back from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from hudi_core.spi import StorageError
from hudi_core.spi.testing import FormatHost, WriterDied

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Death:
    """Where a process dies: before or after the call of a hook.

    Attributes
    ----------
    hook
        Its name.
    when
        ``before`` the call, or ``after`` it, before anybody hears what it returned.
    """

    hook: str
    when: str

    def __str__(self) -> str:
        return f"{self.when} {self.hook}"


def is_killed(death: Death, act: Callable[[], object]) -> bool:
    """Do something and die amid it; whether it got as far as that."""
    with _around(death.hook, _dying(death)):
        try:
            act()
        except WriterDied:
            return True
    return False


@contextmanager
def lost_answers(hook: str, times: int = 1) -> Iterator[list[object]]:
    """Have a hook do its work, and its caller hear of a store that does not answer.

    Parameters
    ----------
    times
        How often; afterwards its caller hears what it returns.

    Yields
    ------
    list of object
        Gets what was lost.
    """
    lost: list[object] = []

    def call(real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = real(*arguments, **named)
        if len(lost) < times:
            lost.append(result)
            raise StorageError("The answer was lost", "Ask what has happened.")
        return result

    with _around(hook, call):
        yield lost


@contextmanager
def lost_commit(owner: type, method: str, error: Exception, number: int) -> Iterator[list[object]]:
    """Have one commit of a format's library land, and the format hear of an error instead.

    Parameters
    ----------
    owner, method
        What commits for the format.
    error
        What it raises where a store does not answer.
    number
        Which call amid ``complete_write`` that is, from 1.

    Yields
    ------
    list of object
        Gets what was lost.
    """
    lost: list[object] = []
    amid, calls = [False], [0]
    real = getattr(owner, method)

    def commit(*arguments: Any, **named: Any) -> Any:
        result = real(*arguments, **named)
        calls[0] += amid[0]
        if amid[0] and calls[0] == number and not lost:
            lost.append(result)
            raise error
        return result

    def hook(write: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        amid[0] = True
        try:
            return write(*arguments, **named)
        finally:
            amid[0] = False

    with pytest.MonkeyPatch.context() as patched, _around("complete_write", hook):
        patched.setattr(owner, method, commit)
        yield lost


def _dying(death: Death) -> Callable[..., Any]:
    def call(real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if death.when == AFTER:
            real(*arguments, **named)
        raise WriterDied(str(death))

    return call


@contextmanager
def _around(hook: str, call: Callable[..., Any]) -> Iterator[None]:
    """Replace the method of every host by a call that gets the real one first."""
    real = getattr(FormatHost, hook)
    is_own = hook in vars(FormatHost)

    def method(*arguments: Any, **named: Any) -> Any:
        return call(real, *arguments, **named)

    setattr(FormatHost, hook, method)
    try:
        yield
    finally:
        if is_own:
            setattr(FormatHost, hook, real)
        else:
            delattr(FormatHost, hook)
