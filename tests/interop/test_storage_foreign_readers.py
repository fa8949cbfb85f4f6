"""What storage leaves in a table, before the eyes of a reader that is not ours."""

from __future__ import annotations

from pathlib import Path

import hudi
import pytest

from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.partition_path import PartitionPathCodec
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.txn.locks.lock_file import FileLock
from hudi_core.txn.markers import MarkerKind, Markers
from tests.hudi_tables import COMPLEX, PLAIN, VERSION_6, RealTables

PARTITIONED = VERSION_6[1]
FOREIGN_TABLES = [PARTITIONED, PLAIN, COMPLEX]
INSTANT = InstantTime("20990101000000000")


def keys(path: Path) -> list[str]:
    batches = hudi.HudiTable(str(path)).read()
    return sorted(key for batch in batches for key in batch["_hoodie_record_key"].to_pylist())


@pytest.mark.parametrize("name", FOREIGN_TABLES)
def test_files_half_written_locks_and_hearts_are_not_seen(
    real_tables: RealTables, name: str
) -> None:
    path = real_tables(name)
    before = keys(path)
    assert before
    folders = {file.parent for file in path.rglob("*") if file.is_file()}
    for folder in folders:
        (folder / f"{TEMPORARY_PREFIX}0123456789abcdef").write_bytes(b"half")
    storage = PosixStorage(str(path))
    heart = Heartbeat(storage, INSTANT, 60_000)
    heart.start()
    marked = f"7f3c-0_1-2-3_{INSTANT}.parquet"
    Markers(storage, INSTANT).create(PartitionPath("10"), marked, MarkerKind.CREATE)
    lock = FileLock(str(path))
    assert lock.try_lock(0)
    try:
        assert keys(path) == before
    finally:
        lock.unlock()
        heart.stop()


@pytest.mark.parametrize("url_encode", [False, True])
@pytest.mark.parametrize(
    "value",
    ["2026/01/31", "a b", "100%", "é", "a:b", "[x]{y}", "x?#*", "a+b~", "2026-01-31 10:20:30.5"],
)
def test_the_folders_of_partition_values_are_found(
    real_tables: RealTables, value: str, url_encode: bool
) -> None:
    path = real_tables(PARTITIONED)
    before = keys(path)
    encoded = PartitionPathCodec(["p"], hive_style=False, url_encode=url_encode).encode([value])
    target = path / encoded
    target.parent.mkdir(parents=True, exist_ok=True)
    (path / "10").rename(target)
    assert keys(path) == before


@pytest.mark.parametrize("value", ["..", ".", "_x", ".hoodie", "../../escape", "a\\b"])
def test_the_folders_of_encoded_hostile_values_are_found(
    real_tables: RealTables, value: str
) -> None:
    path = real_tables(PARTITIONED)
    before = keys(path)
    (path / "10").rename(
        path / PartitionPathCodec(["p"], hive_style=False, url_encode=True).encode([value])
    )
    assert keys(path) == before
