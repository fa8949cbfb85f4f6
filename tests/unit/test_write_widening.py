"""Numbers that become wider ones, or texts, where an option lets rows do that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.errors import SchemaError, UnsupportedCapabilityError
from hudi_core.schema.java_float import float_text
from hudi_core.schema.promotions import BY_OPTION
from tests.tables import new_table
from tests.unit.refusals import refused

WIDELY = {BY_OPTION: "true", "hoodie.parquet.small.file.limit": "0"}


def rows(ids: Sequence[str], values: Sequence[Any], kind: pa.DataType, ts: int = 1) -> pa.Table:
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
    table = created(tmp_path, rows([], [], stored))
    table.insert(rows(["a", "b"], values, stored))
    table.insert(rows(["c"], wide, wanted))
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
    table.upsert(rows(["b", "d"], values, stored, 2))
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
    table = created(tmp_path, rows([], [], stored), **{BY_OPTION: "false"})
    table.insert(rows(["a", "b"], values, stored))
    folder = tmp_path / "table"
    with refused(folder, SchemaError, "Column n", f"{BY_OPTION}=true"):
        table.insert(rows(["c"], wide, wanted))
    if read[1] == values[1] or wanted == pa.string():
        return
    with refused(folder, SchemaError, f"{BY_OPTION}=true"):
        table.alter(promote={"n": wanted})
    table.alter(promote={"n": wanted}, options={BY_OPTION: "true"})
    assert table.to_arrow(["n"])["n"].to_pylist() == read


@pytest.mark.parametrize("engine", ["iceberg", "delta"])
def test_other_formats_refuse_it_by_name(tmp_path: Path, engine: str) -> None:
    table = created(tmp_path, rows([], [], pa.int32()), **{"hoodie.table.format": engine})
    table.insert(rows(["a"], [1], pa.int32()))
    for wide, kind in (([2.5], pa.float64()), (["x"], pa.string())):
        with refused(tmp_path / "table", UnsupportedCapabilityError, engine, "int32"):
            table.insert(rows(["b"], wide, kind))
    assert found(table) == {"a": 1}


def test_columns_of_keys_keep_their_type(tmp_path: Path) -> None:
    table = created(tmp_path, rows([], [], pa.int32()))
    numbers = pa.table({"id": [7], "city": ["A"], "n": [1], "inner": [{"list": [1]}], "ts": [1]})
    # numbers as texts are the keys that Hudi makes of them
    table.upsert(numbers)
    assert table.schema.field("id").type == pa.string()
    assert found(table) == {"7": 1}
    with pytest.raises(SchemaError, match="ts"):
        table.upsert(rows(["a"], [1], pa.int32()).set_column(4, "ts", pa.array(["x"])))


def test_values_that_no_digits_tell_apart(tmp_path: Path) -> None:
    table = created(tmp_path, rows([], [], pa.float64()))
    values = [math.nan, math.inf, float(float_text(pa.scalar(3.4e38, pa.float32()).as_py()))]
    table.insert(rows(["a", "b", "c"], values, pa.float64()))
    table.insert(rows(["d"], [None], pa.string()))
    assert found(table) == {"a": "NaN", "b": "Infinity", "c": "3.4E38", "d": None}


def test_ranges_of_files_from_before_replace_the_stored_ones(tmp_path: Path) -> None:
    """Readers merge a range that is not tight with the older one of its file, of another type."""
    first = rows(["a", "b"], [1, 2], pa.int32())
    table = created(tmp_path, first, **{"hoodie.write.table.version": "9"})
    table.insert(first)
    table.insert(rows(["c"], [2.5], pa.float64()))
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
