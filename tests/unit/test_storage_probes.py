"""Files put for a moment: what stays behind of them is removed, and nothing else is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import StorageError
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Storage
from hudi_core.storage import conditional
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.probes import probe
from hudi_core.storage.store_clock import store_now_ms
from tests.tables import new_table

TEMP = ".hoodie/.temp"
LEFT = [f"{TEMP}/probe-{'a' * 32}", f"{TEMP}/clock-{'b' * 32}"]
OTHERS = [f"{TEMP}/probe-mine", f"{'clock-' + 'd' * 32}"]
HOUR_S = 3600


def aged(path: Path) -> None:
    found = path.stat().st_mtime - HOUR_S - 60
    os.utime(path, (found, found))


def names(storage: Storage) -> set[str]:
    return {status.path for status in storage.list("", recursive=True)}


def test_the_next_write_removes_what_others_left_once_it_is_old(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    table = new_table(tmp_path, rows.schema)
    storage = PosixStorage(str(tmp_path))
    for path in (*LEFT, *OTHERS):
        storage.put_if_absent(path, b"")
        aged(tmp_path / path)
    young = f"{TEMP}/probe-{'e' * 32}"
    storage.put_if_absent(young, b"")
    table.upsert(rows)
    assert names(storage) & {*LEFT, *OTHERS, young} == {*OTHERS, young}


@pytest.mark.parametrize("ask", [store_now_ms, conditional.require_conditional_puts])
def test_who_puts_one_removes_it(tmp_path: Path, ask: Callable[[Storage], object]) -> None:
    storage = PosixStorage(str(tmp_path))
    ask(storage)
    assert names(storage) == set()


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
