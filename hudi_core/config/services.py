"""Options of table services: what a writer does after its commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.options import ConfigKey, Group, Option, Options
from hudi_core.config.parsers import integer


class ServicesConfig(Options, group=Group.SERVICES):
    """What table services clean and archive, and when."""

    enabled: Option[bool] = Option("hoodie.table.services.enabled", default=True)
    """Whether commits are followed by any table service. What is asked for by its own call or
    command runs in any case."""
    clean_automatic: Option[bool] = Option("hoodie.clean.automatic", default=True)
    """Whether files that no retained commit needs are deleted after a commit."""
    clean_policy: Option[CleanPolicy] = Option(
        "hoodie.cleaner.policy",
        default=CleanPolicy.KEEP_LATEST_COMMITS,
        aliases=("hoodie.clean.policy",),
    )
    """What a clean keeps: what readers as of the latest commits need, the latest versions of each
    file group, or what readers as of the last hours need. The latest state, and what a savepoint or
    a pending action needs, stays under each."""
    commits_retained: Option[int] = Option(
        "hoodie.cleaner.commits.retained", default=10, aliases=("hoodie.clean.commits.retained",)
    )
    """Commits as of which the table stays readable under KEEP_LATEST_COMMITS."""
    file_versions_retained: Option[int] = Option(
        "hoodie.cleaner.fileversions.retained",
        default=3,
        aliases=("hoodie.clean.fileversions.retained",),
    )
    """Versions of each file group that stay under KEEP_LATEST_FILE_VERSIONS."""
    hours_retained: Option[int] = Option(
        "hoodie.cleaner.hours.retained", default=24, aliases=("hoodie.clean.hours.retained",)
    )
    """Hours back to which the table stays readable under KEEP_LATEST_BY_HOURS."""
    clean_max_commits: Option[int] = Option(
        "hoodie.clean.max.commits", default=1, aliases=("hoodie.clean.trigger.max.commits",)
    )
    """Commits after the last clean that make the next one due."""
    clean_incremental: Option[bool] = Option(
        "hoodie.cleaner.incremental.mode",
        default=True,
        aliases=("hoodie.clean.incremental.enabled",),
    )
    """Whether a clean looks only at partitions in which something was updated or replaced since the
    last one, or at all of them. Under KEEP_LATEST_FILE_VERSIONS it is always all."""
    clean_trigger_strategy = ConfigKey(
        "hoodie.clean.trigger.strategy", default="NUM_COMMITS", choices=("NUM_COMMITS",)
    )
    """What makes a clean due."""
    stage_hours_retained: Option[int] = Option("hoodie.stage.hours.retained", default=168)
    """Hours after which a stage that was not published expires. The next stage, and cleans, delete
    its files."""
    archive_automatic: Option[bool] = Option("hoodie.archive.automatic", default=True)
    """Whether old instants leave the active timeline for the archived one after a commit."""
    keep_min_commits: Option[int] = Option("hoodie.keep.min.commits", default=20)
    """Commits that stay on the active timeline when older ones are archived. Those that the last
    clean retained stay in any case."""
    keep_max_commits: Option[int] = Option("hoodie.keep.max.commits", default=30)
    """Commits that the active timeline may have before it is archived."""
    archive_beyond_savepoint: Option[bool] = Option(
        "hoodie.archive.beyond.savepoint", default=False
    )
    """Whether commits after a savepointed one are archived, which itself stays."""
    history_batch_size: Option[int] = Option(
        "hoodie.timeline.compaction.batch.size", default=10, parse=integer(2)
    )
    """Files of one level of the archived timeline that are merged into one of the next."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; limits of archiving must leave room."""
        cls.clean_trigger_strategy.read(options)
        config = super().from_options(options)
        if config.keep_max_commits <= config.keep_min_commits:
            raise cls.keep_max_commits.refused(
                str(config.keep_max_commits),
                f"it is not more than {cls.keep_min_commits.key}={config.keep_min_commits}",
                "Give both, the maximum greater than the minimum.",
            )
        return config
