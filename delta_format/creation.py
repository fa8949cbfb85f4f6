"""Making a table's Delta log, and finding it."""

from __future__ import annotations

from typing import Final

from deltalake import PostCommitHookProperties
from deltalake.transaction import create_table_with_add_actions

from delta_format.commit import commit_properties, step_keys
from delta_format.location import root_of, store_options, table_uri
from delta_format.log import LIBRARY_ERRORS, has_log, open_log
from delta_format.partition import partition_columns
from delta_format.schema import delta_schema, file_schema
from hudi_core.spi import (
    CommitStateUnknownError,
    FormatCommit,
    InvalidOptionError,
    MetaClientView,
    UnsupportedCapabilityError,
)

_CREATE: Final = "create"
_RETENTION_OPTION: Final = "deleted-file-retention-days"
_RETENTION_DAYS: Final = "36500"
_MAX_DAYS: Final = 36500


def find_or_make(meta_client: MetaClientView, *, create: bool) -> FormatCommit:
    """Return the newest version of a table's log, which is made where that is asked for.

    Raises
    ------
    CorruptMetadataError
        There is no log, and none is to be made; or it is damaged.
    CommitConflictError
        Another writer than Hudi has written to the log.
    UnsupportedTableError
        Delta cannot hold a column of the table.
    UnsupportedCapabilityError
        The table holds rows already.
    """
    if create and not has_log(meta_client):
        _make(meta_client)
    head = open_log(meta_client)
    head.require_ours()
    return FormatCommit(str(head.version), head.root)


def _make(meta_client: MetaClientView) -> None:
    if meta_client.timeline().completed_writes():
        raise UnsupportedCapabilityError("delta", "conversion of a table that holds rows")
    schema = file_schema(meta_client)
    try:
        create_table_with_add_actions(
            table_uri(meta_client),
            delta_schema(meta_client, schema),
            [],
            mode="error",
            partition_by=partition_columns(meta_client, schema),
            name=meta_client.config.name,
            configuration=_properties(meta_client),
            storage_options=store_options(meta_client),
            commit_properties=commit_properties(step_keys(_CREATE, None)),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )
    except LIBRARY_ERRORS as error:
        if not has_log(meta_client):
            raise CommitStateUnknownError(
                f"The Delta log of {root_of(meta_client)} could not be made: {error}",
                "Try again once the store answers.",
            ) from error


def _properties(meta_client: MetaClientView) -> dict[str, str | None]:
    """Return what other engines are to respect.

    File slices of before are Hudi's to delete: readers travel to them, savepoints keep them. So a
    vacuum of another engine must not find a file old enough; and reports of versions stay.
    """
    days = meta_client.format_options.get(_RETENTION_OPTION, _RETENTION_DAYS)
    if not (days.isascii() and days.isdigit() and 0 < int(days) <= _MAX_DAYS):
        raise InvalidOptionError(
            f"hoodie.table.format.delta.{_RETENTION_OPTION}",
            days,
            "it is no number of days",
            f"Give a number from 1 to {_MAX_DAYS}.",
        )
    return {
        "delta.deletedFileRetentionDuration": f"interval {int(days)} days",
        "delta.logRetentionDuration": f"interval {int(days)} days",
        "delta.enableExpiredLogCleanup": "false",
    }
