"""Whose files are there: this table's, another table's, or another engine's.

**Neighbours**: a format whose metadata lies among the data files takes every file below its root
for its own, and its full vacuum deletes what its log does not name. So nothing of another table is
below such a root. Each folder above a new place is asked for the signs of one, and below a new root
of the kind nothing else may be.

**Claims**: data files below a storage path are those of one table. A copy of the table's folder
names the same files, and its cleans and rollbacks would delete them under the original.

**Metadata tables of other engines**: one of a table with storage paths lists the table's own
folder, where none of the table's files are: it is worth nothing, and without it the next writer
makes a new one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import ForeignMetadataError, StorageError, StoragePathTakenError
from hudi_core.meta_client import META_FOLDER, TableMetaClient
from hudi_core.metadata.table import METADATA_FOLDER
from hudi_core.model.capability import Capability
from hudi_core.model.protocols import Storage
from hudi_core.storage.claims import (
    CLAIMS_FOLDER,
    FOREIGN_LOGS,
    Claim,
    claim_at,
    claim_of,
    first_claims,
    put_claim,
)
from hudi_core.storage.federated import FederatedStorage
from hudi_core.storage.location import Location, parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.properties_file import PROPERTIES_PATH, has_properties, update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.state import TableState

_HINT: Final = "Name a bucket, container or folder that is in no other table and has none in it."


def require_folder_apart(client: TableMetaClient) -> None:
    """Refuse a table's folder below the root of another table's files.

    Two requests for each folder above it; those that may not be asked are passed over.
    """
    base = parse_location(client.base_path)
    _require_none(base, client.run_map(lambda one: _sign_above(client, one), list(_above(base))))


def require_root_apart(client: TableMetaClient, root: str) -> None:
    """Refuse a storage path within another table's folder or storage path.

    Claims right at the storage path are not looked at. Four requests for it and for each folder
    above it; those above that may not be asked are passed over.
    """
    place = parse_location(root)
    found = client.run_map(
        lambda one: _sign_of_table(client, one, place), [place.uri, *_above(place)]
    )
    _require_none(place, found)


def require_alone(
    root: Storage, claim: Claim, own: Sequence[Claim], held: Collection[str] = ()
) -> None:
    """Refuse files of others below a root that is one table's.

    ``own`` are claims that the table had before: what a creation or a move that died has left is
    its own, and so are the files of the table that it replaces. ``held`` are storage paths that the
    table has.
    """
    paths = {one.path for one in (claim, *own)}
    folders = {folder for one in own for folder in one.folders}
    names = {one.table for one in own}
    inner = tuple(
        f"{path.removeprefix(f'{root.root}/')}/"
        for path in held
        if path.startswith(f"{root.root}/")
    )
    for one in root.list("", recursive=True):
        parts = one.path.split("/")
        is_own = one.path in paths or parts[0] in folders or one.path.startswith(inner)
        if is_own or (names.intersection(parts[:-1]) and not _is_sign(parts)):
            continue
        raise StoragePathTakenError(
            root.root,
            f"{one.path} is there, and the {claim.table_format} format takes all that is there for "
            "the table's",
            _HINT,
        )


def require_no_tables_below(root: Storage, base_path: str, table_format: str) -> None:
    """Refuse other tables' files below a root that becomes one table's.

    Lists everything there, a request for a thousand files.
    """
    for one in root.list("", recursive=True):
        parts = one.path.split("/")
        if parts[0] == META_FOLDER or not _is_sign(parts):
            continue
        claim = claim_at(root, one.path) if CLAIMS_FOLDER in parts else None
        if claim is not None and claim.base_path == base_path:
            continue
        whose = "another table" if claim is None else f"the table {claim.table} ({claim.base_path})"
        raise StoragePathTakenError(
            root.root,
            f"{whose} has files there, as {one.path} shows, and the {table_format} format would "
            "take them for the table's",
            "Move one of the two with `hudi table convert PATH --storage STRATEGY`, or drop it.",
        )


def _is_sign(parts: Sequence[str]) -> bool:
    """Whether a file shows a table, or its files, above it."""
    above = parts[:-1]
    return (
        CLAIMS_FOLDER in above
        or tuple(parts[-2:]) == tuple(PROPERTIES_PATH.split("/"))
        or any(log in above[1:] for log in FOREIGN_LOGS)
    )


def _require_none(place: Location, found: Iterable[str | None]) -> None:
    reason = next(filter(None, found), None)
    if reason is not None:
        raise StoragePathTakenError(place.uri, reason, _HINT)


def _above(place: Location) -> Iterator[str]:
    """The folders above a place, up to its bucket or disk.

    On a disk without links.
    """
    if place.is_local:
        path = os.path.realpath(place.key)
        while path != (path := os.path.dirname(path)):
            yield path
        return
    head = place.uri.removesuffix(place.key).rstrip("/")
    key = place.key
    while key:
        key = key.rpartition("/")[0]
        yield f"{head}/{key}" if key else head


def _sign_above(client: TableMetaClient, folder: str) -> str | None:
    """Why a table's folder cannot be below another one."""
    storage = open_storage(folder, client.storage_options)
    try:
        return _sign_of_owner(client, storage)
    except StorageError:
        return None  # without the right to look there, nothing is known of it


def _sign_of_table(client: TableMetaClient, folder: str, root: Location) -> str | None:
    """Why a storage path cannot be a folder, or be below it."""
    storage = open_storage(folder, client.storage_options)
    is_root = folder == root.uri
    try:
        reason = _sign_of_owner(client, storage, is_root=is_root)
        is_table = reason is None and has_properties(storage)
    except StorageError:
        if is_root:
            raise
        return None
    if is_table and _place(folder) != _place(client.base_path):
        return f"{folder} is the folder of a table, with which everything in it is dropped"
    return reason


def _sign_of_owner(
    client: TableMetaClient, storage: Storage, *, is_root: bool = False
) -> str | None:
    """Why nothing else may be below a folder."""
    claims = first_claims(storage)
    others = [one for one in claims if one.base_path != client.base_path]
    owner = None if is_root else next((one for one in others if one.folders), None)
    if owner is not None:
        return (
            f"the table {owner.table} at {owner.base_path} has its files in {storage.root}, and "
            f"the {owner.table_format} format takes all that is there for the table's"
        )
    own = {folder for one in claims if one not in others for folder in one.folders}
    log = next((log for log in FOREIGN_LOGS if log not in own and _has(storage, log)), None)
    if log is None:
        return None
    return f"{storage.root} has {log}, and its table takes all that is there for its own"


def _has(storage: Storage, folder: str) -> bool:
    return any(True for _ in storage.list(folder, recursive=True))


def _place(uri: str) -> tuple[str, ...]:
    """What two spellings of one place have in common."""
    place = parse_location(uri)
    return place.kind, place.bucket, os.path.realpath(place.key) if place.is_local else place.key


# --- claims ---------------------------------------------------------------------------------------


def require_own_claims(table: OpenTable) -> None:
    """Refuse to change a table whose files are claimed by another folder.

    A claim that is missing is put again. Costs a request for each storage path.

    The claim of another folder means that this table was copied or moved.
    """
    client, host = table.client, table.host
    data, name = client.data, client.config.name
    if not isinstance(data, FederatedStorage):
        return
    for root in data.root_storages:
        found = claim_of(root, name)
        if found is None:
            if host.name != client.config.table_format:
                continue  # it replaces a format that cannot be asked
            shared = Capability.SHARED_STORAGE_PATH in host.capabilities
            folders = () if shared else tuple(host.get_metadata_folders(client))
            put_claim(root, Claim(name, client.base_path, host.name, folders))
        elif found.base_path != client.base_path:
            raise StoragePathTakenError(
                root.root,
                f"its files of the table {name} are those of the table at {found.base_path}",
                f"Write to the table there. If it was moved to {client.base_path}, and is there no "
                f"more, delete {root.root}/{found.path} first.",
            )


# --- metadata tables of other engines -------------------------------------------------------------


def without_foreign_metadata(state: TableState) -> TableState:
    """The state without such a metadata table.

    The caller holds the table's lock. Costs nothing where there is none: its writer loads the
    metadata table anyway.
    """
    if state.client.files.is_plain:
        return state
    try:
        _ = state.metadata
    except ForeignMetadataError:
        storage = state.client.storage
        named = (ManagedKeys.metadata_partitions.key, ManagedKeys.metadata_partitions_inflight.key)
        properties = update_properties(storage, dict.fromkeys(named))
        storage.delete_tree(METADATA_FOLDER)
        return state.with_properties(properties)
    return state
