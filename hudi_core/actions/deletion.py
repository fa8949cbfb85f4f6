"""Deleting many files at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_core.model.client import RunMap
from hudi_core.model.protocols import Storage
from hudi_core.storage.flushing import flushed_together


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Deletes one file; a value, which engines can send away."""

    storage: Storage

    def __call__(self, path: str) -> bool:
        """Return whether there was such a file."""
        return self.storage.delete(path)


def delete_together(storage: Storage, run_map: RunMap, paths: Sequence[str]) -> None:
    """Delete files in no order, and flush each folder once."""
    with flushed_together(storage) as together:
        list(run_map(DeleteFile(together), paths))
