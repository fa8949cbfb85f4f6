"""Recording an instant: one version, made by compare-and-set on the version it was planned on.

deltalake can repeat a commit that lost against another writer by itself, on top of what the other
one did, and does not see every conflict then; that is switched off. Nor is an error of it a proof
that nothing has happened: after each one the log is asked whether it holds the instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction

from delta_format.actions import file_actions
from delta_format.change import Change
from delta_format.library import LIBRARY_ERRORS
from delta_format.log import (
    OF_INSTANT_KEY,
    REVOKED,
    SCHEMA_STEP,
    STEP_KEY,
    Head,
    completed,
    open_log,
)
from delta_format.schema import added_fields, delta_schema
from hudi_core.spi import (
    ACTION_KEY,
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    OPERATION_KEY,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    FormatCommit,
    IncompleteCommitError,
    Instant,
    MetaClientView,
    StorageError,
)

_AFTERWARDS: Final = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)

Write = Callable[[Head], object]
"""Makes the version after a head, or raises."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of an instant.

    Attributes
    ----------
    instant
        The completed instant.
    operation
        The write operation; ``None`` where the action has none.
    parent
        The version it builds on, where that was recorded before step 1.
    """

    instant: Instant
    operation: str | None = None
    parent: str | None = None

    def keys(self) -> dict[str, Any]:
        """Return what the version reports of itself."""
        instant = self.instant
        found = {
            INSTANT_KEY: instant.requested_time,
            ACTION_KEY: str(instant.action.completed_action),
            OPERATION_KEY: self.operation,
            COMPLETION_TIME_KEY: instant.effective_completion_time,
        }
        return {key: value for key, value in found.items() if value is not None}


def record(meta_client: MetaClientView, what: Record, change: Change) -> FormatCommit:
    """Make the log hold an instant; does nothing when it holds it already.

    Raises
    ------
    CommitConflictError
        The log is at another version than it should be, or a foreign writer has written to it.
    IncompleteCommitError
        The instant was taken out of the log.
    CommitError, UnsupportedTableError
        What the commit says does not agree with its files, or Delta cannot hold it.
    CommitStateUnknownError
        The store failed, and whether the version is there cannot be told.
    """
    head = open_log(meta_client)
    found = _receipt(head, what.instant)
    if found is not None:
        return found
    _require_recordable(head, what)
    head = _settle_schema(meta_client, head, what, change)
    properties = commit_properties(what.keys(), completed(what.instant))
    fields = _new_columns(meta_client, head, change)
    if fields:
        # no files come with a change of columns
        write: Write = lambda head: head.table.alter.add_columns(  # noqa: E731
            fields, commit_properties=properties, post_commithook_properties=_AFTERWARDS
        )
    else:
        actions = file_actions(meta_client, head, change)
        write = lambda head: write_actions(head.table, actions, properties)  # noqa: E731
    return _make(meta_client, head, what, write)


def commit_properties(keys: Mapping[str, Any], *transactions: Transaction) -> CommitProperties:
    """Return how every version is made: once, on the version that was read."""
    return CommitProperties(
        custom_metadata=dict(keys), max_commit_retries=0, app_transactions=list(transactions)
    )


def step(
    meta_client: MetaClientView,
    head: Head,
    what: str,
    of: Instant | None,
    *transactions: Transaction,
) -> None:
    """Make a version that holds no instant and changes no file.

    Raises
    ------
    CommitConflictError, CommitStateUnknownError
        Another version was made in between, or the store failed.
    """
    properties = commit_properties(step_keys(what, of), *transactions)
    once(meta_client, head, lambda head: write_actions(head.table, [], properties))


def step_keys(what: str, of: Instant | None) -> dict[str, Any]:
    """Return what a version reports of itself that holds no instant."""
    return {STEP_KEY: what} | ({} if of is None else {OF_INSTANT_KEY: of.requested_time})


def write_actions(
    table: DeltaTable, actions: list[AddAction | RemoveAction], properties: CommitProperties
) -> None:
    """Make a version with these actions."""
    table.create_write_transaction(
        actions,
        "append",
        table.schema(),
        table.metadata().partition_columns,
        commit_properties=properties,
        post_commithook_properties=_AFTERWARDS,
    )


def once(meta_client: MetaClientView, head: Head, write: Write) -> None:
    """Make a version that carries no instant by which it could be found again.

    Raises
    ------
    CommitConflictError
        Another version is there now, which may be the one.
    CommitStateUnknownError
        The store failed.
    """
    base = head.version
    try:
        write(head)
    except LIBRARY_ERRORS as error:
        after = _reopen(meta_client, error)
        if after.version == base:
            raise _unknown(after, error) from error
        raise _moved(base, after) from error


# --- one instant -----------------------------------------------------------------------------


def _make(meta_client: MetaClientView, head: Head, what: Record, write: Write) -> FormatCommit:
    """Make the version, in one attempt; on an error look."""
    base = head.version  # some calls of the library advance the handle
    try:
        write(head)
    except LIBRARY_ERRORS as error:
        after = _reopen(meta_client, error)
        found = _receipt(after, what.instant)
        if found is not None:
            return found
        raise (_unknown(after, error) if after.version == base else _moved(base, after)) from error
    return FormatCommit(str(base + 1), head.root)


def _receipt(head: Head, instant: Instant) -> FormatCommit | None:
    found = head.publication(instant)
    return None if found is None else FormatCommit(found.version, head.root)


def _require_recordable(head: Head, what: Record) -> None:
    if head.recorded(what.instant) == REVOKED:
        raise IncompleteCommitError(
            f"Instant {what.instant.requested_time} was taken out of the Delta log of {head.root}",
            "It is being rolled back, or was. Run the write again.",
            instant=what.instant.requested_time,
        )
    head.require_ours()
    head.require_parent(what.parent, what.instant)


def _reopen(meta_client: MetaClientView, error: BaseException) -> Head:
    try:
        return open_log(meta_client)
    except (CorruptMetadataError, StorageError) as unreadable:
        raise CommitStateUnknownError(
            f"A commit to the Delta log of {meta_client.base_path} failed ({error}), and the log "
            f"cannot be read now ({unreadable.what})",
            "Nothing was deleted. The next writer finds out what has happened.",
        ) from error


def _moved(base: int, after: Head) -> CommitConflictError:
    return CommitConflictError(
        f"The Delta log of {after.root} went from version {base} to {after.version} while "
        "a commit to it was under way",
        "Run the write again.",
        version=after.version,
    )


def _unknown(head: Head, error: BaseException | None) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"A commit to the Delta log of {head.root} failed: {error}",
        "It may land yet: the next writer finds out what has happened.",
        version=head.version,
    )


# --- columns -----------------------------------------------------------------------


def _wanted(change: Change) -> Schema | None:
    return None if change.schema is None else delta_schema(change.schema)


def _new_columns(meta_client: MetaClientView, head: Head, change: Change) -> list[Any]:
    wanted = _wanted(change)
    return [] if wanted is None else added_fields(meta_client, head.table.schema(), wanted)


def _settle_schema(meta_client: MetaClientView, head: Head, what: Record, change: Change) -> Head:
    """Add the columns that files of this change have, in a version of its own before theirs.

    The library has no call for both at once. A crash in between leaves columns without values.
    """
    fields = _new_columns(meta_client, head, change)
    if not fields or not (change.new_files or change.old_groups):
        return head
    properties = commit_properties(step_keys(SCHEMA_STEP, what.instant))
    once(
        meta_client,
        head,
        lambda head: head.table.alter.add_columns(fields, commit_properties=properties),
    )
    return open_log(meta_client)
