"""Claims of tables to their names below a storage path.

The folders below a storage path have the names of tables. Two tables of one name would read, and
clean, each other's files, and a format that keeps its metadata in the storage path takes every file
below it for its own. So a table that is created claims its name first, and gives it back last.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Self

from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    PathNotFoundError,
    StoragePathTakenError,
)
from hudi_core.model.protocols import Storage
from hudi_core.storage.safe_path import require_safe_path

CLAIMS_FOLDER: Final = ".hoodie_tables"
"""Begins with a dot, so that no engine takes it for data."""
FOREIGN_LOGS: Final = ("_delta_log",)
"""Metadata folders that show, without a claim, that all files around them are one table's."""
_MAX_BYTES: Final = 1 << 16
_FIRST: Final = 3
_ENDING: Final = ".json"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a table says of itself below a storage path.

    ``table`` is also the name of the table's folders below the storage path. ``folders`` are those
    of the format's metadata right below it; with any, no other table may be there.
    """

    table: str
    base_path: str
    table_format: str
    folders: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where the claim is, below the storage path."""
        return f"{CLAIMS_FOLDER}/{self.table}{_ENDING}"

    def encode(self) -> bytes:
        """The claim's file."""
        return json.dumps(asdict(self), ensure_ascii=False).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes, where: str) -> Self:
        """Read a claim's file."""
        try:
            found = json.loads(data)
            folders = tuple(require_safe_path(str(one)) for one in found["folders"])
            base_path, table_format = str(found["base_path"]), str(found["table_format"])
            return cls(str(found["table"]), base_path, table_format, folders)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptMetadataError(
                where,
                "it is no claim of a table",
                "Delete it if no table has its files below that storage path.",
            ) from error


def claims_of(storage: Storage) -> list[Claim]:
    """The claims below a storage path, by name."""
    found = []
    for one in sorted(storage.list(CLAIMS_FOLDER), key=lambda one: one.path):
        if one.path.endswith(_ENDING):
            claim = claim_at(storage, one.path)
            if claim is not None:
                found.append(claim)
    return found


def first_claims(storage: Storage) -> list[Claim]:
    """A few of the claims below a storage path, by name.

    One that excludes others is among them: beside it others are only while two are created at once.
    """
    names = (one.path for one in storage.list(CLAIMS_FOLDER) if one.path.endswith(_ENDING))
    found = (claim_at(storage, path) for path in sorted(names)[:_FIRST])
    return [one for one in found if one is not None]


def put_claim(storage: Storage, claim: Claim) -> bool:
    """Claim a table's name below a storage path.

    Of two that exclude each other at the same time, at most one stays.

    Returns whether the claim is new. When it is refused, the claim in the store is what it was.
    """
    try:
        storage.put_if_absent(claim.path, claim.encode())
    except AlreadyExistsError:
        there = claim_at(storage, claim.path)
        if there is not None and there.base_path != claim.base_path:
            raise _taken(storage.root, claim, there) from None
        storage.put(claim.path, claim.encode())
        before = there
    else:
        before = None
    try:
        require_no_rival(storage, claim)  # who looks after both claims were put sees the other one
    except StoragePathTakenError:
        if before is None:
            storage.delete(claim.path)
        else:
            storage.put(before.path, before.encode())
        raise
    return before is None


def require_no_rival(storage: Storage, claim: Claim, own: Collection[str] = ()) -> None:
    """Refuse a claim beside another that excludes it.

    ``own`` are further names of the same table, which are given up before the table is made.
    """
    names = {claim.table, *own}
    others = [one for one in first_claims(storage) if one.table not in names]
    rival = next((one for one in others if claim.folders or one.folders), None)
    if rival is not None:
        raise _excluding(storage.root, claim, rival)


def require_own_name(storage: Storage, claim: Claim) -> bool:
    """Refuse another table's name; return whether the table has it already."""
    there = claim_at(storage, claim.path)
    if there is not None and there.base_path != claim.base_path:
        raise _taken(storage.root, claim, there)
    return there is not None


def _taken(root: str, claim: Claim, there: Claim) -> StoragePathTakenError:
    return StoragePathTakenError(
        root,
        f"the table at {there.base_path} has the name {claim.table} there",
        "Give the new table another name or storage path. Where that table is no more, "
        f"delete {root}/{claim.path} and the folders of that name.",
    )


def _excluding(root: str, claim: Claim, rival: Claim) -> StoragePathTakenError:
    alone = claim if claim.folders else rival
    return StoragePathTakenError(
        root,
        f"the table {rival.table} at {rival.base_path} has files there, and metadata of the "
        f"{alone.table_format} format would take the files of both for one table's",
        "Give each such table a storage path of its own, such as a bucket.",
    )


def release_claim(storage: Storage, table: str, base_path: str) -> Sequence[str]:
    """Give a name back, as the last step of a drop.

    Returns the folders of the format's metadata there, which it deletes as well.
    """
    claim = own_claim(storage, table, base_path)
    if claim is None:
        return ()
    for folder in claim.folders:
        storage.delete_tree(folder)
    storage.delete(claim.path)
    return claim.folders


def claim_of(storage: Storage, table: str) -> Claim | None:
    """The claim to a name, or ``None``."""
    return claim_at(storage, Claim(table, "", "").path)


def own_claim(storage: Storage, table: str, base_path: str) -> Claim | None:
    """A table's own claim, or ``None``."""
    claim = claim_of(storage, table)
    return claim if claim is not None and claim.base_path == base_path else None


def claim_at(storage: Storage, path: str) -> Claim | None:
    """The claim of a file, or ``None`` where there is none."""
    try:
        return Claim.decode(storage.read(path, _MAX_BYTES), f"{storage.root}/{path}")
    except PathNotFoundError:
        return None
