"""Statistics of a file say of its rows what the rows say; rows survive the file."""

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
from hudi_core.schema.table_schema import TableSchema

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
