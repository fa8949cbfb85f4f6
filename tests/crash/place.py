"""Where a table of the rig is, and how what is there is read without the project's code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import pyarrow.fs as pafs
import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
from tests.crash import kinds
from tests.crash.tables import OPTIONS

_BASE: Final = ".parquet"


class Facts(NamedTuple):
    """Bytes and rows of a data file; the rows of a log are not known."""

    size: int
    rows: int | None


class Place(Protocol):
    """A table's folder."""

    @property
    def root(self) -> str:
        """Path or URI."""
        ...

    @property
    def data_root(self) -> str:
        """Path or URI of the folder that its data files are in."""
        ...

    @property
    def hudi_rs_reads(self) -> bool:
        """Whether hudi-rs finds its rows."""
        ...

    @property
    def rust(self) -> Mapping[str, str]:
        """How readers in Rust get there: deltalake and hudi-rs."""
        ...

    @property
    def pyiceberg(self) -> dict[str, str]:
        """How pyiceberg gets there."""
        ...

    def open(self, options: Mapping[str, str] = OPTIONS) -> hudi.Table:
        """Open the table."""
        ...

    def files(self, *, hidden: bool = False) -> Iterator[str]:
        """Yield the paths of its files, relative; of those that no lister sees as well, if asked
        to. Those of data files elsewhere begin with ``..``."""
        ...

    def logical(self, path: str) -> str:
        """Return the path by which commits name a data file, of one that :meth:`files` yields."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        ...

    def facts(self, uri: str) -> Facts | None:
        """Return what a data file has; ``None`` where it is not there."""
        ...


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A folder of this machine."""

    path: Path
    rust: Mapping[str, str] = field(default_factory=dict)
    pyiceberg: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> str:
        return str(self.path)

    @property
    def data_root(self) -> str:
        return str(kinds.data_root(self.path))

    @property
    def hudi_rs_reads(self) -> bool:
        return kinds.hudi_rs_reads(self.path)

    def open(self, options: Mapping[str, str] = OPTIONS) -> hudi.Table:
        return hudi.Table.open(self.root, dict(options))

    def files(self, *, hidden: bool = False) -> Iterator[str]:
        for folder in {self.path, Path(self.data_root)}:
            for file in folder.rglob("*"):
                if file.is_file() and (hidden or not file.name.startswith(TEMPORARY_PREFIX)):
                    yield os.path.relpath(file, self.path)

    def logical(self, path: str) -> str:
        # ../<storage path>/<prefix>/<table>/<partition>/<file>
        return path.split("/", 4)[-1] if path.startswith("../") else path

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def facts(self, uri: str) -> Facts | None:
        file = Path(uri.removeprefix("file://"))
        if not file.is_file():
            return None
        rows = pq.read_metadata(file).num_rows if file.suffix == _BASE else None
        return Facts(file.stat().st_size, rows)


@dataclass(frozen=True)
class S3Place:
    """A folder in a store of S3's protocol.

    ``endpoint``: URL of the store, or of what stands before it. ``access_key``, ``secret_key``,
    ``region``: credentials, and where the bucket is.
    """

    root: str
    endpoint: str
    access_key: str
    secret_key: str
    region: str

    @property
    def data_root(self) -> str:
        return self.root

    @property
    def hudi_rs_reads(self) -> bool:
        return True

    @property
    def given(self) -> dict[str, str]:
        """How the project gets there."""
        return {
            "fs.s3a.access.key": self.access_key,
            "fs.s3a.secret.key": self.secret_key,
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": self.region,
            "fs.s3a.path.style.access": "true",
        }

    @property
    def rust(self) -> Mapping[str, str]:
        return {
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_endpoint": self.endpoint,
            "aws_region": self.region,
            "aws_allow_http": "true",
        }

    @property
    def pyiceberg(self) -> dict[str, str]:
        return {
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
        }

    def open(self, options: Mapping[str, str] = OPTIONS) -> hudi.Table:
        return hudi.Table.open(self.root, {**options, **self.given})

    def files(self, *, hidden: bool = False) -> Iterator[str]:
        del hidden  # a lister sees them all
        selector = pafs.FileSelector(self._path(self.root), allow_not_found=True, recursive=True)
        for found in self._filesystem.get_file_info(selector):
            if found.is_file:
                yield found.path.removeprefix(f"{selector.base_dir}/")

    def logical(self, path: str) -> str:
        return path

    def read(self, path: str) -> bytes:
        with self._filesystem.open_input_file(f"{self._path(self.root)}/{path}") as file:
            data: bytes = file.read()
            return data

    def facts(self, uri: str) -> Facts | None:
        found = self._filesystem.get_file_info(self._path(uri))
        if not found.is_file:
            return None
        if not found.path.endswith(_BASE):
            return Facts(found.size, None)
        rows = pq.read_metadata(found.path, filesystem=self._filesystem).num_rows
        return Facts(found.size, rows)

    @property
    def _filesystem(self) -> pafs.S3FileSystem:
        return pafs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=self.endpoint,
            region=self.region,
        )

    def _path(self, uri: str) -> str:
        return uri.partition("://")[2]


def place_of(where: Path | Place) -> Place:
    """Return the place that a path, or a place, is."""
    return LocalPlace(where) if isinstance(where, Path) else where
