"""Tables that Apache Hudi wrote, read by us and by hudi-rs: the same files, the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import DataFileError, SchemaError, TimeOutOfRangeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.instant import Action
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.filters import Condition
from hudi_core.read.query import SnapshotQuery
from hudi_core.view.storage_lister import StorageLister
from tests.foreign import by_hudi_rs
from tests.hudi_tables import (
    ALL,
    COMPLEX,
    OWN,
    PLAIN,
    TIMESTAMP,
    TXNS,
    RealTables,
    Source,
    plain,
)
from tests.property.test_metadata_model import client_of
from tests.samples import sampled

Row = dict[str, Any]


def changes(client: TableMetaClient) -> IncrementalQuery:
    return IncrementalQuery(client, client.timeline(), table_lister(client))


def snapshot(client: TableMetaClient) -> SnapshotQuery:
    lister = StorageLister(client.storage, client.config.is_partitioned)
    return SnapshotQuery(client, lister, client.timeline())


def keys_of(rows: Iterable[Row]) -> Counter[tuple[str, str]]:
    return Counter((row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in rows)


def ordered(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["_hoodie_record_key"], row["_hoodie_file_name"]))


def ours(reader: pa.RecordBatchReader) -> list[Row]:
    return ordered(reader.read_all().to_pylist())


def theirs(path: Path, options: hudi.HudiReadOptions | None = None) -> list[Row]:
    return ordered(by_hudi_rs(path, options))


def completed_times(client: TableMetaClient) -> list[tuple[str, str]]:
    return [
        (instant.requested_time, instant.effective_completion_time)
        for instant in client.timeline().completed_writes()
    ]


@pytest.mark.parametrize("name", ALL)
def test_snapshot_has_the_expected_rows(
    name: str, real_tables: RealTables, hudi_tables: Source
) -> None:
    table = snapshot(client_of(real_tables(name))).to_arrow().read_all()

    expected = hudi_tables.expected(name)
    assert table.num_rows == expected["rows"]
    assert sorted(table["_hoodie_record_key"].to_pylist()) == expected["record_keys"]
    assert table.column_names == expected["columns"]
    if hudi_tables is OWN:
        assert values_of(table) == expected["values"]


def values_of(table: pa.Table) -> list[list[Any]]:
    """Return the values of the columns of a user's, as Hudi-Spark read them."""
    keys = [("_hoodie_record_key", "ascending"), ("_hoodie_commit_time", "ascending")]
    own = [name for name in table.column_names if not name.startswith("_hoodie_")]
    return [[plain(row[name]) for name in own] for row in table.sort_by(keys).to_pylist()]


@pytest.mark.parametrize("name", ALL)
def test_hudi_rs_reads_what_hudi_spark_read(name: str, tmp_path: Path) -> None:
    """So that it may judge where Hudi-Spark has not been asked."""
    batches = hudi.HudiTable(str(OWN.unpack(name, tmp_path / name))).read()
    found, expected = pa.Table.from_batches(batches), OWN.expected(name)
    assert values_of(found) == expected["values"]
    assert len(found) == expected["rows"]


@pytest.mark.parametrize("name", ALL)
def test_snapshot_equals_hudi_rs(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    table = snapshot(client_of(path)).to_arrow().read_all()

    assert ordered(table.to_pylist()) == theirs(path)
    oracle = hudi.HudiTable(str(path)).get_schema_with_meta_fields()
    assert [field.type for field in table.schema] == [field.type for field in oracle]


@pytest.mark.parametrize("name", ALL)
def test_file_slices_equal_hudi_rs(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    query = snapshot(client_of(path))

    def facts(as_of: str | None) -> list[tuple[Any, ...]]:
        return sorted(
            (found.partition_path, found.file_id, found.base_instant, base.path, base.size)
            for found in query.file_slices(as_of)
            if (base := found.base_file) is not None
        )

    def oracle(as_of: str | None) -> list[tuple[Any, ...]]:
        options = hudi.HudiReadOptions()
        if as_of is not None:
            options = options.with_as_of_timestamp(as_of)
        return sorted(
            (
                found.partition_path,
                found.file_id,
                found.creation_instant_time,
                found.base_file_relative_path(),
                found.base_file_size,
            )
            for found in hudi.HudiTable(str(path)).get_file_slices(options)
        )

    assert facts(None) == oracle(None)
    for time, _ in completed_times(client_of(path)):
        assert facts(time) == oracle(time)


@pytest.mark.parametrize("name", ALL)
def test_every_past_state_equals_hudi_rs(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    query = snapshot(client)

    states = set()
    for requested, completed in completed_times(client):
        for time in (requested, completed):
            rows = ours(query.to_arrow(as_of=time))
            assert rows == theirs(path, hudi.HudiReadOptions().with_as_of_timestamp(time)), time
        states.add(str(rows))
    assert len(states) > 1


def test_before_the_first_commit_there_is_no_state(real_tables: RealTables) -> None:
    client = client_of(real_tables(TXNS))
    first = client.timeline().completed_writes()[0].requested_time

    with pytest.raises(TimeOutOfRangeError, match=f"its first commit is {first}"):
        snapshot(client).to_arrow(as_of="2020-01-01")


@pytest.mark.parametrize("name", ALL)
def test_every_window_equals_hudi_rs(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    query = changes(client)
    times: list[str | None] = [None, *(completed for _, completed in completed_times(client))]
    keys: dict[str | None, Counter[tuple[str, str]]] = {None: Counter()}
    for requested, completed in completed_times(client):
        keys[completed] = keys_of(ours(snapshot(client).to_arrow(as_of=requested)))

    changed = 0
    windows = list(combinations(times, 2))
    # these have every begin, and every end; of the others a run takes a third
    outer = [one for one in windows if one[0] is None or one[1] == times[-1]]
    for begin, end in [*outer, *sampled([one for one in windows if one not in outer], 3)]:
        assert end is not None
        options = hudi.HudiReadOptions().with_query_type(hudi.HudiQueryType.Incremental)
        if begin is not None:
            options = options.with_start_timestamp(begin)
        rows = ours(query.to_arrow(begin, end))
        assert rows == theirs(path, options.with_end_timestamp(end)), (begin, end)
        changed += len(rows)
        if (begin, end) not in outer:
            continue
        net: dict[str, list[Row]] = {"insert": [], "update": [], "delete": []}
        for row in query.net(begin, end).to_arrow().read_all().to_pylist():
            net[row.pop("_change_type")].append(row)
        assert ordered([*net["insert"], *net["update"]]) == rows
        assert keys_of(net["insert"]) == keys[end] - keys[begin]
        assert keys_of(net["delete"]) == keys[begin] - keys[end]
    assert changed > 0


def test_consecutive_windows_show_every_write_once(real_tables: RealTables) -> None:
    client = client_of(real_tables(TXNS))
    query = changes(client)
    requested, completed = zip(*completed_times(client), strict=True)

    clustering = {
        instant.requested_time
        for instant in client.timeline().completed_writes()
        if client.read_commit(instant).operation_type == "CLUSTER"
    }
    assert len(clustering) == 1
    for time, begin, end in zip(requested, (None, *completed), completed, strict=False):
        plan = query.plan(begin, end)
        assert plan.commit_times == frozenset({time}) - clustering
        assert {row["_hoodie_commit_time"] for row in ours(query.to_arrow(begin, end))} <= {time}
    assert query.plan(completed[-1]).files == ()


def test_windows_without_begin(real_tables: RealTables) -> None:
    client = client_of(real_tables(TXNS))
    query = changes(client)

    everything = ours(snapshot(client).to_arrow())

    for begin in (None, "earliest", "000", "0" * 17, "2020-01-01"):
        assert ours(query.to_arrow(begin)) == everything


def test_a_window_reads_commit_metadata_and_lists_nothing(
    real_tables: RealTables, hudi_tables: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(real_tables(TXNS))
    query = changes(client)

    def refuse(*_: object) -> None:
        raise AssertionError("listed")

    monkeypatch.setattr(StorageLister, "list_files", refuse)
    monkeypatch.setattr(StorageLister, "list_partitions", refuse)

    assert len(ours(query.to_arrow(None))) == hudi_tables.expected(TXNS)["rows"]


FILTERS: tuple[tuple[str, list[Condition], Callable[[Row], bool]], ...] = (
    (TXNS, [("region", "=", "us")], lambda row: row["region"] == "us"),
    (TXNS, [("region", "!=", "us")], lambda row: row["region"] != "us"),
    (TXNS, [("region", "in", ["us", "apac"])], lambda row: row["region"] in ("us", "apac")),
    (TXNS, [("amount", ">", "300.00")], lambda row: row["amount"] > 300),
    (
        TXNS,
        [("region", "=", "us"), ("is_international", "=", "false")],
        lambda row: row["region"] == "us" and not row["is_international"],
    ),
    (TXNS, [("txn_date", ">=", "2024-01-16")], lambda row: str(row["txn_date"]) >= "2024-01-16"),
    (COMPLEX, [("byteField", "=", "10")], lambda row: row["byteField"] == 10),
    (
        COMPLEX,
        [("byteField", ">", "10"), ("shortField", "=", "100")],
        lambda row: row["byteField"] > 10 and row["shortField"] == 100,
    ),
    (COMPLEX, [("intField", ">", "1")], lambda row: row["intField"] > 1),
)


@pytest.mark.parametrize(("name", "conditions", "is_wanted"), FILTERS)
def test_filters_equal_hudi_rs(
    name: str,
    conditions: list[Condition],
    is_wanted: Callable[[Row], bool],
    real_tables: RealTables,
) -> None:
    path = real_tables(name)
    query = snapshot(client_of(path))

    found = ours(query.to_arrow(row_filter=conditions))

    texts = [
        (column, op.upper(), ",".join(value) if isinstance(value, list) else value)
        for column, op, value in conditions
    ]
    assert found == theirs(path, hudi.HudiReadOptions().with_filters(texts))
    assert found == [row for row in ours(query.to_arrow()) if is_wanted(row)] != []


def test_partitions_that_a_filter_excludes_are_not_listed(real_tables: RealTables) -> None:
    query = snapshot(client_of(real_tables(TXNS)))

    plan = query.plan(row_filter=[("region", "=", "us"), ("amount", ">", 0)])

    assert {file.partition_path for file in plan.files} == {"region=us"}
    assert {tuple(file.partition_values.items()) for file in plan.files} == {(("region", "us"),)}
    assert query.plan(row_filter=[("amount", "<", 0)]).files == query.plan().files


def test_the_timestamp_generator_prunes_by_path_only(real_tables: RealTables) -> None:
    """Its paths hold a date made from the column: filters on the column keep every partition."""
    query = snapshot(client_of(real_tables(TIMESTAMP)))

    by_column = query.plan(row_filter=[("ts_epoch", "=", "1705311000")])
    by_path = query.plan(row_filter=[("_hoodie_partition_path", "=", "2024/01/15")])

    assert len(by_column.files) == 4
    assert {file.partition_values["ts_epoch"] for file in by_path.files} == {"2024/01/15"}
    assert len(ours(query.to_arrow(row_filter=[("ts_epoch", "=", "1705311000")]))) == 2


def test_columns_that_changed_their_type_are_read_in_the_latest_one(
    real_tables: RealTables,
) -> None:
    """Some files of this table hold ``ts_epoch`` as a number, later ones as a text."""
    table = snapshot(client_of(real_tables(TIMESTAMP))).to_arrow(["ts_epoch"]).read_all()

    assert table.schema.field("ts_epoch").type == pa.string()
    assert min(table["ts_epoch"].to_pylist()) == "1705311000"


def test_a_projection_comes_in_the_order_asked_for(real_tables: RealTables) -> None:
    query = snapshot(client_of(real_tables(PLAIN)))

    table = query.to_arrow(["structField", "id"], pc.field("intField") > 0).read_all()

    everything = {row["id"]: row for row in ours(query.to_arrow()) if row["intField"] > 0}
    assert table.column_names == ["structField", "id"]
    assert table.num_rows == len(everything) > 0
    for row in table.to_pylist():
        assert row["structField"] == everything[row["id"]]["structField"]


def test_unknown_columns_are_refused_by_name(real_tables: RealTables) -> None:
    client = client_of(real_tables(PLAIN))
    query = snapshot(client)

    with pytest.raises(SchemaError, match="'colour'"):
        query.to_arrow(["id", "colour"])
    with pytest.raises(SchemaError, match="colour"):
        query.plan(row_filter=pc.field("colour") == 1)
    with pytest.raises(SchemaError, match="'colour'"):
        changes(client).to_arrow(row_filter=[("colour", "=", 1)])


@pytest.mark.parametrize("name", ALL)
def test_files_of_a_pending_write_are_invisible(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    last = client.timeline().completed_writes()[-1]
    client.storage.delete(client.active.path(last))

    rows = ours(snapshot(client_of(path)).to_arrow())

    before = client.timeline().completed_writes()[-1].requested_time
    assert rows == ours(snapshot(client).to_arrow(as_of=before)) == theirs(path)


def test_a_file_that_is_gone_is_an_error(real_tables: RealTables) -> None:
    client = client_of(real_tables(TXNS))
    query = snapshot(client)
    lost = query.plan().files[0]
    Path(lost.uri).unlink()

    reader = query.to_arrow()
    with pytest.raises(DataFileError, match=lost.file_id):
        reader.read_all()


def test_a_damaged_file_is_an_error(real_tables: RealTables) -> None:
    query = snapshot(client_of(real_tables(TXNS)))
    damaged = Path(query.plan().files[0].uri)
    damaged.write_bytes(damaged.read_bytes()[:-100])

    reader = query.to_arrow()
    with pytest.raises(DataFileError, match=damaged.name):
        reader.read_all()


def test_replacecommits_alone_are_read_for_a_snapshot(
    real_tables: RealTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(real_tables(TXNS))
    query = snapshot(client)
    assert query.schema is not None
    read: list[Action] = []
    original = TableMetaClient.read_commit

    def note(self: TableMetaClient, instant: Any) -> Any:
        read.append(instant.action)
        return original(self, instant)

    monkeypatch.setattr(TableMetaClient, "read_commit", note)
    assert len(query.plan().files) == 5
    assert read == [Action.REPLACECOMMIT] * 2


def test_hudi_rs_fails_on_files_of_others_without_a_metadata_table(real_tables: RealTables) -> None:
    """The control of what random histories leave to it: Hudi wrote all but that file."""
    path = real_tables(COMPLEX)
    assert not (path / ".hoodie/metadata").exists()
    table = hudi.HudiTableBuilder.from_base_uri(str(path)).build()
    assert sum(one.num_rows for one in table.read()) == 4
    own = next(one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts)
    other = path / "data/part=x/00000-2-65b4cfeb-233e-4fc6-a657-0dbb891eb8a7.parquet"
    other.parent.mkdir(parents=True)
    other.write_bytes(own.read_bytes())
    with pytest.raises(Exception, match="Failed to parse file name"):
        hudi.HudiTableBuilder.from_base_uri(str(path)).build().read()
