"""Functions over data files and their statistics, for authors of table formats.

Each takes the table as hooks get it.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_core.base_file import footer
from hudi_core.base_file.footer import Footer
from hudi_core.base_file.footer_statistics import columns_of_old_lists, footer_statistics
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.bound_conversions import bound_from_text, bound_to_text, bounds_to_array
from hudi_core.model.client import MetaClientView
from hudi_core.model.stats import FileStats
from hudi_core.schema.arrow_types import field_id, leaves
from hudi_core.storage.data_files import require_no_links
from hudi_core.view.storage_lister import StorageLister

__all__ = [
    "Footer",
    "bound_from_text",
    "bound_to_text",
    "bounds_to_array",
    "columns_of_old_lists",
    "field_id",
    "footer_statistics",
    "leaves",
    "read_footer",
    "read_statistics",
    "require_no_links",
    "storage_lister",
    "table_lister",
]


def read_footer(meta_client: MetaClientView, path: str, schema: pa.Schema) -> Footer:
    """The footer of a data file: its columns, rows and statistics.

    Parameters
    ----------
    path
        Relative to the table.
    schema
        Of the table, meta columns included; statistics of other columns are left out.

    Raises
    ------
    DataFileError
        The file is damaged or missing.
    """
    return footer.read_footer(_whole(meta_client), path, schema)


def read_statistics(meta_client: MetaClientView, path: str, schema: pa.Schema) -> FileStats:
    """The statistics in the footer of a data file; see :func:`read_footer`."""
    return read_footer(meta_client, path, schema).columns


def storage_lister(meta_client: MetaClientView) -> StorageLister:
    """A lister of the table's folders, which asks no metadata.

    It names what is there, also what writes that died left behind.
    """
    config = meta_client.config
    return StorageLister(meta_client.data, bool(config.partition_fields), meta_client.run_map)


def _whole(meta_client: MetaClientView) -> TableMetaClient:
    if not isinstance(meta_client, TableMetaClient):
        raise TypeError(f"{type(meta_client).__name__} is no table that hooks were given")
    return meta_client
