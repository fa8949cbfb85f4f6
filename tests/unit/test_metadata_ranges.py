"""Ranges of columns: encoded, decoded at once, kept, and right for other engines."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_core as hudi
from hudi_core.avro.wrappers import ARRAY, SCALARS, Wrapped
from hudi_core.base_file.footer_statistics import footer_statistics
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.index_definitions import put_definitions, read_definitions, with_index
from hudi_core.metadata.keys import partition_stats_key
from hudi_core.metadata.log.record_codec import RecordEncoder
from hudi_core.metadata.log.records import (
    ColumnRange,
    FileList,
    MetadataRecord,
    RecordType,
    ValueType,
)
from hudi_core.metadata.partition_types import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.statistics import column_ranges
from hudi_core.metadata.statistics.bound_forms import (
    BoundForm,
    bound_form,
    in_form,
    wrapped_bounds,
)
from hudi_core.metadata.statistics.bounds import (
    BoundType,
    bound_arrays,
    bound_type,
    stored_kind,
    unwrapped,
)
from hudi_core.metadata.statistics.column_ranges import as_table, decode_ranges
from hudi_core.metadata.statistics.column_records import doubtful
from hudi_core.metadata.statistics.range_cache import SHARED, RangeCache
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.files import PartitionPath
from hudi_core.model.stats import ColumnStats, Scalar
from hudi_core.schema.arrow_types import leaves
from tests.operators import operator
from tests.tables import new_table
from tests.unit.test_metadata_validator import a_record, client_of, plant

VERSIONS = ("8", "9")
FILES_APART = {"hoodie.parquet.small.file.limit": "0"}
Step: TypeAlias = "pa.Table | Callable[[hudi.Table], object]"


def table_of(path: Path, version: str, *steps: Step, **options: str) -> hudi.Table:
    """Return a partitioned table; every batch of rows becomes files of its own."""
    first = steps[0]
    assert isinstance(first, pa.Table)
    given = {**FILES_APART, "hoodie.write.table.version": version, **options}
    made = new_table(path, first.schema, given, ordering_field=None)
    for step in steps:
        opened = hudi.Table.open(str(path), {**FILES_APART, **options})
        if isinstance(step, pa.Table):
            opened.insert(step)
        else:
            step(opened)
    return hudi.Table.open(made.path, FILES_APART)


def in_city(city: str, *ids: int, **columns: Any) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), **columns})


def ranges(
    table: hudi.Table, partition: str = PARTITION_STATS
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return bounds, values and nulls by column and partition; of files, by column and rows."""
    found = {}
    for record in MetadataSnapshot.open(client_of(Path(table.path))).scan(partition):
        one = record.payload
        assert isinstance(one, ColumnRange)
        name = one.file_name if partition == PARTITION_STATS else str(one.value_count)
        found[one.column_name or "", name or ""] = (
            *(plain(bound, one.value_type) for bound in (one.min_value, one.max_value)),
            one.value_count,
            one.null_count,
        )
    return found


def plain(bound: Wrapped | None, value_type: ValueType | None) -> Any:
    return None if bound is None else unwrap(bound, value_type, pa.null())


def wrap(value: Scalar, kind: pa.DataType, has_value_types: bool) -> Wrapped:
    return BoundForm(kind, bound_type(kind) if has_value_types else None).wrap(value)


def unwrap(bound: Wrapped, value_type: ValueType | None, kind: pa.DataType) -> Scalar | None:
    stored = stored_kind(bound.wrapper, value_type, kind, PATH)
    return None if stored is None else unwrapped(bound.value, stored)


def wrappers(table: hudi.Table, column: str) -> set[str]:
    """Return the wrappers that the ranges of a column have in partitions."""
    scanned = MetadataSnapshot.open(client_of(Path(table.path))).scan(PARTITION_STATS)
    payloads = [one.payload for one in scanned if isinstance(one.payload, ColumnRange)]
    return {
        one.min_value.wrapper
        for one in payloads
        if one.column_name == column and one.min_value is not None
    }


def listed(table: hudi.Table) -> tuple[str, ...]:
    client = client_of(Path(table.path))
    return read_definitions(client.storage, client.config).columns(COLUMN_STATS)


def of_column(name: str) -> Callable[[Any], bool]:
    return lambda one: isinstance(one, ColumnRange) and one.column_name == name


def as_stated(kind: pa.DataType, low: Any, high: Any, values: int, nulls: int = 0) -> pa.Table:
    """Return a range in the form in which those of files are judged."""
    numbers = {"null_count": nulls, "value_count": values, "total_uncompressed_size": 1 << 20}
    columns = {name: pa.array([number]) for name, number in numbers.items()}
    return pa.table(
        {"minimum": pa.array([low], kind), "maximum": pa.array([high], kind), **columns}
    )


@pytest.mark.parametrize(
    ("kind", "low", "high", "values", "nulls", "expected"),
    [
        # a NaN in one row group of several: its bounds are 0.0 and 0.0, and hide a value of 100.0
        (pa.float64(), -1.0, 3.0, 600, 0, True),
        (pa.float64(), -1.0, 3.0, 100, 0, False),
        (pa.float64(), 1.0, 3.0, 600, 0, False),
        (pa.float64(), 0.0, 0.0, 3, 0, True),
        # long strings in one row group of several: it counts as nulls
        (pa.string(), "m000", "m006", 600, 100, True),
        (pa.string(), "m000", "m006", 600, 0, False),
        (pa.string(), "m000", "m006", 100, 50, False),
        # the greatest by UTF-16, which sorts U+1F600 before it
        (pa.string(), "a", "\uff5e", 600, 0, True),
        (pa.string(), "\U0001f600", "z", 600, 0, True),
        (pa.string(), "a", "\U0001f600", 100, 0, False),
        (pa.string(), "a", "\u00e9", 600, 0, False),
        # Java compares bytes with their signs
        (pa.binary(), b"\x80", b"\x7f", 600, 0, True),
        (pa.binary(), b"a", b"b", 100, 0, False),
        (pa.int64(), -1, 3, 600, 100, False),
    ],
)
def test_ranges_that_hudi_merges_from_row_groups_may_be_too_narrow(
    kind: pa.DataType, low: Any, high: Any, values: int, nulls: int, expected: bool
) -> None:
    stated = as_stated(kind, low, high, values, nulls)
    assert doubtful(stated, kind, of_files=True).tolist() == [expected]


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        (pa.binary(), b"\xfa\xdd8", b"*\r\xe3", True),
        (pa.string(), "a", "\uff5e", True),
        (pa.string(), "a", "z", False),
        (pa.float64(), -1.0, 3.0, False),
        (pa.int64(), -1, 3, False),
    ],
)
def test_ranges_of_logs_are_made_in_javas_order(
    kind: pa.DataType, low: Any, high: Any, expected: bool
) -> None:
    """Of two rows already; a value between the bounds in our order may lie outside of these."""
    stated, log, base = as_stated(kind, low, high, 2), np.array([True]), np.array([False])
    assert doubtful(stated, kind, of_files=True, are_logs=log).tolist() == [expected]
    assert doubtful(stated, kind, of_files=True, are_logs=base).tolist() == [False]


def test_a_bound_of_nan_bounds_nothing() -> None:
    """As parquet-mr writes them: the least value, and NaN for the greatest."""

    def chunk(low: float, high: float) -> Any:
        bounds = {"min_raw": low, "max_raw": high, "null_count": 0}
        flags = {"has_min_max": True, "has_null_count": True}
        sizes = {"total_compressed_size": 8, "total_uncompressed_size": 8}
        statistics = SimpleNamespace(**bounds, **flags)
        return SimpleNamespace(statistics=statistics, num_values=2, **sizes)

    def footer(*chunks: Any) -> Any:
        groups = [SimpleNamespace(column=lambda _, one=one: one) for one in chunks]
        return SimpleNamespace(num_row_groups=len(groups), row_group=groups.__getitem__)

    broken, whole = chunk(-1.0, math.nan), chunk(1.0, 3.0)
    for order in ((broken, whole), (whole, broken)):
        found = footer_statistics([("d", pa.field("d", pa.float64()))], footer(*order))["d"]
        assert (found.min_value, found.max_value, found.has_unbounded) == (None, None, True)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_have_ranges_over_the_files_that_have_values(
    tmp_path: Path, version: str
) -> None:
    made = table_of(
        tmp_path / "t",
        version,
        in_city("A", 1, 3, n=pa.array([1, 3], pa.int32()), f=pa.array([1.1, 2.0], pa.float32())),
        in_city("B", 2, n=pa.array([2], pa.int32()), f=pa.array([3.0], pa.float32())),
        lambda table: table.alter(add_columns={"late": pa.int64()}),
        in_city("A", 5, n=pa.array([2**40], pa.int64()), f=[1e100], late=[5]),
    )
    found = ranges(made)
    # as Hudi-Spark has it for the same history: files that lack a column are not counted
    assert found["late", "A"] == (5, 5, 1, 0)
    assert ("late", "B") not in found
    assert found["n", "A"] == (1, 2**40, 3, 0)
    # a float may be widened by way of its text, or as the number it is
    assert found["f", "A"][0] == 1.1
    assert found["f", "A"][1] == 1e100
    # Hudi-Spark does not widen what version 1 says
    assert (wrappers(made, "n") == {"LongWrapper"}) is (version == "8")
    assert made.validate().is_valid
    assert made.to_arrow(filter=[("late", "=", 5)])["id"].to_pylist() == [5]
    assert sorted(made.to_arrow(filter=[("n", ">", 1)])["id"].to_pylist()) == [2, 3, 5]


def test_a_file_without_rows_has_no_ranges(tmp_path: Path) -> None:
    made = table_of(tmp_path / "t", "9", in_city("A", 1), in_city("A", 2))
    made.delete(in_city("A", 2))
    # as Hudi-Spark has it; validation takes either
    assert {of for _, of in ranges(made, COLUMN_STATS)} == {"1"}
    assert ranges(made)["id", "A"] == (1, 1, 1, 0)
    assert made.validate().is_valid
    assert made.to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("version", VERSIONS)
def test_nan_hides_no_other_value(tmp_path: Path, version: str, kind: pa.DataType) -> None:
    nan = math.nan
    made = table_of(
        tmp_path / "t",
        version,
        in_city("A", 1, d=pa.array([nan], kind)),
        in_city("A", 2, d=pa.array([5.0], kind)),
        in_city("B", 3, 4, d=pa.array([nan, 3.0], kind)),
        in_city("C", 5, d=pa.array([-0.0], kind)),
        in_city("D", 6, 7, d=pa.array([None, nan], kind)),
    )
    found = ranges(made)
    assert found["d", "A"] == (-math.inf, math.inf, 2, 0)
    # Spark finds NaN by `d > 4` as well
    assert found["d", "B"] == (-math.inf, math.inf, 2, 0)
    assert found["d", "C"] == (0.0, 0.0, 1, 0)
    assert found["d", "D"] == (-math.inf, math.inf, 2, 1)
    for partition in (COLUMN_STATS, PARTITION_STATS):
        for low, high, values, nulls in ranges(made, partition).values():
            assert (low is None or high is None) is (values == nulls)
    assert made.validate().is_valid
    assert made.to_arrow(filter=[("d", "=", 5.0)])["id"].to_pylist() == [2]


def test_a_row_group_of_nan_alone_has_no_bounds(tmp_path: Path) -> None:
    """Readers who go by footers read it for any filter, and have to find its file."""
    values = pa.table({"d": [math.nan, math.nan, 1.0, 2.0]})
    pq.write_table(values, tmp_path / "file.parquet", row_group_size=2)
    footer = pq.read_metadata(tmp_path / "file.parquet")
    form = bound_form(pa.float64(), has_value_types=True)
    assert form is not None
    known = footer_statistics(leaves(values.schema), footer)["d"]
    assert (known.min_value, known.max_value) == (1.0, 2.0)
    low, high = wrapped_bounds(known, form)
    assert (plain(low, form.value_type), plain(high, form.value_type)) == (-math.inf, math.inf)


def test_decimals_that_version_8_cannot_hold_are_not_indexed(tmp_path: Path) -> None:
    wide, narrow = pa.decimal128(20, 4), pa.decimal128(30, 15)
    behind = pa.decimal128(20, 16)
    values = [Decimal("1.5")]
    made = table_of(
        tmp_path / "t",
        "8",
        in_city(
            "A",
            1,
            wide=pa.array(values, wide),
            narrow=pa.array(values, narrow),
            behind=pa.array(values, behind),
            grows=pa.array(values, pa.decimal128(5, 2)),
        ),
        in_city(
            "B", 2, narrow=pa.array(values, narrow), grows=pa.array(values, pa.decimal128(5, 2))
        )
        .append_column("wide", pa.array(values, wide))
        .append_column("behind", pa.array(values, behind)),
    )
    assert listed(made)[3:] == ("id", "city", "narrow", "grows")
    made.alter(promote={"grows": pa.decimal128(38, 10)})
    assert listed(made)[3:] == ("id", "city", "narrow")
    assert {column for column, _ in ranges(made)}.isdisjoint({"wide", "behind", "grows"})
    assert made.validate().is_valid
    assert sorted(made.to_arrow(filter=[("grows", ">", Decimal(1))])["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_of_type_on_demand_is_told_of_all_partitions(tmp_path: Path, version: str) -> None:
    made = table_of(
        tmp_path / "t",
        version,
        in_city("A", 1, n=pa.array([1], pa.int32()), k=pa.array([1], pa.int32())),
        in_city("B", 2, n=pa.array([2], pa.int32()), k=pa.array([2], pa.int32())),
        lambda table: table.alter(promote={"n": pa.int64(), "k": pa.float64()}),
    )
    assert wrappers(made, "n") == {"LongWrapper" if version == "8" else "IntWrapper"}
    assert wrappers(made, "k") == {"DoubleWrapper"}
    assert ranges(made)["k", "B"] == (2.0, 2.0, 1, 0)
    assert made.validate().is_valid


@pytest.mark.parametrize("version", VERSIONS)
def test_names_that_stood_for_other_columns(tmp_path: Path, version: str) -> None:
    """Readers that go by names see in old files what these have under a name."""
    made = table_of(
        tmp_path / "t",
        version,
        in_city("A", 1, text=["x"], same=[7], old=[10]),
        in_city("B", 2, text=["y"], same=[8], old=[20]),
        lambda table: table.alter(drop=["text", "same"], rename={"old": "new"}),
        lambda table: table.alter(add_columns={"text": pa.int64(), "same": pa.int64()}),
        in_city("A", 3, new=[30], text=[33], same=[9]),
    )
    found = ranges(made)
    # the bounds of one column say nothing of another one
    for name, partition, count in (("text", "B", 1), ("same", "A", 2), ("same", "B", 1)):
        low, high, *counts = found[name, partition]
        assert low < -(2**62) < 2**62 < high
        assert counts == [count, 0]
    assert found["new", "A"] == (30, 30, 1, 0)
    assert wrappers(made, "text") == {"LongWrapper"}
    assert made.validate().is_valid
    # this project finds columns by their ids, also where a partition's range is of some files only
    assert made.to_arrow(filter=[("new", "=", 10)])["id"].to_pylist() == [1]
    assert made.to_arrow(filter=[("new", "=", 20)])["id"].to_pylist() == [2]
    assert made.to_arrow(filter=[("same", "=", 7)])["id"].to_pylist() == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("value", "later"),
    [
        (pa.scalar("ü"), [pa.int32(), pa.string()]),
        (pa.scalar(5, pa.int32()), [pa.string(), pa.int32()]),
        (pa.scalar(Decimal("1.5"), pa.decimal128(20, 3)), [pa.int32()]),
    ],
    ids=["text", "number", "without ranges"],
)
def test_names_that_come_back_have_ranges_that_hold_for_all_files(
    tmp_path: Path, version: str, value: pa.Scalar, later: list[pa.DataType]
) -> None:
    made = table_of(tmp_path / "t", version, in_city("A", 1, s=pa.array([value])))
    for kind in later:
        hudi.Table.open(made.path, FILES_APART).alter(drop="s")
        hudi.Table.open(made.path, FILES_APART).alter(add_columns={"s": kind})
    assert hudi.Table.open(made.path).validate().differences == ()
    if pa.types.is_decimal(value.type) and version == "8":
        assert "s" not in listed(made)
    else:
        low, high, *_ = ranges(made, COLUMN_STATS)["s", "1"]
        now = value.as_py() if later[-1].equals(value.type) else 2**30
        assert low < now < high


def test_times_without_a_zone_are_called_as_the_schema_calls_them(tmp_path: Path) -> None:
    def times(*years: int) -> pa.Array:
        days = [dt.date(year, 1, 1) for year in years]
        return pa.array(days, pa.date32()).cast(pa.timestamp("us"))

    made = table_of(tmp_path / "t", "9", in_city("A", 1, t=times(2024)))
    path = Path(made.path)
    record = a_record(path, PARTITION_STATS, of_column("t"))
    assert isinstance(record.payload, ColumnRange)
    # Hudi-Spark reads `timestamp-micros` as a moment, whatever else the schema says of it
    assert record.payload.value_type == ValueType(16)
    # what was said of it before is the same, and becomes what is said now
    for partition in (COLUMN_STATS, PARTITION_STATS):
        say(path, partition, ("t", 1, "A"), value_type=ValueType(19))
    assert made.validate().is_valid
    made.insert(in_city("A", 2, t=times(2025)))
    record = a_record(path, PARTITION_STATS, of_column("t"))
    assert isinstance(record.payload, ColumnRange)
    assert record.payload.value_type == ValueType(16)
    assert ranges(made)["t", "A"][2:] == (2, 0)


@pytest.mark.parametrize("how", ["column.list", "max.columns.to.index"])
def test_a_column_that_options_name_gets_ranges_of_all_files(tmp_path: Path, how: str) -> None:
    prefix = "hoodie.metadata.index.column.stats."
    made = table_of(
        tmp_path / "t",
        "8",
        in_city("A", 1, x=[1], y=[1]),
        in_city("B", 2, x=[2], y=[2]),
        **{f"{prefix}column.list": "x"},
    )
    assert listed(made)[3:] == ("x",)
    more = {**FILES_APART, f"{prefix}{how}": "y" if how == "column.list" else "4"}
    hudi.Table.open(made.path, more).insert(in_city("B", 3, x=[3], y=[3]))
    assert {*listed(made)[3:]} == ({"x", "y"} if how == "column.list" else {"id", "city", "x", "y"})
    found = ranges(made)
    assert (found["y", "A"], found["y", "B"]) == ((1, 1, 1, 0), (2, 3, 2, 0))
    assert (found["x", "A"], found["x", "B"]) == ((1, 1, 1, 0), (2, 3, 2, 0))
    # who asks for nothing keeps what is kept
    hudi.Table.open(made.path, FILES_APART).insert(in_city("A", 4, x=[4], y=[4]))
    assert ranges(made)["y", "A"] == (1, 4, 2, 0)
    assert made.validate().is_valid


def test_ranges_of_partitions_go_with_those_of_files(tmp_path: Path) -> None:
    """They are made from these, and would go stale without them."""
    made = table_of(tmp_path / "t", "8", in_city("A", 1, x=[1]), in_city("B", 2, x=[2]))
    operator(made.path).drop(COLUMN_STATS)
    kept = StoredPartitions.of(client_of(Path(made.path)).config).complete
    assert {COLUMN_STATS, PARTITION_STATS}.isdisjoint(kept)
    with pytest.raises(TableServiceError, match="made from column_stats"):
        operator(made.path).index(PARTITION_STATS)
    without = {**FILES_APART, "hoodie.metadata.index.column.stats.enable": "false"}
    hudi.Table.open(made.path, without).insert(in_city("A", 3, x=[30]))
    found = hudi.Table.open(made.path).to_arrow(filter=[("x", "=", 30)])
    assert found["id"].to_pylist() == [3]


# --- what an earlier release, or somebody else, has left
def say(path: Path, partition: str, of: tuple[str, int, str], **changes: Any) -> None:
    """Change what is said of a column in a partition, or in its one file of so many rows."""
    column, values, name = of

    def fits(one: Any) -> bool:
        is_there = (
            one.file_name == name if partition == PARTITION_STATS else one.value_count == values
        )
        return bool(one.column_name == column and is_there)

    record = a_record(path, partition, fits)
    assert isinstance(record.payload, ColumnRange)
    plant(path, partition, replace(record, payload=replace(record.payload, **changes)))


LEFT: dict[str, Callable[[ColumnRange], ColumnRange]] = {
    "missing": lambda one: replace(one, is_deleted=True),
    "without bounds": lambda one: replace(one, min_value=None, max_value=None),
    "of nulls alone": lambda one: replace(
        one, min_value=None, max_value=None, null_count=one.value_count
    ),
    "too narrow": lambda one: replace(one, max_value=one.min_value),
}


@pytest.mark.parametrize("damage", LEFT)
def test_what_would_mislead_others_is_found_and_repaired(tmp_path: Path, damage: str) -> None:
    made = table_of(tmp_path / "t", "9", in_city("A", 1, 2, x=[1, 2]), in_city("B", 3, x=[3]))
    record = a_record(
        Path(made.path), PARTITION_STATS, lambda one: (one.column_name, one.file_name) == ("x", "A")
    )
    assert isinstance(record.payload, ColumnRange)
    wrong = LEFT[damage](record.payload)
    plant(Path(made.path), PARTITION_STATS, replace(record, payload=wrong))
    [found] = hudi.Table.open(made.path).validate().differences
    assert "column x of A" in str(found)
    assert hudi.Table.open(made.path).repair().left == ()
    assert ranges(made)["x", "A"] == (1, 2, 2, 0)


def of_version_1(table: hudi.Table) -> None:
    """Have the index as Hudi leaves it that raises a table to version 9."""
    client = client_of(Path(table.path))
    known = read_definitions(client.storage, client.config)
    changed = {name: {**one, "version": "V1"} for name, one in known.raw.items()}
    put_definitions(client.storage, replace(known, raw=changed))


def typed(table: hudi.Table) -> dict[str, int]:
    """Count the ranges that record the type of their bounds, by partition of the metadata table."""
    snapshot = MetadataSnapshot.open(client_of(Path(table.path)))
    return {
        partition: sum(
            isinstance(one.payload, ColumnRange) and one.payload.value_type is not None
            for one in snapshot.scan(partition)
        )
        for partition in {COLUMN_STATS, PARTITION_STATS}.intersection(snapshot.partitions)
    }


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "one folder"])
@pytest.mark.parametrize("healed_by", ["a write", "repair"])
def test_ranges_of_another_version_than_their_index_are_found_and_healed(
    tmp_path: Path, healed_by: str, partitioned: bool
) -> None:
    """Hudi merges none of one version with those of the other."""
    days = {"day": pa.array([dt.date(2024, 2, 29)], pa.date32()), "d": [Decimal("1.50")]}
    made = hudi.Table.create(
        str(tmp_path / "t"),
        in_city("A", 1, **days).schema,
        record_key="id",
        partition_by="city" if partitioned else (),
        options={**FILES_APART, "hoodie.write.table.version": "9"},
    )
    for city, number in (("A", 1), ("B", 2), ("C", 3)):
        made.insert(in_city(city, number, **days))
    assert typed(made)[COLUMN_STATS] > 0
    of_version_1(made)
    found = hudi.Table.open(made.path).validate().differences
    assert len(found) == sum(typed(made).values())
    assert "with its type" in str(found[0])
    if healed_by == "repair":
        assert hudi.Table.open(made.path).repair().left == ()
    else:
        hudi.Table.open(made.path, FILES_APART).upsert(in_city("A", 1, **days))
    table = hudi.Table.open(made.path, FILES_APART)
    assert sum(typed(table).values()) == 0
    assert table.validate().differences == ()
    # and so it stays
    table.upsert(in_city("B", 2, **days))
    table.insert(in_city("D", 4, **days))
    assert sum(typed(table).values()) == 0
    assert table.validate().differences == ()
    assert table.to_arrow(filter=[("d", "=", Decimal("1.50"))]).num_rows == 4


def test_a_file_without_bounds_is_found(tmp_path: Path) -> None:
    made = table_of(tmp_path / "t", "9", in_city("A", 1, x=[math.nan]))
    say(Path(made.path), COLUMN_STATS, ("x", 1, "A"), min_value=None, max_value=None)
    assert not made.validate().is_valid
    # the next write to the partition does not take it over
    hudi.Table.open(made.path, FILES_APART).insert(in_city("A", 2, x=[5.0]))
    assert ranges(made)["x", "A"] == (-math.inf, math.inf, 2, 0)


def test_a_list_that_names_too_much_is_found_and_mended_by_a_write(tmp_path: Path) -> None:
    values = pa.array([Decimal("1.5")], pa.decimal128(20, 4))
    made = table_of(tmp_path / "t", "8", in_city("A", 1, wide=values), in_city("B", 2, wide=values))
    path = Path(made.path)
    record = a_record(path, PARTITION_STATS, of_column("id"))
    assert isinstance(record.payload, ColumnRange)
    client = client_of(path)
    known = read_definitions(client.storage, client.config)
    names = (*known.columns(COLUMN_STATS), "wide")
    put_definitions(client.storage, with_index(known, client.config, COLUMN_STATS, names))
    bare = replace(record.payload, column_name="wide", min_value=None, max_value=None)
    key = partition_stats_key("wide", PartitionPath(record.payload.file_name or ""))
    plant(path, PARTITION_STATS, replace(record, key=key, payload=bare))
    assert "column wide" in str(made.validate().differences[0])
    hudi.Table.open(made.path, FILES_APART).insert(in_city("A", 3, wide=values))
    assert "wide" not in listed(made)
    assert "wide" not in {column for column, _ in ranges(made)}
    assert made.validate().is_valid


# --- what Hudi's own writers get wrong, as measured with Hudi-Spark 1.2.0
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_that_hudis_own_ranges_leave_out(tmp_path: Path, version: str) -> None:
    """A file with a NaN gets bounds of 0.0, and one with long texts is said to have nulls alone."""
    long = "z" * 3000
    made = table_of(
        tmp_path / "t",
        version,
        in_city("A", 1, 2, d=[math.nan, 3.0], s=[long, long]),
        in_city("B", 3, d=[7.0], s=["b"]),
        in_city("B", 4, d=[100.0], s=[long]),
    )
    path, zero = Path(made.path), Wrapped("DoubleWrapper", 0.0)
    first, seven = Wrapped("StringWrapper", "b"), Wrapped("DoubleWrapper", 7.0)
    nulls = {"min_value": None, "max_value": None, "null_count": 2}
    for partition in (COLUMN_STATS, PARTITION_STATS):
        say(path, partition, ("d", 2, "A"), min_value=zero, max_value=zero)
        say(path, partition, ("s", 2, "A"), **nulls)
    # a partition has what is made of those of its files
    say(path, PARTITION_STATS, ("d", 2, "B"), min_value=zero, max_value=seven)
    say(path, PARTITION_STATS, ("s", 2, "B"), min_value=first, max_value=first, null_count=1)
    table = hudi.Table.open(made.path)
    assert table.to_arrow(filter=[("d", "=", 3.0)])["id"].to_pylist() == [2]
    assert table.to_arrow(filter=[("d", "=", 100.0)])["id"].to_pylist() == [4]
    assert sorted(table.to_arrow(filter=[("s", ">", "x")])["id"].to_pylist()) == [1, 2, 4]
    # what a write makes of them holds for all that they are of
    made.insert(in_city("A", 5, d=[1.0], s=["c"]))
    assert ranges(made)["d", "A"] == (-math.inf, math.inf, 3, 0)


# --- bounds of columns in the metadata table, for every type and both versions
PATH = "/table/.hoodie/metadata/column_stats/f.hfile"
UTC = "UTC"
Case = tuple[pa.DataType, Scalar, ValueType, Wrapped, Wrapped]


def alike(kind: pa.DataType, value: Any, number: int, wrapper: str, wrapped: Any = None) -> Case:
    """Case of a type whose bounds are wrapped in version 2 as in version 1."""
    both = Wrapped(wrapper, value if wrapped is None else wrapped)
    return kind, value, ValueType(number), both, both


CASES: list[Case] = [
    # type, internal form, type of version 2, wrapped in version 1, wrapped in version 2
    alike(pa.bool_(), True, 2, "BooleanWrapper"),
    alike(pa.int8(), -3, 3, "IntWrapper"),
    alike(pa.int32(), 7, 3, "IntWrapper"),
    alike(pa.int64(), 7, 4, "LongWrapper"),
    alike(pa.float32(), 0.5, 5, "FloatWrapper"),
    alike(pa.float64(), 0.1, 6, "DoubleWrapper"),
    alike(pa.string(), "é", 7, "StringWrapper"),
    alike(pa.binary(), b"\0\1", 8, "BytesWrapper"),
    alike(pa.binary(2), b"ab", 9, "BytesWrapper"),
    (
        pa.decimal128(15, 2),
        Decimal("-1.28"),
        ValueType(10, "15,2"),
        Wrapped("DecimalWrapper", (-128 * 10**13).to_bytes(7, "big", signed=True)),
        Wrapped("BytesWrapper", b"\x80"),
    ),
    (
        pa.decimal128(10, 0),
        Decimal(128),
        ValueType(10, "10,0"),
        Wrapped("DecimalWrapper", (128 * 10**15).to_bytes(8, "big", signed=True)),
        Wrapped("BytesWrapper", b"\0\x80"),
    ),
    (pa.date32(), 9, ValueType(12), Wrapped("DateWrapper", 9), Wrapped("IntWrapper", 9)),
    alike(pa.time32("ms"), 5000, 13, "IntWrapper", 5),
    alike(pa.time64("us"), 5001, 14, "LongWrapper"),
    alike(pa.timestamp("ms", UTC), -7000, 15, "LongWrapper", -7),
    alike(pa.timestamp("us", UTC), 77, 16, "LongWrapper"),
    alike(pa.timestamp("ms"), 7000, 18, "LongWrapper", 7),
    alike(pa.timestamp("us"), 77, 19, "LongWrapper"),
]


@pytest.mark.parametrize(("kind", "value", "value_type", "first", "second"), CASES)
def test_bounds_of_every_type(
    kind: pa.DataType, value: Scalar, value_type: ValueType, first: Wrapped, second: Wrapped
) -> None:
    assert bound_type(kind) == value_type
    assert wrap(value, kind, has_value_types=False) == first
    assert wrap(value, kind, has_value_types=True) == second
    assert unwrap(first, None, kind) == value
    assert unwrap(first, ValueType(0), kind) == value
    # version 2 says its type, whatever the column has become
    assert unwrap(second, value_type, pa.null()) == value


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.struct([]), pa.null(), pa.uint8()])
def test_other_types_have_no_bounds(kind: pa.DataType) -> None:
    assert bound_type(kind) is None
    assert bound_form(kind, has_value_types=True) is None


@given(st.decimals(-(10**15) + 1, 10**15 - 1, places=5), st.booleans())
def test_decimals(value: Decimal, has_value_types: bool) -> None:
    kind = pa.decimal128(20, 5)
    wrapped = wrap(value, kind, has_value_types)
    assert unwrap(wrapped, bound_type(kind) if has_value_types else None, kind) == value


@pytest.mark.parametrize("typed", [False, True], ids=["v1", "v2"])
def test_bounds_of_any_decimals_are_of_their_type(typed: bool) -> None:
    """Also those of more than 28 digits, to which Python's decimals round."""
    kind = pa.decimal128(30, 15) if not typed else pa.decimal128(38, 5)
    form = bound_form(kind, has_value_types=typed)
    assert form is not None
    low, high = wrapped_bounds(ColumnStats(None, None, 3, 1, 0, 1, 1), form)
    assert low is not None
    assert high is not None
    greatest = 10**kind.precision - 1
    assert [int.from_bytes(one.value, "big", signed=True) for one in (low, high)] == [
        -greatest,
        greatest,
    ]


def test_nanoseconds_are_bounds_where_they_are_whole_microseconds() -> None:
    kind = pa.timestamp("ns", UTC)
    wrapped = wrap(7, kind, has_value_types=True)
    assert wrapped == Wrapped("LongWrapper", 7000)
    assert unwrap(wrapped, ValueType(17), kind) == 7
    assert unwrap(Wrapped("LongWrapper", 7001), ValueType(17), kind) is None
    assert unwrap(wrapped, None, kind) == 7


@pytest.mark.parametrize(
    ("bound", "value_type"),
    [
        (Wrapped("LongWrapper", 1), ValueType(99)),
        (Wrapped("LongWrapper", 1), ValueType(BoundType.NULL)),
        (Wrapped(ARRAY, ()), None),
    ],
)
def test_nothing_is_concluded_from_what_is_not_known(
    bound: Wrapped, value_type: ValueType | None
) -> None:
    assert unwrap(bound, value_type, pa.int64()) is None


NO_DECIMAL = "not precision and scale"


@pytest.mark.parametrize(
    ("bound", "value_type", "reason"),
    [
        (Wrapped("StringWrapper", "1"), ValueType(BoundType.LONG), "LONG is a StringWrapper"),
        (Wrapped("LongWrapper", 1), ValueType(BoundType.DATE), "DATE is a LongWrapper"),
        (Wrapped("DecimalWrapper", b"\1"), ValueType(10, "5,2"), "DECIMAL is a DecimalWrapper"),
        (Wrapped("BytesWrapper", b"\1"), ValueType(10), f"None is {NO_DECIMAL}"),
        (Wrapped("BytesWrapper", b"\1"), ValueType(10, "many"), f"'many' is {NO_DECIMAL}"),
        (Wrapped("BytesWrapper", b"\1"), ValueType(10, "5"), NO_DECIMAL),
        (Wrapped("BytesWrapper", b"\1"), ValueType(10, "5,-2"), NO_DECIMAL),
        (Wrapped("BytesWrapper", b"\1"), ValueType(10, "5,999999999"), NO_DECIMAL),
    ],
)
def test_contradictions_are_damage(bound: Wrapped, value_type: ValueType, reason: str) -> None:
    table = many_table_of((bound, value_type))
    for read in (
        lambda: unwrap(bound, value_type, pa.int64()),
        lambda: bound_arrays(table, "min", pa.int64(), PATH),
    ):
        with pytest.raises(CorruptMetadataError, match=f"{reason}.*hudi table repair --metadata"):
            read()


@pytest.mark.parametrize("said", [None, ValueType(0)])
def test_times_of_version_1_stay_bounds_in_version_2(said: ValueType | None) -> None:
    """As Hudi's own upgrade of a table leaves them: numbers that the column's type explains."""
    form = bound_form(pa.timestamp("us", "UTC"), has_value_types=True)
    assert form is not None
    low, high = Wrapped("LongWrapper", 5), Wrapped("LongWrapper", 7)
    found = in_form(ColumnRange("f.parquet", "at", low, high, 2, 0, value_type=said), form)
    assert (found.min_value, found.max_value, found.value_type) == (low, high, form.value_type)


# --- bounds of many statistics at once: the same as one by one, and nothing from the wrong
KINDS: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int32(): [-(2**31), 0, 2**31 - 1],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.float32(): [-1.5, 0.0, float("inf")],
    pa.float64(): [-1e300, 0.1, 1e300],
    pa.string(): ["", "é", "x" * 5000],
    pa.binary(): [b"", b"\xff\xfe"],
    pa.decimal128(9, 2): [Decimal("-9999999.99"), Decimal("0.10"), Decimal("12.30")],
    pa.decimal128(38, 0): [Decimal(-(10**37)), Decimal(10**38 - 1)],
    pa.decimal128(20, 10): [Decimal("-0.0000000001"), Decimal("1234567890.0123456789")],
    pa.date32(): [-719162, 0, 2932896],
    pa.timestamp("us", "UTC"): [-1, 0, 10**15],
    pa.timestamp("us"): [-1, 0, 10**15],
    pa.timestamp("ms"): [-1000, 0, 10**15],
    pa.time64("us"): [0, 86_399_999_999],
    pa.time32("ms"): [0, 86_399_999_000],
}


def internal(value: pa.Scalar) -> Any:
    """Return a value in the internal form of bounds."""
    kind = value.type
    if pa.types.is_date(kind):
        return value.cast(pa.int32()).as_py()
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        raw = value.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).as_py()
        return raw * (1000 if kind.unit == "ms" else 1)
    return value.as_py()


def many_table_of(*bounds: tuple[Wrapped | None, ValueType | None]) -> pa.Table:
    return as_table(
        [ColumnRange("f", "c", bound, bound, 2, 1, value_type=kind) for bound, kind in bounds]
    )


@pytest.mark.parametrize("typed", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_many_bounds_are_what_each_is(kind: pa.DataType, typed: bool) -> None:
    form = bound_form(kind, has_value_types=typed)
    if form is None:  # version 1 has 30 digits for a decimal
        assert (kind, typed) == (pa.decimal128(38, 0), False)
        return
    value_type = form.value_type
    wrapped = [form.wrap(value) for value in KINDS[kind]]
    table = many_table_of(*[(bound, value_type) for bound in wrapped], (None, value_type))
    one_by_one = [unwrap(bound, value_type, kind) for bound in wrapped]
    assert one_by_one == KINDS[kind]
    for side in ("min", "max"):
        found = bound_arrays(table, side, kind, "f")
        assert found.type == kind
        assert not found[-1].is_valid
        many = [internal(value) if value.is_valid else None for value in found][:-1]
        assert many == one_by_one


def test_bounds_of_another_family_tell_nothing() -> None:
    texts = (Wrapped("StringWrapper", "x"), ValueType(7))
    numbers = (Wrapped("LongWrapper", 5), ValueType(4))
    for first, second in ((texts, numbers), ((texts[0], None), (numbers[0], None))):
        table = many_table_of(first, second, first)
        assert bound_arrays(table, "min", pa.string(), "f").to_pylist() == ["x", None, "x"]
        assert bound_arrays(table, "min", pa.int64(), "f").to_pylist() == [None, 5, None]
        assert bound_arrays(table, "min", pa.bool_(), "f").to_pylist() == [None, None, None]
        assert bound_arrays(table, "min", pa.date32(), "f").to_pylist() == [None, None, None]


@pytest.mark.parametrize("wrapper", SCALARS)
def test_no_wrapper_is_forgotten(wrapper: str) -> None:
    value = {"StringWrapper": "5", "BytesWrapper": b"5", "DecimalWrapper": b"5"}.get(wrapper, 5)
    table = many_table_of((Wrapped(wrapper, value), None))
    held = [form for form in ("int", "float", "bytes") if table[f"max_{form}"][0].is_valid]
    assert len(held) == 1


def test_narrower_numbers_fit_wider_columns() -> None:
    ints = (Wrapped("IntWrapper", -7), ValueType(3))
    floats = (Wrapped("FloatWrapper", 0.1), ValueType(5))
    cents = (Wrapped("BytesWrapper", b"\x04\xd2"), ValueType(10, "5,2"))
    table = many_table_of(ints, floats, cents)
    assert bound_arrays(table, "min", pa.int64(), "f").to_pylist() == [-7, None, None]
    assert bound_arrays(table, "min", pa.float64(), "f").to_pylist() == [-7.0, 0.1, None]
    kind = pa.decimal128(12, 4)
    found = bound_arrays(table, "min", kind, "f").to_pylist()
    assert found == [Decimal(-7), None, Decimal("12.34")]
    # a bound that the type would round is none
    assert bound_arrays(table, "min", pa.decimal128(5, 1), "f").to_pylist()[2] is None
    assert bound_arrays(table, "min", pa.decimal128(3, 2), "f").to_pylist()[2] is None


def test_forms_of_real_and_of_odd_tables() -> None:
    nan = (Wrapped("DoubleWrapper", float("nan")), ValueType(6))
    assert bound_arrays(many_table_of(nan), "max", pa.float64(), "f").to_pylist() == [None]
    for wrapper in ("DateWrapper", "LocalDateWrapper"):
        day = many_table_of((Wrapped(wrapper, 3), None))
        assert bound_arrays(day, "max", pa.date32(), "f").to_pylist() == [date(1970, 1, 4)]
    moment = (Wrapped("TimestampMicrosWrapper", 1_000_000), None)
    kind = pa.timestamp("us")
    assert bound_arrays(many_table_of(moment), "max", kind, "f").to_pylist() == [
        datetime.fromisoformat("1970-01-01T00:00:01")
    ]
    later = (Wrapped("LongWrapper", 5), ValueType(99))
    assert bound_arrays(many_table_of(later), "max", pa.int64(), "f").to_pylist() == [None]
    huge = (Wrapped("BytesWrapper", b"\x01" * 20), ValueType(10, "38,2"))
    assert bound_arrays(many_table_of(huge), "max", pa.decimal128(38, 2), "f").to_pylist() == [None]


def test_texts_that_are_not_utf8_are_damage() -> None:
    table = many_table_of((Wrapped("StringWrapper", "x"), ValueType(7)))
    place = table.schema.get_field_index("min_bytes")
    table = table.set_column(place, "min_bytes", pa.array([b"\xff"], pa.binary()))
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata"):
        bound_arrays(table, "min", pa.string(), "f")


# --- column statistics as an Arrow table: what the records say, one by one
WHOLE = st.integers(-(2**31), 2**31 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
bounds = st.one_of(
    st.none(),
    st.booleans().map(lambda value: Wrapped("BooleanWrapper", value)),
    WHOLE.map(lambda value: Wrapped("IntWrapper", value)),
    WHOLE.map(lambda value: Wrapped("LongWrapper", value * 2**20)),
    WHOLE.map(lambda value: Wrapped("DateWrapper", value)),
    WHOLE.map(lambda value: Wrapped("TimestampMicrosWrapper", value)),
    FLOAT.map(lambda value: Wrapped("FloatWrapper", value)),
    FLOAT.map(lambda value: Wrapped("DoubleWrapper", value)),
    st.text(max_size=9).map(lambda value: Wrapped("StringWrapper", value)),
    st.binary(max_size=9).map(lambda value: Wrapped("BytesWrapper", value)),
    st.binary(min_size=1, max_size=9).map(lambda value: Wrapped("DecimalWrapper", value)),
    st.just(Wrapped(ARRAY, (Wrapped("IntWrapper", 1),))),
)
counts = st.none() | WHOLE
stored_ranges = st.builds(
    ColumnRange,
    st.none() | st.text(max_size=9),
    st.none() | st.text(max_size=9),
    bounds,
    bounds,
    counts,
    counts,
    counts,
    counts,
    st.booleans(),
    st.booleans(),
    st.none() | st.builds(ValueType, WHOLE, st.none() | st.text(max_size=5)),
)


def expected(key: str, value: ColumnRange) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": key,
        "file_name": value.file_name,
        "column_name": value.column_name,
        "value_count": value.value_count,
        "null_count": value.null_count,
        "total_size": value.total_size,
        "total_uncompressed_size": value.total_uncompressed_size,
        "is_deleted": value.is_deleted,
        "is_tight_bound": value.is_tight_bound,
        "type_ordinal": value.value_type and value.value_type.ordinal,
        "type_info": value.value_type and value.value_type.info,
    }
    for side, bound in (("min", value.min_value), ("max", value.max_value)):
        forms: dict[str, Any] = dict.fromkeys(["int", "float", "bytes"])
        wrapper = None
        if bound is not None and bound.wrapper != ARRAY:
            wrapper, content = bound
            if isinstance(content, int):
                forms["int"] = int(content)
            elif isinstance(content, float):
                forms["float"] = content
            else:
                forms["bytes"] = content.encode() if isinstance(content, str) else content
        row[f"{side}_wrapper"] = wrapper
        row |= {f"{side}_{form}": content for form, content in forms.items()}
    return row


@given(st.lists(stored_ranges, max_size=20), st.booleans())
def test_the_table_is_what_the_records_say(values: list[ColumnRange], has_deleted: bool) -> None:
    encoder = RecordEncoder()
    entries = [
        encoder.encode(MetadataRecord(f"k{number}", RecordType.COLUMN_STATS, value))
        for number, value in enumerate(values)
    ]
    rows = [expected(f"k{number}", value) for number, value in enumerate(values)]
    if has_deleted:
        entries.insert(0, (b"gone", b""))
        row: dict[str, Any] = dict.fromkeys(expected("gone", ColumnRange(None, None)))
        rows.insert(0, {**row, "key": "gone", "is_deleted": True})
    assert decode_ranges(entries, encoder.schema, PATH).to_pylist() == rows


def test_schemas_without_types_of_bounds_have_the_same_columns() -> None:
    """Hudi 1.0 has neither these nor bounds that are arrays."""
    encoder = RecordEncoder()
    old = json.loads(encoder.schema)
    stats = next(one for one in old["fields"] if one["name"] == "ColumnStatsMetadata")["type"][1]
    assert stats["fields"].pop()["name"] == "valueType"
    for bound in stats["fields"][2:4]:
        bound["type"].pop()
    record = MetadataRecord("k", RecordType.COLUMN_STATS, ColumnRange("f", "c"))
    key, value = encoder.encode(record)
    # the type is the last of the statistics, and two kinds of records follow them, all null
    assert value.endswith(b"\0\0\0")
    tables = [
        decode_ranges([(key, bytes_)], json.dumps(schema), PATH)
        for schema, bytes_ in ((old, value[:-1]), (json.loads(encoder.schema), value))
    ]
    assert tables[0] == tables[1]
    assert decode_ranges([], json.dumps(old), PATH).schema == tables[0].schema


def test_records_of_another_kind_are_damage() -> None:
    encoder = RecordEncoder()
    entry = encoder.encode(MetadataRecord("p", RecordType.FILES, FileList({})))
    with pytest.raises(CorruptMetadataError, match="no column statistics") as caught:
        decode_ranges([entry], encoder.schema, PATH)
    assert (caught.value.path, caught.value.hint) == (PATH, REBUILD)


def test_keys_and_schemas_are_checked() -> None:
    encoder = RecordEncoder()
    record = MetadataRecord("k", RecordType.COLUMN_STATS, ColumnRange("f", "c"))
    _, value = encoder.encode(record)
    with pytest.raises(CorruptMetadataError, match="not UTF-8"):
        decode_ranges([(b"\xff", value)], encoder.schema, PATH)
    schema = encoder.schema.replace('"isDeleted","type":"boolean"', '"isDeleted","type":"string"')
    with pytest.raises(CorruptMetadataError, match="its schema is not right"):
        decode_ranges([(b"k", value)], schema, PATH)


# --- decoded statistics are kept for the next query, within bounds, and never for another file
OPTIONS = {
    "hoodie.metadata.enable": "true",
    # so that the ranges of all partitions' files are asked for
    "hoodie.metadata.index.partition.stats.enable": "false",
}
MEASURED = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])


def cached_table_of(rows: int) -> pa.Table:
    return pa.table({"x": pa.array(range(rows), pa.int64())})


def test_an_entry_is_decoded_once() -> None:
    cache, decoded = RangeCache(), []

    def decode() -> pa.Table:
        decoded.append(1)
        return cached_table_of(3)

    assert not cache.holds("a")
    assert cache.get("a", decode) is cache.get("a", decode)
    assert cache.holds("a")
    assert decoded == [1]


def test_what_was_not_used_for_longest_goes() -> None:
    cache = RangeCache(max_bytes=2 * cached_table_of(100).nbytes)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda: cached_table_of(100))
    assert [key for key in "abc" if cache.holds(key)] == ["a", "c"]
    assert cache.get("huge", lambda: cached_table_of(10_000)).num_rows == 10_000
    assert not cache.holds("huge")


def write(path: Path, first: int, partitions: int = 40) -> hudi.Table:
    """Make a table whose metadata table is compacted: many partitions, twelve writes."""
    table = new_table(path, MEASURED, OPTIONS, partition_by="p")
    rows = range(partitions)
    data = {"id": [*rows], "p": [f"p{n}" for n in rows], "v": [first + n for n in rows]}
    table.insert(pa.table(data, schema=MEASURED))
    for _ in range(11):
        table.upsert(pa.table({"id": [0], "p": ["p0"], "v": [first]}, schema=MEASURED))
    return hudi.Table.open(str(path), OPTIONS)


def found(table: hudi.Table, value: int) -> list[int]:
    ids: list[int] = table.to_arrow(filter=[("v", "=", value)])["id"].to_pylist()
    return ids


def test_a_table_made_anew_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RangeCache()
    monkeypatch.setattr(column_ranges, "SHARED", cache)
    first = write(tmp_path / "t", 1000)
    assert list((tmp_path / "t/.hoodie/metadata/column_stats").glob("*.hfile"))
    assert found(first, 1005) == found(first, 1005) == [5]
    assert cache._tables
    shutil.rmtree(tmp_path / "t")
    second = write(tmp_path / "t", 2000)
    assert found(second, 2005) == [5]
    assert found(second, 1005) == []
    # what is written later is in the log, and comes first
    second.upsert(pa.table({"id": [5], "p": ["p5"], "v": [1005]}, schema=MEASURED))
    assert found(hudi.Table.open(second.path, OPTIONS), 1005) == [5]
    assert SHARED is not cache
