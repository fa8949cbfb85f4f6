"""Calls that tests count."""

from __future__ import annotations

from typing import Any

import pytest


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Note the arguments of each call of a function, or of a method, which works as before."""
    plain, noted = getattr(owner, name), list[tuple[Any, ...]]()

    def called(*given: Any, **named: Any) -> Any:
        noted.append((*given, *named.values()))
        return plain(*given, **named)

    monkeypatch.setattr(owner, name, called)
    return noted
