"""Dropping a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.config.storage import StoreKeys
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError, InvalidInstantTimeError
from hudi_core.model.files import BasePath
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import Storage
from hudi_core.services.placement import release_storage, storages_of
from hudi_core.storage.location import parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.properties_file import PROPERTIES_PATH, read_properties
from hudi_core.txn import heartbeat
from hudi_core.txn.table_lock import LOCK_FILES, LOCK_FOLDER, lock_at

_META: Final = ".hoodie"


@dataclass(frozen=True, slots=True)
class DropResult:
    """What a drop deleted, or would delete.

    ``name`` is ``None`` where the table has none; ``files`` and ``size`` (bytes) leave out those of
    its lock.
    """

    path: str
    name: str | None
    table_format: str
    files: int
    size: int


def plan_drop(path: str, options: Mapping[str, str]) -> DropResult:
    """What :func:`drop_table` would delete; changes nothing."""
    storage, base_path = _storage_of(path, options)
    properties = read_properties(storage)
    data, *_ = _data_of(storage, base_path, properties, options)
    _require_no_live_writers(storage, base_path, WriteConfig.from_options(options))
    return _found(storage, data, properties)


def drop_table(path: str, options: Mapping[str, str]) -> DropResult:
    """Delete a table with all its rows and history.

    Runs under its lock. Empty folders may stay, and an entry of the table in a catalog does: a
    table that is created in its place takes that over.

    Every error comes before anything is deleted.
    """
    storage, base_path = _storage_of(path, options)
    config = WriteConfig.from_options(options)
    # there must be a table; what it is does not matter any more, but for where its files are
    properties = read_properties(storage)
    with lock_at(base_path, storage, config, properties.get(TableKeys.name.key)).held():
        properties = read_properties(storage)
        data = _data_of(storage, base_path, properties, options)
        found = _found(storage, data[0], properties)
        empty_table(storage, data, base_path, config)
        # last, and not its folder: a process that waited makes the file again, and perhaps a table
        delete_files(storage, LOCK_FOLDER)
    return found


def _storage_of(path: str, options: Mapping[str, str]) -> tuple[Storage, BasePath]:
    base_path = BasePath(parse_location(path).uri)
    store = StorageOptions.from_options(options)
    return open_storage(base_path, store, fsync=StoreKeys.fsync.read(options)), base_path


def _data_of(
    storage: Storage,
    base_path: BasePath,
    properties: Mapping[str, str],
    options: Mapping[str, str],
) -> tuple[Storage, ...]:
    return storages_of(storage, base_path, properties, StorageOptions.from_options(options))


def _found(storage: Storage, data: Storage, properties: Mapping[str, str]) -> DropResult:
    files = [
        status.size
        for status in data.list("", recursive=True)
        if not status.path.startswith(f"{LOCK_FOLDER}/")
    ]
    name, table_format = properties.get(TableKeys.name.key), TableKeys.table_format.read(properties)
    return DropResult(storage.root, name, table_format, len(files), sum(files))


def empty_table(
    storage: Storage,
    data: Sequence[Storage],
    base_path: BasePath,
    config: WriteConfig,
    keep: str | None = None,
) -> None:
    """Delete everything of a table but the lock's own file.

    Runs under the table's lock.

    The timeline goes first and the properties last: after a crash in between the path still holds a
    table, without its commits, that can be dropped or overwritten again.

    ``data`` is all places of data files. ``keep`` is a folder to leave alone, relative to the table
    and below its ``.hoodie``, for the table that takes the place of this one. Where a writer is at
    work, nothing is deleted.
    """
    _require_no_live_writers(storage, base_path, config)
    delete_contents(
        storage, (LOCK_FOLDER, PROPERTIES_PATH, *LOCK_FILES, *(() if keep is None else (keep,)))
    )
    for one in data:
        release_storage(one)
    storage.delete(PROPERTIES_PATH)


def delete_contents(
    storage: Storage, kept: Sequence[str], folders: Sequence[str] | None = None
) -> None:
    """Delete the contents of a table's folder, timeline first.

    Runs under the table's lock.

    ``kept`` are folders and files below ``.hoodie``, relative to the table. ``folders`` limits what
    is deleted beside ``.hoodie``; by default everything is.
    """
    data = folders
    if data is None:
        data = [folder for folder in storage.list_folders() if folder != _META]
    below = _below(storage, _META, kept)
    first = sorted(below, key=lambda folder: (folder != f"{_META}/timeline", folder))
    for folder in [*first, *data]:
        storage.delete_tree(folder)
    if folders is None:
        delete_files(storage, "")
    delete_files(storage, _META, kept)


def _require_no_live_writers(storage: Storage, base_path: BasePath, config: WriteConfig) -> None:
    """Refuse to go on while a heart beats.

    Heartbeats show every writer and service, whatever the timeline's layout, and even if it is
    unreadable.
    """
    for status in storage.list(heartbeat.FOLDER):
        try:
            instant = parse_instant_time(status.name.removesuffix(heartbeat.SERVICE_SIGN))
        except InvalidInstantTimeError:
            continue  # no writer's
        interval, misses = config.heartbeat_interval_ms, config.heartbeat_misses
        if heartbeat.is_alive(storage, InstantTime(status.name), interval, misses):
            raise ConcurrentWriterError(base_path, instant)


def _below(storage: Storage, folder: str, kept: Sequence[str]) -> Iterator[str]:
    """Yield subfolders, except kept ones and their parents."""
    for found in storage.list_folders(folder):
        if found in kept:
            continue
        if any(one.startswith(f"{found}/") for one in kept):
            yield from _below(storage, found, kept)
        else:
            yield found


def delete_files(storage: Storage, folder: str, kept: Sequence[str] = ()) -> None:
    """Delete the files directly in a folder, except kept ones.

    The folder stays.
    """
    for status in list(storage.list(folder)):
        if status.path not in kept:
            storage.delete(status.path)
