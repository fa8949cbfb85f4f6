"""Extra metadata of a commit: its caller's, and values carried over.

Carried over from the commits before are the checkpoints of other engines, the keys that options
name, and the last idempotent write of each application: readers look for them in the newest commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import CorruptMetadataError, HudiError, InvalidInstantTimeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import MOVES_ROWS, CommitMetadata
from hudi_core.model.extra_metadata import OWN_PREFIX, CommitExtras, Idempotency, taken_in_keys
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import TimelineView
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.txn.recovery.roll_forward import RolledForward

# --- the last idempotent write of each application, kept by the newest commit ---------------------
# It is in the commit's extra metadata, so that it is part of the table's state: a rollback takes it
# back, and who does not see a commit does not see what it keeps. Every commit carries it over.
# Commits of other engines do not, so the commits before them are looked at, back to the last one of
# this project, even where that is archived. A property of the table says whether there is anything
# to look for.


IDEMPOTENCY_KEY: Final = f"{OWN_PREFIX}idempotency"
"""Key of extra metadata: JSON, ``{"<application>": [<version>, "<requested time>"]}``."""
_MOST: Final = 1000
"""Applications that are kept; of more, those that wrote last."""


@dataclass(frozen=True, slots=True)
class Done:
    """The last idempotent write of an application."""

    version: int
    instant: InstantTime


DoneWrites = Mapping[str, Done]
"""The last idempotent write of each application."""


class AlreadyDoneError(HudiError):
    """A write is a repetition; its first result is returned."""

    def __init__(self, done: Done) -> None:
        self.done = done
        super().__init__(
            f"Version {done.version} was written as instant {done.instant}",
            "Nothing is to be done.",
        )


def repeated(done: DoneWrites, idempotency: Idempotency) -> Done | None:
    """The write that another one repeats; ``None`` for a new one."""
    found = done.get(idempotency.application)
    return found if found is not None and idempotency.version <= found.version else None


def is_accounted(client: TableMetaClient) -> bool:
    """Whether commits of the table keep idempotent writes, as stored now."""
    return ManagedKeys.idempotent_writes.read(read_properties(client.storage))


def keep_account(client: TableMetaClient) -> None:
    """Store that commits of the table keep idempotent writes.

    Under the table's lock, and before the first such commit is visible.
    """
    update_properties(client.storage, {ManagedKeys.idempotent_writes.key: "true"})


def done_writes(client: TableMetaClient, timeline: TimelineView) -> DoneWrites:
    """Idempotent writes as of a timeline that the table's format fences.

    The timeline must be fenced by the table's format.
    """
    for text, where in _kept(client, timeline):
        if text is not None:
            return decode(text, where)
    return {}


def _kept(client: TableMetaClient, timeline: TimelineView) -> Iterator[tuple[str | None, str]]:
    """Yield what each write keeps, newest first, and where."""
    writes = sorted(
        timeline.completed_writes(), key=lambda one: one.effective_completion_time, reverse=True
    )
    for instant in writes:
        kept = client.active.read_notes(instant).extra_metadata
        yield kept.get(IDEMPOTENCY_KEY), client.active.path(instant)
    for archived in sorted(
        client.archived.load(bodies=True),
        key=lambda one: one.instant.effective_completion_time,
        reverse=True,
    ):
        if archived.instant.action in WRITE_ACTIONS:
            kept = client.read_archived_commit(archived).extra_metadata
            yield kept.get(IDEMPOTENCY_KEY), f"{client.archived.folder} ({archived.instant})"


def encode(done: DoneWrites) -> str:
    """Return the text that a commit keeps."""
    newest = sorted(done.items(), key=lambda item: item[1].instant)[-_MOST:]
    entries = {name: [one.version, one.instant] for name, one in newest}
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def decode(text: str, where: str) -> DoneWrites:
    """Read the text that a commit keeps."""
    try:
        read: Any = json.loads(text)
        return {
            str(name): Done(_whole(version), parse_instant_time(instant))
            for name, (version, instant) in read.items()
        }
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        InvalidInstantTimeError,
    ) as error:
        raise CorruptMetadataError(where, f"its {IDEMPOTENCY_KEY} cannot be read") from error


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return value


# --- metadata of a commit -------------------------------------------------------------------------


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
        if commit.operation_type in MOVES_ROWS:
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
