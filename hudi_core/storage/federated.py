"""Data files in many folders, under their logical paths, as one storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hudi_core.engine.base import REQUESTS_AT_A_TIME, thread_pool
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Paths, Storage
from hudi_core.storage.layout import FederatedLayout, Place, file_group_of
from hudi_core.storage.location import parse_location
from hudi_core.storage.subfolder import FilesElsewhere

_TABLE_FOLDER: Final = ".hoodie"
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Prefix:
    """One folder of a table below a storage path.

    A value, which engines can send away.

    ``root`` is the storage path; ``upper`` are the folders of the strategy.
    """

    root: str
    storage: Storage
    layout: FederatedLayout
    upper: str

    def below(self, folder: str) -> str:
        """Where a folder of the table is, below the storage path."""
        return self.layout.below(self.upper, folder)

    def logical(self, path: str) -> str | None:
        """The table's name of a file of the storage path."""
        return self.layout.logical(Place(self.root, path))

    def list(self, folder: str = "", recursive: bool = True) -> tuple[FileStatus, ...]:
        """The table's files in a folder of it, under their logical paths."""
        found = self.storage.list(self.below(folder), recursive)
        named = ((self.logical(one.path), one) for one in found)
        return tuple(
            FileStatus(path, one.size, one.modified_ms) for path, one in named if path is not None
        )

    def folders(self, folder: str) -> tuple[str, ...]:
        """The folders directly in a folder of the table."""
        cut = len(self.below("")) + 1
        return tuple(path[cut:] for path in self.storage.list_folders(self.below(folder)))


class FederatedStorage(FilesElsewhere):
    """The :class:`~hudi_core.model.protocols.Storage` of a table whose files lie elsewhere.

    Takes and gives logical paths. What a storage strategy places is looked for where it belongs,
    all else in the table's folder: a file in a prefix that is not its own is not the table's.
    Picklable, as the storages are that it is made of.

    ``roots`` are in the order of the layout.
    """

    def __init__(self, table: Storage, roots: Sequence[Storage], layout: FederatedLayout) -> None:
        self.table_storage, self._layout = table, layout
        self._roots = dict(zip(layout.roots, roots, strict=True))

    @property
    def root(self) -> str:
        """Path or URI of the table's folder."""
        return self.table_storage.root

    # --- one file --------------------------------------------------------------------------------

    def discard(self, paths: Sequence[str]) -> None:
        """Delete files, whether they are there or not."""
        by_root: dict[str, list[str]] = {}
        for run in self._layout.runs(paths):
            by_root.setdefault(run.root, []).extend(run.paths)
        for root, own in by_root.items():
            self._of(root).discard(own)

    # --- folders ---------------------------------------------------------------------------------

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        """Yield the files of a folder, of all prefixes; see :class:`Storage`."""
        for one in self.table_storage.list(prefix, recursive, others):
            if not file_group_of(one.path):
                yield one
        if not _is_metadata(prefix):
            found = self._each(lambda one: one.list(prefix, recursive), self.prefixes())
            for some in found:
                yield from some

    def list_names(self, folder: str, others: Paths | None = None) -> Sequence[str]:
        """Names of the files directly in a folder, sorted."""
        return sorted(one.name for one in self.list(folder, others=others))

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Return the paths of the folders directly below a folder, sorted."""
        found = set(self.table_storage.list_folders(prefix))
        if not _is_metadata(prefix):
            for some in self._each(lambda one: one.folders(prefix), self.prefixes()):
                found.update(some)
        return sorted(found)

    def delete_tree(self, prefix: str) -> int:
        """Delete a folder and everything in it; return the file count.

        Of the table's own folder only what lies in the prefixes is deleted.
        """
        deleted = self.table_storage.delete_tree(prefix) if prefix else 0
        if _is_metadata(prefix):
            return deleted
        counts = self._each(lambda one: one.storage.delete_tree(one.below(prefix)), self.prefixes())
        return deleted + sum(counts)

    def prefixes(self) -> tuple[Prefix, ...]:
        """The folders below storage paths that may hold files of the table.

        Cost: one listing of folders for each storage path, and for each folder of a strategy that
        has several levels.
        """
        return tuple(
            Prefix(root, storage, self._layout, upper)
            for root, storage in self._roots.items()
            for upper in self._uppers(storage)
        )

    def strays(self) -> Iterator[str]:
        """Places of files in the table's folders that are not its own."""
        for prefix in self.prefixes():
            for one in prefix.storage.list(prefix.below(""), recursive=True):
                if prefix.logical(one.path) is None:
                    yield f"{prefix.root}/{one.path}"
        for one in self.table_storage.list("", recursive=True):
            if file_group_of(one.path):
                yield f"{self.table_storage.root}/{one.path}"

    @property
    def table(self) -> str:
        """Name of the table, and of its folders below the storage paths."""
        return self._layout.table

    @property
    def root_storages(self) -> tuple[Storage, ...]:
        """The storages of the storage paths."""
        return tuple(self._roots.values())

    def _uppers(self, storage: Storage) -> Sequence[str]:
        strategy, level = self._layout.strategy, [""]
        for _ in range(strategy.depth):
            level = [one for some in self._each(storage.list_folders, level) for one in some]
        return [one for one in level if strategy.is_location(one)]

    def _each(
        self, function: Callable[[_Item], _Answer], items: Sequence[_Item]
    ) -> Sequence[_Answer]:
        """Map a function: in threads where requests are waited for."""
        is_local = all(parse_location(root).is_local for root in self._roots)
        if is_local or len(items) < 2:
            return [function(one) for one in items]
        with thread_pool(min(len(items), REQUESTS_AT_A_TIME)) as pool:
            return list(pool.map(function, items))

    def at(self, path: str) -> tuple[Storage, str]:
        """Where a file is: its storage, and its path there."""
        place = self._layout.place(path)
        return self._of(place.root), place.path

    def _of(self, root: str) -> Storage:
        return self._roots.get(root, self.table_storage)


def _is_metadata(path: str) -> bool:
    return path.split("/", 1)[0] == _TABLE_FOLDER
