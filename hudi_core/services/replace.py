"""Looking at rows before the table they are to replace is dropped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_core.config.schema import SchemaConfig
from hudi_core.config.table import TableConfig
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import HudiError, InvalidOptionError
from hudi_core.keygen import key_generator
from hudi_core.model.files import PartitionPath
from hudi_core.model.operation import Operation
from hudi_core.rows.context import WriteContext
from hudi_core.rows.sorting import require_sortable_columns
from hudi_core.rows.staging import normalised
from hudi_core.schema.absence import absences
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services.placement import data_files_at
from hudi_core.storage.location import Location, parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.partition_path import require_not_nested
from hudi_core.storage.properties_file import read_properties
from hudi_core.write.input_schema import staged_schema
from hudi_core.write.nesting import can_nest
from hudi_core.write.partial_rows import AbsentValues
from hudi_core.write.preparing import write_config_for


def fitting_rows(data: Any, engine: Engine, context: WriteContext, operation: Operation) -> Any:
    """Return the rows after checking that all match a new table.

    Every row is read: its values are brought to the table's types, its key and its partition path
    are made. Nothing is kept, but for rows that come as a stream, which are held in memory. A
    DataFrame is evaluated here and once more by the write.

    Rows that are read from the very files about to be dropped are refused.
    """
    _require_foreign_files(engine.source_files(data), context)
    names = engine.schema_of(data).names
    config = write_config_for(context.table, context.write, operation, names)
    if operation.writes_straight:
        require_sortable_columns(context)
    schema = staged_schema(
        engine.schema_of(data),
        context.schema,
        context.table,
        operation,
        how=config.schema,
    )
    values = AbsentValues(
        context.schema, context.table, operation, False, config.schema.fill_missing, True
    )
    values.kept(absences(data), schema.names)
    held = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
    check = partial(
        _partitions_of_fitting_rows,
        config=context.table,
        schema=schema,
        how=config.schema,
    )
    found = engine.map_input(held, check, 0)
    if can_nest(context.table):
        require_not_nested({path for paths in found for path in paths})
    return held


def _partitions_of_fitting_rows(
    _: TaskContext,
    batches: Iterator[pa.RecordBatch],
    config: TableConfig,
    schema: TableSchema,
    how: SchemaConfig,
) -> Iterator[frozenset[PartitionPath]]:
    keys = key_generator(config, schema)
    found: set[PartitionPath] = set()
    for batch in normalised(batches, schema, how):
        keys.record_keys(batch)
        found.update(map(PartitionPath, keys.partition_paths(batch).dictionary.to_pylist()))
    yield frozenset(found)


def _require_foreign_files(files: list[str], context: WriteContext) -> None:
    base = parse_location(context.base_path)
    stored = read_properties(open_storage(context.base_path, context.storage_options))
    places = data_files_at(context.base_path, stored, context.storage_options)
    own = next(
        (
            file
            for file in files
            if _below(file, base) is not None
            or any(
                below is not None and places.logical(below, root) is not None
                for root in places.roots
                for below in (_below(file, parse_location(root)),)
            )
        ),
        None,
    )
    if own is not None:
        raise InvalidOptionError(
            "mode",
            "overwrite",
            f"the rows are read from files of the table that would be dropped first ({own})",
            "Write with the operation insert_overwrite_table, which keeps them until it is "
            "complete, or to another path.",
        )


def _below(file: str, root: Location) -> str | None:
    """Where a file is below a folder; ``None`` where it is elsewhere."""
    try:
        place = parse_location(file)
    except HudiError:
        return None  # of a store that holds no tables
    own, above = place.key, root.key
    if place.is_local and root.is_local:
        own, above = os.path.realpath(own), os.path.realpath(above)
    elif (place.kind, place.bucket) != (root.kind, root.bucket):
        return None
    folder = f"{above}/" if above else ""
    return own[len(folder) :] if own.startswith(folder) and own != folder else None
