"""Timelines in local time: digits and times, clocks that go back, and writers in other zones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.clean_plan import CleanRules, retain
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.time_zone import process_zone
from hudi_core.errors import OptionConflictError, TimelineError, TimeOutOfRangeError
from hudi_core.metadata.key_index.key_records import index_millis
from hudi_core.model.instant import Action, Instant, State, file_name_v2
from hudi_core.model.instant_time import UTC_TIMELINE, InstantTime, TimelineZone
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock, require_same_zone
from hudi_core.timeline.timeline import Timeline
from tests.tables import new_table

WEST, EAST = "America/Los_Angeles", "Asia/Tokyo"
AUTUMN = datetime(2026, 11, 1, 9, tzinfo=UTC)
"""When clocks in Los Angeles go back from 2 to 1."""
MINUTES = timedelta(minutes=1)


def local(zone: str, moment: datetime) -> InstantTime:
    return TimelineZone(zone).digits(moment)


# --- digits and times
@pytest.mark.parametrize(
    ("zone", "digits"),
    [
        ("UTC", "20261122103000123"),
        (WEST, "20261122023000123"),
        (EAST, "20261122193000123"),
        ("Asia/Kathmandu", "20261122161500123"),
        ("-03:30", "20261122070000123"),
    ],
)
def test_digits_are_what_clocks_of_the_zone_show(zone: str, digits: str) -> None:
    moment = datetime(2026, 11, 22, 10, 30, 0, 123_999, UTC)
    assert TimelineZone(zone).digits(moment) == digits
    assert TimelineZone(zone).utc_datetime(InstantTime(digits)) == moment.replace(
        microsecond=123_000
    )
    assert TimelineZone(zone).epoch_millis(InstantTime(digits)) == 1_795_343_400_123


@pytest.mark.parametrize(
    ("digits", "utc"),
    [
        ("20261101013000000", "2026-11-01T08:30"),  # shown twice: the first counts
        ("20261101020000000", "2026-11-01T10:00"),
        ("20260308023000000", "2026-03-08T10:30"),  # never shown: by the offset before
    ],
)
def test_hours_shown_twice_or_never_are_read_as_java_reads_them(digits: str, utc: str) -> None:
    expected = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert TimelineZone(WEST).utc_datetime(InstantTime(digits)) == expected


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let this process run in another zone."""

    def change(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("given", "name", "digits"),
    [
        (WEST, WEST, "20260630170000000"),
        (f":/usr/share/zoneinfo/{EAST}", EAST, "20260701090000000"),
        ("", "UTC", "20260701000000000"),
        ("XYZ-05:45", None, "20260701054500000"),  # a rule without a name
    ],
)
def test_the_zone_of_the_process(
    in_zone: Callable[[str], None], given: str, name: str | None, digits: str
) -> None:
    in_zone(given)
    assert process_zone() == name
    assert TimelineZone(name).digits(datetime(2026, 7, 1, tzinfo=UTC)) == digits


def test_a_clean_by_hours_counts_them_in_the_zone_of_the_timeline() -> None:
    now = datetime(2026, 7, 2, 12, tzinfo=UTC)
    commits = [local(EAST, now - timedelta(hours=hours)) for hours in (30, 20, 2)]
    timeline = Timeline.of(
        Instant(each, Action.COMMIT, State.COMPLETED, InstantTime(str(int(each) + 1)))
        for each in commits
    )
    rules = CleanRules(CleanPolicy.KEEP_LATEST_BY_HOURS, hours_retained=24)
    found = retain(timeline, rules, now, TimelineZone(EAST)).earliest
    assert found is not None
    assert found.requested_time == commits[1]


# --- the clock
@pytest.fixture
def active(tmp_path: Path) -> ActiveTimeline:
    return ActiveTimeline(PosixStorage(str(tmp_path), fsync=False), ".hoodie/timeline")


def put(active: ActiveTimeline, name: str, stored: datetime, body: bytes = b"x") -> None:
    path = Path(active.storage.root, active.folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    os.utime(path, (stored.timestamp(), stored.timestamp()))


def write(
    active: ActiveTimeline,
    zone: str,
    begun: datetime,
    seconds: float = 5,
    copied: datetime | None = None,
    body: bytes = b"x",
) -> None:
    """Put the files of one commit as a writer in a zone does, or as a copy of them looks."""
    done = begun + timedelta(seconds=seconds)
    times = local(zone, begun), local(zone, done)
    requested = Instant(times[0], Action.COMMIT, State.REQUESTED)
    for instant, at in (
        (requested, begun),
        (requested.to(State.INFLIGHT), begun),
        (requested.to(State.COMPLETED, times[1]), done),
    ):
        put(active, file_name_v2(instant), copied or at + timedelta(seconds=0.3), body)


def test_times_go_on_through_the_hour_that_clocks_show_twice(active: ActiveTimeline) -> None:
    timestamps = [AUTUMN + minutes * MINUTES for minutes in (-61, -1, 1, 30, 59, 61)]
    shown = iter(timestamps)
    clock = TimelineClock(active, lambda: next(shown), TimelineZone(WEST))
    times = [clock.next_time() for _ in timestamps]
    assert times == [
        "20261101005900000",
        "20261101015900000",
        "20261101015900001",
        "20261101015900002",
        "20261101015900003",
        "20261101020100000",
    ]


def test_the_newest_time_may_be_two_hours_ahead_and_no_more(active: ActiveTimeline) -> None:
    now, zone = datetime(2026, 7, 1, 12, tzinfo=UTC), TimelineZone(WEST)
    write(active, WEST, now + timedelta(hours=2, seconds=-6))
    assert TimelineClock(active, lambda: now, zone).next_time() == "20260701065959001"
    with pytest.raises(TimelineError, match=f"two hours ahead.*{WEST}.*{TableKeys.local_zone.key}"):
        TimelineClock(active, lambda: now - 2 * MINUTES, zone).next_time()


# --- what files show of their writer's zone
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("zone", [WEST, EAST, "Asia/Kathmandu", "Pacific/Kiritimati", "UTC"])
def test_a_writer_in_another_zone_is_seen(active: ActiveTimeline, zone: str) -> None:
    write(active, zone, NOON)
    require_same_zone(active, TimelineZone(zone))
    require_same_zone(active, UTC_TIMELINE)  # says that it is in UTC, and is not looked at
    with pytest.raises(TimelineError) as caught:
        require_same_zone(active, TimelineZone("Europe/Paris"))
    assert "Europe/Paris, then at UTC+02:00" in str(caught.value)
    offset = TimelineZone(zone).offset_at(NOON)
    hours, minutes = divmod(abs(offset) // MINUTES, 60)
    sign = "-" if offset < timedelta(0) else "+"
    assert f"clocks at UTC{sign}{hours:02}:{minutes:02}" in str(caught.value)


def test_the_offset_is_that_of_the_time_when_the_file_was_made(active: ActiveTimeline) -> None:
    for minutes in (-300, -70, 100, 300):  # around a change of clocks
        write(active, WEST, AUTUMN + minutes * MINUTES)
        require_same_zone(active, TimelineZone(WEST))
    with pytest.raises(TimelineError, match=r"UTC-08:00"):
        require_same_zone(active, TimelineZone("America/Denver"))


def test_times_counted_on_from_say_nothing_of_a_zone(active: ActiveTimeline) -> None:
    write(active, WEST, AUTUMN - 1 * MINUTES)
    newest = datetime(2026, 11, 1, 1, 59, 6, tzinfo=UTC)
    for number, minutes in enumerate((5, 20, 40)):
        times = [newest + timedelta(milliseconds=2 * number + each) for each in (0, 1)]
        requested, completed = (UTC_TIMELINE.digits(each) for each in times)
        instant = Instant(requested, Action.COMMIT, State.REQUESTED)
        put(active, file_name_v2(instant), AUTUMN + minutes * MINUTES)
        done = instant.to(State.COMPLETED, completed)
        put(active, file_name_v2(done), AUTUMN + minutes * MINUTES + timedelta(seconds=2))
    require_same_zone(active, TimelineZone(WEST))


@pytest.mark.parametrize("passed", [timedelta(minutes=15), timedelta(hours=3), timedelta(days=90)])
def test_a_copy_says_nothing_of_a_zone(active: ActiveTimeline, passed: timedelta) -> None:
    for minutes in (0, 1, 3):
        write(active, EAST, NOON + minutes * MINUTES, copied=NOON + 4 * MINUTES + passed)
    require_same_zone(active, TimelineZone(WEST))


def test_the_last_writer_decides(active: ActiveTimeline) -> None:
    write(active, "Europe/Paris", NOON)
    write(active, EAST, NOON + 30 * MINUTES)
    require_same_zone(active, TimelineZone(EAST))
    with pytest.raises(TimelineError, match=r"clocks at UTC\+09:00"):
        require_same_zone(active, TimelineZone("Europe/Paris"))


def test_one_quick_commit_alone_says_nothing(active: ActiveTimeline) -> None:
    write(active, EAST, NOON, seconds=0.5)
    require_same_zone(active, TimelineZone(WEST))
    write(active, EAST, NOON + 5 * MINUTES, seconds=0.5)
    with pytest.raises(TimelineError, match=r"clocks at UTC\+09:00"):
        require_same_zone(active, TimelineZone(WEST))


# --- tables
ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


@pytest.fixture
def local_table(tmp_path: Path) -> Path:
    """A table that does not say in which zone its instants are, as Apache Hudi makes it."""
    path = tmp_path / "table"
    new_table(path, ROWS.schema, {"hoodie.metadata.enable": "false"})
    for properties in path.rglob("hoodie.properties"):
        lines = properties.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith("hoodie.table.timeline.timezone")]
        assert len(kept) < len(lines)
        properties.write_text("".join(kept))
    return path


def opened(path: Path, zone: str, more: Mapping[str, str] | None = None) -> hudi.Table:
    return hudi.Table.open(str(path), options={TableKeys.local_zone.key: zone, **(more or {})})


@pytest.mark.parametrize("zone", [WEST, EAST])
def test_a_local_table_gets_instants_of_the_declared_zone(local_table: Path, zone: str) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    result = opened(local_table, zone).upsert(ROWS)
    # times are unique: those that are handed out in one millisecond are ahead of the clock
    after = datetime.now(UTC) + timedelta(milliseconds=2)

    first, last = local(zone, before), local(zone, after)
    done = result.instant.completion_time
    assert done is not None
    assert first <= result.instant.requested_time < done <= last
    # the metadata table goes by the same clock
    metadata = open_table(str(local_table / ".hoodie/metadata"), {}).client.timeline()
    assert first <= str(metadata.latest_time()) <= last


def test_the_record_index_dates_its_rows_by_the_zone(local_table: Path) -> None:
    given = {"hoodie.metadata.record.index.enable": "true", TableKeys.local_zone.key: EAST}
    result = hudi.Table.open(str(local_table), options=given).upsert(ROWS)
    client = open_table(str(local_table), given).client
    millis = index_millis(result.instant.requested_time, client.config)
    assert abs(millis - time.time() * 1000) < 600_000
    found = hudi.Table.open(str(local_table), options=given).metadata("record_index").to_pylist()
    assert {round(one["instant"].timestamp() * 1000) for one in found} == {millis}


def test_the_zone_of_the_process_counts_where_none_is_declared(
    local_table: Path, in_zone: Callable[[str], None]
) -> None:
    in_zone(EAST)
    before = local(EAST, datetime.now(UTC))
    result = hudi.Table.open(str(local_table)).upsert(ROWS)
    assert before <= result.instant.requested_time <= local(EAST, datetime.now(UTC))


def test_a_write_in_another_zone_is_refused_before_its_first_file(local_table: Path) -> None:
    plain = {"hoodie.metadata.enable": "false"}
    newest = opened(local_table, EAST, plain).upsert(ROWS).instant
    timeline = ActiveTimeline(PosixStorage(str(local_table), fsync=False), ".hoodie/timeline")
    body = timeline.read(newest)
    write(timeline, EAST, datetime.now(UTC) + timedelta(seconds=1), seconds=3, body=body)
    files = present(local_table)
    for zone in (WEST, "UTC"):
        other = opened(local_table, zone, plain)
        changes: list[Callable[[], object]] = [
            lambda: other.upsert(ROWS),  # noqa: B023
            lambda: other.alter(add_columns={"w": pa.int64()}),  # noqa: B023
            lambda: other.rollback(newest),  # noqa: B023
        ]
        for change in changes:
            with pytest.raises(TimelineError, match=r"UTC\+09:00.*" + zone):
                change()
        # only what names a moment asks for the zone
        with pytest.raises(TimelineError, match=r"UTC\+09:00.*" + zone):
            other.to_arrow(as_of="2026-07-01T00:00:00Z")
        assert other.to_arrow(as_of=newest).num_rows == 2
    assert present(local_table) == files


def present(path: Path) -> list[Path]:
    return [one for one in sorted(path.rglob("*")) if ".locks" not in one.parts]


def test_times_of_a_query_are_in_the_zone_of_the_timeline(local_table: Path) -> None:
    table = opened(local_table, EAST)
    first, second = (table.upsert(ROWS.set_column(1, "v", [[n, n]])).instant for n in (5, 6))
    begun = TimelineZone(EAST).utc_datetime(second.requested_time)

    def held(as_of: str) -> set[int]:
        return set(table.to_arrow(as_of=as_of).column("v").to_pylist())

    spellings: list[Callable[[datetime], str]] = [
        datetime.isoformat,
        lambda moment: moment.astimezone(ZoneInfo(WEST)).isoformat(),
        lambda moment: moment.astimezone(ZoneInfo(EAST)).replace(tzinfo=None).isoformat(),
        lambda moment: str(round(moment.timestamp() * 1000)),
    ]
    for spell in spellings:
        assert held(spell(begun)) == {6}
        assert held(spell(begun - timedelta(milliseconds=1))) == {5}
    assert first.completion_time is not None
    done = TimelineZone(EAST).utc_datetime(first.completion_time)
    assert table.incremental(begin=done.isoformat()).column("v").to_pylist() == [6, 6]
    assert hudi.read(
        None,
        str(local_table),
        {"as.of.instant": begun.isoformat()} | {TableKeys.local_zone.key: EAST},
    ).column("v").to_pylist() == [6, 6]


@pytest.mark.parametrize("zone", [WEST, EAST])
def test_now_is_what_clocks_of_the_declared_zone_show(local_table: Path, zone: str) -> None:
    table = opened(local_table, zone)
    table.upsert(ROWS)
    shown = datetime.now(ZoneInfo(zone)).replace(tzinfo=None)
    assert table.to_arrow(as_of=shown).num_rows == 2
    with pytest.raises(TimeOutOfRangeError):
        table.to_arrow(as_of=shown + timedelta(minutes=1))


def test_a_table_may_keep_its_zone(local_table: Path) -> None:
    with (local_table / ".hoodie/hoodie.properties").open("a") as properties:
        properties.write(f"{TableKeys.local_zone.key}={EAST}\n")
    assert hudi.Table.open(str(local_table)).config.zone == TimelineZone(EAST)
    assert opened(local_table, "JST").config.zone == TimelineZone(EAST)
    with pytest.raises(OptionConflictError, match=EAST):
        opened(local_table, WEST)


def test_a_table_in_utc_takes_no_notice_of_a_local_zone(tmp_path: Path) -> None:
    given = {TableKeys.local_zone.key: EAST}
    table = new_table(tmp_path / "t", ROWS.schema, given)
    requested = table.upsert(ROWS).instant.requested_time
    assert abs(UTC_TIMELINE.utc_datetime(requested) - datetime.now(UTC)) < timedelta(hours=1)
