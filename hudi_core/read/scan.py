"""Rows of planned files as Arrow batches."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.errors import DataFileError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import BasePath
from hudi_core.read.filters import Filter, RowFilter, require_columns, to_filter
from hudi_core.read.plan import PlannedFile, ReadPlan
from hudi_core.storage.data_files import data_filesystem, require_no_links
from hudi_core.storage.layout import Layout
from hudi_core.storage.options import StorageOptions

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from hudi_core.read.file_reader import FileReader


def scan(
    client: TableMetaClient,
    plan: ReadPlan,
    columns: Sequence[str] | None = None,
    row_filter: RowFilter | Filter | None = None,
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
    row_filter: RowFilter | Filter | None = None,
    batch_rows: int | None = None,
) -> FileScan:
    """Reader of the plan's files, here or in tasks.

    See :func:`scan` for the parameters.

    Raises
    ------
    SchemaError
        An unknown column, or a filter that does not fit.
    """
    require_columns(columns, plan.schema)
    wanted = tuple(plan.schema.names if columns is None else columns)
    conditions = [to_filter(row_filter, plan.schema), plan.row_condition()]
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
    """Common settings of one scan, frozen and sent to executors.

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
    condition: Filter | None
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
        with self._reading(files) as (reader, fragments):
            for batch in reader.read(fragments):
                if batch.num_rows:
                    yield batch

    def table(self, files: Sequence[PlannedFile]) -> pa.Table:
        """The rows of the files in their order, all at once.

        Faster than batch by batch.

        Raises
        ------
        DataFileError
            A file is missing or damaged.
        """
        if not files:
            return self.output_schema.empty_table()
        with self._reading(files) as (reader, fragments):
            return reader.table(fragments).cast(self.output_schema)

    @contextmanager
    def _reading(
        self, files: Sequence[PlannedFile]
    ) -> Iterator[tuple[FileReader, list[ds.Fragment]]]:
        # pyarrow.dataset imports pandas, which takes longer than all of this project
        from hudi_core.read.file_reader import PARQUET, FileReader  # noqa: PLC0415

        filesystem, root = data_filesystem(self.base_path, self.storage_options)
        paths = [self.layout.physical(file.path) for file in files]
        require_no_links(self.base_path, paths)
        fragments = [PARQUET.make_fragment(f"{root}/{path}", filesystem) for path in paths]
        columns = list(self.columns)
        reader = FileReader(self.schema, filesystem, columns, self.condition, self.batch_rows)
        try:
            yield reader, fragments
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataFileError(self.base_path, str(error).split("\n", 1)[0]) from error
