"""The connector: tables by name or path, and their splits (RFC-40).

What a query engine is made to work on: it asks for tables and columns, plans a scan, and gives the
splits, as they come, to workers, each of which reads its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa

from hudi_core.config.connector import ConnectorConfig, is_without_meaning
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.option_warnings import warn_of_options
from hudi_core.config.optional_libraries import require_library
from hudi_core.config.options import GivenOptions
from hudi_core.config.resolve import options_as_strings
from hudi_core.errors import MetastoreEntryError, OutdatedScanError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metastore.catalog import Metastore
from hudi_core.read.connector.handles import ColumnHandle, QueryKind, TableHandle, TableName
from hudi_core.read.connector.listing import files_mark
from hudi_core.read.connector.metadata import ConnectorMetadata
from hudi_core.read.connector.page_source import PageSources
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.connector.split_manager import Query, SplitManager, Wanted
from hudi_core.read.connector.split_source import SplitSource
from hudi_core.read.connector.splits import Split
from hudi_core.read.query_times import QueryTime
from hudi_core.services.opening import open_table
from hudi_core.storage.location import PathLike
from hudi_core.table.arguments import Columns, Options, names_of
from hudi_core.table_handle import OpenTable

_TABLES: Final = 64


class Connector:
    """A connector with its options.

    Threads may share it. It holds no connection; scans do, until they are closed.

    Parameters
    ----------
    options
        Options of the connector (``hive.metastore.uri``, ``hudi.*``), of tables (``hoodie.*``), and
        of stores.

    Raises
    ------
    InvalidOptionError
        One cannot be used, or the metastore needs a library that is not installed.
    """

    def __init__(self, options: Options | None = None) -> None:
        every = options_as_strings(options)
        given = GivenOptions(
            {name: text for name, text in every.items() if not is_without_meaning(name)}
        )
        # here, and not where a thread opens the first table
        warn_of_options(given)
        self.config = ConnectorConfig.from_options(given)
        own = {name for key in ConnectorConfig.keys for name in key.names}
        self._options = GivenOptions({name: given[name] for name in given if name not in own})
        if not self.config.metadata_enabled:
            self._options[MetadataConfig.enabled.key] = "false"
        uris = self.config.metastore_uris
        if uris:
            chosen = (ConnectorConfig.metastore_uris.key, ",".join(uris))
            require_library("thrift", "hive", chosen, "Hive metastores need thrift")
        self.metadata = ConnectorMetadata(
            self._open, self._metastore if uris else None, self.config
        )
        self.split_manager = SplitManager(self.metadata)
        # a worker reads many splits of a table: to open it takes 1.4 ms on a disk, beside 1 ms for
        # a small split, and some requests to an object store. It is kept with the mark of what its
        # properties say of files, which each scan reads when it is planned, and its splits carry
        client = lru_cache(maxsize=_TABLES)(self._open_client)
        self.page_sources = PageSources(client, self._open_client)

    def table(self, table: TableHandle | TableName | PathLike) -> TableHandle:
        """A table by its name or path.

        Parameters
        ----------
        table
            A :class:`TableName`, or the path or URI of a table.

        Raises
        ------
        NotATableError
            There is no table at the path.
        MetastoreEntryError
            The metastore has no table of the name, or something else.
        HudiError
            The table cannot be opened, or the metastore does not answer.
        """
        if isinstance(table, TableHandle):
            return table
        if not isinstance(table, tuple):
            return self.metadata.table_at(table)
        found = self.metadata.table(*table)
        if found is None:
            raise MetastoreEntryError(
                ".".join(table), "is not in the metastore", "Look at list_tables."
            )
        return found

    def columns(self, table: TableHandle | TableName | PathLike) -> tuple[ColumnHandle, ...]:
        """The columns of a table; see :meth:`ConnectorMetadata.columns`."""
        return self.metadata.columns(self.table(table))

    def scan(
        self,
        table: TableHandle | TableName | PathLike,
        filter: Wanted = None,  # noqa: A002 - the name of every query
        *,
        kind: QueryKind | str | None = None,
        as_of: QueryTime | None = None,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
    ) -> SplitSource:
        """The splits of a scan, to be closed; see :meth:`SplitManager.scan`.

        Parameters
        ----------
        filter
            Rows to read: a :class:`TupleDomain`, or a filter whose conditions concern one column
            each.
        kind
            ``snapshot``, ``read_optimized`` or ``incremental``; by default what the table is
            registered as.
        as_of
            Where to go back to.
        begin, end
            The window of an incremental scan, exclusive and inclusive.
        """
        query = Query(None if kind is None else QueryKind(kind), as_of, begin, end)
        return self.split_manager.scan(self.table(table), filter, query)

    def read(
        self,
        split: Split | str,
        columns: Columns | None = None,
        predicate: TupleDomain | None = None,
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of a split, or of its JSON; see :meth:`PageSources.create`."""
        found = Split.from_json(split) if isinstance(split, str) else split
        return self.page_sources.create(found, names_of(columns), predicate, batch_rows)

    def _open(self, path: str) -> OpenTable:
        return open_table(path, self._options)

    def _open_client(self, path: str, mark: str) -> TableMetaClient:
        client = self._open(path).client
        if files_mark(client.config) != mark:
            raise OutdatedScanError(path)
        return client

    def _metastore(self) -> Metastore:
        from hudi_core.metastore.hive import HiveMetastore  # noqa: PLC0415 - thrift is an extra

        return HiveMetastore(self.config.metastore_uris)
