"""What a write makes of the table's columns."""

from __future__ import annotations

import pyarrow as pa

from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.model.operation import Operation
from hudi_core.schema.evolution import merged_schema
from hudi_core.table_handle import OpenTable
from hudi_core.txn.schema_step import SchemaStep, last_write, require_supported


def plan_schema(
    table: OpenTable, incoming: pa.Schema, config: WriteConfig, operation: Operation
) -> SchemaStep:
    """Return the schema change that incoming rows make.

    A delete makes none.
    """
    step = unchanged(table)
    if operation.deletes:
        return step
    new = merged_schema(
        step.base,
        incoming,
        fixed_columns(table.client.config),
        fill_missing=config.schema.fill_missing,
        widely=config.schema.widen_numbers,
    )
    if config.schema.local_timestamps:
        new = new.with_local_timestamps()
    step = SchemaStep(step.base, new, step.last_write)
    require_supported(table, step)
    return step


def unchanged(table: OpenTable) -> SchemaStep:
    """Return the schema step of a write without a change."""
    timeline = table.timeline()
    schema = table.client.schema_at(timeline)
    return SchemaStep(schema, schema, last_write(timeline))


def fixed_columns(config: TableConfig) -> dict[str, str]:
    """Return columns of fixed name and type, with their use."""
    fixed = dict.fromkeys(config.record_key_fields, "part of the record key")
    fixed |= dict.fromkeys(config.partition_fields, "a partition column")
    rules = merge_rules(config)
    fixed |= dict.fromkeys((marker.field for marker in rules.markers), "what marks deletes")
    return fixed | dict.fromkeys((*config.ordering_fields, *rules.order), "the ordering column")
