"""The syncs that follow a commit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from hudi_core.config.sync import SyncConfig
from hudi_core.errors import CorruptMetadataError, HudiError, MetaSyncError, MetaSyncWarning
from hudi_core.sync.entries import require_registrable
from hudi_core.sync.tool import checked_options, sync_table
from hudi_core.table_handle import OpenTable


def require_syncable(opened: OpenTable, options: Mapping[str, str]) -> None:
    """Refuse options of syncs that could not be done after a commit.

    To be called before anything is written. Nothing is asked of a metastore.
    """
    for tool in SyncConfig.wanted(options):
        config = checked_options(opened, tool, options)
        require_registrable(opened, config, opened.host.get_registration(opened.client))


def require_new_syncable(planned: OpenTable, options: Mapping[str, str]) -> None:
    """Refuse such options for a table that is about to be made.

    In the place of another one, perhaps, which would be gone when :func:`require_syncable` refuses.
    """
    try:
        require_syncable(planned, options)
    except CorruptMetadataError:
        # the format has no metadata yet, or that of a damaged table, which goes; options were first
        return


def sync_after_commit(opened: OpenTable, options: Mapping[str, str], result: object = None) -> None:
    """Run the syncs that options ask for, all of them.

    A :class:`MetaSyncError` leaves the commit complete; it is a warning where errors are to be
    ignored. ``result`` is what the call would return.
    """
    failed = None
    for tool in SyncConfig.wanted(options):
        try:
            sync_table(opened, tool, options)
        except HudiError as error:
            failed = MetaSyncError(opened.client.base_path, tool, str(error), result)
            failed.__cause__ = error
            if SyncConfig.ignores_errors.read(options):
                warnings.warn(str(failed), MetaSyncWarning, stacklevel=2)
                failed = None
    if failed is not None:
        raise failed
