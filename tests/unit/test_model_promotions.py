"""The table of promotions says what the documentation says."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.promotions import PROMOTIONS, Promotion, can_promote

PAGE = Path(__file__).resolve().parents[2] / "docs" / "types.md"


def test_the_documentation_lists_every_promotion() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Types that can grow")[1]
    listed = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert listed == [
        f"| {each.source} | {each.target} | "
        + " | ".join(
            "yes" if flag else "no"
            for flag in (each.exact, each.hudi, *_held(each), each.on_write, each.by_option)
        )
        + " |"
        for each in PROMOTIONS
    ]


def _held(each: Promotion) -> list[bool]:
    """Whether tables of the formats beside the native one can make a change."""
    hosts = (FormatHost.load(FormatRegistry(), name) for name in ("iceberg", "delta"))
    return [host.capabilities.can_promote(each.name) for host in hosts]


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


@pytest.mark.parametrize("each", PROMOTIONS, ids=lambda each: str(each.name))
def test_what_rows_or_other_formats_make_is_exact(each: Promotion) -> None:
    assert each.exact or not (each.on_write or any(_held(each)))


def test_names_are_unique() -> None:
    assert len({each.name for each in PROMOTIONS}) == len(PROMOTIONS)


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
