"""Paths within a table, with and without wildcards: what of a snapshot they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import NotATableError, UnknownPartitionError
from hudi_core.model.files import PartitionPath
from hudi_core.read.path_pattern import PathPattern
from tests.tables import new_table


@pytest.mark.parametrize(
    ("pattern", "partitions", "files"),
    [
        ("*", ["a/1", "a/2", "b/1"], ["a/1/f", "b/1/g"]),
        ("*/*", ["a/1", "a/2", "b/1"], ["a/1/f", "b/1/g"]),
        ("*/*/*", ["a/1", "a/2", "b/1"], ["a/1/f", "b/1/g"]),
        ("*/*/*/*", [], []),
        ("a", ["a/1", "a/2"], ["a/1/f"]),
        ("a/1", ["a/1"], ["a/1/f"]),
        ("a/1/f", ["a/1"], ["a/1/f"]),
        ("*/1/g", ["a/1", "b/1"], ["b/1/g"]),
        ("?/[2-9]", ["a/2"], []),
        ("[^a]/*", ["b/1"], ["b/1/g"]),
        ("{b,c}", ["b/1"], ["b/1/g"]),
        ("{a/2,b}", ["a/2", "b/1"], ["b/1/g"]),
        ("{a,b}/{1,3}", ["a/1", "b/1"], ["a/1/f", "b/1/g"]),
        ("a*", ["a/1", "a/2"], ["a/1/f"]),
        ("A", [], []),
    ],
)
def test_what_a_pattern_names(pattern: str, partitions: list[str], files: list[str]) -> None:
    found = PathPattern((pattern,))
    all_ = map(PartitionPath, ("a/1", "a/2", "b/1"))
    assert [one for one in all_ if found.may_name(one)] == partitions
    assert [one for one in ("a/1/f", "b/1/g") if found.names(one)] == files


def test_characters_stand_for_themselves_first() -> None:
    assert PathPattern(("x[1]",)).names("x[1]/f")
    assert PathPattern(("x.y",)).names("x.y/f")
    assert not PathPattern(("x.y",)).names("xzy/f")
    assert PathPattern(("a", "b/1")).names("b/1/f")
    # a table without partitions
    assert PathPattern(("*",)).may_name(PartitionPath(""))
    assert PathPattern(("*.parquet",)).names("f.parquet")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Five rows in three partitions; the rows of one were written twice."""
    path = tmp_path_factory.mktemp("within") / "t"
    rows = pa.table(
        {"id": [1, 2, 3, 4, 5], "year": [2025, 2025, 2025, 2026, 2026], "month": [1, 1, 2, 1, 1]}
    )
    made = new_table(path, rows, partition_by=["year", "month"])
    made.upsert(rows.slice(0, 2))
    return str(path)


@pytest.mark.parametrize(
    ("below", "ids"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("/", [1, 2, 3, 4, 5]),
        ("/*/*/*", [1, 2, 3, 4, 5]),
        ("/*", [1, 2, 3, 4, 5]),
        ("/2025", [1, 2, 3]),
        ("/2025/", [1, 2, 3]),
        ("/2025/1", [1, 2]),
        ("/*/1", [1, 2, 4, 5]),
        ("/202[6-9]/*/*.parquet", [4, 5]),
        ("/{2025/2,2026}", [3, 4, 5]),
    ],
)
def test_rows_of_a_path(path: str, below: str, ids: list[int]) -> None:
    assert sorted(hudi.read(None, path + below).column("id").to_pylist()) == ids


def test_a_path_reads_past_states_and_changes(path: str) -> None:
    first, second = hudi.Table.open(path).timeline.completed_writes()

    def count(below: str, **options: Any) -> int:
        return int(hudi.read(None, path + below, options).num_rows)

    assert count("/2025/1", **{"as.of.instant": first}) == 2
    assert count("/2026", **{"as.of.instant": first}) == 2
    changes = {"hoodie.datasource.query.type": "incremental"}
    since = {**changes, "hoodie.datasource.read.begin.instanttime": first}
    assert count("/2025", **since) == 2
    assert count("/2026", **since) == 0
    assert count("/2025/1/*", **{**since, "hoodie.datasource.read.begin.instanttime": second}) == 0


def test_one_file_is_read_while_it_is_of_the_snapshot(path: str) -> None:
    [now] = hudi.Table.open(path).file_slices(filter=[("year", "=", 2025), ("month", "=", 1)])
    assert now.base_file is not None
    assert hudi.read(None, f"{path}/{now.base_file.path}").num_rows == 2
    [old] = [
        file
        for file in Path(path, "2025/1").glob("*.parquet")
        if file.name != Path(now.base_file.path).name
    ]
    assert hudi.read(None, str(old)).num_rows == 0


def test_what_the_table_does_not_have_is_named(path: str) -> None:
    with pytest.raises(UnknownPartitionError, match=r"nothing at 2024.*2025/1, 2025/2, 2026/1"):
        hudi.read(None, f"{path}/2024")
    outside = str(Path(path).parent / "other")
    for wrong in (outside, f"{outside}/*"):
        with pytest.raises(NotATableError, match="holds no Hudi table"):
            hudi.read(None, wrong)


def test_only_named_partitions_are_opened(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "city": ["oslo", "rome"]})
    new_table(tmp_path / "t", rows)
    for file in tmp_path.glob("t/rome/*.parquet"):
        file.unlink()
    assert hudi.read(None, tmp_path / "t" / "oslo").num_rows == 1
