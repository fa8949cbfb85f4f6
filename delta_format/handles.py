"""Handles of deltalake, kept between two looks at one log.

Opening a log replays its last checkpoint, in which every removed file stays that one of Hudi's file
slices may still need: the longer a table lives, the longer that takes. A kept handle needs only
what has come since. It is lent to one user at a time, as some calls of the library move it to
another version, and is proved to be of the same log before it is used again.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from deltalake import DeltaTable

from delta_format.location import LOG_FOLDER, store_options, table_uri
from hudi_core.spi import MetaClientView, PathNotFoundError

_MOST: Final = 4
"""Tables whose handles are kept; each holds what its table's newest version names."""

_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Handle:
    """A handle, and what proves which log it is of.

    Attributes
    ----------
    table
        The library's object.
    version
        The version that it was at when it was lent; it may have moved on since.
    tag
        The store's tag of that version's file then. Versions never change: with another tag it is
        another log. ``None`` where the file is gone, which checkpoints allow.
    """

    table: DeltaTable
    version: int
    tag: str | None


_kept: OrderedDict[_Key, Handle] = OrderedDict()


def newest(meta_client: MetaClientView) -> Handle:
    """Return a handle at the newest version of a table's log, which nobody else has."""
    kept = _kept.pop(_key(meta_client), None)
    if kept is None or kept.tag is None or _tag(meta_client, kept.version) != kept.tag:
        return opened(meta_client)
    kept.table.update_incremental()
    if kept.table.version() == kept.version:
        return kept
    return _handle(meta_client, kept.table)


def opened(meta_client: MetaClientView, version: int | None = None) -> Handle:
    """Return a handle that is made of the whole log.

    Parameters
    ----------
    version
        A version to go back to; the newest by default.
    """
    table = DeltaTable(
        table_uri(meta_client), version=version, storage_options=store_options(meta_client)
    )
    return _handle(meta_client, table)


def keep_after(user: object, meta_client: MetaClientView, handle: Handle) -> None:
    """Keep a handle once its user is gone."""
    weakref.finalize(user, _keep, _key(meta_client), handle).atexit = False


def forget_handles() -> None:
    """Drop what is kept, as a log is about to go."""
    _kept.clear()


def _handle(meta_client: MetaClientView, table: DeltaTable) -> Handle:
    version = int(table.version())
    return Handle(table, version, _tag(meta_client, version))


def _keep(key: _Key, handle: Handle) -> None:
    _kept[key] = handle
    if len(_kept) > _MOST:
        _kept.popitem(last=False)


def _key(meta_client: MetaClientView) -> _Key:
    return table_uri(meta_client), tuple(sorted(store_options(meta_client).items()))


def _tag(meta_client: MetaClientView, version: int) -> str | None:
    try:
        return meta_client.storage.version(f"{LOG_FOLDER}/{version:020}.json")[1]
    except PathNotFoundError:
        return None
