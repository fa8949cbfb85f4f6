"""What a value, a schema, properties or a path holds, its file holds, and the other way around."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.properties import format_properties, parse_properties
from hudi_core.errors import CorruptMetadataError, PartitionValueError
from hudi_core.model import actions
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, RuntimeStats, WriteStat
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.partition_path import PartitionPathCodec
from hudi_core.timeline.serde import (
    decode_commit,
    decode_record,
    decode_replace_commit,
    decode_requested_replace,
    decode_rollback,
    decode_rollback_plan,
    encode,
    encode_datum,
)
from hudi_core.timeline.timeline import Timeline

LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(max_size=12)
OPTIONAL_TEXTS = st.none() | TEXTS
VERSIONS = st.none() | INTS


def lists(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=3).map(tuple)


def maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(TEXTS, values, max_size=3)


# fields that are not optional in the dataclass, or not of the type that `from_type` would draw
LONG_FIELDS = {
    name: st.none() | LONGS
    for name in WriteStat.__dataclass_fields__
    if name.startswith(("num_", "total_", "min_", "max_", "log_offset", "file_size"))
}
RUNTIME = st.builds(RuntimeStats, LONGS, LONGS, LONGS)
STATS = st.builds(
    WriteStat,
    **LONG_FIELDS,
    **dict.fromkeys(
        ("file_id", "path", "prev_commit", "partition_path", "base_file", "prev_base_file"),
        OPTIONAL_TEXTS,
    ),
    temp_path=OPTIONAL_TEXTS,
    log_version=VERSIONS,
    log_files=st.none() | lists(TEXTS),
    cdc_stats=st.none() | maps(LONGS),
    runtime_stats=st.none() | RUNTIME,
)
COMMIT_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "partition_to_write_stats": maps(lists(STATS)),
    "compacted": st.none() | st.booleans(),
    "extra_metadata": maps(TEXTS),
    "version": VERSIONS,
    "operation_type": OPTIONAL_TEXTS,
}
COMMITS = st.builds(CommitMetadata, **COMMIT_FIELDS)
REPLACES = st.builds(
    ReplaceCommitMetadata, **COMMIT_FIELDS, partition_to_replace_file_ids=maps(lists(TEXTS))
)
SLICES = st.builds(
    actions.ClusteringSlice,
    OPTIONAL_TEXTS,
    st.none() | lists(TEXTS),
    OPTIONAL_TEXTS,
    OPTIONAL_TEXTS,
    OPTIONAL_TEXTS,
    VERSIONS,
)
GROUPS = st.builds(
    actions.ClusteringGroup,
    st.none() | lists(SLICES),
    st.none() | maps(st.floats(allow_nan=False)),
    VERSIONS,
    st.none() | maps(TEXTS),
    VERSIONS,
)
STRATEGIES = st.builds(
    actions.ClusteringStrategy, OPTIONAL_TEXTS, st.none() | maps(TEXTS), VERSIONS
)
PLANS = st.builds(
    actions.ClusteringPlan,
    st.none() | lists(GROUPS),
    st.none() | STRATEGIES,
    st.none() | maps(TEXTS),
    VERSIONS,
    st.none() | st.booleans(),
    st.none() | lists(TEXTS),
)
REQUESTS = st.builds(
    actions.RequestedReplaceMetadata,
    OPTIONAL_TEXTS,
    st.none() | PLANS,
    st.none() | maps(TEXTS),
    VERSIONS,
)
INFOS = st.builds(actions.InstantInfo, TEXTS, TEXTS)
ROLLBACK_PLANS = st.builds(
    actions.RollbackPlan,
    st.none() | INFOS,
    lists(
        st.builds(
            actions.RollbackRequest,
            TEXTS,
            OPTIONAL_TEXTS,
            OPTIONAL_TEXTS,
            lists(TEXTS),
            st.none() | maps(LONGS),
        )
    ),
    VERSIONS,
)
ROLLBACKS = st.builds(
    actions.RollbackMetadata,
    TEXTS,
    LONGS,
    INTS,
    lists(TEXTS),
    maps(
        st.builds(
            actions.RollbackPartitionMetadata,
            TEXTS,
            lists(TEXTS),
            lists(TEXTS),
            st.none() | maps(LONGS),
            st.none() | maps(LONGS),
        )
    ),
    VERSIONS,
    lists(INFOS),
)
CODECS: list[tuple[st.SearchStrategy[Any], Callable[[bytes, str], object]]] = [
    (COMMITS, decode_commit),
    (REPLACES, decode_replace_commit),
    (REQUESTS, decode_requested_replace),
    (ROLLBACK_PLANS, decode_rollback_plan),
    (ROLLBACKS, decode_rollback),
]


@pytest.mark.parametrize(("values", "decode"), CODECS)
@given(data=st.data())
def test_values_come_back_as_they_were(
    values: st.SearchStrategy[Any], decode: Callable[[bytes, str], object], data: st.DataObject
) -> None:
    value = data.draw(values)
    body = encode(value)
    assert decode(body, "x") == value
    record = decode_record(body, "x")
    assert encode_datum(value, record.schema) == record.datum


@given(body=COMMITS.map(encode), data=st.data())
def test_damaged_files_give_a_value_or_damage(body: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(body) - 1))
    junk = data.draw(st.binary(max_size=12))
    damaged = body[:position] + junk + body[position + len(junk) :]
    try:
        found = decode_commit(damaged, "x")
    except CorruptMetadataError as error:
        assert error.path == "x"  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(found, CommitMetadata)


@given(st.binary(max_size=300))
def test_bytes_of_no_origin_are_damage(junk: bytes) -> None:
    for prefix in (b"", b"Obj\x01", b"{"):
        with pytest.raises(CorruptMetadataError):
            decode_commit(prefix + junk, "x")


TIMES = st.integers(0, 30).map(lambda n: InstantTime(f"20260301120000{n:03d}"))
FILES = st.builds(
    Instant,
    TIMES,
    st.sampled_from(list(Action)),
    st.sampled_from([State.REQUESTED, State.INFLIGHT]),
) | st.builds(
    lambda time, action, done: Instant(time, action.completed_action, State.COMPLETED, done),
    TIMES,
    st.sampled_from(list(Action)),
    TIMES,
)


@given(files=st.lists(FILES, max_size=12), time=TIMES, data=st.data())
def test_a_timeline_does_not_depend_on_the_order_of_its_files(
    files: list[Instant], time: InstantTime, data: st.DataObject
) -> None:
    timeline = Timeline.of(files)
    assert Timeline.of(data.draw(st.permutations(files))) == timeline
    assert Timeline.of(timeline.instants) == timeline
    assert sorted(timeline, key=lambda one: one.sort_key) == list(timeline)
    keys = [(one.requested_time, one.action.completed_action) for one in timeline]
    assert len(set(keys)) == len(keys)
    assert {(one.requested_time, one.action.completed_action) for one in files} == set(keys)

    # what is committed as of a time is what is committed and not later
    cut = timeline.as_of(time)
    for n in range(31):
        other = InstantTime(f"20260301120000{n:03d}")
        assert cut.is_committed(other) == (timeline.is_committed(other) and other <= time)


# --- any schema a table can have survives Avro, and any rows survive the cast
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
PRIMITIVES = st.sampled_from(
    [
        *(pa.bool_(), pa.int8(), pa.uint32(), pa.int64(), pa.float32(), pa.float64(), pa.string()),
        *(pa.large_binary(), pa.date32(), pa.time64("us"), pa.timestamp("us")),
        *(pa.timestamp("ms", "Asia/Tokyo"), pa.decimal128(38, 0), pa.decimal128(7, 7)),
    ]
)


def fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    named = st.builds(pa.field, NAMES, types, st.booleans())
    return st.lists(named, min_size=1, max_size=4, unique_by=lambda field: field.name.lower())


def nested(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return (
        fields(types).map(pa.struct)
        | types.map(pa.list_)
        | types.map(pa.large_list)
        | types.map(lambda kind: pa.map_(pa.string(), kind))
    )


SCHEMAS = fields(st.recursive(PRIMITIVES, nested, max_leaves=6)).map(pa.schema)


def without_ids(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: without_ids(value) for key, value in node.items() if not key.endswith("-id")}
    return [without_ids(each) for each in node] if isinstance(node, list) else node


@given(SCHEMAS)
def test_schemas_survive_avro(given_schema: pa.Schema) -> None:
    schema = TableSchema.create(given_schema)
    ids = schema.field_ids()
    assert sorted(ids.values()) == list(range(1, schema.last_column_id + 1))
    assert TableSchema.create(schema.arrow) == schema
    avro = schema.to_avro("t", with_meta=True)
    assert TableSchema.from_avro(avro) == schema
    foreign = json.dumps(without_ids(json.loads(avro)))
    assert TableSchema.from_avro(foreign, ids, schema.last_column_id) == schema


@given(SCHEMAS)
def test_rows_without_values_fit_any_schema(given_schema: pa.Schema) -> None:
    schema = TableSchema.create(given_schema)
    empty = pa.RecordBatch.from_pylist([], given_schema)
    assert schema.cast_batch(empty).schema.equals(schema.arrow, check_metadata=True)


# --- whatever the values: a path is refused, or is safe, and reads back as the values
FIELDS = ("a", "b=c", "d.é")
HOSTILE = [
    *("..", ".", "/", "../x", ".hoodie", "_x", "%2E", "%", "a=b", "a/b"),
    *("__HIVE_DEFAULT_PARTITION__", "a\\b", "\x00", "é", "e\N{COMBINING ACUTE ACCENT}"),
]
VALUES = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.text(alphabet="./%_=2EF\\a", max_size=8),
    st.sampled_from(HOSTILE),
    st.text(min_size=80, max_size=300),
)
TUPLES = st.integers(1, 3).flatmap(lambda size: st.tuples(*[VALUES] * size))


def encoded(values: tuple[str | None, ...], hive: bool, url: bool) -> str | None:
    try:
        return PartitionPathCodec(FIELDS[: len(values)], hive, url).encode(values)
    except PartitionValueError:
        return None


@given(values=TUPLES, hive=st.booleans(), url=st.booleans())
def test_a_path_is_safe_and_reads_back(
    values: tuple[str | None, ...], hive: bool, url: bool
) -> None:
    path = encoded(values, hive, url)
    if path is None:
        return
    read = tuple(value or None for value in values)
    assert PartitionPathCodec(FIELDS[: len(values)], hive, url).decode(path) == read
    full = os.path.normpath(f"/base/table/{path}")
    assert full == f"/base/table/{path}"
    assert not path.startswith("_") or not values[0]
    for segment in path.split("/"):
        assert segment
        assert not segment.startswith(".")
        assert len(segment.encode()) <= 255
        assert not any(character < " " for character in segment)
    if url or (len(values) > 1 and not hive):
        assert len(path.split("/")) == len(values)


@given(first=TUPLES, second=TUPLES, hive=st.booleans(), url=st.booleans())
def test_no_two_tuples_share_a_path(
    first: tuple[str | None, ...], second: tuple[str | None, ...], hive: bool, url: bool
) -> None:
    told = ([value or None for value in values] for values in (first, second))
    if len(first) == len(second) and next(told) != next(told):
        one, other = encoded(first, hive, url), encoded(second, hive, url)
        assert one is None or one != other


@given(value=st.text(min_size=1, max_size=20), hive=st.booleans())
def test_with_url_encoding_only_what_nobody_can_store_is_refused(value: str, hive: bool) -> None:
    hopeless = "\0" in value or value == "__HIVE_DEFAULT_PARTITION__"
    if not hopeless and len(value.encode("utf-8", "surrogatepass")) <= 80:
        surrogate = any("\ud800" <= character <= "\udfff" for character in value)
        assert (encoded((value,), hive, True) is None) is surrogate


@pytest.mark.parametrize("hive", [False, True])
def test_the_strategies_reach_both_outcomes(hive: bool) -> None:
    # keeps the tests above from passing because everything is refused
    outcomes = {encoded((value,), hive, False) is None for value in HOSTILE}
    assert outcomes == {False, True}


# --- whatever is written to a properties file is read back, and nothing else
_SPECIAL = st.sampled_from(list(" \t\n\r\f\\=:#!uU0é€\x00\x1f\x7f\x85\u2028\N{GRINNING FACE}"))
_TEXT = st.text(st.one_of(_SPECIAL, st.characters(exclude_categories=["Cs"])), max_size=30)
_KEY = _TEXT.filter(lambda text: bool(text) and not set(text) & set("\r\n\0"))


@given(st.dictionaries(_KEY, _TEXT, max_size=8), st.lists(_TEXT, max_size=3))
def test_round_trip_in_order(properties: dict[str, str], comments: list[str]) -> None:
    data = format_properties(properties, comments)
    assert data.isascii()
    assert list(parse_properties(data).items()) == list(properties.items())


@given(st.dictionaries(_KEY, _TEXT, max_size=4), st.sampled_from([b"\r", b"\r\n"]))
def test_line_ends_do_not_matter(properties: dict[str, str], line_end: bytes) -> None:
    data = format_properties(properties).replace(b"\n", line_end)
    assert parse_properties(data) == properties


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_named_damaged(data: bytes) -> None:
    try:
        properties = parse_properties(data)
    except CorruptMetadataError:
        return
    # what was accepted can be stored again, but for keys that no writer may make
    storable = {
        key: value for key, value in properties.items() if key and not set(key) & set("\r\n\0")
    }
    assert parse_properties(format_properties(storable)) == storable


@given(_TEXT, _TEXT)
def test_a_value_never_makes_a_second_key(value: str, other: str) -> None:
    data = format_properties({"first": value, "second": other})
    assert set(parse_properties(data)) == {"first", "second"}
