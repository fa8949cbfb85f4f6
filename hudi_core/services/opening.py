"""Opening a table: properties, format, timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_core.config.resolve import resolve_table_config
from hudi_core.config.storage import StoreKeys
from hudi_core.config.stored_table import stored_config
from hudi_core.config.table import TableConfig
from hudi_core.errors import NotATableError, StorageError, UnsafePathError
from hudi_core.meta_client import TableMetaClient, run_in_threads, run_serially
from hudi_core.metrics import meter_of
from hudi_core.model.capability import Capability
from hudi_core.model.files import BasePath
from hudi_core.model.protocols import Storage
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.read.path_pattern import PathPattern, has_wildcards
from hudi_core.storage.claims import Claim, claims_of
from hudi_core.storage.location import parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.properties_file import PROPERTIES_PATH, has_properties, read_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.creation import is_begun


def open_table(
    path: str, options: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> OpenTable:
    """Open the table at ``path``.

    Parameters
    ----------
    options
        Hudi options, checked against what the table stores, and credentials of the store.
    properties
        What the table stores, where that is known; by default it is read.

    Raises
    ------
    NotATableError
        There is no table. Where data files of tables are there, below their storage paths, it names
        these.
    CorruptMetadataError
        The properties are damaged and the backup does not help.
    OptionConflictError
        An option contradicts the table.
    InvalidOptionError
        An option cannot be used, or metrics that it asks for cannot be published.
    UnknownTableFormatError, PluginError
        The table's format cannot be used.
    """
    try:
        return _opened(path, options, properties)
    except NotATableError:
        _require_no_claims(parse_location(path).uri, options)
        raise


def _opened(
    path: str, options: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> OpenTable:
    base_path = BasePath(parse_location(path).uri)
    storage_options = StorageOptions.from_options(options)
    storage = open_storage(base_path, storage_options, fsync=StoreKeys.fsync.read(options))
    if properties is None:
        properties = _read_properties(storage)
    config = opened_config(base_path, properties, options)
    host = FormatHost.load(FormatRegistry(), config.table_format)
    host.check_options(options)
    # a request to an object store is waited for, one to a disk is answered by the processor
    run_map = run_serially if parse_location(base_path).is_local else run_in_threads
    client = TableMetaClient(
        base_path,
        storage,
        config,
        storage_options,
        run_map,
        options,
        meter=meter_of(options, config.name, base_path),
    )
    return OpenTable(client, host).fitted()


def opened_config(
    base_path: BasePath, properties: Mapping[str, str], options: Mapping[str, str]
) -> TableConfig:
    """What a table is when it is opened with options.

    Who makes a table, or puts one in the place of another, asks beforehand: an option that its
    opening refuses would be refused when nothing can be taken back.
    """
    stored = stored_config(properties, f"{base_path}/{PROPERTIES_PATH}")
    return resolve_table_config(options, stored)


def open_within(
    paths: Sequence[str], options: Mapping[str, str]
) -> tuple[OpenTable, PathPattern | None]:
    """Open the table that paths are of, or lie within.

    The paths may be the table's folder, or partitions and files in it, with wildcards; all must be
    of one table. The pattern returned is ``None`` for the whole table.
    """
    found = [_table_of(parse_location(path).uri, options) for path in paths]
    opened, _ = found[0]
    roots = sorted({one.client.base_path for one, _ in found})
    if len(roots) > 1:
        raise NotATableError(
            ", ".join(paths), "are paths of several tables", "Read one table at a time."
        )
    inner = [path for _, path in found if path]
    return opened, PathPattern(tuple(inner)) if len(inner) == len(found) else None


def _table_of(path: str, options: Mapping[str, str]) -> tuple[OpenTable, str]:
    """Return the table at or above a path, and the path's remainder."""
    try:
        return _opened(path, options), ""
    except (NotATableError, UnsafePathError):
        above = path
        while "/" in above.rstrip("/"):
            above, _, last = above.rpartition("/")
            if above.endswith((":/", "/")) or not above or not last:
                break
            if not has_wildcards(above) and table_exists(above, options):
                return _opened(above, options), path.removeprefix(f"{above}/")
        _require_no_claims(path, options)
        raise


def _require_no_claims(path: str, options: Mapping[str, str]) -> None:
    """Refuse a path below a storage path of tables, naming these.

    Their files are found by their metadata tables alone: what a folder holds are files of several
    states, and perhaps of no state.
    """
    above = path
    while True:
        name = above.rpartition("/")[2]
        claims = [] if has_wildcards(above) else _claims_at(above, options)
        if claims:
            parts = set(path.split("/"))
            own = [one for one in claims if one.table in parts] or claims
            places = ", ".join(sorted(one.base_path for one in own))
            raise NotATableError(
                path,
                f"is in a storage path, which holds data files of tables: {places}",
                f"Name the table itself, as in hudi.Table.open({own[0].base_path!r}) or "
                f"hudi.read(spark, {own[0].base_path!r}); a filter picks partitions.",
            )
        above = above.removesuffix(f"/{name}")
        if not name or not above or above.endswith((":/", "://")):
            return


def _claims_at(path: str, options: Mapping[str, str]) -> list[Claim]:
    try:
        return claims_of(open_storage(path, StorageOptions.from_options(options)))
    except StorageError:
        return []


def _read_properties(storage: Storage) -> dict[str, str]:
    try:
        return read_properties(storage)
    except NotATableError as error:
        if not is_begun(storage):
            raise
        raise NotATableError(
            storage.root,
            "holds a table whose creation was not finished",
            "Create it again: what is there of it is replaced.",
        ) from error


def takes_empty_partitions(host: FormatHost) -> bool:
    """Whether a table of a format may have partitions of empty strings."""
    return Capability.EMPTY_PARTITION_VALUES in host.capabilities


def table_exists(path: str, options: Mapping[str, str]) -> bool:
    """Return whether a table is at ``path``."""
    storage = open_storage(path, StorageOptions.from_options(options))
    return has_properties(storage)
