"""The archive of layout 1: log files ``.hoodie/archived/.commits_.archive.N`` of Avro records.

Each record is one file of one instant that left the active timeline. Its schema (Hudi's
``HoodieArchivedMetaEntry``) is in the header of its block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hudi_core.avro import decode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format import (
    BlockType,
    HeaderKey,
    LogBlock,
    decode_avro_content,
    read_log_blocks,
)
from hudi_core.model.protocols import Storage

MAX_ARCHIVE_BYTES: Final = 1024 * 1024 * 1024
"""Largest archive file that is read."""
_NAME: Final = re.compile(r"\.commits_\.archive\.(?P<number>[0-9]+)(_.*)?")
_MERGE_PLAN: Final = "mergeArchivePlan"
"""What Hudi puts beside them while it merges small ones."""


def read_archive_log(storage: Storage, folder: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records of an archive's files, the oldest file first."""
    for name in _names(storage, folder):
        data = storage.read(name, MAX_ARCHIVE_BYTES)
        path = f"{storage.root}/{name}"
        for block in read_log_blocks(data, path):
            if block.type == BlockType.AVRO:
                yield from _records(block, path)


def archive_files(storage: Storage, folder: str) -> list[str]:
    """Paths of an archive's files, and of the plan to merge them."""
    plans = (one.path for one in storage.list(folder) if one.name == _MERGE_PLAN)
    return [*_names(storage, folder), *plans]


def _names(storage: Storage, folder: str) -> list[str]:
    """Paths of the archive files, by their numbers."""
    found = [
        (int(match["number"]), status.path)
        for status in storage.list(folder)
        if (match := _NAME.fullmatch(status.name))
    ]
    return [path for _, path in sorted(found)]


def _records(block: LogBlock, path: str) -> Iterator[dict[str, Any]]:
    text = block.header.get(HeaderKey.SCHEMA)
    if text is None:
        raise CorruptMetadataError(path, "an Avro block has no schema")
    schema = parse_writer_schema(text, path).parsed
    for datum in decode_avro_content(block.content, path):
        yield decode_datum(datum, schema, path)
