"""Functions over data files and their statistics, for authors of table formats.

Each takes the table as hooks get it, but those of deletion vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hudi_core.base_file import footer
from hudi_core.base_file.footer import Footer
from hudi_core.base_file.footer_statistics import columns_of_old_lists, footer_statistics
from hudi_core.file_slice import deleted_positions as dead
from hudi_core.log_format.positions import (
    Positions,
    decode_bitmap,
    decode_vector,
    encode_bitmap,
    encode_vector,
    frame_vector,
    unframe_vector,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.bound_conversions import bound_from_text, bound_to_text, bounds_to_array
from hudi_core.model.client import FileSystemViewManager, MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import FileSlice
from hudi_core.model.stats import FileStats
from hudi_core.schema.arrow_types import field_id, leaves
from hudi_core.storage.data_files import require_no_links
from hudi_core.view.storage_lister import StorageLister

__all__ = [
    "Footer",
    "Positions",
    "all_deleted_positions",
    "bound_from_text",
    "bound_to_text",
    "bounds_to_array",
    "columns_of_old_lists",
    "decode_bitmap",
    "decode_vector",
    "deleted_positions",
    "encode_bitmap",
    "encode_vector",
    "field_id",
    "footer_statistics",
    "frame_vector",
    "leaves",
    "read_footer",
    "read_statistics",
    "require_no_links",
    "storage_lister",
    "table_lister",
    "unframe_vector",
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


def deleted_positions(
    meta_client: MetaClientView,
    commit_metadata: CommitMetadata,
    view_manager: FileSystemViewManager | None = None,
) -> dict[str, Positions]:
    """The rows that one commit deletes in a split table.

    Of a compaction they are those rows of its base files that others have deleted since its plan.

    The headers of its delete blocks are read, nothing else; so a replay finds the same. They are to
    be added to those that the format knows already of each file (:func:`encode_bitmap`).

    Parameters
    ----------
    commit_metadata
        The body of the commit, which names its log files and their base files.
    view_manager
        As the hook gets it, for the file slices before the commit; not asked where the commit
        cannot have deleted rows. Where a compaction has put another base file into a group since
        its rows were found, they are found in that by their keys, which is read for it.

    Returns
    -------
    dict
        Positions of rows in ascending order, from 0 on, as 64-bit integers, by the logical paths of
        base files; empty for a commit without deletes.

    Raises
    ------
    UnsupportedTableError
        A log file has rows: another engine has written it.
    """
    return dead.positions_of_commit(_whole(meta_client), commit_metadata, view_manager)


def all_deleted_positions(
    meta_client: MetaClientView, file_slices: Iterable[FileSlice]
) -> dict[str, Positions]:
    """All rows of file slices that their log files delete.

    What a format records of them when its metadata is built.

    Parameters
    ----------
    file_slices
        With their log files.

    Returns
    -------
    dict
        As of :func:`deleted_positions`; files without dead rows are left out.
    """
    return dead.positions_of_slices(_whole(meta_client), file_slices)


def _whole(meta_client: MetaClientView) -> TableMetaClient:
    if not isinstance(meta_client, TableMetaClient):
        raise TypeError(f"{type(meta_client).__name__} is no table that hooks were given")
    return meta_client
