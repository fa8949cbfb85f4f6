"""Options of one write; none is stored with the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.commit_keys import commit_extras
from hudi_core.config.compaction import CompactionConfig
from hudi_core.config.foreign import OptionTreatment, foreign_options
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.kinds import (
    BulkInsertSortMode,
    ConcurrencyMode,
    InsertDuplicates,
    LockKind,
    LogBlockFormat,
    PartialUpdateMode,
)
from hudi_core.config.lock import LockConfig
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.options import ConfigKey, Group, Option, Options
from hudi_core.config.parsers import integer, number, optional
from hudi_core.config.read import ReadConfig
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.services import ServicesConfig
from hudi_core.config.sql import OverwriteMode, SqlConfig
from hudi_core.config.storage import StoreKeys
from hudi_core.config.ttl import TtlConfig
from hudi_core.config.validators import ValidatorsConfig
from hudi_core.model.extra_metadata import CommitExtras
from hudi_core.model.operation import OPERATIONS, UPSERT, Operation

_MIB: Final = 1 << 20
_CODECS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "uncompressed": "none",
}
"""Codecs by Hudi's (Parquet's) word and by pyarrow's."""


class WriteConfig(Options, group=Group.WRITE):
    """How rows are written.

    ``compression_codec`` is as pyarrow names it; ``compression_level`` is ``None`` for the codec's
    own default. ``few_rows_codec`` is that of log blocks of few rows, where it is another.
    ``partial_update_mode`` is what an upsert does about columns that the rows lack.
    ``fsync`` is about local timeline files.
    """

    operation: Option[Operation] = Option(
        "hoodie.datasource.write.operation",
        default=UPSERT,
        parse={one.option: one for one in OPERATIONS}.__getitem__,
        choices=tuple(one.option for one in OPERATIONS),
        default_text="upsert",
    )
    """What is done with the rows. For a table without a record key, insert is the default, unless
    the rows were read from it and have their column `_hoodie_record_key`."""
    partitions_to_delete: Option[tuple[str, ...]] = Option(
        "hoodie.datasource.write.partitions.to.delete",
        default=(),
        default_text="(the partitions of the rows)",
    )
    """Paths of the partitions that delete_partition deletes, separated by commas."""
    combine_before_insert: Option[bool] = Option("hoodie.combine.before.insert", default=False)
    """Whether insert, bulk_insert, insert_overwrite and insert_overwrite_table combine incoming
    rows that have one key."""
    combine_before_upsert: Option[bool] = Option("hoodie.combine.before.upsert", default=True)
    """Whether upsert combines incoming rows that have one key. Turn it off only for rows that are
    certain to have distinct keys: of several with one key, the last meets the stored row."""
    combine_before_delete: Option[bool] = Option("hoodie.combine.before.delete", default=True)
    """Whether delete combines incoming rows that have one key."""
    validates_complex_keys: Option[bool] = Option(
        "hoodie.write.complex.keygen.validation.enable", default=True
    )
    """Whether a write to a table of Apache Hudi's is refused where its COMPLEX generator has one
    key field and stored rows do not show whether keys are `field:value` or, as Hudi 1.0.0 to 1.0.2
    make them, the bare value: because there are none, or of both. Where they show it, their form is
    taken in any case."""
    allow_duplicate_on_insert: Option[bool] = Option(
        "hoodie.merge.allow.duplicate.on.inserts", default=True
    )
    """Whether insert keeps a row whose key is already in the small file that takes it in; false
    updates the stored row instead."""
    insert_drop_duplicates = ConfigKey(
        "hoodie.datasource.write.insert.drop.duplicates", default=False
    )
    """Whether insert drops rows whose keys the table holds already, and combines incoming rows that
    have one key; the same as hoodie.datasource.insert.dup.policy=drop."""
    insert_duplicates: Option[InsertDuplicates] = Option(
        "hoodie.datasource.insert.dup.policy", default=InsertDuplicates.NONE
    )
    """What insert does about rows whose keys the table holds already. none: does not look. drop:
    drops them, and combines incoming rows that have one key. fail: writes nothing."""
    bulk_insert_sort_mode: Option[BulkInsertSortMode] = Option(
        "hoodie.bulkinsert.sort.mode", default=BulkInsertSortMode.NONE
    )
    """How bulk_insert arranges rows. NONE: as they come. PARTITION_SORT: each task sorts its rows
    by partition path and record key. GLOBAL_SORT: so are all rows together.
    PARTITION_PATH_REPARTITION: one task writes all rows of a partition, so that few files are made;
    with _AND_SORT they are the same files, as a task writes one partition after the other."""
    bulk_insert_sort_columns: Option[tuple[str, ...]] = Option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        default=(),
        default_text="(the record key)",
    )
    """Columns by which GLOBAL_SORT and PARTITION_SORT sort the rows of a partition; nulls are
    first."""
    bulk_insert_parallelism: Option[int] = Option(
        "hoodie.bulkinsert.shuffle.parallelism",
        default=0,
        parse=integer(0),
        default_text="0 (the engine decides)",
    )
    """Tasks over which the sort modes that redistribute rows spread them. The other modes keep the
    tasks of the input."""
    small_file_limit: Option[int] = Option(
        "hoodie.parquet.small.file.limit",
        default=100 * _MIB,
        parse=lambda text: max(0, integer(-(1 << 62))(text)),
    )
    """Base files of fewer bytes take in new rows before new files are made; 0 or less for never.
    Where it is not set, a MERGE_ON_READ table rewrites one only for at most four times the bytes of
    the new rows, or a megabyte."""
    max_file_size: Option[int] = Option("hoodie.parquet.max.file.size", default=120 * _MIB)
    """Bytes a base file is meant to have at most."""
    record_size_estimate: Option[int] = Option(
        "hoodie.copyonwrite.record.size.estimate", default=1024
    )
    """Bytes of a row in a file, as long as no commit shows them. Where it is not set, rows of more
    than four times as many bytes in memory count as a quarter of these."""
    record_size_threshold: Option[float] = Option(
        "hoodie.record.size.estimation.threshold", default=1.0, parse=number(above=-1, below=1e6)
    )
    """A commit shows the size of a row when it wrote more than this share of
    hoodie.parquet.small.file.limit."""
    insert_auto_split: Option[bool] = Option("hoodie.copyonwrite.insert.auto.split", default=True)
    """Whether the rows of a new file follow from the size of a row and the size of a file."""
    insert_split_size: Option[int] = Option("hoodie.copyonwrite.insert.split.size", default=500_000)
    """Rows of a new file when hoodie.copyonwrite.insert.auto.split is false."""
    compression_codec: Option[str] = Option(
        "hoodie.parquet.compression.codec",
        default="zstd",
        parse=_CODECS.__getitem__,
        choices=tuple(_CODECS),
        hudi_default="gzip",
        reason="zstd compresses as well in a fraction of the time. Log blocks of less than 4096 "
        "rows are snappy by default, which takes half the time and 1.4 times the bytes of zstd.",
    )
    """Compression of base files."""
    compression_level: Option[int | None] = Option(
        "parquet.compression.codec.zstd.level",
        default=1,
        parse=integer(1, 22),
        hudi_default="3",
        reason="Level 3 took 30 % longer on 500,000 rows of 17 columns and saved no byte to speak "
        "of.",
    )
    """Level of zstd; higher is slower and smaller."""
    row_group_bytes: Option[int] = Option("hoodie.parquet.block.size", default=120 * _MIB)
    """Bytes of a row group before compression."""
    page_bytes: Option[int] = Option("hoodie.parquet.page.size", default=_MIB)
    """Bytes of a page before compression."""
    dictionary_enabled: Option[bool] = Option("hoodie.parquet.dictionary.enabled", default=True)
    """Whether columns with few values are dictionary-encoded."""
    bloom_enabled: Option[bool] = Option("hoodie.parquet.bloom.filter.enabled", default=True)
    """Whether base files carry a bloom filter of their keys."""
    bloom_entries: Option[int | None] = Option(
        "hoodie.index.bloom.num_entries",
        parse=optional(integer(1)),
        default_text="(the rows of the file)",
        hudi_default="60000",
        reason="Hudi's size adds 431 KB to every file, however few rows it has, and loses its "
        "precision above 60000 rows. Readers take the size from the filter itself.",
    )
    """Keys the bloom filter of a base file is sized for."""
    bloom_fpp: Option[float] = Option(
        "hoodie.index.bloom.fpp",
        default=1e-9,
        parse=number(above=0, below=1),
        default_text="0.000000001",
    )
    """Share of absent keys that the bloom filter takes for present."""
    bloom_max_entries: Option[int] = Option(
        "hoodie.bloom.index.filter.dynamic.max.entries", default=100_000
    )
    """Keys above which a bloom filter with a set size grows no further."""
    log_block_format: Option[LogBlockFormat] = Option(
        "hoodie.logfile.data.block.format",
        default=LogBlockFormat.PARQUET,
        hudi_default="avro",
        reason="Avro takes four times as long to read and more than twice the space, is read with "
        "all columns, and is written row by row. Hudi reads both.",
    )
    """Format of the rows in log files."""
    log_block_bytes: Option[int] = Option(
        "hoodie.logfile.data.block.max.size", default=256 * 1024 * 1024, parse=integer(1)
    )
    """Bytes of rows, as they are in memory, after which a log file gets another block for those
    that follow. Readers have one block in memory at a time."""
    log_file_bytes: Option[int] = Option(
        "hoodie.logfile.max.size", default=1024 * _MIB, parse=integer(1)
    )
    """Bytes of a log file from which on further blocks of a write go into another one, of the next
    version. Each write begins a log file in any case."""
    record_positions: Option[bool] = Option("hoodie.write.record.positions", default=True)
    """Whether log files name the positions that rows have in their base file. Readers find them by
    their record keys otherwise, which takes longer."""
    partial_blocks: Option[bool] = Option(
        "hoodie.spark.sql.merge.into.partial.updates",
        default=False,
        hudi_default="true",
        reason="Hudi-Spark's incremental queries return rows of such blocks with nulls in the "
        "other columns, and hudi-rs up to 0.4 reads no slice with one.",
    )
    """Whether blocks of rows that are updated in log files have the columns alone that a statement
    sets, or that the rows of a partial upsert have, beside those of the ordering; and not whole
    rows. So in tables that store record keys, merge by commit time or by ordering columns, and have
    no column that marks deletes."""
    heartbeat_interval_ms: Option[int] = Option(
        "hoodie.client.heartbeat.interval_in_ms", default=60_000, parse=integer(10)
    )
    """Milliseconds between two signs of life of a writer."""
    heartbeat_misses: Option[int] = Option("hoodie.client.heartbeat.tolerable.misses", default=2)
    """Signs of life that may be missing before a writer counts as dead and is rolled back."""
    detects_early: Option[bool] = Option(
        "hoodie.write.concurrency.early.conflict.detection.enable", default=False
    )
    """Whether a write is refused before it writes data when a live writer is changing one of its
    file groups. Otherwise, and for all else, conflicts are found at the commit."""
    bloom_type = ConfigKey(
        "hoodie.bloom.index.filter.type", default="DYNAMIC_V0", choices=("DYNAMIC_V0",)
    )
    """Kind of bloom filter."""
    auto_upgrade = ConfigKey(
        "hoodie.write.auto.upgrade",
        default=False,
        hudi_default="true",
        reason="An upgrade shuts out older readers, and no user asked for it.",
    )
    """Whether a write may raise the table's version. It never does; true is warned of."""
    markers_type = ConfigKey(
        "hoodie.write.markers.type",
        default="DIRECT",
        choices=("DIRECT", "TIMELINE_SERVER_BASED"),
        hudi_default="TIMELINE_SERVER_BASED",
        reason="There is no timeline server.",
    )
    """How markers are kept. Both words are accepted; markers are always written directly."""

    partial_update_mode: PartialUpdateMode = MergeKeys.partial_update_mode.default
    index: IndexConfig = IndexConfig()
    schema: SchemaConfig = SchemaConfig()
    lock: LockConfig = LockConfig()
    metadata: MetadataConfig = MetadataConfig.from_options({})
    services: ServicesConfig = ServicesConfig()
    clustering: ClusteringConfig = ClusteringConfig()
    compaction: CompactionConfig = CompactionConfig()
    validators: ValidatorsConfig = ValidatorsConfig()
    ttl: TtlConfig = TtlConfig()
    few_rows_codec: str | None = "snappy"
    fsync: bool = StoreKeys.fsync.default
    extras: CommitExtras = CommitExtras()
    merge_memory: int = ReadConfig.merge_memory.default
    spill_folder: str | None = None

    @property
    def concurrency_mode(self) -> ConcurrencyMode:
        return self.lock.concurrency_mode

    @property
    def lock_provider(self) -> LockKind | str | None:
        return self.lock.provider

    def duplicates(self, operation: Operation) -> InsertDuplicates:
        """What options do about incoming rows whose keys are stored."""
        decides = operation.has_duplicate_policy
        return self.insert_duplicates if decides else InsertDuplicates.NONE

    def combines(self, operation: Operation) -> bool:
        """Whether incoming rows that have one key are combined."""
        drops = self.duplicates(operation) is InsertDuplicates.DROP
        return drops or bool(getattr(self, operation.combined_by))

    def updates(self, operation: Operation) -> bool:
        """Whether incoming and stored rows with one key become one.

        Where they meet in a file.
        """
        inserts = operation.has_duplicate_policy and not self.allow_duplicate_on_insert
        return operation.updates or inserts

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; what this release does not do is refused."""
        foreign_options().refuse(options, OptionTreatment.REFUSED_IN_WRITES)
        if SqlConfig.overwrite_mode.read(options) is OverwriteMode.STATIC:
            raise SqlConfig.overwrite_mode.refused(
                OverwriteMode.STATIC.value,
                "an operation that overwrites drops the partitions that the rows belong to",
                "Drop the option, or use INSERT OVERWRITE by hudi.sql. Accepted: DYNAMIC.",
            )
        for key in (cls.bloom_type, cls.auto_upgrade, cls.markers_type):
            key.read(options)
        derived: dict[str, Any] = {
            "insert_duplicates": _insert_duplicates(options),
            "partial_update_mode": MergeKeys.partial_update_mode.read(options),
            "fsync": StoreKeys.fsync.read(options),
            "extras": commit_extras(options),
            "merge_memory": ReadConfig.merge_memory.read(options),
            "spill_folder": ReadConfig.spill_folder.read(options),
        }
        if cls.compression_codec.read(options) != "zstd":
            derived["compression_level"] = None
        if cls.compression_codec.is_given(options) or cls.compression_level.is_given(options):
            derived["few_rows_codec"] = None
        return cls._read(options, **derived)


def _insert_duplicates(options: Mapping[str, str]) -> InsertDuplicates:
    policy, drops = WriteConfig.insert_duplicates, WriteConfig.insert_drop_duplicates
    if not drops.read(options):
        return policy.read(options)
    if policy.is_given(options) and policy.read(options) is not InsertDuplicates.DROP:
        raise drops.refused(
            "true",
            f"{policy.key}={policy.read(options)} says otherwise",
            f"Give only {policy.key}.",
        )
    return InsertDuplicates.DROP
