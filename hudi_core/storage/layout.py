"""Maps logical paths of data files to physical ones.

Timelines, plans and views name logical paths: partition path and file name, relative to the table.
Whoever opens, lists or deletes a data file asks the layout for its physical path first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from hudi_core.model.files import PARTITION_METADATA_FILE, join_path
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.storage.strategy import STRATEGY_KEY, StorageStrategy, storage_strategy

_TABLE_FOLDER: Final = ".hoodie"


class Layout(Protocol):
    """Translates paths of one table; both directions undo each other."""

    def physical(self, logical_path: str) -> str:
        """Return where a file lies, relative to the storage root."""
        ...

    def logical(self, physical_path: str) -> str:
        """The table's name of the file that lies there."""
        ...


class StrategyLayout:
    """The layout that a storage strategy makes.

    Everything in ``.hoodie`` and the partitions' own metadata stay in the table's folder, whatever
    the strategy (RFC-60, "Generating File Paths").

    Parameters
    ----------
    strategy
        Picks the folders above the partition path.
    """

    def __init__(self, strategy: StorageStrategy) -> None:
        self._strategy = strategy

    def physical(self, logical_path: str) -> str:
        """Return where a file lies, relative to the storage root.

        Raises
        ------
        UnsafePathError
            The path leaves the table.
        """
        require_safe_path(logical_path)
        partition_path, _, name = logical_path.rpartition("/")
        if _stays(logical_path, name):
            return logical_path
        return join_path(self._strategy.location(partition_path, name), logical_path)

    def logical(self, physical_path: str) -> str:
        """The table's name of the file that lies there.

        Raises
        ------
        UnsafePathError
            The path leaves the table.
        """
        require_safe_path(physical_path)
        if _stays(physical_path, physical_path.rpartition("/")[2]):
            return physical_path
        return require_safe_path("/".join(physical_path.split("/")[self._strategy.depth :]))


def _stays(path: str, name: str) -> bool:
    return path.split("/", 1)[0] == _TABLE_FOLDER or name == PARTITION_METADATA_FILE


def layout_of(properties: Mapping[str, str]) -> Layout:
    """Return the layout of the table with these properties.

    Raises
    ------
    InvalidOptionError
        The table has a storage strategy that is not known.
    """
    return StrategyLayout(storage_strategy(properties.get(STRATEGY_KEY)))
