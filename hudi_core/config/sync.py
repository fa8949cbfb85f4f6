"""Options of syncs: which metastores a table is registered in, and how."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from hudi_core.config.lock_servers import endpoint, thrift_uris
from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import (
    meanings_of,
    names,
    optional_flag,
)

_HIVE: Final = "hoodie.datasource.hive_sync."
_META: Final = "hoodie.meta.sync."
_GLUE: Final = "hoodie.datasource.meta.sync.glue."


class SyncTool(StrEnum):
    """A kind of metastore that tables are registered in."""

    HIVE = "hive"
    GLUE = "glue"


_TOOLS: Final = {
    "org.apache.hudi.hive.HiveSyncTool": SyncTool.HIVE,
    "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool": SyncTool.GLUE,
    **{tool.value: tool for tool in SyncTool},
}


class Extractor(StrEnum):
    """How the values of partition columns come from a partition's path."""

    BY_FOLDER = "MultiPartKeysValueExtractor"
    WHOLE_PATH = "SinglePartPartitionValueExtractor"
    HIVE_STYLE = "HiveStylePartitionValueExtractor"
    DAY = "SlashEncodedDayPartitionValueExtractor"
    HOUR = "SlashEncodedHourPartitionValueExtractor"
    NONE = "NonPartitionedExtractor"


class TableStrategy(StrEnum):
    """Which entries a table with logs gets."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


tools: Final = meanings_of(_TOOLS)
"""Parses names of sync tools, or of Hudi's Java classes for them: none is imported by its name."""


def extractor(text: str) -> Extractor | None:
    """Parse the name of one of Hudi's partition value extractors."""
    if not text:
        return None
    package, _, name = text.rpartition(".")
    if name not in set(Extractor) or not (package or "org.apache.hudi").startswith(
        "org.apache.hudi"
    ):
        raise ValueError(f"it is none of {', '.join(Extractor)}")
    return Extractor(name)


def properties(text: str) -> tuple[tuple[str, str], ...]:
    """Parse properties ``key=value``, one a line."""
    found = {}
    for line in filter(None, (one.strip() for one in text.splitlines())):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"the line {line!r} is not of the form key=value")
        found[key.strip()] = value.strip()
    return tuple(found.items())


class SyncConfig(Options, group=Group.SYNC):
    """Whether, where and how a table is registered."""

    enabled: Option[bool] = Option("hoodie.datasource.meta.sync.enable", default=False)
    """Whether each commit is followed by a sync with the metastores of
    `hoodie.meta.sync.client.tool.class`."""
    hive_enabled: Option[bool] = Option(f"{_HIVE}enable", default=False)
    """Whether each commit is followed by a sync with a Hive metastore, besides those others."""
    tools: Option[tuple[SyncTool, ...]] = Option(
        f"{_META}client.tool.class",
        default=(SyncTool.HIVE,),
        parse=tools,
        default_text="org.apache.hudi.hive.HiveSyncTool",
    )
    """Kinds of metastores, separated by commas: `hive`, `glue`, or the names of Hudi's Java classes
    for these (`org.apache.hudi.hive.HiveSyncTool`,
    `org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool`); no class is loaded."""
    mode: Option[str] = Option(
        f"{_HIVE}mode",
        default="hms",
        choices=("hms",),
        hudi_default="(none)",
        reason="The metastore is asked by its Thrift interface; there is no Hive server between, "
        "nor Hive's own libraries.",
    )
    """How a Hive metastore is asked. For Glue, give the tool's class."""
    use_jdbc: Option[bool] = Option(
        f"{_HIVE}use_jdbc",
        default=False,
        hudi_default="true",
        reason="There is no Hive server between.",
    )
    """Hudi's former switch of the mode; `true` is refused where no mode is given."""
    uris: Option[tuple[str, ...]] = Option(
        f"{_HIVE}metastore.uris",
        default=("thrift://localhost:9083",),
        parse=thrift_uris,
        default_text="thrift://localhost:9083",
    )
    """`hive`: its addresses, separated by commas; the first that answers is asked. Needs thrift:
    `pip install hudi-core[hive]`."""
    database: Option[str | None] = Option(
        f"{_HIVE}database", default_text="the table's hoodie.database.name, else default"
    )
    """The database that the entry is in."""
    table: Option[str | None] = Option(f"{_HIVE}table", default_text="the table's name")
    """The entry's name."""
    base_path: Option[str | None] = Option(
        "hoodie.datasource.meta.sync.base.path", default_text="the table's path"
    )
    """Path of the table; another one than that of the table is refused."""
    base_file_format: Option[str] = Option(
        f"{_HIVE}base_file_format", default="PARQUET", choices=("PARQUET",)
    )
    """Format of the base files."""
    partition_fields: Option[tuple[str, ...] | None] = Option(
        f"{_HIVE}partition_fields", parse=names, default_text="the table's partition fields"
    )
    """Partition columns of the entry. One that the table lacks is a column of strings."""
    extractor: Option[Extractor | None] = Option(
        f"{_HIVE}partition_extractor_class",
        parse=extractor,
        default_text="as the table makes its paths",
    )
    """Hudi's class for how values come from paths of partitions: `MultiPartKeysValueExtractor`,
    `SinglePartPartitionValueExtractor`, `HiveStylePartitionValueExtractor`,
    `SlashEncodedDayPartitionValueExtractor`, `SlashEncodedHourPartitionValueExtractor`,
    `NonPartitionedExtractor`, with or without `org.apache.hudi.hive.`; no class is loaded."""
    decode_partition: Option[bool | None] = Option(
        f"{_META}decode_partition",
        parse=optional_flag,
        default_text="hoodie.datasource.write.partitionpath.urlencode of the table",
    )
    """Whether `%XX` in paths of partitions is decoded."""
    assume_dates: Option[str] = Option(
        f"{_HIVE}assume_date_partitioning", default="false", choices=("false",)
    )
    """Give the partition extractor for days instead."""
    create_database: Option[bool] = Option(f"{_HIVE}auto_create_database", default=True)
    """Whether a database that is missing is created; else it is an error."""
    is_managed: Option[bool] = Option(f"{_HIVE}create_managed_table", default=False)
    """Whether an entry is made as one whose files the metastore owns: who drops it there deletes
    the table. Entries that are there stay what they are."""
    ignores_errors: Option[bool] = Option(f"{_HIVE}ignore_exceptions", default=False)
    """Whether a sync that fails after a commit is a warning, not an error. The commit is kept in
    both cases."""
    strategy: Option[TableStrategy] = Option(f"{_HIVE}table.strategy", default=TableStrategy.ALL)
    """Entries of a table of the type MERGE_ON_READ: one for its base files (`RO`), one for all that
    it holds (`RT`), or both."""
    skips_ro_suffix: Option[bool] = Option(f"{_HIVE}skip_ro_suffix", default=False)
    """With `ALL`, whether the entry of the base files has the table's own name, without `_ro`."""
    names_snapshot: Option[bool] = Option(f"{_META}sync_snapshot_with_table_name", default=True)
    """With `ALL`, whether the table's own name is one more entry for all that it holds."""
    as_datasource: Option[bool] = Option(f"{_HIVE}sync_as_datasource", default=True)
    """Whether the entry says what Spark needs to read it as a table of the source `hudi`
    (RFC-15)."""
    schema_length: Option[int] = Option(f"{_HIVE}schema_string_length_thresh", default=4000)
    """Characters of Spark's schema in one property of the entry."""
    spark_version: Option[str | None] = Option("hoodie.meta_sync.spark.version")
    """The version of Spark that the entry names as its creator."""
    supports_timestamp: Option[bool] = Option(
        f"{_HIVE}support_timestamp",
        default=True,
        hudi_default="false",
        reason="Hudi's Spark writer has `true`; else timestamps are numbers to engines that go by "
        "the metastore's types.",
    )
    """Whether columns of timestamps have Hive's type `timestamp`, or `bigint`."""
    omits_meta_columns: Option[bool] = Option(f"{_HIVE}omit_metadata_fields", default=False)
    """Whether the entry leaves out the columns `_hoodie_*`."""
    comments: Option[bool] = Option(f"{_HIVE}sync_comment", default=False)
    """Whether the entry's columns have the comments of the table's."""
    table_properties: Option[tuple[tuple[str, str], ...]] = Option(
        f"{_HIVE}table_properties", default=(), parse=properties
    )
    """Further properties of the entry, `key=value`, one a line."""
    serde_properties: Option[tuple[tuple[str, str], ...]] = Option(
        f"{_HIVE}serde_properties", default=(), parse=properties
    )
    """Further properties of how the entry is read, `key=value`, one a line."""
    uses_old_input_format: Option[bool] = Option(
        f"{_HIVE}use_pre_apache_input_format", default=False
    )
    """Whether the entry names the classes of Hudi before it came to Apache."""
    batch: Option[int] = Option(f"{_HIVE}batch_num", default=1000)
    """Partitions that a metastore is given by one call. Glue takes 100, and drops 25."""
    is_incremental: Option[bool] = Option(f"{_META}incremental", default=True)
    """Whether only partitions are compared that were written since the last sync."""
    touches: Option[bool] = Option(f"{_META}touch.partitions.enabled", default=False)
    """Whether entries of partitions are changed that were written to and stay the same, so that the
    metastore shows when."""
    is_conditional: Option[bool] = Option(
        "hoodie.datasource.meta_sync.condition.sync", default=False
    )
    """Whether the entry's time of the last sync stays where nothing else of it changes."""
    recreates: Option[bool] = Option(f"{_HIVE}recreate_table_on_error", default=False)
    """Whether an entry that cannot be brought up to date is dropped and made again; no file is
    deleted."""
    buckets: Option[str] = Option(f"{_HIVE}bucket_sync", default="false", choices=("false",))
    """Whether the entry says that Hive's own buckets are in the files. Hudi's are others, and
    readers that rely on it find too few rows."""
    takes_hidden_layout: Option[bool] = Option("hudi.sync.object_store", default=False)
    """Whether a table of the native format is registered too whose data files lie where other
    engines do not look for them; its entry says so in `hudi.storage.strategy`."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; JDBC is refused."""
        config = cls._read(options)
        if config.use_jdbc and not cls.mode.is_given(options):
            raise cls.use_jdbc.refused(
                "true",
                "there is no way to a Hive server here",
                f"Give {cls.mode.key}=hms and {cls.uris.key}.",
            )
        return config

    @classmethod
    def wanted(cls, options: Mapping[str, str]) -> tuple[SyncTool, ...]:
        """The tools of a sync after each commit; none without one."""
        found = cls.tools.read(options) if cls.enabled.read(options) else ()
        if cls.hive_enabled.read(options):
            # as Hudi, which adds it whatever tools are named
            found = tuple(dict.fromkeys((*found, SyncTool.HIVE)))
        return found


class GlueConfig(Options, group=Group.SYNC):
    """What concerns AWS Glue alone."""

    database: Option[str | None] = Option(
        f"{_GLUE}database_name", default_text=f"as {_HIVE}database"
    )
    """`glue`: the database that the entry is in. Needs boto3: `pip install hudi-core[glue]`."""
    table: Option[str | None] = Option(f"{_GLUE}table_name", default_text=f"as {_HIVE}table")
    """`glue`: the entry's name."""
    catalog_id: Option[str | None] = Option(f"{_GLUE}catalogId", default_text="the account's own")
    """`glue`: the catalog."""
    region: Option[str | None] = Option(
        "hoodie.aws.glue.region", default_text="what boto3 finds by itself"
    )
    """`glue`: region of the service."""
    endpoint_url: Option[str | None] = Option(
        "hoodie.aws.glue.endpoint", parse=endpoint, default_text="that of the region"
    )
    """`glue`: address of the service."""
    skips_archive: Option[bool] = Option(f"{_GLUE}skip_table_archive", default=True)
    """`glue`: whether the former version of a changed entry is not kept."""
    lists_metadata: Option[bool] = Option(f"{_GLUE}metadata_file_listing", default=False)
    """`glue`: whether the entry asks Athena to list files by the table's metadata table."""
    recreates: Option[bool] = Option(f"{_GLUE}recreate_table_on_error", default=False)
    """`glue`: as hoodie.datasource.hive_sync.recreate_table_on_error."""
    indexes: Option[str] = Option(
        f"{_GLUE}partition_index_fields.enable", default="false", choices=("false",)
    )
    """`glue`: whether partition indexes are made. Make them by Glue's own means."""
