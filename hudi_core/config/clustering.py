"""Options of clustering: what is rewritten, in which order, and when."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import (
    integer,
    member,
    names,
    number,
    optional_flag,
    regular_expression,
)

_MIB: Final = 1 << 20
_UPDATES: Final = "org.apache.hudi.client.clustering.update.strategy."


class ClusteringOrder(StrEnum):
    """Order of the rows that a clustering writes, by its sort columns."""

    LINEAR = "LINEAR"
    """By the first column, then by the next."""
    ZORDER = "ZORDER"
    """Along a curve by Morton, so that each column leaves short ranges in a file."""
    HILBERT = "HILBERT"
    """Along a curve by Hilbert, which has no jumps."""


class PartitionFilter(StrEnum):
    """Which partitions a clustering looks at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class UpdatesStrategy(StrEnum):
    """What becomes of writes to file groups under clustering."""

    REJECT = "SparkRejectUpdateStrategy"
    ALLOW = "SparkAllowUpdateStrategy"


class SliceOrder(StrEnum):
    """By what the file slices of a partition are taken."""

    INSTANT_TIME = "INSTANT_TIME"
    SIZE = "SIZE"


def slice_orders(text: str) -> tuple[SliceOrder, ...]:
    """Parse a comma-separated list of what slices are taken by."""
    words = names(text.upper())
    if not words or not set(words) <= set(SliceOrder):
        raise ValueError(f"it is no list of {', '.join(SliceOrder)}")
    return tuple(SliceOrder(word) for word in words)


class ClusteringConfig(Options, group=Group.CLUSTERING):
    """What a clustering rewrites, in which order, and when."""

    inline: Option[bool] = Option(
        "hoodie.clustering.inline",
        default=False,
        aliases=("hoodie.datasource.clustering.inline.enable",),
    )
    """Whether a clustering is scheduled and run after a commit, where it is due."""
    inline_max_commits: Option[int] = Option("hoodie.clustering.inline.max.commits", default=4)
    """Commits after the last clustering from which on the next inline one is due."""
    schedule_inline: Option[bool] = Option("hoodie.clustering.schedule.inline", default=False)
    """Whether a clustering is scheduled after a commit, where it is due, for another process to run
    (`hudi cluster PATH --run`)."""
    schedule_max_commits: Option[int] = Option("hoodie.clustering.async.max.commits", default=4)
    """Commits after the last clustering from which on hoodie.clustering.schedule.inline schedules
    the next one."""
    updates: Option[UpdatesStrategy] = Option(
        "hoodie.clustering.updates.strategy",
        default=UpdatesStrategy.REJECT,
        parse=member(UpdatesStrategy, lambda text: text.removeprefix(_UPDATES)),
        default_text="SparkRejectUpdateStrategy",
    )
    """What becomes of a write that changes, deletes or overwrites rows of a file group that a
    scheduled clustering is about to replace. SparkRejectUpdateStrategy: it is refused before
    anything is written. SparkAllowUpdateStrategy: it goes on, and the clustering is given up. Also
    by the full names of Hudi's Java classes."""
    small_file_limit: Option[int] = Option(
        "hoodie.clustering.plan.strategy.small.file.limit", default=300 * _MIB, parse=integer(0)
    )
    """Base files of fewer bytes are rewritten."""
    dead_share: Option[float] = Option(
        "hoodie.clustering.plan.strategy.deleted.rows.share", default=0.25, parse=number(0, 1)
    )
    """In a split table (`hoodie.table.merge-on-read.mode`), files of any size are rewritten where
    at least this share of their rows is deleted. Compactions after commits take these alone."""
    target_file_bytes: Option[int] = Option(
        "hoodie.clustering.plan.strategy.target.file.max.bytes", default=1024 * _MIB
    )
    """Bytes that a file of a clustering is meant to have at most."""
    max_group_bytes: Option[int] = Option(
        "hoodie.clustering.plan.strategy.max.bytes.per.group", default=2048 * _MIB
    )
    """Bytes of the files that are rewritten together, in one task."""
    max_groups: Option[int] = Option("hoodie.clustering.plan.strategy.max.num.groups", default=30)
    """Groups of files that one clustering rewrites at most."""
    sort_columns: Option[tuple[str, ...]] = Option(
        "hoodie.clustering.plan.strategy.sort.columns",
        default=(),
        default_text="(rows stay in their order)",
    )
    """Columns by which the rows of a group are sorted; nulls are first. Fields of structs are named
    with a dot."""
    layout: Option[ClusteringOrder] = Option(
        "hoodie.layout.optimize.strategy",
        default=ClusteringOrder.LINEAR,
        # Hudi's documentation writes z-order
        parse=member(ClusteringOrder, lambda text: text.upper().replace("-", "").replace("_", "")),
        default_text="LINEAR",
    )
    """How rows are ordered by several sort columns: `LINEAR`, by the first, then by the next;
    `ZORDER` (also `z-order`) or `HILBERT`, along a curve on which rows that are alike in all of
    them are near each other."""
    single_file_groups: Option[bool | None] = Option(
        "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
        parse=optional_flag,
        default_text="(where rows are sorted)",
        hudi_default="true",
        reason="Without sort columns it would be the same file, written again by every clustering.",
    )
    """Whether a file that has no other to be rewritten with is rewritten into one file."""
    slice_order: Option[tuple[SliceOrder, ...]] = Option(
        "hoodie.clustering.plan.strategy.file.slices.sort.by",
        default=(SliceOrder.SIZE,),
        parse=slice_orders,
        default_text="SIZE",
    )
    """Which files of a partition are taken first: `SIZE`, the largest, `INSTANT_TIME`, the oldest,
    or both in turn."""
    partition_filter: Option[PartitionFilter] = Option(
        "hoodie.clustering.plan.partition.filter.mode", default=PartitionFilter.NONE
    )
    """Which partitions are looked at. `NONE`: all. `RECENT_DAYS`: the last ones by name.
    `SELECTED_PARTITIONS`: those between two. `DAY_ROLLING`: each hour of the day, in the table's
    time zone, another twenty-fourth."""
    partition_regex: Option[str | None] = Option(
        "hoodie.clustering.plan.strategy.partition.regex.pattern",
        parse=lambda text: regular_expression(text) or None,
        default_text="(any)",
    )
    """Only partitions whose whole path this regular expression matches are looked at."""
    partitions: Option[tuple[str, ...]] = Option(
        "hoodie.clustering.plan.strategy.partition.selected", default=(), default_text="(any)"
    )
    """Only these partitions are looked at, and the regular expression is not: paths, separated by
    commas."""
    begin_partition: Option[str | None] = Option(
        "hoodie.clustering.plan.strategy.cluster.begin.partition", default_text="(the first)"
    )
    """`SELECTED_PARTITIONS`: the first partition."""
    end_partition: Option[str | None] = Option(
        "hoodie.clustering.plan.strategy.cluster.end.partition", default_text="(the last)"
    )
    """`SELECTED_PARTITIONS`: the last partition."""
    recent_partitions: Option[int] = Option(
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
        default=2,
        parse=integer(-(1 << 31)),
    )
    """`RECENT_DAYS`: how many partitions; 0 or less for all."""
    skipped_partitions: Option[int] = Option(
        "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
        default=0,
        parse=integer(-(1 << 31)),
    )
    """`RECENT_DAYS`: how many of the last partitions are left out."""

    @property
    def takes_single_files(self) -> bool:
        """Whether a file without another to join is rewritten."""
        given = self.single_file_groups
        return bool(self.sort_columns) if given is None else given
