"""Finds current Iceberg metadata and replaces it by compare-and-set.

Without options the table's own folder is the catalog: versions ``vN.metadata.json`` in
``<location>/metadata``, as Hadoop tables of Iceberg have them, so that every engine opens the table
by its path. A version is put if absent, which is the commit; ``version-hint.text`` is a hint only.
With ``hoodie.table.format.iceberg.catalog.*`` another catalog takes its place, see
:mod:`iceberg_format.external`. A table has one of them: when it goes from its folder into a
catalog, a last version says so, which no writer commits on, and then the versions go.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.table.metadata import (
    TableMetadata,
    TableMetadataUtil,
    TableMetadataV1,
)
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import IcebergBaseModel

from hudi_core.spi import (
    AlreadyExistsError,
    CorruptMetadataError,
    InvalidOptionError,
    Lineage,
    MetaClientView,
    NumberedFiles,
    PathNotFoundError,
    StorageError,
    UnfinishedMoveError,
    UnsupportedTableError,
)
from iceberg_format.files import MAX_BYTES, TableFiles, require_numbered_versions
from iceberg_format.lineage import ForeignSnapshots, foreign_snapshots, lineage_of, newest_of_hudi
from iceberg_format.manifest_files import SECOND, THIRD, Metadata

VERSION_KEY: Final = "hudi.format-version"
"""Property of a table that was asked for in another version of the format than 2."""
HINT: Final = "version-hint.text"
KEPT_VERSIONS: Final = 100
"""Older metadata files are deleted. A reader, or a writer that sleeps, may still hold one."""
MOVED_KEY: Final = "hudi.moved-to-catalog"
"""Property of the last version in a folder: which catalog has the table from then on."""
PREFIX: Final = "hoodie.table.format.iceberg."
CATALOG: Final = "catalog."
"""Options of a catalog begin with it, below those of the format."""
_VERSION: Final = re.compile(r"v([1-9][0-9]{0,17})\.metadata\.json")


class RefusedByCatalogError(Exception):
    """A catalog refused a change, which would fail again.

    It did not take place.
    """


@dataclass(frozen=True)
class TableState:
    """One version of the Iceberg table.

    ``location`` is the URI of the metadata file.
    """

    metadata: Metadata
    location: str

    @property
    def format_version(self) -> int:
        """Version of the Iceberg format."""
        return self.metadata.format_version

    @property
    def is_upgraded(self) -> bool:
        """Whether another writer has changed the version of the format."""
        asked = self.metadata.properties.get(VERSION_KEY, str(SECOND))
        return str(self.format_version) != asked

    @cached_property
    def lineage(self) -> Lineage:
        """Publications in its lineage."""
        return lineage_of(self.metadata)

    @cached_property
    def foreign(self) -> ForeignSnapshots | None:
        """Snapshots, or a format version, that Hudi did not make."""
        found = foreign_snapshots(self.metadata)
        if found is None and self.is_upgraded:
            return ForeignSnapshots((), newest_of_hudi(self.metadata))
        return found


class _RecentStates:
    """The last versions read or written, found by their bytes.

    A commit on 200 snapshots takes 90 ms of processors instead of 120, as it neither parses the
    metadata twice nor walks its lineage fifteen times.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, bytes], TableState] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, uri: str, data: bytes) -> TableState | None:
        """The version that a file of these bytes holds."""
        with self._lock:
            return self._states.get((uri, data))

    def keep(self, data: bytes, state: TableState) -> TableState:
        """Keep a version, and drop the oldest of too many."""
        with self._lock:
            self._states[state.location, data] = state
            while len(self._states) > _TABLES:
                self._states.popitem(last=False)
        return state

    def forget(self) -> None:
        """Drop what is kept of all tables."""
        with self._lock:
            self._states.clear()


_TABLES: Final = 4
"""Versions that are kept, mostly one of each table."""
RECENT: Final = _RecentStates()


class IcebergCatalog(Protocol):
    """Finds and replaces the current version of one table."""

    def load(self) -> TableState | None:
        """Return the current version, read again; ``None`` where there is no table."""
        ...

    def check(self) -> None:
        """Refuse a table that could not be made here; nothing is changed."""
        ...

    def create(self, metadata: Metadata) -> TableState:
        """Make the first version."""
        ...

    def newest(self) -> int:
        """Return the folder's newest version number; 0 without one."""
        ...

    def replace(self, metadata: Metadata, seen: int) -> TableState:
        """Make this the current version, whatever is there.

        Damaged or not.

        ``seen`` is what :meth:`newest` returned before the metadata was made;
        :class:`CommitFailedException` means another writer was at work. A table that is in another
        catalog is refused, as that one knows which version is current.
        """
        ...

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        """Replace ``state`` by what the updates make of it; one attempt.

        :class:`CommitFailedException` (the table is not in ``state`` any more) and
        :class:`RefusedByCatalogError` mean that nothing has changed.
        """
        ...


def metadata_folder(client: MetaClientView, files: TableFiles) -> str:
    """Return the folder of the Iceberg metadata, relative to the base path.

    ``hoodie.table.format.iceberg.location`` names the folder above it: the base path itself, which
    is the default, or a folder below it.
    """
    given = client.format_options.get("location", "").rstrip("/")
    for root in (client.base_path, files.root):
        if given in ("", root):
            return "metadata"
        given = given.removeprefix(f"{root}/")
    parts = given.split("/")
    if "://" in given or any(part in ("", ".", "..") for part in parts):
        raise InvalidOptionError(
            f"{PREFIX}location",
            client.format_options["location"],
            f"it is not a folder below {client.base_path}",
            "Leave it out, or name a folder of the table, such as .hoodie/iceberg. Of a table that "
            "was copied or moved, `hudi table repair PATH --force` rebuilds the metadata.",
        )
    return f"{given}/metadata"


@dataclass(frozen=True, slots=True)
class FolderCatalog:
    """The table's own folder.

    ``folder`` is that of the metadata, relative to the base path.
    """

    files: TableFiles
    folder: str

    def load(self) -> TableState | None:
        return self.load_since(None)

    def load_since(self, before: TableState | None) -> TableState | None:
        """The current version, found from one that was it before; see :meth:`last_state`."""
        state = self.last_state(before)
        if state is not None and MOVED_KEY in state.metadata.properties:
            raise _moved(self.files.root, state.metadata.properties[MOVED_KEY])
        return state

    def last_state(self, before: TableState | None = None) -> TableState | None:
        """Return the folder's newest version, even after a catalog's takeover.

        ``before`` is one that was the newest, and does as well as the hint.
        """
        number = self._named(before) or self._hinted()
        try:
            data = self.files.storage.read(self._path(number), MAX_BYTES) if number else b""
        except PathNotFoundError:
            number, data = 0, b""
        newest = self._newest_from(number)
        if not newest:
            return None
        if newest != number:
            data = self.files.storage.read(self._path(newest), MAX_BYTES)
        path = self._path(newest)
        uri = self.files.uri(path)
        known = RECENT.find(uri, data)
        return known or RECENT.keep(data, state_of(parse_metadata(data, path), uri))

    def newest(self) -> int:
        return max(self._versions(), default=0)

    def close(self, metadata: Metadata, name: str, seen: int) -> TableState:
        """Put a last version before a named catalog takes over."""
        properties = {**metadata.properties, MOVED_KEY: name}
        last = metadata.model_copy(update={"properties": properties})
        return self._next(last, seen + 1)

    def reopen(self, metadata: Metadata, closed: TableState) -> None:
        """Put the version after the last one: no catalog has taken over."""
        self._next(metadata, self._number(closed) + 1)

    def remove(self) -> None:
        """Delete all versions, the newest last.

        Readers would take them for the present state; the last one shows writers why.
        """
        for number in sorted(self._versions()):
            self.files.storage.delete(self._path(number))
        self.files.storage.delete(f"{self.folder}/{HINT}")

    def versions(self, state: TableState) -> NumberedFiles:
        """Metadata files of a version and all former ones, kept or not."""
        begin = self.files.uri(f"{self.folder}/v")
        return NumberedFiles(begin, ".metadata.json", self._number(state))

    def check(self) -> None:
        """The folder is the table's own."""

    def create(self, metadata: Metadata) -> TableState:
        if self._versions():
            raise CommitFailedException("The folder holds an Iceberg table already")
        # first: who is given the path finds the first version by it alone
        self._point_at(1)
        return self._put(metadata, 1)

    def replace(self, metadata: Metadata, seen: int) -> TableState:
        if not seen:
            require_numbered_versions(self.files, self.folder)
        made = self._put(metadata, seen + 1)
        # what came before may be damaged, or may name files that are about to go
        self._point_at(seen + 1)
        return made

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        for requirement in requirements:
            requirement.validate(state.metadata)
        metadata = update_table_metadata(state.metadata, updates, metadata_location=state.location)
        made = self._next(metadata, self._number(state) + 1)
        forget_older(self.files, state, made)
        return made

    def _next(self, metadata: TableMetadata, number: int) -> TableState:
        """Put the next version; path readers find either."""
        made = self._put(metadata, number)
        with contextlib.suppress(StorageError):
            self._point_at(number)
        return made

    def _put(self, metadata: TableMetadata, number: int) -> TableState:
        path, data = self._path(number), metadata_json(metadata)
        try:
            self.files.storage.put_if_absent(path, data)
        except AlreadyExistsError as error:
            raise CommitFailedException(f"{path} exists already") from error
        return RECENT.keep(data, state_of(metadata, self.files.uri(path)))

    def _point_at(self, number: int) -> None:
        self.files.storage.put(f"{self.folder}/{HINT}", str(number).encode())

    def _named(self, state: TableState | None) -> int:
        """Number of a version; 0 for none or another catalog."""
        match = state and _VERSION.fullmatch(state.location.rpartition("/")[2])
        return int(match[1]) if match else 0

    def _hinted(self) -> int:
        """The version that the hint names, which need not be there.

        0 without a hint.
        """
        try:
            hint = self.files.storage.read(f"{self.folder}/{HINT}", 64).strip()
        except (StorageError, CorruptMetadataError):
            hint = b""
        return int(hint) if re.fullmatch(rb"[1-9][0-9]{0,17}", hint) else 0

    def _newest_from(self, number: int) -> int:
        """The newest version, from a known one on; 0 without any."""
        number = number or max(self._versions(), default=0)
        while number and self.files.storage.head(self._path(number + 1)) is not None:
            number += 1
        return number

    def _versions(self) -> list[int]:
        names = [status.name for status in self.files.storage.list(self.folder)]
        return [int(match[1]) for match in map(_VERSION.fullmatch, names) if match]

    def _path(self, number: int) -> str:
        return f"{self.folder}/v{number}.metadata.json"

    def _number(self, state: TableState) -> int:
        match = _VERSION.fullmatch(state.location.rpartition("/")[2])
        if match is None:
            raise CorruptMetadataError(state.location, "its name is no version of the table")
        return int(match[1])


def forget_older(files: TableFiles, before: TableState, after: TableState) -> None:
    """Delete metadata files that a new version's log drops."""
    named = {entry.metadata_file for entry in after.metadata.metadata_log}
    for entry in before.metadata.metadata_log:
        if entry.metadata_file not in named:
            try:
                files.delete(entry.metadata_file)
            except (StorageError, CorruptMetadataError):
                return  # left for later: no reader looks for it


def state_of(metadata: TableMetadata, where: str) -> TableState:
    """Return a version of the table that a metadata file holds."""
    if not isinstance(metadata, TableMetadataV1):
        return TableState(metadata, where)
    raise UnsupportedTableError(
        where,
        f"is of version 1 of the Iceberg format, and versions {SECOND} and {THIRD} are written "
        "here",
        f"Have its engine upgrade the table to version {SECOND}.",
    )


def metadata_json(metadata: TableMetadata) -> bytes:
    """The content of a metadata file."""
    # pyiceberg refuses to write version 3, as its manifests are of version 2
    return IcebergBaseModel.model_dump_json(metadata).encode()


def parse_metadata(data: bytes, path: str) -> TableMetadata:
    """The table metadata in a metadata file."""
    try:
        return TableMetadataUtil.parse_raw(data.decode("utf-8"))
    except (ValidationError, ValueError) as error:
        raise CorruptMetadataError(
            path,
            f"it is no metadata of an Iceberg table ({type(error).__name__})",
            "`hudi table repair` with the table's path rebuilds it from the timeline and the "
            "data files.",
        ) from error


def _moved(root: str, name: str) -> UnfinishedMoveError:
    return UnfinishedMoveError(
        root,
        f"is being moved from its folder into a catalog ({name})",
        "Give the hoodie.table.format.iceberg.catalog.* options of that catalog; where it does not "
        "have the table, `hudi table repair` with them ends the move, and `hudi table repair "
        f"--force {root}` without them takes it back.",
    )
