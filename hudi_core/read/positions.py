"""Rows with the places where they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.file_slice.spilling import UNLIMITED
from hudi_core.model.ranges import Mask
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.scan import FileScan
from hudi_core.rows.changes import FILE, PLACE, ROW, SOURCE, holds

Accepts = Callable[[pa.Table], Mask]
"""Which rows are wanted; null counts as not wanted."""


@dataclass(frozen=True, slots=True)
class NumberedFile:
    """A file and the number by which its rows name it."""

    number: int
    file: PlannedSlice

    @property
    def size(self) -> int:
        return self.file.size


@dataclass(frozen=True, slots=True)
class HoldsFor:
    """The rows of which an Arrow expression is true."""

    condition: pc.Expression

    def __call__(self, rows: pa.Table) -> Mask:
        return holds(rows, self.condition)


@dataclass(frozen=True, slots=True)
class PositionScan:
    """Reads rows of files with their places; a :class:`~hudi_core.read.plan.Scan`.

    A file is read in full only once a row of it is wanted.

    ``scan`` reads the columns to return of all rows, ``deciding`` are the columns that ``accepts``
    needs; ``prefix`` is put before the column names in the batches.
    """

    scan: FileScan
    deciding: tuple[str, ...] = ()
    accepts: Accepts | None = None
    prefix: str = ""

    @property
    def output_schema(self) -> pa.Schema:
        own = [one.with_name(f"{self.prefix}{one.name}") for one in self.scan.output_schema]
        # without metadata, as no engine keeps it
        plain = [pa.field(one.name, one.type) for one in own]
        return pa.schema([*plain, *PLACE, pa.field(SOURCE, pa.bool_())])

    def read(self, parts: Sequence[NumberedFile]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files."""
        for part in parts:
            yield from self.table(part).to_batches()

    def table(self, part: NumberedFile) -> pa.Table:
        """Return the wanted rows of a file."""
        rows = self.places(part)
        wanted = None if rows is None else rows[1]
        if wanted is not None and not len(wanted):
            return self.output_schema.empty_table()
        return self.rows_at(part, wanted)

    def places(self, part: NumberedFile) -> tuple[pa.Table, np.ndarray] | None:
        """Deciding columns of a file, and positions of its wanted rows.

        ``None`` where all rows are wanted.
        """
        if self.accepts is None:
            return None
        columns = self.deciding or self.scan.schema.names[:1]
        rows = replace(self._held, columns=columns).table([part.file])
        return rows, np.flatnonzero(self.accepts(rows))

    def rows_at(self, part: NumberedFile, positions: np.ndarray | None) -> pa.Table:
        """Return rows of a file by their positions, ascending; ``None`` for all."""
        if self.scan.columns or positions is None:
            scan = self._held if self.scan.columns else self._counting
            rows = scan.table([part.file])
            if positions is None:
                positions = np.arange(rows.num_rows)
            else:
                rows = rows.take(pa.array(positions))
            columns = rows.columns if self.scan.columns else []
        else:
            columns = []
        count = len(positions)
        place = {
            FILE: pa.array(np.full(count, part.number, np.int32)),
            ROW: pa.array(positions, pa.int64()),
            SOURCE: pa.nulls(count, pa.bool_()),
        }
        return pa.table([*columns, *place.values()], schema=self.output_schema)

    @property
    def _counting(self) -> FileScan:
        # where no column is asked for, one still counts the rows
        return replace(self._held, columns=tuple(self.scan.schema.names[:1]))

    @property
    def _held(self) -> FileScan:
        """The scan with log rows in memory, in one order."""
        merging = self.scan.merging
        if merging is None:
            return self.scan
        return replace(self.scan, merging=replace(merging, memory=UNLIMITED))
