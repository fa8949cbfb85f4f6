"""The incoming rows of one file group, and what they do there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.model.schema import TableSchema
from hudi_core.write.combine import Positions
from hudi_core.write.context import WriteContext
from hudi_core.write.incoming import Mask
from hudi_core.write.merging import Located
from hudi_core.write.planning import GroupWrite
from hudi_core.write.staging import StagedPart, StagedRows
from hudi_core.write.tagging import Tagged, located_rows, new_rows


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The incoming rows of one file group.

    Attributes
    ----------
    rows
        Staged rows, these among them.
    located
        Which of them meet stored rows, and stored rows that go; ``None`` where none do.
    inserts
        Which of them are new.
    strange
        Which of them were staged for another partition; ``None`` where none were.
    """

    rows: pa.Table
    located: Located | None
    inserts: Positions
    strange: Mask | None = None


def arrivals(
    context: WriteContext,
    group: GroupWrite,
    parts: Sequence[StagedPart],
    tagged: Tagged | None,
    staged: TableSchema,
) -> Arrivals:
    """Return the incoming rows of a file group.

    Parameters
    ----------
    tagged
        What becomes of the group's partition; ``None`` when nothing was looked up and every staged
        row is new.
    staged
        The staged columns.
    """
    own = group.partition_path
    end = group.first_insert + group.inserts
    if tagged is None:
        rows = StagedRows(context, parts, own).table()
        return Arrivals(rows, None, np.arange(group.first_insert, min(end, rows.num_rows)))
    located = None
    if group.candidate is not None:
        located = located_rows(context, tagged, group.candidate)
    inserts = new_rows(context, tagged)[group.first_insert : end]
    if tagged.sources.paths == (own,):
        return Arrivals(StagedRows(context, parts, own).table(), located, inserts)
    incoming = np.empty(0, np.int64) if located is None else located.incoming
    numbers = np.unique(np.concatenate([incoming, inserts]))
    rows = tagged.sources.take(context, parts, numbers, staged.arrow)
    if located is not None:
        renumbered = np.searchsorted(numbers, located.incoming)
        located = Located(renumbered, located.stored, located.gone)
    at_home = [ordinal for ordinal, path in enumerate(tagged.sources.paths) if path == own]
    strange = ~np.isin(tagged.sources.partition_of(numbers), at_home)
    return Arrivals(rows, located, np.searchsorted(numbers, inserts), strange)


def at_home(arrived: Arrivals, stored: pa.Table, context: WriteContext) -> pa.Table:
    """Return the incoming rows as they are written: what came for another partition and stays in
    this one takes the partition columns of the row it replaces.

    A reader prunes by folder and filters by column: both have to say the same.
    """
    rows = arrived.rows
    if arrived.strange is None or arrived.located is None:
        return rows
    origin = np.arange(rows.num_rows) + stored.num_rows
    stays = arrived.strange[arrived.located.incoming]
    origin[arrived.located.incoming[stays]] = arrived.located.stored[stays]
    for name in context.table.partition_fields:
        top, *below = name.split(".")
        position = rows.schema.get_field_index(top)
        both = pa.chunked_array([*stored.column(top).chunks, *rows.column(top).chunks])
        kept = both.take(pa.array(origin)).combine_chunks()
        column = _with_kept(rows.column(top).combine_chunks(), kept, below)
        rows = rows.set_column(position, rows.schema.field(position), column)
    return rows


def _with_kept(values: pa.Array, kept: pa.Array, below: Sequence[str]) -> pa.Array:
    """Return ``values`` with what is at the end of a path of struct fields taken from ``kept``."""
    if not below:
        return kept
    fields = list(values.type)
    children = [
        _with_kept(own, other, below[1:]) if field.name == below[0] else own
        for field, own, other in zip(fields, values.flatten(), kept.flatten(), strict=True)
    ]
    is_null = pc.and_(values.is_null(), kept.is_null())
    return pa.StructArray.from_arrays(children, fields=fields, mask=is_null)
