"""The facade: a table to create, open, write and read, named and typed.

Rows are a Spark DataFrame, which is written by Spark, or anything Arrow can read, which is written
in this process. People who bring Hudi's options come in by :mod:`hudi_core.doors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_core.config.resolve import text_options
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.metadata.as_arrow import metadata_partition
from hudi_core.model.files import FileSlice
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.read.filters import RowFilter
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import scan
from hudi_core.read.spark_frame import frame_of_plan
from hudi_core.row_operations import Options
from hudi_core.services.alter import alter_table, schema_change
from hudi_core.services.create import SchemaLike, as_arrow_schema, create_table
from hudi_core.services.opening import open_table
from hudi_core.services.rollback import roll_back_instant
from hudi_core.table_upkeep import TableUpkeep, named_options
from hudi_core.txn.table_lock import table_lock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Moment = str | Instant
"""A time on the timeline: an instant, or what a user may write for one."""


class Table(TableUpkeep):
    """One open table.

    Made by :meth:`create` or :meth:`open`. It sees what others commit at its next call, not in the
    middle of one.
    """

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str,
        schema: SchemaLike,
        *,
        name: str | None = None,
        record_key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        ordering_field: str | None = None,
        format: str | None = None,  # noqa: A002 - the word every user of tables knows
        options: Options | None = None,
    ) -> Table:
        """Create an empty table.

        Parameters
        ----------
        path
            Local path or URI of a folder that is empty or does not exist.
        schema
            Columns of the table: a ``pyarrow.Schema`` or a Spark ``StructType``.
        name
            Name of the table; by default the last part of the path.
        record_key, partition_by
            Column names, one or several.
        ordering_field
            Column that decides between versions of a row: the greater value wins. Without it the
            later write wins.
        format
            Name of the table format; ``native`` by default.
        options
            Further Hudi options; the named arguments win over them.

        Raises
        ------
        NotATableError
            The path holds a table already, or something else.
        SchemaError, ConfigError
            A column that does not exist, an option that cannot be used.
        UnknownTableFormatError
            No installed plugin provides the format.
        """
        named = named_options(name, record_key, partition_by, ordering_field, format)
        merged = text_options({**(options or {}), **named})
        return cls(create_table(path, as_arrow_schema(schema), merged), merged)

    @classmethod
    def open(cls, path: str, options: Options | None = None) -> Table:
        """Open an existing table.

        Parameters
        ----------
        options
            Hudi options for later calls, and credentials of the store.

        Raises
        ------
        NotATableError
            There is no table at the path.
        CorruptMetadataError
            Its properties are damaged and no backup helps.
        UnknownTableFormatError
            The table's format is not installed.
        OptionConflictError
            An option contradicts what the table stores.
        """
        given = text_options(options or {})
        return cls(open_table(path, given), given)

    # --- what the table is -----------------------------------------------------------------------

    @property
    def config(self) -> TableConfig:
        """The stored properties, typed."""
        return self._opened.client.config

    @property
    def format(self) -> str:
        """Name of the table format."""
        return self.config.table_format

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table as of its latest complete commit, without the meta columns."""
        return self._opened.client.schema_at(self._opened.timeline()).arrow

    @property
    def timeline(self) -> TimelineView:
        """The instants, as the table's format sees them."""
        return self._opened.timeline()

    def file_slices(
        self,
        as_of: Moment | None = None,
        filter: RowFilter | None = None,  # noqa: A002
    ) -> tuple[FileSlice, ...]:
        """Return the file slices a snapshot query reads."""
        return self._snapshot().file_slices(requested_time(as_of), filter)

    def metadata(self, partition: str) -> pa.Table:
        """Return a partition of the table's metadata table.

        Parameters
        ----------
        partition
            ``files``, ``column_stats``, ``partition_stats``, ``bloom_filters``, ``record_index`` or
            ``secondary_index_<name>``; for the columns see
            :func:`hudi_core.metadata.as_arrow.metadata_partition`.

        Raises
        ------
        UnsupportedTableError
            The table keeps no such partition.
        CorruptMetadataError
            The metadata table is missing, damaged, or lacks a write.
        """
        return metadata_partition(self._opened.client, self._opened.timeline(), partition)

    def alter(
        self,
        *,
        add_columns: SchemaLike | Mapping[str, pa.DataType] | Sequence[pa.Field] | None = None,
        rename: Mapping[str, str] | None = None,
        drop: str | Sequence[str] | None = None,
        promote: Mapping[str, pa.DataType] | None = None,
        options: Options | None = None,
    ) -> CommitResult:
        """Change the columns; data files stay as they are.

        Columns are named as they are before the change, nested ones by their path
        (``address.city``, ``tags.list.element.name``).

        Parameters
        ----------
        add_columns
            Types by name, Arrow fields, or a schema. Rows that are there have nulls.
        rename
            New names; of a nested column the last part alone.
        drop
            Columns to drop. A later column of the same name does not bring their values back.
        promote
            Wider types: see :mod:`hudi_core.model.promotions`.

        Raises
        ------
        SchemaError
            The change cannot be made: names the column, for a type both types, and the way out.
            Columns of keys, partitions and ordering keep name and type.
        UnsupportedTableError
            A column would be renamed or dropped, and other writers' files carry no field ids.
        """
        merged = self._options | text_options(options or {})
        opened = open_table(self.path, merged)
        config = WriteConfig.from_options(merged)
        change = schema_change(add_columns, rename, drop, promote)
        result = alter_table(opened, table_lock(opened, config), config, change)
        self._opened = open_table(self.path, merged)
        return result

    def rollback(self, instant: Moment) -> Instant:
        """Undo the last completed write, or a pending one whose writer is gone.

        Returns
        -------
        Instant
            The completed rollback.
        """
        config = WriteConfig.from_options(self._options)
        return roll_back_instant(
            self._opened, table_lock(self._opened, config), config, requested_time(instant) or ""
        )

    # --- reading ---------------------------------------------------------------------------------

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: Moment | None = None,
    ) -> pa.Table:
        """Return the rows, meta columns first.

        Parameters
        ----------
        columns
            Names of the columns to return; ``None`` for all.
        filter
            A ``pyarrow.compute`` expression, or a list of conditions such as ``("city", "=",
            "Rome")``.
        as_of
            Where to go back to: an instant, its requested time, or a date and time.
        """
        return self.to_batches(columns, filter, as_of).read_all()

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: Moment | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches; see :meth:`to_arrow`."""
        return self._snapshot().to_arrow(columns, filter, requested_time(as_of))

    def read(
        self,
        spark: SparkSession,
        columns: Sequence[str] | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: Moment | None = None,
    ) -> DataFrame:
        """Return the rows as a Spark DataFrame over exactly the files of the snapshot.

        Spark's own reader reads them where its JVM can open the store, else its tasks do as Arrow;
        then only ``columns`` are read, whatever the DataFrame selects later.
        """
        plan = self._snapshot().plan(requested_time(as_of), filter)
        return frame_of_plan(spark, self._opened.client, plan, columns, filter)

    def incremental(
        self,
        begin: Moment | None = None,
        end: Moment | None = None,
        spark: SparkSession | None = None,
    ) -> Any:
        """Return the rows written by commits that completed after ``begin`` and not after ``end``.

        Returns
        -------
        pyarrow.Table or DataFrame
            A DataFrame where a session is given.
        """
        query = IncrementalQuery(self._opened.client, self._opened.timeline())
        plan = query.plan(completed_time(begin), completed_time(end))
        if spark is not None:
            return frame_of_plan(spark, self._opened.client, plan)
        return scan(self._opened.client, plan).read_all()

    def _snapshot(self) -> SnapshotQuery:
        # one timeline for the query and for what lists the files
        opened = self._opened.seeing(self._opened.client.timeline())
        return SnapshotQuery(opened.client, opened.lister(), opened.timeline())


def requested_time(moment: Moment | None) -> str | None:
    """Return the time by which snapshots compare."""
    return moment.requested_time if isinstance(moment, Instant) else moment


def completed_time(moment: Moment | None) -> str | None:
    """Return the time by which changes compare."""
    return moment.effective_completion_time if isinstance(moment, Instant) else moment
