"""The table of promotions says what the documentation says."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.model.promotions import PROMOTIONS, can_promote

PAGE = Path(__file__).resolve().parents[2] / "docs" / "types.md"


def test_the_documentation_lists_every_promotion() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Types that can grow")[1]
    listed = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert listed == [
        f"| {each.source} | {each.target} | "
        + " | ".join(
            "yes" if flag else "no"
            for flag in (each.exact, each.hudi, each.iceberg, each.delta, each.on_write)
        )
        + " |"
        for each in PROMOTIONS
    ]


KINDS = (
    *(pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.bool_()),
    *(pa.decimal128(p, s) for p, s in ((5, 2), (9, 2), (9, 4), (10, 0), (20, 0), (38, 10))),
)


def test_no_pair_of_types_falls_under_two_promotions() -> None:
    for stored in KINDS:
        for wanted in KINDS:
            assert sum(each.fits(stored, wanted) for each in PROMOTIONS) <= 1, (stored, wanted)


def test_a_promotion_has_no_way_back() -> None:
    for one, other in combinations(KINDS, 2):
        assert not (can_promote(one, other) and can_promote(other, one))


@pytest.mark.parametrize("each", PROMOTIONS, ids=lambda each: f"{each.source} to {each.target}")
def test_what_iceberg_and_delta_take_is_exact(each: object) -> None:
    promotion = next(found for found in PROMOTIONS if found is each)
    assert promotion.exact or not (promotion.iceberg or promotion.delta or promotion.on_write)


@pytest.mark.parametrize(
    ("stored", "wanted", "on_write", "expected"),
    [
        (pa.int32(), pa.int64(), True, True),
        (pa.int32(), pa.float64(), True, False),
        (pa.int32(), pa.float64(), False, True),
        (pa.int64(), pa.int32(), False, False),
        (pa.int32(), pa.decimal128(9, 0), False, False),
        (pa.int32(), pa.decimal128(12, 3), False, False),
        (pa.int32(), pa.decimal128(13, 3), False, True),
        (pa.decimal128(9, 2), pa.decimal128(9, 4), False, False),
        (pa.decimal128(9, 2), pa.decimal128(11, 4), True, True),
        (pa.date32(), pa.timestamp("us"), False, False),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False, False),
        (pa.string(), pa.int32(), False, False),
    ],
    ids=str,
)
def test_what_is_made(
    stored: pa.DataType, wanted: pa.DataType, on_write: bool, expected: bool
) -> None:
    assert can_promote(stored, wanted, on_write=on_write) is expected
