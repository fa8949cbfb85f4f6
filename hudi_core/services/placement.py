"""Storage paths of a new table, and of one that goes."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from hudi_core.config.placement import PlacementKeys, placement_of
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import InvalidOptionError, StoragePathTakenError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.capability import Capability
from hudi_core.model.files import BasePath
from hudi_core.model.protocols import Storage
from hudi_core.plugin.host import FormatHost
from hudi_core.storage.claims import (
    Claim,
    first_claims,
    own_claim,
    put_claim,
    release_claim,
    require_no_rival,
    require_own_name,
)
from hudi_core.storage.data_files import DataFiles
from hudi_core.storage.federated import FederatedStorage
from hudi_core.storage.layout import layout_of
from hudi_core.storage.location import Location, parse_location
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.strategies import storage_strategy
from hudi_core.txn.ownership import (
    require_alone,
    require_folder_apart,
    require_no_tables_below,
    require_root_apart,
)

_log = logging.getLogger(__name__)
_FOLDER: Final = re.compile(r"[^\W_][^/\\]*")
_MAX_NAME_BYTES: Final = 200


def with_placement(config: TableConfig, base_path: str, host: FormatHost) -> TableConfig:
    """A new table's configuration with its whole placement."""
    placement = config.placement
    if placement.is_default:
        return config
    if not _FOLDER.fullmatch(config.name) or len(config.name.encode()) > _MAX_NAME_BYTES:
        raise InvalidOptionError(
            TableKeys.name.key,
            config.name,
            "it is the name of folders below the storage path, too",
            "Begin it with a letter or digit, without slashes.",
        )
    strategy = storage_strategy(placement.strategy, dict(placement.options))
    base = parse_location(base_path)
    roots = [parse_location(path) for path in placement.paths]
    for root in roots:
        inner = next((one for one in roots if one is not root and _is_below(one, root)), None)
        if _is_below(root, base):
            raise _refused(root, "it is the table's folder, or below it")
        if inner is not None:
            raise _refused(root, f"another storage path, {inner.uri}, is below it")
        _require_apart(base, root, host)
        if not root.is_local and root.key:
            _log.warning(
                "the storage path %s is a folder of a bucket: what else is in the bucket shares "
                "its limits; a bucket or container of its own spreads requests best",
                root.uri,
            )
    settings = tuple(sorted(strategy.settings.items()))
    return replace(config, placement=replace(placement, options=settings))


def _require_apart(base: Location, root: Location, host: FormatHost) -> None:
    if Capability.SHARED_STORAGE_PATH not in host.capabilities and _is_below(base, root):
        what = f"the table's folder is below it, where the {host.name} format deletes files"
        raise _refused(root, what)


def _refused(root: Location, reason: str) -> InvalidOptionError:
    hint = "Name a bucket, container or folder that has nothing else in it."
    return InvalidOptionError(PlacementKeys.path.key, root.uri, reason, hint)


def _is_below(inner: Location, outer: Location) -> bool:
    """Whether a place is another one, or below it."""
    if (inner.kind, inner.bucket) != (outer.kind, outer.bucket):
        return False
    accounts = {inner.account, outer.account} - {None}
    above = f"{outer.key.rstrip('/')}/" if outer.key else ""
    return len(accounts) < 2 and f"{inner.key}/".startswith(above)


def claim_storage(client: TableMetaClient, host: FormatHost, held: Collection[str] = ()) -> None:
    """Claim the name of a new table below its storage paths.

    What a dead creator of the table has left of the format there goes.

    ``held`` are storage paths where the table has its claim and its files already. After
    ``StoragePathTakenError`` nothing is left of the claims.
    """
    data = client.data
    folders = _own_folders(client, host)
    if not isinstance(data, FederatedStorage):
        if folders:
            require_no_tables_below(client.storage, client.base_path, host.name)
        return
    claim = Claim(client.config.name, client.base_path, host.name, folders)
    made: list[Storage] = []
    try:
        for path, root in zip(client.files.roots, data.root_storages, strict=True):
            if path in held:
                continue
            if put_claim(root, claim):
                made.append(root)
                _require_nothing(root, folders)
            # claims first: who looks around after both were put sees the other one
            require_root_apart(client, root.root)
            if folders:
                require_alone(root, claim, () if root in made else (claim,), held)
            for folder in folders:
                root.delete_tree(folder)
        _require_no_files(data, claim, [root.root for root in made])
    except StoragePathTakenError:
        for root in made:
            root.delete(claim.path)
        raise


def require_free_storage(client: TableMetaClient, host: FormatHost) -> None:
    """Refuse storage paths of a table that takes another one's place.

    As :func:`claim_storage` would, once the other one is gone; nothing is changed.
    """
    data = client.data
    if not isinstance(data, FederatedStorage):
        return
    folders = _own_folders(client, host)
    claim = Claim(client.config.name, client.base_path, host.name, folders)
    new = []
    for root in data.root_storages:
        if not require_own_name(root, claim):
            new.append(root.root)
        own = [one for one in first_claims(root) if one.base_path == client.base_path]
        require_no_rival(root, claim, [one.table for one in own])
        left = {folder for one in own for folder in one.folders}
        _require_nothing(root, tuple(one for one in folders if one not in left))
        require_root_apart(client, root.root)
        if folders:
            require_alone(root, claim, own)
    _require_no_files(data, claim, new)


def _own_folders(client: TableMetaClient, host: FormatHost) -> tuple[str, ...]:
    """Metadata folders among data files: their root is one table's alone."""
    if Capability.SHARED_STORAGE_PATH in host.capabilities:
        return ()
    return tuple(host.get_metadata_folders(client))


def claim_for_format(client: TableMetaClient, host: FormatHost, *, dry_run: bool) -> None:
    """Claim a table's storage paths for another format.

    The metadata of the formats that the table had stays there, and in the claims.

    ``client`` is of the table as one of the new format. After ``StoragePathTakenError`` the claim
    is what it was. Refused where the format would delete files of the table's own folder.
    """
    data = client.data
    folders = _own_folders(client, host)
    if folders:
        require_folder_apart(client)
    if not isinstance(data, FederatedStorage):
        if folders:
            require_no_tables_below(client.storage, client.base_path, host.name)
        return
    for root in data.root_storages:
        _require_apart(parse_location(client.base_path), parse_location(root.root), host)
        own = own_claim(root, client.config.name, client.base_path)
        had = () if own is None else own.folders
        new = tuple(one for one in folders if one not in had)
        claim = Claim(client.config.name, client.base_path, host.name, (*had, *new))
        require_no_rival(root, claim)
        _require_nothing(root, new)
        if folders:
            require_root_apart(client, root.root)
            require_no_tables_below(root, client.base_path, host.name)
        if not dry_run:
            put_claim(root, claim)


def _require_nothing(root: Storage, folders: tuple[str, ...]) -> None:
    for folder in folders:
        if any(True for _ in root.list(folder, recursive=True)):
            raise StoragePathTakenError(
                root.root, f"{folder} is there already", "Use a storage path of its own."
            )


def _require_no_files(data: FederatedStorage, claim: Claim, new: Collection[str]) -> None:
    """Refuse folders of the table's name that another table has left."""
    for prefix in data.prefixes():
        if prefix.storage.root not in new:
            continue
        found = next(iter(prefix.storage.list(prefix.below(""), recursive=True)), None)
        if found is not None:
            raise StoragePathTakenError(
                prefix.root,
                f"{found.path} is there, in a folder of the table's name",
                f"Delete the folders {claim.table} there, or give the table another name.",
            )


def release_storage(data: Storage) -> None:
    """Delete a table's files below its storage paths, and its claims there.

    Where a storage path does not have the table's claim, nothing is deleted.
    """
    if not isinstance(data, FederatedStorage):
        return
    table = data.table
    own = [root for root in data.root_storages if own_claim(root, table, data.root)]
    for prefix in data.prefixes():
        if any(prefix.root == root.root for root in own):
            prefix.storage.delete_tree(prefix.below(""))
    for root in own:
        release_claim(root, table, data.root)


def storages_of(
    storage: Storage,
    base_path: BasePath,
    properties: Mapping[str, str],
    options: StorageOptions,
) -> tuple[Storage, ...]:
    """Where the data files of a table that is not opened are.

    Those of its placement first, then the other places of a move that is not over.
    """
    found = [data_files_at(base_path, properties, options)]
    move = ManagedKeys.storage_move.read(properties)
    if move is not None:
        name = properties.get(TableKeys.name.key, "")
        found.append(DataFiles(base_path, options, layout_of(base_path, name, move.other)))
    return tuple(files.over(storage) for files in found)


def data_files_at(
    base_path: BasePath, properties: Mapping[str, str], options: StorageOptions
) -> DataFiles:
    """The data files of a table that is not opened."""
    name = properties.get(TableKeys.name.key, "")
    layout = layout_of(base_path, name, placement_of(properties))
    return DataFiles(base_path, options, layout)
