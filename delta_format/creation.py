"""Making a table's Delta log, and finding it.

A log is made with a new table, when a table that has rows is given the format, and when it is
rebuilt. The present files come in one version, with the watermark for the instants before. A log
that is there and can go on gets that version as its next one. One whose columns cannot become the
table's is replaced by its next version; one that is damaged gives way to a new log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from delta_format.actions import new_adds, remove_action, with_vectors
from delta_format.change import Change, NewFile
from delta_format.commit import step, step_keys
from delta_format.declarations import (
    Declaration,
    declared,
    first_declaration,
    is_plain,
    next_declaration,
    require_removals_allowed,
    require_writable,
)
from delta_format.footers import described
from delta_format.foreign import require_ours
from delta_format.handles import forget_handles
from delta_format.location import LOG_FOLDER, require_same_root, root_of
from delta_format.log import Head, completion_millis, has_log, open_log, watermark_at
from delta_format.log_actions import LogAction
from delta_format.options import RETENTION_DAYS, TRANSACTION_RETENTION
from delta_format.partition import partition_columns
from delta_format.paths import plain, spelled
from delta_format.reports import forget_reports
from delta_format.schema import delta_schema, file_schema, grown
from delta_format.snapshot import LiveFile, Snapshot
from delta_format.vectors import FOLDER, PROPERTY, Vector, is_split, new_vectors, positions
from delta_format.versions import NewVersion, make_first
from hudi_core.spi import (
    CommitStateUnknownError,
    CorruptMetadataError,
    FileSlice,
    FileSystemViewManager,
    FormatCommit,
    Instant,
    MetaClientView,
    StorageError,
    UnsupportedTableError,
)
from hudi_core.spi.files import Positions, all_deleted_positions

_CREATE: Final = "create"
_REBUILD: Final = "rebuild"
_CREATE_TABLE: Final = "CREATE TABLE"
_CHECKPOINT_INTERVAL: Final = "10"
"""As in Delta of Spark. Every commit opens the log: what came since the last checkpoint is read."""


@dataclass(frozen=True, slots=True)
class _First:
    """What a log starts from, or goes on from.

    ``dead`` are positions of deleted rows by the paths of files, and ``last`` the newest instant.
    """

    schema: pa.Schema
    partition_by: list[str]
    files: tuple[NewFile, ...]
    watermark: tuple[LogAction, ...]
    dead: Mapping[str, Positions] = field(default_factory=dict)
    last: Instant | None = None


def check(meta_client: MetaClientView) -> None:
    """Refuse a table that can have no log; nothing is changed."""
    _properties(meta_client)
    require_same_root(meta_client)
    delta_schema(file_schema(meta_client))
    head = _readable(meta_client) if has_log(meta_client) else None
    if head is not None and not head.is_of_hudi:
        # a repair may replace a log that Hudi has made, but never the history of another writer
        require_writable(meta_client, head)


def made(meta_client: MetaClientView, view_manager: FileSystemViewManager) -> FormatCommit:
    """Make, or go on with, a log of the present files.

    When it raises :class:`UnsupportedTableError`, nothing has changed.
    """
    first = _first(meta_client, view_manager)
    if has_log(meta_client):
        _rebuild(meta_client, first)
    else:
        _make(meta_client, first)
    return opened(meta_client)


def opened(meta_client: MetaClientView) -> FormatCommit:
    """The newest version of the log."""
    head = open_log(meta_client, is_rebuilt=True)
    require_ours(meta_client, head)
    require_writable(meta_client, head)
    return FormatCommit(str(head.version), head.root)


def check_files(meta_client: MetaClientView, view_manager: FileSystemViewManager) -> None:
    """Refuse a table whose files cannot be in a log; nothing changes."""
    first = _first(meta_client, view_manager)
    _declaration(meta_client, first)
    _adds(meta_client, first, {})
    head = _readable(meta_client) if has_log(meta_client) else None
    if head is not None and is_plain(meta_client, head):
        require_removals_allowed(head)


# --- what there is ---------------------------------------------------------------------------


def _first(meta_client: MetaClientView, view_manager: FileSystemViewManager) -> _First:
    schema = file_schema(meta_client)
    partition_by = partition_columns(meta_client, schema)
    completed = [one for one in meta_client.timeline().instants if one.is_completed]
    if not completed:
        return _First(schema, partition_by, (), ())
    last = max(completed, key=lambda one: one.effective_completion_time)
    watermark = (watermark_at(completion_millis(last)),)
    slices = view_manager.view().latest_slices()
    files = meta_client.run_map(lambda one: _file(meta_client, one, schema), slices)
    named = tuple(file for file in files if file.rows)
    dead = all_deleted_positions(meta_client, slices) if is_split(meta_client) else {}
    return _First(schema, partition_by, named, watermark, dead, last)


def _file(meta_client: MetaClientView, one: FileSlice, schema: pa.Schema) -> NewFile:
    base = one.base_file
    if base is None or (one.log_files and not is_split(meta_client)):
        raise UnsupportedTableError(
            meta_client.base_path,
            f"has log files in {one.partition_path or 'its folder'}",
            "Compact the table first; the Delta format has no log files but those that delete rows "
            "by their positions, in tables of the mode split.",
        )
    rows, columns = described(meta_client, base.path, schema)
    return NewFile(base.path, base.size, rows, columns)


# --- making ----------------------------------------------------------------------------------


def _make(meta_client: MetaClientView, first: _First) -> None:
    wanted = _declaration(meta_client, first)
    actions = [
        *first.watermark,
        *first_declaration(meta_client.config.name, wanted),
        *_adds(meta_client, first, _vectors(meta_client, first)),
    ]
    try:
        make_first(meta_client, NewVersion(step_keys(_CREATE), actions, _CREATE_TABLE))
    except StorageError as error:
        if not has_log(meta_client):
            raise CommitStateUnknownError(
                f"The Delta log of {root_of(meta_client)} could not be made: {error}",
                "Try again once the store answers.",
            ) from error


def _rebuild(meta_client: MetaClientView, first: _First) -> None:
    head = _readable(meta_client)
    live = [] if head is None else list(Snapshot(head).files())
    is_respelled = head is not None and head.is_of_hudi and _is_misspelled(meta_client, live)
    if head is None or not is_plain(meta_client, head) or is_respelled:
        _begin_again(meta_client, first)
        return
    require_removals_allowed(head)
    wanted = {file.path for file in first.files}
    declaration = _continued(meta_client, head, first)
    if declaration is None:
        # another table takes the log's place, which readers see in one step
        if any(file.path in wanted for file in live):
            # no version may add a file and remove it
            _begin_again(meta_client, first)
            return
        known = declared(head.table).configuration
        # what else the owner has set may belong to features, which the new columns do not need
        kept = _with_properties(meta_client, known)
        declaration = replace(
            _declaration(meta_client, first),
            configuration={name: kept[name] for name in _properties(meta_client)},
        )
    vectors = _vectors(meta_client, first, live)
    gone = (
        remove_action(file)
        for file in live
        if file.path not in wanted or file.vector != vectors.get(file.path)
    )
    actions = [
        *first.watermark,
        *next_declaration(head, declaration),
        *gone,
        *_adds(meta_client, first, vectors, frozenset(file.path for file in live)),
    ]
    step(meta_client, head, _REBUILD, actions)


def _readable(meta_client: MetaClientView) -> Head | None:
    """The log where it is whole."""
    try:
        head = open_log(meta_client, is_rebuilt=True)
        len(Snapshot(head))
    except (CorruptMetadataError, UnsupportedTableError):
        return None
    return head


def _continued(meta_client: MetaClientView, head: Head, first: _First) -> Declaration | None:
    """Metadata with which the log can continue, if its columns allow."""
    known, wanted = declared(head.table), _declaration(meta_client, first)
    names = {field["name"] for field in known.schema["fields"]}
    if list(known.partition_by) != first.partition_by or not names <= set(first.schema.names):
        return None
    try:
        schema = grown(meta_client, known.schema, wanted.schema)
    except UnsupportedTableError:
        return None
    return replace(
        known, schema=schema, configuration=_with_properties(meta_client, known.configuration)
    )


def _is_misspelled(meta_client: MetaClientView, live: Iterable[LiveFile]) -> bool:
    """Whether a log spells a path otherwise than paths are spelled here.

    Files that were removed count: a vacuum of Delta of Spark that goes by them would delete the
    file that is present under the right spelling.
    """
    if any(file.spelling != spelled(plain(file.spelling)) for file in live):
        return True
    storage = meta_client.root
    versions = [one.path for one in storage.list(LOG_FOLDER) if one.name.endswith(".json")]
    return any(meta_client.run_map(lambda path: _misspells(storage.read(path)), versions))


def _misspells(data: bytes) -> bool:
    for line in data.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue  # older than a checkpoint that can be read, or the log were damaged
        action = found.get("add") or found.get("remove")
        if action and action["path"] != spelled(plain(action["path"])):
            return True
    return False


def _begin_again(meta_client: MetaClientView, first: _First) -> None:
    """Replace a log that cannot continue by a new one.

    Who reads the old one meanwhile sees what was there, or fails, and never an older state:
    checkpoints go first, then versions, the oldest first.
    """
    forget_handles()
    forget_reports()
    storage = meta_client.root
    names = [one.name for one in storage.list(LOG_FOLDER)]
    for name in sorted(names, key=lambda name: (name.endswith(".json"), name)):
        storage.delete(f"{LOG_FOLDER}/{name}")
    storage.delete_tree(LOG_FOLDER)
    storage.delete_tree(FOLDER)
    _make(meta_client, first)


# --- what a log says -------------------------------------------------------------------------


def _declaration(meta_client: MetaClientView, first: _First) -> Declaration:
    return Declaration(delta_schema(first.schema), first.partition_by, _properties(meta_client))


def _vectors(
    meta_client: MetaClientView, first: _First, live: Iterable[LiveFile] = ()
) -> dict[str, Vector]:
    """The vectors of the present files, by paths.

    One that is there, of the same rows, stays.
    """
    found = {
        file.path: file.vector
        for file in live
        if file.vector is not None and _has(meta_client, file.vector, first.dead.get(file.path))
    }
    new = {path: rows for path, rows in first.dead.items() if path not in found}
    return found if first.last is None else found | new_vectors(meta_client, first.last, new)


def _has(meta_client: MetaClientView, vector: Vector, rows: Positions | None) -> bool:
    """Whether a vector is that of some rows."""
    if rows is None or len(rows) != vector.cardinality:
        return False
    try:
        return bool((positions(meta_client, vector) == rows).all())
    except (CorruptMetadataError, StorageError):
        return False  # it is made again


def _adds(
    meta_client: MetaClientView,
    first: _First,
    vectors: Mapping[str, Vector],
    known: frozenset[str] = frozenset(),
) -> list[LogAction]:
    """Adds of the present files; those named already bring no rows."""
    old = tuple(file for file in first.files if file.path in known)
    new = tuple(file for file in first.files if file.path not in known)
    changes = (Change(old, schema=first.schema, same_rows=True), Change(new, schema=first.schema))
    return [
        add
        for one in changes
        for add in new_adds(meta_client, with_vectors(one, vectors), first.partition_by)
    ]


def _with_properties(meta_client: MetaClientView, known: Mapping[str, str]) -> dict[str, str]:
    """The properties of a log, with those that keep older file slices.

    What its owner has set stays, unless an option says otherwise.
    """
    is_asked = RETENTION_DAYS.name in meta_client.format_options
    wanted = _properties(meta_client)
    return {**known, **wanted} if is_asked else {**wanted, **known}


def _properties(meta_client: MetaClientView) -> dict[str, str]:
    """Table properties for other engines: protections, and the checkpoint interval.

    File slices of before are Hudi's to delete: readers travel to them, savepoints keep them. So a
    vacuum of another engine must not find a file old enough; and reports of versions stay.
    """
    days = RETENTION_DAYS.read(meta_client)
    return {
        "delta.deletedFileRetentionDuration": f"interval {days} days",
        "delta.logRetentionDuration": f"interval {days} days",
        "delta.enableExpiredLogCleanup": "false",
        "delta.checkpointInterval": _CHECKPOINT_INTERVAL,
        **TRANSACTION_RETENTION,
        **({PROPERTY: "true"} if is_split(meta_client) else {}),
    }
