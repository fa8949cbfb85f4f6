"""One table: opened, read, written, served, and brought into another form."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.config.key import GivenOptions
from hudi_core.config.resolve import options_as_strings
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import engine_for
from hudi_core.services.adopt import adopt_in_place, plan_adoption
from hudi_core.services.adopt_plan import Adoption, Folder
from hudi_core.services.adopt_rows import AdoptedRows
from hudi_core.services.convert import Conversion, convert_table, plan_conversion, without_format
from hudi_core.services.create import create_table
from hudi_core.services.design import SchemaLike, as_arrow_schema, named_options
from hudi_core.services.differences import TableValidation
from hudi_core.services.drop import DropResult, drop_table, plan_drop
from hudi_core.services.metadata_repair import MetadataRepair, repair_metadata_table
from hudi_core.services.opening import open_table
from hudi_core.services.progress import Progress, no_progress
from hudi_core.services.relocate import (
    StorageConversion,
    convert_storage,
    plan_storage_conversion,
    without_placement,
)
from hudi_core.services.repair import Repair, plan_repair, repair_table
from hudi_core.services.upgrade import upgrade_table
from hudi_core.services.upgrade_plan import CHANGED_OPTIONS, Upgrade, plan_upgrade
from hudi_core.services.validate import validate_table
from hudi_core.storage.location import PathLike, location_of
from hudi_core.sync.lag import with_entries
from hudi_core.table.arguments import Options
from hudi_core.table.indexing import TableIndexing


class Table(TableIndexing):
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

    def close(self) -> None:
        """Close what the format holds, such as a connection.

        Nobody has to call it: it happens by itself once nobody holds the table any more. The table
        is not to be used afterwards: what needs its format is refused
        (:class:`~hudi_core.errors.TableClosedError`).

        Raises
        ------
        PluginHookError, HudiError
            The format failed; the table is closed all the same.
        """
        self._opened.host.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    # --- the table as a whole ---------------------------------------------------------------------

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
        return (plan_drop if dry_run else drop_table)(self._open_path, self._options)

    def validate(
        self, *, footers: bool = True, keys: bool = False, progress: Progress = no_progress
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
        progress
            Called with the number of files read so far, and of all.

        Returns
        -------
        TableValidation
            Every difference, and what was compared. Nothing is changed; what cannot be read is a
            difference too.
        """
        opened = open_table(self._open_path, self._options)
        found = validate_table(opened, footers=footers, keys=keys, progress=progress)
        return with_entries(found, opened, self._options)

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
        again.

        Parameters
        ----------
        to
            Name of an installed format, ``native`` for Hudi's own; or several, of which those
            that the table has keep their metadata.
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
        wanted = to if isinstance(to, str) else ",".join(to)
        if dry_run:
            return plan_conversion(self._open_path, merged, wanted, progress)
        done = convert_table(self._open_path, merged, wanted, progress)
        # the format is what the table says from now on
        self._options = GivenOptions(without_format(merged))
        self._opened = open_table(self._open_path, self._options)
        return done

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
        names the present layout.

        Parameters
        ----------
        options
            The new layout: ``hoodie.storage.strategy.class`` and the other options of storage, all
            that are wanted; ``default`` without a storage path for the table's own folder.
            Credentials of the new place, too.
        engine
            Copies the files; threads of this process by default.
        dry_run
            Whether to say only what would be done.
        progress
            Called with the number of files copied so far, and of all.

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
        merged = self._options | options_as_strings(options)
        wanted = options_as_strings(options)
        if dry_run:
            return plan_storage_conversion(self._open_path, merged, wanted)
        done = convert_storage(
            self._open_path, merged, wanted, engine or engine_for(None), progress
        )
        # the layout is what the table says from now on
        self._options = GivenOptions(without_placement(merged))
        self._opened = open_table(self._open_path, self._options)
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
            return plan_upgrade(self._open_path, merged, to)
        done = upgrade_table(self._open_path, merged, to, progress)
        # the version is what the table says from now on
        kept = {key: value for key, value in merged.items() if key not in CHANGED_OPTIONS}
        self._options = GivenOptions(kept)
        self._opened = open_table(self._open_path, self._options)
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
            return plan_repair(self._open_path, self._options, force=force, progress=progress)
        done = repair_table(self._open_path, self._options, force=force, progress=progress)
        self._opened = open_table(self._open_path, self._options)
        return done

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

        Parameters
        ----------
        dry_run
            Whether nothing is written: all is read and compared the same.
        engine
            Lists folders, and reads footers and keys: a ``SparkEngine`` on its executors. By
            default threads of this process do.
        progress
            Called with the number of files or folders dealt with so far, and of all, in each of its
            steps.

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
        done = repair_metadata_table(
            self._open_path,
            self._options,
            engine or engine_for(None),
            dry_run=dry_run,
            progress=progress,
        )
        self._opened = open_table(self._open_path, self._options)
        return done
