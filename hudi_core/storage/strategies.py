"""Storage strategies by name, built in or of other distributions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_core.config.placement import DEFAULT_STRATEGY, OBJECT_STORE, STORAGE_POINT
from hudi_core.errors import PluginContractError, UnsafePathError
from hudi_core.storage.object_store_strategy import ObjectStoreStrategy
from hudi_core.storage.safe_path import require_safe_folder
from hudi_core.storage.strategy import DefaultStrategy, StorageStrategy

_BUILT_IN: Final[Mapping[str, type[StorageStrategy]]] = {
    DEFAULT_STRATEGY: DefaultStrategy,
    OBJECT_STORE: ObjectStoreStrategy,
}


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
