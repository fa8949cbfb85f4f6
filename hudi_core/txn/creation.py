"""The mark of a table that is being created.

It is put before any other file, and taken away once ``hoodie.properties`` has made the folder a
table. Where it is without them its creator is at work, under the table's lock, or has died: then
all files beside it are what the creator left, for the folder was empty.
"""

from __future__ import annotations

from typing import Final

from hudi_core.model.protocols import Storage

CREATION_PATH: Final = ".hoodie/creation.json"


def is_begun(storage: Storage) -> bool:
    """Whether a creation is under way, or was when its creator died."""
    return storage.head(CREATION_PATH) is not None


def begin_creation(storage: Storage) -> None:
    """Put the mark; runs under the table's lock."""
    storage.put(CREATION_PATH, b"{}\n")


def end_creation(storage: Storage) -> None:
    """Take the mark away, if there is one; runs under the table's lock."""
    storage.delete(CREATION_PATH)
