"""Rows of Python objects as Arrow: dictionaries, and frames of pandas.

Columns are those of all rows, and types those of all values. Arrow's own inference takes the
columns of a list of dictionaries from the first one, and goes by the first value where kinds are
mixed: of a date and a time it makes two dates.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import accumulate, chain, islice
from operator import add
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.schema.absence import Lacking, with_absence
from hudi_core.schema.arrow_types import (
    LIST_ELEMENT,
    MAP_KEY,
    MAP_VALUE,
    children,
    has_map,
    is_bytes,
    is_list,
)
from hudi_core.schema.casting import cast_array
from hudi_core.schema.joining import joined

Columns = Callable[[], pa.Schema]
"""Asks for the columns of the table that rows are meant for."""
_CHUNK_ROWS: Final = 65_536
"""So many rows of an iterator are Python objects at a time."""
_SHOWN: Final = 80
_ROW_NUMBER: Final = re.compile(r"__index_level_[0-9]+__")
_RowOf = Callable[[int], int]
"""The row of a value, by the place of this."""
_MISTAKEN: Final = (
    (pt.is_floating, (bool, np.bool_)),
    (is_bytes, str),
    (pt.is_date, datetime),
)
"""Types of Arrow, and what else it takes for their values."""
_REFUSED: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""What Arrow raises for a value that a column cannot hold."""


def table_of_rows(rows: Iterable[Any], columns: Columns | None = None) -> pa.Table | None:
    """Return dictionaries as a table; ``None`` where they are something else.

    An iterator is read once and to its end, as only then all columns are known; what was read is
    kept as Arrow.

    ``columns`` is asked only where values are dictionaries: it says which of these are maps.
    """
    tables: list[pa.Table] = []
    starts = [0]
    for chunk in [rows] if isinstance(rows, list | tuple) else _chunks(rows):
        mappings = _as_mappings(chunk)
        if mappings is None:
            return None
        if mappings:
            tables.append(_table(mappings, starts[-1], columns))
            starts.append(starts[-1] + len(mappings))
    if not tables:
        raise SchemaError(
            "There are no rows, and so no columns",
            "Leave the write out; or give the rows as a frame, which has its columns without any.",
        )
    sources = [f"the rows from {start + 1:,} on" for start in starts[:-1]]
    return joined(tables, sources, lambda row: f"Row {row + 1:,}")


def table_of_pandas(frame: Any, columns: Columns | None = None) -> pa.Table:
    """Return a frame of pandas as a table.

    A level of the index is a column where it has a name. One without counts rows, and what a
    filter leaves of it is no column.
    """
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    every = map(str, [*named, *frame.columns])
    twice = sorted(name for name, count in Counter(every).items() if count > 1)
    if twice:
        raise SchemaError(
            f"The rows have several columns named {', '.join(map(repr, twice))}",
            "Rename or drop all but one.",
            columns=twice,
        )
    if named:
        unnamed = [at for at, name in enumerate(frame.index.names) if name not in named]
        frame = (frame.droplevel(unnamed) if unnamed else frame).reset_index()
    objects = [at for at, kind in enumerate(frame.dtypes) if kind == np.dtype(object)]
    values = _Values(len(frame), lambda row: f"Row {row + 1:,}", columns, from_pandas=True)
    # the values that Arrow refuses are named, where it names but their column
    made = {
        at: values.column(str(frame.columns[at]), frame.iloc[:, at].to_numpy()) for at in objects
    }
    names = [str(name) for name in frame.columns]
    others = [at for at in range(len(names)) if at not in made]
    try:
        read = pa.Table.from_pandas(frame.iloc[:, others], preserve_index=False)
    except _REFUSED as error:
        raise SchemaError(
            f"The frame cannot be read: {'; '.join(map(str, error.args))}",
            "Cast the column to a type that Arrow has.",
        ) from error
    columns_read = dict(zip(others, read.columns, strict=True)) | made
    table = pa.table([columns_read[at] for at in range(len(names))], names)
    return with_absence(table, values.lacking)


def absent_from(
    rows: Iterable[Mapping[str, Any]], table: pa.Table, shown: Callable[[int], str]
) -> dict[str, Lacking]:
    """Return which rows lack columns that others have, at any depth."""
    found = _Values(table.num_rows, shown, None)
    start = 0
    for chunk in _chunks(rows):
        for one in table.schema:
            lacking = [start + at for at, row in enumerate(chunk) if one.name not in row]
            if lacking:
                found.mark(one.name, lacking)
            if children(one.type):
                values = [row.get(one.name) for row in chunk]
                found.mark_below(values, one.type, one.name, partial(add, start))
        start += len(chunk)
    return found.lacking


def row_of_values(row: Mapping[str, Any], columns: pa.Schema) -> pa.RecordBatch:
    """Return one row in the types of columns, its values unchanged."""
    table = table_of_rows([row], lambda: columns)
    if table is None:
        raise AssertionError("a dictionary is a row")
    arrays = [
        cast_array(table.column(one.name).combine_chunks(), one.with_nullable(True), one.name)
        for one in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def without_row_numbers(rows: Any) -> Any:
    """Return Arrow rows without an index of pandas that only counts them.

    So it is where Arrow has made it a column, for it had no name.
    """
    stated = (rows.schema.metadata or {}).get(b"pandas")
    if stated is None:
        return rows
    try:
        columns = json.loads(stated)["index_columns"]
        named = {one for one in columns if isinstance(one, str) and _ROW_NUMBER.fullmatch(one)}
    except (ValueError, TypeError, KeyError, RecursionError):
        return rows  # anybody may have written it
    names = [name for name in rows.schema.names if name in named]
    if not names:
        return rows
    if not isinstance(rows, pa.RecordBatchReader):
        return rows.drop_columns(names)
    kept = pa.schema([one for one in rows.schema if one.name not in names])
    return pa.RecordBatchReader.from_batches(kept, (batch.select(kept.names) for batch in rows))


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, _CHUNK_ROWS)):
        yield chunk


def _as_mappings(rows: Sequence[Any]) -> Sequence[Mapping[Any, Any]] | None:
    """Rows as dictionaries; ``None`` where one is none."""
    if set(map(type, rows)) <= {dict}:
        return rows
    found = [row.asDict(recursive=True) if hasattr(row, "asDict") else row for row in rows]
    return found if all(isinstance(row, Mapping) for row in found) else None


def _table(rows: Sequence[Mapping[Any, Any]], start: int, columns: Columns | None) -> pa.Table:
    def shown(row: int) -> str:
        text = repr(dict(rows[row]))
        return f"Row {start + row + 1:,} ({text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'})"

    values = _Values(len(rows), shown, columns)
    names = list(rows[0])
    is_even = set(map(len, rows)) == {len(names)}
    arrays = []
    if is_even:
        try:
            arrays = [values.column(name, [row[name] for row in rows]) for name in names]
        except KeyError:
            is_even = False
    if not is_even:
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        for name in names:
            lacking = [at for at, row in enumerate(rows) if name not in row]
            if lacking:
                values.mark(str(name), lacking)
        arrays = [values.column(name, [row.get(name) for row in rows]) for name in names]
    return with_absence(pa.table(arrays, names), values.lacking)


@dataclass(slots=True)
class _Values:
    """Values of columns, as Arrow arrays.

    ``shown`` is what a message calls a row. ``from_pandas``: NaN among objects is null. ``lacking``
    are the columns that rows were found to lack.
    """

    count: int
    shown: Callable[[int], str]
    columns: Columns | None
    from_pandas: bool = False
    lacking: dict[str, Lacking] = field(default_factory=dict)

    def column(self, name: Any, values: Sequence[Any]) -> pa.Array:
        """The values of a column."""
        if not isinstance(name, str):
            raise SchemaError(
                f"{name!r} is no name of a column", "Name columns by strings.", column=name
            )
        first = next((value for value in values if not _is_null(value)), None)
        known = None
        if self.columns is not None and isinstance(first, Mapping | list | tuple | np.ndarray):
            schema = self.columns()
            at = schema.get_field_index(name)
            known = schema.field(at).type if at >= 0 else None
        return self._array(values, known, name, int)

    def mark(self, path: str, rows: Sequence[int]) -> None:
        """Note rows that lack a column."""
        if path not in self.lacking:
            self.lacking[path] = Lacking(np.zeros(self.count, dtype=bool), self.shown(min(rows)))
        self.lacking[path].rows[[*rows]] = True

    def mark_below(
        self, values: Sequence[Any], kind: pa.DataType, path: str, row_of: _RowOf
    ) -> None:
        """Note rows that lack columns below one."""
        self._require_one_kind(values, kind, path, row_of)

    def _array(
        self, values: Sequence[Any], known: pa.DataType | None, path: str, row_of: _RowOf
    ) -> pa.Array:
        if known is not None and has_map(known):
            array = self._with_maps(values, known, path, row_of)
            if array is not None:
                return array
        try:
            array = pa.array(values, from_pandas=self.from_pandas)
        except _REFUSED as error:
            self._refuse(values, path, row_of, error)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        self._require_one_kind(values, array.type, path, row_of)
        if pt.is_timestamp(array.type) and _has_nanoseconds(values):
            kind = pa.timestamp("ns", array.type.tz)
            try:
                array = pa.array(values, kind, from_pandas=self.from_pandas)
            except _REFUSED as error:
                self._refuse(values, path, row_of, error, kind)
        return array

    def _with_maps(
        self, values: Sequence[Any], known: pa.DataType, path: str, row_of: _RowOf
    ) -> pa.Array | None:
        """Values of a type with maps; ``None`` where they are none."""
        is_null = [_is_null(value) for value in values]
        mask = pa.array(is_null)
        if pt.is_struct(known):
            held, within = _of_kind(values, row_of, Mapping)
            if len(held) < len(values) - sum(is_null):
                return None
            names = dict.fromkeys(chain.from_iterable(held))
            self._mark_missing(held, list(names), path, within)
            kinds = {one.name: one.type for one in known}
            parts = [
                self._array(
                    [None if _is_null(value) else value.get(name) for value in values],
                    kinds.get(name),
                    f"{path}.{name}",
                    row_of,
                )
                for name in names
            ]
            return pa.StructArray.from_arrays(parts, list(names), mask=mask) if names else None
        is_pairs = pt.is_map(known)
        lists = [
            list(value.items())
            if is_pairs and isinstance(value, Mapping)
            else (() if null else value)
            for value, null in zip(values, is_null, strict=True)
        ]
        if not all(isinstance(value, list | tuple | np.ndarray) for value in lists):
            return None
        offsets = pa.array(np.cumsum([0, *map(len, lists)], dtype=np.int32))
        inner = list(chain.from_iterable(lists))
        within = _row_of_element(lists, row_of)
        if not is_pairs:
            below = self._array(inner, known.value_type, f"{path}.{LIST_ELEMENT}", within)
            return pa.ListArray.from_arrays(offsets, below, mask=mask)
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in inner):
            return None
        keys = self._array([pair[0] for pair in inner], None, f"{path}.{MAP_KEY}", within)
        items = [pair[1] for pair in inner]
        below = self._array(items, known.item_type, f"{path}.{MAP_VALUE}", within)
        return pa.MapArray.from_arrays(offsets, keys, below, mask=mask)

    def _require_one_kind(
        self, values: Sequence[Any], kind: pa.DataType, path: str, row_of: _RowOf
    ) -> None:
        """Refuse values that Arrow took for something else than they are.

        Notes the rows whose dictionaries lack names that others have.
        """
        if pt.is_struct(kind):
            held, within = _of_kind(values, row_of, Mapping)
            self._mark_missing(held, [one.name for one in kind], path, within)
            for one in kind:
                if _is_mixable(one.type):
                    below = [value.get(one.name) for value in held]
                    self._require_one_kind(below, one.type, f"{path}.{one.name}", within)
        elif is_list(kind):
            if _is_mixable(kind.value_type):
                lists, within = _of_kind(values, row_of, Iterable)
                below = list(chain.from_iterable(lists))
                within = _row_of_element(lists, within)
                self._require_one_kind(below, kind.value_type, f"{path}.{LIST_ELEMENT}", within)
        elif (odd := _odd_one(values, kind)) is not None:
            self._raise_odd(values, odd, path, row_of, str(kind))

    def _mark_missing(
        self, held: Sequence[Mapping[Any, Any]], names: list[Any], path: str, row_of: _RowOf
    ) -> None:
        if set(map(len, held)) <= {len(names)}:
            return  # names are all that there are
        for name in names:
            lacking = [row_of(at) for at, value in enumerate(held) if name not in value]
            if lacking:
                self.mark(f"{path}.{name}", lacking)

    def _refuse(
        self,
        values: Sequence[Any],
        path: str,
        row_of: _RowOf,
        error: Exception,
        kind: pa.DataType | None = None,
    ) -> NoReturn:
        """Name the first value that Arrow refuses."""
        good, bad = 0, len(values)  # so many go together, so many do not
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                pa.array(values[:middle], kind, from_pandas=self.from_pandas)
                good = middle
            except _REFUSED as earlier:
                bad, error = middle, earlier
        before = pa.array(values[:good], kind, from_pandas=self.from_pandas).type
        others = None if pt.is_null(before) else str(before)
        try:
            self._raise_odd(values, good, path, row_of, others)
        except SchemaError as refusal:
            raise refusal from error

    def _raise_odd(
        self, values: Sequence[Any], at: int, path: str, row_of: _RowOf, others: str | None
    ) -> NoReturn:
        value = values[at]
        shown = repr(value) if len(repr(value)) <= _SHOWN else f"{repr(value)[:_SHOWN]}..."
        row = self.shown(row_of(at))
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            reason = "which has more digits than whole numbers of 64 bits"
            hint = "Give the column's values as decimal.Decimal, or as strings."
        else:
            reason = f"a value of the type {type(value).__name__}"
            reason += f", where others are {others}" if others else ", which Arrow does not know"
            hint = "Give all rows of a column values of one type that Arrow has."
        raise SchemaError(
            f"{row} has in the column {path} {shown}, {reason}",
            hint,
            column=path,
            row=row,
            value=shown,
        )


def _odd_one(values: Sequence[Any], kind: pa.DataType) -> int | None:
    """Where a value is that Arrow changes without a word, if anywhere."""
    if not _is_mixable(kind):
        return None
    types = set(map(type, values))
    if pt.is_timestamp(kind):
        has_zone = kind.tz is not None
        if types == {datetime} and {one.tzinfo is not None for one in values} == {has_zone}:
            return None
        odd = [_is_time(one) and (one.tzinfo is not None) != has_zone for one in values]
        return odd.index(True) if True in odd else None
    for is_kind, other in _MISTAKEN:
        wrong = [one for one in types if issubclass(one, other) and not _is_null_type(one)]
        if wrong and is_kind(kind):
            return next(at for at, one in enumerate(values) if type(one) in wrong)
    return None


def _of_kind(
    values: Sequence[Any], row_of: _RowOf, kind: type[Any]
) -> tuple[Sequence[Any], _RowOf]:
    """The values of a kind, and whose they are."""
    if all(issubclass(one, kind) for one in set(map(type, values))):
        return values, row_of
    held = [at for at, value in enumerate(values) if isinstance(value, kind)]
    return [values[at] for at in held], lambda at: row_of(held[at])


def _row_of_element(lists: Sequence[Any], row_of: _RowOf) -> _RowOf:
    ends: list[int] = []

    def row(at: int) -> int:
        if not ends:  # for a message or a mark alone
            ends.extend(accumulate(map(len, lists)))
        return row_of(bisect_right(ends, at))

    return row


def _has_nanoseconds(values: Sequence[Any]) -> bool:
    has_some = any(hasattr(one, "nanosecond") for one in set(map(type, values)))
    return has_some and any(getattr(one, "nanosecond", 0) for one in values)


def _is_mixable(kind: pa.DataType) -> bool:
    """Whether values of a type have to be looked at."""
    below = children(kind)
    if below:
        return pt.is_struct(kind) or any(_is_mixable(one.field.type) for one in below)
    kinds = (pt.is_floating, is_bytes, pt.is_date, pt.is_timestamp)
    return any(is_kind(kind) for is_kind in kinds)


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime) and not _is_null_type(type(value))


def _is_null_type(kind: type[Any]) -> bool:
    return kind.__name__ == "NaTType"  # of pandas, where it counts as a time
