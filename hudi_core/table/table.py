"""One table: opened, read, written, served, and brought into another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from hudi_core.config.resolve import given_options, options_as_strings
from hudi_core.errors import HudiError
from hudi_core.services.adopt import adopt_in_place, plan_adoption
from hudi_core.services.adopt_plan import Adoption, Folder
from hudi_core.services.adopt_rows import AdoptedRows
from hudi_core.services.create import create_table
from hudi_core.services.design import SchemaLike, as_arrow_schema, named_options
from hudi_core.services.opening import open_table
from hudi_core.services.progress import Progress, no_progress
from hudi_core.storage.location import PathLike, location_of
from hudi_core.table.arguments import Options
from hudi_core.table.whole import WholeTable


class Table(WholeTable):
    """One open table.

    Made by :meth:`create` or :meth:`open`. It sees what others commit at its next call, not in the
    middle of one.

    Every operation on rows takes rows (a Spark DataFrame, anything Arrow can read, or dictionaries
    in a list or another iterable), options for this call alone, and the engine to run on. Further
    arguments of each:

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

    def __copy__(self) -> Table:
        return Table.open(self._open_path, self._options)

    def __deepcopy__(self, _: object) -> Table:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise HudiError(
            f"The table {self.path} is open in this process and cannot be pickled",
            "Open it by its path where it is needed.",
            path=self.path,
        )

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
        given = options_as_strings({**given_options(options), **named})
        folder = Folder(location_of(path), given, source, progress)
        if rewrite is None:
            return plan_adoption(folder) if dry_run else adopt_in_place(folder)
        rows, target = AdoptedRows.of(folder), location_of(rewrite)
        if dry_run:
            return rows.document(target)
        return rows.write(
            target, lambda new: cls(new, folder.table_options).bulk_insert(rows.read())
        )
