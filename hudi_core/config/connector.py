"""Options of the connector, by the names of Hudi's connector for Trino."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Self

from hudi_core.config.lock_servers import thrift_uris
from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import integer, number

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?B)")
_UNITS: Final = {"B": 1, "kB": 1 << 10, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_MOST: Final = (1 << 31) - 1
_WITHOUT_MEANING: Final = re.compile(
    r"hudi\.(parquet\.use-column-names|per-transaction-metastore-cache-maximum-size"
    r"|metadata\.cache\.enabled|ignore-absent-partitions|table-statistics-enabled"
    r"|table-statistics-executor-parallelism|dynamic-filtering\.wait-timeout"
    r"|record-merger-impls|index\..+)"
)
"""Options of Hudi's connector for Trino that change nothing here; ``docs/connector.md`` has why."""


def is_without_meaning(name: str) -> bool:
    """Whether an option of Hudi's connector for Trino changes nothing here."""
    return _WITHOUT_MEANING.fullmatch(name) is not None


def data_size(text: str) -> int:
    """Parse a size such as ``128MB``, whose units are powers of 1,024."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("it is no size, such as 128MB")
    size = int(float(match[1]) * _UNITS[match[2]])
    if size < 1:
        raise ValueError("it is less than a byte")
    return size


class ConnectorConfig(Options, group=Group.CONNECTOR):
    """How a connector finds tables, and plans scans of them."""

    metastore_uris: Option[tuple[str, ...]] = Option(
        "hive.metastore.uri", default=(), parse=thrift_uris
    )
    """Addresses of the Hive metastore, such as `thrift://metastore:9083`, with commas between; the
    first that answers is asked. Needs thrift: `pip install hudi-core[hive]`."""
    columns_to_hide: Option[tuple[str, ...]] = Option("hudi.columns-to-hide", default=())
    """Columns that are shown as hidden: they are read where they are named, and by no `SELECT
    *`."""
    metadata_enabled: Option[bool] = Option("hudi.metadata-enabled", default=True)
    """Whether a table's files are found by its metadata table; else its folders are listed."""
    partition_listing: Option[bool] = Option(
        "hudi.metadata.partition-listing.enabled", default=False
    )
    """Whether the partitions of a table that the metastore names are those that the table has
    itself, not those that the metastore has. A partition that no sync has brought there yet is not
    read without it."""
    partition_filter_required: Option[bool] = Option(
        "hudi.query-partition-filter-required", default=False
    )
    """Whether a scan of a partitioned table is refused whose predicate limits no partition
    column."""
    min_partition_batch: Option[int] = Option("hudi.min-partition-batch-size", default=10)
    """Partitions that the first call to the metastore asks for; each further call asks for twice as
    many as the one before."""
    max_partition_batch: Option[int] = Option("hudi.max-partition-batch-size", default=100)
    """Partitions that a call to the metastore asks for at most."""
    loader_parallelism: Option[int] = Option(
        "hudi.split-loader-parallelism", default=10, parse=integer(1, 1000)
    )
    """Threads of one scan that list partitions."""
    generator_parallelism: Option[int] = Option(
        "hudi.split-generator-parallelism", default=4, parse=integer(1, 1000)
    )
    """Threads of one scan that make splits of files."""
    max_outstanding: Option[int] = Option("hudi.max-outstanding-splits", default=10_000)
    """Splits of one scan that wait to be taken, at most; loading pauses meanwhile."""
    max_per_second: Option[int] = Option(
        "hudi.max-splits-per-second", default=_MOST, default_text="(no limit)"
    )
    """Splits of one scan that are handed out in a second, at most."""
    target_split_size: Option[int] = Option(
        "hudi.target-split-size", default=128 << 20, parse=data_size, default_text="128MB"
    )
    """Bytes of a file that one split covers; the last split of a file has up to a tenth more."""
    weighted: Option[bool] = Option("hudi.size-based-split-weights-enabled", default=True)
    """Whether a batch holds more splits where they are small."""
    standard_weight_size: Option[int] = Option(
        "hudi.standard-split-weight-size", default=128 << 20, parse=data_size, default_text="128MB"
    )
    """Bytes of a split that weighs 1; smaller ones weigh less."""
    minimum_weight: Option[float] = Option(
        "hudi.minimum-assigned-split-weight", default=0.05, parse=number(0, 1.0000001)
    )
    """What a split weighs at least."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; batches do not shrink."""
        config = cls._read(options)
        if config.max_partition_batch < config.min_partition_batch:
            raise cls.max_partition_batch.refused(
                config.max_partition_batch,
                f"it is less than {cls.min_partition_batch.key}={config.min_partition_batch}",
                "Give a greater one.",
            )
        return config
