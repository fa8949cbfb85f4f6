"""A timeline is each instant once, with filters that say what belongs to the table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hudi_core.model.files import BaseFileName, LogFileName
from hudi_core.model.instant import Action, Instant, State, parse_file_name_v2
from hudi_core.model.instant_time import InstantTime, next_instant_time, to_datetime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.timeline import Timeline


def at(ordinal: int) -> InstantTime:
    return InstantTime(f"20260301120000{ordinal:03d}")


def timeline(*names: str, unknown: Sequence[str] = ()) -> Timeline:
    """Return the timeline of files, whose names give the last three digits of times."""
    files = []
    for name in names:
        times, dot, rest = name.partition(".")
        full = "_".join(at(int(time)) for time in times.split("_"))
        file = parse_file_name_v2(full + dot + rest)
        assert file is not None, name
        files.append(file)
    return Timeline.of(files, unknown)


def names(instants: Timeline | tuple[Instant, ...]) -> list[str]:
    return [f"{int(one.requested_time[14:])}.{one.action}.{one.state}" for one in instants]


@pytest.mark.parametrize("suffix", ["", "001", "001006"])
def test_times_of_the_metadata_tables_that_hudi_made_before_version_8(suffix: str) -> None:
    """A compaction, a clean or a rollback of the table's instant has a suffix of its own."""
    begun, done = f"{at(7)}{suffix}", at(9)
    assert parse_file_name_v2(f"{begun}_{done}.commit") == Instant(
        InstantTime(begun), Action.COMMIT, State.COMPLETED, done
    )
    base = BaseFileName.parse(f"files-0000-0_0-1-2_{begun}.hfile")
    log = LogFileName.parse(f".files-0000-0_{begun}.log.1_0-1-2")
    assert base is not None
    assert log is not None
    assert (base.instant, log.instant) == (begun, begun)
    # text order is time order, and the next time is one of ours
    assert at(7) <= begun < at(8) == next_instant_time(InstantTime(begun), at(7))
    assert to_datetime(InstantTime(begun)) == to_datetime(at(7))
    for digits in (18, 19, 21, 26):
        name = f"files-0000-0_0-1-2_{at(7):0<{digits}}.hfile"
        assert BaseFileName.parse(name) is None


def test_each_instant_is_kept_once_in_its_highest_state() -> None:
    found = timeline(
        "3.inflight", "3.commit.requested", "1_2.commit", "1.inflight", "1.commit.requested"
    )
    assert names(found) == ["1.commit.completed", "3.commit.inflight"]
    assert found.instants[0].completion_time == at(2)


@pytest.mark.parametrize(
    ("pending", "completed"),
    [("clustering", "replacecommit"), ("compaction", "commit"), ("logcompaction", "deltacommit")],
)
def test_an_action_that_completes_under_another_name_is_one_instant(
    pending: str, completed: str
) -> None:
    done = timeline(f"1.{pending}.requested", f"1.{pending}.inflight", f"1_2.{completed}")
    assert names(done) == [f"1.{completed}.completed"]
    assert names(timeline(f"1.{pending}.requested")) == [f"1.{pending}.requested"]
    assert done.find(at(1), Action(pending)) == done.instants[0]


def test_a_savepoint_stands_beside_its_commit() -> None:
    found = timeline("1_2.commit", "1_9.savepoint", "1.savepoint.inflight")
    assert names(found) == ["1.commit.completed", "1.savepoint.completed"]
    commit, savepoint = found.instants
    assert found.find(at(1)) == commit
    assert found.find(at(1), Action.SAVEPOINT) == savepoint
    assert found.find(at(1), Action.CLEAN) is None
    assert found.find(at(7)) is None


def test_of_two_completions_the_earlier_one_counts() -> None:
    found = timeline("1_5.commit", "1_3.commit")
    assert [one.completion_time for one in found] == [at(3)]


def test_filters_by_state_and_action() -> None:
    found = timeline(
        "1_2.commit", "3_4.clean", "5.clustering.inflight", "6_7.replacecommit", "8.inflight"
    )
    assert names(found.completed()) == [
        "1.commit.completed",
        "3.clean.completed",
        "6.replacecommit.completed",
    ]
    assert names(found.pending()) == ["5.clustering.inflight", "8.commit.inflight"]
    assert names(found.completed_writes()) == ["1.commit.completed", "6.replacecommit.completed"]
    assert names(found.of_actions(Action.REPLACECOMMIT)) == [
        "5.clustering.inflight",
        "6.replacecommit.completed",
    ]
    assert found.first == found.instants[0]
    assert found.last == found.instants[-1]
    assert Timeline().first is None
    assert Timeline().last is None


def test_as_of_goes_by_requested_times_and_includes_its_bound() -> None:
    found = timeline("1_9.commit", "3_4.commit", "5_6.commit")
    assert names(found.as_of(at(3))) == ["1.commit.completed", "3.commit.completed"]
    assert not found.as_of(at(3)).is_committed(at(5))


def test_as_of_before_the_active_timeline_takes_archived_writes_up_to_the_bound() -> None:
    found = timeline("10_11.commit").as_of(at(5))
    assert found.is_committed(at(5))
    assert not found.is_committed(at(6))
    # a later bound does not widen it again
    assert not found.as_of(at(8)).is_committed(at(6))


def test_completed_between_goes_by_completion_times_and_excludes_its_begin() -> None:
    found = timeline("1_20.commit", "2_10.commit", "3_30.commit", "4.inflight")
    assert names(found.completed_between(at(10), at(20))) == ["1.commit.completed"]
    assert names(found.completed_between(end=at(10))) == ["2.commit.completed"]
    assert names(found.completed_between(begin=at(20))) == ["3.commit.completed"]
    assert len(found.completed_between()) == 3
    assert not found.completed_between().is_committed(InstantTime("20200101000000000"))


def test_completed_between_uses_requested_times_where_there_are_no_others() -> None:
    old = [Instant(at(n), Action.COMMIT, State.COMPLETED) for n in (1, 2, 3)]
    assert names(Timeline.of(old).completed_between(at(1), at(2))) == ["2.commit.completed"]


def test_files_of_completed_and_archived_writes_are_committed() -> None:
    found = timeline("10_11.commit", "12.inflight", "14_15.commit", "13_16.clean")
    assert [n for n in range(5, 20) if found.is_committed(at(n))] == [5, 6, 7, 8, 9, 10, 14]


def test_a_pending_write_before_the_first_completed_one_starts_the_active_timeline() -> None:
    # nothing is archived past a pending instant, so 6 is what a failed write left behind
    found = timeline("5.commit.requested", "10_11.commit")
    assert [n for n in range(1, 12) if found.is_committed(at(n))] == [1, 2, 3, 4, 10]


def test_cleans_and_rollbacks_do_not_start_the_active_timeline() -> None:
    # they are archived at their own pace: the write of 7 is archived though the clean of 5 is not
    found = timeline("5_6.clean", "10_11.commit")
    assert found.is_committed(at(7))
    assert not found.is_committed(at(5))


def test_a_savepointed_commit_may_stay_behind_archived_ones() -> None:
    found = timeline("5_6.commit", "5_8.savepoint", "20_21.commit")
    assert found.is_committed(at(5))
    assert found.is_committed(at(10))
    only = timeline("5_6.commit", "5_8.savepoint")
    assert not only.is_committed(at(10))
    assert only.is_committed(at(4))


def test_an_empty_timeline_has_committed_nothing() -> None:
    assert not Timeline().is_committed(at(1))
    assert Timeline().latest_time() is None


def test_filters_keep_what_is_archived() -> None:
    found = timeline("10_11.commit", "12_13.clean")
    assert found.pending().is_committed(at(9))
    assert not found.of_actions(Action.CLEAN).is_committed(at(10))


def test_latest_time_is_over_requested_and_completion_times_and_unknown_names() -> None:
    assert timeline("1_30.commit", "7.inflight").latest_time() == at(30)
    assert timeline("1_3.commit", "7.inflight").latest_time() == at(7)
    later = timeline("1_3.commit", unknown=[f"{at(8)}_{at(9)}.future", "99999999999999999.commit"])
    assert later.latest_time() == at(9)


def test_a_timeline_is_a_timeline_view() -> None:
    assert isinstance(Timeline(), TimelineView)
