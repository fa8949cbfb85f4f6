"""Preparations of a write: its columns, layout, and context of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from hudi_core.config.kinds import InsertDuplicates, PartialUpdateMode
from hudi_core.config.support import require_known_zone
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import InvalidOptionError, RecordKeyError
from hudi_core.keygen import brings_keys
from hudi_core.model.instant_time import EARLIEST
from hudi_core.model.operation import INSERT, UPSERT, Operation
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import require_delete_markers, require_merge_columns
from hudi_core.rows.filling import require_null_defaults
from hudi_core.rows.sorting import require_sortable_columns
from hudi_core.schema.absence import Absence, flags_of
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY, TableSchema, is_column
from hudi_core.table_handle import OpenTable
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.write.conditional.changes import Changes, Resolved, TableColumns, staged_columns
from hudi_core.write.input_schema import plan_schema, staged_schema, unchanged
from hudi_core.write.key_proof import ProvenLayout, proven_layout
from hudi_core.write.partial_rows import AbsentValues, require_same_partition
from hudi_core.write.validation import Validation


class Prepared(NamedTuple):
    """A write before it begins.

    ``context`` has no time yet; ``step`` is the change of the table's columns.
    """

    context: WriteContext
    staged: TableSchema
    step: SchemaStep
    layout: ProvenLayout


def prepared_rows(
    table: OpenTable,
    config: WriteConfig,
    validation: Validation | None,
    incoming: pa.Schema,
    operation: Operation,
    *,
    absent: Sequence[Absence] = (),
    is_new: bool = False,
) -> Prepared:
    """Prepare a write of rows with these columns.

    ``absent`` are columns that only some of the rows lack; ``is_new``: the table was made for these
    rows.
    """
    client = table.client
    require_known_zone(client.config, client.base_path)
    config = write_config_for(client.config, config, operation, incoming.names)
    step = plan_schema(table, incoming, config, operation)
    if validation is not None:
        validation.require_runnable(table, step)
    layout = proven_layout(table, config, operation, step.base)
    client = layout.table.client
    keep_values = config.partial_update_mode is PartialUpdateMode.KEEP_VALUES
    buckets, index = client.config.buckets, config.index.index_type
    staged = staged_schema(
        incoming,
        step.new,
        client.config,
        operation,
        by_key_alone=buckets is None and index.is_global,
        keep_values=keep_values,
        how=config.schema,
    )
    absence = AbsentValues(
        step.base, client.config, operation, keep_values, config.schema.fill_missing, is_new
    )
    kept = absence.kept(absent, staged.names)
    if kept and (operation.updates or config.combines(operation)):
        # rows with one key complete each other
        config = replace(config, combine_before_upsert=True)
        staged = replace(staged, arrow=staged.arrow.append(flags_of(kept)))
    context = WriteContext(
        client.base_path, client.storage_options, client.config, step.new, config, EARLIEST
    )
    has_columns = all(is_column(staged.arrow, one) for one in client.config.partition_fields)
    knows_partitions = has_columns or PARTITION_PATH in staged.names
    context = replace(context, knows_partitions=knows_partitions)
    if operation.writes_straight:
        require_sortable_columns(context)
    if operation.updates:
        require_same_partition(staged, context, [one for one in kept if one in step.base.names])
    if not operation.deletes:
        require_delete_markers(context.rules, context.schema)
    if context.merges(operation):
        require_merge_columns(context.rules, context.schema)
        if context.rules.fill is not None:
            schema = client.schema_text_at(table.timeline())
            require_null_defaults(schema, context.rules)
    return Prepared(context, staged, step, layout)


def prepared_changes(
    table: OpenTable, config: WriteConfig, validation: Validation | None, changes: Changes
) -> tuple[Prepared, Resolved]:
    """Prepare a write that changes stored rows."""
    client, operation = table.client, changes.operation
    require_known_zone(client.config, client.base_path)
    step = unchanged(table)
    if validation is not None:
        validation.require_runnable(table, step)
    config = replace(config, combine_before_upsert=True)
    layout = proven_layout(table, config, operation, step.base)
    client = layout.table.client
    context = WriteContext(
        client.base_path,
        client.storage_options,
        client.config,
        step.new,
        config,
        EARLIEST,
        assigns=True,
    )
    found = changes.resolve(TableColumns(client.config, step.base, context.is_global))
    staged = staged_columns(step.base.arrow, operation)
    assigned = frozenset[str]().union(*(one.assigned for one in found.clauses))
    context = replace(context, assigned=assigned)
    return Prepared(context, replace(step.base, arrow=staged), step, layout), found


# --- tables without a record key: keys are generated ----------------------------------------------
# Every new row gets a key of its own, and only rows that bring the key they were read with are
# looked up.
#
# Source: Hudi's ``AutoRecordGenWrapperKeyGenerator`` and ``HoodieCreateRecordUtils``. The keys are
# made with the meta columns, see :func:`hudi_core.rows.meta_columns.with_meta_columns`.


def default_operation(config: TableConfig, names: list[str]) -> Operation:
    """Operation of a write that names none.

    ``names`` include meta columns.
    """
    has_keys = config.record_key_fields or brings_keys(config, names)
    return UPSERT if has_keys else INSERT


def write_config_for(
    table: TableConfig, config: WriteConfig, operation: Operation, names: list[str]
) -> WriteConfig:
    """Return a write's options for a table, keyless ones included.

    ``names`` include meta columns. Operations that look rows up by key, and options that compare
    keys, are refused for a keyless table.
    """
    if table.record_key_fields:
        return config
    if operation.by_key:
        if brings_keys(table, names):
            return config
        raise RecordKeyError(
            f"The table has no record key, so its rows cannot be {operation.participle} by "
            "columns of their own",
            f"Read the rows from the table, change them, and write them with their columns "
            f"{RECORD_KEY} and {PARTITION_PATH}; or use insert, bulk_insert, insert_overwrite or "
            "delete_partitions, or copy the rows into a table that is created with a record key.",
            operation=operation.recorded,
        )
    for key, value, is_asked in (
        (WriteConfig.combine_before_insert, "true", config.combine_before_insert),
        (
            WriteConfig.insert_duplicates,
            config.insert_duplicates.value,
            config.insert_duplicates is not InsertDuplicates.NONE,
        ),
    ):
        if is_asked:
            raise InvalidOptionError(
                key.key,
                value,
                "the table has no record key, so no two rows have the same",
                "Drop the option.",
            )
    # generated keys never meet
    return replace(config, allow_duplicate_on_insert=True)
