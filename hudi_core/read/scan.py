"""Rows of planned files as Arrow batches."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_core.errors import DataFileError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import BasePath
from hudi_core.read.evolution import can_push_down, referenced_columns
from hudi_core.read.filters import RowFilter, check_columns, to_expression
from hudi_core.read.plan import PlannedFile, ReadPlan
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.layout import Layout
from hudi_core.storage.options import StorageOptions

_FOOTERS_AT_A_TIME: Final = 16
_FILES_AT_A_TIME: Final = 256
"""Files whose footers are read before the first of them is scanned, where there is a filter."""
_FORMAT: Final = ds.ParquetFileFormat(
    # some writers store timestamps as INT96, which Arrow would read as nanoseconds
    read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
)


def scan(
    client: TableMetaClient,
    plan: ReadPlan,
    columns: Sequence[str] | None = None,
    row_filter: RowFilter | None = None,
    batch_rows: int | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of a plan.

    Only the columns asked for and those the filter needs are read, and row groups whose statistics
    exclude the filter are skipped. Files are brought to the plan's schema: columns they lack are
    null, narrower types are widened, in nested types too.

    Parameters
    ----------
    client
        The table.
    plan
        What to read.
    columns
        Names of the columns to return, in this order; ``None`` for all.
    row_filter
        Rows to return; ``None`` for all.
    batch_rows
        Most rows of one batch; ``None`` for Arrow's default.

    Raises
    ------
    SchemaError
        An unknown column, or a filter that does not fit. Raised here, before a file is opened.
    DataFileError
        A file is missing or damaged. Raised while the reader is read.
    """
    scanned = file_scan(client, plan, columns, row_filter, batch_rows)
    return pa.RecordBatchReader.from_batches(scanned.output_schema, scanned.read(plan.files))


def file_scan(
    client: TableMetaClient,
    plan: ReadPlan,
    columns: Sequence[str] | None = None,
    row_filter: RowFilter | None = None,
    batch_rows: int | None = None,
) -> FileScan:
    """Return what reads the rows of the plan's files, here or in the tasks of an engine.

    See :func:`scan` for the parameters.

    Raises
    ------
    SchemaError
        An unknown column, or a filter that does not fit.
    """
    check_columns(columns, plan.schema)
    wanted = tuple(plan.schema.names if columns is None else columns)
    conditions = [to_expression(row_filter, plan.schema), plan.row_condition()]
    given = [condition for condition in conditions if condition is not None]
    condition = reduce(operator.and_, given) if given else None
    return FileScan(
        client.base_path,
        client.storage_options,
        client.layout,
        plan.schema,
        wanted,
        condition,
        batch_rows,
    )


@dataclass(frozen=True, slots=True)
class FileScan:
    """What every file of one scan is read with; a frozen value that crosses to executors.

    Attributes
    ----------
    base_path, storage_options, layout
        The table, how to reach its files, and where they lie.
    schema
        What files are brought to.
    columns
        Names of the columns to return.
    condition
        Rows to return; ``None`` for all.
    batch_rows
        Most rows of one batch; ``None`` for Arrow's default.
    """

    base_path: BasePath
    storage_options: StorageOptions
    layout: Layout
    schema: pa.Schema
    columns: tuple[str, ...]
    condition: pc.Expression | None
    batch_rows: int | None

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def read(self, files: Sequence[PlannedFile]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files, in their order.

        Raises
        ------
        DataFileError
            A file is missing or damaged.
        """
        if not files:
            return
        filesystem, root = data_filesystem(self.base_path, self.storage_options)
        fragments = [
            _FORMAT.make_fragment(f"{root}/{self.layout.physical(file.path)}", filesystem)
            for file in files
        ]
        columns = list(self.columns)
        reader = _Reader(self.schema, filesystem, columns, self.condition, self.batch_rows)
        try:
            for batch in reader.read(fragments):
                if batch.num_rows:
                    yield batch
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataFileError(self.base_path, str(error).split("\n", 1)[0]) from error


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads files of one file system."""

    schema: pa.Schema
    filesystem: pafs.FileSystem
    columns: list[str]
    condition: pc.Expression | None
    batch_rows: int | None

    def read(self, fragments: Sequence[ds.Fragment]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files, in their order."""
        for pushed_down, some in self._by_kind(fragments):
            if pushed_down or self.condition is None:
                yield from self._scan(some, self.columns, self.condition)
                continue
            needed = referenced_columns(self.condition, self.schema, self.schema.names)
            columns = list(dict.fromkeys([*self.columns, *sorted(needed)]))
            for batch in self._scan(some, columns, None):
                rows = pa.Table.from_batches([batch]).filter(self.condition)
                yield from rows.select(self.columns).to_batches()

    def _scan(
        self, fragments: Sequence[ds.Fragment], columns: list[str], condition: pc.Expression | None
    ) -> pa.RecordBatchReader:
        limits = {} if self.batch_rows is None else {"batch_size": self.batch_rows}
        dataset = ds.FileSystemDataset(list(fragments), self.schema, _FORMAT, self.filesystem)
        return dataset.scanner(columns=columns, filter=condition, **limits).to_reader()

    def _by_kind(
        self, fragments: Sequence[ds.Fragment]
    ) -> Iterator[tuple[bool, Sequence[ds.Fragment]]]:
        """Yield runs of files, each with whether the filter can be pushed down into them."""
        if self.condition is None:
            yield True, fragments
            return
        with ThreadPoolExecutor(_FOOTERS_AT_A_TIME) as pool:
            for start in range(0, len(fragments), _FILES_AT_A_TIME):
                some = fragments[start : start + _FILES_AT_A_TIME]
                # a fragment keeps the footer that is read here, for the scan
                stored = pool.map(attrgetter("physical_schema"), some)
                kinds = [can_push_down(self.condition, each, self.schema) for each in stored]
                for pushed_down, group in groupby(zip(kinds, some, strict=True), itemgetter(0)):
                    yield pushed_down, [fragment for _, fragment in group]
