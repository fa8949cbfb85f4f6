"""What a sync did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudi_core.config.sync import SyncTool


class EntryChange(StrEnum):
    """What became of an entry."""

    CREATED = "created"
    CHANGED = "changed"
    RECREATED = "recreated"
    UNCHANGED = "unchanged"
    AHEAD = "ahead"
    """A later sync than this one has been there."""


@dataclass(frozen=True, slots=True)
class SyncedEntry:
    """One entry.

    ``change`` leaves out partitions and the time of the sync. ``columns`` is empty for a new entry.
    ``dropped`` are names, the others paths. ``compares_all``: all partitions were compared, not
    only those written since the last sync.
    """

    database: str
    name: str
    change: EntryChange
    columns: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    compares_all: bool = False

    @property
    def is_up_to_date(self) -> bool:
        """Whether there was nothing to do."""
        is_same = self.change in (EntryChange.UNCHANGED, EntryChange.AHEAD)
        return is_same and not (self.added or self.changed or self.dropped)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """A sync with one metastore.

    ``last_commit`` is the requested time of the last write that the metastore knows now; ``None``
    for a table without one.
    """

    path: str
    tool: SyncTool
    address: str
    last_commit: str | None
    creates_database: bool
    entries: tuple[SyncedEntry, ...]

    @property
    def is_up_to_date(self) -> bool:
        """Whether there was nothing to do."""
        return not self.creates_database and all(one.is_up_to_date for one in self.entries)
