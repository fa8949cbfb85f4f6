"""How a table's typed view is spelled in ``hoodie.properties`` (``hudi-format`` section 2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.key_forms import FORM_KEYS, form_properties
from hudi_core.config.kinds import (
    MERGE_STRATEGY_IDS,
    PAYLOAD_STRATEGY_ID,
    IndexType,
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    Payload,
)
from hudi_core.config.merge_keys import MergeKeys, StoredMergeKeys
from hudi_core.config.merge_rules import FIRST_WITHOUT_PAYLOADS
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table_keys import NATIVE, TableKeys
from hudi_core.config.timebased import TimeKeys
from hudi_core.model.buckets import Buckets

if TYPE_CHECKING:
    from hudi_core.config.table import TableConfig

Property = tuple[str, str | None]


def own_properties(config: TableConfig) -> list[Property]:
    """Return what each property that this view covers has to be; ``None``: absent."""
    partition = ",".join(
        f"{name}:{kind}" if kind else name
        for name, kind in zip(
            config.partition_fields,
            config.partition_types or ("",) * len(config.partition_fields),
            strict=True,
        )
    )
    return [
        ("hoodie.table.name", config.name),
        ("hoodie.database.name", config.database),
        ("hoodie.table.type", config.table_type.value),
        ("hoodie.table.version", str(config.version)),
        ("hoodie.table.initial.version", str(config.initial_version)),
        ("hoodie.timeline.layout.version", str(config.layout_version)),
        _explicit(config, TableKeys.format.key, config.table_format, NATIVE),
        ("hoodie.table.recordkey.fields", ",".join(config.record_key_fields) or None),
        ("hoodie.table.partition.fields", partition or None),
        _keygen_property(config),
        *_time_properties(config),
        _encoding_property(config),
        *_form_properties(config),
        *_merge_properties(config),
        _explicit(config, TableKeys.hive_style.key, _flag(config.hive_style), "false"),
        _explicit(config, TableKeys.url_encode.key, _flag(config.url_encode), "false"),
        _explicit(
            config,
            TableKeys.drop_partition_columns.key,
            _flag(config.drop_partition_columns),
            "false",
        ),
        ("hoodie.populate.meta.fields", None if config.populate_meta_fields else "false"),
        _unless(config, "hoodie.table.base.file.format", config.base_file_format, "PARQUET"),
        ("hoodie.timeline.path", config.timeline_path),
        ("hoodie.timeline.history.path", config.history_path),
        ("hoodie.archivelog.folder", config.archive_folder),
        _unless(config, "hoodie.table.timeline.timezone", config.timezone, "LOCAL"),
        ("hoodie.table.create.schema", config.create_schema),
        *id_properties(config.field_ids, config.last_column_id),
        *bucket_properties(config.buckets),
    ]


def bucket_properties(buckets: Buckets | None) -> list[Property]:
    """Return what a table keeps of its buckets, so that no writer uses other ones.

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
    ids = json.dumps(dict(field_ids), separators=(",", ":")) if field_ids else None
    last = None if last_column_id is None else str(last_column_id)
    return [(ManagedKeys.last_column_id.key, last), (ManagedKeys.field_ids.key, ids)]


def _unless(config: TableConfig, key: str, value: str, usual: str) -> Property:
    """Return a property that is left out when it has its usual value, unless it was stored."""
    return key, None if value == usual and key not in config.raw else value


def _explicit(config: TableConfig, key: str, value: str, usual: str) -> Property:
    """Return a property that new tables state, and that stored ones may go on leaving out."""
    return (key, value) if not config.raw else _unless(config, key, value, usual)


def _keygen_property(config: TableConfig) -> Property:
    key = "hoodie.table.keygenerator.type"
    if config.keygen_type is KeyGeneratorType.USER_PROVIDED:
        return key, config.raw.get(key)
    # SIMPLE_AVRO and SIMPLE are one type; what was stored stays
    was = config.raw.get(key)
    same = was is not None and TableKeys.key_generator.parse(was) is config.keygen_type
    return key, was if same else config.keygen_type.value


def _time_properties(config: TableConfig) -> list[Property]:
    """Return how partitions are made of moments; what a table has stored stays as it is."""
    if config.time_based is None or TimeKeys.timestamp_type.is_given(config.raw):
        return []
    return list(config.time_based.properties)


def _encoding_property(config: TableConfig) -> Property:
    """Hudi assumes the encoding of version 9, and guesses that of version 8 unless told."""
    key = ManagedKeys.complex_encoding.key
    ambiguous = (
        config.keygen_type is KeyGeneratorType.COMPLEX
        and len(config.record_key_fields) == 1
        and config.version < 9
        and not config.raw
    )
    if not (ambiguous or key in config.raw):
        return key, None
    return key, "VALUE_ONLY" if config.complex_keygen_new_encoding else "FIELD_PREFIXED"


def _form_properties(config: TableConfig) -> list[Property]:
    """The spelling of keys of a new table."""
    found = form_properties(config)
    return [(name, config.raw.get(name) if config.raw else found.get(name)) for name in FORM_KEYS]


def _merge_properties(config: TableConfig) -> list[Property]:
    """Return how rows are merged, as Hudi spells it; what a table has stored stays as it is."""
    if config.raw:
        return []
    mode, payload = config.merge_mode, config.payload
    properties: list[Property] = [("hoodie.record.merge.mode", mode.value)]
    fields = ",".join(config.ordering_fields) or None
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
    if payload is None:
        is_event = mode is MergeMode.EVENT_TIME_ORDERING
        payload = Payload.DEFAULT if is_event else Payload.LATEST
    strategy = PAYLOAD_STRATEGY_ID if mode is MergeMode.CUSTOM else MERGE_STRATEGY_IDS[mode]
    # Hudi 1.0 has no other name for the ordering field
    return [
        *properties,
        ("hoodie.table.precombine.field", fields),
        ("hoodie.compaction.payload.class", payload),
        ("hoodie.record.merge.strategy.id", strategy),
    ]


def _flag(value: bool) -> str:
    return "true" if value else "false"
