"""What is on the disk at every step of one run: what it would leave if it died there.

Nothing of a process outlives its death but what is on the disk. So one run that copies the table's
folder before each of its steps gives what as many runs would leave that are killed, and costs a
hundredth of them. What a process leaves that dies after a step, one leaves that dies before the
next.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.counting_storage import CountedSteps, die


class DiskState(NamedTuple):
    """A copy of a folder.

    ``path``: where it is. ``at``: number of the step before which it was made, or in which half of
    its bytes are written. ``how``: ``before`` or ``torn``.
    """

    path: str
    at: int
    how: str


class DiskStates(CountedSteps):
    """Copies a folder before each step, and once more with half of the step done.

    ``folder``: what is copied. ``kept``: where the copies go.
    """

    def __init__(self, folder: Path, kept: Path) -> None:
        super().__init__()
        self._folder = folder
        self._copies = kept
        self.states: list[DiskState] = []

    def about_to(self, method: str, arguments: Sequence[Any]) -> None:
        """Copy the folder."""
        self._keep("before")
        match method:
            case "write_new":
                path, data = arguments[1:3]
                half = data[: len(data) // 2]
            case "close":
                path, half = arguments[0].path, b"PAR1 and no more"
            case _:
                return
        if Path(path).parent.is_dir():
            copy = self._keep("torn")
            (copy / Path(path).relative_to(self._folder)).write_bytes(half)

    def _keep(self, how: str) -> Path:
        number = len(self.names) + 1
        copy = self._copies / f"{number}-{how}"
        shutil.copytree(self._folder, copy)
        self.states.append(DiskState(str(copy), number, how))
        return copy


class KeptStates(CountedSteps):
    """Keeps what is there before some of the steps, and ends the process before the last of them.

    While that is kept no other thread begins a step, as none does any more when a process dies.

    ``numbers``: of the steps, rising. ``keep``: keeps the state before a step, whose number it is
    given.
    """

    def __init__(self, numbers: Sequence[int], keep: Callable[[int], None]) -> None:
        super().__init__()
        self._numbers = numbers
        self._keep = keep
        self._keeping = threading.Lock()

    def _next(self, name: str, has_half: bool) -> str | None:
        with self._keeping:
            how = super()._next(name, has_half)
            number = len(self.names)
            if number in self._numbers:
                self._keep(number)
            if number == self._numbers[-1]:
                die()
        return how
