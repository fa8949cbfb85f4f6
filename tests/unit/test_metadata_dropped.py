"""Tables that were open when their metadata table, or a part of it, was dropped: nothing is damaged
for their readers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
OPTIONS = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}
FILTER = [("n", "=", 3), ("city", "=", "oslo")]
PARTITIONS: tuple[str, ...] = (
    "files",
    "column_stats",
    "partition_stats",
    "record_index",
    "secondary_index_n",
)


def metadata(*arguments: str) -> None:
    done = CliRunner().invoke(app, ["metadata", *arguments])
    assert done.exit_code == 0, done.output


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    table = new_table(path, SCHEMA, OPTIONS)
    for number in range(4):
        city = "oslo" if number % 2 else "rome"
        table.bulk_insert(pa.table({"id": [f"k{number}"], "city": [city], "n": [number]}, SCHEMA))
    metadata("index", path, "secondary_index_n", "--column", "n")
    return path


def read(table: hudi.Table) -> list[str]:
    """Read all, and what a filter leaves; return which partitions of the metadata table there are
    for who asks."""
    assert sorted(table.to_arrow()["n"].to_pylist()) == [0, 1, 2, 3]
    assert table.to_arrow(filter=FILTER)["id"].to_pylist() == ["k3"]
    assert len(table.file_slices()) == 4
    found = []
    for partition in PARTITIONS:
        try:
            table.metadata(partition)
        except UnsupportedTableError:
            continue
        found.append(partition)
    return found


@pytest.mark.parametrize("partition", [None, *PARTITIONS[1:]])
@pytest.mark.parametrize("listed_too", ["false", "true"])
def test_a_table_that_was_open_does_without(
    path: str, partition: str | None, listed_too: str
) -> None:
    options = {"hoodie.metadata.validate": listed_too}
    used, fresh = hudi.Table.open(path, options), hudi.Table.open(path, options)
    assert read(used) == [*PARTITIONS]
    if partition is None:
        metadata("delete", path)
        gone = PARTITIONS
    else:
        # lookups by a secondary index go through the record index
        gone = PARTITIONS[:2:-1] if partition == "record_index" else (partition,)
        for one in gone:
            metadata("drop", path, one)
    for table in (used, fresh, hudi.Table.open(path)):
        left = read(table)
        assert not set(gone) & set(left)
        assert bool(left) == (partition is not None)


def test_a_metadata_table_that_was_made_anew_is_read(path: str) -> None:
    table = hudi.Table.open(path)
    metadata("delete", path)
    metadata("create", path)
    assert "files" in read(table)


def test_what_nobody_dropped_is_damaged(path: str) -> None:
    table = hudi.Table.open(path)
    shutil.rmtree(Path(path) / ".hoodie/metadata/column_stats")
    with pytest.raises(CorruptMetadataError):
        table.to_arrow(filter=FILTER)
    shutil.rmtree(Path(path) / ".hoodie/metadata")
    for look in (table.to_arrow, table.file_slices, lambda: table.metadata("files")):
        with pytest.raises(CorruptMetadataError):
            look()
