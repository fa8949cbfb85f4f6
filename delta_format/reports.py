"""Reports of a log's versions (``commitInfo``), read once each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from deltalake import DeltaTable

from delta_format.handles import Handle, tag_of_version
from delta_format.location import root_of
from hudi_core.spi import MetaClientView

Report = dict[str, Any]

_LOGS: Final = 4
"""Logs whose reports are kept in memory."""
_MOST: Final = 2048
"""Reports that are kept of a log: more than a timeline has instants before it is archived."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Reports of a log, and what proves which one it is.

    ``tag`` is the store's tag of the file of ``version``: another tag means another log.
    ``reports`` go back from that version, one for each; ``is_all``: there are no older ones.
    """

    version: int
    tag: str
    reports: tuple[Report, ...]
    is_all: bool


_known: Final[OrderedDict[str, _Known]] = OrderedDict()
_lock: Final = threading.Lock()


def forget_reports() -> None:
    """Drop what is kept, as a log is about to go."""
    with _lock:
        _known.clear()


class Reports:
    """The reports of one version and of those before it.

    The library reads the file of each version again, and every look at a table needs twice as many
    as its timeline has instants: after 200 commits 6 ms, of which each commit had two. Versions
    never change, so only those since the last look are read.
    """

    def __init__(
        self, meta_client: MetaClientView, table: DeltaTable, handle: Handle | None = None
    ) -> None:
        self._client, self._table, self._handle = meta_client, table, handle
        self._version = int(table.version())
        self._found: tuple[Report, ...] = ()
        self._is_all = False
        self._has_looked = False

    @property
    def read(self) -> tuple[Report, ...]:
        """What was read so far, the newest first."""
        return self._found

    def newest(self, limit: int | None) -> tuple[Report, ...]:
        """So many of the newest reports, or all there are."""
        if not self._has_looked:
            self._has_looked = True
            self._use_known()
        enough = self._is_all or (limit is not None and limit <= len(self._found))
        if not enough:
            self._found = tuple(self._table.history(limit))
            self._is_all = limit is None or len(self._found) < limit
            self._keep()
        return self._found[:limit]

    def _use_known(self) -> None:
        with _lock:
            known = _known.get(root_of(self._client))
        since = 0 if known is None else self._version - known.version
        if known is None or since < 0 or self._tag(known.version) != known.tag:
            return
        read = self._handle.report if self._handle is not None and since == 1 else None
        later = (dict(read),) if read else tuple(self._table.history(since)) if since else ()
        # a version of another engine may report nothing
        if [one.get("version") for one in later] == list(range(self._version, known.version, -1)):
            self._found, self._is_all = (*later, *known.reports), known.is_all
            if since:
                self._keep()

    def _tag(self, version: int) -> str | None:
        known = self._handle and self._handle.tag_of(version)
        return known or tag_of_version(self._client, version)

    def _keep(self) -> None:
        tag = self._tag(self._version)
        if tag is None or not self._found or self._found[0].get("version") != self._version:
            return
        kept = self._found[:_MOST]
        is_all = self._is_all and len(kept) == len(self._found)
        with _lock:
            root = root_of(self._client)
            _known.pop(root, None)
            _known[root] = _Known(self._version, tag, kept, is_all)
            if len(_known) > _LOGS:
                _known.popitem(last=False)
