"""Which files a clustering rewrites together, and the order of rows along curves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.actions.clustering_plan import chosen_partitions, plan_groups
from hudi_core.config.clustering import ClusteringConfig, ClusteringOrder
from hudi_core.errors import InvalidOptionError
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    PartitionPath,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.layout import bits_per_coordinate, hilbert, row_order, scaled, z_order

PLAN = "hoodie.clustering.plan.strategy."


def config(**options: object) -> ClusteringConfig:
    mode = {"hoodie.clustering.plan.partition.filter.mode": str(options.pop("mode", "NONE"))}
    named = {PLAN + name.replace("_", "."): str(value) for name, value in options.items()}
    return ClusteringConfig.from_options(mode | named)


def slices(sizes: Mapping[str, list[int]]) -> list[FileSlice]:
    """File slices with the sizes given, by partition; the later ones are younger."""
    found = []
    for partition, each in sizes.items():
        for number, size in enumerate(each):
            time = InstantTime(f"2024010100000{number:04d}")
            name = BaseFileName(FileId(f"{partition}{number}-0"), "0-2-0", time)
            status = FileStatus(f"{partition}/{name}", size)
            group = FileGroupId(PartitionPath(partition), name.file_id)
            found.append(FileSlice(group, time, BaseFile(status, name)))
    return found


A, B, C = ("a", [60, 50, 40, 30], 1), ("b", [70, 10], 1), ("c", [20], 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [A, B]),
        ({"small_file_limit": 45}, [("a", [40, 30], 1)]),
        ({"max_bytes_per_group": 110}, [("a", [60, 50], 1), ("a", [40, 30], 1), B]),
        ({"max_num_groups": 1}, [A]),
        ({"target_file_max_bytes": 60}, [(*A[:2], 3), (*B[:2], 2)]),
        ({"file_slices_sort_by": "instant_time"}, [("a", [50, 60, 30, 40], 1), B]),
        ({"sort_columns": "x"}, [A, B, C]),
        ({"single_group_clustering_enabled": "true"}, [A, B, C]),
    ],
)
def test_small_files_are_packed_into_groups(
    options: dict[str, object], expected: list[tuple[str, list[int], int]]
) -> None:
    files = slices({"b": [70, 10], "a": [50, 60, 30, 40], "c": [20]})
    groups = plan_groups(files, config(**options))
    found = [(one.partition_path, [file.size for file in one.files], one.outputs) for one in groups]
    assert found == expected


def test_busy_groups_and_large_files_are_left_out() -> None:
    found = slices({"a": [10, 20, 30]})
    [group] = plan_groups(found, config(small_file_limit=30))
    assert [file.size for file in group.files] == [20, 10]
    assert plan_groups(found, config(), {found[0].group, found[1].group}) == []


LAST = {"daybased_lookback_partitions": 3, "daybased_skipfromlatest_partitions": 1}
BETWEEN = {"cluster_begin_partition": "b", "cluster_end_partition": "d"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "abcde"),
        ({"partition_selected": "b,d,x"}, "bd"),
        ({"partition_regex_pattern": "[a-c]"}, "abc"),
        ({"partition_regex_pattern": "[a-c]", "partition_selected": "e"}, "e"),
        ({"mode": "RECENT_DAYS"}, "de"),
        ({"mode": "recent_days", **LAST}, "bcd"),
        ({"mode": "RECENT_DAYS", "daybased_lookback_partitions": 0}, "abcde"),
        ({"mode": "SELECTED_PARTITIONS", **BETWEEN}, "bcd"),
        ({"mode": "SELECTED_PARTITIONS"}, "abcde"),
        ({"mode": "DAY_ROLLING"}, "d"),
    ],
)
def test_partitions_are_chosen(options: dict[str, object], expected: str) -> None:
    found = chosen_partitions([PartitionPath(one) for one in "edcba"], config(**options), 3)
    assert "".join(found) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hoodie.layout.optimize.strategy", "peano"),
        ("hoodie.clustering.updates.strategy", "SparkMaybeUpdateStrategy"),
        (PLAN + "file.slices.sort.by", "NAME"),
        (PLAN + "partition.regex.pattern", "["),
        ("hoodie.clustering.plan.partition.filter.mode", "SOME"),
    ],
)
def test_options_that_cannot_be_used_are_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=name.replace(".", r"\.")):
        ClusteringConfig.from_options({name: text})


# --- curves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "bits"), [(1, 4), (2, 4), (3, 3), (4, 2), (5, 1)])
def test_curves_pass_every_point_once_and_hilbert_without_jumps(number: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=number)), np.uint64)
    columns = [points[:, one].copy() for one in range(number)]
    for curve in (z_order, hilbert):
        places = curve(columns, bits)
        assert sorted(places.tolist()) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(hilbert(columns, bits))].astype(np.int64), axis=0))
    assert set(steps.sum(axis=1).tolist()) == {1}


def test_bits_of_coordinates_fit_into_a_word() -> None:
    found = [bits_per_coordinate(number, 1 << 40) for number in (1, 2, 3, 8, 70)]
    assert found == [32, 32, 21, 8, 1]
    assert bits_per_coordinate(2, 5) == 3
    ranks = np.arange(1 << 10, dtype=np.uint64)
    spread = scaled(ranks, 32)
    assert (np.diff(spread.astype(np.int64)) > 0).all()
    assert int(spread[-1]) == (1 << 32) - 1


@pytest.mark.parametrize("layout", ClusteringOrder)
def test_rows_with_nulls_and_encoded_strings_are_ordered(layout: ClusteringOrder) -> None:
    words = pa.chunked_array([["b", None], ["a", "b", "c"]]).dictionary_encode()
    rows = pa.table({"w": words, "n": [2, 1, None, 1, 0], "s": [{"x": i} for i in range(5)]})
    order = row_order(rows, ["w", "n"], layout).to_pylist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    if layout is ClusteringOrder.LINEAR:
        assert order == [1, 2, 3, 0, 4]
    assert row_order(rows, ["s.x"], layout).to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("layout", [ClusteringOrder.ZORDER, ClusteringOrder.HILBERT])
def test_a_curve_leaves_short_ranges_of_both_columns(layout: ClusteringOrder) -> None:
    random = np.random.default_rng(7)
    rows = pa.table({"x": random.random(4096), "y": random.integers(0, 1 << 40, 4096)})
    ordered = rows.take(row_order(rows, ["x", "y"], layout))
    for name, whole in (("x", 1.0), ("y", float(1 << 40))):
        values = ordered.column(name).to_numpy().reshape(16, 256)
        assert ((values.max(axis=1) - values.min(axis=1)) / whole).max() < 0.51
