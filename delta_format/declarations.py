"""A log's protocol, columns and properties.

Tables have reader version 1 and writer version 2; timestamps without a zone need the table feature
``timestampNtz``, which comes with the first such column, and the property by which rows are deleted
by their positions the feature ``deletionVectors``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.table import ProtocolVersions

from delta_format.log import Head
from delta_format.log_actions import LogAction, now_ms
from delta_format.schema import Document
from delta_format.vectors import FEATURE, PROPERTY, is_split
from hudi_core.spi import MetaClientView, UnsupportedTableError

_WITH_FEATURES: Final = (3, 7)
"""Reader and writer version from which a protocol lists its features."""
_ZONELESS: Final = "timestampNtz"
_ZONELESS_TYPE: Final = "timestamp_ntz"
_FEATURES_OF_WRITERS: Final = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
)
"""Features of writer versions that list none."""
_HARMLESS: Final = frozenset(name for _, name in _FEATURES_OF_WRITERS) | {_ZONELESS}
"""Features under which files can be added and removed as they are."""
_MAPPING_MODE: Final = "delta.columnMapping.mode"
_APPEND_ONLY: Final = "delta.appendOnly"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a log says of its table as a whole."""

    schema: Document
    partition_by: Sequence[str]
    configuration: Mapping[str, str]


def declared(table: DeltaTable) -> Declaration:
    """What a version of a log says."""
    metadata = table.metadata()
    schema = json.loads(table.schema().to_json())
    return Declaration(schema, metadata.partition_columns, metadata.configuration)


def first_declaration(name: str, wanted: Declaration) -> list[LogAction]:
    """The actions that begin a log."""
    needed = _needed(wanted)
    protocol: LogAction = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    if needed:
        protocol = _protocol(needed, needed)
    identity = {"id": str(uuid.uuid4()), "name": name, "createdTime": now_ms()}
    return [protocol, _metadata(identity, wanted)]


def next_declaration(head: Head, wanted: Declaration) -> list[LogAction]:
    """The actions that change a declaration; empty where nothing changes."""
    with head.reading():
        known, metadata, protocol = (
            declared(head.table),
            head.table.metadata(),
            head.table.protocol(),
        )
    found: list[LogAction] = []
    needed = _needed(wanted)
    if not needed <= {*(protocol.writer_features or ())}:
        readers = {*(protocol.reader_features or ()), *needed}
        found.append(_protocol(readers, {*_features(protocol), *needed}))
    if known != wanted:
        identity = {
            "id": str(metadata.id),
            "name": metadata.name,
            "description": metadata.description,
            "createdTime": metadata.created_time,
        }
        found.append(_metadata(identity, wanted))
    return found


def says_rows(table: DeltaTable) -> bool:
    """Whether the rows of files, but for deleted ones, are the table's.

    Columns are found by names, those of the log or others that it says.
    """
    protocol, mode = table.protocol(), table.metadata().configuration.get(_MAPPING_MODE, "none")
    if mode not in ("none", "name"):
        return False
    if protocol.min_reader_version < _WITH_FEATURES[0]:
        return True
    return {*(protocol.reader_features or ("?",))} <= {_ZONELESS, FEATURE, "columnMapping"}


def is_plain(meta_client: MetaClientView, head: Head) -> bool:
    """Whether a log has no rules but those that are known here."""
    return not _unknown_features(meta_client, head)


def require_writable(meta_client: MetaClientView, head: Head) -> None:
    """Refuse a log with rules for writers that are not kept here."""
    unknown = _unknown_features(meta_client, head)
    if unknown:
        raise UnsupportedTableError(
            head.root,
            f"has a Delta log with {', '.join(sorted(unknown))}, which is not written here",
            "Have the engine that set it drop it. Where the log is that of a Hudi table, "
            f"`hudi table repair {head.places.base_path}` makes it from the timeline.",
        )
    require_removals_allowed(head)


def require_removals_allowed(head: Head) -> None:
    """Refuse a log from which no file may be removed.

    Upserts remove files, and so do inserts: a new file takes the place of a small one.
    """
    with head.reading():
        configuration = head.table.metadata().configuration
    if configuration.get(_APPEND_ONLY, "").lower() == "true":
        raise UnsupportedTableError(
            head.root,
            f"has a Delta log whose property {_APPEND_ONLY} keeps files from being replaced",
            "Unset the property by the engine that set it.",
        )


def _unknown_features(meta_client: MetaClientView, head: Head) -> set[str]:
    with head.reading():
        found = _features(head.table.protocol()) - _HARMLESS
    # of a table that was split once, or may have vectors and has none
    if FEATURE in found and (is_split(meta_client) or not head.vectors.by_file):
        found.discard(FEATURE)
    return found


def _features(protocol: ProtocolVersions) -> set[str]:
    """What a protocol asks of its writers."""
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if writer >= _WITH_FEATURES[1]:
        return {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    known = {name for version, name in _FEATURES_OF_WRITERS if version <= writer}
    if writer > _FEATURES_OF_WRITERS[-1][0] or reader > 1:
        known.add(f"the rules of reader version {reader} and writer version {writer}")
    return known


def _protocol(readers: set[str], writers: set[str]) -> LogAction:
    reader, writer = _WITH_FEATURES
    return {
        "protocol": {
            "minReaderVersion": reader,
            "minWriterVersion": writer,
            "readerFeatures": sorted(readers),
            "writerFeatures": sorted(writers),
        }
    }


def _metadata(identity: Mapping[str, Any], wanted: Declaration) -> LogAction:
    return {
        "metaData": {
            **identity,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(wanted.schema, ensure_ascii=False, separators=(",", ":")),
            "partitionColumns": list(wanted.partition_by),
            "configuration": dict(wanted.configuration),
        }
    }


def _needed(wanted: Declaration) -> set[str]:
    """Features that a table cannot do without."""
    found = {_ZONELESS} if _has_zoneless(wanted.schema) else set()
    if wanted.configuration.get(PROPERTY, "").lower() == "true":
        found.add(FEATURE)
    return found


def _has_zoneless(schema: Document) -> bool:
    return any(kind == _ZONELESS_TYPE for kind in _types(schema))


def _types(kind: Any) -> Iterator[str]:
    """Every type that a type is made of."""
    if isinstance(kind, str):
        yield kind
        return
    for field in kind.get("fields", ()):
        yield from _types(field["type"])
    for member in ("elementType", "keyType", "valueType"):
        if member in kind:
            yield from _types(kind[member])
