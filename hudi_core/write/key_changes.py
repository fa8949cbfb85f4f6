"""Key changes of one file, spilled for the key indexes.

The task knows which keys come, which go, and what the rows hold: so the files are not read a second
time to find out. What is left is an Arrow table, in the form of
:mod:`hudi_core.metadata.key_index.key_changes`; it never passes the driver where engines share no
memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import plain
from hudi_core.engine.base import TaskContext
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.key_index.key_changes import INSERTED, change_table, changes_of_file
from hudi_core.metadata.partitions.registry import partitions_of
from hudi_core.metadata.table import StoredPartitions
from hudi_core.rows.context import KeyTracking, WriteContext
from hudi_core.rows.merging import Merged
from hudi_core.rows.staging import SpillRef, spill
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema


def key_tracking(
    client: TableMetaClient, schema: TableSchema, in_memory: bool
) -> KeyTracking | None:
    """Keys that tasks spill; ``None`` without a key index."""
    stored = partitions_of(StoredPartitions.of(client.config).all)
    if not any(one.is_key_index for one in stored):
        return None
    of_columns = [one.name for one in stored if one.is_of_column and one.is_key_index]
    columns: list[str] = []
    if of_columns:
        definitions = read_definitions(client.storage, client.config)
        columns = [column for name in of_columns for column in definitions.columns(name)]
    known = set(schema.arrow.names)
    return KeyTracking(tuple(sorted(known.intersection(columns))), in_memory)


def leave_changes(
    context: WriteContext, task: TaskContext, merged: Merged, stored: pa.Table, written: pa.Table
) -> SpillRef | None:
    """Leave what becomes of the keys of a file that is rewritten.

    ``written`` has meta columns, updates first, then new rows. ``None`` where no index asks for it.
    """
    tracked = context.tracked
    if tracked is None:
        return None
    columns = [RECORD_KEY, *tracked.columns]
    updates = len(merged.updates) if tracked.columns else 0
    gone = np.setdiff1d(merged.removed, merged.replaced, assume_unique=True)
    came = _selected(written.slice(len(merged.updates)), columns)
    table = change_table(INSERTED, None, came)
    if len(gone) or updates:
        known = _selected(stored, columns)
        table = changes_of_file(
            came,
            _gone(known.take(pa.array(gone)), merged),
            known.take(pa.array(merged.replaced[:updates])),
            _selected(written.slice(0, updates), columns),
        )
    return spill(context, task, "changes", table, tracked.in_memory)


def leave_insertions(
    context: WriteContext, task: TaskContext, number: int, written: Sequence[pa.Table]
) -> SpillRef | None:
    """Spill the keys of a new file; ``None`` if not needed.

    ``number`` is the file's among those of the task; ``written`` has the columns of
    :func:`tracked_columns`.
    """
    if context.tracked is None:
        return None
    table = change_table(INSERTED, None, pa.concat_tables(written))
    return spill(context, task, f"changes{number}", table, context.tracked.in_memory)


def tracked_columns(context: WriteContext, rows: pa.Table) -> pa.Table | None:
    """Return columns that key indexes hold; ``None`` for none."""
    if context.tracked is None:
        return None
    return _selected(rows, [RECORD_KEY, *context.tracked.columns])


def _gone(gone: pa.Table, merged: Merged) -> pa.Table:
    """Return rows whose keys the file holds no more."""
    if not gone.num_rows:
        return gone
    # of rows with one key that inserts have left, some may stay
    keys = gone.column(RECORD_KEY)
    kept = plain(merged.kept.column(RECORD_KEY))
    stay = pc.is_in(kept, value_set=_array(keys))
    if not pc.any(stay).as_py():
        return gone
    still = _array(kept.filter(stay))
    return gone.filter(pc.invert(pc.is_in(keys, value_set=still)))


def _selected(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    return pa.table({name: plain(rows.column(name)) for name in columns})


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
