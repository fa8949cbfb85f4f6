"""What is done with a table as a whole: the side of it that its operators use."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.config.key import GivenOptions
from hudi_core.config.resolve import text_options
from hudi_core.errors import NotATableError
from hudi_core.row_operations import Options, RowOperations
from hudi_core.services.adopt import adopt_in_place, plan_adoption
from hudi_core.services.adopt_plan import Adoption, Folder
from hudi_core.services.adopt_rows import AdoptedRows, rows_written
from hudi_core.services.convert import (
    Conversion,
    convert_table,
    plan_conversion,
    without_format,
)
from hudi_core.services.create import create_table
from hudi_core.services.differences import TableValidation
from hudi_core.services.opening import open_table, table_exists
from hudi_core.services.progress import Progress, no_progress
from hudi_core.services.repair import Repair, plan_repair, repair_table
from hudi_core.services.validate import validate_table
from hudi_core.storage.location import PathLike, location_of


class TableUpkeep(RowOperations):
    """What makes a table of a folder, checks one, mends it, and gives it another format."""

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
            them, and they are told by ``repeated_keys``.
        progress
            Is told of the files that are read.

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
        merged = self._options | text_options(options or {})
        if dry_run:
            return plan_conversion(self.path, merged, to, progress)
        done = convert_table(self.path, merged, to, progress)
        # the format is what the table says from now on
        self._options = GivenOptions(without_format(merged))
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
        """Turn a folder of Parquet files, or a table of another format, into a Hudi table.

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
            Is told of the files.

        Raises
        ------
        NotATableError
            The folder holds nothing, several tables, or a Hudi table already.
        UnsupportedTableError
            Files cannot stay as they are; says why. Nothing has changed.
        SchemaError, RecordKeyError, ConfigError, PluginError
            What was asked for cannot be. Nothing has changed.
        CorruptMetadataError, DataFileError
            What is there is damaged.
        """
        named = named_options(name, record_key, partition_by, ordering_field, format)
        given = text_options({**(options or {}), **named})
        folder = Folder(location_of(path), given, source, progress)
        if rewrite is not None:
            return cls._rewrite(folder, location_of(rewrite), dry_run)
        return plan_adoption(folder) if dry_run else adopt_in_place(folder)

    @classmethod
    def _rewrite(cls, folder: Folder, path: str, dry_run: bool) -> Adoption:
        rows = AdoptedRows.of(folder)
        plan = rows.document(path)
        if dry_run:
            return plan
        written = rows_written(path, folder)
        if written is not None and written != plan.rows:
            raise NotATableError(
                plan.path, f"is a table with {written} rows of its own", "Name another folder."
            )
        if written is None:
            options = folder.table_options
            if not table_exists(path, options):
                create_table(path, rows.schema, options)
            cls(open_table(path, options), options).bulk_insert(rows.read())
        return plan


def named_options(
    name: str | None,
    record_key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    ordering_field: str | Sequence[str] | None,
    table_format: str | None,
) -> dict[str, str]:
    """Return what the arguments of a new table are as options."""
    named = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": _joined(record_key),
        "hoodie.datasource.write.partitionpath.field": _joined(partition_by),
        "hoodie.table.ordering.fields": _joined(ordering_field),
        "hoodie.table.format": table_format,
    }
    return {key: value for key, value in named.items() if value is not None}


def _joined(names: str | Sequence[str] | None) -> str | None:
    if names is None or isinstance(names, str):
        return names
    return ",".join(names)
