"""The options that say how columns and types of incoming rows meet those of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.parsers import boolean
from hudi_core.schema.promotions import BY_OPTION

FILL_MISSING: Final = ConfigKey(
    key="hoodie.write.set.null.for.missing.columns",
    default=False,
    parse=boolean,
    doc="Whether columns that the incoming rows lack are written as null. Otherwise such rows are "
    "refused. New columns are always added, and types grow; see the documentation of types.",
    group=Group.WRITE,
)
RECONCILE: Final = ConfigKey(
    key="hoodie.datasource.write.reconcile.schema",
    default=False,
    parse=boolean,
    doc="Hudi's older name of hoodie.write.set.null.for.missing.columns.",
    group=Group.WRITE,
)
TRUNCATE_NANOSECONDS: Final = ConfigKey(
    key="hoodie.write.truncate.nanoseconds",
    default=False,
    parse=boolean,
    doc="Whether nanoseconds of incoming timestamps and times are cut off where microseconds "
    "cannot hold them. Otherwise such rows are refused.",
    group=Group.WRITE,
    hudi_default="(no such option; Spark has no nanoseconds)",
    reason="Arrow has nanoseconds, and cutting them off unasked would change values.",
)
LOCAL_TIMESTAMPS: Final = ConfigKey(
    key="hoodie.write.schema.local.timestamps",
    default=False,
    parse=boolean,
    doc="Whether the table's schema calls timestamps without a time zone `local-timestamp-micros`, "
    "as Hudi's Java writer does: its Spark then reads them as TIMESTAMP_NTZ, and hudi-rs 0.5 "
    "cannot read the table. A table whose schema has it keeps it. Otherwise they are "
    "`timestamp-micros` with `adjust-to-utc` false, which Hudi's Spark takes for points in time.",
    group=Group.WRITE,
    hudi_default="true",
    reason="hudi-rs 0.5, the reader of Hudi tables outside the Java world, fails on them.",
)
VALIDATE: Final = ConfigKey(
    key="hoodie.avro.schema.validate",
    default=True,
    parse=boolean,
    choices=("true", "false"),
    doc="Whether incoming columns are checked against the table's. They always are.",
    group=Group.WRITE,
    hudi_default="false",
    reason="Rows that do not fit are refused before anything is written.",
)
AUTO_DROP: Final = ConfigKey(
    key="hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
    default=False,
    parse=boolean,
    choices=("false",),
    doc="Whether columns that the incoming rows lack are dropped from the table. They never are: "
    "Table.alter drops columns.",
    group=Group.WRITE,
)
SCHEMA_CONFLICTS: Final = ConfigKey(
    key="hoodie.write.concurrency.schema.conflict.resolution.enable",
    default=True,
    parse=boolean,
    choices=("true",),
    doc="Whether a write is given up when another writer changed the columns meanwhile.",
    group=Group.WRITE,
)
SCHEMA_ON_READ: Final = ConfigKey(
    key="hoodie.schema.on.read.enable",
    default=True,
    parse=boolean,
    choices=("true", "false"),
    doc="Whether columns can be renamed and dropped. Table.alter always can: files carry field "
    "ids, and no history of schemas is kept beside them.",
    group=Group.WRITE,
    hudi_default="false",
    reason="Field ids cost nothing, and older files are read rightly by them.",
)

WIDEN_NUMBERS: Final = ConfigKey(
    key=BY_OPTION,
    default=False,
    parse=boolean,
    doc="Whether rows may turn a column of whole numbers into one of floats or doubles (to the "
    "nearest, where these have not enough digits) and a column of numbers into one of texts, "
    "beside the types that grow in any case. Numbers in the rows are then brought to the column's "
    "wider type as well. The native format only.",
    group=Group.WRITE,
    hudi_default="(always)",
    reason="One batch in which a tool made texts or doubles of whole numbers would retype a column "
    "for good.",
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    FILL_MISSING,
    TRUNCATE_NANOSECONDS,
    RECONCILE,
    VALIDATE,
    AUTO_DROP,
    SCHEMA_CONFLICTS,
    SCHEMA_ON_READ,
    WIDEN_NUMBERS,
    LOCAL_TIMESTAMPS,
)


@dataclass(frozen=True, slots=True)
class SchemaConfig:
    """How incoming columns meet those of the table.

    Attributes
    ----------
    fill_missing
        Whether columns that the rows lack are written as null.
    truncate_nanoseconds
        Whether nanoseconds that microseconds cannot hold are cut off.
    widen_numbers
        Whether whole numbers may become floating-point numbers, and numbers texts.
    local_timestamps
        Whether the schema calls timestamps without a zone local from now on.
    """

    fill_missing: bool = False
    truncate_nanoseconds: bool = False
    widen_numbers: bool = False
    local_timestamps: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> SchemaConfig:
        """Return the view of a user's options.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used, or asks for what this release does not do.
        """
        for key in KEYS:
            key.read(options)
        return cls(
            fill_missing=FILL_MISSING.read(options) or RECONCILE.read(options),
            truncate_nanoseconds=TRUNCATE_NANOSECONDS.read(options),
            widen_numbers=WIDEN_NUMBERS.read(options),
            local_timestamps=LOCAL_TIMESTAMPS.read(options),
        )
