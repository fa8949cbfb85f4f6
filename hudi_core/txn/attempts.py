"""Files of a write that count, for tasks in one process.

Tasks elsewhere ask the store after each file (:meth:`~hudi_core.txn.markers.Markers.is_open`): a
seal says that the write takes no more files, and a missing heartbeat that another writer has rolled
it back. Here memory says the former. The latter cannot have happened before the heart has missed a
beat; then the store is asked as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from hudi_core.storage.flushing import Flushes
from hudi_core.txn.heartbeat import Heartbeat


class LocalAttempts:
    """The files that tasks of this process have marked."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._lock = threading.Lock()
        self._marked: dict[str, str] = {}
        self._flushes = Flushes()
        self._is_sealed = False

    def mark(self, path: str, marker: str) -> None:
        """Note a file whose marker is about to be put."""
        with self._lock:
            self._marked[path] = marker

    def seal(self) -> Mapping[str, str]:
        """Take no further file.

        Returns the markers of all files by the files' paths.

        A task asks :meth:`is_open` after it has closed a file. So whichever comes first, the file
        of a lost attempt is deleted: by the committer, or by the attempt itself.
        """
        with self._lock:
            self._is_sealed = True
            return dict(self._marked)

    def is_open(self, ask_store: Callable[[], bool]) -> bool:
        """Whether files of the write may still count."""
        with self._lock:
            if self._is_sealed:
                return False
        return self._heartbeat.is_fresh or ask_store()

    def flush(self, file: str) -> None:
        """Have a complete local file flushed while others are written."""
        self._flushes.add(file)

    def wait_for_flushes(self) -> None:
        """Wait until the files are on the disk."""
        self._flushes.wait()
