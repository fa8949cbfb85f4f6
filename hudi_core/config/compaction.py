"""Options of compaction: which log files are merged, and when."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import integer, member, optional_flag

_STRATEGIES: Final = "org.apache.hudi.table.action.compact.strategy."


class CompactionStrategyKind(StrEnum):
    """Which file slices a compaction merges, by Hudi's class names."""

    LOG_FILE_SIZE = "LogFileSizeBasedCompactionStrategy"
    LOG_FILE_NUM = "LogFileNumBasedCompactionStrategy"
    BOUNDED_IO = "BoundedIOCompactionStrategy"
    DAY_BASED = "DayBasedCompactionStrategy"
    UNBOUNDED = "UnBoundedCompactionStrategy"


class CompactionTrigger(StrEnum):
    """When a compaction is due."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class CompactionConfig(Options, group=Group.COMPACTION):
    """Which log files a compaction merges, and when."""

    inline: Option[bool | None] = Option(
        "hoodie.compact.inline",
        parse=optional_flag,
        default_text="(true, unless hoodie.compact.schedule.inline is)",
        hudi_default="false",
        reason="Log files make every read slower until they are merged, and nobody else may do it. "
        "An explicit false is obeyed.",
    )
    """Whether a compaction is scheduled and run after a commit to a MERGE_ON_READ table, where it
    is due."""
    schedule_inline: Option[bool] = Option("hoodie.compact.schedule.inline", default=False)
    """Whether a compaction is scheduled after a commit, where it is due, for another process to run
    (`hudi compact PATH --run all`)."""
    max_delta_commits: Option[int] = Option("hoodie.compact.inline.max.delta.commits", default=5)
    """Deltacommits after the last compaction from which on the next one is due."""
    max_delta_seconds: Option[int] = Option("hoodie.compact.inline.max.delta.seconds", default=3600)
    """Seconds after the last compaction, or the first deltacommit, from which on the next one is
    due, where hoodie.compact.inline.trigger.strategy asks for the time."""
    trigger: Option[CompactionTrigger] = Option(
        "hoodie.compact.inline.trigger.strategy", default=CompactionTrigger.NUM_COMMITS
    )
    """When a compaction is due. `NUM_COMMITS`: after so many deltacommits.
    `NUM_COMMITS_AFTER_LAST_REQUEST`: the same, counted from the last one that was scheduled, be it
    complete or not. `TIME_ELAPSED`: after so many seconds. `NUM_AND_TIME`, `NUM_OR_TIME`: both, or
    one of them."""
    strategy: Option[CompactionStrategyKind] = Option(
        "hoodie.compaction.strategy",
        default=CompactionStrategyKind.LOG_FILE_SIZE,
        parse=member(CompactionStrategyKind, lambda text: text.removeprefix(_STRATEGIES)),
        default_text="LogFileSizeBasedCompactionStrategy",
    )
    """Which file slices with logs a compaction merges. LogFileSizeBasedCompactionStrategy: those
    with the most bytes of logs first, up to hoodie.compaction.target.io.
    LogFileNumBasedCompactionStrategy: those with the most log files first, up to the same.
    BoundedIOCompactionStrategy: in their order, up to the same. DayBasedCompactionStrategy: those
    of the latest partitions, which are dates as in 2026/11/29. UnBoundedCompactionStrategy: all.
    Also by the full names of Hudi's Java classes."""
    target_io: Option[int] = Option("hoodie.compaction.target.io", default=500 * 1024)
    """Megabytes that one compaction reads and writes, after which it takes no further slice."""
    log_size_threshold: Option[int] = Option(
        "hoodie.compaction.logfile.size.threshold", default=0, parse=integer(0)
    )
    """LogFileSizeBasedCompactionStrategy: slices with fewer bytes of logs wait."""
    log_number_threshold: Option[int] = Option(
        "hoodie.compaction.logfile.num.threshold", default=0, parse=integer(0)
    )
    """LogFileNumBasedCompactionStrategy: slices with fewer log files wait."""
    target_partitions: Option[int] = Option(
        "hoodie.compaction.daybased.target.partitions", default=10
    )
    """DayBasedCompactionStrategy: so many partitions."""
    logs_inline: Option[bool] = Option("hoodie.log.compaction.inline", default=False)
    """Whether a log compaction runs after a commit to a MERGE_ON_READ table, where it is due: small
    log files of a file slice are merged into one, and its base file stays."""
    log_blocks: Option[int] = Option(
        "hoodie.log.compaction.blocks.threshold", default=5, parse=integer(1)
    )
    """A log compaction merges the logs of file slices that have so many blocks. After a commit it
    is due with so many deltacommits since the last compaction, of logs or not."""

    @property
    def runs_inline(self) -> bool:
        """Whether compactions that are due run after a commit."""
        return not self.schedule_inline if self.inline is None else self.inline
