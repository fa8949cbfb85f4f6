"""Options of partition expiry: which partitions are old, and when they go."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from hudi_core.config.options import ConfigKey, Group, Option, Options
from hudi_core.config.parsers import integer

_PACKAGE: Final = "org.apache.hudi.table.action.ttl.strategy."


class TtlStrategy(StrEnum):
    """The time from which on the age of a partition counts."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    """That of the last commit that wrote to it."""
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"
    """That of the commit that made it."""


STRATEGY_CLASSES: Final = {
    _PACKAGE + "KeepByTimeStrategy": TtlStrategy.KEEP_BY_TIME,
    _PACKAGE + "KeepByCreationTimeStrategy": TtlStrategy.KEEP_BY_CREATION_TIME,
}
"""What Hudi's strategy classes mean."""


def strategy_class(text: str) -> TtlStrategy | None:
    """Parse the name of one of Hudi's strategy classes."""
    if text and text not in STRATEGY_CLASSES:
        raise ValueError(f"it is none of {', '.join(STRATEGY_CLASSES)}")
    return STRATEGY_CLASSES.get(text)


class TtlConfig(Options, group=Group.SERVICES):
    """Which partitions expire, and whether they do after a commit."""

    inline: Option[bool] = Option("hoodie.partition.ttl.inline", default=False)
    """Whether expired partitions are deleted after a commit."""
    strategy: Option[TtlStrategy] = Option(
        "hoodie.partition.ttl.management.strategy.type", default=TtlStrategy.KEEP_BY_TIME
    )
    """From when on the age of a partition counts: the last commit that wrote to it, or the one that
    made it."""
    strategy_class = ConfigKey(
        "hoodie.partition.ttl.strategy.class",
        parse=strategy_class,
        default_text="(as the type says)",
    )
    """The same by the name of Hudi's Java class, which goes before the type:
    `org.apache.hudi.table.action.ttl.strategy.KeepByTimeStrategy`,
    `org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy`."""
    days_retained: Option[int] = Option(
        "hoodie.partition.ttl.strategy.days.retain",
        default=-1,
        parse=integer(-1, 1_000_000),
        default_text="-1 (nothing expires)",
    )
    """Days that a partition is kept."""
    partitions: Option[tuple[str, ...]] = Option(
        "hoodie.partition.ttl.strategy.partition.selected", default=(), default_text="(all)"
    )
    """Paths of the partitions that may expire, separated by commas."""
    max_partitions: Option[int] = Option(
        "hoodie.partition.ttl.strategy.max.delete.partitions", default=1000
    )
    """Partitions that one commit deletes at most, the oldest first."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; a class goes before a type."""
        strategy = cls.strategy_class.read(options) or cls.strategy.read(options)
        return cls._read(options, strategy=strategy)
