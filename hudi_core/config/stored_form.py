"""How a table is spelled in ``hoodie.properties`` (``hudi-format`` section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Final

from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.key_forms import form_properties
from hudi_core.config.kinds import (
    MERGE_STRATEGY_IDS,
    PAYLOAD_STRATEGY_ID,
    IndexType,
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    PayloadKind,
)
from hudi_core.config.merge_keys import FIRST_WITHOUT_PAYLOADS, MergeKeys, StoredMergeKeys
from hudi_core.config.properties import CHECKSUM_KEY, table_checksum
from hudi_core.config.stored import Stored
from hudi_core.config.stored_keys import ROWS, ManagedKeys
from hudi_core.config.support import WRITABLE_VERSIONS
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.timebased import TimeKeys
from hudi_core.model.buckets import Buckets

Property = tuple[str, str | None]


def properties_of(config: TableConfig) -> dict[str, str]:
    """The properties of a table in its version, checksum last.

    Properties that were read and mean nothing here are kept as they are. A table of version 6 is
    never written, so its properties are returned as read.
    """
    properties = dict(config.raw)
    if config.version not in WRITABLE_VERSIONS:
        return properties
    for key, value in _own_properties(config):
        if value is None:
            properties.pop(key, None)
        else:
            properties[key] = value
    properties.pop(CHECKSUM_KEY, None)
    properties[CHECKSUM_KEY] = str(table_checksum(config.database, config.name))
    return properties


def _own_properties(config: TableConfig) -> Iterator[Property]:
    """The string of each property, in field order; ``None`` for none."""
    for field in fields(config):
        if field.name in _OWN_FORMS:
            yield from _OWN_FORMS[field.name](config)
        elif field.name in ROWS:
            yield _row_property(config, ROWS[field.name], getattr(config, field.name))


def _row_property(config: TableConfig, row: Stored[Any], value: object) -> Property:
    """A property of one field; omitted if usual and not stored before."""
    name, text = row.property_name, row.to_text(value)
    if text != row.usual or name in config.raw or (row.is_stated and not config.raw):
        return name, text
    return name, None


def _partition_property(config: TableConfig) -> list[Property]:
    types = config.partition_types or ("",) * len(config.partition_fields)
    named = zip(config.partition_fields, types, strict=True)
    text = ",".join(f"{name}:{kind}" if kind else name for name, kind in named)
    return [("hoodie.table.partition.fields", text or None)]


def bucket_properties(buckets: Buckets | None) -> list[Property]:
    """Stored properties of a table's buckets, for all its writers.

    Hudi itself stores no option of an index (apache/hudi#13241), so that two jobs may use different
    buckets. Its Spark data source takes every stored property for an option that a job does not
    give, unless it overwrites the table (``HoodieSparkSqlWriter.mergeParamsAndGetHoodieConfig``):
    with these it finds the same buckets. Jobs of Hudi's other writers have to name them.
    """
    if buckets is None:
        return []
    return [
        (IndexConfig.index_type.key, IndexType.BUCKET.value),
        (IndexConfig.bucket_number.key, str(buckets.number)),
        (IndexConfig.bucket_fields.key, ",".join(buckets.fields)),
    ]


def id_properties(field_ids: Mapping[str, int], last_column_id: int | None) -> list[Property]:
    """Return the properties that keep a table's field ids."""
    rows = ((ManagedKeys.last_column_id, last_column_id), (ManagedKeys.field_ids, field_ids))
    return [(row.property_name, row.to_text(value)) for row, value in rows]


def _keygen_property(config: TableConfig) -> list[Property]:
    key = "hoodie.table.keygenerator.type"
    if config.keygen_type is KeyGeneratorType.USER_PROVIDED:
        named = config.named_keygen
        if named is not None and not config.raw:
            return [(key, config.keygen_type.value), *named.properties.items()]
        return [(key, config.raw.get(key))]
    # SIMPLE_AVRO and SIMPLE are one type; what was stored stays
    was = config.raw.get(key)
    same = was is not None and TableKeys.key_generator.parse(was) is config.keygen_type
    return [(key, was if same else config.keygen_type.value)]


def _time_properties(config: TableConfig) -> list[Property]:
    """Return the TIMESTAMP partition properties; stored ones stay as they are."""
    if config.time_based is None or TimeKeys.timestamp_type.is_given(config.raw):
        return []
    return list(config.time_based.properties)


def _encoding_property(config: TableConfig) -> list[Property]:
    """The key encoding property.

    Hudi assumes the encoding of version 9, and guesses that of version 8 where no property names
    it.
    """
    key = ManagedKeys.complex_encoding.key
    ambiguous = config.may_name_one_key and config.version < 9 and not config.raw
    if not (ambiguous or key in config.raw):
        return [(key, None)]
    text = "VALUE_ONLY" if config.complex_keygen_new_encoding else "FIELD_PREFIXED"
    return [(key, text)]


def _form_property(name: str, config: TableConfig) -> list[Property]:
    """How keys spell values; a stored property stays as it is."""
    return [(name, (config.raw or form_properties(config)).get(name))]


def _meta_property(config: TableConfig) -> list[Property]:
    """Whether files hold the meta columns, to other engines.

    Those that know no other virtual keys find none where only the key is missing: they make it of
    its columns, too, and leave the other meta columns alone.
    """
    row = TableKeys.populate_meta_fields
    return [_row_property(config, row, config.tells_meta_columns)]


def _merge_properties(config: TableConfig) -> list[Property]:
    """Return Hudi's merge properties; stored ones stay as they are."""
    if config.raw:
        return []
    mode, payload = config.merge_mode, config.payload
    properties: list[Property] = [("hoodie.record.merge.mode", mode.value)]
    fields = ",".join(config.ordering_fields) or None
    named = config.named_merger
    if named is not None:
        properties += [("hoodie.record.merge.strategy.id", named.name), *named.properties.items()]
    if config.delete_marker is not None:
        properties += [
            (MergeKeys.delete_field.aliases[0], config.delete_marker.field),
            (MergeKeys.delete_marker.aliases[0], config.delete_marker.value),
        ]
    if config.version >= FIRST_WITHOUT_PAYLOADS:
        partial = config.partial_update
        return [
            *properties,
            ("hoodie.table.ordering.fields", fields),
            (StoredMergeKeys.legacy_payload.key, payload),
            (
                MergeKeys.partial_update_mode.key,
                None if partial is PartialUpdateMode.NONE else partial,
            ),
            (MergeKeys.unavailable_value.aliases[0], config.unavailable_value),
        ]
    if named is not None:
        return [*properties, ("hoodie.table.precombine.field", fields)]
    if payload is None:
        is_event = mode is MergeMode.EVENT_TIME_ORDERING
        payload = PayloadKind.DEFAULT if is_event else PayloadKind.LATEST
    strategy = PAYLOAD_STRATEGY_ID if mode is MergeMode.CUSTOM else MERGE_STRATEGY_IDS[mode]
    # Hudi 1.0 has no other name for the ordering field
    return [
        *properties,
        ("hoodie.table.precombine.field", fields),
        ("hoodie.compaction.payload.class", payload),
        ("hoodie.record.merge.strategy.id", strategy),
    ]


_OWN_FORMS: Final[Mapping[str, Callable[[TableConfig], list[Property]]]] = {
    "partition_fields": _partition_property,
    "keygen_type": _keygen_property,
    "time_based": _time_properties,
    "complex_keygen_new_encoding": _encoding_property,
    "consistent_timestamps": partial(_form_property, TableKeys.consistent_timestamps.key),
    "local_zone": partial(_form_property, TableKeys.local_zone.key),
    "old_floats": partial(_form_property, TableKeys.old_floats.key),
    "populate_meta_fields": _meta_property,
    "merge_mode": _merge_properties,
    "buckets": lambda config: bucket_properties(config.buckets),
    "placement": lambda config: list(config.placement.properties.items()),
}
"""Fields that are not one property each, or not one string for each value."""
