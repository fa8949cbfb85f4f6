"""The schema of a table to be created, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import SchemaError
from hudi_core.schema.table_schema import TableSchema

_LARGEST: Final = 16 << 20
"""Bytes; no schema written by a person or a tool comes near."""


def read_avro_schema(path: Path) -> pa.Schema:
    """Return the columns of an Avro record schema, Hudi's own form."""
    data = _read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refuse(path, "it is not UTF-8 text", "Write it as JSON.") from error
    return TableSchema.from_avro(text, None, None).arrow


def read_parquet_schema(path: Path) -> pa.Schema:
    """Return the columns of a parquet file, without reading rows."""
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        reason = f"it is no readable parquet file ({error})"
        raise _refuse(path, reason, "Name a parquet file.") from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise _refuse(path, str(error), "Check the path.") from error
    if len(data) > _LARGEST:
        raise _refuse(path, f"it has more than {_LARGEST:,} bytes", "Name a JSON file.")
    return data


def _refuse(path: Path, reason: str, hint: str) -> SchemaError:
    return SchemaError(f"{path} cannot be used as a schema: {reason}", hint, path=str(path))
