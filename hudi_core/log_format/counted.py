"""Blocks of a file group's logs that count, in their order.

The same rules for the logs of a table and of its metadata table. Source: Hudi's
``BaseHoodieLogRecordReader``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hudi_core.errors import CorruptMetadataError, InvalidInstantTimeError
from hudi_core.log_format.block import BlockPlace, BlockType, HeaderKey
from hudi_core.model.instant_time import InstantTime, parse_instant_time

File = TypeVar("File")
_ROLLBACK: Final = "0"


@dataclass(frozen=True, slots=True)
class FoundBlock(Generic[File]):
    """A block of a log file, its content not read.

    ``file`` is what reads it, ``path`` names it in errors.
    """

    file: File
    path: str
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
            raise CorruptMetadataError(self.path, f"a block names no instant: {error}") from error


def counted_blocks(
    blocks: Iterable[FoundBlock[File]], counts: Callable[[InstantTime], bool]
) -> list[FoundBlock[File]]:
    """Return the blocks of a file group that count.

    Left out are those of instants that do not count, what a later block rolls back, and what a log
    compaction wrote again. ``blocks`` are in the order of the files.
    """
    found: list[FoundBlock[File]] = []
    for block in blocks:
        if block.place.type == BlockType.COMMAND:
            if block.header(HeaderKey.COMMAND_BLOCK_TYPE) != _ROLLBACK:
                raise CorruptMetadataError(block.path, "a block has a command that is no rollback")
            target = block.header(HeaderKey.TARGET_INSTANT_TIME)
            found = [one for one in found if one.instant != target]
        elif counts(block.instant):
            found.append(block)
    return _after_compactions(found)


def _after_compactions(blocks: Sequence[FoundBlock[File]]) -> list[FoundBlock[File]]:
    """Put log compactions where the newest block they replace is."""
    written: dict[str, list[FoundBlock[File]]] = {}
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
    kept: list[list[FoundBlock[File]]] = []
    used: set[str] = set()
    for instant in reversed(written):
        counted = by_original.get(instant, instant)
        # a compaction comes where its originals were, or where it is once they are gone
        if (counted == instant and instant in replacing) or counted in used:
            continue
        used.add(counted)
        kept.append(written[counted])
    return [block for some in reversed(kept) for block in some]
