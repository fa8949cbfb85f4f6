"""Threads that the system refuses: a typed error, and nothing of the write remains."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.threads import thread_pool
from hudi_core.errors import ResourceLimitError
from hudi_core.meta_client import run_in_threads
from hudi_core.txn.locks import HudiFileLock
from tests.tables import new_table
from tests.unit.refusals import files

ROWS = pa.table({"id": [1]})


@contextmanager
def no_threads() -> Iterator[None]:
    """No thread can be started, as where the process has no memory left for its stack."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        yield


def test_a_pool_without_threads_says_so() -> None:
    with no_threads(), pytest.raises(ResourceLimitError, match="another thread"):
        run_in_threads(str, [1, 2])


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="mine"), thread_pool(1):
        raise RuntimeError("mine")


def test_a_lock_file_that_nobody_can_renew_is_nobodys(tmp_path: Path) -> None:
    lock = HudiFileLock(str(tmp_path), expire_s=60)
    with no_threads(), pytest.raises(ResourceLimitError, match="another thread"):
        lock.try_lock(0)
    assert lock.try_lock(0)
    lock.unlock()


def test_a_write_without_a_heart_leaves_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", ROWS.schema)
    before = files(tmp_path)
    with no_threads(), pytest.raises(ResourceLimitError, match="another thread"):
        table.upsert(ROWS)
    left = files(tmp_path).keys() - before.keys()
    assert not [path for path in left if "metadata" not in path]
    table.upsert(ROWS)
    assert table.to_arrow().num_rows == 1
