"""Schema options: incoming columns and types against the table's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from hudi_core.config.options import ConfigKey, Group, Option, Options
from hudi_core.schema.casting import BY_OPTION


class SchemaConfig(Options, group=Group.WRITE):
    """How incoming columns meet those of the table."""

    fill_missing: Option[bool] = Option("hoodie.write.set.null.for.missing.columns", default=False)
    """Whether columns that incoming rows lack, all or some of them, are written as null. Otherwise
    such rows are refused. New columns are always added, and types grow; see the documentation of
    types."""
    truncate_nanoseconds: Option[bool] = Option(
        "hoodie.write.truncate.nanoseconds",
        default=False,
        hudi_default="(no such option; Spark has no nanoseconds)",
        reason="Arrow has nanoseconds, and cutting them off unasked would change values.",
    )
    """Whether nanoseconds of incoming timestamps and times are cut off where microseconds cannot
    hold them. Otherwise such rows are refused."""
    reconcile = ConfigKey("hoodie.datasource.write.reconcile.schema", default=False)
    """Hudi's older name of hoodie.write.set.null.for.missing.columns."""
    validate = ConfigKey(
        "hoodie.avro.schema.validate",
        default=True,
        choices=("true", "false"),
        hudi_default="false",
        reason="Rows that do not fit are refused before anything is written.",
    )
    """Whether incoming columns are checked against the table's. They always are."""
    auto_drop = ConfigKey(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
        default=False,
        choices=("false",),
    )
    """Whether columns that the incoming rows lack are dropped from the table. They never are:
    Table.alter drops columns."""
    schema_conflicts = ConfigKey(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        default=True,
        choices=("true",),
    )
    """Whether a write is given up when another writer changed the columns meanwhile."""
    schema_on_read = ConfigKey(
        "hoodie.schema.on.read.enable",
        default=True,
        choices=("true", "false"),
        hudi_default="false",
        reason="Field ids cost nothing, and older files are read rightly by them.",
    )
    """Whether columns can be renamed and dropped. Table.alter always can: files carry field ids,
    and no history of schemas is kept beside them."""
    widen_numbers: Option[bool] = Option(
        BY_OPTION,
        default=False,
        hudi_default="(always)",
        reason="One batch in which a tool made strings or doubles of whole numbers would retype a "
        "column for good.",
    )
    """Whether rows may turn a column of whole numbers into one of floats or doubles (to the
    nearest, where these have not enough digits) and a column of numbers into one of strings, beside
    the types that grow in any case. Numbers in the rows are then brought to the column's wider type
    as well. The native format only."""
    local_timestamps: Option[bool] = Option(
        "hoodie.write.schema.local.timestamps",
        default=False,
        hudi_default="true",
        reason="hudi-rs 0.5, the reader of Hudi tables outside the Java world, fails on them.",
    )
    """Whether the table's schema calls timestamps without a time zone `local-timestamp-micros`, as
    Hudi's Java writer does: its Spark then reads them as TIMESTAMP_NTZ, and hudi-rs 0.5 cannot read
    the table. A table whose schema has it keeps it. Otherwise they are `timestamp-micros` with
    `adjust-to-utc` false, which Hudi's Spark takes for points in time."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; what is not supported is refused."""
        for key in cls.keys:
            key.read(options)
        fill_missing = cls.fill_missing.read(options) or cls.reconcile.read(options)
        return cls._read(options, fill_missing=fill_missing)
