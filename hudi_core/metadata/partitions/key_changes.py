"""Changes of record keys by a write, for partitions that index them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hudi_core.metadata.changes import PartitionChange
from hudi_core.metadata.key_records import FileReplacement, location_change, secondary_change
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.partitions.work import Commit
from hudi_core.metadata.tracked_keys import TrackedKeys
from hudi_core.metadata.value_index import has_repeated_keys, with_repeated_keys


@dataclass(eq=False)
class KeyChanges:
    """The changes of one write.

    As its tasks report them, else from the files.

    Attributes
    ----------
    commit
        The write.
    """

    commit: Commit

    @cached_property
    def _tracked(self) -> TrackedKeys | None:
        """Key changes spilled by the write's tasks; ``None`` if incomplete."""
        commit, statuses = self.commit, [status for status, _ in self.commit.new]
        replaced = []
        if commit.replaced:
            replaced = [file for file in commit.before if file.group in commit.replaced]
        return TrackedKeys.read(commit.client, commit.time, statuses, replaced)

    @cached_property
    def _replacement(self) -> FileReplacement:
        commit = self.commit
        old = [file for file in commit.before if file.group in commit.groups]
        return FileReplacement(tuple(old), tuple(file for _, file in commit.new))

    @cached_property
    def locations(self) -> PartitionChange:
        """Changes of the record index."""
        is_partitioned = self.commit.definitions.is_partitioned(RECORD_INDEX)
        if self._tracked is not None:
            if not is_partitioned:
                return self._tracked.locations()
            by_partition = self._tracked.by_partition().items()
            return PartitionChange(owned={path: own.locations() for path, own in by_partition})
        client, time = self.commit.client, self.commit.time
        if not is_partitioned:
            return location_change(client, self._replacement, time)
        replaced = self._replacement.by_partition().items()
        return PartitionChange(
            owned={path: location_change(client, own, time) for path, own in replaced}
        )

    def values(self, column: str) -> PartitionChange:
        """Changes of the secondary index of a column.

        Raises
        ------
        UnsupportedTableError
            The column is of a type that no index is kept of.
        """
        if self._tracked is not None and self._tracked.has(column):
            return self._tracked.values(column)
        return secondary_change(self.commit.client, self._replacement, column)

    def note_repeated(self) -> None:
        """Note it where several file groups come to hold one key.

        Readers of secondary indexes must know. Where nobody kept account of the keys, they may.
        """
        commit = self.commit
        if RECORD_INDEX not in commit.stored.all or has_repeated_keys(commit.definitions):
            return
        if not self.locations.new:
            return
        if self._tracked is None or self._tracked.repeats(commit.snapshot, self.locations):
            commit.definitions = with_repeated_keys(commit.definitions)
