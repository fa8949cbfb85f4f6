"""Storage strategies by name: built in, or registered by distributions."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from hudi_core.config.placement import DEFAULT_STRATEGY, OBJECT_STORE, PlacementKeys
from hudi_core.errors import InvalidOptionError, PluginConflictError, PluginLoadError
from hudi_core.storage.object_store_strategy import ObjectStoreStrategy
from hudi_core.storage.strategy import DefaultStrategy, StorageStrategy

STRATEGY_GROUP: Final = "hudi.storage_strategies"
"""Entry points of this group are classes, each a :class:`StorageStrategy`."""
_KIND: Final = "storage strategy"
_BUILT_IN: Final[Mapping[str, type[StorageStrategy]]] = {
    DEFAULT_STRATEGY: DefaultStrategy,
    OBJECT_STORE: ObjectStoreStrategy,
}


def strategy_names() -> tuple[str, ...]:
    """Names of the strategies that there are, sorted; imports nothing."""
    return tuple(sorted({*_BUILT_IN, *(one.name for one in entry_points(group=STRATEGY_GROUP))}))


def storage_strategy(name: str, options: Mapping[str, str]) -> StorageStrategy:
    """Return the strategy of a name, with a table's options.

    Raises
    ------
    InvalidOptionError
        No strategy has the name, so that the table's files cannot be found; or an option of it
        cannot be used.
    PluginConflictError
        Several distributions register the name.
    PluginLoadError
        The strategy cannot be imported or made.
    """
    built_in = _BUILT_IN.get(name)
    if built_in is not None:
        return built_in(options)
    found = {(_owner(one), one.value): one for one in entry_points(group=STRATEGY_GROUP, name=name)}
    if not found:
        raise InvalidOptionError(
            PlacementKeys.strategy.key,
            name,
            "the storage strategy is not known",
            f"Known are {', '.join(strategy_names())}; install the distribution that has another.",
        )
    if len(found) > 1:
        raise PluginConflictError(name, sorted(owner for owner, _ in found), _KIND)
    ((owner, _),) = found
    return _made(name, owner, next(iter(found.values())), options)


def _made(name: str, owner: str, entry: EntryPoint, options: Mapping[str, str]) -> StorageStrategy:
    try:
        kind = entry.load()
    except (ImportError, AttributeError) as error:
        raise PluginLoadError(name, owner, str(error), _KIND) from error
    if not (isinstance(kind, type) and issubclass(kind, StorageStrategy)):
        reason = f"{entry.value} is no class of storage strategies"
        raise PluginLoadError(name, owner, reason, _KIND)
    made: StorageStrategy = kind(options)
    return made


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "an unnamed distribution"
