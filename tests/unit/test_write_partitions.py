"""Partitions at a write: overwritten, deleted, nested, and of values that Hudi takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

import hudi_core as hudi
from hudi_core.config.stored_table import new_table_config, properties_of, stored_config
from hudi_core.config.table import TableConfig
from hudi_core.config.time_zone import time_zone
from hudi_core.config.timebased import TimeUnit
from hudi_core.errors import (
    CommitConflictError,
    InvalidOptionError,
    OptionConflictError,
    PartitionValueError,
    SchemaError,
    UnknownPartitionError,
    UnsupportedCapabilityError,
    UnsupportedTableError,
)
from hudi_core.keygen.timestamp import counts_of
from hudi_core.model.capability import Capability
from hudi_core.model.commit import ReplaceCommitMetadata, WriteOperation
from hudi_core.model.files import FileStatus, PartitionPath
from hudi_core.plugin.host import FormatHost
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import decode_commit, decode_requested_replace
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.begin import begin
from hudi_core.txn.transaction import Transaction
from hudi_core.write.replacing import rows_of
from hudi_core.write.steps import WriteSteps
from tests.calls import disk_requests
from tests.tables import copied, new_table
from tests.unit.refusals import refused

CITIES_AND_DAYS = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("day", pa.date32()), ("ts", pa.int64())]
)
WRITE_CLIENT = import_module("hudi_core.write.client")


def placed_rows(*keys: tuple[str, str | None], ts: int = 1, day: int = 20_000) -> pa.Table:
    return pa.table(
        [
            pa.array([key for key, _ in keys], pa.string()),
            pa.array([city for _, city in keys], pa.string()),
            pa.array([day] * len(keys), pa.int32()).cast(pa.date32()),
            pa.array([ts] * len(keys), pa.int64()),
        ],
        schema=CITIES_AND_DAYS,
    )


def make(path: Path, partition_by: str | list[str] | None = "city") -> hudi.Table:
    return new_table(path / "t", CITIES_AND_DAYS, partition_by=partition_by)


def held(table: hudi.Table) -> set[tuple[str, str | None]]:
    return {(row["id"], row["city"]) for row in table.to_arrow(["id", "city"]).to_pylist()}


Change = Callable[[hudi.Table], object]
WRITE: Change = lambda table: table.upsert(placed_rows(("a", "rome"), ts=99))  # noqa: E731
DELETION: Change = lambda table: table.delete_partitions(["rome"])  # noqa: E731


def four_rows(path: Path) -> hudi.Table:
    made = make(path.parent)
    made.bulk_insert(placed_rows(("a", "rome"), ("b", "rome"), ("c", "oslo"), ("d", None), ts=9))
    return made


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", four_rows)


def test_an_overwrite_replaces_just_the_partitions_of_its_rows(table: hudi.Table) -> None:
    result = table.insert_overwrite(placed_rows(("b", "rome"), ("e", "lima")))

    assert held(table) == {("b", "rome"), ("e", "lima"), ("c", "oslo"), ("d", None)}
    assert result.action == "replacecommit"
    assert isinstance(result.metadata, ReplaceCommitMetadata)
    assert list(result.metadata.partition_to_replace_file_ids) == ["rome"]
    assert result.metadata.operation_type == "INSERT_OVERWRITE"


def test_an_overwrite_of_the_table_replaces_all_and_keeps_the_history(table: hudi.Table) -> None:
    before = table.timeline.completed_writes()[-1]

    table.insert_overwrite_table(placed_rows(("z", "bari")))

    assert held(table) == {("z", "bari")}
    assert table.to_arrow(as_of=before).num_rows == 4


@pytest.mark.parametrize(
    ("operation", "left"), [("insert_overwrite_table", 0), ("insert_overwrite", 4)]
)
def test_an_overwrite_without_rows(table: hudi.Table, operation: str, left: int) -> None:
    getattr(table, operation)(placed_rows())
    assert len(held(table)) == left


def test_a_table_without_partitions_is_overwritten_as_one(tmp_path: Path) -> None:
    made = make(tmp_path, None)
    made.insert(placed_rows(("a", "rome"), ("b", "oslo")))

    made.insert_overwrite(placed_rows(("c", "rome")))

    assert held(made) == {("c", "rome")}
    with pytest.raises(PartitionValueError, match="has no partitions"):
        made.delete_partitions([""])


def test_rows_that_are_flagged_as_deleted_only_empty_their_partition(table: hudi.Table) -> None:
    flagged = placed_rows(("a", "rome")).append_column("_hoodie_is_deleted", pa.array([True]))

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
    made.insert(placed_rows(("a", "rome"), day=20_000))
    made.insert(placed_rows(("b", "rome"), day=20_001))

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
    table.upsert(placed_rows(("a", "rome"), ("c", "oslo"), ts=0))

    assert held(table) == {("a", "rome"), ("c", "oslo"), ("d", None)}
    kept = table.to_arrow(["id", "ts"]).to_pylist()
    assert {"id": "a", "ts": 0} in kept  # nothing is left that is newer
    assert {"id": "c", "ts": 9} in kept


def test_the_timeline_tells_the_operation_before_it_is_complete(table: hudi.Table) -> None:
    result = table.insert_overwrite(placed_rows(("b", "rome")))

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
        (lambda table: table.insert_overwrite(placed_rows(("x", "rome"))), WRITE),
        (lambda table: table.delete_partitions(["rome"]), WRITE),
        (lambda table: table.insert(placed_rows(("x", "rome"))), DELETION),
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

    result = hudi.write(placed_rows(("x", "rome")), table.path, mode, options)

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
        table.insert_overwrite(placed_rows(("x", "rome")))
    with pytest.raises(UnsupportedCapabilityError):
        table.delete_partitions(["rome"])

    assert table.timeline.instants == before
    table.insert(placed_rows(("x", "rome")))


# --- partitions within partitions: refused, and at what cost in requests
FAST = {"hoodie.metadata.enable": "false"}
PARTS = pa.schema([("id", pa.string()), ("part", pa.string())])
OPERATIONS = ["insert", "upsert", "bulk_insert", "insert_overwrite"]


def parts_of(*parts: str) -> pa.Table:
    return pa.table({"id": [f"{part}-{n}" for n, part in enumerate(parts)], "part": parts}, PARTS)


def parted(path: Path, *parts: str) -> hudi.Table:
    return new_table(path / "t", parts_of(*parts) if parts else PARTS, FAST)


def partitions(table: hudi.Table) -> list[str]:
    return sorted(hudi.Table.open(table.path).to_arrow()["part"].to_pylist())


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("stored", "written"),
    [
        (["a/b"], ["a"]),
        (["a"], ["a/b"]),
        (["a/b/c", "x"], ["new", "a"]),
        (["a"], ["a/b/c"]),
        (["a/b/c"], ["a/b"]),
        ([], ["a", "a/b"]),
        (["x"], ["a/b/c", "a"]),
    ],
)
def test_nested_partitions_are_refused(
    operation: str, stored: list[str], written: list[str], tmp_path: Path
) -> None:
    table = parted(tmp_path, *stored)
    with pytest.raises(PartitionValueError, match="would lie within"):
        getattr(table, operation)(parts_of(*written))
    # nothing that the refused write left hides rows, and the table can be written
    assert partitions(table) == stored
    table.insert(parts_of("elsewhere", *stored))
    assert set(partitions(table)) == {"elsewhere", *stored}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_partitions_beside_each_other_are_written(operation: str, tmp_path: Path) -> None:
    table = parted(tmp_path, "2026/01/30", "a", "ab")
    getattr(table, operation)(parts_of("2026/01/31", "b", "a", "a!"))
    assert {"2026/01/30", "2026/01/31", "a", "ab", "b", "a!"} == set(partitions(table))


@pytest.mark.parametrize(("stored", "written"), [("a/b", "a"), ("a", "a/b"), ("a/b/c", "a")])
def test_a_bulk_insert_that_dies_hides_nothing(
    stored: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = parted(tmp_path, stored)
    # what a killed process leaves: nothing is checked or undone after the tasks
    monkeypatch.setattr(WriteSteps, "_require_unnested", lambda *_: None)
    monkeypatch.setattr(Transaction, "abort", lambda self: self.heartbeat.stop())

    with pytest.raises(PartitionValueError, match="would lie within"):
        table.bulk_insert(parts_of(written))

    assert partitions(table) == [stored]
    monkeypatch.undo()
    table.insert(parts_of(stored))  # rolls back what the dead one left
    assert partitions(table) == [stored, stored]


def test_a_partition_without_metadata_is_found(tmp_path: Path) -> None:
    table = parted(tmp_path, "a/b")
    (Path(table.path) / "a/b/.hoodie_partition_metadata").unlink()
    with pytest.raises(PartitionValueError, match="would lie within"):
        table.insert(parts_of("a"))


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the requests for partitions, by kind."""
    counted: Counter[str] = Counter()
    head, list_ = PosixStorage.head, PosixStorage.list

    def counting_head(self: PosixStorage, path: str) -> FileStatus | None:
        counted["head"] += not path.startswith(".hoodie/")
        return head(self, path)

    def counting_list(self: PosixStorage, *given: Any, **named: Any) -> Iterator[FileStatus]:
        counted["list"] += not str([*given, *named.values()][0]).startswith(".hoodie")
        return list_(self, *given, **named)

    monkeypatch.setattr(PosixStorage, "head", counting_head)
    monkeypatch.setattr(PosixStorage, "list", counting_list)
    return counted


@pytest.mark.parametrize(
    ("operation", "part", "heads", "lists"),
    [
        # one head is of the task that makes a file group, for the partition's own metadata; where
        # there is none it looks above and below once more
        ("upsert", "p007", 0, 1),
        ("insert", "p007", 0, 1),
        ("upsert", "new", 1, 3),
        ("upsert", "new/one", 3, 3),
        ("upsert", "2026/01/31", 5, 3),
        ("upsert", "2026/01/30", 2, 1),
        ("bulk_insert", "p007", 1, 1),
        ("bulk_insert", "new", 1, 3),
    ],
)
def test_other_partitions_are_not_asked_about(
    operation: str, part: str, heads: int, lists: int, tmp_path: Path, requests: Counter[str]
) -> None:
    many = parts_of(*(f"p{n:03}" for n in range(99)), "2026/01/30")
    # who has not written to it yet asks about each
    table = copied(tmp_path / "t", new_table, many, FAST)
    requests.clear()
    getattr(table, operation)(parts_of(part))
    assert requests == Counter(head=heads, list=lists)


# --- partitions that are named to be deleted: looked at alone, and refused when they hold no
KNOWN_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


@pytest.fixture
def known_table(tmp_path: Path) -> hudi.Table:
    """Give a table with fifty partitions."""
    names = [f"p{n:02}" for n in range(50)]
    given = pa.table({"id": names, "part": names}, KNOWN_SCHEMA)
    return copied(tmp_path / "t", new_table, given, {"hoodie.metadata.enable": "false"})


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    return disk_requests(monkeypatch, "head", "list", "list_folders")


def test_only_the_named_partitions_are_looked_at(
    known_table: hudi.Table, looked_at: list[tuple[str, str]]
) -> None:
    known_table.delete_partitions(["p07", "p08"])
    assert {path for _, path in looked_at if path[:7] != ".hoodie"} == {"p07", "p08"}
    assert known_table.to_arrow().num_rows == 48


@pytest.mark.parametrize(
    "name", ["p50", "p07/", "../t/p07", "/etc", "", ".hoodie/timeline", "p07//x", "p\0"]
)
def test_what_names_no_partition_is_refused(name: str, known_table: hudi.Table) -> None:
    with pytest.raises(UnknownPartitionError, match=r"'p00', .* and 40 more") as refused:
        known_table.delete_partitions(["p07", name])
    assert refused.value.facts["partitions"] == (name,)
    assert known_table.to_arrow().num_rows == 50
    known_table.delete_partitions(["p07"])
    with pytest.raises(UnknownPartitionError, match="'p07'"):
        known_table.delete_partitions(["p07"])


# --- what Apache Hudi takes: generators without partitions, slashes, empty values, keys alone
CLASS = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
PARTITION = "hoodie.datasource.write.partitionpath.field"
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
SIMPLE, COMPLEX, NONE = (
    f"org.apache.hudi.keygen.{name}KeyGenerator" for name in ("Simple", "Complex", "Nonpartitioned")
)


def taken_rows(ids: Sequence[str], city: Sequence[str | None], v: int = 1) -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "city": pa.array(city, pa.string()),
            "v": pa.array([v] * count, pa.int64()),
        }
    )


def written(path: Path, batch: pa.Table, **options: str) -> hudi.Table:
    given = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", **options}
    for _ in range(2):  # the second time with what the table has stored
        hudi.write(batch, str(path / "t"), options=given)
    return hudi.Table.open(str(path / "t"))


def places(table: hudi.Table) -> list[tuple[Any, ...]]:
    found = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"])
    return sorted(zip(*found.to_pydict().values(), strict=True))


def by_hudi_rs(table: hudi.Table, **options: Any) -> list[tuple[Any, ...]]:
    reader = HudiTableBuilder.from_base_uri(table.path).build()
    found = pa.Table.from_batches(reader.read(HudiReadOptions(**options))).select(["id", "city"])
    return sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


# --- generators
@pytest.mark.parametrize(
    ("options", "kind", "keys"),
    [
        ({CLASS: SIMPLE}, "NON_PARTITION", ["a", "b"]),
        ({CLASS: SIMPLE, PARTITION: ""}, "NON_PARTITION", ["a", "b"]),
        ({TYPE: "SIMPLE"}, "NON_PARTITION", ["a", "b"]),
        ({CLASS: COMPLEX}, "COMPLEX", ["id:a", "id:b"]),
        ({CLASS: COMPLEX, PARTITION: ""}, "COMPLEX", ["id:a", "id:b"]),
        ({TYPE: "COMPLEX", "hoodie.write.table.version": "9"}, "COMPLEX", ["id:a", "id:b"]),
        ({CLASS: NONE, PARTITION: "city"}, "NON_PARTITION", ["a", "b"]),
    ],
)
def test_generators_without_partitions(
    tmp_path: Path, options: dict[str, str], kind: str, keys: list[str]
) -> None:
    """What Hudi-Spark 1.2.0 stores of these options, and the keys it makes."""
    table = written(tmp_path, taken_rows(["a", "b"], ["Rome", None]), **options)
    assert (table.config.keygen_type, table.config.partition_fields) == (kind, ())
    assert places(table) == [(key, "") for key in keys]
    assert by_hudi_rs(table) == [("a", "Rome"), ("b", None)]
    assert table.delete(taken_rows(["a"], ["Rome"])).deleted == 1


def test_a_type_that_the_fields_contradict(tmp_path: Path) -> None:
    """Hudi's option of the type gives way to the fields, without a word."""
    given = {TYPE: "NON_PARTITION", PARTITION: "city"}
    with pytest.raises(InvalidOptionError, match="SIMPLE fits"):
        written(tmp_path, taken_rows(["a"], ["Rome"]), **given)
    assert not (tmp_path / "t").exists() or not any((tmp_path / "t").iterdir())
    table = written(tmp_path, taken_rows(["a"], ["Rome"]))
    with pytest.raises(OptionConflictError, match=PARTITION):
        hudi.Table.open(table.path, options={PARTITION: "city"})


# --- values of partitions
@pytest.mark.parametrize("hive", [{}, HIVE])
def test_empty_values_share_the_partition_of_nulls(tmp_path: Path, hive: dict[str, str]) -> None:
    batch = taken_rows(["a", "b", "c"], ["", None, "Rome"])
    table = written(tmp_path, batch, **{PARTITION: "city", **hive})
    prefix = "city=" if hive else ""
    default = f"{prefix}__HIVE_DEFAULT_PARTITION__"
    assert places(table) == [("a", default), ("b", default), ("c", f"{prefix}Rome")]
    expected = [("a", ""), ("b", None), ("c", "Rome")]
    assert by_hudi_rs(table) == expected
    filters = {"": ["a"], "Rome": ["c"]}
    for value, kept in filters.items():
        assert table.to_arrow(["id"], filter=[("city", "=", value)])["id"].to_pylist() == kept
    assert table.to_arrow(["id"], filter=pc.field("city").is_null())["id"].to_pylist() == ["b"]
    assert table.upsert(taken_rows(["a"], [None], 2)).updated == 1
    assert table.validate().differences == ()


def test_empty_values_that_a_format_would_lose(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", taken_rows([], []).schema, format="delta")
    for operation in (table.insert, table.bulk_insert, table.upsert):
        with pytest.raises(PartitionValueError, match="empty"):
            operation(taken_rows(["a"], [""]))
    with pytest.raises(PartitionValueError, match="empty"):
        hudi.write(
            taken_rows(["a"], [""]),
            table.path,
            mode="overwrite",
            options={
                "hoodie.table.format": "delta",
                "hoodie.table.name": "t",
                "hoodie.datasource.write.recordkey.field": "id",
                PARTITION: "city",
            },
        )
    assert table.insert(taken_rows(["a"], [None])).inserted == 1


def test_a_table_with_empty_values_becomes_none_of_such_a_format(tmp_path: Path) -> None:
    table = written(tmp_path, taken_rows(["a"], [""]), **{PARTITION: "city"})
    with pytest.raises(hudi.HudiError, match="empty string"):
        table.convert("delta")
    assert table.upsert(taken_rows(["a"], [""])).updated == 1


DATES = ["2026/01/31", "2026/02/01"]


def test_slashes_in_hive_style(tmp_path: Path) -> None:
    table = written(tmp_path, taken_rows(["a", "b"], DATES), **{PARTITION: "city", **HIVE})
    assert places(table) == [("a", f"city={DATES[0]}"), ("b", f"city={DATES[1]}")]
    assert by_hudi_rs(table) == [("a", DATES[0]), ("b", DATES[1])]
    assert table.to_arrow(["id"], filter=[("city", "=", DATES[1])])["id"].to_pylist() == ["b"]
    assert table.upsert(taken_rows(["a"], DATES[:1], 2)).updated == 1
    table.delete_partitions([{"city": DATES[0]}])
    assert places(table) == [("b", f"city={DATES[1]}")]
    assert table.validate().differences == ()


def test_slashes_in_hive_style_of_several_fields(tmp_path: Path) -> None:
    batch = taken_rows(["a", "b"], DATES).append_column("hour", pa.array(["1", "2/3"]))
    table = written(tmp_path, batch, **{PARTITION: "city,hour", **HIVE})
    expected = [("id:a", f"city={DATES[0]}/hour=1"), ("id:b", f"city={DATES[1]}/hour=2/3")]
    assert places(table) == expected
    for column, value in (("city", DATES[1]), ("hour", "2/3")):
        assert table.to_arrow(["id"], filter=[(column, "=", value)])["id"].to_pylist() == ["b"]


@pytest.mark.parametrize(
    ("stored", "new"), [("2026/01", "2026"), ("2026", "2026/01"), ("2026/01/31", "2026/01")]
)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_partitions_within_each_other_in_hive_style(
    tmp_path: Path, stored: str, new: str, operation: str
) -> None:
    table = written(tmp_path, taken_rows(["a"], [stored]), **{PARTITION: "city", **HIVE})
    with pytest.raises(PartitionValueError, match="would lie within"):
        getattr(table, operation)(taken_rows(["b"], [new]))
    assert places(table) == [("a", f"city={stored}")]


# --- deletes by key alone
@pytest.mark.parametrize(
    ("index", "partition_by"),
    [("GLOBAL_SIMPLE", "city"), ("GLOBAL_BLOOM", "city,v"), ("RECORD_INDEX", "city")],
)
def test_a_global_index_finds_rows_by_their_key_alone(
    tmp_path: Path, index: str, partition_by: str
) -> None:
    given = {
        "hoodie.index.type": index,
        "hoodie.metadata.global.record.level.index.enable": str(index == "RECORD_INDEX").lower(),
    }
    batch = taken_rows(["a", "b", "c"], ["Rome", "Oslo", "Rome"])
    table = written(tmp_path, batch, **{PARTITION: partition_by, **given})
    by_key = batch.select(["id"])
    for some in (by_key.slice(0, 1), batch.select(["id", "v"]).slice(1, 1)):
        told = table.plan("delete", some, options=given)
        assert (told.deleted, told.inserted) == (1, 0)
        assert table.delete(some, options=given).deleted == 1
    assert table.delete(pa.table({"id": ["none"]}), options=given).deleted == 0
    assert table.to_arrow(["id"])["id"].to_pylist() == ["c"]
    # with the columns of the partition as before, wherever they say the row is
    assert table.delete(taken_rows(["c"], ["Oslo"]), options=given).deleted == 1
    assert table.validate().differences == ()


def test_other_indexes_need_the_partition(tmp_path: Path) -> None:
    table = written(tmp_path, taken_rows(["a"], ["Rome"]), **{PARTITION: "city"})
    with refused(tmp_path / "t", SchemaError, "'city'", "GLOBAL_SIMPLE"):
        table.delete(pa.table({"id": ["a"]}))


# --- tables of Hudi that do not tell in which zone their partitions were made of timestamps
PREFIX = "hoodie.keygen.timebased."
ZONE = f"{PREFIX}output.timezone"
ZONED_SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
BY_DAY = {
    "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS",
    f"{PREFIX}output.dateformat": "yyyy/MM/dd",
}
EVENING = 1_704_121_200_000
"""2024-01-01T15:00:00Z, when it is the 2nd in Tokyo."""


def zoned_rows(n: int) -> pa.Table:
    return pa.table({"id": ["k"], "ts": [EVENING], "n": [n]}, schema=ZONED_SCHEMA)


def of_tokyo(path: Path) -> None:
    """Make a table as Hudi does in a process in Tokyo, which stores no zone."""
    options = {**BY_DAY, ZONE: "Asia/Tokyo"}
    new_table(path, zoned_rows(1), options, partition_by="ts", ordering_field=None)
    properties = path / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not (PREFIX in line and "timezone" in line)]
    assert len(kept) == len(lines) - 2
    properties.write_text("".join(kept))


def test_rows_are_not_written_in_a_zone_that_nobody_told(tmp_path: Path) -> None:
    of_tokyo(tmp_path)
    unknown = hudi.Table.open(str(tmp_path))
    for write in (unknown.upsert, unknown.insert, unknown.delete):
        with pytest.raises(UnsupportedTableError, match=rf"time zone.*Set {ZONE} to the zone"):
            write(zoned_rows(2))
    assert unknown.to_arrow()["n"].to_pylist() == [1]


@pytest.mark.parametrize("key", [ZONE, f"{PREFIX}timezone"])
def test_the_zone_is_told_with_the_write(tmp_path: Path, key: str) -> None:
    of_tokyo(tmp_path)
    table = hudi.Table.open(str(tmp_path), options={key: "Asia/Tokyo"})
    for n in (2, 3):
        table.upsert(zoned_rows(n))
    found = hudi.Table.open(str(tmp_path)).to_arrow()
    assert found["n"].to_pylist() == [3]
    assert found["_hoodie_partition_path"].to_pylist() == ["2024/01/02"]
    with pytest.raises(OptionConflictError, match="dateformat"):
        hudi.Table.open(str(tmp_path), options={f"{PREFIX}output.dateformat": "yyyy"})


def unknown_config(kind: str, **more: str) -> TableConfig:
    given = {
        **BY_DAY,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        f"{PREFIX}timestamp.type": kind,
        **{f"{PREFIX}{name.replace('_', '.')}": more[name] for name in more},
    }
    stored = properties_of(new_table_config(given))
    return stored_config(
        {name: stored[name] for name in stored if PREFIX not in name or "timezone" not in name}
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("UNIX_TIMESTAMP", ["1969/12/31", "1970/01/01"]),
        ("EPOCHMILLISECONDS", ["1969/12/31", "1970/01/01"]),
        ("EPOCHMICROSECONDS", ["1969/12/31", "1970/01/01"]),
        ("SCALAR", ["1970/01/01", "1970/01/02"]),
    ],
)
def test_nulls_may_be_in_the_partition_of_any_zone(kind: str, expected: list[str]) -> None:
    """Hudi has them on the last day of 1969 where it runs in New York."""
    config = unknown_config(kind, timestamp_scalar_time_unit="DAYS")
    schema = pa.schema([("ts", pa.int64())])
    pruner = PartitionPruner(config, schema)
    paths = [f"19{day}" for day in ("69/12/30", "69/12/31", "70/01/01", "70/01/02", "70/01/03")]
    found = pruner.keep(
        [PartitionPath(path) for path in paths], to_filter(pc.field("ts").is_null(), schema)
    )
    assert set(expected) <= set(found) < set(paths)
    assert paths[0] not in found
    assert paths[4] not in found


def test_texts_that_all_have_an_offset_need_no_zone() -> None:
    needed = {
        formats: how.needs_zone.key if how.needs_zone else None
        for formats in ("yyyy-MM-dd HH Z", "yyyy-MM-dd HH Z,yyyy-MM-dd")
        if (how := unknown_config("DATE_STRING", input_dateformat=formats).time_based)
    }
    assert list(needed.values()) == [None, f"{PREFIX}input.timezone"]


@pytest.mark.parametrize(
    "name", ["localtime", "posixrules", "Factory", "posix/Europe/Paris", "right/Europe/Paris"]
)
def test_names_that_mean_no_zone_of_their_own(name: str) -> None:
    with pytest.raises(ValueError, match="no such time zone"):
        time_zone(name)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        **BY_DAY,
        ZONE: name,
    }
    with pytest.raises(InvalidOptionError, match=r"output\.timezone.*no such time zone"):
        new_table_config(options)
    assert time_zone("Europe/Paris") == "Europe/Paris"


@pytest.mark.parametrize(("unit", "parts"), [("MICROSECONDS", 1000), ("NANOSECONDS", 1_000_000)])
@pytest.mark.parametrize("milli", [-86_400_000, -1, 0, 1, 86_400_000])
def test_bounds_hold_for_writers_that_floor_and_that_truncate(
    unit: str, parts: int, milli: int
) -> None:
    one = pa.array([milli]).to_numpy()
    (low,), (high,) = counts_of(one, one + 1, TimeUnit(unit))
    near = range(milli * parts - parts, milli * parts + parts + 1, max(parts // 1000, 1))
    ends = (milli * parts + sign * (parts - 1) for sign in (-1, 1))
    for number in (*near, *ends):
        truncated = -(-number // parts) if number < 0 else number // parts
        if milli in (number // parts, truncated):
            assert low <= number <= high
