"""Orphans: files in a table's folder that belong to nothing.

Other engines began and left them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.model.files import BaseFileName
from hudi_core.model.protocols import Storage
from hudi_core.storage.federated import FederatedStorage

_DATA: Final = (".parquet", ".orc")
_HIDDEN: Final = (".", "_")
"""How the names of folders begin that hold no rows: metadata of Hudi, of formats, of engines."""


def foreign_data_files(storage: Storage) -> Iterator[str]:
    """Yield data files without a Hudi name, in order; one listing.

    Files that have one are distinguished by the timeline; see :mod:`hudi_core.view.unnamed`.
    """
    for status in storage.list("", recursive=True):
        if _is_data(status.path) and BaseFileName.parse(status.name) is None:
            yield status.path
    if isinstance(storage, FederatedStorage):
        # no reader looks for them where they lie, whatever their names
        yield from filter(_is_data, storage.strays())


def _is_data(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith(_DATA) and not any(folder.startswith(_HIDDEN) for folder in folders)
