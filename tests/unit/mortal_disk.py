"""Disks on which the process ends, or every write fails."""

from __future__ import annotations

import os
from collections.abc import Callable

from hudi_core.storage.disk import Disk


class Killed(BaseException):
    """Stands for the end of the process: no handler of errors may catch it and go on."""


class MortalDisk(Disk):
    """A disk on which the process ends before, after or in the middle of its n-th change."""

    def __init__(self, death: int | None = None, mode: str = "before") -> None:
        self.steps: list[str] = []
        self.death, self.mode = death, mode
        self.dead = False

    def _step(self, name: str, change: Callable[[], None], torn: Callable[[], None]) -> None:
        if self.dead:
            raise Killed  # a dead process changes nothing more
        self.steps.append(name)
        if len(self.steps) - 1 != self.death:
            change()
            return
        self.dead = True
        if self.mode == "after":
            change()
        elif self.mode == "torn":
            torn()
        raise Killed

    def make_folder(self, path: str) -> None:
        self._step("make_folder", lambda: Disk.make_folder(self, path), lambda: None)

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        def write(part: bytes) -> None:
            Disk.write_new(self, path, part, sync=sync)

        self._step("write_new", lambda: write(data), lambda: write(data[: len(data) // 2]))

    def link(self, source: str, target: str) -> None:
        self._step("link", lambda: Disk.link(self, source, target), lambda: None)

    def replace(self, source: str, target: str) -> None:
        self._step("replace", lambda: Disk.replace(self, source, target), lambda: None)

    def remove(self, path: str) -> None:
        self._step("remove", lambda: Disk.remove(self, path), lambda: None)

    def remove_folder(self, path: str) -> None:
        self._step("remove_folder", lambda: Disk.remove_folder(self, path), lambda: None)

    def sync_folder(self, path: str) -> None:
        self._step("sync_folder", lambda: Disk.sync_folder(self, path), lambda: None)


class FailingDisk(Disk):
    """A disk whose every write fails with one error number, after a part of the bytes."""

    def __init__(self, number: int) -> None:
        self.number = number

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        if os.path.isdir(os.path.dirname(path)):
            super().write_new(path, data[:1], sync=sync)
        raise OSError(self.number, os.strerror(self.number))
