"""``.hoodie/hoodie.properties`` on storage: reading, creating, and changing it as Hudi does.

A change makes a backup beside the file, replaces the file, checks it, and deletes the backup.
Readers use the backup while the file is missing or damaged (Java deletes the file before it writes
it again), so at every step one of the two is whole:

=========================  ================  ==================  =================================
after                      file              backup              readers see, next change does
=========================  ================  ==================  =================================
1 backup created           old               old                 old; drops the backup
2 file replaced            new               old                 new; drops the backup
2 file torn or missing     damaged or none   old                 old; restores the file
3 backup deleted           new               none                new
=========================  ================  ==================  =================================

Changes happen under the table's lock; without it, one of two is refused by compare-and-set.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from hudi_core.config.options import is_secret_name
from hudi_core.config.properties import (
    CHECKSUM_KEY,
    DATABASE_KEY,
    MAX_BYTES,
    TABLE_NAME_KEY,
    format_properties,
    parse_properties,
    require_whole_properties,
    table_checksum,
)
from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    InvalidOptionError,
    NotATableError,
    PathNotFoundError,
    PreconditionFailedError,
)
from hudi_core.model.protocols import Storage

PROPERTIES_PATH: Final = ".hoodie/hoodie.properties"
BACKUP_PATH: Final = PROPERTIES_PATH + ".backup"
_PAUSES_S: Final = (0.02, 0.1)
"""Seconds between looks at a file that another writer may be replacing just now."""


def has_properties(storage: Storage) -> bool:
    """Whether a table is at the storage's root, or its backup.

    The backup of its properties alone makes it a table as well.
    """
    return any(storage.head(path) is not None for path in (PROPERTIES_PATH, BACKUP_PATH))


def read_properties(storage: Storage) -> dict[str, str]:
    """Return the table's properties, from the backup if need be.

    ``NotATableError`` only where neither file nor backup exists; ``CorruptMetadataError`` where the
    file is damaged and no whole backup replaces it.
    """
    for pause in (*_PAUSES_S, None):
        try:
            return _load(storage, PROPERTIES_PATH)
        except (CorruptMetadataError, PathNotFoundError) as error:
            failure = error
        try:
            return _load(storage, BACKUP_PATH)
        except (CorruptMetadataError, PathNotFoundError):
            pass
        # a change by Java may have ended between the two looks
        if pause is not None:
            time.sleep(pause)
    if isinstance(failure, PathNotFoundError):
        raise NotATableError(
            storage.root,
            f"holds no Hudi table: {PROPERTIES_PATH} is missing",
            "Check the path, or create a table there.",
        ) from failure
    raise failure


class WatchedProperties:
    """Properties of an open table, read again by each query.

    One request, and 0.06 ms on a local disk, where to parse them takes 0.4: they are parsed again
    where their bytes have changed. Threads may share it.
    """

    def __init__(self) -> None:
        self._last: tuple[bytes, dict[str, str]] | None = None

    def read(self, storage: Storage) -> Mapping[str, str]:
        """The present properties of the table at the storage's root."""
        try:
            data = storage.read(PROPERTIES_PATH, MAX_BYTES)
            last = self._last  # looked at once: another thread may put the next one there
            if last is None or last[0] != data:
                self._last = last = data, _decode(data, _full(storage, PROPERTIES_PATH))
            return last[1]
        except (CorruptMetadataError, PathNotFoundError):
            # another writer may be replacing the file just now, and its backup is used
            return read_properties(storage)


def write_new(storage: Storage, properties: Mapping[str, str]) -> None:
    """Create the properties of a new table.

    A checksum in ``properties`` is replaced by the right one, which is the last line. A backup that
    is left there counts as a table: ``AlreadyExistsError``.
    """
    _require_no_secrets(properties)
    data = _encode(properties, "Properties saved on")
    if storage.head(BACKUP_PATH) is not None:
        raise AlreadyExistsError(f"{storage.root}/{BACKUP_PATH}")
    storage.put_if_absent(PROPERTIES_PATH, data)


def write_instead(storage: Storage, properties: Mapping[str, str]) -> None:
    """Replace the properties of a table by those of a new one.

    The caller holds the table's lock, and knows that no process uses the present ones.
    """
    _require_no_secrets(properties)
    storage.put(PROPERTIES_PATH, _encode(properties, "Properties saved on"))


def update_properties(storage: Storage, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Change some properties of a table and return all.

    The caller holds the table's lock.

    ``None`` removes a property. ``PreconditionFailedError``: another writer changed the properties
    at the same time.
    """
    _require_no_secrets(changes)
    recover(storage)
    try:
        before, tag = storage.version(PROPERTIES_PATH)
    except PathNotFoundError as error:
        raise PreconditionFailedError(f"{storage.root}/{PROPERTIES_PATH}") from error
    old = _decode(before, _full(storage, PROPERTIES_PATH))
    new = {key: changes.get(key, value) for key, value in old.items()} | dict(changes)
    wanted = _with_checksum({key: value for key, value in new.items() if value is not None})
    if wanted == old:
        return old
    data = _encode(wanted, "Updated at")
    storage.put_if_absent(BACKUP_PATH, before)
    try:
        storage.compare_and_set(PROPERTIES_PATH, data, tag)
    except PreconditionFailedError:
        storage.delete(BACKUP_PATH)
        raise
    if storage.read(PROPERTIES_PATH, MAX_BYTES) != data:
        # the backup stays: if what is there now is damaged, it is used instead
        raise PreconditionFailedError(f"{storage.root}/{PROPERTIES_PATH}")
    storage.delete(BACKUP_PATH)
    return wanted


def recover(storage: Storage) -> None:
    """Finish or undo an interrupted change of the properties file.

    The file alone holds the properties then.

    The caller holds the table's lock.
    """
    if storage.head(BACKUP_PATH) is None:
        read_properties(storage)
        return
    try:
        _load(storage, PROPERTIES_PATH)
    except (CorruptMetadataError, PathNotFoundError) as error:
        try:
            _load(storage, BACKUP_PATH)
        except (PathNotFoundError, CorruptMetadataError):
            raise error from None
        storage.put(PROPERTIES_PATH, storage.read(BACKUP_PATH, MAX_BYTES))
    storage.delete(BACKUP_PATH)


def _full(storage: Storage, path: str) -> str:
    return f"{storage.root}/{path}"


def _load(storage: Storage, path: str) -> dict[str, str]:
    return _decode(storage.read(path, MAX_BYTES), _full(storage, path))


def _decode(data: bytes, path: str) -> dict[str, str]:
    properties = parse_properties(data, path)
    require_whole_properties(data, properties, path)
    return properties


def _encode(properties: Mapping[str, str], comment: str) -> bytes:
    return format_properties(
        _with_checksum(properties), [f"{comment} {datetime.now(UTC).isoformat()}"]
    )


def _require_no_secrets(properties: Mapping[str, str | None]) -> None:
    for key, value in properties.items():
        if value is not None and is_secret_name(key):
            raise InvalidOptionError(
                key, "***", "secrets are never stored with a table", "Pass it with each call."
            )


def _with_checksum(properties: Mapping[str, str]) -> dict[str, str]:
    whole = {key: value for key, value in properties.items() if key != CHECKSUM_KEY}
    name = whole.get(TABLE_NAME_KEY)
    if not name:
        raise InvalidOptionError(
            TABLE_NAME_KEY, name, "a table needs a name", f"Set {TABLE_NAME_KEY}."
        )
    whole[CHECKSUM_KEY] = str(table_checksum(whole.get(DATABASE_KEY), name))
    return whole
