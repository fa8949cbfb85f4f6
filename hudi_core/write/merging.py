"""What becomes of the stored rows of a file when incoming rows meet them; a pure function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.model.schema import IS_DELETED
from hudi_core.write.combine import Positions, stored_wins
from hudi_core.write.staging import true_mask

Mask = npt.NDArray[np.bool_]

_SLICED_ROWS: Final = 8
"""Stored rows that may go before the rest is gathered anew: every slice is work for each column."""


@dataclass(frozen=True, slots=True)
class Located:
    """How incoming rows meet the stored rows of one file.

    Attributes
    ----------
    incoming, stored
        Pairs that have one key: the number of the incoming row, the position of the stored one. A
        key that the file holds several times makes several pairs; its rows become one.
    gone
        Positions of stored rows that go because their successors are elsewhere.
    """

    incoming: Positions
    stored: Positions
    gone: Positions = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge.

    Attributes
    ----------
    kept
        The stored rows that stay, in file order.
    updates
        Positions of the incoming rows that take the place of stored ones, ascending.
    deletes
        How many stored rows go without a successor: those of deleted keys, and those whose
        successors are elsewhere; of a key that the file held several times, all but the one that
        is updated, or those older than another that a late row met. ``stored rows - deletes`` is
        the number of kept rows and updates.
    removed
        Positions of the stored rows that do not stay, those that are updated among them.
    """

    kept: pa.Table
    updates: Positions
    deletes: int
    removed: Positions = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def changes_nothing(self) -> bool:
        """Whether every incoming row was late."""
        return not len(self.updates) and not self.deletes


def merge(
    stored: pa.Table,
    rows: pa.Table,
    located: Located,
    ordering: str | None,
    delete_all: bool,
) -> Merged:
    """Merge incoming rows into the stored rows they meet.

    Parameters
    ----------
    stored
        Rows of the file.
    rows
        The incoming rows that meet stored ones: the ordering column, where one decides, and
        ``_hoodie_is_deleted``, where there is one.
    located
        Which of ``rows`` meet which stored rows.
    ordering
        Name of the ordering column; ``None`` when the incoming row wins in any case.
    delete_all
        Whether every incoming row deletes, by the operation. Otherwise ``_hoodie_is_deleted``
        tells.
    """
    incoming, positions = located.incoming, located.stored
    replaced = np.ones(len(positions), dtype=bool)
    if ordering is not None:
        late = stored_wins(
            stored.column(ordering).take(pa.array(positions)),
            rows.column(ordering).take(pa.array(incoming)),
        )
        replaced = ~true_mask(late)
    wins = np.zeros(rows.num_rows, dtype=bool)
    wins[incoming[replaced]] = True
    wins[incoming[~replaced]] = False
    winning = np.flatnonzero(wins)
    deleting = np.full(len(winning), delete_all)
    if not delete_all and IS_DELETED in rows.column_names:
        deleting = true_mask(rows.column(IS_DELETED).take(pa.array(winning)))
    keep = np.ones(stored.num_rows, dtype=bool)
    keep[positions[replaced]] = False
    keep[located.gone] = False
    updates = winning[~deleting]
    removed = np.flatnonzero(~keep)
    kept = _kept(stored, keep, removed)
    return Merged(kept, updates, len(removed) - len(updates), removed)


def _kept(stored: pa.Table, keep: Mask, removed: Positions) -> pa.Table:
    """Return the rows that stay; where few go, as slices, which cost nothing however long."""
    if len(removed) > _SLICED_ROWS:
        return stored.filter(pa.array(keep))
    bounds = zip([0, *(removed + 1)], [*removed, stored.num_rows], strict=True)
    return pa.concat_tables(stored.slice(start, end - start) for start, end in bounds)


def replaced_positions(located: Located, updates: Positions) -> Positions:
    """Return the position of the stored row that each update takes the place of.

    Of several stored rows of one key it is the last.
    """
    order = np.argsort(located.incoming, kind="stable")
    last = np.searchsorted(located.incoming[order], updates, side="right") - 1
    met: Positions = located.stored[order[last]]
    return met
