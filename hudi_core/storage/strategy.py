"""Storage strategies: the upper folders of data files (RFC-60).

A strategy decides upper folders only. Below them come the table's name, the partition path and the
file name, always, so that files can be found by a listing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar


class StorageStrategy(ABC):
    """Picks the folders above the partitions of data files.

    To be registered as a class under a name, as an entry point of the group
    ``hudi.storage_strategies``; a table stores the name and the options. Folders are a function of
    these and of the arguments alone, for ever: a file is looked for where it was once written.
    Instances are sent to executors, so that they must be picklable.

    Parameters
    ----------
    options
        The table's options of the strategy: those under ``hoodie.storage.strategy.``, without that
        prefix and without ``class``.

    Raises
    ------
    InvalidOptionError
        An option cannot be used.
    """

    depth: ClassVar[int] = 0
    """How many folders :meth:`location` puts above a table's name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @property
    def settings(self) -> Mapping[str, str]:
        """The options as a new table stores them, defaults included.

        What is left to a default is stored too, so that a default may change.
        """
        return self._options

    @abstractmethod
    def location(self, partition_path: str, file_id: str) -> str:
        """The folders of one file group, relative to the storage path.

        Parameters
        ----------
        partition_path
            Path of the partition; empty without partitions.
        file_id
            Id of the file group, which its base files and logs share.

        Returns
        -------
        str
            As many folders as :attr:`depth` says, with ``/`` between them.
        """

    def locations(self, partition_path: str, file_ids: Sequence[str]) -> Sequence[str]:
        """The folders of many file groups of a partition.

        One after the other by default; a strategy may be quicker.
        """
        return [self.location(partition_path, one) for one in file_ids]

    def is_location(self, folder: str) -> bool:  # noqa: ARG002 - a strategy may know its folders
        """Whether a folder of a listing may be one of the strategy's.

        A storage path may hold other folders. By default none is passed over.
        """
        return True


class DefaultStrategy(StorageStrategy):
    """No folders: partitions lie below the table's name at once."""

    def location(self, partition_path: str, file_id: str) -> str:  # noqa: ARG002 (the protocol's)
        """Return the empty path."""
        return ""
