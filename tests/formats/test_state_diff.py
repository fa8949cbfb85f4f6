"""The difference of two states, against a comparison of all their rows, in every format."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import HistoryExpiredError, SchemaError
from hudi_core.read.changes.net_changes import CHANGE_TYPE, StateDiff
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import file_scan
from hudi_core.rows.equality import differing_rows
from hudi_core.services.opening import open_table
from tests.formats.service_tables import TAGGED, batch, two_writes
from tests.tables import TABLES

OFF = {"hoodie.table.services.enabled": "false"}
Rows = dict[tuple[str, str], str]


def rows_as_of(table: hudi.Table, instant: str) -> Rows:
    rows = table.to_arrow(TAGGED.names, as_of=instant).to_pylist()
    return {(row["city"], row["id"]): repr(row) for row in rows}


def compared(before: Rows, after: Rows) -> Counter[tuple[str, str]]:
    found = [("delete", row) for key, row in before.items() if key not in after]
    found += [("insert", row) for key, row in after.items() if key not in before]
    found += [("update", row) for key, row in after.items() if before.get(key, row) != row]
    return Counter(found)


def counted(diff: pa.Table) -> Counter[tuple[str, str]]:
    rows: list[dict[str, Any]] = diff.to_pylist()
    return Counter((row.pop(CHANGE_TYPE), repr(row)) for row in rows)


@pytest.mark.parametrize("table_format", TABLES)
def test_any_two_states_differ_as_their_rows_do(path: Path, table_format: str) -> None:
    table = two_writes(path, table_format, **OFF)
    again = table.to_arrow(TAGGED.names).filter(pa.compute.field("city") == "rome")
    moved = batch(6, "a").set_column(1, TAGGED.field("city"), [["oslo"]])
    table.upsert(batch(3, "b", "c"))
    table.delete(batch(3, "x"))
    table.insert_overwrite(again)
    table.upsert(again)
    table.cluster(sort_by="value")
    table.upsert(moved)
    times = [one.requested_time for one in table.timeline.completed_writes()]
    states = {time: rows_as_of(table, time) for time in times}
    assert len(states) == 8

    pairs = [*pairwise(times), (times[0], times[-1]), (times[-1], times[0])]
    if table_format == "native":
        pairs += permutations(times[::2], 2)
    for before, after in pairs:
        diff = table.diff(before, after, TAGGED.names)
        assert counted(diff) == compared(states[before], states[after]), (before, after)
    assert table.diff(times[0]).equals(table.diff(times[0], times[-1]))
    assert table.diff(times[3], times[4]).num_rows > 0
    assert table.diff(times[4], times[6]).num_rows == 0
    assert table.history(2)["operation"].to_pylist() == ["UPSERT", "CLUSTER"]
    assert table.history(2)["rows_inserted"].to_pylist() == [1, 0]
    assert table.diff(times[0]).schema.names == [*table.to_arrow().schema.names, CHANGE_TYPE]


def test_columns_that_are_not_asked_for_do_not_count(native: hudi.Table) -> None:
    first = native.timeline.completed_writes()[0].requested_time

    assert counted(native.diff(first, columns="city")) == Counter(
        [("insert", repr({"city": "oslo"}))]
    )
    assert len(native.diff(first, columns=["ts"])) == 2
    with pytest.raises(SchemaError, match="nope"):
        native.diff(first, columns="nope")


def test_files_of_both_states_are_not_read(path: Path) -> None:
    table = two_writes(path, **OFF)
    first = table.upsert(batch(3, "y")).instant
    table.upsert(batch(4, "b"))
    [same] = [one.base_file for one in table.file_slices() if one.partition_path == "oslo"]
    assert same is not None
    (path / same.path).write_bytes(b"damaged")

    assert table.diff(first, columns=["id"]).to_pylist() == []
    assert table.diff(first, columns=["id", "ts"]).to_pylist() == [
        {"id": "b", "ts": 4, CHANGE_TYPE: "update"}
    ]


def test_several_rows_with_one_key(path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = hudi.Table.create(
        path, schema, record_key="id", options={"hoodie.combine.before.insert": "false"}
    )

    def insert(*numbers: int) -> hudi.Instant:
        rows = pa.table({"id": [1] * len(numbers), "n": numbers}, schema)
        return table.insert_overwrite_table(rows).instant

    three, two = insert(1, 2, 3), insert(1, 4)

    assert counted(table.diff(three, two, "n")) == Counter(
        [("update", repr({"n": 4})), ("delete", repr({"n": 3}))]
    )
    assert counted(table.diff(two, three, "n")) == Counter(
        [("update", repr({"n": 2})), ("insert", repr({"n": 3}))]
    )


def test_a_state_that_is_gone_is_refused(path: Path) -> None:
    table = two_writes(path, **OFF)
    first = table.timeline.completed_writes()[0].requested_time
    table.upsert(batch(3, "a"))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})

    with pytest.raises(HistoryExpiredError):
        table.diff(first)


def test_rows_without_meta_columns_are_compared_by_their_key_columns(path: Path) -> None:
    path.mkdir()
    keys = {"x": [1, 1, 2], "y": ["a", "b", "a"]}
    pq.write_table(pa.table({**keys, "n": [1, 2, 3]}), path / "a.parquet")
    pq.write_table(pa.table({"x": [9], "y": ["z"], "n": [9]}), path / "b.parquet")
    hudi.Table.adopt(path, record_key=["x", "y"])
    table = open_table(str(path), {})
    query = SnapshotQuery(table.client, table.lister(), table.timeline())
    assert query.diff(table.timeline().instants[0].requested_time).num_rows == 0

    plan = query.plan()
    scan = file_scan(table.client, plan, ["n"])
    one, other = sorted(plan.files, key=lambda file: min(scan.table([file])["n"].to_pylist()))
    # as if both were files of one group; an adoption takes no key twice
    keys = {"x": [2, 2, 1], "y": ["a", "b", "b"]}
    pq.write_table(pa.table({**keys, "n": [3, 4, 5]}), path / other.path)
    diff = StateDiff.of(scan, table.client.config).table([one], [other])

    assert counted(diff) == Counter(
        [("delete", repr({"n": 1})), ("update", repr({"n": 5})), ("insert", repr({"n": 4}))]
    )


def test_a_null_is_a_part_of_a_key_as_any_other(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64()), ("y", pa.string()), ("n", pa.int64())])
    options = {"hoodie.populate.meta.fields": "false"}
    table = hudi.Table.create(tmp_path, schema, record_key=["x", "y"], options=options)
    table.insert(pa.table({"x": [1, 1], "y": [None, "a"], "n": [1, 2]}, schema))
    table.upsert(pa.table({"x": [1, 2], "y": [None, None], "n": [3, 4]}, schema))
    first, last = table.timeline.completed_writes()
    found = table.diff(first.requested_time, last.requested_time)

    rows = sorted((row["x"], row["y"], row["n"], row[CHANGE_TYPE]) for row in found.to_pylist())
    assert rows == [(1, None, 3, "update"), (2, None, 4, "insert")]


NAN = float("nan")
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1]),
    (pa.float64(), [None, 0.0, NAN, 1.5]),
    (pa.string(), [None, "", "a"]),
    (pa.binary(), [None, b"", b"\0"]),
    (pa.bool_(), [None, True, False]),
    (pa.decimal128(5, 2), [None, 0, 1]),
    (pa.date32(), [None, 0, 1]),
    (pa.list_(pa.float64()), [None, [], [None], [1.0], [NAN], [1.0, 2.0], [1.0, None]]),
    (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        [None, {}, {"x": 1}, {"x": 1, "y": []}, {"x": 1, "y": ["a"]}, {"y": [None]}],
    ),
    (pa.map_(pa.string(), pa.int64()), [None, [], [("a", 1)], [("a", None)], [("b", 1)]]),
    (pa.list_(pa.list_(pa.int64())), [None, [], [[]], [None], [[1]], [[1], [2]], [[1, 2]]]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_values_are_equal_to_themselves_alone(kind: pa.DataType, values: list[Any]) -> None:
    pairs = [*product(range(len(values)), repeat=2)]
    left = pa.table({"v": pa.array([values[one] for one, _ in pairs], kind)})
    right = pa.table({"v": pa.array([values[other] for _, other in pairs], kind)})

    found = differing_rows(left, right)
    part = differing_rows(left.slice(1), right.slice(1))

    assert found.tolist() == [one != other for one, other in pairs]
    assert np.array_equal(part, found[1:])
    assert differing_rows(left.slice(0, 0), right.slice(0, 0)).tolist() == []
