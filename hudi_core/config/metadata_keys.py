"""Options of the metadata table: its partitions and table services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from hudi_core.config.options import ConfigKey, Group, Option, Options
from hudi_core.config.parsers import (
    integer,
    local_folder,
    number,
    optional_flag,
    regular_expression,
)

_GROUPS: Final = integer(1, 9999)


class MetadataConfig(Options, group=Group.METADATA):
    """What the metadata table holds, and how it is kept small.

    ``is_refused`` means that options turn the table off, and readers list the storage;
    ``chooses_columns`` that options say which columns have their ranges kept, or of how many.
    """

    enabled: Option[bool] = Option("hoodie.metadata.enable", default=True)
    """Whether writers keep the metadata table, and readers list files from it. A table that has
    one is always kept up to date by writers; what true adds is that they make it where it is
    missing."""
    column_stats: Option[bool] = Option("hoodie.metadata.index.column.stats.enable", default=True)
    """Whether the metadata table holds the range of values of columns, file by file."""
    stats_columns: Option[tuple[str, ...]] = Option(
        "hoodie.metadata.index.column.stats.column.list",
        default=(),
        default_text="(the first columns)",
    )
    """The columns whose ranges are kept, by their dotted paths."""
    max_stats_columns: Option[int] = Option(
        "hoodie.metadata.index.column.stats.max.columns.to.index", default=32
    )
    """How many of the table's first columns have their ranges kept where none are named."""
    column_stats_groups: Option[int] = Option(
        "hoodie.metadata.index.column.stats.file.group.count", default=2, parse=_GROUPS
    )
    """File groups of the ranges of columns; fixed when they are first built."""
    partition_stats: Option[bool | None] = Option(
        "hoodie.metadata.index.partition.stats.enable",
        parse=optional_flag,
        default_text="(as hoodie.metadata.index.column.stats.enable)",
    )
    """Whether the metadata table holds the range of values of columns, partition by partition."""
    partition_stats_groups: Option[int] = Option(
        "hoodie.metadata.index.partition.stats.file.group.count", default=1, parse=_GROUPS
    )
    """File groups of the ranges of partitions; fixed when they are first built."""
    bloom_filters: Option[bool] = Option("hoodie.metadata.index.bloom.filter.enable", default=False)
    """Whether the metadata table holds the bloom filters of files."""
    bloom_filter_groups: Option[int] = Option(
        "hoodie.metadata.index.bloom.filter.file.group.count", default=4, parse=_GROUPS
    )
    """File groups of the bloom filters; fixed when they are first built."""
    record_index: Option[bool] = Option(
        "hoodie.metadata.global.record.level.index.enable",
        default=False,
        aliases=("hoodie.metadata.record.index.enable",),
    )
    """Whether the metadata table holds the file group of every record key, each key once in the
    whole table."""
    partitioned_record_index: Option[bool] = Option(
        "hoodie.metadata.record.level.index.enable", default=False
    )
    """Whether the metadata table holds the file group of every record key, partition by partition:
    a key is unique in its partition, and each partition has file groups of its own."""
    partitioned_index_min_groups: Option[int] = Option(
        "hoodie.metadata.record.level.index.min.filegroup.count",
        default=1,
        parse=_GROUPS,
        aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
    )
    """Least number of file groups that a partition has in a record index that is kept by
    partitions; those that come later get so many."""
    partitioned_index_max_groups: Option[int] = Option(
        "hoodie.metadata.record.level.index.max.filegroup.count",
        default=10,
        parse=_GROUPS,
        aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
    )
    """Greatest number of file groups that a partition has in a record index that is kept by
    partitions."""
    record_index_min_groups: Option[int] = Option(
        "hoodie.metadata.global.record.level.index.min.filegroup.count",
        default=10,
        parse=_GROUPS,
        aliases=("hoodie.metadata.record.index.min.filegroup.count",),
    )
    """Least number of file groups of the record index."""
    record_index_max_groups: Option[int] = Option(
        "hoodie.metadata.global.record.level.index.max.filegroup.count",
        default=10_000,
        parse=integer(1, 10_000),
        aliases=("hoodie.metadata.record.index.max.filegroup.count",),
    )
    """Greatest number of file groups of the record index."""
    record_index_growth: Option[float] = Option(
        "hoodie.metadata.record.index.growth.factor", default=2.0, parse=number(0, 1000)
    )
    """By how much the keys are expected to grow when the record index is laid out."""
    record_index_group_bytes: Option[int] = Option(
        "hoodie.metadata.record.index.max.filegroup.size", default=1 << 30
    )
    """Bytes that a file group of the record index is laid out for."""
    record_index_cache: Option[str | None] = Option(
        "hoodie.metadata.record.index.cache.folder",
        parse=local_folder,
        hudi_default="(no such option; nothing is kept)",
        reason="Keys that are sorted already are found faster, and files of an index never change.",
    )
    """A folder of the machine that looks up record keys, for what it has read of large files of the
    record index; each process of the machine may use it, and everything in it may be deleted at any
    time. What was kept for 30 days is."""
    expression_groups: Option[int] = Option(
        "hoodie.metadata.index.expression.file.group.count", default=2, parse=_GROUPS
    )
    """File groups of an expression index; fixed when it is built."""
    secondary_index: Option[bool] = Option("hoodie.metadata.index.secondary.enable", default=True)
    """Whether secondary indexes serve filters. Those that a table has are kept either way."""
    dir_filter: Option[str] = Option(
        "hoodie.metadata.dir.filter.regex",
        default="",
        parse=regular_expression,
        default_text="(none)",
    )
    """Folders whose whole path matches are left out when the metadata table is first made."""
    compact_delta_commits: Option[int] = Option(
        "hoodie.metadata.compact.max.delta.commits", default=10
    )
    """After how many of its own commits the metadata table is compacted."""
    max_delta_commits_pending: Option[int] = Option(
        "hoodie.metadata.max.deltacommits.when_pending", default=1000
    )
    """How many commits of the metadata table may wait for compaction while a write is pending."""
    clean_commits_retained: Option[int] = Option(
        "hoodie.metadata.cleaner.commits.retained", default=20
    )
    """How many commits of the metadata table keep the files that they read."""
    keep_min_commits: Option[int] = Option("hoodie.metadata.keep.min.commits", default=20)
    """How many instants archiving leaves on the metadata table's timeline."""
    keep_max_commits: Option[int] = Option("hoodie.metadata.keep.max.commits", default=30)
    """How many instants the metadata table's timeline may have before it is archived."""
    validate: Option[bool] = Option("hoodie.metadata.validate", default=False)
    """Whether readers compare the metadata table with the storage, and answer from the storage."""
    metrics = ConfigKey(
        "hoodie.metadata.metrics.enable",
        parse=optional_flag,
        default_text="(as hoodie.metrics.on)",
        hudi_default="false",
        reason="The metadata table is what there are metrics of.",
    )
    """Whether what is measured of the metadata table is published, where metrics are."""
    is_refused: bool = False
    chooses_columns: bool = False

    @property
    def record_index_groups(self) -> tuple[int, int]:
        """Least and greatest number of file groups of the record index."""
        return self.record_index_min_groups, self.record_index_max_groups

    @property
    def partitioned_index_groups(self) -> tuple[int, int]:
        """Least and greatest number of file groups per data partition.

        For an index that is partitioned.
        """
        return self.partitioned_index_min_groups, self.partitioned_index_max_groups

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`."""
        # ranges of partitions are made from those of files
        of_partitions = cls.partition_stats.read(options) is not False
        return cls._read(
            options,
            partition_stats=cls.column_stats.read(options) and of_partitions,
            is_refused=cls.enabled.is_given(options) and not cls.enabled.read(options),
            chooses_columns=any(
                one.is_given(options) for one in (cls.stats_columns, cls.max_stats_columns)
            ),
        )
