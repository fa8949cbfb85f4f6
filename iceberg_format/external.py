"""External catalogs by pyiceberg: rest, sql, hive and glue.

Their options are taken from the session and never from the table, which anybody could have written,
and are not kept in it, as they may be secret. See :mod:`iceberg_format.connection`.

How a commit is compared differs: a sql catalog updates its row where the location is the one that
was read, Glue where the version is; a Hive metastore is locked while it is compared and changed; a
REST catalog checks the requirements itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnauthorizedError,
    ValidationError,
)
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import (
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.typedef import Identifier

from hudi_core.spi import (
    CorruptMetadataError,
    HudiError,
    InvalidOptionError,
    MetaClientView,
    PathNotFoundError,
    Raised,
    StorageError,
    UnsupportedTableError,
    attempt,
)
from iceberg_format.catalog import (
    CATALOG,
    PREFIX,
    FolderCatalog,
    IcebergCatalog,
    RefusedByCatalogError,
    TableState,
    forget_older,
    metadata_folder,
    metadata_json,
    parse_metadata,
    state_of,
)
from iceberg_format.connection import (
    CATALOG_FILE,
    ElsewhereError,
    connect,
    failed_catalog,
    identifier_of_table,
    kind_of_catalog,
    named_metadata,
    new_path,
)
from iceberg_format.files import MAX_BYTES, TableFiles, without_scheme
from iceberg_format.manifest_files import Metadata
from iceberg_format.options import CREATE_NAMESPACE

HELD_KEY: Final = "hudi.catalog"
"""Property of the table: the kind of the catalog that has it, and its name there."""
FROM_FOLDER_KEY: Final = "hudi.from-folder"
"""Property of a table whose versions in its folder may not have been deleted yet."""
_REFUSED_BY_HIVE: Final = "InvalidOperationException"
_REFUSALS: Final = (BadRequestError, ForbiddenError, NoSuchNamespaceError, UnauthorizedError)
_Value = TypeVar("_Value")


def open_catalog(client: MetaClientView, files: TableFiles) -> IcebergCatalog:
    """Return the catalog of a table."""
    folder = metadata_folder(client, files)
    stored = client.config.raw
    options = {
        key.removeprefix(CATALOG): value
        for key, value in client.format_options.items()
        if key.startswith(CATALOG) and f"{PREFIX}{key}" not in stored
    }
    if not options:
        return FolderCatalog(files, folder)
    kind, identifier = kind_of_catalog(options), identifier_of_table(client, options)
    catalog = connect(client, options, kind, folder)
    makes_namespace = CREATE_NAMESPACE.read(client)
    return ExternalCatalog(files, folder, catalog, identifier, kind, makes_namespace)


@dataclass(frozen=True, slots=True)
class ExternalCatalog:
    """A catalog that pyiceberg knows.

    Metadata files are put in ``folder``. ``identifier`` is namespace and name; ``makes_namespace``:
    a missing namespace is created with the table.
    """

    files: TableFiles
    folder: str
    catalog: Catalog
    identifier: Identifier
    kind: str
    makes_namespace: bool = False

    @property
    def former(self) -> FolderCatalog:
        """The table's folder, which was its catalog before this one, or never."""
        return FolderCatalog(self.files, self.folder)

    @property
    def name(self) -> str:
        """What distinguishes this catalog's table from another's, without a secret."""
        return f"{self.kind} {self.catalog.name} {'.'.join(self.identifier)}"

    def newest(self) -> int:
        return self.former.newest()

    def load(self) -> TableState | None:
        found = self._found()
        if found is None:
            return None
        state = _state(found)
        if self._is_mine(state.metadata.properties):
            return state
        self._require_not_behind(state)
        return self._no_copy(state)

    def check(self) -> None:
        if self._has_namespace():
            self._is_held()
        elif not self.makes_namespace:
            raise self._no_namespace()

    def create(self, metadata: Metadata) -> TableState:
        seen = self.newest()
        if self.load() is not None:
            raise CommitFailedException(f"The catalog has a table {self.identifier} already")
        return self._register(metadata, seen)

    def replace(self, metadata: Metadata, seen: int) -> TableState:
        # the catalogs have no call for both at once; in between the table is not there
        try:
            if self._is_held():
                self._ask(lambda: self.catalog.drop_table(self.identifier))
            else:
                self._require_only_catalog()
        except NoSuchTableError:
            self._require_only_catalog()
        return self._register(metadata, seen)

    def _found(self) -> Table | None:
        """The table that the catalog has under the name, of whatever version."""
        try:
            found = self._ask(lambda: self.catalog.load_table(self.identifier))
        except NoSuchTableError:
            return None
        self._require_same_location(found.location())
        return found

    def _is_held(self) -> bool:
        """Whether the catalog has the table, damaged or not; see :meth:`_found`."""
        try:
            return self._found() is not None
        except CorruptMetadataError as error:
            where = named_metadata(self.catalog, self.identifier) or ""
            if not where.startswith(f"{self.files.uri(self.folder)}/"):
                raise self._taken("a table of this name that cannot be read") from error
            return True

    def commit(
        self,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        if FROM_FOLDER_KEY in state.metadata.properties:
            # first, as what is left there is not the present state any more after this
            self.former.remove()
            updates = (*updates, RemovePropertiesUpdate(removals=[FROM_FOLDER_KEY]))
        if not self._is_mine(state.metadata.properties):
            updates = (*updates, SetPropertiesUpdate(updates={HELD_KEY: self.name}))
        table = Table(self.identifier, state.metadata, state.location, self.files, self.catalog)
        answer = self._send(table, requirements, updates)
        where = answer.metadata_location
        made = state_of(answer.metadata, where)
        forget_older(self.files, state, made)
        return made

    def _send(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        outcome = attempt(lambda: self.catalog.commit_table(table, requirements, updates))
        if not isinstance(outcome, Raised):
            return outcome.value
        error = outcome.error
        # pyiceberg lets the exceptions of Hive's interface pass
        if isinstance(error, BadRequestError) or type(error).__name__ == _REFUSED_BY_HIVE:
            raise RefusedByCatalogError(getattr(error, "message", None) or str(error)) from error
        raise error

    def _register(self, metadata: Metadata, seen: int) -> TableState:
        mine = {HELD_KEY: self.name}
        is_moved = self.former.newest() > 0
        if is_moved:
            mine[FROM_FOLDER_KEY] = "true"
        taken = metadata.model_copy(update={"properties": {**metadata.properties, **mine}})
        # before anything is written: who may not make it may not register the table either
        if self.makes_namespace:
            self._ask(lambda: self.catalog.create_namespace_if_not_exists(self.identifier[:-1]))
        elif not self._has_namespace():
            raise self._no_namespace()
        closed = self.former.close(taken, self.name, seen) if is_moved else None
        # behind what an earlier table of the folder has left, or it were taken for a copy
        path = new_path(self.folder, max((_number(one) + 1 for one in self._numbered()), default=0))
        self.files.storage.put_if_absent(path, metadata_json(taken))
        where = self.files.uri(path)
        outcome = attempt(lambda: self.catalog.register_table(self.identifier, where))
        if isinstance(outcome, Raised):
            error = outcome.error
            if self._is_refused(error):
                self.files.storage.delete(path)
                if closed is not None:
                    self.former.reopen(metadata, closed)
            if isinstance(error, TableAlreadyExistsError):
                self._found()  # names the table, where it is another one
                raise CommitFailedException(f"The catalog has {self.identifier} by now") from error

        def answer() -> Table:
            if isinstance(outcome, Raised):
                raise outcome.error
            return outcome.value

        made = self._ask(lambda: _state(answer()))
        if is_moved:
            self.former.remove()
        return made

    def _has_namespace(self) -> bool:
        def has() -> bool:
            try:
                self.catalog.load_namespace_properties(self.identifier[:-1])
            except NoSuchNamespaceError:
                return False
            return True

        return self._ask(has)

    def _is_refused(self, error: BaseException) -> bool:
        """Whether a registration request certainly did not take place.

        Of any other error it is not known, and the folder stays closed.
        """
        if isinstance(error, TableAlreadyExistsError):
            # a request may be sent twice on its way
            found = attempt(self._found)
            if isinstance(found, Raised):
                return isinstance(found.error, InvalidOptionError)
            return found.value is None
        return isinstance(error, _REFUSALS) or type(error).__name__ == _REFUSED_BY_HIVE

    def _is_mine(self, properties: Mapping[str, str]) -> bool:
        """Whether a version's properties are of this catalog.

        The name of a catalog distinguishes sql catalogs of one database. Elsewhere it is what
        a job calls it by.
        """
        held = properties.get(HELD_KEY, "")
        if self.kind == "sql":
            return held == self.name
        table = ".".join(self.identifier)
        return held.startswith(f"{self.kind} ") and held.endswith(f" {table}")

    def _require_not_behind(self, state: TableState) -> None:
        """Refuse registered metadata that lags behind the table's folder."""
        newest, here = self.former.newest(), state.location.rpartition("/")[2]
        if newest:
            raise CorruptMetadataError(
                f"{self.name}, the Iceberg table of {self.files.root},",
                f"it lags behind: the catalog is at {here}, and the table's folder, where writes "
                f"without these options go, at v{newest}.metadata.json",
                "`hudi table repair` with the table's path and the options of the catalog puts the "
                "table into it; give these options with every write from then on.",
            )

    def _no_copy(self, state: TableState) -> TableState:
        """A version that is no copy of another catalog's table.

        Or a later one.

        A table that was renamed in its catalog says another name until its next commit.
        """
        newest = max(map(_number, self._numbered()), default=0)
        if not _is_behind(state, newest):
            return state
        found = self._found()  # a commit may have come before the folder was listed
        state = state if found is None else _state(found)
        if _is_behind(state, newest) and not self._is_mine(state.metadata.properties):
            self._require_only_catalog()
        return state

    def _numbered(self) -> list[str]:
        """Names of the metadata files that catalogs have made."""
        names = (one.name for one in self.files.storage.list(self.folder))
        return [name for name in names if CATALOG_FILE.fullmatch(name)]

    def _require_only_catalog(self) -> None:
        """Refuse a table that another catalog has.

        Its copy would go on with what it is now.
        """
        storage, numbered = self.files.storage, self._numbered()
        if not numbered:
            return
        newest = f"{self.folder}/{max(numbered, key=lambda name: (_number(name), name))}"
        try:
            metadata = parse_metadata(storage.read(newest, MAX_BYTES), newest)
        except (CorruptMetadataError, StorageError):
            return
        if HELD_KEY in metadata.properties and not self._is_mine(metadata.properties):
            raise UnsupportedTableError(
                self.files.root,
                f"is in another catalog ({metadata.properties[HELD_KEY]})",
                "Give the options of that catalog. To have the table in this one, drop it there "
                f"without its files, and register {newest} here.",
            )

    def _ask(self, call: Callable[[], _Value]) -> _Value:
        """Return the catalog's answer, with errors translated.

        Its refusals pass as they are.
        """
        outcome = attempt(call)
        if not isinstance(outcome, Raised):
            return outcome.value
        error = outcome.error
        if isinstance(error, ElsewhereError):
            raise self._taken(f"a table of this name, whose metadata is {error}") from error
        if isinstance(error, (NoSuchIcebergTableError, NoSuchPropertyException)):
            raise self._taken("another kind of table of this name") from error
        if isinstance(error, (PathNotFoundError, FileNotFoundError)):
            raise self._damaged("its metadata file is gone") from error
        if isinstance(error, (HudiError, NoSuchTableError, TableAlreadyExistsError)):
            raise error
        if isinstance(error, (ValidationError, ValueError)):
            raise self._damaged(f"that is no metadata ({type(error).__name__})") from error
        raise failed_catalog(self.kind, outcome) from error

    def _require_same_location(self, location: str) -> None:
        """Refuse a registered table in another folder.

        It would be replaced, and its readers lose it.
        """
        if without_scheme(self.files.root) != without_scheme(location):
            raise self._taken(f"a table of this name at {location}")

    def _taken(self, by: str) -> InvalidOptionError:
        return InvalidOptionError(
            f"{PREFIX}{CATALOG}identifier",
            ".".join(self.identifier),
            f"the catalog has {by}, and not the one at {self.files.root}",
            "Name another one. If it is this table, and was moved, drop the old one from the "
            "catalog without its files, and run `hudi table repair`.",
        )

    def _no_namespace(self) -> InvalidOptionError:
        return InvalidOptionError(
            f"{PREFIX}{CATALOG}identifier",
            ".".join(self.identifier),
            f"the catalog has no namespace {'.'.join(self.identifier[:-1])}",
            f"Make it there, name another one, or set {PREFIX}{CREATE_NAMESPACE.name}=true.",
        )

    def _damaged(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(
            f"{self.name}, the Iceberg table of {self.files.root},",
            reason,
            "`hudi table repair` with the table's path and the options of the catalog rebuilds its "
            "metadata from the timeline and the data files.",
        )


def _state(table: Table) -> TableState:
    return state_of(table.metadata, table.metadata_location)


def _number(name: str) -> int:
    """A catalog's metadata file number; 0 for other names."""
    match = CATALOG_FILE.fullmatch(name)
    return int(match[1]) if match else 0


def _is_behind(state: TableState, newest: int) -> bool:
    """Whether a version has a lower number than another.

    Of two with one number one is what a commit left that was refused.
    """
    name = state.location.rpartition("/")[2]
    return CATALOG_FILE.fullmatch(name) is not None and _number(name) < newest
