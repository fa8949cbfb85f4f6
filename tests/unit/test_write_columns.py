"""Columns that rows bring, lack or retype, and ids that are given out once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.config.schema import SchemaConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import (
    CommitConflictError,
    InvalidOptionError,
    SchemaError,
    UnsupportedCapabilityError,
)
from hudi_core.schema.arrow_types import field_id
from hudi_core.schema.casting import BY_OPTION
from hudi_core.schema.java_float import float_text
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import read_properties
from tests.tables import copied, new_table
from tests.unit.refusals import refused

WIDELY = {BY_OPTION: "true", "hoodie.parquet.small.file.limit": "0"}


def nested_in(
    ids: Sequence[str], values: Sequence[Any], kind: pa.DataType, ts: int = 1
) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "city": pa.array(["A" if one < "c" else "B" for one in ids], pa.string()),
            "n": pa.array(values, kind),
            "inner": pa.array([{"list": [value]} for value in values], nested(kind)),
            "ts": pa.array([ts] * len(ids), pa.int64()),
        }
    )


def nested(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("list", pa.list_(kind))])


def created(path: Path, first: pa.Table, **more: str) -> hudi.Table:
    return new_table(
        path / "table", first.schema, {**WIDELY, **more}, partition_by="city", ordering_field="ts"
    )


def found(table: hudi.Table) -> dict[str, Any]:
    held = table.to_arrow(["id", "n", "inner"])
    assert held["inner"].type == nested(held["n"].type)
    plain, inner = held["n"].to_pylist(), [one["list"] for one in held["inner"].to_pylist()]
    assert list(map(repr, inner)) == [repr([one]) for one in plain]
    return dict(zip(held["id"].to_pylist(), plain, strict=True))


def by_hudi_rs(table: hudi.Table) -> dict[str, Any]:
    held = pa.Table.from_batches(HudiTableBuilder.from_base_uri(table.path).build().read())
    return dict(zip(held["id"].to_pylist(), held["n"].to_pylist(), strict=True))


BIG = 2**53 + 1
CASES = [
    (pa.int32(), pa.float64(), [1, 2**31 - 1], [2.5], [1.0, 2147483647.0]),
    (pa.int32(), pa.float32(), [1, 2**24 + 1], [2.5], [1.0, 16777216.0]),
    (pa.int64(), pa.float64(), [1, BIG], [2.5], [1.0, 9007199254740992.0]),
    (pa.int64(), pa.float32(), [1, BIG], [2.5], [1.0, 9007199254740992.0]),
    (pa.int32(), pa.string(), [-5, 10], ["x"], ["-5", "10"]),
    (pa.int64(), pa.string(), [-5, BIG], ["x"], ["-5", str(BIG)]),
    (pa.float32(), pa.string(), [0.1, 1e10], ["x"], ["0.1", "1.0E10"]),
    (pa.float64(), pa.string(), [-0.0, 1e-5], ["x"], ["-0.0", "1.0E-5"]),
]


@pytest.mark.parametrize(("stored", "wanted", "values", "wide", "read"), CASES)
def test_rows_of_a_wider_type_retype_a_column(
    tmp_path: Path,
    stored: pa.DataType,
    wanted: pa.DataType,
    values: list[Any],
    wide: list[Any],
    read: list[Any],
) -> None:
    table = created(tmp_path, nested_in([], [], stored))
    table.insert(nested_in(["a", "b"], values, stored))
    table.insert(nested_in(["c"], wide, wanted))
    assert table.schema.field("n").type == wanted
    expected = dict(zip(["a", "b", "c"], [*read, *wide], strict=True))
    assert found(table) == expected
    assert by_hudi_rs(table) == expected
    # filters see the wider values, whatever the ranges of older files are of
    for key, value in expected.items():
        for compare in (pc.equal, pc.greater_equal, pc.less_equal):
            condition = compare(pc.field("n"), pa.scalar(value, wanted))
            kept = {one for one, other in expected.items() if _compare(compare, other, value)}
            assert set(table.to_arrow(["id"], filter=condition)["id"].to_pylist()) == kept, key
    # rows of the narrower type are welcome, and what is merged keeps its value
    table.upsert(nested_in(["b", "d"], values, stored, 2))
    assert found(table) == expected | {"b": read[0], "d": read[1]}
    assert by_hudi_rs(table) == found(table)
    assert table.validate().differences == ()


def _compare(compare: Any, one: Any, other: Any) -> bool:
    names = {pc.equal: "__eq__", pc.greater_equal: "__ge__", pc.less_equal: "__le__"}
    return bool(getattr(one, names[compare])(other))


@pytest.mark.parametrize(("stored", "wanted", "values", "wide", "read"), CASES)
def test_no_column_is_retyped_unasked(
    tmp_path: Path, stored: pa.DataType, wanted: pa.DataType, values: Any, wide: Any, read: Any
) -> None:
    table = created(tmp_path, nested_in([], [], stored), **{BY_OPTION: "false"})
    table.insert(nested_in(["a", "b"], values, stored))
    folder = tmp_path / "table"
    with refused(folder, SchemaError, "Column n", f"{BY_OPTION}=true"):
        table.insert(nested_in(["c"], wide, wanted))
    if read[1] == values[1] or wanted == pa.string():
        return
    with refused(folder, SchemaError, f"{BY_OPTION}=true"):
        table.alter(promote={"n": wanted})
    table.alter(promote={"n": wanted}, options={BY_OPTION: "true"})
    assert table.to_arrow(["n"])["n"].to_pylist() == read


@pytest.mark.parametrize("engine", ["iceberg", "delta"])
def test_other_formats_refuse_it_by_name(tmp_path: Path, engine: str) -> None:
    table = created(tmp_path, nested_in([], [], pa.int32()), **{"hoodie.table.format": engine})
    table.insert(nested_in(["a"], [1], pa.int32()))
    for wide, kind in (([2.5], pa.float64()), (["x"], pa.string())):
        with refused(tmp_path / "table", UnsupportedCapabilityError, engine, "int32"):
            table.insert(nested_in(["b"], wide, kind))
    assert found(table) == {"a": 1}


def test_columns_of_keys_keep_their_type(tmp_path: Path) -> None:
    table = created(tmp_path, nested_in([], [], pa.int32()))
    numbers = pa.table({"id": [7], "city": ["A"], "n": [1], "inner": [{"list": [1]}], "ts": [1]})
    # numbers as texts are the keys that Hudi makes of them
    table.upsert(numbers)
    assert table.schema.field("id").type == pa.string()
    assert found(table) == {"7": 1}
    with pytest.raises(SchemaError, match="ts"):
        table.upsert(nested_in(["a"], [1], pa.int32()).set_column(4, "ts", pa.array(["x"])))


def test_values_that_no_digits_tell_apart(tmp_path: Path) -> None:
    table = created(tmp_path, nested_in([], [], pa.float64()))
    values = [math.nan, math.inf, float(float_text(pa.scalar(3.4e38, pa.float32()).as_py()))]
    table.insert(nested_in(["a", "b", "c"], values, pa.float64()))
    table.insert(nested_in(["d"], [None], pa.string()))
    assert found(table) == {"a": "NaN", "b": "Infinity", "c": "3.4E38", "d": None}


def test_ranges_of_files_from_before_replace_the_stored_ones(tmp_path: Path) -> None:
    """Readers merge a range that is not tight with the older one of its file, of another type."""
    first = nested_in(["a", "b"], [1, 2], pa.int32())
    table = created(tmp_path, first, **{"hoodie.write.table.version": "9"})
    table.insert(first)
    table.insert(nested_in(["c"], [2.5], pa.float64()))
    ranges = table.metadata("column_stats").to_pylist()
    kept = [one for one in ranges if one["column_name"] == "n"]
    assert sorted((one["value_count"], one["is_tight_bound"]) for one in kept) == [
        (1, False),
        (2, True),
    ]


def test_an_option_is_named_where_it_would_help(tmp_path: Path) -> None:
    whole = pa.table({"id": [1], "n": [1]})
    table = new_table(tmp_path / "t", whole.schema)
    table.upsert(whole)
    key, value = ({**whole.to_pydict(), name: [1.5]} for name in ("id", "n"))
    with pytest.raises(SchemaError) as caught:
        table.upsert(pa.table(value))
    assert f"{BY_OPTION}=true" in caught.value.hint
    for options in ({}, {BY_OPTION: "true"}):
        with pytest.raises(SchemaError) as caught:
            table.upsert(pa.table(key), options=options)
        assert BY_OPTION not in caught.value.hint


# --- columns that rows bring or lack, ids that are given out once, and writers that meet
REQUIRED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int32()),
        pa.field("must", pa.int32(), nullable=False),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
ROW = {"id": "1", "n": 1, "must": 1, "s": {"x": 1, "y": "y"}}
OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


def evolved_rows(*records: dict[str, Any], **columns: pa.DataType) -> pa.Table:
    """Return rows of the table's columns and further ones."""
    known = [field for field in REQUIRED if field.name in records[0]]
    return pa.Table.from_pylist(list(records), pa.schema([*known, *columns.items()]))


def contents(table: hudi.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        table.to_arrow(columns=table.schema.names).sort_by("id").to_pylist()
    )
    return found


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", new_table, evolved_rows(ROW), OCC)


def last_id(table: hudi.Table) -> int:
    """Return what the table itself keeps, whatever the handle has read before."""
    return int(read_properties(PosixStorage(table.path))["hoodie.table.schema.last-column-id"])


class Meddling(LocalEngine):
    """Lets somebody else write between the plan of a write and its commit."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__(1)
        self._meddle = meddle

    def map_input(self, *arguments: Any) -> Any:
        self._meddle()
        return super().map_input(*arguments)


# --- columns that rows lack
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
@pytest.mark.parametrize("key", ["set.null", "reconcile"])
def test_missing_columns_become_null_when_asked_to(
    operation: str, key: str, table: hudi.Table
) -> None:
    lacking = evolved_rows({"id": "2", "must": 2})
    with pytest.raises(SchemaError, match=r"hoodie\.write\.set\.null\.for\.missing\.columns"):
        getattr(table, operation)(lacking)
    name = {
        "set.null": "hoodie.write.set.null.for.missing.columns",
        "reconcile": "hoodie.datasource.write.reconcile.schema",
    }[key]
    getattr(table, operation)(lacking, options={name: True})
    assert contents(table) == [ROW, {"id": "2", "n": None, "must": 2, "s": None}]


def test_a_required_column_must_be_there(table: hudi.Table) -> None:
    fill = {"hoodie.write.set.null.for.missing.columns": True}
    with pytest.raises(SchemaError, match="'must'"):
        table.insert(evolved_rows({"id": "2", "n": 1}), options=fill)
    drops = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": True}
    with pytest.raises(InvalidOptionError, match=r"column\.drop"):
        table.insert(evolved_rows(ROW), options=drops)
    with pytest.raises(SchemaError, match=r"n has the type string.*int32"):
        table.insert(pa.table({**evolved_rows(ROW).to_pydict(), "n": ["one"]}, None))


def test_missing_nested_columns(table: hudi.Table) -> None:
    half = pa.Table.from_pylist(
        [{**ROW, "s": {"x": 2}}], REQUIRED.set(3, pa.field("s", pa.struct([("x", pa.int32())])))
    )
    with pytest.raises(SchemaError, match=r"s\.y") as caught:
        table.upsert(half)
    assert "hoodie.write.set.null.for.missing.columns" in str(caught.value)
    assert contents(table) == [ROW]
    table.upsert(half, options={"hoodie.write.set.null.for.missing.columns": True})
    assert contents(table) == [{**ROW, "s": {"x": 2, "y": None}}]


def test_the_view_of_the_options() -> None:
    assert SchemaConfig.from_options({}) == SchemaConfig()
    given = {"hoodie.write.truncate.nanoseconds": "true", "hoodie.avro.schema.validate": "false"}
    assert SchemaConfig.from_options(given) == SchemaConfig(truncate_nanoseconds=True)


# --- columns that rows bring
def test_new_columns_may_be_null_whatever_the_rows_say(table: hudi.Table) -> None:
    more = evolved_rows({**ROW, "id": "2", "new": 5}, new=pa.int8())
    required = more.cast(more.schema.set(4, pa.field("new", pa.int8(), nullable=False)))
    table.insert(required)
    assert table.schema.field("new") == pa.field("new", pa.int32())
    assert contents(table)[0] == {**ROW, "new": None}


def test_a_dry_run_and_a_refused_write_add_no_column(table: hudi.Table) -> None:
    more = evolved_rows({**ROW, "new": 5}, new=pa.int8())
    ids = last_id(table)
    table.plan("upsert", more)
    with pytest.raises(SchemaError):
        table.upsert(evolved_rows({**ROW, "must": None, "new": 5}, new=pa.int8()))
    assert "new" not in hudi.Table.open(table.path).schema.names
    assert last_id(table) == ids


def test_types_of_keys_stay(tmp_path: Path) -> None:
    schema = pa.schema({name: pa.int32() for name in ("id", "p", "ts", "n")})
    table = new_table(tmp_path / "k", schema, partition_by="p", ordering_field="ts")
    longs = pa.table({name: pa.array([1], pa.int64()) for name in schema.names})
    table.insert(longs)
    assert table.schema.types == [pa.int32(), pa.int32(), pa.int32(), pa.int64()]
    with pytest.raises(SchemaError, match="ts"):
        table.insert(longs.set_column(2, "ts", pa.array([2**40])))


def test_every_operation_takes_new_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.string())])
    operations = ("insert", "bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table")
    for operation in operations:
        table = new_table(tmp_path / operation, schema, partition_by="p")
        table.insert(pa.table({"id": ["old"], "p": ["a"]}))
        getattr(table, operation)(pa.table({"id": ["new"], "p": ["b"], "c": [1]}))
        kept = [] if operation == "insert_overwrite_table" else [{"id": "old", "p": "a", "c": None}]
        assert contents(table) == [{"id": "new", "p": "b", "c": 1}, *kept]
        table.delete(pa.table({"id": ["new"], "p": ["b"]}))
        assert table.schema.names == ["id", "p", "c"]


# --- ids
def test_an_id_is_never_given_out_again(table: hudi.Table) -> None:
    def add(name: str) -> int:
        table.alter(add_columns={name: pa.int64()})
        return field_id(table.schema.field(name)) or 0

    first = add("a")
    assert first == last_id(table)
    table.alter(drop="a")
    second = add("a")
    table.rollback(table.timeline.completed_writes()[-1])
    third = add("a")
    assert 0 < first < second < third == last_id(table)
    assert table.config.field_ids["a"] == third


def test_another_handle_does_not_give_out_ids_again(table: hudi.Table) -> None:
    stale = hudi.Table.open(table.path, OCC)
    table.alter(add_columns={"a": pa.int64()})
    table.alter(drop="a")
    stale.insert(evolved_rows({**ROW, "id": "2", "b": 1}, b=pa.int64()))
    assert field_id(stale.schema.field("b")) == last_id(table)
    assert last_id(table) == (table.config.last_column_id or 0) + 1


# --- writers that meet
def test_a_write_gives_up_when_columns_changed_meanwhile(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    for change in (
        {"add_columns": {"a": pa.int64()}},
        {"rename": {"a": "b"}},
        {"promote": {"n": pa.int64()}},
        {"drop": "b"},
    ):
        before = contents(table)
        with pytest.raises(CommitConflictError, match="columns"):
            table.bulk_insert(
                evolved_rows({**ROW, "id": "2"}, **_further(table)),
                options={"hoodie.write.set.null.for.missing.columns": True},
                engine=Meddling(lambda change=change: other.alter(**change)),  # type: ignore[misc]
            )
        assert len(contents(table)) == len(before)
        assert all(instant.is_completed for instant in table.timeline.instants)


def _further(table: hudi.Table) -> dict[str, pa.DataType]:
    return {name: table.schema.field(name).type for name in table.schema.names[4:]}


def test_two_writers_with_one_new_column(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    both = evolved_rows({**ROW, "id": "2", "a": 1}, a=pa.int64())
    third = evolved_rows({**ROW, "id": "3", "a": 1}, a=pa.int64())
    # the same column with the same id: nothing to give up for
    table.bulk_insert(both, engine=Meddling(lambda: other.bulk_insert(third)))
    assert [row["a"] for row in contents(table)] == [None, 1, 1]
    ids = [field_id(field) for field in table.schema]
    assert len(set(ids)) == len(ids)
    # and two columns of two
    mine, theirs = (
        evolved_rows({**ROW, "id": key, "a": 1, name: 1}, a=pa.int64(), **{name: pa.int64()})
        for key, name in (("4", "b"), ("5", "c"))
    )
    with pytest.raises(CommitConflictError, match="columns"):
        table.bulk_insert(mine, engine=Meddling(lambda: other.bulk_insert(theirs)))
    assert [row["id"] for row in contents(table)] == ["1", "2", "3", "5"]


def test_a_write_goes_on_when_others_wrote_only_rows(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    theirs = evolved_rows({**ROW, "id": "3"})
    table.bulk_insert(
        evolved_rows({**ROW, "id": "2", "a": 1}, a=pa.int64()),
        engine=Meddling(lambda: other.bulk_insert(theirs)),
    )
    assert [row["a"] for row in contents(table)] == [None, 1, None]
