"""The options of one write; none of them is kept with the table."""

from __future__ import annotations

from typing import Any, Final

from hudi_core.config import index_keys
from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.kinds import BulkInsertSortMode, InsertDuplicates
from hudi_core.config.parsers import boolean, integer, names, number, optional
from hudi_core.model.commit import WriteOperation

_MIB: Final = 1 << 20
_CODECS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "uncompressed": "none",
}
"""Codecs by Hudi's (Parquet's) word and by pyarrow's."""

OPERATION: Final = ConfigKey(
    key="hoodie.datasource.write.operation",
    default=WriteOperation.UPSERT,
    default_text="upsert",
    parse=lambda text: WriteOperation(text.upper()),
    choices=(
        "upsert",
        "insert",
        "bulk_insert",
        "delete",
        "insert_overwrite",
        "insert_overwrite_table",
        "delete_partition",
    ),
    doc="What is done with the rows. For a table without a record key, insert is the default, "
    "unless the rows were read from it and have their column `_hoodie_record_key`.",
    group=Group.WRITE,
)
PARTITIONS_TO_DELETE: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.datasource.write.partitions.to.delete",
    default=(),
    default_text="(the partitions of the rows)",
    parse=names,
    doc="Paths of the partitions that delete_partition deletes, separated by commas.",
    group=Group.WRITE,
)
SMALL_FILE_LIMIT: Final = ConfigKey(
    key="hoodie.parquet.small.file.limit",
    default=100 * _MIB,
    parse=lambda text: max(0, integer(-(1 << 62))(text)),
    doc="Base files of fewer bytes take in new rows before new files are made; 0 or less for "
    "never.",
    group=Group.WRITE,
)
MAX_FILE_SIZE: Final = ConfigKey(
    key="hoodie.parquet.max.file.size",
    default=120 * _MIB,
    parse=integer(1),
    doc="Bytes a base file is meant to have at most.",
    group=Group.WRITE,
)
RECORD_SIZE_ESTIMATE: Final = ConfigKey(
    key="hoodie.copyonwrite.record.size.estimate",
    default=1024,
    parse=integer(1),
    doc="Bytes of a row in a file, as long as no commit tells them.",
    group=Group.WRITE,
)
RECORD_SIZE_THRESHOLD: Final = ConfigKey(
    key="hoodie.record.size.estimation.threshold",
    default=1.0,
    parse=number(above=-1, below=1e6),
    doc="A commit tells the size of a row when it wrote more than this share of "
    "hoodie.parquet.small.file.limit.",
    group=Group.WRITE,
)
INSERT_SPLIT_SIZE: Final = ConfigKey(
    key="hoodie.copyonwrite.insert.split.size",
    default=500_000,
    parse=integer(1),
    doc="Rows of a new file when hoodie.copyonwrite.insert.auto.split is false.",
    group=Group.WRITE,
)
INSERT_AUTO_SPLIT: Final = ConfigKey(
    key="hoodie.copyonwrite.insert.auto.split",
    default=True,
    parse=boolean,
    doc="Whether the rows of a new file follow from the size of a row and the size of a file.",
    group=Group.WRITE,
)
COMPRESSION_CODEC: Final = ConfigKey(
    key="hoodie.parquet.compression.codec",
    default="zstd",
    parse=_CODECS.__getitem__,
    choices=tuple(_CODECS),
    doc="Compression of base files.",
    group=Group.WRITE,
    hudi_default="gzip",
    reason="zstd compresses as well in a fraction of the time.",
)
ZSTD_LEVEL: Final = ConfigKey(
    key="parquet.compression.codec.zstd.level",
    default=1,
    parse=integer(1, 22),
    doc="Level of zstd; higher is slower and smaller.",
    group=Group.WRITE,
    hudi_default="3",
    reason="Level 3 took 30 % longer on 500,000 rows of 17 columns and saved no byte to speak of.",
)
ROW_GROUP_BYTES: Final = ConfigKey(
    key="hoodie.parquet.block.size",
    default=120 * _MIB,
    parse=integer(1),
    doc="Bytes of a row group before compression.",
    group=Group.WRITE,
)
PAGE_BYTES: Final = ConfigKey(
    key="hoodie.parquet.page.size",
    default=_MIB,
    parse=integer(1),
    doc="Bytes of a page before compression.",
    group=Group.WRITE,
)
DICTIONARY: Final = ConfigKey(
    key="hoodie.parquet.dictionary.enabled",
    default=True,
    parse=boolean,
    doc="Whether columns with few values are dictionary-encoded.",
    group=Group.WRITE,
)
COMBINE_BEFORE_INSERT: Final = ConfigKey(
    key="hoodie.combine.before.insert",
    default=False,
    parse=boolean,
    doc="Whether insert, bulk_insert, insert_overwrite and insert_overwrite_table combine incoming "
    "rows that have one key.",
    group=Group.WRITE,
)
COMBINE_BEFORE_UPSERT: Final = ConfigKey(
    key="hoodie.combine.before.upsert",
    default=True,
    parse=boolean,
    doc="Whether upsert combines incoming rows that have one key. Turn it off only for rows that "
    "are certain to have distinct keys: of several with one key, the last meets the stored row.",
    group=Group.WRITE,
)
COMPLEX_VALIDATION: Final = ConfigKey(
    key="hoodie.write.complex.keygen.validation.enable",
    default=True,
    parse=boolean,
    doc="Whether a write to a table of Apache Hudi's is refused where its COMPLEX generator has "
    "one key field and stored rows do not tell whether keys are `field:value` or, as Hudi 1.0.0 to "
    "1.0.2 make them, the bare value: because there are none, or of both. Where they tell, their "
    "form is taken in any case.",
    group=Group.WRITE,
)
COMBINE_BEFORE_DELETE: Final = ConfigKey(
    key="hoodie.combine.before.delete",
    default=True,
    parse=boolean,
    doc="Whether delete combines incoming rows that have one key.",
    group=Group.WRITE,
)
BULK_INSERT_SORT_MODE: Final = ConfigKey(
    key="hoodie.bulkinsert.sort.mode",
    default=BulkInsertSortMode.NONE,
    parse=BulkInsertSortMode,
    choices=tuple(BulkInsertSortMode),
    doc="How bulk_insert arranges rows. NONE: as they come. PARTITION_SORT: each task sorts its "
    "rows by partition path and record key. GLOBAL_SORT: so are all rows together. "
    "PARTITION_PATH_REPARTITION: one task writes all rows of a partition, so that few files are "
    "made; with _AND_SORT they are the same files, as a task writes one partition after the other.",
    group=Group.WRITE,
)
BULK_INSERT_SORT_COLUMNS: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    default=(),
    default_text="(the record key)",
    parse=names,
    doc="Columns by which GLOBAL_SORT and PARTITION_SORT sort the rows of a partition; nulls are "
    "first.",
    group=Group.WRITE,
)
BULK_INSERT_PARALLELISM: Final = ConfigKey(
    key="hoodie.bulkinsert.shuffle.parallelism",
    default=0,
    default_text="0 (the engine decides)",
    parse=integer(0),
    doc="Tasks over which the sort modes that spread rows anew spread them. The other modes keep "
    "the tasks of the input.",
    group=Group.WRITE,
)
ALLOW_DUPLICATE_ON_INSERT: Final = ConfigKey(
    key="hoodie.merge.allow.duplicate.on.inserts",
    default=True,
    parse=boolean,
    doc="Whether insert keeps a row whose key is already in the small file that takes it in; false "
    "updates the stored row instead.",
    group=Group.WRITE,
)
BLOOM_ENABLED: Final = ConfigKey(
    key="hoodie.parquet.bloom.filter.enabled",
    default=True,
    parse=boolean,
    doc="Whether base files carry a bloom filter of their keys.",
    group=Group.WRITE,
)
BLOOM_ENTRIES: Final = ConfigKey(
    key="hoodie.index.bloom.num_entries",
    default=None,
    default_text="(the rows of the file)",
    parse=optional(integer(1)),
    doc="Keys the bloom filter of a base file is sized for.",
    group=Group.WRITE,
    hudi_default="60000",
    reason="Hudi's size adds 431 KB to every file, however few rows it has, and loses its "
    "precision above 60000 rows. Readers take the size from the filter itself.",
)
BLOOM_FPP: Final = ConfigKey(
    key="hoodie.index.bloom.fpp",
    default=1e-9,
    default_text="0.000000001",
    parse=number(above=0, below=1),
    doc="Share of absent keys that the bloom filter takes for present.",
    group=Group.WRITE,
)
BLOOM_MAX_ENTRIES: Final = ConfigKey(
    key="hoodie.bloom.index.filter.dynamic.max.entries",
    default=100_000,
    parse=integer(1),
    doc="Keys above which a bloom filter with a set size grows no further.",
    group=Group.WRITE,
)
HEARTBEAT_INTERVAL_MS: Final = ConfigKey(
    key="hoodie.client.heartbeat.interval_in_ms",
    default=60_000,
    parse=integer(10),
    doc="Milliseconds between two signs of life of a writer.",
    group=Group.WRITE,
)
HEARTBEAT_MISSES: Final = ConfigKey(
    key="hoodie.client.heartbeat.tolerable.misses",
    default=2,
    parse=integer(1),
    doc="Signs of life that may be missing before a writer counts as dead and is rolled back.",
    group=Group.WRITE,
)

BLOOM_TYPE: Final = ConfigKey(
    key="hoodie.bloom.index.filter.type",
    default="DYNAMIC_V0",
    parse=str,
    choices=("DYNAMIC_V0",),
    doc="Kind of bloom filter.",
    group=Group.WRITE,
)
AUTO_UPGRADE: Final = ConfigKey(
    key="hoodie.write.auto.upgrade",
    default=False,
    parse=boolean,
    doc="Whether a write may raise the table's version. It never does; true is warned of.",
    group=Group.WRITE,
    hudi_default="true",
    reason="An upgrade shuts out older readers, and nobody asked for it.",
)
MARKERS_TYPE: Final = ConfigKey(
    key="hoodie.write.markers.type",
    default="DIRECT",
    parse=str,
    choices=("DIRECT", "TIMELINE_SERVER_BASED"),
    doc="How markers are kept. Both words are accepted; markers are always written directly.",
    group=Group.WRITE,
    hudi_default="TIMELINE_SERVER_BASED",
    reason="There is no timeline server.",
)
INSERT_DROP_DUPLICATES: Final = ConfigKey(
    key="hoodie.datasource.write.insert.drop.duplicates",
    default=False,
    parse=boolean,
    doc="Whether insert drops rows whose keys the table holds already, and combines incoming rows "
    "that have one key; the same as hoodie.datasource.insert.dup.policy=drop.",
    group=Group.WRITE,
)
INSERT_DUP_POLICY: Final = ConfigKey(
    key="hoodie.datasource.insert.dup.policy",
    default=InsertDuplicates.NONE,
    parse=InsertDuplicates,
    choices=tuple(InsertDuplicates),
    doc="What insert does about rows whose keys the table holds already. none: does not look. "
    "drop: drops them, and combines incoming rows that have one key. fail: writes nothing.",
    group=Group.WRITE,
)
REFUSALS: Final[tuple[ConfigKey[Any], ...]] = (
    BLOOM_TYPE,
    AUTO_UPGRADE,
    MARKERS_TYPE,
)
"""Options known so that a wish for what this release does not do is refused, not ignored."""

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    OPERATION,
    PARTITIONS_TO_DELETE,
    *index_keys.KEYS,
    COMBINE_BEFORE_INSERT,
    COMBINE_BEFORE_UPSERT,
    COMBINE_BEFORE_DELETE,
    COMPLEX_VALIDATION,
    ALLOW_DUPLICATE_ON_INSERT,
    INSERT_DROP_DUPLICATES,
    INSERT_DUP_POLICY,
    BULK_INSERT_SORT_MODE,
    BULK_INSERT_SORT_COLUMNS,
    BULK_INSERT_PARALLELISM,
    SMALL_FILE_LIMIT,
    MAX_FILE_SIZE,
    RECORD_SIZE_ESTIMATE,
    RECORD_SIZE_THRESHOLD,
    INSERT_AUTO_SPLIT,
    INSERT_SPLIT_SIZE,
    COMPRESSION_CODEC,
    ZSTD_LEVEL,
    ROW_GROUP_BYTES,
    PAGE_BYTES,
    DICTIONARY,
    BLOOM_ENABLED,
    BLOOM_ENTRIES,
    BLOOM_FPP,
    BLOOM_MAX_ENTRIES,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    *REFUSALS,
)
