"""Where the Iceberg table's current metadata is found, and how it is replaced by compare-and-set.

Without options the table's own folder is the catalog: versions ``vN.metadata.json`` in
``<location>/metadata``, as Hadoop tables of Iceberg have them, so that every engine opens the table
by its path. A version is put if absent, which is the commit; ``version-hint.text`` is a hint only.
With ``hoodie.table.format.iceberg.catalog.*`` any catalog of pyiceberg takes its place: rest, sql,
hive, glue, dynamodb. Its options are taken from the session and never from the table, which
anybody could have written, and are not kept in it, as they may be secret.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Final, Protocol

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV2
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from hudi_core.spi import (
    AlreadyExistsError,
    CorruptMetadataError,
    InvalidOptionError,
    MetaClientView,
    StorageError,
)
from iceberg_format.files import MAX_BYTES, TableFiles, refuse_unknown_version

HINT: Final = "version-hint.text"
KEPT_VERSIONS: Final = 100
"""Older metadata files are deleted. A reader, or a writer that sleeps, may still hold one."""
_PREFIX: Final = "hoodie.table.format.iceberg."
_CATALOG: Final = "catalog."
_TYPES: Final = frozenset({"rest", "sql", "hive", "glue", "dynamodb"})
_SCHEME: Final = re.compile(r"^([a-z0-9]+:)?/*")
_VERSION: Final = re.compile(r"v([1-9][0-9]{0,17})\.metadata\.json")


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of the Iceberg table.

    Attributes
    ----------
    metadata
        What it says.
    location
        URI of its metadata file.
    """

    metadata: TableMetadataV2
    location: str


class IcebergCatalog(Protocol):
    """Finds and replaces the current version of one table."""

    def load(self) -> TableState | None:
        """Return the current version, read anew; ``None`` where there is no table."""
        ...

    def create(self, metadata: TableMetadataV2) -> TableState:
        """Make the first version.

        Raises
        ------
        CommitFailedException
            There is a table already.
        """
        ...

    def replace(self, metadata: TableMetadataV2) -> TableState:
        """Make this the current version, whatever is there, damaged or not.

        Raises
        ------
        CommitFailedException
            Another writer was at work.
        UnsupportedTableError
            Which version is the current one only another catalog knows.
        """
        ...

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        """Replace ``state`` by what the updates make of it; one attempt.

        Raises
        ------
        CommitFailedException
            The table is not in that state any more: nothing has changed.
        """
        ...


def metadata_folder(client: MetaClientView, files: TableFiles) -> str:
    """Return the folder of the Iceberg metadata, relative to the base path.

    ``hoodie.table.format.iceberg.location`` names the folder above it: the base path itself, which
    is the default, or a folder below it.

    Raises
    ------
    InvalidOptionError
        The location is not in the table.
    """
    given = client.format_options.get("location", "").rstrip("/")
    for root in (client.base_path, files.root):
        if given in ("", root):
            return "metadata"
        given = given.removeprefix(f"{root}/")
    parts = given.split("/")
    if "://" in given or any(part in ("", ".", "..") for part in parts):
        raise InvalidOptionError(
            f"{_PREFIX}location",
            client.format_options["location"],
            f"it is not a folder below {client.base_path}",
            "Leave it out, or name a folder of the table, such as .hoodie/iceberg.",
        )
    return f"{given}/metadata"


def open_catalog(client: MetaClientView, files: TableFiles) -> IcebergCatalog:
    """Return the catalog of a table.

    Raises
    ------
    InvalidOptionError
        An option of the catalog is missing or not allowed.
    """
    folder = metadata_folder(client, files)
    stored = client.config.raw
    options = {
        key.removeprefix(_CATALOG): value
        for key, value in client.format_options.items()
        if key.startswith(_CATALOG) and f"{_PREFIX}{key}" not in stored
    }
    if not options:
        return FolderCatalog(files, folder)
    return ExternalCatalog(files, folder, _load(options), _identifier(client, options))


@dataclass(frozen=True, slots=True)
class FolderCatalog:
    """The table's own folder.

    Attributes
    ----------
    files
        The table's files.
    folder
        That of the metadata, relative to the base path.
    """

    files: TableFiles
    folder: str

    def load(self) -> TableState | None:
        number = self._latest()
        if number is None:
            return None
        data = self.files.storage.read(self._path(number), MAX_BYTES)
        return TableState(_parse(data, self._path(number)), self.files.uri(self._path(number)))

    def create(self, metadata: TableMetadataV2) -> TableState:
        if self._latest() is not None:
            raise CommitFailedException("The folder holds an Iceberg table already")
        return self._put(metadata, 1)

    def replace(self, metadata: TableMetadataV2) -> TableState:
        versions = self._versions()
        if not versions:
            refuse_unknown_version(self.files, self.folder)
        return self._put(metadata, max(versions, default=0) + 1)

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        for requirement in requirements:
            requirement.validate(state.metadata)
        metadata = update_table_metadata(state.metadata, updates, metadata_location=state.location)
        made = self._put(_checked(metadata, state.location), self._number(state) + 1)
        self._forget(state, made)
        return made

    def _put(self, metadata: TableMetadataV2, number: int) -> TableState:
        path = self._path(number)
        try:
            self.files.storage.put_if_absent(path, metadata.model_dump_json().encode())
        except AlreadyExistsError as error:
            raise CommitFailedException(f"{path} exists already") from error
        self._hint(number)
        return TableState(metadata, self.files.uri(path))

    def _hint(self, number: int) -> None:
        try:
            self.files.storage.put(f"{self.folder}/{HINT}", str(number).encode())
        except StorageError:
            return  # the version is there, and found without it

    def _forget(self, before: TableState, after: TableState) -> None:
        """Delete the metadata files that the log of the new version does not name any more."""
        named = {entry.metadata_file for entry in after.metadata.metadata_log}
        for entry in before.metadata.metadata_log:
            if entry.metadata_file not in named:
                try:
                    self.files.delete(entry.metadata_file)
                except StorageError:
                    return  # left for later: no reader looks for it

    def _latest(self) -> int | None:
        storage = self.files.storage
        try:
            hint = storage.read(f"{self.folder}/{HINT}", 64).strip()
        except (StorageError, CorruptMetadataError):
            hint = b""
        number = int(hint) if re.fullmatch(rb"[1-9][0-9]{0,17}", hint) else 0
        if not number or storage.head(self._path(number)) is None:
            number = max(self._versions(), default=0)
        while number and storage.head(self._path(number + 1)) is not None:
            number += 1
        return number or None

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


@dataclass(frozen=True, slots=True)
class ExternalCatalog:
    """A catalog that pyiceberg knows.

    Attributes
    ----------
    files, folder
        See :class:`FolderCatalog`; the first metadata file is put there.
    catalog
        The catalog.
    identifier
        Namespace and name of the table in it.
    """

    files: TableFiles
    folder: str
    catalog: Catalog
    identifier: Identifier

    def load(self) -> TableState | None:
        try:
            state = _state(self.catalog.load_table(self.identifier))
        except NoSuchTableError:
            return None
        self._refuse_another(state.metadata.location)
        return state

    def _refuse_another(self, location: str) -> None:
        """Refuse a table in another folder: it would be replaced, and its readers lose it."""
        here, there = (_SCHEME.sub("", one).rstrip("/") for one in (self.files.root, location))
        if here != there:
            raise InvalidOptionError(
                f"{_PREFIX}{_CATALOG}identifier",
                ".".join(self.identifier),
                f"the catalog has a table of this name at {location}, and not at {self.files.root}",
                "Name another one. If it is this table, and was moved, drop the old one from the "
                "catalog without its files, and run `hudi table repair`.",
            )

    def create(self, metadata: TableMetadataV2) -> TableState:
        if self.load() is not None:
            raise CommitFailedException(f"The catalog has a table {self.identifier} already")
        return self._register(metadata)

    def replace(self, metadata: TableMetadataV2) -> TableState:
        # the catalogs have no call for both at once; in between the table is not there
        try:
            self.catalog.drop_table(self.identifier)
        except NoSuchTableError:
            return self._register(metadata)
        return self._register(metadata)

    def _register(self, metadata: TableMetadataV2) -> TableState:
        path = f"{self.folder}/00000-{uuid.uuid4()}.metadata.json"
        self.files.storage.put_if_absent(path, metadata.model_dump_json().encode())
        self.catalog.create_namespace_if_not_exists(self.identifier[:-1])
        return _state(self.catalog.register_table(self.identifier, self.files.uri(path)))

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        table = Table(self.identifier, state.metadata, state.location, self.files, self.catalog)
        answer = self.catalog.commit_table(table, requirements, updates)
        where = answer.metadata_location
        return TableState(_checked(answer.metadata, where), where)


def _state(table: Table) -> TableState:
    where = table.metadata_location
    return TableState(_checked(table.metadata, where), where)


def _checked(metadata: TableMetadata, where: str) -> TableMetadataV2:
    if not isinstance(metadata, TableMetadataV2):
        raise CorruptMetadataError(
            where,
            f"the table has version {metadata.format_version} of the format, not 2",
            "Only tables that this format made are written; restore its metadata from a backup.",
        )
    return metadata


def _parse(data: bytes, path: str) -> TableMetadataV2:
    try:
        return _checked(TableMetadataUtil.parse_raw(data.decode("utf-8")), path)
    except (ValidationError, ValueError) as error:
        raise CorruptMetadataError(
            path,
            f"it is no metadata of an Iceberg table ({type(error).__name__})",
            "`hudi table repair` with the table's path makes it anew from the timeline and the "
            "data files.",
        ) from error


def _load(options: dict[str, str]) -> Catalog:
    for key, value in options.items():
        if key.endswith(("-impl", ".impl")):
            raise InvalidOptionError(
                f"{_PREFIX}{_CATALOG}{key}",
                value,
                "it names code to load",
                f"Use hoodie.table.format.iceberg.catalog.type: {', '.join(sorted(_TYPES))}.",
            )
    kind = options.get("type", "").lower()
    if kind not in _TYPES:
        raise InvalidOptionError(
            f"{_PREFIX}{_CATALOG}type",
            kind,
            "it is no kind of catalog",
            f"Use one of {', '.join(sorted(_TYPES))}, or no option of a catalog at all.",
        )
    given = {key: value for key, value in options.items() if key not in ("name", "identifier")}
    catalog = load_catalog(options.get("name", "hudi"), **given)
    own = dict(catalog.properties)

    def load_io(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        # what the table's metadata wants loaded is left out
        safe = {key: value for key, value in properties.items() if not key.endswith("-impl")}
        return load_file_io({**safe, **own}, location)

    catalog._load_file_io = load_io  # type: ignore[method-assign]
    return catalog


def _identifier(client: MetaClientView, options: dict[str, str]) -> Identifier:
    text = options.get("identifier", f"default.{client.config.name}")
    parts = tuple(text.split("."))
    if len(parts) < 2 or not all(parts):
        raise InvalidOptionError(
            f"{_PREFIX}{_CATALOG}identifier",
            text,
            "it is not a namespace and a name",
            "Use the form namespace.table.",
        )
    return parts


def missing(client: MetaClientView, folder: str) -> CorruptMetadataError:
    """Return the error that says that the table's Iceberg metadata is not there."""
    return CorruptMetadataError(
        f"{client.base_path}/{folder}",
        "the table has the format iceberg, and no Iceberg metadata is there",
        "If the table is in a catalog, give its hoodie.table.format.iceberg.catalog.* options; "
        f"otherwise `hudi table repair {client.base_path}` makes it anew from the timeline and the "
        "data files.",
    )
