"""Files put for a moment: what stays behind of them is removed, and nothing else is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_core.errors import StorageError
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Paths, Storage
from hudi_core.storage import conditional
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.probes import probe
from hudi_core.storage.store_clock import store_now_ms

TEMP = ".hoodie/.temp"
LEFT = [f"{TEMP}/probe-{'a' * 32}", f"{TEMP}/clock-{'b' * 32}"]
OTHERS = [
    f"{TEMP}/probe-mine",
    f"{TEMP}/20260101000000000/probe-{'c' * 32}",
    f"{'clock-' + 'd' * 32}",
]
HOUR_S = 3600


def aged(folder: Path, seconds: int) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            found = path.stat().st_mtime - seconds
            os.utime(path, (found, found))


def names(storage: Storage) -> set[str]:
    return {status.path for status in storage.list("", recursive=True)}


@pytest.mark.parametrize("ask", [store_now_ms, conditional.require_conditional_puts])
def test_what_others_left_is_removed_once_it_is_old(
    tmp_path: Path, ask: Callable[[Storage], object]
) -> None:
    storage = PosixStorage(str(tmp_path))
    for path in (*LEFT, *OTHERS):
        storage.put_if_absent(path, b"")
    aged(tmp_path, HOUR_S + 60)
    young = f"{TEMP}/probe-{'e' * 32}"
    storage.put_if_absent(young, b"")
    ask(storage)
    assert names(storage) == {*OTHERS, young}


def test_it_is_looked_for_once(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    store_now_ms(storage)
    storage.put_if_absent(LEFT[0], b"")
    aged(tmp_path, 2 * HOUR_S)
    store_now_ms(storage)
    assert names(storage) == {LEFT[0]}


class Unlisted(PosixStorage):
    """Tells nobody what it has."""

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        raise StorageError(f"{prefix} is not listed ({recursive})", "Come again.")


def test_what_cannot_be_listed_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert store_now_ms(Unlisted(str(tmp_path))) > 0
    assert names(PosixStorage(str(tmp_path))) == set()


class Away(PosixStorage):
    """Can be written, and nothing else."""

    def stat(self, path: str) -> FileStatus:
        raise StorageError(f"{path} is not there to be seen", "Come again.")

    def delete(self, path: str) -> bool:
        raise StorageError(f"{path} is not deleted", "Come again.")


def test_what_went_wrong_first_is_told(tmp_path: Path) -> None:
    storage = Away(str(tmp_path))
    with (
        pytest.raises(StorageError, match="not there to be seen") as caught,
        probe(storage, "probe") as path,
    ):
        storage.stat(path)
    assert f"{path} was left behind: {path} is not deleted. Come again." in caught.value.__notes__
    with pytest.raises(StorageError, match="is not deleted"), probe(storage, "probe"):
        pass


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    with pytest.raises(KeyboardInterrupt), probe(storage, "clock"):
        raise KeyboardInterrupt
    assert names(storage) == set()
