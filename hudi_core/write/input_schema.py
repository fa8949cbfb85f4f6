"""Checks of the incoming columns against the table, before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import RecordKeyError, SchemaError
from hudi_core.keygen import brings_keys
from hudi_core.model.operation import Operation
from hudi_core.rows.staging import PLAIN
from hudi_core.schema.arrow_types import repeated_names
from hudi_core.schema.casting import cast_array, only_fields
from hudi_core.schema.evolution import merged_schema
from hudi_core.schema.table_schema import (
    IS_DELETED,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    TableSchema,
    is_column,
)
from hudi_core.table_handle import OpenTable
from hudi_core.txn.schema_step import SchemaStep, last_write, require_supported
from hudi_core.write.partial_rows import require_essential_columns

# --- schemas that writes begin from --------------------------------------------------------------


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


# --- the schema of incoming rows -----------------------------------------------------------------


def staged_schema(
    incoming: pa.Schema,
    table: TableSchema,
    config: TableConfig,
    operation: Operation,
    *,
    by_key_alone: bool = False,
    keep_values: bool = False,
    how: SchemaConfig = PLAIN,
) -> TableSchema:
    """Return the columns a write stages, delete flag included.

    The delete flag where the input has one.

    A delete needs no more than the columns that make key and partition path; only those of the key
    where an index of the whole table finds the rows.

    Meta columns of ``incoming`` are ignored, but for key and partition path where a table without a
    record key updates or deletes by them. ``by_key_alone``: rows are found by their keys in all
    partitions. ``keep_values``: columns that an upsert lacks keep their stored values. ``how`` says
    whether nullable columns may be absent, which are null then.
    """
    names = [name for name in incoming.names if name not in META_COLUMNS]
    _require_distinct_names(names)
    missing_keys = [name for name in config.record_key_fields if not is_column(incoming, name)]
    if missing_keys:
        raise RecordKeyError(
            f"The rows lack the record key column {', '.join(map(repr, missing_keys))}",
            f"Add it; the rows have: {', '.join(names) or 'no column'}.",
            columns=missing_keys,
        )
    keys = _brought_keys(incoming, config, operation)
    if operation.deletes:
        needed = [*config.record_key_fields]
        if PARTITION_PATH not in (field.name for field in keys):
            needed += config.partition_fields
        missing = [name for name in needed if not is_column(incoming, name)]
        if by_key_alone and missing:
            needed, missing = [*config.record_key_fields], []
        hint = "Add it, or delete by an index of the whole table, such as GLOBAL_SIMPLE."
        _require_none(missing, "a delete needs the columns of key and partition", hint)
        fields = narrowed(table.arrow, needed) + keys
        _require_types(incoming, fields, how, fixed_columns(config))
        return replace(table, arrow=pa.schema(fields))
    known, given = set(table.arrow.names), set(names)
    unknown = [name for name in names if name not in known and name != IS_DELETED]
    if unknown:
        raise SchemaError(
            f"The table has no column {', '.join(map(repr, unknown))}",
            "Drop it from the rows, or write to a table that has it.",
            columns=unknown,
        )
    if keep_values and operation.updates:
        require_essential_columns(names, table, config)
        fields = [field for field in table.arrow if field.name in given]
    else:
        needed = [each.name for each in table.arrow if not (how.fill_missing and each.nullable)]
        _require_none(
            [name for name in needed if name not in given],
            "every column of the table must be there",
            "Add it, with nulls where there is no value, or set "
            f"{SchemaConfig.fill_missing.key}=true where it may be null. "
            "Table.alter(drop=...) takes a column out of the table.",
        )
        fields = list(table.arrow)
    if IS_DELETED in given and IS_DELETED not in known:
        fields.append(pa.field(IS_DELETED, pa.bool_()))
    fields += keys
    _require_types(incoming, fields, how, fixed_columns(config))
    return replace(table, arrow=pa.schema(fields))


def _brought_keys(incoming: pa.Schema, config: TableConfig, operation: Operation) -> list[pa.Field]:
    """Return the meta columns that show which stored rows the rows are."""
    if not operation.by_key or not brings_keys(config, incoming.names):
        return []
    brought = [name for name in (RECORD_KEY, PARTITION_PATH) if name in incoming.names]
    return [pa.field(name, pa.string()) for name in brought]


def _require_distinct_names(names: Sequence[str]) -> None:
    repeated = repeated_names(names)
    if repeated:
        raise SchemaError(
            f"The rows have several columns named {', '.join(map(repr, repeated))}",
            "Rename or drop all but one.",
            columns=repeated,
        )


def _require_none(missing: Sequence[str], why: str, hint: str) -> None:
    if missing:
        raise SchemaError(
            f"The rows lack the column {', '.join(map(repr, missing))}: {why}",
            hint,
            columns=missing,
        )


def narrowed(fields: Iterable[pa.Field], paths: Collection[str]) -> list[pa.Field]:
    """Columns at some paths alone; of structs the fields that are named."""
    tops = dict.fromkeys(path.partition(".")[0] for path in paths)
    by_name = {field.name: field for field in fields}
    found = []
    for top in tops:
        field = by_name[top]
        below = [path.partition(".")[2] for path in paths if path.partition(".")[0] == top]
        if all(below):
            field = field.with_type(pa.struct(narrowed(field.type, below)))
        found.append(field)
    return found


def _require_types(
    incoming: pa.Schema, fields: Sequence[pa.Field], how: SchemaConfig, fixed: Collection[str]
) -> None:
    given = set(incoming.names)
    for field in fields:
        if field.name not in given:
            continue  # becomes null
        # a column without rows shows whether the types go together; values are checked as they come
        none = only_fields(pa.nulls(0, incoming.field(field.name).type), field.type)
        grows = field.name not in fixed
        cast_array(none, field, field.name, widely=how.widen_numbers, grows=grows)
