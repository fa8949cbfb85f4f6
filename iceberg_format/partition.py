"""Partitions of a Hudi table as partitions of the Iceberg table.

Where every partition value is a column's value, and of a type whose value in a file's statistics is
exact, the Iceberg table is partitioned by the identity of these columns. All other tables are
unpartitioned to Iceberg, and their files are pruned by statistics.

A file takes its values from its own statistics: least and greatest value are one. Where they are
not (no rows, or no statistics), the file is recorded under the second specification, which has no
partition fields and so claims nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

from hudi_core.spi import ColumnStats, TableSettings

IDENTITY: Final = 0
"""Id of the specification by identity; without partition fields where that is not exact."""
WITHOUT: Final = 1
"""Id of the specification without partition fields, for files whose values are not known."""

_EXACT: Final = (BooleanType, DateType, DecimalType, IntegerType, LongType, StringType)
_IDENTITY_KEYS: Final = frozenset({"SIMPLE", "COMPLEX"})


def partition_specs(settings: TableSettings, schema: Schema) -> tuple[PartitionSpec, ...]:
    """Return the specifications of a table, the default one first."""
    fields = [_column(schema, name) for name in settings.partition_fields]
    exact = settings.keygen_type in _IDENTITY_KEYS and all(
        field is not None and isinstance(field.field_type, _EXACT) for field in fields
    )
    if not fields or not exact:
        return (PartitionSpec(spec_id=IDENTITY),)
    identity = [
        PartitionField(
            source_id=field.field_id,
            field_id=PARTITION_FIELD_ID_START + number,
            transform=IdentityTransform(),
            name=field.name,
        )
        for number, field in enumerate(fields)
        if field is not None
    ]
    return PartitionSpec(*identity, spec_id=IDENTITY), PartitionSpec(spec_id=WITHOUT)


def partition_of(
    spec: PartitionSpec, schema: Schema, columns: Mapping[str, ColumnStats]
) -> tuple[int, Record]:
    """Return under which specification, and with which values, a file is recorded.

    Parameters
    ----------
    spec
        The table's default.
    columns
        Statistics of the file by leaf path.
    """
    values: list[Any] = []
    for field in spec.fields:
        known, value = _one_value(columns.get(schema.find_column_name(field.source_id) or ""))
        if not known:
            return WITHOUT, Record()
        values.append(value)
    return spec.spec_id, Record(*values)


def _column(schema: Schema, name: str) -> NestedField | None:
    return next((field for field in schema.fields if field.name == name), None)


def _one_value(column: ColumnStats | None) -> tuple[bool, Any]:
    if column is None or column.null_count is None or not column.value_count:
        return False, None
    if column.null_count == column.value_count:
        return True, None
    one = column.min_value is not None and column.min_value == column.max_value
    return one and not column.null_count, column.min_value
