"""Ranges of partitions equal those of all their files, after any writes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

import hudi_core as hudi
from hudi_core.avro.wrappers import Wrapped
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.log.records import ColumnRange
from hudi_core.metadata.partition_types import COLUMN_STATS
from hudi_core.metadata.partitions import range_changes as touched_ranges
from hudi_core.metadata.partitions.column_stats import PartitionStats
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.statistics.bound_forms import BoundForm, bound_form
from hudi_core.metadata.statistics.column_records import (
    file_ranges,
    may_be_narrow,
    merged_range,
    updated_range,
)
from hudi_core.model.stats import ColumnStats, Scalar
from tests.property.histories import Row, examples
from tests.property.test_metadata_model import client_of, metadata_table
from tests.property.test_table_model import MODEL_COLUMNS
from tests.samples import IS_WHOLE

KINDS = (
    *(pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.decimal128(18, 3)),
    *(pa.decimal128(8, 2), pa.date32(), pa.timestamp("us", "UTC")),
)
WIDER = {pa.int32(): pa.int64()}


def value_of(kind: pa.DataType, number: int) -> Scalar:
    """Few different values, so that files share bounds."""
    if kind == pa.string():
        return ("", "a", "ab", "b", "\ue000", "\U00010000")[number]
    if kind == pa.binary():
        return (b"", b"\x00", b"a", b"\x7f", b"\x80", b"\xff")[number]
    if pa.types.is_decimal(kind):
        return Decimal(number - 3) / 2
    return float(number - 3) if kind == pa.float64() else number - 3


@st.composite
def stats_of(draw: st.DrawFn, kind: pa.DataType) -> ColumnStats:
    values = draw(st.integers(1, 3))
    nulls = draw(st.integers(0, values))
    some = st.integers(0, 5)
    low, high = sorted((draw(some), draw(some))) if nulls < values else (None, None)
    return ColumnStats(
        value_count=values,
        null_count=nulls,
        nan_count=0,
        compressed_size=draw(st.integers(0, 9)),
        uncompressed_size=draw(st.integers(0, 9)),
        min_value=None if low is None else value_of(kind, low),
        max_value=None if high is None else value_of(kind, high),
        has_unbounded=kind == pa.float64() and nulls < values and draw(st.integers(0, 4)) == 0,
    )


def range_of(stats: ColumnStats, form: BoundForm) -> ColumnRange | None:
    return file_ranges("name", {"x": stats}, {"x": form}).get("x")


def form_of(kind: pa.DataType, has_value_types: bool) -> BoundForm:
    form = bound_form(kind, has_value_types=has_value_types)
    assert form is not None
    return form


def is_held(bound: str, whole: ColumnRange, files: list[ColumnRange]) -> bool:
    value = getattr(whole, bound)
    return value is not None and any(getattr(one, bound) == value for one in files)


@given(data=st.data(), kind=st.sampled_from(KINDS), has_value_types=st.booleans())
@settings(max_examples=300 if IS_WHOLE else 120, deadline=None)
def test_a_history_of_replaced_files(
    data: st.DataObject, kind: pa.DataType, has_value_types: bool
) -> None:
    form = now = form_of(kind, has_value_types)
    if kind in WIDER and data.draw(st.booleans()):
        now = form_of(WIDER[kind], has_value_types)
    files = [range_of(one, form) for one in data.draw(st.lists(stats_of(kind), min_size=3))]
    stored = merged_range(files, now)
    for _ in range(data.draw(st.integers(1, 4))):
        if stored is None:
            break
        assert stored.is_tight_bound
        number = data.draw(st.integers(0, min(3, len(files) - 1)))
        gone, staying = files[:number], files[number:]
        came = [range_of(one, now) for one in data.draw(st.lists(stats_of(now.kind), max_size=3))]
        files = data.draw(st.permutations([*staying, *came]))
        left, new = ([one for one in some if one is not None] for some in (gone, came))
        found, rebuilt = updated_range(stored, left, new, now), merged_range(files, now)
        assert rebuilt is not None
        before, stored = stored, rebuilt
        if found is None:
            if may_be_narrow(before, now.kind):
                continue
            # what would be a bound went, and no new file has it
            old = [merged_range([one], now) or one for one in left]
            wide = merged_range([before, *new], now)
            assert wide is not None
            assert any(
                is_held(bound, wide, old) and not is_held(bound, wide, new)
                for bound in ("min_value", "max_value")
            )
        else:
            assert found == rebuilt


LONG = form_of(pa.int64(), has_value_types=True)
WHOLE = ColumnRange(
    "name",
    "x",
    Wrapped("LongWrapper", 1),
    Wrapped("LongWrapper", 9),
    *(10, 1, 100, 200),
    is_tight_bound=True,
    value_type=LONG.value_type,
)
PART = replace(WHOLE, min_value=Wrapped("LongWrapper", 5), value_count=2, null_count=0)
INNER = replace(PART, max_value=Wrapped("LongWrapper", 5), total_size=1, total_uncompressed_size=1)


def test_what_is_stored_is_not_built_upon_where_it_may_be_wrong() -> None:
    assert updated_range(WHOLE, [INNER], [INNER], LONG) == WHOLE
    int_form = form_of(pa.int32(), has_value_types=True)
    for wrong in (
        replace(WHOLE, is_tight_bound=False),
        replace(WHOLE, null_count=None),
        replace(WHOLE, min_value=None),
        replace(WHOLE, value_type=int_form.value_type),
        replace(WHOLE, null_count=10),
        # the replaced file is outside of it, or has more
        replace(WHOLE, min_value=Wrapped("LongWrapper", 6)),
        replace(WHOLE, value_count=1, null_count=0),
        replace(WHOLE, total_size=0),
    ):
        assert updated_range(wrong, [INNER], [], LONG) is None
    assert updated_range(WHOLE, [PART], [], LONG) is None
    assert updated_range(WHOLE, [PART], [PART], LONG) == WHOLE


def test_what_hudi_makes_too_narrow_is_not_built_upon() -> None:
    """Bytes in another order, texts in that of UTF-16, and zeros that stand for NaN."""
    for kind, low, high, is_narrow in (
        (pa.binary(), b"a", b"b", True),
        (pa.string(), "a", "\ue000", True),
        (pa.string(), "a", "\ud7ff", False),
        (pa.float64(), -1.0, 1.0, True),
        (pa.float64(), 0.5, 1.0, False),
        (pa.decimal128(8, 2), Decimal(-1), Decimal(1), False),
    ):
        form = form_of(kind, has_value_types=True)
        whole = range_of(ColumnStats(low, high, 9, 0, 0, 9, 9), form)
        assert whole is not None
        whole = replace(whole, is_tight_bound=True)
        assert (updated_range(whole, [], [], form) is None) is is_narrow


# --- random writes to partitions of many files, whose ranges equal those of all their footers
KEYS = 14
SMALL = {"hoodie.copyonwrite.insert.split.size": "2", "hoodie.parquet.small.file.limit": "0"}
"""New files of two rows, which do not grow."""
OPERATIONS = ("upsert", "upsert", "upsert", "delete", "insert", "rollback", "insert_overwrite")


def row(key: int, ts: int, value: float | None) -> Row:
    return {"id": f"k{key:02}", "city": ("rome", "oslo")[key % 2], "ts": ts, "value": value}


@st.composite
def drawn_rows(draw: st.DrawFn) -> list[Row]:
    keys = draw(st.lists(st.integers(0, KEYS + 5), min_size=1, max_size=3, unique=True))
    value = st.none() | st.floats(-2, 2, width=16)
    return [row(key, draw(st.integers(0, 9)), draw(value)) for key in keys]


def check_ranges(path: Path) -> None:
    """Compare the stored ranges of partitions with those of a build."""
    client = client_of(path)
    definitions = read_definitions(client.storage, client.config)
    config = MetadataConfig.from_options({})
    config = replace(config, stats_columns=definitions.columns(COLUMN_STATS))
    table = ListedTable(client, config, definitions)
    comparison = RecordComparison(table, MetadataSnapshot.open(client), frozenset(), None)
    partition = PartitionStats()
    assert partition.listed(comparison) == partition.expected(comparison)


@given(
    steps=st.lists(st.tuples(st.sampled_from(OPERATIONS), drawn_rows()), min_size=6, max_size=6),
    version=st.sampled_from([8, 9]),
    compacted=st.booleans(),
)
@examples(3, 3)
def test_ranges_of_partitions_follow_their_files(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, list[Row]]],
    version: int,
    compacted: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        # few files here stand for many
        patched.setattr(touched_ranges, "_FEW_FILES", 0)
        follow(tmp_path_factory.mktemp("ranges") / "table", steps, version, compacted)


def follow(path: Path, steps: list[tuple[str, list[Row]]], version: int, compacted: bool) -> None:
    more = {"hoodie.metadata.compact.max.delta.commits": "3"} if compacted else {}
    table = metadata_table(path, version, False, **SMALL, **more)
    first = [row(key, key % 10, None if key < 4 else key / 7) for key in range(KEYS)]
    result: hudi.CommitResult | None = table.insert(pa.Table.from_pylist(first, MODEL_COLUMNS))
    for operation, some in steps:
        if operation == "rollback":
            if result is not None:
                table.rollback(result.instant)
                result = None
        else:
            batch = some
            if operation == "insert":
                batch = [one | {"id": f"n{one['id']}"} for one in some]
            result = getattr(table, operation)(pa.Table.from_pylist(batch, MODEL_COLUMNS))
        check_ranges(path)
