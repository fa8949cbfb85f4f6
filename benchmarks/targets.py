"""How fast is fast enough: every target of the project, declared once, as ratios of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

TARGET_ROWS = 2_000_000
"""Rows of the table that the targets are meant for, on two cores."""

LOCAL, SPARK = "hudi-core-local", "hudi-core-spark"


@dataclass(frozen=True)
class Target:
    """A ratio of two medians of one case and run that should not be exceeded.

    ``case``, ``variant``, ``yardstick``: what is divided by what. ``allowed``: the largest ratio
    that is good enough; ``None`` where the ratio is shown for comparison, and nothing is promised.
    """

    case: str
    variant: str
    yardstick: str
    allowed: float | None

    @property
    def name(self) -> str:
        """The target without its number, by which its cause is found when it is missed."""
        return f"{self.case}: {self.variant} / {self.yardstick}"

    def ratio(self, values: Mapping[tuple[str, str], float]) -> float | None:
        """The measured ratio; ``None`` where one of the two was not measured."""
        pair = (self.case, self.variant), (self.case, self.yardstick)
        if any(one not in values for one in pair):
            return None
        return values[pair[0]] / values[pair[1]]

    def verdict(self, ratio: float | None) -> str:
        """Verdict on the measured ratio: ``met``, ``missed``, ..."""
        if ratio is None:
            return "not measured"
        if self.allowed is None:
            return "no target"
        return "met" if ratio <= self.allowed else "missed"


_UPSERTS = ("upsert_1", "upsert_10", "upsert_50", "upsert_skew")
_BIG = ("big_files_1", "big_files_10")

TARGETS = (
    Target("bulk_insert", SPARK, "spark-flat", 1.4),
    # the same columns: with the meta columns
    Target("bulk_insert", SPARK, "spark-partitioned-meta", 0.5),
    Target("bulk_insert", SPARK, "spark-partitioned", None),
    *(Target(case, SPARK, "deltalake", 0.95 if "50" in case else 0.7) for case in _UPSERTS),
    *(Target(case, LOCAL, "deltalake", 0.6) for case in _UPSERTS),
    Target("upsert_1", LOCAL, "limit", 1.3),
    *(Target(case, ours, "pyiceberg", 1.0) for case, ours in product(_UPSERTS, (LOCAL, SPARK))),
    Target("upsert_one_row", LOCAL, "limit", 1.5),
    Target("upsert_one_row", LOCAL, "deltalake", None),
    Target("upsert_one_row", LOCAL, "pyiceberg", None),
    # the growth of the process, not seconds: equal up to what an allocator keeps
    Target("memory", "8 groups", "1 group", 1.15),
    *(Target(case, ours, "limit", None) for case, ours in product(_BIG, (LOCAL, SPARK))),
    *(Target(case, ours, "deltalake", None) for case, ours in product(_BIG, (LOCAL, SPARK))),
    *(
        Target(case, ours + suffix, f"hudi-spark{suffix}", None)
        for suffix in ("", "-metadata")
        for case, ours in product(("bulk_insert", *_UPSERTS), (LOCAL, SPARK))
    ),
)
