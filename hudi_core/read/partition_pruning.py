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
from hudi_core.model.files import PartitionPath
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.read.filters import Filter
from hudi_core.read.predicate import can_match, is_whole
from hudi_core.schema.table_schema import PARTITION_PATH

_KEYGEN_PROPERTIES: Final = frozenset(
    {"hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"}
)
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


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
        known = {PARTITION_PATH, *self._fields}.intersection(self._schema.names)
        if wanted is None or not self._fields or wanted.columns.isdisjoint(known):
            return tuple(partitions)
        # values of paths are ranges of a single value
        ranges = self._ranges_of_paths(partitions)
        mask = can_match(wanted.predicate, ranges, len(partitions))
        kept = list(compress(partitions, mask))
        return tuple(kept if is_whole(wanted.predicate) else self._simplified(kept, wanted))

    def mask(self, rows: Sequence[Mapping[str, str | None]], wanted: Filter) -> Mask:
        """Mask of the partitions that may hold wanted rows.

        ``rows`` are what :meth:`values` returns of each, or the same from elsewhere.
        """
        ranges = self._ranges_of_texts(
            {
                name: [row.get(name) for row in rows]
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

    def _ranges_of_paths(self, partitions: Sequence[PartitionPath]) -> Mapping[str, ValueRanges]:
        texts: dict[str, list[str | None]] = {PARTITION_PATH: [*partitions]}
        if self.identity or self._made:
            rows = [self.values(path) for path in partitions]
            texts |= {
                name: [row.get(name) for row in rows] for name in sorted(self.identity | self._made)
            }
        return self._ranges_of_texts(texts)

    def _ranges_of_texts(
        self, texts: Mapping[str, Sequence[str | None]]
    ) -> Mapping[str, ValueRanges]:
        ranges: dict[str, ValueRanges] = {}
        for name, some in texts.items():
            if name not in self._schema.names:
                continue
            found = self._spans(name, some) if name in self._made else self._ranges(name, some)
            if found is not None:
                ranges[name] = found
        return ranges

    def _ranges(self, name: str, texts: Sequence[str | None]) -> ValueRanges | None:
        kind = self._schema.field(name).type
        if name == PARTITION_PATH:
            stated = list(texts)
        else:
            stated = [text if _is_certain(kind, text) else None for text in texts]
        try:
            values = pa.array(stated, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            return None
        unknown = values.is_null().to_numpy(zero_copy_only=False)
        return ValueRanges(values, values, unknown, np.ones(len(values), np.bool_))

    def _spans(self, name: str, texts: Sequence[str | None]) -> ValueRanges | None:
        """Return the bounds of column values behind partition strings."""
        kind = self._schema.field(name).type
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
        if not _is_certain(kind, text):
            return None
        try:
            return pa.scalar(text).cast(kind)
        except pa.ArrowInvalid:
            return None


def _is_certain(kind: pa.DataType, text: str | None) -> bool:
    """Whether a path's text means one value of a type only."""
    # a slash is part of a value, or was a dash of a date before Hudi made folders of it
    if text is None or "/" in text:
        return False
    return bool(
        pa.types.is_string(kind)
        or (pa.types.is_integer(kind) and _INTEGER.fullmatch(text))
        or (pa.types.is_boolean(kind) and text in ("true", "false"))
        or (pa.types.is_date32(kind) and _DATE.fullmatch(text))
    )
