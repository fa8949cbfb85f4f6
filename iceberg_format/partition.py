"""Partitions of a Hudi table as partitions of the Iceberg table.

Where every partition value is a column's value, and of a type whose value in a file's statistics is
exact, the Iceberg table is partitioned by the identity of these columns. Where a key generator
makes it the year, month, day or hour, in UTC, of a date or timestamp column, the table is
partitioned by that transform. All other tables are unpartitioned to Iceberg, and their files are
pruned by statistics.

A file takes its values from its own statistics, not from its path: what the field makes of the
least and of the greatest value is one. Where it is not, the file is recorded under the second
specification, which has no partition fields and so claims nothing. That is so without rows or
statistics, where rows without a time share a file with others (a key generator puts them into 1
January 1970, where Iceberg has null), and in the last milliseconds before 1970, which it takes for
1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from hudi_core.spi import ColumnStats, PartitionTransform, SchemaError, TableSettings

IDENTITY: Final = 0
"""Id of the specification by values; without partition fields where that is not exact."""
WITHOUT: Final = 1
"""Id of the specification without partition fields, for files whose values are not known. In a
table that another writer began, specifications have other ids."""

_EXACT: Final = (BooleanType, DateType, DecimalType, IntegerType, LongType, StringType)
_DATED: Final = (DateType, TimestampType, TimestamptzType)
_PERIODS: Final[Mapping[PartitionTransform, Transform[Any, Any]]] = {
    PartitionTransform.YEAR: YearTransform(),
    PartitionTransform.MONTH: MonthTransform(),
    PartitionTransform.DAY: DayTransform(),
    PartitionTransform.HOUR: HourTransform(),
}


def partition_specs(settings: TableSettings, schema: Schema) -> tuple[PartitionSpec, ...]:
    """Return the specifications of a table, the default one first."""
    made: list[PartitionField] = []
    names = zip(settings.partition_fields, settings.partition_transforms, strict=True)
    for number, (name, kind) in enumerate(names):
        column = _column(schema, name)
        transform = None if column is None else _transform(column, kind)
        if column is None or transform is None:
            return (PartitionSpec(spec_id=IDENTITY),)
        made.append(
            PartitionField(
                source_id=column.field_id,
                field_id=PARTITION_FIELD_ID_START + number,
                transform=transform,
                name=_name(schema, column, kind),
            )
        )
    if not made:
        return (PartitionSpec(spec_id=IDENTITY),)
    return PartitionSpec(*made, spec_id=IDENTITY), PartitionSpec(spec_id=WITHOUT)


def require_free_partition_names(settings: TableSettings, before: Schema, after: Schema) -> None:
    """Refuse new columns named as partition fields.

    As one is, or could have been.

    A field of a period got its name when the table was made, beside the columns of then: with as
    many ``_`` behind it as no column had.
    """
    for field in partition_specs(settings, before)[0].fields:
        if isinstance(field.transform, IdentityTransform):
            continue
        base = f"{before.find_column_name(field.source_id)}_{field.transform}"
        for column in after.fields:
            if column.name.rstrip("_") != base.rstrip("_") or len(column.name) < len(base):
                continue
            if _column(before, column.name) is None:
                raise SchemaError(
                    f"Column {column.name} would be called as the field of the table's Iceberg "
                    f"partitions is, the {field.transform} of a column",
                    "Give the column another name.",
                    column=column.name,
                )


def added_specs(
    known: Sequence[PartitionSpec], wanted: Sequence[PartitionSpec]
) -> tuple[list[PartitionSpec], int]:
    """A table's specifications with further ones, and these' first id.

    ``known`` are those that another writer gave the table; they keep their ids, by which its
    snapshots name them. ``wanted`` come from :func:`partition_specs`.
    """
    specs = [*known]
    ids = []
    for one in wanted:
        same = next((each for each in specs if each.fields == one.fields), None)
        if same is None:
            number = max((each.spec_id for each in specs), default=-1) + 1
            same = one.model_copy(update={"spec_id": number})
            specs.append(same)
        ids.append(same.spec_id)
    return specs, ids[0]


def partition_of(
    metadata: TableMetadata, schema: Schema, columns: Mapping[str, ColumnStats]
) -> tuple[int, Record]:
    """Return under which specification, and with which values, a file is recorded."""
    spec = metadata.spec()
    values: list[Any] = []
    for field in spec.fields:
        make = field.transform.transform(schema.find_type(field.source_id))
        column = columns.get(schema.find_column_name(field.source_id) or "")
        known, value = _one_value(column, make)
        if not known:
            return _without_fields(metadata), Record()
        values.append(value)
    return spec.spec_id, Record(*values)


def _without_fields(metadata: TableMetadata) -> int:
    return next((one.spec_id for one in metadata.partition_specs if not one.fields), WITHOUT)


def _column(schema: Schema, name: str) -> NestedField | None:
    return next((field for field in schema.fields if field.name == name), None)


def _transform(column: NestedField, kind: PartitionTransform) -> Transform[Any, Any] | None:
    """Return a column's partition transform, or ``None``."""
    if kind is PartitionTransform.IDENTITY:
        return IdentityTransform() if isinstance(column.field_type, _EXACT) else None
    found = _PERIODS.get(kind)
    if found is None or not isinstance(column.field_type, _DATED):
        return None
    return found if found.can_transform(column.field_type) else None


def _name(schema: Schema, column: NestedField, kind: PartitionTransform) -> str:
    """Return a free name for a partition field.

    Of what is no column itself, one that no column has.
    """
    if kind is PartitionTransform.IDENTITY:
        return column.name
    name = f"{column.name}_{kind}"
    while _column(schema, name) is not None:
        name += "_"
    return name


def _one_value(column: ColumnStats | None, make: Callable[[Any], Any]) -> tuple[bool, Any]:
    if column is None or column.null_count is None or not column.value_count:
        return False, None
    if column.null_count == column.value_count:
        return True, None
    if column.null_count or column.min_value is None or column.max_value is None:
        return False, None
    value = make(column.min_value)
    return value == make(column.max_value), value
