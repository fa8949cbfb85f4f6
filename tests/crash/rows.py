"""Rows of the tables of the crash rig, and what a write makes of them.

An effect turns rows into rows. Whatever happens to a writer, a table shows some of the effects that
were tried, each of them wholly or not at all; :func:`matching` tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

import pyarrow as pa

from tests.tables import SCHEMA

Rows = frozenset[tuple[str, str, int]]
Held = Mapping[str, tuple[str, int]]
"""Partition and ordering value by key."""
Effect = Callable[[Held], Held]


def as_table(held: Held) -> pa.Table:
    """Return rows as a writer is given them."""
    found = [{"id": key, "part": part, "ts": ts} for key, (part, ts) in held.items()]
    return pa.Table.from_pylist(found, SCHEMA)


def as_rows(held: Held) -> Rows:
    """Return rows as a set."""
    return frozenset((key, part, ts) for key, (part, ts) in held.items())


def putting(rows: Held) -> Effect:
    """Insert, or update by key."""
    return lambda held: {**held, **rows}


def dropping(*keys: str) -> Effect:
    """Delete by key."""
    return lambda held: {key: value for key, value in held.items() if key not in keys}


def replacing(part: str, rows: Held) -> Effect:
    """Replace a partition; without rows, drop it."""
    kept: Callable[[Held], Held] = lambda held: {  # noqa: E731
        key: value for key, value in held.items() if value[0] != part
    }
    return lambda held: {**kept(held), **rows}


# two partitions that are there, and one that a write makes
FIRST: Final[Held] = {"a": ("x", 0), "b": ("x", 0), "c": ("y", 0), "d": ("y", 0)}
SECOND: Final[Held] = {"b": ("x", 1)}
BASE: Final[Held] = {**FIRST, **SECOND}
CHANGED: Final[Held] = {"a": ("x", 5), "c": ("y", 5), "n": ("z", 5)}
NEW: Final[Held] = {"m": ("x", 5), "n": ("z", 5)}
OTHER: Final[Held] = {"d": ("y", 7), "r": ("x", 7)}


def matching(rows: Rows, effects: Sequence[tuple[str, Effect]]) -> frozenset[str] | None:
    """Return the names of the effects that rows show, in the order they were tried; ``None`` where
    no choice of them gives these rows."""
    return next((frozenset(names) for names, seen in _choices(effects) if seen == rows), None)


def _choices(effects: Sequence[tuple[str, Effect]]) -> Iterator[tuple[list[str], Rows]]:
    for count in range(len(effects), -1, -1):
        for chosen in combinations(effects, count):
            held: Held = BASE
            for _, effect in chosen:
                held = effect(held)
            yield [name for name, _ in chosen], as_rows(held)
