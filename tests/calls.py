"""Calls that tests count."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.storage.posix import PosixStorage


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Note the arguments of each call of a function, or of a method, which works as before."""
    plain, noted = getattr(owner, name), list[tuple[Any, ...]]()

    def called(*given: Any, **named: Any) -> Any:
        noted.append((*given, *named.values()))
        return plain(*given, **named)

    monkeypatch.setattr(owner, name, called)
    return noted


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
