"""Columns of keys and paths that Hudi spells in several ways."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.config.table import TableConfig
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.schema.table_schema import TableSchema


class Spelled(NamedTuple):
    """Types of values in keys and paths that have several spellings."""

    timestamps: bool
    floats: bool


def spelled(config: TableConfig, schema: TableSchema) -> Spelled:
    """The types with several spellings in a table's keys and paths."""
    fields = zip(config.partition_fields, config.partition_transforms, strict=True)
    own = [name for name, how in fields if how is PartitionTransform.IDENTITY]
    found = [schema.field(name) for name in (*config.record_key_fields, *own)]
    kinds: list[pa.DataType] = [field.type for field in found if field is not None]
    return Spelled(
        any(pt.is_timestamp(kind) and kind.tz for kind in kinds), any(map(pt.is_floating, kinds))
    )


def without_idle_forms(config: TableConfig, schema: TableSchema) -> TableConfig:
    """The configuration without spellings of types that its keys do not have."""
    found = spelled(config, schema)
    return replace(
        config,
        consistent_timestamps=config.consistent_timestamps if found.timestamps else None,
        old_floats=config.old_floats if found.floats else None,
    )
