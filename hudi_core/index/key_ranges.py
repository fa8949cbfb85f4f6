"""Pruning of candidate files by the key ranges of ``column_stats``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.files import BaseFile, FileStatus, PartitionPath
from hudi_core.model.ranges import ValueRanges
from hudi_core.schema.table_schema import RECORD_KEY


def key_ranges(
    client: TableMetaClient, files: Sequence[tuple[PartitionPath, BaseFile]]
) -> ValueRanges | None:
    """Ranges of the record keys in some base files.

    ``None`` where none are kept.

    In ``files`` all those of one partition are next to each other.
    """
    listed: dict[PartitionPath, list[FileStatus]] = {}
    for path, file in files:
        listed.setdefault(path, []).append(file.status)
    columns = FileColumns.of_statuses(listed)
    keys = FileKeys.of(client)
    name = keys.same_column if keys.are_made else RECORD_KEY
    if name is None:
        return None
    return table_lister(client).file_ranges(columns, name, pa.string())
