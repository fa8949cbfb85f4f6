"""One Hudi table: location, properties, timeline and schema.

The first argument of every hook. A value: it is made when a table is opened, reads on demand, and
remembers nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeVar

from hudi_core.config.resolve import resolve_again
from hudi_core.config.storage import StoreKeys
from hudi_core.config.stored_table import stored_config
from hudi_core.config.support import require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.engine.base import REQUESTS_AT_A_TIME, thread_pool
from hudi_core.errors import SchemaError
from hudi_core.model.client import FileMap, HeldMetadata, RunMap
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime, parse_query_time
from hudi_core.model.metering import NO_METER, Meter
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import DataFiles
from hudi_core.storage.location import parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.properties_file import PROPERTIES_PATH, read_properties
from hudi_core.timeline.active import LAYOUT_1, ActiveTimeline
from hudi_core.timeline.archived import ArchivedInstant, ArchivedTimeline
from hudi_core.timeline.clock import TimelineClock, require_same_zone
from hudi_core.timeline.serde import decode_commit, decode_replace_commit
from hudi_core.timeline.timeline import Timeline

Item = TypeVar("Item")
Answer = TypeVar("Answer")

META_FOLDER: Final = ".hoodie"


def run_serially(function: Callable[[Item], Answer], items: Sequence[Item], /) -> Iterable[Answer]:
    """Call ``function`` on one item after the other."""
    return [function(item) for item in items]


def run_in_threads(
    function: Callable[[Item], Answer], items: Sequence[Item], /
) -> Iterable[Answer]:
    """Map a function in threads, for work that waits for storage."""
    if len(items) < 2:
        return run_serially(function, items)
    with thread_pool(min(len(items), REQUESTS_AT_A_TIME)) as pool:
        return list(pool.map(function, items))


@dataclass(frozen=True)
class TableMetaClient:
    """One open table.

    Attributes
    ----------
    base_path
        Absolute path or URI of the table, without a trailing slash.
    storage
        Metadata files below the base path.
    config
        The table's properties as they were when it was opened.
    storage_options
        How to reach the store, for every client of it; a value that executors may get.
    run_map
        The way to share out work on small files.
    options
        Hudi options of this session.
    seen
        The timeline that :meth:`timeline` returns; by default it is read each time. See
        :meth:`seeing`.
    metadata
        The metadata table, where it was opened already, with the timeline that goes with ``seen``.
    held
        What the table's format has read of its metadata, while a write holds the table's lock.
    meter
        Takes down what is measured of the metadata table.
    engine_map
        The engine's way to share out work on all files of the table; see :attr:`map_files`.
    """

    base_path: BasePath
    storage: Storage
    config: TableConfig
    storage_options: StorageOptions
    run_map: RunMap = run_serially
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    seen: Timeline | None = field(default=None, repr=False)
    metadata: TableMetaClient | None = field(default=None, repr=False)
    held: HeldMetadata | None = field(default=None, repr=False, compare=False)
    meter: Meter = field(default=NO_METER, repr=False)
    engine_map: FileMap | None = field(default=None, repr=False, compare=False)

    @property
    def map_files(self) -> RunMap:
        """The map over all folders or data files of the table.

        Its functions are values, for they may go to executors; they get :attr:`for_tasks`.
        """
        return self.engine_map or self.run_map

    @property
    def map_requests(self) -> RunMap:
        """The same for functions that wait; see :class:`~hudi_core.model.client.FileMap`."""
        return self.run_map if self.engine_map is None else self.engine_map.requests

    @property
    def map_heavy(self) -> RunMap:
        """The same map, over items that are worth a task each."""
        found = self.map_files
        return found.heavy if isinstance(found, FileMap) else found

    @property
    def for_tasks(self) -> TableMetaClient:
        """This client as executors may get it, with nothing loaded."""
        return replace(
            self,
            run_map=run_serially,
            seen=None,
            metadata=None,
            held=None,
            meter=NO_METER,
            engine_map=None,
        )

    @cached_property
    def files(self) -> DataFiles:
        """The table's data files, to open or name them."""
        return DataFiles.of(self.base_path, self.storage_options, self.config)

    @cached_property
    def data(self) -> Storage:
        """Data files under their logical paths.

        For listing, sizing and deleting them; :attr:`storage` is for everything else.
        It is the same one where data files lie in the table's folder.
        """
        return self.files.over(self.storage, fsync=StoreKeys.fsync.read(self.options))

    @cached_property
    def root(self) -> Storage:
        """The storage of the table's folder, or of its first storage path."""
        if self.files.is_plain:
            return self.storage
        fsync = StoreKeys.fsync.read(self.options)
        return open_storage(self.files.root, self.storage_options, fsync=fsync)

    @cached_property
    def scratch(self) -> Storage:
        """The same storage without flushes, for files that need no durability.

        Files that mean nothing after a power failure.
        """
        if not parse_location(self.base_path).is_local:
            return self.storage  # what an object store has taken it keeps
        return open_storage(self.base_path, self.storage_options, fsync=False)

    @cached_property
    def active(self) -> ActiveTimeline:
        """The instant files."""
        layout = self.config.layout_version
        below = "" if layout == LAYOUT_1 else f"/{self.config.timeline_path}"
        folder = f"{META_FOLDER}{below}"
        return ActiveTimeline(self.storage, folder, layout, self._archived_body)

    def _archived_body(self, instant: Instant) -> bytes | None:
        return self.archived.body(instant)

    @property
    def clock(self) -> TimelineClock:
        """The clock that gives the table's instants their times."""
        return TimelineClock(self.active, zone=self.config.zone)

    @cached_property
    def archived(self) -> ArchivedTimeline:
        """The instants that left the active timeline."""
        layout = self.config.layout_version
        folder = (
            f"{META_FOLDER}/{self.config.archive_folder}"
            if layout == LAYOUT_1
            else f"{self.active.folder}/{self.config.history_path}"
        )
        return ArchivedTimeline(self.storage, folder, layout)

    @property
    def format_options(self) -> Mapping[str, str]:
        """Options under ``hoodie.table.format.<name>.``, without that prefix; given ones win."""
        prefix = f"hoodie.table.format.{self.config.table_format}."
        both = {**self.config.raw, **self.options}
        return {key.removeprefix(prefix): both[key] for key in both if key.startswith(prefix)}

    # --- timeline --------------------------------------------------------------------------------

    def timeline(self) -> Timeline:
        """Return the present Hudi timeline without a fence; one listing."""
        return self.active.load() if self.seen is None else self.seen

    def seeing(self, timeline: Timeline) -> TableMetaClient:
        """Return this client with a timeline that is already loaded.

        It is not listed again.

        For steps under the table's lock, where no other writer changes it.
        """
        return self._with(seen=timeline)

    def _with(self, **at_hand: Any) -> TableMetaClient:
        """This client with other fields, and its timeline's cached bodies."""
        made = replace(self, **at_hand)
        now, then = made.config, self.config
        if (now.layout_version, now.timeline_path) == (then.layout_version, then.timeline_path):
            made.__dict__["active"] = self.active
        return made

    def over(self, metadata: TableMetaClient) -> TableMetaClient:
        """This client with its metadata table loaded."""
        return self._with(metadata=metadata)

    def holding(self, held: HeldMetadata | None) -> TableMetaClient:
        """This client with what its format has read under the lock."""
        return self._with(held=held)

    def as_format(self, config: TableConfig, held: HeldMetadata | None) -> TableMetaClient:
        """This client as one of a table of another format.

        Parameters
        ----------
        held
            What that format has read under the lock.
        """
        return self._with(config=config, held=held)

    def mapping_files(self, engine_map: FileMap) -> TableMetaClient:
        """This client with an engine's way to share out work."""
        return self._with(engine_map=engine_map)

    def in_call_of(self, other: TableMetaClient) -> TableMetaClient:
        """This client in the call of another, its timeline read again."""
        return self._with(seen=None, held=other.held, engine_map=other.engine_map)

    @property
    def at_rest(self) -> TableMetaClient:
        """This client without what belongs to one call; what is loaded stays."""
        return self._with(held=None, engine_map=None)

    @property
    def afresh(self) -> TableMetaClient:
        """This client without a loaded timeline; it is read when needed."""
        return self._with(seen=None, metadata=None, held=None, engine_map=None)

    def instant_time(self, text: str, *, end_of_second: bool = False) -> InstantTime:
        """The instant time that a user names.

        See :func:`~hudi_core.model.instant_time.parse_query_time`.

        Raises
        ------
        InvalidInstantTimeError
            The text is no time.
        TimelineError
            It is a date with a zone, and the timeline was made in another zone than the one
            declared; only its own digits can be looked up.
        """
        named = parse_query_time(text, end_of_second=end_of_second)
        if isinstance(named, str):
            return named
        require_same_zone(self.active, self.config.zone)
        return self.config.zone.digits(named)

    def as_stored(self) -> TableMetaClient:
        """This client with the table's properties as they are now; one read."""
        return self.with_properties(read_properties(self.storage))

    def with_properties(self, properties: Mapping[str, str]) -> TableMetaClient:
        """This client with new properties, without the metadata table's state.

        The properties may have changed the metadata table.
        """
        if properties == self.config.raw:
            return self
        path = f"{self.base_path}/{PROPERTIES_PATH}"
        config = resolve_again(self.options, stored_config(properties, path))
        takes_empty = self.config.takes_empty_partitions
        config = replace(config, takes_empty_partitions=takes_empty)
        return self._with(config=config, metadata=None)

    def read_instant(self, instant: Instant) -> bytes:
        """Return the bytes of the file of ``instant`` in its state.

        Raises
        ------
        InstantNotFoundError
            There is no such file.
        """
        return self.active.read(instant)

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a write; see :meth:`ActiveTimeline.read_commit`."""
        return self.active.read_commit(instant)

    def read_archived_commit(self, archived: ArchivedInstant) -> CommitMetadata:
        """Metadata of an archived write; empty where the archive lacks it.

        Raises
        ------
        CorruptMetadataError
            The archive is damaged.
        """
        if archived.metadata is None:
            return CommitMetadata()
        where = f"{self.archived.folder} ({archived.instant})"
        if archived.instant.action is Action.REPLACECOMMIT:
            return decode_replace_commit(archived.metadata, where)
        return decode_commit(archived.metadata, where)

    # --- schema ----------------------------------------------------------------------------------

    @property
    def schema(self) -> TableSchema:
        """The present schema of the rows, without meta columns.

        As the Hudi timeline has it.
        """
        return self.schema_at(self.timeline())

    def schema_at(self, timeline: TimelineView) -> TableSchema:
        """Return the schema after the last completed write of ``timeline``.

        Only writes that keep a schema count.

        Raises
        ------
        SchemaError
            Neither a write nor the properties keep a schema, or it cannot be read.
        CorruptMetadataError
            The metadata of a write is damaged.
        """
        text = self.schema_text_at(timeline)
        return TableSchema.from_avro(text, self.config.field_ids, self.config.last_column_id)

    def schema_text_at(self, timeline: TimelineView) -> str:
        """The Avro schema behind :meth:`schema_at`, as JSON.

        Raises
        ------
        SchemaError
            Neither a write nor the properties keep a schema.
        CorruptMetadataError
            The metadata of a write is damaged.
        """
        text = next(self._schemas_of_writes(timeline), None) or self.config.create_schema
        if text is None:
            raise SchemaError(
                f"The table at {self.base_path} has no schema: neither a commit of its active "
                "timeline nor hoodie.properties keeps one",
                "Write to it once with Apache Hudi.",
                base_path=self.base_path,
            )
        return text

    def _schemas_of_writes(self, timeline: TimelineView) -> Iterator[str]:
        writes = sorted(
            timeline.completed_writes(), key=lambda one: one.effective_completion_time, reverse=True
        )
        for instant in writes:
            text = self.active.read_notes(instant).schema_json
            if text:
                yield text

    # --- writing ---------------------------------------------------------------------------------

    def require_writable(self) -> None:
        """Refuse a table that this release cannot write without losing something.

        Raises
        ------
        UnsupportedTableError
            Names the feature.
        """
        require_writable_table(self.config, self.base_path)
