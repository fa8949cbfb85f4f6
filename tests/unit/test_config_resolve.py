"""A user's options against new and stored tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.config.options import Secret
from hudi_core.config.resolve import options_as_strings, resolve_table_config
from hudi_core.config.stored_table import properties_of, stored_config
from hudi_core.config.table import KeyGeneratorType, MergeMode, TableConfig
from hudi_core.errors import InvalidOptionError, OptionConflictError, UnknownExtensionError

KEYGEN = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
PARTITION = "hoodie.datasource.write.partitionpath.field"
ORDERING = "hoodie.datasource.write.precombine.field"
MODE = "hoodie.write.record.merge.mode"
PAYLOAD = "hoodie.datasource.write.payload.class"
STRATEGY = "hoodie.write.record.merge.strategy.id"
MERGERS = "hoodie.write.record.merge.custom.implementation.classes"
PARTIAL = "hoodie.table.partial.update.mode"
VERSION = "hoodie.write.table.version"
ENCODING = "hoodie.write.complex.keygen.new.encoding"
POSTGRES = "debezium.PostgresDebeziumAvroPayload"
MODEL = "org.apache.hudi.common.model."
LATEST = MODEL + "OverwriteWithLatestAvroPayload"
EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
KEY = "hoodie.datasource.write.recordkey.field"
VIRTUAL = "hoodie.recordkey.virtual."
JAVA = "org.apache.hudi.keygen."
MINIMAL = {"hoodie.table.name": "t", KEY: "id"}
QUICKSTART = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.operation": "upsert",
    KEY: "uuid",
    PARTITION: "city",
    ORDERING: "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    KEYGEN: f"{JAVA}SimpleKeyGenerator",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.index.type": "SIMPLE",
    "hoodie.metadata.enable": "false",
}


def _given(**changes: str | None) -> dict[str, str]:
    return {key: value for key, value in {**MINIMAL, **changes}.items() if value is not None}


def _new(**changes: str | None) -> TableConfig:
    return resolve_table_config(_given(**changes), None)


def _stored(**changes: str | None) -> TableConfig:
    config = _new(**{PARTITION: "city", ORDERING: "ts", **changes})
    return stored_config(properties_of(config))


def test_the_options_of_a_hudi_job_describe_a_table() -> None:
    config = resolve_table_config(QUICKSTART, None)
    assert config == TableConfig(
        name="trips",
        record_key_fields=("uuid",),
        partition_fields=("city",),
        keygen_type=KeyGeneratorType.SIMPLE,
        ordering_fields=("ts",),
        merge_mode=MergeMode.EVENT_TIME_ORDERING,
        hive_style=True,
    )
    stored = stored_config(properties_of(config))
    assert resolve_table_config(QUICKSTART, stored) == stored
    assert resolve_table_config({}, stored) is stored


def test_least_options() -> None:
    config = _new()
    assert config.keygen_type is KeyGeneratorType.NON_PARTITION
    assert config.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert (config.version, config.timezone, config.table_format) == (8, "UTC", "native")
    assert config.raw == {}


@pytest.mark.parametrize(
    ("given", "stored"), [("ICEBERG", "iceberg"), ("my_format-2", "my_format-2")]
)
@pytest.mark.parametrize("key", ["hoodie.table.format", "hudi.table.format.plugin"])
def test_format_names_are_stored_in_lower_case(key: str, given: str, stored: str) -> None:
    config = _new(**{key: given})
    assert config.table_format == stored
    assert properties_of(config)["hoodie.table.format"] == stored


@pytest.mark.parametrize(
    "name", ["", "9a", "os:system", "a.b", "a" * 33, "../x", "na tive", "\u212aelvin", "nätive"]
)
def test_other_format_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"hoodie\.table\.format"):
        _new(**{"hoodie.table.format": name})


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({PARTITION: "a"}, KeyGeneratorType.SIMPLE),
        ({PARTITION: "a,b"}, KeyGeneratorType.COMPLEX),
        ({PARTITION: ""}, KeyGeneratorType.NON_PARTITION),
        ({KEY: "a, b"}, KeyGeneratorType.NON_PARTITION),
        ({KEY: "a,b", PARTITION: "c"}, KeyGeneratorType.COMPLEX),
        ({KEYGEN: f"{JAVA}ComplexKeyGenerator", PARTITION: "c"}, KeyGeneratorType.COMPLEX),
        ({TYPE: "complex_avro", PARTITION: "c"}, KeyGeneratorType.COMPLEX),
        (
            {KEYGEN: f"{JAVA}NonpartitionedKeyGenerator", TYPE: "NON_PARTITION"},
            KeyGeneratorType.NON_PARTITION,
        ),
    ],
)
def test_key_generators(changes: dict[str, str], kind: KeyGeneratorType) -> None:
    assert _new(**changes).keygen_type is kind


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({ORDERING: "ts"}, EVENT),
        ({ORDERING: "ts", MODE: "COMMIT_TIME_ORDERING"}, COMMIT),
        ({"hoodie.table.ordering.fields": "ts"}, EVENT),
        ({ORDERING: "ts", PAYLOAD: MODEL + "DefaultHoodieRecordPayload"}, EVENT),
        ({ORDERING: "ts", PAYLOAD: LATEST}, COMMIT),
        ({STRATEGY: "ce9acb64-bde0-424c-9b91-f6ebba25356d"}, COMMIT),
    ],
)
def test_merge_modes(changes: dict[str, str], mode: MergeMode) -> None:
    assert _new(**changes).merge_mode is mode


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hoodie.table.name": None}, r"hoodie\.table\.name=None"),
        ({"hoodie.table.name": "a\nb"}, "control character"),
        ({KEY: "a,a"}, "a twice"),
        ({ORDERING: "a,b,a"}, "names a twice"),
        ({"hoodie.datasource.write.table.type": "MERGED"}, "COPY_ON_WRITE"),
        ({VERSION: "6"}, "Supported: 8, 9"),
        ({VERSION: "10"}, "Supported: 8, 9"),
        ({f"{VIRTUAL}enabled": "true", f"{VIRTUAL}concatenator": ","}, "the key generator's own"),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "Supported: false"),
        ({"hoodie.table.base.file.format": "ORC"}, "Supported: PARQUET"),
        ({"hoodie.table.timeline.timezone": "local"}, "Supported: UTC"),
        ({TYPE: "TIMESTAMP", PARTITION: "a"}, "timestamp.type=None .*missing"),
        ({TYPE: "TIMESTAMP"}, "0 partition fields"),
        ({KEYGEN: f"{JAVA}CustomKeyGenerator"}, "0 partition fields"),
        ({TYPE: "CUSTOM", PARTITION: "a"}, "needs a type for each field"),
        ({PARTITION: "a:SIMPLE,b"}, "needs a type for each field"),
        ({PARTITION: "a:SIMPLE,b:DAILY"}, "needs a type for each field"),
        ({PARTITION: "a:TIMESTAMP"}, "timestamp.type=None .*missing"),
        ({KEYGEN: "os.system"}, "os.system.*Supported: SIMPLE"),
        ({TYPE: "SIMPLE", PARTITION: "a,b"}, "COMPLEX fits"),
        ({TYPE: "NON_PARTITION", PARTITION: "a"}, "SIMPLE fits"),
        ({TYPE: "COMPLEX", PARTITION: "a", KEYGEN: f"{JAVA}SimpleKeyGenerator"}, "type SIMPLE"),
        ({MODE: "CUSTOM"}, "not merged by code of others.*name a payload class"),
        ({STRATEGY: "1897ef5f-18bc-4557-939c-9d6a8afd1519"}, "strategy.id='1897ef5f.*by code of"),
        ({MERGERS: "com.example.Merger"}, r"by code of others \(com\.example\.Merger\)"),
        ({MODE: "EVENT_TIME_ORDERING"}, "needs an ordering field"),
        ({MODE: "NEWEST"}, "no such merge mode"),
        ({PAYLOAD: "com.example.Mine"}, r"class='com\.example\.Mine'.*Built in are: Default"),
        ({PAYLOAD: MODEL + "AWSDmsAvroPayload", MODE: "EVENT_TIME_ORDERING"}, "CUSTOM, but"),
        ({PAYLOAD: MODEL + POSTGRES, ORDERING: "ts", VERSION: "9"}, "orders by _event_lsn"),
        ({"hoodie.payload.delete.field": "Op"}, "needs hoodie.payload.delete.marker"),
        ({"hoodie.payload.delete.marker": "D"}, "needs hoodie.payload.delete.field"),
        ({"hoodie.payload.ordering.field": "ts"}, "orders by no field"),
        ({PARTIAL: "IGNORE_DEFAULTS"}, "version 8 cannot keep it"),
        ({PARTIAL: "FILL_UNAVAILABLE", VERSION: "9"}, "needs hoodie.write.partial.update.unav"),
        ({PARTIAL: "IGNORE_DEFAULTS", VERSION: "9", PAYLOAD: MODEL + POSTGRES}, "means FILL_UNAV"),
        ({ORDERING: "ts", MODE: "EVENT_TIME_ORDERING", PAYLOAD: LATEST}, "means COMMIT_TIME_ORDER"),
        ({ENCODING: "true", "hoodie.table.version": "9"}, "version 9"),
        ({"hoodie.table.checksum": "1"}, "keeps it itself"),
        ({"hoodie.timeline.path": "elsewhere"}, "keeps it itself"),
        ({"hoodie.table.metadata.partitions": "files"}, "keeps it itself"),
        ({"hoodie.table.schema.field-ids": "{}"}, "keeps it itself"),
    ],
)
def test_what_makes_no_table_is_refused(changes: dict[str, str | None], reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        _new(**changes)


def test_an_unknown_generator_of_virtual_keys_is_refused() -> None:
    with pytest.raises(UnknownExtensionError, match=r"virtual\.class='NOPE'.*simple"):
        _new(**{f"{VIRTUAL}class": "NOPE"})


@pytest.mark.parametrize("option", [TYPE, KEYGEN, f"{VIRTUAL}class"])
@pytest.mark.parametrize(("keys", "partition"), [("id", None), ("id", "c"), ("id,x", "c")])
@pytest.mark.parametrize("avro", ["", "Avro"])
def test_classes_in_every_option(option: str, keys: str, partition: str | None, avro: str) -> None:
    names = {KEYGEN: None, KEY: keys, PARTITION: partition}
    kind = "Complex" if "," in keys else "Simple"
    options = {**names, option: f"{JAVA}{kind}{avro}KeyGenerator"}
    config = _new(**options)
    assert config == _new(**names)
    assert resolve_table_config(_given(**options), config) == config


@pytest.mark.parametrize("option", [TYPE, KEYGEN, f"{VIRTUAL}class"])
def test_a_class_of_another_table_contradicts_it(option: str) -> None:
    other = {KEYGEN: None, option: f"{JAVA}ComplexKeyGenerator"}
    with pytest.raises(OptionConflictError, match="created with 'SIMPLE'"):
        resolve_table_config(_given(**{PARTITION: "city", **other}), _stored())


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("hoodie.table.name", "u", "t"),
        ("hoodie.database.name", "d", None),
        ("hoodie.table.type", "MERGE_ON_READ", "COPY_ON_WRITE"),
        ("hoodie.write.table.version", "9", 8),
        ("hoodie.table.format", "Iceberg", "native"),
        (KEY, "id,x", "id"),
        ("hoodie.table.recordkey.fields", "x", "id"),
        (PARTITION, "", "city"),
        (ORDERING, "id", "ts"),
        ("hoodie.table.ordering.fields", "a,b", "ts"),
        (MODE, "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"),
        (PAYLOAD, LATEST, "EVENT_TIME_ORDERING"),
        (TYPE, "COMPLEX", "SIMPLE"),
        (KEYGEN, f"{JAVA}NonpartitionedKeyGenerator", "SIMPLE"),
        ("hoodie.datasource.write.hive_style_partitioning", "true", "false"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true", "false"),
        ("hoodie.datasource.write.drop.partition.columns", "true", "false"),
        ("hoodie.populate.meta.fields", "false", "true"),
        ("hoodie.recordkey.virtual.enabled", "true", "false"),
        ("hoodie.recordkey.virtual.columns", "city", "id"),
        ("hoodie.recordkey.virtual.concatenator", "_", None),
        ("hoodie.recordkey.virtual.class", "COMPLEX", "SIMPLE"),
        ("hoodie.recordkey.virtual.transition.enabled", "true", "false"),
        ("hoodie.table.timeline.timezone", "LOCAL", "UTC"),
        ("hoodie.timeline.path", "elsewhere", "timeline"),
        ("hoodie.table.checksum", "1", "3154104049"),
        ("hoodie.table.metadata.partitions", "files", None),
        ("hoodie.bootstrap.base.path", "s3://x", None),
        ("hoodie.table.create.schema", "{}", None),
    ],
)
def test_contradictions_name_both_values(key: str, value: str, stored: object) -> None:
    config = _stored()
    if key == "hoodie.table.checksum":
        stored = config.raw[key]
    with pytest.raises(OptionConflictError) as caught:
        resolve_table_config({key: value}, config)
    assert (caught.value.key, caught.value.given, caught.value.stored) == (key, value, stored)


@pytest.mark.parametrize(
    "given", [{PAYLOAD: "com.example.Mine"}, {STRATEGY: "1897ef5f-18bc-4557-939c-9d6a8afd1519"}]
)
def test_code_of_others_is_no_other_value_of_the_table(given: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="no Java class is loaded") as caught:
        resolve_table_config(given, _stored())
    assert not isinstance(caught.value, OptionConflictError)
    assert "MERGE INTO" in str(caught.value)


def test_a_property_may_be_repeated_under_its_own_name_and_not_changed() -> None:
    assert _new(**{"hoodie.timeline.path": "timeline", "hoodie.timeline.layout.version": "2"})
    config = _stored()
    assert resolve_table_config(config.raw, config) == config
    foreign = stored_config({**config.raw, "hoodie.table.own": "1"})
    assert resolve_table_config({"hoodie.table.own": "1"}, foreign) == foreign
    with pytest.raises(OptionConflictError, match=r"hoodie\.table\.own='2'"):
        resolve_table_config({"hoodie.table.own": "2"}, foreign)


def test_the_key_encoding_of_a_table_of_version_8() -> None:
    key = ENCODING
    table = _stored(**{PARTITION: "a,b", key: "true"})
    assert table.complex_keygen_new_encoding
    assert resolve_table_config({key: "true"}, table) == table
    with pytest.raises(OptionConflictError):
        resolve_table_config({key: "false"}, table)
    # Hudi leaves tables of version 8 without the property: the option decides, as in Hudi
    raw = {k: v for k, v in table.raw.items() if k != "hoodie.table.complex.keygen.encoding"}
    unrecorded = stored_config(raw)
    assert not unrecorded.complex_keygen_new_encoding
    assert resolve_table_config({key: "true"}, unrecorded).complex_keygen_new_encoding
    nine = replace(table, version=9, complex_keygen_new_encoding=False)
    with pytest.raises(OptionConflictError):
        resolve_table_config({key: "true"}, nine)


def test_python_values_become_text() -> None:
    assert options_as_strings(
        {"a": True, "b": 3, "c": 0.5, "d": ["x", "y"], "e": None, "f": "z", "g": Secret("s")}
    ) == {"a": "true", "b": "3", "c": "0.5", "d": "x,y", "f": "z", "g": "s"}
    with pytest.raises(InvalidOptionError, match="'dict'"):
        options_as_strings({"a": {"secret": "canary"}})
