"""Storage strategies: the upper folders of data files (RFC-60).

A strategy decides upper folders only. Below them come the partition path and the file name, always.
"""

from __future__ import annotations

from typing import Final, Protocol

from hudi_core.errors import InvalidOptionError

STRATEGY_KEY: Final = "hoodie.storage.strategy.class"


class StorageStrategy(Protocol):
    """Picks upper folders of data files; pure and never changing.

    A function of names alone.
    """

    @property
    def depth(self) -> int:
        """How many folders the strategy puts above a partition path."""
        ...

    def location(self, partition_path: str, file_name: str) -> str:
        """Return those folders for one data file, relative to the storage root."""
        ...


class DefaultStrategy:
    """No upper folders: a data file lies in its partition's folder."""

    depth: Final = 0

    def location(self, partition_path: str, file_name: str) -> str:  # noqa: ARG002 (the protocol's)
        """Return the empty path."""
        return ""


_STRATEGIES: Final[dict[str, type[StorageStrategy]]] = {
    "default": DefaultStrategy,
    "HoodieDefaultStorageStrategy": DefaultStrategy,
}


def storage_strategy(name: str | None) -> StorageStrategy:
    """Return the strategy a table's properties name, from a fixed registry.

    Nothing is ever imported by its name.

    Parameters
    ----------
    name
        A strategy's name or the name of Hudi's Java class for it, with or without its package;
        ``None`` for the default.

    Raises
    ------
    InvalidOptionError
        The strategy is unknown, so the table's files cannot be found.
    """
    strategy = _STRATEGIES.get("default" if name is None else name.rpartition(".")[2])
    if strategy is None:
        raise InvalidOptionError(
            STRATEGY_KEY,
            name,
            "the storage strategy is not known",
            f"Known strategies: {', '.join(_STRATEGIES)}.",
        )
    return strategy()
