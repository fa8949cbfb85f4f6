"""Reading back the base files that a write merges into."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import CorruptMetadataError, PathNotFoundError
from hudi_core.storage.data_files import data_filesystem
from hudi_core.write.context import WriteContext

_KEY_COLUMN = "_hoodie_record_key"


def read_record_keys(context: WriteContext, path: str) -> pa.ChunkedArray:
    """Return the record keys of a base file, in file order.

    Parameters
    ----------
    path
        Path of the file relative to the base path.
    """
    return _read(context, path, [_KEY_COLUMN]).column(_KEY_COLUMN).cast(pa.string())


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
    location = f"{context.base_path}/{path}"
    try:
        with (
            filesystem.open_input_file(f"{root}/{path}") as source,
            pq.ParquetFile(source) as file,
        ):
            return file.read(columns=columns)
    except FileNotFoundError as error:
        raise PathNotFoundError(location) from error
    except pa.ArrowInvalid as error:
        raise CorruptMetadataError(
            location, str(error), "Restore the file, or roll the table back to an earlier instant."
        ) from error
