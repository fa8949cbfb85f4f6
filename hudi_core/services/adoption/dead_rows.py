"""Rows that a format has deleted in files, as logs.

The files become base files as they are. In a Hudi table the positions of such rows are in a log
file of their file group, beside the keys, by which readers that merge by keys leave them out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import AlreadyExistsError, DataFileError
from hudi_core.keygen import key_generator
from hudi_core.log_format.block import BlockType, HeaderKey, encode_deletes, encode_log_block
from hudi_core.log_format.positions import encode_positions
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hudi_core.model.files import BaseFileName, LogFileName, PartitionPath, join_path
from hudi_core.model.found_table import FoundFile
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.serde import encode

Adopted = tuple[FoundFile, PartitionPath, BaseFileName]
"""A file with dead rows, and the base file that it has become."""


def log_name(base: BaseFileName, instant: InstantTime) -> LogFileName:
    """The log file with the dead rows of a base file."""
    return LogFileName(base.file_id, instant, 1, base.write_token)


def delete_dead_rows(
    client: TableMetaClient, instant: InstantTime, found: Callable[[], Iterable[Adopted]]
) -> None:
    """Make the commit that deletes the dead rows of files.

    One that is there stays; what a run before has left of it is gone on with.
    """
    done = client.timeline().find(instant)
    if done is not None and done.is_completed:
        return
    requested = Instant(instant, Action.DELTACOMMIT, State.REQUESTED)
    with contextlib.suppress(AlreadyExistsError):
        client.active.create_requested(requested)
    with contextlib.suppress(AlreadyExistsError):
        client.active.to_inflight(requested)
    stats: dict[str, list[WriteStat]] = {}
    for one in found():
        stats.setdefault(one[1], []).append(_logged(client, instant, *one))
    metadata = CommitMetadata(
        partition_to_write_stats={path: tuple(some) for path, some in stats.items()},
        extra_metadata={SCHEMA_KEY: client.config.create_schema or ""},
        operation_type=WriteOperation.DELETE,
    )
    completion = client.clock.next_time()
    client.active.complete(requested.to(State.INFLIGHT), completion, encode(metadata))


def _logged(
    client: TableMetaClient,
    instant: InstantTime,
    file: FoundFile,
    partition_path: PartitionPath,
    base: BaseFileName,
) -> WriteStat:
    """Write the log of one file."""
    dead = np.empty(0, np.int64) if file.dead is None else file.dead
    keys = _keys(client, join_path(partition_path, str(base)), dead)
    header = {
        HeaderKey.INSTANT_TIME: str(instant),
        HeaderKey.SCHEMA: client.schema.to_avro(client.config.name, with_meta=True),
        HeaderKey.RECORD_POSITIONS: encode_positions(dead),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: str(base.instant),
    }
    content = encode_deletes(keys, partition_path, None, pa.nulls(len(keys)))
    data = encode_log_block(BlockType.DELETE, header, content)
    name = log_name(base, instant)
    path = join_path(partition_path, str(name))
    with contextlib.suppress(AlreadyExistsError):
        client.storage.put_if_absent(path, data)
    return WriteStat(
        file_id=base.file_id,
        path=path,
        prev_commit=instant,
        num_writes=0,
        num_deletes=len(keys),
        total_write_bytes=len(data),
        file_size_in_bytes=len(data),
        partition_path=partition_path,
        log_version=name.version,
        log_offset=0,
        base_file=str(base),
        log_files=(str(name),),
    )


def _keys(client: TableMetaClient, path: str, dead: npt.NDArray[np.int64]) -> pa.StringArray:
    """The record keys of the dead rows of a base file."""
    config, schema = client.config, client.schema
    tops = list(dict.fromkeys(name.partition(".")[0] for name in config.record_key_fields))
    try:
        with client.files.open(path) as source:
            rows = pq.ParquetFile(source).read(columns=tops).take(pa.array(dead))
    except (OSError, pa.ArrowInvalid) as error:
        raise DataFileError(path, str(error)) from error
    wanted = pa.schema([schema.arrow.field(name) for name in tops])
    columns = [rows.column(one.name).cast(one.type).combine_chunks() for one in wanted]
    batch = pa.RecordBatch.from_arrays(columns, schema=wanted)
    return key_generator(config, schema).record_keys(batch).cast(pa.string())
