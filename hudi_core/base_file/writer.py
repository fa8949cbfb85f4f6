"""Writes one base file: parquet, meta columns, key footer and bloom filter.

Source: ``hudi-format`` section 4.

The file is written under its final name: no reader looks at a data file that no completed instant
names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from hudi_core.base_file.encoded_columns import is_encoded, joined
from hudi_core.base_file.encodings import FEW_ROWS, dictionary_leaves
from hudi_core.base_file.key_bounds import BloomSizing, RecordKeyCollector
from hudi_core.base_file.key_footer import (
    AVRO_SCHEMA_FOOTER,
    BLOOM_FOOTER,
    BLOOM_TYPE_FOOTER,
    BOUNDS_FOOTER,
    BOUNDS_OF_ALL,
    MAX_KEY_FOOTER,
    MIN_KEY_FOOTER,
    KeyFooter,
)
from hudi_core.base_file.statistics import StatisticsCollector
from hudi_core.base_file.unbounded_columns import unbounded_end
from hudi_core.errors import StorageError
from hudi_core.hashing.bloom import TYPE_CODE
from hudi_core.model.stats import FileStats
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY, TableSchema
from hudi_core.storage.disk import sync_file

MODEL_FOOTER: Final = "writer.model.name"

_HELD_BYTES: Final = 32 << 20
"""Bytes of rows in memory that wait for more to make a larger row group."""
_FEW_BATCH_ROWS: Final = 1024
"""Arrow's own number."""
_MOST_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class BaseFileOptions:
    """How base files are written.

    ``codec`` is pyarrow's name; a ``level`` of ``None`` is its default. ``few_rows_codec`` is that
    of files in memory with few rows, where it is another. ``row_group_bytes`` is a maximum, of rows
    in memory; ``page_bytes`` is before compression. ``dictionary`` is for columns with few distinct
    values. With ``fsync``, a local file is on the disk when it is closed, not
    only with the operating system.
    """

    codec: str = "zstd"
    level: int | None = 1
    few_rows_codec: str | None = None
    row_group_bytes: int = 120 << 20
    page_bytes: int = 1 << 20
    dictionary: bool = True
    bloom: BloomSizing | None = field(default_factory=BloomSizing)
    fsync: bool = True


@dataclass(frozen=True, slots=True)
class BaseFileResult:
    """What is known of a complete base file.

    ``stats`` is by leaf path, meta columns included. The keys are bounds in Java's order, ``None``
    without rows or without keys; ``bloom`` is empty without a filter.
    """

    size: int
    rows: int
    stats: FileStats
    min_key: str | None
    max_key: str | None
    bloom: bytes = b""


class BaseFileWriter:
    """Writes one base file, row group by row group.

    Nothing reaches the store before the first row group is complete.

    Memory holds one row group at most, and the record keys where a bloom filter is wanted.

    The Avro schema in the footer is named after ``table_name``. ``meta_columns`` is empty with
    ``hoodie.populate.meta.fields=false``.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        schema: TableSchema,
        table_name: str,
        options: BaseFileOptions | None = None,
        *,
        meta_columns: Sequence[str] = META_COLUMNS,
    ) -> None:
        self.path: Final = path
        self.schema: Final = schema.with_some_meta(meta_columns)
        self._filesystem = filesystem
        self._options = options or BaseFileOptions()
        self._avro_schema = schema.to_avro(table_name, True, meta_columns)
        self._keys = RecordKeyCollector(self._options.bloom)
        self._left_out = sorted(set(META_COLUMNS).difference(meta_columns))
        self._has_keys = RECORD_KEY in meta_columns
        self._inherits = False
        self._dictionaries: Mapping[str, bool] | None = None
        self._statistics = StatisticsCollector(self.schema)
        self._footers: list[pq.FileMetaData] = []
        self._held: list[pa.Table] = []
        self._encoded: frozenset[str] | None = None
        self._held_bytes = 0
        self._stream: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0

    @property
    def bytes_written(self) -> int:
        """Bytes given to the store so far."""
        return 0 if self._stream is None else int(self._stream.tell())

    def inherit(
        self,
        known: KeyFooter,
        added: pa.ChunkedArray,
        dictionaries: Mapping[str, bool] | None = None,
        stay: Sequence[pa.ChunkedArray] | None = None,
    ) -> None:
        """Build on the file's previous version, without rehashing the keys it keeps.

        Call it before the first row is written.

        ``added`` are the keys that the last version does not have, written with ``stays=False``.
        ``stay`` are the other keys, needed where the last version had keys that are gone.
        ``dictionaries`` of ``None`` lets the rows decide.
        """
        self._inherits = self._keys.inherit(known, added, stay)
        self._dictionaries = dictionaries

    def write(self, rows: pa.Table | pa.RecordBatch, *, stays: bool = False) -> None:
        """Add rows in the schema of the file (:attr:`schema`).

        A column of the record keys that the file does not hold makes its key footers all the same.

        ``stays`` is whether the keys were in the last version (:meth:`inherit`). String columns may
        be dictionary encoded.
        """
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        self._has_keys |= RECORD_KEY in table.column_names
        if self._has_keys and not (stays and self._inherits):
            for keys in table.column(RECORD_KEY).chunks:
                self._keys.add(keys)
        table = table.drop_columns([one for one in self._left_out if one in table.column_names])
        self._rows += table.num_rows
        self._hold(table)
        if self._held_bytes >= _HELD_BYTES:
            self._write_group()

    def close(self) -> BaseFileResult:
        """Complete the file."""
        if self._held:
            self._write_group(is_last=True)
        writer, stream = self._opened(self.schema.empty_table())
        footers = self._key_values()
        with self._translated():
            _end(writer, stream, self._footers, self._statistics.with_nan, footers)
            size = int(stream.tell())
            stream.close()
            if self._options.fsync and self._filesystem.type_name == "local":
                sync_file(self.path)
        stats = self._statistics.finish(self._footers[0])
        keys, bloom = self._keys, footers.get(BLOOM_FOOTER, "").encode()
        return BaseFileResult(size, self._rows, stats, keys.min_key, keys.max_key, bloom)

    def abort(self) -> None:
        """Give the file up and delete what there is of it.

        What cannot be deleted now has a marker, by which a rollback finds it.
        """
        if self._writer is not None:
            # or it would try to complete the file when it is collected, and complain
            self._writer.is_open = False
        stream, self._stream, self._writer = self._stream, None, None
        self._held, self._held_bytes = [], 0
        if stream is None:
            return
        with contextlib.suppress(OSError):
            stream.close()
        # why it is given up must reach the caller, and nothing else
        with contextlib.suppress(OSError):
            self._filesystem.delete_file(self.path)

    def _hold(self, rows: pa.Table) -> None:
        limit = self._options.row_group_bytes
        row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
        while rows.num_rows:
            part = rows.slice(0, max(1, (limit - self._held_bytes) // row_bytes))
            while rows.num_rows > part.num_rows > 1 and part.nbytes > limit:  # its rows are heavier
                part = part.slice(0, part.num_rows // 2)
            rows = rows.slice(part.num_rows)
            self._held.append(part)
            self._held_bytes += part.num_rows * row_bytes
            if self._held_bytes + row_bytes > limit:
                self._write_group()

    def _write_group(self, *, is_last: bool = False) -> None:
        group = joined(self._held, self.schema, self._encoded)
        self._held, self._held_bytes = [], 0
        self._statistics.observe(group)
        writer, _ = self._opened(group, is_whole=is_last)
        with self._translated():
            writer.write_table(group, row_group_size=group.num_rows)

    def _opened(
        self, sample: pa.Table, *, is_whole: bool = False
    ) -> tuple[pq.ParquetWriter, pa.NativeFile]:
        if self._writer is not None and self._stream is not None:
            return self._writer, self._stream
        with self._translated():
            if self._filesystem.type_name == "local":
                # only local stores have folders; elsewhere this would leave marker objects
                self._filesystem.create_dir(os.path.dirname(self.path), recursive=True)
            self._stream = self._filesystem.open_output_stream(self.path)
        # what the first row group has encoded, the others have
        self._encoded = _encoded_names(sample)
        with self._translated():  # it writes the first bytes
            paths = dictionary_leaves(sample, self.schema, self._dictionaries, is_whole=is_whole)
            self._writer = _parquet_writer(
                self._stream, sample, self._options, self._footers, paths
            )
        return self._writer, self._stream

    def _key_values(self) -> dict[str, str]:
        footers = {
            MODEL_FOOTER: "avro",
            AVRO_SCHEMA_FOOTER: self._avro_schema,
            BOUNDS_FOOTER: BOUNDS_OF_ALL,
        }
        if not self._has_keys:
            return footers
        keys = self._keys
        if keys.min_key is not None and keys.max_key is not None:
            footers |= {MIN_KEY_FOOTER: keys.min_key, MAX_KEY_FOOTER: keys.max_key}
        bloom = keys.bloom()
        if bloom is not None:
            footers |= {BLOOM_TYPE_FOOTER: TYPE_CODE, BLOOM_FOOTER: bloom.to_base64()}
        return footers

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"The data file {self.path} cannot be written ({error})",
                "Check free space and permissions, then write again.",
                path=self.path,
            ) from error


def parquet_content(
    rows: pa.Table, schema: pa.Schema, options: BaseFileOptions
) -> tuple[pa.Buffer, FileStats]:
    """Return some rows as a Parquet file in memory, and its statistics.

    It is as base files are, but has no entries about record keys, and of few rows no dictionaries
    but those that the rows come with. ``schema`` is that of the rows with no column encoded.
    """
    statistics = StatisticsCollector(schema)
    sink = pa.BufferOutputStream()
    footers: list[pq.FileMetaData] = []
    encoded = _encoded_names(rows)
    if rows.num_rows < FEW_ROWS and options.few_rows_codec is not None:
        options = replace(options, codec=options.few_rows_codec, level=None)
    count = max(1, options.row_group_bytes * rows.num_rows // max(1, rows.nbytes))
    writer: pq.ParquetWriter | None = None
    for start in range(0, rows.num_rows, count):
        group = joined([rows.slice(start, count)], schema, encoded)
        if writer is None:
            paths = dictionary_leaves(group, schema, is_whole=count >= rows.num_rows)
            writer = _parquet_writer(sink, group, options, footers, paths)
        statistics.observe(group)
        writer.write_table(group, row_group_size=group.num_rows)
    _end(writer, sink, footers, statistics.with_nan, {BOUNDS_FOOTER: BOUNDS_OF_ALL})
    return sink.getvalue(), statistics.finish(footers[0])


def _encoded_names(rows: pa.Table) -> frozenset[str]:
    return frozenset(field.name for field in rows.schema if is_encoded(field.type))


def _parquet_writer(
    stream: pa.NativeFile,
    sample: pa.Table,
    options: BaseFileOptions,
    footers: list[pq.FileMetaData],
    dictionaries: Sequence[str],
) -> pq.ParquetWriter:
    """Open a Parquet file whose first row group is ``sample``.

    ``footers`` takes its footer; ``dictionaries`` are the paths of leaves that have one, where the
    options allow it.
    """
    return pq.ParquetWriter(
        stream,
        sample.schema,
        compression=options.codec,
        compression_level=options.level,
        data_page_size=options.page_bytes,
        write_batch_size=_batch_rows(sample, options.page_bytes),
        use_dictionary=list(dictionaries) if options.dictionary else False,
        # Arrow's own schema would bring back types that the table does not have
        store_schema=False,
        metadata_collector=footers,
    )


def _end(
    writer: pq.ParquetWriter,
    stream: pa.NativeFile,
    footers: list[pq.FileMetaData],
    unbounded: frozenset[int],
    key_values: Mapping[str, str],
) -> None:
    """Complete a Parquet file.

    ``footers`` has its footer then; the columns of the numbers in ``unbounded`` get no bounds.
    """
    if not unbounded:
        writer.add_key_value_metadata(key_values)
    writer.close()
    if unbounded:
        stream.write(unbounded_end(footers[0], unbounded, key_values))


def _batch_rows(sample: pa.Table, page_bytes: int) -> int:
    """Return how many rows of a column are encoded at a time.

    A page may end only behind such a batch: values of the widest column fill half of one. Heavy
    ones are encoded one by one, as the writer holds a page several times.
    """
    if sample.num_rows <= _FEW_BATCH_ROWS and sample.nbytes <= page_bytes:
        return _FEW_BATCH_ROWS
    widest = max((column.nbytes for column in sample.columns), default=0)
    rows = int(page_bytes * sample.num_rows // (2 * max(1, widest)))
    return min(max(rows, 1), _MOST_BATCH_ROWS)
