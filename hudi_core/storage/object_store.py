"""Metadata files on object stores (S3, GCS, Azure, memory), by conditional puts.

A store may apply a put and lose the answer, and a client that repeats the put then learns that
another client was first. So every put carries a token of its own in the object's metadata; after
every error but a clear refusal the object is read, and the token shows whose it is.

The client repeats requests by itself, and goes on where an object's bytes broke off. A listing that
broke off is requested once more here.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError as ObjectExists
from obstore.exceptions import BaseError, GenericError, PreconditionError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from hudi_core.errors import (
    AlreadyExistsError,
    PathNotFoundError,
    PreconditionFailedError,
    StorageError,
)
from hudi_core.extension.guard import require_same_process
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Paths
from hudi_core.storage.location import StoreKind, parse_location
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.safe_path import (
    require_range,
    require_safe_folder,
    require_safe_path,
    require_size,
)

_MARK: Final = "hudiput"
_ATTEMPTS: Final = 6
_FIRST_PAUSE_S: Final = 0.05
_LISTINGS: Final = 4
_LISTING_S: Final = 10.0
"""A listing that broke off is asked for again for so long; the client itself waits for minutes."""
_FAILURES: Final = (BaseError, OSError, ValueError)
"""What obstore raises: its own, FileNotFoundError, ValueError for paths it does not take."""

_Answer = TypeVar("_Answer")
_Store = S3Store | GCSStore | AzureStore | MemoryStore
_memory: Final[dict[str, MemoryStore]] = {}


class ObjectStorage:
    """The :class:`~hudi_core.model.protocols.Storage` of a place in an object store.

    Picklable: what crosses is the URI and the options, and the client is made where it is needed.

    ``memory://name/table`` is for tests: the store of that name lives as long as the process.
    """

    def __init__(self, root: str, options: StorageOptions | None = None) -> None:
        self._location = parse_location(root)
        self._prefix = f"{self._location.key}/" if self._location.key else ""
        self._options = (options or StorageOptions()).at(self._location.bucket)

    @property
    def root(self) -> str:
        """URI of the place, without a trailing slash."""
        return self._location.uri

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Return a file's bytes.

        A file of more than ``max_bytes`` raises ``CorruptMetadataError``.
        """
        return self._read(path, max_bytes)[0]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on, or up to the end."""
        full = self._full(require_safe_path(path))
        require_range(path, offset, length)
        if length == 0:
            return b""
        place = self._prefix + path
        try:
            with self._translated(path):
                try:
                    found = obstore.get_range(self._store, place, start=offset, length=length)
                    return bytes(found)
                except FileNotFoundError as error:
                    raise PathNotFoundError(full) from error
        except StorageError:
            # a store refuses a range that begins where the file ends
            status = self.head(path)
            if status is None or offset < status.size:
                raise
            return b""

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically; AlreadyExistsError when there is one."""
        self._conditional_put(require_safe_path(path), data, None)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        with self._translated(require_safe_path(path)):
            obstore.put(self._store, self._prefix + path, data, use_multipart=False)

    def head(self, path: str) -> FileStatus | None:
        """Return size and time of a file; ``None`` when there is none."""
        with self._translated(require_safe_path(path)):
            try:
                return self._file_status(obstore.head(self._store, self._prefix + path))
            except FileNotFoundError:
                return None

    def version(self, path: str) -> tuple[bytes, str]:
        """Return a file's bytes and the tag that :meth:`compare_and_set` takes."""
        data, found = self._read(path, None)
        return data, _tag(found)

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        """Replace a file if its tag is ``expected``; return the new tag.

        ``expected`` is ``None`` where the file must not exist.
        """
        try:
            return self._conditional_put(require_safe_path(path), data, expected)
        except AlreadyExistsError as error:
            raise PreconditionFailedError(self._full(path)) from error

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        """Yield the files below a folder."""
        return self._list(require_safe_folder(prefix), recursive, others)

    def list_names(self, folder: str, others: Paths | None = None) -> Sequence[str]:
        """Names of the files directly in a folder, sorted."""
        return [status.name for status in self.list(folder, others=others)]

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Return the paths of the folders directly below a folder, sorted."""
        with self._translated(require_safe_folder(prefix)):
            place = self._prefix + prefix
            found = _listed(lambda: obstore.list_with_delimiter(self._store, place))
            return sorted(path.removeprefix(self._prefix) for path in found["common_prefixes"])

    def delete(self, path: str) -> bool:
        """Delete a file; ``False`` when there was none."""
        if self.head(path) is None:
            return False  # a delete would not show it
        with self._translated(path):
            try:
                obstore.delete(self._store, self._prefix + path)
            except FileNotFoundError:
                return False
        return True

    def discard(self, paths: Sequence[str]) -> None:
        """Delete files, existing or not.

        One request for a thousand.
        """
        if not paths:
            return
        places = [self._prefix + require_safe_path(path) for path in paths]
        with self._translated(paths[0]):
            try:
                obstore.delete(self._store, places)
            except FileNotFoundError:
                # some stores give up at the first file that is not there
                for place in places:
                    with suppress(FileNotFoundError):
                        obstore.delete(self._store, place)

    def delete_tree(self, prefix: str) -> int:
        """Delete everything below a folder; return the number of files deleted."""
        count = 0
        with self._translated(require_safe_path(prefix)):
            for batch in obstore.list(self._store, self._prefix + prefix):
                paths = [found["path"] for found in batch]
                obstore.delete(self._store, paths)
                count += len(paths)
        return count

    @property
    def _store(self) -> _Store:
        place = self._location
        return open_store(place.kind, place.bucket, place.account, self._options)

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def _read(self, path: str, max_bytes: int | None) -> tuple[bytes, Any]:
        full = self._full(require_safe_path(path))
        with self._translated(path):
            try:
                found = obstore.get(self._store, self._prefix + path)
                require_size(full, found.meta["size"], max_bytes)
                return bytes(found.bytes()), found.meta
            except FileNotFoundError as error:
                raise PathNotFoundError(full) from error

    def _list(self, folder: str, recursive: bool, others: Paths | None) -> Iterator[FileStatus]:
        prefix = self._prefix + folder
        with self._translated(folder):
            if recursive:
                yield from map(self._file_status, self._list_all(prefix))
            else:
                found = _listed(lambda: obstore.list_with_delimiter(self._store, prefix))
                if others is not None:
                    cut = len(self._prefix)
                    others += [path[cut:] for path in found["common_prefixes"]]
                yield from map(self._file_status, found["objects"])

    def _list_all(self, prefix: str) -> Iterator[Any]:
        """Yield everything below a prefix; resume listings that break off."""
        last: str | None = None
        batches = obstore.list(self._store, prefix)

        def following() -> Sequence[Any]:
            nonlocal batches
            try:
                return next(batches, ())
            except GenericError:
                batches = obstore.list(self._store, prefix, offset=last)
                raise

        while batch := _listed(following):
            last = batch[-1]["path"]
            yield from batch

    def _file_status(self, found: Any) -> FileStatus:
        modified = int(found["last_modified"].timestamp() * 1000)
        return FileStatus(found["path"].removeprefix(self._prefix), found["size"], modified)

    def _conditional_put(self, path: str, data: bytes, expected: str | None) -> str:
        """Put ``data`` where the object's tag is ``expected``.

        ``None`` expects that there is no object.
        """
        token = uuid.uuid4().hex
        mode: Any = "create" if expected is None else json.loads(expected)
        for attempt in range(_ATTEMPTS):
            try:
                with self._translated(path):
                    return _tag(self._put_with_token(path, data, mode, token))
            except StorageError as error:
                with self._translated(path):
                    found, owner = self._owner(path)
                if owner == token:
                    return _tag(found)  # the put was applied, and only its answer was lost
                refused = isinstance(error.__cause__, (ObjectExists, PreconditionError))
                missing = isinstance(error.__cause__, FileNotFoundError) and expected is not None
                if not (refused or missing):
                    raise
                if expected is None and found is not None:
                    raise AlreadyExistsError(self._full(path)) from error
                if expected is not None and (found is None or _tag(found) != expected):
                    raise PreconditionFailedError(self._full(path)) from error
                # refused, although the condition holds: two puts met in the store, and neither need
                # have won
                time.sleep(_FIRST_PAUSE_S * 2**attempt)
        raise StorageError(
            f"{self._full(path)} could not be written: the store kept refusing the request",
            "Other writers are at the same file; try again.",
            path=self._full(path),
        )

    def _put_with_token(self, path: str, data: bytes, mode: Any, token: str) -> Any:
        return obstore.put(
            self._store,
            self._prefix + path,
            data,
            attributes={_MARK: token},
            mode=mode,
            use_multipart=False,
        )

    def _owner(self, path: str) -> tuple[Any, str | None]:
        """Contents of a path, and its put's token."""
        try:
            found = obstore.get(self._store, self._prefix + path)
        except FileNotFoundError:
            return None, None
        return found.meta, found.attributes.get(_MARK)

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            full = self._full(path)
            reason = str(error).split("\n", 1)[0]  # what follows is the client's own state
            raise StorageError(
                f"{full}: {reason}",
                "Check the address, the bucket and the credentials, and try again.",
                path=full,
            ) from error


def open_store(
    kind: StoreKind, bucket: str, account: str | None, options: StorageOptions
) -> _Store:
    """The client of a bucket or container; kept and shared.

    A client that was used before the process was forked cannot be used: ``ForkedProcessError``.
    """
    require_same_process("obstore")
    return _kept_store(kind, bucket, account, options)


@lru_cache(maxsize=64)
def _kept_store(
    kind: StoreKind, bucket: str, account: str | None, options: StorageOptions
) -> _Store:
    arguments = options.for_obstore(kind, bucket, account)
    match kind:
        case StoreKind.S3:
            return S3Store(bucket, **arguments)
        case StoreKind.GCS:
            return GCSStore(bucket, **arguments)
        case StoreKind.AZURE:
            return AzureStore(bucket, **arguments)
        case StoreKind.MEMORY:
            return _memory.setdefault(bucket, MemoryStore())
    raise StorageError(
        "A local folder is no object store",
        "Open local paths with hudi_core.storage.posix.PosixStorage.",
    )


def _listed(call: Callable[[], _Answer]) -> _Answer:
    """List; once more, a few times, where the answer broke off."""
    ends = time.monotonic() + _LISTING_S
    for attempt in range(_LISTINGS - 1):
        try:
            return call()
        except GenericError:
            if time.monotonic() > ends:
                raise
            time.sleep(_FIRST_PAUSE_S * 2**attempt)
    return call()


def _tag(found: Any) -> str:
    # S3 and Azure compare e_tag, GCS version; what a store does not know must not be named
    known = {name: found[name] for name in ("e_tag", "version") if found.get(name) is not None}
    return json.dumps(known, sort_keys=True)
