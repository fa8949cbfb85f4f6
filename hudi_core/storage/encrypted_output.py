"""Data files of S3, written with a key of the store.

Pyarrow's client of S3 cannot name one, obstore's can. So files are read by the one, which needs no
key for that, and written by the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import obstore
import pyarrow as pa
import pyarrow.fs as pafs
from obstore.exceptions import BaseError

from hudi_core.storage.location import StoreKind
from hudi_core.storage.object_store import open_store
from hudi_core.storage.options import StorageOptions

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
