"""Calls that tests count, and what they let happen beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from hudi_core.storage.posix import PosixStorage

Act = Callable[..., object]


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Note the arguments of each call of a function, or of a method, which works as before."""
    noted = list[tuple[Any, ...]]()
    before(monkeypatch, owner, name, lambda *given: noted.append(given), each=True)
    return noted


def before(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Act, *, each: bool = False
) -> None:
    """Do something before the next call of a function, or before each; it gets the arguments."""
    real, left = getattr(owner, name), [act]

    def called(*given: Any, **named: Any) -> Any:
        for one in left if each else [left.pop()] if left else []:
            one(*given, *named.values())
        return real(*given, **named)

    monkeypatch.setattr(owner, name, called)


def after(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Act, *, each: bool = False
) -> None:
    """Do something once the next call of a function has returned, or after each."""
    real, left = getattr(owner, name), [act]

    def called(*given: Any, **named: Any) -> Any:
        acts = list(left) if each else [left.pop()] if left else []
        found = real(*given, **named)
        for one in acts:
            one(*given, *named.values())
        return found

    monkeypatch.setattr(owner, name, called)


def failing(error: BaseException) -> Callable[..., NoReturn]:
    """A function that raises an error, whatever it is called with."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


def disk_requests(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[tuple[str, str]]:
    """Note which of these methods of storages on a disk are called, with the path of each call."""
    noted = list[tuple[str, str]]()

    def note(name: str) -> None:
        plain = getattr(PosixStorage, name)

        def called(storage: PosixStorage, path: str = "", *more: Any, **named: Any) -> Any:
            noted.append((name, path))
            return plain(storage, path, *more, **named)

        monkeypatch.setattr(PosixStorage, name, called)

    for name in names:
        note(name)
    return noted
