"""The properties of a table in another version: what Hudi's own upgrades make of them."""

from __future__ import annotations

from typing import Final

import pytest

from hudi_core.config.stored_table import stored_config
from hudi_core.config.versions import properties_in
from hudi_core.errors import UnsupportedTableError

MODEL: Final = "org.apache.hudi.common.model."
EVENT: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
MODE: Final = "hoodie.record.merge.mode"
STRATEGY: Final = "hoodie.record.merge.strategy.id"
OLD_STRATEGY: Final = "hoodie.compaction.record.merger.strategy"
PAYLOAD: Final = "hoodie.compaction.payload.class"
LEGACY: Final = "hoodie.table.legacy.payload.class"
ORDERING: Final = "hoodie.table.ordering.fields"
PRECOMBINE: Final = "hoodie.table.precombine.field"
PARTIAL: Final = "hoodie.table.partial.update.mode"
MARKER: Final = "hoodie.record.merge.property.hoodie.payload.delete."
MERGING: Final = (
    *(MODE, STRATEGY, OLD_STRATEGY, PAYLOAD, LEGACY, ORDERING, PRECOMBINE, PARTIAL),
    *(MARKER + "field", MARKER + "marker"),
)
OLD: Final = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    PRECOMBINE: "ts",
    "hoodie.table.checksum": "498511606",
    "hoodie.some.other": "kept",
}


def merging(properties: dict[str, str]) -> dict[str, str]:
    """Return how rows are merged; every version has to be readable."""
    assert stored_config(properties).version == int(properties["hoodie.table.version"])
    return {key: properties[key] for key in MERGING if key in properties}


def old(payload: str | None = None) -> dict[str, str]:
    return OLD if payload is None else {**OLD, PAYLOAD: MODEL + payload}


def test_layout_key_generator_and_versions_of_a_table_of_version_6() -> None:
    made = properties_in(OLD, 8, "t")
    changed = {key: text for key, text in made.items() if OLD.get(key) != text}
    assert {key: text for key, text in changed.items() if key not in MERGING} == {
        "hoodie.table.version": "8",
        "hoodie.table.initial.version": "6",
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.table.keygenerator.type": "SIMPLE",
    }
    assert OLD.keys() - made.keys() == {"hoodie.table.checksum"}


@pytest.mark.parametrize(
    ("key", "text", "class_name", "word"),
    [
        ("class", "org.apache.hudi.keygen.ComplexAvroKeyGenerator", None, "COMPLEX_AVRO"),
        ("type", "NON_PARTITION", "org.apache.hudi.keygen.NonpartitionedKeyGenerator", None),
        ("type", "CUSTOM_AVRO", "org.apache.hudi.keygen.CustomAvroKeyGenerator", None),
        ("class", "com.acme.OurKeyGenerator", None, None),
    ],
)
def test_names_of_key_generators(
    key: str, text: str, class_name: str | None, word: str | None
) -> None:
    name = "hoodie.table.keygenerator."
    before = {one: value for one, value in OLD.items() if not one.startswith(name)}
    made = properties_in({**before, name + key: text}, 8, "t")
    other = name + ("type" if key == "class" else "class")
    assert (made[name + key], made.get(other)) == (text, class_name or word)


BY_EVENT: Final = {MODE: "EVENT_TIME_ORDERING", STRATEGY: EVENT, OLD_STRATEGY: EVENT}
BY_COMMIT: Final = {MODE: "COMMIT_TIME_ORDERING", STRATEGY: COMMIT, OLD_STRATEGY: COMMIT}


BY_PAYLOAD = dict.fromkeys((STRATEGY, OLD_STRATEGY), "00000000-0000-0000-0000-000000000000")
DEFAULT, LATEST = "DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload"


@pytest.mark.parametrize(
    ("payload", "expected", "stored"),
    [
        (None, BY_EVENT, DEFAULT),
        (DEFAULT, BY_EVENT, DEFAULT),
        (LATEST, BY_COMMIT, LATEST),
        ("EventTimeAvroPayload", BY_COMMIT, LATEST),
        ("PartialUpdateAvroPayload", {MODE: "CUSTOM", **BY_PAYLOAD}, "PartialUpdateAvroPayload"),
    ],
)
def test_merging_from_6_to_8(payload: str | None, expected: dict[str, str], stored: str) -> None:
    kept = {PRECOMBINE: "ts", PAYLOAD: MODEL + stored}
    assert merging(properties_in(old(payload), 8, "t")) == {**expected, **kept}


def test_a_payload_class_of_the_first_releases() -> None:
    name = "com.uber.hoodie.common.model.OverwriteWithLatestAvroPayload"
    made = properties_in({**OLD, PAYLOAD: name}, 8, "t")
    assert made[PAYLOAD] == MODEL + "OverwriteWithLatestAvroPayload"


EVENT_9 = {key: BY_EVENT[key] for key in (MODE, OLD_STRATEGY)}
COMMIT_9 = {key: BY_COMMIT[key] for key in (MODE, OLD_STRATEGY)}
PARTLY = {PARTIAL: "IGNORE_DEFAULTS"}
AWS = {MARKER + "field": "Op", MARKER + "marker": "D"}
PAYLOADS = {
    DEFAULT: EVENT_9,
    LATEST: COMMIT_9,
    "EventTimeAvroPayload": EVENT_9,
    "PartialUpdateAvroPayload": EVENT_9 | PARTLY,
    "OverwriteNonDefaultsWithLatestAvroPayload": COMMIT_9 | PARTLY,
    "AWSDmsAvroPayload": COMMIT_9 | AWS,
}


@pytest.mark.parametrize("payload", [None, *PAYLOADS])
def test_merging_from_6_to_9(payload: str | None) -> None:
    made = merging(properties_in(old(payload), 9, "t"))
    name = payload or DEFAULT
    assert made == {**PAYLOADS[name], LEGACY: MODEL + name, ORDERING: "ts"}


@pytest.mark.parametrize(
    "payload",
    [*sorted(PAYLOADS.keys() - {"EventTimeAvroPayload"}), "debezium.PostgresDebeziumAvroPayload"],
)
def test_down_to_8_gives_what_was_there(payload: str) -> None:
    before = properties_in(old(payload), 8, "t")
    if payload.startswith("debezium"):
        before[PRECOMBINE] = "_event_lsn"  # which version 9 names for the class
    up = properties_in(before, 9, "t")
    assert up["hoodie.table.version"] == "9"
    assert merging(properties_in(up, 8, "t")) == merging(before)


@pytest.mark.parametrize("payload", ["OverwriteWithLatestAvroPayload", "EventTimeAvroPayload"])
@pytest.mark.parametrize("ordering", [PRECOMBINE, ORDERING])
def test_logs_are_ordered_by_ordering_fields_from_version_8_on(payload: str, ordering: str) -> None:
    before = {**old(payload), "hoodie.table.type": "MERGE_ON_READ", ordering: "ts"}
    made = {to: properties_in(before, to, "t") for to in (8, 9)}
    assert {made[to][MODE] for to in made} == {"EVENT_TIME_ORDERING"}
    assert made[8][PAYLOAD] == f"{MODEL}DefaultHoodieRecordPayload"
    # as Hudi's own upgrade leaves it
    assert made[9][LEGACY] == f"{MODEL}{payload}"
    assert properties_in(made[9], 8, "t")[MODE] == "EVENT_TIME_ORDERING"
    assert not properties_in(made[9], 8, "t")[PAYLOAD].endswith("LatestAvroPayload")


def test_a_binlog_is_ordered_by_its_sequence_in_version_8() -> None:
    before = properties_in(old("debezium.MySqlDebeziumAvroPayload"), 8, "t")
    up = properties_in(before, 9, "t")
    assert up[ORDERING] == "_event_bin_file,_event_pos"
    assert properties_in(up, 8, "t")[PRECOMBINE] == "_event_seq"


def test_version_8_has_no_word_for_partial_updates_without_a_class() -> None:
    up = properties_in(properties_in(OLD, 8, "t"), 9, "t")
    with pytest.raises(UnsupportedTableError, match="merges partial updates"):
        properties_in({**up, PARTIAL: "IGNORE_DEFAULTS"}, 8, "t")
    assert PARTIAL not in properties_in({**up, PARTIAL: "NONE"}, 8, "t")


def test_the_same_version_changes_nothing() -> None:
    up = properties_in(OLD, 8, "t")
    assert properties_in(up, 8, "t") == up
