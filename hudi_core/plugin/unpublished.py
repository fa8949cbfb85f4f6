"""Commits of engines that do not know the table's format.

Readers see the state before them, as readers of the format do, until the next write publishes them.
Where that engine has cleaned, files of that state are gone: neither fewer rows nor an error about a
file would say why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from hudi_core.errors import HudiError, UnpublishedCommitsError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import PartitionPath
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.protocols import TimelineView

_log: Final = logging.getLogger(__name__)
_MOST: Final = 1024
_seen: Final[dict[tuple[str, str], bool]] = {}
"""Whether newest unpublished commits, by table and time, are of such an engine."""


def look_at_unpublished(
    client: TableMetaClient,
    listers: Callable[[], Iterable[FileIndex]],
    table_format: str,
    seen: TimelineView,
    unpublished: Sequence[Instant],
) -> None:
    """Warn once that the timeline is ahead of the format.

    A writer that knows the format publishes what it has completed at once, and nothing is said.

    ``seen`` is the fenced timeline, ``unpublished`` what it holds back. Files that the format names
    but that no longer exist are an :class:`UnpublishedCommitsError` instead.
    """
    writes = [one for one in unpublished if one.action in WRITE_ACTIONS]
    if not writes:
        return
    newest = writes[-1]
    key = client.base_path, newest.requested_time
    if key not in _seen:
        if len(_seen) >= _MOST:
            _seen.clear()
        _seen[key] = PARENT_KEY not in client.read_commit(newest).extra_metadata
        if _seen[key]:
            _log.warning(
                "%s: an engine that does not know the %s format completed %d commits on the Hudi "
                "timeline, the last of them %s, which the format does not hold yet. Reads show the "
                "state before them, as its own readers do. The next write publishes them; `hudi "
                "table repair %s` does so at once.",
                client.base_path,
                table_format,
                len(writes),
                newest.requested_time,
                client.base_path,
            )
    if _seen[key] and _may_be_cleaned(seen, unpublished):
        for path in _gone(client, listers()):
            raise UnpublishedCommitsError(
                client.base_path, table_format, newest.requested_time, path
            )


def _may_be_cleaned(seen: TimelineView, unpublished: Sequence[Instant]) -> bool:
    """Whether a clean came since, perhaps an archived one."""
    if any(one.action is Action.CLEAN for one in unpublished):
        return True
    return not seen.completed_writes()


def _gone(client: TableMetaClient, listers: Iterable[FileIndex]) -> Iterator[str]:
    """Yield files that formats name and the table does not have."""
    try:
        named = {one.path for lister in listers for one in lister.named_files() or ()}
    except HudiError:
        return  # who reads it says what is wrong
    partitions = sorted({PartitionPath(path.rpartition("/")[0]) for path in named})
    listed = table_lister(client).list_files(partitions)
    held = {file.path for files in listed.values() for file in files}
    yield from sorted(named - held)
