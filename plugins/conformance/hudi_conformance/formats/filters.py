"""What filters leave out: files, partitions and file groups, by what a format says of them.

A format that says too little has files read in vain. One that says too much loses rows, which
nothing but a filter on a column that it speaks of brings to light.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import eq, ge, le
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.table_services import EVERY, ONE_STATE, SHORT
from hudi_conformance.formats.tables import (
    CITIES,
    SCHEMA,
    OverFormat,
    create,
    declares,
    open_at,
)
from hudi_conformance.formats.under_test import FormatUnderTest, TwoStepFormat
from hudi_core.spi import (
    Capability,
    FileIndex,
    PartitionPath,
    SchemaError,
    ValueRanges,
)
from hudi_core.spi.testing import load_format

ZONE: Final = dt.UTC
KINDS: Final[Mapping[str, tuple[pa.DataType, Callable[[int], Any]]]] = {
    "flag": (pa.bool_(), lambda n: n % 2 == 0),
    "wide": (pa.int64(), lambda n: (n - 3) << 40),
    "narrow": (pa.float32(), lambda n: math.nan if n == 4 else n / 4 - 1),
    "word": (pa.string(), lambda n: f"{'x' * 40}{n}"),
    "day": (pa.date32(), lambda n: dt.date(2024, 1, 1) + dt.timedelta(n)),
    "clock": (pa.time64("us"), lambda n: dt.time(12, n, 0, n)),
    "at": (pa.timestamp("us", "UTC"), lambda n: dt.datetime(1969, 12, 31, 23, n, 9, n, ZONE)),
    "price": (pa.decimal128(20, 4), lambda n: Decimal(n - 2) / 16),
    "raw": (pa.binary(), lambda n: bytes([0, n, 255])),
    "inner": (pa.struct([("x", pa.int32())]), lambda n: {"x": n - 5}),
}
"""Columns of every kind, each with its value in the n-th row; what a format lacks is left out."""
NESTED: Final = {"inner": ("x",)}
NULL_ROWS: Final = (2, 5)
"""Rows without values in these columns: one in a file with others, one in a file of its own."""
META: Final = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time")

ALONE: Final = ("id", "city", "_hoodie_record_key", "_hoodie_partition_path")
"""Columns by which a reader finds files before it looks at any other."""

ASKED: Final = ("k4", "k5")
"""Keys of rows that filters ask for beside those with the least and the greatest key: one with
values among others, one with nulls in a file of its own."""

Row = Mapping[str, Any]
Condition = tuple[str, str, Any]
HOLDS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": eq,
    "<=": le,
    ">=": ge,
    "in": lambda one, others: one in others,
}


class FilterConformance(OverFormat):
    """What filters find, and what the format says by which they leave something out."""

    @check(
        "F59",
        "A filter on any column finds the rows of an unfiltered read, also after every service.",
        "hudi_core.spi.FileIndex",
    )
    def test_filters_lose_no_row(self, path: Path, format_under_test: FormatUnderTest) -> None:
        wide_table(path, format_under_test)
        require_filters_find_all(path, "the first writes")
        for name, act in steps(path, format_under_test):
            act(hudi.Table.open(str(path), ONE_STATE))
            require_filters_find_all(path, name)

    @check(
        "F60",
        "What is said of values in files, partitions and file groups is so of all rows in them.",
        "hudi_core.spi.FileIndex",
    )
    def test_what_is_said_of_values(self, path: Path, format_under_test: FormatUnderTest) -> None:
        table = wide_table(path, format_under_test)
        require_true_of_all(path)
        table.upsert(data(path, 0, 3, ts=2))
        table.delete(data(path, 1))
        require_true_of_all(path)
        if declares(path, Capability.CLUSTERING):
            table.cluster()
            require_true_of_all(path)


# --- the table, and what is done to it -----------------------------------------------------------


def wide_table(path: Path, format_under_test: FormatUnderTest) -> hudi.Table:
    """A table with a column of each kind that the format holds, in several files."""
    schema = SCHEMA
    for name, (kind, _) in KINDS.items():
        schema = schema.append(pa.field(name, kind))
    partition_by = _partition_by(format_under_test)
    while True:
        try:
            table = create(path, format_under_test, partition_by, schema)
            break
        except SchemaError as error:
            lacks = [name for name in KINDS if name in schema.names and name in str(error)]
            if not lacks:
                raise
            for name in lacks:
                schema = schema.remove(schema.get_field_index(name))
    table.bulk_insert(data(path, *EVERY))
    table.bulk_insert(data(path, 5))
    return table


def _partition_by(format_under_test: FormatUnderTest) -> str | None:
    declared = load_format(format_under_test.name).capabilities
    return "city" if Capability.IDENTITY_PARTITIONS in declared else None


def data(path: Path, *keys: int, ts: int = 1) -> pa.Table:
    """Rows of the table at a path, by keys."""
    schema = hudi.Table.open(str(path)).schema
    return pa.Table.from_pylist([_row(key, ts, schema.names) for key in keys], schema)


def _row(key: int, ts: int, names: Iterable[str]) -> Row:
    row: dict[str, Any] = {
        "id": f"k{key}",
        "city": CITIES[key % 3],
        "ts": ts,
        "value": math.nan if key == 3 else key * ts - 1.5,
        "count": key - 2,
    }
    for name, (_, value) in KINDS.items():
        row[name] = None if key in NULL_ROWS else value(key + ts - 1)
    return {name: row.get(name) for name in names}


Step = tuple[str, Callable[[hudi.Table], object]]


def steps(path: Path, format_under_test: FormatUnderTest) -> Iterator[Step]:
    """Yield every write and service that the format declares, one after the other."""

    yield "writes", lambda table: _written(table, path)
    yield "a rollback", lambda table: table.rollback(table.upsert(data(path, 0, 7, ts=3)).instant)
    if declares(path, Capability.SAVEPOINT) and declares(path, Capability.RESTORE):
        yield "a restore", lambda table: _restored(table, path)
    if declares(path, Capability.CLUSTERING):
        yield "a clustering", lambda table: table.cluster()
    yield "a clean", lambda table: _cleaned(table, path)
    yield "an archival", lambda table: table.archive(options=SHORT)
    if declares(path, Capability.ADD_COLUMN):
        yield "a new column", lambda table: _with_a_column(table, path)
    is_lost = isinstance(format_under_test, TwoStepFormat)
    if is_lost and declares(path, Capability.CONVERSION):
        yield "a rebuilding", lambda table: _rebuilt(table, path, format_under_test)


def _written(table: hudi.Table, path: Path) -> object:
    table.upsert(data(path, 0, 3, 6, ts=2))
    return table.delete(data(path, 1))


def _cleaned(table: hudi.Table, path: Path) -> object:
    for ts in (4, 5, 6):
        table.upsert(data(path, 0, 3, ts=ts))
    return table.clean(options=ONE_STATE)


def _with_a_column(table: hudi.Table, path: Path) -> object:
    table.alter(add_columns={"more": pa.int64()})
    some = data(path, 0, 8, ts=7)
    more = pa.array(range(len(some)), pa.int64())
    return table.upsert(some.set_column(some.schema.get_field_index("more"), "more", more))


def _restored(table: hudi.Table, path: Path) -> object:
    last = table.timeline.completed_writes()[-1]
    table.savepoint(last)
    table.upsert(data(path, 0, 7, ts=3))
    return table.restore(last)


def _rebuilt(table: hudi.Table, path: Path, format_under_test: FormatUnderTest) -> object:
    assert isinstance(format_under_test, TwoStepFormat)
    format_under_test.lose(path)
    return table.repair()


# --- filters -------------------------------------------------------------------------------------


def require_filters_find_all(path: Path, after: str) -> None:
    """Compare filtered reads of every column with those rows of a whole one that fit."""
    table = hudi.Table.open(str(path))
    rows = [_leaves(row) for row in table.to_arrow().to_pylist()]
    for conditions in _filters(rows):
        wanted = sorted(row["id"] for row in rows if all(map(partial(_fits, row), conditions)))
        if _found(table, conditions) == wanted:
            continue
        # which of the columns is it
        for one in conditions:
            alone = sorted(row["id"] for row in rows if _fits(row, one))
            assert _found(table, [one]) == alone, f"{one} after {after}"
        pytest.fail(f"{conditions} after {after}: {_found(table, conditions)}, not {wanted}")


def _filters(rows: Sequence[Row]) -> Iterator[Sequence[Condition]]:
    """Yield filters that ask for a row by all of its columns at once.

    Each column can leave a file out, so that one read shows all of them.
    """
    some = sorted(rows, key=lambda row: str(row["id"]))
    for row in (some[0], some[-1], *(one for one in some[1:-1] if one["id"] in ASKED)):
        asked = {name: value for name, value in row.items() if not _is_nan(value)}
        alone = [name for name in asked if name in ALONE or "." in name]
        for operator in HOLDS if row is some[0] else ("=",):
            yield [_condition(*one, operator) for one in asked.items() if one[0] not in alone]
        if row is some[0]:
            yield from ([_condition(name, row[name], "=")] for name in alone)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _condition(name: str, value: Any, operator: str) -> Condition:
    if value is None:
        return name, "is null", None
    return name, operator, [value] if operator == "in" else value


def _fits(row: Row, condition: Condition) -> bool:
    name, operator, wanted = condition
    if operator == "is null":
        return row[name] is None
    return row[name] is not None and bool(HOLDS[operator](row[name], wanted))


def _found(table: hudi.Table, conditions: Sequence[Condition]) -> list[str]:
    row_filter: Any = conditions
    name, operator, value = conditions[0]
    if "." in name:  # a field of a struct, which only an expression can name
        field = pc.field(*name.split("."))
        row_filter = field.is_null() if operator == "is null" else HOLDS[operator](field, value)
    return sorted(table.to_arrow("id", filter=row_filter).column("id").to_pylist())


def _leaves(row: Row) -> Row:
    """The values of a row by column, those of structs by field."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name.startswith("_hoodie_") and name not in META:
            continue
        if name in NESTED:
            found |= {f"{name}.{one}": value and value[one] for one in NESTED[name]}
        else:
            found[name] = value
    return found


# --- what the format says ------------------------------------------------------------------------


def require_true_of_all(path: Path) -> None:
    """Compare what the index of files says of values with the values in the files."""
    opened = open_at(path)
    index = opened.host.get_metadata_factory().create(opened.client)
    table = hudi.Table.open(str(path))
    present = [one.base_file for one in table.file_slices() if one.base_file is not None]
    folders = sorted({str(one.path).rpartition("/")[0] for one in present})
    by_file = {str(one.path): _values_in(path / one.path) for one in present}
    for column, kind in _columns(table.schema):
        _require_of_files(index, by_file, column, kind)
        _require_of_partitions(index, folders, by_file, column, kind)
        _require_of_groups(index, by_file, column, kind)


def _columns(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    for field in schema:
        if pa.types.is_struct(field.type):
            yield from ((f"{field.name}.{one.name}", one.type) for one in field.type)
        else:
            yield field.name, field.type


def _values_in(file: Path) -> Mapping[str, list[Any]]:
    """The values of a data file by the path of their column."""
    rows = [_leaves(row) for row in pq.ParquetFile(file).read().to_pylist()]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _is_ordered(value: Any) -> bool:
    return value is not None and not _is_nan(value)


def _require_of_files(
    index: FileIndex, by_file: Mapping[str, Mapping[str, list[Any]]], column: str, kind: pa.DataType
) -> None:
    folders = {PartitionPath(one.rpartition("/")[0]) for one in by_file}
    files = index.list_columns(sorted(folders))
    ranges = index.file_ranges(files, column, kind)
    if ranges is None:
        return
    for place, file in enumerate(files.paths().to_pylist()):
        values = by_file.get(file, {}).get(column, [])
        _require_within(ranges, place, values, f"the file {file} and {column}")


def _require_of_partitions(
    index: FileIndex,
    folders: Sequence[str],
    by_file: Mapping[str, Mapping[str, list[Any]]],
    column: str,
    kind: pa.DataType,
) -> None:
    ranges = index.partition_ranges([PartitionPath(one) for one in folders], column, kind)
    if ranges is None:
        return
    for place, folder in enumerate(folders):
        within = [one for file, one in by_file.items() if file.rpartition("/")[0] == folder]
        values = [value for one in within for value in one.get(column, [])]
        _require_within(ranges, place, values, f"the partition {folder!r} and {column}")


def _require_within(ranges: ValueRanges, place: int, values: Sequence[Any], where: str) -> None:
    low, high = ranges.minimum[place].as_py(), ranges.maximum[place].as_py()
    some = [one for one in values if one is not None]
    assert ranges.may_be_null[place] or len(some) == len(values), f"a null is left out of {where}"
    assert ranges.may_have_value[place] or not some, f"values are left out of {where}"
    for value in filter(_is_ordered, some):
        is_in = (low is None or low <= value) and (high is None or value <= high)
        assert is_in, f"{value!r} is not within [{low!r}, {high!r}], the range of {where}"


def _require_of_groups(
    index: FileIndex, by_file: Mapping[str, Mapping[str, list[Any]]], column: str, kind: pa.DataType
) -> None:
    every = [one for values in by_file.values() for one in values.get(column, [])]
    if index.groups_of_values(column, pa.array([*filter(_is_ordered, every)], kind)) is None:
        return
    for file, values in by_file.items():
        folder, _, name = file.rpartition("/")
        for value in filter(_is_ordered, values.get(column, [])):
            groups = index.groups_of_values(column, pa.array([value], kind))
            held = {(one.partition_path, one.file_id) for one in groups or ()}
            assert groups is None or (folder, name.partition("_")[0]) in held, (
                f"{value!r} of {column} is in the file group of {file}, which is not named"
            )
