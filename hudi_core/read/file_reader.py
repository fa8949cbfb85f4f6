"""Base files as Arrow batches in the table's columns.

Arrow brings a file to the table's columns by itself where names find the right ones: it casts, and
fills what is missing. Files from before a column was renamed, or from before its name was used
again, are aligned by field id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.types as pt

from hudi_core.engine.base import thread_pool
from hudi_core.read.filters import Filter
from hudi_core.read.predicate import And, Anything, Comparison, IsNull, Not, OneOf, Or, Predicate
from hudi_core.rows.combine import Positions
from hudi_core.schema.alignment import (
    align,
    counterpart,
    same_by_name,
    shared_schema,
    stored_fields,
)
from hudi_core.schema.arrow_types import children
from hudi_core.schema.widening import arrow_widens

PARQUET: Final = ds.ParquetFileFormat(
    # some writers store timestamps as INT96, which Arrow would read as nanoseconds
    read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
)
_FOOTERS_AT_A_TIME: Final = 16
_FEW_FOOTERS: Final = 64
"""Of so many local files, footers are read sooner than in threads, which wait for each other: those
of 40 files with 22 columns in 12 ms, not 29, and with 11 ms of work, not 26."""
_FILES_AT_A_TIME: Final = 256
"""Files whose footers are read before the first of them is scanned."""


class _Way(Enum):
    """How the rows of a file are had."""

    PUSHED_DOWN = auto()
    """Arrow finds the columns and applies the filter."""
    FILTERED = auto()
    """Arrow finds the columns; the filter means something else on the file's own types, or on its
    statistics."""
    ALIGNED = auto()
    """The columns have other names in the file, or types that Arrow does not turn into the table's
    as all readers do."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files of one file system."""

    schema: pa.Schema
    filesystem: pafs.FileSystem
    columns: list[str]
    condition: Filter | None
    batch_rows: int | None

    def read(self, fragments: Sequence[ds.Fragment]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files, in their order."""
        for way, some in self._by_way(fragments):
            if way is _Way.PUSHED_DOWN:
                yield from self._pushed_down(some).to_reader()
            else:
                yield from self._brought_up(way, some)

    def without(self, fragment: ds.Fragment, gone: Positions) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file but for some positions.

        It is read at once. Batches would be slices of row groups, which all stay in memory until
        the last is filtered: it takes 1.4 times the work.
        """
        # a table without columns does not know how many rows it has
        needed = self._needed() or self.schema.names[:1]
        rows = replace(self, columns=needed, condition=None).table([fragment])
        stays = np.ones(rows.num_rows, bool)
        stays[gone] = False
        yield from self._filtered(rows.filter(pa.array(stays)))

    def matching(self, fragment: ds.Fragment) -> frozenset[int]:
        """Numbers of the row groups whose statistics let rows meet the condition."""
        if self.condition is None or not self._are_pushed_down([fragment]):
            return frozenset(range(fragment.metadata.num_row_groups))
        fragment = fragment.subset(self.condition.expression, self.schema)
        return frozenset(group.id for group in fragment.row_groups)

    def table(
        self, fragments: Sequence[ds.Fragment], typical: Sequence[ds.Fragment] = ()
    ) -> pa.Table:
        """The rows of the files, in their order.

        ``typical`` are some of the fragments, such as the oldest and the newest. Where Arrow reads
        these by itself, all are scanned while their footers are read, and checked afterwards: it
        saves the time of reading all footers first. Where that was wrong, the rows are read again.
        """
        if 0 < len(typical) < len(fragments) and self._are_pushed_down(typical):
            rows = self._scanned_unchecked(fragments)
            if rows is not None and self._are_pushed_down(fragments, are_scanned=True):
                return rows
            del rows
        return pa.concat_tables(
            self._pushed_down(some).to_table()
            if way is _Way.PUSHED_DOWN
            else pa.Table.from_batches(self._brought_up(way, some), self._output)
            for way, some in self._by_way(fragments)
        )

    def _are_pushed_down(
        self, fragments: Sequence[ds.Fragment], *, are_scanned: bool = False
    ) -> bool:
        return all(way is _Way.PUSHED_DOWN for way, _ in self._by_way(fragments, are_scanned))

    def _scanned_unchecked(self, fragments: Sequence[ds.Fragment]) -> pa.Table | None:
        """All rows by Arrow itself; ``None`` where that failed."""
        try:
            return self._pushed_down(fragments).to_table()
        except (OSError, pa.ArrowException):
            # reading file by file finds the one that is damaged, or of another schema
            return None

    @property
    def _output(self) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in self.columns])

    def _pushed_down(self, fragments: Sequence[ds.Fragment]) -> ds.Scanner:
        return self._scanner(fragments, self.schema, self.columns, self.condition)

    def _brought_up(self, way: _Way, fragments: Sequence[ds.Fragment]) -> Iterator[pa.RecordBatch]:
        """Yield rows that Arrow alone does not read as the table's."""
        if way is _Way.FILTERED:
            scanner = self._scanner(fragments, self.schema, self._needed(), None)
            for batch in scanner.to_reader():
                yield from self._filtered(pa.Table.from_batches([batch]))
        else:
            for fragment in fragments:
                yield from self._aligned(fragment)

    def _aligned(self, fragment: ds.Fragment) -> Iterator[pa.RecordBatch]:
        stored = fragment.physical_schema
        fields = stored_fields(stored)
        wanted = pa.schema([self.schema.field(name) for name in self._needed()])
        found = [counterpart(fields, field) for field in wanted]
        names = [field.name for field in found if field is not None]
        for batch in self._scanner([fragment], stored, names, None).to_reader():
            yield from self._filtered(align(pa.Table.from_batches([batch]), fields, wanted))

    def _filtered(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        if self.condition is not None:
            rows = rows.filter(self.condition.expression)
        yield from rows.select(self.columns).to_batches()

    def _needed(self) -> list[str]:
        if self.condition is None:
            return self.columns
        return list(dict.fromkeys([*self.columns, *sorted(self.condition.columns)]))

    def _scanner(
        self,
        fragments: Sequence[ds.Fragment],
        schema: pa.Schema,
        columns: list[str],
        condition: Filter | None,
    ) -> ds.Scanner:
        limits = {} if self.batch_rows is None else {"batch_size": self.batch_rows}
        dataset = ds.FileSystemDataset(list(fragments), schema, PARQUET, self.filesystem)
        rows = None if condition is None else condition.expression
        return dataset.scanner(columns=columns, filter=rows, **limits)

    def _by_way(
        self, fragments: Sequence[ds.Fragment], are_scanned: bool = False
    ) -> Iterator[tuple[_Way, Sequence[ds.Fragment]]]:
        """Yield runs of files that are read in one way.

        ``are_scanned`` means that the fragments have their footers already.
        """
        in_line = _FEW_FOOTERS if isinstance(self.filesystem, pafs.LocalFileSystem) else 1
        if are_scanned:
            in_line = len(fragments)
        exact = self.condition is None or not accepts_nan(self.condition, self.schema)
        known: tuple[pa.Schema, _Way] | None = None
        for start in range(0, len(fragments), _FILES_AT_A_TIME):
            some = fragments[start : start + _FILES_AT_A_TIME]
            ways = []
            for each in _schemas(some, in_line):
                stored = shared_schema(each)
                if known is None or not stored.equals(known[0], check_metadata=True):
                    known = stored, self._way(stored, exact)
                ways.append(known[1])
            for way, group in groupby(zip(ways, some, strict=True), itemgetter(0)):
                yield way, [fragment for _, fragment in group]

    def _arrow_casts(self, stored: Sequence[pa.Field]) -> bool:
        wanted = {field.name: field.type for field in self.schema}
        return all(
            field.type == kind or arrow_widens(field.type, kind)
            for field in stored
            if (kind := wanted.get(field.name)) is not None
        )

    def _way(self, stored: pa.Schema, exact: bool) -> _Way:
        fields = stored_fields(stored)
        if not (same_by_name(fields, self.schema) and self._arrow_casts(fields)):
            return _Way.ALIGNED
        if self.condition is None:
            return _Way.PUSHED_DOWN
        if exact and can_push_down(self.condition, stored, self.schema):
            return _Way.PUSHED_DOWN
        return _Way.FILTERED


def _schemas(fragments: Sequence[ds.Fragment], in_line: int) -> list[pa.Schema]:
    """The schemas of files.

    A fragment keeps the footer that is read here, for the scan.

    Of more than ``in_line`` files the footers are read in threads.
    """
    if len(fragments) <= in_line:
        return [each.physical_schema for each in fragments]
    with thread_pool(min(len(fragments), _FOOTERS_AT_A_TIME)) as pool:
        return list(pool.map(attrgetter("physical_schema"), fragments))


# --- filters on files of older schemas ------------------------------------------------------------

# Arrow brings every column it returns to the type of the table. A filter that it pushes down is
# evaluated earlier, against the statistics and values as the file has them; that is the same for
# wider numbers, and fails for other changes of type, such as from number to text.


def can_push_down(condition: Filter, stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a filter means the same on a file's stored columns.

    ``condition`` fits ``wanted``; columns that ``stored`` lacks are null.
    """
    changed = [
        field.name
        for field in wanted
        if (index := stored.get_field_index(field.name)) >= 0
        and not _compares_alike(stored.field(index).type, field.type)
    ]
    return condition.columns.isdisjoint(changed)


def accepts_nan(condition: Filter, schema: pa.Schema) -> bool:
    """Whether a filter may accept a row because of a NaN.

    Arrow leaves out row groups by their statistics, which do not record NaN: it would leave out
    the rows that such a filter accepts.
    """
    floating = [field.name for field in schema if _has_floats(field.type)]
    if condition.columns.isdisjoint(floating):
        return False
    return _may_accept(condition.predicate, is_negated=False)


def _may_accept(predicate: Predicate, is_negated: bool) -> bool:
    match predicate:
        case Not():
            return _may_accept(predicate.inner, not is_negated)
        case And() | Or():
            return any(_may_accept(part, is_negated) for part in predicate.parts)
        case Comparison():
            # NaN is different from every number, and nothing else
            return pt.is_floating(predicate.value.type) and (predicate.op == "!=") != is_negated
        case OneOf():
            floats = pt.is_floating(predicate.values.type)
            return floats and (is_negated or bool(pc.any(pc.is_nan(predicate.values)).as_py()))
        case IsNull():
            return False
        case Anything():
            return True


def _has_floats(kind: pa.DataType) -> bool:
    return pt.is_floating(kind) or any(_has_floats(child.type) for _, child in children(kind))


def _compares_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if stored == wanted:
        return True
    if pt.is_struct(stored) and pt.is_struct(wanted):
        return all(
            _compares_alike(stored.field(index).type, field.type)
            for field in wanted
            if (index := stored.get_field_index(field.name)) >= 0
        )
    # of lists and maps a filter can only ask whether they are null
    if (pt.is_list(stored) and pt.is_list(wanted)) or (pt.is_map(stored) and pt.is_map(wanted)):
        return True
    if pt.is_integer(stored):
        return bool(pt.is_integer(wanted) or pt.is_float64(wanted))
    if pt.is_decimal(stored):
        return bool(pt.is_decimal(wanted))
    return bool(pt.is_floating(stored) and pt.is_floating(wanted))
