"""What a Delta log loses once instants are archived.

So it does not grow with its age.

In this order, each of which a crash may be the last of:

1. One version raises the watermark and dates entries back: removals of files that are deleted, and
   transactions of archived instants, for which the watermark speaks from then on. No engine takes
   entries that are older than the log's retention into a checkpoint, so that no checkpoint has to
   be written by hand. (Delta-Spark keeps a removal where it reads the one that was dated back and
   the one before it at once. The next archive finds it.)
2. A checkpoint of that version: a reader that opens the log sees none of these entries.
3. Files of versions that are no longer needed are deleted, where a checkpoint allows it.

What a crash leaves over goes with the next archive. A log that was tidied up a few versions before
waits for a later one: its transactions name the archived instants until then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from delta_format.commit import step
from delta_format.declarations import declared, next_declaration
from delta_format.foreign import require_ours
from delta_format.library import translated
from delta_format.location import LOG_FOLDER, root_of
from delta_format.log import (
    ARCHIVE_STEP,
    REVOKED,
    STEP_KEY,
    WRITES,
    Head,
    completion_millis,
    open_log,
    watermark_at,
)
from delta_format.log_actions import LogAction, transaction
from delta_format.log_files import CHECKPOINT, VERSION, number_of, prune
from delta_format.options import TRANSACTION_RETENTION
from delta_format.paths import is_below, plain
from delta_format.snapshot import Snapshot
from delta_format.vectors import Vector, has_vectors, identity_of, prune_vectors
from hudi_core.spi import ACTION_KEY, INSTANT_KEY, FileStatus, Instant, MetaClientView

_EVERY: Final = 10
"""Versions that a log is left alone after it was tidied up."""
_SHARE: Final = 4
"""Entries leave when they are one of so many: a checkpoint costs what it holds."""
_MOST: Final = 100_000
"""Entries that leave at once: their version is opened as a whole."""
_OF_INSTANT: Final = re.compile(r"hudi:([0-9]+)")
_SCHEMA_AND_INSTANT: Final = 2
"""Versions that an instant makes at most."""


def forget(meta_client: MetaClientView, archived: Iterable[Instant], expected: str | None) -> None:
    """Take archived instants out of the log, and what only they needed.

    After :class:`StorageError` the next archive continues.
    """
    old = tuple(archived)
    head = open_log(meta_client)
    marks = [completion_millis(instant) for instant in old]
    mark = max([*marks, *([] if head.watermark is None else [head.watermark])], default=None)
    instants = meta_client.timeline().instants
    gone = {one.requested_time for one in old}
    is_all = gone >= {one.requested_time for one in instants if one.is_completed}
    if mark is None or (_is_fresh(head) and not is_all):
        return
    active = {one.requested_time for one in instants} - gone
    files = list(meta_client.root.list(LOG_FOLDER))
    entries = Entries.read(meta_client, files)
    needed = _first_needed(head, active)
    rises = [] if mark == head.watermark else [watermark_at(mark)]  # guard has-watermark
    transactions = [*_transactions(entries, active, mark)]
    left = _leaving(meta_client, head, entries, transactions, share=0 if is_all else _SHARE)
    starts_over = is_all and not _is_archive(head)
    if rises or left or starts_over:
        require_ours(meta_client, head)
        head.require_parent(expected)
        known = declared(head.table)
        # entries are only dated back where the log says that they grow old
        kept = {**TRANSACTION_RETENTION, **known.configuration}
        declaration = next_declaration(head, replace(known, configuration=kept)) if left else []
        step(
            meta_client,
            head,
            ARCHIVE_STEP,
            [*rises, *declaration, *left],
            with_checkpoint=bool(left) or starts_over,
        )
    if is_all:
        # nothing is gone back to: the log begins with the version that was just made
        needed, files = head.version + 1, list(meta_client.root.list(LOG_FOLDER))
    prune(meta_client, files, needed)
    prune_vectors(meta_client, active)


def _is_archive(head: Head) -> bool:
    """Whether the newest version is that of an archive."""
    newest = next(iter(head.versions()), None)
    return newest is not None and newest.get(STEP_KEY) == ARCHIVE_STEP


def _is_fresh(head: Head) -> bool:
    """Whether one of the last versions is that of an archive."""
    for info in head.versions():
        if head.version - info["version"] >= _EVERY:
            break
        if info.get(STEP_KEY) == ARCHIVE_STEP:
            return True
    return False


def _first_needed(head: Head, active: Collection[str]) -> int:
    """The version before the earliest one that holds an active write.

    A rollback and a restore go back as far as that, and a savepoint keeps its commit active.
    """
    writes = (one for one in head.versions() if one.get(ACTION_KEY) in WRITES)
    versions = [one["version"] for one in writes if one.get(INSTANT_KEY) in active]
    return min(versions, default=head.version) - _SCHEMA_AND_INSTANT


def _transactions(entries: Entries, active: Collection[str], mark: int) -> Iterator[LogAction]:
    """Transactions of archived instants, dated back.

    One that was taken out stays for ever, as no watermark speaks for it.
    """
    for name, version in entries.transactions.items():
        found = _OF_INSTANT.fullmatch(name)
        if found and found[1] not in active and REVOKED < version <= mark:
            yield transaction(name, version, LONG_AGO)


def _leaving(
    meta_client: MetaClientView,
    head: Head,
    entries: Entries,
    transactions: list[LogAction],
    share: int,
) -> list[LogAction]:
    """The entries that leave; none where these are few of all.

    Few are less than one of ``share``; with 0 none are too few.
    """
    live = {file.identity for file in Snapshot(head).files()}
    removed = {one: vector for one, vector in entries.removed.items() if one not in live}
    every = len(live) + len(removed) + len(entries.transactions)
    enough = -(-every // share) if share else 0
    if len(transactions) + len(removed) < enough:
        return []
    found = [*transactions, *_removals(meta_client, removed)]
    return found[:_MOST] if len(found) >= enough else []


def _removals(
    meta_client: MetaClientView, removed: Mapping[Entry, Vector | None]
) -> Iterator[LogAction]:
    """Removals of files that are deleted, dated back."""
    paths = {one: plain(one[0]) for one in sorted(removed, key=str)}
    paths = {one: path for one, path in paths.items() if is_below(path)}
    folders = sorted({path.rpartition("/")[0] for path in paths.values()})
    listed = meta_client.run_map(meta_client.root.list_names, folders)
    names = {folder: frozenset(some) for folder, some in zip(folders, listed, strict=True)}
    for one, path in paths.items():
        folder, _, name = path.rpartition("/")
        if name not in names[folder]:
            vector = removed[one]
            yield {
                "remove": {
                    "path": one[0],
                    "deletionTimestamp": LONG_AGO,
                    "dataChange": False,
                    **({} if vector is None else vector.action),
                }
            }


# --- removed files and transactions that a log carries on -----------------------------------------

# They are read from its files, as deltalake gives the present files alone. They go from checkpoint
# to checkpoint until they are older than the log keeps them.


LONG_AGO: Final = -(10**13)
"""Milliseconds, in the year 1653: older than any retention of a log."""
_LINES: Final = (b'{"remove"', b'{"txn"')
_COLUMNS: Final = ("remove.path", "txn.appId", "txn.version")
_VECTOR: Final = "remove.deletionVector"

Entry = tuple[str, str | None]
"""A removed file: its path as the log spells it, and what identifies its vector."""


@dataclass(slots=True)
class Entries:
    """Removed files and transactions of a log's newest version.

    ``removed`` gives the vectors that files had, some of which may have been added again.
    ``transactions`` gives the version of each application.
    """

    removed: dict[Entry, Vector | None] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, meta_client: MetaClientView, files: Iterable[FileStatus]) -> Self:
        """Read the last checkpoint and the versions behind it."""
        numbers = {one.path: number_of(one.name, CHECKPOINT) for one in files}
        last = max(numbers, key=lambda path: numbers[path], default=None)
        storage, found = meta_client.root, cls()
        with translated(root_of(meta_client)):
            since = -1
            if last is not None and numbers[last] >= 0:
                since = numbers[last]
                found._take_checkpoint(storage.read(last))
            versions = sorted(one.path for one in files if number_of(one.name, VERSION) > since)
            for data in meta_client.run_map(storage.read, versions):
                found._take_version(data)
        return found

    def _take_checkpoint(self, data: bytes) -> None:
        file = pq.ParquetFile(pa.BufferReader(data))
        more = [_VECTOR] if has_vectors(file.schema_arrow, "remove") else []
        table = file.read(columns=[*_COLUMNS, *more])
        for row in table.to_pylist():
            removed, transaction = row.get("remove"), row.get("txn")
            if removed is not None and removed["path"] is not None:
                vector = Vector.of(removed)
                self.removed[removed["path"], identity_of(vector)] = vector
            if transaction is not None and transaction["appId"] is not None:
                self.transactions[transaction["appId"]] = transaction["version"]

    def _take_version(self, data: bytes) -> None:
        for line in data.splitlines():
            if line.startswith(_LINES):
                self._take(json.loads(line))

    def _take(self, action: dict[str, Any]) -> None:
        removed, transaction = action.get("remove"), action.get("txn")
        if removed is not None:
            vector = Vector.of(removed)
            one = removed["path"], identity_of(vector)
            if removed.get("deletionTimestamp") == LONG_AGO:
                self.removed.pop(one, None)
            else:
                self.removed[one] = vector
        if transaction is not None:
            name, is_old = transaction["appId"], transaction.get("lastUpdated") == LONG_AGO
            if is_old:
                self.transactions.pop(name, None)
            else:
                self.transactions[name] = transaction["version"]
