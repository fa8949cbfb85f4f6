"""The rows of the matrix: what a table holds before the operation, and what the operation brings.

Keys occur several times in the batches, in stored files, in several files of a partition and in
several partitions; they come newer, older, as old, and without an ordering value.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tests.interop.matrix_layouts import Layout, Row

DELETED: Final = "_hoodie_is_deleted"
NEW_CITY: Final = 4
# number of the key, ordering value, which city: its own (0), the next one (1), or NEW_CITY
Made = tuple[int, int | None, int]

FIRST: Final[tuple[Made, ...]] = (
    *((number, 10, 0) for number in range(12)),
    (1, 12, 0),
    (2, None, 0),
    (3, 8, 0),
)
SECOND: Final[tuple[Made, ...]] = tuple((number, 11, 0) for number in range(8, 14))
THIRD: Final[tuple[Made, ...]] = ((4, 9, 0), (5, 13, 1), (14, 10, 0), (15, 10, 0), (14, 11, 0))

BATCH: Final[tuple[Made, ...]] = (
    (0, 11, 0),
    (20, 3, 0),
    (0, 11, 0),  # as new as the other: the later one wins
    (1, 11, 0),  # newer than one stored row of its key, older than the other
    (2, 5, 0),  # the same, and one has no ordering value
    (3, 9, 0),  # the same, in another order
    (15, 9, 0),  # late
    (7, 10, 0),  # as new as the stored row
    (20, 5, 0),
    (20, 4, 0),
    (8, None, 0),  # stored in two files
    (9, 20, 1),  # stored in two files, of another partition
    (10, 1, 1),  # the same, and late
    (11, 10, 1),  # the same, late by one of them
    (5, 12, 1),  # stored in two partitions
    (14, 20, 0),
    (14, 20, 1),  # the other one's key, with another partition
    (21, 1, 0),
    (22, 7, NEW_CITY),
    (6, 15, NEW_CITY),
    (4, 9, 0),
    (23, 2, 0),
    (13, 30, 0),
)
FLAGGED: Final = frozenset({1, 7, 8, 9, 15, 21})
"""Numbers of the keys whose rows a flag deletes."""
OVERWRITING: Final[tuple[Made, ...]] = (
    (0, 1, 0),
    (4, None, 0),
    (20, 3, 0),
    (20, 2, 0),
    (22, 7, NEW_CITY),
    (8, 30, 0),
    (1, 5, NEW_CITY),
)
DELETING: Final[tuple[Made, ...]] = (
    (0, 0, 0),
    (8, 0, 0),
    (1, 99, 0),
    (9, 0, 1),
    (5, None, 1),
    (0, 0, 0),
    (22, 0, NEW_CITY),
    (14, 0, 0),
    (99, 0, 0),
)


def batch_rows(layout: Layout, made: tuple[Made, ...], batch: str) -> list[Row]:
    """Make rows; the cities of a key number are one and the next."""
    found = []
    for position, (number, ts, shift) in enumerate(made):
        city = NEW_CITY if shift == NEW_CITY else (number + shift) % NEW_CITY
        found.append(
            {
                "id": f"k{number:02d}",
                "line": number % 3,
                "city": layout.cities[city],
                "day": pa.scalar(19_000 + number % 2, pa.date32()).as_py(),
                "ts": ts,
                "mark": f"{batch}-{position:02d}",
                "value": None if position % 4 == 0 else number + position / 10,
                "tags": [None, [], [batch, None]][position % 3],
            }
        )
    return found


def flagged(batch: list[Row]) -> list[Row]:
    """Add the flag that deletes: true, false or null."""
    return [
        {**row, DELETED: True if int(row["id"][1:]) in FLAGGED else (None, False)[number % 2]}
        for number, row in enumerate(batch)
    ]
