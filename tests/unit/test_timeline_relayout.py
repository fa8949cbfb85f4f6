"""Completion times of a timeline of layout 1, and its archive as rows of the history."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hudi_core.errors import TableServiceError
from hudi_core.model.instant import Instant, parse_file_name_v1
from hudi_core.model.timeline_zone import UTC_TIMELINE, TimelineZone
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.archive_rows import history_rows
from hudi_core.timeline.relayout import completion_times
from tests.unit.test_timeline_archive_log import ARCHIVE, SCHEMA_HEADER, at, block, entries, put

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3_600_000


def stored_at(digits: str) -> int:
    """Return milliseconds since the epoch of digits in UTC."""
    when = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return round((when - EPOCH).total_seconds()) * 1000 + int(digits[14:])


def listing(**files: int) -> dict[Instant, int]:
    """Return instants of layout 1 by their files' names, with dates."""
    found = {}
    for name, date in files.items():
        instant = parse_file_name_v1(name.removeprefix("_").replace("__", "."))
        assert instant is not None
        found[instant] = date
    return found


def completed(stored: dict[Instant, int], zone: TimelineZone = UTC_TIMELINE) -> dict[str, str]:
    return {
        f"{one.requested_time} {one.action}": done
        for one, done in completion_times(stored, zone).items()
    }


FIRST, SECOND = "20260301120000500", "20260301120010000"


def test_the_dates_of_originals_count() -> None:
    # two writers: the first one ends last; and a savepoint of the first commit, made later
    stored = listing(
        _20260301120000500__commit__requested=stored_at("20260301120000499"),
        _20260301120000500__commit=stored_at("20260301120020007"),
        _20260301120010000__clean__requested=stored_at("20260301120010002"),
        _20260301120010000__clean=stored_at("20260301120011000"),
        _20260301120000500__savepoint__inflight=stored_at("20260301130000000"),
        _20260301120000500__savepoint=stored_at("20260301130000001"),
    )
    assert completed(stored) == {
        f"{FIRST} commit": "20260301120020007",
        f"{SECOND} clean": "20260301120011000",
        f"{FIRST} savepoint": "20260301130000001",
    }


def test_dates_are_read_in_the_zone_of_the_table() -> None:
    stored = listing(
        _20260301120000500__commit__requested=stored_at("20260301120000600") + 5 * HOUR,
        _20260301120000500__commit=stored_at("20260301120003000") + 5 * HOUR,
    )
    assert completed(stored, TimelineZone("-05:00")) == {f"{FIRST} commit": "20260301120003000"}
    # in another zone they are no originals
    assert completed(stored) == {f"{FIRST} commit": "20260301120000501"}


def test_the_dates_of_copies_do_not_count() -> None:
    later = stored_at("20260405120000000")
    copied = listing(
        _20260301120000500__commit__requested=later,
        _20260301120000500__commit=later,
        _20260301120010000__commit__requested=stored_at("20260301120010001"),
        _20260301120010000__commit=stored_at("20260301120012000"),
    )
    assert completed(copied) == {
        f"{FIRST} commit": "20260301120000501",
        f"{SECOND} commit": "20260301120012000",
    }
    # copied within minutes, in no order
    just_now = listing(
        _20260301120000500__commit__requested=stored_at("20260301120100007"),
        _20260301120000500__commit=stored_at("20260301120100009"),
        _20260301120010000__commit__requested=stored_at("20260301120100003"),
        _20260301120010000__commit=stored_at("20260301120100001"),
    )
    assert completed(just_now) == {
        f"{FIRST} commit": "20260301120000501",
        f"{SECOND} commit": "20260301120010001",
    }


def test_no_time_is_there_twice_and_none_before_its_request() -> None:
    second = stored_at("20260301120010000")
    stored = listing(
        # dates of whole seconds
        _20260301120009100__commit__requested=second - 1000,
        _20260301120009100__commit=second,
        _20260301120009900__commit__requested=second - 1000,
        _20260301120009900__commit=second,
        _20260301120010500__commit__requested=second,
        _20260301120010500__commit=second,
        _20260301120011__commit=second,
    )
    assert completed(stored) == {
        "20260301120009100 commit": "20260301120010000",
        "20260301120009900 commit": "20260301120010001",
        "20260301120010500 commit": "20260301120010501",
        "20260301120011 commit": "20260301120011001",
    }


def test_an_archive_becomes_rows_of_completed_instants(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path), fsync=False)
    newer = entries((7, "commit", "COMPLETED"), (9, "commit", "INFLIGHT"))
    older = entries(
        *((1, "commit", "REQUESTED"), (1, "commit", "COMPLETED"), (3, "clean", None)),
        *((5, "commit", "COMPLETED"), (1, "commit", "COMPLETED")),
    )
    put(tmp_path, ".commits_.archive.10_1-0-1", block(newer, SCHEMA_HEADER))
    put(tmp_path, ".commits_.archive.9_1-0-1", block(older, SCHEMA_HEADER))
    rows = list(history_rows(storage, ARCHIVE, {(at(5), "commit")}))
    assert [row[:3] for row in rows] == [
        (at(1), f"{at(1)[:-1]}2", "commit"),
        (at(3), f"{at(3)[:-1]}4", "clean"),
        (at(7), f"{at(7)[:-1]}8", "commit"),
    ]
    # schemas of the first releases have no place for some bodies
    assert {(row.metadata, row.plan) for row in rows} == {(None, None)}


def test_an_archived_action_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path), fsync=False)
    put(tmp_path, ".commits_.archive.1", block(entries((1, "future", None)), SCHEMA_HEADER))
    with pytest.raises(TableServiceError, match="future"):
        list(history_rows(storage, ARCHIVE, ()))
