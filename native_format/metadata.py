"""Files of a native table: by its metadata table, or listed."""

from __future__ import annotations

from hudi_core.spi import FileIndex, MetaClientView
from hudi_core.spi.files import table_lister


class NativeMetadataFactory:
    """Makes the table's file lister, which runs on the engine."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the lister of the table's files."""
        return table_lister(meta_client)
