"""Statistics in the log: exact, of the right shape, and never such that a row is left out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, example, given, settings

import hudi_core as hudi
from delta_format.stats import statistics
from delta_format.values import bounds, encode
from hudi_core.model.stats import ColumnStats
from tests.formats.delta_tables import OPTIONS, delta_table, typed


def in_log(path: Path) -> list[dict[str, Any]]:
    """The statistics of every file that the log ever named; numbers with a point as they stand."""
    found = []
    for file in sorted((path / "_delta_log").glob("*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            add = json.loads(line).get("add")
            if add:
                found.append(json.loads(add["stats"], parse_float=str))
    return found


def test_the_statistics_of_a_file(path: Path) -> None:
    table = delta_table(path, partitioned=False)
    table.insert(typed(0, 1, 4))
    [found] = in_log(path)
    assert found["numRecords"] == 3
    low, high, nulls = found["minValues"], found["maxValues"], found["nullCount"]
    assert (low["id"], high["id"]) == ("k000", "k004")
    assert (low["price"], high["price"]) == ("0.0000000001", "4.0000000001")
    assert (low["day"], high["day"]) == ("2024-01-01", "2024-01-05")
    # microseconds are cut below and raised above
    assert (low["at"], high["at"]) == ("2024-01-01T12:00:00.000Z", "2024-01-01T12:00:00.001Z")
    assert (low["inner"], nulls["inner"]) == ({"x": 0, "word": "w" * 30}, {"x": 0, "word": 0})
    assert high["inner"] == {"x": 4, "word": "w" * 32 + "\U0010ffff"}
    assert nulls["city"] == 1
    assert "_hoodie_record_key" in low
    assert not {"flag", "tags", "_hoodie_file_name", "_hoodie_commit_seqno"} & low.keys()
    assert (nulls["flag"], "tags" in nulls) == (0, False)


def test_partition_columns_have_no_statistics(path: Path) -> None:
    delta_table(path).insert(typed(0))
    [found] = in_log(path)
    assert "city" not in {*found["minValues"], *found["maxValues"], *found["nullCount"]}


VALUES = {
    "text": (pa.string(), st.text(max_size=40)),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "exact": (
        pa.decimal128(38, 10),
        st.decimals(-(10**27), 10**27, places=10, allow_nan=False, allow_infinity=False),
    ),
    "real": (pa.float64(), st.floats()),
    "moment": (pa.timestamp("us", "UTC"), st.integers(-62135596800000000, 253402300799999999)),
    "day": (pa.date32(), st.integers(-719162, 2932896)),
}
LITERAL: dict[str, Callable[[Any], str]] = {
    "text": lambda value: "'" + value.replace("'", "''") + "'",
    "whole": str,
    "exact": lambda value: f"arrow_cast('{value:f}', 'Decimal128(38, 10)')",
    "real": lambda value: f"arrow_cast('{value!r}', 'Float64')",
    "moment": lambda value: (
        f"arrow_cast(arrow_cast({value}, 'Int64'), 'Timestamp(Microsecond, Some(\"UTC\"))')"
    ),
    "day": lambda value: f"arrow_cast(arrow_cast({value}, 'Int32'), 'Date32')",
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_reader_that_filters_finds_every_row(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    kind, one = VALUES[name]
    values = data.draw(st.lists(one | st.none(), min_size=1, max_size=4))
    path = tmp_path_factory.mktemp("delta") / "table"
    schema = pa.schema([pa.field("id", pa.string()), pa.field(name, kind)])
    table = hudi.Table.create(path, schema, record_key="id", options=OPTIONS)
    column = pa.array(values, pa.int64() if name == "moment" else None)
    column = column.cast(pa.int32()).cast(kind) if name == "day" else column.cast(kind)
    keys = [f"k{number}" for number in range(len(values))]
    table.insert(pa.table([keys, column], schema=schema))
    table.insert(pa.table([["other"], pa.nulls(1, kind)], schema=schema))
    handle = DeltaTable(str(path))
    for key, value in zip(keys, values, strict=True):
        if value is None or (isinstance(value, float) and math.isnan(value)) or "\0" in str(value):
            continue
        query = f"select id from t where {name} = {LITERAL[name](value)}"
        found = pa.table(QueryBuilder().register("t", handle).execute(query).read_all())
        assert key in found.column("id").to_pylist(), query
    frame = pl.scan_delta(str(path))
    for key, value in zip(keys, column.to_pylist(), strict=True):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        same = frame.filter(pl.col(name) == pl.lit(value, dtype=frame.collect_schema()[name]))
        assert key in same.collect()["id"].to_list()


@pytest.mark.impure
@given(text=st.text(max_size=80))
@example(text="a" * 32 + "\U0010ffff")
@example(text="\U0010ffff" * 40)
def test_a_text_lies_within_its_bounds(text: str) -> None:
    found = bounds(text, text, pa.string())
    assert found is not None
    low, high = found
    assert isinstance(low, str)
    assert low <= text
    assert high is None or (isinstance(high, str) and text <= high)
    assert len(low) <= 32


@given(micros=st.integers(-62135596800000000, 253402300799999999))
@example(micros=253402300799999999)
@example(micros=253402300799998001)
def test_a_moment_lies_within_its_bounds(micros: int) -> None:
    found = bounds(micros, micros, pa.timestamp("us", "UTC"))
    assert found is not None
    low, high = (
        pa.scalar(str(text).removesuffix("Z")).cast(pa.timestamp("us")).value for text in found
    )
    # an upper bound is that of its millisecond, and there is none above that of the last one
    is_last = micros > 253402300799999000
    assert low <= micros <= high + 999 * is_last
    assert high - low <= 1000


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (-math.inf, 1.0, pa.float64()),
        (0, 10**18, pa.timestamp("us", "UTC")),
        (0, 0, pa.timestamp("us")),
        (0, 4_000_000, pa.date32()),
        (False, True, pa.bool_()),
        (b"a", b"b", pa.binary()),
    ],
)
def test_what_cannot_be_a_bound_is_left_out(low: Any, high: Any, kind: pa.DataType) -> None:
    assert bounds(low, high, kind) is None


def test_a_column_with_nan_has_no_bounds() -> None:
    schema = pa.schema([("real", pa.float64())])
    for nans, has_bounds in ((0, True), (1, False)):
        known = ColumnStats(1.0, 2.0, 3, 0, nans, 0, 0)
        found = json.loads(statistics(3, {"real": known}, schema, ()))
        assert ("real" in found["minValues"]) is has_bounds
        assert found["nullCount"] == {"real": 0}


def test_json_keeps_every_digit() -> None:
    value = Decimal("12345678901234567890.0123456789")
    assert encode({"a": value, "b": {"c": 'x"y'}}) == (
        '{"a":12345678901234567890.0123456789,"b":{"c":"x\\"y"}}'
    )
    assert encode(Decimal("1E+3")) == "1000"
