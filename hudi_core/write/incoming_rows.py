"""The incoming rows of one file group, and what they do there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import plain
from hudi_core.index.incoming import Sources
from hudi_core.index.tagging import Tagged, located_rows, new_rows
from hudi_core.model.files import PartitionPath
from hudi_core.model.ranges import Mask
from hudi_core.rows.combine import Positions, distinct
from hudi_core.rows.context import WriteContext
from hudi_core.rows.merging import Located, Merged
from hudi_core.rows.staging import StagedPart
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.write.planning import GroupWrite


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Incoming rows of one file group, by number, read lazily.

    Rows are numbered through ``sources``. ``located`` also has stored rows that go, and is ``None``
    where no row meets a stored one; ``inserts`` is in the order in which new rows are written.
    """

    context: WriteContext
    parts: tuple[StagedPart, ...]
    staged: TableSchema
    partition_path: PartitionPath
    sources: Sources
    located: Located | None
    inserts: Positions

    def take(self, numbers: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Return some of the rows, in the order of ``numbers``.

        All columns, or some.
        """
        schema = self.staged.arrow
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        wanted = numbers
        if len(numbers) > 1 and not bool(np.all(numbers[1:] > numbers[:-1])):
            wanted = distinct(numbers)
        rows = self.sources.take(self.context, self.parts, wanted, schema)
        if wanted is numbers:
            return rows
        return rows.take(pa.array(np.searchsorted(wanted, numbers)))

    def from_other_partition(self, numbers: Positions) -> Mask:
        """Return which of some rows were staged for another partition."""
        paths = self.sources.paths
        own = [ordinal for ordinal, path in enumerate(paths) if path == self.partition_path]
        return ~np.isin(self.sources.partition_of(numbers), own)


def arrivals(
    context: WriteContext,
    group: GroupWrite,
    parts: Sequence[StagedPart],
    tagged: Tagged | None,
    staged: TableSchema,
) -> IncomingRows:
    """Return the incoming rows of a file group.

    ``tagged`` is ``None`` when nothing was looked up and every staged row is new.
    """
    own = group.partition_path
    end = group.first_insert + group.inserts
    located = None
    if tagged is None:
        sources = Sources.of(parts, [own])
        inserts = np.arange(group.first_insert, min(end, sum(sources.rows)))
    else:
        sources = tagged.sources
        inserts = new_rows(context, tagged)[group.first_insert : end]
        if group.candidate is not None:
            located = located_rows(context, tagged, group.candidate)
    return IncomingRows(context, tuple(parts), staged, own, sources, located, inserts)


def with_stored_keys(keys: pa.ChunkedArray, merged: Merged, stored: pa.Table) -> pa.ChunkedArray:
    """Return the keys of rows to write; updates keep the stored ones.

    They need not come with them: some are generated.
    """
    kept = plain(stored.column(RECORD_KEY).take(pa.array(merged.replaced))).cast(pa.string())
    return pa.chunked_array([*kept.chunks, *keys.slice(len(merged.updates)).chunks], pa.string())


def keep_stored_partition_columns(
    rows: pa.Table,
    from_other_partition: Mask,
    met: Positions,
    stored: pa.Table,
    partition_fields: Sequence[str],
) -> pa.Table:
    """Return incoming rows with stored partition columns where these stay.

    A row that came for another partition and stays in this one takes the partition columns of the
    row it replaces.

    A reader prunes by folder and filters by column: both have to say the same.

    In ``rows`` those that update come first; ``from_other_partition`` and ``met`` (positions of the
    stored rows) are for these alone.
    """
    if not from_other_partition.any():
        return rows
    stays = np.flatnonzero(from_other_partition)
    origin = np.arange(rows.num_rows) + len(stays)
    origin[stays] = np.arange(len(stays))
    for name in partition_fields:
        top, *below = name.split(".")
        position = rows.schema.get_field_index(top)
        replaced = plain(stored.column(top).take(pa.array(met[stays])))
        both = pa.chunked_array([*replaced.chunks, *rows.column(top).chunks])
        kept = both.take(pa.array(origin)).combine_chunks()
        column = _with_kept(rows.column(top).combine_chunks(), kept, below)
        rows = rows.set_column(position, rows.schema.field(position), column)
    return rows


def _with_kept(values: pa.Array, kept: pa.Array, below: Sequence[str]) -> pa.Array:
    """Return ``values`` with one nested field taken from ``kept``."""
    if not below:
        return kept
    fields = list(values.type)
    children = [
        _with_kept(own, other, below[1:]) if field.name == below[0] else own
        for field, own, other in zip(fields, values.flatten(), kept.flatten(), strict=True)
    ]
    is_null = pc.and_(values.is_null(), kept.is_null())
    return pa.StructArray.from_arrays(children, fields=fields, mask=is_null)
