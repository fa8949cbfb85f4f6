"""Maps logical paths of data files to physical ones.

Timelines, plans and views name logical paths: partition path and file name, relative to the table.
Where a file really is only this folder of the project knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from itertools import groupby, repeat
from operator import contains, itemgetter
from typing import Final, NamedTuple, Protocol

from hudi_core.config.placement import Placement
from hudi_core.model.files import LogFileName, join_path
from hudi_core.storage.safe_path import require_safe_folder, require_safe_path
from hudi_core.storage.strategies import StorageStrategy, storage_strategy

_TABLE_FOLDER: Final = ".hoodie"
_FEW: Final = 4
"""Fewer files of one partition are placed one by one."""


class Place(NamedTuple):
    """Where a file is.

    ``root`` is the table's folder or a storage path; ``path`` is relative to it.
    """

    root: str
    path: str

    @property
    def uri(self) -> str:
        """Path or URI of the file."""
        return f"{self.root}/{self.path}"


class Run(NamedTuple):
    """Where files are that follow each other below one root.

    ``root`` is the table's folder or a storage path; ``paths`` are relative to it, in the order in
    which they were asked for.
    """

    root: str
    paths: list[str]


class StorageLayout(Protocol):
    """Translates paths of one table; both directions undo each other."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Where data files may be: the table's folder, or its storage paths."""
        ...

    def place(self, logical_path: str) -> Place:
        """Where a file is."""
        ...

    def runs(self, logical_paths: Iterable[str]) -> list[Run]:
        """Where files are, in their order; sooner than one after the other.

        Of 100,000 files the objects that name their places one by one take half of the time.
        """
        ...

    def logical(self, place: Place) -> str | None:
        """The logical path of the file at a place, or ``None``.

        ``None`` where it cannot be one of the table.
        """
        ...


@dataclass(frozen=True, slots=True)
class PlainLayout:
    """Data files in the table's folder, under their logical paths."""

    base_path: str

    @property
    def roots(self) -> tuple[str, ...]:
        """The table's folder."""
        return (self.base_path,)

    def place(self, logical_path: str) -> Place:
        """See :meth:`StorageLayout.place`."""
        return Place(self.base_path, require_safe_path(logical_path))

    def runs(self, logical_paths: Iterable[str]) -> list[Run]:
        """See :meth:`StorageLayout.runs`."""
        return [Run(self.base_path, [require_safe_path(path) for path in logical_paths])]

    def logical(self, place: Place) -> str | None:
        """See :meth:`StorageLayout.logical`."""
        return require_safe_path(place.path) if place.root == self.base_path else None


@dataclass(frozen=True)
class FederatedLayout:
    """Data files below storage paths, in the folders that a strategy picks.

    ``<storage path>/<folders of the strategy>/<table>/<partition>/<file>``. Everything in
    ``.hoodie``, the partitions' own metadata and whatever belongs to no file group stay in the
    table's folder (RFC-60, "Generating File Paths").

    The first of ``roots`` is that of partitions without a rule; ``rules`` are patterns of partition
    paths, each with its storage path.
    """

    base_path: str
    table: str
    roots: tuple[str, ...]
    rules: tuple[tuple[str, str], ...]
    strategy: StorageStrategy
    _folders: dict[str, tuple[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __getstate__(self) -> Mapping[str, object]:
        return {**self.__dict__, "_folders": {}}

    def place(self, logical_path: str) -> Place:
        """See :meth:`StorageLayout.place`."""
        return self._place(*logical_path.rpartition("/"))

    def runs(self, logical_paths: Iterable[str]) -> list[Run]:
        """See :meth:`StorageLayout.runs`."""
        runs: list[Run] = []
        # paths of one partition mostly follow each other, and share all but their names
        for folder, run in groupby((path.rpartition("/") for path in logical_paths), itemgetter(0)):
            for root, paths in self._in_folder(folder, list(run)):
                if runs and runs[-1].root == root:
                    runs[-1].paths.extend(paths)
                else:
                    runs.append(Run(root, paths))
        return runs

    def _in_folder(self, folder: str, parts: list[tuple[str, str, str]]) -> Iterator[Run]:
        """Where files of one folder are.

        ``parts`` are folder, slash and name of each path.
        """
        names = [name for _, _, name in parts]
        ids = [name.partition("_")[0] for name in names]
        are_base_files = (
            len(names) >= _FEW
            and all(ids)
            and all(map(contains, names, repeat("_")))
            and not any(map(str.startswith, names, repeat(".")))
            and not folder.startswith(_TABLE_FOLDER)
        )
        is_relative = bool(folder) or not any(slash for _, slash, _ in parts)
        if are_base_files and is_relative and "\0" not in "".join(names):
            yield self._in_partition(folder, names, ids)
            return
        for part in parts:
            place = self._place(*part)
            yield Run(place.root, [place.path])

    def _place(self, folder: str, slash: str, name: str) -> Place:
        file_id, separator, _ = name.partition("_")
        if not separator or not file_id or name[0] == "." or folder.startswith(_TABLE_FOLDER):
            file_id = file_group_of(f"{folder}{slash}{name}")
            if not file_id:
                return Place(self.base_path, require_safe_path(f"{folder}{slash}{name}"))
        if "\0" in name or (slash and not folder):
            require_safe_path(f"{folder}{slash}{name}")
        root, below = self._folders.get(folder) or self._learned(folder)
        upper = self.strategy.location(folder, file_id)
        return Place(root, f"{upper}/{below}{name}" if upper else f"{below}{name}")

    def _in_partition(self, folder: str, names: list[str], ids: list[str]) -> Run:
        """Where files of one partition are."""
        root, below = self._folders.get(folder) or self._learned(folder)
        uppers = self.strategy.locations(folder, ids)
        if not self.strategy.depth:
            return Run(root, [f"{below}{name}" for name in names])
        placed = zip(uppers, names, strict=True)
        return Run(root, [f"{upper}/{below}{name}" for upper, name in placed])

    def logical(self, place: Place) -> str | None:
        """See :meth:`StorageLayout.logical`."""
        path = require_safe_path(place.path)
        if place.root != self.base_path or place.root in self.roots:
            parts = path.split("/")
            depth = self.strategy.depth
            if parts[depth : depth + 1] == [self.table] and len(parts) > depth + 1:
                below = "/".join(parts[depth + 1 :])
                if self.place(below) == place:
                    return below
        if place.root == self.base_path and not file_group_of(path):
            return path
        return None

    def root_of(self, partition_path: str) -> str:
        """The storage path of a partition."""
        return next(
            (root for pattern, root in self._patterns() if pattern.match(partition_path)),
            self.roots[0],
        )

    def below(self, upper: str, folder: str) -> str:
        """The path below a storage path of a folder of the table.

        ``upper`` are the folders of the strategy; ``folder`` is relative to the table, empty for
        all of it.
        """
        return join_path(upper, join_path(self.table, require_safe_folder(folder)).rstrip("/"))

    def _learned(self, folder: str) -> tuple[str, str]:
        """Root of a partition, and the beginning of its files' paths."""
        require_safe_folder(folder)
        known = self.root_of(folder), f"{self.table}/{folder}/" if folder else f"{self.table}/"
        self._folders[folder] = known
        return known

    def _patterns(self) -> Sequence[tuple[re.Pattern[str], str]]:
        return _compiled(self.rules)


@lru_cache(maxsize=64)
def _compiled(rules: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(translate(pattern)), root) for pattern, root in rules)


def file_group_of(path: str) -> str:
    """File group id in a path's name; empty without one."""
    if path.split("/", 1)[0] == _TABLE_FOLDER:
        return ""
    name = path.rpartition("/")[2]
    if name.startswith("."):
        log = LogFileName.parse(name)
        return "" if log is None else log.file_id
    file_id, separator, _ = name.partition("_")
    return file_id if separator else ""


@lru_cache(maxsize=256)
def layout_of(base_path: str, table: str, placement: Placement) -> StorageLayout:
    """Return the layout of a table.

    Kept, for every task and file asks for it: 1 instead of 20 us.
    """
    if placement.is_default:
        return PlainLayout(base_path)
    strategy = storage_strategy(placement.strategy, dict(placement.options))
    return FederatedLayout(base_path, table, placement.paths, placement.rules, strategy)
