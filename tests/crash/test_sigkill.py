"""A writer is killed at some moment: readers see the old rows or the new ones, nothing else.

What changes the disk is counted; a writer dies at one of these steps, before it, after it or with
half of its bytes written, or simply after a while. The next writer, in a process of its own, must
make good whatever the dead one left.
"""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.model.instant import Action, State
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.serde import decode_rollback, decode_rollback_plan
from tests.tables import SCHEMA, new_table

OPERATIONS = ("upsert", "insert", "bulk_insert", "delete")
MOMENTS = 20

Rows = frozenset[tuple[str, str, int]]


class Nursery(Protocol):
    def run(self, **job: Any) -> dict[str, Any]: ...


def named(*rows: tuple[str, str, int]) -> list[dict[str, Any]]:
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]


# two partitions that are there, and one that this write makes
OLD = named(("a", "x", 0), ("b", "x", 0), ("c", "y", 0), ("d", "y", 0))
BATCH = {
    "upsert": named(("a", "x", 5), ("c", "y", 5), ("n", "z", 5)),
    "insert": named(("m", "x", 5), ("n", "z", 5)),
    "bulk_insert": named(("m", "x", 5), ("n", "z", 5)),
    "delete": named(("a", "x", 5), ("c", "y", 5)),
}


def distinct_rows(found: list[dict[str, Any]]) -> Rows:
    rows = [(row["id"], row["part"], row["ts"]) for row in found]
    assert len(set(rows)) == len(rows)
    return frozenset(rows)


def after(operation: str) -> Rows:
    held = {row["id"]: row for row in OLD}
    for row in BATCH[operation]:
        if operation == "delete":
            held.pop(row["id"])
        else:
            held[row["id"]] = row
    return distinct_rows(list(held.values()))


def read(path: Path) -> Rows:
    """Return what both readers see; it must be the same."""
    own = distinct_rows(hudi.Table.open(str(path)).to_arrow().to_pylist())
    batches = hudi_rs.HudiTable(str(path)).read()
    assert distinct_rows([row for batch in batches for row in batch.to_pylist()]) == own
    return own


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sigkill") / "template"
    table = new_table(path, SCHEMA, ordering_field=None, name="killed")
    table.insert(pa.Table.from_pylist(OLD, SCHEMA))
    return path


@pytest.fixture(scope="module")
def lengths(template: Path, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Count the steps of every operation."""
    folder = tmp_path_factory.mktemp("lengths")
    counted = {}
    for operation in OPERATIONS:
        shutil.copytree(template, folder / operation)
        answer = nursery.run(
            path=str(folder / operation), operation=operation, rows=BATCH[operation]
        )
        assert "steps" in answer, answer
        counted[operation] = answer["steps"]
        assert read(folder / operation) == after(operation)
    return counted


def timestamps() -> Iterator[Any]:
    chosen = random.Random(93)
    for number in range(MOMENTS):
        operation = OPERATIONS[number % len(OPERATIONS)]
        if number % 5 == 4:
            yield operation, None, chosen.uniform(0.0, 0.12)
        else:
            yield operation, chosen.random(), chosen.choice(["before", "after", "torn"])


@pytest.mark.parametrize(("operation", "share", "how"), list(timestamps()))
def test_a_killed_writer_changes_nothing_or_everything(
    operation: str,
    share: float | None,
    how: Any,
    template: Path,
    lengths: dict[str, int],
    nursery: Nursery,
    tmp_path: Path,
) -> None:
    path = tmp_path / "table"
    shutil.copytree(template, path)
    job: dict[str, Any] = {"operation": operation, "rows": BATCH[operation], "path": str(path)}
    if share is None:
        job["kill_after"] = how
    else:
        job |= {"at": 1 + int(share * lengths[operation]), "how": how}
    killed = nursery.run(**job)
    if share is not None:
        assert killed == {"killed": signal.SIGKILL}
    check_aftermath(path, operation, killed, nursery)


def check_aftermath(path: Path, operation: str, killed: dict[str, Any], nursery: Nursery) -> None:
    timeline = hudi.Table.open(str(path)).timeline
    writes = [one for one in timeline.instants if one.action is Action.COMMIT]
    dead = [one for one in writes if not one.is_completed]
    held = read(path)
    completed = len(writes) - len(dead)
    assert held == (after(operation) if completed == 2 else after_nothing())
    assert completed == 2 or not killed.get("instants")  # who was told of success sees it

    next_row = named(("z", "x", 9))
    answer = nursery.run(path=str(path), operation="upsert", rows=next_row)

    assert answer["killed"] == 0
    assert answer["instants"]
    assert read(path) == held | distinct_rows(next_row)
    check_times(path)
    times = [str(one.requested_time) for one in dead]
    check_rollbacks(path, times)
    check_nothing_left(path, times)


def after_nothing() -> Rows:
    return distinct_rows(OLD)


def check_times(path: Path) -> None:
    """Every time on the timeline is there once, and requests and completions both grow."""
    instants = hudi.Table.open(str(path)).timeline.instants
    times = [one.requested_time for one in instants]
    times += [one.completion_time for one in instants if one.completion_time]
    assert len(set(times)) == len(times)
    assert all(one.completion_time and one.requested_time < one.completion_time for one in instants)


def check_rollbacks(path: Path, dead: list[str]) -> None:
    """Every dead write was rolled back, with a plan and metadata that say so."""
    client = hudi.Table.open(str(path))._session.opened.client
    active: ActiveTimeline = client.active
    rolled: list[str] = []
    for one in client.timeline().instants:
        if one.action is not Action.ROLLBACK:
            continue
        metadata = decode_rollback(active.read(one), active.path(one))
        requested = one.to(State.REQUESTED)
        plan = decode_rollback_plan(active.read(requested), active.path(requested))
        assert plan.instant_to_rollback is not None
        assert [plan.instant_to_rollback.commit_time] == list(metadata.commits_rollback)
        rolled += metadata.commits_rollback
    assert rolled == dead


def check_nothing_left(path: Path, dead: list[str]) -> None:
    """Nothing remains of a dead writer: no data, no timeline file, no marker, no heartbeat."""
    table = hudi.Table.open(str(path))
    known = {one.requested_time for one in table.timeline.instants}
    data = [file.name for file in path.rglob("*.parquet")]
    assert {name.rsplit("_", 1)[1].removesuffix(".parquet") for name in data} <= known
    listed = {base.status.name for one in table.file_slices() if (base := one.base_file)}
    assert listed <= set(data)
    meta = path / ".hoodie"
    files = [file for file in path.rglob("*") if file.is_file()]
    # a half-written file that no reader and no listing looks at; there can be just one
    hidden = [file for file in files if file.name.startswith(TEMPORARY_PREFIX)]
    assert len(hidden) <= 1
    files = [file for file in files if file not in hidden]
    timeline = {file.name[:17] for file in files if file.parent == meta / "timeline"}
    assert timeline == known
    assert [file for file in files if meta / ".temp" in file.parents] == []
    # a heartbeat that began before its instant, and had not said yet on which machine
    hearts = {file.name for file in files if meta / ".heartbeat" in file.parents}
    assert len(hearts) <= 1
    assert not hearts & (known | set(dead))
