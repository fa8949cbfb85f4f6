"""What is done with a table as a whole: the side of it that its operators use."""

from __future__ import annotations

from hudi_core.config.resolve import text_options
from hudi_core.row_operations import Options, RowOperations
from hudi_core.services.convert import (
    Conversion,
    convert_table,
    plan_conversion,
    without_format,
)
from hudi_core.services.opening import open_table
from hudi_core.services.progress import Progress, no_progress
from hudi_core.services.repair import Repair, plan_repair, repair_table
from hudi_core.services.validate import TableValidation, validate_table


class TableUpkeep(RowOperations):
    """What checks one open table, mends it, and gives it another format."""

    def validate(
        self, *, footers: bool = True, progress: Progress = no_progress
    ) -> TableValidation:
        """Compare what timeline, storage, metadata table and the format's own metadata say.

        Parameters
        ----------
        footers
            Whether the footers of the present files are read: rows and statistics are compared with
            them. Without them only files and sizes are compared.
        progress
            Is told of the files whose footers are read.

        Returns
        -------
        TableValidation
            Every difference, and what was compared. Nothing is changed; what cannot be read is a
            difference too.
        """
        return validate_table(
            open_table(self.path, self._options), footers=footers, progress=progress
        )

    def convert(
        self,
        to: str,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Conversion:
        """Give the table another format; data files and Hudi timeline stay as they are.

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
            Is told of the files whose footers are read.

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
        merged = {**self._options, **text_options(options or {})}
        if dry_run:
            return plan_conversion(self.path, merged, to)
        done = convert_table(self.path, merged, to, progress)
        # the format is what the table says from now on
        self._options = without_format(merged)
        self._opened = open_table(self.path, self._options)
        return done

    def repair(
        self, *, force: bool = False, dry_run: bool = False, progress: Progress = no_progress
    ) -> Repair:
        """Make anew what is missing or wrong of the metadata table and of the format's metadata.

        Both come from the Hudi timeline and the data files, which themselves are only checked.
        Commits of other writers than Hudi are not in the format's metadata any more. A repair that
        died may be run again.

        Parameters
        ----------
        force
            Whether the format's metadata is made anew where nothing is wrong with it, too.
        dry_run
            Whether to say only what would be done.
        progress
            Is told of the files whose footers are read.

        Raises
        ------
        UnsupportedTableError, UnsupportedCapabilityError
            The table cannot be written, or its format cannot be made from a table.
        ConcurrentWriterError, LockError
            Another writer is at work.
        CorruptMetadataError
            The timeline or the properties are damaged; these cannot be made anew.
        """
        if dry_run:
            return plan_repair(self.path, self._options, force=force, progress=progress)
        done = repair_table(self.path, self._options, force=force, progress=progress)
        self._opened = open_table(self.path, self._options)
        return done
