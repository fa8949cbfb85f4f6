"""Merges incoming rows of one key, value by value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_core.engine.base import TaskContext
from hudi_core.index.incoming import Scope, arrival_order, key_names, record_keys
from hudi_core.rows.context import WriteContext
from hudi_core.rows.filling import folded
from hudi_core.rows.staging import INGEST_ORDER, LAST_INGESTED, PartBuilder, StagedPart
from hudi_core.schema.table_schema import TableSchema


def fold_rows(
    task: TaskContext, scope: Scope, context: WriteContext, schema: TableSchema, in_memory: bool
) -> StagedPart | None:
    """Stage the one row that each key with several rows comes to.

    Memory holds the keys of the scope, and all columns of rows whose key is there several times.

    The part is of the partition of the row that counts; ``None`` where every key occurs once. With
    ``in_memory`` the part holds the rows, and no file is written.
    """
    staged = scope.parts[0].schema
    wanted = {INGEST_ORDER, *key_names(context)}
    names = [name for name in staged.names if name in wanted]
    rows = scope.sources.table(context, scope.parts, names)
    keys = record_keys(rows, context, schema).combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy()
    numbers = np.flatnonzero(np.bincount(codes)[codes] > 1)
    if not len(numbers):
        return None
    _, codes = np.unique(codes[numbers], return_inverse=True)
    whole = scope.sources.take(context, scope.parts, numbers, staged)
    order = arrival_order(whole)
    if order is not None:
        whole, codes, numbers = whole.take(pa.array(order)), codes[order], numbers[order]
    rules = context.rules
    # rows of a batch complete each other by values that are absent, or by the table's rules too
    rules = rules if rules.fills_batch else replace(rules, fill=None)
    one, counted = folded(whole, codes, rules)
    if INGEST_ORDER in staged.names:
        arrivals = pa.array(LAST_INGESTED + np.arange(one.num_rows))
        one = one.set_column(
            staged.get_field_index(INGEST_ORDER), staged.field(INGEST_ORDER), arrivals
        )
    builder = PartBuilder(task, context, staged, in_memory)
    partitions = scope.sources.partition_of(numbers[counted])
    for ordinal, path in enumerate(scope.sources.paths):
        own = np.flatnonzero(partitions == ordinal)
        if len(own):
            batches = one.take(pa.array(own)).combine_chunks().to_batches()
            builder.add(path, batches[0])
    return builder.close()
