"""Blocks of a slice that count, in their order.

Source: ``merge-on-read`` section 1.3, from Hudi's ``BaseHoodieLogRecordReader``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from hudi_core.errors import (
    CorruptMetadataError,
    InvalidInstantTimeError,
    UnsupportedTableError,
)
from hudi_core.log_format.block import BlockPlace, BlockType, HeaderKey, find_log_blocks
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import TimelineView
from hudi_core.storage.data_files import DataFiles

_IGNORED: Final = frozenset({BlockType.CORRUPT, BlockType.CDC})
_READ: Final = frozenset({BlockType.DELETE, BlockType.AVRO, BlockType.PARQUET})


class SliceBlock(NamedTuple):
    """A block of a log file, its content not read."""

    file: FileStatus
    place: BlockPlace

    def header(self, key: HeaderKey) -> str:
        """An entry of the header; empty where it is missing."""
        return self.place.header.get(key, "")

    @property
    def instant(self) -> InstantTime:
        """The instant that wrote it."""
        try:
            return parse_instant_time(self.header(HeaderKey.INSTANT_TIME))
        except InvalidInstantTimeError as error:
            raise CorruptMetadataError(
                self.file.path, f"a block names no instant: {error}"
            ) from error


def counted_blocks(
    files: DataFiles,
    logs: Sequence[FileStatus],
    timeline: TimelineView | None,
    until: InstantTime | None,
) -> list[SliceBlock]:
    """Return the blocks of a slice that count.

    Left out are those of instants that are not committed, or later than the state that is read;
    what a rollback took back; what a log compaction wrote again; and bytes of writers that died.
    ``logs`` are in their order; ``timeline`` has the instants that readers see, none where it is
    ``None``; ``until`` is the requested time of the state that is read, ``None`` for the latest.
    """
    found: list[SliceBlock] = []
    for log in logs:
        for block in _blocks(files, log):
            kind = block.place.type
            if kind in _IGNORED or (until is not None and block.instant > until):
                continue
            if kind == BlockType.COMMAND:
                target = block.header(HeaderKey.TARGET_INSTANT_TIME)
                found = [one for one in found if one.instant != target]
            elif timeline is not None and timeline.is_committed(block.instant):
                _require_known(block, files.base_path)
                found.append(block)
    return _after_compactions(found)


def _blocks(files: DataFiles, log: FileStatus) -> Iterator[SliceBlock]:
    with files.open(log.path, log.size) as source:
        length = source.size()

        def read(offset: int, size: int) -> bytes:
            found: bytes = source.read_at(max(0, min(size, length - offset)), offset)
            return found

        for place in find_log_blocks(read, length, log.path, skip_corrupt=True):
            yield SliceBlock(log, place)


def _require_known(block: SliceBlock, base_path: str) -> None:
    kind = block.place.type
    if kind == BlockType.HFILE:
        raise UnsupportedTableError(
            base_path,
            f"has HFile blocks in {block.file.path}",
            "Read it with Apache Hudi.",
        )
    if kind not in _READ:
        raise CorruptMetadataError(block.file.path, f"it has a block of the unknown type {kind}")


def _after_compactions(blocks: Sequence[SliceBlock]) -> list[SliceBlock]:
    """Put log compactions where the newest block they replace is."""
    written: dict[str, list[SliceBlock]] = {}
    for block in blocks:
        written.setdefault(block.instant, []).append(block)
    by_original: dict[str, str] = {}
    for instant in reversed(written):
        for block in written[instant]:
            for original in block.header(HeaderKey.COMPACTED_BLOCK_TIMES).split(","):
                if original:
                    # of a chain the newest compaction counts, which was met first
                    by_original.setdefault(original, by_original.get(instant, instant))
    replacing = {by for original, by in by_original.items() if original in written}
    kept: list[list[SliceBlock]] = []
    used: set[str] = set()
    for instant in reversed(written):
        counted = by_original.get(instant, instant)
        # a compaction comes where its originals were, or where it is once they are gone
        if (counted == instant and instant in replacing) or counted in used:
            continue
        used.add(counted)
        kept.append(written[counted])
    return [block for some in reversed(kept) for block in some]


def content_of(files: DataFiles, block: SliceBlock) -> pa.Buffer:
    """Read the content of a block."""
    place, path = block.place, block.file.path
    # no memory map: a file that became shorter meanwhile would end the process
    with files.open(path, block.file.size) as source:
        source.seek(place.offset)
        content = source.read_buffer(place.size)
    if content.size != place.size:
        raise CorruptMetadataError(path, "it ended while it was read")
    return content
