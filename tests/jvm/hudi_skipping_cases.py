"""Hudi-Spark: filters and data skipping.

Hudi-Spark leaves out files and partitions by what our metadata table says of them. Every filter
finds the same rows with data skipping, without it, and by listing folders without the metadata
table: those that a model in Python finds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from tests.jvm.engines import Engine
from tests.jvm.filters import among, compare, is_not_null, is_null, starts_with
from tests.jvm.report import own_failure
from tests.jvm.skipping import (
    Found,
    differences,
    filtered,
    filters_of,
    judge_filters,
    judged,
    wanted,
)
from tests.jvm.typed_columns import ALL, COLUMNS, typed_batches
from tests.jvm.writers import Shape, Writer, insert_all, ours, plain_rows

VERSIONS: Final = ("8", "9")
PARTITIONED: Final = {"one folder": "", "partitioned": "city"}

# --- every type --------------------------------------------------------------------------------

TypedTable = Callable[[Writer, str, str], Path]


@pytest.fixture(scope="module")
def typed_table(tmp_path_factory: pytest.TempPathFactory) -> TypedTable:
    """Give the table of all types that a writer makes; once each."""

    made: dict[tuple[Writer, str, str], Path] = {}

    def make(write: Writer, version: str, layout: str) -> Path:
        if (write, version, layout) not in made:
            path = tmp_path_factory.mktemp("typed") / "table"
            shape = Shape(version, partition=PARTITIONED[layout], options=ALL)
            made[write, version, layout] = insert_all(write, path, shape, typed_batches())
        return made[write, version, layout]

    return make


OWN_FAILURES: Final = {
    ("binary", "9", "partitioned"): own_failure(
        "Hudi-Spark casts the bounds of a binary column in partition_stats to another class"
    ),
    **{
        (column, "9", layout): own_failure(
            "Hudi-Spark takes bounds of times before 1582 for times of the Julian calendar"
        )
        for column, layout in product(("zoned_range", "local_range"), PARTITIONED)
    },
}
TWINS: Final = {"local_range": "zoned_range"}
"""Columns of our tables that Hudi-Spark takes for others, which its own tables have beside them:
times without a zone are timestamps in UTC to it, see ``docs/types.md``."""


def types() -> Iterator[Any]:
    for each in product(COLUMNS, VERSIONS, PARTITIONED):
        column, version, layout = each
        marks = OWN_FAILURES.get(each, ())
        yield pytest.param(*each, id=f"{column}, version {version}, {layout}", marks=marks)


@pytest.mark.parametrize(("column", "version", "layout"), [*types()])
def test_every_type(
    hudi_spark: Engine, typed_table: TypedTable, column: str, version: str, layout: str
) -> None:
    """Equal, less, greater, in a list, null and not null, of a column of each type."""
    filters = filters_of(column, *COLUMNS[column])

    def asked(write: Writer) -> Found:
        twin = column if write is ours else TWINS.get(column, column)
        others = filters_of(twin, *COLUMNS[twin])
        answers = filtered(hudi_spark, typed_table(write, version, layout), others).found
        names = {one.sql: other.sql for one, other in zip(others, filters, strict=True)}
        return {(names[sql], way): answer for (sql, way), answer in answers.items()}

    judge_filters(hudi_spark, wanted(filters, plain_rows(typed_batches())), asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_local_times_by_hudis_name(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Times without a zone of all years, where the table's schema has Hudi's name for them."""
    column = "local_range"
    options = {**ALL, "hoodie.write.schema.local.timestamps": "true"}
    shape = Shape(version, partition="city", options=options)
    path = insert_all(ours, tmp_path / "table", shape, typed_batches())
    assert hudi_spark.schema(path)[column] == "timestamp_ntz"
    filters = filters_of(column, *COLUMNS[column])
    found = filtered(hudi_spark, path, filters)
    unequal = differences(found.found, wanted(filters, plain_rows(typed_batches())))
    assert not unequal, unequal
    assert found.files["skipping"] < found.files["listing"]


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_data_is_skipped(
    hudi_spark: Engine, typed_table: TypedTable, version: str, layout: str
) -> None:
    """Skipping opens fewer files than there are, or these cases would say nothing."""
    filters = [compare("int64", "=", COLUMNS["int64"][1][0], pa.int64()), is_null("string")]
    found = filtered(hudi_spark, typed_table(ours, version, layout), filters)
    assert found.files["skipping"] < found.files["no skipping"] == found.files["listing"]


# --- values that files differ in -----------------------------------------------------------------


def shape_of(version: str, layout: str) -> Shape:
    return Shape(version, partition=PARTITIONED[layout])


def batches_of(kind: pa.DataType, *files: Sequence[Any]) -> list[pa.Table]:
    """Files of one partition with values of a column ``x``, and one of another partition."""
    made: list[pa.Table] = []
    first = 1
    for values in [*files, files[-1]]:
        ids = list(range(first, first + len(values)))
        city = "B" if len(made) == len(files) else "A"
        made.append(pa.table({"id": ids, "city": [city] * len(ids), "x": pa.array(values, kind)}))
        first += len(values)
    return made


NUMBERS: Final[Mapping[str, tuple[pa.DataType, Sequence[Sequence[Any]]]]] = {
    "beside a file of numbers": (pa.float64(), ([math.nan], [5.0])),
    "among numbers": (pa.float32(), ([5.0, math.nan, 7.0], [1.0])),
    "among nulls": (pa.float64(), ([math.nan, None], [None, 5.0])),
    "alone": (pa.float32(), ([math.nan], [math.nan, math.nan])),
    "first": (pa.float64(), ([math.nan, 1.0], [5.0], [6.0])),
}


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("files", NUMBERS)
def test_numbers_beside_nan(
    hudi_spark: Engine, tmp_path: Path, files: str, version: str, layout: str
) -> None:
    """A NaN hides no number, in its file and in its partition, and is greater than all of them."""
    kind, values = NUMBERS[files]
    signs = (("=", 5.0), ("<", 6.0), ("<=", 1.0), (">", 4.0), (">", 1e30), ("!=", 5.0))
    filters = [*(compare("x", sign, value, kind) for sign, value in signs), is_not_null("x")]
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches_of(kind, *values), filters)


@own_failure("Hudi-Spark skips every file where it compares bounds with NaN")
@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("files", NUMBERS)
def test_looking_for_nan(
    hudi_spark: Engine, tmp_path: Path, files: str, version: str, layout: str
) -> None:
    """NaN equals NaN, and nothing is greater."""
    kind, values = NUMBERS[files]
    signs = (("=", math.nan), (">=", math.nan), ("<=", math.nan))
    filters = [compare("x", sign, value, kind) for sign, value in signs]
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches_of(kind, *values), filters)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("precision", "scale"), [(20, 4), (38, 10), (18, 18), (38, 38)])
def test_digits_beside_few_digits(
    hudi_spark: Engine, tmp_path: Path, precision: int, scale: int, version: str, layout: str
) -> None:
    """A decimal with all its digits hides none of few digits, in the file and the partition."""
    kind = pa.decimal128(precision, scale)
    long = Decimal((0, (9,) * precision, -scale))
    short = Decimal(5).scaleb(-scale)
    filters = [
        compare("x", "=", short, kind),
        compare("x", ">", short, kind),
        compare("x", "<=", short, kind),
        compare("x", "=", long, kind),
        compare("x", "<", short.copy_negate(), kind),
    ]
    files = ([long], [short], [long.copy_negate(), short], [short, None])
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches_of(kind, *files), filters)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_nulls_alone(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """A file and a partition of nulls hide no value of others."""
    kind = pa.int64()
    filters = [compare("x", ">", 0, kind), compare("x", "=", 7, kind), is_null("x")]
    files = ([None, None], [7], [None])
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches_of(kind, *files), filters)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_long_texts(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """Strings longer than what statistics keep are found, from both ends of the order."""
    kind = pa.string()
    low, high = "a" * 3000, "\u4e2d" * 1000
    filters = [
        compare("x", "=", low, kind),
        compare("x", "<=", low, kind),
        compare("x", ">", "b", kind),
        compare("x", "=", high, kind),
        among("x", [low, high], kind),
    ]
    batches = batches_of(kind, [low], ["m"], [high])
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches, filters)


@own_failure("Hudi-Spark takes `like 'a%'` for `= 'a'` where it compares bounds")
@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("low", ["aab", "a" * 3000], ids=["short", "longer than bounds"])
def test_texts_by_their_start(
    hudi_spark: Engine, tmp_path: Path, low: str, version: str, layout: str
) -> None:
    """Strings are found by ``like 'aa%'``."""
    batches = batches_of(pa.string(), [low, "b"], ["m"])
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches, [starts_with("x", "aa")])


@own_failure("Spark has Parquet compare such days as days of the Julian calendar")
def test_days_that_the_julian_calendar_lacks(hudi_spark: Engine, tmp_path: Path) -> None:
    """A day between 5 and 14 October 1582, alone and in a list."""
    kind = pa.date32()
    days = [dt.date(1582, 10, 10), dt.date(2024, 2, 29)]
    filters = [among("x", days, kind), compare("x", "=", days[0], kind)]
    batches = batches_of(kind, days[:1], days[1:])
    judged(hudi_spark, tmp_path, shape_of("8", "partitioned"), batches, filters)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_conditions_together(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """And, or and not, of columns with nulls."""
    kind = pa.int64()
    low, high = compare("x", "<", 3, kind), compare("x", ">", 5, kind)
    in_a = compare("city", "=", "A", pa.string())
    filters = [
        *(low | high, ~(low | high), ~low & in_a, ~(low & in_a), high | is_null("x")),
        *(~is_null("x") & ~high, ~among("x", [1, 9], kind), ~in_a | low),
    ]
    files = ([1, None], [4, 9], [None], [2, 3])
    judged(hudi_spark, tmp_path, shape_of(version, layout), batches_of(kind, *files), filters)
