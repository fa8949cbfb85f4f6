"""Archives completed instants of any Hudi table.

Order (a crash at any point leaves a state in which readers find every instant, and which the next
archival continues): rows of the instants in a new history file, the manifest with it, its version,
and only then the instants' own files, the completed ones last and oldest first. Between the version
and the last deletion an instant is in both places, which readers count once; they read the active
timeline before the history, so that nothing moves past them.

Which instants may go is for the caller to say; see :mod:`hudi_core.actions.archive_plan`. The
caller holds the table's lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from hudi_core.actions.deletion import delete_together
from hudi_core.actions.history import HistorySnapshot, HistoryWriter
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import join_path
from hudi_core.model.instant import Action, Instant, State
from hudi_core.timeline.active import LAYOUT_2, ActiveTimeline, TimelineListing
from hudi_core.timeline.lsm_history import (
    HistoryFile,
    HistoryFileName,
    HistoryRow,
    manifest_number,
    manifest_path,
    read_manifest,
)
from hudi_core.timeline.timeline import InstantKey, instant_key

COMPACTION_BATCH_SIZE: Final = 10
"""Default of ``hoodie.timeline.compaction.batch.size``."""
TARGET_FILE_BYTES: Final = 1000 * 1024 * 1024
"""Default of ``hoodie.timeline.compaction.target.file.max.bytes``."""
FILE_BODY_BYTES: Final = 64 * 1024 * 1024
"""Metadata and plans that one new history file holds at least before another one is begun."""
_READ_TOGETHER: Final = 32
_PLANNED: Final = frozenset(
    {
        Action.CLEAN,
        Action.CLUSTERING,
        Action.COMPACTION,
        Action.LOGCOMPACTION,
        Action.REPLACECOMMIT,
    }
)
"""Actions whose plan goes into the history, as in Hudi; by the word of their requested file."""
_PLANNED_INFLIGHT: Final = frozenset({Action.CLUSTERING, Action.REPLACECOMMIT})


def archive(
    client: TableMetaClient,
    instants: Iterable[Instant],
    *,
    compaction_batch_size: int = COMPACTION_BATCH_SIZE,
    target_file_bytes: int = TARGET_FILE_BYTES,
) -> tuple[Instant, ...]:
    """Move completed instants into the history, with their requested and inflight files.

    Cost: the instants moved, one listing of the active timeline, and the manifest. The history is
    not read, but for files whose range overlaps the instants': those of an archival that crashed.

    The timeline is of layout 2. What is not on the active timeline (any more) is left out; returned
    are the instants that left it, in the order of requested times. A pending instant or a savepoint
    is refused before anything is changed. Where another process archives at the same time
    (``AlreadyExistsError``, ``PreconditionFailedError``), nothing is lost, and the next run goes
    on.

    ``compaction_batch_size`` files of a level are merged into one of the next, but not beyond
    ``target_file_bytes``.
    """
    active = client.active
    wanted = tuple(instants)
    _refuse(wanted, active)
    chosen = _files_of(active.scan(), wanted)
    writer = HistoryWriter(client.storage, client.archived.folder)
    opened = writer.open()
    snapshot = opened
    new = _not_held(writer, snapshot, chosen)  # guard looks-into-history
    if new:
        files = _new_files(client, writer, snapshot, new)  # archive file
        snapshot = writer.publish(snapshot, [*snapshot.files, *files])
    _delete(client, chosen)
    snapshot = compact(writer, snapshot, compaction_batch_size, target_file_bytes)
    if snapshot.version > opened.version:
        prune(writer, snapshot, snapshot.version - opened.version)
    return tuple(one.completed for one in chosen)


class _Files(NamedTuple):
    """A completed instant and its other files, requested before inflight."""

    completed: Instant
    pending: tuple[Instant, ...]


def _files_of(listing: TimelineListing, instants: Iterable[Instant]) -> list[_Files]:
    """Return the instants present on the timeline, by requested time."""
    wanted = set(instants)
    pending: dict[InstantKey, list[Instant]] = {}
    for file in sorted(listing.files, key=lambda file: file.sort_key):
        if not file.is_completed:
            pending.setdefault(instant_key(file), []).append(file)
    return [
        _Files(one, tuple(pending.get(instant_key(one), ())))
        for one in sorted(wanted.intersection(listing.files), key=lambda one: one.sort_key)
    ]


def _refuse(instants: Sequence[Instant], active: ActiveTimeline) -> None:
    where = f"{active.storage.root}/{active.folder}"
    if active.layout_version != LAYOUT_2:
        raise TableServiceError(
            f"{where} has timeline layout {active.layout_version}, whose archive is only read",
            "Run `hudi table upgrade PATH --to 8` (or 9) first.",
            path=where,
        )
    for instant in instants:
        if not instant.is_completed:
            raise TableServiceError(
                f"{instant} of {where} is pending and cannot be archived",
                "Complete it or roll it back first.",
                instant=str(instant),
            )
        if instant.action is Action.SAVEPOINT:
            raise TableServiceError(
                f"{instant} of {where} keeps files and cannot be archived",
                "Delete the savepoint first.",
                instant=str(instant),
            )


def _not_held(
    writer: HistoryWriter, snapshot: HistorySnapshot, instants: Sequence[_Files]
) -> list[_Files]:
    """Return the instants that the history does not hold yet.

    It holds some of them when an earlier archival was cut short before their files were deleted.
    """
    if not instants:
        return []
    first = instants[0].completed.requested_time
    last = instants[-1].completed.requested_time
    held = {
        row[:3]
        for file in snapshot.files
        if file.name.first <= last and file.name.last >= first
        for row in writer.read(file, bodies=False)
    }
    return [one for one in instants if _identity(one.completed) not in held]


def _identity(instant: Instant) -> tuple[str, str | None, str]:
    return instant.requested_time, instant.completion_time, instant.action.value


def _new_files(
    client: TableMetaClient,
    writer: HistoryWriter,
    snapshot: HistorySnapshot,
    instants: Sequence[_Files],
) -> tuple[HistoryFile, ...]:
    """Store the instants as new history files of level 0.

    One, unless their bodies are many bytes.
    """
    new: list[HistoryFile] = []
    rows: list[HistoryRow] = []
    read = _ReadRow(client.active)
    for start in range(0, len(instants), _READ_TOGETHER):
        together = instants[start : start + _READ_TOGETHER]
        rows += client.run_map(read, together)
        bodies = sum(len(body) for row in rows for body in (row.metadata, row.plan) if body)
        if bodies >= FILE_BODY_BYTES or start + _READ_TOGETHER >= len(instants):
            times = [row.instant_time or "" for row in rows]
            taken = replace(snapshot, files=(*snapshot.files, *new))
            name = HistoryFileName(min(times), max(times), level=0)
            new.append(writer.put_file(taken, name, [rows]))
            rows = []
    return tuple(new)


@dataclass(frozen=True, slots=True)
class _ReadRow:
    """Reads an instant's history row; a value for engines."""

    active: ActiveTimeline

    def __call__(self, files: _Files) -> HistoryRow:
        done = files.completed
        plan = b""
        for pending in files.pending:
            # the inflight file of a replacecommit says more than its requested file; of all others
            # it has no plan
            if pending.action in _PLANNED and (
                pending.state is State.REQUESTED or pending.action in _PLANNED_INFLIGHT
            ):
                plan = self.active.read(pending) or plan
        return HistoryRow(
            done.requested_time,
            done.completion_time,
            done.action.value,
            self.active.read(done) or None,
            plan or None,
        )


def _delete(client: TableMetaClient, instants: Sequence[_Files]) -> None:
    """Delete the files of instants that the history holds.

    Completed files go last, or their instants would look pending, and oldest first: readers take
    what is older than the oldest write of the active timeline for archived.
    """
    pending = [client.active.path(file) for files in instants for file in files.pending]
    delete_together(client.storage, client.run_map, pending)  # archive pending
    for files in instants:  # guard oldest-first
        client.active.delete(files.completed)  # archive completed


# --- merges of history files ----------------------------------------------------------------------

# Ten files of one level become one of the next, so that an instant is rewritten once per level and
# a history of n archivals has about log(n) files.


TOP_LEVEL: Final = 9
"""A level is one digit of a file's name; files of the last one are not merged."""
KEPT_VERSIONS: Final = 3
"""Manifests that stay for readers that have begun with them, besides those of one run."""


def compact(
    writer: HistoryWriter, snapshot: HistorySnapshot, batch_size: int, target_bytes: int
) -> HistorySnapshot:
    """Merge full levels; return the resulting version.

    A level is full with ``batch_size`` files.

    Each merge is a version of its own. A run that dies leaves at most an unreferenced file.

    ``batch_size`` is at least 2. Files that would together be larger than ``target_bytes`` are left
    as they are.
    """
    for level in range(TOP_LEVEL):
        while group := _group(snapshot.files, level, batch_size, target_bytes):
            name = HistoryFileName(
                min(file.name.first for file in group),
                max(file.name.last for file in group),
                level + 1,
            )
            parts = (writer.read(file, bodies=True) for file in group)
            merged = writer.put_file(snapshot, name, parts)
            left = [file for file in snapshot.files if file not in group]
            snapshot = writer.publish(snapshot, [*left, merged])
    return snapshot


def _group(
    files: Sequence[HistoryFile], level: int, batch_size: int, target_bytes: int
) -> Sequence[HistoryFile]:
    """Return adjacent oldest files of a level to merge.

    Empty for none.
    """
    candidates = sorted(file for file in files if file.name.level == level)
    if len(candidates) < batch_size:
        return ()
    group: list[HistoryFile] = []
    for file in candidates:
        if sum(one.size for one in group) + file.size > target_bytes:
            if len(group) > 1:
                break
            # too large to be merged with what comes after it
            group.clear()
            if file.size > target_bytes:
                continue
        group.append(file)
        if len(group) == batch_size:
            break
    return group if len(group) > 1 else ()


def prune(writer: HistoryWriter, snapshot: HistorySnapshot, published: int) -> None:
    """Delete old manifests, and history files without a manifest.

    Only after a version was published in the same hold of the lock: what an archiver that has lost
    its lock may just have written is then of no use to it, and may go.

    ``published`` is how many versions this run made: as many manifests stay in addition, so that
    readers keep the time of three archivals.
    """
    storage, folder = writer.storage, writer.folder
    names = [status.name for status in storage.list(folder)]
    versions = sorted(
        (number for name in names if (number := manifest_number(name)) is not None), reverse=True
    )
    kept = [number for number in versions if number <= snapshot.version]
    kept = kept[: KEPT_VERSIONS + max(published - 1, 0)]
    needed = set(snapshot.files)
    for number in kept:
        # no reader can use a damaged old manifest, so it needs no file
        with contextlib.suppress(CorruptMetadataError):
            needed.update(read_manifest(storage, folder, number))
    for number in versions:
        if number not in kept:
            storage.delete(manifest_path(folder, number))
    held = {file.name for file in needed}
    for name in names:
        parsed = HistoryFileName.parse(name)
        if parsed is not None and parsed not in held:
            storage.delete(join_path(folder, name))
