"""Operations and commits of an Iceberg table, judged by pyiceberg, polars and hudi-rs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.types import DoubleType

import hudi_core as hudi
import hudi_core.txn.publication
from hudi_core.errors import CommitStateUnknownError, CorruptMetadataError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.table_handle import OpenTable
from iceberg_format.catalog import FolderCatalog, TableState
from tests.formats.iceberg_tables import (
    NOTED,
    Iceberg,
    agree,
    bag,
    create,
    lose,
    opened,
    ours,
    row,
    summary,
    typed,
    without_meta,
)

META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"]
KINDS: dict[str, tuple[Any, dict[str, str]]] = {
    "one column": ("city", {}),
    "hive style": ("city", {"hoodie.datasource.write.hive_style_partitioning": "true"}),
    "two columns": (["city", "flag"], {}),
    "no partitions": (None, {}),
    "a day": ("day", {}),
    "without metadata table": ("city", {"hoodie.metadata.enable": "false"}),
    "metadata below .hoodie": ("city", {"hoodie.table.format.iceberg.location": ".hoodie/iceberg"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_agrees_after_every_step(kind: str, path: Path) -> None:
    partition_by, options = KINDS[kind]
    table = create(path, partition_by, **options)
    where = path / ".hoodie/iceberg" if "below" in kind else path
    seen = {}

    def step(result: Any, keys: set[int], ts: dict[int, int], action: str) -> None:
        expected = bag(pa.Table.from_pylist([row(k, ts.get(k, 0)) for k in keys], NOTED))
        ice = Iceberg(where)
        columns = NOTED.names
        assert bag(ice.rows(columns)) == expected
        assert ours(path) == expected
        if where == path:
            assert agree(path) == expected
        newest = ice.lineage[-1]
        assert newest.summary is not None
        assert newest.summary.operation.value == action
        told = summary(newest)
        assert told["hudi.instant"] == result.instant.requested_time
        assert told["hudi.completion-time"] == result.instant.completion_time
        assert told["total-records"] == str(len(keys))
        xtable = json.loads(told["XTABLE_METADATA"])
        assert xtable["sourceIdentifier"] == result.instant.requested_time
        seen[result.instant.requested_time] = (newest.snapshot_id, expected)

    step(table.bulk_insert(typed(range(12))), set(range(12)), {}, "append")
    table.insert(typed(range(12, 16)))
    kinds = {summary(one)["hudi.operation"] for one in Iceberg(where).lineage}
    assert kinds == {"BULK_INSERT", "INSERT"}
    ts = {1: 2, 5: 2, 20: 2}
    step(table.upsert(typed(ts, 2)), {*range(16), 20}, ts, "overwrite")
    gone = {2, 6, 11}
    left = {*range(16), 20} - gone
    step(table.delete(typed(gone)), left, ts, "overwrite")
    if partition_by is not None:
        here = _partition(3, partition_by)
        left = {key for key in left if _partition(key, partition_by) != here} | {3}
        step(table.insert_overwrite(typed([3])), left, ts, "overwrite")
    left = {1, 4, 8}
    step(table.insert_overwrite_table(typed(left)), left, {}, "overwrite")
    for instant, (snapshot_id, expected) in seen.items():
        assert bag(Iceberg(where).rows(NOTED.names, snapshot_id)) == expected
        assert ours(path, instant) == expected


def _partition(key: int, columns: Any) -> tuple[Any, ...]:
    names = [columns] if isinstance(columns, str) else columns
    return tuple(row(key)[name] for name in names)


def test_partitions_are_deleted_by_one_snapshot_and_pruned_by_their_values(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    table.bulk_insert(typed(range(10)))
    ice = Iceberg(tmp_path / "t")
    planned = list(ice.table.scan("city == 'oslo'").plan_files())
    assert {one.file.partition[0] for one in planned} == {"oslo"}
    table.delete_partitions(["oslo"])
    newest = ice.lineage[-1]
    assert newest.summary is not None
    assert newest.summary.operation.value == "delete"
    assert agree(tmp_path / "t") == bag(typed(k for k in range(10) if k % 5 != 1))


def test_columns_change_with_their_ids(path: Path) -> None:
    table = create(path)
    table.bulk_insert(typed(range(6)))
    ids = {field.name: field.field_id for field in Iceberg(path).table.schema().fields}
    table.alter(add_columns={"extra": pa.int32()})
    agree(path)
    table.alter(rename={"value": "worth"})
    agree(path, hudi_rs=False)  # it finds columns by name only
    table.alter(drop="worth")
    agree(path)
    table.alter(add_columns={"value": pa.string()})
    agree(path, hudi_rs=False)
    fields = {field.name: field.field_id for field in Iceberg(path).table.schema().fields}
    assert fields["value"] not in ids.values()
    assert {name: fields[name] for name in META} == {name: ids[name] for name in META}
    changed = without_meta(table.to_arrow())
    changed = changed.set_column(changed.column_names.index("value"), "value", pa.array(["x"] * 6))
    result = table.upsert(changed)
    assert bag(Iceberg(path).rows(["id", "value"])) == bag(changed.select(["id", "value"]))
    table.rollback(result.instant)
    assert agree(path, hudi_rs=False)
    assert Iceberg(path).rows(["value"])["value"].null_count == 6


def test_an_undone_schema_change_is_undone_in_iceberg(path: Path) -> None:
    table = create(path)
    table.bulk_insert(typed(range(3)))
    result = table.alter(add_columns={"extra": pa.int32()})
    table.rollback(result.instant)
    assert "extra" not in Iceberg(path).table.schema().column_names
    agree(path)


def test_the_rows_of_an_undone_write_are_gone_and_its_snapshot_too(path: Path) -> None:
    table = create(path)
    table.bulk_insert(typed(range(6)))
    before = agree(path)
    result = table.upsert(typed(range(3), 5))
    undone = Iceberg(path).lineage[-1].snapshot_id
    table.rollback(result.instant)
    ice = Iceberg(path)
    assert agree(path) == before
    assert undone not in {one.snapshot_id for one in ice.table.metadata.snapshots}
    assert [summary(one)["hudi.operation"] for one in ice.lineage] == ["BULK_INSERT"]
    table.upsert(typed([1], 6))
    assert agree(path) == bag(pa.concat_tables([typed([0, 2, 3, 4, 5]), typed([1], 6)]))


@pytest.mark.filterwarnings("ignore")
def test_bounds_and_counts_are_what_pyiceberg_takes_from_the_files(path: Path) -> None:
    create(path).bulk_insert(typed(range(40)))
    table = Iceberg(path).table
    ours = {one.file.file_path: one.file for one in table.scan().plan_files()}
    theirs = parquet_files_to_data_files(table.io, table.metadata, iter(ours))
    fields = {field.name: field.field_id for field in table.schema().fields}
    plain = [number for name, number in fields.items() if name not in ("inner", "tags", "notes")]
    for other in theirs:
        mine = ours[other.file_path]
        assert mine.record_count == other.record_count
        assert mine.file_size_in_bytes == other.file_size_in_bytes
        assert mine.partition == other.partition
        for number in plain:
            assert mine.null_value_counts[number] == other.null_value_counts[number]
            assert mine.value_counts[number] == other.value_counts[number]
            assert mine.upper_bounds.get(number) == other.upper_bounds.get(number)
            if not mine.nan_value_counts.get(number):
                assert mine.lower_bounds.get(number) == other.lower_bounds.get(number)
    value = fields["value"]
    with_nan = [one for one in ours.values() if one.nan_value_counts[value]]
    assert sum(one.nan_value_counts[value] for one in with_nan) == 5
    # no footer has bounds of a column with NaN; a lower one loses no row
    assert {value in one.lower_bounds for one in with_nan} == {True}
    assert {value in one.upper_bounds for one in with_nan} == {False}


def test_no_file_is_said_to_hold_nothing_but_nan(path: Path) -> None:
    """Iceberg-Spark leaves such a file out of ``value > 3``, and Spark wants its rows."""
    table = create(path)
    table.bulk_insert(
        pa.Table.from_pylist(
            [{**row, "value": math.nan} for row in typed(range(3)).to_pylist()], typed([0]).schema
        )
    )
    [value] = [
        field.field_id for field in Iceberg(path).table.schema().fields if field.name == "value"
    ]
    files = [one.file for one in Iceberg(path).table.scan().plan_files()]
    assert files
    for one in files:
        assert value in one.value_counts
        assert value not in one.nan_value_counts
        assert value not in one.lower_bounds
    assert len(agree(path)) == 3


def test_the_location_is_kept(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    kept = hudi.Table.open(tmp_path / "t").config.raw
    assert kept["hoodie.table.format.iceberg.location"] == f"file://{tmp_path}/t"
    assert table.config.raw == kept


Commit = Callable[..., TableState]
NEVER = Instant(
    InstantTime("20200101000000000"),
    Action.COMMIT,
    State.COMPLETED,
    InstantTime("20200101000000001"),
)
"""A write that nobody knows of."""


@dataclass
class Faults:
    """Stands between the plugin and the catalog's commit."""

    commit: Commit
    before: Callable[[TableState], None] | None = None
    after: Exception | None = None
    calls: int = 0

    def __call__(
        self,
        catalog: FolderCatalog,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        self.calls += 1
        if self.before is not None:
            self.before(state)
        made = self.commit(catalog, state, requirements, updates)
        if self.after is not None:
            raise self.after
        return made


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
    made = Faults(FolderCatalog.commit)

    def commit(*given: Any) -> TableState:
        return made(*given)

    monkeypatch.setattr(FolderCatalog, "commit", commit)
    return made


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    where = tmp_path / "t"
    create(where).bulk_insert(typed(range(8)))
    return where


def last(table: OpenTable) -> Instant:
    return table.client.timeline().completed_writes()[-1]


def replay(table: OpenTable, instant: Instant, statuses: Sequence[Any] = ()) -> str:
    commit = table.client.read_commit(instant)
    return table.host.complete_write(table.client, commit, instant, statuses).version


def test_a_write_without_step_2_is_hidden_and_replayed_to_the_same_table(filled: Path) -> None:
    table = hudi.Table.open(filled)
    old = agree(filled)
    result = table.upsert(typed([1, 2, 30], 2))
    new, whole = agree(filled), Iceberg(filled)
    files = {one.file.file_path: one.file for one in whole.table.scan().plan_files()}
    lose(filled)
    assert ours(filled) == old
    assert bag(Iceberg(filled).rows(["id", "ts"])) != new
    instant = last(opened(filled))
    fenced = opened(filled).timeline().find(instant.requested_time)
    assert fenced is not None
    assert fenced.state is State.INFLIGHT
    assert opened(filled).host.find_publication(opened(filled).client, instant) is None
    assert replay(opened(filled), instant) == result.receipt.version
    assert agree(filled) == new
    again = {one.file.file_path: one.file for one in Iceberg(filled).table.scan().plan_files()}
    assert again.keys() == files.keys()
    fields = Iceberg(filled).table.schema().fields
    floating = {one.field_id for one in fields if isinstance(one.field_type, DoubleType)}
    for uri, file in files.items():
        other = again[uri]
        # of a column with NaN the footer, from which the replay has them, holds no bounds
        for replayed, written in (
            (other.lower_bounds, file.lower_bounds),
            (other.upper_bounds, file.upper_bounds),
        ):
            assert replayed.items() <= written.items()
            assert written.keys() - replayed.keys() <= floating
        assert other.value_counts == file.value_counts
        assert other.null_value_counts == file.null_value_counts
        assert other.partition == file.partition
        assert other.record_count == file.record_count
    found = opened(filled).host.find_publication(opened(filled).client, instant)
    assert found is not None
    assert found.completion_time == instant.completion_time


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError("late"), ValueError("odd")])
def test_an_error_before_the_commit_leaves_the_outcome_open(
    filled: Path, faults: Faults, error: Exception
) -> None:
    def fail(state: TableState) -> None:
        del state
        raise error

    old = agree(filled)
    faults.before = fail
    with pytest.raises(CommitStateUnknownError, match="may take place yet") as caught:
        hudi.Table.open(filled).upsert(typed([1], 2))
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__cause__ is error
    assert faults.calls == 3
    faults.before = None
    assert ours(filled) == old
    replay(opened(filled), last(opened(filled)))
    assert agree(filled) == bag(pa.concat_tables([typed([0, 2, 3, 4, 5, 6, 7]), typed([1], 2)]))


def test_the_loser_of_a_race_is_published_if_nothing_objects(filled: Path, faults: Faults) -> None:
    def be_first(state: TableState) -> None:
        del state
        faults.before = None
        table = opened(filled)
        table.host.before_rollback(table.client, NEVER)

    faults.before = be_first
    result = hudi.Table.open(filled).upsert(typed([1], 2))
    assert faults.calls == 3
    assert summary(Iceberg(filled).lineage[-1])["hudi.instant"] == result.instant.requested_time
    agree(filled)


def test_a_request_on_its_way_fails_after_a_rollback(filled: Path, faults: Faults) -> None:
    held: list[tuple[Any, ...]] = []
    send = faults.commit

    def keep(*given: Any) -> TableState:
        held.append(given)
        return send(*given)

    faults.commit = keep
    table = opened(filled)
    hudi.Table.open(filled).upsert(typed([1], 2))
    late = held[-1]
    lose(filled)
    instant = last(table)
    table.host.before_rollback(table.client, instant)
    with pytest.raises(CommitFailedException, match="exists already"):
        send(*late)
    assert table.host.find_publication(table.client, instant) is None
    table.host.before_rollback(table.client, instant)
    assert [summary(one)["hudi.operation"] for one in Iceberg(filled).lineage] == ["BULK_INSERT"]


@pytest.mark.parametrize("pattern", ["v*.metadata.json", "*-m0.avro", "snap-*.avro"])
def test_damaged_metadata_is_named(filled: Path, pattern: str) -> None:
    for file in (filled / "metadata").glob(pattern):
        file.write_bytes(b"\x00damaged")
    with pytest.raises(CorruptMetadataError, match="metadata/"):
        hudi.Table.open(filled).to_arrow()
