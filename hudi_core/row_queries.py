"""The read side of a table: its rows, now, as of a past time, and those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_core.model.files import FileSlice
from hudi_core.read.filters import RowFilter
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.query_times import QueryTime, completed_time, requested_time
from hudi_core.read.spark_frame import frame_of_plan
from hudi_core.row_operations import RowOperations

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.read.dataset import HudiDataset

Columns = str | Sequence[str]
"""Names of columns; a text is one name."""


class RowQueries(RowOperations):
    """What reads the rows of one open table.

    Most methods take the same three arguments:

    ``columns``
        Names of the columns to return, in this order, or one name; ``None`` for all, the meta
        columns first.
    ``filter``
        Rows to return: a ``pyarrow.compute`` expression, or a list of conditions such as ``("city",
        "=", "Rome")``, all of which have to hold. Partitions, files and row groups that cannot hold
        such a row are not read.
    ``as_of``
        Where to go back to: an instant, its requested time, a date and time (of the table's zone
        where it has none), a date, or a text that says one of these. A time before the first commit
        or after now is a :class:`~hudi_core.errors.TimeOutOfRangeError`.
    """

    def file_slices(
        self,
        as_of: QueryTime | None = None,
        filter: RowFilter | None = None,  # noqa: A002
    ) -> tuple[FileSlice, ...]:
        """Return the file slices a snapshot query reads."""
        return self._snapshot().file_slices(requested_time(as_of), filter)

    def to_arrow(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.to_batches(columns, filter, as_of).read_all()

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches, so that they need not fit memory."""
        return self._snapshot().to_arrow(_names(columns), filter, requested_time(as_of))

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pd.DataFrame:
        """Return the rows as a pandas frame."""
        return self.to_arrow(columns, filter, as_of).to_pandas()

    def to_polars(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pl.DataFrame:
        """Return the rows as a polars frame; for a lazy one see :meth:`scan`."""
        import polars as pl  # noqa: PLC0415 - nothing else needs it

        return pl.DataFrame(self.to_arrow(columns, filter, as_of))

    def scan(
        self,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> HudiDataset:
        """Return the rows as an Arrow dataset, of which nothing is read yet.

        DuckDB, polars (``scan_pyarrow_dataset``) and Arrow itself query it, and read just the
        columns, files and row groups that a query needs. It stays at the state of the table at the
        time of this call.
        """
        from hudi_core.read.dataset import HudiDataset  # noqa: PLC0415 - pyarrow.dataset's pandas

        return HudiDataset(self._snapshot(), requested_time(as_of), filter)

    def head(
        self,
        rows: int = 5,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.Table:
        """Return some rows: the first of the first files, in no order that means anything."""
        return self._snapshot().head(rows, _names(columns), filter, requested_time(as_of))

    def count(
        self,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> int:
        """Return the number of rows; without a filter no data file is read for it."""
        return self._snapshot().count(filter, requested_time(as_of))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows to whoever takes Arrow streams, such as ``polars.DataFrame(table)``."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """Return the columns of that stream: all, the meta columns first."""
        return self._snapshot().schema.__arrow_c_schema__()

    def read(
        self,
        spark: SparkSession,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> DataFrame:
        """Return the rows as a Spark DataFrame over exactly the files of the snapshot.

        Spark's own reader reads them where its JVM can open the store, else its tasks do as Arrow;
        then only ``columns`` are read, whatever the DataFrame selects later.
        """
        plan = self._snapshot().plan(requested_time(as_of), filter)
        return frame_of_plan(spark, self._opened.client, plan, _names(columns), filter)

    def incremental(
        self,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        spark: SparkSession | None = None,
        *,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
    ) -> Any:
        """Return the rows written by commits that completed after ``begin`` and not after ``end``.

        A time in ``_hoodie_commit_time`` of a row stands for the completion of the commit that
        wrote it.

        Returns
        -------
        pyarrow.Table or DataFrame
            A DataFrame where a session is given.
        """
        if spark is None:
            return self.incremental_batches(begin, end, columns, filter).read_all()
        query = IncrementalQuery(self._opened.client, self._opened.timeline())
        plan = query.plan(completed_time(begin), completed_time(end), filter)
        return frame_of_plan(spark, self._opened.client, plan, _names(columns), filter)

    def incremental_batches(
        self,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
    ) -> pa.RecordBatchReader:
        """Return the rows of :meth:`incremental` as a stream of batches."""
        query = IncrementalQuery(self._opened.client, self._opened.timeline())
        begin_time, end_time = completed_time(begin), completed_time(end)
        return query.to_arrow(begin_time, end_time, _names(columns), filter)

    def _snapshot(self) -> SnapshotQuery:
        # one timeline for the query and for what lists the files
        opened = self._opened.seeing(self._opened.client.timeline())
        return SnapshotQuery(opened.client, opened.lister(), opened.timeline())


def _names(columns: Columns | None) -> Sequence[str] | None:
    return [columns] if isinstance(columns, str) else columns
