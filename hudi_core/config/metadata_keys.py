"""The options of the metadata table: what it holds, and how it is kept small."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group, keys_below
from hudi_core.config.parsers import (
    boolean,
    integer,
    local_folder,
    names,
    number,
    optional_flag,
)

_GROUPS: Final = integer(1, 9999)


def folder_filter(text: str) -> str:
    """Parse a regular expression of folders; blank for none."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is not a regular expression ({error})") from None
    return text


_key = keys_below("hoodie.metadata.", Group.METADATA)
ENABLE: Final[ConfigKey[bool]] = _key(
    "enable",
    default=True,
    parse=boolean,
    doc="Whether writers keep the metadata table, and readers list files from it. A table that has "
    "one is always kept up to date by writers; what true adds is that they make it where it is "
    "missing.",
)
COLUMN_STATS: Final[ConfigKey[bool]] = _key(
    "index.column.stats.enable",
    default=True,
    parse=boolean,
    doc="Whether the metadata table holds the range of values of columns, file by file.",
)
COLUMN_STATS_COLUMNS: Final[ConfigKey[tuple[str, ...]]] = _key(
    "index.column.stats.column.list",
    default=(),
    default_text="(the first columns)",
    parse=names,
    doc="The columns whose ranges are kept, by their dotted paths.",
)
COLUMN_STATS_MAX: Final[ConfigKey[int]] = _key(
    "index.column.stats.max.columns.to.index",
    default=32,
    parse=integer(1),
    doc="How many of the table's first columns have their ranges kept where none are named.",
)
COLUMN_STATS_GROUPS: Final[ConfigKey[int]] = _key(
    "index.column.stats.file.group.count",
    default=2,
    parse=_GROUPS,
    doc="File groups of the ranges of columns; fixed when they are first built.",
)
PARTITION_STATS: Final[ConfigKey[bool | None]] = _key(
    "index.partition.stats.enable",
    default=None,
    default_text="(as hoodie.metadata.index.column.stats.enable)",
    parse=optional_flag,
    doc="Whether the metadata table holds the range of values of columns, partition by partition.",
)
PARTITION_STATS_GROUPS: Final[ConfigKey[int]] = _key(
    "index.partition.stats.file.group.count",
    default=1,
    parse=_GROUPS,
    doc="File groups of the ranges of partitions; fixed when they are first built.",
)
BLOOM_FILTERS: Final[ConfigKey[bool]] = _key(
    "index.bloom.filter.enable",
    default=False,
    parse=boolean,
    doc="Whether the metadata table holds the bloom filters of files.",
)
BLOOM_FILTER_GROUPS: Final[ConfigKey[int]] = _key(
    "index.bloom.filter.file.group.count",
    default=4,
    parse=_GROUPS,
    doc="File groups of the bloom filters; fixed when they are first built.",
)
RECORD_INDEX: Final[ConfigKey[bool]] = _key(
    "global.record.level.index.enable",
    aliases=("hoodie.metadata.record.index.enable",),
    default=False,
    parse=boolean,
    doc="Whether the metadata table holds the file group of every record key, each key once in the "
    "whole table.",
)
PARTITIONED_RECORD_INDEX: Final[ConfigKey[bool]] = _key(
    "record.level.index.enable",
    default=False,
    parse=boolean,
    doc="Whether the metadata table holds the file group of every record key, partition by "
    "partition: a key is unique in its partition, and each partition has file groups of its own.",
)
PARTITIONED_MIN_GROUPS: Final[ConfigKey[int]] = _key(
    "record.level.index.min.filegroup.count",
    aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
    default=1,
    parse=_GROUPS,
    doc="Least number of file groups that a partition has in a record index that is kept by "
    "partitions; those that come later get so many.",
)
PARTITIONED_MAX_GROUPS: Final[ConfigKey[int]] = _key(
    "record.level.index.max.filegroup.count",
    aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
    default=10,
    parse=_GROUPS,
    doc="Greatest number of file groups that a partition has in a record index that is kept by "
    "partitions.",
)
RECORD_INDEX_MIN_GROUPS: Final[ConfigKey[int]] = _key(
    "global.record.level.index.min.filegroup.count",
    aliases=("hoodie.metadata.record.index.min.filegroup.count",),
    default=10,
    parse=_GROUPS,
    doc="Least number of file groups of the record index.",
)
RECORD_INDEX_MAX_GROUPS: Final[ConfigKey[int]] = _key(
    "global.record.level.index.max.filegroup.count",
    aliases=("hoodie.metadata.record.index.max.filegroup.count",),
    default=10_000,
    parse=integer(1, 10_000),
    doc="Greatest number of file groups of the record index.",
)
RECORD_INDEX_GROWTH: Final[ConfigKey[float]] = _key(
    "record.index.growth.factor",
    default=2.0,
    parse=number(0, 1000),
    doc="By how much the keys are expected to grow when the record index is laid out.",
)
RECORD_INDEX_GROUP_BYTES: Final[ConfigKey[int]] = _key(
    "record.index.max.filegroup.size",
    default=1 << 30,
    parse=integer(1),
    doc="Bytes that a file group of the record index is laid out for.",
)
RECORD_INDEX_CACHE: Final[ConfigKey[str | None]] = _key(
    "record.index.cache.folder",
    default=None,
    default_text="(none)",
    parse=local_folder,
    doc="A folder of the machine that looks up record keys, for what it has read of large files of "
    "the record index; each process of the machine may use it, and everything in it may be deleted "
    "at any time. What was kept for 30 days is.",
    hudi_default="(no such option; nothing is kept)",
    reason="Keys that are sorted already are found faster, and files of an index never change.",
)
SECONDARY_INDEX: Final[ConfigKey[bool]] = _key(
    "index.secondary.enable",
    default=True,
    parse=boolean,
    doc="Whether secondary indexes serve filters. Those that a table has are kept either way.",
)
DIR_FILTER: Final[ConfigKey[str]] = _key(
    "dir.filter.regex",
    default="",
    default_text="(none)",
    parse=folder_filter,
    doc="Folders whose whole path matches are left out when the metadata table is first made.",
)
COMPACT_DELTA_COMMITS: Final[ConfigKey[int]] = _key(
    "compact.max.delta.commits",
    default=10,
    parse=integer(1),
    doc="After how many of its own commits the metadata table is compacted.",
)
MAX_DELTA_COMMITS_PENDING: Final[ConfigKey[int]] = _key(
    "max.deltacommits.when_pending",
    default=1000,
    parse=integer(1),
    doc="How many commits of the metadata table may wait for compaction while a write is pending.",
)
CLEAN_COMMITS_RETAINED: Final[ConfigKey[int]] = _key(
    "cleaner.commits.retained",
    default=20,
    parse=integer(1),
    doc="How many commits of the metadata table keep the files that they read.",
)
KEEP_MIN_COMMITS: Final[ConfigKey[int]] = _key(
    "keep.min.commits",
    default=20,
    parse=integer(1),
    doc="How many instants archiving leaves on the metadata table's timeline.",
)
KEEP_MAX_COMMITS: Final[ConfigKey[int]] = _key(
    "keep.max.commits",
    default=30,
    parse=integer(1),
    doc="How many instants the metadata table's timeline may have before it is archived.",
)
VALIDATE: Final[ConfigKey[bool]] = _key(
    "validate",
    default=False,
    parse=boolean,
    doc="Whether readers compare the metadata table with the storage, and answer from the storage.",
)
METRICS: Final[ConfigKey[bool | None]] = _key(
    "metrics.enable",
    default=None,
    default_text="(as hoodie.metrics.on)",
    parse=optional_flag,
    doc="Whether what is measured of the metadata table is published, where metrics are.",
    hudi_default="false",
    reason="The metadata table is what there are metrics of.",
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    ENABLE,
    COLUMN_STATS,
    COLUMN_STATS_COLUMNS,
    COLUMN_STATS_MAX,
    COLUMN_STATS_GROUPS,
    PARTITION_STATS,
    PARTITION_STATS_GROUPS,
    BLOOM_FILTERS,
    BLOOM_FILTER_GROUPS,
    RECORD_INDEX,
    PARTITIONED_RECORD_INDEX,
    PARTITIONED_MIN_GROUPS,
    PARTITIONED_MAX_GROUPS,
    RECORD_INDEX_MIN_GROUPS,
    RECORD_INDEX_MAX_GROUPS,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_GROUP_BYTES,
    RECORD_INDEX_CACHE,
    SECONDARY_INDEX,
    DIR_FILTER,
    COMPACT_DELTA_COMMITS,
    MAX_DELTA_COMMITS_PENDING,
    CLEAN_COMMITS_RETAINED,
    KEEP_MIN_COMMITS,
    KEEP_MAX_COMMITS,
    VALIDATE,
    METRICS,
)


@dataclass(frozen=True, slots=True)
class MetadataConfig:
    """What the options say of the metadata table.

    Attributes
    ----------
    enabled
        Whether writers make one, and readers use it.
    is_refused
        Whether it was said that there shall be none: readers list the storage then.
    column_stats, partition_stats, bloom_filters, record_index, partitioned_record_index
        Which partitions a new metadata table gets, beside the list of files.
    stats_columns, max_stats_columns
        Columns whose ranges are kept by name; where none are named, how many of the first.
    chooses_columns
        Whether options say one of the two.
    column_stats_groups, partition_stats_groups, bloom_filter_groups
        File groups of new partitions.
    record_index_groups, record_index_growth, record_index_group_bytes
        Least and greatest number of file groups of the record index, and what they follow from.
    partitioned_index_groups
        Least and greatest number of file groups of each partition of the table, in a record index
        that is kept by them.
    record_index_cache
        Folder for what was read of the record index; ``None``: nothing is kept.
    secondary_index
        Whether secondary indexes serve filters.
    dir_filter
        Folders that the first listing leaves out; blank for none.
    compact_delta_commits, max_delta_commits_pending
        Commits between compactions, and the most that may wait for one.
    clean_commits_retained, keep_min_commits, keep_max_commits
        Cleaning and archiving of the metadata table itself.
    validate
        Whether readers compare it with the storage.
    """

    enabled: bool
    is_refused: bool
    column_stats: bool
    partition_stats: bool
    bloom_filters: bool
    record_index: bool
    partitioned_record_index: bool
    stats_columns: tuple[str, ...]
    max_stats_columns: int
    chooses_columns: bool
    column_stats_groups: int
    partition_stats_groups: int
    bloom_filter_groups: int
    record_index_groups: tuple[int, int]
    partitioned_index_groups: tuple[int, int]
    record_index_growth: float
    record_index_group_bytes: int
    record_index_cache: str | None
    secondary_index: bool
    dir_filter: str
    compact_delta_commits: int
    max_delta_commits_pending: int
    clean_commits_retained: int
    keep_min_commits: int
    keep_max_commits: int
    validate: bool

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> MetadataConfig:
        """Return the view of a user's options.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used.
        """
        enabled, ranges = ENABLE.read(options), COLUMN_STATS.read(options)
        of_partitions = PARTITION_STATS.read(options)
        return cls(
            enabled=enabled,
            is_refused=ENABLE.is_given(options) and not enabled,
            column_stats=ranges,
            # made from the ranges of files
            partition_stats=ranges and of_partitions is not False,
            bloom_filters=BLOOM_FILTERS.read(options),
            record_index=RECORD_INDEX.read(options),
            partitioned_record_index=PARTITIONED_RECORD_INDEX.read(options),
            stats_columns=COLUMN_STATS_COLUMNS.read(options),
            max_stats_columns=COLUMN_STATS_MAX.read(options),
            chooses_columns=any(
                one.is_given(options) for one in (COLUMN_STATS_COLUMNS, COLUMN_STATS_MAX)
            ),
            column_stats_groups=COLUMN_STATS_GROUPS.read(options),
            partition_stats_groups=PARTITION_STATS_GROUPS.read(options),
            bloom_filter_groups=BLOOM_FILTER_GROUPS.read(options),
            record_index_groups=(
                RECORD_INDEX_MIN_GROUPS.read(options),
                RECORD_INDEX_MAX_GROUPS.read(options),
            ),
            partitioned_index_groups=(
                PARTITIONED_MIN_GROUPS.read(options),
                PARTITIONED_MAX_GROUPS.read(options),
            ),
            record_index_growth=RECORD_INDEX_GROWTH.read(options),
            record_index_group_bytes=RECORD_INDEX_GROUP_BYTES.read(options),
            record_index_cache=RECORD_INDEX_CACHE.read(options),
            secondary_index=SECONDARY_INDEX.read(options),
            dir_filter=DIR_FILTER.read(options),
            compact_delta_commits=COMPACT_DELTA_COMMITS.read(options),
            max_delta_commits_pending=MAX_DELTA_COMMITS_PENDING.read(options),
            clean_commits_retained=CLEAN_COMMITS_RETAINED.read(options),
            keep_min_commits=KEEP_MIN_COMMITS.read(options),
            keep_max_commits=KEEP_MAX_COMMITS.read(options),
            validate=VALIDATE.read(options),
        )
