"""Typed views of the options of writes, reads, locks and stores."""

from __future__ import annotations

import pickle
from operator import attrgetter

import pytest

from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.kinds import (
    BulkInsertSortMode,
    ConcurrencyMode,
    IndexType,
    InsertDuplicates,
    LockKind,
    PartialUpdateMode,
)
from hudi_core.config.lock import LockConfig
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.options import Secret
from hudi_core.config.read import QueryType, ReadConfig
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.storage import StoreKeys
from hudi_core.config.write import WriteConfig
from hudi_core.errors import InvalidOptionError, UnknownExtensionError
from hudi_core.model.instant_time import EARLIEST
from hudi_core.model.operation import BULK_INSERT, UPSERT

SORTS_BY = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
DELETES = "hoodie.datasource.write.partitions.to.delete"
QUERY, BEGIN = "hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"
END, CHANGES = (
    "hoodie.datasource.read.end.instanttime",
    "hoodie.datasource.query.incremental.format",
)
LOCKS = "org.apache.hudi.client.transaction.lock."
AWS = "org.apache.hudi.aws.transaction.lock."
HIVE = "org.apache.hudi.hive.transaction.lock."


def test_defaults_are_hudis_but_for_the_deviations() -> None:
    config = WriteConfig.from_options({})
    assert config == WriteConfig(
        operation=UPSERT,
        partitions_to_delete=(),
        small_file_limit=104_857_600,
        max_file_size=125_829_120,
        record_size_estimate=1024,
        record_size_threshold=1.0,
        insert_split_size=500_000,
        insert_auto_split=True,
        compression_codec="zstd",
        compression_level=1,
        row_group_bytes=125_829_120,
        page_bytes=1_048_576,
        dictionary_enabled=True,
        combine_before_insert=False,
        combine_before_upsert=True,
        combine_before_delete=True,
        validates_complex_keys=True,
        insert_duplicates=InsertDuplicates.NONE,
        partial_update_mode=PartialUpdateMode.NONE,
        bulk_insert_sort_mode=BulkInsertSortMode.NONE,
        bulk_insert_sort_columns=(),
        bulk_insert_parallelism=0,
        allow_duplicate_on_insert=True,
        index=IndexConfig(index_type=IndexType.SIMPLE, moves_partition=True),
        bloom_enabled=True,
        bloom_entries=None,
        bloom_fpp=1e-9,
        bloom_max_entries=100_000,
        heartbeat_interval_ms=60_000,
        heartbeat_misses=2,
        schema=SchemaConfig(),
        metadata=MetadataConfig.from_options({}),
        lock=LockConfig(
            concurrency_mode=ConcurrencyMode.SINGLE_WRITER,
            provider=None,
            wait_ms=60_000,
            retries=50,
            retry_wait_ms=5_000,
            path=None,
            expire_s=0,
            lease_s=300,
            renew_s=30,
        ),
        fsync=True,
    )
    assert config.concurrency_mode is ConcurrencyMode.SINGLE_WRITER
    assert config.lock_provider is None
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("key", "text", "attribute", "value"),
    [
        ("hoodie.datasource.write.operation", "BULK_INSERT", "operation", BULK_INSERT),
        ("hoodie.parquet.small.file.limit", "-1", "small_file_limit", 0),
        ("hoodie.parquet.max.file.size", "1000", "max_file_size", 1000),
        ("hoodie.copyonwrite.record.size.estimate", "7", "record_size_estimate", 7),
        ("hoodie.record.size.estimation.threshold", "0.1", "record_size_threshold", 0.1),
        ("hoodie.copyonwrite.insert.split.size", "7", "insert_split_size", 7),
        ("hoodie.copyonwrite.insert.auto.split", "false", "insert_auto_split", False),
        ("hoodie.parquet.compression.codec", "UNCOMPRESSED", "compression_codec", "none"),
        ("hoodie.parquet.compression.codec", "lz4_raw", "compression_codec", "lz4"),
        ("hoodie.parquet.compression.codec", "snappy", "compression_level", None),
        ("parquet.compression.codec.zstd.level", "3", "compression_level", 3),
        ("hoodie.parquet.block.size", "9", "row_group_bytes", 9),
        ("hoodie.parquet.page.size", "9", "page_bytes", 9),
        ("hoodie.parquet.dictionary.enabled", "false", "dictionary_enabled", False),
        ("hoodie.combine.before.insert", "true", "combine_before_insert", True),
        ("hoodie.combine.before.upsert", "false", "combine_before_upsert", False),
        ("hoodie.combine.before.delete", "false", "combine_before_delete", False),
        ("hoodie.merge.allow.duplicate.on.inserts", "false", "allow_duplicate_on_insert", False),
        ("hoodie.parquet.bloom.filter.enabled", "false", "bloom_enabled", False),
        ("hoodie.index.type", "global_bloom", "index.index_type", IndexType.GLOBAL_BLOOM),
        ("hoodie.simple.index.update.partition.path", "false", "index.moves_partition", False),
        ("hoodie.index.bloom.num_entries", "60000", "bloom_entries", 60_000),
        ("hoodie.index.bloom.fpp", "0.01", "bloom_fpp", 0.01),
        ("hoodie.bloom.index.filter.dynamic.max.entries", "5", "bloom_max_entries", 5),
        ("hoodie.client.heartbeat.interval_in_ms", "100", "heartbeat_interval_ms", 100),
        ("hoodie.client.heartbeat.tolerable.misses", "5", "heartbeat_misses", 5),
        ("hoodie.write.lock.wait_time_ms", "5", "lock.wait_ms", 5),
        ("hoodie.write.lock.client.num_retries", "0", "lock.retries", 0),
        ("hoodie.fs.fsync", "false", "fsync", False),
        ("hoodie.datasource.insert.dup.policy", "FAIL", "insert_duplicates", "fail"),
        ("hoodie.datasource.write.insert.drop.duplicates", "true", "insert_duplicates", "drop"),
        ("hoodie.table.partial.update.mode", "keep_values", "partial_update_mode", "KEEP_VALUES"),
        ("hoodie.bulkinsert.shuffle.parallelism", "7", "bulk_insert_parallelism", 7),
        ("hoodie.bulkinsert.sort.mode", "global_sort", "bulk_insert_sort_mode", "GLOBAL_SORT"),
        (SORTS_BY, "a, b", "bulk_insert_sort_columns", ("a", "b")),
        (DELETES, "rome,oslo", "partitions_to_delete", ("rome", "oslo")),
    ],
)
def test_every_option_has_an_attribute(key: str, text: str, attribute: str, value: object) -> None:
    assert attrgetter(attribute)(WriteConfig.from_options({key: text})) == value


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("hoodie.datasource.write.operation", "merge", "upsert, insert, bulk_insert, delete"),
        ("hoodie.index.type", "org.acme.Index", "none of bloom, bucket, global_bloom, global_rec"),
        ("hoodie.simple.index.update.partition.path", "maybe", "neither true nor false"),
        ("hoodie.index.bucket.engine", "CONSISTENT_HASHING", "consistent-hashing buckets"),
        ("hoodie.index.bucket.engine", "x", "no such engine"),
        ("hoodie.bulkinsert.sort.mode", "SORTED", "Supported: NONE, PARTITION_SORT"),
        ("hoodie.parquet.compression.codec", "lzo", "Supported: zstd, snappy, gzip"),
        ("parquet.compression.codec.zstd.level", "23", "more than 22"),
        ("hoodie.bloom.index.filter.type", "SIMPLE", "Supported: DYNAMIC_V0"),
        ("hoodie.index.bloom.fpp", "1", "between"),
        ("hoodie.datasource.insert.dup.policy", "keep", "Supported: none, drop, fail"),
        ("hoodie.table.partial.update.mode", "KEEP", "Supported: NONE, KEEP_VALUES, IGNORE_DEF"),
        ("hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL", "SINGLE_WRITER, "),
        ("hoodie.write.lock.provider", LOCKS + "NoopLockProvider", "InProcess"),
        ("hoodie.write.lock.provider", "os.system", "file_system, hive_metastore, in_process"),
        ("hoodie.client.heartbeat.interval_in_ms", "0", "less than 10"),
    ],
)
def test_what_is_not_supported_names_what_is(key: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason) as caught:
        WriteConfig.from_options({key: text})
    assert (caught.value.key, caught.value.value) == (key, text)


def test_an_index_that_nobody_provides() -> None:
    known = "bloom, bucket, global_bloom, global_record_level_index, global_simple, record_index"
    for text in ("FLINK_STATE", "HBASE"):
        with pytest.raises(UnknownExtensionError, match=known) as caught:
            WriteConfig.from_options({"hoodie.index.type": text})
        assert caught.value.name == text.lower()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LOCKS + "InProcessLockProvider", LockKind.IN_PROCESS),
        (LOCKS + "FileSystemBasedLockProvider", LockKind.LOCK_FILE),
        (LOCKS + "StorageBasedLockProvider", LockKind.STORAGE),
        (LOCKS + "ZookeeperBasedLockProvider", LockKind.ZOOKEEPER),
        (LOCKS + "ZookeeperBasedImplicitBasePathLockProvider", LockKind.ZOOKEEPER_IMPLICIT),
        (AWS + "DynamoDBBasedLockProvider", LockKind.DYNAMODB),
        (AWS + "DynamoDBBasedImplicitPartitionKeyLockProvider", LockKind.DYNAMODB_IMPLICIT),
        (HIVE + "HiveMetastoreBasedLockProvider", LockKind.HIVE_METASTORE),
        ("file_system", LockKind.FILE_SYSTEM),
        ("storage", LockKind.STORAGE),
        ("", None),
    ],
)
def test_lock_providers(text: str, kind: LockKind | None) -> None:
    assert LockConfig.from_options({"hoodie.write.lock.provider": text}).provider is kind


def test_a_lease_lasts_for_ten_renewals() -> None:
    storage = "hoodie.write.lock.storage."
    lease, renew = f"{storage}validity.timeout.secs", f"{storage}renew.interval.secs"
    config = LockConfig.from_options({lease: "20", renew: "2"})
    assert (config.lease_s, config.renew_s) == (20, 2)
    with pytest.raises(InvalidOptionError, match="Give at least 30") as caught:
        LockConfig.from_options({lease: "20", renew: "3"})
    assert caught.value.key == lease


def test_reads() -> None:
    assert ReadConfig.from_options({}) == ReadConfig()
    moment = "2026-01-02T03:04:05.678+01:00"  # which zone it is for the table to tell
    as_of = ReadConfig.from_options({"as.of.instant": moment})
    assert as_of == ReadConfig(QueryType.SNAPSHOT, as_of=moment)
    changes = {QUERY: "incremental", BEGIN: "20260101000000000", END: "2026-02-01"}
    between = ReadConfig.from_options(changes)
    assert between.query_type is QueryType.INCREMENTAL
    assert (between.begin, between.end) == ("20260101000000000", "2026-02-01")
    for text in ("earliest", "000", "0", "00000000000000000"):
        assert ReadConfig.from_options({QUERY: "incremental", BEGIN: text}).begin == EARLIEST


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"as.of.instant": "yesterday"}, "as.of.instant='yesterday'.*no known form"),
        ({"as.of.instant": "20261399000000000"}, "date and time"),
        ({QUERY: "realtime"}, "Supported: snapshot, read_optimized, incremental"),
        ({QUERY: "incremental"}, "needs a begin"),
        ({BEGIN: "000"}, "no meaning"),
        ({END: "2026-01-01"}, "no meaning"),
        ({QUERY: "incremental", BEGIN: "000", "as.of.instant": "2026-01-01"}, "no meaning"),
        ({CHANGES: "cdc"}, "no meaning"),
        ({CHANGES: "before"}, "Supported: latest_state, cdc"),
    ],
)
def test_reads_that_make_no_sense(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        ReadConfig.from_options(options)


def test_store_options() -> None:
    options = {"fs.s3a.secret.key": "canary", "aws_region": "eu-west-1"}
    assert StoreKeys.s3_secret_key.read(options) == Secret("canary")
    assert StoreKeys.s3_region.read(options) == "eu-west-1"
    assert StoreKeys.s3_access_key.read({"fs.s3a.access.key": ""}) is None
    assert StoreKeys.s3_tls.read(options)
    assert not StoreKeys.s3_path_style.read(options)


def test_two_words_about_duplicates_must_agree() -> None:
    drops = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    agreeing = WriteConfig.from_options({**drops, "hoodie.datasource.insert.dup.policy": "drop"})
    assert agreeing.insert_duplicates is InsertDuplicates.DROP
    with pytest.raises(InvalidOptionError, match=r"dup\.policy=fail says otherwise"):
        WriteConfig.from_options({**drops, "hoodie.datasource.insert.dup.policy": "fail"})
