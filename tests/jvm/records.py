"""The records of metadata tables, in forms that compare.

Records of two tables: without what their writers may differ in. File ids, names of files and times
of instants become ordinals; a file group is known by its partition, the instant that made it, and
the least key of its first file; sizes are left out. Records of one table that two readers see: all
that they say.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from hudi_core.avro.wrappers import SCALARS, Wrapped
from hudi_core.metadata.log.records import (
    ColumnRange,
    FileList,
    MetadataRecord,
    RecordLocation,
    RecordType,
)
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.files import BaseFileName
from hudi_core.services.opening import open_table
from tests.jvm.engines import Engine

Records = dict[str, Any]
"""What a record says, as JSON holds it, by what it is of."""
PARTITIONS: Final = ("files", "column_stats", "partition_stats", "record_index")


def kept(path: Path) -> list[str]:
    """Names of the partitions that a table's metadata table has."""
    there = {folder.name for folder in (path / ".hoodie" / "metadata").iterdir()}
    return [name for name in PARTITIONS if name in there]


# --- of two tables -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ordinals:
    """What stands for the ids, names and times of one table.

    ``path``: the table; no file of it may have been cleaned.
    """

    path: Path

    @cached_property
    def instants(self) -> Mapping[str, str]:
        """Ordinals of the completed instants by their requested times."""
        timeline = open_table(str(self.path), {}).timeline()
        times = sorted(one.requested_time for one in timeline.instants if one.is_completed)
        return {time: f"instant {number}" for number, time in enumerate(times)}

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Names of file groups by their ids."""
        first: dict[str, tuple[str, Path]] = {}
        for file in self.path.rglob("*.parquet"):
            name = BaseFileName.parse(file.name)
            if name is not None:
                known = first.get(name.file_id, (name.instant, file))
                first[name.file_id] = min(known, (name.instant, file))
        return {
            file_id: f"{self._folder(file)} of {self.instants[time]} from {_least_key(file)}"
            for file_id, (time, file) in first.items()
        }

    def _folder(self, file: Path) -> str:
        return file.parent.relative_to(self.path).as_posix()

    def file(self, name: str) -> str:
        """What stands for the name of a base file."""
        parts = BaseFileName.parse(name)
        assert parts is not None, name
        return f"{self.groups[parts.file_id]}, {self.instants[parts.instant]}"

    def moment(self, milliseconds: int) -> str:
        """What stands for the time of an instant, in UTC."""
        at = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
        return self.instants[f"{at:%Y%m%d%H%M%S}{milliseconds % 1000:03d}"]

    def bound(self, bound: Wrapped | None) -> str | None:
        """A bound as a text, which may be the time of an instant."""
        if bound is None:
            return None
        known = self.instants.get(bound.value) if isinstance(bound.value, str) else None
        return f"{bound.wrapper} {known or repr(bound.value)}"


def _least_key(file: Path) -> str:
    with pq.ParquetFile(file) as opened:
        keys = opened.read(["_hoodie_record_key"]).column(0).to_pylist()
    return str(min(keys, default=""))


def records_of(path: Path, partition: str) -> Records:
    """Records of a partition of a table's metadata table, to compare with another table's."""
    ordinals = Ordinals(path)
    return {
        key: value for record in _scan(path, partition) for key, value in _entries(record, ordinals)
    }


def _scan(path: Path, partition: str) -> Iterable[MetadataRecord]:
    opened = open_table(str(path), {})
    return MetadataSnapshot.open(opened.client, opened.timeline()).scan(partition)


def _entries(record: MetadataRecord, ordinals: Ordinals) -> Iterable[tuple[str, Any]]:
    match record.payload:
        case FileList(files) if record.type == RecordType.ALL_PARTITIONS:
            yield "partitions", sorted(files)
        case FileList(files):
            yield record.key, sorted(map(ordinals.file, files))
        case ColumnRange() as found:
            of = found.file_name or ""
            of = ordinals.file(of) if record.type == RecordType.COLUMN_STATS else of
            kind = found.value_type
            yield (
                f"{found.column_name} | {of}",
                {
                    "min": ordinals.bound(found.min_value),
                    "max": ordinals.bound(found.max_value),
                    "values": found.value_count,
                    "nulls": found.null_count,
                    "is deleted": found.is_deleted,
                    "is tight": found.is_tight_bound,
                    "type": kind and [kind.ordinal, kind.info],
                },
            )
        case RecordLocation() as found:
            assert found.instant_ms is not None
            yield (
                record.key,
                {
                    "partition": found.partition_name,
                    "file group": ordinals.groups[found.file_id],
                    "instant": ordinals.moment(found.instant_ms),
                    "position": found.position,
                },
            )


# --- of one table --------------------------------------------------------------------------------


def read_by_us(path: Path) -> Records:
    """All records of a table's metadata table, as this project reads them."""
    return {
        f"{record.type:d} {record.key}": _said(record)
        for partition in kept(path)
        for record in _scan(path, partition)
    }


def _said(record: MetadataRecord) -> Any:
    match record.payload:
        case FileList(files):
            return {name: [entry.size, entry.is_deleted] for name, entry in files.items()}
        case ColumnRange() as found:
            return {
                "fileName": found.file_name,
                "columnName": found.column_name,
                "minValue": _bound(found.min_value),
                "maxValue": _bound(found.max_value),
                "valueCount": found.value_count,
                "nullCount": found.null_count,
                "totalSize": found.total_size,
                "totalUncompressedSize": found.total_uncompressed_size,
                "isDeleted": found.is_deleted,
                "isTightBound": found.is_tight_bound,
                "valueType": found.value_type and [found.value_type.ordinal, found.value_type.info],
            }
        case RecordLocation() as found:
            return [found.partition_name, found.file_id, found.instant_ms, found.position]
    raise AssertionError(record)


def _bound(bound: Wrapped | None) -> list[Any] | None:
    if bound is None:
        return None
    value = bound.value
    if bound.wrapper == "DecimalWrapper":
        value = int.from_bytes(value, "big", signed=True)
    return [bound.wrapper, value]


def read_by_hudi(engine: Engine, path: Path) -> Records:
    """All records of a table's metadata table, as Hudi-Spark reads that table."""
    rows = engine.read(f"{path}/.hoodie/metadata").to_pylist()
    found = {f"{row['type']} {row['key']}": _said_by_hudi(row) for row in rows}
    assert len(found) == len(rows)
    return found


def _said_by_hudi(row: Mapping[str, Any]) -> Any:
    if row["filesystemMetadata"] is not None:
        files = dict(row["filesystemMetadata"])
        return {name: [entry["size"], entry["isDeleted"]] for name, entry in files.items()}
    if row["ColumnStatsMetadata"] is not None:
        found = dict(row["ColumnStatsMetadata"])
        kind = found.get("valueType")
        for side in ("minValue", "maxValue"):
            found[side] = _member(found[side])
        found["valueType"] = kind and [kind["typeOrdinal"], kind["additionalInfo"]]
        return found
    found = row["recordIndexMetadata"]
    bits = (found["fileIdHighBits"] & _LONG) << 64 | found["fileIdLowBits"] & _LONG
    file_id = f"{uuid.UUID(int=bits)}-{found['fileIndex']}"
    return [found["partitionName"], file_id, found["instantTime"], found["position"]]


_LONG: Final = (1 << 64) - 1


def _member(bound: Mapping[str, Any] | None) -> list[Any] | None:
    """Return the one member of a union that is there: Spark numbers them."""
    if bound is None:
        return None
    [(name, value)] = [(name, one["value"]) for name, one in bound.items() if one is not None]
    wrapper = SCALARS[int(name.removeprefix("member"))]
    if wrapper == "DecimalWrapper":
        value = int(value.scaleb(15))
    return [wrapper, value]
