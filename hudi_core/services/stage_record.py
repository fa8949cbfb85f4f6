"""The record of a stage: rows, operation, base, expiry.

A stage is a folder below ``.hoodie/.stage``: its rows as they came (``rows``), the files that a
write of them would leave (``data``), and this record, which is put last. A folder without one is
unfinished, and is ignored. The record keeps options for the publication, and is checked with the
table before it.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.option_warnings import OPTIONS
from hudi_core.config.options import Group
from hudi_core.config.validators import ValidatorsConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    HudiError,
    InvalidInstantTimeError,
    InvalidOptionError,
    PathNotFoundError,
    PreconditionFailedError,
    StageConflictError,
    UnknownStageError,
)
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_core.model.conflicts import completed_since
from hudi_core.model.extra_metadata import OWN_PREFIX, checked_metadata
from hudi_core.model.files import FileGroupId, FileId, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, instant_time_of, parse_instant_time
from hudi_core.model.operation import Operation, operation_named
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.temp_folders import STAGES_FOLDER
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_commit, decode_replace_commit, encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.conflicts import require_no_conflicts
from hudi_core.write.replacing import replaced_groups

_log = logging.getLogger(__name__)

_RECORD: Final = "stage.json"
_MAX_BYTES: Final = 1 << 28
_VERSION: Final = 1
_ID: Final = re.compile(r"[0-9]{17}-[0-9]{8}")
_LARGEST_OFFSET: Final = 26
"""Hours between the clocks of two zones, at most."""
_ROWS: Final = re.compile(r"[0-9]+-[0-9]+\.arrow")


@dataclass(frozen=True, slots=True)
class StageRecord:
    """The record.

    ``id`` names the stage and its folder. ``base`` is the completion time of the last write that
    the stage builds on; ``None`` for an empty table. ``columns`` is the table's Avro schema then,
    as JSON; ``schema`` the columns of the rows. ``rows`` are names of files, in order. ``metadata``
    is what the write would commit, with the paths of its files in the stage. ``expires`` is until
    when it can be published.
    """

    id: str
    operation: Operation
    options: Mapping[str, str]
    extra_metadata: Mapping[str, str]
    created: datetime
    expires: datetime
    base: InstantTime | None
    columns: str
    rows: tuple[str, ...]
    schema: pa.Schema
    metadata: CommitMetadata

    @property
    def folder(self) -> str:
        """The stage's folder, relative to the table."""
        return stage_folder(self.id)

    @property
    def instant(self) -> InstantTime:
        """The stage's files have it as the time of the write."""
        return InstantTime(self.id.partition("-")[0])

    def is_expired(self) -> bool:
        """Whether it cannot be published any more."""
        return datetime.now(UTC) > self.expires

    def put(self, storage: Storage) -> None:
        """Store the record of a new stage."""
        storage.put(f"{self.folder}/{_RECORD}", self._encoded())

    def extended(self, storage: Storage, until: datetime) -> StageRecord:
        """The record with a later expiry, stored in place of this one."""
        path = f"{self.folder}/{_RECORD}"
        later = replace(self, expires=max(self.expires, until))
        data = later._encoded()
        while True:
            try:
                storage.compare_and_set(path, data, storage.version(path)[1])
            except PathNotFoundError as error:
                storage.delete_tree(self.folder)  # an attempt to store it may have made it again
                raise UnknownStageError(storage.root, self.id) from error
            except PreconditionFailedError:
                continue  # deleted, or extended by another who publishes it
            return later

    def is_stored(self, storage: Storage) -> bool:
        """Whether it was neither published nor dropped."""
        return storage.head(f"{self.folder}/{_RECORD}") is not None

    def _encoded(self) -> bytes:
        document = {
            "version": _VERSION,
            "operation": self.operation.method,
            "options": dict(self.options),
            "extra_metadata": dict(self.extra_metadata),
            "created": self.created.isoformat(),
            "expires": self.expires.isoformat(),
            "base": self.base,
            "columns": self.columns,
            "rows": list(self.rows),
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "metadata": base64.b64encode(encode(self.metadata)).decode(),
        }
        return json.dumps(document).encode()

    @classmethod
    def load(cls, storage: Storage, stage: str) -> StageRecord:
        """The record of a stage."""
        path = f"{stage_folder(stage)}/{_RECORD}"
        try:
            if _ID.fullmatch(stage) is None:
                raise UnknownStageError(storage.root, stage)
            return cls._parsed(stage, json.loads(storage.read(path, _MAX_BYTES)), path)
        except PathNotFoundError as error:
            raise UnknownStageError(storage.root, stage) from error
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
            OSError,
            InvalidInstantTimeError,
            InvalidOptionError,
            pa.ArrowException,
        ) as error:
            where, reason = f"{storage.root}/{path}", f"it is no record of a stage ({error})"
            raise CorruptMetadataError(where, reason, "Drop the stage.") from error

    @classmethod
    def _parsed(cls, stage: str, document: Any, path: str) -> StageRecord:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']}")
        parse_instant_time(stage.partition("-")[0])
        operation, rows = operation_named(document["operation"]), tuple(document["rows"])
        for name in rows:
            if _ROWS.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of a file with rows")
        decode = decode_replace_commit if operation.is_replacing else decode_commit
        schema = base64.b64decode(document["schema"], validate=True)
        return cls(
            stage,
            operation,
            kept_options({str(key): str(text) for key, text in document["options"].items()}),
            checked_metadata(dict(document["extra_metadata"])),
            _aware(document["created"]),
            _aware(document["expires"]),
            None if document["base"] is None else parse_instant_time(document["base"]),
            str(document["columns"]),
            rows,
            pa.ipc.read_schema(pa.BufferReader(schema)),
            decode(base64.b64decode(document["metadata"], validate=True), path),
        )


def _aware(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no zone")
    return found


def stage_folder(stage: str) -> str:
    """Folder of a stage, relative to the table."""
    return f"{STAGES_FOLDER}/{stage}"


def stage_ids(storage: Storage) -> list[str]:
    """Names of all stages, unfinished ones too, the oldest first."""
    names = (folder.rpartition("/")[2] for folder in storage.list_folders(STAGES_FOLDER))
    return sorted(name for name in names if _ID.fullmatch(name))


def stage_records(storage: Storage) -> Iterator[StageRecord]:
    """Yield the stages of a table, the oldest first.

    Logs those that are damaged.
    """
    for name in stage_ids(storage):
        try:
            yield StageRecord.load(storage, name)
        except UnknownStageError:
            continue  # unfinished, or gone since
        except CorruptMetadataError as error:
            _log.warning("stage %s is passed over: %s", name, error)


def delete_expired_stages(storage: Storage, hours: int) -> None:
    """Delete the stages of a table that have expired.

    Logs those that are damaged.

    An unfinished stage has no expiry; it goes once it is ``hours`` old.
    """
    # the times of the table, which its stages are named by, may be in any zone
    oldest = instant_time_of(datetime.now(UTC) - timedelta(hours=hours + _LARGEST_OFFSET))
    for name in stage_ids(storage):
        try:
            gone = StageRecord.load(storage, name).is_expired()
        except UnknownStageError:
            gone = name < oldest
        except CorruptMetadataError as error:
            _log.warning("stage %s is kept, whose expiry is not known: %s", name, error)
            continue
        if gone:
            delete_stage(storage, name)


def drop_stage(storage: Storage, stage: str) -> None:
    """Delete a stage, be it expired, unfinished or damaged."""
    if stage not in stage_ids(storage):
        raise UnknownStageError(storage.root, stage)
    delete_stage(storage, stage)


def delete_stage(storage: Storage, stage: str) -> None:
    """Delete a stage.

    Its record goes first: without it the rest is ignored.
    """
    storage.delete(f"{stage_folder(stage)}/{_RECORD}")
    storage.delete_tree(stage_folder(stage))


# --- options of stages ----------------------------------------------------------------------------

_OF_PUBLISHERS: Final = (
    *ValidatorsConfig.keys,
    # which options are copied into the commit: of the publisher's they may be credentials
    CommitConfig.metadata_prefix,
    WriteConfig.heartbeat_interval_ms,
    WriteConfig.heartbeat_misses,
    WriteConfig.auto_upgrade,
    WriteConfig.markers_type,
)
"""Options of writes that say nothing about the rows: publishers bring their own."""
_KEPT: Final = frozenset(
    name
    for key in (
        *(key for one in OPTIONS if one.group is Group.WRITE for key in one.keys),
        MergeKeys.partial_update_mode,
    )
    if key not in _OF_PUBLISHERS
    for name in key.names
)


def kept_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those that say how the rows are written.

    All others come with the table that the publisher opened. The record of a stage is a file that
    others can change: it must decide nothing about locks, services, stores or what SQL is run.
    """
    return {key: text for key, text in options.items() if key in _KEPT}


# --- what a publication is checked for ------------------------------------------------------------

STAGE_KEY: Final = f"{OWN_PREFIX}stage"
"""Key of extra metadata: the stage that a commit published."""
_LOOKED_AT: Final = 100
"""Archived instants among which one would be that completed since a stage was made."""


class PublishedError(HudiError):
    """A stage was published by another process, or before a crash."""

    def __init__(self, instant: InstantTime) -> None:
        self.instant = instant
        super().__init__(f"The stage was published as instant {instant}", "Nothing is to be done.")


def require_publishable(table: OpenTable, seen: TimelineView, record: StageRecord) -> None:
    """Refuse a stage whose publication would not give what was checked.

    ``seen`` is fenced by the table's format. Refused are changes to file groups or columns that the
    stage builds on, and inserts of its keys, since then; an expired stage; and one since which it
    is not known any more what happened.
    """
    began = require_unpublished(table, seen, record)
    reason = _obstacle(table, seen, record)
    if reason is not None:
        raise StageConflictError(table.client.base_path, record.id, reason)
    instant = Instant(record.instant, Action.COMMIT, State.INFLIGHT)
    try:
        require_no_conflicts(table, record.metadata, instant, began, seen)
    except CommitConflictError as error:
        raise StageConflictError(table.client.base_path, record.id, error.what) from error


def require_as_checked(base_path: str, record: StageRecord, metadata: CommitMetadata) -> None:
    """Refuse a publication that changes rows the stage did not find.

    Keys that were not there when the rows were staged leave no file in the stage, so that what a
    deletion or a change of them does to rows that others inserted since could not be checked.
    """
    found = {group for group, _ in _stats(record.metadata)}
    for group, stat in _stats(metadata):
        # in a split table changed rows come into new groups, and logs delete them elsewhere
        is_new = stat.prev_commit == NO_PREVIOUS_COMMIT
        changes = stat.num_deletes or stat.num_update_writes or stat.log_files
        if group not in found and changes and not is_new:
            what = "delete" if stat.num_deletes else "change"
            shown = f"file group {group.file_id} of partition {group.partition_path!r}"
            reason = f"it would {what} rows that others inserted since with its keys, in {shown}"
            raise StageConflictError(base_path, record.id, reason)


def _stats(metadata: CommitMetadata) -> Iterator[tuple[FileGroupId, WriteStat]]:
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            yield FileGroupId(PartitionPath(path), FileId(stat.file_id or "")), stat


def require_unpublished(table: OpenTable, seen: TimelineView, record: StageRecord) -> Timeline:
    """The instants that a stage builds on, unless it was published."""
    base = record.base
    known = (one for one in seen.instants if one.is_completed)
    older = [one for one in known if base is not None and one.effective_completion_time <= base]
    began = Timeline.of(older)
    for one in completed_since(began, seen):
        notes = table.client.active.read_notes(one)
        if notes.extra_metadata.get(STAGE_KEY) == record.id:
            raise PublishedError(one.requested_time)
    return began


def _obstacle(table: OpenTable, seen: TimelineView, record: StageRecord) -> str | None:
    """Why a stage cannot be published; ``None`` where it can."""
    if record.is_expired():
        return f"it expired at {record.expires.isoformat(timespec='seconds')}"
    client, base = table.client, record.base
    archived = [one.instant for one in client.archived.newest(_LOOKED_AT)]
    if any(base is None or one.effective_completion_time > base for one in archived):
        return "writes since have been archived, so it is not known what they changed"
    config = client.config
    columns = TableSchema.from_avro(record.columns, config.field_ids, config.last_column_id)
    if client.schema_at(seen) != columns:
        return "the columns of the table have changed since"
    return _changed_group(table, seen, record)


def _changed_group(table: OpenTable, seen: TimelineView, record: StageRecord) -> str | None:
    """Name a file group that is not as the stage found it."""
    metadata, operation = record.metadata, record.operation
    built_on = {
        group: before
        for group, stat in _stats(metadata)
        if (before := stat.base_before[0]) not in (None, NO_PREVIOUS_COMMIT)
    }
    if not (built_on or operation.is_replacing):
        return None
    view = table.views().view(seen)
    now = {
        one.group: one.base_instant
        for one in view.latest_slices(sorted({group.partition_path for group in built_on}))
    }
    for group, instant in built_on.items():
        if now.get(group) != instant:
            shown = f"file group {group.file_id} of partition {group.partition_path!r}"
            return f"{shown} has changed since"
    if operation.is_replacing:
        written = [PartitionPath(path) for path in metadata.partition_to_write_stats]
        replaced = getattr(metadata, "partition_to_replace_file_ids", {})
        partitions = sorted({*written, *map(PartitionPath, replaced)})
        if replaced_groups(view, operation, partitions) != dict(replaced):
            return "partitions that it overwrites have changed since"
    return None
