"""What registers a table in metastores."""

from __future__ import annotations

from typing import TypeVar

from hudi_core.config.resolve import options_as_strings
from hudi_core.config.sync import SyncConfig, SyncTool, tools
from hudi_core.errors import InvalidOptionError
from hudi_core.services.opening import open_table
from hudi_core.sync.after_commit import sync_after_commit
from hudi_core.sync.result import SyncResult
from hudi_core.sync.tool import sync_table
from hudi_core.table.arguments import Options
from hudi_core.table.reading import TableReading
from hudi_core.table_handle import OpenTable

Result = TypeVar("Result")


class TableSyncing(TableReading):
    """A table that metastores may know."""

    def sync(
        self, tool: str = "hive", *, options: Options | None = None, dry_run: bool = False
    ) -> SyncResult:
        """Register the table in a metastore, or update its entry.

        Partitions are compared that were written since the last sync.
        ``hoodie.datasource.meta.sync.enable`` has each commit followed by one.

        Parameters
        ----------
        tool
            ``"hive"`` or ``"glue"``.
        options
            Hudi options, such as ``hoodie.datasource.hive_sync.metastore.uris``.
        dry_run
            Whether to say only what would be changed.

        Raises
        ------
        InvalidOptionError
            An option cannot be used, or a library is missing.
        UnsupportedTableError
            No reader that finds the entry could read the table.
        MetastoreEntryError
            There is an entry of something else under the name, or the database is missing.
        SchemaError
            Columns have become others than readers of the entry can take them for.
        PartitionValueError
            A partition's path tells no values of the partition columns.
        MetastoreError
            The metastore does not answer, or refuses.
        """
        try:
            [kind] = tools(tool)
        except ValueError as error:
            supported = ", ".join(SyncTool)
            raise InvalidOptionError(
                "tool", tool, "there is no such metastore", f"Supported: {supported}."
            ) from error
        merged = self._options | options_as_strings(options)
        opened = open_table(self._open_path, merged)
        return sync_table(opened, kind, merged, dry_run=dry_run)

    def _synced(self, result: Result) -> Result:
        """The result of a commit, after the syncs that follow it."""
        opened = self._opened
        sync_after_commit(opened, opened.client.options, result)
        return result

    def _pointed(self, opened: OpenTable, result: Result) -> Result:
        """The result of a service, after the syncs that follow it.

        Entries that point at a state are synced: the service may have deleted files of the one that
        they know. Others lag in nothing.
        """
        options = opened.client.options
        if SyncConfig.wanted(options):
            registration = opened.host.get_registration(opened.client)
            if registration is not None and registration.pointer is not None:
                sync_after_commit(opened, options, result)
        return result
