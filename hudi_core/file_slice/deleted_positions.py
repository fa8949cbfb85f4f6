"""Positions of dead rows in base files, as delete blocks record them.

Those of split tables have the positions in the header, so that no row is read. Where the base file
is another one by now, because a compaction has come between a delete and its commit, the keys in
the block are looked for in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.reader import FileContext, read_record_keys
from hudi_core.config.merge_rules import MergeRules, merge_rules
from hudi_core.config.table import TableConfig
from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from hudi_core.file_slice.blocks import SliceBlock, blocks_of_slice, content_of
from hudi_core.file_slice.stored_slice import own_instants
from hudi_core.log_format.block import BlockType, HeaderKey, decode_delete_content
from hudi_core.log_format.positions import Positions, decode_positions
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.client import FileSystemViewManager
from hudi_core.model.commit import CommitMetadata, WriteOperation, WriteStat
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    BasePath,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import DataFiles, FetchedFiles

_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Files:
    """The data files of a table, to read keys of them."""

    base_path: BasePath
    files: DataFiles
    table: TableConfig
    schema: TableSchema
    rules: MergeRules
    fetched: FetchedFiles | None = None


def positions_of_commit(
    client: TableMetaClient, metadata: CommitMetadata, views: FileSystemViewManager | None
) -> dict[str, Positions]:
    """The rows that one commit deletes, by paths of base files.

    ``views`` are those before the commit: where the base file of a group is not that whose rows
    were deleted, they are found by their keys. Without one, it is the file that the commit names.
    """
    is_merged = metadata.operation_type == WriteOperation.COMPACT
    deletes = [] if is_merged else list(_deletes(metadata))
    if not (is_merged or deletes):
        return {}
    partitions = sorted(PartitionPath(one) for one in metadata.partition_to_write_stats)
    slices = () if views is None else views.view().latest_slices(partitions)
    if is_merged:
        return positions_of_slices(client, _merged(client, metadata, slices))
    present = {one.group: one.base_file for one in slices if one.base_file is not None}
    logs: dict[str, list[FileStatus]] = {}
    bases: dict[str, BaseFile] = {}
    for group, stat, log in deletes:
        base = present.get(group) or _named_base(stat, group.partition_path)
        bases[base.path] = base
        logs.setdefault(base.path, []).append(log)
    return _found(client, [(bases[path], some) for path, some in logs.items()])


def _deletes(metadata: CommitMetadata) -> Iterator[tuple[FileGroupId, WriteStat, FileStatus]]:
    """The log files of a commit, with their file groups."""
    for stat in metadata.stats:
        name = LogFileName.parse((stat.path or "").rpartition("/")[2])
        if stat.path is not None and name is not None and not name.is_cdc:
            partition, file_id = stat.partition_path or "", stat.file_id or name.file_id
            group = FileGroupId(PartitionPath(partition), FileId(file_id))
            yield group, stat, FileStatus(stat.path, stat.file_size_in_bytes or 0)


def _merged(
    client: TableMetaClient, metadata: CommitMetadata, slices: Sequence[FileSlice]
) -> Iterator[FileSlice]:
    """The slices that a compaction makes of those before it.

    Logs that were complete only after it was requested come along.
    """
    former = {one.group: one for one in slices}
    done = {
        one.requested_time: one.effective_completion_time
        for one in client.timeline().completed_writes()
    }
    for stat in metadata.stats:
        name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
        if stat.path is None or name is None:
            continue
        group = FileGroupId(PartitionPath(stat.partition_path or ""), name.file_id)
        if (before := former.get(group)) is not None:
            own = name.instant
            later = [
                one
                for one in before.log_files
                if done.get(one.name.instant, one.name.instant) > own
            ]
            base = BaseFile(FileStatus(stat.path, stat.file_size_in_bytes or 0), name)
            yield FileSlice(group, own, base, tuple(later))


def positions_of_slices(
    client: TableMetaClient, slices: Iterable[FileSlice], *, takes_rows: bool = False
) -> dict[str, Positions]:
    """All deleted rows of slices, by the paths of base files.

    Base files without dead rows are left out. ``takes_rows``: rows in logs, which other engines
    have written, are passed over.
    """
    return _found(
        client,
        [
            (one.base_file, [log.status for log in one.log_files])
            for one in slices
            if one.base_file is not None and one.log_files
        ],
        takes_rows=takes_rows,
    )


def _found(
    client: TableMetaClient,
    slices: Sequence[tuple[BaseFile, Sequence[FileStatus]]],
    *,
    takes_rows: bool = False,
) -> dict[str, Positions]:
    if not slices:
        return {}
    config = client.config
    files = _Files(client.base_path, client.files, config, client.schema, merge_rules(config))

    def positions(item: tuple[BaseFile, Sequence[FileStatus]]) -> Positions:
        return dead_positions(files, *item, takes_rows=takes_rows)

    found = zip(slices, client.run_map(positions, slices), strict=True)
    return {base.path: dead for (base, _), dead in found if len(dead)}


def _named_base(stat: WriteStat, partition_path: PartitionPath) -> BaseFile:
    """The base file of a log, by the write stat."""
    name = BaseFileName.parse(stat.base_file or "")
    if name is None:
        raise CorruptMetadataError(stat.path or "", "the commit names no base file of the log")
    return BaseFile(FileStatus(join_path(partition_path, str(name)), 0), name)


def dead_positions(
    files: FileContext, base: BaseFile, logs: Sequence[FileStatus], *, takes_rows: bool = False
) -> Positions:
    """The deleted rows of a base file, in ascending order."""
    fetched = FetchedFiles()
    blocks = blocks_of_slice(files.files, logs, own_instants(logs), None, fetched)
    found: list[Positions] = [_NONE]
    moved: list[SliceBlock] = []
    for block in blocks:
        if block.place.type != BlockType.DELETE:
            if takes_rows:
                continue
            raise UnsupportedTableError(
                files.base_path,
                f"has rows in the log file {block.path}, though its mode is split",
                "Another engine has written it. Compact the table: `hudi compact PATH`.",
            )
        text = block.header(HeaderKey.RECORD_POSITIONS)
        instant = block.header(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
        if text and instant == base.instant:
            found.append(decode_positions(text, block.path))
        else:
            moved.append(block)
    if moved:
        found.append(_by_keys(files, base, moved, fetched))
    for log in logs:
        fetched.take(log.path)
    return np.unique(np.concatenate(found))


def _by_keys(
    files: FileContext, base: BaseFile, blocks: Collection[SliceBlock], fetched: FetchedFiles
) -> Positions:
    """The rows of a base file whose keys delete blocks have."""
    keys = [
        one.record_key
        for block in blocks
        for one in decode_delete_content(
            content_of(files.files, block, fetched).to_pybytes(), block.path
        )
    ]
    stored = read_record_keys(files, base.path, base.size or None)
    found: Positions = np.flatnonzero(pc.is_in(stored, value_set=pa.array(keys, pa.string())))
    return found
