"""Rows of a folder to adopt, for writing a new table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import DataFileError, NotATableError, SchemaError
from hudi_core.model.found_table import FoundFile
from hudi_core.schema.arrow_types import field_id
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.services.adoption.plan import Adoption, Folder
from hudi_core.services.adoption.source import without_dead
from hudi_core.services.create import create_table
from hudi_core.services.opening import open_table, table_exists
from hudi_core.services.progress import Progress, no_progress
from hudi_core.storage.location import parse_location
from hudi_core.table_handle import OpenTable


@dataclass(frozen=True, slots=True)
class AdoptedRows:
    """The rows of a folder.

    ``stored`` are the columns of ``schema`` as the files call them, where that differs.
    """

    folder: Folder
    schema: pa.Schema
    stored: pa.Schema | None = None

    @classmethod
    def of(cls, folder: Folder) -> AdoptedRows:
        """Return the rows of a folder, lazily.

        Nothing but the list of its files is read.
        """
        table = folder.found.table
        places = [at for at, one in enumerate(table.schema) if one.name not in META_COLUMNS]
        schema, stored = (
            None if of is None else pa.schema([of.field(at) for at in places])
            for of in (table.schema, table.stored)
        )
        return cls(folder, schema, stored)

    def read(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, file by file.

        A damaged file, or a column in a type that does not fit, raises only when the stream comes
        to it.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def document(self, path: str) -> Adoption:
        """Plan of writing them into a table at ``path``."""
        files = self.folder.found.table.files
        dead = sum(0 if one.dead is None else len(one.dead) for one in files)
        return Adoption(
            path=parse_location(path).uri,
            source=self.folder.found.kind,
            table_format=TableKeys.table_format.read(self.folder.table_options),
            files=len(files),
            rows=sum(self._row_count(one.path) for one in files) - dead,
            size=sum(one.size for one in files),
            partitions=None,
            is_rewritten=True,
        )

    def write(self, path: str, insert: Callable[[OpenTable], object]) -> Adoption:
        """Write the rows into the table at ``path``, created if needed.

        A table that holds just these rows already is left as it is.
        """
        plan, options = self.document(path), self.folder.table_options
        written = rows_written(path, self.folder)
        if written is not None and written != plan.rows:
            raise NotATableError(
                plan.path, f"is a table with {written} rows of its own", "Name another folder."
            )
        if written is None:
            if not table_exists(path, options):
                create_table(path, self.schema, options)
            insert(open_table(path, options))
        return plan

    def _row_count(self, path: str) -> int:
        try:
            with self.folder.opened(path) as source:
                return int(pq.ParquetFile(source).metadata.num_rows)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataFileError(path, str(error)) from error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        files, stored = self.folder.found.table.files, self.stored
        if stored is None:
            yield from rows_of_files(self.folder.opened, files, self.schema, self.folder.progress)
            return
        names = dict(zip(self.schema.names, stored.names, strict=True))
        files = tuple(
            replace(one, values={names[name]: value for name, value in one.values.items()})
            for one in files
        )
        for batch in rows_of_files(self.folder.opened, files, stored, self.folder.progress):
            yield renamed_rows(batch, self.schema)


def rows_of_files(
    opened: Callable[[str], AbstractContextManager[pa.NativeFile]],
    files: Sequence[FoundFile],
    schema: pa.Schema,
    progress: Progress = no_progress,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of data files in the columns of their table.

    Deleted ones are left out.
    """
    for done, file in enumerate(files, start=1):
        try:
            with opened(file.path) as source:
                parquet = pq.ParquetFile(source)
                for batch in without_dead(parquet.iter_batches(), file):
                    yield _fitted(batch, parquet.schema_arrow, file, schema)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataFileError(file.path, str(error)) from error
        progress(done, len(files))


def renamed_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in columns of other names, also of members of structs."""
    columns = zip(rows.columns, schema, strict=True)
    return pa.RecordBatch.from_arrays(
        [_renamed(column, field.type) for column, field in columns], schema=schema
    )


def _renamed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pt.is_nested(kind):
        return array
    nulls = array.is_null()
    if pt.is_struct(kind):
        members = zip(array.flatten(), kind, strict=True)
        children = [_renamed(child, field.type) for child, field in members]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=nulls)
    # without what the null ones may hide
    there = array.filter(array.is_valid())
    counts = np.zeros(len(array), np.int64)
    counts[array.is_valid().to_numpy(zero_copy_only=False)] = np.diff(there.offsets.to_numpy())
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    if pt.is_map(kind):
        keys, items = (
            _renamed(found, own)
            for found, own in ((there.keys, kind.key_type), (there.items, kind.item_type))
        )
        return pa.MapArray.from_arrays(offsets, keys, items, kind, mask=nulls)
    values = _renamed(there.flatten(), kind.value_type)
    return pa.ListArray.from_arrays(offsets, values, kind, mask=nulls)


def columns_of_file(
    opened: Callable[[str], AbstractContextManager[pa.NativeFile]],
    file: FoundFile,
    schema: pa.Schema,
) -> set[str]:
    """Names of the columns that a file, or its format, holds."""
    try:
        with opened(file.path) as source:
            stored = pq.read_schema(source)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataFileError(file.path, str(error)) from error
    return {*file.values, *(field.name for field in schema if _place(stored, field) >= 0)}


def _place(stored: pa.Schema, field: pa.Field) -> int:
    """A column's place in a file, -1 without it."""
    number = field_id(field)
    by_id = {field_id(one): at for at, one in enumerate(stored) if field_id(one)}
    if by_id and number:
        return by_id.get(number, -1)
    return int(stored.get_field_index(field.name))


def _fitted(
    batch: pa.RecordBatch, stored: pa.Schema, file: FoundFile, schema: pa.Schema
) -> pa.RecordBatch:
    """Return rows in the table's columns, matched by ids where present."""
    columns = []
    for field in schema:
        at = _place(stored, field)
        if at >= 0:
            columns.append(_cast(batch.column(at), field, file))
        else:
            # where neither file nor format know a value it is null
            columns.append(
                pa.repeat(pa.scalar(file.values.get(field.name), field.type), batch.num_rows)
            )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_written(path: str, folder: Folder) -> int | None:
    """Return the row count of a table's only write, or ``None``.

    Refuses a table that has had other writes than that of an adoption.
    """
    options = folder.table_options
    if not table_exists(path, options):
        return None
    opened = open_table(path, options)
    writes = opened.timeline().completed_writes()
    if not writes:
        return None
    if len(writes) > 1:
        raise NotATableError(path, "is a table with rows of its own", "Name another folder.")
    return sum(stat.num_writes or 0 for stat in opened.client.read_commit(writes[0]).stats)


def _cast(column: pa.Array, field: pa.Field, file: FoundFile) -> pa.Array:
    if column.type.equals(field.type):
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"Column {field.name} of {file.path} has the type {column.type}, and the table "
            f"{field.type}: {error}",
            "Write the file again with the table's type.",
            column=field.name,
        ) from error
