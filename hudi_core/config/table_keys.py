"""The options a user chooses when a table is created, and which the table keeps from then on.

A declaration reads both the option of a write and the stored property: they share their parser, and
the stored name is the key or one of its aliases.
"""

from __future__ import annotations

from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.kinds import TableType
from hudi_core.config.parsers import boolean, integer, names
from hudi_core.config.table_parsers import (
    format_name,
    key_generator,
    key_generator_class,
    merge_mode,
    merge_strategy,
    old_floats,
    payload_class,
    table_name,
)
from hudi_core.config.time_zone import time_zone

NATIVE: Final = "native"
"""The table format whose metadata is Hudi's own."""

NAME: Final = ConfigKey(
    key="hoodie.table.name",
    aliases=("hoodie.datasource.write.table.name",),
    default=None,
    default_text="(the last part of the path)",
    parse=table_name,
    doc="Name of the table.",
    group=Group.TABLE,
)
DATABASE: Final = ConfigKey(
    key="hoodie.database.name",
    default=None,
    default_text="(none)",
    parse=table_name,
    doc="Name of the database the table belongs to.",
    group=Group.TABLE,
)
TABLE_TYPE: Final = ConfigKey(
    key="hoodie.datasource.write.table.type",
    aliases=("hoodie.table.type", "hoodie.datasource.write.storage.type"),
    default=TableType.COPY_ON_WRITE,
    parse=TableType,
    choices=tuple(TableType),
    doc="How updates are stored. Tables of type MERGE_ON_READ are recognised and refused.",
    group=Group.TABLE,
)
VERSION: Final = ConfigKey(
    key="hoodie.write.table.version",
    aliases=("hoodie.table.version",),
    default=8,
    parse=integer(0, 99),
    doc="Version of the table's layout on storage: 8 or 9 for new tables; 6 is read.",
    group=Group.TABLE,
    hudi_default="9",
    reason="Version 8 is the newest that Hudi 1.0, 1.1 and 1.2, hudi-rs and Trino all read.",
)
FORMAT: Final = ConfigKey(
    key="hoodie.table.format",
    aliases=("hudi.table.format.plugin",),
    default=NATIVE,
    parse=format_name,
    doc="Name of the table format, without regard to case; stored in lower case. Formats come from "
    "installed distributions. A name that none of them provides is an error.",
    group=Group.TABLE,
    hudi_default="native, also for an unknown name",
    reason="A silent fall-back writes commits that the format's readers never see.",
)
RECORD_KEY: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.datasource.write.recordkey.field",
    aliases=("hoodie.table.recordkey.fields",),
    default=(),
    default_text="(none: keys are generated)",
    parse=names,
    doc="Columns that identify a row, separated by commas. They must not be null. Without them "
    "every row gets a key of its own, and the table takes inserts only.",
    group=Group.TABLE,
)
PARTITION_PATH: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.datasource.write.partitionpath.field",
    aliases=("hoodie.table.partition.fields",),
    default=(),
    default_text="(not partitioned)",
    parse=names,
    doc="Columns whose values make the partition path, separated by commas; for the CUSTOM key "
    "generator with their types, as in `city:SIMPLE,ts:TIMESTAMP`.",
    group=Group.TABLE,
)
ORDERING: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.datasource.write.precombine.field",
    aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
    default=(),
    default_text="(none)",
    parse=names,
    doc="Columns that order versions of a row: the greater value wins, and ties go to the incoming "
    "row. Of several, separated by commas, the next decides where the first are equal; a field of "
    "a struct is named with a dot, as in `source.ts`. hudi-rs 0.5 cannot open a table that keeps "
    "several.",
    group=Group.TABLE,
)
MERGE_MODE: Final = ConfigKey(
    key="hoodie.write.record.merge.mode",
    aliases=("hoodie.record.merge.mode",),
    default=None,
    default_text="EVENT_TIME_ORDERING with an ordering field, else COMMIT_TIME_ORDERING",
    parse=merge_mode,
    doc="Which version of a row wins: the one with the greater ordering field, or the one "
    "committed last. EVENT_TIME_ORDERING needs an ordering field; CUSTOM needs a payload class.",
    group=Group.TABLE,
)
PAYLOAD_CLASS: Final = ConfigKey(
    key="hoodie.datasource.write.payload.class",
    aliases=("hoodie.compaction.payload.class",),
    default=None,
    default_text="(as the merge mode says)",
    parse=payload_class,
    doc="Hudi's older way to say how rows are merged. The names of Hudi's own classes stand for "
    "rules that docs/merging.md lists; no class is loaded, and other classes are refused.",
    group=Group.TABLE,
)
MERGE_STRATEGY: Final = ConfigKey(
    key="hoodie.write.record.merge.strategy.id",
    aliases=(
        "hoodie.record.merge.strategy.id",
        "hoodie.datasource.write.record.merger.strategy",
        "hoodie.compaction.record.merger.strategy",
    ),
    default=None,
    default_text="(as the merge mode says)",
    parse=merge_strategy,
    doc="Hudi's id of a merge mode. Ids of other strategies are refused.",
    group=Group.TABLE,
)
KEY_GENERATOR: Final = ConfigKey(
    key="hoodie.datasource.write.keygenerator.type",
    aliases=("hoodie.table.keygenerator.type",),
    default=None,
    default_text="NON_PARTITION without partition fields, CUSTOM where they have types, SIMPLE "
    "with one key and one partition field, else COMPLEX",
    parse=key_generator,
    doc="How keys and partition paths are made: SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP (one "
    "partition field, by periods of its moments, as `hoodie.keygen.timebased.*` say) or CUSTOM "
    "(each partition field SIMPLE or TIMESTAMP).",
    group=Group.TABLE,
)
KEY_GENERATOR_CLASS: Final = ConfigKey(
    key="hoodie.datasource.write.keygenerator.class",
    aliases=("hoodie.table.keygenerator.class",),
    default=None,
    default_text="(as the type says)",
    parse=key_generator_class,
    doc="The key generator by the name of Hudi's Java class. The names of Hudi's built-in classes "
    "stand for a type; no class is loaded.",
    group=Group.TABLE,
)
COMPLEX_NEW_ENCODING: Final = ConfigKey(
    key="hoodie.write.complex.keygen.new.encoding",
    default=False,
    parse=boolean,
    doc="Tables of version 8 with the COMPLEX generator and one key field: whether the record key "
    "is the bare value instead of `field:value`. Stored with the table as "
    "`hoodie.table.complex.keygen.encoding`.",
    group=Group.TABLE,
)
CONSISTENT_TIMESTAMPS: Final = ConfigKey(
    key="hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    default=None,
    default_text="false; for a table of Apache Hudi's, as its stored keys show",
    parse=boolean,
    doc="Whether timestamps with a zone are texts in record keys and partition paths, such as "
    "`2026-01-31 12:00:00.0`, cut to milliseconds, as clocks of hoodie.table.timeline.local.zone "
    "show them (UTC, where that is not given and the table's instants are in UTC). Otherwise they "
    "are microseconds since the epoch. Hudi's row writer always makes texts of them. Kept with the "
    "table.",
    group=Group.TABLE,
)
JAVA_VERSION: Final = ConfigKey(
    key="hoodie.datasource.write.keygenerator.java.version",
    default=None,
    default_text="(19 or later; for a table of Apache Hudi's, as its stored keys show)",
    parse=old_floats,
    doc="Release of Java whose digits floating-point numbers have in record keys and partition "
    "paths: before 19 some have a digit more. That of the table's other writers; kept with a table "
    "that has such keys. A write to a table of Apache Hudi's with such keys is refused without it "
    "where no stored key shows it.",
    group=Group.TABLE,
)
HIVE_STYLE: Final = ConfigKey(
    key="hoodie.datasource.write.hive_style_partitioning",
    default=False,
    parse=boolean,
    doc="Whether partition paths read `column=value` instead of `value`.",
    group=Group.TABLE,
)
URL_ENCODE: Final = ConfigKey(
    key="hoodie.datasource.write.partitionpath.urlencode",
    default=False,
    parse=boolean,
    doc="Whether partition values are percent-encoded in paths.",
    group=Group.TABLE,
)
DROP_PARTITION_COLUMNS: Final = ConfigKey(
    key="hoodie.datasource.write.drop.partition.columns",
    default=False,
    parse=boolean,
    doc="Whether data files leave out the partition columns. Only false is supported.",
    group=Group.TABLE,
)
POPULATE_META_FIELDS: Final = ConfigKey(
    key="hoodie.populate.meta.fields",
    default=True,
    parse=boolean,
    doc="Whether data files hold the five meta columns. Only true is supported for writing.",
    group=Group.TABLE,
)
BASE_FILE_FORMAT: Final = ConfigKey(
    key="hoodie.table.base.file.format",
    aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
    default="PARQUET",
    parse=str.upper,
    doc="Format of base files. Only PARQUET is supported.",
    group=Group.TABLE,
)
TIMEZONE: Final = ConfigKey(
    key="hoodie.table.timeline.timezone",
    default="UTC",
    parse=str.upper,
    choices=("UTC", "LOCAL"),
    doc="Time zone of instant times. New tables use UTC. Tables that Apache Hudi made are LOCAL "
    "unless they say otherwise: in the zone of its process, see hoodie.table.timeline.local.zone.",
    group=Group.TABLE,
    hudi_default="LOCAL",
    reason="Local time repeats an hour every autumn and differs between writers.",
)
LOCAL_ZONE: Final = ConfigKey(
    key="hoodie.table.timeline.local.zone",
    default=None,
    default_text="(the zone of this process)",
    parse=time_zone,
    doc="Time zone of the other writers of a table, such as America/Los_Angeles: that of Apache "
    "Hudi's process, which a table does not name. The instants of a table with "
    "hoodie.table.timeline.timezone=LOCAL are in it, and so are keys and partition paths that "
    "spell timestamps as texts. A write is refused where the newest files of the timeline were "
    "made in another zone. A table may also keep it among its properties.",
    group=Group.TABLE,
)
CHOSEN_KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    NAME,
    DATABASE,
    TABLE_TYPE,
    VERSION,
    FORMAT,
    RECORD_KEY,
    PARTITION_PATH,
    ORDERING,
    MERGE_MODE,
    PAYLOAD_CLASS,
    MERGE_STRATEGY,
    KEY_GENERATOR,
    KEY_GENERATOR_CLASS,
    COMPLEX_NEW_ENCODING,
    CONSISTENT_TIMESTAMPS,
    JAVA_VERSION,
    HIVE_STYLE,
    URL_ENCODE,
    DROP_PARTITION_COLUMNS,
    POPULATE_META_FIELDS,
    BASE_FILE_FORMAT,
    TIMEZONE,
    LOCAL_ZONE,
)
"""What a user chooses when a table is created."""
