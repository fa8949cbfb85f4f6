"""Leaving out partitions and files by the ranges of their columns, before any is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.config.table import TableConfig
from hudi_core.model.files import FileGroupId, FileSlice, FileStatus, PartitionPath
from hudi_core.model.protocols import FileLister
from hudi_core.model.ranges import (
    Mask,
    MatchingLister,
    MayMatch,
    RangeSource,
    Texts,
    ValueIndex,
    ValueRanges,
)
from hudi_core.read.matching import can_match
from hudi_core.read.predicate import And, Comparison, OneOf, Or, Predicate, columns_of
from hudi_core.read.substrait import predicate_of_expression
from hudi_core.schema.arrow_types import walk


class DataSkipper:
    """Decides for one filter.

    What is not known never excludes anything: columns without ranges, files without statistics,
    parts of a filter that cannot be taken apart.

    Parameters
    ----------
    config
        The table's configuration.
    lister
        Tells ranges where it is a :class:`~hudi_core.model.ranges.RangeSource`; else everything is
        kept.
    schema
        Columns of the rows, as filters see them.
    expression
        The filter; ``None`` keeps everything.
    """

    def __init__(
        self,
        config: TableConfig,
        lister: FileLister,
        schema: pa.Schema,
        expression: pc.Expression | None,
    ) -> None:
        self._matching: set[str] = set()
        self._source = lister if isinstance(lister, RangeSource) else None
        self._index = lister if isinstance(lister, ValueIndex) else None
        if self._source is None or expression is None:
            self._source = self._index = None
            return
        self._predicate = predicate_of_expression(expression, schema)
        kinds = {path: field.type for path, field in walk(schema)}
        # under a name that once meant another column, files may have the ranges of that one
        self._columns = {
            path: kinds[path]
            for path in sorted(columns_of(self._predicate) - config.former_names)
            if not pt.is_nested(kinds[path])
        }

    def partitions(self, given: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
        """Return the partitions whose present rows the filter may accept, in the same order.

        Only for the latest state of the table: ranges of partitions are not kept of past ones.
        """
        if self._source is None or not given:
            return given
        found: dict[str, ValueRanges] = {}
        for path, kind in self._columns.items():
            ranges = self._source.partition_ranges(given, path, kind)
            if ranges is not None:
                found[path] = ranges
        if not found:
            return given
        return list(compress(given, can_match(self._predicate, found, len(given))))

    def indexed(self, given: Sequence[FileSlice]) -> Sequence[FileSlice]:
        """Return the slices that indexes of values leave over, in the same order.

        Only for the latest state of the table, and only of an index that holds all its rows.
        """
        if self._index is None:
            return given
        groups = _groups(self._predicate, self._columns, self._index)
        if groups is None:
            return given
        return [one for one in given if one.group in groups or one.log_files]

    def narrowed(self, lister: FileLister) -> FileLister:
        """Return a lister without file groups of which no file may match, where it can do that.

        It describes no more files than may be read, and a few of their older versions.
        """
        if self._source is None or not self._columns or not isinstance(lister, MatchingLister):
            return lister
        return _Narrowed(lister.list_partitions, lister.list_matching, self._noted_match)

    def slices(self, given: Sequence[FileSlice]) -> tuple[FileSlice, ...]:
        """Return the slices that may hold a row the filter accepts, in the same order."""
        # log files may hold rows beyond the ranges of their base file, and of what may match by
        # the narrowed lister nothing new is said
        unsure = [
            (one.group, one.base_file.status.name)
            for one in given
            if one.base_file is not None
            and not one.log_files
            and one.base_file.status.name not in self._matching
        ]
        if not unsure:
            return tuple(given)
        mask = self._may_match(
            [group.partition_path for group, _ in unsure], [name for _, name in unsure]
        )
        dropped = {group for (group, _), keep in zip(unsure, mask, strict=True) if not keep}
        return tuple(one for one in given if one.group not in dropped)

    def _noted_match(self, paths: Texts, names: Texts) -> Mask:
        mask = self._may_match(paths, names)
        array = names if isinstance(names, pa.Array) else pa.array(names, pa.string())
        self._matching.update(array.filter(pa.array(mask)).to_pylist())
        return mask

    def _may_match(self, paths: Texts, names: Texts) -> Mask:
        found: dict[str, ValueRanges] = {}
        if self._source is not None and len(names):
            for path, kind in self._columns.items():
                ranges = self._source.file_ranges(paths, names, path, kind)
                if ranges is not None:
                    found[path] = ranges
        if not found:
            return np.ones(len(names), np.bool_)
        return can_match(self._predicate, found, len(names))


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """Lists the file groups that may hold a matching row."""

    list_partitions: Callable[[], Sequence[PartitionPath]]
    list_matching: Callable[
        [Sequence[PartitionPath], MayMatch], Mapping[PartitionPath, Sequence[FileStatus]]
    ]
    may_match: MayMatch

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        return self.list_matching(partitions, self.may_match)


def _groups(
    predicate: Predicate, columns: Mapping[str, pa.DataType], index: ValueIndex
) -> frozenset[FileGroupId] | None:
    """Return the file groups that can hold a row the predicate accepts; ``None``: any can."""
    match predicate:
        case Comparison(column, "=", value) if column in columns:
            return index.groups_of_values(column, pa.array([value.as_py()], columns[column]))
        case OneOf(column, values) if column in columns:
            return index.groups_of_values(column, values)
        case And(parts):
            known = [
                found for part in parts if (found := _groups(part, columns, index)) is not None
            ]
            return frozenset.intersection(*known) if known else None
        case Or(parts):
            each = [_groups(part, columns, index) for part in parts]
            some = [found for found in each if found is not None]
            return frozenset[FileGroupId]().union(*some) if len(some) == len(each) else None
    return None
