"""Bodies of instant files: values of :mod:`hudi_core.model` to bytes and back.

Writing uses our own schemas. Reading uses the schema stored in the file: what the file lacks
takes the value's default, what we do not know is left out. Commit metadata of layout 1 is plain
JSON of the same names.
"""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from hudi_core.avro import datum as avro
from hudi_core.avro.datum import ParsedSchema, decode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    CompactionPlan,
    IndexCommitMetadata,
    IndexPlan,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.timeline.serde.records import (
    MAX_INSTANT_BYTES,
    MAX_SCHEMA_BYTES,
    RecordMismatchError,
    from_record,
    read_container,
    schema_name,
    schema_of,
    to_record,
    write_container,
)

T = TypeVar("T")


@cache
def _schema_text(kind: type) -> str:
    return json.dumps(schema_of(kind), separators=(",", ":"))


def encode(value: object) -> bytes:
    """Return a value as the body of an instant file.

    Any value that this module decodes.
    """
    kind: type = type(value)
    text = _schema_text(kind)
    datum = encode_datum(value, parse_writer_schema(text, kind.__name__).parsed)
    if len(datum) > MAX_INSTANT_BYTES - MAX_SCHEMA_BYTES:
        raise CorruptMetadataError(
            kind.__name__,
            f"its {len(datum)} bytes are more than readers accept",
            "Write fewer files in one commit.",
        )
    return write_container(text, datum)


def encode_json(value: CommitMetadata) -> bytes:
    """Return commit metadata as the body of a file of layout 1."""
    return json.dumps(_without_nulls(to_record(value)), indent=2).encode()


def _without_nulls(value: object) -> object:
    match value:
        case dict():
            return {key: _without_nulls(one) for key, one in value.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in value]
    return value


def encode_datum(value: object, schema: ParsedSchema) -> bytes:
    """Return the bare Avro bytes of ``value`` under a compatible schema."""
    return avro.encode_datum(to_record(value), schema)


def decode_commit(data: bytes, path: str, *, allow_empty: bool = False) -> CommitMetadata:
    """Return the metadata of a commit, deltacommit or inflight write.

    ``data`` is an Avro container, or JSON in tables of layout 1. With ``allow_empty``, an empty
    file means empty metadata, as inflight files may.
    """
    if allow_empty and not data:
        return CommitMetadata()
    return _decode_commit(CommitMetadata, data, path)


def is_json(data: bytes) -> bool:
    """Whether a body has the form of commit metadata in layout 1."""
    # it has no mark of its own; Avro containers never begin with a brace
    return data.lstrip(b" \t\r\n")[:1] == b"{"


def encode_archived(kind: type, record: object, path: str) -> bytes:
    """The body of an instant file, from its record in an archive."""
    if isinstance(record, str):
        return encode(_decode_commit(kind, record.encode(), path))
    if not isinstance(record, dict):
        raise CorruptMetadataError(path, f"it holds no {schema_name(kind)}")
    return encode(_value(kind, record, path))


def decode_replace_commit(data: bytes, path: str) -> ReplaceCommitMetadata:
    """Return the metadata of a completed replacecommit; see :func:`decode_commit`."""
    return _decode_commit(ReplaceCommitMetadata, data, path)


def decode_requested_replace(data: bytes, path: str) -> RequestedReplaceMetadata:
    """Return the plan of a replacecommit or clustering; see :func:`decode_commit`.

    An empty file is a plan without content: some releases of Hudi write it for replacing writes.
    """
    if not data:
        return RequestedReplaceMetadata()
    return decode(RequestedReplaceMetadata, data, path)


class InstantRecord(NamedTuple):
    """An instant file decoded by its own schema, not a model's.

    ``name`` is without namespace; ``schema`` is that of the file, for :func:`encode_datum`;
    ``datum`` is the record's Avro bytes.
    """

    name: str
    schema: ParsedSchema
    datum: bytes
    fields: dict[str, Any]


def decode_record(data: bytes, path: str) -> InstantRecord:
    """Return the record of any Avro instant file."""
    container = read_container(data, path)
    name, schema = parse_writer_schema(container.schema, path)
    fields = decode_datum(container.datum, schema, path)
    return InstantRecord(name, schema, container.datum, fields)


def _decode_commit(kind: type[T], data: bytes, path: str) -> T:
    if not is_json(data):
        return decode(kind, data, path)
    if len(data) > MAX_INSTANT_BYTES:
        raise CorruptMetadataError(path, f"{len(data)} bytes are more than {MAX_INSTANT_BYTES}")
    try:
        record = json.loads(data)
    except ValueError as error:
        raise CorruptMetadataError(path, f"it is not whole JSON ({error})") from error
    except RecursionError as error:
        raise CorruptMetadataError(path, "its JSON is nested too deeply") from error
    if not isinstance(record, dict) or "partitionToWriteStats" not in record:
        raise CorruptMetadataError(path, "its JSON is not commit metadata")
    return _value(kind, record, path)


def decode(kind: type[T], data: bytes, path: str) -> T:
    """The value of a kind in a body; see :func:`decode_commit`."""
    record = decode_record(data, path)
    # a record of another kind would come out as a value made of nothing but defaults
    accepted = {schema_name(kind)}
    if kind is CommitMetadata:
        accepted.add(schema_name(ReplaceCommitMetadata))
    if record.name not in accepted:
        raise CorruptMetadataError(
            path, f"it holds a {record.name} instead of a {schema_name(kind)}"
        )
    return _value(kind, record.fields, path)


def _value(kind: type[T], record: dict[str, Any], path: str) -> T:
    try:
        return from_record(kind, record)
    except RecordMismatchError as error:
        raise CorruptMetadataError(path, str(error)) from error


decode_rollback_plan = partial(decode, RollbackPlan)
"""The plan of a rollback; see :func:`decode_commit`."""
decode_rollback = partial(decode, RollbackMetadata)
"""The metadata of a completed rollback; see :func:`decode_commit`."""
decode_cleaner_plan = partial(decode, CleanerPlan)
"""The plan of a clean; see :func:`decode_commit`."""
decode_clean = partial(decode, CleanMetadata)
"""The metadata of a completed clean; see :func:`decode_commit`."""
decode_compaction_plan = partial(decode, CompactionPlan)
"""The plan of a compaction or log compaction; see :func:`decode_commit`."""
decode_savepoint = partial(decode, SavepointMetadata)
"""The metadata of a savepoint; see :func:`decode_commit`."""
decode_restore_plan = partial(decode, RestorePlan)
"""The plan of a restore; see :func:`decode_commit`."""
decode_restore = partial(decode, RestoreMetadata)
"""The metadata of a completed restore; see :func:`decode_commit`."""
decode_index_plan = partial(decode, IndexPlan)
"""The plan of an indexing; see :func:`decode_commit`."""
decode_index_commit = partial(decode, IndexCommitMetadata)
"""The metadata of a completed indexing; see :func:`decode_commit`."""
