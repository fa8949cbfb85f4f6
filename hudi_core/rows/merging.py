"""Merges incoming rows into the stored rows of a file; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.config.merge_rules import MergeRules
from hudi_core.rows.combine import Positions, ascending, existing_is_newer
from hudi_core.rows.deciding import Mask, deleted, order_values
from hudi_core.rows.filling import lacks_values
from hudi_core.rows.staging import true_mask

_SLICED_ROWS: Final = 8
"""Stored rows that may go before the rest is gathered again; a slice is work for each column."""


@dataclass(frozen=True, slots=True)
class Located:
    """How incoming rows meet the stored rows of one file.

    ``incoming`` (number of the row) and ``stored`` (position) are pairs; a key that the file holds
    several times makes several. ``gone`` are positions of stored rows that go because their
    successors are elsewhere.
    """

    incoming: Positions
    stored: Positions
    gone: Positions = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge.

    ``kept`` is in file order. ``updates`` is ascending, with an incoming row once for each stored
    row that it updates; ``replaced`` has the position of that. ``late`` are updates whose stored
    row is the later version: it is written, and takes from the incoming row what it lacks.
    ``deletes`` counts stored rows without a successor here, so that ``stored rows - deletes`` is
    the number of kept rows and updates; ``removed`` are positions of all that do not stay, updated
    ones included.
    """

    kept: pa.Table
    updates: Positions
    replaced: Positions
    late: Mask
    deletes: int
    removed: Positions = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def nothing(cls, stored: pa.Table) -> Merged:
        """Return the outcome where no incoming row meets a stored one."""
        none = np.empty(0, dtype=np.int64)
        return cls(stored, none, none, none.astype(bool), 0)

    @property
    def changes_nothing(self) -> bool:
        """Whether every incoming row was late."""
        return not len(self.updates) and not self.deletes


def merge(
    stored: pa.Table,
    rows: pa.Table,
    located: Located,
    rules: MergeRules,
    delete_all: bool,
) -> Merged:
    """Merge incoming rows into the stored rows they match.

    ``rows`` have only the columns that decide. ``delete_all``: every incoming row deletes, by the
    operation and whatever the order is.
    """
    incoming, positions = located.incoming, located.stored
    late = np.zeros(len(positions), dtype=bool)
    deleting = np.full(len(positions), delete_all)
    if not delete_all:
        deleting = deleted(rows, rules)[incoming]
        if rules.stored_order:
            late = _late(stored, rows, located, rules)
        if rules.deletes_always:
            late &= ~deleting
    written = ~deleting & ~late
    if rules.fills_stored and rules.fill is not None:
        candidates = np.flatnonzero(late & ~deleting)
        lacking = lacks_values(stored.take(pa.array(positions[candidates])), rules)
        written[candidates[lacking]] = True
    keep = np.ones(stored.num_rows, dtype=bool)
    keep[positions[written | (deleting & ~late)]] = False
    keep[located.gone] = False
    chosen = ascending(incoming, np.flatnonzero(written))
    removed = np.flatnonzero(~keep)
    return Merged(
        kept=_kept(stored, keep, removed),
        updates=incoming[chosen],
        replaced=positions[chosen],
        late=late[chosen],
        deletes=len(removed) - len(chosen),
        removed=removed,
    )


def _late(stored: pa.Table, rows: pa.Table, located: Located, rules: MergeRules) -> Mask:
    """Return for each pair whether the stored row is the later version."""
    had, given = (
        [column.take(pa.array(taken)) for column in order_values(some, rules.stored_order, rules)]
        for some, taken in ((stored, located.stored), (rows, located.incoming))
    )
    found: Mask = true_mask(existing_is_newer(had, given))
    return found


def _kept(stored: pa.Table, keep: Mask, removed: Positions) -> pa.Table:
    """Return the rows that stay; where few go, as zero-copy slices."""
    if len(removed) > _SLICED_ROWS:
        return stored.filter(pa.array(keep))
    bounds = zip([0, *(removed + 1)], [*removed, stored.num_rows], strict=True)
    return pa.concat_tables(stored.slice(start, end - start) for start, end in bounds)
