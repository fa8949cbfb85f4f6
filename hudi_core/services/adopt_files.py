"""Whether an existing file can be a base file, and where.

A Hudi table without meta columns (virtual keys) reads its rows from any Parquet file, if the file
is in the folder of its partition under the name of a base file, holds all columns of keys and
partitions itself, in the table's types, and no row lacks a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.table import TableConfig
from hudi_core.errors import DataFileError, HudiError
from hudi_core.keygen import key_generator
from hudi_core.model.files import PartitionPath
from hudi_core.model.found_table import FoundFile
from hudi_core.schema.arrow_types import children, field_id, plain_type
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema
from hudi_core.services.adopt_source import OpenFile

_WHOLE_TABLE: Final = PartitionPath("")


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found out of one file.

    ``keys`` is empty where the table has no record key. ``obstacle`` is the reason why the file
    cannot be a base file as it is, worded to follow "because"; ``None`` where it can.
    """

    file: FoundFile
    rows: int
    partition_path: PartitionPath = _WHOLE_TABLE
    keys: pa.ChunkedArray | None = None
    obstacle: str | None = None


@dataclass(frozen=True, slots=True)
class Examiner:
    """Examines files; a value, which an engine can send away."""

    config: TableConfig
    schema: TableSchema
    opened: OpenFile

    def __call__(self, file: FoundFile) -> Examined:
        """Statistics and schema of a file."""
        try:
            with self.opened(file.path) as source:
                return self._examine(file, pq.ParquetFile(source))
        except (OSError, pa.ArrowInvalid) as error:
            raise DataFileError(file.path, str(error)) from error

    def _examine(self, file: FoundFile, parquet: pq.ParquetFile) -> Examined:
        rows = parquet.metadata.num_rows
        obstacle = self._of_columns(parquet.schema_arrow)
        if obstacle is not None:
            return Examined(file, rows, obstacle=obstacle)
        config = self.config
        names = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
        tops = list(dict.fromkeys(name.partition(".")[0] for name in names))
        if not tops:
            return Examined(file, rows)
        wanted = pa.schema([self.schema.arrow.field(name) for name in tops])
        batches = [
            pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in wanted],
                schema=wanted,
            )
            for batch in parquet.iter_batches(columns=tops)
        ]
        generator = key_generator(config, self.schema)
        try:
            keys = [generator.record_keys(one) for one in batches]
            paths = [generator.partition_paths(one) for one in batches]
        except HudiError as error:
            return Examined(file, rows, obstacle=error.what)
        found = {path for one in paths for path in pc.unique(one.cast(pa.string())).to_pylist()}
        if len(found) > 1:
            some = ", ".join(sorted(map(repr, found))[:3])
            return Examined(file, rows, obstacle=f"its rows are of several partitions ({some})")
        partition = PartitionPath(next(iter(found), ""))
        has_keys = bool(config.record_key_fields)
        return Examined(
            file, rows, partition, pa.chunked_array(keys, pa.string()) if has_keys else None
        )

    def _of_columns(self, stored: pa.Schema) -> str | None:
        """Faults in the columns of a file."""
        meta = [name for name in META_COLUMNS if name in stored.names]
        if meta:
            return f"it has the column {meta[0]}, which is Hudi's"
        by_id = any(field_id(field) is not None for field in self.schema.arrow) and any(
            field_id(field) is not None for field in stored
        )
        numbers = {field_id(field): field.name for field in stored} if by_id else {}
        for field in self.schema.arrow:
            stored_name = numbers.get(field_id(field), field.name) if by_id else field.name
            if stored_name != field.name:
                return f"its column {stored_name} is called {field.name} now"
            if field.name not in stored.names:
                needed = (*self.config.record_key_fields, *self.config.partition_fields)
                if field.name in {name.partition(".")[0] for name in needed} or not field.nullable:
                    return f"it has no column {field.name}"
            elif not _reads_as(stored.field(field.name).type, field.type):
                kind = stored.field(field.name).type
                return f"its column {field.name} has the type {kind}, not {field.type}"
        return None


def repeated_keys(files: Sequence[Examined]) -> dict[PartitionPath, int]:
    """Return the number of rows with a repeated key per partition.

    Empty where no key is repeated.
    """
    by_partition: dict[PartitionPath, list[pa.ChunkedArray]] = {}
    for one in files:
        if one.keys is not None:
            by_partition.setdefault(one.partition_path, []).append(one.keys)
    found: Mapping[PartitionPath, int] = {
        partition: sum(len(one) for one in keys)
        - pc.count_distinct(
            pa.chunked_array([chunk for one in keys for chunk in one.chunks], pa.string())
        ).as_py()
        for partition, keys in by_partition.items()
    }
    return {partition: count for partition, count in found.items() if count}


def _reads_as(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every reader takes a stored column for one of a type."""
    if pt.is_dictionary(stored):
        return _reads_as(stored.value_type, wanted)
    if pt.is_fixed_size_binary(stored):
        return bool(stored.equals(wanted))
    mine, theirs = children(plain_type(stored)), children(wanted)
    if mine or theirs:
        return (
            (pt.is_struct(stored), pt.is_map(stored)) == (pt.is_struct(wanted), pt.is_map(wanted))
            and [name for name, _ in mine] == [name for name, _ in theirs]
            and all(
                _reads_as(old.type, new.type)
                for (_, old), (_, new) in zip(mine, theirs, strict=True)
            )
        )
    return bool(plain_type(stored).equals(wanted))
