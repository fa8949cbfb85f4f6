"""Services beside writers of other processes, whose lock keeps threads apart and no process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import ConcurrentWriterError, LockError
from hudi_core.services import purge
from hudi_core.txn import heartbeat

FORMATS = ("native", "iceberg", "delta")
OPTIONS = {"hoodie.write.lock.provider": "in_process", "hoodie.write.lock.wait_time_ms": "20000"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": [f"row {one}" for one in ids]})


def create(path: Path, format_name: str = "native") -> hudi.Table:
    table = hudi.Table.create(
        str(path), rows(1).schema, name="t", record_key="id", format=format_name, options=OPTIONS
    )
    table.insert(rows(1, 2))
    table.upsert(rows(2, 3))
    return table


def _purge(path: str, folder: Path) -> None:
    """Purge a table, and stop amid the work until a file is there."""
    rebuild = vars(purge)["rebuild_metadata_table"]

    def paused(*arguments: Any) -> Any:
        folder.joinpath("amid").touch()
        while not folder.joinpath("go").exists():
            time.sleep(0.01)
        return rebuild(*arguments)

    vars(purge)["rebuild_metadata_table"] = paused
    hudi.Table.open(path, OPTIONS).purge()


@contextmanager
def purging(path: str, folder: Path) -> Iterator[BaseProcess]:
    """A purge in a process of its own, amid its work."""
    process = multiprocessing.get_context("spawn").Process(target=_purge, args=(path, folder))
    process.start()
    try:
        while not folder.joinpath("amid").exists():
            assert process.is_alive()
            time.sleep(0.01)
        yield process
    finally:
        folder.joinpath("go").touch()
        process.join(60)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_writer_waits_for_a_purge_of_another_process(tmp_path: Path, format_name: str) -> None:
    table = create(tmp_path / "table", format_name)
    with purging(table.path, tmp_path) as process, ThreadPoolExecutor(1) as threads:
        write = threads.submit(table.upsert, rows(9))
        time.sleep(1.5)
        assert not write.done()
        tmp_path.joinpath("go").touch()
        write.result(60)
        process.join(60)
    assert process.exitcode == 0
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 9]
    assert table.validate().is_valid
    table.upsert(rows(10))
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 9, 10]


def test_a_writer_that_waits_for_too_long_says_for_what(tmp_path: Path) -> None:
    table = create(tmp_path / "table")
    hasty = hudi.Table.open(table.path, OPTIONS | {"hoodie.write.lock.wait_time_ms": "300"})
    with purging(table.path, tmp_path), pytest.raises(LockError) as caught:
        hasty.upsert(rows(9))
    assert "a table service is at work" in str(caught.value)
    assert "hoodie.write.lock.provider" in str(caught.value)
    hasty.upsert(rows(9))


def test_nobody_waits_for_a_service_that_was_killed(tmp_path: Path) -> None:
    table = create(tmp_path / "table")
    with purging(table.path, tmp_path) as process:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
        table.upsert(rows(9))
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 9]
    assert not list(tmp_path.joinpath("table", heartbeat.FOLDER).iterdir())


def test_a_table_is_not_dropped_beside_a_service(tmp_path: Path) -> None:
    table = create(tmp_path / "table")
    with purging(table.path, tmp_path), pytest.raises(ConcurrentWriterError):
        table.drop()
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3]


def test_services_take_turns(tmp_path: Path) -> None:
    table = create(tmp_path / "table")
    with purging(table.path, tmp_path) as process, ThreadPoolExecutor(1) as threads:
        other = threads.submit(table.clean)
        time.sleep(1.0)
        assert not other.done()
        tmp_path.joinpath("go").touch()
        other.result(60)
        process.join(60)
    assert process.exitcode == 0


def test_a_service_waits_for_a_writer_that_is_about_to_end(tmp_path: Path) -> None:
    """Its commit is on the timeline, its heartbeat still there: its own services run."""
    table = create(tmp_path / "table")
    last = table.history().column("instant").to_pylist()[-1]
    storage = table._session.opened.client.storage
    ending = heartbeat.Heartbeat(storage, last, 60_000)
    ending.start()
    with ThreadPoolExecutor(1) as threads:
        service = threads.submit(table.clean)
        time.sleep(1.0)
        assert not service.done()
        ending.stop()
        service.result(60)


def test_a_lock_that_excludes_processes_leaves_no_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path / "table")
    begun: list[bool] = []
    started = heartbeat.Heartbeat.start

    def start(self: heartbeat.Heartbeat) -> None:
        begun.append(self._path.endswith(".service"))
        started(self)

    monkeypatch.setattr(heartbeat.Heartbeat, "start", start)
    hudi.Table.open(str(tmp_path / "table")).clean()
    assert begun == []
    hudi.Table.open(str(tmp_path / "table"), OPTIONS).clean()
    assert begun == [True]
