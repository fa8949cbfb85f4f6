"""A sync of one table with one metastore."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.config.optional_libraries import require_library
from hudi_core.config.sync import GlueConfig, SyncConfig, SyncTool, tools
from hudi_core.errors import (
    CorruptMetadataError,
    HistoryExpiredError,
    HudiError,
    InvalidOptionError,
    MetastoreEntryError,
    MetastoreError,
    MetastoreRefusalError,
    MetaSyncError,
    MetaSyncWarning,
    PartitionValueError,
    SchemaError,
)
from hudi_core.metastore.catalog import MetastorePartition, MetastoreTable, MetastoreWriter
from hudi_core.model.actions import RollbackMetadata
from hudi_core.model.difference import Difference
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.changes.window import Windows
from hudi_core.read.plan import read_schema
from hudi_core.services.mending.differences import Source, TableValidation
from hudi_core.storage.location import parse_location
from hudi_core.sync.entries import PartitionValues, SyncedTable, entries_of, require_registrable
from hudi_core.sync.plan import RECREATE, PartitionPlan, plan_entry, plan_partitions
from hudi_core.sync.result import EntryChange, SyncedEntry, SyncResult
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import LAYOUT_1
from hudi_core.timeline.serde import decode_rollback


def tool_named(name: str) -> SyncTool:
    """The one tool of a name that a caller gives."""
    try:
        [tool] = tools(name)
    except ValueError as error:
        supported = ", ".join(SyncTool)
        raise InvalidOptionError(
            "tool", name, "there is no such metastore", f"Supported: {supported}."
        ) from error
    return tool


def sync_table(
    opened: OpenTable, tool: SyncTool, options: Mapping[str, str], *, dry_run: bool = False
) -> SyncResult:
    """Register a table in a metastore, or update its entries.

    Only partitions are compared that were written since the last sync. A sync that died is
    repeated; of two at a time the later state of the table stays.
    """
    config = checked_options(opened, tool, options)
    glue = GlueConfig.from_options(options) if tool is SyncTool.GLUE else None
    registration = require_registrable(opened, config, opened.host.get_registration(opened.client))
    timeline = opened.timeline()
    with _writer(tool, config, glue, options) as metastore:
        table = SyncedTable(
            opened,
            config,
            glue,
            registration,
            read_schema(opened.client, timeline),
            PartitionValues.of(opened.client.config, config),
            metastore.place,
        )
        sync = _Sync(table, metastore, PartitionChanges(opened, timeline), dry_run)
        creates_database = sync.make_database()
        entries = tuple(sync.sync(wanted) for wanted in entries_of(table))
        last = TableTimes.of(timeline).last
        return SyncResult(
            opened.client.base_path, tool, metastore.address, last, creates_database, entries
        )


def checked_options(opened: OpenTable, tool: SyncTool, options: Mapping[str, str]) -> SyncConfig:
    """The options of a sync, where it can be done with them."""
    config = SyncConfig.from_options(options)
    path = opened.client.base_path
    if config.base_path is not None and parse_location(config.base_path).uri != path:
        raise InvalidOptionError(
            SyncConfig.base_path.key,
            config.base_path,
            f"the table that is synced is at {path}",
            "Leave it out.",
        )
    if tool is SyncTool.GLUE:
        GlueConfig.from_options(options)
        chosen = (SyncConfig.tools.key, tool.value)
        require_library("boto3", "glue", chosen, "syncs with AWS Glue need boto3")
    else:
        chosen = (SyncConfig.uris.key, ",".join(config.uris))
        require_library("thrift", "hive", chosen, "Hive metastores need thrift")
    return config


@contextmanager
def _writer(
    tool: SyncTool, config: SyncConfig, glue: GlueConfig | None, options: Mapping[str, str]
) -> Iterator[MetastoreWriter]:
    metastore: MetastoreWriter
    if tool is SyncTool.GLUE and glue is not None:
        from hudi_core.metastore.glue import GlueWriter  # noqa: PLC0415 - boto3 is an extra

        metastore = GlueWriter(glue, DynamoLockConfig.from_options(options), config.batch)
    else:
        from hudi_core.metastore.hive_writer import HiveWriter  # noqa: PLC0415 - thrift is too

        metastore = HiveWriter(config.uris, config.batch)
    try:
        yield metastore
    finally:
        metastore.close()


@dataclass(frozen=True, slots=True)
class _Sync:
    """One sync at work."""

    table: SyncedTable
    metastore: MetastoreWriter
    changes: PartitionChanges
    is_dry_run: bool

    def make_database(self) -> bool:
        """Whether the database was missing, and is made."""
        name = self.table.database
        if self.metastore.has_database(name):
            return False
        if not self.table.config.create_database:
            raise MetastoreEntryError(
                name,
                f"is no database of the metastore at {self.metastore.address}",
                f"Create it, or leave {SyncConfig.create_database.key} out.",
            )
        if not self.is_dry_run:
            self.metastore.create_database(name)
        return True

    def sync(self, wanted: MetastoreTable) -> SyncedEntry:
        """Bring one entry up to date."""
        before = self.metastore.table(wanted.database, wanted.name)
        if before is None:
            return self._create(wanted, EntryChange.CREATED)
        times = TableTimes.of(self.changes.timeline)
        if is_ahead(before.parameters, times):
            return SyncedEntry(wanted.database, wanted.name, EntryChange.AHEAD)
        try:
            return self._change(before, wanted, times)
        except PartitionValueError:
            raise  # a new entry could not have the partition either
        except (MetastoreEntryError, SchemaError):
            if not self.table.recreates or before.table_type == "VIRTUAL_VIEW":
                raise
        return self._create(wanted, EntryChange.RECREATED)

    def _create(self, wanted: MetastoreTable, change: EntryChange) -> SyncedEntry:
        changed = self._all() if self.table.has_partitions else ChangedPartitions(frozenset())
        partitions = self._partition_plan(changed, is_new=True, entry=wanted)
        if not self.is_dry_run:
            # not before all that can fail of the new one is done
            if change is EntryChange.RECREATED:
                self.metastore.drop_table(wanted.database, wanted.name)
            self.metastore.create_table(wanted)
            made = self.metastore.table(wanted.database, wanted.name) or wanted
            self.metastore.add_partitions(made, partitions.add)
            self._put_times(made)
        return SyncedEntry(
            wanted.database,
            wanted.name,
            change,
            added=partitions.names(partitions.add),
            compares_all=self.table.has_partitions,
        )

    def _change(
        self, before: MetastoreTable, wanted: MetastoreTable, times: TableTimes
    ) -> SyncedEntry:
        planned = plan_entry(self.table, before, wanted)
        changed = self._changed(before)
        partitions = self._partition_plan(changed, is_new=False, entry=before)
        entry = planned.after
        stays = not planned.changes and not (partitions.add or partitions.change or partitions.drop)
        done = SyncedEntry(
            before.database,
            before.name,
            EntryChange.CHANGED if planned.changes else EntryChange.UNCHANGED,
            planned.columns,
            partitions.names(partitions.add),
            partitions.names(partitions.change),
            partitions.names(partitions.drop),
            compares_all=changed.is_all,
        )
        if self.is_dry_run:
            return done
        if planned.changes:
            entry = self._put(before, entry, with_partitions=bool(planned.columns))
        self.metastore.add_partitions(entry, partitions.add)
        self.metastore.change_partitions(entry, partitions.change)
        self.metastore.drop_partitions(entry, partitions.drop)
        if not (stays and self.table.config.is_conditional):
            self._put_times(entry, times)
        return done

    def _put(
        self, before: MetastoreTable, after: MetastoreTable, *, with_partitions: bool
    ) -> MetastoreTable:
        """Change an entry; what it has become.

        The time of the last sync stays: partitions are not compared yet.
        """
        cascades = with_partitions and self.table.has_partitions
        try:
            self.metastore.change_table(
                before,
                after,
                with_partitions=cascades,
                compared=self.table.registration.pointer,
            )
        except MetastoreRefusalError as error:
            if not with_partitions:
                raise
            raise SchemaError(
                f"The metastore refuses the new columns of {before.database}.{before.name}: "
                f"{error.reason}",
                f"Hive compares columns by their places. {RECREATE}",
            ) from error
        return self.metastore.table(before.database, before.name) or after

    def _put_times(self, entry: MetastoreTable, times: TableTimes | None = None) -> None:
        now = (times or TableTimes.of(self.changes.timeline)).parameters
        if all(entry.parameters.get(key) == value for key, value in now.items()):
            return
        after = replace(entry, parameters={**entry.parameters, **now})
        self.metastore.change_table(entry, after, compared=self.table.registration.pointer)

    def _all(self) -> ChangedPartitions:
        return self.changes.all()

    def _changed(self, before: MetastoreTable) -> ChangedPartitions:
        if not self.table.has_partitions:
            return ChangedPartitions(frozenset())
        if not self.table.config.is_incremental:
            return self._all()
        return self.changes.since(before.parameters)

    def _partition_plan(
        self, changed: ChangedPartitions, *, is_new: bool, entry: MetastoreTable
    ) -> PartitionPlan:
        table, values = self.table, self.table.values
        paths, gone = values.by_values(changed.present), values.by_values(changed.absent)
        wanted = {
            key: MetastorePartition(key, table.partition_place(path)) for key, path in paths.items()
        }
        found = []
        if not is_new and changed.is_all:
            found = list(self.metastore.all_partitions(entry))
        elif not is_new and (wanted or gone):
            found = list(self.metastore.find_partitions(entry, [*wanted, *gone]))
        add, change, drop = plan_partitions(
            wanted,
            found,
            gone,
            is_all=changed.is_all,
            touches=table.config.touches and not changed.is_all,
        )
        return PartitionPlan(add, change, drop, {**gone, **paths})


# --- what has changed since the last sync ---------------------------------------------------------


LAST_TIME_KEY: Final = "last_commit_time_sync"
LAST_COMPLETION_KEY: Final = "last_commit_completion_time_sync"
_SEEN_KEY: Final = "hudi.sync.completion.time"
"""Parameter with the completion time of the last instant that a sync has seen: a rollback is later
than the write that it takes back."""
_UNDOING: Final = frozenset({Action.ROLLBACK, Action.RESTORE})
_REPLACING: Final = frozenset({Action.REPLACECOMMIT.value, Action.CLUSTERING.value})
_SEEN: Final = WRITE_ACTIONS | _UNDOING
"""What changes which files there are. A savepoint may be gone again at the next sync."""


@dataclass(frozen=True, slots=True)
class TableTimes:
    """How far a table has come.

    ``last`` and ``last_completion`` are of the last write; ``seen`` is the completion time of the
    last write, rollback or restore. All are ``None`` where there is none.
    """

    last: InstantTime | None
    last_completion: InstantTime | None
    seen: InstantTime | None

    @classmethod
    def of(cls, timeline: TimelineView) -> TableTimes:
        """The times of a timeline."""
        writes = timeline.completed_writes()
        times = [
            one.effective_completion_time
            for one in timeline.instants
            if one.is_completed and one.action in _SEEN
        ]
        completions = [one.effective_completion_time for one in writes]
        return cls(
            max((one.requested_time for one in writes), default=None),
            max(completions, default=None),
            max(times, default=None),
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of an entry that keep them.

        The first two have Hudi's names.
        """
        named = {
            LAST_TIME_KEY: self.last,
            LAST_COMPLETION_KEY: self.last_completion,
            _SEEN_KEY: self.seen,
        }
        return {key: time for key, time in named.items() if time is not None}


def is_ahead(parameters: Mapping[str, str], times: TableTimes) -> bool:
    """Whether an entry knows a later state than a timeline has."""
    seen = parameters.get(_SEEN_KEY, "")
    return times.seen is not None and seen > times.seen


@dataclass(frozen=True, slots=True)
class ChangedPartitions:
    """Partitions to compare.

    ``present`` have files, ``absent`` have none. ``is_all``: they are all of the table, and the
    metastore should have no other.
    """

    present: frozenset[PartitionPath]
    absent: frozenset[PartitionPath] = frozenset()
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """Finds changed partitions of a table.

    ``timeline`` is fenced by the table's format.
    """

    opened: OpenTable
    timeline: TimelineView

    def since(self, parameters: Mapping[str, str]) -> ChangedPartitions:
        """What changed since the sync that left some parameters.

        Everything where there was none, where the timeline does not reach back to it, or where the
        table went back to an earlier state.
        """
        begin = parameters.get(_SEEN_KEY) or parameters.get(LAST_COMPLETION_KEY)
        # the first layout of the timeline does not say when a write completed
        if not begin or self.opened.client.config.layout_version == LAYOUT_1:
            return self.all()
        oldest = min((one.requested_time for one in self.timeline.instants), default=None)
        if oldest is None or begin < oldest:
            return self.all()
        later = [
            one
            for one in self.timeline.instants
            if one.is_completed and one.effective_completion_time > begin
        ]
        archived = self.opened.client.archived.load(InstantTime(begin))
        rollbacks = list(self._rollbacks(later))
        # what a replacement took from readers, and its rollback gave back, neither names any more
        gives_back = any(
            info.action in _REPLACING for one in rollbacks for info in one.instants_rollback
        )
        if (
            gives_back
            or any(one.action is Action.RESTORE for one in later)
            or any(one.instant.action in _UNDOING for one in archived)
        ):
            return self.all()
        try:
            writes = Windows(self.opened.client, self.timeline).writes(begin, None)
        except HistoryExpiredError:
            return self.all()
        written = {group.partition_path for write in writes for group, _ in write.written()}
        doubtful = {group.partition_path for write in writes for group in write.replaced()}
        doubtful |= {PartitionPath(path) for one in rollbacks for path in one.partition_metadata}
        held = self._held(doubtful)
        return ChangedPartitions(frozenset((written - doubtful) | held), frozenset(doubtful - held))

    def all(self) -> ChangedPartitions:
        """All partitions with files."""
        return ChangedPartitions(frozenset(self._held(None)), is_all=True)

    def _rollbacks(self, instants: Collection[Instant]) -> Iterator[RollbackMetadata]:
        client = self.opened.client
        for instant in instants:
            if instant.action is Action.ROLLBACK:
                name = f"{client.active.folder} ({instant})"
                yield decode_rollback(client.read_instant(instant), name)

    def _held(self, partitions: Collection[PartitionPath] | None) -> set[PartitionPath]:
        """Those in which a reader finds files; ``None`` for all."""
        if partitions is not None and not partitions:
            return set()
        view = self.opened.views().view(self.timeline)
        asked = None if partitions is None else sorted(partitions)
        return {one.partition_path for one in view.latest_slices(asked)}


# --- the syncs that follow a commit ---------------------------------------------------------------


def require_syncable(opened: OpenTable, options: Mapping[str, str]) -> None:
    """Refuse options of syncs that could not be done after a commit.

    To be called before anything is written. Nothing is asked of a metastore.
    """
    for tool in SyncConfig.wanted(options):
        config = checked_options(opened, tool, options)
        require_registrable(opened, config, opened.host.get_registration(opened.client))


def require_new_syncable(planned: OpenTable, options: Mapping[str, str]) -> None:
    """Refuse such options for a table that is about to be made.

    In the place of another one, perhaps, which would be gone when :func:`require_syncable` refuses.
    """
    try:
        require_syncable(planned, options)
    except CorruptMetadataError:
        # the format has no metadata yet, or that of a damaged table, which goes; options were first
        return


def sync_after_commit(opened: OpenTable, options: Mapping[str, str], result: object = None) -> None:
    """Run the syncs that options ask for, all of them.

    A :class:`MetaSyncError` leaves the commit complete; it is a warning where errors are to be
    ignored. ``result`` is what the call would return.
    """
    failed = None
    for tool in SyncConfig.wanted(options):
        try:
            sync_table(opened, tool, options)
        except HudiError as error:
            failed = MetaSyncError(opened.client.base_path, tool, str(error), result)
            failed.__cause__ = error
            if SyncConfig.ignores_errors.read(options):
                warnings.warn(str(failed), MetaSyncWarning, stacklevel=2)
                failed = None
    if failed is not None:
        raise failed


# --- entries of metastores that are behind their table --------------------------------------------


_WORDS: Final = {
    EntryChange.CREATED: "not there",
    EntryChange.CHANGED: "those of an earlier state",
    EntryChange.RECREATED: "those of something else",
}


def with_entries(
    found: TableValidation, opened: OpenTable, options: Mapping[str, str]
) -> TableValidation:
    """A validation that compares the table's entries as well.

    In the metastores that options name for syncs after commits. A sync repairs what it finds.
    """
    differences, checked = list(found.differences), dict(found.checked)
    skipped = dict(found.skipped)
    for tool in SyncConfig.wanted(options):
        try:
            planned = sync_table(opened, tool, options, dry_run=True)
        except MetastoreError as error:
            skipped[f"entries in {tool}"] = error.what
            continue
        except HudiError as error:
            differences.append(
                Difference(Source.METASTORE, f"the table's entry in {tool}", error.hint, error.what)
            )
            continue
        name = f"entries in {planned.address}"
        checked[name] = checked.get(name, 0) + len(planned.entries)
        for entry in planned.entries:
            differences += _differences(entry)
    return replace(found, differences=tuple(differences), checked=checked, skipped=skipped)


def _differences(entry: SyncedEntry) -> list[Difference]:
    name, found = f"{entry.database}.{entry.name}", []
    if entry.change in _WORDS:
        expected = "; ".join(entry.columns) or "those of the table's present state"
        what = f"columns and properties of {name}"
        found.append((what, expected, _WORDS[entry.change]))
    partitions = {
        "as in the table": ("at another place", entry.changed),
        "there": ("not there", entry.added),
        "gone": ("there", entry.dropped),
    }
    for expected, (actual, paths) in partitions.items():
        found += [(f"partition {path} of {name}", expected, actual) for path in paths]
    return [
        Difference(Source.METASTORE, what, expected, actual, is_pending=True)
        for what, expected, actual in found
    ]
