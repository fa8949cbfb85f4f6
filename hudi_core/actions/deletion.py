"""Deleting many files at once."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.model.protocols import Storage


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Deletes one file; a value, which engines can send away."""

    storage: Storage

    def __call__(self, path: str) -> bool:
        """Return whether there was such a file."""
        return self.storage.delete(path)
