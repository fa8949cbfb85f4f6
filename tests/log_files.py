"""Log files as Apache Hudi writes them, put into tables of this project."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

import hudi_core as hudi
from hudi_core.avro.datum import encode_datum
from hudi_core.avro.wrappers import Wrapped
from hudi_core.log_format.block import (
    BlockType,
    DeletedRecord,
    HeaderKey,
    encode_avro_content,
    encode_delete_content,
    encode_log_block,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_core.model.files import FileSlice, LogFileName, join_path
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, instant_time_of, to_datetime
from hudi_core.schema.avro_types import record_to_avro
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from hudi_core.timeline.serde import encode
from tests.property.test_metadata_model import client_of

NO_METADATA_TABLE: Final = {"hoodie.metadata.enable": "false"}


def merge_on_read(table: hudi.Table) -> hudi.Table:
    """The table as one of the type MERGE_ON_READ, whose writes so far are base files."""
    update_properties(PosixStorage(table.path), {"hoodie.table.type": "MERGE_ON_READ"})
    return hudi.Table.open(table.path)


def data_block(
    instant: str,
    rows: Sequence[Mapping[str, Any]],
    fields: Sequence[pa.Field],
    *,
    kind: BlockType = BlockType.AVRO,
    header: Mapping[HeaderKey, str] | None = None,
) -> bytes:
    """A block of rows with their meta columns; values are as Avro has them, but for Parquet."""
    every = [*(pa.field(name, pa.string()) for name in META_COLUMNS), *fields]
    schema = record_to_avro("t_record", "hoodie.t", every)
    given = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(schema)}
    if kind is BlockType.AVRO:
        parsed = fastavro.parse_schema(schema)
        assert isinstance(parsed, dict)
        content = encode_avro_content([encode_datum(row, parsed) for row in rows])
    else:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist([*map(dict, rows)], pa.schema(every)), sink)
        content = sink.getvalue().to_pybytes()
    return encode_log_block(kind, {**given, **(header or {})}, content)


def delete_block(
    instant: str,
    deleted: Mapping[str, Wrapped | None],
    header: Mapping[HeaderKey, str] | None = None,
) -> bytes:
    """A block of deleted record keys with their ordering values."""
    records = [DeletedRecord(key, "", ordering) for key, ordering in deleted.items()]
    content = encode_delete_content(records)
    given = {HeaderKey.INSTANT_TIME: instant, **(header or {})}
    return encode_log_block(BlockType.DELETE, given, content)


def positions(of: Sequence[int], base_instant: str) -> dict[HeaderKey, str]:
    """Headers that say where the rows of a block are in the base file of an instant."""
    return {
        HeaderKey.RECORD_POSITIONS: base64.b64encode(BitMap64(of).serialize()).decode(),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base_instant,
    }


def put_log(
    table: hudi.Table,
    into: FileSlice,
    time: InstantTime,
    content: bytes,
    *,
    completed: bool = True,
    operation: str = "UPSERT",
    inserts: int | None = None,
) -> Path:
    """Write a log file to a file slice by a deltacommit, completed a millisecond later or never.

    ``inserts`` is how many new keys the commit counts in it.
    """
    client: TableMetaClient = client_of(Path(table.path))
    name = LogFileName(into.file_id, time, 1, "0-0-1")
    path = Path(table.path, join_path(into.partition_path, str(name)))
    path.write_bytes(content)
    requested = Instant(time, Action.DELTACOMMIT, State.REQUESTED)
    inflight = client.active.to_inflight(client.active.create_requested(requested))
    stat = WriteStat(
        file_id=into.file_id,
        path=join_path(into.partition_path, str(name)),
        prev_commit=into.base_instant,
        file_size_in_bytes=len(content),
        partition_path=into.partition_path,
        log_version=1,
        num_inserts=inserts,
        base_file="" if into.base_file is None else into.base_file.status.name,
        log_files=(str(name),),
    )
    metadata = CommitMetadata(
        partition_to_write_stats={into.partition_path: (stat,)},
        operation_type=operation,
        # hudi-rs takes it from the footer of a base file otherwise
        extra_metadata={SCHEMA_KEY: client.schema_text_at(client.timeline())},
    )
    if completed:
        client.active.complete(inflight, later(time, 1), encode(metadata), client.timeline())
    return path


def later(time: InstantTime, milliseconds: int) -> InstantTime:
    """The instant time so many milliseconds after another."""
    return instant_time_of(to_datetime(time) + timedelta(milliseconds=milliseconds))
