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


class TableUpkeep(RowOperations):
    """What gives one open table another format."""

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
