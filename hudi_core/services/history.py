"""The history of a table, one entry per instant.

States of instants: on the timeline, in the format, to readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, overload

import pyarrow as pa

from hudi_core.errors import InvalidOptionError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import RollbackMetadata
from hudi_core.model.client import HeldMetadata
from hudi_core.model.commit import (
    MOVES_ROWS,
    NO_PREVIOUS_COMMIT,
    SCHEMA_KEY,
    CommitMetadata,
    WriteStat,
)
from hudi_core.model.extra_metadata import OWN_PREFIX
from hudi_core.model.files import BaseFileName
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.result import RowCounts
from hudi_core.plugin.fenced import UNPUBLISHED_ACTIONS
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.archived import ArchivedInstant, with_history
from hudi_core.timeline.serde import (
    decode_clean,
    decode_commit,
    decode_replace_commit,
    decode_restore,
    decode_rollback,
    decode_savepoint,
)
from hudi_core.timeline.timeline import InstantKey, Timeline, instant_key
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.recovery.roll_forward import can_record

HISTORY_SCHEMA: Final = pa.schema(
    [
        pa.field("instant", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("operation", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        pa.field("completion_time", pa.string()),
        pa.field("archived", pa.bool_(), nullable=False),
        pa.field("rows_inserted", pa.int64()),
        pa.field("rows_updated", pa.int64()),
        pa.field("rows_deleted", pa.int64()),
        pa.field("files_added", pa.int64()),
        pa.field("files_removed", pa.int64()),
        pa.field("bytes_written", pa.int64()),
        pa.field("partitions", pa.list_(pa.string())),
        pa.field("extra_metadata", pa.map_(pa.string(), pa.string())),
    ]
)
_NO_ROWS: Final = RowCounts(0, 0, 0)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An instant, and what it did.

    ``instant`` is the requested time. ``operation`` is ``None`` of table services that write no
    rows, ``completion_time`` while it is pending. ``state`` is as readers of the table see it;
    ``archived`` means in the archived timeline only.

    Rows, and all that follows, are ``None`` while it is pending, and where an archive of layout 1
    keeps no metadata. Files that a write removed are no longer in the latest state; those that a
    clean, rollback or restore removed are deleted. ``bytes_written`` is of data files.
    """

    instant: str
    action: str
    state: str
    completion_time: str | None = None
    archived: bool = False
    operation: str | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    bytes_written: int | None = None
    partitions: tuple[str, ...] | None = None
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)


class History(Sequence[HistoryEntry]):
    """Instants of a table and what each did, the newest first.

    A sequence of entries; and a table for whatever takes Arrow's.
    """

    def __init__(self, entries: Iterable[HistoryEntry]) -> None:
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, place: int) -> HistoryEntry: ...

    @overload
    def __getitem__(self, place: slice) -> History: ...

    @overload
    def __getitem__(self, place: str) -> pa.ChunkedArray: ...

    def __getitem__(self, place: int | slice | str) -> HistoryEntry | History | pa.ChunkedArray:
        if isinstance(place, str):
            return self.column(place)
        if isinstance(place, slice):
            return History(self._entries[place])
        return self._entries[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return f"History({list(self._entries)!r})"

    def _repr_html_(self) -> str:
        html: str = self.to_pandas()._repr_html_()
        return html

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def num_rows(self) -> int:
        """Number of instants."""
        return len(self)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of :meth:`to_arrow`."""
        return self.to_arrow().column(name)

    def to_arrow(self) -> pa.Table:
        """A row for each instant, a column for each attribute of :class:`HistoryEntry`."""
        rows = [asdict(one) for one in self._entries]
        for row in rows:
            row["extra_metadata"] = row["extra_metadata"] and list(row["extra_metadata"].items())
        return pa.Table.from_pylist(rows, HISTORY_SCHEMA)

    def to_pandas(self) -> Any:
        """The same as a frame of pandas, which must be installed."""
        return self.to_arrow().to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        """The same as dictionaries."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows


@dataclass(frozen=True, slots=True)
class _Done:
    """What one instant did."""

    operation: str | None = None
    rows: RowCounts = _NO_ROWS
    files_added: int = 0
    files_removed: int = 0
    bytes_written: int = 0
    partitions: Iterable[str] = ()
    extra_metadata: Mapping[str, str] | None = None

    def facts(self) -> dict[str, Any]:
        """The attributes of its entry."""
        return {
            "operation": self.operation,
            "rows_inserted": self.rows.inserted,
            "rows_updated": self.rows.updated,
            "rows_deleted": self.rows.deleted,
            "files_added": self.files_added,
            "files_removed": self.files_removed,
            "bytes_written": self.bytes_written,
            "partitions": tuple(sorted(set(self.partitions))),
            "extra_metadata": _of_users(self.extra_metadata or {}),
        }


def table_history(table: OpenTable, limit: int | None = None) -> History:
    """The instants of a table and what each did, the newest first.

    Cost: one listing, the bodies of the instants returned, and the files of the archive that these
    are in.
    """
    if limit is not None and limit < 0:
        raise InvalidOptionError("limit", limit, "it is negative", "Give a number of instants.")
    client = table.client
    active = client.timeline()
    bodies = _archived(client, active, limit)
    instants = [*active.instants, *(one.instant for one in bodies.values())]
    instants.sort(key=lambda one: one.sort_key, reverse=True)
    newest = Timeline.of(instants[:limit])
    seen = table.seeing(newest).timeline().instants[::-1]
    return History(
        client.run_map(lambda one: _entry(client, one, bodies.get(instant_key(one))), seen)
    )


def _archived(
    client: TableMetaClient, active: Timeline, limit: int | None
) -> dict[InstantKey, ArchivedInstant]:
    """The archived instants that may be among the newest, with their bodies."""
    if limit is None:
        found = client.archived.load(bodies=True)
    else:
        # an older instant is not among the newest
        oldest = active.instants[-limit:][:1] if 0 < limit <= len(active) else ()
        after = oldest[0].requested_time if oldest else None
        found = client.archived.newest(limit, after, bodies=True)
    on_both = set(map(instant_key, active.instants))
    by_key = {instant_key(one.instant): one for one in found}
    return {key: one for key, one in by_key.items() if key not in on_both}


def _entry(
    client: TableMetaClient, instant: Instant, archived: ArchivedInstant | None
) -> HistoryEntry:
    done = _done(client, instant, archived) if instant.is_completed else None
    return HistoryEntry(
        instant.requested_time,
        instant.action.value,
        instant.state.value,
        instant.completion_time if instant.is_completed else None,
        archived is not None,
        **(done.facts() if done is not None else {}),
    )


def _done(
    client: TableMetaClient, instant: Instant, archived: ArchivedInstant | None
) -> _Done | None:
    if archived is None:
        body, where = client.active.read(instant), client.active.path(instant)
    elif archived.metadata is not None:
        body, where = archived.metadata, f"{client.archived.folder} ({instant})"
    else:
        return None
    of_body = _OF_BODY.get(instant.action)
    return _Done() if of_body is None else of_body(body, where)


def _of_write(metadata: CommitMetadata) -> _Done:
    replaced = getattr(metadata, "partition_to_replace_file_ids", {})
    copies = metadata.operation_type in MOVES_ROWS
    return _Done(
        operation=metadata.operation_type,
        rows=_NO_ROWS if copies else RowCounts.of(metadata),
        files_added=len(metadata.stats),
        files_removed=sum(map(_is_update, metadata.stats)) + sum(map(len, replaced.values())),
        bytes_written=sum(stat.total_write_bytes or 0 for stat in metadata.stats),
        partitions=(*metadata.partition_to_write_stats, *replaced),
        extra_metadata=metadata.extra_metadata,
    )


def _of_clean(body: bytes, where: str) -> _Done:
    clean = decode_clean(body, where)
    partitions = [
        one.partition_path
        for one in clean.partition_metadata.values()
        if one.success_delete_files or one.is_partition_deleted
    ]
    return _Done(files_removed=clean.total_files_deleted, partitions=partitions)


def _of_rollbacks(rollbacks: Iterable[RollbackMetadata]) -> _Done:
    every = tuple(rollbacks)
    return _Done(
        files_removed=sum(one.total_files_deleted for one in every),
        partitions=[partition for one in every for partition in one.partition_metadata],
    )


def _of_restore(body: bytes, where: str) -> _Done:
    by_instant = decode_restore(body, where).hoodie_restore_metadata
    return _of_rollbacks(one for some in by_instant.values() for one in some)


_OF_BODY: Final[Mapping[Action, Callable[[bytes, str], _Done]]] = {
    Action.COMMIT: lambda body, where: _of_write(decode_commit(body, where)),
    Action.DELTACOMMIT: lambda body, where: _of_write(decode_commit(body, where)),
    Action.REPLACECOMMIT: lambda body, where: _of_write(decode_replace_commit(body, where)),
    Action.CLEAN: _of_clean,
    Action.ROLLBACK: lambda body, where: _of_rollbacks([decode_rollback(body, where)]),
    Action.RESTORE: _of_restore,
    Action.SAVEPOINT: lambda body, where: _Done(
        partitions=decode_savepoint(body, where).partition_metadata
    ),
}
"""What a completed file says, by its action; others change the metadata table alone."""


def _is_update(stat: WriteStat) -> bool:
    """Whether a file supersedes another one, as no log file does."""
    name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
    return name is not None and stat.prev_commit not in (None, "", NO_PREVIOUS_COMMIT)


def _of_users(extra_metadata: Mapping[str, str]) -> dict[str, str]:
    """Extra metadata without what the table keeps for itself."""
    return {
        key: value
        for key, value in extra_metadata.items()
        if key != SCHEMA_KEY and not key.startswith(OWN_PREFIX)
    }


# --- states of instants ---------------------------------------------------------------------------


class FormatState(StrEnum):
    """Whether a format holds an instant."""

    PUBLISHED = "published"
    """One of its versions names it."""
    EXPIRED = "expired"
    """It has forgotten that version; a watermark says that the instant is complete."""
    ABSENT = "absent"
    """It does not hold it."""


@dataclass(frozen=True, slots=True)
class InstantStates:
    """One instant, as each part of a table has it.

    ``instant`` is as the Hudi timeline has it, archived or active; ``seen`` as readers, planners
    and services of the table see it. ``in_format`` is ``None`` where nothing is published to a
    format: in a table of the native format, and for actions that change the metadata table alone.
    ``version`` is the format's own id of the state that brought it; ``None`` where it has none, or
    no more.

    ``explanation`` is one sentence where Hudi timeline and format disagree: what the instant is,
    what readers see, and who repairs it.
    """

    instant: Instant
    is_archived: bool
    seen: Instant
    in_format: FormatState | None = None
    version: str | None = None
    explanation: str | None = None


def timeline_states(table: OpenTable, *, archived: bool = False) -> tuple[InstantStates, ...]:
    """A table's instants in each of their states, by requested time.

    The format's metadata is read once, after the Hudi timeline.

    Archived instants are fenced like the active ones.
    """
    timeline = table.client.timeline()
    active = set(map(instant_key, timeline.instants))
    if archived:
        # guard reads-timeline-first
        timeline = with_history(timeline, table.client.archived.load())
    if not is_two_step(table):
        return tuple(
            InstantStates(one, instant_key(one) not in active, one) for one in timeline.instants
        )
    table = table.seeing(timeline).holding(HeldMetadata())
    fenced = table.fenced()
    seen = {instant_key(one): one for one in fenced.instants}
    lost = set(map(instant_key, table.lost_completions(fenced)))
    return tuple(
        _states(table, one, seen[key], is_archived=key not in active, is_lost=key in lost)
        for one in timeline.instants
        for key in (instant_key(one),)
    )


def _states(
    table: OpenTable, instant: Instant, seen: Instant, *, is_archived: bool, is_lost: bool
) -> InstantStates:
    if instant.action in UNPUBLISHED_ACTIONS:
        return InstantStates(instant, is_archived, seen)
    found = table.host.find_publication(table.client, instant)
    if found is None:
        in_format, version = FormatState.ABSENT, None
    elif found.is_expired:
        in_format, version = FormatState.EXPIRED, None
    else:
        in_format, version = FormatState.PUBLISHED, found.version
    explanation = None
    if is_lost:
        explanation = _lost(table, instant)
    elif instant.is_completed and seen.state is State.INFLIGHT:
        explanation = _pending_publication(table, instant)
    return InstantStates(instant, is_archived, seen, in_format, version, explanation)


def _pending_publication(table: OpenTable, instant: Instant) -> str:
    name = table.host.lacking(table.client, instant)
    repair = "the next write or table service of any writer publishes it, or takes it back where it"
    repair = f"{repair} conflicts with a later commit"
    if not can_record(table.host, instant):
        repair = f"`hudi table repair {table.client.base_path}` rebuilds the {name} metadata"
    return (
        f"{instant.requested_time} ({instant.action}) is pending publication: complete on the Hudi "
        f"timeline but not in the {name} metadata yet, so that readers see the table without it "
        f"(those that know only Hudi with it) until {repair}."
    )


def _lost(table: OpenTable, instant: Instant) -> str:
    return (
        f"{instant.requested_time} ({instant.action}) is complete in the {table.host.name} "
        "metadata, but its completed file on the Hudi timeline is lost, so that readers of this "
        f"library are refused until `hudi table repair {table.client.base_path}` puts it back."
    )
