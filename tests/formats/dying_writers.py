"""Writers whose process ends: at a named place, or in one of the changes they make to a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from hudi_core.storage.posix import PosixStorage

CHANGES = ("put", "put_if_absent", "compare_and_set", "delete", "delete_tree", "link")


class Died(BaseException):
    """The process is no more."""


def die(*_: object, **__: object) -> NoReturn:
    raise Died


@contextmanager
def death_in(place: str) -> Iterator[None]:
    """Run what is within until it comes to the function ``place``, where its process ends."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(place, die)
        with pytest.raises(Died):
            yield


class MortalStorage:
    """Local storage that ends the process in one of its changes.

    ``left``: how many changes there are until then; none ends the process once it is zero or less.
    ``is_done``: whether the last change happens before the process ends.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_done: bool = False) -> None:
        self.left = 0
        self.is_done = is_done
        for name in CHANGES:
            monkeypatch.setattr(PosixStorage, name, self._counted(getattr(PosixStorage, name)))

    def _counted(self, change: Any) -> Any:
        def one(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.is_done:
                raise Died
            answer = change(*arguments, **named)
            if self.left == 0:
                raise Died
            return answer

        return one
