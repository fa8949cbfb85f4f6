"""Which version of a row wins, and what is counted, where keys and times are awkward."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import hudi_core as hudi
from hudi_core.config.merge_rules import MergeRules
from hudi_core.engine.spark import SparkEngine
from hudi_core.rows.combine import existing_is_newer, winners
from hudi_core.rows.merging import Located, merge
from tests.tables import new_table

NAN = math.nan
UNCOMBINED = {"hoodie.combine.before.upsert": "false"}


def rows(*versions: tuple[str, float | None, str], kind: Any = None) -> pa.Table:
    ids, times, values = zip(*versions, strict=True)
    return pa.table(
        {"id": list(ids), "ts": pa.array(times, kind or pa.float64()), "value": list(values)}
    )


def make(path: Path, kind: Any = None) -> hudi.Table:
    return new_table(path / "t", rows(("a", 1, ""), kind=kind).schema)


def values(table: hudi.Table) -> list[str]:
    return sorted(table.to_arrow()["value"].to_pylist())


def is_greater(first: float, second: float) -> bool:
    """Return whether Java's ``Double.compare`` puts the first behind the second."""
    if math.isnan(first) or math.isnan(second):
        return not math.isnan(second)
    return (first, math.copysign(1.0, first)) > (second, math.copysign(1.0, second))


@given(st.floats() | st.sampled_from([NAN, -NAN, 0.0, -0.0, math.inf]), st.floats())
def test_floats_have_one_order_in_a_batch_and_against_stored_rows(
    first: float, second: float
) -> None:
    greater = is_greater(first, second)
    assert existing_is_newer([pa.array([first])], [pa.array([second])]).to_pylist() == [greater]
    chosen = winners(pa.chunked_array([["k", "k"]]), [pa.chunked_array([[first, second]])])
    assert chosen is not None
    assert chosen.tolist() == [0 if greater else 1]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_the_latest_time_wherever_it_comes(tmp_path: Path, kind: Any) -> None:
    table = make(tmp_path, kind)
    table.upsert(rows(("a", 5, "five"), ("a", NAN, "nan"), ("a", None, "null"), kind=kind))
    assert values(table) == ["nan"]
    assert table.upsert(rows(("a", math.inf, "inf"), kind=kind)).updated == 0
    assert table.upsert(rows(("a", NAN, "nan again"), kind=kind)).updated == 1
    assert values(table) == ["nan again"]
    assert table.upsert(rows(("a", None, "null"), kind=kind)).updated == 1
    assert values(table) == ["null"]


@pytest.mark.spark
def test_nan_is_the_latest_time_on_spark_too(tmp_path: Path, spark: Any) -> None:
    table, engine = make(tmp_path), SparkEngine(spark, tasks_on_driver=False)
    for batch in (rows(("a", NAN, "nan"), ("a", 5, "five")), rows(("a", 6, "six"))):
        table.upsert(spark.createDataFrame(batch).coalesce(1), engine=engine)
        assert values(table) == ["nan"]


def test_of_rows_that_are_not_combined_the_last_meets_the_stored_one(tmp_path: Path) -> None:
    for number, times in enumerate(itertools.permutations([9, 3, 5])):
        table = make(tmp_path / str(number))
        table.insert(rows(("a", 4, "stored"), ("b", 1, "other")))
        result = table.upsert(rows(*(("a", ts, str(ts)) for ts in times)), options=UNCOMBINED)
        last = times[-1]
        assert (result.inserted, result.updated, result.deleted) == (0, int(last > 4), 0)
        assert values(table) == sorted([str(last) if last > 4 else "stored", "other"])


def test_rows_that_are_not_combined_and_meet_no_stored_one_all_stay(tmp_path: Path) -> None:
    """Those that come to a file that is there are one, as in Hudi: the last."""
    table = make(tmp_path)
    table.insert(rows(("b", 1, "other")))
    batch = rows(("a", 9, "9"), ("a", 3, "3"), ("b", 2, "new"))
    result = table.upsert(batch, options={**UNCOMBINED, "hoodie.parquet.small.file.limit": "0"})
    assert (result.inserted, result.updated) == (2, 1)
    assert values(table) == ["3", "9", "new"]

    table = make(tmp_path / "small")
    table.insert(rows(("b", 1, "other")))
    result = table.upsert(batch, options=UNCOMBINED)
    assert (result.inserted, result.updated) == (1, 1)
    assert values(table) == ["3", "new"]


def stored_twice(path: Path) -> hudi.Table:
    table = make(path)
    table.bulk_insert(rows(("a", 5, "newer"), ("a", 1, "older"), ("b", 1, "other")))
    return table


def test_a_dry_run_counts_keys_that_are_stored_twice_as_the_write_does(tmp_path: Path) -> None:
    table = stored_twice(tmp_path)
    batch = rows(("a", 7, "in"), ("b", 7, "in"))
    dry, result = table.plan("upsert", batch), table.upsert(batch)
    assert (dry.updated, dry.deleted) == (result.updated, result.deleted) == (3, 0)
    assert stored_twice(tmp_path / "other").delete(batch).deleted == 3


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8),
    st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 3), st.booleans()), max_size=4),
    st.booleans(),
)
def test_what_is_kept_updated_and_deleted_adds_up(
    held: list[tuple[int, int]], batch: dict[int, tuple[int, bool]], event_time: bool
) -> None:
    stored = pa.table({"ts": pa.array([ts for _, ts in held], pa.int64())})
    incoming = pa.table(
        {
            "ts": pa.array([ts for ts, _ in batch.values()], pa.int64()),
            "_hoodie_is_deleted": pa.array([gone for _, gone in batch.values()], pa.bool_()),
        }
    )
    pairs = [
        (arrival, position)
        for arrival, key in enumerate(batch)
        for position, (other, _) in enumerate(held)
        if key == other
    ]
    located = np.array(pairs, np.int64).reshape(-1, 2)
    rules = MergeRules(stored_order=("ts",) if event_time else ())
    merged = merge(stored, incoming, Located(located[:, 0], located[:, 1]), rules, False)
    assert merged.kept.num_rows + len(merged.updates) == len(held) - merged.deletes
    assert merged.deletes >= 0
    untouched = [ts for key, ts in held if key not in batch]
    assert merged.kept.num_rows >= len(untouched)
