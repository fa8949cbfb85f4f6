"""Splits: the parts of a scan that workers read."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

import pyarrow as pa

from hudi_core.config.connector import ConnectorConfig
from hudi_core.errors import InvalidInstantTimeError, SchemaError
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.read.connector.partitions import PartitionInfo, PartitionKey
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.plan import PlannedSlice

_SLOP: Final = 1.1
"""The last split of a file may be so many times the target: no split is tiny."""


@dataclass(frozen=True, slots=True)
class Split:
    """Part of a base file, or a slice with logs, to read.

    It has all that the worker needs, and travels as JSON. A row belongs to the split in whose range
    of bytes its row group begins. No secrets are in it.

    ``path`` is a local path or a URI, ``file`` and ``log_files`` are relative to the table, and the
    file is read by ``file``; of a slice without a base file that is its first log. Of logs what was
    written ``until`` then counts, a requested time. ``addresses`` is empty where all hosts are
    equally far. ``weight`` is 1 for a large split, less for a smaller one. ``mark`` is that of the
    table when the scan was planned.
    """

    table: str
    path: str
    file: str
    start: int
    length: int
    file_size: int
    predicate: TupleDomain
    instant: InstantTime
    schema: pa.Schema = field(repr=False)
    mark: str
    partition: str = ""
    partition_keys: tuple[PartitionKey, ...] = ()
    weight: float = 1.0
    log_files: tuple[str, ...] = ()
    log_sizes: tuple[int, ...] = ()
    until: InstantTime | None = None
    addresses: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The split as a string, which :meth:`from_json` reads."""
        document = {
            "table": self.table,
            "path": self.path,
            "file": self.file,
            "start": self.start,
            "length": self.length,
            "fileSize": self.file_size,
            "addresses": self.addresses,
            "predicate": self.predicate.to_document(),
            "partition": self.partition,
            "partitionKeys": self.partition_keys,
            "weight": self.weight,
            "instant": str(self.instant),
            "logFiles": self.log_files,
            "logSizes": self.log_sizes,
            "until": self.until,
            "schema": base64.b64encode(self.schema.serialize()).decode("ascii"),
            "mark": self.mark,
        }
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The split of a string."""
        try:
            found = json.loads(text)
            stored = base64.b64decode(_text(found["schema"]), validate=True)
            schema = pa.ipc.read_schema(pa.py_buffer(stored))
            split = cls(
                table=_text(found["table"]),
                path=_text(found["path"]),
                file=_text(found["file"]),
                start=_count(found["start"]),
                length=_count(found["length"]),
                file_size=_count(found["fileSize"]),
                predicate=TupleDomain.from_document(found["predicate"], schema),
                instant=parse_instant_time(_text(found["instant"])),
                schema=schema,
                mark=_text(found["mark"]),
                partition=_text(found["partition"]),
                partition_keys=tuple(
                    PartitionKey(_text(name), None if value is None else _text(value))
                    for name, value in found["partitionKeys"]
                ),
                weight=float(found["weight"]),
                log_files=tuple(map(_text, found["logFiles"])),
                log_sizes=tuple(map(_count, found["logSizes"])),
                until=None if found["until"] is None else parse_instant_time(_text(found["until"])),
                addresses=tuple(map(_text, found["addresses"])),
            )
        except (
            ValueError,
            TypeError,
            KeyError,
            binascii.Error,
            OverflowError,
            RecursionError,  # of JSON that is nested without end
            pa.ArrowException,
            InvalidInstantTimeError,
        ) as error:
            raise SchemaError(
                f"{text[:200]!r} is no split", "Give what Split.to_json made."
            ) from error
        return split


@dataclass(frozen=True, slots=True)
class SplitFactory:
    """Makes the splits of files.

    Sizes are in bytes; ``standard_size`` is that of a split of weight 1, ``None`` where all weigh
    the same.
    """

    table: str
    schema: pa.Schema
    predicate: TupleDomain
    mark: str
    target_size: int
    standard_size: int | None
    minimum_weight: float

    @classmethod
    def of(
        cls,
        table: str,
        schema: pa.Schema,
        predicate: TupleDomain,
        mark: str,
        config: ConnectorConfig,
    ) -> Self:
        """The factory that options ask for."""
        standard = config.standard_weight_size if config.weighted else None
        return cls(
            table,
            schema,
            predicate,
            mark,
            config.target_split_size,
            standard,
            config.minimum_weight,
        )

    def splits(self, listed: PlannedSlice, partition: PartitionInfo) -> Iterator[Split]:
        """Yield the splits of a file.

        One that logs belong to is read as a whole: its rows are merged with theirs.
        """
        size = listed.base_size
        if listed.logs:
            yield self._split(listed, partition, 0, size, listed.size)
            return
        start = 0
        while (size - start) / self.target_size > _SLOP:
            yield self._split(listed, partition, start, self.target_size, self.target_size)
            start += self.target_size
        yield self._split(listed, partition, start, size - start, size - start)

    def _split(
        self, file: PlannedSlice, partition: PartitionInfo, start: int, length: int, size: int
    ) -> Split:
        return Split(
            self.table,
            file.uri,
            file.path,
            start,
            length,
            file.base_size,
            self.predicate,
            file.instant,
            self.schema,
            self.mark,
            partition.name,
            partition.keys,
            self._weight(size),
            tuple(log.path for log in file.logs),
            tuple(log.size for log in file.logs),
            file.until,
        )

    def _weight(self, size: int) -> float:
        if self.standard_size is None:
            return 1.0
        return min(max(size / self.standard_size, self.minimum_weight), 1.0)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no number of bytes")
    return value
