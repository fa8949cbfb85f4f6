"""Where rows come from: every source is read once, and rows of Python objects are Arrow."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.doors.datasource import SaveMode
from hudi_core.engine import python_rows
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.python_rows import (
    row_of_values,
    table_of_pandas,
    table_of_rows,
    without_row_numbers,
)
from hudi_core.errors import NotATableError, SchemaError, TableClosedError
from hudi_core.schema.absence import absences, absent_values, without_absence
from tests.tables import copied, new_table

UTC_NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
NOON = UTC_NOON.replace(tzinfo=None)
NANOS = pd.Timestamp("2026-01-02 12:00:00.123456789")


def made(rows: Any, schema: pa.Schema | None = None) -> pa.Table:
    table = table_of_rows(rows, None if schema is None else lambda: schema)
    assert table is not None
    return table


def lacking(table: pa.Table) -> dict[str, list[int]]:
    """The rows that lack each column, counted from 0."""
    return {path: np.flatnonzero(one).tolist() for path, one in absent_values(table).items()}


def test_columns_are_those_of_all_rows() -> None:
    table = made([{"id": 1}, {"id": 2, "x": None}, {"x": "a", "id": 3}])
    assert without_absence(table).to_pydict() == {"id": [1, 2, 3], "x": [None, None, "a"]}
    assert lacking(table) == {"x": [0]}  # a null that is given is a value
    assert [tuple(one) for one in absences(table)] == [("x", "Row 1 ({'id': 1})")]
    assert lacking(made([{"a": 1, "b": 2}, {"b": 2, "a": 1}])) == {}


def test_columns_within_columns_are_those_of_all_rows() -> None:
    rows: list[dict[str, Any]] = [
        {"s": {"a": 1}, "l": [{"x": 1}, {"y": 2}]},
        {"s": {"a": 1, "b": {"c": 1}}, "l": None},
        {"s": {"a": 1, "b": {"d": 1}}, "l": []},
        {"s": None, "l": [{"x": 1, "y": None}, None]},
    ]
    table = made(rows)
    assert lacking(table) == {
        "s.b": [0],
        "s.b.c": [2],
        "s.b.d": [1],
        "l.list.element.x": [0],
        "l.list.element.y": [0],
    }
    assert table.column("s").to_pylist()[1] == {"a": 1, "b": {"c": 1, "d": None}}


def test_an_iterator_is_read_once_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "s": {"a": 1}},
        {"id": 2, "s": None},
        {"id": 2.5, "s": {"a": 1, "l": [{"x": 1}]}, "y": Decimal("1.5")},
        {"id": 4, "y": 7},
        {"id": 5, "s": {"a": 2, "l": [{"x": 1, "z": 2}]}, "y": Decimal("0.25")},
    ]
    whole = made(rows)
    monkeypatch.setattr(python_rows, "_CHUNK_ROWS", 2)
    read = []

    def source() -> Iterator[dict[str, Any]]:
        for row in rows:
            read.append(row)
            yield row

    pieces = made(source())
    assert len(read) == len(rows)
    assert without_absence(pieces).to_pylist() == without_absence(whole).to_pylist()
    assert lacking(pieces) == lacking(whole)
    assert dict(absences(pieces))["s.l.list.element.z"] == "Row 3"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, "a"], "type string in the rows from 2 on, and int64"),
        ([(1 << 53) + 1, 1.5], "rows from 1 on would change"),
        ([Decimal("1.5"), 1.5], "type double in the rows from 2 on, and decimal"),
        ([b"a", "b"], "type string in the rows from 2 on, and binary"),
        ([dt.date(2026, 1, 1), NOON], "type timestamp"),
        ([{"a": b"a"}, {"a": "b"}], "type struct"),
    ],
)
def test_pieces_that_do_not_go_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, values: list[Any], reason: str
) -> None:
    monkeypatch.setattr(python_rows, "_CHUNK_ROWS", 1)
    with pytest.raises(SchemaError, match=reason):
        made({"v": value} for value in values)


MIXED: list[list[Any]] = [
    [1, "a"],
    [1, True],
    [1.5, True],
    [True, 1],
    [(1 << 53) + 1, 1.5],
    [Decimal("1.5"), 2.5],
    [dt.date(2026, 1, 2), NOON],
    [NOON, dt.date(2026, 1, 2)],
    [NOON, UTC_NOON],
    [UTC_NOON, NOON],
    [b"a", "b"],
    [[1.5], [True]],
    [{"a": dt.date(2026, 1, 2)}, {"a": NOON}],
    [{"a": 1}, [1]],
    [0, 1 << 70],
    [None, SimpleNamespace()],
    [None, "\ud800"],
]


@pytest.mark.parametrize("values", MIXED, ids=repr)
@pytest.mark.parametrize("kind", ["dictionaries", "iterator", "pandas"])
def test_values_of_several_kinds_are_refused_by_row(values: list[Any], kind: str) -> None:
    """Arrow makes a date of a time, bytes of a text, 1.0 of true and local times of all."""
    rows = [{"v": values[0]}] * 3 + [{"v": value} for value in values[1:]]
    frame = pd.DataFrame({"v": pd.Series([row["v"] for row in rows], dtype=object)})
    given = {"dictionaries": rows, "iterator": iter(rows), "pandas": frame}[kind]
    take = table_of_pandas if kind == "pandas" else made
    with pytest.raises(SchemaError, match=r"^Row 4 .* column v"):
        take(given)


def test_the_odd_one_is_named_where_it_comes_first() -> None:
    with pytest.raises(SchemaError, match=r"^Row 1 .* 'a', a value of the type str.* binary"):
        made([{"v": "a"}, {"v": b"b"}])


def test_what_goes_together_is_typed_by_all_values() -> None:
    rows = [{"f": None, "d": 1, "t": None}, {"f": 1, "d": Decimal("2.50"), "t": NANOS}]
    table = made([*rows, {"f": 1.5, "d": None, "t": NOON}])
    assert table.schema.types == [pa.float64(), pa.decimal128(3, 2), pa.timestamp("ns")]
    assert table.column("t")[1].value % 1000 == 789


def test_dictionaries_are_maps_where_the_column_is_one() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    schema = pa.schema([("m", kind), ("s", pa.struct([("m", kind)])), ("l", pa.list_(kind))])
    rows = [
        {"m": {"a": 1, "b": None}, "s": {"m": {"c": 2}}, "l": [{"d": 3}, None]},
        {"m": {}, "s": {}, "l": None},
        {"m": [("e", 4)], "s": None, "l": []},
        {"m": None, "s": {"m": None}, "l": [[]]},
    ]
    table = made(rows, schema)
    assert lacking(table) == {"s.m": [1]}
    assert without_absence(table).to_pydict() == {
        "m": [[("a", 1), ("b", None)], [], [("e", 4)], None],
        "s": [{"m": [("c", 2)]}, {"m": None}, None, {"m": None}],
        "l": [[[("d", 3)], None], None, [], [[]]],
    }
    with pytest.raises(SchemaError, match=r"^Row 2 .* m.key_value.value 'x'"):
        made([{"m": {"a": 1}}, {"m": {"b": "x"}}], schema)


def test_what_is_no_row_is_not_taken_for_one() -> None:
    assert table_of_rows([1, 2]) is None
    assert table_of_rows(iter([{"id": 1}, 2])) is None
    with pytest.raises(SchemaError, match="There are no rows, and so no columns"):
        table_of_rows([])
    with pytest.raises(SchemaError, match="1 is no name of a column"):
        table_of_rows([{1: 2}])


def test_a_row_of_values_is_exact() -> None:
    columns = pa.schema([("n", pa.int32()), ("day", pa.date32())])
    batch = row_of_values({"n": 1, "day": dt.date(2026, 1, 1)}, columns)
    assert batch.schema.equals(columns)
    for wrong in ({"n": 1.5, "day": None}, {"n": 1 << 40, "day": None}, {"n": 1, "day": NOON}):
        with pytest.raises(SchemaError):
            row_of_values(wrong, columns)


@pytest.mark.parametrize("stated", [b"", b"{}", b"[1]", b'{"index_columns": 5}', b"\xff"])
def test_what_others_say_of_an_index_is_not_trusted(stated: bytes) -> None:
    table = pa.table({"__index_level_0__": [1]}).replace_schema_metadata({"pandas": stated})
    assert without_row_numbers(table) is table


# --- pandas
FRAME = pd.DataFrame({"id": [1, 2, 3], "qty": [10, 20, 30]})


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (FRAME[FRAME.id > 1], ["id", "qty"]),
        (FRAME.sort_values("qty", ascending=False), ["id", "qty"]),
        (pd.concat([FRAME, FRAME]), ["id", "qty"]),
        (FRAME.set_index("id"), ["id", "qty"]),
        (FRAME.set_index("id", drop=False), ["id", "qty"]),
        (FRAME[["qty"]].set_index(pd.RangeIndex(3, name="id")), ["id", "qty"]),
        (FRAME.groupby("id").sum(), ["id", "qty"]),
        (FRAME.groupby(["id", "qty"]).size().to_frame("n"), ["id", "qty", "n"]),
        (FRAME.set_index([FRAME.index, "id"]), ["id", "qty"]),
    ],
)
def test_an_index_is_a_column_where_it_has_a_name(frame: pd.DataFrame, names: list[str]) -> None:
    table = table_of_pandas(frame)
    assert table.column_names == names
    assert (
        table.column("id").to_pylist() == frame.reset_index(drop="id" in frame.columns).id.tolist()
    )


@pytest.mark.parametrize("name", ["a", 1])
def test_two_columns_of_one_name_are_refused(name: Any) -> None:
    frame = pd.DataFrame([[1, 2]], columns=["1" if name == 1 else name, name])
    index = pd.MultiIndex.from_tuples([(1, 2)], names=["x", "x"])
    for twice in (frame, pd.DataFrame({"id": [1]}, index=index)):
        with pytest.raises(SchemaError, match="several columns named"):
            table_of_pandas(twice)


def test_dictionaries_of_a_frame_say_what_they_lack() -> None:
    values = [{"a": 1}, {"a": 2, "b": 3}, None, float("nan"), pd.NA]
    table = table_of_pandas(pd.DataFrame({"v": pd.Series(values, dtype=object)}))
    assert lacking(table) == {"v.b": [0]}
    assert table.column("v").to_pylist()[1:] == [{"a": 2, "b": 3}, None, None, None]


def test_nulls_of_a_frame_are_of_no_kind() -> None:
    values = [dt.date(2026, 1, 2), pd.NaT, None]
    table = table_of_pandas(pd.DataFrame({"v": pd.Series(values, dtype=object)}))
    assert table.column("v").to_pylist() == [values[0], None, None]
    with pytest.raises(SchemaError, match=r"cannot be read: .* column c"):
        table_of_pandas(pd.DataFrame({"c": [1 + 2j]}))


# --- where rows come from: every source is read once, whatever a write asks of it
ROWS = pa.table({"id": ["a", "b", "c"], "city": ["rome", "oslo", "rome"]})
OPTIONS = {
    "hoodie.table.name": "cities",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


class OneShot:
    """Gives its rows to the first who asks and none to others, as a cursor does."""

    def __init__(self) -> None:
        self.rows, self.asked = ROWS, 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        rows, self.rows, self.asked = self.rows, self.rows.slice(0, 0), self.asked + 1
        return rows.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert", "insert_overwrite"])
def test_rows_that_can_be_read_once_are_all_written(tmp_path: Path, operation: str) -> None:
    table = new_table(tmp_path / "t", ROWS.schema, partition_by=None)
    source = OneShot()
    assert getattr(table, operation)(source).inserted == 3
    assert source.asked == 1
    assert table.to_arrow().num_rows == 3
    assert table.delete(OneShot()).deleted == 3
    assert table.plan(operation, OneShot()).inserted == 3


@pytest.mark.parametrize("mode", ["append", "overwrite", "errorifexists"])
def test_a_table_is_made_from_rows_that_can_be_read_once(tmp_path: Path, mode: SaveMode) -> None:
    source = OneShot()
    result = hudi.write(source, str(tmp_path / "t"), mode, OPTIONS)
    assert result is not None
    assert (result.inserted, source.asked) == (3, 1)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_takes_rows_that_can_be_read_once(tmp_path: Path, mode: SaveMode) -> None:
    hudi.write(ROWS.slice(0, 1), str(tmp_path / "t"), "append", OPTIONS)
    source = OneShot()
    assert hudi.write(source, str(tmp_path / "t"), mode, OPTIONS) is not None
    assert source.asked == 1
    assert hudi.Table.open(str(tmp_path / "t")).to_arrow().num_rows == 3


def test_partitions_are_deleted_by_name_without_rows(tmp_path: Path) -> None:
    hudi.write(ROWS, str(tmp_path / "t"), "append", OPTIONS)
    options = {
        **OPTIONS,
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "rome",
    }
    assert hudi.write(None, str(tmp_path / "t"), "append", options) is not None
    assert hudi.Table.open(str(tmp_path / "t")).to_arrow(columns=["id"]).to_pylist() == [
        {"id": "b"}
    ]


def test_the_engine_runs_where_the_system_does_not_tell_its_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert LocalEngine().parallelism == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert LocalEngine().parallelism == 1


# --- tables in other processes: a pickle holds path and options, and no secret
KEYS = {"fs.s3a.access.key": "canary-name", "fs.s3a.secret.key": "canary-secret"}
PICKLED_ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", new_table, PICKLED_ROWS, KEYS)


def again(table: hudi.Table) -> hudi.Table:
    found: hudi.Table = pickle.loads(pickle.dumps(table))
    return found


def test_a_pickle_opens_the_table(table: hudi.Table) -> None:
    data = pickle.dumps({"of several": [table]})
    table.delete(PICKLED_ROWS.slice(2))
    [opened] = pickle.loads(data)["of several"]
    assert repr(opened) == repr(table)
    assert opened.count() == 2  # what was committed since, too
    opened.upsert(PICKLED_ROWS)
    assert table.count() == 3


def test_a_pickle_has_the_options_and_no_secret(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert b"canary" not in pickle.dumps(table)
    given = table._session.options
    assert again(table)._session.options == {name: given[name] for name in given.keys() - KEYS}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "my secret")
    key = again(table)._session.opened.client.storage_options.s3_secret_key
    assert key is not None
    assert key.reveal() == "my secret"


def test_what_is_missing_is_named(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    data = pickle.dumps(table)
    with pytest.raises(hudi.HudiError, match=r"secrets \(fs\.s3a\.access\.key, fs\.s3a\.secret"):
        pickle.loads(data)
    with pytest.raises(hudi.HudiError, match=r"is missing\. Set them in the environment of this"):
        pickle.loads(data)


def test_a_table_that_is_gone_or_closed(table: hudi.Table) -> None:
    opened = hudi.Table.open(table.path)
    data = pickle.dumps(opened)
    opened.close()
    with pytest.raises(TableClosedError):
        pickle.dumps(opened)
    shutil.rmtree(table.path)
    with pytest.raises(NotATableError, match=r"/t"):
        pickle.loads(data)


@pytest.mark.impure
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_a_pool_read_and_write(table: hudi.Table, method: str) -> None:
    rows = pa.table({"id": [4, 5]})
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        assert pool.submit(hudi.Table.to_arrow, table, "id").result().num_rows == 3
        done = pool.submit(hudi.Table.upsert, table, rows).result()
    assert (done.inserted, table.count()) == (2, 5)
