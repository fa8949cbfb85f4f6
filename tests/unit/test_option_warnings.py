"""Warnings of options without effect."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_conformance.hive_metastore import HiveMetastore

import hudi_core as hudi
from hudi_core import UnknownOptionWarning
from hudi_core.config.option_warnings import WARNED, warn_of_options

ROWS = pa.table({"id": ["a", "b"], "city": ["Rome", "Oslo"], "ts": [1, 2]})
QUICK_START = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.insert.shuffle.parallelism": 2,
}
GLUE_JOB = {
    **QUICK_START,
    "className": "org.apache.hudi",
    "connectionName": "hudi-connection",
    "hoodie.datasource.write.storage.type": "COPY_ON_WRITE",
    "hoodie.consistency.check.enabled": "true",
    "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
    "hoodie.cleaner.commits.retained": 10,
    "hoodie.datasource.hive_sync.enable": "true",
    "hoodie.datasource.hive_sync.sync_as_datasource": "false",
    "hoodie.datasource.hive_sync.database": "lake",
    "hoodie.datasource.hive_sync.table": "trips",
    "hoodie.datasource.hive_sync.use_jdbc": "false",
    "hoodie.datasource.hive_sync.mode": "hms",
    "hoodie.datasource.hive_sync.partition_fields": "city",
    "hoodie.datasource.hive_sync.partition_extractor_class": (
        "org.apache.hudi.hive.MultiPartKeysValueExtractor"
    ),
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
EMR_WRITERS = {
    **QUICK_START,
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
    "hoodie.metadata.enable": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "4",
    "hoodie.clustering.plan.strategy.sort.columns": "city",
    "hoodie.metrics.on": "true",
    "hoodie.metrics.reporter.type": "CLOUDWATCH",
    "hoodie.metrics.cloudwatch.namespace": "trips",
    "hoodie.parquet.outputtimestamptype": "TIMESTAMP_MICROS",
    "hoodie.datasource.write.row.writer.enable": "true",
    "hoodie.bulkinsert.shuffle.parallelism": "8",
    "hoodie.write.record.merge.custom.implementation.classes": (
        "org.apache.hudi.DefaultSparkRecordMerger"
    ),
}


@contextmanager
def _said() -> Iterator[list[str]]:
    """Collect warnings of options, all at lines of this file."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    assert all(one.filename == __file__ for one in caught)
    found += [str(one.message) for one in caught if one.category is UnknownOptionWarning]


def _warned(options: Mapping[str, str]) -> list[str]:
    with _said() as said:
        warn_of_options(options)
    return said


# --- names that are not known
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hoodie.datasource.write.recordkey.fields", "did you mean hoodie.datasource.write.record"),
        ("hoodie.parquet.max.filesize", "did you mean hoodie.parquet.max.file.size?"),
        ("hoodie.upsert.shufle.parallelism", "did you mean hoodie.upsert.shuffle.parallelism?"),
        ("hoodie.datasource.hive_sync.databse", "did you mean hoodie.datasource.hive_sync.datab"),
        ("Hoodie.Table.Name", "did you mean hoodie.table.name?"),
        ("hoodie.xyz", "hoodie.xyz is not a known option and has no effect."),
        ("hudi.table.format", "did you mean"),
    ],
)
def test_unknown_options_are_warned_of(name: str, message: str) -> None:
    [said] = _warned({name: "canary"})
    assert message in said
    assert "canary" not in said
    assert _warned({name: "canary"}) == [], "once in a process"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("recordkey", "hoodie.datasource.write.recordkey.field"),
        ("recordKey", "hoodie.datasource.write.recordkey.field"),
        ("record_key", "hoodie.datasource.write.recordkey.field"),
        ("recordkey.field", "hoodie.datasource.write.recordkey.field"),
        ("write.recordkey.field", "hoodie.datasource.write.recordkey.field"),
        ("primaryKey", "hoodie.datasource.write.recordkey.field"),
        ("precombine", "hoodie.datasource.write.precombine.field"),
        ("preCombineField", "hoodie.datasource.write.precombine.field"),
        ("precombine.fields", "hoodie.datasource.write.precombine.field"),
        ("partition_by", "hoodie.datasource.write.partitionpath.field"),
        ("operation", "hoodie.datasource.write.operation"),
        ("write.operation", "hoodie.datasource.write.operation"),
        ("table.type", "hoodie.datasource.write.table.type"),
        ("tableName", "hoodie.table.name"),
        ("index.type", "hoodie.index.type"),
        ("format", "hoodie.table.format"),
        ("timestampAsOf", "as.of.instant"),
        ("as.of.instants", "as.of.instant"),
        ("begin_instanttime", "hoodie.datasource.read.begin.instanttime"),
        ("table_path", "path"),
    ],
)
def test_plain_options_that_look_like_ours_are_warned_of(name: str, meant: str) -> None:
    assert _warned({name: "x"}) == [f"{name} is no option and has no effect; did you mean {meant}?"]


def test_options_of_others_are_not_warned_of() -> None:
    others = (
        *("path", "paths", "mode", "header", "inferSchema", "mergeSchema", "basePath"),
        *("compression", "timestampFormat", "dateFormat", "recursiveFileLookup"),
        *("pathGlobFilter", "maxRecordsPerFile", "partitionOverwriteMode"),
        *("checkpointLocation", "queryName", "className", "connectionName"),
        *("fs.s3a.endpoint", "fs.s3a.aws.credentials.provider", "spark.sql.shuffle.partitions"),
        *("parquet.block.size", "AWS_REGION", "as.of.instant"),
        *("parquet.compression.codec.zstd.level", "hoodie.table.format.iceberg.location"),
        "__partition_columns",
    )
    assert _warned(dict.fromkeys(others, "x")) == []


def test_options_that_the_commit_keeps_have_an_effect() -> None:
    assert _warned({"_recordkey": "x", "_operation": "y"}) == []
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "operation"}
    assert _warned({**prefix, "operation": "y"}) == []


def test_stored_properties_are_known() -> None:
    with _said() as said:
        warn_of_options({"hoodie.table.own": "x"}, ["hoodie.table.own"])
    assert said == []


def test_a_filter_that_makes_errors_of_warnings_does_so_every_time() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UnknownOptionWarning):
                warn_of_options({"hoodie.xyz": "1"})
    assert not WARNED


# --- what Hudi does and this release does not
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"hoodie.aws.role.arn": "arn:aws:iam::1:role/r"},
            "does not have it: further options of AWS (hoodie.aws.role.arn).",
        ),
        ({"hoodie.datasource.meta.sync.enable": "true"}, None),
        ({"hoodie.datasource.hive_sync.jdbcurl": "jdbc:hive2://h:10000"}, None),
        ({"hoodie.clean.automatic": "true"}, None),
        ({"hoodie.clean.async.enabled": "true"}, None),
        ({"hoodie.clean.partition.filter.regex": "a.*"}, ": cleaning of some partitions alone"),
        ({"hoodie.keep.max.commits": "40"}, None),
        ({"hoodie.keep.max.commits": "30", "hoodie.table.services.enabled": "false"}, None),
        ({"hoodie.clustering.inline.max.commits": "4"}, None),
        ({"hoodie.clustering.async.enabled": "true"}, ": clustering beside the writer"),
        ({"hoodie.log.compaction.inline": "true"}, None),
        ({"hoodie.log.compaction.enable": "true"}, None),
        ({"hoodie.datasource.compaction.async.enable": "true"}, None),
        ({"hoodie.clustering.plan.strategy.class": "org.example.Mine"}, ": other clustering strat"),
        ({"hoodie.metrics.on": "true"}, None),
        ({"hoodie.metrics.reporter.type": "GRAPHITE"}, None),
        ({"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "Prometheus"}, None),
        ({"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "JMX"}, "other than Prom"),
        ({"hoodie.table.cdc.enabled": "true"}, None),
        ({"hoodie.write.auto.upgrade": "true"}, ": raising the version"),
        ({"hoodie.write.num.retries.on.conflict.failures": "0"}, None),
        ({"hoodie.metadata.index.drop": "column_stats"}, "dropping, parts of the metadata table"),
    ],
)
def test_what_is_not_built_yet_is_warned_of_where_it_is_asked_for(
    options: dict[str, str], said: str | None
) -> None:
    warned = _warned(options)
    assert len(warned) == (said is not None)
    assert (said or "") in "".join(warned)
    assert _warned(options) == []


# --- whole jobs
METRICS = "hoodie.metrics."
LACKING = "Options without effect, as this release does not have it: "


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (QUICK_START, ""),
        (
            EMR_WRITERS,
            (
                f"metrics reporters other than Prometheus ({METRICS}reporter.type, "
                f"{METRICS}cloudwatch.namespace)."
            ),
        ),
    ],
    ids=["quick start", "EMR"],
)
def test_the_options_of_a_hudi_job_work_unchanged(
    options: dict[str, object], said: str, tmp_path: Path
) -> None:
    with _said() as warned:
        for _ in range(2):
            hudi.write(ROWS, str(tmp_path / "table"), options=options)
    assert warned == ([LACKING + said] if said else [])
    assert hudi.read(None, str(tmp_path / "table"), options).num_rows == 2


def test_a_job_that_syncs_works_unchanged(metastore: HiveMetastore, tmp_path: Path) -> None:
    lake = f"s{uuid.uuid4().hex}"
    job = {
        **GLUE_JOB,
        "hoodie.datasource.hive_sync.metastore.uris": metastore.uri,
        "hoodie.datasource.hive_sync.database": lake,
    }
    with _said() as warned:
        hudi.write(ROWS, str(tmp_path / "table"), options=job)
    assert warned == []
    connector = hudi.Connector({"hive.metastore.uri": metastore.uri})
    [name] = connector.metadata.list_tables(lake)
    with connector.scan(name) as source:
        assert sum(connector.read(split).read_all().num_rows for split in source) == 2


# --- where it is said
def test_every_door_points_at_its_caller(tmp_path: Path) -> None:
    options = {"hoodie.xyz": "1"}

    a, b, c = (str(tmp_path / name) for name in "abc")
    hudi.Table.create(c, ROWS.schema, partition_by="city").insert(ROWS)
    for door in (
        lambda: hudi.Table.create(a, ROWS.schema, record_key="id", options=options),
        lambda: hudi.Table.open(a, options),
        lambda: hudi.Table.open(a).upsert(ROWS, options=options),
        lambda: hudi.Table.open(c).delete_partitions(["Rome"], options=options),
        lambda: hudi.Table.open(a).alter(add_columns={"x": pa.int8()}, options=options),
        lambda: hudi.write(ROWS, b, options=options),
        lambda: hudi.write(ROWS, b, "overwrite", options),
        lambda: hudi.read(None, b, options),
    ):
        WARNED.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            door()
        [one] = caught
        assert (one.filename, one.lineno) == (__file__, door.__code__.co_firstlineno)
