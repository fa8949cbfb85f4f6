"""Bytes of the metadata table's base files, log files and marks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
_AT_A_TIME: Final = 1 << 16
_KEYS_IN_FULL: Final = 8
"""The last version whose indexes hold whole cell keys."""


def encode_base_file(
    change: PartitionChange, config: TableConfig, file_name: str, time: InstantTime
) -> bytes:
    """Return the base file of new records.

    ``config`` is of the table or of its metadata table.
    """
    encoder = RecordEncoder(file_name)
    keys = [pa.array([one.key for one in change.records], pa.string())]
    keys += [some.keys for some in change.alike]
    entries = _sorted(encoder, change)
    return _base_file(pa.chunked_array(keys), entries, encoder.schema, config, time)


def encode_base_entries(
    entries: Sequence[tuple[bytes, bytes]], schema: str, config: TableConfig, time: InstantTime
) -> bytes:
    """Return a base file of records that are encoded already, in order."""
    keys = pa.array([key.decode() for key, _ in entries], pa.string())
    return _base_file(keys, entries, schema, config, time)


def _base_file(
    keys: pa.Array | pa.ChunkedArray,
    entries: Iterable[tuple[bytes, bytes]],
    schema: str,
    config: TableConfig,
    time: InstantTime,
) -> bytes:
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
            _sorted(encoder, change),
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


def _sorted(encoder: RecordEncoder, change: PartitionChange) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of new records in order.

    Of very many keys few are objects at a time.
    """
    some = [map(encoder.encode, change.records), _in_order(encoder, change.alike)]
    return heapq.merge(sorted(some[0]), some[1]) if change.records else iter(some[1])


def _in_order(
    encoder: RecordEncoder, alike: Sequence[AlikeRecords]
) -> Iterator[tuple[bytes, bytes]]:
    if not alike:
        return
    values = [encoder.encode(MetadataRecord("", one.type, one.payload))[1] for one in alike]
    keys = pa.concat_arrays([one.keys.cast(pa.large_binary()) for one in alike])
    of_keys = np.repeat(np.arange(len(alike)), [len(one.keys) for one in alike])
    order = pc.array_sort_indices(keys).to_numpy()
    for start in range(0, len(order), _AT_A_TIME):
        some = order[start : start + _AT_A_TIME]
        own = (values[one] for one in of_keys[some].tolist())
        yield from zip(keys.take(pa.array(some)).to_pylist(), own, strict=True)


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
