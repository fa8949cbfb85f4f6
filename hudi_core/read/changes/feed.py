"""The change feed: every change, with the row before and after.

The columns are those of Hudi's change data capture queries. Each write is compared with what was
there before, file group by file group: a row that a write moved to another partition is deleted in
one and inserted in the other. Where clean has removed what was there before, logs of changes give
the same; see :mod:`hudi_core.read.changes.incremental`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import CorruptMetadataError, DataFileError
from hudi_core.read.changes.file_changes import ChangeSource, GroupChange
from hudi_core.read.changes.logs import (
    AFTER,
    BEFORE,
    DELETED,
    INSERTED,
    UPDATED,
    ChangeLogs,
    Images,
)
from hudi_core.read.changes.row_changes import RowChanges, SliceComparison
from hudi_core.read.filters import Filter
from hudi_core.read.json_text import json_rows
from hudi_core.schema.table_schema import RECORD_KEY

OPERATION: Final = "op"
"""``i``, ``u`` or ``d``: the row was inserted, updated or deleted."""
TIMESTAMP: Final = "ts_ms"
"""Requested time of the write."""
FEED_SCHEMA: Final = pa.schema(
    [
        pa.field(OPERATION, pa.string(), nullable=False),
        pa.field(TIMESTAMP, pa.string(), nullable=False),
        pa.field(BEFORE, pa.string()),
        pa.field(AFTER, pa.string()),
    ]
)
"""The columns of a feed whose images are JSON strings."""


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """Reads the changes of file groups, here or in tasks.

    A row change is returned where ``condition`` holds for its image before or after. With
    ``as_text`` images are JSON strings, else structs.
    """

    comparison: SliceComparison
    logs: ChangeLogs
    columns: tuple[str, ...]
    condition: Filter | None
    as_text: bool

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        if self.as_text:
            return FEED_SCHEMA
        image = pa.struct([self.comparison.scan.schema.field(name) for name in self.columns])
        fields = [*FEED_SCHEMA][:2]
        return pa.schema([*fields, pa.field(BEFORE, image), pa.field(AFTER, image)])

    def read(self, changes: Sequence[GroupChange]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of changes, in their order."""
        for source, some in groupby(changes, key=attrgetter("source")):
            by_files = source is ChangeSource.FILES
            for change, images in self._compared(some) if by_files else self._logged(some):
                [time] = change.times
                for operation, before, after in images:
                    yield from self._batches(operation, time, before, after)

    def _compared(self, changes: Iterable[GroupChange]) -> Iterator[tuple[GroupChange, Images]]:
        for change, rows in self.comparison.each(changes):
            yield change, _images(rows)

    def _logged(self, changes: Iterable[GroupChange]) -> Iterator[tuple[GroupChange, Images]]:
        for change in changes:
            if change.source is ChangeSource.LOGS_OR_FILES:
                images = self._preferred(change)
                if images is None:
                    yield from self._compared([change])
                else:
                    yield change, images
                continue
            [time] = change.times
            logged = self.logs.read(change.logs, time)
            if change.source is ChangeSource.LOGS:
                yield change, logged.images()
            else:
                yield change, _images(self.comparison.with_gone(change, logged.gone()))

    def _preferred(self, change: GroupChange) -> Images | None:
        """The rows of preferred logs; ``None`` where files are to be compared."""
        [time] = change.times
        try:
            logged = self.logs.read(change.logs, time)
            if not logged.holds(BEFORE, AFTER) or not logged.is_current():
                return None
            return iter(list(logged.images()))
        except (CorruptMetadataError, DataFileError):
            # copies of a folder may lack logs, for the names of these begin with a dot
            return None

    def _batches(
        self, operation: str, time: str, before: pa.Table | None, after: pa.Table | None
    ) -> Iterator[pa.RecordBatch]:
        before, after = (
            None if rows is None else self.comparison.scan.as_shown(rows)
            for rows in (before, after)
        )
        if self.condition is not None:
            images = [each for each in (before, after) if each is not None]
            wanted = np.unique(np.concatenate([_accepted(self.condition, one) for one in images]))
            before, after = (
                None if rows is None else rows.take(wanted) for rows in (before, after)
            )
        count = next(rows.num_rows for rows in (before, after) if rows is not None)
        if not count:
            return
        columns = [pa.repeat(operation, count), pa.repeat(time, count)]
        columns += self._shown(before, after, count)
        yield pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def _shown(
        self, before: pa.Table | None, after: pa.Table | None, count: int
    ) -> tuple[pa.Array, pa.Array]:
        """Both images."""
        present = [rows.select(list(self.columns)) for rows in (before, after) if rows is not None]
        kind = self.output_schema.field(AFTER).type
        # strings are made column by column: of all rows at once
        rows = pa.concat_tables(present).combine_chunks()
        if not self.columns:
            images = _without_columns(kind, count * len(present))
        elif self.as_text:
            images = json_rows(rows)
        else:
            arrays = [column.combine_chunks() for column in rows.columns]
            images = pa.StructArray.from_arrays(arrays, fields=list(kind))
        none = pa.nulls(count, kind)
        first = none if before is None else images.slice(0, count)
        return first, none if after is None else images.slice(len(images) - count)


def _images(rows: RowChanges) -> Images:
    """Yield the operation, the rows before and the rows after; deletes first."""
    yield DELETED, rows.gone.filter(rows.is_deleted), None
    updated = rows.written.filter(pc.invert(rows.is_new))
    if updated.num_rows:
        gone = rows.gone.combine_chunks()
        places = _places(updated[RECORD_KEY].combine_chunks(), gone[RECORD_KEY].combine_chunks())
        yield UPDATED, gone.take(places), updated
    yield INSERTED, None, rows.written.filter(rows.is_new)


def _places(updated: pa.Array, gone: pa.Array) -> pa.Array:
    """Where the row before of each updated row is, by their keys.

    Of rows with the same key, which inserts may add, the first becomes the first, and so on.
    """
    places = pc.index_in(updated, value_set=gone)
    first = places.to_numpy()
    ordered = np.argsort(first, kind="stable")
    key = first[ordered]
    begin = np.searchsorted(key, key)
    if np.array_equal(begin, np.arange(len(key))):
        return places
    firsts = pc.index_in(gone, value_set=gone).to_numpy()
    rows = np.argsort(firsts, kind="stable")
    low, high = (np.searchsorted(firsts, key, side, sorter=rows) for side in ("left", "right"))
    found = np.empty(len(key), np.int64)
    found[ordered] = rows[np.minimum(low + np.arange(len(key)) - begin, high - 1)]
    return pa.array(found)


def _without_columns(kind: pa.DataType, count: int) -> pa.Array:
    """Images of no columns, as many as there are rows."""
    if pt.is_struct(kind):
        return pa.Array.from_buffers(kind, count, [None], children=[])
    return pa.repeat("{}", count)


def _accepted(condition: Filter, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Places of the rows that a filter accepts."""
    place = "\0place"
    numbered = rows.append_column(place, pa.array(np.arange(rows.num_rows)))
    found: np.ndarray[tuple[int], np.dtype[np.int64]]
    found = numbered.filter(condition.expression)[place].to_numpy()
    return found
