"""Bodies of instant files: values of :mod:`hudi_core.model` to bytes and back.

Writing uses our own schemas. Reading uses the schema stored in the file: what the file lacks
takes the value's default, what we do not know is left out. Commit metadata of layout 1 is plain
JSON of the same names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeVar

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
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.timeline.serde.records import (
    MAX_INSTANT_BYTES,
    MAX_SCHEMA_BYTES,
    RecordMismatchError,
    from_record,
    read_container,
    read_long,
    schema_name,
    schema_of,
    to_record,
    write_container,
    write_long,
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
    schema = parse_writer_schema(text, kind.__name__).parsed
    datum = _in_blocks(value, schema) if _is_large(value) else encode_datum(value, schema)
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
    container = read_container(data, path)
    name, schema = parse_writer_schema(container.schema, path)
    # a record of another kind would come out as a value made of nothing but defaults
    accepted = {schema_name(kind)}
    if kind is CommitMetadata:
        accepted.add(schema_name(ReplaceCommitMetadata))
    if name not in accepted:
        raise CorruptMetadataError(path, f"it holds a {name} instead of a {schema_name(kind)}")
    parts = (
        _value(kind, decode_datum(datum, schema, path), path)
        for datum in _datums_of_blocks(container.datum, schema)
    )
    first = next(parts)
    if isinstance(first, CommitMetadata):
        stats = {**first.partition_to_write_stats}
        for part in parts:
            assert isinstance(part, CommitMetadata)  # noqa: S101 - all are of one kind
            stats |= part.partition_to_write_stats
        return replace(first, partition_to_write_stats=stats)
    return first


# --- commits of very many files ------------------------------------------------------------------
# A record that is encoded or decoded has a dictionary of 2 kB for each file. So of large commits
# the map of files is written in several blocks, each of which says its bytes, as Avro allows, and
# is encoded and decoded by itself: as a record that has no other files. The map is the first field.


_FILES_OF_A_BLOCK: Final = 5_000
_FIRST_FIELD: Final = "partitionToWriteStats"
_IS_THERE: Final = b"\x02"
"""The second branch of a union."""
_MOST_OF_REST: Final = 4


def _is_large(value: object) -> bool:
    return isinstance(value, CommitMetadata) and (
        sum(map(len, value.partition_to_write_stats.values())) > _FILES_OF_A_BLOCK
    )


def _in_blocks(value: Any, schema: ParsedSchema) -> bytes:
    """The datum of a large commit."""
    # the branch of the union, the end of the map, all other fields
    empty = encode_datum(replace(value, partition_to_write_stats={}), schema)
    others = len(encode_datum(type(value)(), schema)) - 1
    parts = [empty[:1]]
    waiting: dict[str, tuple[WriteStat, ...]] = {}

    def flush() -> None:
        own = encode_datum(type(value)(partition_to_write_stats=waiting), schema)
        count, begin = read_long(own, 1)
        entries = own[begin : len(own) - others]
        parts.extend((write_long(-count), write_long(len(entries)), entries))
        waiting.clear()

    files = 0
    for partition, stats in value.partition_to_write_stats.items():
        waiting[partition] = stats
        files += len(stats)
        if files >= _FILES_OF_A_BLOCK:
            flush()
            files = 0
    if waiting:
        flush()
    return b"".join((*parts, empty[1:]))


def _datums_of_blocks(datum: bytes, schema: ParsedSchema) -> Iterator[bytes]:
    """Yield a datum for each block of files, or the whole."""
    blocks: list[tuple[int, int, int]] = []
    place, end = 1, None
    try:
        while datum[:1] == _IS_THERE and _begins_with_files(schema):
            count, begin = read_long(datum, place)
            if count >= 0:
                end = place if count == 0 else None
                break
            size, begin = read_long(datum, begin)
            if size < 0:
                break
            blocks.append((-count, begin, begin + size))
            place = begin + size
    except IndexError:
        end = None
    rest = datum[end:] if end is not None else b""
    # what follows is decoded with each of them
    if len(blocks) <= 1 or not rest or len(blocks) * len(rest) > _MOST_OF_REST * len(datum):
        yield datum
        return
    for count, begin, stop in blocks:
        yield b"".join((_IS_THERE, write_long(count), datum[begin:stop], rest))


def _begins_with_files(schema: ParsedSchema) -> bool:
    """Whether a record begins with the map of files."""
    first = schema["fields"][0] if isinstance(schema, dict) else {}
    kind = first.get("type")
    return first.get("name") == _FIRST_FIELD and isinstance(kind, list) and kind[0] == "null"


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
