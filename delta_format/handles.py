"""Handles of deltalake, kept between two looks at one log.

Opening a log replays its last checkpoint, in which every removed file stays that one of Hudi's file
slices may still need: the longer a table lives, the longer that takes. A kept handle needs only
what has come since. It is lent to one user at a time, as some calls of the library move it to
another version, and is proved to be of the same log before it is used again.
"""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from deltalake import DeltaTable

from delta_format.library import LIBRARY_ERRORS
from delta_format.location import store_options, table_uri
from delta_format.log_files import VERSION, file_of, number_of, readable_log
from hudi_core.spi import MetaClientView, StorageError, require_same_process

_MOST: Final = 4
"""Tables whose handles are kept; each holds what its table's newest version names."""
_LIBRARY: Final = "deltalake"

_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Handle:
    """A handle, and what proves which log it is of.

    ``version`` is that of when it was lent. ``tag`` is the store's tag of that version's file:
    versions never change, so another tag means another log. ``None`` where nothing proves that the
    handle has read that file. ``before`` are version and tag from which it was brought up;
    ``report`` is what the version says of itself, where that was read with the tag.
    """

    table: DeltaTable
    version: int
    tag: str | None
    before: tuple[int, str | None] = (-1, None)
    report: Mapping[str, Any] | None = None

    def tag_of(self, version: int) -> str | None:
        """The tag of a version's file, where it was looked at."""
        return dict((self.before, (self.version, self.tag))).get(version)


_kept: OrderedDict[_Key, Handle] = OrderedDict()
_ends: WeakKeyDictionary[object, weakref.finalize[Any, Any]] = WeakKeyDictionary()
"""What happens at the end of the users of handles."""


def newest(meta_client: MetaClientView) -> Handle:
    """Return an unshared handle at the log's newest version."""
    require_same_process(_LIBRARY)
    kept = _kept.pop(_key(meta_client), None)
    found = None if kept is None else _brought_up(meta_client, kept)
    return opened(meta_client) if found is None else found


def later(meta_client: MetaClientView, earlier: Handle) -> Handle:
    """The newest version, from a handle that is no longer used."""
    require_same_process(_LIBRARY)
    found = None if earlier.tag is None else _brought_up(meta_client, earlier)
    return opened(meta_client) if found is None else found


def opened(meta_client: MetaClientView) -> Handle:
    """Return a handle that is made of the whole log."""
    require_same_process(_LIBRARY)
    listed = readable_log(meta_client)
    newest = max((number_of(one.name, VERSION) for one in listed), default=-1)
    before = tag_of_version(meta_client, newest) if newest >= 0 else None
    table = library_table(meta_client)
    version = int(table.version())
    # in between, however seldom, the table may have been dropped and made again
    is_same = version == newest and tag_of_version(meta_client, version) == before
    return Handle(table, version, before if is_same else None)


def at_version(meta_client: MetaClientView, version: int | None = None) -> DeltaTable:
    """An unshared handle at an older version, or the newest.

    A process that was forked from one that had used the library is refused
    (:class:`ForkedProcessError`).
    """
    require_same_process(_LIBRARY)
    readable_log(meta_client)
    return library_table(meta_client, version)


def library_table(meta_client: MetaClientView, version: int | None = None) -> DeltaTable:
    """The library's table of a log that it may open."""
    return DeltaTable(
        table_uri(meta_client), version=version, storage_options=store_options(meta_client)
    )


def keep_after(user: object, meta_client: MetaClientView, handle: Handle) -> None:
    """Keep a handle after its user's end, if provably of its log."""
    if handle.tag is not None:
        _ends[user] = end = weakref.finalize(user, _keep, _key(meta_client), handle)
        end.atexit = False


def never_keep(user: object) -> None:
    """Let a handle go with its user, as it has failed."""
    end = _ends.pop(user, None)
    if end is not None:
        end.detach()


def forget_handles() -> None:
    """Drop what is kept, as a log is about to go."""
    _kept.clear()


def _brought_up(meta_client: MetaClientView, kept: Handle) -> Handle | None:
    """Return a handle updated to the newest version.

    ``None`` where its log may be another.
    """
    table, version = kept.table, kept.version
    later_files = readable_log(meta_client, since=version)
    # what has moved by itself, as changes of columns do, is at a version without proof
    if int(table.version()) != version or tag_of_version(meta_client, version) != kept.tag:
        return None
    if not later_files:
        return kept  # the oldest go first: it is there, so that a later one would be, too
    try:
        table.update_incremental()
    except LIBRARY_ERRORS:
        return None  # the whole log shows what is wrong, or that nothing is
    now = int(table.version())
    if now == version:
        return kept
    data, tag = _file_and_tag(meta_client, now)
    # still there after the new one was seen: both are of one log
    is_same = tag_of_version(meta_client, version) == kept.tag
    return Handle(table, now, tag, (version, kept.tag), _report(data, now)) if is_same else None


def _keep(key: _Key, handle: Handle) -> None:
    _kept[key] = handle
    if len(_kept) > _MOST:
        _kept.popitem(last=False)


def _key(meta_client: MetaClientView) -> _Key:
    return table_uri(meta_client), tuple(sorted(store_options(meta_client).items()))


def tag_of_version(meta_client: MetaClientView, version: int) -> str | None:
    """The store's tag of a version's file.

    ``None`` where there is no such file, or its tag cannot be had.
    """
    return _file_and_tag(meta_client, version)[1]


def _file_and_tag(meta_client: MetaClientView, version: int) -> tuple[bytes, str | None]:
    try:
        return meta_client.root.version(file_of(version))
    except StorageError:
        return b"", None


def _report(data: bytes, version: int) -> Mapping[str, Any] | None:
    """A version's report, where its file begins with it."""
    try:
        found = json.loads(data.partition(b"\n")[0])["commitInfo"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return {**found, "version": version} if isinstance(found, dict) else None
