"""What parts of a table disagree about, and its duplicate record keys.

Inserts may make such keys, a record index forbids them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.footer import opened_file, read_columns
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.difference import Difference
from hudi_core.model.files import FileSlice, FileStatus
from hudi_core.schema.alignment import stored_fields
from hudi_core.schema.table_schema import RECORD_KEY


class Source(StrEnum):
    """The part that is wrong."""

    STORAGE = "storage"
    FOOTER = "footer"
    TIMELINE = "timeline"
    METADATA_TABLE = "metadata table"
    FORMAT = "format"
    DATA_FILE = "data file"
    CHECKSUM = "checksum file"
    METASTORE = "metastore"


@dataclass(frozen=True, slots=True)
class TableValidation:
    """What a validation found.

    ``rows`` is known only where footers were read; ``checked`` counts what was compared by kind;
    ``skipped`` is what was not, and why. ``repeated_keys`` is ``None`` where they were not looked
    for.

    ``orphans`` belong to nothing, such as files of a write that another engine began and gave up:
    they take room, and are no difference. ``old_lists`` are data files that a format's readers fail
    on, as lists have two levels in them.
    """

    path: str
    table_format: str
    differences: tuple[Difference, ...]
    files: int
    rows: int | None
    checked: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()
    repeated_keys: RepeatedKeys | None = None
    old_lists: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found."""
        return not self.differences

    def of(self, source: Source) -> tuple[Difference, ...]:
        """Return the differences caused by one part of the table."""
        return tuple(one for one in self.differences if one.source == source)


# --- repeated keys --------------------------------------------------------------------------------

_EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A record key with several rows.

    ``paths`` has the first file of each row's slice, relative to the base path.
    """

    key: str
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.key!r} {len(self.paths)} times ({', '.join(dict.fromkeys(self.paths))})"


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """The record keys of a table that several rows have.

    ``rows`` counts all rows with a repeated key. ``are_forbidden`` means that the table's record
    index knows one place of a key, so that rows would be missed.
    """

    keys: int
    rows: int
    examples: tuple[RepeatedKey, ...]
    are_forbidden: bool


def find_repeated_keys(stored: StoredSlices, slices: Iterable[FileSlice]) -> RepeatedKeys:
    """Find duplicate record keys; reads the keys of all rows.

    A key is looked for in one partition, each a task; where a record index is kept for the whole
    table, in all, and then tasks read keys alone. Memory holds the keys that are compared together.

    ``slices`` are the present file slices.
    """
    client = stored.client
    is_indexed = RECORD_INDEX in StoredPartitions.of(client.config).complete
    everywhere = is_indexed and not read_definitions(client.storage, client.config).is_partitioned(
        RECORD_INDEX
    )
    scopes: dict[str, list[FileSlice]] = {}
    for one in sorted(slices, key=lambda one: one.files[0].path):
        scopes.setdefault("" if everywhere else one.partition_path, []).append(one)
    if len(scopes) == 1:
        counts = [_repeated(stored, compared) for compared in scopes.values()]
    else:
        counts = list(client.map_files(partial(_repeated, stored.for_tasks), list(scopes.values())))
    examples = [key for _, _, some in counts for key in some]
    return RepeatedKeys(
        sum(keys for keys, _, _ in counts),
        sum(rows for _, rows, _ in counts),
        tuple(examples[:_EXAMPLES]),
        is_indexed,
    )


def _keys(stored: StoredSlices, one: FileSlice) -> pa.ChunkedArray:
    names, path = [RECORD_KEY], one.files[0].path
    is_merged = bool(one.log_files)
    rows = stored.merged(one, names) if is_merged else read_columns(stored.client, path, names)
    # one array of other strings holds no more than 2 GiB
    return rows.column(RECORD_KEY).cast(pa.large_string())


def _repeated(
    stored: StoredSlices, slices: Sequence[FileSlice]
) -> tuple[int, int, list[RepeatedKey]]:
    """Count duplicate keys and their rows, and give some examples."""
    paths = [one.files[0].path for one in slices]
    columns = list(stored.client.map_files(partial(_keys, stored.for_tasks), slices))
    chunks = [chunk for column in columns for chunk in column.chunks]
    total = pa.chunked_array(chunks, pa.large_string())
    encoded = total.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) == len(encoded):
        return 0, 0, []
    codes = encoded.indices.to_numpy()
    counts = np.bincount(codes)
    repeated = np.flatnonzero(counts > 1)
    ends = np.cumsum([len(column) for column in columns])
    examples = []
    for code in repeated[:_EXAMPLES].tolist():
        files = np.searchsorted(ends, np.flatnonzero(codes == code), side="right")
        key = encoded.dictionary[code].as_py()
        examples.append(RepeatedKey(key, tuple(paths[file] for file in files.tolist())))
    return len(repeated), int(counts[repeated].sum()), examples


# --- stored record keys compared with those that the columns make ---------------------------------


_BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class KeyDifferences:
    """The stored and the made keys of one file.

    ``rows`` is 0 where the file stores no keys; ``stored`` and ``made`` are the keys of the first
    row that differs.
    """

    path: str
    holds_keys: bool
    rows: int = 0
    differences: int = 0
    stored: str | None = None
    made: str | None = None

    def __str__(self) -> str:
        return f"{self.path} stores {self.stored!r} where its columns make {self.made!r}"


def holds_keys(client: TableMetaClient, path: str) -> bool:
    """Whether a data file stores its record keys."""
    with opened_file(client, path) as file:
        return RECORD_KEY in file.schema_arrow.names


def log_lacks_keys(stored: StoredSlices, log: FileStatus, has_keys: bool) -> bool:
    """Whether a log does not store record keys as it should."""
    return any(
        rows.column(RECORD_KEY).null_count != (0 if has_keys else rows.num_rows)
        for rows, _ in stored.written(log)
    )


def compare_keys(stored: StoredSlices, slices: Iterable[FileSlice]) -> list[KeyDifferences]:
    """Compare the keys of files and logs, row by row."""
    client, sent = stored.client, stored.for_tasks
    FileKeys.made_by(client)  # refuses a table whose columns make no keys, without a file too
    slices = list(slices)
    paths = [one.base_file.path for one in slices if one.base_file is not None]
    logs = [log.status for one in slices for log in one.log_files]
    return [
        *client.map_files(partial(_keys_of_file, sent.client), paths),
        *client.map_files(partial(_keys_of_log, sent), logs),
    ]


def _keys_of_file(client: TableMetaClient, path: str) -> KeyDifferences:
    with opened_file(client, path) as file:
        return _of_file(FileKeys.made_by(client), file, path)


def _of_file(keys: FileKeys, file: pq.ParquetFile, path: str) -> KeyDifferences:
    stored = stored_fields(file.schema_arrow)
    needed = keys.columns(stored, path)
    if RECORD_KEY not in file.schema_arrow.names:
        return KeyDifferences(path, False)
    columns = list(dict.fromkeys([RECORD_KEY, *needed]))
    tables = (
        pa.Table.from_batches([batch]) for batch in file.iter_batches(_BATCH_ROWS, columns=columns)
    )
    both = (
        (rows.column(RECORD_KEY).cast(pa.string()), keys.of_rows(rows, stored, path))
        for rows in tables
    )
    return _compared(path, both)


def _keys_of_log(stored: StoredSlices, log: FileStatus) -> KeyDifferences:
    return _compared(log.path, _pairs_of_log(FileKeys.made_by(stored.client), stored, log))


def _pairs_of_log(
    keys: FileKeys, stored: StoredSlices, log: FileStatus
) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray]]:
    """Yield stored and made keys of rows.

    Partial updates may lack the columns that keys are made of.
    """
    for rows, _ in stored.written(log):
        if {RECORD_KEY, *keys.made_of} <= {*rows.column_names}:
            own = rows.filter(pc.is_valid(rows.column(RECORD_KEY)))
            yield own.column(RECORD_KEY), keys.made(own, log.path)


def _compared(path: str, both: Iterable[tuple[pa.ChunkedArray, pa.ChunkedArray]]) -> KeyDifferences:
    rows = differences = 0
    example: tuple[str | None, str | None] = None, None
    for held, made in both:
        differs = pc.fill_null(pc.not_equal(held, made), True)
        count = pc.sum(differs, min_count=0).as_py()
        if count and not differences:
            place = pc.index(differs, True).as_py()
            example = held[place].as_py(), made[place].as_py()
        rows, differences = rows + len(held), differences + count
    return KeyDifferences(path, True, rows, differences, *example)
