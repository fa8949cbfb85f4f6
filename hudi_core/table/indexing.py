"""Indexes of columns, and of functions of columns, which users name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hudi_core.metadata.partitions.asked import asked_partition
from hudi_core.metadata.partitions.names import full_name
from hudi_core.model.instant import Instant
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.table.serving import TableServing
from hudi_core.txn.table_lock import table_lock


class TableIndexing(TableServing):
    """A table whose indexes are added and dropped."""

    def create_index(
        self,
        name: str,
        column: str | Sequence[str],
        *,
        using: str | None = None,
        options: Mapping[str, str] | None = None,
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

        Returns
        -------
        Instant
            The completed indexing.

        Raises
        ------
        TableServiceError
            The table has no such column, has such an index, or the function is not supported.
        """
        given = dict(options or {})
        columns = [column] if isinstance(column, str) else list(column)
        keys = self.config.record_key_fields
        asked = asked_partition(name, columns, using, keys, has_options=bool(given))
        return self._changed_by(lambda operator: operator.index(*asked, given))

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
        stored = self._opened.client.as_stored().config.metadata_partitions
        names = (name, full_name(name, is_of_function=True), full_name(name, is_of_function=False))
        found = next((one for one in names if one in stored), name)
        return self._changed_by(lambda operator: operator.drop(found, cascades=cascades))

    def _changed_by(self, change: Callable[[MetadataOperator], Instant]) -> Instant:
        opened, config = self._for_service(None)
        done = change(MetadataOperator(opened, table_lock(opened, config), config))
        self._opened = open_table(self._open_path, self._options)
        return done
