"""Times of a table grow, whatever the clocks of its writers say."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hudi_core.errors import TimelineError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, instant_time_of, to_datetime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.timeline import Timeline

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def active(tmp_path: Path) -> ActiveTimeline:
    return ActiveTimeline(PosixStorage(str(tmp_path), fsync=False), ".hoodie/timeline")


def at(milliseconds: float) -> InstantTime:
    return instant_time_of(NOON + timedelta(milliseconds=milliseconds))


def commit(active: ActiveTimeline, time: InstantTime, completion: InstantTime | None) -> None:
    instant = active.create_requested(Instant(time, Action.COMMIT, State.REQUESTED))
    if completion is not None:
        active.complete(instant, completion, b"x")


def test_the_clock_tells_the_time(active: ActiveTimeline) -> None:
    assert TimelineClock(active, lambda: NOON).next_time() == "20260301120000000"


def test_the_machines_clock_is_the_default(active: ActiveTimeline) -> None:
    before = datetime.now(UTC)
    time = to_datetime(TimelineClock(active).next_time())
    assert before - timedelta(milliseconds=1) < time <= datetime.now(UTC)


def test_times_grow_while_the_clock_stands(active: ActiveTimeline) -> None:
    clock = TimelineClock(active, lambda: NOON)
    assert [clock.next_time() for _ in range(3)] == [at(0), at(1), at(2)]


def test_two_clocks_of_one_table_share_what_they_handed_out(active: ActiveTimeline) -> None:
    again = ActiveTimeline(active.storage, active.folder)
    assert TimelineClock(active, lambda: NOON).next_time() == at(0)
    assert TimelineClock(again, lambda: NOON).next_time() == at(1)


def test_another_table_has_times_of_its_own(active: ActiveTimeline) -> None:
    other = ActiveTimeline(active.storage, ".hoodie/metadata/.hoodie/timeline")
    assert TimelineClock(active, lambda: NOON).next_time() == at(0)
    assert TimelineClock(other, lambda: NOON).next_time() == at(0)


@pytest.mark.parametrize(
    ("requested", "completion", "expected"),
    [(5, None, 6), (5, 8, 9), (-20, -10, 0), (0, 23 * 3_600_000, 23 * 3_600_000 + 1)],
)
def test_times_are_later_than_all_on_the_timeline(
    active: ActiveTimeline, requested: int, completion: int | None, expected: int
) -> None:
    commit(active, at(requested), None if completion is None else at(completion))
    assert TimelineClock(active, lambda: NOON).next_time() == at(expected)


def test_a_clock_set_back_does_not_set_times_back(active: ActiveTimeline) -> None:
    timestamps = iter([NOON, NOON - timedelta(hours=2), NOON + timedelta(hours=1)])
    clock = TimelineClock(active, lambda: next(timestamps))
    assert [clock.next_time() for _ in range(3)] == [at(0), at(1), at(3_600_000)]


def test_the_times_of_a_metadata_tables_first_instants_are_no_dates(active: ActiveTimeline) -> None:
    commit(active, InstantTime("00000000000000000"), InstantTime("00000000000000001"))
    assert TimelineClock(active, lambda: NOON).next_time() == at(0)


def test_a_timeline_a_day_ahead_is_an_error(active: ActiveTimeline) -> None:
    day = 24 * 3_600_000
    commit(active, at(0), at(day + 1))
    with pytest.raises(TimelineError, match="more than a day ahead"):
        TimelineClock(active, lambda: NOON).next_time()
    assert TimelineClock(active, lambda: NOON + timedelta(seconds=1)).next_time() == at(day + 2)


def test_a_timeline_at_hand_saves_the_listing(active: ActiveTimeline) -> None:
    commit(active, at(50), None)
    clock = TimelineClock(active, lambda: NOON)
    assert clock.next_time(Timeline()) == at(0)
    assert clock.next_time() == at(51)


def test_threads_without_a_lock_never_share_a_time(active: ActiveTimeline) -> None:
    times: list[InstantTime] = []
    start = threading.Barrier(4)

    def ask() -> None:
        clock = TimelineClock(ActiveTimeline(active.storage, active.folder), lambda: NOON)
        start.wait()
        times.extend(clock.next_time() for _ in range(25))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(times)) == 100


WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from filelock import FileLock
from hudi_core.model.instant import Action, Instant, State
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock

base, skew = sys.argv[1], timedelta(seconds=int(sys.argv[2]))
active = ActiveTimeline(PosixStorage(base, fsync=False), ".hoodie/timeline")
clock = TimelineClock(active, lambda: datetime.now(UTC) + skew)
lock = FileLock(base + ".lock")
for _ in range(10):
    with lock:
        instant = Instant(clock.next_time(), Action.COMMIT, State.REQUESTED)
        active.create_requested(instant)
    with lock:
        time = clock.next_time()
        active.complete(instant, time, b"x")
        with open(base + ".order", "a") as order:
            order.write(time + "\\n")
"""


def test_processes_with_skewed_clocks_and_one_lock_complete_in_growing_order(
    tmp_path: Path,
) -> None:
    base = tmp_path / "table"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(base), skew]) for skew in ("-40", "40")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]

    order = base.with_suffix(".order").read_text().split()
    timeline = ActiveTimeline(PosixStorage(str(base), fsync=False), ".hoodie/timeline").load()
    assert len(timeline.completed_writes()) == len(order) == 20
    assert order == sorted(set(order))
    times = [one.requested_time for one in timeline] + order
    assert len(set(times)) == 40
