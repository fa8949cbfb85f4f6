"""The actions of a Delta version that bring files and take them out of a table.

The library checks none of this: a file that is not there, or of another size, makes a table that
nobody can read.
"""

from __future__ import annotations

import time

from deltalake.transaction import AddAction, RemoveAction

from delta_format.change import Change
from delta_format.log import Head
from delta_format.partition import partition_values
from delta_format.snapshot import LiveFile, Snapshot
from delta_format.stats import statistics
from hudi_core.spi import CommitError, MetaClientView


def file_actions(
    meta_client: MetaClientView, head: Head, change: Change
) -> list[AddAction | RemoveAction]:
    """Return what takes the old files of a change out of a table and brings the new ones.

    Raises
    ------
    CommitError
        The table names a new file already, or the store does not have it as it should be.
    """
    old = Snapshot(head).of_groups(change.old_groups) if change.old_groups else {}
    gone = [file for files in old.values() for file in files]
    both = {file.path for file in gone} & {file.path for file in change.new_files}
    if both:
        raise CommitError(
            f"The Delta log names {min(both)} already, which this commit says to bring",
            "Another instant has recorded the file; see the versions of the log.",
            path=min(both),
        )
    is_change = not change.same_rows
    removed = [remove_action(file, is_change) for file in gone]
    return [*removed, *new_adds(meta_client, change, head.table.metadata().partition_columns)]


def new_adds(
    meta_client: MetaClientView, change: Change, partition_by: list[str]
) -> list[AddAction]:
    """Return what brings the new files of a change to a table that is partitioned so.

    Raises
    ------
    CommitError
        A file is not in the store as the commit describes it.
    """
    schema = change.schema
    if schema is None:
        return []
    paths = [file.path for file in change.new_files]
    stored = dict(zip(paths, meta_client.run_map(meta_client.storage.head, paths), strict=True))
    now = int(time.time() * 1000)
    adds = []
    for file in change.new_files:
        status = stored[file.path]
        if status is None or status.size != file.size:
            seen = "is not there" if status is None else f"has {status.size} bytes"
            raise CommitError(
                f"{file.path} should have {file.size} bytes and {seen}",
                "Undo this commit: readers could not open the file.",
                path=file.path,
            )
        adds.append(
            AddAction(
                path=file.path,
                size=file.size,
                partition_values=partition_values(file.path, file.columns, schema, partition_by),
                modification_time=status.modified_ms or now,
                data_change=not change.same_rows,
                stats=statistics(file.rows, file.columns, schema, partition_by),
            )
        )
    return adds


def remove_action(file: LiveFile, is_change: bool = True) -> RemoveAction:
    """Return what takes a file out of a table.

    Parameters
    ----------
    is_change
        Whether rows go with it.
    """
    return RemoveAction(
        path=file.path,
        data_change=is_change,
        deletion_timestamp=int(time.time() * 1000),
        size=file.size,
        partition_values=file.partition_values,
    )
