"""Reading back the base files that a write merges into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.base_file.encoded_columns import (
    compact_columns,
    constant,
    encoded_schema,
    require_valid_codes,
)
from hudi_core.base_file.encodings import decided_leaves, leaf_paths
from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.key_footer import KeyFooter, key_footer
from hudi_core.config.merge_rules import MergeRules
from hudi_core.config.table import TableConfig
from hudi_core.errors import DataFileError
from hudi_core.keygen import bare_key_field
from hudi_core.model.files import BaseFile, BasePath, PartitionPath
from hudi_core.schema.alignment import align, counterpart, counterparts, stored_fields
from hudi_core.schema.arrow_types import leaves
from hudi_core.schema.table_schema import FILE_NAME, PARTITION_PATH, RECORD_KEY, TableSchema
from hudi_core.storage.data_files import DataFiles, FetchedFiles

_FEW_VALUES: Final = 200_000


class FileContext(Protocol):
    """The table that base files belong to; a write's context is one."""

    @property
    def base_path(self) -> BasePath: ...

    @property
    def files(self) -> DataFiles: ...

    @property
    def table(self) -> TableConfig: ...

    @property
    def schema(self) -> TableSchema: ...

    @property
    def rules(self) -> MergeRules: ...

    @property
    def fetched(self) -> FetchedFiles | None:
        """Files that one task hands to the next, where they share memory."""
        ...


def read_record_keys(files: FileContext, path: str, size: int | None = None) -> pa.ChunkedArray:
    """Return the record keys of a base file, in file order.

    Virtual ones are made of the columns that they are of. Others are read from the column that
    :func:`read_base_file` takes them from, which then need not read it again.
    """
    with _source(files, path, size, is_needed_again=True) as source, _parquet(source) as file:
        keys, stored = _file_keys(files), stored_fields(file.schema_arrow)
        names = keys.columns(stored, path)
        read = partial(file.read, use_threads=_is_large(file.metadata))
        key = None if keys.are_made else _key_column(files, stored)
        same = None if key is None else counterpart(stored, files.schema.arrow.field(key))
        found = None if same is None else read(columns=[same.name]).column(0)
        if found is None or found.null_count:
            return keys.of_rows(read(columns=names), stored, path)
    if files.fetched is not None:
        files.fetched.keep_keys(path, found)
    return found


def read_column(files: FileContext, path: str, name: str) -> pa.ChunkedArray:
    """Return one column of a base file in its present type.

    All null where the file lacks the column.
    """
    wanted = files.schema.arrow.field(name)
    with _opened(files, path) as file:
        fields = stored_fields(file.schema_arrow)
        found = counterpart(fields, wanted)
        if found is None:
            return pa.chunked_array([pa.nulls(file.metadata.num_rows, wanted.type)])
        return align(file.read(columns=[found.name]), fields, pa.schema([wanted])).column(name)


def read_columns(files: FileContext, base: BaseFile, names: Sequence[str]) -> pa.Table:
    """Return columns of a base file, in the types of the table.

    Null where the file lacks them; a record key that is not stored is made.
    """
    with _source(files, base.path, base.size) as source, _parquet(source) as file:
        fields = stored_fields(file.schema_arrow)
        schema = files.schema.with_meta()
        wanted = pa.schema([schema.field(name) for name in names])
        keys = _file_keys(files)
        makes = keys.are_made and RECORD_KEY in names
        found = [one.name for one in counterparts(fields, wanted) if one is not None]
        needed = dict.fromkeys([*found, *(keys.columns(fields, base.path) if makes else ())])
        # a table without columns does not know how many rows it has
        rows = file.read(columns=list(needed) or [fields[0].name])
    columns = align(rows, fields, wanted)
    if makes:
        at = columns.schema.get_field_index(RECORD_KEY)
        columns = columns.set_column(at, wanted.field(at), keys.of_rows(rows, fields, base.path))
    return columns


def row_count(files: FileContext, path: str, size: int | None = None) -> int:
    """Number of rows of a base file; its footer is read."""
    with _source(files, path, size) as source, _parquet(source) as file:
        return int(file.metadata.num_rows)


def read_known_keys(files: FileContext, path: str) -> KeyFooter:
    """Key bounds and bloom filter from the footer of a base file."""
    with _opened(files, path) as file:
        return key_footer(file.metadata, path)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A base file read back.

    ``rows`` are in the types of the table's schema, meta columns first. ``dictionaries`` is by leaf
    path whether the leaf stays dictionary encoded; ``None`` where the table has other leaves by
    now.
    """

    rows: pa.Table
    keys: KeyFooter
    dictionaries: Mapping[str, bool] | None = None


def read_base_file(
    files: FileContext, path: str, partition_path: PartitionPath, size: int | None = None
) -> StoredFile:
    """Read a base file in the columns of the table.

    Columns that were added after the file was written are null.

    What is known without reading it is not read: the partition path, the file name, and record keys
    that another column has too, or that an earlier step read.
    """
    kept = None if files.fetched is None else files.fetched.take_keys(path)
    with _source(files, path, size) as source, _parquet(source) as file:
        wanted = files.schema.with_meta()
        fields = stored_fields(file.schema_arrow)
        keys = _file_keys(files)
        needed = keys.columns(fields, path)
        key = _key_column(files, fields)
        is_derived = keys.are_made or key is not None
        derived = {PARTITION_PATH, FILE_NAME} | ({RECORD_KEY} if is_derived else set())
        if kept is not None and key is not None:
            derived.add(key)
        own = [field for field in wanted if field.name not in derived]
        found = {
            field.name: stored
            for field, stored in zip(own, counterparts(fields, own), strict=True)
            if stored is not None
        }
        compact = compact_columns(file.metadata, file.schema_arrow)
        encoded = {
            name
            for name in found.keys() - _never_encoded(files, needed)
            if found[name].name in compact and pt.is_string(wanted.field(name).type)
        }
        rows = _read_encoded(file, source, found, encoded)
        rows = align(rows, fields, encoded_schema(pa.schema(own), encoded))
        footer = key_footer(file.metadata, path)
        held = files.schema.with_some_meta(files.table.stored_meta_columns)
        same = leaf_paths(file.metadata) == [name for name, _ in leaves(held)]
        dictionaries = decided_leaves(file.metadata) if same else None
    if kept is None and key is not None:
        kept = rows.column(key)
        if kept.null_count:
            raise DataFileError(files.base_path, f"{path} has rows without a {key}, the record key")
    if kept is None and is_derived:
        kept = keys.made(rows, path)
    count = rows.num_rows
    known = {
        PARTITION_PATH: constant(str(partition_path), count),
        FILE_NAME: constant(path.rsplit("/", 1)[-1], count),
        RECORD_KEY: kept,
        key: kept,
    }
    columns = [
        known[field.name] if field.name in derived else rows.column(field.name) for field in wanted
    ]
    schema = encoded_schema(wanted, encoded | {PARTITION_PATH, FILE_NAME})
    return StoredFile(pa.table(columns, schema=schema), footer, dictionaries)


def _key_column(files: FileContext, stored: Sequence[pa.Field]) -> str | None:
    """Return the stored column that equals the record key, if any."""
    name = bare_key_field(files.table)
    if name is None or name not in files.schema.names:
        return None
    wanted = files.schema.arrow.field(name)
    found = counterpart(stored, wanted)
    are_strings = found is not None and pt.is_string(found.type) and pt.is_string(wanted.type)
    return name if are_strings else None


def _never_encoded(files: FileContext, keys: Sequence[str]) -> set[str]:
    """Return columns that are compared, such as keys and ordering fields.

    They are never read dictionary encoded.
    """
    return {RECORD_KEY, *keys, *files.table.record_key_fields, *files.rules.order}


def _read_encoded(
    file: pq.ParquetFile, source: pa.NativeFile, found: Mapping[str, pa.Field], encoded: Set[str]
) -> pa.Table:
    dictionaries = [found[name].name for name in encoded]
    with pq.ParquetFile(
        source,
        metadata=file.metadata,
        read_dictionary=dictionaries,
        coerce_int96_timestamp_unit="us",
    ) as reader:
        names = [stored.name for stored in found.values()]
        rows = reader.read(columns=names, use_threads=_is_large(file.metadata))
    for name in dictionaries:
        require_valid_codes(rows.column(name))
    return rows


def _is_large(footer: pq.FileMetaData) -> bool:
    """Whether columns are worth a thread each.

    Of small files, handing them over takes longer.
    """
    return bool(footer.num_rows * footer.num_columns > _FEW_VALUES)


def _file_keys(files: FileContext) -> FileKeys:
    return FileKeys(files.base_path, files.table, files.schema)


@contextmanager
def _opened(files: FileContext, path: str) -> Iterator[pq.ParquetFile]:
    with _source(files, path) as source, _parquet(source) as file:
        yield file


def _parquet(source: pa.NativeFile) -> pq.ParquetFile:
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us")


@contextmanager
def _source(
    files: FileContext, path: str, size: int | None = None, *, is_needed_again: bool = False
) -> Iterator[pa.NativeFile]:
    kept = files.fetched
    try:
        with files.files.open(path, size, kept, is_needed_again=is_needed_again) as source:
            yield source
    except (OSError, pa.ArrowInvalid) as error:
        raise files.files.unreadable([path], f"{path}: {error}") from error
