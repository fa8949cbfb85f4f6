"""A table's state while its lock is held, read once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.state import MetadataState
from hudi_core.model.client import HeldMetadata
from hudi_core.model.files import FileStatus, PartitionPath
from hudi_core.model.instant import Instant
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline

ListedFiles = Mapping[PartitionPath, Sequence[FileStatus]]
"""Files by partition."""


@dataclass(frozen=True)
class TableState:
    """Properties and timelines of a table under its lock.

    Loaded when the lock is taken, and replaced by each step that changes the table; it must not
    outlive the hold, as others may change everything after that.

    ``definitions`` are its indexes, where they have been loaded. ``earlier`` is its metadata table
    as it was known before, for what has not changed since; ``files`` are all that some partitions
    hold of committed writes, where that is known without a listing.
    """

    table: OpenTable
    definitions: IndexDefinitions | None = None
    earlier: MetadataState | None = None
    files: ListedFiles | None = None

    @classmethod
    def load(
        cls,
        table: OpenTable,
        timeline: Timeline | None = None,
        held: HeldMetadata | None = None,
    ) -> TableState:
        """The state of a table whose lock was just taken.

        Costs one read of its properties and one listing of its timeline. What is loaded of its
        metadata table counts no more but for its properties, where the table's are the same.

        ``timeline`` must have been loaded under this hold of the lock. ``held`` keeps what the
        format reads; by default each step reads it again.
        """
        now = table.holding(held).as_stored()
        if timeline is None:
            timeline = now.client.active.load()
        return cls(now).with_timeline(timeline).without_listing()

    @property
    def client(self) -> TableMetaClient:
        """The table's client."""
        return self.table.client

    @property
    def timeline(self) -> Timeline:
        """The Hudi timeline, without any fence."""
        return self.client.timeline()

    @cached_property
    def metadata(self) -> MetadataState | None:
        """The metadata table's state, read on demand; ``None`` without one."""
        return MetadataState.load(self.client, self.definitions, self.earlier)

    @property
    def known_metadata(self) -> MetadataState | None:
        """The metadata table's state as far as it is loaded."""
        loaded: MetadataState | None = self.__dict__.get("metadata", self.earlier)
        return loaded

    def knowing(self, earlier: MetadataState | None, files: ListedFiles | None) -> TableState:
        """This state with known facts of metadata table and files."""
        return replace(self, earlier=earlier, files=files)

    # --- what a change leads to ------------------------------------------------------------------

    def with_metadata(self, tables: MetadataState) -> TableState:
        """The state once the metadata table has changed."""
        state = self.with_client(tables.client, tables.definitions)
        return replace(state, earlier=tables)

    def with_client(
        self, client: TableMetaClient, definitions: IndexDefinitions | None = None
    ) -> TableState:
        """The state with another client and its indexes, if known."""
        table = replace(self.table, client=client)
        return replace(self, table=table, definitions=definitions, earlier=None)

    def without_files(self, gone: Mapping[PartitionPath, Collection[str]]) -> TableState:
        """The state after files were deleted, by their names."""
        files = {
            path: tuple(one for one in some if one.name not in gone.get(path, ()))
            for path, some in (self.files or {}).items()
        }
        return self if self.files is None else replace(self, files=files)

    def with_properties(self, properties: Mapping[str, str]) -> TableState:
        """The state once its holder has changed properties; the metadata table stays."""
        loaded = self.__dict__.get("metadata")
        if loaded is not None:
            return self.with_metadata(loaded.with_properties(properties))
        client = self.client.with_properties(properties)
        if self.client.metadata is not None:
            client = client.over(self.client.metadata)
        return self.with_client(client, self.definitions)

    def with_timeline(self, timeline: Timeline) -> TableState:
        """The state with another timeline of the table; the metadata table stays."""
        loaded = self.__dict__.get("metadata")
        state = self if loaded is None else self.with_metadata(loaded)
        return replace(state, table=state.table.seeing(timeline))

    def with_instant(self, instant: Instant) -> TableState:
        """The state after a file of an instant was put.

        On the table's timeline.
        """
        return self.with_timeline(self.timeline.with_instant(instant))

    def without(self, instant: Instant) -> TableState:
        """The state after an instant's files were deleted.

        From the table's timeline.
        """
        return self.with_timeline(self.timeline.without(instant))

    def reloaded(self, held: HeldMetadata | None = None) -> TableState:
        """The state with timelines listed again.

        After steps that do not return what they did; one listing, and another one where the
        metadata table is needed.

        ``held`` is what the format has read before the listing; by default it reads all again.
        """
        timeline = self.client.active.load()
        if held is None and self.client.held is not None:
            held = HeldMetadata()
        return TableState(self.table.holding(held)).with_timeline(timeline).without_listing()

    def without_listing(self) -> TableState:
        """The state without a loaded metadata timeline."""
        metadata = self.client.metadata
        if metadata is None or metadata.seen is None:
            return self
        return self.with_client(self.client.over(replace(metadata, seen=None)))
