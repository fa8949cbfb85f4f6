"""Writers in two processes at a time: who is refused, who conflicts, and that nothing is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import ConcurrentWriterError
from hudi_core.model.instant import Action
from tests.tables import SCHEMA, new_table

SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "file_system",
}
# what a reader of the heartbeat's age would bury at once: the lock on the file must decide
HASTY = {
    "hoodie.client.heartbeat.interval_in_ms": "10",
    "hoodie.client.heartbeat.tolerable.misses": "1",
}
PATIENCE_S = 60.0


class Nursery(Protocol):
    def run(self, **job: Any) -> dict[str, Any]: ...


def batch(*rows: tuple[str, str, int]) -> list[dict[str, Any]]:
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]


OLD = batch(("a", "x", 0), ("b", "y", 0))


def read(path: Path) -> list[tuple[str, int]]:
    own = hudi.Table.open(str(path)).to_arrow().to_pylist()
    foreign = [row for part in hudi_rs.HudiTable(str(path)).read() for row in part.to_pylist()]
    found = sorted((row["id"], row["ts"]) for row in own)
    assert sorted((row["id"], row["ts"]) for row in foreign) == found
    return found


def completed(path: Path) -> list[str]:
    return [
        str(one.requested_time) for one in hudi.Table.open(str(path)).timeline.completed_writes()
    ]


class Paused:
    """A writer that has begun and waits in the middle of its rows."""

    def __init__(self, nursery: Nursery, path: Path, **job: Any) -> None:
        self._nursery = nursery
        self._signal = str(path.parent / "pause")
        self.process = nursery.run(
            path=str(path), background=True, pause=self._signal, operation="upsert", **job
        )["process"]
        deadline = time.monotonic() + PATIENCE_S
        while not os.path.exists(self._signal + ".waits"):
            assert time.monotonic() < deadline, "the writer never got that far"
            time.sleep(0.005)

    def go_on(self) -> dict[str, Any]:
        Path(self._signal + ".go").touch()
        return self._nursery.run(wait=self.process)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "table"
    table = new_table(path, SCHEMA, ordering_field=None, name="two")
    table.insert(pa.Table.from_pylist(OLD, SCHEMA))
    yield path
    # whatever happened, the table works on
    hudi.Table.open(str(path)).upsert(pa.Table.from_pylist(batch(("last", "x", 1)), SCHEMA))
    assert ("last", 1) in read(path)
    timeline = hudi.Table.open(str(path)).timeline
    times = [one.requested_time for one in timeline.instants]
    times += [one.completion_time for one in timeline.instants if one.completion_time]
    assert len(set(times)) == len(times)


def test_a_second_writer_is_refused_while_the_first_lives(path: Path, nursery: Nursery) -> None:
    first = Paused(nursery, path, rows=batch(("a", "x", 1)))

    for options in (None, HASTY):
        second = nursery.run(
            path=str(path), operation="upsert", rows=batch(("b", "y", 9)), options=options
        )
        assert second["error"] == "ConcurrentWriterError"
        assert "OPTIMISTIC_CONCURRENCY_CONTROL" in second["message"]
    with pytest.raises(ConcurrentWriterError):
        hudi.Table.open(str(path)).rollback(completed(path)[-1])
    assert read(path) == [("a", 0), ("b", 0)]

    assert "error" not in first.go_on()
    assert read(path) == [("a", 1), ("b", 0)]
    actions = {one.action for one in hudi.Table.open(str(path)).timeline.instants}
    assert Action.ROLLBACK not in actions


def test_writers_of_different_file_groups_both_commit(path: Path, nursery: Nursery) -> None:
    first = Paused(nursery, path, rows=batch(("a", "x", 1), ("new", "z", 1)), options=SHARED)
    options = {**SHARED, **HASTY}
    second = nursery.run(
        path=str(path), operation="upsert", rows=batch(("b", "y", 2)), options=options
    )
    assert "error" not in second
    assert read(path) == [("a", 0), ("b", 2)]

    answer = first.go_on()
    assert "error" not in answer
    assert read(path) == [("a", 1), ("b", 2), ("new", 1)]
    # the first began first and was complete last; changes are told by completion
    assert answer["instants"][0][0] < second["instants"][0][0]
    assert answer["instants"][0][1] > second["instants"][0][1]
    changed = hudi.Table.open(str(path)).incremental(second["instants"][0][1])
    assert sorted(changed.column("id").to_pylist()) == ["a", "new"]


def test_the_later_of_two_writers_of_one_file_group_is_refused(
    path: Path, nursery: Nursery
) -> None:
    first = Paused(nursery, path, rows=batch(("a", "x", 1), ("b", "y", 1)), options=SHARED)
    second = nursery.run(
        path=str(path), operation="upsert", rows=batch(("b", "y", 2)), options=SHARED
    )
    assert "error" not in second

    answer = first.go_on()
    assert answer["error"] == "CommitConflictError"
    assert second["instants"][0][0] in answer["message"]
    assert read(path) == [("a", 0), ("b", 2)]
    dead = {name.name[:17] for name in (path / ".hoodie/timeline").glob("*.inflight")}
    assert dead <= {str(one.requested_time) for one in hudi.Table.open(str(path)).timeline.instants}
    instants = hudi.Table.open(str(path)).timeline.instants
    assert all(one.is_completed for one in instants)


def test_of_two_writers_of_one_version_one_commits(path: Path, nursery: Nursery) -> None:
    once = {
        **SHARED,
        "hoodie.write.idempotency.application": "job",
        "hoodie.write.idempotency.version": "1",
    }
    first = Paused(nursery, path, rows=batch(("new", "z", 1), ("b", "y", 1)), options=once)
    second = nursery.run(
        path=str(path), operation="upsert", rows=batch(("new", "z", 1), ("b", "y", 1)), options=once
    )
    assert "error" not in second
    answer = first.go_on()
    assert "error" not in answer
    assert answer["instants"] == second["instants"]
    assert read(path) == [("a", 0), ("b", 1), ("new", 1)]


def test_a_killed_writer_beside_a_live_one_is_rolled_back_alone(
    path: Path, nursery: Nursery
) -> None:
    live = Paused(nursery, path, rows=batch(("a", "x", 1)), options=SHARED)
    killed = nursery.run(
        path=str(path), operation="upsert", rows=batch(("b", "y", 2)), options=SHARED, at=20
    )
    assert killed["killed"]
    third = nursery.run(
        path=str(path), operation="upsert", rows=batch(("b", "y", 3)), options=SHARED
    )
    assert "error" not in third
    assert "error" not in live.go_on()
    assert read(path) == [("a", 1), ("b", 3)]
    instants = hudi.Table.open(str(path)).timeline.instants
    assert [one.action for one in instants].count(Action.ROLLBACK) == 1


def test_two_processes_commit_ten_times_each(path: Path, nursery: Nursery) -> None:
    writers = [
        nursery.run(
            path=str(path),
            operation="upsert",
            rows=batch((name, part, 0)),
            options=SHARED,
            times=10,
            background=True,
        )["process"]
        for name, part in (("a", "x"), ("b", "y"))
    ]
    answers = [nursery.run(wait=process) for process in writers]

    pairs = [pair for answer in answers for pair in answer["instants"]]
    assert [answer.get("error") for answer in answers] == [None, None]
    assert len(pairs) == 20
    times = [time for pair in pairs for time in pair]
    assert len(set(times)) == 40
    for answer in answers:
        own = [time for pair in answer["instants"] for time in pair]
        assert own == sorted(own)
    assert sorted(pair[0] for pair in pairs) == completed(path)[1:]
    assert read(path) == [("a", 9), ("b", 9)]
