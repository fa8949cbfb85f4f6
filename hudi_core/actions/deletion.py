"""Deleting many files at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.model.client import FileBatch, RunMap
from hudi_core.model.protocols import Storage
from hudi_core.storage.flushing import flushed_together
from hudi_core.storage.location import parse_location

_REQUEST: Final = 1000
"""Files that object stores delete by one request."""
_FLUSH: Final = 100
"""Files of a disk whose folders are flushed once."""


def delete_together(storage: Storage, run_map: RunMap, paths: Sequence[str]) -> None:
    """Delete files in no order, those that are there.

    Tasks of an engine may outlive their driver, and still delete. So it gets data files of Hudi's
    alone, whose names nobody gives a second time.
    """
    count = _FLUSH if parse_location(storage.root).is_local else _REQUEST
    batches = [FileBatch(paths[first : first + count]) for first in range(0, len(paths), count)]
    list(run_map(_DeleteFiles(storage), batches))


@dataclass(frozen=True, slots=True)
class _DeleteFiles:
    """Deletes some files; a value, which engines can send away."""

    storage: Storage

    def __call__(self, paths: FileBatch) -> None:
        with flushed_together(self.storage) as together:
            together.discard(paths)
