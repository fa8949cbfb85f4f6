"""Writing an HFile, as Hudi's native writer does (``hudi-format`` section 5)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import RecordKeyError
from hudi_core.hashing.bloom import TYPE_CODE
from hudi_core.metadata.hfile.block import (
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    MAX_KEY_BYTES,
    META_MAGIC,
    ROOT_INDEX_MAGIC,
    Codec,
    encode_block,
    encode_cell,
)
from hudi_core.metadata.hfile.index import IndexEntry, encode_index, index_key
from hudi_core.metadata.hfile.trailer import (
    BLOOM_BLOCK,
    Info,
    Trailer,
    encode_file_info,
    encode_trailer,
)

BLOCK_BYTES: Final = 64 * 1024
"""Bytes of cells from which on a data block is full."""


@dataclass(frozen=True, slots=True)
class HFileOptions:
    """How a file is written.

    ``schema`` is of the values, meta fields included. A data block is full from ``block_bytes`` of
    cells on. ``full_keys``: the index holds whole cell keys, as in tables of version 8.
    ``base_file``: the file says its least and greatest key, which a log block does not. ``bloom``
    is base64 text.
    """

    schema: str
    create_time_ms: int
    codec: Codec = Codec.GZIP
    block_bytes: int = BLOCK_BYTES
    full_keys: bool = False
    base_file: bool = False
    bloom: str | None = None


def write_hfile(entries: Iterable[tuple[bytes, bytes]], options: HFileOptions) -> bytes:
    """Return the bytes of an HFile.

    Entries are in ascending order of the keys' bytes, each key once; a key has at most 32,767
    bytes.
    """
    return _Writer(options).write(entries)


class _Writer:
    """One file while it is written."""

    def __init__(self, options: HFileOptions) -> None:
        self._options = options
        self._parts: list[bytes] = []
        self._size = 0
        self._index: list[IndexEntry] = []
        self._data_bytes = 0

    def write(self, entries: Iterable[tuple[bytes, bytes]]) -> bytes:
        cells: list[bytes] = []
        block_key = first = last = b""
        filled = count = key_bytes = value_bytes = 0
        for key, value in entries:
            if count and key <= last:
                raise ValueError(f"the key {key!r} comes after {last!r}")
            if len(key) > MAX_KEY_BYTES:
                raise RecordKeyError(
                    f"A record key has {len(key)} bytes", f"Use keys of up to {MAX_KEY_BYTES}."
                )
            if filled >= self._options.block_bytes:
                self._data_block(block_key, cells)
                cells, filled = [], 0
            if not cells:
                block_key = key
            if not count:
                first = key
            cell = encode_cell(key, value)
            cells.append(cell)
            filled += len(cell)
            last = key
            count += 1
            key_bytes += len(key)
            value_bytes += len(value)
        if cells:
            self._data_block(block_key, cells)
        info = self._info(count, first, last, key_bytes, value_bytes)
        return self._finish(info, count)

    def _data_block(self, key: bytes, cells: list[bytes]) -> None:
        content = b"".join(cells)
        self._data_bytes += len(content)
        previous = self._index[-1].offset if self._index else -1
        offset = self._size
        size = self._block(DATA_MAGIC, content, previous)
        self._index.append(IndexEntry(index_key(key, self._options.full_keys), offset, size))

    def _block(self, magic: bytes, content: bytes, previous: int = -1) -> int:
        block = encode_block(magic, content, self._options.codec, previous)
        self._parts.append(block)
        self._size += len(block)
        return len(block)

    def _info(
        self, count: int, first: bytes, last: bytes, key_bytes: int, value_bytes: int
    ) -> dict[str, bytes]:
        full = self._options.full_keys
        overhead = 12 if full else 0
        info: dict[str, bytes] = {
            Info.SCHEMA: self._options.schema.encode(),
            Info.VALUE_VERSION: struct.pack(">i", 1),
            Info.MAX_MEMSTORE: struct.pack(">q", 0),
            Info.LAST_KEY: index_key(last, full) if count else b"",
            Info.AVERAGE_KEY: struct.pack(">i", key_bytes // count + overhead if count else 0),
            Info.AVERAGE_VALUE: struct.pack(">i", value_bytes // count if count else 0),
            Info.CREATE_TIME: struct.pack(">q", self._options.create_time_ms),
        }
        if self._options.base_file:
            info[Info.MIN_KEY] = first
            info[Info.MAX_KEY] = last
            if self._options.bloom is not None:
                info[Info.BLOOM_TYPE] = TYPE_CODE.encode()
        return info

    def _finish(self, info: dict[str, bytes], count: int) -> bytes:
        meta_index: list[IndexEntry] = []
        if self._options.bloom is not None:
            offset = self._size
            size = self._block(META_MAGIC, self._options.bloom.encode())
            meta_index.append(IndexEntry(BLOOM_BLOCK.encode(), offset, size))
        load_on_open = self._size
        self._block(ROOT_INDEX_MAGIC, encode_index(self._index))
        self._block(ROOT_INDEX_MAGIC, encode_index(meta_index))
        info_offset = self._size
        self._block(FILE_INFO_MAGIC, encode_file_info(info))
        trailer = Trailer(
            file_info_offset=info_offset,
            load_on_open_offset=load_on_open,
            data_bytes=self._data_bytes,
            data_index_count=len(self._index),
            meta_index_count=len(meta_index),
            entry_count=count,
            index_levels=1,
            first_data_offset=self._index[0].offset if self._index else -1,
            last_data_offset=self._index[-1].offset if self._index else 0,
            codec=self._options.codec,
        )
        return b"".join((*self._parts, encode_trailer(trailer)))
