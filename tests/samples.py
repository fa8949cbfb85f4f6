"""What make test takes of a campaign, and whether all of it was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final, TypeVar

T = TypeVar("T")
U = TypeVar("U")

IS_WHOLE: Final = os.environ.get("HUDI_CAMPAIGN") == "whole"
"""Whether campaigns run as a whole (``make campaigns``); ``make test`` takes a sample of each."""


def sampled(cases: Sequence[T], one_in: int, first: int = 0) -> list[T]:
    """Every ``one_in``-th of the cases of a campaign, or all of them where that is asked for."""
    return list(cases) if IS_WHOLE else list(cases[first::one_in])


def paired(some: Iterable[T], others: Iterable[U], first: int = 0) -> list[tuple[T, U]]:
    """Each of some with one of the others in turn, or every pair where that is asked for."""
    ones, rest = list(some), list(others)
    if IS_WHOLE:
        return list(product(ones, rest))
    return [(one, rest[(first + n) % len(rest)]) for n, one in enumerate(ones)]
