"""Extra metadata of a commit: its caller's, and values carried over.

Carried over from the commits before are the checkpoints of other engines, the keys that options
name, and the last idempotent write of each application: readers look for them in the newest commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import CommitMetadata, WriteOperation
from hudi_core.model.extra_metadata import OWN_PREFIX, CommitExtras, taken_in_keys
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.txn.idempotency import (
    IDEMPOTENCY_KEY,
    AlreadyDoneError,
    Done,
    done_writes,
    encode,
    is_accounted,
    keep_account,
    repeated,
)
from hudi_core.txn.recovery.roll_forward import RolledForward

_CHECKPOINTS: Final = (
    # Hudi Streamer: since version 8 of tables and before; where its last run was to start
    frozenset(
        {
            "streamer.checkpoint.key.v2",
            "streamer.checkpoint.reset.key.v2",
            "deltastreamer.checkpoint.key",
            "deltastreamer.checkpoint.reset_key",
            "deltastreamer.checkpoint.ignore_key",
        }
    ),
    # Spark's streaming sink
    frozenset({"_hudi_streaming_sink_checkpoint"}),
    # Kafka Connect, which looks at the newest commit only
    frozenset({"kafka.commit.offsets"}),
)
"""Keys under which other engines keep how far they have read; those of one set belong together."""
WITHHELD_KEY: Final = f"{OWN_PREFIX}checkpoints-withheld"
"""Says that a commit may lack checkpoints which commits before it keep."""
_SERVICES: Final = frozenset({WriteOperation.CLUSTER.value, WriteOperation.COMPACT.value})


def with_extras(
    client: TableMetaClient,
    extras: CommitExtras,
    instant: Instant,
    now: RolledForward,
    metadata: CommitMetadata,
) -> CommitMetadata:
    """The metadata of a commit with its extra metadata.

    Under the table's lock.

    A repetition of the write is an :class:`AlreadyDoneError`.
    """
    writes = tuple(now.seen.completed_writes())
    account = _account(client, extras, instant, now)
    kept = {
        **_checkpoints(client, now, writes, extras.metadata, instant),
        **_rolling(client, writes, extras),
        **extras.metadata,
        **account,
        **taken_in_keys(extras.takes_in),
    }
    return replace(metadata, extra_metadata={**metadata.extra_metadata, **kept})


def _checkpoints(
    client: TableMetaClient,
    now: RolledForward,
    writes: Sequence[Instant],
    given: Mapping[str, str],
    instant: Instant,
) -> Mapping[str, str]:
    """The checkpoints that the write before a commit keeps.

    Their engines take the one that was requested last. Where a write that was requested before the
    commit is still under way, it may bring a newer checkpoint than is known yet, and the commit
    must not come before it with the older one. So it has none, and says so: later commits look
    further back.
    """
    for pending in now.timeline.pending():
        is_write = pending.action in WRITE_ACTIONS
        if is_write and pending.requested_time < instant.requested_time:
            return {WITHHELD_KEY: "true"}
    missing = [keys for keys in _CHECKPOINTS if keys.isdisjoint(given)]
    found: dict[str, str] = {}
    for before in reversed(writes):
        commit = client.active.read_notes(before)
        if commit.operation_type in _SERVICES:
            continue
        kept = commit.extra_metadata
        found |= {key: kept[key] for keys in missing for key in keys & kept.keys()}
        missing = [keys for keys in missing if keys.isdisjoint(kept)]
        if not missing or WITHHELD_KEY not in kept:
            break
    return found


def _rolling(
    client: TableMetaClient, writes: Sequence[Instant], extras: CommitExtras
) -> Mapping[str, str]:
    """Latest values of the rolling keys that the caller does not give."""
    missing = {key for key in extras.rolling_keys if not extras.metadata.get(key)}
    found: dict[str, str] = {}
    newest = sorted(writes, key=lambda one: one.effective_completion_time, reverse=True)
    for instant in newest[: extras.lookback]:
        if missing <= found.keys():
            break
        kept = client.active.read_notes(instant).extra_metadata
        found |= {key: kept[key] for key in missing - found.keys() if kept.get(key)}
    return found


def _account(
    client: TableMetaClient, extras: CommitExtras, instant: Instant, now: RolledForward
) -> Mapping[str, str]:
    """Entry of the commit for idempotent writes, its own included."""
    idempotency = extras.idempotency
    if idempotency is None:
        # a writer that set the property since is found by its own commit
        is_kept = ManagedKeys.idempotent_writes.read(client.config.raw)
        return {IDEMPOTENCY_KEY: encode(done_writes(client, now.seen))} if is_kept else {}
    is_kept = is_accounted(client)
    done = done_writes(client, now.seen) if is_kept else {}
    first = repeated(done, idempotency)
    if first is not None:
        raise AlreadyDoneError(first)
    if not is_kept:
        keep_account(client)
    mine = {idempotency.application: Done(idempotency.version, instant.requested_time)}
    return {IDEMPOTENCY_KEY: encode({**done, **mine})}
