"""Which partitions can hold rows that a filter accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError, UnsafePathError
from hudi_core.keygen import path_codec
from hudi_core.keygen.timestamp import bounds_of_strings, may_be_of_nulls
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import PartitionPath
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.read.filters import Filter
from hudi_core.read.predicate import (
    And,
    Comparison,
    OneOf,
    Predicate,
    can_match,
    flattened,
    is_whole,
    values_of,
)
from hudi_core.schema.table_schema import PARTITION_PATH
from hudi_core.storage.partition_path import DEFAULT_PARTITION

_KEYGEN_PROPERTIES: Final = frozenset(
    {"hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"}
)
_CERTAIN: Final = (
    (pa.types.is_integer, r"\A-?[0-9]{1,18}\z"),
    (pa.types.is_boolean, r"\A(true|false)\z"),
    (pa.types.is_date32, r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"),
)
"""Strings that mean one value of a type."""
_PLAIN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_ -]*")
"""Strings of which no writer escapes anything."""
_MOST_NAMED: Final = 100


class PartitionPruner:
    """Decides from partition paths alone, before anything is listed.

    A path says something about ``_hoodie_partition_path`` always, and about a partition column
    where its text means one value only: strings, integers, booleans and dates. A path made of
    timestamps gives a range of the column's values, where it means one period. What it
    does not say for certain (nulls and empty strings share one path; Hudi has written timestamps in
    several forms) never excludes a partition.
    """

    def __init__(self, config: TableConfig, schema: pa.Schema) -> None:
        self._fields = config.partition_fields
        self._schema = schema
        self._codec = path_codec(config)
        self._is_hive_style = config.hive_style
        # a table of an early release that does not name its key generator may have any
        named = not config.raw or not _KEYGEN_PROPERTIES.isdisjoint(config.raw)
        each_once = len(set(self._fields)) == len(self._fields)
        identity: set[str] = set()
        other: set[str] = set()
        if named and each_once:
            for name, transform in zip(self._fields, config.partition_transforms, strict=True):
                (identity if transform is PartitionTransform.IDENTITY else other).add(name)
        self.identity = frozenset(identity)
        """Fields that have the column's own value in the path, not something made from it."""
        self._made = frozenset(other) if config.time_based is not None else frozenset()
        self._how = config.time_based

    def values(self, path: PartitionPath) -> Mapping[str, str | None]:
        """Return a path's strings by partition field; empty if undecodable."""
        if not self._fields:
            return {}
        try:
            values = self._codec.decode(path)
        except (PartitionValueError, UnsafePathError):
            return {}
        return (
            dict(zip(self._fields, values, strict=False))
            if len(values) == len(self._fields)
            else {}
        )

    def keep(
        self, partitions: Sequence[PartitionPath], wanted: Filter | None
    ) -> tuple[PartitionPath, ...]:
        """The partitions that may hold wanted rows, in the same order."""
        if wanted is None or not self._concerns(wanted):
            return tuple(partitions)
        mask = self._mask(pa.array(partitions, pa.string()), wanted)
        return self._whole(list(compress(partitions, mask)), wanted)

    def of_index(self, index: FileIndex, wanted: Filter | None) -> tuple[PartitionPath, ...]:
        """The partitions of an index that may hold wanted rows, sorted.

        Of the others no object is made, and where the filter names the values they are not read.
        """
        if wanted is None or not self._concerns(wanted):
            return tuple(index.list_partitions())
        if (named := self._named(wanted.predicate)) is not None:
            return self.keep(sorted(set(index.partitions_among(named))), wanted)
        paths = index.partition_paths()
        kept = paths.filter(pa.array(self._mask(paths, wanted))).to_pylist()
        return self._whole(sorted(set(map(PartitionPath, kept))), wanted)

    def _named(self, predicate: Predicate) -> Sequence[PartitionPath] | None:
        """All partitions that can hold a wanted row, if known.

        They need not be there. Only of a string that is the whole path, spelled by every writer
        alike, it is known: a table may have others beside, of nulls, and of dates whose dashes are
        folders.
        """
        (field,) = self._fields if len(self._fields) == 1 else (None,)
        if field not in self.identity or self._is_hive_style or field not in self._schema.names:
            return None
        if not pa.types.is_string(self._schema.field(field).type):
            return None
        parts = flattened(predicate.parts) if isinstance(predicate, And) else [predicate]
        for part in parts:
            if not isinstance(part, Comparison | OneOf) or part.column != field:
                continue
            values = values_of(part)
            if values is not None and len(values) <= _MOST_NAMED:
                if not all(_PLAIN.fullmatch(value or "") for value in values):
                    return None
                spelled = {text for value in values for text in (value, value.replace("-", "/"))}
                return [PartitionPath(text) for text in (*sorted(spelled), DEFAULT_PARTITION)]
        return None

    def _concerns(self, wanted: Filter) -> bool:
        """Whether paths say anything about a filter."""
        known = {PARTITION_PATH, *self._fields}.intersection(self._schema.names)
        return bool(self._fields) and not wanted.columns.isdisjoint(known)

    def _mask(self, paths: pa.StringArray, wanted: Filter) -> Mask:
        # values of paths are ranges of a single value
        return can_match(wanted.predicate, self._ranges_of_paths(paths), len(paths))

    def _whole(self, kept: Sequence[PartitionPath], wanted: Filter) -> tuple[PartitionPath, ...]:
        return tuple(kept if is_whole(wanted.predicate) else self._simplified(kept, wanted))

    def mask(self, rows: Sequence[Mapping[str, str | None]], wanted: Filter) -> Mask:
        """Mask of the partitions that may hold wanted rows.

        ``rows`` are what :meth:`values` returns of each, or the same from elsewhere.
        """
        ranges = self._ranges_of_texts(
            {
                name: pa.array([row.get(name) for row in rows], pa.string())
                for name in sorted(self.identity | self._made)
                if all(name in row for row in rows)
            }
        )
        return can_match(wanted.predicate, ranges, len(rows))

    def _simplified(
        self, partitions: Sequence[PartitionPath], wanted: Filter
    ) -> Sequence[PartitionPath]:
        """The partitions that Arrow keeps.

        It knows more of its expressions than we do.
        """
        import pyarrow.dataset as ds  # noqa: PLC0415 - imports pandas, and few queries come here

        # fragments are never opened here: Arrow simplifies the filter by what each is known to hold
        file_format, nowhere = ds.ParquetFileFormat(), pafs.LocalFileSystem()
        fragments = [
            file_format.make_fragment(str(n), nowhere, partition_expression=self._known(path))
            for n, path in enumerate(partitions)
        ]
        dataset = ds.FileSystemDataset(fragments, self._schema, file_format, nowhere)
        kept = sorted(int(found.path) for found in dataset.get_fragments(filter=wanted.expression))
        return [partitions[n] for n in kept]

    def _ranges_of_paths(self, paths: pa.StringArray) -> Mapping[str, ValueRanges]:
        texts = {PARTITION_PATH: paths}
        if names := sorted(self.identity | self._made):
            values = self._values_of(paths)
            texts |= {name: values[name] for name in names}
        return self._ranges_of_texts(texts)

    def _values_of(self, paths: pa.StringArray) -> Mapping[str, pa.StringArray]:
        """The values of many paths, by field; see :meth:`values`."""
        columns, regular = self._codec.decode_many(paths)
        if pc.all(regular).as_py() and columns:
            return dict(zip(self._fields, columns, strict=True))
        places = np.flatnonzero(pc.invert(regular))
        rows = [self.values(PartitionPath(one)) for one in paths.take(places).to_pylist()]
        columns = columns or [pa.nulls(len(paths), pa.string())] * len(self._fields)
        return {
            name: pc.replace_with_mask(
                column, pc.invert(regular), pa.array([one.get(name) for one in rows], pa.string())
            )
            for name, column in zip(self._fields, columns, strict=True)
        }

    def _ranges_of_texts(self, texts: Mapping[str, pa.StringArray]) -> Mapping[str, ValueRanges]:
        ranges: dict[str, ValueRanges] = {}
        for name, some in texts.items():
            if name not in self._schema.names:
                continue
            found = self._spans(name, some) if name in self._made else self._ranges(name, some)
            if found is not None:
                ranges[name] = found
        return ranges

    def _ranges(self, name: str, texts: pa.StringArray) -> ValueRanges | None:
        kind = self._schema.field(name).type
        if name != PARTITION_PATH:
            texts = pc.if_else(_are_certain(kind, texts), texts, pa.scalar(None, pa.string()))
        try:
            values = texts.cast(kind)
        except pa.ArrowInvalid:
            return None
        unknown = values.is_null().to_numpy(zero_copy_only=False)
        return ValueRanges(values, values, unknown, np.ones(len(values), np.bool_))

    def _spans(self, name: str, stated: pa.StringArray) -> ValueRanges | None:
        """Return the bounds of column values behind partition strings."""
        kind, texts = self._schema.field(name).type, stated.to_pylist()
        bounds = None if self._how is None else bounds_of_strings(texts, kind, self._how)
        if self._how is None or bounds is None or not bounds.known.any():
            return None
        may_be_null = may_be_of_nulls(bounds, texts, kind, self._how)
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        limit = np.iinfo(width.to_pandas_dtype())
        lows, highs = (
            pa.array(np.clip(ends, limit.min, limit.max), mask=~bounds.known).cast(width).cast(kind)
            for ends in (bounds.lows, bounds.highs)
        )
        return ValueRanges(lows, highs, ~bounds.known | may_be_null, np.ones(len(lows), np.bool_))

    def _known(self, path: PartitionPath) -> pc.Expression:
        known = pc.scalar(True)
        if PARTITION_PATH in self._schema.names:
            known = pc.field(PARTITION_PATH) == pa.scalar(path, pa.string())
        if self.identity:
            for name, text in self.values(path).items():
                value = self._typed(name, text)
                if value is not None:
                    known = known & (pc.field(name) == value)
        return known

    def _typed(self, name: str, text: str | None) -> pa.Scalar | None:
        if name not in self.identity or name not in self._schema.names:
            return None
        kind = self._schema.field(name).type
        if not _are_certain(kind, pa.array([text], pa.string()))[0].as_py():
            return None
        try:
            return pa.scalar(text).cast(kind)
        except pa.ArrowInvalid:
            return None


def _are_certain(kind: pa.DataType, texts: pa.StringArray) -> pa.BooleanArray:
    """Mask of the strings that mean a single value."""
    # a slash is part of a value, or was a dash of a date before Hudi made folders of it
    certain = pc.fill_null(pc.invert(pc.match_substring(texts, "/")), False)
    pattern = next((one for is_of, one in _CERTAIN if is_of(kind)), None)
    if pa.types.is_string(kind):
        return certain
    if pattern is None:
        return pc.and_(certain, False)
    return pc.and_(certain, pc.fill_null(pc.match_substring_regex(texts, pattern), False))
