"""Readings of a table: its description, its rows now, then, and changed."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from hudi_core.config.key import GivenOptions
from hudi_core.config.table import TableConfig
from hudi_core.engine.choice import engine_of
from hudi_core.errors import HudiError, InvalidOptionError
from hudi_core.metadata.as_arrow import metadata_partition
from hudi_core.model.files import FileSlice
from hudi_core.model.protocols import TimelineView
from hudi_core.read.change_feed import OPERATION, TIMESTAMP
from hudi_core.read.file_changes import GroupChange
from hudi_core.read.filters import RowFilter
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.read.latest_state import LatestState
from hudi_core.read.plan import ScanPlan
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.query_times import QueryTime, completed_time, requested_time
from hudi_core.read.spark_frame import frame_of_plan, frame_of_scan
from hudi_core.services.history import History, table_history
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import WatchedProperties
from hudi_core.table.changed_options import still_given
from hudi_core.table_handle import OpenTable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.read.dataset import HudiDataset

from hudi_core.table.arguments import Columns, Images, names_of


class TableReading:
    """A table's description, rows and changes."""

    def __init__(self, opened: OpenTable, options: Mapping[str, str]) -> None:
        self._opened = opened
        self._options = GivenOptions(options)
        self._latest = LatestState()
        self._stored = WatchedProperties()

    def __repr__(self) -> str:
        return f"Table({', '.join(f'{name}={fact!r}' for name, fact in self._facts.items())})"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = (
            f"<tr><th>{name.replace('_', ' ')}</th><td>{escape(_shown(fact))}</td></tr>"
            for name, fact in self._facts.items()
        )
        return f"<table>{''.join(rows)}</table>"

    @property
    def _facts(self) -> Mapping[str, str | list[str]]:
        config = self.config
        return {
            "path": self.path,
            "name": config.name,
            "format": config.table_format,
            "record_key": list(config.record_key_fields),
            "partition_by": list(config.partition_fields),
        }

    # --- what the table is -----------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Base path of the table."""
        return self._opened.client.base_path

    @property
    def _open_path(self) -> str:
        """The path, for services that open it; refused once closed."""
        self._opened.host.calls.require_open()
        return self.path

    @property
    def config(self) -> TableConfig:
        """The stored properties, typed, as the last call saw them."""
        return self._opened.client.config

    @property
    def format(self) -> str:
        """Name of the table format."""
        return self.config.table_format

    @property
    def schema(self) -> pa.Schema:
        """Columns after the latest complete commit, without meta columns."""
        opened = self._present()
        return opened.client.schema_at(opened.timeline()).arrow

    @property
    def timeline(self) -> TimelineView:
        """The instants, as the table's format sees them."""
        return self._present().timeline()

    def metadata(self, partition: str) -> pa.Table:
        """Return a partition of the table's metadata table.

        Parameters
        ----------
        partition
            Its name, such as ``files`` or ``column_stats``; for the columns of each see
            ``arrow_schema`` in its module in :mod:`hudi_core.metadata.partitions`.

        Raises
        ------
        UnsupportedTableError
            The table keeps no such partition.
        CorruptMetadataError
            The metadata table is missing, damaged, or lacks a write.
        """
        opened = self._present()
        return metadata_partition(opened.client, opened.timeline(), partition)

    def history(self, limit: int | None = None) -> History:
        """Return the instants and what each did, the newest first.

        Parameters
        ----------
        limit
            Instants to return at most; archived ones are read only where it reaches back to them.

        Returns
        -------
        History
            A sequence of :class:`~hudi_core.services.history.HistoryEntry`; ``to_arrow()`` and
            ``to_pandas()`` have its attributes as columns.

        Raises
        ------
        InvalidOptionError
            The limit is negative.
        CorruptMetadataError
            The archive, or the metadata of an instant, is damaged.
        """
        return table_history(self._present(), limit)

    # --- its rows, now, as of a past time, and those that changed --------------------------------

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
        return self._snapshot().to_table(names_of(columns), filter, requested_time(as_of))

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches.

        They need not fit into memory.
        """
        return self._snapshot().to_arrow(names_of(columns), filter, requested_time(as_of))

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
        """Return the rows as a polars frame.

        For a lazy one see :meth:`scan`.
        """
        import polars as pl  # noqa: PLC0415 - nothing else needs it

        return pl.DataFrame(self.to_arrow(columns, filter, as_of))

    def scan(
        self,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> HudiDataset:
        """Return the rows as a lazy Arrow dataset.

        DuckDB, polars (``scan_pyarrow_dataset``) and Arrow itself query it, and read just the
        columns, files and row groups that a query needs. It stays at the state of the table at the
        time of this call; its ``refreshed()`` is the dataset of the present one.
        """
        from hudi_core.read.dataset import HudiDataset  # noqa: PLC0415 - pyarrow.dataset's pandas

        query = self._snapshot()
        return HudiDataset(query, requested_time(as_of), filter, self._snapshot)

    def head(
        self,
        rows: int = 5,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.Table:
        """Return some rows of the first files, in no particular order."""
        return self._snapshot().head(rows, names_of(columns), filter, requested_time(as_of))

    def count(
        self,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> int:
        """Return the number of rows.

        Without a filter no data file is read for it.
        """
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
        """Return the rows as a Spark DataFrame over the snapshot's files.

        Spark's own reader reads them where its JVM can open the store, else its tasks do as Arrow;
        then only ``columns`` are read, whatever the DataFrame selects later. Where there is no
        metadata table, tasks list the folders. The rows are those of the state at
        the call: a further call gives what was written since.
        """
        query = self._snapshot(spark)
        plan = query.plan(requested_time(as_of), filter)
        return frame_of_plan(spark, query.client, plan, names_of(columns), filter)

    def incremental(
        self,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        spark: SparkSession | None = None,
        *,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        deletes: bool = False,
    ) -> Any:
        """Return rows of commits completed after ``begin`` and up to ``end``.

        A time in ``_hoodie_commit_time`` of a row stands for the completion of the commit that
        wrote it.

        Parameters
        ----------
        deletes
            Whether rows that are gone come as well, as they were before the window, and a last
            column ``_change_type`` tells ``insert``, ``update`` and ``delete`` apart. What happened
            to a row within the window comes once, as the difference between its begin and its
            end. A row that moved to another partition is deleted there and inserted here.

        Returns
        -------
        pyarrow.Table or DataFrame
            A DataFrame where a session is given.

        Raises
        ------
        HistoryExpiredError
            Clean has removed a file of the window; with ``deletes`` also one of before it.
        """
        if spark is None:
            return self.incremental_batches(begin, end, columns, filter, deletes=deletes).read_all()
        query, window = self._incremental(), (completed_time(begin), completed_time(end))
        if deletes:
            return frame_of_scan(spark, query.net(*window, names_of(columns), filter))
        plan = query.plan(*window, filter)
        return frame_of_plan(spark, query.client, plan, names_of(columns), filter)

    def incremental_batches(
        self,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        *,
        deletes: bool = False,
    ) -> pa.RecordBatchReader:
        """Return the rows of :meth:`incremental` as a stream of batches."""
        query, window = self._incremental(), (completed_time(begin), completed_time(end))
        if deletes:
            return query.net(*window, names_of(columns), filter).to_arrow()
        return query.to_arrow(*window, names_of(columns), filter)

    def changes(
        self,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        spark: SparkSession | None = None,
        *,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        images: Images = "json",
    ) -> Any:
        """Return every change of commits completed after ``begin`` and up to ``end``.

        It has the columns of Hudi's change data capture: ``op`` (``i``, ``u`` or ``d``), ``ts_ms``
        (the requested time of the commit), ``before`` and ``after`` (the row, or null). A row that
        several commits changed comes several times.

        Parameters
        ----------
        columns
            Columns that ``before`` and ``after`` have; ``None`` for all but the meta columns.
        filter
            Changes to return: of rows that were or are so.
        images
            Whether ``before`` and ``after`` are JSON texts (``"json"``) or structs (``"struct"``).

        Returns
        -------
        pyarrow.Table or DataFrame
            In the order of the commits, and of each the deletes first; a DataFrame, in no order,
            where a session is given.

        Raises
        ------
        HistoryExpiredError
            Clean has removed a file that is compared, and no log of changes has its rows.
        CorruptMetadataError
            Such a log is needed, and is damaged.
        """
        plan = self._feed(begin, end, columns, filter, images)
        if spark is not None:
            return frame_of_scan(spark, plan)
        # of a row that a commit replaced, what is deleted comes before what is inserted
        in_order = [(TIMESTAMP, "ascending"), (OPERATION, "ascending")]
        return plan.to_arrow().read_all().sort_by(in_order)

    def changes_batches(
        self,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        images: Images = "json",
    ) -> pa.RecordBatchReader:
        """Return the rows of :meth:`changes` as a stream of batches.

        File group by file group, in each in the order of the commits.
        """
        return self._feed(begin, end, columns, filter, images).to_arrow()

    def diff(
        self, before: QueryTime, after: QueryTime | None = None, columns: Columns | None = None
    ) -> pa.Table:
        """Return the rows in which two states of the table differ.

        Their values decide: a row that was written again as it was is no difference. Files that
        both states have are not read.

        Parameters
        ----------
        before, after
            The states, in any order, each as ``as_of`` takes it; the present one by default.
        columns
            Columns to compare and to return; ``None`` for all. Meta columns are not compared.

        Returns
        -------
        pyarrow.Table
            The rows, and a last column ``_change_type``: ``insert``, ``update`` (the row as it is
            in ``after``) or ``delete`` (as it was in ``before``). A row that moved to another
            partition is deleted there and inserted here.

        Raises
        ------
        HistoryExpiredError
            Clean has removed a file of one of the states.
        """
        old, new = requested_time(before), requested_time(after)
        return self._snapshot().diff(old or "", new, names_of(columns))

    def _feed(
        self,
        begin: QueryTime | None,
        end: QueryTime | None,
        columns: Columns | None,
        row_filter: RowFilter | None,
        images: Images,
    ) -> ScanPlan[GroupChange]:
        if images not in get_args(Images):
            raise InvalidOptionError(
                "images", images, "there is no such form", f"Use one of {get_args(Images)}."
            )
        window = completed_time(begin), completed_time(end)
        return self._incremental().feed(
            *window, names_of(columns), row_filter, as_text=images == "json"
        )

    def _incremental(self) -> IncrementalQuery:
        opened = self._present()
        return IncrementalQuery(opened.client, opened.timeline(), opened.lister())

    def _snapshot(self, spark: SparkSession | None = None) -> SnapshotQuery:
        opened = self._present()
        if spark is not None:
            opened = opened.on(engine_of(spark))
        return self._latest.query(opened)

    def _present(self) -> OpenTable:
        """The stored table at its present timeline, for one query.

        The timeline is listed before the properties are read, so that these are at least as new:
        what they say of files holds for those of every commit that is listed. Only where they have
        changed, as by a move of the files, a conversion, a rewriting of keys or an upgrade of
        somebody else, the table is opened again, and its timeline, which may be elsewhere by now,
        is listed again.
        """
        while True:
            opened, timeline, failure = self._opened, None, None
            try:
                timeline = opened.client.timeline()
            except HudiError as error:
                failure = error  # the folder may have become another one
            config = opened.client.config
            properties = self._stored.read(opened.client.storage)
            if properties != config.raw:
                self._options = still_given(self._options, config, properties)
                self._opened = open_table(self._open_path, self._options, properties)
            elif timeline is not None:
                # one timeline for the query and for what lists the files
                return opened.seeing(timeline)
            elif failure is not None:
                raise failure


def _shown(fact: str | list[str]) -> str:
    return fact if isinstance(fact, str) else ", ".join(fact)
