"""Changes of a table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_core.config.resolve import options_as_strings
from hudi_core.config.write import WriteConfig
from hudi_core.model.result import CommitResult
from hudi_core.services.alter import alter_table, schema_change
from hudi_core.services.design import SchemaLike
from hudi_core.services.opening import open_table
from hudi_core.sync.after_commit import require_syncable
from hudi_core.table.arguments import Options
from hudi_core.table.staging import TableStaging
from hudi_core.txn.table_lock import table_lock


class TableAltering(TableStaging):
    """A table whose columns are changed."""

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
        merged = self._options | options_as_strings(options)
        opened = open_table(self._open_path, merged)
        config = WriteConfig.from_options(merged)
        config = replace(config, extras=config.extras.given(extra_metadata, None))
        require_syncable(opened, merged)
        change = schema_change(add_columns, rename, drop, promote)
        result = alter_table(opened, table_lock(opened, config), config, change)
        self._opened = open_table(self._open_path, merged)
        return self._synced(result)
