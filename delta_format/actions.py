"""Actions of a Delta version that add and remove data files.

No reader checks any of this: a file that is not there, or of another size, makes a table that
no reader can read.
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_format.change import Change
from delta_format.log import Head
from delta_format.log_actions import LogAction, now_ms
from delta_format.partition import partition_values
from delta_format.paths import spelled
from delta_format.snapshot import LiveFile, Snapshot
from delta_format.stats import statistics
from hudi_core.spi import CommitError, MetaClientView


def file_actions(meta_client: MetaClientView, head: Head, change: Change) -> list[LogAction]:
    """Delta actions that replace a change's old files by new ones."""
    named = Snapshot(head) if change.old_groups or change.taken else None
    old = {} if named is None else named.of_groups(change.old_groups)
    gone = [file for files in old.values() for file in files]
    if named is not None and change.taken is not None:
        gone += named.at_paths(change.taken.files)
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
    meta_client: MetaClientView, change: Change, partition_by: Sequence[str]
) -> list[LogAction]:
    """Delta actions that add the new files of a change."""
    schema = change.schema
    if schema is None:
        return []
    paths = [file.path for file in change.new_files]
    stored = dict(zip(paths, meta_client.run_map(meta_client.data.head, paths), strict=True))
    now = now_ms()
    adds: list[LogAction] = []
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
            {
                "add": {
                    "path": spelled(meta_client.files.below_root(file.path)),
                    "partitionValues": partition_values(
                        file.path, file.columns, schema, partition_by
                    ),
                    "size": file.size,
                    "modificationTime": status.modified_ms or now,
                    "dataChange": not change.same_rows,
                    "stats": statistics(file.rows, file.columns, schema, partition_by),
                }
            }
        )
    return adds


def remove_action(file: LiveFile, is_change: bool = True) -> LogAction:
    """The action that takes a file out of a table.

    Its path is spelled as the log spells it: no engine takes it for the file's otherwise.

    ``is_change``: rows go with it.
    """
    return {
        "remove": {
            "path": file.spelling,
            "deletionTimestamp": now_ms(),
            "dataChange": is_change,
            "extendedFileMetadata": True,
            "partitionValues": file.partition_values,
            "size": file.size,
        }
    }
