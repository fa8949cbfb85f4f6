"""A format's lister of files, guarded as its hooks are.

Which rows a table has, and to which file a row that comes belongs, depends on a lister: one
that names too little makes rows disappear, and an upsert put them in twice. So its answers are
checked as far as that is cheap: their kind, that every requested partition is in them, and that one
without a file has no rows by what the table itself knows (:mod:`hudi_core.plugin.empty_listing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeVar, cast

import numpy as np
import pyarrow as pa

from hudi_core.metadata.lister import DroppableLister, MetadataLister, ValidatingLister
from hudi_core.model.client import MetaClientView
from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath
from hudi_core.model.format import MetadataFactory, TimelineFactory
from hudi_core.model.named_files import NamedFile, NamedFiles
from hudi_core.model.protocols import FileLister
from hudi_core.model.ranges import MatchingLister, MayMatch, RangeSource, Texts, ValueIndex
from hudi_core.model.ranges import ValueRanges as Ranges
from hudi_core.plugin.empty_listing import EmptyListings
from hudi_core.plugin.guard import Guard
from hudi_core.view.orphans import Leftovers
from hudi_core.view.storage_lister import StorageLister

T = TypeVar("T")
Files = Mapping[PartitionPath, Sequence[FileStatus]]

_OWN: Final = frozenset({StorageLister, MetadataLister, DroppableLister, ValidatingLister})
"""The project's listers, which a format may return: nothing of them is its own."""
_FILES: Final = "a mapping from partition paths to sequences of FileStatus"


class GuardedLister:
    """A format's :class:`~hudi_core.model.protocols.FileLister`, with the plain abilities.

    Parameters
    ----------
    guard
        Calls the format.
    lister
        The format's lister.
    empty
        Decides whether there may be nothing.
    """

    def __init__(self, guard: Guard, lister: FileLister, empty: EmptyListings) -> None:
        self._guard, self._lister, self._empty = guard, lister, empty

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path."""
        method, wanted = "FileLister.list_partitions", "a sequence of partition paths"
        found = self._guard.call(method, self._lister.list_partitions)
        self._guard.require(method, found, (Sequence,), wanted)
        paths = self._guard.call(method, lambda: tuple(found))
        if isinstance(found, str) or not _are_all(paths, str):
            self._guard.refuse(method, found, wanted)
        if not paths:
            self._empty.require_partitions()
        return paths

    def list_files(self, partitions: Sequence[PartitionPath]) -> Files:
        """Return the files of each partition."""
        lister = self._lister
        found = self._listed(
            "FileLister.list_files", partitions, lambda: lister.list_files(partitions)
        )
        empty = [path for path, files in found.items() if not files]
        if empty:
            self._empty.require_files(empty)
        return found

    def _listed(
        self, method: str, partitions: Sequence[PartitionPath], ask: Callable[[], Files]
    ) -> Files:
        def listed() -> object:
            found: object = ask()
            if not isinstance(found, Mapping):
                return found
            return {path: found[path] for path in partitions if path in found}

        answer = self._guard.call(method, listed)
        self._guard.require(method, answer, (dict,), _FILES)
        found = cast("dict[PartitionPath, Sequence[FileStatus]]", answer)
        missing = [path for path in partitions if path not in found]
        if missing:
            self._guard.raise_violation(f"{method} says nothing of the partition {missing[0]!r}")
        for path, files in found.items():
            self._guard.require(method, files, (Sequence,), _FILES)
            found[path] = kept = self._guard.call(method, lambda files=files: tuple(files))  # type: ignore[misc]
            if not _are_all(kept, FileStatus):
                self._guard.raise_violation(
                    f"{method} names a file of the partition {path!r} that is no FileStatus"
                )
        return found

    def _each(
        self, method: str, ask: Callable[[], Iterable[T]], kind: type[T], wanted: str
    ) -> Iterator[T]:
        found = self._guard.call(method, ask)
        self._guard.require(method, found, (Iterable,), wanted)
        for one in self._guard.each(method, self._guard.call(method, lambda: iter(found))):
            self._guard.require(method, one, (kind,), wanted)
            yield one

    def _ranges(
        self, method: str, count: int, kind: pa.DataType, ask: Callable[[], Ranges | None]
    ) -> Ranges | None:
        found = self._guard.call(method, ask)
        self._guard.require(method, found, (Ranges, type(None)), "ValueRanges or None")
        if found is not None and not self._guard.call(method, lambda: _fits(found, count, kind)):
            self._guard.raise_violation(
                f"{method} returned ranges that are not of {count} places, or not of type {kind}"
            )
        return found


class _WithRanges(GuardedLister):
    """Also a :class:`~hudi_core.model.ranges.RangeSource`."""

    @property
    def _source(self) -> RangeSource:
        return cast("RangeSource", self._lister)

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> Ranges | None:
        """Return ranges of a column in partitions."""
        method, ask = "RangeSource.partition_ranges", self._source.partition_ranges
        return self._ranges(method, len(partitions), kind, lambda: ask(partitions, column, kind))

    def file_ranges(
        self, partitions: Texts, names: Texts, column: str, kind: pa.DataType
    ) -> Ranges | None:
        """Return ranges of a column in files."""
        method, ask = "RangeSource.file_ranges", self._source.file_ranges
        return self._ranges(method, len(names), kind, lambda: ask(partitions, names, column, kind))


class _Matching(GuardedLister):
    """Also a :class:`~hudi_core.model.ranges.MatchingLister`."""

    def list_matching(self, partitions: Sequence[PartitionPath], may_match: MayMatch) -> Files:
        """Return files of the file groups with a matching base file."""
        lister = cast("MatchingLister", self._lister)
        return self._listed(
            "MatchingLister.list_matching",
            partitions,
            lambda: lister.list_matching(partitions, may_match),
        )


class _WithValues(GuardedLister):
    """Also a :class:`~hudi_core.model.ranges.ValueIndex`."""

    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        """Return where values of a column are."""
        method, index = "ValueIndex.groups_of_values", cast("ValueIndex", self._lister)
        found = self._guard.call(method, lambda: index.groups_of_values(column, values))
        self._guard.require(method, found, (frozenset, type(None)), "a frozenset or None")
        return found


class _WithNames(GuardedLister):
    """Also a :class:`~hudi_core.model.named_files.NamedFiles`."""

    def named_files(self) -> Iterator[NamedFile]:
        """Yield the files of the newest state."""
        ask = cast("NamedFiles", self._lister).named_files
        return self._each("NamedFiles.named_files", ask, NamedFile, "NamedFile after NamedFile")


class _WithLeftovers(GuardedLister):
    """Also :class:`~hudi_core.view.orphans.Leftovers`."""

    def leftovers(self) -> Iterator[str]:
        """Yield files of the format's metadata that nothing reaches."""
        ask = cast("Leftovers", self._lister).leftovers
        return self._each("Leftovers.leftovers", ask, str, "path after path")


_RICHER: Final = (
    (RangeSource, _WithRanges),
    (MatchingLister, _Matching),
    (ValueIndex, _WithValues),
    (NamedFiles, _WithNames),
    (Leftovers, _WithLeftovers),
)
"""What a lister may be besides."""


class GuardedMetadataFactory:
    """A format's :class:`~hudi_core.model.format.MetadataFactory`.

    Parameters
    ----------
    guard
        Calls the format.
    factory
        The format's factory.
    timelines
        Gives the timeline as the format sees it.
    """

    def __init__(
        self, guard: Guard, factory: MetadataFactory, timelines: Callable[[], TimelineFactory]
    ) -> None:
        self._guard, self._factory, self._timelines = guard, factory, timelines

    def create(self, meta_client: MetaClientView) -> FileLister:
        """Return the table's file lister, with the abilities of the format's."""
        lister = self._own_lister(meta_client)
        if type(lister) in _OWN:
            return lister
        method = "MetadataFactory.create"
        richer = tuple(
            mixin
            for protocol, mixin in _RICHER
            if self._guard.call(method, lambda kind=protocol: isinstance(lister, kind))  # type: ignore[misc]
        )
        empty = EmptyListings(self._guard, meta_client, self._own_lister, self._timelines)
        return _class_with(richer)(self._guard, lister, empty)

    def _own_lister(self, meta_client: MetaClientView) -> FileLister:
        method = "MetadataFactory.create"
        lister = self._guard.call(method, lambda: self._factory.create(meta_client))
        self._guard.require(method, lister, (FileLister,), "FileLister")
        return lister


@lru_cache(maxsize=16)
def _class_with(richer: tuple[type[GuardedLister], ...]) -> type[GuardedLister]:
    """Return the lister class with these abilities, visible to ``isinstance``."""
    return type("GuardedLister", richer, {}) if richer else GuardedLister


def _are_all(items: Sequence[object], kind: type) -> bool:
    """Whether all items are of a kind; checked once per type."""
    return all(issubclass(one, kind) for one in set(map(type, items)))


def _fits(ranges: Ranges, count: int, kind: pa.DataType) -> bool:
    bounds = (ranges.minimum, ranges.maximum)
    masks = (ranges.may_be_null, ranges.may_have_value)
    return all(len(one) == count and one.type == kind for one in bounds) and all(
        len(one) == count and isinstance(one, np.ndarray) and one.dtype == np.bool_ for one in masks
    )
