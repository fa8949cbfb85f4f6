"""Which files a native table has: its folders, listed."""

from __future__ import annotations

from hudi_core.spi import FileLister, MetaClientView, StorageLister


class NativeMetadataFactory:
    """Makes what lists the table's folders, the work shared out by the engine."""

    def create(self, meta_client: MetaClientView) -> FileLister:
        """Return the lister of the table's files."""
        return StorageLister(
            meta_client.storage,
            partitioned=bool(meta_client.config.partition_fields),
            run_map=meta_client.run_map,
        )
