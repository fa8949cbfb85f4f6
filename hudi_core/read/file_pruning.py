"""Data skipping: partitions and files left out by column ranges.

What is not known never excludes anything: columns without ranges, files without statistics, parts
of a filter that cannot be taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.config.key_generators import KEY_GENERATORS
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError, RecordKeyError
from hudi_core.keygen import key_generator
from hudi_core.metadata.key_index.value_index import MAX_KEYS
from hudi_core.metadata.lister import MetadataLister
from hudi_core.metadata.statistics.expressions import Expression
from hudi_core.model.bound_conversions import bounds_to_array
from hudi_core.model.file_columns import FileColumns, Ints
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.model.stats import Scalar
from hudi_core.read.filters import Filter
from hudi_core.read.predicate import (
    And,
    Anything,
    Comparison,
    OneOf,
    Or,
    Predicate,
    Values,
    can_match,
    columns_of,
    flattened,
    values_of,
)
from hudi_core.schema.arrow_types import is_text, walk
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema

Kinds = Mapping[str, pa.DataType]
"""Types of columns by path."""


def ranged_columns(predicate: Predicate, schema: pa.Schema, without: Collection[str]) -> Kinds:
    """The columns of a predicate that can have ranges.

    ``without`` are columns to leave out, such as names that once meant another column: files may
    have the ranges of that one.
    """
    wanted = columns_of(predicate).difference(without)
    kinds = {path: field.type for path, field in walk(schema) if path in wanted}
    return {path: kind for path, kind in sorted(kinds.items()) if not pt.is_nested(kind)}


def prune(
    predicate: Predicate,
    kinds: Kinds,
    count: int,
    ranges_of: Callable[[str, pa.DataType], ValueRanges | None],
) -> Mask:
    """Mask of the files, or partitions, that may hold a matching row.

    ``ranges_of`` returns ``None`` where no ranges of a column are kept.
    """
    found: dict[str, ValueRanges] = {}
    for path, kind in kinds.items() if count else ():
        ranges = ranges_of(path, kind)
        if ranges is not None:
            found[path] = ranges
    return can_match(predicate, found, count) if found else np.ones(count, np.bool_)


def united(ranges: ValueRanges, groups: Ints) -> ValueRanges:
    """For each item the range of all items with its number.

    Items of one number may share rows, as files of a slice do.
    """
    count = int(groups.max(initial=-1)) + 1
    low, high = (
        _first(side, groups, order).take(pa.array(groups))
        for side, order in ((ranges.minimum, "ascending"), (ranges.maximum, "descending"))
    )
    masks = []
    for mask in (ranges.may_be_null, ranges.may_have_value):
        found = np.zeros(count, np.bool_)
        found[groups[mask]] = True
        masks.append(found[groups])
    return ValueRanges(low, high, *masks)


def _first(values: pa.Array, groups: Ints, order: str) -> pa.Array:
    """The first value of each group; null where one is unknown."""
    rows = pa.table({"group": groups, "value": values})
    keys = [("group", "ascending", "at_start"), ("value", order, "at_start")]
    places = pc.sort_indices(rows, sort_keys=keys).to_numpy()
    ordered = groups[places]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    return values.take(pa.array(places[starts]))


def prune_named(
    index: FileIndex,
    files: Sequence[FileStatus],
    wanted: Filter,
    schema: pa.Schema,
    without: Collection[str],
) -> Mask:
    """Mask of the base files that may hold a wanted row.

    ``files`` may be absent from the present state; each counts under the partition of its path.
    """
    kinds = ranged_columns(wanted.predicate, schema, without)
    if len(files) < 2 or not kinds:  # of a single file its own footer says as much
        return np.ones(len(files), np.bool_)
    listed: dict[PartitionPath, dict[str, FileStatus]] = {}
    for file in files:
        folder = PartitionPath(file.path.rpartition("/")[0])
        listed.setdefault(folder, {})[file.path] = file
    columns = FileColumns.of_statuses({path: [*some.values()] for path, some in listed.items()})
    may_match = prune(wanted.predicate, kinds, len(columns), partial(index.file_ranges, columns))
    kept = dict(zip(columns.paths().to_pylist(), may_match.tolist(), strict=True))
    return np.array([kept[file.path] for file in files], np.bool_)


def groups_with_values(
    predicate: Predicate, kinds: Kinds, index: FileIndex
) -> frozenset[FileGroupId] | None:
    """File groups that may hold a matching row; ``None`` where unknown."""
    match predicate:
        case Comparison(column, "=", value) if column in kinds:
            return index.groups_of_values(column, pa.array([value.as_py()], kinds[column]))
        case OneOf(column, values) if column in kinds:
            return index.groups_of_values(column, values)
        case And(parts):
            each = [groups_with_values(part, kinds, index) for part in parts]
            known = [found for found in each if found is not None]
            return frozenset.intersection(*known) if known else None
        case Or(parts):
            each = [groups_with_values(part, kinds, index) for part in parts]
            known = [found for found in each if found is not None]
            return frozenset[FileGroupId]().union(*known) if len(known) == len(each) else None
    return None


# --- data skipping by expression indexes ---------------------------------------------------------

# What a filter on a column says of a function of it.
#
# Where a function keeps the order of values, a filter on the column bounds the function's values,
# and equal values have equal ones whatever the function. An index may have been made in any time
# zone, so what is asked of it is as wide as zones are. Nothing is concluded from a negation.


_VALUES: Final = "values"
"""Name of the function's values in a predicate of them."""
_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def by_expressions(
    predicate: Predicate,
    files: FileColumns,
    columns: Mapping[str, pa.DataType],
    lister: MetadataLister | None,
) -> Mask:
    """Mask of the files that no expression index excludes."""
    found = () if lister is None else lister.expression_ranges(files, columns)
    return may_match(predicate, found, len(files))


def may_match(
    predicate: Predicate, found: Iterable[tuple[Expression, ValueRanges]], count: int
) -> Mask:
    """Mask of the files that may hold a matching row."""
    mask: Mask = np.ones(count, np.bool_)
    for expression, ranges in found:
        mask &= can_match(of_values(predicate, expression), {_VALUES: ranges}, count)
    return mask


def of_values(predicate: Predicate, expression: Expression) -> Predicate:
    """What holds of an expression's values wherever a predicate holds."""
    match predicate:
        case And(parts):
            return And(tuple(of_values(part, expression) for part in parts))
        case Or(parts):
            return Or(tuple(of_values(part, expression) for part in parts))
        case Comparison(column, op, value) if column == expression.column:
            return _of_comparison(op, value, expression)
        case OneOf(column, values) if column == expression.column and len(values):
            each = (_of_comparison("=", value, expression) for value in values)
            return Or(tuple(each))
    return Anything()


def _of_comparison(op: str, value: pa.Scalar, expression: Expression) -> Predicate:
    inner = _internal(value)
    if inner is None or op == "!=":
        return Anything()
    if op == "=" and not expression.zone_micros:
        return _compared("=", expression.value(inner), expression)
    if not expression.is_monotone:
        return Anything()
    parts = []
    if op in ("=", ">", ">="):
        parts.append(_compared(">=", expression.value(expression.shifted(inner, -1)), expression))
    if op in ("=", "<", "<="):
        parts.append(_compared("<=", expression.value(expression.shifted(inner, 1)), expression))
    return And(tuple(parts))


def _compared(op: str, value: Scalar | None, expression: Expression) -> Predicate:
    if value is None:
        return Anything()
    try:
        return Comparison(_VALUES, op, bounds_to_array([value], expression.result)[0])
    except (OverflowError, pa.ArrowInvalid):
        return Anything()


def _internal(value: pa.Scalar) -> Scalar | None:
    """A value in internal form; ``None`` for other types."""
    kind = value.type
    if pt.is_timestamp(kind):
        return int(value.value) * _MICROS[kind.unit] if kind.unit in _MICROS else None
    if pt.is_date32(kind):
        return int(value.value)
    if is_text(kind):
        return str(value.as_py())
    return int(value.as_py()) if pt.is_integer(kind) else None


# --- record keys that a filter asks for ----------------------------------------------------------

# A filter names keys by the meta column, or by values of all record key fields. Only values with
# one spelling are made into keys: strings and integers.


Keys = frozenset[str]


class KeyFilter:
    """Finds the record keys in filters of one table."""

    def __init__(self, config: TableConfig, schema: TableSchema) -> None:
        self._config, self._schema = config, schema
        self._fields = config.record_key_fields if self._has_plain_fields() else ()

    def _has_plain_fields(self) -> bool:
        """Whether the keys follow from the values of the fields."""
        config = self._config
        if config.keygen_type not in KEY_GENERATORS:
            return False
        kinds = [self._kind(name) for name in config.record_key_fields]
        return all(
            kind is not None and (pt.is_string(kind) or pt.is_integer(kind)) for kind in kinds
        )

    def _kind(self, name: str) -> pa.DataType | None:
        # a name that stood for another column may be in keys with that column's values
        if name in self._config.former_names or name not in self._schema.names:
            return None
        return self._schema.arrow.field(name).type

    def keys(self, predicate: Predicate) -> Keys | None:
        """Keys of all rows that a predicate can accept, if known."""
        match predicate:
            case Comparison() | OneOf():
                return self._of_values({predicate.column: values_of(predicate)})
            case And(parts):
                return self._of_all(parts)
            case Or(parts):
                each = [self.keys(part) for part in parts]
                known = [found for found in each if found is not None]
                return Keys().union(*known) if len(known) == len(each) else None
        return None

    def _of_all(self, parts: Sequence[Predicate]) -> Keys | None:
        columns: dict[str, Values | None] = {}
        found: list[Keys] = []
        for part in flattened(parts):
            if isinstance(part, Comparison | OneOf):
                values, known = values_of(part), columns.get(part.column)
                both = known & values if known is not None and values is not None else None
                columns[part.column] = both if both is not None else known or values
            elif (keys := self.keys(part)) is not None:
                found.append(keys)
        if (made := self._of_values(columns)) is not None:
            found.append(made)
        return min(found, key=len, default=None)

    def _of_values(self, columns: Mapping[str, Values | None]) -> Keys | None:
        stated = columns.get(RECORD_KEY)
        if stated is not None:
            return Keys(stated)
        values = [columns.get(name) for name in self._fields]
        known = [one for one in values if one is not None]
        if not known or len(known) < len(values) or prod(map(len, known)) > MAX_KEYS:
            return None
        return self._made(list(product(*known)))

    def _made(self, rows: Sequence[tuple[Any, ...]]) -> Keys | None:
        kinds = {name: self._schema.arrow.field(name).type for name in self._fields}
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        batch = pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)],
            names=list(kinds),
        )
        # writers of one table may have differed in what a key of one field is
        forms = (False, True) if self._config.may_name_one_key else (None,)
        keys: set[str] = set()
        for form in forms:
            config = self._config
            if form is not None:
                config = replace(config, complex_keygen_new_encoding=form)
            try:
                made = key_generator(config, self._schema, knows_partitions=False)
                keys.update(made.record_keys(batch).to_pylist())
            except (InvalidOptionError, RecordKeyError):
                return None  # no row has such a key, or keys are not made here
        return Keys(keys)
