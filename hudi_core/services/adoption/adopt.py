"""Adoption: turns a folder of rows into a Hudi table, in place.

Every data file becomes a base file: it gets a second name, that of a base file in the folder of its
partition. Readers of Hudi tables know no other names; the marker that Hudi has for foreign names
(``_hudiext``) is passed over without a word by readers outside of Java, rows and all, and so is not
used. The files have no meta columns: the table has virtual keys.

Files of a format's table keep their first name as well: by it the format's former states are read.
Those of plain files lose it, or who reads the folder found their rows twice. So do all where the
table has no metadata table: then readers of Hudi tables list the folders, and fail on such names.

Order: record, names, timeline, metadata of the format; then the old names go, the metadata table is
made, the properties make it a table, and the record goes. A crash at any point leaves what the same
command goes on with. Readers of the format find the old names until its metadata has the new ones;
readers of Hudi's tables, which fail on other names than Hudi's, come when these are the only ones,
or the metadata table lists the files; those of plain files find each file under one name or, for a
short time, two.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.resolve import resolve_table_config
from hudi_core.config.stored_table import properties_of, stored_config
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptMetadataError,
    InvalidInstantTimeError,
    PathNotFoundError,
    StorageError,
    UnsupportedTableError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.maintenance.lifecycle import new_metadata_table
from hudi_core.model.capability import Capability
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    SCHEMA_KEY,
    CommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    BaseFileName,
    PartitionPath,
    derive_file_id,
    join_path,
)
from hudi_core.model.found_table import FoundTable
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import Storage
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.services.adoption.dead_rows import Adopted, delete_dead_rows, log_name
from hudi_core.services.adoption.plan import (
    Adoption,
    Folder,
    InPlace,
    in_place_document,
    plan_in_place,
)
from hudi_core.services.adoption.rows import AdoptedRows
from hudi_core.services.adoption.source import PLAIN
from hudi_core.services.create import location_property
from hudi_core.storage.location import PathLike, location_of
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import PROPERTIES_PATH, has_properties, write_new
from hudi_core.storage.safe_path import require_safe_folder, require_safe_path
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from hudi_core.txn.table_lock import TableLock, lock_at

REWRITE = (
    "Write its rows into a new table: `hudi table adopt PATH --rewrite NEW_PATH`; the folder stays "
    "as it is."
)


def adopt_folder(
    folder: Folder,
    rewrite: PathLike | None,
    insert: Callable[[OpenTable, pa.RecordBatchReader], object],
    *,
    dry_run: bool,
) -> Adoption:
    """Turn a folder into a table, or insert its rows into one."""
    if rewrite is None:
        return plan_adoption(folder) if dry_run else adopt_in_place(folder)
    rows, target = AdoptedRows.of(folder), location_of(rewrite)
    if dry_run:
        return rows.document(target)
    return rows.write(target, lambda new: insert(new, rows.read()))


def plan_adoption(folder: Folder) -> Adoption:
    """Plan of an adoption; nothing is written, and no lock is taken.

    It raises what :func:`~hudi_core.services.adoption.plan.plan_in_place` does.
    """
    return in_place_document(folder, plan_in_place(folder))


def adopt_in_place(folder: Folder) -> Adoption:
    """Make a folder a Hudi table, or continue an interrupted adoption.

    Where files cannot stay as they are (``UnsupportedTableError``), nothing has changed. A folder
    whose files change meanwhile, or are not those that the interrupted adoption began with, is a
    conflict with another process.
    """
    plain = folder.client(TableConfig(name="unnamed", record_key_fields=()))
    config = WriteConfig.from_options(folder.options)
    plan = None
    if AdoptionRecord.load(plain.storage) is None:
        # before the lock, whose file would be left among what is not ours
        plan = plan_in_place(folder)
        _require_possible(folder, plan)
    lock = lock_at(folder.base_path, plain.storage, config, TableKeys.name.read(folder.options))
    with lock.held():
        record = AdoptionRecord.load(plain.storage)
        if record is None:
            if plan is not None:
                _require_unchanged(folder)
            record = _begin(folder, plan or plan_in_place(folder))
        return _carry_out(folder, record, lock)


def _require_possible(folder: Folder, plan: InPlace) -> None:
    if plan.obstacles:
        raise UnsupportedTableError(
            folder.base_path,
            f"has files that cannot stay as they are: {'; '.join(plan.obstacles)}",
            REWRITE,
        )


def _require_unchanged(folder: Folder) -> None:
    """Refuse a folder that changed since planning; runs under its lock."""
    now, then = (
        (table.version, {(one.path, one.size) for one in table.files})
        for table in (replace(folder).found.table, folder.found.table)
    )
    if now != then:
        raise CommitConflictError(
            f"The files of {folder.base_path} were changed while they were looked at",
            "Nothing has changed. Stop who writes to it, and run the adoption again.",
        )


def _begin(folder: Folder, plan: InPlace) -> AdoptionRecord:
    _require_possible(folder, plan)
    client = folder.client(plan.config)
    instant = client.clock.next_time()
    deletes = (
        client.clock.next_time() if any(one.file.dead is not None for one in plan.files) else None
    )
    placements = tuple(
        AdoptedFile(
            source=one.file.path,
            partition_path=one.partition_path,
            name=BaseFileName(derive_file_id(instant, number, 0), f"{number}-0-0", instant),
            size=one.file.size,
            rows=one.rows,
            live_rows=one.live_rows,
        )
        for number, one in enumerate(plan.files)
    )
    properties = properties_of(plan.config)
    record = AdoptionRecord(
        instant, properties, folder.found.kind, placements, plan.keeps_names, deletes
    )
    record.put(client.storage)
    return record


def _carry_out(folder: Folder, record: AdoptionRecord, lock: TableLock) -> Adoption:
    where = f"{folder.base_path}/{PROPERTIES_PATH}"
    stored = stored_config(record.properties, where)
    client = folder.client(resolve_table_config(folder.options, stored))
    _place(folder, client.storage, record)
    if _is_behind(client, record):
        _undo_adoption(client, record)
        raise CommitConflictError(
            f"The {record.source} table at {folder.base_path} got a new version while it was "
            "adopted",
            "Its files have their names again. Stop who writes to it, and run the adoption again.",
        )
    _commit(client, record)
    if record.deletes is not None:
        delete_dead_rows(client, record.deletes, partial(_dead, client, record))
    lock.require_lease()
    properties = _make_format(client, record)
    _remove_sources(client.storage, record)
    if not has_properties(client.storage):
        # where a file keeps its old name, readers of Hudi tables need the list of files
        properties |= _make_metadata_table(folder, client, properties)
        write_new(client.storage, properties)
    client.storage.delete(RECORD_PATH)
    return Adoption(
        path=folder.base_path,
        source=record.source,
        table_format=client.config.table_format,
        files=len(record.placements),
        rows=sum(one.live_rows for one in record.placements),
        size=sum(one.size for one in record.placements),
        partitions=len({one.partition_path for one in record.placements}),
        is_rewritten=False,
        keeps_history=record.keeps_names or record.source == PLAIN,
    )


# --- the steps -----------------------------------------------------------------------------------


def _with_names(storage: Storage) -> PosixStorage:
    if not isinstance(storage, PosixStorage):
        raise UnsupportedTableError(storage.root, "is in an object store", REWRITE)
    return storage


def _place(folder: Folder, storage: Storage, record: AdoptionRecord) -> None:
    storage = _with_names(storage)
    marked = set()
    for done, one in enumerate(record.placements, start=1):
        if one.partition_path not in marked:
            marked.add(one.partition_path)
            _mark(storage, one, record)
        _link(storage, one)
        is_base_file = BaseFileName.parse(one.source.rpartition("/")[2]) is not None
        if record.source == PLAIN or is_base_file:
            # who reads the folder, as plain files or as a Hudi table, finds it once
            storage.delete(one.source)
        folder.progress(done, len(record.placements))


def _link(storage: PosixStorage, one: AdoptedFile) -> None:
    """Make sure a file has its new name, and none its old.

    Its old name may be another file's by now, which stays.
    """
    try:
        storage.link(one.source, one.path)
    except AlreadyExistsError as error:
        raise CommitConflictError(
            f"{storage.root}/{one.source} is another file than the one that is adopted from there",
            "It was not touched. Move it out of the folder, and run the adoption again.",
        ) from error
    except PathNotFoundError:
        if storage.head(one.path) is None:
            raise
    found = storage.head(one.path)
    if found is None or found.size != one.size:
        raise StorageError(
            f"{storage.root}/{one.path} should have {one.size} bytes",
            "Its file was changed while the folder was adopted. Stop who writes to it; where "
            "no file has a new name yet, delete .hoodie and run the adoption again.",
        )


def _is_behind(client: TableMetaClient, record: AdoptionRecord) -> bool:
    """Whether the table has files from later writes than the adoption."""
    if record.source == PLAIN:
        return False
    table = _found(client, record)
    named = {one.path for one in table.files} if table is not None else set()
    sources = {one.source for one in record.placements}
    # its metadata may have been rebuilt, before a crash; files without rows may be left out
    return named != sources and not named <= {one.path for one in record.placements}


def _found(client: TableMetaClient, record: AdoptionRecord) -> FoundTable | None:
    host = FormatHost.load(FormatRegistry(), record.source)
    return host.find_table(
        replace(client, config=replace(client.config, table_format=record.source))
    )


def _dead(client: TableMetaClient, record: AdoptionRecord) -> Iterator[Adopted]:
    """Yield the files with dead rows, by their former names."""
    table = _found(client, record)
    files = {} if table is None else {one.path: one for one in table.files}
    for one in record.placements:
        if one.live_rows < one.rows:
            yield files[one.source], one.partition_path, one.name


def _undo_adoption(client: TableMetaClient, record: AdoptionRecord) -> None:
    """Restore all old file names and delete the timeline.

    The record goes last.
    """
    instants = [(record.instant, Action.COMMIT)]
    if record.deletes is not None:
        instants.append((record.deletes, Action.DELTACOMMIT))
    for time, action in instants:
        found = client.timeline().find(time)
        if found is not None:
            client.active.delete(found)
        client.active.delete_pending(Instant(time, action, State.INFLIGHT))
    storage = _with_names(client.storage)
    for one in record.placements:
        if record.deletes is not None:
            storage.delete(join_path(one.partition_path, str(log_name(one.name, record.deletes))))
        storage.link(one.path, one.source)
        storage.delete(one.path)
    storage.delete(RECORD_PATH)


def _mark(storage: Storage, one: AdoptedFile, record: AdoptionRecord) -> None:
    path = one.partition_path
    depth = len(path.split("/")) if path else 0
    lines = ("#partition metadata", f"commitTime={record.instant}", f"partitionDepth={depth}")
    with contextlib.suppress(AlreadyExistsError):
        storage.put_if_absent(
            join_path(path, PARTITION_METADATA_FILE), ("\n".join(lines) + "\n").encode()
        )


def _commit(client: TableMetaClient, record: AdoptionRecord) -> None:
    """Put the one commit that holds all files on the timeline."""
    timeline = client.timeline()
    found = timeline.find(record.instant)
    if found is not None and found.is_completed:
        return
    instant = Instant(record.instant, Action.COMMIT, State.REQUESTED)
    with contextlib.suppress(AlreadyExistsError):
        client.active.create_requested(instant)
    with contextlib.suppress(AlreadyExistsError):
        client.active.to_inflight(instant)
    stats: dict[str, list[WriteStat]] = {}
    for one in record.placements:
        stat = WriteStat(
            file_id=one.name.file_id,
            path=one.path,
            prev_commit=NO_PREVIOUS_COMMIT,
            num_writes=one.rows,
            num_inserts=one.rows,
            total_write_bytes=one.size,
            file_size_in_bytes=one.size,
            partition_path=one.partition_path,
        )
        stats.setdefault(one.partition_path, []).append(stat)
    metadata = CommitMetadata(
        partition_to_write_stats={path: tuple(some) for path, some in stats.items()},
        extra_metadata={SCHEMA_KEY: client.config.create_schema or ""},
        operation_type=WriteOperation.BULK_INSERT,
    )
    completion = client.clock.next_time()
    client.active.complete(instant.to(State.INFLIGHT), completion, encode(metadata))


def _make_format(client: TableMetaClient, record: AdoptionRecord) -> dict[str, str]:
    """Publish the new files in the format; return the table's properties."""
    host = FormatHost.load(FormatRegistry(), client.config.table_format)
    properties = dict(record.properties)
    if Capability.SINGLE_STEP not in host.capabilities:
        receipt = host.rebuild(client)
        properties |= location_property(host, receipt, client.options)
        properties |= host.stored_options(client.options)
    return properties


def _remove_sources(stored: Storage, record: AdoptionRecord) -> None:
    """Take the old names away, unless former states need them."""
    storage = _with_names(stored)
    for one in record.placements:
        found = storage.head(one.path)
        if found is None:
            raise CorruptMetadataError(
                f"{storage.root}/{one.path}", "it is gone, and an adoption has just placed it"
            )
        if not record.keeps_names:
            _link(storage, one)
            storage.delete(one.source)


def _make_metadata_table(
    folder: Folder, client: TableMetaClient, properties: Mapping[str, str]
) -> dict[str, str]:
    """Make the metadata table, if wanted; return its properties."""
    config = MetadataConfig.from_options(folder.options)
    if not config.enabled:
        return {}
    as_stored = replace(client, config=replace(client.config, raw=properties))
    return new_metadata_table(as_stored.seeing(client.timeline()), config)


# --- the record of an adoption --------------------------------------------------------------------
#
# The plan of a running adoption, stored in the folder. A second run after a crash goes on with
# exactly that: files get the names that were chosen for them, under the instant that was chosen.

RECORD_PATH: Final = ".hoodie/adoption.json"
_MAX_BYTES: Final = 1 << 28
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class AdoptedFile:
    """A file and the base file that it becomes.

    ``source`` is relative to the folder; ``partition_path`` and ``name`` are those of the base
    file; ``size`` is in bytes. ``live_rows`` are those of the ``rows`` that the format has not
    deleted.
    """

    source: str
    partition_path: PartitionPath
    name: BaseFileName
    size: int
    rows: int
    live_rows: int

    @property
    def path(self) -> str:
        """Path of the base file."""
        return join_path(self.partition_path, str(self.name))


@dataclass(frozen=True, slots=True)
class AdoptionRecord:
    """The record.

    ``instant`` is the requested time of the commit that the files become, ``properties`` what
    ``hoodie.properties`` will say, and ``keeps_names`` whether files keep their former names beside
    the new ones. ``deletes`` is the requested time of the commit that deletes the dead rows of the
    files.
    """

    instant: InstantTime
    properties: Mapping[str, str]
    source: str
    placements: tuple[AdoptedFile, ...]
    keeps_names: bool = False
    deletes: InstantTime | None = None

    def put(self, storage: Storage) -> None:
        """Store the record; it stays as it is.

        ``AlreadyExistsError`` means that another adoption is at work.
        """
        document = {
            "version": _VERSION,
            "instant": self.instant,
            "source": self.source,
            "properties": dict(self.properties),
            "keeps_names": self.keeps_names,
            "deletes": self.deletes,
            "files": [
                [one.source, one.partition_path, str(one.name), one.size, one.rows, one.live_rows]
                for one in self.placements
            ],
        }
        storage.put_if_absent(RECORD_PATH, json.dumps(document).encode())

    @classmethod
    def load(cls, storage: Storage) -> AdoptionRecord | None:
        """Return the record that a folder has; ``None`` where it has none."""
        where = f"{storage.root}/{RECORD_PATH}"
        try:
            document = json.loads(storage.read(RECORD_PATH, _MAX_BYTES))
            return cls._parsed(document)
        except PathNotFoundError:
            return None
        except (
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            InvalidInstantTimeError,
        ) as error:
            raise CorruptMetadataError(
                where,
                f"it is no record of an adoption ({error})",
                "Where no file has its new name yet, delete it and run the adoption again.",
            ) from error

    @classmethod
    def _parsed(cls, document: Any) -> AdoptionRecord:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']}")
        placements = []
        for source, partition, text, size, rows, *live in document["files"]:
            name = BaseFileName.parse(text)
            if name is None:
                raise ValueError(f"{text!r} is no name of a base file")
            folder = PartitionPath(require_safe_folder(partition))
            placements.append(
                AdoptedFile(
                    require_safe_path(source),
                    folder,
                    name,
                    int(size),
                    int(rows),
                    int(*live or [rows]),
                )
            )
        properties = {str(key): str(value) for key, value in dict(document["properties"]).items()}
        return cls(
            parse_instant_time(document["instant"]),
            properties,
            str(document["source"]),
            tuple(placements),
            document.get("keeps_names") is True,
            None if document.get("deletes") is None else parse_instant_time(document["deletes"]),
        )
