"""Whether a format may report a partition, or the table, as empty.

Checked only where the format reports one as empty, which is right for a partition that a write is
about to make. The table's own files are compared then: its metadata table, or its folders, and the
commits of the fenced timeline. A file counts that a completed commit of that timeline left with
rows, that no later one replaced, and that the format does not name in a second listing; so
that neither a writer that is at work, nor a list that is older than the timeline, is taken for a
mistake of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hudi_core.errors import CorruptMetadataError
from hudi_core.extension.guard import Guard
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.client import MetaClientView
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileSlice, PartitionPath
from hudi_core.model.format import TimelineFactory
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import replaced_groups


@dataclass(frozen=True, slots=True)
class EmptyListings:
    """Looks at empty answers of one lister.

    ``new_lister`` makes a lister that has nothing cached; ``timelines`` gives the timeline as the
    format sees it.
    """

    guard: Guard
    client: MetaClientView
    new_lister: Callable[[MetaClientView], FileIndex]
    timelines: Callable[[], TimelineFactory]

    def require_partitions(self) -> None:
        """Refuse an empty list of partitions where one has rows."""
        self._refuse(None)

    def require_files(self, partitions: Sequence[PartitionPath]) -> None:
        """Refuse that partitions have no files, where one of them has rows."""
        self._refuse(partitions)

    def _refuse(self, partitions: Sequence[PartitionPath] | None) -> None:
        if not isinstance(self.client, TableMetaClient):
            return
        # as it is now: what was read before may be older than the answer, or newer
        client = replace(self.client, seen=None)
        try:
            paths, timeline = self._with_files(client, partitions)
            live = _with_rows(client, paths, timeline) if timeline is not None else None
        except CorruptMetadataError:
            return  # what cannot be asked says nothing; who needs it gets an error
        if live is None or timeline is None or live.base_file is None:
            return
        where, again = live.partition_path, self.new_lister(client)
        method = "FileIndex.list_files"
        if partitions is None:
            method = "FileIndex.list_partitions"
            is_empty = not self.guard.call(method, again.list_partitions)
        else:
            files = self.guard.call(method, lambda: again.list_files([where])).get(where)
            # a lister may have both ways to say it
            columns = self.guard.call(method, lambda: again.list_columns([where]))
            is_empty = not files or not len(columns)
        if is_empty and self._timeline(client).completed_writes() == timeline.completed_writes():
            self.guard.raise_violation(
                f"{method} names no file of the partition {where!r}, in which "
                f"{live.base_file.path} has rows"
            )

    def _with_files(
        self, client: TableMetaClient, partitions: Sequence[PartitionPath] | None
    ) -> tuple[Sequence[PartitionPath], TimelineView | None]:
        """Partitions in which the table knows files, and the timeline.

        The timeline only if there are such.
        """
        own = table_lister(client)
        listed = own.list_files(own.list_partitions() if partitions is None else partitions)
        paths = [path for path, files in listed.items() if files]
        return paths, self._timeline(client) if paths else None

    def _timeline(self, client: TableMetaClient) -> TimelineView:
        return self.timelines().active_timeline(client)


def _with_rows(
    client: TableMetaClient, partitions: Sequence[PartitionPath], timeline: TimelineView
) -> FileSlice | None:
    """A file slice whose commit wrote rows, or ``None``."""
    view = FileSystemView(
        table_lister(client), timeline, replaced_groups(timeline, client.read_commit)
    )
    writes = {one.requested_time: one for one in timeline.completed_writes()}
    with_rows: dict[InstantTime, set[str | None]] = {}
    for found in view.latest_slices(partitions):
        time = found.base_instant
        if time not in writes or found.base_file is None:
            continue  # its commit is archived
        if time not in with_rows:
            stats = client.read_commit(writes[time]).stats
            with_rows[time] = {one.path for one in stats if one.num_writes}
        if found.base_file.path in with_rows[time]:
            return found
    return None
