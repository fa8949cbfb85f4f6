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
class KeyTracking:
    """What tasks leave of the keys they write, for the indexes of keys that the table has.

    Attributes
    ----------
    columns
        Columns that secondary indexes are of.
    in_memory
        Whether they hand on what they leave in memory.
    """

    columns: tuple[str, ...]
    in_memory: bool


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
    tracked
        What tasks leave of the keys they write; ``None`` where no index asks for it.
    """

    base_path: BasePath
    storage_options: StorageOptions
    table: TableConfig
    schema: TableSchema
    write: WriteConfig
    instant: InstantTime
    tracked: KeyTracking | None = None

    @property
    def is_global(self) -> bool:
        """Whether the index makes keys unique in the whole table."""
        return self.table.buckets is None and self.write.index_type.is_global

    @property
    def asks_record_index(self) -> bool:
        """Whether the metadata table is asked where keys are."""
        return self.table.buckets is None and self.write.index_type.is_record_index

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
