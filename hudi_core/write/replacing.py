"""Which file groups a replacing write takes out of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.schema import SchemaConfig
from hudi_core.config.table import TableConfig
from hudi_core.engine.base import TaskContext
from hudi_core.engine.python_rows import row_of_values
from hudi_core.errors import (
    PartitionValueError,
    SchemaError,
    UnknownPartitionError,
    UnsafePathError,
)
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.keygen import key_generator
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.statistics.row_counts import row_counts
from hudi_core.model.client import SliceView
from hudi_core.model.files import FileSlice, PartitionPath
from hudi_core.model.operation import Operation, Replaces
from hudi_core.rows.staging import normalised
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.view.storage_lister import METADATA_FOLDER

PartitionLike = str | Mapping[str, Any]
"""A partition as its path, or as the values of the partition columns."""
_SHOWN: Final = 10


def replaced_slices(
    view: SliceView, operation: Operation, partitions: Sequence[PartitionPath]
) -> Sequence[FileSlice]:
    """Return the file slices that a write takes out of the table.

    ``view`` is the table as the write found it. An overwrite of the table replaces all partitions,
    whatever ``partitions`` has.
    """
    everywhere = operation.replaces is Replaces.TABLE
    return view.latest_slices(None if everywhere else partitions)


def replaced_groups(
    view: SliceView, operation: Operation, partitions: Sequence[PartitionPath]
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the file groups of :func:`replaced_slices`, by partition path."""
    found: dict[str, list[str]] = {}
    for slice_ in replaced_slices(view, operation, partitions):
        found.setdefault(slice_.partition_path, []).append(slice_.file_id)
    return {path: tuple(sorted(found[path])) for path in sorted(found)}


def rows_of(client: TableMetaClient, slices: Sequence[FileSlice]) -> dict[str, int]:
    """Row counts of file slices, by the path of their first file.

    Slices with logs are read.
    """
    timeline = client.timeline()
    logged = [one for one in slices if one.log_files]
    read = partial(StoredSlices(client, timeline).merged, columns=[RECORD_KEY])
    merged = zip(logged, client.run_map(read, logged), strict=True)
    files = [one.base_file for one in slices if one.base_file and not one.log_files]
    return {
        **row_counts(client, timeline, ((file.instant, file.path) for file in files)),
        **{one.files[0].path: rows.num_rows for one, rows in merged},
    }


def partition_paths_of(
    partitions: Iterable[PartitionLike], config: TableConfig, schema: TableSchema
) -> list[PartitionPath]:
    """Return the paths of partitions, each once, in order."""
    if not config.partition_fields:
        raise PartitionValueError(
            "The table has no partitions",
            "Use insert_overwrite_table without rows to remove all of them.",
        )
    return [
        PartitionPath(path)
        for path in sorted(
            {one if isinstance(one, str) else _path_of(one, config, schema) for one in partitions}
        )
    ]


def partitions_of_rows(
    _: TaskContext,
    batches: Iterator[pa.RecordBatch],
    config: TableConfig,
    schema: TableSchema,
    how: SchemaConfig,
) -> Iterator[frozenset[PartitionPath]]:
    """Yield the partitions of the rows of one input task."""
    keys = key_generator(replace(config, record_key_fields=()), schema)
    for batch in normalised(batches, schema, how):
        paths = keys.partition_paths(batch)
        yield frozenset(PartitionPath(path) for path in paths.dictionary.to_pylist())


def require_known(view: SliceView, partitions: Iterable[PartitionPath]) -> None:
    """Refuse partitions that hold no rows: more likely misspelt than meant.

    Other partitions are looked at only to name them in the error.
    """
    named = list(partitions)
    found = {one.partition_path for one in view.latest_slices([p for p in named if _can_be(p)])}
    unknown = [path for path in named if path not in found]
    if unknown:
        known = {slice_.partition_path for slice_ in view.latest_slices()}
        shown = ", ".join(map(repr, sorted(known)[:_SHOWN])) or "(none)"
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        raise UnknownPartitionError(
            f"The table has no rows in the partition {', '.join(map(repr, unknown))}",
            f"Nothing was deleted. Its partitions are: {shown}{more}.",
            partitions=tuple(unknown),
        )


def _can_be(path: str) -> bool:
    """Whether a path may name a partition, so storage may be read."""
    try:
        return require_safe_path(path).split("/", 1)[0] != METADATA_FOLDER
    except UnsafePathError:
        return False


def _path_of(values: Mapping[str, Any], config: TableConfig, schema: TableSchema) -> str:
    fields = config.partition_fields
    if config.time_based is not None:
        raise PartitionValueError(
            f"The partition {dict(values)!r} is given by values, and one partition has many",
            "Give its path, such as Table.file_slices() lists.",
        )
    if set(values) != set(fields):
        raise PartitionValueError(
            f"The partition {dict(values)!r} does not give the partition columns",
            f"Give one value for each of: {', '.join(fields) or '(the table has none)'}.",
        )
    row: dict[str, Any] = {}
    for name in fields:
        inner = row
        *around, last = name.split(".")
        for part in around:
            inner = inner.setdefault(part, {})
        inner[last] = values[name]
    columns = [schema.arrow.field(name) for name in dict.fromkeys(n.split(".")[0] for n in fields)]
    try:
        batch = row_of_values(row, pa.schema(columns))
    except SchemaError as error:
        raise PartitionValueError(
            f"The partition {dict(values)!r} has a value of another type than its column "
            f"({error.what})",
            "Give values of the types of the partition columns.",
        ) from error
    keys = key_generator(replace(config, record_key_fields=()), schema)
    paths = keys.partition_paths(batch)
    return str(paths.dictionary[0])
