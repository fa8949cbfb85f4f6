"""Archived instants, read from the archive of either layout."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from hudi_core.avro.datum import decode_datum, encode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError, InvalidInstantTimeError, TableServiceError
from hudi_core.log_format.block import (
    BlockType,
    HeaderKey,
    LogBlock,
    decode_avro_content,
    encode_avro_content,
    encode_log_block,
    read_log_blocks,
)
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    IndexCommitMetadata,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RollbackMetadata,
    SavepointMetadata,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import (
    InstantTime,
    just_before,
    next_instant_time,
    parse_instant_time,
)
from hudi_core.model.protocols import Storage
from hudi_core.timeline.active import LAYOUT_1, LAYOUT_2
from hudi_core.timeline.lsm_history import HistoryRow, read_history, read_newest_history
from hudi_core.timeline.serde import decode, encode_archived
from hudi_core.timeline.serde.records import schema_of_one, to_record
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """An archived instant and the bodies of its files.

    ``metadata`` and ``plan`` are the bytes of the completed and the requested file, ``None`` where
    they were not requested or are not there; in layout 1 there is no plan.
    """

    instant: Instant
    metadata: bytes | None = None
    plan: bytes | None = None


class ArchivedTimeline:
    """Reads the archive of one timeline."""

    def __init__(self, storage: Storage, folder: str, layout_version: int = LAYOUT_2) -> None:
        self.storage = storage
        self.folder = folder
        self.layout_version = layout_version

    def load(
        self,
        after: InstantTime | None = None,
        until: InstantTime | None = None,
        *,
        bodies: bool = False,
    ) -> tuple[ArchivedInstant, ...]:
        """Return archived instants by requested time, each action once.

        Rows of actions that this release does not know are left out.

        ``after`` is exclusive and ``until`` inclusive; both are requested times.
        """
        if self.layout_version == LAYOUT_1:
            entries = self._read_log(after, until, bodies=bodies)
        else:
            rows = read_history(self.storage, self.folder, after, until, bodies)
            entries = map(_from_row, rows)
        return _each_once(entries, after, until)

    def newest(
        self, count: int, after: InstantTime | None = None, *, bodies: bool = False
    ) -> tuple[ArchivedInstant, ...]:
        """Return the instants requested last, by requested time.

        In layout 2 older files of the history are not read.
        """
        if count <= 0:
            return ()
        if self.layout_version == LAYOUT_1:
            entries = self._read_log(after, None, bodies=bodies)
        else:
            rows = read_newest_history(self.storage, self.folder, count, after, bodies)
            entries = map(_from_row, rows)
        return _each_once(entries, after, None)[-count:]

    def body(self, instant: Instant) -> bytes | None:
        """Bytes of an archived instant's file; ``None`` where there are none."""
        time = instant.requested_time
        found = self.load(just_before(time), time, bodies=True)
        return next((one.metadata for one in found if one.instant == instant), None)

    def _read_log(
        self, after: InstantTime | None, until: InstantTime | None, *, bodies: bool
    ) -> Iterator[ArchivedInstant | None]:
        path = f"{self.storage.root}/{self.folder}"
        for entry in read_archive_log(self.storage, self.folder):
            found = _from_entry(entry)
            if found is not None and _is_between(found, after, until):
                yield replace(found, metadata=completed_body(entry, path)) if bodies else found


def _each_once(
    entries: Iterable[ArchivedInstant | None], after: InstantTime | None, until: InstantTime | None
) -> tuple[ArchivedInstant, ...]:
    """Return the instants of a time range, by requested time."""
    found: dict[Instant, ArchivedInstant] = {}
    for archived in entries:
        if archived is not None and _is_between(archived, after, until):
            found.setdefault(archived.instant, archived)
    # one instant may be in several states (layout 1), and in two files while these are merged
    kept = Timeline.of(found).instants
    return tuple(found[instant] for instant in kept)


def _is_between(
    archived: ArchivedInstant, after: InstantTime | None, until: InstantTime | None
) -> bool:
    time = archived.instant.requested_time
    return (after is None or time > after) and (until is None or time <= until)


def with_history(active: Timeline, archived: Iterable[ArchivedInstant]) -> Timeline:
    """Return one timeline of active and archived instants.

    An instant that is on both, because archiving is under way, is kept once, in its highest state:
    what the archive says is completed is completed, though only its inflight file may be left.
    """
    older = (one.instant for one in archived)
    return Timeline.of((*older, *active.instants), active.unknown)  # guard counts-once


def _from_row(row: HistoryRow) -> ArchivedInstant | None:
    instant = _instant(row.instant_time, row.action, State.COMPLETED, row.completion_time)
    return None if instant is None else ArchivedInstant(instant, row.metadata, row.plan)


def _from_entry(entry: Mapping[str, Any]) -> ArchivedInstant | None:
    # entries of early releases have no state: only completed instants were archived then
    word = str(entry.get("actionState") or State.COMPLETED).lower()
    if word not in list(State):
        return None
    instant = _instant(entry.get("commitTime"), entry.get("actionType"), State(word), None)
    return None if instant is None else ArchivedInstant(instant)


def _instant(time: object, action: object, state: State, completion: str | None) -> Instant | None:
    if not isinstance(time, str) or not isinstance(action, str) or action not in list(Action):
        return None
    try:
        done = parse_instant_time(completion) if completion else None
        return Instant(parse_instant_time(time), Action(action), state, done)
    except InvalidInstantTimeError:
        return None


# --- the archive of layout 1 as rows of a history -------------------------------------------------


# --- log files of the archive ---------------------------------------------------------------------
# Each record is one file of one instant that left the active timeline. Its schema (Hudi's
# ``HoodieArchivedMetaEntry``) is in the header of its block.


MAX_ARCHIVE_BYTES: Final = 1024 * 1024 * 1024
"""Largest archive file that is read."""
_NAME: Final = re.compile(r"\.commits_\.archive\.(?P<number>[0-9]+)(_.*)?")
_MERGE_PLAN: Final = "mergeArchivePlan"
"""What Hudi puts beside them while it merges small ones."""


def read_archive_log(storage: Storage, folder: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records of an archive's files, the oldest file first."""
    for name in _names(storage, folder):
        data = storage.read(name, MAX_ARCHIVE_BYTES)
        path = f"{storage.root}/{name}"
        for block in read_log_blocks(data, path):
            if block.type == BlockType.AVRO:
                yield from _records(block, path)


def archive_files(storage: Storage, folder: str) -> list[str]:
    """Paths of an archive's files, and of the plan to merge them."""
    plans = (one.path for one in storage.list(folder) if one.name == _MERGE_PLAN)
    return [*_names(storage, folder), *plans]


def _names(storage: Storage, folder: str) -> list[str]:
    """Paths of the archive files, by their numbers."""
    found = [
        (int(match["number"]), status.path)
        for status in storage.list(folder)
        if (match := _NAME.fullmatch(status.name))
    ]
    return [path for _, path in sorted(found)]


def _records(block: LogBlock, path: str) -> Iterator[dict[str, Any]]:
    text = block.header.get(HeaderKey.SCHEMA)
    if text is None:
        raise CorruptMetadataError(path, "an Avro block has no schema")
    schema = parse_writer_schema(text, path).parsed
    for datum in decode_avro_content(block.content, path):
        yield decode_datum(datum, schema, path)


# --- rows of a history ----------------------------------------------------------------------------


Entry = Mapping[str, Any]
"""One record of an archive of layout 1: one file of one instant."""

_BODIES: Final[Mapping[Action, tuple[str, type]]] = {
    Action.COMMIT: ("hoodieCommitMetadata", CommitMetadata),
    Action.DELTACOMMIT: ("hoodieCommitMetadata", CommitMetadata),
    Action.REPLACECOMMIT: ("hoodieReplaceCommitMetadata", ReplaceCommitMetadata),
    Action.CLEAN: ("hoodieCleanMetadata", CleanMetadata),
    Action.ROLLBACK: ("hoodieRollbackMetadata", RollbackMetadata),
    Action.RESTORE: ("hoodieRestoreMetadata", RestoreMetadata),
    Action.SAVEPOINT: ("hoodieSavePointMetadata", SavepointMetadata),
    Action.INDEXING: ("hoodieIndexCommitMetadata", IndexCommitMetadata),
}
"""The field that holds the body of a completed file, and what that is."""
_PLANS: Final[Mapping[Action, tuple[str, type]]] = {
    Action.CLEAN: ("hoodieCleanerPlan", CleanerPlan),
    Action.REPLACECOMMIT: ("hoodieRequestedReplaceMetadata", RequestedReplaceMetadata),
}
"""The same of a requested file with a plan."""


def history_rows(
    storage: Storage, folder: str, active: Container[tuple[str, str]]
) -> Iterator[HistoryRow]:
    """Yield a row of each completed instant, in the archive's order.

    Instants in ``active`` (requested time and action) are left out: they are on the active timeline
    still, as an archival did not come to its end.
    """
    path = f"{storage.root}/{folder}"
    seen: set[tuple[str, str]] = set()
    for key, entries in groupby(read_archive_log(storage, folder), _key):
        if key in active or key in seen:
            continue
        row = _row(*key, tuple(entries), path)
        if row is not None:
            seen.add(key)
            yield row


def archive_file(number: int) -> str:
    """The name of a file of the archive."""
    return f".commits_.archive.{number}_1-0-1"


def archive_log(rows: Iterable[HistoryRow], path: str) -> bytes:
    """The bytes of an archive's file, from rows of a history."""
    fields: dict[str, type] = dict.fromkeys(("commitTime", "actionType", "actionState"), str)
    fields |= {"stateTransitionTime": str} | dict([*_BODIES.values(), *_PLANS.values()])
    text = json.dumps(schema_of_one("HoodieArchivedMetaEntry", fields))
    schema = parse_writer_schema(text, path).parsed
    data = [
        encode_datum({**dict.fromkeys(fields), **entry}, schema)
        for row in rows
        for entry in _entries(row, path)
    ]
    header = {HeaderKey.SCHEMA: text}
    return encode_log_block(BlockType.AVRO, header, encode_avro_content(data))


def _entries(row: HistoryRow, path: str) -> Iterator[dict[str, object]]:
    """The records of an archived instant.

    One is of its end, and one of its request, where that has a plan.
    """
    action = next((one for one in _BODIES if one == row.action), None)
    if action is None:
        return
    found = {"commitTime": row.instant_time, "actionType": row.action}
    for of, data, state in ((_PLANS, row.plan, "REQUESTED"), (_BODIES, row.metadata, "COMPLETED")):
        name, kind = of.get(action, ("", type(None)))
        if name and data:
            record = to_record(decode(kind, data, path))
            done = row.completion_time if of is _BODIES else row.instant_time
            yield {**found, "actionState": state, "stateTransitionTime": done, name: record}


def completed_body(entry: Entry, path: str) -> bytes | None:
    """The body of a completed file; ``None`` for any other record."""
    action = next((one for one in _BODIES if one == entry.get("actionType")), None)
    if action is None or _state(entry) != State.COMPLETED:
        return None
    return _body(_BODIES[action], entry, path)


def _key(entry: Entry) -> tuple[str, str]:
    return str(entry.get("commitTime")), str(entry.get("actionType"))


def _row(time: str, word: str, entries: Iterable[Entry], path: str) -> HistoryRow | None:
    """The row of one instant; ``None`` for one that did not complete."""
    states = {_state(entry): entry for entry in entries}
    done = states.get(State.COMPLETED)
    if done is None:
        return None
    action = next((one for one in _BODIES if one == word), None)
    if action is None:
        raise TableServiceError(
            f"The archive {path} holds {time}.{word}, which this release cannot convert",
            "Upgrade the table with Apache Hudi.",
            path=path,
        )
    requested = states.get(State.REQUESTED, {})
    return HistoryRow(
        time,
        _completion(parse_instant_time(time), done),
        action.value,
        _body(_BODIES.get(action), done, path),
        _body(_PLANS.get(action), requested, path),
    )


def _state(entry: Entry) -> str:
    # early releases archived completed instants only, and named no state
    return str(entry.get("actionState") or State.COMPLETED).lower()


def _completion(time: InstantTime, done: Entry) -> InstantTime:
    """When an instant completed: as recorded, else right after its request."""
    try:
        return next_instant_time(time, parse_instant_time(str(done.get("stateTransitionTime"))))
    except InvalidInstantTimeError:
        return next_instant_time(time, time)


def _body(field: tuple[str, type] | None, entry: Entry, path: str) -> bytes | None:
    if field is None or entry.get(field[0]) is None:
        return None
    name, kind = field
    return encode_archived(kind, entry[name], path)
