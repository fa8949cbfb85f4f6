"""The record of a stage: rows, operation, base, expiry.

A stage is a folder below ``.hoodie/.stage``: its rows as they came (``rows``), the files that a
write of them would leave (``data``), and this record, which is put last. A folder without one is
unfinished, and is ignored.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from hudi_core.errors import (
    CorruptMetadataError,
    InvalidInstantTimeError,
    InvalidOptionError,
    PathNotFoundError,
    PreconditionFailedError,
    UnknownStageError,
)
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.extra_metadata import checked_metadata
from hudi_core.model.instant_time import InstantTime, instant_time_of, parse_instant_time
from hudi_core.model.operation import Operation, operation_named
from hudi_core.model.protocols import Storage
from hudi_core.services.stage_options import kept_options
from hudi_core.storage.temp_folders import STAGES_FOLDER
from hudi_core.timeline.serde import decode_commit, decode_replace_commit, encode

_log = logging.getLogger(__name__)

_RECORD: Final = "stage.json"
_MAX_BYTES: Final = 1 << 28
_VERSION: Final = 1
_ID: Final = re.compile(r"[0-9]{17}-[0-9]{8}")
_LARGEST_OFFSET: Final = 26
"""Hours between the clocks of two zones, at most."""
_ROWS: Final = re.compile(r"[0-9]+-[0-9]+\.arrow")


@dataclass(frozen=True, slots=True)
class StageRecord:
    """The record.

    ``id`` names the stage and its folder. ``base`` is the completion time of the last write that
    the stage builds on; ``None`` for an empty table. ``columns`` is the table's Avro schema then,
    as JSON; ``schema`` the columns of the rows. ``rows`` are names of files, in order. ``metadata``
    is what the write would commit, with the paths of its files in the stage. ``expires`` is until
    when it can be published.
    """

    id: str
    operation: Operation
    options: Mapping[str, str]
    extra_metadata: Mapping[str, str]
    created: datetime
    expires: datetime
    base: InstantTime | None
    columns: str
    rows: tuple[str, ...]
    schema: pa.Schema
    metadata: CommitMetadata

    @property
    def folder(self) -> str:
        """The stage's folder, relative to the table."""
        return stage_folder(self.id)

    @property
    def instant(self) -> InstantTime:
        """The stage's files have it as the time of the write."""
        return InstantTime(self.id.partition("-")[0])

    def is_expired(self) -> bool:
        """Whether it cannot be published any more."""
        return datetime.now(UTC) > self.expires

    def put(self, storage: Storage) -> None:
        """Store the record of a new stage."""
        storage.put(f"{self.folder}/{_RECORD}", self._encoded())

    def extended(self, storage: Storage, until: datetime) -> StageRecord:
        """The record with a later expiry, stored in place of this one."""
        path = f"{self.folder}/{_RECORD}"
        later = replace(self, expires=max(self.expires, until))
        data = later._encoded()
        while True:
            try:
                storage.compare_and_set(path, data, storage.version(path)[1])
            except PathNotFoundError as error:
                storage.delete_tree(self.folder)  # an attempt to store it may have made it again
                raise UnknownStageError(storage.root, self.id) from error
            except PreconditionFailedError:
                continue  # deleted, or extended by another who publishes it
            return later

    def is_stored(self, storage: Storage) -> bool:
        """Whether it was neither published nor dropped."""
        return storage.head(f"{self.folder}/{_RECORD}") is not None

    def _encoded(self) -> bytes:
        document = {
            "version": _VERSION,
            "operation": self.operation.method,
            "options": dict(self.options),
            "extra_metadata": dict(self.extra_metadata),
            "created": self.created.isoformat(),
            "expires": self.expires.isoformat(),
            "base": self.base,
            "columns": self.columns,
            "rows": list(self.rows),
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "metadata": base64.b64encode(encode(self.metadata)).decode(),
        }
        return json.dumps(document).encode()

    @classmethod
    def load(cls, storage: Storage, stage: str) -> StageRecord:
        """The record of a stage."""
        path = f"{stage_folder(stage)}/{_RECORD}"
        try:
            if _ID.fullmatch(stage) is None:
                raise UnknownStageError(storage.root, stage)
            return cls._parsed(stage, json.loads(storage.read(path, _MAX_BYTES)), path)
        except PathNotFoundError as error:
            raise UnknownStageError(storage.root, stage) from error
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
            OSError,
            InvalidInstantTimeError,
            InvalidOptionError,
            pa.ArrowException,
        ) as error:
            where, reason = f"{storage.root}/{path}", f"it is no record of a stage ({error})"
            raise CorruptMetadataError(where, reason, "Drop the stage.") from error

    @classmethod
    def _parsed(cls, stage: str, document: Any, path: str) -> StageRecord:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']}")
        parse_instant_time(stage.partition("-")[0])
        operation, rows = operation_named(document["operation"]), tuple(document["rows"])
        for name in rows:
            if _ROWS.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of a file with rows")
        decode = decode_replace_commit if operation.is_replacing else decode_commit
        schema = base64.b64decode(document["schema"], validate=True)
        return cls(
            stage,
            operation,
            kept_options({str(key): str(text) for key, text in document["options"].items()}),
            checked_metadata(dict(document["extra_metadata"])),
            _aware(document["created"]),
            _aware(document["expires"]),
            None if document["base"] is None else parse_instant_time(document["base"]),
            str(document["columns"]),
            rows,
            pa.ipc.read_schema(pa.BufferReader(schema)),
            decode(base64.b64decode(document["metadata"], validate=True), path),
        )


def _aware(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no zone")
    return found


def stage_folder(stage: str) -> str:
    """Folder of a stage, relative to the table."""
    return f"{STAGES_FOLDER}/{stage}"


def stage_ids(storage: Storage) -> list[str]:
    """Names of all stages, unfinished ones too, the oldest first."""
    names = (folder.rpartition("/")[2] for folder in storage.list_folders(STAGES_FOLDER))
    return sorted(name for name in names if _ID.fullmatch(name))


def stage_records(storage: Storage) -> Iterator[StageRecord]:
    """Yield the stages of a table, the oldest first.

    Logs those that are damaged.
    """
    for name in stage_ids(storage):
        try:
            yield StageRecord.load(storage, name)
        except UnknownStageError:
            continue  # unfinished, or gone since
        except CorruptMetadataError as error:
            _log.warning("stage %s is passed over: %s", name, error)


def delete_expired_stages(storage: Storage, hours: int) -> None:
    """Delete the stages of a table that have expired.

    Logs those that are damaged.

    An unfinished stage has no expiry; it goes once it is ``hours`` old.
    """
    # the times of the table, which its stages are named by, may be in any zone
    oldest = instant_time_of(datetime.now(UTC) - timedelta(hours=hours + _LARGEST_OFFSET))
    for name in stage_ids(storage):
        try:
            gone = StageRecord.load(storage, name).is_expired()
        except UnknownStageError:
            gone = name < oldest
        except CorruptMetadataError as error:
            _log.warning("stage %s is kept, whose expiry is not known: %s", name, error)
            continue
        if gone:
            delete_stage(storage, name)


def drop_stage(storage: Storage, stage: str) -> None:
    """Delete a stage, be it expired, unfinished or damaged."""
    if stage not in stage_ids(storage):
        raise UnknownStageError(storage.root, stage)
    delete_stage(storage, stage)


def delete_stage(storage: Storage, stage: str) -> None:
    """Delete a stage.

    Its record goes first: without it the rest is ignored.
    """
    storage.delete(f"{stage_folder(stage)}/{_RECORD}")
    storage.delete_tree(stage_folder(stage))
