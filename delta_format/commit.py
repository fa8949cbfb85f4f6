"""Records an instant as one version, put if absent.

Compared and set on the version it was planned on.

An error of the store is no proof that nothing has happened: after each one the log is asked whether
it holds the instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from delta_format.actions import file_actions
from delta_format.change import Change
from delta_format.declarations import declared, next_declaration
from delta_format.foreign import require_ours
from delta_format.log import OF_INSTANT_KEY, REVOKED, STEP_KEY, Head, completed, open_log
from delta_format.log_actions import LogAction
from delta_format.schema import delta_schema, grown
from delta_format.vectors import PROPERTY, is_split
from delta_format.versions import WRITE, NewVersion, make_next
from hudi_core.spi import (
    TAKES_IN_KEY,
    Action,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    FormatCommit,
    IncompleteCommitError,
    Instant,
    MetaClientView,
    StorageError,
    instant_keys,
)

_ADD_COLUMNS: Final = "ADD COLUMNS"


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of an instant.

    ``operation`` is ``None`` where the action has none; ``parent`` is the version it builds on,
    ``None`` for the one that is read here.
    """

    instant: Instant
    operation: str | None = None
    parent: str | None = None

    def keys(self, change: Change) -> Mapping[str, str]:
        """Commit information of the version."""
        keys = instant_keys(self.instant, self.operation)
        return keys if change.taken is None else {**keys, TAKES_IN_KEY: change.taken.version}


def record(
    meta_client: MetaClientView, what: Record, change: Change, marks: Sequence[LogAction] = ()
) -> FormatCommit:
    """Record an instant in the log, unless it is there.

    ``marks`` are further transactions of the version. After :class:`CommitStateUnknownError` the
    version may be there.
    """
    head = open_log(meta_client)
    found = _receipt(head, what.instant)
    if found is not None:
        return found
    _require_recordable(meta_client, head, what, change)
    columns = _new_columns(meta_client, head, change)
    files = file_actions(meta_client, head, what.instant, change)
    operation = _ADD_COLUMNS if columns and not files else WRITE
    actions = [completed(what.instant, meta_client.config.zone), *marks, *columns, *files]
    return _make(meta_client, head, what, NewVersion(what.keys(change), actions, operation))


def step(
    meta_client: MetaClientView,
    head: Head,
    what: str,
    actions: Sequence[LogAction],
    *,
    of: Instant | Sequence[Instant] = (),
    operation: str = WRITE,
    with_checkpoint: bool = False,
) -> None:
    """Make a version that holds no instant.

    ``of`` are the instants it is made for, ``what`` is why. ``with_checkpoint``: a checkpoint is
    made even when none is due. The version behind a :class:`CommitConflictError` may be this very
    one.
    """
    base = head.version
    new = NewVersion(step_keys(what, of), actions, operation, with_checkpoint)
    try:
        make_next(meta_client, head, new)
    except StorageError as error:
        after = _reopen(meta_client, error)
        if after.version == base:
            raise _unknown(after, error) from error
        raise _moved(base, after) from error


def step_keys(what: str, of: Instant | Sequence[Instant] = ()) -> dict[str, Any]:
    """What a version reports of itself that holds no instant."""
    instants = (of,) if isinstance(of, Instant) else of
    if not instants:
        return {STEP_KEY: what}
    return {STEP_KEY: what, OF_INSTANT_KEY: ",".join(one.requested_time for one in instants)}


# --- one instant -----------------------------------------------------------------------------


def _make(
    meta_client: MetaClientView, head: Head, what: Record, version: NewVersion
) -> FormatCommit:
    """Make the version, in one attempt; on an error look."""
    base = head.version  # a checkpoint advances the handle
    try:
        make_next(meta_client, head, version)
    except StorageError as error:
        after = _reopen(meta_client, error)
        found = _receipt(after, what.instant)
        if found is not None:
            return found
        raise (_unknown(after, error) if after.version == base else _moved(base, after)) from error
    return FormatCommit(str(base + 1), head.root)


def _receipt(head: Head, instant: Instant) -> FormatCommit | None:
    found = head.publication(instant)
    return None if found is None else FormatCommit(found.version, head.root)


def _require_recordable(
    meta_client: MetaClientView, head: Head, what: Record, change: Change
) -> None:
    # a savepoint may be made again of the same commit
    is_savepoint = what.instant.action is Action.SAVEPOINT
    if head.recorded(what.instant) == REVOKED and not is_savepoint:
        raise IncompleteCommitError(
            f"Instant {what.instant.requested_time} was taken out of the Delta log of {head.root}",
            "It is being rolled back, or was. Run the write again.",
            instant=what.instant.requested_time,
        )
    require_ours(meta_client, head, change.taken, change.replaced)
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


def _new_columns(meta_client: MetaClientView, head: Head, change: Change) -> list[LogAction]:
    """What gives the log the columns that files of a change have."""
    if change.schema is None:
        return []
    with head.reading():
        known = declared(head.table)
    schema = grown(meta_client, known.schema, delta_schema(change.schema))
    more = {PROPERTY: "true"} if is_split(meta_client) else {}
    configuration = {**known.configuration, **more}
    return next_declaration(head, replace(known, schema=schema, configuration=configuration))
