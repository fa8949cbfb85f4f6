"""Times of past states: how users name them, and which of them a table has."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidInstantTimeError, TimeOutOfRangeError
from hudi_core.model.instant_time import InstantTime, parse_query_time, to_datetime
from hudi_core.model.timeline_zone import UTC_TIMELINE
from tests.tables import new_table

EAST = timezone(timedelta(hours=9))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # as Hudi: whole seconds are completed to .999, a date to its begin, digits to nothing
        ("2026-01-31 10:11:12", "20260131101112999"),
        ("2026-01-31T10:11:12", "20260131101112999"),
        ("2026-01-31T10:11:12Z", "20260131101112999"),
        ("2026-01-31T10:11:12+05:30", "20260131044112999"),
        ("2026-01-31 10:11:12.000", "20260131101112000"),
        ("2026-01-31 10:11:12.5", "20260131101112500"),
        ("2026-01-31", "20260131000000000"),
        ("20260131101112", "20260131101112"),
        ("20260131101112000", "20260131101112000"),
    ],
)
def test_what_texts_mean(text: str, expected: str) -> None:
    named = parse_query_time(text, end_of_second=True)
    assert (named if isinstance(named, str) else UTC_TIMELINE.digits(named)) == expected


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """One row, written three times."""
    path = tmp_path_factory.mktemp("timestamps") / "t"
    rows = pa.table({"id": [1], "v": [0]})
    made = new_table(path, rows.schema)
    for value in range(3):
        made.upsert(pa.table({"id": [1], "v": [value]}))
    return made


def writes(table: hudi.Table) -> list[hudi.Instant]:
    return list(table.timeline.completed_writes())


def value(table: hudi.Table, as_of: Any) -> int:
    [found] = table.to_arrow("v", as_of=as_of).column(0).to_pylist()
    return int(found)


def test_moments_of_python(table: hudi.Table) -> None:
    first, second, third = (one.requested_time for one in writes(table))
    at = to_datetime(second)
    for moment in (at, at.replace(tzinfo=None), at.astimezone(EAST)):
        assert value(table, moment) == 1
        assert value(table, moment - timedelta(milliseconds=1)) == 0
        assert hudi.read(None, table.path, {"as.of.instant": moment}).column("v")[0].as_py() == 1
    # the last of the three may be of a later second
    assert value(table, f"{to_datetime(third):%Y-%m-%d %H:%M:%S}") == 2
    assert [value(table, one) for one in (first, third, writes(table)[1])] == [0, 2, 1]
    tomorrow = at.date() + timedelta(days=1)
    assert table.incremental(at.date(), tomorrow, columns="v").to_pydict() == {"v": [2]}


def test_a_span_of_whole_seconds_holds_all_of_them(table: hudi.Table) -> None:
    completed = to_datetime(writes(table)[-1].effective_completion_time)
    second = f"{completed:%Y-%m-%d %H:%M:%S}"
    # the begin itself is not in a span
    expected = [2] if completed.microsecond else []
    assert table.incremental(second, second, columns="v").to_pydict() == {"v": expected}
    assert table.incremental(second, f"{second}.000").num_rows == 0


@pytest.mark.parametrize("wrong", [5, 1.5, ["2026-01-01"]])
def test_what_is_no_time_is_refused(table: hudi.Table, wrong: Any) -> None:
    with pytest.raises(InvalidInstantTimeError, match="is no time"):
        table.to_arrow(as_of=wrong)


@pytest.mark.parametrize(
    "early", ["2020-01-01", date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=EAST), "20200101000000"]
)
def test_before_the_first_commit_there_is_no_state(table: hudi.Table, early: Any) -> None:
    first = writes(table)[0].requested_time
    with pytest.raises(TimeOutOfRangeError, match=f"its first commit is {first}") as caught:
        table.count(as_of=early)
    assert (caught.value.first, caught.value.base_path) == (first, table.path)
    just_before = InstantTime(f"{int(first) - 1}")
    for read in (table.to_arrow, table.to_batches, table.head, table.file_slices):
        with pytest.raises(TimeOutOfRangeError):
            read(as_of=just_before)
    with pytest.raises(TimeOutOfRangeError):
        hudi.read(None, table.path, {"as.of.instant": just_before})
    with pytest.raises(TimeOutOfRangeError):
        table.scan(as_of=just_before).count_rows()


def test_after_now_there_is_no_state(table: hudi.Table) -> None:
    now = datetime.now(UTC)
    assert value(table, now) == 2
    # the second that it is now has an end
    assert value(table, f"{now:%Y-%m-%d %H:%M:%S}") == 2
    for late in (now + timedelta(minutes=5), "2130-01-01", (now + timedelta(days=1)).date()):
        with pytest.raises(TimeOutOfRangeError, match="and now is"):
            table.to_arrow(as_of=late)


def test_a_table_without_commits_has_no_past_states(tmp_path: Path) -> None:
    made = hudi.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    assert made.count() == 0
    with pytest.raises(TimeOutOfRangeError, match="it has no commits"):
        made.count(as_of=datetime.now(UTC))


def test_commit_times_of_rows_stand_for_completions(table: hudi.Table) -> None:
    first, second, third = writes(table)

    def changed(begin: Any, end: Any = None) -> list[Any]:
        return [row["v"] for row in table.incremental(begin, end).to_pylist()]

    assert changed(first.requested_time, second.requested_time) == [1]
    assert changed(first, second) == changed(first.completion_time, second.completion_time) == [1]
    assert changed(third.requested_time) == []
    # what is no time of a commit stays what it is
    before = InstantTime(f"{int(third.requested_time) - 1}")
    assert changed(before) == [2]
    span = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": first.requested_time,
        "hoodie.datasource.read.end.instanttime": second.requested_time,
    }
    assert hudi.read(None, table.path, span).column("v").to_pylist() == [1]
