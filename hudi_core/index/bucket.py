"""The BUCKET index: a key's hash is its bucket and file group.

Source: Hudi's ``BucketIdentifier.getBucketId`` and ``KeyGenUtils.extractRecordKeysByFields`` as of
Hudi 1.0 (HUDI-8403): the hash of a list of strings, its sign bit cleared, modulo the number of
buckets. The strings are the values of the index fields, taken from the record key:

======================================= ======================================================
record key                              hashed
======================================= ======================================================
has not both ``,`` and ``:``            the key itself: bare values, and ``id:7`` of a single
                                        field with its name
``f1:v1,f2:v2`` with index fields       their values in the order of the key; ``__null__`` is
                                        null and ``__empty__`` the empty string
the same without any index field        the key itself
======================================= ======================================================

A comma ends a value only where it is the last one before a colon: ``f1:1,5,f2:10:30`` holds ``1,5``
and ``10:30``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.hashing.java_hash import list_hash, list_hashes, string_hashes
from hudi_core.index.base import Candidates, Matches, join_keys
from hudi_core.model.buckets import Buckets, bucket_of_file

BucketNumbers = npt.NDArray[np.int32]

_NEXT_FIELD: Final = re.compile(r",(?=[^,:]*:)")
_PLACEHOLDERS: Final = {"__null__": None, "__empty__": ""}
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


class BucketIndex:
    """Looks for a key in the file group of its bucket alone."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        numbers = bucket_numbers(keys, self._buckets)
        for candidate in range(len(candidates)):
            bucket = bucket_of_file(candidates.file_id(candidate))
            chosen = np.flatnonzero(numbers == bucket).astype(np.int32)
            if len(chosen):
                yield from join_keys(candidate, candidates.keys(candidate), keys, chosen)


def bucket_numbers(keys: pa.StringArray, buckets: Buckets) -> BucketNumbers:
    """Return the bucket of every record key."""
    return (key_hashes(keys, buckets.fields) % np.uint32(buckets.number)).astype(np.int32)


def key_hashes(keys: pa.StringArray, fields: tuple[str, ...]) -> npt.NDArray[np.uint32]:
    """The hash of every record key, whose remainder is its bucket."""
    return _hashes(keys, fields) & _POSITIVE


def hashed_values(key: str, fields: tuple[str, ...]) -> list[str | None]:
    """Return the strings of a record key that make its hash."""
    if "," not in key or ":" not in key:
        return [key]
    # a comma before the first colon is part of a name, not the end of a value
    start = key.index(":")
    pieces = _NEXT_FIELD.split(key[start:])
    pieces[0] = key[:start] + pieces[0]
    named = (piece.partition(":") for piece in pieces)
    values = [_PLACEHOLDERS.get(value, value) for name, _, value in named if name in fields]
    return values or [key]


def _hashes(keys: pa.StringArray, fields: tuple[str, ...]) -> npt.NDArray[np.uint32]:
    composite = _mask(pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":")))
    if not composite.any():
        return list_hashes([string_hashes(keys)])
    hashes = np.empty(len(keys), np.uint32)
    plain = ~composite
    if plain.any():
        hashes[plain] = list_hashes([string_hashes(keys.filter(pa.array(plain)))])
    rows = np.flatnonzero(composite)
    hashes[rows] = _composite_hashes(keys.take(pa.array(rows)), fields)
    return hashes


def _composite_hashes(keys: pa.StringArray, fields: tuple[str, ...]) -> npt.NDArray[np.uint32]:
    """Hashes of keys of several fields, vectorised where possible."""
    names = [piece.partition(":")[0] for piece in str(keys[0]).split(",")]
    pattern = ",".join(
        f"{re.escape(name)}:(?P<v{number}>[^,:]*)" for number, name in enumerate(names)
    )
    found = pc.extract_regex(keys, f"^{pattern}$")
    wanted = [number for number, name in enumerate(names) if name in fields]
    hashes = np.empty(len(keys), np.uint32)
    matched = _mask(found.is_valid()) if wanted else np.zeros(len(keys), bool)
    if matched.any():
        rows = found.filter(pa.array(matched))
        parts = [_value_hashes(pc.struct_field(rows, number)) for number in wanted]
        hashes[matched] = list_hashes(parts)
    for row in np.flatnonzero(~matched):
        hashes[row] = list_hash(hashed_values(keys[int(row)].as_py(), fields))
    return hashes


def _value_hashes(values: pa.StringArray) -> npt.NDArray[np.uint32]:
    hashes = string_hashes(values)
    # null and the empty string both hash to 0
    hashes[_mask(pc.is_in(values, pa.array(list(_PLACEHOLDERS))))] = 0
    return hashes


def _mask(values: pa.BooleanArray) -> npt.NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False))
