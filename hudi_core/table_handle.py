"""An open table: client, format, and what they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from hudi_core.engine.base import Engine, EngineMap
from hudi_core.errors import LostCompletionError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.capability import Capability
from hudi_core.model.client import HeldMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.instant import Action, Instant
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.plugin.fenced import look_at_unpublished, pending_publications
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.storage.location import parse_location, require_shared
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import ViewManager


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One open table.

    Attributes
    ----------
    client
        Where it is, what its properties say, and its Hudi timeline.
    host
        Its format and the observers.
    """

    client: TableMetaClient
    host: FormatHost

    def each(self) -> tuple[OpenTable, ...]:
        """This table as one of each of its formats."""
        if len(self.host.parts) == 1:
            return (self,)
        return tuple(
            OpenTable(
                self.client.as_format(replace(self.client.config, table_format=part.name), None),
                part,
            )
            for part in self.host.parts
        )

    def timeline(self) -> TimelineView:
        """The present timeline as the format sees it, for readers and planners.

        Raises
        ------
        LostCompletionError
            The format holds an instant that the Hudi timeline has as pending: its completed file is
            lost, and rows of a commit that other readers see would be missing.
        UnpublishedCommitsError
            An engine that does not know the format has cleaned files that it names.
        """
        seen = self.fenced()
        for pending in self.lost_completions(seen):
            raise self.lost(pending, f"the {self.host.name} format holds it")
        unpublished = pending_publications(seen)
        if unpublished:
            look_at_unpublished(self.client, self.each_lister, self.host.name, seen, unpublished)
        return seen

    def each_lister(self) -> Iterator[FileIndex]:
        """Yield who lists the files of each of the table's formats."""
        for one in self.each():
            yield one.lister()

    def leftovers(self) -> tuple[str, ...]:
        """Files of its formats' metadata that no state names any more."""
        return tuple(path for lister in self.each_lister() for path in lister.leftovers())

    def fenced(self) -> TimelineView:
        """The timeline of :meth:`timeline`, whether completed files are lost or not."""
        return self.host.get_timeline_factory().active_timeline(self.client)

    def lost_completions(self, seen: TimelineView) -> Iterator[Instant]:
        """The pending instants of a fenced timeline that the format holds.

        But savepoints: those are being deleted, from the timeline first.
        """
        if isinstance(seen, Timeline) and seen.ahead:
            # what completed between the looks at timeline and format is not lost
            now = self.client.active.load()
            ahead = (one for one in seen.ahead if one.action is not Action.SAVEPOINT)
            for instant in ahead:
                found = now.find(instant.requested_time, instant.action)
                if found is not None and not found.is_completed:
                    yield found

    def lost(self, pending: Instant, evidence: str) -> LostCompletionError:
        """The error that names a commit whose completed file is lost.

        Parameters
        ----------
        evidence
            What shows that it was complete.
        """
        action, time = pending.action.completed_action.value, pending.requested_time
        folder = self.client.active.folder
        return LostCompletionError(self.client.base_path, folder, action, time, evidence)

    def seeing(self, timeline: Timeline) -> OpenTable:
        """Return this table with a timeline loaded under the lock.

        Neither its client nor its format lists it again.
        """
        return replace(self, client=self.client.seeing(timeline))

    def holding(self, held: HeldMetadata | None) -> OpenTable:
        """This table with what its format has read under the lock."""
        return replace(self, client=self.client.holding(held))

    def as_stored(self) -> OpenTable:
        """This table with its present properties and format; one read.

        Raises
        ------
        NotATableError
            It was dropped.
        OptionConflictError, InvalidOptionError
            An option contradicts what it has become.
        UnknownTableFormatError, PluginError
            Its format has changed, and the new one cannot be used.
        """
        client = self.client.as_stored()
        name = client.config.table_format
        if name == self.client.config.table_format:
            return replace(self, client=client)
        host = FormatHost.load(FormatRegistry(), name)
        host.check_options(client.options)
        return OpenTable(client, host).fitted()

    def fitted(self) -> OpenTable:
        """This table with its format's restrictions in the configuration."""
        takes_empty = Capability.EMPTY_PARTITION_VALUES in self.host.capabilities
        config = replace(self.client.config, takes_empty_partitions=takes_empty)
        return replace(self, client=replace(self.client, config=config))

    @property
    def format_storage(self) -> Storage:
        """Storage of the format's metadata: table folder, or storage path."""
        if Capability.SHARED_STORAGE_PATH in self.host.capabilities:
            return self.client.storage
        return self.client.root

    @property
    def afresh(self) -> OpenTable:
        """This table with nothing loaded; see :attr:`TableMetaClient.afresh`."""
        return replace(self, client=self.client.afresh)

    def on(self, engine: Engine) -> OpenTable:
        """This table with an engine that works on its files."""
        client = self.client
        is_local = parse_location(client.base_path).is_local
        check = partial(require_shared, client.base_path)
        engine_map = EngineMap(engine, client.run_map, is_local, check)
        return replace(self, client=client.mapping_files(engine_map))

    def lister(self) -> FileIndex:
        """Return the lister of the table's files."""
        return self.host.get_metadata_factory().create(self.client)

    def views(self) -> ViewManager:
        """Factory of views of the table's files."""
        return ViewManager(self.client.read_commit, self.lister(), self.timeline)
