"""The facade: a table to create, open, write and read.

Rows are a Spark DataFrame, which is written by Spark, or anything Arrow can read, which is written
in this process. People who bring Hudi's options come in by :mod:`hudi_core.datasource`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import pyarrow as pa

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.key import GivenOptions
from hudi_core.config.resolve import options_as_strings
from hudi_core.config.table import TableConfig
from hudi_core.config.ttl import TtlConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import engine_for
from hudi_core.errors import InvalidOptionError
from hudi_core.metadata.as_arrow import metadata_partition
from hudi_core.model.dry_run import DryRun
from hudi_core.model.files import FileSlice
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.operation import (
    BULK_INSERT,
    DELETE,
    DELETE_PARTITION,
    INSERT,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    UPSERT,
    Operation,
    operation_named,
)
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.read.change_feed import OPERATION, TIMESTAMP
from hudi_core.read.file_changes import FileChange
from hudi_core.read.filters import RowFilter
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.read.plan import ScanPlan
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.query_times import QueryTime, completed_time, requested_time
from hudi_core.read.spark_frame import frame_of_plan, frame_of_scan
from hudi_core.services.adopt import adopt_in_place, plan_adoption
from hudi_core.services.adopt_plan import Adoption, Folder
from hudi_core.services.adopt_rows import AdoptedRows
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.alter import alter_table, schema_change
from hudi_core.services.archive import ArchiveResult, archive_table, plan_table_archive
from hudi_core.services.clean import CleanResult, clean_table, plan_table_clean
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.convert import Conversion, convert_table, plan_conversion, without_format
from hudi_core.services.create import create_table
from hudi_core.services.design import SchemaLike, as_arrow_schema, named_options
from hudi_core.services.differences import TableValidation
from hudi_core.services.drop import DropResult, drop_table, plan_drop
from hudi_core.services.due_clustering import cluster_after_commit
from hudi_core.services.history import table_history
from hudi_core.services.opening import open_table
from hudi_core.services.partition_ttl import Expiry, expire_after_commit, expire_partitions
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.services.purge import PurgeResult, purge_table
from hudi_core.services.repair import Repair, plan_repair, repair_table
from hudi_core.services.restore import RestoreResult, plan_restore, restore_table
from hudi_core.services.rollback import roll_back_instant
from hudi_core.services.savepoint import (
    Savepoint,
    create_savepoint,
    delete_savepoint,
    savepoints_of,
)
from hudi_core.services.stage import (
    Stage,
    find_stage,
    publish_stage,
    stage_write,
    staged_operation,
    stages_of,
)
from hudi_core.services.stage_record import StageRecord, drop_stage
from hudi_core.services.upgrade import upgrade_table
from hudi_core.services.upgrade_plan import CHANGED_OPTIONS, Upgrade, plan_upgrade
from hudi_core.services.validate import validate_table
from hudi_core.storage.location import PathLike, location_of
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import table_lock
from hudi_core.write.auto_record_keys import default_operation
from hudi_core.write.client import WriteClient
from hudi_core.write.replacing import PartitionLike
from hudi_core.write.validation import Validation, Validator

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.read.dataset import HudiDataset

Options = Mapping[str, object]
"""Hudi options: strings, numbers, booleans, lists of names."""
Columns = str | Sequence[str]
"""Names of columns; a text is one name."""
Images = Literal["json", "struct"]
"""Forms of the rows in a change feed."""
_ALL_GROUPS: Final = 1_000_000_000


class Extras(NamedTuple):
    """Further arguments of every operation on rows; see :class:`Table`."""

    extra_metadata: Mapping[str, str] | None = None
    idempotency: tuple[str, int] | None = None
    validators: Sequence[Validator] = ()


_NO_EXTRAS: Final = Extras()


class Table:
    """One open table.

    Made by :meth:`create` or :meth:`open`. It sees what others commit at its next call, not in the
    middle of one.

    Every operation on rows takes rows (a Spark DataFrame, or anything Arrow can read), options for
    this call alone, and the engine to run on. Further arguments of each:

    ``extra_metadata``
        Texts by key that the commit keeps; readers of the timeline find them there.
    ``idempotency``
        Name of an application and number of the write, as in ``("orders", 17)``. Where the
        application has written that number before, or a greater one, nothing is written, and the
        result of that write is returned with ``is_repetition``. So a write whose outcome is unknown
        can be made again as it is. A write that was rolled back counts as not made.
    ``validators``
        Functions that look at the table as the write would leave it, before anybody sees it: each
        gets its rows, as a dataset that Arrow and DuckDB query, and the
        :class:`~hudi_core.model.result.ProposedCommit`. Where one returns ``False`` or raises, the
        write is rolled back with a :class:`~hudi_core.errors.CommitValidationError`.

    Most queries take the same three arguments:

    ``columns``
        Names of the columns to return, in this order, or one name; ``None`` for all, the meta
        columns first.
    ``filter``
        Rows to return: a ``pyarrow.compute`` expression, or a list of conditions such as ``("city",
        "=", "Rome")``, all of which have to hold. Partitions, files and row groups that cannot hold
        such a row are not read.
    ``as_of``
        Where to go back to: an instant, its requested time, a date and time (of the table's zone
        where it has none), a date, or a string of one of these. A time before the first commit
        or after now is a :class:`~hudi_core.errors.TimeOutOfRangeError`.
    """

    def __init__(self, opened: OpenTable, options: Mapping[str, str]) -> None:
        self._opened = opened
        self._options = GivenOptions(options)

    def __repr__(self) -> str:
        config = self.config
        facts = {
            "path": self.path,
            "name": config.name,
            "format": config.table_format,
            "record_key": list(config.record_key_fields),
            "partition_by": list(config.partition_fields),
        }
        return f"Table({', '.join(f'{name}={fact!r}' for name, fact in facts.items())})"

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: PathLike,
        schema: SchemaLike,
        *,
        name: str | None = None,
        record_key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        ordering_field: str | Sequence[str] | None = None,
        format: str | None = None,  # noqa: A002 - the word every user of tables knows
        options: Options | None = None,
    ) -> Table:
        """Create an empty table.

        Parameters
        ----------
        path
            Local path or URI of a folder that is empty or does not exist.
        schema
            Columns of the table: a ``pyarrow.Schema``, a Spark ``StructType``, or a frame that has
            them: of pandas, polars, Arrow or Spark. Its rows are not written.
        name
            Name of the table; by default the last part of the path.
        record_key, partition_by
            Column names, one or several.
        ordering_field
            Column that decides between versions of a row: the greater value wins. Of several, the
            next decides where the first are equal; a field of a struct is named with a dot.
            Without one the later write wins.
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
        CommitStateUnknownError
            The store failed, and the table may be there, without rows.
        """
        named = named_options(name, record_key, partition_by, ordering_field, format)
        merged = options_as_strings({**(options or {}), **named})
        return cls(create_table(location_of(path), as_arrow_schema(schema), merged), merged)

    @classmethod
    def open(cls, path: PathLike, options: Options | None = None) -> Table:
        """Open an existing table.

        Parameters
        ----------
        path
            Local path or URI of the table.
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
        given = options_as_strings(options or {})
        return cls(open_table(location_of(path), given), given)

    @classmethod
    def adopt(
        cls,
        path: PathLike,
        *,
        record_key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        ordering_field: str | Sequence[str] | None = None,
        name: str | None = None,
        format: str | None = None,  # noqa: A002 - the word every user of tables knows
        source: str | None = None,
        rewrite: PathLike | None = None,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Adoption:
        """Turn Parquet files, or another format's table, into a Hudi table.

        Without ``rewrite`` the files stay what they are and get the names of base files. The table
        has virtual keys then, which this release reads and does not write. That asks for a local
        folder, for files that hold all columns themselves, and for a key in every row.

        Parameters
        ----------
        path
            The folder. An adoption that died goes on as it was begun.
        record_key, partition_by, ordering_field, name
            As of a table that is created; partitions are by default those of what is adopted.
        format
            Name of the table format; by default that of what is adopted, ``native`` for files.
        source
            What is adopted, where the folder holds several tables: a format, or ``parquet``.
        rewrite
            Path of a new table that the rows are written into; the folder stays as it is. Every
            reader and writer can use that table.
        options
            Further Hudi options; the named arguments win over them.
        dry_run
            Whether to say only what would be done, and why files cannot stay as they are.
        progress
            Called with the number of files done so far, and of all.

        Raises
        ------
        NotATableError
            The folder holds nothing, several tables, or a Hudi table already.
        UnsupportedTableError
            Files cannot stay as they are; says why. Nothing has changed.
        SchemaError, RecordKeyError, ConfigError, PluginError
            The request cannot be fulfilled. Nothing has changed.
        CorruptMetadataError, DataFileError
            What is there is damaged.
        """
        named = named_options(name, record_key, partition_by, ordering_field, format)
        given = options_as_strings({**(options or {}), **named})
        folder = Folder(location_of(path), given, source, progress)
        if rewrite is None:
            return plan_adoption(folder) if dry_run else adopt_in_place(folder)
        rows, target = AdoptedRows.of(folder), location_of(rewrite)
        if dry_run:
            return rows.document(target)
        return rows.write(
            target, lambda new: cls(new, folder.table_options).bulk_insert(rows.read())
        )

    # --- what the table is -----------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Base path of the table."""
        return self._opened.client.base_path

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
        """Columns after the latest complete commit, without meta columns."""
        return self._opened.client.schema_at(self._opened.timeline()).arrow

    @property
    def timeline(self) -> TimelineView:
        """The instants, as the table's format sees them."""
        return self._opened.timeline()

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
        return metadata_partition(self._opened.client, self._opened.timeline(), partition)

    def history(self, limit: int | None = None) -> pa.Table:
        """Return the instants and what each did, the newest first.

        Parameters
        ----------
        limit
            Instants to return at most; archived ones are read only where it reaches back to them.

        Returns
        -------
        pyarrow.Table
            Columns ``instant``, ``action``, ``operation``, ``state`` as readers of the table see
            it, ``completion_time``, ``archived``, ``rows_inserted``, ``rows_updated``,
            ``rows_deleted``, ``files_added``, ``files_removed``, ``bytes_written``,
            ``partitions`` and ``extra_metadata``. The files that a write removed are no longer in
            the latest state; those that a clean, a rollback or a restore removed are deleted.

        Raises
        ------
        InvalidOptionError
            The limit is negative.
        CorruptMetadataError
            The archive, or the metadata of an instant, is damaged.
        """
        return table_history(self._opened, limit)

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
        return self._snapshot().to_table(_names(columns), filter, requested_time(as_of))

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches.

        They need not fit into memory.
        """
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
        """Return some rows of the first files, in no particular order."""
        return self._snapshot().head(rows, _names(columns), filter, requested_time(as_of))

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
            return frame_of_scan(spark, query.net(*window, _names(columns), filter))
        plan = query.plan(*window, filter)
        return frame_of_plan(spark, self._opened.client, plan, _names(columns), filter)

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
            return query.net(*window, _names(columns), filter).to_arrow()
        return query.to_arrow(*window, _names(columns), filter)

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
            Clean has removed a file that is compared.
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
        return self._snapshot().diff(old or "", new, _names(columns))

    def _feed(
        self,
        begin: QueryTime | None,
        end: QueryTime | None,
        columns: Columns | None,
        row_filter: RowFilter | None,
        images: Images,
    ) -> ScanPlan[FileChange]:
        if images not in get_args(Images):
            raise InvalidOptionError(
                "images", images, "there is no such form", f"Use one of {get_args(Images)}."
            )
        window = completed_time(begin), completed_time(end)
        return self._incremental().feed(
            *window, _names(columns), row_filter, as_text=images == "json"
        )

    def _incremental(self) -> IncrementalQuery:
        opened = self._opened.seeing(self._opened.client.timeline())
        return IncrementalQuery(opened.client, opened.timeline(), opened.lister())

    def _snapshot(self) -> SnapshotQuery:
        # one timeline for the query and for what lists the files
        opened = self._opened.seeing(self._opened.client.timeline())
        return SnapshotQuery(opened.client, opened.lister(), opened.timeline())

    # --- changing rows ----------------------------------------------------------------------------

    def insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Add rows; small files are filled up first.

        Keys are not looked up, unless ``hoodie.datasource.insert.dup.policy`` asks for it.
        """
        return self._write(
            INSERT, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def bulk_insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Add rows to new files only: the fastest way in."""
        return self._write(
            BULK_INSERT, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def upsert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Insert rows with new keys, and update the others by ordering field.

        Rows may lack columns where ``hoodie.table.partial.update.mode=KEEP_VALUES``: updated rows
        keep their values, new rows get nulls.
        """
        return self._write(
            UPSERT, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def delete(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Remove the rows with the keys in ``data``.

        It needs just the columns of key and partition.
        """
        return self._write(
            DELETE, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def insert_overwrite(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Replace the rows of the partitions that the rows belong to.

        Other partitions stay.
        """
        return self._write(
            INSERT_OVERWRITE, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Replace all rows of the table; its history stays."""
        return self._write(
            INSERT_OVERWRITE_TABLE,
            data,
            options,
            engine,
            Extras(extra_metadata, idempotency, validators),
        )

    def delete_partitions(
        self,
        partitions: Sequence[PartitionLike],
        *,
        options: Options | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Drop all rows of some partitions.

        Parameters
        ----------
        partitions
            Paths of partitions, or mappings of the partition columns to their values.

        Raises
        ------
        UnknownPartitionError
            One of them holds no rows; nothing is deleted.
        """
        writer = self._writer(
            options, engine_for(None), Extras(extra_metadata, idempotency, validators)
        )
        return self._done(writer, lambda: writer.delete_partitions(partitions))

    def stage(
        self,
        data: Any,
        operation: str = "upsert",
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        validators: Sequence[Validator] = (),
    ) -> Stage:
        """Stage a write: rows to be checked, then published or dropped.

        Nothing of it is in the table before :meth:`Stage.publish`, which fails where another write
        has changed what the stage builds on. A stage expires after
        ``hoodie.stage.hours.retained``.

        Parameters
        ----------
        data
            The rows.
        operation
            Name of the method, such as ``"upsert"``.

        Raises
        ------
        InvalidOptionError
            The operation takes no rows.
        CommitValidationError
            A validator refuses the table as it would be. Nothing was staged.
        """
        wanted, engine = staged_operation(operation), engine or engine_for(data)
        data = engine.take(data)
        writer = self._writer(options, engine, Extras(extra_metadata, None, validators))
        given = self._options | options_as_strings(options or {})
        return self._staged(stage_write(writer, data, wanted, given))

    def stages(self) -> tuple[Stage, ...]:
        """The stages that can be published, the oldest first.

        A warning names those whose record is damaged; :meth:`drop_stage` deletes them.
        """
        return tuple(map(self._staged, stages_of(self._opened)))

    def find_stage(self, stage: str) -> Stage:
        """The stage with an id.

        Raises
        ------
        UnknownStageError
            There is none: it was published, dropped, or has expired.
        CorruptMetadataError
            Its record is damaged.
        """
        return self._staged(find_stage(self._opened, stage))

    def drop_stage(self, stage: str) -> None:
        """Delete the stage with an id, whatever state it is in.

        Unlike :meth:`Stage.drop` it takes stages too that have expired, that their writer did not
        finish, or whose record is damaged.

        Raises
        ------
        UnknownStageError
            There is none.
        """
        drop_stage(self._opened.client.storage, stage)

    def _staged(self, record: StageRecord) -> Stage:
        return Stage(record, lambda: self._opened.as_stored().afresh, self._publish)

    def _publish(self, stage: Stage, data: Any, validators: Sequence[Validator]) -> CommitResult:
        engine, record = engine_for(data), stage.record
        data = engine.take(data)
        writer = self._writer(record.options, engine, Extras(None, None, validators))
        return self._done(writer, lambda: publish_stage(writer, record, data))

    def plan(
        self,
        operation: str,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
    ) -> DryRun:
        """What an operation would do; without lock, without writing anything.

        Late rows and values that do not fit are only found by the write itself. On Spark it brings
        keys, partitions and ordering values to the driver.

        Parameters
        ----------
        operation
            Name of the method, such as ``"upsert"``.
        data
            Its rows; of ``"delete_partitions"`` the partitions.
        """
        wanted = operation_named(operation)
        if wanted is DELETE_PARTITION:
            writer = self._writer(options, engine_for(None))
            writer.table = writer.table.as_stored()
            return writer.plan_deletion(data)
        engine = engine or engine_for(data)
        data = engine.take(data)
        writer = self._writer(options, engine)
        writer.table = writer.table.as_stored()
        return writer.plan(data, wanted)

    def perform(
        self,
        data: Any,
        operation: Operation | None,
        engine: Engine,
        extras: Extras = _NO_EXTRAS,
    ) -> CommitResult:
        """Run the operation in the options; ``None`` picks the best match."""
        writer = self._writer(None, engine, extras)
        if operation is None:
            data = engine.take(data)
            operation = default_operation(self._opened.client.config, engine.schema_of(data).names)
        if operation is not DELETE_PARTITION:
            wanted = operation
            return self._done(writer, lambda: writer.write(engine.take(data), wanted))
        named = writer.config.partitions_to_delete or writer.partitions_of(data)
        return self._done(writer, lambda: writer.delete_partitions(named))

    def _write(
        self,
        operation: Operation,
        data: Any,
        options: Options | None,
        engine: Engine | None,
        extras: Extras,
    ) -> CommitResult:
        engine = engine or engine_for(data)
        data = engine.take(data)
        writer = self._writer(options, engine, extras)
        return self._done(writer, lambda: writer.write(data, operation))

    def _done(self, writer: WriteClient, write: Callable[[], CommitResult]) -> CommitResult:
        """The result of a write; later reads use the writer's table."""
        try:
            result = write()
        finally:
            self._opened = writer.table
        expire_after_commit(writer)
        self._opened = writer.table
        cluster_after_commit(writer.table, writer.lock, writer.config, writer.engine)
        return result

    def _writer(
        self, options: Options | None, engine: Engine, extras: Extras = _NO_EXTRAS
    ) -> WriteClient:
        merged, opened = self._options | options_as_strings(options or {}), self._opened
        if merged != opened.client.options:
            opened = open_table(self.path, merged, opened.client.config.raw)
        config = WriteConfig.from_options(merged)
        config = replace(config, extras=config.extras.given(*extras[:2]))
        services = InlineServices(config.services)
        lock, validation = (
            table_lock(opened, config),
            Validation(config.validators, extras.validators),
        )
        writer = WriteClient(opened, lock, engine, config, services)
        writer.validation = None if validation.is_empty else validation
        return writer

    # --- operating a table ------------------------------------------------------------------------

    def alter(
        self,
        *,
        add_columns: SchemaLike | Mapping[str, pa.DataType] | Sequence[pa.Field] | None = None,
        rename: Mapping[str, str] | None = None,
        drop: str | Sequence[str] | None = None,
        promote: Mapping[str, pa.DataType] | None = None,
        options: Options | None = None,
        extra_metadata: Mapping[str, str] | None = None,
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
            Wider types: see :mod:`hudi_core.schema.promotions`.
        extra_metadata
            Texts by key that the commit keeps.

        Raises
        ------
        SchemaError
            The change cannot be made: names the column, for a type both types, and the way out.
            Columns of keys, partitions and ordering keep name and type.
        UnsupportedTableError
            A column would be renamed or dropped, and other writers' files carry no field ids.
        """
        merged = self._options | options_as_strings(options or {})
        opened = open_table(self.path, merged)
        config = WriteConfig.from_options(merged)
        config = replace(config, extras=config.extras.given(extra_metadata, None))
        change = schema_change(add_columns, rename, drop, promote)
        result = alter_table(opened, table_lock(opened, config), config, change)
        self._opened = open_table(self.path, merged)
        return result

    def clean(
        self,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> CleanResult:
        """Delete file slices that no retained state of the table needs.

        A clean that died is finished first.

        Parameters
        ----------
        options
            Hudi options, such as ``hoodie.cleaner.commits.retained``.
        dry_run
            Whether to say only what would be deleted.
        progress
            Called with the number of files dealt with so far, and of all, in each of its steps.

        Raises
        ------
        CorruptMetadataError, TableServiceError
            A plan on the timeline names what must stay; nothing was deleted.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(options, progress)
        if dry_run:
            return plan_table_clean(opened, config)
        return clean_table(opened, table_lock(opened, config), config)

    def expire_partitions(
        self,
        days: int | None = None,
        *,
        options: Options | None = None,
        dry_run: bool = False,
    ) -> Expiry:
        """Delete partitions that nobody wrote to for some days.

        One commit deletes all of them; past states stay readable until a clean. A partition that
        somebody writes to meanwhile stays.

        Parameters
        ----------
        days
            How many; ``hoodie.partition.ttl.strategy.days.retain`` by default.
        options
            Hudi options ``hoodie.partition.ttl.*``: from when on the age of a partition counts, and
            which partitions may expire.
        dry_run
            Whether to say only which would be deleted.

        Raises
        ------
        InvalidOptionError
            No number of days is given.
        PartitionValueError
            The table has no partitions.
        CommitConflictError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        given = {} if days is None else {TtlConfig.days_retained.key: days}
        writer = self._writer({**(options or {}), **given}, engine_for(None))
        try:
            return expire_partitions(writer, writer.config.ttl, dry_run=dry_run)
        finally:
            self._opened = writer.table

    def archive(
        self,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> ArchiveResult:
        """Move old instants from the active timeline to its history.

        Parameters
        ----------
        options
            Hudi options, such as ``hoodie.keep.max.commits``.
        dry_run
            Whether to say only what would be moved.
        progress
            See :meth:`clean`.

        Raises
        ------
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(options, progress)
        if dry_run:
            return plan_table_archive(opened, config)
        return archive_table(opened, table_lock(opened, config), config)

    def purge(
        self,
        older_than: QueryTime | None = None,
        *,
        savepoints: Sequence[QueryTime] = (),
        progress: Progress = no_progress,
    ) -> PurgeResult:
        """Make rows that were deleted leave the disk.

        After it no file under the table holds them: data files, logs of changes, indexes,
        statistics and the format's metadata of past states are gone or rebuilt. Time travel begins
        anew, in the format's view in any case.

        Parameters
        ----------
        older_than
            Only rows that went before this time; states since then stay readable in Hudi's view.
        savepoints
            Savepoints to be deleted first.
        progress
            Called with the number of files whose footers are read so far, and of all.

        Raises
        ------
        TableServiceError
            A savepoint that is not given keeps past files; it is named. Nothing was deleted.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(None)
        done = purge_table(
            opened,
            table_lock(opened, config),
            config,
            older_than=_commit_time(older_than),
            savepoints=[time for one in savepoints if (time := _commit_time(one))],
            progress=progress,
        )
        self._opened = open_table(self.path, self._options)
        return done

    def savepoint(
        self, instant: QueryTime | None = None, *, user: str = "", comment: str = ""
    ) -> Savepoint:
        """Keep the files of a commit, to be restored.

        Parameters
        ----------
        instant
            The commit; by default the last one.
        user, comment
            Texts that the savepoint keeps.

        Raises
        ------
        InstantNotFoundError, HistoryExpiredError
            No such commit is on the active timeline, or a clean has deleted a file of its state.
        UnsupportedCapabilityError
            The table's format cannot keep a state.
        """
        opened, config = self._for_service(None)
        lock, of = table_lock(opened, config), _commit_time(instant)
        return create_savepoint(opened, lock, config, of=of, user=user, comment=comment)

    @property
    def savepoints(self) -> tuple[Savepoint, ...]:
        """The savepoints, the oldest first."""
        return savepoints_of(self._opened)

    def delete_savepoint(self, instant: QueryTime) -> Instant:
        """Let the files of a savepoint be cleaned again.

        Raises
        ------
        InstantNotFoundError
            There is no such savepoint.
        """
        opened, config = self._for_service(None)
        time = _commit_time(instant) or InstantTime("")
        return delete_savepoint(opened, table_lock(opened, config), config, time)

    def restore(self, instant: QueryTime, *, dry_run: bool = False) -> RestoreResult:
        """Take the table back to the state after a commit.

        What came later is gone: its rows, its files, and its instants. In the table's format the
        state becomes the current one in one change. A restore that died is finished by the next
        writer.

        Parameters
        ----------
        instant
            The commit, or its savepoint.
        dry_run
            Whether to say only which commits would be taken out.

        Raises
        ------
        InstantNotFoundError, HistoryExpiredError
            No such commit is on the active timeline, or a clean has deleted a file of its state.
        TableServiceError
            A later commit has a savepoint, or the format has forgotten the state.
        UnsupportedCapabilityError
            The table's format cannot go back.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(None)
        time = _commit_time(instant) or InstantTime("")
        if dry_run:
            return plan_restore(opened, time)
        done = restore_table(opened, table_lock(opened, config), config, time)
        self._opened = open_table(self.path, self._options)
        return done

    def _for_service(
        self, options: Options | None, progress: Progress = no_progress
    ) -> tuple[OpenTable, WriteConfig]:
        merged = self._options | options_as_strings(options or {})
        opened = open_table(self.path, merged)
        if progress is not no_progress:
            run_map = CountedMap(opened.client.run_map, progress)
            opened = replace(opened, client=replace(opened.client, run_map=run_map))
        return opened, WriteConfig.from_options(merged)

    def cluster(
        self,
        *,
        sort_by: Columns | None = None,
        layout: str | None = None,
        partitions: Columns | None = None,
        schedule_only: bool = False,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> Clustering:
        """Rewrite small files into larger ones, their rows in another order.

        Which files, options say (``hoodie.clustering.*``). Rows stay what they are, with the times
        of their commits; readers see the old files until the new ones are complete.

        Parameters
        ----------
        sort_by
            Columns by which the rows of the new files are sorted; as options say by default.
        layout
            How several columns sort: ``linear``, ``z-order`` or ``hilbert``.
        partitions
            Paths of the partitions to look at; all by default.
        schedule_only
            Whether only the plan is put on the timeline, for :meth:`run_clusterings` in any
            process. Until then other writes go round its files: see
            ``hoodie.clustering.updates.strategy``.
        dry_run
            Whether to say only what would be rewritten.
        progress
            Called with the number of groups of files done so far, and of all.

        Raises
        ------
        SchemaError, UnknownPartitionError
            A column or partition is not there. Nothing has changed.
        TableServiceError
            The table has buckets, whose files cannot be rewritten together.
        CommitConflictError
            Another write changed one of the files meanwhile, and it stands.
        ConcurrentWriterError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        wanted = {
            ClusteringConfig.sort_columns.key: sort_by,
            ClusteringConfig.layout.key: layout,
            ClusteringConfig.partitions.key: partitions,
        }
        given = {key: value for key, value in wanted.items() if value is not None}
        with self._clusterings({**(options or {}), **given}, engine, progress) as service:
            if dry_run:
                return service.plan()
            return service.schedule() if schedule_only else service.cluster()

    def run_clusterings(
        self,
        instant: QueryTime | None = None,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> list[Clustering]:
        """Run clusterings that are scheduled, by whomever, oldest first.

        Parameters
        ----------
        instant
            Which one; all by default.
        progress
            Called with the number of groups of files done so far, and of all.

        Raises
        ------
        InstantNotFoundError
            No clustering of that time is scheduled.
        CommitConflictError
            Another write changed one of its files since. It stands, and the clustering is given up.
        CorruptMetadataError
            A plan names something else than files of the table. Nothing has changed.
        """
        with self._clusterings(options, engine, progress) as service:
            return service.run(requested_time(instant))

    def optimize(
        self,
        partitions: Columns | None = None,
        *,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> Clustering:
        """Rewrite all small files into larger ones; rows stay in their order.

        A clustering without sort columns and without a limit of groups: see :meth:`cluster`.
        """
        limits = {ClusteringConfig.max_groups.key: _ALL_GROUPS, **(options or {})}
        return self.cluster(
            sort_by="",
            partitions=partitions,
            dry_run=dry_run,
            options=limits,
            engine=engine,
            progress=progress,
        )

    @contextmanager
    def _clusterings(
        self, options: Options | None, engine: Engine | None, progress: Progress
    ) -> Iterator[ClusteringService]:
        """The service of a call; later reads use its table."""
        writer = self._writer(options, engine or engine_for(None))
        service = ClusteringService(
            writer.table, writer.lock, writer.engine, writer.config, progress
        )
        try:
            yield service
        finally:
            self._opened = service.table

    def rollback(self, instant: QueryTime) -> Instant:
        """Undo the last completed write, or a dead writer's pending one.

        Returns
        -------
        Instant
            The completed rollback.
        """
        config = WriteConfig.from_options(self._options)
        return roll_back_instant(
            self._opened, table_lock(self._opened, config), config, requested_time(instant) or ""
        )

    def drop(self, *, dry_run: bool = False) -> DropResult:
        """Delete the table with all its rows and history.

        An entry of it in a catalog stays, to be dropped there.

        Parameters
        ----------
        dry_run
            Whether to say only what would be deleted.

        Raises
        ------
        ConcurrentWriterError, LockError
            Another writer is at work; nothing is deleted.
        """
        return (plan_drop if dry_run else drop_table)(self.path, self._options)

    def validate(
        self, *, footers: bool = True, keys: bool = False, progress: Progress = no_progress
    ) -> TableValidation:
        """Compare what timeline, storage, metadata table and the format's own metadata say.

        Parameters
        ----------
        footers
            Whether the footers of the present files are read: rows and statistics are compared with
            them. Without them only files and sizes are compared.
        keys
            Whether the keys of all rows are read as well, to count those that several rows have.
            They are a difference only in a table with a record index; else inserts may have made
            them, and ``repeated_keys`` counts them.
        progress
            Called with the number of files read so far, and of all.

        Returns
        -------
        TableValidation
            Every difference, and what was compared. Nothing is changed; what cannot be read is a
            difference too.
        """
        return validate_table(
            open_table(self.path, self._options), footers=footers, keys=keys, progress=progress
        )

    def convert(
        self,
        to: str,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Conversion:
        """Change the table's format; data files and Hudi timeline stay.

        The metadata of the new format is made from the present files. What completed before is
        complete in it without being named; its time travel begins here. The metadata of the former
        format stays where it is and is not kept up any more. A conversion that died may be run
        again.

        Parameters
        ----------
        to
            Name of an installed format; ``native`` for Hudi's own.
        options
            Further Hudi options, such as ``hoodie.table.format.<name>.location``.
        dry_run
            Whether to say only what would be done.
        progress
            Called with the number of files whose footers are read so far, and of all.

        Raises
        ------
        UnknownTableFormatError, UnsupportedCapabilityError, UnsupportedTableError, SchemaError
            The format is not there, or cannot hold the table; nothing has changed.
        TableServiceError
            The table has savepoints; nothing has changed.
        ConcurrentWriterError, LockError
            Another writer is at work; nothing has changed.
        CommitConflictError, CommitStateUnknownError
            The metadata could not be made; the table has the format it had. Run it again.
        """
        merged = self._options | options_as_strings(options or {})
        if dry_run:
            return plan_conversion(self.path, merged, to, progress)
        done = convert_table(self.path, merged, to, progress)
        # the format is what the table says from now on
        self._options = GivenOptions(without_format(merged))
        self._opened = open_table(self.path, self._options)
        return done

    def upgrade(
        self,
        to: int,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Upgrade:
        """Bring the table to version 8 or 9.

        It comes up from 6 or 8, or down from 9. A table of version 6 gets another layout of its
        timeline, and a history in place of its archive. The metadata table is rebuilt, pending
        writes are rolled back, and data files stay. An upgrade that died is run again. Writers that
        know only the former version must have ended.

        Parameters
        ----------
        to
            The version.
        options
            Further Hudi options, such as ``hoodie.table.timeline.local.zone``.
        dry_run
            Whether to say only what would be done.
        progress
            Called with the number of timeline files copied so far, and of all.

        Raises
        ------
        UnsupportedTableError
            The table has what this release does not write, or what the version has no words for;
            nothing has changed.
        TableServiceError
            Another program's upgrade was interrupted; nothing has changed.
        TimelineError
            The instants were made in another time zone than the one declared; nothing has changed.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        merged = self._options | options_as_strings(options or {})
        if dry_run:
            return plan_upgrade(self.path, merged, to)
        done = upgrade_table(self.path, merged, to, progress)
        # the version is what the table says from now on
        kept = {key: value for key, value in merged.items() if key not in CHANGED_OPTIONS}
        self._options = GivenOptions(kept)
        self._opened = open_table(self.path, self._options)
        return done

    def repair(
        self, *, force: bool = False, dry_run: bool = False, progress: Progress = no_progress
    ) -> Repair:
        """Rebuild lost or wrong parts of metadata table and format's metadata.

        Both come from the Hudi timeline and the data files, which themselves are only checked.
        Commits of other writers than Hudi are not in the format's metadata any more. A repair that
        died may be run again.

        Parameters
        ----------
        force
            Whether the format's metadata is rebuilt where nothing is wrong with it, too.
        dry_run
            Whether to say only what would be done.
        progress
            Called with the number of files whose footers are read so far, and of all.

        Raises
        ------
        UnsupportedTableError, UnsupportedCapabilityError
            The table cannot be written, or its format cannot be made from a table.
        ConcurrentWriterError, LockError
            Another writer is at work.
        CorruptMetadataError
            The timeline or the properties are damaged; these cannot be rebuilt.
        """
        if dry_run:
            return plan_repair(self.path, self._options, force=force, progress=progress)
        done = repair_table(self.path, self._options, force=force, progress=progress)
        self._opened = open_table(self.path, self._options)
        return done


def _commit_time(instant: QueryTime | None) -> InstantTime | None:
    """Requested time of a commit that a user names."""
    text = requested_time(instant)
    return None if text is None else parse_instant_time(text)


def _names(columns: Columns | None) -> Sequence[str] | None:
    return [columns] if isinstance(columns, str) else columns
