"""Data files: where pyarrow finds them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

import obstore
import pyarrow as pa
import pyarrow.fs as pafs
from obstore.exceptions import BaseError

from hudi_core.config.storage_move import MovePhase
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    DataFileError,
    MisplacedFileError,
    PathNotFoundError,
    StorageError,
    UnsafePathError,
)
from hudi_core.model.files import BaseFileName
from hudi_core.model.protocols import Storage
from hudi_core.storage.disk import has_link
from hudi_core.storage.federated import FederatedStorage
from hudi_core.storage.kept_files import KEPT
from hudi_core.storage.layout import FederatedLayout, Place, PlainLayout, StorageLayout, layout_of
from hudi_core.storage.location import StoreKind, parse_location
from hudi_core.storage.object_store import open_store
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions

_ASKED: Final = 100
"""Files that are looked for elsewhere after an error that names none."""


def data_filesystem(uri: str, options: StorageOptions | None = None) -> tuple[pafs.FileSystem, str]:
    """Return a file system and a folder's path there.

    The path of a file below it is ``f"{root}/{path}"``. Data files may lie elsewhere than the
    table: see :class:`DataFiles`. File systems are kept and shared, for they hold connections.

    A store in memory is refused, since pyarrow cannot open it.
    """
    location = parse_location(uri)
    found = (options or StorageOptions()).at(location.bucket)
    filesystem = _open(location.kind, location.account, found)
    if location.is_local:
        return filesystem, location.key
    return filesystem, f"{location.bucket}/{location.key}".rstrip("/")


_WHOLE_BYTES: Final = 2 << 20
"""Files of an object store up to this size are fetched whole: one request takes about as long as
the transfer of so many bytes."""
_OPENED_ONCE_BYTES: Final = 64 * 1024
"""Files of a disk up to this size are opened once, where several steps read them."""


_KEPT_BYTES: Final = 256 << 20
_LEFT_BY_KEYS: Final = 192 << 20
"""Of these, bytes that record keys leave for files."""


class FetchedFiles:
    """Small files and columns of keys kept for a later step.

    A copy in another process has none of it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, bytes] = {}
        self._keys: dict[str, pa.ChunkedArray] = {}
        self._left = _KEPT_BYTES

    def __reduce__(self) -> tuple[type[FetchedFiles], tuple[()]]:
        return FetchedFiles, ()

    def keep(self, path: str, data: bytes) -> None:
        """Keep a file, where there is room."""
        with self._lock:
            if path not in self._files and len(data) <= self._left:
                self._files[path] = data
                self._left -= len(data)

    def take(self, path: str) -> bytes | None:
        """Give a file away; ``None`` where it is not kept."""
        with self._lock:
            data = self._files.pop(path, None)
            self._left += len(data or b"")
            return data

    def keep_keys(self, path: str, keys: pa.ChunkedArray) -> None:
        """Keep the record keys of a small file, where there is room."""
        with self._lock:
            room = min(_WHOLE_BYTES, self._left - _LEFT_BY_KEYS)
            if path not in self._keys and keys.nbytes <= room:
                self._keys[path] = keys
                self._left -= keys.nbytes

    def take_keys(self, path: str) -> pa.ChunkedArray | None:
        """Give the record keys of a file away, if kept."""
        with self._lock:
            keys = self._keys.pop(path, None)
            self._left += 0 if keys is None else keys.nbytes
            return keys


def require_no_links(uri: str, paths: Iterable[str]) -> None:
    """Refuse data files that a symbolic link leads out of their table.

    To be called where files are opened: metadata that anybody wrote may name them, and a writer of
    the table's folder could have any file of this machine read, and its rows copied in.
    Object stores have no links.

    Parameters
    ----------
    uri
        The table's folder.
    paths
        Physical paths below it. Costs a look at each file, and at each folder once.

    Raises
    ------
    UnsafePathError
        Names the first of them.
    """
    location = parse_location(uri)
    if not location.is_local:
        return
    linked: dict[str, bool] = {}
    for path in paths:
        full = os.path.join(location.key, path)
        folder = os.path.dirname(path)
        if folder not in linked:
            linked[folder] = has_link(location.key, folder)
        is_linked = linked[folder] or os.path.islink(full)
        if is_linked and not _is_below(full, os.path.realpath(location.key)):
            raise UnsafePathError(
                full,
                f"a symbolic link leads it to {os.path.realpath(full)}, out of the table",
                "Remove the link, or move what it points to into the table.",
            )


def _is_below(path: str, root: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{root.rstrip('/')}/")


@dataclass(frozen=True)
class DataFiles:
    """The data files of one table, to open or name them.

    All paths that it takes are logical ones: relative to the table. A value that executors get.

    ``coming`` is where a move that is not over copies the files to. The table's format may name
    them there already; they are read where they are.
    """

    base_path: str
    options: StorageOptions
    layout: StorageLayout
    coming: StorageLayout | None = None

    @classmethod
    def of(cls, base_path: str, options: StorageOptions, table: TableConfig) -> Self:
        """The data files of a table with this configuration."""
        move, coming = table.storage_move, None
        if move is not None and move.phase is not MovePhase.DELETING:
            coming = layout_of(base_path, table.name, move.other)
        layout = layout_of(base_path, table.name, table.placement)
        return cls(base_path, options, layout, coming)

    @property
    def root(self) -> str:
        """The table's folder, or its first storage path."""
        return self.layout.roots[0]

    @property
    def roots(self) -> tuple[str, ...]:
        """The table's folder, or its storage paths."""
        return self.layout.roots

    @property
    def known_roots(self) -> tuple[str, ...]:
        """:attr:`roots`, and those that a move goes to."""
        coming = () if self.coming is None else self.coming.roots
        return tuple(dict.fromkeys((*self.roots, *coming)))

    @property
    def is_plain(self) -> bool:
        """Whether data files lie in the table's folder."""
        return isinstance(self.layout, PlainLayout)

    def storage(self, *, fsync: bool = True) -> Storage:
        """A storage that takes logical paths; see :class:`FederatedStorage`."""
        return self.over(open_storage(self.base_path, self.options, fsync=fsync), fsync=fsync)

    def over(self, table: Storage, *, fsync: bool = True) -> Storage:
        """The same, with the open storage of the table's folder.

        It is that storage itself where data files lie in the table's folder.
        """
        if not isinstance(self.layout, FederatedLayout):
            return table
        roots = [open_storage(root, self.options, fsync=fsync) for root in self.roots]
        return FederatedStorage(table, roots, self.layout)

    def uri(self, path: str, /) -> str:
        """Path or URI at which a file really is."""
        return self.layout.place(path).uri

    def uris(self, paths: Iterable[str]) -> list[str]:
        """The same of many files."""
        runs = self.layout.runs(paths)
        return [f"{run.root}/{path}" for run in runs for path in run.paths]

    def below_root(self, path: str, /) -> str:
        """Where a file is, relative to its root."""
        return self.layout.place(path).path

    def logical(self, below_root: str, root: str | None = None, /) -> str | None:
        """The table's name of a file.

        ``root`` is one of :attr:`known_roots`, by default the first, and ``below_root`` relative to
        it. ``None`` for a file that cannot be the table's.
        """
        place = Place(root or self.root, below_root)
        found = self.layout.logical(place)
        if found is None and self.coming is not None:
            return self.coming.logical(place)
        return found

    def filesystem(self, path: str) -> tuple[pafs.FileSystem, str]:
        """The file system of a file, and its path there."""
        place = self.layout.place(path)
        filesystem, root = data_filesystem(place.root, self.options)
        return filesystem, f"{root}/{place.path}"

    def filesystems(self, paths: Sequence[str]) -> Iterator[tuple[pafs.FileSystem, list[str]]]:
        """Runs of files below one root: file system, and paths there."""
        for run in self.layout.runs(paths):
            filesystem, root = data_filesystem(run.root, self.options)
            yield filesystem, [f"{root}/{path}" for path in run.paths]

    @contextmanager
    def open(
        self,
        path: str,
        size: int | None = None,
        fetched: FetchedFiles | None = None,
        *,
        is_needed_again: bool = False,
    ) -> Iterator[pa.NativeFile]:
        """A file, opened to be read.

        With ``size`` a small file is fetched with one request. ``is_needed_again``: a later step
        reads the file, too, and finds it in ``fetched``. A missing file is an ``OSError`` here.
        """
        place = self.layout.place(path)
        data = None if fetched is None else fetched.take(path)
        if data is None:
            require_no_links(place.root, [place.path])
            keeps = fetched is not None and is_needed_again
            data = None if size is None else self._small(place, size, keeps=keeps)
        if data is None:
            with self._opened(place) as source:
                yield source
            return
        if fetched is not None and is_needed_again:
            fetched.keep(path, data)
        with pa.BufferReader(data) as source:
            yield source

    def _small(self, place: Place, size: int, *, keeps: bool) -> bytes | None:
        """The bytes of a small file; ``None`` for a large one."""
        if not parse_location(place.root).is_local:
            if size > _WHOLE_BYTES:
                return None
            kept = KEPT.find(place.root, place.path, size)
            return _whole(place.root, self.options, place.path) if kept is None else kept
        if size > _OPENED_ONCE_BYTES or not keeps:
            return None
        with self._opened(place) as source:
            data: bytes = source.read(size + 1)
        return data if len(data) == size else None

    def _opened(self, place: Place) -> pa.NativeFile:
        filesystem, root = data_filesystem(place.root, self.options)
        return filesystem.open_input_file(f"{root}/{place.path}")

    def keep(self, path: str, data: bytes) -> None:
        """Keep a small log, which the next write reads."""
        place = self.layout.place(path)
        KEPT.keep(place.root, place.path, data)

    def unreadable(self, paths: Iterable[str], reason: str) -> DataFileError:
        """The error of files of which one cannot be read.

        Where data files lie below storage paths, it costs two requests for each file that the
        reason names, or for the first few where it names none.
        """
        some = [] if self.is_plain else list(paths)
        named_ones = [one for one in some if one.rpartition("/")[2] in reason]
        found = next((one for one in (named_ones or some)[:_ASKED] if self.is_misplaced(one)), None)
        if found is None:
            return DataFileError(self.base_path, reason)
        named = BaseFileName.parse(found.rpartition("/")[2])
        return MisplacedFileError(self.base_path, found, named.instant if named else "?")

    def is_misplaced(self, path: str) -> bool:
        """Whether a file lies in the table's folder instead.

        Other engines put files there, which know of no storage paths.
        """
        if self.is_plain:
            return False
        table = open_storage(self.base_path, self.options, fsync=False)
        return table.head(path) is not None and self.over(table, fsync=False).head(path) is None

    def require_no_links(self, paths: Iterable[str]) -> None:
        """Refuse files that a symbolic link leads out of their root."""
        by_root: dict[str, list[str]] = {}
        for run in self.layout.runs(paths):
            by_root.setdefault(run.root, []).extend(run.paths)
        for root, own in by_root.items():
            require_no_links(root, own)


def _whole(uri: str, options: StorageOptions | None, path: str) -> bytes:
    try:
        return open_storage(uri, options).read(path)
    except PathNotFoundError as error:
        raise FileNotFoundError(path) from error
    except StorageError as error:
        raise OSError(error.what) from error


@lru_cache(maxsize=64)
def _open(kind: StoreKind, account: str | None, options: StorageOptions) -> pafs.FileSystem:
    arguments = options.for_pyarrow(kind, account)
    match kind:
        case StoreKind.LOCAL:
            return pafs.LocalFileSystem()
        case StoreKind.S3:
            plain = pafs.S3FileSystem(**arguments)
            if options.s3_encryption is None:
                return plain
            return pafs.PyFileSystem(EncryptedOutput(plain, options))
        case StoreKind.GCS:
            return pafs.GcsFileSystem(**arguments)
        case StoreKind.AZURE:
            return pafs.AzureFileSystem(**arguments)
    raise StorageError(
        "A store in memory cannot hold data files",
        "Use memory:// for metadata in tests only.",
    )


# --- encrypted output -----------------------------------------------------------------------------
# Pyarrow's client of S3 cannot name one, obstore's can. So files are read by the one, which needs
# no key for that, and written by the other.


_COPIED_BYTES: Final = 8 << 20


class EncryptedOutput(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """File system handler of S3 that encrypts new files by options.

    Picklable, as file systems of pyarrow are.
    """

    def __init__(self, plain: pafs.FileSystem, options: StorageOptions) -> None:
        self._plain, self._options = plain, options

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EncryptedOutput):
            return NotImplemented
        return bool(self._plain == other._plain) and self._options == other._options

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._options)

    def get_type_name(self) -> str:
        """See :meth:`pyarrow.fs.FileSystemHandler.get_type_name`."""
        return "s3+encrypted"

    def normalize_path(self, path: str) -> str:
        """See :meth:`pyarrow.fs.FileSystemHandler.normalize_path`."""
        return str(self._plain.normalize_path(path))

    # --- reading ---------------------------------------------------------------------------------

    def get_file_info(self, paths: list[str]) -> Any:
        """See :meth:`pyarrow.fs.FileSystemHandler.get_file_info`."""
        return self._plain.get_file_info(paths)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        """See :meth:`pyarrow.fs.FileSystemHandler.get_file_info_selector`."""
        return self._plain.get_file_info(selector)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """See :meth:`pyarrow.fs.FileSystemHandler.open_input_stream`."""
        return self._plain.open_input_stream(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """See :meth:`pyarrow.fs.FileSystemHandler.open_input_file`."""
        return self._plain.open_input_file(path)

    # --- writing ---------------------------------------------------------------------------------

    def open_output_stream(self, path: str, metadata: Any = None) -> pa.NativeFile:  # noqa: ARG002 - pyarrow's
        """See :meth:`pyarrow.fs.FileSystemHandler.open_output_stream`."""
        bucket, _, key = path.partition("/")
        with _as_os_errors(path):
            store = open_store(StoreKind.S3, bucket, None, self._options)
            return pa.PythonFile(_Output(path, obstore.open_writer(store, key)), mode="w")

    def copy_file(self, src: str, dest: str) -> None:
        """See :meth:`pyarrow.fs.FileSystemHandler.copy_file`."""
        with self.open_input_stream(src) as source, self.open_output_stream(dest) as target:
            while data := source.read(_COPIED_BYTES):
                target.write(data)

    def delete_file(self, path: str) -> None:
        """See :meth:`pyarrow.fs.FileSystemHandler.delete_file`.

        Pyarrow's own puts an object for the folder, without the key.
        """
        bucket, _, key = path.partition("/")
        with _as_os_errors(path):
            obstore.delete(open_store(StoreKind.S3, bucket, None, self._options), key)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Do nothing: S3 has no folders."""

    def open_append_stream(self, path: str, metadata: Any = None) -> pa.NativeFile:
        """Refuse it: S3 cannot append."""
        raise NotImplementedError("append", path, metadata)

    def move(self, src: str, dest: str) -> None:
        """Refuse it: nothing is ever moved on S3."""
        raise NotImplementedError("move", src, dest)

    def delete_dir(self, path: str) -> None:
        """Refuse it: folders are deleted by the storage of a table."""
        raise NotImplementedError("delete_dir", path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Refuse it: see :meth:`delete_dir`."""
        raise NotImplementedError("delete_dir_contents", path, missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        """Refuse it: see :meth:`delete_dir`."""
        raise NotImplementedError("delete_root_dir_contents")


class _Output:
    """A file of Python over obstore's writer.

    One request, or several parts; nothing is there before it is closed.
    """

    def __init__(self, path: str, writer: Any) -> None:
        self._path, self._writer = path, writer

    @property
    def closed(self) -> bool:
        return bool(self._writer.closed())

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        with _as_os_errors(self._path):
            self._writer.write(view)
        return len(view)

    def flush(self) -> None:
        """Do nothing: parts are sent as they are full."""

    def close(self) -> None:
        if not self.closed:
            with _as_os_errors(self._path):
                self._writer.close()


@contextmanager
def _as_os_errors(path: str) -> Iterator[None]:
    """Errors of obstore as pyarrow's client has them."""
    try:
        yield
    except BaseError as error:
        raise OSError(f"{path}: {str(error).partition(chr(10))[0]}") from error
