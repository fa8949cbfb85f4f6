"""Data skipping: partitions and files left out by column ranges.

What is not known never excludes anything: columns without ranges, files without statistics, parts
of a filter that cannot be taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.model.file_columns import FileColumns
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.read.filters import Filter
from hudi_core.read.matching import can_match
from hudi_core.read.predicate import And, Comparison, OneOf, Or, Predicate, columns_of
from hudi_core.schema.arrow_types import walk

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
