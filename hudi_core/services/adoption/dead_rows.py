"""Rows that a format has deleted in files, as logs.

The files become base files as they are. In a Hudi table the positions of such rows are in a log
file of their file group, beside the keys, by which readers that merge by keys leave them out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from hudi_core.base_file.footer import read_columns
from hudi_core.config.write import WriteConfig
from hudi_core.errors import AlreadyExistsError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileStatus,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.found_table import FoundFile
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.timeline.serde import encode
from hudi_core.write.log_output import LogDeletes, log_of_deletes

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
    write = WriteConfig.from_options(client.options)
    of = client.base_path, client.storage_options, client.config, client.schema
    context = WriteContext(*of, write, instant)
    stats: dict[str, list[WriteStat]] = {}
    for one in found():
        stats.setdefault(one[1], []).append(_logged(client, context, *one))
    metadata = CommitMetadata(
        partition_to_write_stats={path: tuple(some) for path, some in stats.items()},
        extra_metadata={SCHEMA_KEY: client.config.create_schema or ""},
        operation_type=WriteOperation.DELETE,
    )
    completion = client.clock.next_time()
    client.active.complete(requested.to(State.INFLIGHT), completion, encode(metadata))


def _logged(
    client: TableMetaClient,
    context: WriteContext,
    file: FoundFile,
    partition_path: PartitionPath,
    base: BaseFileName,
) -> WriteStat:
    """Write the log of one file."""
    dead = np.empty(0, np.int64) if file.dead is None else file.dead
    path = join_path(partition_path, str(base))
    keys = read_columns(client, path, [RECORD_KEY]).column(RECORD_KEY).take(pa.array(dead))
    stored = BaseFile(FileStatus(path, file.size), base)
    deletes = LogDeletes(keys.combine_chunks(), (), dead)
    name = log_name(base, context.instant)
    data, written = log_of_deletes(context, partition_path, name, stored, deletes)
    with contextlib.suppress(AlreadyExistsError):
        client.storage.put_if_absent(written.path, data)
    group = FileGroupId(partition_path, base.file_id)
    return written.stat(group, stored, context.instant)
