"""The facade: a table to create, open, write and read, named and typed.

Rows are a Spark DataFrame, which is written by Spark, or anything Arrow can read, which is written
in this process. People who bring Hudi's options come in by :mod:`hudi_core.doors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_core.config.resolve import text_options
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.metadata.as_arrow import metadata_partition
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.read.query_times import QueryTime, requested_time
from hudi_core.row_operations import Options
from hudi_core.row_queries import RowQueries
from hudi_core.services.alter import alter_table, schema_change
from hudi_core.services.create import create_table
from hudi_core.services.design import SchemaLike, as_arrow_schema
from hudi_core.services.opening import open_table
from hudi_core.services.rollback import roll_back_instant
from hudi_core.storage.location import PathLike, location_of
from hudi_core.table_upkeep import TableUpkeep, named_options
from hudi_core.txn.table_lock import table_lock


class Table(RowQueries, TableUpkeep):
    """One open table.

    Made by :meth:`create` or :meth:`open`. It sees what others commit at its next call, not in the
    middle of one.
    """

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
        merged = text_options({**(options or {}), **named})
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
        given = text_options(options or {})
        return cls(open_table(location_of(path), given), given)

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
        merged = self._options | text_options(options or {})
        opened = open_table(self.path, merged)
        config = WriteConfig.from_options(merged)
        config = replace(config, extras=config.extras.given(extra_metadata, None))
        change = schema_change(add_columns, rename, drop, promote)
        result = alter_table(opened, table_lock(opened, config), config, change)
        self._opened = open_table(self.path, merged)
        return result

    def rollback(self, instant: QueryTime) -> Instant:
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
