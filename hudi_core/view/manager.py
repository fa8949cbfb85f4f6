"""Views of a table's files for hooks and others without one."""

from __future__ import annotations

from collections.abc import Callable

from hudi_core.model.file_index import FileIndex
from hudi_core.model.protocols import TimelineView
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import ReadCommit, replaced_groups, written_files


class ViewManager:
    """Makes views of one table, read on demand.

    ``timeline`` loads the fenced timeline, for views that are given none.
    """

    def __init__(
        self, read_commit: ReadCommit, index: FileIndex, timeline: Callable[[], TimelineView]
    ) -> None:
        self._read_commit = read_commit
        self._index = index
        self._timeline = timeline

    def view(self, timeline: TimelineView | None = None) -> FileSystemView:
        """Return the view as of ``timeline``, by default as of now."""
        seen = self._timeline() if timeline is None else timeline
        return FileSystemView(
            self._index,
            seen,
            replaced_groups(seen, self._read_commit),
            written_files(seen, self._read_commit),
        )
