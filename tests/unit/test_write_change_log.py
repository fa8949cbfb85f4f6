"""Logs of changes: what is in them, and that whoever deals with files knows them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.errors import CommitConflictError, HistoryExpiredError, InvalidOptionError
from hudi_core.log_format.block import BlockType, HeaderKey
from hudi_core.log_format.scan import read_log_blocks
from tests.tables import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ]
)
AT = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)


def rows(*ids: int, tag: int = 1) -> pa.Table:
    found = [{"id": one, "city": "rome", "at": AT, "tags": [("a", [tag, None])]} for one in ids]
    return pa.Table.from_pylist(found, SCHEMA)


def image(number: int, tag: int = 1) -> dict[str, Any]:
    return {"id": number, "city": "rome", "at": AT, "tags": {"a": [tag, None]}}


def create(path: Path, mode: str = "data_before_after", **more: Any) -> hudi.Table:
    options = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    return new_table(path, rows(1, 2, 3), options, **more)


def logs(table: hudi.Table) -> list[Path]:
    return sorted(Path(table.path).rglob(".*.cdc"))


def records(table: hudi.Table, result: hudi.CommitResult) -> list[dict[str, Any]]:
    """What the log of a commit with one file holds."""
    [stat] = result.metadata.stats
    [(name, size)] = (stat.cdc_stats or {}).items()
    data = Path(table.path, name).read_bytes()
    assert len(data) == size
    [block] = read_log_blocks(data, name)
    assert block.type == BlockType.CDC
    assert block.header[HeaderKey.INSTANT_TIME] == result.instant.requested_time
    schema = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
    content = io.BytesIO(block.content)
    _, count = (int.from_bytes(content.read(4)) for _ in range(2))
    found = []
    for _ in range(count):
        record = fastavro.schemaless_reader(
            io.BytesIO(content.read(int.from_bytes(content.read(4)))), schema, None
        )
        assert isinstance(record, dict)
        found.append(record)
    assert not content.read()
    return sorted(found, key=lambda one: str(one["op"]))


def test_the_rows_before_and_after(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    assert logs(table) == []  # all rows of a new file are new
    upsert = table.upsert(rows(2, 4, tag=7))
    time = upsert.instant.requested_time
    assert records(table, upsert) == [
        {"op": "i", "ts_ms": time, "before": None, "after": image(4, 7)},
        {"op": "u", "ts_ms": time, "before": image(2), "after": image(2, 7)},
    ]
    delete = table.delete(rows(1))
    [record] = records(table, delete)
    assert (record["op"], record["before"], record["after"]) == ("d", image(1), None)
    assert sorted(table.changes()["op"].to_pylist()) == ["d", "i", "i", "i", "i", "u"]


def test_less_of_each_change(tmp_path: Path) -> None:
    table = create(tmp_path / "before", "DATA_BEFORE")
    assert records(table, table.upsert(rows(2, 4, tag=7))) == [
        {"op": "i", "record_key": "4", "before": None},
        {"op": "u", "record_key": "2", "before": image(2)},
    ]
    table = create(tmp_path / "keys", "OP_KEY_ONLY")
    assert records(table, table.insert(rows(5))) == [{"op": "i", "record_key": "5"}]
    assert "hoodie.table.cdc.supplemental.logging.mode=OP_KEY_ONLY" in Path(
        table.path, ".hoodie/hoodie.properties"
    ).read_text(encoding="utf-8")
    with pytest.raises(InvalidOptionError, match="Supported: OP_KEY_ONLY, DATA_BEFORE"):
        create(tmp_path / "other", "everything")


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
def test_logs_are_files_of_their_instant(tmp_path: Path, format_name: str) -> None:
    table = create(tmp_path / "t", format=format_name)
    table.upsert(rows(2, tag=7))
    [kept] = logs(table)
    table.delete(rows(1))
    assert len(logs(table)) == 2
    assert table.validate().is_valid
    assert table.count() == table.to_arrow().num_rows == 2
    named = table._session.opened.lister().named_files() or ()
    assert not [file.path for file in named if file.path.endswith(".cdc")]
    table.rollback(table.timeline.completed_writes()[-1])
    assert logs(table) == [kept]
    assert table.validate().is_valid
    if format_name == "native":
        for method in ("delete", "create"):
            assert CliRunner().invoke(app, ["metadata", method, table.path]).exit_code == 0
        table = hudi.Table.open(table.path)
        assert table.validate().is_valid
    listed = {row["file_name"] for row in table.metadata("files").to_pylist()}
    assert kept.name in listed


def test_logs_are_cleaned_with_their_files(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    few = {"hoodie.clean.commits.retained": "1"}
    for tag in range(3):
        table.upsert(rows(2, tag=tag), options=few)
    *_, third, last = table.timeline.completed_writes()
    assert [third.requested_time in one.name for one in logs(table)] == [True, False]
    assert table.validate().is_valid
    assert table.changes(third)["op"].to_pylist() == ["u"]
    with pytest.raises(HistoryExpiredError, match="begin later"):
        table.changes(None, last)
    assert table.incremental(deletes=True).num_rows == 3  # of what is there now

    table.insert_overwrite(rows(9), options={"hoodie.clean.automatic": "false"})
    replacing = table.timeline.completed_writes()[-1]
    assert table.changes(last)["op"].to_pylist() == ["d", "d", "d", "i"]
    table.upsert(rows(9), options={"hoodie.clean.automatic": "false"})
    table.clean(options=few)
    assert table.changes(replacing)["op"].to_pylist() == ["u"]


def test_a_write_that_loses_leaves_no_log(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    other = hudi.Table.open(table.path)

    def late() -> Iterator[pa.RecordBatch]:
        other.upsert(rows(2, tag=5), options=several)
        yield from rows(2, tag=6).to_batches()

    with pytest.raises(CommitConflictError):
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, late()), options=several)
    [winner] = logs(table)
    assert other.timeline.completed_writes()[-1].requested_time in winner.name
    assert table.validate().is_valid
