"""Partial updates: values that the winning row takes from the other.

Source: Hudi's ``PartialUpdateHandler``. Only whole columns are compared, never fields of a struct.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.base_file.encoded_columns import plain
from hudi_core.config.merge_rules import Fill, MergeRules
from hudi_core.errors import SchemaError
from hudi_core.rows.combine import Positions, order_ranks
from hudi_core.rows.deciding import Mask, deleted, order_values
from hudi_core.rows.gathering import take_values
from hudi_core.rows.staging import INGEST_ORDER, true_mask
from hudi_core.schema.absence import ABSENT, absent_values, flags_column
from hudi_core.schema.table_schema import META_COLUMNS

_NEVER: Final = frozenset((*META_COLUMNS, INGEST_ORDER, ABSENT))


def require_null_defaults(schema: str | None, rules: MergeRules) -> None:
    """Refuse partial updates where a column's default is not null.

    Hudi takes that value for a missing one too, but by identity of Java objects: which values those
    are depends on their type and size. Tables that Spark or this project made have no such columns.
    """
    if rules.fill is not Fill.NULLS or schema is None:
        return
    fields = json.loads(schema)["fields"]
    names = [field["name"] for field in fields if field.get("default") is not None]
    if names:
        raise SchemaError(
            f"The table fills rows where columns have their default values, and that of "
            f"{', '.join(map(repr, names))} is not null",
            "Write to it with Apache Hudi, or drop the defaults from its schema.",
            columns=names,
        )


def lacking(name: str, column: pa.ChunkedArray, rules: MergeRules) -> Mask | None:
    """Where a column lacks its value; ``None`` where it cannot."""
    if name in _NEVER or name in rules.never_filled:
        return None
    if rules.fill is Fill.NULLS:
        return true_mask(column.is_null()) if column.null_count else None
    kind = column.type
    if rules.fill is None or not (pt.is_string(kind) or pt.is_binary(kind)):
        return None
    found = true_mask(pc.equal(column, pa.scalar(rules.unavailable).cast(kind)))
    return found if found.any() else None


def lacks_values(rows: pa.Table, rules: MergeRules) -> Mask:
    """The rows that lack the value of some column."""
    found = np.zeros(rows.num_rows, dtype=bool)
    for name in rows.column_names:
        own = lacking(name, plain(rows.column(name)), rules)
        found |= False if own is None else own
    return found


def filled(
    rows: pa.Table, met: Positions, late: Mask, stored: pa.Table, rules: MergeRules
) -> pa.Table:
    """Incoming rows with what they take from the stored ones.

    In ``rows`` those that update come first, then new ones, which stay as they are; ``met``
    (positions of stored rows) and ``late`` (the stored row is the later version) are for the
    former.
    """
    updates, had = len(met), set(stored.column_names)
    if rules.fill is None or not updates:
        return rows
    for position, field in enumerate(rows.schema):
        given = rows.column(position)
        if field.name in _NEVER or field.name not in had:
            continue
        own = lacking(field.name, given.slice(0, updates), rules)
        takes = late.copy() if own is None else own | late
        if not takes.any():
            continue
        other = plain(take_values(stored.column(field.name), met))
        if late.any():
            # the stored version counts, unless it lacks the value
            missing = lacking(field.name, other, rules)
            takes &= ~(late & missing) if missing is not None else True
        rows = with_stored(rows, position, takes, other)
    return rows


def with_stored(rows: pa.Table, position: int, takes: Mask, stored: pa.ChunkedArray) -> pa.Table:
    """Rows, of which the first take values from stored rows.

    ``takes`` and ``stored`` are for the first rows only, one value for each.
    """
    field, given = rows.schema.field(position), rows.column(position)
    chosen = np.arange(rows.num_rows)
    chosen[: len(takes)][takes] = rows.num_rows + np.flatnonzero(takes)
    both = pa.chunked_array([*given.chunks, *stored.chunks], field.type)
    return rows.set_column(position, field, take_values(both, chosen))


def folded(rows: pa.Table, codes: Positions, rules: MergeRules) -> tuple[pa.Table, Positions]:
    """Merge rows with one key into one, value by value.

    Rows are taken as they arrived. One that is no earlier than all before it counts from then on,
    and takes what it lacks from what was there; an earlier one only gives what is lacking. A delete
    that counts takes away what was before it, and gives nothing. A row without a column lacks its
    value whatever the rules are.

    ``codes`` are ordinals of keys from 0. Returned are one row per key in the order of the
    ordinals, and which of ``rows`` counts for each.
    """
    ranks = order_ranks(order_values(rows, rules.batch_order, rules), len(codes))
    return folded_by(rows, codes, ranks, deleted(rows, rules), rules)


def folded_by(
    rows: pa.Table,
    codes: Positions,
    ranks: Positions,
    deletes: Mask,
    rules: MergeRules,
    *,
    deletes_end: bool = True,
) -> tuple[pa.Table, Positions]:
    """Merge rows with one key by ranks; see :func:`folded`.

    Without ``deletes_end`` what a row lacks behind a delete is still to come from the stored row.
    """
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    count = len(codes)
    ranks, deletes = ranks[order], deletes[order]
    # ordinals ascend, so that no rank of a key reaches into the next
    scaled = codes * (count + 1) + ranks
    leads = scaled == np.maximum.accumulate(scaled)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    numbers = np.arange(count)
    winner = np.maximum.reduceat(np.where(leads, numbers, -1), starts)
    erased = np.maximum.reduceat(np.where(leads & deletes, numbers, -1), starts)
    first = np.minimum.reduceat(np.where(leads & (numbers > erased[codes]), numbers, count), starts)
    gives = (numbers >= first[codes]) & ~deletes
    absent = absent_values(rows)
    columns = []
    still_absent = []
    for field in rows.schema:
        if field.name == ABSENT:
            continue
        column = plain(rows.column(field.name))
        source = winner
        if rules.late_is_written and field.name in META_COLUMNS:
            source = np.maximum(winner, np.maximum.reduceat(np.where(gives, numbers, -1), starts))
        missing = lacking(field.name, column, rules)
        if field.name in absent:
            missing = absent[field.name] | (False if missing is None else missing)
        if missing is not None:
            known = gives & ~missing[order]
            last = np.maximum.reduceat(np.where(known & leads, numbers, -1), starts)
            late = np.minimum.reduceat(np.where(known & ~leads, numbers, count), starts)
            source = np.where(last >= 0, last, np.where(late < count, late, winner))
        columns.append(take_values(column, order[source]))
        if field.name in absent:
            # behind a delete nothing stored is left to be kept
            flags = absent[field.name][order[source]] & (not deletes_end or erased < 0)
            still_absent.append((field.name, flags))
    if absent:
        at = rows.schema.get_field_index(ABSENT)
        columns.insert(at, flags_column(dict(still_absent), rows.schema.field(at)))
    return pa.table(columns, schema=rows.schema), order[winner]
