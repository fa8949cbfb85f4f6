"""What make test takes of a campaign, and whether all of it was asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

IS_WHOLE: Final = os.environ.get("HUDI_CAMPAIGN") == "whole"
"""Whether campaigns run as a whole (``make campaigns``); ``make test`` takes a sample of each."""


def sampled(cases: Sequence[T], one_in: int, first: int = 0) -> list[T]:
    """Every ``one_in``-th of the cases of a campaign, or all of them where that is asked for."""
    return list(cases) if IS_WHOLE else list(cases[first::one_in])
