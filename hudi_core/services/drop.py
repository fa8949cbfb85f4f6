"""Dropping a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_core.config.storage import FSYNC
from hudi_core.model.protocols import Storage
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.properties_file import PROPERTIES_PATH, read_properties

_META: Final = ".hoodie"


def drop_table(path: str, options: Mapping[str, str], keep: str | None = None) -> None:
    """Delete a table with all its rows and history.

    The timeline goes first and the properties last: after a crash in between the path still holds a
    table, without its commits, that can be dropped or overwritten again.

    Parameters
    ----------
    keep
        Folder to leave alone, relative to the table and below its ``.hoodie``.

    Raises
    ------
    NotATableError
        There is no table at the path: nothing is deleted.
    """
    storage = open_storage(path, StorageOptions.from_options(options), fsync=FSYNC.read(options))
    read_properties(storage)  # there must be a table; what it is does not matter any more
    data = [folder for folder in storage.list_folders() if folder != _META]
    for folder in [*_timeline_first(_below(storage, _META, keep)), *data]:
        storage.delete_tree(folder)
    _delete_files(storage, "")
    _delete_files(storage, _META)
    storage.delete(PROPERTIES_PATH)
    if keep is None:
        storage.delete_tree(_META)


def _below(storage: Storage, folder: str, keep: str | None) -> Iterator[str]:
    """Yield the folders below one, but for the one to keep and those that hold it."""
    for found in storage.list_folders(folder):
        if keep is None or not f"{keep}/".startswith(f"{found}/"):
            yield found
        elif found != keep:
            yield from _below(storage, found, keep)


def _timeline_first(folders: Iterator[str]) -> list[str]:
    return sorted(folders, key=lambda folder: (folder != f"{_META}/timeline", folder))


def _delete_files(storage: Storage, folder: str) -> None:
    for status in list(storage.list(folder)):
        if status.path != PROPERTIES_PATH:
            storage.delete(status.path)
