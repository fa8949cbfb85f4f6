"""Reading an HFile: single keys, many keys, prefixes, or all of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.hfile.block import (
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    LEAF_INDEX_MAGIC,
    MAX_BLOCK_BYTES,
    META_MAGIC,
    MIDDLE_INDEX_MAGIC,
    ROOT_INDEX_MAGIC,
    Cells,
    Codec,
    damaged,
    decode_block,
    decode_cells,
)
from hudi_core.metadata.hfile.index import (
    DataIndex,
    IndexEntry,
    decode_lower_index,
    decode_root_index,
    require_ordered_blocks,
    row_of,
)
from hudi_core.metadata.hfile.many_cells import (
    CellPlaces,
    Ints,
    by_length,
    find_cells,
    find_keys,
    first_key,
)
from hudi_core.metadata.hfile.trailer import TRAILER_BYTES, Info, decode_file_info, decode_trailer

# --- sources of bytes ----------------------------------------------------------------------------


TAIL_BYTES: Final = 4 * TRAILER_BYTES
"""Bytes fetched at once from the end: in most files more than trailer, indexes and file info."""


class ReadRange(Protocol):
    """Reads a part of a file."""

    def __call__(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on; fewer only where the file ends."""
        ...


class Window:
    """The bytes of one HFile, its end held in memory."""

    def __init__(self, read: ReadRange, offset: int, length: int, path: str) -> None:
        self._read, self._offset, self.length, self._path = read, offset, length, path
        if length < TRAILER_BYTES:
            raise damaged(path, f"{length} bytes are too few for an HFile")
        self._tail_begin = max(0, length - TAIL_BYTES)
        self._tail = self._fetch(self._tail_begin, length - self._tail_begin)

    def take(self, begin: int, length: int) -> bytes:
        """Return some bytes, by their place in the HFile."""
        if begin < 0 or length < 0 or begin + length > self.length:
            raise damaged(self._path, f"it has no {length} bytes from byte {begin} on")
        missing = self._tail_begin - begin
        if missing <= 0:
            return self._tail[-missing : length - missing]
        if length <= missing:
            return self._fetch(begin, length)
        return self._fetch(begin, missing) + self._tail[: length - missing]

    def _fetch(self, begin: int, length: int) -> bytes:
        data = self._read(self._offset + begin, length)
        if len(data) != length:
            raise damaged(
                self._path, f"it ends {length - len(data)} bytes before the end it should have"
            )
        return data


# --- the reader ----------------------------------------------------------------------------------


_READ_BYTES: Final = 4 * 1024 * 1024
"""Blocks that follow each other are fetched together, up to so many bytes."""
_WALKED_BYTES: Final = 4 * 1024 * 1024
"""Cells are looked for in about so many bytes at once, which fit into a processor's cache."""
_MATCHED_BYTES: Final = 16 * 1024 * 1024
"""Keys are looked for in the cells of about so many bytes at once."""


class HFileReader:
    """An open HFile: its end is read, blocks on lookup.

    The end is read in one piece as a rule.

    It keeps no block, and holds nothing open.

    ``offset`` is 0, or where the content of a log block begins. Every method refuses a damaged
    file. What gzip does not protect (codec NONE) can be wrong without notice: values, and keys that
    are still between their neighbours.
    """

    def __init__(self, read: ReadRange, length: int, path: str, offset: int = 0) -> None:
        self._path = path
        self._window = Window(read, offset, length, path)
        end = length - TRAILER_BYTES
        self.trailer = decode_trailer(self._window.take(end, TRAILER_BYTES), length, path)
        begin = self.trailer.load_on_open_offset
        section = self._window.take(begin, end - begin)
        codec = self.trailer.codec
        root = decode_block(section, 0, ROOT_INDEX_MAGIC, codec, path)
        meta = decode_block(section, root.size, ROOT_INDEX_MAGIC, codec, path)
        info = decode_block(
            section, self.trailer.file_info_offset - begin, FILE_INFO_MAGIC, codec, path
        )
        self.info: Mapping[str, bytes] = decode_file_info(info.content, path)
        self._meta = {
            entry.key: entry
            for entry in decode_root_index(meta.content, self.trailer.meta_index_count, begin, path)
        }
        self._blocks = self._data_blocks(root.content)
        self._first_keys = self._blocks.keys

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> HFileReader:
        """Return the reader of an HFile in memory."""
        return cls(lambda offset, length: data[offset : offset + length], len(data), path)

    # --- what the file says of itself ----------------------------------------

    @property
    def entry_count(self) -> int:
        """Number of its keys."""
        return self.trailer.entry_count

    @property
    def schema(self) -> str:
        """Avro schema of the values, as JSON."""
        try:
            return self.info[Info.SCHEMA].decode()
        except (KeyError, UnicodeDecodeError) as error:
            raise damaged(self._path, "its file info has no schema") from error

    @property
    def min_key(self) -> bytes | None:
        """Least key, where the file says it: base files do."""
        return self.info.get(Info.MIN_KEY)

    @property
    def max_key(self) -> bytes | None:
        """Greatest key, where the file says it."""
        return self.info.get(Info.MAX_KEY)

    def meta_block(self, name: str) -> bytes | None:
        """Return the content of a meta block, or ``None``."""
        entry = self._meta.get(name.encode())
        return None if entry is None else self._read_block(entry, META_MAGIC)

    # --- lookups --------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """Return a key's value, or ``None``; reads one block at most."""
        for _, value in self.get_many([key]):
            return value
        return None

    def get_many(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that are present with values, in key order.

        Reads each block that may hold one of them once, and blocks that follow each other together.
        """
        wanted: dict[int, list[bytes]] = {}
        for key in sorted(set(keys)):
            number = bisect_right(self._first_keys, key) - 1
            if number >= 0:
                wanted.setdefault(number, []).append(key)
        for number, cells in self._load(list(wanted)):
            for key in wanted[number]:
                place = bisect_left(cells.keys, key)
                if place < len(cells.keys) and cells.keys[place] == key:
                    yield key, cells.value(place)

    def find_many(self, keys: pa.BinaryArray) -> Iterator[tuple[Ints, pa.FixedSizeBinaryArray]]:
        """Yield present keys of very many, with values, unordered.

        What is said is the same as by :meth:`get_many`, and reads the same; nothing is made for a
        single key. One pair for values of each length: the ordinals of the keys, and the values.
        """
        wanted = list(by_length(keys))
        waiting: list[CellPlaces] = []
        size = 0
        for cells in self._many_cells(self.blocks_of(keys)):
            waiting.append(cells)
            size += len(cells.data)
            if size >= _MATCHED_BYTES:
                yield from find_keys(waiting, wanted)
                waiting, size = [], 0
        yield from find_keys(waiting, wanted)

    def blocks_of(self, keys: pa.BinaryArray) -> Sequence[int]:
        """Return the data blocks that may hold some keys.

        By their numbers.
        """
        if not len(keys) or not self._blocks:
            return []
        firsts = pa.array(self._first_keys, pa.binary())
        after = pc.search_sorted(firsts, keys, side="right").to_numpy()
        numbers = np.flatnonzero(np.bincount(after, minlength=len(firsts) + 1)[1:])
        found: list[int] = numbers.tolist()
        return found

    @property
    def block_count(self) -> int:
        """Number of its data blocks."""
        return len(self._blocks)

    def all_cells(self) -> Iterator[CellPlaces]:
        """Yield all keys with their values, in order, very many at once.

        A number of keys other than the file says is refused after the last.
        """
        count = 0
        for cells in self._many_cells(range(len(self._blocks))):
            count += len(cells)
            yield cells
        self._require_count(count)

    def scan_prefixes(self, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys with some prefixes, and their values, in order.

        Each key once.

        Reads their blocks only.
        """
        wanted = self._blocks_of_prefixes(prefixes)
        for number, cells in self._load(list(wanted)):
            for prefix in wanted[number]:
                yield from cells.of_prefix(prefix)

    def is_most(self, prefixes: Iterable[bytes], of: bytes) -> bool:
        """Whether prefixes touch half of the blocks of a shorter one."""
        return 2 * len(self._blocks_of_prefixes(prefixes)) >= len(self._blocks_of_prefixes([of]))

    def _blocks_of_prefixes(self, prefixes: Iterable[bytes]) -> Mapping[int, Sequence[bytes]]:
        """The prefixes by data blocks that may hold them, in order."""
        wanted: dict[int, list[bytes]] = {}
        last: bytes | None = None
        for prefix in sorted(prefixes):
            if last is not None and prefix.startswith(last):
                continue
            last = prefix
            number = max(0, bisect_right(self._first_keys, prefix) - 1)
            while number < len(self._blocks):
                wanted.setdefault(number, []).append(prefix)
                number += 1
                if number < len(self._blocks) and not self._first_keys[number].startswith(prefix):
                    break
        return wanted

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all keys with their values, in order; see :meth:`blocks`."""
        for cells in self.blocks():
            content = cells.content
            for key, begin, end in zip(cells.keys, cells.begins, cells.ends, strict=True):
                yield key, content[begin:end]

    def blocks(self) -> Iterator[Cells]:
        """Yield the cells of every data block, in order.

        For those who want many keys at once.

        A number of keys other than the file says is refused after the last block.
        """
        count = 0
        for _, cells in self._load(range(len(self._blocks))):
            count += len(cells.keys)
            yield cells
        self._require_count(count)

    def _require_count(self, count: int) -> None:
        if count != self.entry_count:
            raise damaged(self._path, f"it has {count} keys and says {self.entry_count}")

    # --- blocks ---------------------------------------------------------------

    def _data_blocks(self, content: bytes) -> DataIndex:
        """Return the data blocks through all levels."""
        end, count = self.trailer.load_on_open_offset, self.trailer.data_index_count
        has_levels = self.trailer.index_levels > 1
        even = None if has_levels else DataIndex.of_even(content, count, end)
        if even is not None:
            return even
        entries = decode_root_index(content, count, end, self._path, more=has_levels)
        for level in range(self.trailer.index_levels - 1, 0, -1):
            magic = LEAF_INDEX_MAGIC if level == 1 else MIDDLE_INDEX_MAGIC
            require_ordered_blocks(entries, self._path)
            lower: list[IndexEntry] = []
            for entry in entries:
                lower += decode_lower_index(self._read_block(entry, magic), end, self._path)
            entries = lower
        require_ordered_blocks(entries, self._path)
        return DataIndex.of_entries(entries, self._path)

    def _load(self, numbers: Sequence[int]) -> Iterator[tuple[int, Cells]]:
        """Yield the cells of some data blocks, by ascending number."""
        for number, content in self._contents(numbers):
            yield number, self._cells(number, content)

    def _cells(self, number: int, content: bytes) -> Cells:
        cells = decode_cells(content, self._path)
        following = self._first_keys[number + 1 : number + 2]
        if (
            not cells.keys
            or cells.keys[0] < self._first_keys[number]
            or (following and cells.keys[-1] >= following[0])
        ):
            raise self._denied()
        if number + 1 == len(self._blocks):
            stated = self.info.get(Info.LAST_KEY)
            if stated and row_of(stated, self._path) != cells.keys[-1]:
                raise damaged(self._path, "its last key is not the one it says")
        return cells

    def _many_cells(self, numbers: Sequence[int]) -> Iterator[CellPlaces]:
        """Yield the cells of some data blocks, of several at once."""
        waiting: list[bytes] = []
        size = 0
        for number, content in self._contents(numbers):
            if self.trailer.codec is Codec.NONE:
                # nothing but the cells themselves shows damage, which hides keys
                self._cells(number, content)
            elif first_key(content) < self._first_keys[number]:
                raise self._denied()
            waiting.append(content)
            size += len(content)
            if size >= _WALKED_BYTES:
                yield find_cells(waiting, self._path)
                waiting, size = [], 0
        if waiting:
            yield find_cells(waiting, self._path)

    def _denied(self) -> CorruptMetadataError:
        return damaged(self._path, "a data block has keys that its index denies")

    def _contents(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the contents of some data blocks, by ascending number."""
        position = 0
        while position < len(numbers):
            begin = self._blocks[numbers[position]].offset
            end, stop = begin, position
            while stop < len(numbers):
                block = self._blocks[numbers[stop]]
                if block.offset != end or (
                    stop > position and end + block.size - begin > _READ_BYTES
                ):
                    break
                end += block.size
                stop += 1
            data = self._window.take(begin, end - begin)
            for number in numbers[position:stop]:
                block = self._blocks[number]
                yield number, self._content(block, DATA_MAGIC, data, block.offset - begin)
            position = stop

    def _read_block(self, entry: IndexEntry, magic: bytes) -> bytes:
        return self._content(entry, magic, self._window.take(entry.offset, entry.size), 0)

    def _content(self, entry: IndexEntry, magic: bytes, data: bytes, position: int) -> bytes:
        if entry.size > MAX_BLOCK_BYTES:
            raise damaged(self._path, f"a block has {entry.size} bytes")
        block = decode_block(data, position, magic, self.trailer.codec, self._path)
        if block.size != entry.size:
            raise damaged(self._path, f"a block has {block.size} bytes and not {entry.size}")
        return block.content
