"""Options chosen when a table is created, and stored with it.

A declaration reads both the option of a write and the stored property: they share their parser, and
the stored name is the key or one of its aliases.
"""

from __future__ import annotations

from typing import Final

from hudi_core.config.kinds import ChangeLogging, KeyGeneratorType, MergeOnReadMode, TableType
from hudi_core.config.options import ConfigKey, Group, Options
from hudi_core.config.parsers import boolean, integer
from hudi_core.config.stored import Stored
from hudi_core.config.table_parsers import (
    NATIVE,
    concatenator,
    format_names,
    key_generator,
    key_generator_class,
    merge_mode,
    merge_strategy,
    old_float_digits,
    payload_class,
    table_name,
)
from hudi_core.config.time_zone import time_zone

READABLE_VERSIONS: Final = (6, 8, 9)
WRITABLE_VERSIONS: Final = (8, 9)


class TableKeys(Options, group=Group.TABLE):
    """Options chosen at creation; those that are :class:`Stored` persist."""

    name = Stored[str | None](
        "hoodie.table.name",
        parse=table_name,
        aliases=("hoodie.datasource.write.table.name",),
        default_text="(the last part of the path)",
        is_required=True,
    )
    """Name of the table."""
    database = Stored("hoodie.database.name", parse=table_name)
    """Name of the database the table belongs to."""
    table_type = Stored(
        "hoodie.datasource.write.table.type",
        default=TableType.COPY_ON_WRITE,
        aliases=("hoodie.table.type", "hoodie.datasource.write.storage.type"),
        stored_as="hoodie.table.type",
        is_required=True,
    )
    """How updates are stored: files with changed rows are written again (COPY_ON_WRITE), or the
    changes go into log files that are compacted later (MERGE_ON_READ)."""
    merge_on_read_mode = Stored(
        "hoodie.table.merge-on-read.mode",
        default=MergeOnReadMode.LOGS,
        default_text="logs; split in formats whose readers know no log files",
        usual="logs",
    )
    """Where updates of a MERGE_ON_READ table go: new versions of rows into log files (logs); or the
    deletion of the old one, by its position, into a log file, and the new one into a base file of
    another file group (split), so that base files without dead rows are the table, in every format.
    Chosen when the table is made, or becomes one of this type."""
    version = Stored(
        "hoodie.write.table.version",
        default=8,
        parse=integer(0, 99),
        aliases=("hoodie.table.version",),
        hudi_default="9",
        reason="Version 8 is the newest that Hudi 1.0, 1.1 and 1.2, hudi-rs and Trino all read.",
        stored_as="hoodie.table.version",
        is_required=True,
        written=WRITABLE_VERSIONS,
    )
    """Version of the table's layout on storage: 8 or 9 for new tables; 6 is read, and `hudi table
    upgrade` changes it."""
    table_format = Stored(
        "hoodie.table.format",
        default=NATIVE,
        parse=format_names,
        aliases=("hudi.table.format.plugin",),
        hudi_default="native, also for an unknown name",
        reason="A silent fall-back writes commits that the format's readers never see.",
        usual=NATIVE,
        is_stated=True,
    )
    """Name of the table format, without regard to case; stored in lower case. Formats come from
    installed distributions. A name that none of them provides is an error. Several names with
    commas publish every commit in all of these formats."""
    record_key_fields = Stored[tuple[str, ...]](
        "hoodie.datasource.write.recordkey.field",
        default=(),
        aliases=("hoodie.table.recordkey.fields",),
        default_text="(none: keys are generated)",
        stored_as="hoodie.table.recordkey.fields",
    )
    """Columns that identify a row, separated by commas; a field of a struct is named with a dot, as
    in `customer.id`. They must not be null. Without them every row gets a key of its own, and the
    table takes inserts only."""
    partition_path = ConfigKey[tuple[str, ...]](
        "hoodie.datasource.write.partitionpath.field",
        default=(),
        aliases=("hoodie.table.partition.fields",),
        default_text="(not partitioned)",
    )
    """Columns whose values make the partition path, separated by commas; for the CUSTOM key
    generator with their types, as in `city:SIMPLE,ts:TIMESTAMP`. A field of a struct is named with
    a dot; hudi-rs 0.5 cannot open such a table."""
    ordering = ConfigKey[tuple[str, ...]](
        "hoodie.datasource.write.precombine.field",
        default=(),
        aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
    )
    """Columns that order versions of a row: the greater value wins, and ties go to the incoming
    row. Of several, separated by commas, the next decides where the first are equal; a field of a
    struct is named with a dot, as in `source.ts`. hudi-rs 0.5 cannot open a table that keeps
    several."""
    merge_mode = ConfigKey(
        "hoodie.write.record.merge.mode",
        parse=merge_mode,
        aliases=("hoodie.record.merge.mode",),
        default_text="EVENT_TIME_ORDERING with an ordering field, else COMMIT_TIME_ORDERING",
    )
    """Which version of a row wins: the one with the greater ordering field, or the one committed
    last. EVENT_TIME_ORDERING needs an ordering field; CUSTOM needs a payload class."""
    payload_class = ConfigKey(
        "hoodie.datasource.write.payload.class",
        parse=payload_class,
        aliases=("hoodie.compaction.payload.class",),
        default_text="(as the merge mode says)",
    )
    """Hudi's older way to say how rows are merged. The names of Hudi's own classes select rules
    that docs/merging.md lists; no class is loaded, and other classes are refused."""
    merge_strategy = ConfigKey(
        "hoodie.write.record.merge.strategy.id",
        parse=merge_strategy,
        aliases=(
            "hoodie.record.merge.strategy.id",
            "hoodie.datasource.write.record.merger.strategy",
            "hoodie.compaction.record.merger.strategy",
        ),
        default_text="(as the merge mode says)",
    )
    """Hudi's id of a merge mode; or the name of a record merger that an installed distribution
    provides (`docs/extension_points.md`), whose own options begin with
    `hoodie.record.merge.property.<name>.` and are kept with the table. Ids of other strategies are
    refused."""
    key_generator = ConfigKey[KeyGeneratorType | str | None](
        "hoodie.datasource.write.keygenerator.type",
        parse=key_generator,
        aliases=("hoodie.table.keygenerator.type",),
        default_text="NON_PARTITION without partition fields, CUSTOM where they have types, "
        "SIMPLE with one key and one partition field, else COMPLEX",
    )
    """How keys and partition paths are made: SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP (one
    partition field, by periods of its timestamps, as `hoodie.keygen.timebased.*` say) or CUSTOM
    (each partition field SIMPLE or TIMESTAMP); the names of Hudi's classes select them. Or the name
    of one that an installed distribution provides (`docs/extension_points.md`), whose own options
    begin with `hoodie.table.keygenerator.<name>.` and are kept with the table."""
    key_generator_class = ConfigKey(
        "hoodie.datasource.write.keygenerator.class",
        parse=key_generator_class,
        aliases=("hoodie.table.keygenerator.class",),
        default_text="(as the type says)",
    )
    """The key generator by the name of Hudi's Java class. The names of Hudi's built-in classes
    select a type; no class is loaded. Takes the names of installed ones too, and keeps them."""
    complex_new_encoding = ConfigKey("hoodie.write.complex.keygen.new.encoding", default=False)
    """Tables of version 8 with the COMPLEX generator and one key field: whether the record key is
    the bare value instead of `field:value`. Stored with the table as
    `hoodie.table.complex.keygen.encoding`."""
    consistent_timestamps = Stored[bool | None](
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        parse=boolean,
        default_text="false; for a table of Apache Hudi's, as its stored keys show",
        is_open=True,
    )
    """Whether timestamps with a zone are strings in record keys and partition paths, such as
    `2026-01-31 12:00:00.0`, cut to milliseconds, as clocks of hoodie.table.timeline.local.zone show
    them (UTC, where that is not given and the table's instants are in UTC). Otherwise they are
    microseconds since the epoch. Hudi's row writer always makes strings of them. Kept with the
    table."""
    old_floats = Stored(
        "hoodie.datasource.write.keygenerator.java.version",
        parse=old_float_digits,
        default_text="(19 or later; for a table of Apache Hudi's, as its stored keys show)",
        is_open=True,
    )
    """Release of Java whose digits floating-point numbers have in record keys and partition paths:
    before 19 some have a digit more. That of the table's other writers; kept with a table that has
    such keys. A write to a table of Apache Hudi's with such keys is refused without it where no
    stored key shows it."""
    hive_style = Stored(
        "hoodie.datasource.write.hive_style_partitioning",
        default=False,
        usual="false",
        is_stated=True,
    )
    """Whether partition paths read `column=value` instead of `value`."""
    url_encode = Stored(
        "hoodie.datasource.write.partitionpath.urlencode",
        default=False,
        usual="false",
        is_stated=True,
    )
    """Whether partition values are percent-encoded in paths."""
    drop_partition_columns = Stored(
        "hoodie.datasource.write.drop.partition.columns",
        default=False,
        usual="false",
        is_stated=True,
        written=(False,),
    )
    """Whether data files leave out the partition columns. Only false is supported."""
    populate_meta_fields = Stored("hoodie.populate.meta.fields", default=True, usual="true")
    """Whether data files hold the five meta columns. Without them record keys are made of their
    columns whenever they are needed, and no row records when it was written: there are no
    incremental queries. It is chosen when the table is made, for good."""
    virtual_keys = Stored("hoodie.recordkey.virtual.enabled", default=False, usual="false")
    """Whether data files leave out `_hoodie_record_key`, which then reads null: record keys are
    made of their columns whenever they are needed. The other meta columns stay, and so do
    incremental queries. A table that stores its keys is switched by `hudi table rewrite-keys`, not
    by this option."""
    virtual_columns = ConfigKey[tuple[str, ...]](
        "hoodie.recordkey.virtual.columns",
        default=(),
        default_text="(those of hoodie.datasource.write.recordkey.field)",
    )
    """Columns that virtual keys are made of, separated by commas: another name of
    hoodie.datasource.write.recordkey.field, under which they are stored."""
    key_concatenator = Stored[str | None](
        "hoodie.recordkey.virtual.concatenator",
        parse=concatenator,
        default_text="(none: keys are those of the key generator)",
    )
    """The separator of the values of a virtual key: with `_` that of the columns `a` and `b` is
    `1_2`, instead of `a:1,b:2`. Values that contain it are refused, as two rows could have one
    key."""
    virtual_generator = ConfigKey[KeyGeneratorType | str | None](
        "hoodie.recordkey.virtual.class",
        parse=key_generator.parse,
        default_text="(the table's key generator)",
    )
    """The key generator that makes virtual keys, by its name or that of Hudi's class: another name
    of hoodie.datasource.write.keygenerator.type. No class is loaded."""
    accepts_other_keys = ConfigKey("hoodie.recordkey.virtual.foreign.keys.accepted", default=False)
    """Whether virtual keys may be such as other engines make otherwise: of dates, decimals or
    bytes, or with a concatenator. Those would add a row again, and not update it: say true where no
    other engine writes the table."""
    keeps_virtual_keys = Stored(
        "hoodie.recordkey.virtual.transition.enabled", default=False, usual="false"
    )
    """Whether a table with virtual keys writes `_hoodie_record_key` all the same, for readers that
    still need it. Here it reads null, and `hudi table validate` counts the rows whose stored key is
    another one than that which is made."""
    logs_changes = Stored("hoodie.table.cdc.enabled", default=False, usual="false")
    """Whether writes that update or delete rows, or add some to a file, log these changes beside
    it, for change data capture queries of Apache Hudi. Those of this project compare the files;
    they read logs where these are much smaller, or clean has removed the file before a write."""
    change_logging = Stored(
        "hoodie.table.cdc.supplemental.logging.mode",
        default=ChangeLogging.DATA_BEFORE_AFTER,
        usual=ChangeLogging.DATA_BEFORE_AFTER.value,
    )
    """What these logs hold of a change: the operation and the key; the row before as well; or the
    rows before and after."""
    base_file_format = Stored(
        "hoodie.table.base.file.format",
        default="PARQUET",
        parse=str.upper,
        aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
        usual="PARQUET",
        written=("PARQUET",),
    )
    """Format of base files. Only PARQUET is supported."""
    timezone = Stored(
        "hoodie.table.timeline.timezone",
        default="UTC",
        choices=("UTC", "LOCAL"),
        hudi_default="LOCAL",
        reason="Local time repeats an hour every autumn and differs between writers.",
        absent="LOCAL",
        usual="LOCAL",
        written=("UTC",),
    )
    """Time zone of instant times. New tables use UTC. Tables that Apache Hudi made are LOCAL unless
    they say otherwise: in the zone of its process, see hoodie.table.timeline.local.zone."""
    local_zone = Stored(
        "hoodie.table.timeline.local.zone",
        parse=time_zone,
        default_text="(the zone of this process)",
        is_open=True,
    )
    """Time zone of the other writers of a table, such as America/Los_Angeles: that of Apache Hudi's
    process, which a table does not name. The instants of a table with
    hoodie.table.timeline.timezone=LOCAL are in it, and so are keys and partition paths that spell
    timestamps as strings. A write is refused where the newest files of the timeline were made in
    another zone. A table may also keep it among its properties."""
