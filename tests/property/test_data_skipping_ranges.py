"""Ranges, pruning and filters leave out only what holds no row that is accepted."""

from __future__ import annotations

import dataclasses
import math
import operator
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.kinds import KeyGeneratorType
from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError, SchemaError
from hudi_core.model.files import PartitionPath
from hudi_core.model.ranges import ValueRanges
from hudi_core.read.filters import to_filter
from hudi_core.read.foreign import predicate_of_expression
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.read.predicate import And, Anything, Or, can_match, columns_of
from hudi_core.storage.partition_path import PartitionPathCodec
from tests.filter_matrix import Engines, MatrixTable, some_constraint, some_table
from tests.filter_words import WORD_COLUMNS, Negated, Null, some_conditions, some_filter
from tests.samples import IS_WHOLE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.int64(): [-(2**63), -2, 0, 3, 2**63 - 1],
    pa.float32(): [-1.5, -0.0, 0.0, 2.25, math.inf, -math.inf, math.nan],
    pa.float64(): [-1e300, -0.0, 0.0, 0.1, math.inf, -math.inf, math.nan],
    pa.string(): ["", "a", "ab", "b", "é", "\U0001f600", "a" * 5000],
    pa.binary(): [b"", b"\0", b"a", b"ab", b"\xff", b"\xff\xff"],
    pa.decimal128(5, 2): [Decimal("-999.99"), Decimal("-0.01"), Decimal(0), Decimal("12.30")],
    pa.decimal128(38, 0): [Decimal(-(10**37)), Decimal(0), Decimal(10**37)],
    pa.date32(): [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    pa.timestamp("us", "UTC"): [EPOCH - timedelta(microseconds=1), EPOCH, EPOCH + timedelta(1)],
    pa.timestamp("us"): [EPOCH.replace(year=year, tzinfo=None) for year in (1, 1970, 2026)],
    pa.time64("us"): [time(0), time(12, 30, 0, 1), time(23, 59, 59)],
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
KINDS = st.sampled_from(list(VALUES))


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def scalars(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.sampled_from(VALUES[kind])


def expressions(kind: pa.DataType) -> st.SearchStrategy[pc.Expression]:
    column = pc.field("x")
    numbers = scalars(kind).filter(lambda value: not is_nan(value))
    single = st.one_of(
        st.tuples(st.sampled_from(sorted(COMPARISONS)), scalars(kind)).map(
            lambda pair: COMPARISONS[pair[0]](column, pa.scalar(pair[1], kind))
        ),
        st.tuples(st.sampled_from(sorted(COMPARISONS)), numbers).map(
            lambda pair: COMPARISONS[pair[0]](pc.scalar(pa.scalar(pair[1], kind)), column)
        ),
        st.lists(st.one_of(st.none(), scalars(kind)), min_size=1, max_size=4).map(
            lambda values: column.isin(pa.array(values, kind))
        ),
        st.sampled_from([column.is_null(), column.is_valid(), pc.field("other") > 3]),
    )
    return st.recursive(
        single,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda each: reduce(operator.and_, each)),
            st.lists(inner, min_size=2, max_size=3).map(lambda each: reduce(operator.or_, each)),
            inner.map(operator.invert),
        ),
        max_leaves=5,
    )


def ranges_of(files: Sequence[Sequence[Any]], kind: pa.DataType) -> ValueRanges:
    """Return exact ranges, NaN left out as writers do."""
    bounds: list[tuple[Any, Any]] = []
    for values in files:
        known = pa.array([v for v in values if v is not None and not is_nan(v)], kind)
        found = pc.min_max(known).as_py() if len(known) else {"min": None, "max": None}
        bounds.append((found["min"], found["max"]))
    return ValueRanges(
        pa.array([low for low, _ in bounds], kind),
        pa.array([high for _, high in bounds], kind),
        np.array([None in values for values in files]),
        np.array([any(v is not None for v in values) for values in files]),
    )


def accepted(expression: pc.Expression, values: Sequence[Any], kind: pa.DataType) -> int:
    rows = pa.table({"x": pa.array(values, kind), "other": pa.array([5] * len(values), pa.int32())})
    return int(rows.filter(expression).num_rows)


@given(data=st.data(), kind=KINDS)
def test_no_file_with_an_accepted_row_is_left_out(data: st.DataObject, kind: pa.DataType) -> None:
    rows = st.lists(st.one_of(st.none(), scalars(kind)), min_size=1, max_size=5)
    files = data.draw(st.lists(rows, min_size=1, max_size=6))
    expression = data.draw(expressions(kind))
    hidden = data.draw(st.lists(st.booleans(), min_size=len(files), max_size=len(files)))
    schema = pa.schema([("x", kind), ("other", pa.int32())])

    ranges = ranges_of(files, kind)
    unknown = ValueRanges.unknown(kind, len(files))
    mixed = ValueRanges(
        pc.if_else(pa.array(hidden), unknown.minimum, ranges.minimum),
        pc.if_else(pa.array(hidden), unknown.maximum, ranges.maximum),
        ranges.may_be_null | np.array(hidden),
        ranges.may_have_value | np.array(hidden),
    )
    predicate = predicate_of_expression(expression, schema)
    for known in (ranges, mixed):
        mask = can_match(predicate, {"x": known}, len(files))
        for keep, values in zip(mask, files, strict=True):
            assert keep or accepted(expression, values, kind) == 0, (expression, values)


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("op", [*COMPARISONS, "in", "is null", "is not null"])
def test_a_condition_keeps_the_files_that_can_match_and_no_others(
    kind: pa.DataType, op: str
) -> None:
    ordered = pa.array([v for v in VALUES[kind] if not is_nan(v)], kind)
    ordered = ordered.take(pc.sort_indices(ordered))
    files: list[list[Any]] = [[value] for value in ordered.to_pylist()]
    files += [[None], [None, files[0][0]], [files[0][0], files[-1][0]]]
    ranges = ranges_of(files, kind)
    schema = pa.schema([("x", kind)])
    for value in ordered.to_pylist():
        given_value = [value] if op == "in" else value
        wanted = to_filter([("x", op, given_value)], schema)
        assert wanted is not None
        predicate, expression = wanted.predicate, wanted.expression
        assert columns_of(predicate) == {"x"}
        # both ways lead to one predicate
        assert predicate_of_expression(expression, schema) == predicate
        mask = can_match(predicate, {"x": ranges}, len(files))
        table = [pa.table({"x": pa.array(values, kind)}) for values in files]
        holds = [part.filter(expression).num_rows > 0 for part in table]
        # a range of several values is more than its rows, and NaN differs from every number
        spread = len(files) - 1
        if op == "!=" and pa.types.is_floating(kind):
            assert mask.tolist() == [*[True] * len(ordered), False, True, True]
        else:
            assert mask.tolist()[:spread] == holds[:spread], (op, value)
            assert mask[spread] >= holds[spread]


def test_many_values_are_looked_for_between_the_bounds() -> None:
    tens: dict[pa.DataType, Callable[[int], Any]] = {
        pa.int64(): lambda n: n * 10,
        pa.decimal128(9, 1): lambda n: Decimal(n * 10),
    }
    for kind, make in tens.items():
        files = [[make(0), make(1)], [make(50) + 1, make(51) - 1], [make(99), make(300)], [None]]
        # of many decimals only the least and the greatest are compared
        many = [True, pa.types.is_decimal(kind), True]
        for count, expected in ((40, [True, False, False]), (100, many)):
            values = pa.array([make(n) for n in range(count)], kind)
            expression = pc.field("x").isin(values)
            predicate = predicate_of_expression(expression, pa.schema([("x", kind)]))
            mask = can_match(predicate, {"x": ranges_of(files, kind)}, len(files)).tolist()
            assert mask == [*expected, False], (kind, count)


def test_bounds_that_are_wider_than_the_values_are_bounds_too() -> None:
    """Texts longer than a writer keeps are cut at the lower end and raised at the upper one."""
    ranges = ValueRanges(
        pa.array(["aaaa"]), pa.array(["aaab"]), np.array([False]), np.array([True])
    )
    schema = pa.schema([("x", pa.string())])
    kept = {"aaaa", "aaaaaaa", "aaab"}
    for value in ("a", "aaaa", "aaaaaaa", "aaab", "aaaba"):
        predicate = predicate_of_expression(pc.field("x") == value, schema)
        assert can_match(predicate, {"x": ranges}, 1).tolist() == [value in kept]
    different = predicate_of_expression(pc.field("x") != "aaaa", schema)
    assert can_match(different, {"x": ranges}, 1).tolist() == [True]


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("x") + 1 > 3,
        pc.field("x") > 5.5,
        pc.field("x") > pc.field("y"),
        pc.field("x").isin([1, None]),
        operator.eq(pc.field("f"), math.nan),
        pc.field("x").isin([1.5, 2.0]),
        pc.field("f").is_null(nan_is_null=True),
        pc.match_substring(pc.field("s"), "a"),
        pc.scalar(True),
    ],
    ids=str,
)
def test_what_cannot_be_taken_apart_excludes_nothing(expression: pc.Expression) -> None:
    schema = pa.schema(
        [("x", pa.int32()), ("y", pa.int32()), ("f", pa.float64()), ("s", pa.string())]
    )
    assert predicate_of_expression(expression, schema) == Anything()
    assert columns_of(predicate_of_expression(expression & (pc.field("y") > 0), schema)) == {"y"}


def test_fields_of_structs_are_columns_whatever_else_there_is() -> None:
    numbered = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "7"})
    fields = [
        pa.field("s", pa.struct([("t", pa.struct([numbered]))])),
        pa.field("list", pa.list_(numbered)),
        pa.field("map", pa.map_(pa.string(), numbered)),
        pa.field("big", pa.large_string()),
    ]
    predicate = predicate_of_expression(pc.field("s", "t", "x") > 3, pa.schema(fields))
    assert columns_of(predicate) == {"s.t.x"}
    assert columns_of(predicate_of_expression(pc.field("map").is_valid(), pa.schema(fields))) == {
        "map"
    }


def test_conditions_joined_by_the_hundred_are_taken_apart() -> None:
    schema = pa.schema([("x", pa.int32())])
    each = [pc.field("x") == value for value in range(600)]
    parts = tuple(predicate_of_expression(one, schema) for one in each)
    assert predicate_of_expression(reduce(operator.or_, each), schema) == Or(parts)
    assert predicate_of_expression(reduce(operator.and_, each), schema) == And(parts)
    ranges = ValueRanges(
        pa.array([5, 950], pa.int32()), pa.array([5, 999], pa.int32()), *np.ones((2, 2), np.bool_)
    )
    found = can_match(Or(parts), {"x": ranges}, 2)
    assert found.tolist() == [True, False]


def test_what_is_nested_too_deeply_is_unknown_and_too_much_is_refused() -> None:
    schema = pa.schema([("x", pa.int32())])
    nested = pc.field("x") == 1
    for number in range(200):
        both = nested & (pc.field("x") > number)
        nested = both | (pc.field("x") == number)
    assert columns_of(predicate_of_expression(nested, schema)) == {"x"}
    for _ in range(900):
        nested = nested & (pc.field("x") > 0)
    with pytest.raises(SchemaError, match="is the most"):
        to_filter(nested, schema)
    with pytest.raises(SchemaError, match=r"1,001 conditions.*'in'"):
        to_filter([("x", ">", 0)] * 1001, schema)


def test_a_choice_accepts_what_one_of_its_ways_does() -> None:
    """DuckDB makes one of its IN; both zeros are one value in SQL, and two to Arrow's lists."""
    schema = pa.schema([("x", pa.int32()), ("f", pa.float64())])
    null = pa.scalar(None, pa.bool_())
    ranges = {
        "x": ValueRanges(
            pa.array([1, 5], pa.int32()), pa.array([2, 9], pa.int32()), *np.ones((2, 2), np.bool_)
        ),
        "f": ValueRanges(pa.array([-0.0, 1.0]), pa.array([0.0, 2.0]), *np.ones((2, 2), np.bool_)),
    }
    x, f = pc.field("x"), pc.field("f")
    for expression, kept in (
        (pc.if_else(x.is_valid(), x.isin([5, 7]), null), [False, True]),
        (pc.if_else(x > 3, f > 5, f < 0.5), [True, False]),
        (~pc.if_else(x.is_valid(), x.isin([5, 7]), null), [True, True]),
        (f.isin([0.0]), [True, False]),
        (f.isin([-0.0, 7.0]), [True, False]),
    ):
        assert can_match(predicate_of_expression(expression, schema), ranges, 2).tolist() == kept


def test_a_column_is_not_named_by_its_number() -> None:
    schema = pa.schema([("x", pa.int32()), ("y", pa.int32())])
    with pytest.raises(SchemaError, match="by its number"):
        to_filter(pc.field(0) == 1, schema)


# --- pruning never drops a partition that holds a row which the filter accepts
PRUNED = pa.schema(
    [("_hoodie_partition_path", pa.string()), ("city", pa.string()), ("n", pa.int32())]
)
CITIES = st.one_of(st.none(), st.sampled_from(["a", "b", "a/b", "10", "%61", "A", "ä", "a b"]))
NUMBERS = st.one_of(st.none(), st.integers(-3, 12))
OPS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
CONDITIONS = st.one_of(
    st.tuples(st.just("city"), OPS, CITIES.filter(bool)),
    st.tuples(st.just("n"), OPS, st.integers(-3, 12)),
    st.tuples(st.sampled_from(["city", "n"]), st.sampled_from(["is null", "is not null"])).map(
        lambda pair: (*pair, None)
    ),
    st.tuples(
        st.just("n"), st.sampled_from(["in", "not in"]), st.lists(st.integers(-3, 12), min_size=1)
    ),
    st.tuples(
        st.just("city"),
        st.sampled_from(["in", "not in"]),
        st.lists(CITIES.filter(bool), min_size=1),
    ),
)


def expression_of(condition: tuple[str, str, Any]) -> pc.Expression:
    found = to_filter([condition], PRUNED)
    assert found is not None
    return found.expression


FILTERS = st.recursive(
    CONDITIONS.map(expression_of),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda each: reduce(operator.and_, each)),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: reduce(operator.or_, each)),
        inner.map(operator.invert),
    ),
    max_leaves=4,
)


@given(
    rows=st.lists(st.tuples(CITIES, NUMBERS), min_size=1, max_size=12),
    expression=FILTERS,
    hive=st.booleans(),
    encode=st.booleans(),
    opaque=st.booleans(),
)
def test_every_matching_row_is_in_a_partition_that_is_kept(
    rows: list[tuple[str | None, int | None]],
    expression: pc.Expression,
    hive: bool,
    encode: bool,
    opaque: bool,
) -> None:
    config = dataclasses.replace(
        TableConfig(name="t", record_key_fields=("n",), partition_fields=("city", "n")),
        keygen_type=KeyGeneratorType.COMPLEX,
        hive_style=hive,
        url_encode=encode,
    )
    codec = PartitionPathCodec(config.partition_fields, hive, encode)
    stored: list[dict[str, Any]] = []
    for city, n in rows:
        try:
            path = codec.encode([city, None if n is None else str(n)])
        except PartitionValueError:
            continue
        stored.append({"_hoodie_partition_path": path, "city": city, "n": n})
    table = pa.Table.from_pylist(stored, PRUNED)
    partitions = sorted({PartitionPath(row["_hoodie_partition_path"]) for row in stored})

    # a part that is not taken apart leaves the others to Arrow, which keeps no more
    taken_apart = to_filter(expression, PRUNED)
    given = expression & (pc.field("n") + 0 == pc.field("n") + 0) if opaque else expression
    kept = PartitionPruner(config, PRUNED).keep(partitions, to_filter(given, PRUNED))

    assert set(kept) <= set(PartitionPruner(config, PRUNED).keep(partitions, taken_apart))
    matching = table.filter(expression)["_hoodie_partition_path"].to_pylist()
    assert set(matching) <= set(kept)
    assert list(kept) == [path for path in partitions if path in set(kept)]


# --- random filters on random tables: every engine finds the rows that it finds in its own memory
TABLE_COUNT, FILTER_COUNT = (50, 40) if IS_WHOLE else (2, 5)


@pytest.mark.parametrize("number", range(TABLE_COUNT))
def test_every_engine_finds_what_it_finds_in_its_memory(number: int, tmp_path: Path) -> None:
    one, rng = some_table(number, tmp_path / "t"), random.Random(1000 + number)
    stored = one.table.to_arrow(WORD_COLUMNS.names).sort_by("id").to_pylist()
    assert list(map(str, stored)) == list(map(str, one.rows.to_pylist()))  # NaN is not itself
    engines = Engines(one)
    for _ in range(FILTER_COUNT):
        given = some_filter(rng), some_conditions(rng), some_constraint(rng)
        assert not [*engines.differences(*given)], (one.facts, given[0])
    engines.close()


def test_each_engine_that_is_wrong_is_found(tmp_path: Path) -> None:
    one = some_table(0, tmp_path / "t")
    lost = one.rows.slice(0, 1).set_column(0, "id", pa.array([-1]))
    engines = Engines(MatrixTable(one.table, pa.concat_tables([one.rows, lost])))
    found = [*engines.differences(Negated(Null("id")), [("id", "is not null", None)], {})]
    assert {text.split()[0] for text in found} == {
        *("to_arrow", "count", "scanner", "dataset", "connector", "duckdb", "polars", "change"),
        *("text", "conditions", "pandas", "scan", "--where", "trino"),
    }
    engines.close()
