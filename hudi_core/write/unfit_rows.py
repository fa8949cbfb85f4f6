"""Looking at rows before the table they are to replace is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.keygen import key_generator
from hudi_core.model.commit import WriteOperation
from hudi_core.model.schema import TableSchema
from hudi_core.write.input_schema import staged_schema
from hudi_core.write.staging import normalised


def refuse_unfit_rows(data: Any, engine: Engine, config: TableConfig, schema: TableSchema) -> None:
    """Make the keys and partition paths of all rows, and keep nothing.

    Rows that can be read just once are not looked at, only their columns.

    Parameters
    ----------
    config, schema
        Of the table that they are meant for, which need not exist.

    Raises
    ------
    SchemaError
        What a write of these rows would raise before its first data file.
    """
    incoming = engine.schema_of(data)
    staged_schema(incoming, schema, config, WriteOperation.INSERT)
    if isinstance(data, pa.RecordBatchReader) or not config.record_key_fields:
        return
    # a delete stages nothing but what makes key and partition
    keys = staged_schema(incoming, schema, config, WriteOperation.DELETE)
    engine.map_input(data, partial(_make_keys, config=config, schema=keys), 0)


def _make_keys(
    _: TaskContext, batches: Iterator[pa.RecordBatch], config: TableConfig, schema: TableSchema
) -> Iterator[None]:
    keys = key_generator(config, schema)
    for batch in normalised(batches, schema):
        keys.record_keys(batch)
        keys.partition_paths(batch)
    yield from ()
