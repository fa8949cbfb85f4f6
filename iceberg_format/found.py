"""An Iceberg table that no Hudi writer has made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
)
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, TimestampType, TimestamptzType, TimeType

from hudi_core.spi import FoundFile, FoundTable, UnsupportedTableError
from hudi_core.spi.files import Positions
from iceberg_format.catalog import TableState
from iceberg_format.deletes import read_deletions, union
from iceberg_format.files import require_numbered_versions
from iceberg_format.manifests import ManifestStore
from iceberg_format.table import IcebergTable, version_of

_MODES = tuple(f"write.{one}.mode" for one in ("delete", "update", "merge"))
_COUNTED = (DateType, TimeType, TimestampType, TimestamptzType)
"""Types whose values are whole numbers in a partition."""


def find_table(table: IcebergTable) -> FoundTable | None:
    """Return the present state of a folder's table, or ``None``.

    Refused are rows that are deleted by their values, files that are not Parquet, and a table of
    which only a catalog knows the current version.
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
    files = tuple(_files(table, state))
    arrow = schema_to_pyarrow(schema)
    # what another engine does to the table by its own choice, or has done
    is_split = any(metadata.properties.get(one) == "merge-on-read" for one in _MODES) or any(
        one.dead is not None for one in files
    )
    return FoundTable(arrow, names if identity else (), files, version_of(metadata), is_split)


def _files(table: IcebergTable, state: TableState) -> Iterator[FoundFile]:
    current = state.metadata.current_snapshot()
    if current is None:
        return
    store = ManifestStore(table.files, table.folder, state.metadata)
    dead = _Dead.of(table, store, current)
    for entry in store.entries(current, ManifestContent.DATA):
        found = _found(table, state, entry.data_file)
        yield replace(found, dead=dead.rows(found.path, entry.sequence_number or 0))


@dataclass(frozen=True, slots=True)
class _Dead:
    """Deleted rows of a snapshot, by paths of data files.

    ``by_delete`` are those of position deletes, each with the sequence number up to which it is of
    data files.
    """

    vectors: Mapping[str, Positions]
    by_delete: Mapping[str, Sequence[tuple[int, Positions]]]

    @classmethod
    def of(cls, table: IcebergTable, store: ManifestStore, snapshot: Snapshot) -> _Dead:
        entries = [*store.entries(snapshot, ManifestContent.DELETES)]
        for file in (entry.data_file for entry in entries):
            if file.content is DataFileContent.EQUALITY_DELETES:
                raise UnsupportedTableError(
                    table.client.base_path,
                    f"has rows that are deleted by their values (equality deletes, in "
                    f"{file.file_path})",
                    "Have its engine rewrite its data files first.",
                )
        vectors: dict[str, Positions] = {}
        by_delete: dict[str, list[tuple[int, Positions]]] = {}

        def read(entry: ManifestEntry) -> list[tuple[str, Positions]]:
            return [*read_deletions(table.files, entry.data_file)]

        for entry, each in zip(entries, table.client.run_map(read, entries), strict=True):
            for uri, positions in each:
                path = table.files.data_path(uri)
                if entry.data_file.file_format is FileFormat.PUFFIN:
                    vectors[path] = positions
                else:
                    number = entry.sequence_number or 0
                    by_delete.setdefault(path, []).append((number, positions))
        return cls(vectors, by_delete)

    def rows(self, path: str, number: int) -> Positions | None:
        """Positions of a data file's deleted rows; ``None`` where it has all."""
        # a vector has all that position deletes had
        found = self.vectors.get(path)
        for until, positions in () if found is not None else self.by_delete.get(path, ()):
            if number <= until:
                found = union(found, positions)
        return found if found is not None and len(found) else None


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
