"""What a kind of partition of the metadata table is asked for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self

import pyarrow as pa

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import AskedIndex, IndexDefinitions
from hudi_core.metadata.log.records import MetadataRecord, PartitionChange
from hudi_core.metadata.log.shards import Change, ShardedChange
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.work import Commit, Removal, Work
from hudi_core.model.difference import Difference
from hudi_core.model.files import PartitionPath
from hudi_core.model.protocols import TimelineView


class GroupCountFacts(NamedTuple):
    """What decides about the number of file groups of a new partition."""

    config: MetadataConfig
    owner: PartitionPath | None
    records: int


_ENTRY_BYTES: Final = 48
"""What Hudi expects an entry of an index of keys to take."""


def key_group_count(layout: GroupCountFacts) -> int:
    """Number of file groups that Hudi gives an index of keys.

    Of secondary indexes it goes by the options of the record index.
    """
    config = layout.config
    bounds = config.record_index_groups if layout.owner is None else config.partitioned_index_groups
    expected = layout.records * _ENTRY_BYTES * config.record_index_growth
    groups = math.ceil(expected / config.record_index_group_bytes)
    return min(max(groups, bounds[0]), bounds[1])


class KeysOfFiles(Protocol):
    """The keys of a table's files, for an index that is built."""

    @property
    def rows(self) -> Mapping[PartitionPath | None, int]:
        """About how many there are, by the owner of their file groups."""
        ...

    def change(self) -> ShardedChange:
        """The keys, as they come to an index that has none."""
        ...


def is_safe(own: str) -> bool:
    """Whether a name of users is fit for folders and files."""
    return own.replace("_", "").replace("-", "").isalnum()


class Reading(NamedTuple):
    """A table, its timeline and metadata table as a reader sees them."""

    client: TableMetaClient
    timeline: TimelineView
    path: str


@dataclass(frozen=True)
class MetadataPartition(ABC):
    """One kind of partition.

    A value, which writers, readers and tools loop over.

    A new kind needs a class with :meth:`of_commit`, :meth:`build`, :meth:`to_arrow` and what it
    says other than here, and a place in the registry.

    ``name`` is also the folder; where users name partitions of the kind, their names begin with
    ``prefix``. ``option`` is the field of the options that asks for it, ``groups`` the number of
    file groups or the field that has it. It is built after ``made_from`` and dropped with it, and
    not dropped while ``read_through`` is there. ``is_of_partitions``: only partitioned tables have
    it. ``is_key_index``: tasks report what they do to keys, and only undoing a commit takes its
    changes back. ``is_of_column``: users add it under a name of theirs.
    """

    name: str
    arrow_schema: ClassVar[pa.Schema]
    option: ClassVar[str | None] = None
    groups: ClassVar[int | str] = 1
    checks: ClassVar[frozenset[Check]] = frozenset()
    made_from: ClassVar[str | None] = None
    read_through: ClassVar[str | None] = None
    is_required: ClassVar[bool] = False
    is_of_partitions: ClassVar[bool] = False
    is_key_index: ClassVar[bool] = False
    is_of_column: ClassVar[bool] = False
    prefix: ClassVar[str] = ""

    def named(self, name: str) -> Self | None:
        """The partition of that name.

        ``None`` where it is not of this kind.
        """
        if not self.is_of_column:
            return self if name == self.name else None
        is_one = name.startswith(self.name) and name != self.name
        return replace(self, name=name) if is_one else None

    # --- which partitions a table has ----------------------------------------------------------

    def is_enabled(self, config: MetadataConfig) -> bool:
        """Whether options ask for it."""
        is_asked = self.option is not None and bool(getattr(config, self.option))
        return self.is_required or is_asked

    def with_option(
        self, config: MetadataConfig, definitions: IndexDefinitions | None
    ) -> MetadataConfig:
        """Options that ask for it in the form of the definitions.

        Not at all without them.
        """
        if self.option is None:
            return config
        changed: dict[str, Any] = {self.option: definitions is not None}
        return replace(config, **changed)

    def require_possible(self, config: MetadataConfig, table: TableConfig) -> None:  # noqa: B027 - few refuse
        """Refuse options that ask for what cannot be built."""

    def require_same_kind(self, work: Work) -> None:  # noqa: B027 - few refuse
        """Refuse options that ask for another form than the table has."""

    def rebuild_options(self, work: Work) -> MetadataConfig:
        """Options to rebuild it with.

        Those of the action where there is no need.
        """
        return work.config

    def require_maintained(self, definitions: IndexDefinitions, base_path: str) -> None:  # noqa: B027 - few refuse
        """Refuse a partition that would go stale."""

    def require_droppable(self) -> None:  # noqa: B027 - few refuse
        """Refuse to drop what the metadata table cannot be without."""

    # --- its definition ------------------------------------------------------------------------

    @property
    def has_safe_name(self) -> bool:
        """Whether its name is fit for a folder and a file name."""
        return not self.is_of_column or is_safe(self.name.removeprefix(self.prefix))

    def is_by_value(self, definitions: IndexDefinitions) -> bool:  # noqa: ARG002 - of few
        """Whether a part of a key alone decides about its shard."""
        return False

    def defined(self, work: Work, asked: AskedIndex) -> IndexDefinitions:  # noqa: ARG002 - of few
        """The definitions with that of a new partition."""
        return work.definitions

    def restored(self, work: Work) -> IndexDefinitions:
        """Index definitions as its files show them, where its own is lost."""
        return work.definitions

    def is_defined(self, work: Work) -> bool:
        """Whether enough is known of it to rebuild it."""
        if not self.is_of_column:
            return True
        columns = work.definitions.columns(self.name)
        return len(columns) == 1 and work.client.schema.field(columns[0]) is not None

    # --- its records and file groups -----------------------------------------------------------

    @abstractmethod
    def of_commit(self, commit: Commit) -> Change:
        """What a write changes in it."""

    def of_removal(self, removal: Removal) -> PartitionChange:  # noqa: ARG002 - of files only
        """What deleted files change in it."""
        return PartitionChange()

    @abstractmethod
    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        """Its records as the table's files have it, each key once."""

    def group_count(self, layout: GroupCountFacts) -> int:
        """Number of file groups that it is built with."""
        if isinstance(self.groups, int):
            return self.groups
        count: int = getattr(layout.config, self.groups)
        return count

    def keys(self, table: ListedTable) -> KeysOfFiles | None:  # noqa: ARG002 - of indexes of keys
        """The keys that it is built of, if it is of keys.

        ``None`` where :meth:`build` has its records.
        """
        return None

    def note_repeated(self, table: ListedTable, folder: str) -> None:  # noqa: B027 - few have readers
        """Note beside it whether keys are repeated, where its readers must know.

        Tasks leave files in a folder.
        """

    # --- for people and tools ------------------------------------------------------------------

    def to_arrow(self, records: Sequence[MetadataRecord], reading: Reading) -> pa.Table:
        """Records as an Arrow table of :attr:`arrow_schema`."""
        names = self.arrow_schema.names
        rows = chain.from_iterable(self.rows(record, reading) for record in records)
        dictionaries = [dict(zip(names, row, strict=True)) for row in rows]
        return pa.Table.from_pylist(dictionaries, schema=self.arrow_schema)

    def rows(self, record: MetadataRecord, reading: Reading) -> Iterable[tuple[Any, ...]]:  # noqa: ARG002
        """The rows of a record in that table."""
        return ()

    def compare(self, comparison: RecordComparison) -> Iterator[Difference]:
        """Yield differences from the table's files, and note what was compared."""
        listed, expected = self.listed(comparison), self.expected(comparison)
        comparison.checked[self.name] = len(listed)
        going = {one.key for one in self.of_removal(comparison.being_cleaned).records}
        for key in dict.fromkeys((*expected, *listed)):
            found, right = listed.get(key), expected.get(key)
            if right is None and found is not None and found.key in going:
                continue  # a clean that was cut short has deleted the file; the next one goes on
            record = right or found
            if record is not None and self.misleads(found, right, comparison):
                subject = self.subject(record)
                yield Difference(self.name, subject, self._stated(right), self._stated(found))

    def _stated(self, record: MetadataRecord | None) -> str | None:
        return None if record is None else self.describe(record)

    def listed(self, comparison: RecordComparison) -> Mapping[Hashable, MetadataRecord]:
        """Its records by their identity."""
        return {one.key: one for one in comparison.snapshot.scan(self.name)}

    def expected(self, comparison: RecordComparison) -> Mapping[Hashable, MetadataRecord]:
        """The records that it should have by their identity."""
        return {one.key: one for one in self.right(comparison)}

    def right(self, comparison: RecordComparison) -> Iterable[MetadataRecord]:
        """The records that it should have; made if not yet known."""
        made = comparison.made.get(self.name)
        return self.build(comparison.table) if made is None else made

    def misleads(
        self,
        listed: MetadataRecord | None,
        expected: MetadataRecord | None,
        comparison: RecordComparison,  # noqa: ARG002 - of ranges
    ) -> bool:
        """Whether a missing, wrong or surplus record misleads readers."""
        return listed is None or expected is None or self.fact(listed) != self.fact(expected)

    def fact(self, record: MetadataRecord) -> object:
        """What readers rely on of a record."""
        return record.payload

    def subject(self, record: MetadataRecord) -> str:
        """What a record says something of: a file, a column, a key."""
        return f"key {record.key!r}"

    def describe(self, record: MetadataRecord) -> str:
        """What a record says."""
        return f"a record of type {int(record.type)}"
