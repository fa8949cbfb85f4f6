"""How Hive metastores and Glue know Iceberg tables."""

from __future__ import annotations

from typing import Final

from hudi_core.spi import Registration
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable

_POINTER: Final = "metadata_location"


def registration(table: IcebergTable) -> Registration:
    """The entry of a table: format, and place of its metadata.

    Source: Iceberg's ``HiveTableOperations`` and ``GlueTableOperations``.
    """
    state = table.load()
    catalog = table.catalog
    return Registration(
        location=table.location,
        parameters={
            "table_type": "ICEBERG",
            _POINTER: state.location,
            "uuid": str(state.metadata.table_uuid),
        },
        pointer=_POINTER,
        follows=frozenset(entry.metadata_file for entry in state.metadata.metadata_log),
        held_by=catalog.name if isinstance(catalog, ExternalCatalog) else None,
    )
