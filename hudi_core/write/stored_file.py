"""Reading back the base files that a write merges into."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import DataFileError
from hudi_core.model.schema import RECORD_KEY
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.layout import layout_of
from hudi_core.write.context import WriteContext


def read_record_keys(context: WriteContext, path: str) -> pa.ChunkedArray:
    """Return the record keys of a base file, in file order.

    Parameters
    ----------
    path
        Path of the file relative to the base path.
    """
    return _read(context, path, [RECORD_KEY]).column(RECORD_KEY).cast(pa.string())


def read_base_file(context: WriteContext, path: str) -> pa.Table:
    """Return the rows of a base file in the types of the table's schema, meta columns first.

    Columns that the file lacks are null: they were added after it was written.
    """
    schema = context.schema.with_meta()
    table = _read(context, path, None)
    present = set(table.column_names)
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in present
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _read(context: WriteContext, path: str, columns: list[str] | None) -> pa.Table:
    filesystem, root = data_filesystem(context.base_path, context.storage_options)
    physical = layout_of(context.table.raw).physical(path)
    try:
        with (
            filesystem.open_input_file(f"{root}/{physical}") as source,
            pq.ParquetFile(source) as file,
        ):
            return file.read(columns=columns)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataFileError(context.base_path, f"{path}: {error}") from error
