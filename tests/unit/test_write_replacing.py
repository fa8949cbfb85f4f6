"""Overwrites and deleted partitions: what leaves the table, what is recorded, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CommitConflictError, PartitionValueError, UnsupportedCapabilityError
from hudi_core.model.capability import Capability
from hudi_core.model.commit import ReplaceCommitMetadata, WriteOperation
from hudi_core.plugin.host import FormatHost
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import decode_commit, decode_requested_replace
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.begin import begin
from hudi_core.write.replacing import rows_of
from tests.tables import new_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("day", pa.date32()), ("ts", pa.int64())]
)
WRITE_CLIENT = import_module("hudi_core.write.client")


def rows(*keys: tuple[str, str | None], ts: int = 1, day: int = 20_000) -> pa.Table:
    return pa.table(
        [
            pa.array([key for key, _ in keys], pa.string()),
            pa.array([city for _, city in keys], pa.string()),
            pa.array([day] * len(keys), pa.int32()).cast(pa.date32()),
            pa.array([ts] * len(keys), pa.int64()),
        ],
        schema=SCHEMA,
    )


def make(path: Path, partition_by: str | list[str] | None = "city") -> hudi.Table:
    return new_table(path / "t", SCHEMA, partition_by=partition_by)


def held(table: hudi.Table) -> set[tuple[str, str | None]]:
    return {(row["id"], row["city"]) for row in table.to_arrow(["id", "city"]).to_pylist()}


Change = Callable[[hudi.Table], object]
WRITE: Change = lambda table: table.upsert(rows(("a", "rome"), ts=99))  # noqa: E731
DELETION: Change = lambda table: table.delete_partitions(["rome"])  # noqa: E731


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = make(tmp_path)
    made.bulk_insert(rows(("a", "rome"), ("b", "rome"), ("c", "oslo"), ("d", None), ts=9))
    return made


def test_an_overwrite_replaces_just_the_partitions_of_its_rows(table: hudi.Table) -> None:
    result = table.insert_overwrite(rows(("b", "rome"), ("e", "lima")))

    assert held(table) == {("b", "rome"), ("e", "lima"), ("c", "oslo"), ("d", None)}
    assert result.action == "replacecommit"
    assert isinstance(result.metadata, ReplaceCommitMetadata)
    assert list(result.metadata.partition_to_replace_file_ids) == ["rome"]
    assert result.metadata.operation_type == "INSERT_OVERWRITE"


def test_an_overwrite_of_the_table_replaces_all_and_keeps_the_history(table: hudi.Table) -> None:
    before = table.timeline.completed_writes()[-1]

    table.insert_overwrite_table(rows(("z", "bari")))

    assert held(table) == {("z", "bari")}
    assert table.to_arrow(as_of=before).num_rows == 4


@pytest.mark.parametrize(
    ("operation", "left"), [("insert_overwrite_table", 0), ("insert_overwrite", 4)]
)
def test_an_overwrite_without_rows(table: hudi.Table, operation: str, left: int) -> None:
    getattr(table, operation)(rows())
    assert len(held(table)) == left


def test_a_table_without_partitions_is_overwritten_as_one(tmp_path: Path) -> None:
    made = make(tmp_path, None)
    made.insert(rows(("a", "rome"), ("b", "oslo")))

    made.insert_overwrite(rows(("c", "rome")))

    assert held(made) == {("c", "rome")}
    with pytest.raises(PartitionValueError, match="has no partitions"):
        made.delete_partitions([""])


def test_rows_that_are_flagged_as_deleted_only_empty_their_partition(table: hudi.Table) -> None:
    flagged = rows(("a", "rome")).append_column("_hoodie_is_deleted", pa.array([True]))

    table.insert_overwrite(flagged)

    assert held(table) == {("c", "oslo"), ("d", None)}


@pytest.mark.parametrize(
    "named", [["rome", "oslo"], [{"city": "rome"}, {"city": "oslo"}], [{"city": "rome"}, "oslo"]]
)
def test_partitions_are_deleted_by_path_or_by_values(table: hudi.Table, named: Any) -> None:
    result = table.delete_partitions(named)

    assert held(table) == {("d", None)}
    assert (result.files, result.action) == (0, "replacecommit")
    assert (result.deleted, result.replaced) == (3, 2)
    assert "3 deleted in 0 files, 2 file groups replaced" in str(result)
    assert result.metadata.operation_type == "DELETE_PARTITION"


def test_rows_of_archived_commits_are_counted_in_their_files(table: hudi.Table) -> None:
    client = table._session.opened.client
    counted = rows_of(client, table.file_slices())
    assert sorted(counted.values()) == [1, 1, 2]
    assert rows_of(client.seeing(Timeline.of(())), table.file_slices()) == counted


def test_the_partition_of_null_is_deleted_by_its_value(table: hudi.Table) -> None:
    table.delete_partitions([{"city": None}])

    assert ("d", None) not in held(table)


def test_partitions_of_several_columns_are_deleted_by_typed_values(tmp_path: Path) -> None:
    made = make(tmp_path, ["city", "day"])
    made.insert(rows(("a", "rome"), day=20_000))
    made.insert(rows(("b", "rome"), day=20_001))

    made.delete_partitions([{"city": "rome", "day": pa.scalar(20_001, pa.date32()).as_py()}])

    assert held(made) == {("a", "rome")}
    with pytest.raises(PartitionValueError, match="one value for each of: city, day"):
        made.delete_partitions([{"city": "rome"}])
    with pytest.raises(PartitionValueError, match="another type"):
        made.delete_partitions([{"city": "rome", "day": "soon"}])


@pytest.mark.parametrize("value", [1.5, 1 << 70, True, "1"])
def test_a_partition_is_not_named_by_a_value_that_would_change(tmp_path: Path, value: Any) -> None:
    columns = pa.schema([("id", pa.string()), ("n", pa.int32())])
    table = new_table(tmp_path / "t", columns, partition_by="n")
    table.insert(pa.table({"id": ["a"], "n": [1]}, columns))
    with pytest.raises(PartitionValueError, match="has a value of another type than its column"):
        table.delete_partitions([{"n": value}])
    assert table.count() == 1


def test_a_deleted_partition_takes_rows_again(table: hudi.Table) -> None:
    table.delete_partitions(["rome"])
    table.upsert(rows(("a", "rome"), ("c", "oslo"), ts=0))

    assert held(table) == {("a", "rome"), ("c", "oslo"), ("d", None)}
    kept = table.to_arrow(["id", "ts"]).to_pylist()
    assert {"id": "a", "ts": 0} in kept  # nothing is left that is newer
    assert {"id": "c", "ts": 9} in kept


def test_the_timeline_tells_the_operation_before_it_is_complete(table: hudi.Table) -> None:
    result = table.insert_overwrite(rows(("b", "rome")))

    client = open_table(table.path, {}).client
    requested, inflight = (
        client.active.read(result.instant.to(state))
        for state in (hudi.State.REQUESTED, hudi.State.INFLIGHT)
    )
    assert decode_requested_replace(requested, "").clustering_plan is None
    assert decode_commit(inflight, "").operation_type == "INSERT_OVERWRITE"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda table: table.insert_overwrite(rows(("x", "rome"))), WRITE),
        (lambda table: table.delete_partitions(["rome"]), WRITE),
        (lambda table: table.insert(rows(("x", "rome"))), DELETION),
    ],
)
def test_of_two_changes_of_a_group_one_of_which_replaces_it_the_later_is_refused(
    table: hudi.Table, mine: Change, theirs: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "in_process",
    }
    table, other = (hudi.Table.open(table.path, shared) for _ in range(2))

    def overtaken(*arguments: Any, **bodies: Any) -> Any:
        begun = begin(*arguments, **bodies)
        monkeypatch.setattr(WRITE_CLIENT, "begin", begin)
        theirs(other)
        return begun

    monkeypatch.setattr(WRITE_CLIENT, "begin", overtaken)
    with pytest.raises(CommitConflictError):
        mine(table)
    assert held(table) == held(other)
    assert (("a", "rome") in held(table)) is (theirs is WRITE)
    assert ("x", "rome") not in held(table)


@pytest.mark.parametrize(
    ("operation", "mode", "left"),
    [
        ("insert_overwrite", "append", {("x", "rome"), ("c", "oslo"), ("d", None)}),
        ("insert_overwrite", "overwrite", {("x", "rome"), ("c", "oslo"), ("d", None)}),
        ("insert_overwrite_table", "append", {("x", "rome")}),
        ("insert_overwrite_table", "overwrite", {("x", "rome")}),
        ("delete_partition", "append", {("c", "oslo"), ("d", None)}),
    ],
)
def test_operations_by_their_words(
    table: hudi.Table, operation: str, mode: Any, left: set[tuple[str, str | None]]
) -> None:
    options = {"hoodie.datasource.write.operation": operation}

    result = hudi.write(rows(("x", "rome")), table.path, mode, options)

    assert result is not None
    assert result.operation is WriteOperation(operation.upper())
    assert held(hudi.Table.open(table.path)) == left
    assert len(table.timeline.completed_writes()) == 2


def test_a_format_that_cannot_replace_is_asked_before_anything_is_written(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(host: FormatHost, *needed: Capability) -> None:
        if Capability.REPLACE in needed:
            raise UnsupportedCapabilityError(host.name, "replace")

    before = table.timeline.instants
    monkeypatch.setattr(FormatHost, "require", refuse)

    with pytest.raises(UnsupportedCapabilityError):
        table.insert_overwrite(rows(("x", "rome")))
    with pytest.raises(UnsupportedCapabilityError):
        table.delete_partitions(["rome"])

    assert table.timeline.instants == before
    table.insert(rows(("x", "rome")))
