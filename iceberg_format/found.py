"""An Iceberg table that no Hudi writer has made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, FileFormat, ManifestContent
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, TimestampType, TimestamptzType, TimeType

from hudi_core.spi import FoundFile, FoundTable, UnsupportedTableError
from iceberg_format.catalog import TableState
from iceberg_format.files import require_numbered_versions
from iceberg_format.manifests import CACHE, ManifestStore
from iceberg_format.table import IcebergTable, version_of

_COUNTED = (DateType, TimeType, TimestampType, TimestamptzType)
"""Types whose values are whole numbers in a partition."""


def find_table(table: IcebergTable) -> FoundTable | None:
    """Return the present state of a folder's table, or ``None``.

    Refused are row deletes in files of their own, files that are not Parquet, metadata of another
    version than 2, and a table of which only a catalog knows the current version.
    """
    state = table.catalog.load()
    if state is None:
        require_numbered_versions(table.files, table.folder)
        return None
    metadata = state.metadata
    fields = metadata.spec().fields
    identity = all(isinstance(field.transform, IdentityTransform) for field in fields)
    schema = metadata.schema()
    names = tuple(schema.find_column_name(field.source_id) or "" for field in fields)
    files = tuple(_found(table, state, file) for file in _live(table, state))
    arrow = schema_to_pyarrow(schema)
    return FoundTable(arrow, names if identity else (), files, version_of(metadata))


def _live(table: IcebergTable, state: TableState) -> Iterator[DataFile]:
    metadata = state.metadata
    current = metadata.current_snapshot()
    if current is None:
        return
    store = ManifestStore(table.files, table.folder, metadata)
    for manifest in store.manifests(current):
        entries = CACHE.entries(table.files, manifest)
        if manifest.content == ManifestContent.DELETES and entries:
            raise UnsupportedTableError(
                table.client.base_path,
                "has rows that are deleted by files of their own (merge on read)",
                "Have its engine rewrite its data files first.",
            )
        yield from (entry.data_file for entry in entries)


def _found(table: IcebergTable, state: TableState, file: DataFile) -> FoundFile:
    path = table.files.data_path(file.file_path)
    if file.file_format != FileFormat.PARQUET:
        raise UnsupportedTableError(
            table.client.base_path,
            f"has a file {path} of the format {file.file_format}",
            "Have its engine rewrite its data files as Parquet first.",
        )
    schema = state.metadata.schema()
    values: dict[str, Any] = {}
    for at, field in enumerate(state.metadata.specs()[file.spec_id].fields):
        if isinstance(field.transform, IdentityTransform):
            kind = schema.find_type(field.source_id)
            value = file.partition[at]
            if value is not None and isinstance(kind, _COUNTED):
                width = pa.int32() if isinstance(kind, DateType) else pa.int64()
                arrow = schema_to_pyarrow(kind)
                value = pa.array([value], width).cast(arrow)[0].as_py()
            values[schema.find_column_name(field.source_id) or ""] = value
    return FoundFile(path, file.file_size_in_bytes, values)
