"""What every task of one write knows; a frozen value that crosses to executors."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.config.table import MergeMode, TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.model.files import BasePath
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.schema import TableSchema
from hudi_core.storage.options import StorageOptions


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The write that a task belongs to.

    Attributes
    ----------
    base_path, storage_options
        Where the table is and how to reach it.
    table, schema, write
        The table's stored properties, its schema as this write leaves it, and the write's options.
    instant
        Requested time of the write.
    """

    base_path: BasePath
    storage_options: StorageOptions
    table: TableConfig
    schema: TableSchema
    write: WriteConfig
    instant: InstantTime

    @property
    def is_global(self) -> bool:
        """Whether the index makes keys unique in the whole table."""
        return self.table.buckets is None and self.write.index_type.is_global

    @property
    def moves(self) -> bool:
        """Whether a row whose key is stored in another partition moves to its own."""
        return self.is_global and self.write.moves_partition

    @property
    def event_time_field(self) -> str | None:
        """The ordering column that decides merges; ``None`` for commit-time ordering."""
        if self.table.merge_mode is MergeMode.EVENT_TIME_ORDERING:
            return self.table.ordering_field
        return None
