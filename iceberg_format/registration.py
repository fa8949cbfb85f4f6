"""How Hive metastores and Glue know Iceberg tables."""

from __future__ import annotations

from typing import Final

from hudi_core.spi import Registration
from iceberg_format.catalog import FolderCatalog
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable

_POINTER: Final = "metadata_location"
_IDENTITY: Final = "uuid"


def registration(table: IcebergTable) -> Registration:
    """The entry of a table: format, and place of its metadata.

    Source: Iceberg's ``HiveTableOperations`` and ``GlueTableOperations``.
    """
    catalog = table.catalog
    if isinstance(catalog, ExternalCatalog):
        # whether it has the table yet or not
        return Registration(location=table.location, held_by=catalog.name)
    state = table.load()
    return Registration(
        location=table.location,
        parameters={
            "table_type": "ICEBERG",
            _POINTER: state.location,
            _IDENTITY: str(state.metadata.table_uuid),
        },
        pointer=_POINTER,
        follows=frozenset(entry.metadata_file for entry in state.metadata.metadata_log),
        # the log names the last ones alone, and a purge empties it; who commits through a metastore
        # names files in another way
        numbered=catalog.versions(state) if isinstance(catalog, FolderCatalog) else None,
        identity=_IDENTITY,
    )
