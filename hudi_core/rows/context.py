"""Facts for every task of a write, frozen and sent to executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hudi_core.config.kinds import TableType
from hudi_core.config.merge_rules import MergeRules, merge_rules
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.keygen import KeyGenerator, key_ambiguity, key_generator
from hudi_core.keygen.ambiguity import KeyAmbiguity
from hudi_core.model.files import BasePath, PartitionPath, join_path
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import Operation
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import DataFiles, FetchedFiles
from hudi_core.storage.options import StorageOptions


@dataclass(frozen=True, slots=True)
class KeyTracking:
    """Keys that tasks spill for the table's key indexes."""

    columns: tuple[str, ...]
    in_memory: bool


class Attempts(Protocol):
    """Attempts at tasks that run in the process that commits."""

    def mark(self, path: str, marker: str) -> None:
        """Note a file whose marker is about to be put."""
        ...

    def is_open(self, ask_store: Callable[[], bool]) -> bool:
        """Whether files of the write may still count.

        Asks the store only in doubt.
        """
        ...

    def flush(self, file: str) -> None:
        """Have a complete local file flushed, which the commit waits for."""
        ...


@dataclass(frozen=True)
class WriteContext:
    """The write that a task belongs to.

    ``schema`` is that which the write leaves; ``instant`` a requested time. ``tracked`` is ``None``
    where no index asks for keys. ``attempts`` and ``fetched`` (data files handed between tasks) are
    set only where all tasks run in one process. ``assigns``: incoming rows replace stored ones
    whatever their order is, as in SQL, and keep the stored keys. Rows that update keep the stored
    values of all columns but ``assigned``, or, where that is ``None``, but those that are staged.
    ``preview`` is a folder below the table for all files of a write that does not commit; ``None``
    for one that does.

    ``knows_partitions``: the incoming rows have the columns of their partition.
    """

    base_path: BasePath
    storage_options: StorageOptions
    table: TableConfig
    schema: TableSchema
    write: WriteConfig
    instant: InstantTime
    tracked: KeyTracking | None = None
    knows_partitions: bool = True
    attempts: Attempts | None = None
    fetched: FetchedFiles | None = None
    preview: str | None = None
    assigns: bool = False
    assigned: frozenset[str] | None = None

    def data_path(self, partition_path: PartitionPath, file_name: str) -> str:
        """The path of a new data file, relative to the table."""
        return join_path(self.preview or "", join_path(partition_path, file_name))

    @cached_property
    def files(self) -> DataFiles:
        """The table's data files."""
        return DataFiles.of(self.base_path, self.storage_options, self.table)

    def key_generator(self, schema: TableSchema) -> KeyGenerator:
        """The key generator of incoming rows with these columns."""
        return key_generator(self.table, schema, knows_partitions=self.knows_partitions)

    @cached_property
    def key_ambiguity(self) -> KeyAmbiguity | None:
        """Which record keys several rows could have; ``None`` for none."""
        return key_ambiguity(self.table, self.schema)

    @property
    def is_global(self) -> bool:
        """Whether the index makes keys unique in the whole table."""
        return self.table.buckets is None and self.write.index.index_type.is_global

    @property
    def appends(self) -> bool:
        """Whether stored rows are changed in log files."""
        return self.table.table_type is TableType.MERGE_ON_READ

    @property
    def uses_record_index(self) -> bool:
        """Whether keys are looked up in the metadata table."""
        return self.table.buckets is None and self.write.index.index_type.is_record_index

    @property
    def moves(self) -> bool:
        """Whether a row whose key is stored in another partition moves."""
        return self.is_global and self.write.index.moves_partition

    @cached_property
    def rules(self) -> MergeRules:
        """How versions of a row are merged."""
        rules = merge_rules(self.table)
        # what marks deletes does so in every write
        return MergeRules(markers=rules.markers) if self.assigns else rules

    def combines(self, operation: Operation) -> bool:
        """Whether incoming rows that have one key are combined."""
        return self.write.combines(operation)

    def merges(self, operation: Operation) -> bool:
        """Whether an operation decides between versions of a row by their values."""
        merges = self.write.updates(operation) or self.write.combines(operation)
        return merges and not operation.deletes
