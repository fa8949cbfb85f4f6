"""Storage strategies by name: built in, or an entry point of a distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.placement import DEFAULT_STRATEGY, OBJECT_STORE, STORAGE_POINT
from hudi_core.storage.object_store_strategy import ObjectStoreStrategy
from hudi_core.storage.strategy import DefaultStrategy, StorageStrategy

_BUILT_IN: Final[Mapping[str, type[StorageStrategy]]] = {
    DEFAULT_STRATEGY: DefaultStrategy,
    OBJECT_STORE: ObjectStoreStrategy,
}


def storage_strategy(name: str, options: Mapping[str, str]) -> StorageStrategy:
    """Return the strategy of a name, with a table's options.

    Raises
    ------
    UnknownExtensionError
        No strategy has the name, so that the table's files cannot be found.
    PluginConflictError
        Several distributions register the name.
    PluginLoadError, ExtensionCallError
        The strategy cannot be imported or made.
    InvalidOptionError
        An option of it cannot be used.
    """
    built_in = _BUILT_IN.get(name)
    if built_in is not None:
        return built_in(options)
    return STORAGE_POINT.make(name, StorageStrategy, lambda kind: kind(options))
