"""Step 2: publishes completed instants in the table's format.

RFC-93, "Commit Protocol". No error means that nothing has happened: the answer to a commit that
took place may be lost, and a request may land after it was given up. So after *any* error the
format is asked whether it holds the instant. If it does, the step was taken; the hook is called
again, a few times, only where the format is still in the state that the commit builds on. What
stays open is said to be open, and nothing is deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Final

from hudi_core.config.format_option import LOCATION
from hudi_core.errors import (
    CommitStateUnknownError,
    ForeignCommitError,
    HudiError,
    IncompleteCommitError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.capability import Capability
from hudi_core.model.commit import (
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStatus,
)
from hudi_core.model.extra_metadata import taken_in_by_format
from hudi_core.model.format import PARENT_KEY, FormatCommit, Publication
from hudi_core.model.instant import Instant
from hudi_core.plugin.several import join_versions
from hudi_core.table_handle import OpenTable

_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.1
_log = logging.getLogger(__name__)


class PublicationRejectedError(HudiError):
    """An instant may not be published any more.

    Something else has come between its two steps.
    """


def is_two_step(table: OpenTable) -> bool:
    """Return whether the table's format has a step 2."""
    return Capability.SINGLE_STEP not in table.host.capabilities


def publish_once(
    table: OpenTable,
    metadata: CommitMetadata,
    completed: Instant,
    statuses: Sequence[WriteStatus] = (),
) -> FormatCommit:
    """Publish a completed write in the format, once.

    Runs under the table's lock.

    ``metadata`` is the body of the completed instant. Without ``statuses`` the format reads the
    footers of the files.
    """
    client, host = table.client, table.host
    expected = metadata.extra_metadata.get(PARENT_KEY)
    match metadata.operation_type:
        case WriteOperation.ALTER_SCHEMA:
            return host.complete_schema_change(client, metadata, completed, expected)
        case WriteOperation.CLUSTER if isinstance(metadata, ReplaceCommitMetadata):
            # guard is-one-change
            return host.complete_clustering(client, metadata, completed, statuses, expected)
        case WriteOperation.COMPACT:
            return host.complete_compaction(client, metadata, completed, statuses, expected)
        case WriteOperation.LOG_COMPACT:
            return host.complete_log_compaction(client, metadata, completed, statuses, expected)
        case _:
            return host.complete_write(client, metadata, completed, statuses, expected)


def publish_with_retry(
    table: OpenTable,
    instant: Instant,
    call: Callable[[], FormatCommit],
    recheck: Callable[[], None] = lambda: None,
) -> FormatCommit:
    """Call a ``complete_*`` hook until the outcome is known.

    ``call`` must be idempotent. ``recheck`` runs between two attempts, and raises where the instant
    may not be published any more. After :class:`CommitStateUnknownError` the format does not hold
    the instant, but may do so later.
    """
    failed: HudiError | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_S * attempt)
        try:
            return call()  # step publish
        except HudiError as error:
            failed = error
            if table.client.held is not None:
                table.client.held.value = None
            _log.info("step 2 of %s failed", instant, exc_info=True)
        held = _held(table, instant, failed)
        if held is not None:
            _log.warning("the %s format holds %s, and failed: %s", table.host.name, instant, failed)
            return _receipt(table, held, call)
        if isinstance(failed, IncompleteCommitError):
            raise PublicationRejectedError(failed.what, failed.hint) from failed
        recheck()
    raise unknown(table, instant, failed)


def head(table: OpenTable, instant: Instant, metadata: CommitMetadata) -> str:
    """Return the version of the format's state; under the lock.

    ``metadata`` may take in what others have committed to the format.
    :class:`CommitStateUnknownError` also means that nothing may be built on the version.
    """
    try:
        return opened_version(table, taken_in_by_format(metadata.extra_metadata))
    except HudiError as error:
        raise unknown(table, instant, error) from error


def parent_of(table: OpenTable, taken: Container[str] = ()) -> str | None:
    """Return the format's version that a write builds on; under the lock.

    To be read before the timeline that is looked at for conflicts: a lease may run out, and what
    its old holder publishes in between then makes step 2 fail.

    ``taken`` names the formats of which the write takes in what others have committed.
    """
    # step record-parent
    return present_version(table, taken)


def present_version(table: OpenTable, taken: Container[str] = ()) -> str | None:
    """Return the format's present version; under the lock.

    ``None`` for a format without step 2.

    ``taken`` names the formats whose present version may be another writer's; in another format it
    is a :class:`ForeignCommitError`.
    """
    return opened_version(table, taken) if is_two_step(table) else None


def version_of_any_writer(table: OpenTable) -> str | None:
    """Return the format's present version, of any writer; under the lock."""
    return present_version(table, [one.host.name for one in table.each()])


def opened_version(table: OpenTable, taken: Container[str] = ()) -> str:
    """Open the format's metadata, and return its version; see :func:`present_version`."""
    try:
        return table.host.open(table.client).version
    except ForeignCommitError:
        if not any(one.host.name in taken for one in table.each()):
            raise
    each = {one.host.name: _foreign_version(one, taken) for one in table.each()}
    return join_versions(each) if len(each) > 1 else next(iter(each.values()))


def _foreign_version(table: OpenTable, taken: Container[str]) -> str:
    try:
        return table.host.open(table.client).version
    except ForeignCommitError as foreign:
        if table.host.name not in taken:
            raise
        return foreign.version


def with_current_parent(parent: str | None, metadata: CommitMetadata) -> CommitMetadata:
    """Return commit metadata with the format's present version.

    Step 2 is compared and set on it, by the first to get to it. A format without a step 2 has none.
    """
    return metadata if parent is None else with_parent_version(metadata, parent)


def with_parent_version(metadata: CommitMetadata, version: str) -> CommitMetadata:
    """Return commit metadata with the format's parent version."""
    return replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: version})


def is_taken_back(client: TableMetaClient, completed: Instant) -> bool:
    """Return whether a completed instant was rolled back by another writer.

    It is on no timeline then, neither the active one nor the archive.
    """
    time = completed.requested_time
    # in this order: what is archived is in the archive before it leaves the timeline
    if client.active.load().find(time, completed.action) is not None:
        return False
    return all(one.instant.requested_time != time for one in client.archived.load(until=time))


def _held(table: OpenTable, instant: Instant, failed: HudiError) -> Publication | None:
    try:
        found = table.host.find_publication(table.client, instant)
        if found is None or not found.is_expired:
            return found
        # a watermark covers what was rolled back as well
        return None if is_taken_back(table.client, instant) else found
    except HudiError as error:
        failed.add_note(f"Nor could the format be asked what has happened: {error}")
        raise unknown(table, instant, failed) from error


def _receipt(table: OpenTable, held: Publication, call: Callable[[], FormatCommit]) -> FormatCommit:
    """Return an instant's receipt from its hook, or a known one.

    The hook is called again; where it gives none, what is known without it.
    """
    try:
        return call()
    except HudiError:
        return receipt_of(table, held)


def receipt_of(table: OpenTable, held: Publication) -> FormatCommit:
    """Return a receipt for a published instant without one."""
    location = table.client.format_options.get(LOCATION)
    try:
        location = table.host.open(table.client).location
    except HudiError:
        _log.info("the %s format does not say where it is", table.host.name, exc_info=True)
    return FormatCommit(held.version, location)


def unknown(
    table: OpenTable, instant: Instant, failed: HudiError | None
) -> CommitStateUnknownError:
    """Return the error for an instant without step 2 yet.

    It has not happened, or not yet.
    """
    why, hint = "", ""
    if failed is not None:
        why = f": {failed.what}"
        # what to do about an open outcome is said here
        hint = "" if isinstance(failed, CommitStateUnknownError) else f" {failed.hint}"
    error = CommitStateUnknownError(
        f"The {instant.action.value} {instant.requested_time} is complete on the Hudi timeline, "
        f"and the {table.host.name} format does not hold it yet{why}",
        "Nothing was deleted. The next writer publishes it or undoes it; until then no reader "
        f"sees it.{hint}",
        instant=instant.requested_time,
    )
    error.__cause__ = failed
    return error
