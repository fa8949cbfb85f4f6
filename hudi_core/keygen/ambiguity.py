"""Record keys that several rows could have.

Hudi joins the values of several columns as ``f1:v1,f2:v2`` and quotes nothing: a value with
``,f2:`` inside may end elsewhere, and ``__null__`` is a null or a value of these letters.
Timestamps that are spelled as clocks show them lose their microseconds, and which of two hours it
was that clocks show twice. The form is Hudi's and stays; but where two rows have one such key,
their columns show whether they are one row.

Of two rows that share a key without being one, at least one has an *odd* value: it holds ``,f2:``,
or is a placeholder in letters, or is a timestamp that its spelling does not give. With the first
kind both rows have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.keygen.base import EMPTY_PART, NULL_PART, KeyColumn, KeyColumns
from hudi_core.keygen.zones import to_local_millis, to_utc_millis
from hudi_core.model.ranges import Mask
from hudi_core.schema.table_schema import TableSchema

_PLACEHOLDERS: Final = (NULL_PART, EMPTY_PART)
_BEGIN: Final = "__"
_MICROS: Final = 1000


class Ambiguity(IntEnum):
    """Whether the record keys of rows could be those of other rows."""

    NONE = 0
    """They could not."""
    PASSIVE = 1
    """Of rows with an odd value: a value is null or empty, and its placeholder could be one."""
    ACTIVE = 2
    """A value is odd."""


@dataclass(frozen=True)
class KeyAmbiguity:
    """Finds the record keys of one table that several rows could have.

    ``texts`` are the key columns of strings where values are joined, else none; ``clocks`` those of
    timestamps that are spelled as the clocks of ``zone`` show them.
    """

    columns: tuple[KeyColumn, ...]
    texts: tuple[KeyColumn, ...]
    clocks: tuple[KeyColumn, ...]
    zone: str | None

    @classmethod
    def of_columns(cls, columns: KeyColumns, schema: TableSchema) -> KeyAmbiguity | None:
        """Return that of joined keys; ``None`` where each is of one row."""
        keys, zone = columns.record_key, columns.form.timestamp_zone
        fields = [schema.field(column.name) for column in keys]
        kinds = [(one, field.type) for one, field in zip(keys, fields, strict=True) if field]
        texts = [one for one, kind in kinds if pt.is_string(kind)]
        is_clock = zone is not None
        clocks = [one for one, kind in kinds if is_clock and pt.is_timestamp(kind) and kind.tz]
        found = cls(keys, tuple(texts) if len(keys) > 1 else (), tuple(clocks), zone)
        return found if found.texts or found.clocks else None

    def of(self, batch: pa.RecordBatch) -> Ambiguity:
        """Return how ambiguous the keys of rows are."""
        found = Ambiguity.PASSIVE if self.clocks else Ambiguity.NONE
        for column in self.texts:
            values = column.of(batch)
            if self._has_odd(values):
                return Ambiguity.ACTIVE
            if values.null_count or _any(pc.equal(pc.binary_length(values), 0)):
                found = Ambiguity.PASSIVE
        if any(self._is_lossy(column.of(batch)) for column in self.clocks):
            return Ambiguity.ACTIVE
        return found

    def among(self, keys: pa.StringArray) -> Mask:
        """Mask of the record keys that several rows could have."""
        if self.clocks:
            return np.ones(len(keys), bool)
        found = np.zeros(len(keys), bool)
        data = _bytes(keys)
        # every key has each of them once; looked for all at once, as below
        if any(data.count(joint.encode()) > len(keys) for joint in self._joints):
            for joint in self._joints:
                found |= _numpy(pc.greater(pc.count_substring(keys, joint), 1))
        rows = np.flatnonzero(_numpy(pc.match_substring(keys, f":{_BEGIN}")))
        some = keys.take(pa.array(rows))
        for column in self.texts if len(rows) else ():
            for placeholder in _PLACEHOLDERS:
                found[rows] |= _numpy(pc.match_substring(some, f"{column.name}:{placeholder}"))
        return found

    def values(self, rows: pa.Table) -> pa.Table:
        """The values of the key columns of rows."""
        whole = rows.combine_chunks()
        batch = pa.RecordBatch.from_arrays(
            [pa.array([], one.type) if not len(rows) else one.chunk(0) for one in whole.columns],
            names=whole.column_names,
        )
        return pa.table({column.name: column.of(batch) for column in self.columns})

    @cached_property
    def _joints(self) -> Sequence[str]:
        return [f",{column.name}:" for column in self.columns[1:]]

    def _has_odd(self, values: pa.StringArray) -> bool:
        if any(_any(pc.equal(values, placeholder)) for placeholder in _PLACEHOLDERS):
            return True
        # hardly ever there, and found so ten times as fast as value by value
        data = _bytes(values)
        if b"," not in data or b":" not in data:
            return False
        return any(
            joint.encode() in data and _any(pc.match_substring(values, joint))
            for joint in self._joints
        )

    def _is_lossy(self, values: pa.Array) -> bool:
        assert self.zone is not None  # noqa: S101 - else no column is spelled so
        parts = _MICROS if values.type.unit == "us" else 1
        counts = values.drop_null().cast(pa.int64()).to_numpy()
        if (counts % parts != 0).any():
            return True
        local = to_local_millis(counts // parts, self.zone)
        first, last = (to_utc_millis(local, self.zone, last=one) for one in (False, True))
        return bool((first != last).any())


def _bytes(values: pa.StringArray) -> bytes:
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return b""
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    start, end = int(ends[0]), int(ends[-1])
    found: bytes = data.slice(start, end - start).to_pybytes()
    return found


def _any(mask: pa.BooleanArray) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


def _numpy(mask: pa.BooleanArray) -> Mask:
    found: Mask = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return found
