"""One table: opened, read, written, served, and brought into another form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from hudi_core.config.resolve import given_options, options_as_strings
from hudi_core.config.table import TableConfig
from hudi_core.engine.base import Engine
from hudi_core.metadata.as_arrow import metadata_partition
from hudi_core.model.dry_run import DryRun
from hudi_core.model.files import FileSlice
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import (
    BULK_INSERT,
    INSERT,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    UPSERT,
    Operation,
)
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.read.changes.changed_rows import Images
from hudi_core.read.filters import RowFilter
from hudi_core.read.query_times import QueryTime, requested_time
from hudi_core.read.spark_frame import frame_of_plan
from hudi_core.services.adoption.adopt import adopt_folder
from hudi_core.services.adoption.plan import Adoption, Folder
from hudi_core.services.archive import ArchiveResult
from hudi_core.services.clean import CleanResult
from hudi_core.services.clustering import Clustering
from hudi_core.services.compaction import Compaction
from hudi_core.services.convert import Conversion, TypeConversion
from hudi_core.services.create import SchemaLike, as_arrow_schema, create_table, named_options
from hudi_core.services.drop import DropResult, drop_table, plan_drop
from hudi_core.services.history import History, table_history
from hudi_core.services.mending.differences import TableValidation
from hudi_core.services.mending.repair import Repair
from hudi_core.services.metadata import MetadataRepair
from hudi_core.services.opening import open_table
from hudi_core.services.partition_ttl import Expiry
from hudi_core.services.progress import Progress, no_progress
from hudi_core.services.purge import PurgeResult
from hudi_core.services.relocate import StorageConversion
from hudi_core.services.rewrite_keys import KeyRewrite
from hudi_core.services.rollback import (
    RestoreResult,
    RollbackPreview,
    Savepoint,
    create_savepoint,
    delete_savepoint,
    savepoints_of,
)
from hudi_core.services.stage import Stage, find_stage, stages_of
from hudi_core.services.stage_record import drop_stage
from hudi_core.services.upgrade import Upgrade
from hudi_core.storage.location import PathLike, location_of
from hudi_core.sync.result import SyncResult
from hudi_core.table import services, writes
from hudi_core.table.arguments import (
    NO_EXTRAS,
    Columns,
    Extras,
    Options,
    commit_time,
    names_of,
)
from hudi_core.table.merging import TableMerger
from hudi_core.table.session import TableCall, TableSession, as_html, facts_of, pickled
from hudi_core.table_handle import OpenTable
from hudi_core.write.conditional.changes import Changes
from hudi_core.write.conditional.expressions import Values, Where
from hudi_core.write.replacing import PartitionLike
from hudi_core.write.validation import Validator

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.read.dataset import HudiDataset


class Table:
    """One open table.

    Made by :meth:`create` or :meth:`open`. It sees what others commit at its next call, not in the
    middle of one. A pickle of it holds its path and its options without secrets: see
    docs/reading.md.

    Rows are a Spark DataFrame, anything Arrow can read, or dictionaries in a list or another
    iterable. Many methods take the same arguments, which are described here, and at a method only
    where they differ:

    ``options``
        Hudi options for this call alone, beside those that the table was opened with.
    ``engine``
        What runs the call: by default Spark for the rows of a Spark DataFrame, and threads of this
        process for all else.
    ``progress``
        Called with the number of files dealt with so far, and of all.
    ``dry_run``
        Whether to say only what would be done, or deleted; nothing is changed.

    Operations on rows take further ones:

    ``extra_metadata``
        Strings by key that the commit keeps; readers of the timeline find them there.
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

    Most queries take these:

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

    Options of reads (``as.of.instant``, ``hoodie.datasource.query.type``, and others) that the
    table was opened with hold where an argument does not say otherwise.
    """

    def __init__(self, opened: OpenTable, options: Mapping[str, str]) -> None:
        self._session = TableSession(opened, options)

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
        format: str | Sequence[str] | None = None,  # noqa: A002 - the word every user of tables knows
        table_type: str | None = None,
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
            Name of the table format, ``native`` by default; or several, which get every commit.
        table_type
            ``COPY_ON_WRITE`` by default: an upsert writes the files again that it changes. With
            ``MERGE_ON_READ`` it writes the changes into log files, which readers merge and a
            compaction ends; the format has to be ``native``.
        options
            Further Hudi options, also for later calls; the named arguments win over them.

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
        named = named_options(
            name, record_key, partition_by, ordering_field, format, table_type=table_type
        )
        merged = options_as_strings({**given_options(options), **named})
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
        given = options_as_strings(options)
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
        folder, for files that hold all columns themselves, and for a key in every row. A dry run
        says why files cannot stay as they are.

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
        given = options_as_strings({**given_options(options), **named})
        folder = Folder(location_of(path), given, source, progress)

        def insert(new: OpenTable, rows: pa.RecordBatchReader) -> None:
            cls(new, folder.table_options).bulk_insert(rows)

        return adopt_folder(folder, rewrite, insert, dry_run=dry_run)

    def close(self) -> None:
        """Close what the format holds, such as a connection.

        It need not be called: it happens by itself once nothing refers to the table. The table
        is not to be used afterwards: what needs its format is refused
        (:class:`~hudi_core.errors.TableClosedError`).

        Raises
        ------
        PluginHookError, HudiError
            The format failed; the table is closed all the same.
        """
        self._session.opened.host.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Table:
        return Table.open(self._session.path, self._session.options)

    def __deepcopy__(self, _: object) -> Table:
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        return pickled(self._session, type(self).open)

    # --- facts -----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        facts = facts_of(self._session.opened.client)
        return f"Table({', '.join(f'{name}={fact!r}' for name, fact in facts.items())})"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return as_html(facts_of(self._session.opened.client))

    @property
    def path(self) -> str:
        """Base path of the table."""
        return self._session.opened.client.base_path

    @property
    def config(self) -> TableConfig:
        """The stored properties, typed, as the last call saw them."""
        return self._session.opened.client.config

    @property
    def format(self) -> str:
        """Name of the table format."""
        return self.config.table_format

    @property
    def schema(self) -> pa.Schema:
        """Columns after the latest complete commit, without meta columns."""
        return self._session.schema()

    @property
    def timeline(self) -> TimelineView:
        """The instants, as the table's format sees them."""
        return self._session.present().timeline()

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
        opened = self._session.present()
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
        return table_history(self._session.present(), limit)

    # --- reading ---------------------------------------------------------------------------------

    def file_slices(
        self,
        as_of: QueryTime | None = None,
        filter: RowFilter | None = None,  # noqa: A002
    ) -> tuple[FileSlice, ...]:
        """Return the file slices a snapshot query reads."""
        return self._session.snapshot().file_slices(self._session.at(as_of), filter)

    def to_arrow(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._session.snapshot().to_table(names_of(columns), filter, self._session.at(as_of))

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches.

        They need not fit into memory.
        """
        return self._session.snapshot().to_arrow(names_of(columns), filter, self._session.at(as_of))

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

        query = self._session.snapshot()
        return HudiDataset(query, self._session.at(as_of), filter, self._session.snapshot)

    def head(
        self,
        rows: int = 5,
        columns: Columns | None = None,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> pa.Table:
        """Return some rows of the first files, in no particular order."""
        return self._session.snapshot().head(
            rows, names_of(columns), filter, self._session.at(as_of)
        )

    def count(
        self,
        filter: RowFilter | None = None,  # noqa: A002
        as_of: QueryTime | None = None,
    ) -> int:
        """Return the number of rows.

        Without a filter no data file is read for it; of file slices with logs the footer is, and
        the logs.
        """
        return self._session.snapshot().count(filter, self._session.at(as_of))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows to whatever takes Arrow streams, such as ``polars.DataFrame(table)``."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """Return the columns of that stream: all, the meta columns first."""
        return self._session.snapshot().schema.__arrow_c_schema__()

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
        query = self._session.snapshot(spark)
        plan = query.plan(self._session.at(as_of), filter)
        return frame_of_plan(spark, query.client, plan, names_of(columns), filter)

    # --- changes ---------------------------------------------------------------------------------

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

        A time in ``_hoodie_commit_time`` of a row means the completion of the commit that
        wrote it.

        Parameters
        ----------
        deletes
            Whether rows that are gone come as well, as they were before the window, and a last
            column ``_change_type`` is ``insert``, ``update`` or ``delete``. What happened
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
        return self._session.changes(begin, end, columns, filter).rows(spark, deletes=deletes)

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
        return self._session.changes(begin, end, columns, filter).batches(deletes=deletes)

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
            Whether ``before`` and ``after`` are strings of JSON (``"json"``) or structs
            (``"struct"``).

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
        return self._session.changes(begin, end, columns, filter).changes(spark, images)

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
        return self._session.changes(begin, end, columns, filter).feed(images).to_arrow()

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
        return self._session.snapshot().diff(old or "", new, names_of(columns))

    # --- writing ---------------------------------------------------------------------------------

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
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.write(call, INSERT, data)

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
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.write(call, BULK_INSERT, data)

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

        Rows may lack columns, each its own, where
        ``hoodie.table.partial.update.mode=KEEP_VALUES``: updated rows keep their values, new rows
        get nulls.
        """
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.write(call, UPSERT, data)

    def delete(
        self,
        data: Any = None,
        *,
        where: Where | None = None,
        spark: SparkSession | None = None,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Remove rows by the keys in ``data``, or by a condition.

        Parameters
        ----------
        data
            Rows; just their columns of key and partition are needed.
        where
            Instead of them, the condition: an Arrow expression, conditions as of read filters, or a
            string in Spark's SQL.
        spark
            The session that looks for the rows of ``where``; without one this process does.

        Raises
        ------
        InvalidOptionError
            Both of ``data`` and ``where`` are given, or none.
        """
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.delete(call, data, where, spark)

    def update(
        self,
        set: Values,  # noqa: A002 - SQL's word
        where: Where | None = None,
        *,
        spark: SparkSession | None = None,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Set columns of the rows that a condition accepts, in one commit.

        The ordering field has no say in it: a row is changed whatever its value is or becomes. A
        row whose partition columns change moves.

        Parameters
        ----------
        set
            Values by column: a string is an expression in Spark's SQL over the columns, such as
            ``"price * 2"`` or ``"'sold'"``; an Arrow expression is one as well; any other Python
            value is taken as it is.
        where
            See :meth:`delete`; ``None`` for all rows.
        spark
            The session that looks for the rows and changes them; without one this process does.

        Raises
        ------
        SchemaError
            A column is part of the record key, or unknown; a value does not fit. Nothing is
            written.
        CommitConflictError
            Another write changed a file group with such rows. Nothing of this one is visible.
        """
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.update(call, set, where, spark)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> TableMerger:
        """Begin a merge of rows; its clauses follow, then ``execute()``.

        Parameters
        ----------
        source
            A Spark DataFrame, or anything Arrow can read.
        on
            Names of columns that are equal, or a condition in Spark's SQL, such as
            ``"target.id = source.id"``.
        source_alias, target_alias
            What qualifies columns of the source and of the table.
        """
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.merger(call, source, on, source_alias, target_alias)

    def change(
        self,
        changes: Changes,
        engine: Engine,
        options: Options | None = None,
        extras: Extras = NO_EXTRAS,
    ) -> CommitResult:
        """Run a conditional write, as :meth:`update`, :meth:`delete` and :meth:`merge` do."""
        return writes.change(TableCall(self._session, options, extras=extras), changes, engine)

    def insert_overwrite(
        self,
        data: Any,
        *,
        partitions: Sequence[PartitionLike] = (),
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Replace the rows of the partitions that the rows belong to.

        Other partitions stay.

        Parameters
        ----------
        partitions
            Partitions that are replaced too, even if no row belongs to them: paths, or mappings of
            the partition columns to their values.
        """
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.write(call, INSERT_OVERWRITE, data, partitions)

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
        call = self._session.writing(options, engine, extra_metadata, idempotency, validators)
        return writes.write(call, INSERT_OVERWRITE_TABLE, data)

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
        call = self._session.writing(options, None, extra_metadata, idempotency, validators)
        return writes.delete_partitions(call, partitions)

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
        return writes.plan(TableCall(self._session, options, engine), operation, data)

    def perform(
        self,
        data: Any,
        operation: Operation | None,
        engine: Engine,
        extras: Extras = NO_EXTRAS,
        *,
        is_new: bool = False,
    ) -> CommitResult:
        """Run the operation in the options; ``None`` picks the best match.

        Parameters
        ----------
        is_new
            Whether the table was made for these rows.
        """
        call = TableCall(self._session, extras=extras)
        return writes.perform(call, data, operation, engine, is_new=is_new)

    # --- stages ----------------------------------------------------------------------------------

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
        call = self._session.writing(options, engine, extra_metadata, None, validators)
        return writes.stage(call, data, operation)

    def stages(self) -> tuple[Stage, ...]:
        """The stages that can be published, the oldest first.

        A warning names those whose record is damaged; :meth:`drop_stage` deletes them.
        """
        found = stages_of(self._session.present())
        return tuple(writes.stage_of(self._session, record) for record in found)

    def find_stage(self, stage: str) -> Stage:
        """The stage with an id.

        Raises
        ------
        UnknownStageError
            There is none: it was published, dropped, or has expired.
        CorruptMetadataError
            Its record is damaged.
        """
        return writes.stage_of(self._session, find_stage(self._session.present(), stage))

    def drop_stage(self, stage: str) -> None:
        """Delete the stage with an id, whatever state it is in.

        Unlike :meth:`Stage.drop` it takes stages too that have expired, that their writer did not
        finish, or whose record is damaged.

        Raises
        ------
        UnknownStageError
            There is none.
        """
        drop_stage(self._session.opened.client.storage, stage)

    # --- columns and indexes ---------------------------------------------------------------------

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
            Wider types: see :mod:`hudi_core.schema.casting`.

        Raises
        ------
        SchemaError
            The change cannot be made: names the column, for a type both types, and the way out.
            Columns of keys, partitions and ordering keep name and type.
        UnsupportedTableError
            A column would be renamed or dropped, and other writers' files carry no field ids.
        """
        call = TableCall(self._session, options, extras=Extras(extra_metadata))
        return services.alter(call, add_columns, rename, drop, promote)

    def create_index(
        self,
        name: str,
        column: str | Sequence[str],
        *,
        using: str | None = None,
        options: Mapping[str, str] | None = None,
        engine: Engine | None = None,
    ) -> Instant:
        """Add an index of a column, or of a function of it.

        As Hudi's ``CREATE INDEX name ON table USING using(column) OPTIONS(options)``.

        Parameters
        ----------
        name
            Of the index; with or without the beginning that Hudi gives it, ``expr_index_`` or
            ``secondary_index_``.
        column
            The column. The columns of the record key make the record index, whatever its name.
        using
            ``column_stats``, of a function; ``secondary_index``, ``record_index`` or nothing, of
            the column itself.
        options
            Function and format, such as ``{"expr": "date_format", "format": "yyyy-MM-dd"}``.
        engine
            Reads the files and, of many keys, writes the index; by default threads of this process.

        Returns
        -------
        Instant
            The completed indexing.

        Raises
        ------
        TableServiceError
            The table has no such column, has such an index, or the function is not supported.
        """
        return services.create_index(self._session, name, column, using, options, engine=engine)

    def drop_index(self, name: str, *, cascades: bool = False) -> Instant:
        """Drop an index of a column, or of a function of it.

        Parameters
        ----------
        cascades
            Whether the secondary indexes go with the record index, which they need.

        Raises
        ------
        TableServiceError
            There is no such index, or others need it.
        """
        return services.drop_index(self._session, name, cascades=cascades)

    # --- services --------------------------------------------------------------------------------

    def clean(
        self,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> CleanResult:
        """Delete file slices that no retained state of the table needs.

        A clean that died is finished first. Options such as ``hoodie.cleaner.commits.retained`` say
        what is retained; progress begins again in each of its steps. The engine lists folders and
        deletes files: a ``SparkEngine`` on its executors, where there are many.

        Raises
        ------
        CorruptMetadataError, TableServiceError
            A plan on the timeline names what must stay; nothing was deleted.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        return services.clean(TableCall(self._session, options, engine, progress, dry_run))

    def expire_partitions(
        self,
        days: int | None = None,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Expiry:
        """Delete partitions without a write for some days.

        One commit deletes all of them; past states stay readable until a clean. A partition that
        is written to meanwhile stays. Options ``hoodie.partition.ttl.*`` say from when on the
        age of a partition counts, and which partitions may expire. Progress counts partitions:
        those looked at, and then those deleted.

        Parameters
        ----------
        days
            How many; ``hoodie.partition.ttl.strategy.days.retain`` by default.

        Raises
        ------
        InvalidOptionError
            No number of days is given.
        PartitionValueError
            The table has no partitions.
        CommitConflictError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        return services.expire(TableCall(self._session, options, None, progress, dry_run), days)

    def archive(
        self,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> ArchiveResult:
        """Move old instants from the active timeline to its history.

        Options such as ``hoodie.keep.max.commits`` say which; progress begins again in each of its
        steps.

        Raises
        ------
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        return services.archive(TableCall(self._session, options, None, progress, dry_run))

    def purge(
        self,
        older_than: QueryTime | None = None,
        *,
        savepoints: Sequence[QueryTime] = (),
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> PurgeResult:
        """Make rows that were deleted leave the disk.

        After it no file under the table holds them: data files, logs of changes, indexes,
        statistics and the format's metadata of past states are gone or rebuilt. Log files are
        merged into base files first. Time travel starts there, in the format's view in any case.
        Progress counts files whose footers are read; a dry run names files with rows alone. The
        engine merges log files, reads what indexes need, lists folders and deletes files.

        Parameters
        ----------
        older_than
            Only rows that went before this time; states since then stay readable in Hudi's view,
            where they read no older log files.
        savepoints
            Savepoints to be deleted first.

        Raises
        ------
        TableServiceError
            A savepoint that is not given keeps past files, or a clustering is scheduled for file
            groups with log files; it is named. Nothing was deleted.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        call = TableCall(self._session, None, engine, progress, dry_run)
        return services.purge(call, older_than, savepoints)

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
        of their commits; readers see the old files until the new ones are complete. Log files of
        their slices are merged. Progress counts groups of files.

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

        Raises
        ------
        SchemaError, UnknownPartitionError
            A column or partition is not there. Nothing has changed.
        TableServiceError
            The table has buckets, whose files cannot be rewritten together.
        CommitConflictError
            Another write changed one of the files meanwhile, and it stays.
        ConcurrentWriterError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        given = services.clustering_options(options, sort_by, layout, partitions)
        call = TableCall(self._session, given, engine, progress, dry_run)
        return services.cluster(call, schedule_only=schedule_only)

    def run_clusterings(
        self,
        instant: QueryTime | None = None,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> list[Clustering]:
        """Run clusterings that any process has scheduled, the oldest first.

        Progress counts groups of files.

        Parameters
        ----------
        instant
            Which one; all by default.

        Raises
        ------
        InstantNotFoundError
            No clustering of that time is scheduled.
        CommitConflictError
            Another write changed one of its files since. It stays, and the clustering is given up.
        CorruptMetadataError
            A plan names something else than files of the table. Nothing has changed.
        """
        call = TableCall(self._session, options, engine, progress)
        return services.run_clusterings(call, instant)

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
        limits = {**services.ALL_GROUPS, **given_options(options)}
        given = services.clustering_options(limits, "", None, partitions)
        return services.cluster(TableCall(self._session, given, engine, progress, dry_run))

    def compact(
        self,
        *,
        schedule_only: bool = False,
        log_compaction: bool = False,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> Compaction:
        """Merge the log files of a MERGE_ON_READ table into base files.

        Which file slices, options say (``hoodie.compaction.*``). Rows stay what they are, with the
        times of their commits; readers see base files and logs until the new files are complete,
        and other writers go on meanwhile. Progress counts file slices.

        Parameters
        ----------
        schedule_only
            Whether only the plan is put on the timeline, for :meth:`run_compactions` in any
            process.
        log_compaction
            Whether the logs of a file slice are merged into one log, and its base file stays. Of
            slices whose logs have ``hoodie.log.compaction.blocks.threshold`` (5) blocks.

        Raises
        ------
        TableServiceError
            The table is of type COPY_ON_WRITE, which has no log files.
        CommitConflictError
            Another write replaced one of the files meanwhile, and it stays.
        ConcurrentWriterError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        call = TableCall(self._session, options, engine, progress, dry_run)
        return services.compact(call, schedule_only=schedule_only, log_compaction=log_compaction)

    def run_compactions(
        self,
        instant: QueryTime | None = None,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> list[Compaction]:
        """Run compactions that any process has scheduled, the oldest first.

        Log compactions come before the others. Those that another process runs are left to it.
        Progress counts file slices.

        Parameters
        ----------
        instant
            Which one; all by default.

        Raises
        ------
        InstantNotFoundError
            No compaction of that time is scheduled.
        CommitConflictError
            Another write replaced one of its files since. It stays, and the compaction is given up.
        CorruptMetadataError
            A plan names something else than files of the table. Nothing has changed.
        """
        call = TableCall(self._session, options, engine, progress)
        return services.run_compactions(call, instant)

    def rewrite_keys(
        self,
        *,
        materialise: bool = False,
        transition: bool = False,
        keep_files: bool = False,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> KeyRewrite:
        """Take stored record keys out of the files, or back.

        Nothing but the keys changes; see docs/virtual_keys.md. Interrupted, it is run again. A dry
        run compares stored keys all the same.

        Parameters
        ----------
        materialise
            Whether to put them back.
        transition
            Whether new files go on holding them, while everything here makes them.
        keep_files
            Whether present files stay as they are until a write changes them.

        Raises
        ------
        TableServiceError
            The table cannot have such keys, or its stored keys are others than its columns make.
            Nothing has changed.
        InvalidOptionError
            It has no record key, or keys are to be materialised and in transition at once.
        RecordKeyError, DataFileError
            The keys of a file cannot be made, or not be read.
        CommitConflictError, ConcurrentWriterError, CommitStateUnknownError, LockError
            See :meth:`cluster`.
        """
        call = TableCall(self._session, options, engine, progress, dry_run)
        return services.rewrite_keys(
            call, materialise=materialise, transition=transition, keep_files=keep_files
        )

    # --- recovery --------------------------------------------------------------------------------

    def savepoint(
        self, instant: QueryTime | None = None, *, user: str = "", comment: str = ""
    ) -> Savepoint:
        """Keep the files of a commit, to be restored.

        Parameters
        ----------
        instant
            The commit; by default the last one.
        user, comment
            Strings that the savepoint keeps.

        Raises
        ------
        InstantNotFoundError, HistoryExpiredError
            No such commit is on the active timeline, or a clean has deleted a file of its state.
        UnsupportedCapabilityError
            The table's format cannot keep a state.
        """
        opened, lock, config = self._session.locked()
        of = commit_time(instant)
        return create_savepoint(opened, lock, config, of=of, user=user, comment=comment)

    @property
    def savepoints(self) -> tuple[Savepoint, ...]:
        """The savepoints, the oldest first."""
        return savepoints_of(self._session.present())

    def delete_savepoint(self, instant: QueryTime) -> Instant:
        """Let the files of a savepoint be cleaned again.

        Raises
        ------
        InstantNotFoundError
            There is no such savepoint.
        """
        time = commit_time(instant) or InstantTime("")
        return delete_savepoint(*self._session.locked(), time)

    def restore(
        self,
        instant: QueryTime,
        *,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> RestoreResult:
        """Take the table back to the state after a commit.

        What came later is gone: its rows, its files, and its instants. In the table's format the
        state becomes the current one in one change. A restore that died is finished by the next
        writer. Progress begins again in each of its steps; what would be refused, a dry run
        refuses. The engine lists folders and deletes files: see :meth:`clean`.

        Parameters
        ----------
        instant
            The commit, or its savepoint.

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
        call = TableCall(self._session, None, engine, progress, dry_run)
        return services.restore(call, instant)

    @overload
    def rollback(
        self,
        instant: QueryTime,
        *,
        engine: Engine | None = None,
        dry_run: Literal[False] = False,
        progress: Progress = no_progress,
    ) -> Instant: ...
    @overload
    def rollback(
        self,
        instant: QueryTime,
        *,
        engine: Engine | None = None,
        dry_run: Literal[True],
        progress: Progress = no_progress,
    ) -> RollbackPreview: ...
    def rollback(
        self,
        instant: QueryTime,
        *,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Instant | RollbackPreview:
        """Undo the last completed write, or a dead writer's pending one.

        Progress begins again in each of its steps. The engine lists folders and deletes files: see
        :meth:`clean`.

        Parameters
        ----------
        instant
            The write.

        Returns
        -------
        Instant or RollbackPreview
            The completed rollback, or what it would delete.

        Raises
        ------
        InstantNotFoundError
            No write of that time is on the active timeline.
        TableServiceError
            Later writes build on it, a savepoint holds it, or files it took the place of are gone.
        ConcurrentWriterError, LockError
            Its writer, or another one, is alive.
        """
        call = TableCall(self._session, None, engine, progress, dry_run)
        return services.rollback(call, instant)

    def validate(
        self,
        *,
        footers: bool = True,
        keys: bool = False,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> TableValidation:
        """Compare what timeline, storage, metadata table and the format's own metadata say.

        And the table's entries in metastores, where options have each commit followed by a sync.

        Parameters
        ----------
        footers
            Whether the footers of the present files are read: rows and statistics are compared with
            them. Without them only files and sizes are compared.
        keys
            Whether the keys of all rows are read as well, to count those that several rows have.
            They are a difference only in a table with a record index; else inserts may have made
            them, and ``repeated_keys`` counts them.
        engine
            Lists folders, and reads footers, keys and logs: a ``SparkEngine`` on its executors,
            where there are many.

        Returns
        -------
        TableValidation
            Every difference, and what was compared. Nothing is changed; what cannot be read is a
            difference too.
        """
        call = TableCall(self._session, None, engine, progress)
        return services.validate(call, footers=footers, keys=keys)

    def repair(
        self,
        *,
        force: bool = False,
        take_in: bool = False,
        discard: bool = False,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Repair:
        """Rebuild lost or wrong parts of metadata table and format's metadata.

        Both come from the Hudi timeline and the data files, which themselves are only checked.
        Where another writer than Hudi has added, deleted or changed rows in the format's metadata,
        it changes nothing and says how many, unless it is given what becomes of them. A repair that
        died may be run again. Progress counts files whose footers are read.

        Parameters
        ----------
        force
            Whether the format's metadata is rebuilt where nothing is wrong with it, too.
        take_in
            Whether rows that another writer appended are written into the table, by an upsert in
            one commit of the format.
        discard
            Whether the commits of other writers are taken out of the format's metadata.
        engine
            Works on files as it does for :meth:`validate`, and reads those of a new metadata table.

        Raises
        ------
        ForeignCommitError
            Another writer has changed rows, and neither ``take_in`` nor ``discard`` is given.
        TableServiceError
            Rows are to be taken in, and some were deleted or rewritten.
        RecordKeyError, SchemaError
            Rows that are to be taken in have no keys, share one, or are older than the stored ones;
            or a column is missing. Nothing has changed.
        UnsupportedTableError, UnsupportedCapabilityError
            The table cannot be written, or its format cannot be made from a table.
        ConcurrentWriterError, LockError
            Another writer is at work.
        CorruptMetadataError
            The timeline or the properties are damaged; these cannot be rebuilt.
        """
        call = TableCall(self._session, None, engine, progress, dry_run)
        return services.repair(call, force=force, take_in=take_in, discard=discard)

    def repair_metadata(
        self,
        *,
        dry_run: bool = False,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> MetadataRepair:
        """Rebuild the metadata table from all files, whatever it says.

        The one in use is replaced once the new one is complete, and was compared with what the
        writes of the timeline name and with what the one in use says. It may be lost or damaged.
        The engine lists folders, and reads footers and keys: a ``SparkEngine`` on its executors. A
        dry run reads and compares all the same; progress counts files or folders, and begins again
        in each of its steps.

        Raises
        ------
        TableServiceError
            The table has no metadata table.
        IncompleteListingError
            The folders do not show a file that a write names. The metadata table in use stays.
        DataFileError
            A data file cannot be read; likewise.
        LostCompletionError
            The completed file of a commit is lost; :meth:`repair` puts it back.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        return services.repair_metadata(TableCall(self._session, None, engine, progress, dry_run))

    # --- metastores ------------------------------------------------------------------------------

    def sync(
        self, tool: str = "hive", *, options: Options | None = None, dry_run: bool = False
    ) -> SyncResult:
        """Register the table in a metastore, or update its entry.

        Partitions are compared that were written since the last sync.
        ``hoodie.datasource.meta.sync.enable`` has each commit followed by one; options such as
        ``hoodie.datasource.hive_sync.metastore.uris`` say where.

        Parameters
        ----------
        tool
            ``"hive"`` or ``"glue"``.

        Raises
        ------
        InvalidOptionError
            An option cannot be used, or a library is missing.
        UnsupportedTableError
            No reader that finds the entry could read the table.
        MetastoreEntryError
            There is an entry of something else under the name, or the database is missing.
        SchemaError
            Columns have become others than readers of the entry can take them for.
        PartitionValueError
            A partition's path has no values of the partition columns.
        MetastoreError
            The metastore does not answer, or refuses.
        """
        return services.sync(TableCall(self._session, options, dry_run=dry_run), tool)

    # --- the whole table -------------------------------------------------------------------------

    def convert(
        self,
        to: str | Sequence[str],
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Conversion:
        """Change the table's format; data files and Hudi timeline stay.

        The metadata of the new format is made from the present files. What completed before is
        complete in it without being named; its time travel begins here. The metadata of the former
        format stays where it is and is not kept up any more. A conversion that died may be run
        again. Progress counts files whose footers are read.

        Parameters
        ----------
        to
            Name of an installed format, ``native`` for Hudi's own; or several, of which those
            that the table has keep their metadata.
        options
            Further Hudi options, also for later calls, such as
            ``hoodie.table.format.<name>.location``.

        Raises
        ------
        UnknownTableFormatError, UnsupportedCapabilityError, UnsupportedTableError, SchemaError
            The format is not there, or cannot hold the table; nothing has changed.
        TableServiceError
            The table has savepoints, or metadata that an earlier conversion left there has rows of
            another writer; nothing has changed.
        ForeignCommitError
            Another writer has committed to the present format: see :meth:`repair`.
        ConcurrentWriterError, LockError
            Another writer is at work; nothing has changed.
        CommitConflictError, CommitStateUnknownError
            The metadata could not be made; the table has the format it had. Run it again.
        """
        return services.convert(TableCall(self._session, options, None, progress, dry_run), to)

    def convert_type(
        self,
        to: str,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> TypeConversion:
        """Change the table's type: MERGE_ON_READ or COPY_ON_WRITE.

        To MERGE_ON_READ no file changes; writes put changes into log files from then on. To
        COPY_ON_WRITE all log files are merged into base files first, which progress counts by file
        slices. Past states stay readable. A conversion that died may be run again.

        Parameters
        ----------
        to
            ``"MERGE_ON_READ"`` or ``"COPY_ON_WRITE"``.
        options
            For MERGE_ON_READ also ``hoodie.table.merge-on-read.mode``.

        Raises
        ------
        UnsupportedCapabilityError, UnsupportedTableError
            The table's format has no tables of that type, or the version none that are written;
            nothing has changed.
        TableServiceError
            To COPY_ON_WRITE: a compaction or clustering is pending, or the table has savepoints;
            nothing has changed.
        ConcurrentWriterError, LockError
            Another writer is at work; the table has the type that it had. Run it again.
        """
        call = TableCall(self._session, options, engine, progress, dry_run)
        return services.change_type(call, to)

    def convert_storage(
        self,
        options: Options,
        *,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> StorageConversion:
        """Move the data files to another storage layout.

        All of them are copied, those that time travel needs too; then the table names the new
        places in one step, and the old files are deleted. Timeline, metadata table and past states
        stay; a format that names files by their places gets its metadata rebuilt, and its own time
        travel begins here. A move that died is finished by the same call, and given up by one that
        names the present layout. The engine copies the files, which progress counts.

        Parameters
        ----------
        options
            The new layout: ``hoodie.storage.strategy.class`` and the other options of storage, all
            that are wanted; ``default`` without a storage path for the table's own folder.
            Credentials of the new place, too. They hold for later calls as well.

        Raises
        ------
        InvalidOptionError, StoragePathTakenError, UnsupportedCapabilityError, UnsupportedTableError
            The layout cannot be the table's; nothing has changed.
        TableServiceError
            Savepoints or stages are in the way; nothing has changed.
        ConcurrentWriterError, LockError
            Another writer is at work; nothing has changed.
        CommitConflictError, CommitStateUnknownError, IncompleteListingError
            The table is where it was. Run it again.
        """
        return services.move_files(TableCall(self._session, options, engine, progress, dry_run))

    def upgrade(
        self,
        to: int,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Upgrade:
        """Bring the table to version 8 or 9, or down to 6.

        A table of version 6 gets another layout of its timeline, and a history in place of its
        archive. The metadata table is rebuilt, pending writes are rolled back, and data files stay;
        but log files of version 6 are merged into base files, and those whose rows the other
        version merges otherwise. To version 6, which is only read afterwards, all of that goes the
        other way: logs are merged, the states before are cleaned where there are any, and there is
        no metadata table. An upgrade that died is run
        again. Writers that know only the former version must have ended. Progress counts copied
        files of the timeline, and file slices whose logs are merged.

        Parameters
        ----------
        to
            The version.
        options
            Further Hudi options, also for later calls, such as
            ``hoodie.table.timeline.local.zone``.

        Raises
        ------
        UnsupportedTableError
            The table has what this release does not write, or what the version has no words for;
            nothing has changed.
        TableServiceError
            Another program's upgrade was interrupted, or what is planned names logs that are to be
            merged; nothing has changed.
        TimelineError
            The instants were made in another time zone than the one declared; nothing has changed.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        return services.upgrade(TableCall(self._session, options, engine, progress, dry_run), to)

    def drop(self, *, dry_run: bool = False) -> DropResult:
        """Delete the table with all its rows and history.

        An entry of it in a catalog stays, to be dropped there.

        Raises
        ------
        ConcurrentWriterError, LockError
            Another writer is at work; nothing is deleted.
        """
        return (plan_drop if dry_run else drop_table)(self._session.path, self._session.options)
