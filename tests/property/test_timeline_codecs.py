"""What a value holds, its instant file holds; what a file holds, gives a value or damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import CorruptMetadataError
from hudi_core.model import actions
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, RuntimeStats, WriteStat
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
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
    keys = [(one.requested_time, one.action.completed_action) for one in timeline]
    assert sorted(set(keys)) == keys
    assert {(one.requested_time, one.action.completed_action) for one in files} == set(keys)

    # what is committed as of a time is what is committed and not later
    cut = timeline.as_of(time)
    for n in range(31):
        other = InstantTime(f"20260301120000{n:03d}")
        assert cut.is_committed(other) == (timeline.is_committed(other) and other <= time)
