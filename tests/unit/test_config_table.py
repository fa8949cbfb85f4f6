"""The typed view of a table's properties, for versions 8 and 9."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from hudi_core.config.properties import table_checksum
from hudi_core.config.stored_keys import ROWS
from hudi_core.config.stored_table import properties_of, stored_config
from hudi_core.config.support import require_readable_table, require_writable_table
from hudi_core.config.table import KeyGeneratorType, MergeMode, TableConfig, TableType
from hudi_core.errors import CorruptMetadataError, UnsupportedTableError

EVENT_TIME = TableConfig(
    name="trips",
    database="lake",
    record_key_fields=("id",),
    partition_fields=("city",),
    ordering_fields=("ts",),
    merge_mode=MergeMode.EVENT_TIME_ORDERING,
    create_schema='{"type":"record"}',
    last_column_id=7,
    field_ids={"id": 6, "a.b": 7},
)
VERSION_8 = {
    "hoodie.table.name": "trips",
    "hoodie.database.name": "lake",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "8",
    "hoodie.table.initial.version": "8",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.format": "native",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.precombine.field": "ts",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.table.create.schema": '{"type":"record"}',
    "hoodie.table.schema.last-column-id": "7",
    "hoodie.table.schema.field-ids": '{"id":6,"a.b":7}',
    "hoodie.table.checksum": str(table_checksum("lake", "trips")),
}
"""In the order in which a new table states them."""
NOT_IN_9 = ("precombine.field", "payload.class", "strategy.id")
VERSION_9 = {
    **{key: text for key, text in VERSION_8.items() if not key.endswith(NOT_IN_9)},
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.table.ordering.fields": "ts",
}
KEYGEN = "hoodie.table.keygenerator."
FIELD_IDS = "hoodie.table.schema.field-ids"


def test_a_new_table_states_its_properties_in_this_order() -> None:
    assert list(properties_of(EVENT_TIME).items()) == list(VERSION_8.items())
    assert properties_of(replace(EVENT_TIME, version=9, initial_version=9)) == VERSION_9


def test_the_checksum_is_last() -> None:
    loaded = stored_config(dict(reversed(VERSION_8.items())))
    assert list(properties_of(loaded))[-1] == "hoodie.table.checksum"


@pytest.mark.parametrize("properties", [VERSION_8, VERSION_9], ids=["8", "9"])
def test_round_trip(properties: dict[str, str]) -> None:
    config = stored_config(properties)
    version = int(properties["hoodie.table.version"])
    assert config == replace(EVENT_TIME, version=version, initial_version=version)
    assert properties_of(config) == properties
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(replace(config))


def test_commit_time_without_partitions_and_database() -> None:
    without = KeyGeneratorType.NON_PARTITION
    config = TableConfig(name="t", record_key_fields=("a", "b"), keygen_type=without)
    properties = properties_of(config)
    assert properties["hoodie.record.merge.mode"] == "COMMIT_TIME_ORDERING"
    assert properties["hoodie.record.merge.strategy.id"] == "ce9acb64-bde0-424c-9b91-f6ebba25356d"
    assert properties["hoodie.compaction.payload.class"].endswith("OverwriteWithLatestAvroPayload")
    assert properties["hoodie.table.recordkey.fields"] == "a,b"
    assert not {
        "hoodie.table.partition.fields",
        "hoodie.table.precombine.field",
        "hoodie.database.name",
        "hoodie.populate.meta.fields",
        "hoodie.table.complex.keygen.encoding",
    } & set(properties)
    assert stored_config(properties) == config
    assert not config.is_partitioned


@pytest.mark.parametrize(
    ("version", "new", "stored"),
    [(8, True, "VALUE_ONLY"), (8, False, "FIELD_PREFIXED"), (9, False, None)],
)
def test_the_encoding_of_version_8_is_stored(version: int, new: bool, stored: str | None) -> None:
    config = replace(EVENT_TIME, version=version, initial_version=version)
    complex_ = {"keygen_type": KeyGeneratorType.COMPLEX, "partition_fields": ("a", "b")}
    config = replace(config, complex_keygen_new_encoding=new, **complex_)  # type: ignore[arg-type]
    properties = properties_of(config)
    assert properties.get("hoodie.table.complex.keygen.encoding") == stored
    again = stored_config(properties)
    assert again == config
    assert properties_of(again) == properties


def test_every_row_of_stored_properties_is_a_field_with_its_default() -> None:
    config = TableConfig(name="t", record_key_fields=())
    for name, row in ROWS.items():
        if not row.is_required and row.default is not None:
            assert getattr(config, name) == row.default, name
    assert set(ROWS) <= {each.name for each in fields(config)}
    names = [row.property_name for row in ROWS.values()]
    assert all(row.property_name in row.names for row in ROWS.values())
    assert len(set(names)) == len(names)


def test_properties_of_others_are_kept() -> None:
    foreign = VERSION_8 | {"hoodie.table.index.defs.path": "x", "own.note": "é"}
    changed = replace(stored_config(foreign), last_column_id=9)
    assert properties_of(changed) == foreign | {"hoodie.table.schema.last-column-id": "9"}


def test_raw_and_schema_stay_out_of_repr() -> None:
    config = stored_config(VERSION_8 | {"some.password": "canary"})
    assert "canary" not in repr(config)
    assert "record" not in repr(config).replace("record_key_fields", "")


def changed(changes: Mapping[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in {**VERSION_8, **changes}.items() if text is not None}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("hoodie.table.name", None, "hoodie.table.name is missing"),
        ("hoodie.table.type", None, "hoodie.table.type is missing"),
        ("hoodie.table.version", None, "hoodie.table.version is missing"),
        ("hoodie.table.version", "eight", "whole number"),
        ("hoodie.table.type", "COPY", "not supported"),
        ("hoodie.table.checksum", "1", "checksum is 1"),
        ("hoodie.timeline.path", "../../elsewhere", "plain folder"),
        ("hoodie.timeline.history.path", "/etc", "plain folder"),
        ("hoodie.archivelog.folder", "a/../b", "plain folder"),
        (FIELD_IDS, "{", "not JSON"),
        (FIELD_IDS, "[" * 100_000, "not JSON"),
        (FIELD_IDS, "[1]", "not a JSON object"),
        (FIELD_IDS, '{"a":0}', "positive"),
        (FIELD_IDS, '{"a":true}', "positive"),
        (FIELD_IDS, '{"a":1,"b":1}', "same id"),
        ("hoodie.table.schema.last-column-id", "-1", "less than 0"),
        ("hoodie.record.merge.mode", "NEWEST", "no such merge mode"),
        ("hoodie.table.format", "os:system", "letter"),
        ("hoodie.datasource.write.hive_style_partitioning", "maybe", "neither"),
    ],
)
def test_damage_is_named(key: str, value: str | None, reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        stored_config(changed({key: value}), "/t/.hoodie/hoodie.properties")
    assert caught.value.path == "/t/.hoodie/hoodie.properties"


@pytest.mark.parametrize(
    ("key", "value", "feature"),
    [
        ("hoodie.table.version", "10", "table version 10"),
        ("hoodie.table.version", "7", "table version 7"),
        ("hoodie.timeline.layout.version", "1", "timeline layout 1"),
    ],
)
def test_what_cannot_even_be_read_is_named(key: str, value: str, feature: str) -> None:
    with pytest.raises(UnsupportedTableError, match=feature) as caught:
        stored_config(changed({key: value}), "/t/.hoodie/hoodie.properties")
    assert caught.value.base_path == "/t"


GENERATED = {"hoodie.populate.meta.fields": "false", "hoodie.table.recordkey.fields": None}


@pytest.mark.parametrize(
    ("changes", "feature", "readable"),
    [
        ({"hoodie.bootstrap.base.path": "s3://x"}, "hoodie.bootstrap.base.path", False),
        ({"hoodie.table.base.file.format": "orc"}, "ORC", False),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "drop.partition", False),
        (GENERATED, "generated when rows are written", True),
        ({f"{KEYGEN}type": "TIMESTAMP"}, "TIMESTAMP", True),
        ({f"{KEYGEN}type": "SPARK_SQL_UUID"}, "SPARK_SQL_UUID", True),
        ({f"{KEYGEN}class": "os.system"}, r"os\.system", True),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "CUSTOM", True),
        ({"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, "partial", True),
    ],
)
def test_what_cannot_be_written_is_named(
    changes: dict[str, str | None], feature: str, readable: bool
) -> None:
    config = stored_config(changed(changes))
    with pytest.raises(UnsupportedTableError, match=feature) as caught:
        require_writable_table(config, "/t")
    assert caught.value.base_path == "/t"
    if readable:
        require_readable_table(config, "/t")
    else:
        with pytest.raises(UnsupportedTableError, match=feature):
            require_readable_table(config, "/t")


def test_a_plain_table_can_be_written() -> None:
    for properties in (VERSION_8, VERSION_9, changed({"hoodie.table.cdc.enabled": "TRUE"})):
        require_writable_table(stored_config(properties), "/t")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"type": "SIMPLE_AVRO"}, KeyGeneratorType.SIMPLE),
        ({"class": "org.apache.hudi.keygen.SimpleKeyGenerator"}, KeyGeneratorType.SIMPLE),
        ({}, KeyGeneratorType.SIMPLE),
        ({"recordkey": "a,b"}, KeyGeneratorType.COMPLEX),
        ({"partition": None}, KeyGeneratorType.NON_PARTITION),
    ],
)
def test_words_for_key_generators(changes: dict[str, str | None], kind: KeyGeneratorType) -> None:
    names = {of: f"hoodie.table.{of}.fields" for of in ("recordkey", "partition")}
    given = {names.get(name, f"{KEYGEN}{name}"): text for name, text in changes.items()}
    stored = changed({f"{KEYGEN}type": None, **given})
    config = stored_config(stored)
    assert config.keygen_type is kind
    if "type" in changes:
        assert properties_of(config) == stored


def test_types_of_custom_partition_fields() -> None:
    fields = {"hoodie.table.partition.fields": "city:SIMPLE,day:TIMESTAMP"}
    properties = changed({f"{KEYGEN}type": "CUSTOM", **fields})
    config = stored_config(properties)
    assert config.partition_fields == ("city", "day")
    assert config.partition_types == ("SIMPLE", "TIMESTAMP")
    assert properties_of(config) == properties


def test_upper_case_format_names_are_one_format() -> None:
    config = stored_config(changed({"hoodie.table.format": "ICEBERG"}))
    assert (config.table_format, config.table_type) == ("iceberg", TableType.COPY_ON_WRITE)


def test_merge_mode_of_older_tables() -> None:
    old = {"hoodie.record.merge.mode": None, "hoodie.record.merge.strategy.id": None}
    none = {"hoodie.compaction.payload.class": None}
    for more, mode in (
        ({}, MergeMode.EVENT_TIME_ORDERING),
        (none, MergeMode.EVENT_TIME_ORDERING),
        ({**none, "hoodie.table.precombine.field": None}, MergeMode.COMMIT_TIME_ORDERING),
        ({"hoodie.compaction.payload.class": "com.example.Mine"}, MergeMode.CUSTOM),
    ):
        assert stored_config(changed({**old, **more})).merge_mode is mode


def test_a_table_that_names_no_zone_is_local() -> None:
    config = stored_config(changed({"hoodie.table.timeline.timezone": None}))
    assert config.timezone == "LOCAL"
    assert "hoodie.table.timeline.timezone" not in properties_of(config)
