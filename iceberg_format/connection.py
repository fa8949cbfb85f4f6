"""Connections to catalogs of pyiceberg's, from the options of the session.

No class is loaded that the table's metadata names: the metadata files that a catalog reads and
writes are those below the table's base path, by the table's own storage, under names that are made
here.
"""

from __future__ import annotations

import copy
import os
import re
import uuid
from functools import lru_cache, partial
from typing import Any, Final

from pyiceberg.catalog import Catalog, MetastoreCatalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, NotInstalledError
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from hudi_core.spi import (
    HudiError,
    InvalidOptionError,
    MetaClientView,
    Raised,
    StorageError,
    attempt,
)
from iceberg_format.catalog import CATALOG, PREFIX
from iceberg_format.files import TableFiles
from iceberg_format.options import IDENTIFIER, TYPES

CATALOG_FILE: Final = re.compile(r"([0-9]{5,18})-[^/]*\.metadata\.json")
"""Names of metadata files as catalogs have them."""
_STORE: Final = {
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "aws_region": "s3.region",
    "aws_endpoint": "s3.endpoint",
    "aws_virtual_hosted_style_request": "s3.force-virtual-addressing",
    "azure_storage_account_name": "adls.account-name",
    "azure_storage_account_key": "adls.account-key",
    "azure_storage_sas_key": "adls.sas-token",
}
"""What the options of the table's store are called by pyiceberg."""
_LONGEST: Final = 4000
_OURS: Final = ("name", "identifier", "create-namespace")
"""Options that are not pyiceberg's."""
_INSTALL: Final = {
    "hive": "Install it: pip install 'pyiceberg[hive]'.",
    "sql": "Install it: pip install 'pyiceberg[sql-sqlite]', or [sql-postgres].",
    "glue": "Install it: pip install 'pyiceberg[glue]'.",
}


class ElsewhereError(Exception):
    """The catalog names a metadata file that is not the table's."""


class _MetadataFiles(TableFiles):
    """Files a catalog may read and write: the table's only."""

    def path(self, uri: str) -> str:
        if self.below(uri) is None:
            raise ElsewhereError(uri)
        return super().path(uri)


class _Staged(StagedTable):
    """A table with properties shortened for its catalog.

    All of them stay beside the metadata.

    A metastore of Hive's may have a column of 4,000 characters for each.
    """

    @property
    def properties(self) -> dict[str, str]:
        held = self.metadata.properties
        return {key: value for key, value in held.items() if len(value) <= _LONGEST}


def new_path(folder: str, number: int) -> str:
    """Return where a new metadata file of a catalog is put."""
    return f"{folder}/{number:05d}-{uuid.uuid4()}.metadata.json"


def kind_of_catalog(options: dict[str, str]) -> str:
    """Return the kind of catalog that options describe.

    An option that names code to load is refused.
    """
    for key, value in options.items():
        if key.endswith(("-impl", ".impl")):
            raise InvalidOptionError(
                f"{PREFIX}{CATALOG}{key}",
                value,
                "it names code to load",
                f"Use hoodie.table.format.iceberg.catalog.type: {', '.join(TYPES)}.",
            )
    kind = options.get("type", "").lower()
    if kind not in TYPES:
        others = ", ".join(sorted(f"{PREFIX}{CATALOG}{name}" for name in options if name != "type"))
        reason = "it is no kind of catalog" if kind else f"{others} are given without it"
        raise InvalidOptionError(
            f"{PREFIX}{CATALOG}type",
            kind or None,
            reason,
            f"Use one of {', '.join(TYPES)}, or no option of a catalog at all.",
        )
    return kind


def connect(client: MetaClientView, options: dict[str, str], kind: str, folder: str) -> Catalog:
    """Return the catalog that options describe, for this one table."""
    given = {key: value for key, value in options.items() if key not in _OURS}
    # a sql catalog reads metadata files itself
    store = client.storage_options.for_object_store()
    given = {_STORE[key]: value for key, value in store.items() if key in _STORE} | given
    name = options.get("name", "hudi")
    # threads cannot share the one connection of a hive catalog, which is made when it is needed
    shared = _shared if kind != "hive" else _shared.__wrapped__
    made = attempt(lambda: shared(name, frozenset(given.items()), os.getpid()))
    if isinstance(made, Raised):
        raise _unusable(kind, made) from made.error
    # what follows is this table's, and the connection is not
    catalog = copy.copy(made.value)
    files = _MetadataFiles(client)

    def load_io(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        del properties, location  # they may name a class to load
        return files

    def stage(
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        for requirement in requirements:
            requirement.validate(current_table.metadata if current_table is not None else None)
        if current_table is None:
            raise CommitFailedException(f"The catalog has no table {table_identifier} any more")
        metadata = update_table_metadata(
            current_table.metadata, updates, metadata_location=current_table.metadata_location
        )
        match = CATALOG_FILE.fullmatch(current_table.metadata_location.rpartition("/")[2])
        where = files.uri(new_path(folder, int(match[1]) + 1 if match else 0))
        return _Staged(table_identifier, metadata, where, files, catalog)

    catalog._load_file_io = load_io  # type: ignore[method-assign]
    if isinstance(catalog, MetastoreCatalog):
        # its own loads a class that a property of the table names, to ask it for a file's name
        catalog._update_and_stage_table = stage  # type: ignore[method-assign]
    if kind == "hive":
        _keep_brief(catalog)
    if kind == "sql":
        _read_by(catalog)
    return catalog


def named_metadata(catalog: Catalog, identifier: Identifier) -> str | None:
    """Return the metadata location that a catalog names, unread.

    ``None`` where it has no such table or does not say it: a REST catalog reads the file itself.
    """
    asked: Any = copy.copy(catalog)

    def tell(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        del properties
        raise ElsewhereError(location)

    asked._load_file_io = tell
    if hasattr(asked, "_convert_orm_to_iceberg"):
        _read_by(asked)
    outcome = attempt(lambda: asked.load_table(identifier))
    if isinstance(outcome, Raised) and isinstance(outcome.error, ElsewhereError):
        return str(outcome.error)
    return None


def _read_by(catalog: Any) -> None:
    """Make a sql catalog read metadata by our files."""
    catalog._convert_orm_to_iceberg = partial(_table_of_row, catalog)


def _table_of_row(catalog: Any, row: Any) -> Table:
    where = row.metadata_location
    if not where:
        raise NoSuchTableError(f"No metadata is named of {row.table_name}")
    files = catalog._load_file_io(location=where)
    metadata = FromInputFile.table_metadata(files.new_input(where))
    identifier = (*Catalog.identifier_to_tuple(row.table_namespace), row.table_name)
    return Table(identifier, metadata, where, files, catalog)


def _keep_brief(catalog: Any) -> None:
    """Shorten properties of tables that are registered in a metastore."""
    convert = catalog._convert_iceberg_into_hive

    def brief(table: Table) -> Any:
        where = table.metadata_location
        return convert(_Staged(table.name(), table.metadata, where, table.io, catalog))

    catalog._convert_iceberg_into_hive = brief


@lru_cache(maxsize=16)
def _shared(name: str, options: frozenset[tuple[str, str]], process: int) -> Catalog:
    """Return a catalog of a process; connecting takes longer than asking."""
    del process  # a child cannot go on with its parent's connections
    return load_catalog(name, **dict(options))


def _unusable(kind: str, outcome: Raised) -> HudiError:
    key, error = f"{PREFIX}{CATALOG}type", outcome.error
    if isinstance(error, NotInstalledError):
        return InvalidOptionError(
            key, kind, "a package is missing for it", _INSTALL.get(kind, str(error))
        )
    if isinstance(error, (KeyError, TypeError, ValueError)):
        return InvalidOptionError(
            key,
            kind,
            f"no such catalog can be made of the options ({outcome.reason})",
            "Complete the hoodie.table.format.iceberg.catalog.* options; pyiceberg's pages on "
            "catalogs list what each kind takes.",
        )
    return failed_catalog(kind, outcome)


def failed_catalog(kind: str, outcome: Raised) -> StorageError:
    """Return the error of a failed or unreachable catalog."""
    return StorageError(
        f"The {kind} catalog of the Iceberg table did not do what it was asked ({outcome.reason})",
        "Check that it is there, and the hoodie.table.format.iceberg.catalog.* options, and try "
        "again.",
    )


def identifier_of_table(client: MetaClientView, options: dict[str, str]) -> Identifier:
    """Return namespace and name of the table in its catalog."""
    text = options.get("identifier", f"default.{client.config.name}")
    return IDENTIFIER.value(f"{PREFIX}{IDENTIFIER.name}", text)
