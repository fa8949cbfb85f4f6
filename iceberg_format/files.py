"""Iceberg's metadata files, read and written through the storage of the table.

pyiceberg asks a ``FileIO`` for its files. This one knows the files below the table's base path and
no others: what a table's metadata names elsewhere is not opened, and no class that it names is
loaded.
"""

from __future__ import annotations

import copy
import io
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Final, Protocol, Self, runtime_checkable

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from hudi_core.spi import (
    CorruptMetadataError,
    MetaClientView,
    Storage,
    UnsupportedTableError,
)

MAX_BYTES: Final = 1 << 28
"""No metadata file of a sound table comes near this size."""
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
"""Schemes of Hadoop that readers of Iceberg do not know, and what they call the same store."""
_LOCAL: Final = "file://"
_ONE_SLASH: Final = re.compile("^file:/(?!/)")


_ANY_SCHEME: Final = re.compile(r"^([a-z0-9]+:)?/*")


def without_scheme(location: str) -> str:
    """A location as clients of all kinds spell it alike."""
    return _ANY_SCHEME.sub("", location).rstrip("/")


def _with_scheme(uri: str) -> str:
    """A path of this machine as a URI."""
    return f"{_LOCAL}{uri}" if uri.startswith("/") else _ONE_SLASH.sub("file:///", uri)


def table_uri(base_path: str) -> str:
    """Return the base path as the URI that every Iceberg reader takes."""
    scheme, separator, rest = base_path.partition("://")
    if not separator:
        return f"{_LOCAL}{base_path}"
    return f"{_SCHEMES.get(scheme, scheme)}://{rest}"


def named_root(client: MetaClientView) -> str:
    """URI of the table's folder, as its metadata has it.

    Symbolic links give a folder several names, and Iceberg's metadata is made of whole paths.
    """
    own = table_uri(client.base_path)
    stored = client.format_options.get("location", "").rstrip("/")
    is_other = not f"{stored}/".startswith((f"{own}/", f"{client.base_path}/"))
    if own.startswith(_LOCAL) and stored.startswith(_LOCAL) and is_other:
        here, folder = os.path.realpath(client.base_path), stored.removeprefix(_LOCAL)
        while len(folder) > 1:
            if os.path.realpath(folder) == here:
                return f"{_LOCAL}{folder}"
            folder = os.path.dirname(folder)
    return own


@runtime_checkable
class _FlushesTogether(Protocol):
    """A storage on a disk whose files can be flushed together."""

    def flushed_together(self) -> AbstractContextManager[Storage]: ...


class TableFiles(FileIO):
    """The files of one table, by URI."""

    def __init__(self, client: MetaClientView) -> None:
        super().__init__({})
        self.storage: Storage = client.storage
        self.root = named_root(client)
        self._places = client.files
        self._roots = tuple(
            (self.root if root == client.base_path else table_uri(root), root)
            for root in client.files.known_roots
        )

    @contextmanager
    def flushed_together(self) -> Iterator[Self]:
        """Flush at its end what the block writes.

        No metadata file names these files yet."""
        if not isinstance(self.storage, _FlushesTogether):
            yield self
            return
        with self.storage.flushed_together() as storage:
            files = copy.copy(self)
            files.storage = storage
            yield files

    def data_uri(self, path: str) -> str:
        """Return a data file's URI, by the table's storage strategy."""
        return self.uri(path) if self._places.is_plain else table_uri(self._places.uri(path))

    def data_path(self, uri: str) -> str:
        """The table's name of a data file."""
        if self._places.is_plain and len(self._roots) == 1:
            return self.path(uri)
        spelled = _with_scheme(uri)
        for place, root in self._roots:
            below = spelled.removeprefix(f"{place}/")
            if below != spelled and _is_safe(below):
                path = self._places.logical(below, root)
                if path is not None:
                    return path
        raise _outside(uri, ", ".join(place for place, _ in self._roots))

    def uri(self, path: str) -> str:
        """Return the URI of a path relative to the base path."""
        return f"{self.root}/{path}"

    def path(self, uri: str) -> str:
        """Return the path, relative to the base path, of a URI."""
        path = self.below(uri)
        if path is None or not _is_safe(path):
            raise _outside(uri, self.root)
        return path

    def below(self, uri: str) -> str | None:
        """A URI's path below the table, or ``None``.

        Hadoop, and with it Iceberg of Java, writes paths of this machine with a single slash, or
        without a scheme.
        """
        spelled = _with_scheme(uri)
        path = spelled.removeprefix(f"{self.root}/")
        return None if path == spelled else path

    def new_input(self, location: str) -> InputFile:
        """Return the file at a URI, for reading."""
        return _Input(location, self)

    def new_output(self, location: str) -> OutputFile:
        """Return the file at a URI, for writing once."""
        return _Output(location, self)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file, if it is there."""
        uri = location if isinstance(location, str) else location.location
        self.storage.delete(self.path(uri))


def require_one_access(client: MetaClientView) -> None:
    """Refuse storage paths that need different credentials."""
    roots = (client.base_path, *client.files.roots)
    buckets = [
        root.partition("://")[2].partition("/")[0] for root in roots if root.startswith("s3")
    ]
    if len({client.storage_options.at(bucket).for_readers for bucket in buckets}) > 1:
        raise UnsupportedTableError(
            client.base_path,
            "would have files in buckets that are reached with different options, and readers of "
            "Iceberg have one set of credentials for all files of a table",
            "Give one set for all buckets (fs.s3a.*), or use another format.",
        )


def _is_safe(path: str) -> bool:
    return not any(part in ("", ".", "..") for part in path.split("/"))


def _outside(uri: str, roots: str) -> CorruptMetadataError:
    return CorruptMetadataError(
        uri,
        f"the table's Iceberg metadata names it, and it is no file of the table: not below {roots}",
        "Only files of the table are read; restore its Iceberg metadata from a backup.",
    )


def require_numbered_versions(files: TableFiles, folder: str) -> None:
    """Refuse metadata with unnumbered versions, such as a catalog's."""
    if any(one.name.endswith(".metadata.json") for one in files.storage.list(folder)):
        raise UnsupportedTableError(
            files.root,
            f"has Iceberg metadata in {folder} of which a catalog knows the version",
            "Give the hoodie.table.format.iceberg.catalog.* options of that catalog, its name "
            "and the table's identifier among them; or, where no catalog has it any more, delete "
            "that folder.",
        )


class _Input(InputFile):
    def __init__(self, location: str, files: TableFiles) -> None:
        super().__init__(location)
        self._files, self._path = files, files.path(location)

    def __len__(self) -> int:
        found = self._files.storage.head(self._path)
        return 0 if found is None else found.size

    def exists(self) -> bool:
        return self._files.storage.head(self._path) is not None

    def open(self, seekable: bool = True) -> InputStream:
        del seekable
        return io.BytesIO(self._files.storage.read(self._path, MAX_BYTES))


class _Output(OutputFile):
    """Collects bytes, and puts them in one step on closing.

    So no reader sees half a file.
    """

    def __init__(self, location: str, files: TableFiles) -> None:
        super().__init__(location)
        self._files, self._path = files, files.path(location)
        self._stream = _Collected(self._files.storage, self._path)

    def __len__(self) -> int:
        return self._stream.size

    def exists(self) -> bool:
        return self._files.storage.head(self._path) is not None

    def to_input_file(self) -> InputFile:
        return self._files.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        del overwrite  # names are never used twice
        return self._stream


class _Collected(io.BytesIO):
    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path
        self.size = 0
        self._failed = False

    def __enter__(self) -> _Collected:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._failed = kind is not None
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        self.size = len(data)
        super().close()
        if not self._failed:
            self._storage.put_if_absent(self._path, data)
