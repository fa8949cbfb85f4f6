"""Bytes of the metadata table's base files, log files and marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Final

import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.log_format.block import (
    NATURAL_ORDER,
    BlockType,
    DeletedRecord,
    HeaderKey,
    encode_delete_content,
    encode_log_block,
)
from hudi_core.metadata.hfile.block import Codec
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.log.record_codec import RecordEncoder
from hudi_core.metadata.log.records import AlikeRecords, MetadataRecord, PartitionChange
from hudi_core.model.instant_time import InstantTime

_BLOOM_ENTRIES: Final = 10_000
_BLOOM_FPP: Final = 1e-9
_BLOOM_MAX_ENTRIES: Final = 100_000
_KEYS_IN_FULL: Final = 8
"""The last version whose indexes hold whole cell keys."""


def encode_base_file(
    records: Iterable[MetadataRecord], config: TableConfig, file_name: str, time: InstantTime
) -> bytes:
    """Return a base file.

    Records may be in any order, each key once. ``config`` is of the table or of its metadata table.
    """
    encoder = RecordEncoder(file_name)
    entries = sorted(map(encoder.encode, records))
    return encode_base_entries(entries, encoder.schema, config, time)


def encode_base_entries(
    entries: Sequence[tuple[bytes, bytes]], schema: str, config: TableConfig, time: InstantTime
) -> bytes:
    """Return a base file of records that are encoded already."""
    keys = pa.array([key.decode() for key, _ in entries], pa.string())
    bloom = DynamicBloom.build(keys, _BLOOM_ENTRIES, _BLOOM_FPP, _BLOOM_MAX_ENTRIES)
    return write_hfile(
        entries,
        HFileOptions(
            schema=schema,
            create_time_ms=config.zone.epoch_millis(time),
            codec=Codec.GZIP,
            full_keys=config.version <= _KEYS_IN_FULL,
            base_file=True,
            bloom=bloom.to_base64(),
        ),
    )


def encode_log_file(
    partition: str,
    change: PartitionChange,
    config: TableConfig,
    times: tuple[InstantTime, InstantTime],
) -> bytes:
    """Return a log file of new records, deleted keys, or both.

    ``change`` is not empty. ``times`` are that of the file's instant and that at which the file is
    made.
    """
    time, now = times
    parts = []
    if change.new:
        encoder = RecordEncoder()
        content = write_hfile(
            sorted(chain(map(encoder.encode, change.records), _encoded(encoder, change.alike))),
            HFileOptions(
                schema=encoder.schema,
                create_time_ms=config.zone.epoch_millis(now),
                full_keys=config.version <= _KEYS_IN_FULL,
            ),
        )
        header = {HeaderKey.SCHEMA: encoder.schema, HeaderKey.INSTANT_TIME: time}
        parts.append(encode_log_block(BlockType.HFILE, header, content))
    if change.deleted:
        header = {
            HeaderKey.SCHEMA: RecordEncoder().schema,
            HeaderKey.INSTANT_TIME: time,
        }
        deleted = [DeletedRecord(key, partition, NATURAL_ORDER) for key in sorted(change.deleted)]
        parts.append(encode_log_block(BlockType.DELETE, header, encode_delete_content(deleted)))
    return b"".join(parts)


def _encoded(
    encoder: RecordEncoder, alike: Iterable[AlikeRecords]
) -> Iterator[tuple[bytes, bytes]]:
    for some in alike:
        _, value = encoder.encode(MetadataRecord("", some.type, some.payload))
        yield from zip(some.keys.cast(pa.binary()).to_pylist(), repeat(value), strict=False)


def encode_first_log_file(time: InstantTime) -> bytes:
    """Return the empty log file that begins every file group.

    It deletes nothing.
    """
    content = encode_delete_content(_NOTHING)
    return encode_log_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: time}, content)


def encode_partition_mark(time: InstantTime) -> bytes:
    """Return the file that makes a folder a partition."""
    return f"#partition metadata\ncommitTime={time}\npartitionDepth=1\n".encode()


_NOTHING: Final[Sequence[DeletedRecord]] = ()
