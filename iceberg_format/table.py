"""The Iceberg table of one Hudi table."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate

from hudi_core.spi import MetaClientView, MissingMetadataError
from iceberg_format.catalog import (
    FolderCatalog,
    IcebergCatalog,
    TableState,
    metadata_folder,
)
from iceberg_format.external import ExternalCatalog, open_catalog
from iceberg_format.files import TableFiles


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """Where the metadata of one table is.

    ``folder`` is that of the Iceberg metadata, relative to the base path.
    """

    client: MetaClientView
    files: TableFiles
    folder: str
    catalog: IcebergCatalog

    @classmethod
    def open(cls, client: MetaClientView) -> IcebergTable:
        """Return the Iceberg table of a Hudi table; nothing is read."""
        files = TableFiles(client)
        return cls(client, files, metadata_folder(client, files), open_catalog(client, files))

    @property
    def location(self) -> str:
        """URI of the folder that readers open the table by."""
        above = self.folder.rpartition("/")[0]
        return self.files.uri(above) if above else self.files.root

    def load(self) -> TableState:
        """Return the current version."""
        return self._there(self.find())

    def reload(self) -> TableState:
        """Return the present version, whatever was read while a lock was held."""
        return self._there(self.catalog.load())

    def _there(self, state: TableState | None) -> TableState:
        if state is None:
            raise self.missing()
        return state

    def missing(self) -> MissingMetadataError:
        """The error for a table that its catalog does not have."""
        base_path = self.client.base_path
        if isinstance(self.catalog, ExternalCatalog):
            return MissingMetadataError(
                f"{'.'.join(self.catalog.identifier)}, the Iceberg table of {base_path},",
                f"is not in the {self.catalog.kind} catalog of the options: its entry was dropped, "
                "or has another name",
                f"Check the options; `hudi table repair {base_path}` with them puts the table into "
                "that catalog.",
            )
        return MissingMetadataError(
            f"{base_path}/{self.folder}",
            "holds no metadata of the Iceberg table",
            "If the table is in a catalog, give its hoodie.table.format.iceberg.catalog.* options; "
            f"otherwise `hudi table repair {base_path}` rebuilds it from the timeline and the data "
            "files.",
        )

    def find(self) -> TableState | None:
        """Return the current version, or ``None`` where there is no table.

        It is read once while the table's lock is held.
        """
        held = self.client.held
        if held is not None and isinstance(held.value, TableState):
            return held.value
        before = None if held is None else held.earlier
        if isinstance(self.catalog, FolderCatalog) and isinstance(before, TableState):
            state = self.catalog.load_since(before)
        else:
            state = self.catalog.load()
        if held is not None:
            held.value = state
        return state

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        """Replace the current version; see :meth:`IcebergCatalog.commit`."""
        self.forget()
        made = self.catalog.commit(state, requirements, updates)
        if self.client.held is not None:
            self.client.held.value = made
        return made

    def forget(self) -> None:
        """Drop the held version, so that the current one is read again."""
        if self.client.held is not None:
            self.client.held.value = None


def version_of(metadata: TableMetadata) -> str:
    """Return the id of the current state: that of its snapshot."""
    return str(metadata.current_snapshot_id)
