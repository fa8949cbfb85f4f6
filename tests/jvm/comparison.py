"""Records of Hudi-Spark's metadata tables beside ours, and the differences that are known."""

from __future__ import annotations

from ast import literal_eval
from dataclasses import dataclass, field
from typing import Any, Final

from tests.jvm.records import Records

LOCAL: Final = ("local_range", "local")
"""Columns of times without a zone, which the Avro schema of our tables has as others than Hudi's:
see ``docs/types.md``."""
Differences = dict[str, tuple[Any, Any]]
"""What ours says and what Hudi-Spark's does, by the key of a record."""


def differences(ours: Records, theirs: Records) -> Differences:
    """Return what two tables say, where it differs."""
    return {
        key: (ours.get(key), theirs.get(key))
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    }


@dataclass(frozen=True)
class Compared:
    """How the ranges of a column differ.

    ``zeros``: ranges of files to which Hudi-Spark gives bounds of 0: files without a value, or with
    NaN. ``signed``: ranges of partitions for which Hudi-Spark compares the bytes of its files'
    bounds as numbers from -128 to 127, which is not the order of these values in Spark or Parquet.
    ``unexplained``: all others, but for those of partitions that have files of the first kind.
    """

    zeros: Differences = field(default_factory=dict)
    signed: Differences = field(default_factory=dict)
    unexplained: Differences = field(default_factory=dict)


def compare_ranges(ours: dict[str, Records], theirs: dict[str, Records], column: str) -> Compared:
    """Compare the ranges of a column in files and partitions."""
    ranges = _of(ours, "column_stats", column)
    files = differences(ranges, _of(theirs, "column_stats", column))
    partitions = differences(
        _of(ours, "partition_stats", column), _of(theirs, "partition_stats", column)
    )
    zeros = {key: both for key, both in files.items() if _is_zero(*both)}
    follow = {f"{column} | {_partition(key)}" for key in zeros}
    rest = {key: both for key, both in partitions.items() if key not in follow}
    signed = {
        key: both
        for key, both in rest.items()
        if _is_signed(*both, [one for file, one in ranges.items() if file.startswith(f"{key} of ")])
    }
    unexplained = {
        **{key: both for key, both in files.items() if key not in zeros},
        **{key: both for key, both in rest.items() if key not in signed},
    }
    return Compared(zeros, signed, unexplained)


def in_the_type_before(found: Differences) -> Differences:
    """Return those of some differences by which Hudi-Spark leaves a range in a narrower type.

    It does that in version 8 with partitions that a write does not touch by which a column became
    wider. Its own readers then take the bounds for the wider type.
    """
    return {
        key: (ours, theirs)
        for key, (ours, theirs) in found.items()
        if ours is not None
        and theirs is not None
        and _without_types(ours) == _without_types(theirs)
    }


def _without_types(record: Any) -> Any:
    values = {side: str(record[side]).partition(" ")[2] for side in ("min", "max")}
    return {**record, **values}


def _is_signed(ours: Any, theirs: Any, files: list[Any]) -> bool:
    if ours is None or theirs is None:
        return False

    def numbers(bound: str) -> list[int]:
        return [each - 256 if each > 127 else each for each in literal_eval(bound.split(" ", 1)[1])]

    bounds = [one for one in files if str(one["min"]).startswith("BytesWrapper b")]
    if not bounds:
        return False
    low = min((one["min"] for one in bounds), key=numbers)
    high = max((one["max"] for one in bounds), key=numbers)
    return bool(theirs == {**ours, "min": low, "max": high})


def _of(records: dict[str, Records], partition: str, column: str) -> Records:
    return {
        key: _in_utc(value) if column in LOCAL else value
        for key, value in records.get(partition, {}).items()
        if key.startswith(f"{column} | ")
    }


def _partition(key: str) -> str:
    """Return the partition of a file, by the key of its range."""
    return key.partition(" | ")[2].partition(" of ")[0]


def _in_utc(record: Any) -> Any:
    return {**record, "type": [16, None]} if record["type"] == [19, None] else record


def _is_zero(ours: Any, theirs: Any) -> bool:
    """Whether two ranges differ by bounds of 0 where a file has no value, or NaN."""
    if ours is None or theirs is None:
        return False
    bounds = {name: theirs[name] for name in ("min", "max")}
    if not all(str(one).rpartition(" ")[2] in ("0", "0.0", "False") for one in bounds.values()):
        return False
    is_float = bounds["min"].startswith(("Float", "Double"))
    has_none = ours["values"] == ours["nulls"] and ours["min"] is None
    return (has_none or is_float) and differences({"": {**ours, **bounds}}, {"": theirs}) == {}
