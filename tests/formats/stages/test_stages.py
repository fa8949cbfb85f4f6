"""Stages: writes that are checked, then published as one instant, or dropped."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import UnknownStageError
from tests.formats.service_tables import SCHEMA, agree, bag, batch, new_table
from tests.formats.stages.staged_rows import FORMATS, folder, rows, tree

NOTED = batch(5, "a", "c").append_column("note", pa.array(["x", "y"]))


KEPT = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def test_nobody_sees_a_stage_before_its_publication(table: hudi.Table) -> None:
    path, before = Path(table.path), tree(table)
    old, writes = agree(path), table.timeline.completed_writes()
    staged = table.stage(batch(5, "a", "n"), extra_metadata={"job": "7"})
    assert tree(table) == before
    assert agree(path) == old
    assert table.timeline.instants == hudi.Table.open(table.path).timeline.instants
    assert (staged.commit.inserted, staged.commit.updated) == (1, 1)

    would_be = rows(staged)
    assert (staged.count(), sum(would_be.values())) == (5, 5)
    result = staged.publish()
    assert (result.inserted, result.updated, result.is_repetition) == (1, 1, False)
    assert result.metadata.extra_metadata["job"] == "7"
    assert agree(path) == would_be
    assert len(table.timeline.completed_writes()) == len(writes) + 1
    # of publication's time, like those of any write
    times = table.to_arrow(["id", "_hoodie_commit_time"], filter=[("ts", "=", 5)])
    assert set(times["_hoodie_commit_time"].to_pylist()) == {result.instant.requested_time}
    assert bag(table.to_arrow(as_of=writes[-1]), SCHEMA.names) == old
    assert list(folder(table).glob("*")) == []
    with pytest.raises(UnknownStageError, match="published or dropped"):
        staged.publish()
    table.upsert(batch(6, "a"))


@pytest.mark.parametrize(
    ("table", "operation", "given", "options"),
    [
        ("delta", "insert", batch(5, "c", "z"), {}),
        (
            "native",
            "bulk_insert",
            batch(5, "c", "z"),
            {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
        ),
        ("iceberg", "upsert", batch(5, "a", "b", "c"), {"hoodie.index.type": "GLOBAL_BLOOM"}),
        *((name, "upsert", NOTED, {}) for name in FORMATS),
        ("native", "upsert", batch(5, "a", "c"), RECORD_INDEX),
        ("native", "upsert", batch(5, "a").drop_columns(["value"]), KEPT),
        ("native", "delete", batch(5, "a", "x").select(["id", "city"]), {}),
        *((name, "insert_overwrite", batch(5, "c"), {}) for name in FORMATS),
        ("iceberg", "insert_overwrite_table", batch(5, "c"), {}),
        ("native", "insert", SCHEMA.empty_table(), {}),
    ],
    indirect=["table"],
)
def test_publication_gives_what_was_shown(
    table: hudi.Table, operation: str, given: pa.Table, options: dict[str, str]
) -> None:
    if options is RECORD_INDEX:
        table.upsert(batch(4, "b"), options=options)
    before = tree(table)
    staged = table.stage(given, operation, options=options)
    assert tree(table) == before
    names = [name for name in staged.to_arrow().column_names if name[:8] != "_hoodie_"]
    would_be = bag(staged.to_arrow(), names)
    # by a handle that knows nothing of the options, and from a stream
    [found] = hudi.Table.open(table.path).stages()
    assert (found.id, found.operation) == (staged.id, operation)
    found.publish()
    agree(Path(table.path))
    now = hudi.Table.open(table.path)
    assert bag(now.to_arrow(), names) == would_be
    assert now.validate(keys=True).differences == ()


def test_a_dataset_is_queried_before_the_publication(native: hudi.Table) -> None:
    staged = native.stage(
        pa.RecordBatchReader.from_batches(SCHEMA, batch(5, "a", "n").to_batches())
    )
    with duckdb.connect() as connection:
        connection.register("trips", staged.scan())
        assert connection.sql("select max(ts), count(*) from trips").fetchall() == [(5, 5)]
    assert staged.to_arrow("id", filter=[("ts", ">", 4)])["id"].to_pylist() == ["n", "a"]
    assert staged.count([("city", "=", "rome")]) == 2
    staged.drop()
    with pytest.raises(UnknownStageError):
        staged.count()
    assert native.stages() == ()
    assert list(folder(native).glob("*")) == []


@pytest.mark.parametrize("strategy", ["default", "object_store"])
def test_a_stage_beside_a_storage_path_is_read(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a relative storage path is below the working directory
    options = {"hoodie.storage.path": "data", "hoodie.storage.strategy.class": strategy}
    table = new_table(tmp_path / "t", "native", **options)
    monkeypatch.chdir("/")
    assert list((tmp_path / "data").rglob("*.parquet"))
    staged = table.stage(batch(5, "a", "n"))
    would_be = rows(staged)
    assert staged.scan().to_table().num_rows == staged.count() == sum(would_be.values()) == 5
    staged.publish()
    assert bag(hudi.Table.open(table.path).to_arrow(), SCHEMA.names) == would_be
