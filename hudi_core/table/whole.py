"""A table as a whole: validated, converted, upgraded, repaired and dropped."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.config.key import GivenOptions
from hudi_core.config.resolve import options_as_strings
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine
from hudi_core.services.convert import Conversion, convert_table, plan_conversion, without_format
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
from hudi_core.sync.lag import with_entries
from hudi_core.table.arguments import Options
from hudi_core.table.indexing import TableIndexing


class WholeTable(TableIndexing):
    """A table with what concerns all of it."""

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
            The table has savepoints, or metadata that an earlier conversion left there has rows of
            another writer; nothing has changed.
        ForeignCommitError
            Another writer has committed to the present format: see :meth:`repair`.
        ConcurrentWriterError, LockError
            Another writer is at work; nothing has changed.
        CommitConflictError, CommitStateUnknownError
            The metadata could not be made; the table has the format it had. Run it again.
        """
        merged = self._options | options_as_strings(options)
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
        done = convert_storage(self._open_path, merged, wanted, chosen_engine(engine), progress)
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
        merged = self._options | options_as_strings(options)
        if dry_run:
            return plan_upgrade(self._open_path, merged, to)
        done = upgrade_table(self._open_path, merged, to, progress)
        # the version is what the table says from now on
        kept = {key: value for key, value in merged.items() if key not in CHANGED_OPTIONS}
        self._options = GivenOptions(kept)
        self._opened = open_table(self._open_path, self._options)
        return done

    def repair(
        self,
        *,
        force: bool = False,
        take_in: bool = False,
        discard: bool = False,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Repair:
        """Rebuild lost or wrong parts of metadata table and format's metadata.

        Both come from the Hudi timeline and the data files, which themselves are only checked.
        Where another writer than Hudi has added, deleted or changed rows in the format's metadata,
        it changes nothing and says how many, unless it is told what becomes of them. A repair that
        died may be run again.

        Parameters
        ----------
        force
            Whether the format's metadata is rebuilt where nothing is wrong with it, too.
        take_in
            Whether rows that another writer appended are written into the table, by an upsert in
            one commit of the format.
        discard
            Whether the commits of other writers are taken out of the format's metadata.
        dry_run
            Whether to say only what would be done.
        progress
            Called with the number of files whose footers are read so far, and of all.

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
        path, options = self._open_path, self._options
        if dry_run:
            return plan_repair(path, options, force=force, taking_in=take_in, progress=progress)
        done = repair_table(
            path, options, force=force, taking_in=take_in, discarding=discard, progress=progress
        )
        self._opened = open_table(path, options)
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
            chosen_engine(engine),
            dry_run=dry_run,
            progress=progress,
        )
        self._opened = open_table(self._open_path, self._options)
        return done
