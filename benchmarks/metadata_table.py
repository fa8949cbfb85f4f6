"""Tables of very many small files, as the metadata table is made for.

The first file is written by this project, and gives its commit to all the others: small parquet
files of the same columns, each with its own rows, names as a writer gives them, and statistics of
their own. Writing them one by one would flush each to the disk, and takes hours for 100,000. Their
metadata table is built by the next write, from a listing and the footers, as that of any table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_core.model.commit import WriteStat
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import encode

DAY, CLOCK, NOISE = "day", "clock", "noise"
"""The partition; a column that grows from file to file; one that lies anywhere in each."""
CLOCKS_A_FILE = 10
ROWS_A_FILE = 2
_STRIDE = 7919
_MARK = ".hoodie_partition_metadata"
_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        DAY: pa.string(),
        CLOCK: pa.int64(),
        NOISE: pa.float64(),
        "name": pa.string(),
    }
)
_OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": f"{CLOCK},{NOISE}",
}
"""Of a table of very many files."""


@dataclass(frozen=True)
class ManyFiles:
    """A table of many files.

    ``path``: where it is. ``partitions``, ``files``: how many it has of both, evenly spread; one
    more partition, of two files, has two rows. ``every_column``: whether the metadata table has the
    ranges of every column, as by default, and not just those of two.
    """

    path: Path
    partitions: int
    files: int
    every_column: bool = False

    @property
    def in_partition(self) -> int:
        """Files of each partition."""
        return self.files // self.partitions

    @property
    def parquet(self) -> list[Path]:
        """Its data files."""
        return sorted(self.path.glob("*/*.parquet"))

    def day(self, number: int) -> str:
        """Return the value of a partition's column."""
        return f"day-{number:05}"

    def noise(self, ordinal: int) -> float:
        """Return the least noise of a file; neighbours have nothing in common."""
        return float(ordinal * _STRIDE % self.files)

    def make(self) -> None:
        """Write the table and its metadata table."""
        options = {"hoodie.metadata.enable": "true"} if self.every_column else _OPTIONS
        self._write_first().insert(_row("last"), options=options)

    def _write_first(self) -> hudi.Table:
        off = {"hoodie.metadata.enable": "false"}
        table = hudi.Table.create(
            str(self.path), _SCHEMA, name="many", record_key="id", partition_by=DAY, options=off
        )
        table.insert(_row("first"), options=off)
        (first,) = self.path.glob("*/*.parquet")
        written = pq.ParquetFile(first).read()
        file_id, _, instant = first.stem.split("_")
        number = file_id.rpartition("-")[2]
        for folder, names in self._names(f"-{number}_0-0-0_{instant}.parquet"):
            folder.mkdir()
            (folder / _MARK).write_bytes((first.parent / _MARK).read_bytes())
            for ordinal, name in names:
                pq.write_table(
                    self._rows(written, folder.name, ordinal, name), folder / name, compression=None
                )
        _name_all(table)
        return table

    def _names(self, end: str) -> Iterator[tuple[Path, list[tuple[int, str]]]]:
        random = np.random.default_rng(self.files)
        for partition in range(self.partitions):
            begin = partition * self.in_partition
            ordinals = range(begin, begin + self.in_partition)
            names = [str(uuid.UUID(bytes=random.bytes(16), version=4)) + end for _ in ordinals]
            yield self.path / self.day(partition), list(zip(ordinals, names, strict=True))

    def _rows(self, like: pa.Table, day: str, ordinal: int, name: str) -> pa.Table:
        keys = [f"{ordinal}-{row}" for row in range(ROWS_A_FILE)]
        clock = ordinal * CLOCKS_A_FILE
        some = ROWS_A_FILE
        values = {
            "_hoodie_commit_time": like["_hoodie_commit_time"].to_pylist() * some,
            "_hoodie_commit_seqno": [f"{ordinal}_{row}" for row in range(some)],
            "_hoodie_record_key": keys,
            "_hoodie_partition_path": [day] * some,
            "_hoodie_file_name": [name] * some,
            "id": keys,
            DAY: [day] * some,
            CLOCK: [clock, clock + CLOCKS_A_FILE - 1],
            NOISE: [self.noise(ordinal), self.noise(ordinal) + 0.5],
            "name": [f"name of {key}" for key in keys],
        }
        return pa.table(values, schema=like.schema)


def _name_all(table: hudi.Table) -> None:
    """Have the table's one commit name all files."""
    client = open_table(table.path, {}).client
    (commit,) = client.timeline().completed_writes()
    metadata = client.read_commit(commit)
    (like,) = metadata.stats
    stats: dict[str, list[WriteStat]] = {}
    for file in sorted(Path(table.path).glob("*/*.parquet")):
        day, size = file.parent.name, file.stat().st_size
        stat = replace(
            like,
            file_id=file.name.partition("_")[0],
            path=f"{day}/{file.name}",
            partition_path=day,
            file_size_in_bytes=size,
            total_write_bytes=size,
        )
        stats.setdefault(day, []).append(stat)
    named = {day: tuple(some) for day, some in stats.items()}
    body = encode(replace(metadata, partition_to_write_stats=named))
    client.storage.put(client.active.path(commit), body)


def _row(key: str) -> pa.Table:
    # beyond the clocks of all other rows
    return pa.table([[key], ["day-first"], [-1], [0.0], [key]], schema=_SCHEMA)


def some_of_each(many: ManyFiles, count: int) -> pa.Table:
    """Return a new version of one row of so many files, spread over the table."""
    ordinals = range(0, many.files, max(1, many.files // count))[:count]
    rows = [
        {
            "id": f"{ordinal}-0",
            DAY: many.day(ordinal // many.in_partition),
            CLOCK: ordinal,
            NOISE: 0.25,
            "name": f"new name of {ordinal}",
        }
        for ordinal in ordinals
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)
