"""Record keys in a footer: minimum, maximum, and a bloom filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.hashing.bloom import DynamicBloom

_SLACK = 0.1
"""How much an inherited filter may be overfilled; doubles a rate of 1e-9 or so."""
_FIRST_SUPPLEMENTARY = 0xF0
"""UTF-8 begins characters beyond U+FFFF, and only them, with this byte or a greater one."""


@dataclass(frozen=True, slots=True)
class BloomSizing:
    """How large the bloom filter of a file is.

    ``fpp`` is the rate of false positives. ``entries`` is the number of keys for which a row of the
    filter is made, ``None`` for as many as the file has, all in one row. Beyond ``max_entries``
    keys, a filter of set ``entries`` does not grow.
    """

    fpp: float = 1e-9
    max_entries: int = 100_000
    entries: int | None = None


class RecordKeyCollector:
    """Collects the record keys of one file.

    The least and greatest key are those of Java's ``String.compareTo``, by UTF-16 units: readers
    compare so, and it differs from the order of UTF-8 bytes for characters beyond U+FFFF.
    """

    def __init__(self, bloom: BloomSizing | None) -> None:
        self._sizing = bloom
        self._data: list[npt.NDArray[np.uint8]] = []
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._inherited: DynamicBloom | None = None
        self.min_key: str | None = None
        self.max_key: str | None = None

    def inherit(
        self,
        known: KeyFooter,
        added: pa.ChunkedArray,
        stay: Sequence[pa.ChunkedArray] | None = None,
    ) -> bool:
        """Take over the key footer of the file's previous version.

        Saves hashing every key of a file of which a few rows changed.

        ``added`` are the new keys. ``stay`` are the others, where some are gone: a bound may be one
        of those, and must not be kept. Returns whether it was possible; then only ``added`` are yet
        to be given to :meth:`add`, else all keys.
        """
        if self._sizing is None or known.bloom is None or known.min_key is None:
            return False
        if self._sizing.entries is None:
            self._inherited = known.bloom.extended(added, _SLACK)
        if self._inherited is None:
            return False
        if stay is None:
            self.min_key, self.max_key = known.min_key, known.max_key
        else:
            for keys in chain.from_iterable(one.chunks for one in stay):
                self._widen(keys)
        return True

    def add(self, keys: pa.StringArray) -> None:
        """Take note of some keys."""
        if not len(keys):
            return
        content, ends = self._widen(keys)
        if self._sizing is not None and self._inherited is None:
            # copies, so that not the whole batch stays in memory until the file is complete
            self._data.append(content.copy())
            self._lengths.append(np.diff(ends))

    def _widen(self, keys: pa.StringArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Widen the bounds by keys; returns their bytes and ends."""
        large = keys.cast(pa.large_string())
        _, offsets, data = large.buffers()
        ends = np.frombuffer(offsets, np.int64, len(large) + 1, large.offset * 8)
        content = np.frombuffer(data, np.uint8, int(ends[-1] - ends[0]), int(ends[0]))
        if len(keys):
            low, high = _extremes(keys, content)
            self.min_key = _pick(min, self.min_key, low)
            self.max_key = _pick(max, self.max_key, high)
        return content, ends

    def bloom(self) -> DynamicBloom | None:
        """Return the bloom filter of all keys; ``None`` when none was wanted."""
        if self._sizing is None:
            return None
        if self._inherited is not None:
            return self._inherited
        lengths = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        data = np.concatenate([np.zeros(0, np.uint8), *self._data])
        count = len(lengths) - 1
        keys = pa.LargeStringArray.from_buffers(
            count, pa.py_buffer(np.cumsum(lengths)), pa.py_buffer(data)
        )
        if self._sizing.entries is None:
            return DynamicBloom.fitted(keys, self._sizing.fpp)
        return DynamicBloom.build(
            keys, self._sizing.entries, self._sizing.fpp, self._sizing.max_entries
        )


def _extremes(keys: pa.StringArray, content: npt.NDArray[np.uint8]) -> tuple[str, str]:
    if int(content.max(initial=0)) < _FIRST_SUPPLEMENTARY:
        found = pc.min_max(keys)
        return str(found["min"]), str(found["max"])
    strings = keys.to_pylist()
    return min(strings, key=_utf16), max(strings, key=_utf16)


def _pick(choose: Callable[..., str], known: str | None, new: str) -> str:
    return new if known is None else choose(known, new, key=_utf16)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")
