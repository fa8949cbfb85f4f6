"""Actions of a Delta version that add and remove data files.

No reader checks any of this: a file that is not there, or of another size, makes a table that
no reader can read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from delta_format.change import Change
from delta_format.log import Head
from delta_format.log_actions import LogAction, now_ms
from delta_format.partition import partition_values
from delta_format.paths import spelled
from delta_format.snapshot import LiveFile, Snapshot
from delta_format.stats import statistics
from delta_format.vectors import Vector, joined, new_vectors, positions
from hudi_core.spi import CommitError, Instant, MetaClientView
from hudi_core.spi.files import Positions


def file_actions(
    meta_client: MetaClientView, head: Head, instant: Instant, change: Change
) -> list[LogAction]:
    """Delta actions that replace a change's old files by new ones.

    And files with deleted rows by themselves, with another vector.
    """
    named = Snapshot(head) if change.old_groups or change.taken or change.dead else None
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
    partition_by = head.table.metadata().partition_columns
    dead = {path: one for path, one in change.dead.items() if path not in {*map(_path, gone)}}
    fewer = [] if named is None else _with_dead_rows(meta_client, named, change, dead)
    vectors = new_vectors(meta_client, instant, dead | {one.path: rows for one, rows in fewer})
    return [
        *(remove_action(file, is_change) for file in gone),
        *(remove_action(file) for file, _ in fewer),
        *new_adds(meta_client, with_vectors(change, vectors), partition_by),
        *new_adds(
            meta_client,
            with_vectors(
                Change(
                    () if named is None else named.described([file.path for file, _ in fewer]),
                    schema=change.schema,
                ),
                vectors,
            ),
            partition_by,
        ),
    ]


def with_vectors(change: Change, vectors: Mapping[str, Vector]) -> Change:
    """A change whose new files have vectors, by their paths."""
    files = tuple(
        replace(file, vector=vectors.get(file.path, file.vector)) for file in change.new_files
    )
    return replace(change, new_files=files)


def _with_dead_rows(
    meta_client: MetaClientView,
    named: Snapshot,
    change: Change,
    dead: Mapping[str, Positions],
) -> list[tuple[LiveFile, Positions]]:
    """Present files that lose rows, each with all that it has lost."""
    new = {file.path for file in change.new_files}
    files = named.at_paths(dead.keys() - new)
    missing = dead.keys() - new - {*map(_path, files)}
    if missing:
        raise CommitError(
            f"The Delta log does not name {min(missing)}, of which this commit deletes rows",
            "Another instant has taken the file out; see the versions of the log.",
            path=min(missing),
        )

    def lost(file: LiveFile) -> Positions:
        former = [] if file.vector is None else [positions(meta_client, file.vector)]
        return joined([*former, dead[file.path]])

    found = zip(files, meta_client.run_map(lost, files), strict=True)
    return [(file, rows) for file, rows in found if len(rows) != file.deleted_rows]


def _path(file: LiveFile) -> str:
    return file.path


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
                    # as it was: a removal of another spelling is none of the file to vacuums
                    "path": file.spelling or spelled(meta_client.files.below_root(file.path)),
                    "partitionValues": partition_values(
                        file.path, file.columns, schema, partition_by
                    ),
                    "size": file.size,
                    "modificationTime": status.modified_ms or now,
                    "dataChange": not change.same_rows,
                    "stats": statistics(
                        file.rows,
                        file.columns,
                        schema,
                        partition_by,
                        are_tight=file.vector is None,
                    ),
                    **({} if file.vector is None else file.vector.action),
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
            **({} if file.vector is None else file.vector.action),
        }
    }
