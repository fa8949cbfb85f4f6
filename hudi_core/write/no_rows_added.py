"""Conflicts of merges that insert rows by no record key.

Two such merges may each find no match for one source row, and share no file group and no key; both
would insert it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.errors import CommitConflictError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.conflicts import completed_since
from hudi_core.model.protocols import TimelineView
from hudi_core.table_handle import OpenTable
from hudi_core.txn.added_keys import MOVES_ROWS, with_new_rows


@dataclass(frozen=True, slots=True)
class NoRowsAdded:
    """Refuses a commit where another write has added rows since it began.

    A :data:`~hudi_core.write.client.Guard`.

    ``began`` is the timeline that the merge builds on.
    """

    began: TimelineView

    def __call__(self, table: OpenTable, seen: TimelineView, _: CommitMetadata | None) -> None:
        for other in completed_since(self.began, seen):
            theirs = table.client.read_commit(other)
            if theirs.operation_type in MOVES_ROWS:
                continue
            if any(True for _ in with_new_rows(theirs)):
                raise CommitConflictError(
                    f"Instant {other.requested_time} added rows while this merge was under way, "
                    "which inserts rows that it does not match by their record key",
                    "Nothing of this merge is visible; run it again on the new state of the table.",
                    other=other.requested_time,
                    granularity="rows",
                )
