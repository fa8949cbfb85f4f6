"""Making a table's Delta log, and finding it.

A log is made with a new table, when a table that has rows is given the format, and when it is made
anew. The present files come in one version, with the watermark for the instants before. A log that
is there and can go on gets that version as its next one. One whose columns cannot become the
table's is replaced by its next version; one that is damaged gives way to a new log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
from deltalake import PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from delta_format.actions import new_adds, remove_action
from delta_format.change import Change, NewFile
from delta_format.commit import commit_properties, once, step_keys, write_actions
from delta_format.footers import described
from delta_format.handles import forget_handles
from delta_format.library import LIBRARY_ERRORS
from delta_format.location import LOG_FOLDER, root_of, store_options, table_uri
from delta_format.log import (
    SCHEMA_STEP,
    Head,
    completion_millis,
    has_log,
    open_log,
    watermark_at,
)
from delta_format.partition import partition_columns
from delta_format.schema import added_fields, delta_schema, file_schema
from delta_format.snapshot import Snapshot
from hudi_core.spi import (
    CommitStateUnknownError,
    CorruptMetadataError,
    FileSlice,
    FileSystemViewManager,
    FormatCommit,
    InvalidOptionError,
    MetaClientView,
    UnsupportedTableError,
)

_CREATE: Final = "create"
_REBUILD: Final = "rebuild"
_RETENTION: Final = "retention"
_RETENTION_OPTION: Final = "deleted-file-retention-days"
_RETENTION_DAYS: Final = "36500"
_MAX_DAYS: Final = 36500
_CHECKPOINT_INTERVAL: Final = "10"
"""As in Delta of Spark. Every commit opens the log: what came since the last checkpoint is read."""


@dataclass(frozen=True, slots=True)
class _First:
    """What a log starts from, or goes on from."""

    schema: pa.Schema
    partition_by: list[str]
    files: tuple[NewFile, ...]
    watermark: tuple[Transaction, ...]


def find_or_make(
    meta_client: MetaClientView, view_manager: FileSystemViewManager, *, create: bool, rebuild: bool
) -> FormatCommit:
    """Return the newest version of a table's log, which is made where that is asked for.

    Raises
    ------
    CorruptMetadataError
        There is no log, and none is to be made; or it is damaged.
    CommitConflictError
        Another writer than Hudi has written to the log.
    UnsupportedTableError
        Delta cannot hold a column or a file of the table; nothing has changed.
    """
    if create and not has_log(meta_client):
        _make(meta_client, _first(meta_client, view_manager))
    elif rebuild:
        _make_anew(meta_client, _first(meta_client, view_manager))
    head = open_log(meta_client, is_anew=True)
    head.require_ours()
    return FormatCommit(str(head.version), head.root)


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
    return _First(schema, partition_by, tuple(file for file in files if file.rows), watermark)


def _file(meta_client: MetaClientView, one: FileSlice, schema: pa.Schema) -> NewFile:
    base = one.base_file
    if base is None or one.log_files:
        raise UnsupportedTableError(
            meta_client.base_path,
            f"has log files in {one.partition_path or 'its folder'}",
            "Compact the table first; the Delta format holds copy-on-write tables.",
        )
    rows, columns = described(meta_client, base.path, schema)
    return NewFile(base.path, base.size, rows, columns)


# --- making ----------------------------------------------------------------------------------


def _create(
    meta_client: MetaClientView,
    first: _First,
    mode: Literal["error", "overwrite"],
    step: str,
    configuration: Mapping[str, str],
) -> None:
    change = Change(first.files, schema=first.schema)
    create_table_with_add_actions(
        table_uri(meta_client),
        delta_schema(first.schema),
        new_adds(meta_client, change, first.partition_by),
        mode=mode,
        partition_by=first.partition_by,
        name=meta_client.config.name,
        configuration=dict(configuration),
        storage_options=store_options(meta_client),
        commit_properties=commit_properties(step_keys(step, None), *first.watermark),
        post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
    )


def _make(meta_client: MetaClientView, first: _First) -> None:
    try:
        _create(meta_client, first, "error", _CREATE, _properties(meta_client))
    except LIBRARY_ERRORS as error:
        if not has_log(meta_client):
            raise CommitStateUnknownError(
                f"The Delta log of {root_of(meta_client)} could not be made: {error}",
                "Try again once the store answers.",
            ) from error


def _make_anew(meta_client: MetaClientView, first: _First) -> None:
    head = _readable(meta_client)
    if head is None:
        _discard(meta_client)
        _make(meta_client, first)
        return
    if not _goes_on(meta_client, head, first):
        _replace(meta_client, head, first)
        return
    fields = _missing_columns(meta_client, head, first)
    if fields:
        keys = commit_properties(step_keys(SCHEMA_STEP, None))
        once(
            meta_client,
            head,
            lambda head: head.table.alter.add_columns(fields, commit_properties=keys),
        )
        head = open_log(meta_client)
    head = _retained(meta_client, head)
    actions = _actions(meta_client, head, first)
    keys = commit_properties(step_keys(_REBUILD, None), *first.watermark)
    once(meta_client, head, lambda head: write_actions(head.table, actions, keys))


def _readable(meta_client: MetaClientView) -> Head | None:
    """Return the log where it is whole."""
    try:
        head = open_log(meta_client, is_anew=True)
        len(Snapshot(head))
    except (CorruptMetadataError, UnsupportedTableError):
        return None
    return head


def _goes_on(meta_client: MetaClientView, head: Head, first: _First) -> bool:
    """Tell whether the log's columns can become the table's."""
    if head.table.metadata().partition_columns != first.partition_by:
        return False
    try:
        _missing_columns(meta_client, head, first)
    except UnsupportedTableError:
        return False
    return {field.name for field in head.table.schema().fields} <= set(first.schema.names)


def _replace(meta_client: MetaClientView, head: Head, first: _First) -> None:
    """Let another table take the log's place in its next version, which readers see in one step."""
    live = {file.path for file in Snapshot(head).files()}
    if live.intersection(file.path for file in first.files):
        # no version may add a file and remove it
        _discard(meta_client)
        _make(meta_client, first)
        return
    known, missing = head.table.metadata().configuration, _missing_properties(meta_client, head)
    # what else the owner has set may belong to features, which the new columns do not need
    kept = {name: missing.get(name, known.get(name, "")) for name in _properties(meta_client)}
    once(meta_client, head, lambda _: _create(meta_client, first, "overwrite", _REBUILD, kept))


def _discard(meta_client: MetaClientView) -> None:
    """Delete the log. Who reads it meanwhile sees what was there, or fails, and never an older
    state: checkpoints go first, then versions, the oldest first."""
    forget_handles()
    storage = meta_client.storage
    names = [one.name for one in storage.list(LOG_FOLDER)]
    for name in sorted(names, key=lambda name: (name.endswith(".json"), name)):
        storage.delete(f"{LOG_FOLDER}/{name}")
    storage.delete_tree(LOG_FOLDER)


def _missing_columns(meta_client: MetaClientView, head: Head, first: _First) -> list[Any]:
    wanted = delta_schema(first.schema)
    return added_fields(meta_client, head.table.schema(), wanted)


def _actions(
    meta_client: MetaClientView, head: Head, first: _First
) -> list[AddAction | RemoveAction]:
    """Return what makes the present files the log's, described anew; the others go."""
    live = {file.path: file for file in Snapshot(head).files()}
    wanted = {file.path for file in first.files}
    gone = [remove_action(file) for path, file in live.items() if path not in wanted]
    known = tuple(file for file in first.files if file.path in live)
    unknown = tuple(file for file in first.files if file.path not in live)
    described_anew = Change(known, schema=first.schema, same_rows=True)
    come = Change(unknown, schema=first.schema)
    return [
        *gone,
        *new_adds(meta_client, described_anew, first.partition_by),
        *new_adds(meta_client, come, first.partition_by),
    ]


def _retained(meta_client: MetaClientView, head: Head) -> Head:
    """Give a log of another writer the properties that keep older file slices.

    What its owner has set stays, unless an option says otherwise.
    """
    wanted = _missing_properties(meta_client, head)
    if not wanted:
        return head
    keys = commit_properties(step_keys(_RETENTION, None))
    once(
        meta_client,
        head,
        lambda head: head.table.alter.set_table_properties(wanted, commit_properties=keys),
    )
    return open_log(meta_client)


def _missing_properties(meta_client: MetaClientView, head: Head) -> dict[str, str]:
    """Return the properties that a log has not, or has otherwise than an option says."""
    known = head.table.metadata().configuration
    is_asked = _RETENTION_OPTION in meta_client.format_options
    return {
        name: value
        for name, value in _properties(meta_client).items()
        if name not in known or (is_asked and known[name] != value)
    }


def _properties(meta_client: MetaClientView) -> dict[str, str]:
    """Return what other engines are to respect, and how often they leave a checkpoint.

    File slices of before are Hudi's to delete: readers travel to them, savepoints keep them. So a
    vacuum of another engine must not find a file old enough; and reports of versions stay.
    """
    days = meta_client.format_options.get(_RETENTION_OPTION, _RETENTION_DAYS)
    if not (days.isascii() and days.isdigit() and 0 < int(days) <= _MAX_DAYS):
        raise InvalidOptionError(
            f"hoodie.table.format.delta.{_RETENTION_OPTION}",
            days,
            "it is no number of days",
            f"Give a number from 1 to {_MAX_DAYS}.",
        )
    return {
        "delta.deletedFileRetentionDuration": f"interval {int(days)} days",
        "delta.logRetentionDuration": f"interval {int(days)} days",
        "delta.enableExpiredLogCleanup": "false",
        "delta.checkpointInterval": _CHECKPOINT_INTERVAL,
    }
