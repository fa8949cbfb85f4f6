"""Tables too large for one disk: their metadata table names files that are not there.

A table with two hundred files of its own is written as any other. Then the base files of its
metadata table are put again, with a million files more: by name, size and the ranges of their
columns. Everything that plans, commits or serves such a table does what it would do if the files
were there; only their rows cannot be read.
"""

from __future__ import annotations

import heapq
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import hudi_core as hudi
from hudi_core.avro.wrappers import Wrapped
from hudi_core.hashing.java_hash import shards_of
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.keys import ALL_PARTITIONS, id64, id128
from hudi_core.metadata.log.record_codec import RecordEncoder
from hudi_core.metadata.log.records import (
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    RecordType,
)
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES, PARTITION_STATS
from hudi_core.metadata.table import metadata_client
from hudi_core.model.files import BaseFileName
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import next_instant_time
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import encode

DAY, CLOCK, NOISE = "day", "clock", "noise"
"""The partition; a column that grows from file to file; one that lies anywhere in each."""
IN_PARTITION = 10
"""Files of each partition."""
REAL = 20
"""Partitions whose files have rows."""
FILE_BYTES = 120 << 20
FIRST_CLOCK = 1 << 40
"""All clocks take as many bytes in Avro as this one."""
CLOCKS_A_FILE = 10
QUICK = {"hoodie.fs.fsync": "false"}
_STRIDE = 7919
_OPTIONS = QUICK | {
    "hoodie.metadata.index.column.stats.column.list": f"{CLOCK},{NOISE}",
    "hoodie.copyonwrite.insert.auto.split": "false",
    "hoodie.copyonwrite.insert.split.size": "1",
    # a file of one row is no file to fill
    "hoodie.parquet.small.file.limit": "0",
}
_SCHEMA = pa.schema({"id": pa.string(), DAY: pa.string(), CLOCK: pa.int64(), NOISE: pa.int64()})

Entry = tuple[bytes, bytes]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_Bounds = npt.NDArray[Any]
"""Numbers, or texts of one length."""


def day(number: int) -> str:
    """A partition; as long as any other."""
    return f"day-{number:06}"


def rows(partitions: int, files: int = IN_PARTITION, mark: int = 0) -> pa.Table:
    """One row for each of the first files of the first partitions."""
    ordinals = [p * IN_PARTITION + f for p in range(partitions) for f in range(files)]
    return pa.table(
        {
            "id": [f"{one:012}" for one in ordinals],
            DAY: [day(one // IN_PARTITION) for one in ordinals],
            CLOCK: [FIRST_CLOCK + one * CLOCKS_A_FILE + mark for one in ordinals],
            NOISE: [FIRST_CLOCK + one for one in ordinals],
        },
        _SCHEMA,
    )


@dataclass(frozen=True)
class LargeTable:
    """A table of ``files`` files, and ``commits`` on its timeline."""

    path: Path
    files: int
    commits: int = 1

    @property
    def partitions(self) -> int:
        """How many it has, those with rows included."""
        return self.files // IN_PARTITION

    def make(self) -> None:
        """Write the table, its timeline and its metadata table."""
        off = _OPTIONS | {"hoodie.metadata.enable": "false"}
        table = hudi.Table.create(
            str(self.path), _SCHEMA, name="large", record_key="id", partition_by=DAY, options=off
        )
        table.insert(rows(REAL), options=off)
        client = open_table(str(self.path), QUICK).client
        (first,) = client.timeline().completed_writes()
        _add_commits(client, first, self.commits - 1)
        hudi.Table.open(str(self.path)).upsert(rows(1, 1), options=_OPTIONS)
        (self.path / "files").write_text(str(self.files))
        client = open_table(str(self.path), QUICK).client
        made = _MadeUp(self.files, first.requested_time)
        columns = read_definitions(client.storage, client.config).columns(COLUMN_STATS)
        _put_again(client, FILES, made.lists)
        _put_again(client, COLUMN_STATS, partial(made.ranges, columns=columns))
        _put_again(client, PARTITION_STATS, partial(made.ranges_of_partitions, columns=columns))


def _add_commits(client: TableMetaClient, like: Instant, count: int) -> None:
    """Add commits of twenty files each, one every two milliseconds since ``like``."""
    metadata = client.read_commit(like)
    stats = {path: some[:1] for path, some in metadata.partition_to_write_stats.items()}
    body = encode(replace(metadata, partition_to_write_stats=stats))
    latest = like.effective_completion_time
    for _ in range(count):
        begun = next_instant_time(latest, latest)
        latest = next_instant_time(begun, begun)
        instant = Instant(begun, Action.COMMIT, State.REQUESTED)
        for state in (State.REQUESTED, State.INFLIGHT):
            client.storage.put(client.active.path(instant.to(state)), b"")
        done = instant.to(State.COMPLETED, latest)
        client.storage.put(client.active.path(done), body)
    time.sleep(0.002 * count)  # until the clock is there


def _put_again(
    client: TableMetaClient, partition: str, made: Callable[..., Iterator[Entry]]
) -> None:
    """Put the base files of a partition of the metadata table again, with what is made up."""
    metadata = metadata_client(client)
    bases = {
        one.name: one for one in metadata.storage.list(partition) if one.name.endswith(".hfile")
    }
    names = sorted(bases)
    for shard, name in enumerate(names):
        data = metadata.storage.read(f"{partition}/{name}")
        old = HFileReader.from_bytes(data, name)
        entries = dict(old.entries())
        encoder = RecordEncoder(name)
        both = _merged(entries, made(shard, len(names), encoder=encoder))
        options = HFileOptions(
            schema=old.schema,
            create_time_ms=0,
            full_keys=metadata.config.version <= 8,
            base_file=True,
        )
        assert BaseFileName.parse(name)
        metadata.storage.put(f"{partition}/{name}", write_hfile(both, options))


def _merged(entries: Mapping[bytes, bytes], made: Iterator[Entry]) -> Iterator[Entry]:
    """What is made up takes the place of what was there."""
    last = None
    for key, value in heapq.merge(made, sorted(entries.items()), key=lambda one: one[0]):
        if key != last:
            yield key, value
        last = key


class _MadeUp:
    """Records of the files that are not there, in the order of their keys."""

    def __init__(self, files: int, instant: str) -> None:
        self._first = REAL * IN_PARTITION
        self._ordinals = np.arange(self._first, files, dtype=np.int64)
        self._files = files
        random = np.random.default_rng(7).bytes(16 * len(self._ordinals))
        ids = (uuid.UUID(bytes=random[at : at + 16]) for at in range(0, len(random), 16))
        self._names = np.array([f"{one}-0_0-0-0_{instant}.parquet" for one in ids], "S")
        self._days = np.array([day(n) for n in range(files // IN_PARTITION)], "S")
        self._instant = instant

    def lists(self, shard: int, count: int, *, encoder: RecordEncoder) -> Iterator[Entry]:
        """Of each partition its files, and of all partitions the list."""
        assert count == 1 + shard
        days = [one.decode() for one in self._days]
        everything = FileList({one: FileEntry(0) for one in days})
        yield encoder.encode(MetadataRecord(ALL_PARTITIONS, RecordType.ALL_PARTITIONS, everything))
        names = [f"{number:0{self._names.itemsize}}" for number in range(IN_PARTITION)]
        like = FileList({name: FileEntry(FILE_BYTES) for name in names})
        _, text = encoder.encode(MetadataRecord("", RecordType.FILES, like))
        values = _spread(text, len(days) - REAL)
        for place, name in enumerate(names):
            _fill(values, text, name.encode(), self._names[place::IN_PARTITION])
        yield from zip(self._days[REAL:].tolist(), _texts(values), strict=True)

    def ranges(
        self, shard: int, count: int, *, columns: tuple[str, ...], encoder: RecordEncoder
    ) -> Iterator[Entry]:
        """The ranges of the columns of each file."""
        owners = self._ordinals // IN_PARTITION
        ids = np.array([id64(one.decode()) for one in self._days], "S12")[owners]
        hashes = np.array([id128(one.decode()) for one in self._names], "S24")
        for column in sorted(columns, key=id64):
            keys = np.char.add(id64(column).encode(), np.char.add(ids, hashes))
            order = np.argsort(keys)
            order = order[_shards(keys[order], count) == shard]
            lows, highs = self._bounds(column, self._ordinals[order], 1)
            values = _ranges(encoder, column, self._names[order], lows, highs)
            yield from zip(keys[order].tolist(), _texts(values), strict=True)

    def ranges_of_partitions(
        self, shard: int, count: int, *, columns: tuple[str, ...], encoder: RecordEncoder
    ) -> Iterator[Entry]:
        """The ranges of the columns of each partition."""
        firsts = np.arange(self._first, self._files, IN_PARTITION, dtype=np.int64)
        ids = np.array([id64(one.decode()) for one in self._days[REAL:]], "S12")
        for column in sorted(columns, key=id64):
            keys = np.char.add(id64(column).encode(), ids)
            order = np.argsort(keys)
            order = order[_shards(keys[order], count) == shard]
            lows, highs = self._bounds(column, firsts[order], IN_PARTITION)
            values = _ranges(
                encoder, column, self._days[REAL:][order], lows, highs, RecordType.PARTITION_STATS
            )
            yield from zip(keys[order].tolist(), _texts(values), strict=True)

    def _bounds(self, column: str, ordinals: Ints, width: int) -> tuple[_Bounds, _Bounds]:
        """Least and greatest value of files from these ordinals on."""
        last = ordinals + width - 1
        match column:
            case "_hoodie_commit_time":
                return (np.full(len(ordinals), self._instant, "S"),) * 2
            case "_hoodie_partition_path":
                return (self._days[ordinals // IN_PARTITION],) * 2
            case "_hoodie_record_key":
                texts = [np.array([f"{one:012}" for one in some], "S") for some in (ordinals, last)]
                return texts[0], texts[1]
            case "clock":
                begin = FIRST_CLOCK + ordinals * CLOCKS_A_FILE
                return begin, FIRST_CLOCK + last * CLOCKS_A_FILE + CLOCKS_A_FILE - 1
        if width == 1:
            begin = FIRST_CLOCK + (ordinals * _STRIDE) % self._files
            return begin, begin
        return np.full(len(ordinals), FIRST_CLOCK), np.full(
            len(ordinals), FIRST_CLOCK + self._files
        )


def _ranges(
    encoder: RecordEncoder,
    column: str,
    names: np.ndarray,
    lows: _Bounds,
    highs: _Bounds,
    kind: RecordType = RecordType.COLUMN_STATS,
) -> Bytes:
    """Encoded ranges, one a row."""
    is_text = lows.dtype.kind == "S"
    stated = (
        [b"L" * lows.itemsize, b"H" * lows.itemsize] if is_text else [_varint(_LOW), _varint(_HIGH)]
    )
    low, high = (
        [Wrapped("StringWrapper", one.decode()) for one in stated]
        if is_text
        else [Wrapped("LongWrapper", one) for one in (_LOW, _HIGH)]
    )
    name = b"N" * names.itemsize
    count = 1 if kind is RecordType.COLUMN_STATS else IN_PARTITION
    like = ColumnRange(
        name.decode(),
        column,
        low,
        high,
        count,
        0,
        100 * count,
        100 * count,
        is_tight_bound=kind is RecordType.PARTITION_STATS,
    )
    _, text = encoder.encode(MetadataRecord("", kind, like))
    values = _spread(text, len(names))
    _fill(values, text, name, names)
    for sought, some in zip(stated, (lows, highs), strict=True):
        _fill(values, text, sought, some if is_text else _varints(some))
    return values


def _shards(keys: _Bounds, count: int) -> Ints:
    """The file group of each key."""
    steps = range(0, len(keys), 100_000)
    parts = [pa.array(keys[at : at + 100_000].astype(str)) for at in steps]
    return np.concatenate([shards_of(one, count) for one in parts])


_LOW, _HIGH = (1 << 40) + 0x155555, (1 << 40) + 0x2AAAAA


def _spread(text: bytes, count: int) -> Bytes:
    return np.tile(np.frombuffer(text, np.uint8), (count, 1))


def _fill(values: Bytes, text: bytes, sought: bytes, texts: np.ndarray) -> None:
    """Replace a part of every row."""
    assert text.count(sought) == 1
    at, width = text.index(sought), len(sought)
    plain = np.ascontiguousarray(texts)
    values[:, at : at + width] = plain.view(np.uint8).reshape(len(plain), width)


def _varint(value: int) -> bytes:
    return _varints(np.array([value], np.int64)).tobytes()


def _varints(values: Ints) -> Bytes:
    """Numbers as Avro has them, six bytes each."""
    doubled = values.astype(np.uint64) << np.uint64(1)
    parts = [(doubled >> np.uint64(7 * place)) & np.uint64(127) for place in range(6)]
    found = np.stack(parts, axis=1).astype(np.uint8)
    found[:, :5] |= 128
    return found


def _texts(values: Bytes) -> Iterator[bytes]:
    width, data = values.shape[1], values.tobytes()
    return (data[at : at + width] for at in range(0, len(data), width))
