"""Removed files and transactions that a log carries on.

They are read from its files, as deltalake gives the present files alone. They go from checkpoint to
checkpoint until they are older than the log keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from delta_format.library import translated
from delta_format.location import root_of
from delta_format.log_files import CHECKPOINT, VERSION, number_of
from hudi_core.spi import FileStatus, MetaClientView

LONG_AGO: Final = -(10**13)
"""Milliseconds, in the year 1653: older than any retention of a log."""
_LINES: Final = (b'{"remove"', b'{"txn"')
_COLUMNS: Final = ("remove.path", "txn.appId", "txn.version")


@dataclass(slots=True)
class Entries:
    """Removed files and transactions of a log's newest version.

    ``removed`` are spelled as in the log, and some may have been added again. ``transactions``
    gives the version of each application.
    """

    removed: set[str] = field(default_factory=set)
    transactions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, meta_client: MetaClientView, files: Iterable[FileStatus]) -> Self:
        """Read the last checkpoint and the versions behind it."""
        numbers = {one.path: number_of(one.name, CHECKPOINT) for one in files}
        last = max(numbers, key=lambda path: numbers[path], default=None)
        storage, found = meta_client.root, cls()
        with translated(root_of(meta_client)):
            since = -1
            if last is not None and numbers[last] >= 0:
                since = numbers[last]
                found._take_checkpoint(storage.read(last))
            versions = sorted(one.path for one in files if number_of(one.name, VERSION) > since)
            for data in meta_client.run_map(storage.read, versions):
                found._take_version(data)
        return found

    def _take_checkpoint(self, data: bytes) -> None:
        table = pq.ParquetFile(pa.BufferReader(data)).read(columns=list(_COLUMNS))
        for row in table.to_pylist():
            removed, transaction = row.get("remove"), row.get("txn")
            if removed is not None and removed["path"] is not None:
                self.removed.add(removed["path"])
            if transaction is not None and transaction["appId"] is not None:
                self.transactions[transaction["appId"]] = transaction["version"]

    def _take_version(self, data: bytes) -> None:
        for line in data.splitlines():
            if line.startswith(_LINES):
                self._take(json.loads(line))

    def _take(self, action: dict[str, Any]) -> None:
        removed, transaction = action.get("remove"), action.get("txn")
        if removed is not None:
            path, is_old = removed["path"], removed.get("deletionTimestamp") == LONG_AGO
            (self.removed.discard if is_old else self.removed.add)(path)
        if transaction is not None:
            name, is_old = transaction["appId"], transaction.get("lastUpdated") == LONG_AGO
            if is_old:
                self.transactions.pop(name, None)
            else:
                self.transactions[name] = transaction["version"]
