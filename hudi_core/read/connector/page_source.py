"""Rows of splits as Arrow batches, by format of base files.

What a worker does with a split: only the columns that are asked for are read, and row groups whose
statistics exclude the predicate are not. A format is a line of :data:`PAGE_SOURCES`.
"""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from hudi_core.errors import DataFileError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import FileId, FileStatus, PartitionPath
from hudi_core.read.connector.metadata import HIDDEN_COLUMNS
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.connector.splits import Split
from hudi_core.read.filters import require_columns
from hudi_core.read.plan import PlannedSlice, ReadPlan, stored_file
from hudi_core.read.scan import FileScan, file_scan
from hudi_core.storage.safe_path import require_safe_path

PageSource: TypeAlias = Callable[[FileScan, Split], Iterator[pa.RecordBatch]]
"""Reads the rows of a split with the columns and the condition of a scan."""


def parquet_pages(scan: FileScan, split: Split) -> Iterator[pa.RecordBatch]:
    """The rows of the row groups that begin within a split."""
    file = _planned(split)
    if (split.start, split.length) == (0, split.file_size):
        return scan.read([file])
    return scan.read_range(file, split.start, split.start + split.length)


PAGE_SOURCES: Final[Mapping[str, PageSource]] = {".parquet": parquet_pages}
"""Readers by the end of a base file's name."""
_NOT_READ: Final[Mapping[str, str]] = {
    ".orc": "ORC",
    ".avro": "Avro",
    ".hfile": "HFile",
    ".lance": "Lance",
}


@dataclass(frozen=True)
class PageSources:
    """Makes page sources for the splits of tables.

    A split names a table and a file in it; where that file is, and how its store is reached, the
    table itself and the options of this process say.

    ``client_of`` opens a table and raises ``OutdatedScanError`` where its mark (see
    :func:`~hudi_core.read.connector.listing.files_mark`) differs from the given one;
    ``require_mark`` raises it where the table at a place has another mark by now. ``formats`` are
    keyed by the end of a base file's name.
    """

    client_of: Callable[[str, str], TableMetaClient]
    require_mark: Callable[[str, str], object]
    formats: Mapping[str, PageSource] = field(default_factory=lambda: PAGE_SOURCES)

    def create(
        self,
        split: Split,
        columns: Sequence[str] | None = None,
        predicate: TupleDomain | None = None,
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows of a split.

        Without ``columns`` all but the hidden ones are returned; ``predicate`` narrows the rows of
        the split further. ``DataFileError``, and ``OutdatedScanError`` where files are gone, come
        only while the reader is read.
        """
        source = self._source(split)
        for path in (split.file, *split.log_files):
            require_safe_path(path)
        asked = list(split.schema.names if columns is None else columns)
        hidden = {name: HIDDEN_COLUMNS[name] for name in asked if name in HIDDEN_COLUMNS}
        stored = [name for name in asked if name not in hidden]
        require_columns(stored, split.schema)
        fields = [
            hidden[name].field if name in hidden else split.schema.field(name) for name in asked
        ]
        output = pa.schema(fields)
        both = split.predicate if predicate is None else split.predicate.intersect(predicate)
        if both.is_none:
            return output.empty_table().to_reader()
        # where no column of the file is asked for, one still counts the rows
        needed = stored or _narrow(split.schema)
        client = self.client_of(split.table, split.mark)
        plan = ReadPlan((), split.schema)
        if split.log_files:
            plan = ReadPlan((_planned(split),), split.schema, timeline=client.timeline())
        scan = file_scan(client, plan, needed, both.to_filter(split.schema), batch_rows)
        batches = self._explained(source(scan, split), split)
        if hidden or not stored:
            facts = {
                name: one.scalar(split, lambda: _modified(client, split))
                for name, one in hidden.items()
            }
            batches = _with_hidden(batches, output, facts)
        return pa.RecordBatchReader.from_batches(output, batches)

    def _explained(
        self, batches: Iterator[pa.RecordBatch], split: Split
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except DataFileError:
            self.require_mark(split.table, split.mark)
            raise

    def _source(self, split: Split) -> PageSource:
        if split.log_files:
            return _merged_pages
        extension = posixpath.splitext(split.file)[1].lower()
        found = self.formats.get(extension)
        if found is None:
            name = _NOT_READ.get(extension, extension or "no known format")
            raise UnsupportedTableError(
                split.table,
                f"has base files of format {name}, such as {split.file}",
                f"Only {', '.join(sorted(self.formats))} is read.",
            )
        return found


def _merged_pages(scan: FileScan, split: Split) -> Iterator[pa.RecordBatch]:
    """The rows of a file slice with logs."""
    return scan.read([_planned(split)])


def _planned(split: Split) -> PlannedSlice:
    folder, _, name = split.file.rpartition("/")
    values = {key.name: key.value for key in split.partition_keys}
    file_id = FileId(name.lstrip(".").partition("_")[0])
    logs = zip(split.log_files, split.log_sizes, strict=True)
    return PlannedSlice(
        split.file,
        split.path,
        split.file_size,
        PartitionPath(folder),
        file_id,
        values,
        split.instant,
        tuple(FileStatus(*log) for log in logs),
        split.until,
        not name.startswith("."),
    )


def _narrow(schema: pa.Schema) -> list[str]:
    fixed = [one.name for one in schema if pa.types.is_primitive(one.type)]
    return [*fixed, *schema.names][:1]


def _with_hidden(
    batches: Iterator[pa.RecordBatch], output: pa.Schema, facts: Mapping[str, pa.Scalar]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not output.names:  # to be counted
            yield batch.select([])
            continue
        columns = [
            pa.repeat(facts[name], batch.num_rows) if name in facts else batch.column(name)
            for name in output.names
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=output)


def _modified(client: TableMetaClient, split: Split) -> dt.datetime | None:
    found = stored_file(client, split.file)
    return None if found is None else dt.datetime.fromtimestamp(found.modified_ms / 1000, dt.UTC)
