"""Merges a file group into entries of a new base file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from hudi_core.avro import encode_datum, parse_writer_schema
from hudi_core.metadata.group_reader import GroupReader
from hudi_core.metadata.layers import BaseLayer, Entry
from hudi_core.metadata.merging import merge, present
from hudi_core.metadata.record_codec import RecordDecoder, RecordEncoder
from hudi_core.metadata.records import MetadataRecord
from hudi_core.schema.table_schema import FILE_NAME, META_COLUMNS

_META_FIELDS: Final = json.dumps(
    {
        "type": "record",
        "name": "MetaFields",
        "fields": [{"name": name, "type": ["null", "string"]} for name in META_COLUMNS],
    }
)


@dataclass(slots=True)
class MergedGroup:
    """A merged file group, and how it came about."""

    entries: list[Entry] = field(default_factory=list)
    log_blocks: int = 0
    log_records: int = 0
    inserted: int = 0
    updated: int = 0
    removed: int = 0


def merge_group(reader: GroupReader, encoder: RecordEncoder, file_name: str) -> MergedGroup:
    """Merge a file group.

    What no log block mentions is taken from the old base file as it is, but for the file's own name
    in it: of a large file few records are decoded.
    """
    layers, base = reader.logs, reader.base
    merged = MergedGroup(log_blocks=len(layers))
    changed: dict[bytes, list[MetadataRecord | None]] = {}
    for layer in layers:
        for text, record in layer.scan([""]):
            merged.log_records += 1
            changed.setdefault(text.encode(), []).append(record)
    waiting = sorted(changed, reverse=True)
    if base is not None:
        kept = _Kept(base, reader, encoder, file_name)
        for key, value in base.reader.entries():
            while waiting and waiting[-1] < key:
                _add(merged, encoder, None, changed[waiting.pop()])
            if waiting and waiting[-1] == key:
                _add(merged, encoder, kept.decode(key, value), changed[waiting.pop()])
            elif (entry := kept.entry(key, value)) is not None:
                merged.entries.append(entry)
    while waiting:
        _add(merged, encoder, None, changed[waiting.pop()])
    return merged


def _add(
    merged: MergedGroup,
    encoder: RecordEncoder,
    old: MetadataRecord | None,
    newer: list[MetadataRecord | None],
) -> None:
    """Add a key's merged entry, if anything is left.

    Of a key that occurs in the log.
    """
    record = old
    for one in newer:
        record = merge(record, one)
    seen = present(record)
    if seen is None:
        merged.removed += old is not None
        return
    merged.inserted += old is None
    merged.updated += old is not None
    merged.entries.append(encoder.encode(seen))


class _Kept:
    """Entries of the old base file, for the new one."""

    def __init__(
        self, base: BaseLayer, reader: GroupReader, encoder: RecordEncoder, file_name: str
    ) -> None:
        assert reader.slice.base_file is not None  # noqa: S101 - the layer is of this file
        self._encoder = encoder
        self._decoder = RecordDecoder(base.reader.schema, base.path)
        self._is_same = base.reader.schema == encoder.schema
        self._old = _meta_fields(reader.slice.base_file.status.name)
        self._new = _meta_fields(file_name)

    def decode(self, key: bytes, value: bytes) -> MetadataRecord | None:
        return self._decoder.decode(key, value)

    def entry(self, key: bytes, value: bytes) -> Entry | None:
        """Return the entry, unless it is of something that is gone."""
        if self._is_same and value.startswith(self._old):
            # of one schema, and of one writer, who leaves out what is gone
            return key, self._new + value[len(self._old) :]
        record = present(self.decode(key, value))
        return None if record is None else self._encoder.encode(record)


def _meta_fields(file_name: str) -> bytes:
    """Leading bytes of every base file value.

    Four nulls and the file's name.
    """
    schema = parse_writer_schema(_META_FIELDS, "MetaFields").parsed
    return encode_datum({**dict.fromkeys(META_COLUMNS), FILE_NAME: file_name}, schema)
