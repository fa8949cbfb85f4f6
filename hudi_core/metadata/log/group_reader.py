"""One file group of a partition of the metadata table, merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hudi_core.metadata.log.layers import (
    BaseLayer,
    Layer,
    LogLayer,
    RecordsFile,
    base_layer,
    log_layers,
)
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.log.visible_instants import VisibleInstants
from hudi_core.metadata.merging import merge
from hudi_core.model.files import FileSlice, LogFile
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """Facts for reading a file group; a value for executors."""

    slice: FileSlice
    counts: VisibleInstants
    completion: Mapping[InstantTime, str]

    def reader(self, storage: Storage) -> GroupReader:
        """Reader of the file in the metadata table's storage."""
        return GroupReader(storage, self.slice, self.counts, self._completed_at)

    def _completed_at(self, time: InstantTime) -> str:
        return self.completion.get(time, time)


class GroupReader:
    """Reads the latest slice of a file group."""

    def __init__(
        self,
        storage: Storage,
        found: FileSlice,
        counts: Callable[[InstantTime], bool],
        completion: Callable[[InstantTime], str],
    ) -> None:
        self.slice = found
        self._storage = storage
        self._counts = counts
        self._completion = completion

    @property
    def path(self) -> str:
        """Where its partition of the metadata table is, for errors."""
        return f"{self._storage.root}/{self.slice.partition_path}"

    @cached_property
    def layers(self) -> Sequence[Layer]:
        """The base file and the log blocks that count, the oldest first."""
        return [*self.logs] if self.base is None else [self.base, *self.logs]

    @cached_property
    def base(self) -> BaseLayer | None:
        """The base file; ``None`` where there is none yet."""
        found = self.slice.base_file
        return None if found is None else base_layer(RecordsFile(self._storage, found.status))

    @cached_property
    def logs(self) -> Sequence[Layer]:
        """The log blocks that count, the oldest first."""
        return list(_without_rolled_back(self._log_layers()))

    def lookup(self, keys: Sequence[str]) -> dict[str, MetadataRecord | None]:
        """Latest records of some keys; absent keys are left out.

        Removals are kept (``None``, and entries that say so); see
        :func:`~hudi_core.metadata.merging.present`.
        """
        return _merged(layer.lookup(keys) for layer in self.layers)

    def changed(self, keys: Sequence[str]) -> dict[str, MetadataRecord | None]:
        """Latest records of the given keys that occur in the log."""
        reported = [list(layer.lookup(keys)) for layer in self.logs]
        some = list(dict.fromkeys(key for layer in reported for key, _ in layer))
        base = self.base.lookup(some) if self.base is not None and some else ()
        return _merged([base, *reported])

    def scan(self, prefixes: Sequence[str] = ("",)) -> dict[str, MetadataRecord | None]:
        """Latest records of all keys with one of some prefixes."""
        return _merged(layer.scan(prefixes) for layer in self.layers)

    def _log_layers(self) -> list[LogLayer]:
        logs = sorted(self.slice.log_files, key=self._order)
        return [
            found
            for log in logs
            if self._counts(log.name.instant)
            for found in log_layers(RecordsFile(self._storage, log.status))
            if found.instant == log.name.instant or self._counts(InstantTime(found.instant))
        ]

    def _order(self, log: LogFile) -> tuple[str, str, int, str]:
        name = log.name
        return self._completion(name.instant), name.instant, name.version, name.write_token or ""


def _without_rolled_back(found: Sequence[LogLayer]) -> Iterable[Layer]:
    """Yield the layers that no later block takes back."""
    for number, one in enumerate(found):
        undone = any(later.target == one.instant for later in found[number + 1 :])
        if one.layer is not None and not undone:
            yield one.layer


def _merged(
    layers: Iterable[Iterable[tuple[str, MetadataRecord | None]]],
) -> dict[str, MetadataRecord | None]:
    found: dict[str, MetadataRecord | None] = {}
    for layer in layers:
        for key, record in layer:
            found[key] = merge(found.get(key), record)
    return found
