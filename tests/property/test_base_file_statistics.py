"""What base files say of their rows and keys."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.base_file.writer import BaseFileOptions, BaseFileWriter
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.metadata.key_index.key_changes import DELETED, INSERTED, changes_between, keys_of
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema

MEASURED = TableSchema.create(
    pa.schema(
        [
            ("n", pa.int64()),
            ("x", pa.float64()),
            ("t", pa.string()),
            ("b", pa.binary()),
            ("d", pa.decimal128(20, 3)),
            ("l", pa.list_(pa.float32())),
            ("s", pa.struct([("t", pa.string()), ("n", pa.int32())])),
        ]
    )
)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | INTEGERS,
            "x": st.none() | st.floats(),
            "t": st.none() | st.text(max_size=5) | st.just("é" * 3000),
            "b": st.none() | st.binary(max_size=5) | st.just(b"\xff" * 5000),
            "d": st.none() | st.decimals(-(10**16), 10**16, places=3),
            "l": st.none() | st.lists(st.none() | st.floats(width=32), max_size=3),
            "s": st.none()
            | st.fixed_dictionaries({"t": st.none() | st.text(max_size=3), "n": st.integers(0, 9)}),
        }
    ),
    max_size=12,
)


def leaf_values(row: dict[str, Any]) -> dict[str, list[Any]]:
    struct = row["s"] or {"t": None, "n": None}
    return {
        **{name: [row[name]] for name in "nxtbd"},
        "l.list.element": row["l"] or [None],
        "s.t": [struct["t"]],
        "s.n": [struct["n"]],
    }


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.impure
@given(ROWS, st.sampled_from([1, 200, 10**6]))
def test_statistics_are_exact(rows: list[dict[str, Any]], group_bytes: int) -> None:
    table = pa.Table.from_pylist(rows, MEASURED.arrow)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f.parquet")
        options = BaseFileOptions(row_group_bytes=group_bytes, fsync=False)
        writer = BaseFileWriter(
            pafs.LocalFileSystem(), path, MEASURED, "t", options, meta_columns=()
        )
        writer.write(table)
        result = writer.close()
        assert repr(pq.read_table(path).to_pylist()) == repr(table.to_pylist())
        footer = pq.read_metadata(path)
    chunks = [
        footer.row_group(group).column(number)
        for group in range(footer.num_row_groups)
        for number in range(footer.num_columns)
    ]
    bounded = {one.path_in_schema for one in chunks if one.statistics.has_min_max}
    nulls = Counter[str]()
    for one in chunks:
        nulls[one.path_in_schema] += one.statistics.null_count
    leaves = [leaf_values(row) for row in rows]
    for name, stats in result.stats.items():
        values = [value for leaf in leaves for value in leaf[name]]
        present = [value for value in values if value is not None]
        ordered = [v.encode() if isinstance(v, str) else v for v in present if not is_nan(v)]
        low, high = (min(ordered), max(ordered)) if ordered else (None, None)
        if isinstance(stats.min_value, str) and isinstance(stats.max_value, str):
            assert (stats.min_value.encode(), stats.max_value.encode()) == (low, high)
        else:
            assert (stats.min_value, stats.max_value) == (low, high)
        assert stats.value_count == len(values)
        assert stats.null_count == len(values) - len(present)
        assert stats.nan_count == sum(map(is_nan, present))
        # of a column with NaN the footer has no bounds, as parquet-mr has none
        assert nulls[name] == stats.null_count
        if any(map(is_nan, present)):
            assert name not in bounded
        elif any(isinstance(value, float) for value in present):
            assert name in bounded


# --- what became of a file's keys, from its rows and those of the file before it
Rows = list[tuple[str, int | None]]


def keyed_table(rows: Rows) -> pa.Table:
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    return pa.table({RECORD_KEY: pa.array(keys, pa.string()), "n": pa.array(values, pa.int64())})


some_rows = st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 2)))


@given(before=some_rows, after=some_rows)
def test_entries_and_keys_after_are_those_before_with_the_changes(
    before: Rows, after: Rows
) -> None:
    """Inserts may leave several rows of one key."""
    table = changes_between(keyed_table(before), keyed_table(after))
    old, new = {key for key, _ in before}, {key for key, _ in after}
    assert {*keys_of(table, INSERTED).to_pylist()} == new - old
    assert {*keys_of(table, DELETED).to_pylist()} == old - new
    changes = table.to_pylist()
    came = {(one["key"], one["after.n"]) for one in changes if one["change"] >= 0}
    gone = {(one["key"], one["before.n"]) for one in changes if one["change"] <= 0}
    assert came <= {*after}
    assert gone <= {*before}
    assert {*before} - (gone - came) | came == {*after}
    # keys whose values stay are not listed
    same = {key for key, _ in after} - {key for key, _ in {*before} ^ {*after}}
    single = {key for key in same if [one for one, _ in before + after].count(key) == 2}
    assert not single & {one["key"] for one in changes}


def test_a_column_that_the_file_before_lacks_had_nulls() -> None:
    lacking = pa.table({RECORD_KEY: ["a", "b"], "n": pa.nulls(2)})
    table = changes_between(lacking, keyed_table([("a", 1), ("b", None), ("c", 2)]))
    assert [(one["key"], one["change"], one["after.n"]) for one in table.to_pylist()] == [
        ("c", 1, 2),
        ("a", 0, 1),
    ]


# --- a bloom filter holds what was added, whatever the keys look like
KEYS = st.lists(st.text(max_size=40), max_size=60)


@given(KEYS, KEYS, st.integers(1, 40), st.integers(0, 100))
def test_added_keys_are_found(
    keys: list[str], others: list[str], entries: int, max_entries: int
) -> None:
    bloom = DynamicBloom.build(pa.array(keys, pa.string()), entries, 1e-6, max_entries)
    text = bloom.to_base64()
    read = DynamicBloom.parse(text, "f")
    assert read.to_base64() == text
    asked = pa.array([*others, *keys], pa.string())
    answers = read.might_contain(asked).to_pylist()
    assert all(answers[len(others) :])
    # each answer is that of the key alone
    assert answers == [
        read.might_contain(asked.slice(n, 1)).to_pylist()[0] for n in range(len(asked))
    ]
