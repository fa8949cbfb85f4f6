"""Bodies of instant files: what is written, what is accepted, and what is refused with its name."""

from __future__ import annotations

import io
import json
import random
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pytest

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
    RollbackRequest,
    SavepointMetadata,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.timeline import serde
from hudi_core.timeline.serde import (
    decode_commit,
    decode_record,
    decode_replace_commit,
    decode_requested_replace,
    decode_rollback,
    decode_rollback_plan,
    encode,
    records,
)
from hudi_core.timeline.serde.records import schema_of, write_container

PATH = "/table/.hoodie/timeline/x.commit"
COMMIT = CommitMetadata(
    {"p": (WriteStat(file_id="f-0", path="p/f.parquet", num_writes=3),)},
    extra_metadata={"schema": "{}"},
    operation_type="INSERT",
)


def file_of(schema: dict[str, Any], record: Mapping[str, Any]) -> bytes:
    """Return a container made by fastavro alone, with fastavro's header."""
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    return out.getvalue()


def record_schema(*fields: object, name: str = "HoodieCommitMetadata") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "any.where", "fields": list(fields)}


def optional(name: str, kind: object) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def test_the_container_is_read_by_others_and_has_no_codec() -> None:
    assert encode(COMMIT) == encode(COMMIT)
    reader: Any = fastavro.reader(io.BytesIO(encode(COMMIT)))
    [record] = list(reader)
    assert set(reader.metadata) == {"avro.schema"}
    assert reader.writer_schema["name"] == "org.apache.hudi.avro.model.HoodieCommitMetadata"
    assert record["partitionToWriteStats"]["p"][0]["numWrites"] == 3
    assert record["compacted"] is False
    assert record["operationType"] == "INSERT"


def test_empty_maps_are_written_as_maps() -> None:
    # Java calls methods of partitionToWriteStats and unboxes compacted without looking
    fields = decode_record(encode(CommitMetadata()), PATH).fields
    assert fields["partitionToWriteStats"] == {}
    assert fields["compacted"] is False


def test_a_container_of_another_writer_is_read() -> None:
    # fastavro names the codec null
    schema = record_schema(optional("operationType", "string"))
    found = decode_commit(file_of(schema, {"operationType": "UPSERT"}), PATH)
    assert found == CommitMetadata(operation_type="UPSERT")


def test_fields_the_file_lacks_take_defaults_and_unknown_ones_are_ignored() -> None:
    stat = record_schema(
        optional("fileId", "string"),
        optional("numWrites", "int"),
        optional("novelty", {"type": "map", "values": "double"}),
        name="HoodieWriteStat",
    )
    schema = record_schema(
        optional("novelties", {"type": "array", "items": "bytes"}),
        optional(
            "partitionToWriteStats", {"type": "map", "values": {"type": "array", "items": stat}}
        ),
    )
    record = {
        "novelties": [b"x"],
        "partitionToWriteStats": {"p": [{"fileId": "f", "numWrites": None, "novelty": {"a": 1.0}}]},
    }
    found = decode_commit(file_of(schema, record), PATH)
    assert found == CommitMetadata({"p": (WriteStat(file_id="f", num_writes=None),)})


def test_nulls_where_the_model_has_none_become_defaults() -> None:
    schema = record_schema(
        optional("partitionToWriteStats", {"type": "map", "values": "string"}),
        optional("extraMetadata", {"type": "map", "values": "string"}),
        optional("compacted", "boolean"),
    )
    record = {"partitionToWriteStats": None, "extraMetadata": None, "compacted": None}
    found = decode_commit(file_of(schema, record), PATH)
    assert found.partition_to_write_stats == {}
    assert found.extra_metadata == {}
    assert found.compacted is None


def test_a_value_without_default_must_be_there() -> None:
    schema = record_schema(optional("startRollbackTime", "string"), name="HoodieRollbackMetadata")
    data = file_of(schema, {"startRollbackTime": "20260101000000000"})
    with pytest.raises(CorruptMetadataError, match="timeTakenInMillis is missing"):
        decode_rollback(data, PATH)


def test_a_field_of_another_type_is_damage() -> None:
    schema = record_schema(optional("operationType", "long"))
    with pytest.raises(CorruptMetadataError, match=r"operationType is of type int"):
        decode_commit(file_of(schema, {"operationType": 7}), PATH)
    schema = record_schema(optional("partitionToWriteStats", "string"))
    with pytest.raises(CorruptMetadataError, match=r"partitionToWriteStats is not a map"):
        decode_commit(file_of(schema, {"partitionToWriteStats": "x"}), PATH)
    # a record of another kind is not taken for an empty one
    with pytest.raises(CorruptMetadataError, match="HoodieRollbackPlan instead of a HoodieCommit"):
        decode_commit(encode(RollbackPlan(None)), PATH)
    with pytest.raises(CorruptMetadataError, match="instead of a HoodieReplaceCommitMetadata"):
        decode_replace_commit(encode(COMMIT), PATH)


def test_a_replacecommit_is_also_a_commit() -> None:
    replaced = ReplaceCommitMetadata(
        COMMIT.partition_to_write_stats, partition_to_replace_file_ids={"p": ("a-0", "b-0")}
    )
    assert decode_replace_commit(encode(replaced), PATH) == replaced
    assert type(decode_commit(encode(replaced), PATH)) is CommitMetadata


@pytest.mark.parametrize(
    "decode", [decode_commit, decode_replace_commit, decode_rollback_plan, decode_rollback]
)
def test_an_empty_file_is_damage_where_something_must_be(
    decode: Callable[[bytes, str], object],
) -> None:
    with pytest.raises(CorruptMetadataError, match="it is empty") as caught:
        decode(b"", PATH)
    assert caught.value.path == PATH


def test_empty_files_that_hudi_writes_are_read() -> None:
    assert decode_commit(b"", PATH, allow_empty=True) == CommitMetadata()
    assert decode_requested_replace(b"", PATH) == RequestedReplaceMetadata()


def test_the_field_hudi_capitalises() -> None:
    plan = RollbackPlan(None, (RollbackRequest("p", files_to_be_deleted=("/t/p/f.parquet",)),))
    assert decode_record(encode(plan), PATH).fields["RollbackRequests"][0]["partitionPath"] == "p"


def test_every_truncation_is_damage() -> None:
    data = encode(COMMIT)
    for kept in range(len(data)):
        with pytest.raises(CorruptMetadataError):
            decode_commit(data[:kept], PATH)


def test_flipped_bits_give_a_value_or_damage() -> None:
    data = encode(COMMIT)
    begin = data.index(b"f-0") - 8
    draw = random.Random(7)
    refused = 0
    for position in [*range(begin, len(data)), *draw.sample(range(len(data)), 500)]:
        flipped = bytearray(data)
        flipped[position] ^= 1 << draw.randrange(8)
        try:
            decode_commit(bytes(flipped), PATH)
        except CorruptMetadataError:
            refused += 1
    assert refused > 400


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"PAR1" + data, "not an Avro file"),
        (lambda data: data + b"\0", "bytes follow the record"),
        (lambda data: data + data, "bytes follow the record"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "sync markers differ"),
        (lambda data: data.replace(b"avro.schema", b"avro.schemb"), "names no schema"),
        (lambda data: data.replace(b'"record"', b'"rekord"', 1), "its Avro schema"),
    ],
)
def test_damage_is_told_with_its_reason(damage: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        decode_commit(damage(encode(COMMIT)), PATH)
    assert caught.value.path == PATH


def test_other_numbers_of_records_and_codecs_are_refused() -> None:
    schema = record_schema(optional("operationType", "string"))
    none, two, packed = io.BytesIO(), io.BytesIO(), io.BytesIO()
    fastavro.writer(none, schema, [])
    fastavro.writer(two, schema, [{}, {}])
    fastavro.writer(packed, schema, [{}], codec="deflate")
    for out, reason in ((none, "no record"), (two, "2 records"), (packed, "deflate")):
        with pytest.raises(CorruptMetadataError, match=reason):
            decode_commit(out.getvalue(), PATH)


EMPTY = {"type": "record", "fields": []}


def of_f(kind: object) -> dict[str, Any]:
    """Schema of a record with one field."""
    return record_schema({"name": "f", "type": kind})


def nested(levels: int) -> dict[str, Any]:
    kind: Any = "string"
    for level in range(levels):
        kind = {"type": "record", "name": f"r{level}", "fields": [{"name": "f", "type": kind}]}
    return record_schema({"name": "f", "type": kind})


def wrapped(levels: int) -> dict[str, Any]:
    kind: Any = "string"
    for _ in range(levels):
        kind = {"type": kind}
    return record_schema({"name": "f", "type": kind})


def chained(levels: int) -> dict[str, Any]:
    """Return a schema whose types nest by reference, not in the text."""
    fields = []
    for level in range(levels):
        below = f"any.where.r{level - 1}" if level else "string"
        record = {"type": "record", "name": f"r{level}", "fields": [{"name": "x", "type": below}]}
        fields.append({"name": f"f{level}", "type": record})
    return record_schema(*fields)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (nested(64), "nested too deeply"),
        (nested(250), "nested too deeply"),
        (wrapped(400), "nested too deeply"),
        (chained(70), "nested too deeply"),
        (record_schema(optional("f", "any.where.HoodieCommitMetadata")), "recursive"),
        (record_schema(optional("f", "HoodieCommitMetadata")), "recursive"),
        (of_f({"type": "array", "items": "null"}), "null"),
        (of_f("null"), "null"),
        (of_f({"type": "fixed", "name": "x", "size": 0}), "no bytes"),
        (of_f({"type": "array", "items": {**EMPTY, "name": "e"}}), "without fields"),
        (record_schema(), "without fields"),
        (of_f("nowhere"), "unknown type 'nowhere'"),
        (of_f(["null", ["int"]]), "union in a union"),
        (of_f([]), "no type"),
        (record_schema({"type": "int"}), "without name"),
        ({"type": "map", "values": "long"}, "not one of a record"),
        ([], "no type"),
        (EMPTY, "without a name"),
        *((text, "JSON|nested") for text in ('{"type":' * 9999, '"x', "[" * 9999 + "]" * 9999)),
    ],
)
def test_unsafe_schemas_are_refused(schema: object, reason: str) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(CorruptMetadataError, match=reason):
        decode_commit(write_container(text, b"\0"), PATH)


def test_reasonable_nesting_is_read() -> None:
    assert decode_commit(write_container(json.dumps(nested(40)), b"\2x"), PATH) == CommitMetadata()


def test_an_array_cannot_claim_more_than_its_bytes() -> None:
    schema = of_f({"type": "array", "items": "long"})
    endless = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2**63 - 1 items
    with pytest.raises(CorruptMetadataError, match="cannot be decoded"):
        decode_commit(write_container(json.dumps(schema), endless), PATH)
    schema = of_f("long")
    with pytest.raises(CorruptMetadataError, match="shorter than the file says"):
        decode_commit(write_container(json.dumps(schema), b"\2\2"), PATH)


def test_the_schemas_of_instant_files_stay() -> None:
    """They are those of Hudi's own files; ``zlib.crc32`` of all of them, by their names."""
    kinds = (
        CleanMetadata,
        CleanerPlan,
        CommitMetadata,
        CompactionPlan,
        IndexCommitMetadata,
        IndexPlan,
        ReplaceCommitMetadata,
        RequestedReplaceMetadata,
        RestoreMetadata,
        RestorePlan,
        RollbackMetadata,
        RollbackPlan,
        SavepointMetadata,
    )
    texts = [json.dumps(schema_of(kind), separators=(",", ":")) for kind in kinds]
    assert zlib.crc32("".join(texts).encode()) == 1_547_808_050


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(COMMIT)
    monkeypatch.setattr(records, "MAX_SCHEMA_BYTES", 100)
    with pytest.raises(CorruptMetadataError, match="its schema has"):
        decode_commit(data, PATH)
    monkeypatch.setattr(records, "MAX_INSTANT_BYTES", len(data) - 1)
    with pytest.raises(CorruptMetadataError, match="are more than"):
        decode_commit(data, PATH)
    monkeypatch.setattr(serde, "MAX_INSTANT_BYTES", 10)
    with pytest.raises(CorruptMetadataError, match="are more than"):
        decode_commit(b'{"partitionToWriteStats": {}}', PATH)
    with pytest.raises(CorruptMetadataError, match="more than readers accept"):
        encode(COMMIT)


def test_json_of_layout_1_gives_the_same_values() -> None:
    stat = {"fileId": "f-0", "path": "p/f.parquet", "numWrites": 3, "baseFile": "f.parquet"}
    text = {
        "partitionToWriteStats": {"p": [stat]},
        "compacted": False,
        "extraMetadata": {"schema": "{}"},
        "operationType": "INSERT_OVERWRITE",
        "partitionToReplaceFileIds": {"p": ["a-0"]},
        "novelty": {"x": [1]},
    }
    data = ("\n" + json.dumps(text, indent=2)).encode()
    expected = WriteStat(file_id="f-0", path="p/f.parquet", num_writes=3, base_file="f.parquet")
    found = decode_replace_commit(data, PATH)
    assert found.stats == (expected,)
    assert found.partition_to_replace_file_ids == {"p": ("a-0",)}
    assert found.operation_type == "INSERT_OVERWRITE"
    assert decode_commit(data, PATH).schema_json == "{}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"partitionToWriteStats": {', "not whole JSON"),
        (b"{}", "not commit metadata"),
        (b'{"partitionToWriteStats": [1]}', "is not a map"),
        (b'{"partitionToWriteStats": {"p": {}}}', "is not an array"),
        (b'{"partitionToWriteStats": {"p": [7]}}', "WriteStat is not a record"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": true}]}}', "should be int"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": 1.5}]}}', "should be int"),
        (b'{"partitionToWriteStats": {"\xff": []}}', "not whole JSON"),
        (b'{"a":' * 100_000, "nested too deeply|not whole JSON"),
    ],
)
def test_damaged_json_is_named(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        decode_commit(text, PATH)
    assert caught.value.path == PATH
