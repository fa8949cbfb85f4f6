"""State of a table and its metadata table under the lock.

Both are read once per hold. A step that changes one of them hands on the state that this leads to,
so that no timeline is listed to learn what was just put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hudi_core.errors import UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import (
    IndexDefinitions,
    put_definitions,
    read_definitions,
)
from hudi_core.metadata.log.groups import Groups
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class KnownGroups:
    """File groups of the metadata table while its timeline is unchanged.

    Which there are is decided when a partition is built; compactions, of which some partition may
    have been built again, end it as well.

    ``instants`` are the timeline; of the groups, their files are left out.
    """

    instants: tuple[Instant, ...] = ()
    by_partition: Mapping[str, Groups] = field(default_factory=dict)

    def at(self, timeline: Timeline) -> Mapping[str, Groups]:
        """Those that are right at a timeline."""
        return self.by_partition if self.instants == timeline.instants else {}


@dataclass(frozen=True, slots=True)
class MetadataState:
    """The two tables. The metadata table has no lock of its own.

    ``groups`` are file groups that were listed; see :class:`KnownGroups`.
    """

    client: TableMetaClient
    definitions: IndexDefinitions
    groups: KnownGroups = KnownGroups()

    @classmethod
    def load(
        cls,
        client: TableMetaClient,
        definitions: IndexDefinitions | None = None,
        earlier: MetadataState | None = None,
    ) -> MetadataState | None:
        """The state of a table and its metadata table, or ``None``.

        Costs the metadata table's properties, its timeline and the definitions, as far as they are
        not loaded. Where properties of the table and timeline of the metadata table are those of an
        ``earlier`` state, the rest is its; nobody may have begun to change the table since.
        """
        partitions = StoredPartitions.of(client.config)
        if not partitions.is_there:
            return None
        timeline, listed = client.timeline(), None
        if earlier is not None and earlier.client.config.raw == client.config.raw:
            metadata = client.metadata or earlier.metadata.in_call_of(client)
            listed = metadata.timeline()
            if (listed.instants, listed.unknown) == (
                earlier.timeline.instants,
                earlier.timeline.unknown,
            ):
                known = definitions or earlier.definitions
                both = client.seeing(timeline).over(metadata.seeing(listed))
                return cls(both, known, earlier.groups)
        if definitions is None:
            definitions = read_definitions(client.storage, client.config)
        require_maintained(partitions, definitions, client.base_path)
        metadata = metadata_client(client)
        metadata = metadata.seeing(metadata.timeline() if listed is None else listed)
        return cls(client.seeing(timeline).over(metadata), definitions)

    @property
    def at_rest(self) -> MetadataState:
        """The state without what belongs to one call."""
        return replace(self, client=self.client.at_rest.over(self.metadata.at_rest))

    @property
    def metadata(self) -> TableMetaClient:
        """The metadata table."""
        return metadata_client(self.client)

    @property
    def timeline(self) -> Timeline:
        """The metadata table's timeline."""
        return self.metadata.timeline()

    @property
    def data_timeline(self) -> Timeline:
        """The table's timeline."""
        return self.client.timeline()

    @property
    def partitions(self) -> StoredPartitions:
        """The partitions of the metadata table."""
        return StoredPartitions.of(self.client.config)

    def next_time(self) -> InstantTime:
        """A time greater than any on either timeline.

        Both take their times from one clock: most instants of the metadata table have the time of
        an instant of the table, and the others must not look like one.
        """
        return self.client.clock.next_time(self.data_timeline, self.timeline)

    # --- what a change leads to ------------------------------------------------------------------

    def with_instant(self, instant: Instant) -> MetadataState:
        """The state after a file of an instant was put.

        On the metadata table's timeline.
        """
        return self.with_timeline(self.timeline.with_instant(instant))

    def with_timeline(self, timeline: Timeline) -> MetadataState:
        """The state with another timeline of the metadata table."""
        return replace(self, client=self.client.over(self.metadata.seeing(timeline)))

    def with_data_timeline(self, timeline: Timeline) -> MetadataState:
        """The state with another timeline of the table."""
        return replace(self, client=self.client.seeing(timeline))

    def with_definitions(self, definitions: IndexDefinitions) -> MetadataState:
        """The state with definitions of indexes; new ones are put."""
        if definitions == self.definitions:
            return self
        put_definitions(self.client.storage, definitions)
        return replace(self, definitions=definitions)

    def with_properties(self, properties: Mapping[str, str]) -> MetadataState:
        """The state once its holder has changed properties of the table."""
        client = self.client.with_properties(properties)
        return replace(self, client=client.over(self.metadata))

    def reloaded(self) -> MetadataState:
        """The state with its timeline listed again; one listing."""
        return self.with_timeline(self.metadata.active.load())


def require_maintained(
    partitions: StoredPartitions, definitions: IndexDefinitions, base_path: str
) -> None:
    """Refuse to write to a table with an unmaintained metadata partition.

    One that would go stale.
    """
    for name in partitions.all:
        found = partition_of(name)
        if found is None:
            raise UnsupportedTableError(
                base_path,
                f"has the index {name}, which would go stale",
                "Drop that index with Apache Hudi, or write with Apache Hudi.",
            )
        found.require_maintained(definitions, base_path)
