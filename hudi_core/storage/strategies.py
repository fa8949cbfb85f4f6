"""Storage strategies by name, built in or of other distributions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

import xxhash

from hudi_core.config.placement import (
    DEFAULT_STRATEGY,
    OBJECT_STORE,
    STORAGE_POINT,
    STRATEGY_PREFIX,
    PlacementKeys,
)
from hudi_core.errors import InvalidOptionError, PluginContractError, UnsafePathError
from hudi_core.storage.safe_path import require_safe_folder

# --- the base of storage strategies (RFC-60) ------------------------------------------------------
# A strategy decides upper folders only. Below them come the table's name, the partition path and
# the file name, always, so that files can be found by a listing.


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


# --- strategies -----------------------------------------------------------------------------------


def storage_strategy(name: str, options: Mapping[str, str]) -> StorageStrategy:
    """Return the strategy of a name, with a table's options.

    Without the strategy the table's files cannot be found, hence ``UnknownExtensionError`` and no
    fallback.
    """
    built_in = _BUILT_IN.get(name)
    return NamedStrategy(name, options) if built_in is None else built_in(options)


class NamedStrategy(StorageStrategy):
    """The strategy of another distribution, whose answers are checked.

    It travels to executors by its name, so that one that lacks the distribution says so.
    """

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._name = name
        self._guard = STORAGE_POINT.guard(name)
        self._own = STORAGE_POINT.make(name, StorageStrategy, lambda kind: kind(options))
        depth: object = self._own.depth
        if not isinstance(depth, int) or depth < 0:
            raise self._broken(f"its depth is {depth!r}, which is no number of folders")
        self.depth = depth  # type: ignore[misc]  # that of the class it wraps

    def __reduce__(self) -> tuple[Callable[..., StorageStrategy], tuple[object, ...]]:
        return NamedStrategy, (self._name, self._options)

    @property
    def settings(self) -> Mapping[str, str]:
        """Its options as it returns them."""
        found: object = self._guard.call("settings", lambda: self._own.settings)
        if not isinstance(found, Mapping) or not all(
            isinstance(text, str) for pair in found.items() for text in pair
        ):
            raise self._broken(f"settings are {found!r}, and no strings by name")
        return dict(found)

    def location(self, partition_path: str, file_id: str) -> str:
        """Its folders, which are safe and as many as it says."""
        place: object = self._guard.call(
            "location", lambda: self._own.location(partition_path, file_id)
        )
        if not isinstance(place, str):
            raise self._broken(f"location returned {place!r}, which is no string")
        try:
            require_safe_folder(place)
        except UnsafePathError as error:
            raise self._broken(f"location returned {place!r}: {error.what}") from error
        if (place.count("/") + 1 if place else 0) != self.depth:
            raise self._broken(f"location returned {place!r}, and its depth is {self.depth}")
        if place.startswith("."):
            raise self._broken(f"location returned {place!r}, which readers take for hidden")
        return place

    def is_location(self, folder: str) -> bool:
        """Whether it takes a folder for its own."""
        return bool(self._guard.call("is_location", lambda: self._own.is_location(folder)))

    def _broken(self, reason: str) -> PluginContractError:
        return PluginContractError(self._name, reason, kind=STORAGE_POINT.kind)


# --- the strategy for object stores ---------------------------------------------------------------

# Stores limit requests by the first characters of an object's name (RFC-60, "Background"): what
# spreads evenly over many of them is not slowed down.


_KEYS: Final = (PlacementKeys.hash_function, PlacementKeys.hash_bits, PlacementKeys.hash_input)
_FUNCTIONS: Final = {
    "XXHASH32": (32, xxhash.xxh32_intdigest),
    "XXHASH64": (64, xxhash.xxh64_intdigest),
}
_MOST_NAMED: Final = 12
"""Of so many bits every prefix is spelled in advance: 0.1 instead of 0.3 us a file."""


class ObjectStoreStrategy(StorageStrategy):
    """One folder: the first bits of a hash, as hexadecimal digits.

    With 32 bits it is ``<storage path>/01f50736/<table>/<partition>/<file>``, as in RFC-60; fewer
    bits have fewer digits, and 64, by XXHASH64, have sixteen. The hash has the seed 0, and its text
    is UTF-8: the file id, or partition path and file id with a slash between them.
    """

    depth: ClassVar[int] = 1

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        given = {f"{STRATEGY_PREFIX}{name}": value for name, value in options.items()}
        unknown = sorted(given.keys() - {key.key for key in _KEYS})
        if unknown:
            raise InvalidOptionError(
                unknown[0],
                given[unknown[0]],
                "the strategy object_store has no such option",
                f"Its options: {', '.join(key.key for key in _KEYS)}.",
            )
        self._function = PlacementKeys.hash_function.read(given)
        self._bits = PlacementKeys.hash_bits.read(given)
        self._input = PlacementKeys.hash_input.read(given)
        self._set()

    def _set(self) -> None:
        width, self._hash = _FUNCTIONS[self._function]
        if self._bits > width:
            raise InvalidOptionError(
                PlacementKeys.hash_bits.key,
                str(self._bits),
                f"{self._function} makes {width} bits",
                f"Set {PlacementKeys.hash_function.key}=XXHASH64, or fewer bits.",
            )
        self._shift = width - self._bits
        self._of_partition = self._input == "PARTITION_AND_FILE_ID"
        digits = -(-self._bits // 4)
        self._form = f"0{digits}x"
        self._named = re.compile(f"[0-9a-f]{{{digits}}}")
        count = 1 << self._bits if self._bits <= _MOST_NAMED else 0
        self._names = tuple(format(number, self._form) for number in range(count))

    def __getstate__(self) -> dict[str, str]:
        return dict(self.settings)

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__init__(state)  # type: ignore[misc]

    @property
    def settings(self) -> Mapping[str, str]:
        """Function, bits and input of the hash."""
        return {
            key.key.removeprefix(STRATEGY_PREFIX): str(value)
            for key, value in zip(_KEYS, (self._function, self._bits, self._input), strict=True)
        }

    def location(self, partition_path: str, file_id: str) -> str:
        """Return the prefix of a file group."""
        if self._of_partition and partition_path:
            file_id = f"{partition_path}/{file_id}"
        number = self._hash(file_id.encode()) >> self._shift
        return self._names[number] if self._names else format(number, self._form)

    def locations(self, partition_path: str, file_ids: Sequence[str]) -> Sequence[str]:
        """The prefixes of many file groups, sooner than one by one."""
        if not self._names or (self._of_partition and partition_path):
            return super().locations(partition_path, file_ids)
        names, hashed, shift = self._names, self._hash, self._shift
        return [names[hashed(one) >> shift] for one in map(str.encode, file_ids)]

    def is_location(self, folder: str) -> bool:
        """Whether a folder is named by as many hexadecimal digits."""
        return self._named.fullmatch(folder) is not None


_BUILT_IN: Final[Mapping[str, type[StorageStrategy]]] = {
    DEFAULT_STRATEGY: DefaultStrategy,
    OBJECT_STORE: ObjectStoreStrategy,
}
