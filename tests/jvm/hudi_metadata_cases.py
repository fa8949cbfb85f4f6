"""Hudi-Spark: the records of metadata tables.

The same history, written by Hudi-Spark and by this project, has equal records of `files`,
`column_stats`, `partition_stats` and `record_index`, key by key; file ids, names of files and times
of instants count as ordinals, and sizes do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.jvm.captured import captured
from tests.jvm.chapters import CHAPTERS, VERSIONS, Chapter
from tests.jvm.comparison import compare_ranges, differences, in_the_type_before
from tests.jvm.engines import Engine
from tests.jvm.records import Records, read_by_hudi, read_by_us
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.typed_columns import COLUMNS
from tests.jvm.writers import HudiSpark, ours

Made = Callable[[str, str], tuple[dict[str, Records], dict[str, Records]]]


@pytest.fixture(scope="module")
def made(hudi_spark: Engine, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Give the records of a chapter: ours, and those of Hudi-Spark; made once each."""
    known: dict[tuple[str, str], tuple[dict[str, Records], dict[str, Records]]] = {}

    def make(name: str, version: str) -> tuple[dict[str, Records], dict[str, Records]]:
        if (name, version) not in known:
            folder = tmp_path_factory.mktemp("chapter")
            chapter: Chapter = CHAPTERS[name]
            known[name, version] = (
                chapter.make(ours, folder / "ours", version),
                chapter.make(HudiSpark(hudi_spark), folder / "theirs", version),
            )
        return known[name, version]

    return make


# --- ranges of every type ------------------------------------------------------------------------

NAN: Final = ("float32", "float64")
NUMBERS: Final = (
    *("boolean", "int32", "int64", "numbers", "zeros", "infinities", "point.x"),
    *("date", "local_range", "zoned_range", "local", "zoned"),
)
"""Columns of values of fixed size, none of them NaN."""


def types(*chapters: str) -> Iterator[Any]:
    for column, version, chapter in product(COLUMNS, VERSIONS, chapters):
        marks: Any = ()
        if column in NAN or (column in NUMBERS and "nulls" in chapter):
            marks = own_failure(
                "Hudi-Spark writes bounds of 0 for a file with NaN or without values"
            )
        elif column == "binary" and "partitioned" in chapter:
            marks = own_failure(
                "Hudi-Spark compares bytes as signed numbers where it makes ranges of partitions"
            )
        yield pytest.param(
            column, version, chapter, id=f"{column}, version {version}, {chapter}", marks=marks
        )


@pytest.mark.parametrize(
    ("column", "version", "chapter"), [*types("types, one folder", "types, partitioned")]
)
def test_ranges_of_every_type(made: Made, column: str, version: str, chapter: str) -> None:
    """Ranges of files and of partitions, of each type, with nulls beside values."""
    judge_ranges(made(chapter, version), column)


@pytest.mark.parametrize(
    ("column", "version", "chapter"), [*types("nulls, one folder", "nulls, partitioned")]
)
def test_ranges_of_nulls(made: Made, column: str, version: str, chapter: str) -> None:
    """The same with files and partitions that hold nothing but nulls."""
    judge_ranges(made(chapter, version), column)


def judge_ranges(both: tuple[dict[str, Records], dict[str, Records]], column: str) -> None:
    """Compare the ranges of one column.

    ``OwnFailureError``: Those of Hudi-Spark differ by bounds of 0 where there is no value or NaN,
    and by what follows for the partitions of such files, or by the order of bytes.
    """
    found = compare_ranges(*both, column)
    assert not found.unexplained, found.unexplained
    if found.zeros or found.signed:
        raise OwnFailureError(f"ours and theirs: {found.zeros or found.signed}")


# --- everything, of whole histories --------------------------------------------------------------


NARROW: Final = ("partition_stats", "changed columns, partitioned", "8")


def histories() -> Iterator[Any]:
    chapters = (
        *("life", "life, index by partitions", "life, two keys, hive"),
        *("changed columns, one folder", "changed columns, partitioned"),
    )
    partitions = ("files", "column_stats", "partition_stats", "record_index")
    for each in product(partitions, chapters, VERSIONS):
        marks: Any = ()
        if each == NARROW:
            marks = own_failure("Hudi-Spark leaves ranges of partitions in the type before")
        partition, chapter, version = each
        yield pytest.param(*each, id=f"{partition}, {chapter}, version {version}", marks=marks)


@pytest.mark.parametrize(("partition", "chapter", "version"), [*histories()])
def test_records_of_a_history(made: Made, partition: str, chapter: str, version: str) -> None:
    """All records after inserts, upserts, deletes, overwritten and deleted partitions."""
    ours, theirs = made(chapter, version)
    assert ours.keys() == theirs.keys()
    found = differences(ours.get(partition, {}), theirs.get(partition, {}))
    narrow = in_the_type_before(found) if (partition, chapter, version) == NARROW else {}
    assert not found.keys() - narrow.keys(), found
    if narrow:
        raise OwnFailureError(f"ours and theirs: {narrow}")


@own_failure("Hudi-Spark counts the replaced files among those of the partition")
@pytest.mark.parametrize("version", VERSIONS)
def test_ranges_of_an_overwritten_partition(made: Made, version: str) -> None:
    """Ranges of a partition that was overwritten last."""
    ours, theirs = made("overwritten", version)
    for partition in ("files", "column_stats", "record_index"):
        assert not differences(ours[partition], theirs[partition])
    found = differences(ours["partition_stats"], theirs["partition_stats"])
    assert all(key.endswith(" | oslo") for key in found)
    if all(theirs["values"] > ours["values"] == 3 for ours, theirs in found.values()):
        raise OwnFailureError(f"the partition has 3 rows: {found}")
    assert not found, found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("chapter", ["types, partitioned", "life", "changed columns, partitioned"])
def test_our_records_as_hudi_reads_them(
    hudi_spark: Engine, tmp_path: Path, chapter: str, version: str
) -> None:
    """Hudi-Spark opens our metadata table as a table, and finds the records that we find."""
    path = tmp_path / "table"
    CHAPTERS[chapter].make(ours, path, version)
    found = differences(read_by_us(path), read_by_hudi(hudi_spark, path))
    assert not found, found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("chapter", [*captured()])
def test_captured_records(made: Made, chapter: str, version: str) -> None:
    """The records that tests without Java compare ours with are those of Hudi-Spark."""
    _, theirs = made(chapter, version)
    assert captured()[chapter][version] == theirs
