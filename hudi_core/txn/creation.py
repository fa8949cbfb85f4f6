"""The mark of a table that is being created.

It is put before any other file, and taken away once ``hoodie.properties`` has made the folder a
table. Where it is without them its creator is at work, under the table's lock, or has died: then
the creator's files are those in ``.hoodie`` and in the folders that the mark names, which it had
found empty. Others may have come since.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.protocols import Storage
from hudi_core.storage.safe_path import require_safe_path

CREATION_PATH: Final = ".hoodie/creation.json"
_FOLDERS: Final = "folders"


def is_begun(storage: Storage) -> bool:
    """Whether a creation is under way, or was when its creator died."""
    return storage.head(CREATION_PATH) is not None


def begin_creation(storage: Storage, folders: Sequence[str] = ()) -> None:
    """Put the mark; runs under the table's lock.

    ``folders`` are relative to the table: where files are made beside ``.hoodie``.
    """
    storage.put(CREATION_PATH, json.dumps({_FOLDERS: list(folders)}).encode() + b"\n")


def creation_folders(storage: Storage) -> tuple[str, ...]:
    """The folders that the mark names."""
    try:
        folders = json.loads(storage.read(CREATION_PATH))[_FOLDERS]
        return tuple(require_safe_path(str(one)) for one in folders)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptMetadataError(
            f"{storage.root}/{CREATION_PATH}",
            "it is no mark of a creation",
            "No table was finished there: delete .hoodie, and what else a creator has left.",
        ) from error


def end_creation(storage: Storage) -> None:
    """Delete the creation mark, if any; runs under the lock."""
    storage.delete(CREATION_PATH)
