"""Compaction: plans as Hudi's, a merge that may die anywhere, and plans by somebody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.actions.compaction import (
    complete_compaction,
    merge_slices,
    pending_compactions,
    plan_compaction,
    request_compaction,
    start_compaction,
)
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CompactionOperation, CompactionPlan
from hudi_core.model.commit import WriteStat
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.serde import decode_commit, decode_compaction_plan, encode
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.storage_lister import StorageLister
from tests.hudi_tables import TXNS
from tests.unit.mortal_tables import DEATHS_APART, LOGS, add, at, deaths, open_client

BASE = f"a-0_0-0-0_{at(10)}.hfile"
LOG = f".a-0_{at(20)}.log.1_0-0-0"


def fill(root: Path) -> None:
    files = {BASE: 100, LOG: 7, f"b-0_0-0-0_{at(10)}.hfile": 1, ".hoodie_partition_metadata": 0}
    (root / "files").mkdir(parents=True)
    for name, size in files.items():
        (root / "files" / name).write_bytes(b"x" * size)
    client = open_client(root, LOGS)
    add(client, 10, Action.DELTACOMMIT)
    add(client, 20, Action.DELTACOMMIT)


def view(client: TableMetaClient) -> FileSystemView:
    return FileSystemView(StorageLister(client.storage, True), client.timeline(), {})


def run(client: TableMetaClient, instant: Instant) -> Instant:
    def merge(operation: CompactionOperation, time: InstantTime) -> WriteStat:
        path = f"{operation.partition_path}/{operation.file_id}_0-0-0_{time}.hfile"
        client.storage.put(path, b"merged")
        return WriteStat(operation.file_id, path, partition_path=operation.partition_path)

    work = start_compaction(client, instant)
    metadata = merge_slices(client, work, merge, {"schema": "{}"})
    return complete_compaction(client, work, at(99), metadata)


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    fill(tmp_path / "t")
    return open_client(tmp_path / "t", LOGS)


def test_slices_with_logs_are_planned_and_become_base_files(client: TableMetaClient) -> None:
    plan = plan_compaction(view(client).latest_slices())
    assert plan is not None
    metrics = {f"TOTAL_IO_{name}": 0.0 for name in ("READ_MB", "WRITE_MB", "MB")}
    metrics |= {"TOTAL_LOG_FILES": 1.0, "TOTAL_LOG_FILES_SIZE": 7.0}
    assert plan.operations == (CompactionOperation(at(10), (LOG,), BASE, "a-0", "files", metrics),)
    requested = request_compaction(client, at(50), plan)
    done = run(client, requested)
    assert done == Instant(at(50), Action.COMMIT, State.COMPLETED, at(99))
    timeline = Path(client.storage.root) / ".hoodie/timeline"
    assert {file.name for file in timeline.glob(f"{at(50)}*")} == {
        f"{at(50)}.compaction.requested",
        f"{at(50)}.compaction.inflight",
        f"{at(50)}_{at(99)}.commit",
    }
    metadata = decode_commit(client.active.read(done), "x")
    assert (metadata.compacted, metadata.operation_type) == (True, "COMPACT")
    assert metadata.extra_metadata == {"schema": "{}"}
    [stat] = metadata.partition_to_write_stats["files"]
    assert stat.path == f"files/a-0_0-0-0_{at(50)}.hfile"
    assert plan_compaction(view(client).latest_slices()) is None


def test_a_crash_at_any_step_is_made_good(tmp_path: Path) -> None:
    template = tmp_path / "template"
    fill(template)

    def act(dying: TableMetaClient) -> object:
        pending = pending_compactions(dying.timeline())
        if pending:
            return run(dying, pending[0])
        plan = plan_compaction(view(dying).latest_slices())
        return plan and run(dying, request_compaction(dying, at(50), plan))

    seen = 0
    for path in deaths(template, tmp_path / "copies", act, config=LOGS):
        seen += 1
        client = open_client(path, LOGS)
        act(client)
        commit = client.timeline().find(at(50), Action.COMMIT)
        assert commit == Instant(at(50), Action.COMMIT, State.COMPLETED, at(99))
        [a, _] = view(client).latest_slices()
        assert (a.base_instant, a.log_files) == (at(50), ())
    assert seen * DEATHS_APART > 20


def test_real_plans_are_made_again(real_tables: Callable[[str], Path]) -> None:
    path = real_tables(TXNS) / ".hoodie/metadata"
    storage = PosixStorage(str(path), fsync=False)
    active = ActiveTimeline(storage, ".hoodie/timeline")
    [file] = (path / ".hoodie/timeline").glob("*.compaction.requested")
    time = InstantTime(file.name.partition(".")[0])
    requested = Instant(time, Action.COMPACTION, State.REQUESTED)
    theirs = decode_compaction_plan(active.read(requested), "x")
    before = active.load().where(lambda one: (one.completion_time or "9") < time)
    lister = StorageLister(storage, True)
    ours = plan_compaction(FileSystemView(lister, before, {}).latest_slices())
    assert ours is not None

    def no_metrics(plan: CompactionPlan) -> CompactionPlan:
        # Hudi guesses 120 MB for a slice without a base file
        ordered = sorted(plan.operations or (), key=lambda one: one.file_id or "")
        return replace(plan, operations=tuple(replace(one, metrics=None) for one in ordered))

    assert no_metrics(ours) == no_metrics(theirs)


@pytest.mark.parametrize(
    "forged",
    [
        {"data_file_path": f"../{BASE}"},
        {"data_file_path": "hoodie.properties"},
        {"data_file_path": f"b-0_0-0-0_{at(10)}.hfile"},
        {"delta_file_paths": (f"x/{LOG}",)},
        {"delta_file_paths": (LOG.replace("a-0", "b-0"),)},
        {"partition_path": "../files"},
        {"partition_path": ".hoodie"},
    ],
    ids=str,
)
def test_forged_plans_are_refused(client: TableMetaClient, forged: dict[str, object]) -> None:
    operation = CompactionOperation(at(10), (LOG,), BASE, "a-0", "files")
    plan = CompactionPlan((replace(operation, **forged),))  # type: ignore[arg-type]
    instant = Instant(at(50), Action.COMPACTION, State.REQUESTED)
    client.active.create_requested(instant, encode(plan))
    with pytest.raises(CorruptMetadataError, match="Nothing was written"):
        start_compaction(client, instant)
    assert pending_compactions(client.timeline()) == (instant,)


def test_a_merge_that_writes_something_else_is_noticed(client: TableMetaClient) -> None:
    plan = plan_compaction(view(client).latest_slices())
    assert plan is not None
    work = start_compaction(client, request_compaction(client, at(50), plan))
    for path in (None, f"files/b-0_0-0-0_{at(50)}.hfile", f"files/{BASE}"):
        stat = WriteStat("a-0", path)
        with pytest.raises(TableServiceError, match="file group a-0"):
            merge_slices(client, work, lambda *_, stat=stat: stat, {})
