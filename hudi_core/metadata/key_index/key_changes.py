"""What a write does to the keys of a file.

One table per file that the write made, from the task that wrote it, else from the file and the one
before it:

==================== =======================================================================
column               content
==================== =======================================================================
``key``              record key; text
``change``           ``1``: the file has it now; ``-1``: no more; ``0``: it has other values
``before.<column>``  value of an indexed column before; null of keys that are new
``after.<column>``   value after; null of keys that are gone
==================== =======================================================================

Keys that stay with their values are not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.metadata.log.records import (
    AlikeRecords,
    PartitionChange,
    RecordLocation,
    RecordType,
    SecondaryEntry,
)
from hudi_core.schema.table_schema import RECORD_KEY

INSERTED: Final = 1
UPDATED: Final = 0
DELETED: Final = -1


def change_table(kind: int, before: pa.Table | None, after: pa.Table | None) -> pa.Table:
    """Return the table of keys to all of which the same happens.

    ``before`` and ``after`` are the rows (record key and indexed columns) in one order; ``None``
    before an insert and after a delete.
    """
    known = before if after is None else after
    assert known is not None  # noqa: S101 - one of them is given
    columns = {
        "key": known.column(RECORD_KEY),
        "change": pa.array(np.full(known.num_rows, kind, np.int8)),
    }
    for field in known.schema:
        if field.name == RECORD_KEY:
            continue
        for prefix, rows in (("before", before), ("after", after)):
            nulls = pa.nulls(known.num_rows, field.type)
            columns[f"{prefix}.{field.name}"] = nulls if rows is None else rows.column(field.name)
    return pa.table(columns)


def changes_of_file(came: pa.Table, gone: pa.Table, before: pa.Table, after: pa.Table) -> pa.Table:
    """The table of a file that takes the place of another.

    ``came`` and ``gone`` are the rows of keys new to the file and no longer in it; ``before`` and
    ``after`` are those of keys that stay, in one order. Several rows of a key are paired each with
    each.
    """
    changes = [change_table(INSERTED, None, came), change_table(DELETED, gone, None)]
    differ = np.zeros(before.num_rows, bool)
    for name in before.column_names:
        if name != RECORD_KEY:
            differ |= _differ(before.column(name), after.column(name))
    if differ.any():
        keys = before.column(RECORD_KEY)
        changed = pc.is_in(keys, value_set=_array(keys.filter(pa.array(differ))))
        changes.append(change_table(UPDATED, before.filter(changed), after.filter(changed)))
    return pa.concat_tables(changes, promote_options="permissive")


def changes_between(before: pa.Table | None, after: pa.Table) -> pa.Table:
    """The table of a file, from its rows and those before it."""
    if before is None:
        return change_table(INSERTED, None, after)
    old, new = (_array(rows.column(RECORD_KEY)) for rows in (before, after))
    came = after.filter(pc.invert(pc.is_in(new, value_set=old)))
    gone = before.filter(pc.invert(pc.is_in(old, value_set=new)))
    sides = (("old", old), ("new", new))
    left, right = (pa.table({RECORD_KEY: keys, side: np.arange(len(keys))}) for side, keys in sides)
    pairs = left.join(right, RECORD_KEY, join_type="inner")
    return changes_of_file(came, gone, before.take(pairs["old"]), after.take(pairs["new"]))


def location_changes(tables: Sequence[tuple[RecordLocation, pa.Table]]) -> PartitionChange:
    """Changes that a write makes to the record index.

    A key that several files have belongs to the last.
    """
    came = [keys_of(table, INSERTED) for _, table in tables]
    left = [keys_of(table, DELETED) for _, table in tables]
    new = pa.concat_arrays([pa.array([], pa.string()), *came])
    last = _last_of_each(new)
    if last is not None:
        places = np.repeat(np.arange(len(came)), [len(keys) for keys in came])[last]
        came = [new.take(pa.array(last[places == place])) for place in range(len(came))]
    alike = tuple(
        AlikeRecords(keys, RecordType.RECORD_INDEX, location)
        for keys, (location, _) in zip(came, tables, strict=True)
        if len(keys)
    )
    # what moved is in one file's table as gone, and in another's as new
    deleted = _without(_distinct(left), new)
    return PartitionChange((), tuple(deleted.to_pylist()), alike)


def entry_changes(tables: Sequence[pa.Table]) -> PartitionChange:
    """Changes that a write makes to a secondary index.

    The keys of the tables are those of the index.
    """
    new, old = (_distinct([keys_of(one, kind) for one in tables]) for kind in (INSERTED, DELETED))
    # what was there already, with the same value in another file, is repeated: it is no error
    kinds = ((new, False), (_without(old, new), True))
    alike = (
        AlikeRecords(keys, RecordType.SECONDARY_INDEX, SecondaryEntry(is_deleted))
        for keys, is_deleted in kinds
        if len(keys)
    )
    return PartitionChange(alike=tuple(alike))


def _distinct(some: Sequence[pa.Array]) -> pa.Array:
    return pc.unique(pa.concat_arrays([pa.array([], pa.string()), *some]))


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def keys_of(table: pa.Table, kind: int) -> pa.Array:
    """Return the keys to which one thing happens: ``INSERTED``, ``UPDATED`` or ``DELETED``."""
    keys = table.filter(pc.equal(table.column("change"), kind)).column("key")
    return keys.cast(pa.string()).combine_chunks()


def _last_of_each(keys: pa.Array) -> np.ndarray | None:
    """Return each key's last position; ``None`` if all are distinct."""
    codes = keys.dictionary_encode()
    if len(codes.dictionary) == len(keys):
        return None
    last = np.zeros(len(codes.dictionary), np.int64)
    last[codes.indices.to_numpy()] = np.arange(len(keys))
    return np.sort(last)


def _differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> np.ndarray:
    """Which values are not the same; nulls are."""
    same = pc.fill_null(pc.equal(old, new), False)
    both = pc.and_(pc.is_null(old), pc.is_null(new))
    found: np.ndarray = pc.invert(pc.or_(same, both)).to_numpy()
    return found


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
