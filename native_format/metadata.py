"""Which files a native table has: as its metadata table says, else its folders, listed."""

from __future__ import annotations

from hudi_core.spi import FileIndex, MetaClientView, table_lister


class NativeMetadataFactory:
    """Makes what lists the table's files, the work shared out by the engine."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the lister of the table's files."""
        return table_lister(meta_client)
