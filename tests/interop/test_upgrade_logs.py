"""Tables with log files that Hudi-Spark made, brought to versions 8 and 9, and these to each other.

Our readers and hudi-rs see the same rows before and after, and wherever an upgrade dies.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from hudi_core.actions.compaction import plan_compaction
from hudi_core.errors import TableServiceError, UnsupportedTableError
from hudi_core.model.actions import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplaceMetadata,
)
from hudi_core.model.instant import Action, State
from hudi_core.services.upgrade import MARK
from hudi_core.timeline.serde import encode
from tests.cli_runs import run_json
from tests.formats.dying_writers import Died, MortalStorage, death_in
from tests.hudi_tables import LOGS_6, MERGE_ON_READ, OWN, OWN_LOGS
from tests.interop.test_compaction import by_judge, present_rows
from tests.interop.test_merge_on_read import shared, unzip
from tests.samples import IS_WHOLE

UTC: Final = {"hoodie.table.timeline.local.zone": "UTC"}
OPTIONS: Final = {"hoodie.fs.fsync": "false", **UTC}


def opened(path: Path) -> hudi.Table:
    return hudi.Table.open(path, OPTIONS)


def state_of(table: hudi.Table, as_of: str | None = None) -> list[str]:
    return present_rows(table.to_arrow(as_of=as_of).to_pylist())


def agreed_rows(path: Path) -> list[str]:
    """Rows that both readers return alike."""
    own = state_of(opened(path))
    assert present_rows(by_judge(path)) == own
    return own


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the test a table of version 6 whose payload class orders by commits."""
    return OWN.unpack(LOGS_6, tmp_path / "table")


# --- from version 6 -------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [8, 9])
def test_logs_of_version_6_are_merged(path: Path, to: int) -> None:
    before, table = agreed_rows(path), opened(path)
    writes = table.timeline.completed_writes()
    windows = [present_rows(table.incremental(one).to_pylist()) for one in writes]
    plan = table.upgrade(to, dry_run=True)
    assert (plan.logs, len(plan.slices)) == (1, 1)
    assert agreed_rows(path) == before

    assert table.upgrade(to) == plan

    table = opened(path)
    assert agreed_rows(path) == before
    assert not any(one.log_files for one in table.file_slices())
    *_, compaction = table.timeline.completed_writes()
    assert compaction.action is Action.COMMIT
    assert (path / f".hoodie/timeline/{compaction.requested_time}.compaction.requested").exists()
    windows_now = [present_rows(table.incremental(one).to_pylist()) for one in writes]
    assert windows_now == windows
    assert table.validate(keys=True).is_valid
    assert not (path / MARK).exists()
    assert not list((path / ".hoodie").glob("[0-9]*"))
    # as Hudi's own upgrade leaves it, which orders by event time from now on
    assert table.config.raw["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    again = table.to_arrow().select(table.schema.names).slice(0, 1)
    assert table.upsert(again).updated == 1
    assert sum(len(one.log_files) for one in opened(path).file_slices()) == 1
    agreed_rows(path)
    assert not opened(path).upgrade(to).is_needed


def test_the_former_logs_do_not_come_back(path: Path) -> None:
    table = opened(path)
    last = table.timeline.completed_writes()[-1]
    table.upgrade(8)
    compaction = table.timeline.completed_writes()[-1]
    for undo in (
        lambda: table.rollback(compaction.requested_time),
        lambda: table.restore(last.requested_time),
    ):
        with pytest.raises(TableServiceError, match="logs of version 6"):
            undo()
    assert table.validate().is_valid


def test_a_dead_write_of_logs_is_rolled_back(path: Path) -> None:
    last = opened(path).timeline.completed_writes()[-1].requested_time
    (path / ".hoodie" / f"{last}.deltacommit").unlink()
    [log] = path.rglob("*.log.1_*")
    marker = path / ".hoodie/.temp" / last / log.parent.name / f"{log.name}.marker.APPEND"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(b"")
    before = state_of(opened(path))
    done = opened(path).upgrade(8)
    assert [one.requested_time for one in done.pending] == [last]
    assert state_of(opened(path)) == before
    table = opened(path)
    assert [one.action for one in table.timeline.instants][-1] is Action.ROLLBACK
    assert table.validate().is_valid


def with_compaction(path: Path, action: Action, *, is_begun: bool, names_logs: bool) -> str:
    """Plan a compaction before the last write of a table, whose log is named after it perhaps."""
    first, last = opened(path).timeline.completed_writes()
    time = str(int(first.requested_time) + 1)
    [found] = [one for one in opened(path).file_slices() if one.log_files]
    plan = plan_compaction([found])
    assert plan is not None
    assert found.base_file is not None
    (path / ".hoodie" / f"{time}.{action}.requested").write_bytes(encode(plan))
    if is_begun:
        (path / ".hoodie" / f"{time}.{action}.inflight").write_bytes(b"")
        base = path / found.base_file.path
        dead = f"{found.file_id}_9-9-9_{time}.parquet"
        if action is Action.COMPACTION:
            base.with_name(dead).write_bytes(base.read_bytes())
    if names_logs:
        [log] = path.rglob("*.log.1_*")
        named = log.name.replace(first.requested_time, time)
        log.rename(log.with_name(named))
        write = path / ".hoodie" / f"{last.requested_time}.deltacommit"
        write.write_text(write.read_text().replace(log.name, named))
    return time


@pytest.mark.parametrize(
    ("action", "is_begun", "names_logs"),
    [
        (Action.COMPACTION, False, True),
        (Action.COMPACTION, True, True),
        (Action.COMPACTION, False, False),
        (Action.COMPACTION, True, False),
        (Action.LOGCOMPACTION, False, False),
        (Action.LOGCOMPACTION, True, False),
    ],
)
def test_pending_compactions_are_given_up(
    path: Path, tmp_path: Path, action: Action, is_begun: bool, names_logs: bool
) -> None:
    """All logs are merged; past states have the logs that are named after a compaction."""
    before = state_of(opened(path))
    times = [one.requested_time for one in opened(path).timeline.completed_writes()]
    past = [state_of(opened(path), time) for time in times]
    planned = with_compaction(path, action, is_begun=is_begun, names_logs=names_logs)
    assert state_of(opened(path)) == before
    plan = opened(path).upgrade(8, dry_run=True)
    assert [(one.requested_time, one.action) for one in plan.pending] == [(planned, action)]
    for dead, number in deaths(path, tmp_path, 8, 1 if IS_WHOLE else 7):
        assert state_of(opened(dead)) == before, number
        opened(dead).upgrade(8)
        assert agreed_rows(dead) == before, number
        assert [state_of(opened(dead), time) for time in times] == past, number
    opened(path).upgrade(8)
    table = opened(path)
    assert agreed_rows(path) == before
    assert [state_of(table, time) for time in times] == past
    assert table.validate(keys=True).is_valid
    assert not list(path.rglob(f"*_{planned}.parquet"))
    assert all(one.is_completed for one in table.timeline.instants)
    assert names_logs == any(one.requested_time == planned for one in table.timeline.instants)
    table.upsert(table.to_arrow().select(table.schema.names).slice(0, 1))
    table.compact()
    table.clean()
    agreed_rows(path)
    assert [state_of(opened(path), time) for time in times] == past


def test_clusterings_of_logs_are_to_be_run_first(path: Path) -> None:
    [found] = [one for one in opened(path).file_slices() if one.log_files]
    assert found.base_file is not None
    time = "20300101000000000"
    one = ClusteringSlice(
        data_file_path=str(path / found.base_file.path),
        delta_file_paths=tuple(str(path / log.status.path) for log in found.log_files),
        file_id=found.file_id,
        partition_path=found.partition_path,
    )
    groups = (ClusteringGroup((one,)),)
    plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan(input_groups=groups))
    (path / ".hoodie" / f"{time}.replacecommit.requested").write_bytes(encode(plan))
    with pytest.raises(UnsupportedTableError, match=f"pending clustering {time}"):
        opened(path).upgrade(8)


# --- deaths ---------------------------------------------------------------------------------------


def deaths(made: Path, folder: Path, to: int, apart: int) -> Iterator[tuple[Path, int]]:
    """Yield a copy of the table for each change in which an upgrade of it died."""
    for number in range(1, 1000, apart):
        path = Path(shutil.copytree(made, folder / f"{to}-{number}"))
        with pytest.MonkeyPatch.context() as patched:
            storage = MortalStorage(patched, is_done=bool(number % 2))
            storage.left = number
            try:
                opened(path).upgrade(to)
            except Died:
                pass
            else:
                assert number > 20
                return
        yield path, number
        shutil.rmtree(path)


@pytest.mark.parametrize(("to", "again", "apart"), [(8, 8, 3), (9, 8, 7), (8, 9, 11)])
def test_an_upgrade_that_died_anywhere_is_whole_and_ends(
    path: Path, tmp_path: Path, to: int, again: int, apart: int
) -> None:
    expected, files = agreed_rows(path), {file.name for file in path.rglob("*.parquet")}
    seen = set()
    for dead, number in deaths(path, tmp_path, to, 1 if IS_WHOLE else apart):
        assert agreed_rows(dead) == expected, number
        seen.add(opened(dead).config.version)
        opened(dead).upgrade(again)
        assert agreed_rows(dead) == expected, number
        table = opened(dead)
        assert table.validate(keys=True).is_valid, number
        assert not any(one.log_files for one in table.file_slices()), number
        # of several attempts at the compaction the files of one are left
        left = {file.name for file in dead.rglob("*.parquet") if ".hoodie" not in file.parts}
        assert len(left - files) == 1, number
        assert not (dead / MARK).exists()
        assert not table.upgrade(again, dry_run=True).is_needed
    assert seen == {6, to}


def test_a_dead_upgrade_is_a_dead_write_of_version_6(path: Path) -> None:
    """Its writers roll back what has no heartbeat, and do not archive past it."""
    with death_in("hudi_core.services.upgrade._change_version"):
        opened(path).upgrade(8)
    [pending] = opened(path)._session.opened.client.timeline().pending()
    assert (pending.action, pending.state) == (Action.DELTACOMMIT, State.INFLIGHT)
    markers = path / ".hoodie/.temp" / pending.requested_time
    [marked] = [file.name for file in markers.rglob("*.marker.MERGE")]
    assert (path / "byteField=10" / marked.removesuffix(".marker.MERGE")).exists()


# --- between versions 8 and 9 ---------------------------------------------------------------------


@pytest.mark.parametrize("name", [one for one in (*MERGE_ON_READ, *OWN_LOGS) if one != LOGS_6])
def test_logs_stay_between_8_and_9(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / name)
    before, version = agreed_rows(path), opened(path).config.version
    logs = sum(len(one.log_files) for one in opened(path).file_slices())
    states = {
        one: state_of(opened(path), one.requested_time)
        for one in opened(path).timeline.completed_writes()
    }
    for to in (17 - version, version):
        assert opened(path).upgrade(to).slices == ()
        table = opened(path)
        assert (table.config.version, agreed_rows(path)) == (to, before)
        assert sum(len(one.log_files) for one in table.file_slices()) == logs
        assert {one: state_of(table, one.requested_time) for one in states} == states
        assert table.validate(keys=True).is_valid
    opened(path).compact()
    assert agreed_rows(path) == before


def test_tables_of_another_judge(tmp_path: Path) -> None:
    """Logs stay where both versions merge their rows alike, and else are merged before."""
    merged = set()
    for archive in (*shared("mor"), *shared("mor_handmade")):
        path = unzip(archive, tmp_path / archive.stem)
        before, version = state_of(opened(path)), opened(path).config.version
        for to in (9, 8) if version != 9 else (8, 9):
            if opened(path).upgrade(to).slices:
                merged.add((archive.stem, to))
            assert state_of(opened(path)) == before, (archive.stem, to)
            assert opened(path).validate().is_valid or archive.stem == "corrupt_tail"
    assert not merged or {("v8_payload_partial_update", 9)} <= merged


def test_command(path: Path) -> None:
    shown: dict[str, Any] = run_json(
        "table", "upgrade", str(path), "--to", "9", "-o", "hoodie.table.timeline.local.zone=UTC"
    )
    assert (shown["from"], shown["to"], shown["logs"]) == (6, 9, 1)
