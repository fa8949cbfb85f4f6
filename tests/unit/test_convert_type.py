"""Tables that become such of log files, and go back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import TableType
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import (
    ConcurrentWriterError,
    InvalidOptionError,
    TableServiceError,
    UnsupportedCapabilityError,
    UnsupportedTableError,
)
from hudi_core.model.instant import Action
from hudi_core.services import convert
from hudi_core.services.compaction import Compaction, CompactionService
from tests.cli_runs import run, run_json
from tests.foreign import by_hudi_rs
from tests.tables import new_table

LETTERED: Final = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
OPTIONS: Final = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}
COW: Final = "COPY_ON_WRITE"
MOR: Final = "MERGE_ON_READ"


def lettered(*ids: str, n: int = 0) -> pa.Table:
    """Rows whose keys begin with their partition."""
    return pa.table({"id": ids, "part": [one[0] for one in ids], "n": [n] * len(ids)}, LETTERED)


def made(path: Path, kind: str = COW, **options: str) -> hudi.Table:
    table = new_table(path, LETTERED, {**OPTIONS, **options}, table_type=kind)
    table.insert(lettered("a1", "a2", "b1", "b2"))
    table.upsert(lettered("a1", n=1))
    return table


def values(table: hudi.Table, **given: Any) -> dict[str, int]:
    found = hudi.Table.open(table.path).to_arrow(**given)
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def by_judge(table: hudi.Table) -> dict[str, int]:
    return {row["id"]: row["n"] for row in by_hudi_rs(table.path)}


def logs(table: hudi.Table) -> int:
    return sum(len(one.log_files) for one in hudi.Table.open(table.path).file_slices())


def data(table: hudi.Table) -> set[str]:
    files = Path(table.path).rglob("*")
    return {str(one) for one in files if one.is_file() and ".hoodie" not in one.parts}


def kind_of(table: hudi.Table) -> str:
    return str(hudi.Table.open(table.path).config.table_type)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_table_gets_log_files_from_now_on(tmp_path: Path, version: str) -> None:
    table = made(tmp_path / "t", **{"hoodie.write.table.version": version})
    before, files = values(table), data(table)
    assert by_judge(table) == before
    assert not table.convert_type(MOR, dry_run=True).is_made
    assert kind_of(table) == COW
    done = table.convert_type(MOR)
    assert (done.before, done.after, done.logs, done.is_made) == (COW, MOR, 0, True)
    assert (kind_of(table), data(table)) == (MOR, files)
    assert values(table) == by_judge(table) == before
    assert (table.upsert(lettered("a2", n=2)).action, logs(table)) == ("deltacommit", 1)
    assert values(table) == by_judge(table) == {**before, "a2": 2}
    table.delete(lettered("b1"))
    assert values(table) == by_judge(table) == {"a1": 1, "a2": 2, "b2": 0}
    assert table.validate().is_valid


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_logs_are_merged_before_they_are_given_up(tmp_path: Path, metadata: str) -> None:
    """Past states keep theirs, as long as nobody cleans them."""
    table = made(tmp_path / "t", MOR, **{"hoodie.metadata.enable": metadata})
    states = {table.upsert(lettered("b1", n=3)).instant: values(table)}
    deleted = table.delete(lettered("a2")).instant
    states[deleted] = before = values(table)
    plan = table.convert_type(COW, dry_run=True)
    assert (plan.slices, plan.logs, plan.is_made, logs(table)) == (2, 3, False, 3)
    counted: list[tuple[int, int]] = []
    done = table.convert_type(COW, progress=lambda *these: counted.append(these))
    assert (done.logs, done.log_bytes, done.is_made) == (3, plan.log_bytes, True)
    assert (kind_of(table), logs(table), counted[-1]) == (COW, 0, (2, 2))
    assert values(table) == by_judge(table) == before
    assert table.validate().is_valid
    for instant, state in states.items():
        assert values(table, as_of=instant) == state
    changed = hudi.Table.open(table.path).incremental("earliest")
    assert dict(zip(changed["id"].to_pylist(), changed["n"].to_pylist(), strict=True)) == before
    assert (table.upsert(lettered("b2", n=4)).action, logs(table)) == ("commit", 0)
    assert values(table) == by_judge(table) == {**before, "b2": 4}
    for n in range(3):
        table.upsert(lettered("a1", "b1", n=n), options={"hoodie.clean.commits.retained": "1"})
    assert not [one for one in data(table) if ".log." in one]
    assert table.validate().orphans == ()


def test_what_merged_logs_is_not_undone_without_them(tmp_path: Path) -> None:
    table = made(tmp_path / "t", MOR)
    [*_, last] = [one.requested_time for one in table.timeline.completed_writes()]
    table.convert_type(COW)
    [*_, merged] = [one.requested_time for one in table.timeline.completed_writes()]
    before = values(table)
    with pytest.raises(
        TableServiceError, match=rf"{merged} cannot be undone.*--type MERGE_ON_READ"
    ):
        table.rollback(merged)
    with pytest.raises(TableServiceError, match=rf"{merged} cannot be undone"):
        table.restore(last)
    assert values(table) == before
    table.convert_type(MOR)
    table.restore(last)
    assert (values(table), by_judge(table), logs(table)) == (before, before, 1)


def test_what_names_logs_is_in_the_way(tmp_path: Path) -> None:
    table = made(tmp_path / "t", MOR)
    saved = table.savepoint().instant.requested_time
    table.compact(schedule_only=True)
    for dry_run in (True, False):
        with pytest.raises(TableServiceError, match=r"are pending \(\d+\).*hudi compact --run"):
            table.convert_type(COW, dry_run=dry_run)
    table.run_compactions()
    with pytest.raises(TableServiceError, match=f"savepoints.*{saved}"):
        table.convert_type(COW)
    table.delete_savepoint(saved)
    table.convert_type(COW)
    assert kind_of(table) == COW


@pytest.mark.parametrize("name", ["iceberg", "delta"])
def test_a_format_without_logs_gets_deletions_by_position(tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t", **{"hoodie.table.format": name})
    logs = {"hoodie.table.merge-on-read.mode": "logs"}
    for is_plan in (True, False):
        with pytest.raises(
            UnsupportedCapabilityError, match=rf"'{name}' does not support merge on read"
        ):
            table.convert_type(MOR, dry_run=is_plan, options=logs)
    assert table.convert_type(MOR).is_made
    assert (kind_of(table), table.config.is_split) == (MOR, True)
    table.upsert(lettered("b1", n=7))
    assert table.validate().differences == ()
    assert table.convert_type(COW).is_made
    assert table.validate().differences == ()


def test_a_split_table_names_the_index_of_other_writers(tmp_path: Path) -> None:
    """Of Hudi's indexes the others find dead rows; ours may be any."""
    named = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
    table = made(tmp_path / "t", **{"hoodie.index.type": "BLOOM"})

    def stored() -> dict[str, str]:
        lines = (tmp_path / "t/.hoodie/hoodie.properties").read_text().splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        return {name: found[name] for name in named if name in found}

    assert stored() == {}
    mode = {"hoodie.table.merge-on-read.mode": "split"}
    table.convert_type(MOR, options=mode)
    assert stored() == named
    other = {"hoodie.index.type": "SIMPLE", "hoodie.metadata.record.index.enable": "false"}
    hudi.Table.open(table.path, {**OPTIONS, **other}).upsert(lettered("b1", n=7))
    assert values(table) == by_judge(table) == {"a1": 1, "a2": 0, "b1": 7, "b2": 0}
    table.convert_type(COW)
    assert stored() == {}
    shutil.rmtree(table.path)
    made(tmp_path / "t", MOR, **mode)
    assert stored() == named


def test_a_type_that_there_is_not(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(InvalidOptionError, match="COPY_ON_WRITE"):
        table.convert_type("MERGED")


def test_logs_that_come_meanwhile_end_the_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one merges them."""
    table = made(tmp_path / "t", MOR)

    class Overtaken(CompactionService):
        def compact(self) -> Compaction:
            done = CompactionService.compact(self)
            hudi.Table.open(table.path, OPTIONS).upsert(lettered("b1", n=7))
            return done

    with monkeypatch.context() as patched:
        patched.setattr(convert, "CompactionService", Overtaken)
        with pytest.raises(ConcurrentWriterError):
            table.convert_type(COW)
    assert (kind_of(table), logs(table), values(table)["b1"]) == (MOR, 1, 7)
    table.convert_type(COW)
    assert (kind_of(table), logs(table), values(table)["b1"]) == (COW, 0, 7)


def test_a_conversion_that_died_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", MOR)
    before = values(table)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(convert, "update_properties", die)
        with pytest.raises(KeyboardInterrupt):
            table.convert_type(COW)
    assert (kind_of(table), logs(table)) == (MOR, 0)
    assert values(table) == by_judge(table) == before
    assert hudi.Table.open(table.path).convert_type(COW).is_made
    assert values(table) == by_judge(table) == before


def test_the_command_says_what_is_done(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    run("table", "convert", table.path, "--type", MOR)
    table = hudi.Table.open(table.path, OPTIONS)
    table.upsert(lettered("a2", n=5))
    planned = run("table", "convert", table.path, "--type", COW, "--dry-run")
    assert "1 of 1 file slices" in planned.stdout
    found = run_json("table", "convert", table.path, "--type", COW)
    assert (found["from"], found["to"], found["logs"]) == (MOR, COW, 1)
    again = run("table", "convert", table.path, "--type", COW)
    assert f"is of type {COW} already: nothing to do" in again.stdout


def test_a_table_that_logs_changes_keeps_its_type(tmp_path: Path) -> None:
    table = made(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true"})
    with pytest.raises(UnsupportedTableError, match=r"MERGE_ON_READ, in which .* not log changes"):
        table.convert_type(MOR)
    assert kind_of(table) == COW


def test_version_6_stays_what_it_is(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", LETTERED, OPTIONS)
    path = tmp_path / "t/.hoodie/hoodie.properties"
    path.write_text(path.read_text().replace("table.version=8", "table.version=6"))
    with pytest.raises(UnsupportedTableError, match="version 6"):
        convert.convert_type(table.path, {}, TableType(MOR), LocalEngine())


@pytest.mark.parametrize("is_archived", [False, True], ids=["active", "archived"])
def test_changes_of_the_time_with_logs_are_read(is_archived: bool, tmp_path: Path) -> None:
    services = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    table = made(tmp_path / "t", MOR, **services)
    begin = table.timeline.completed_writes()[1].requested_time
    table.delete(lettered("b1"))
    table.convert_type(COW)
    for n in range(2, 6):
        table.upsert(lettered("a2", n=n))
    if is_archived:
        limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
        limits["hoodie.cleaner.commits.retained"] = "1"
        table.archive(options=limits)
        assert {one.action.value for one in table.timeline.completed_writes()} == {"commit"}

    now = hudi.Table.open(table.path)
    fed = now.changes(begin).to_pylist()
    keys = [json.loads(one["after"] or one["before"])["id"] for one in fed]
    assert list(zip([one["op"] for one in fed], keys, strict=True)) == [
        ("d", "b1"),
        *[("u", "a2")] * 4,
    ]
    for found in (now.incremental(begin, deletes=True), now.diff(begin)):
        kinds = dict(zip(found["id"].to_pylist(), found["_change_type"].to_pylist(), strict=True))
        assert kinds == {"a2": "update", "b1": "delete"}


@pytest.mark.parametrize("compacts", [True, False])
def test_every_base_file_is_of_a_commit_or_older_than_all(tmp_path: Path, compacts: bool) -> None:
    """Hudi-Spark sees no others in a table of the type COPY_ON_WRITE: it knows no deltacommits."""
    table = new_table(tmp_path / "t", LETTERED, OPTIONS, table_type=MOR)
    table.insert(lettered("a1", "a2", "b1"))
    if compacts:
        table.upsert(lettered("a1", n=1))
        assert table.compact().logs == 1
        table.insert(lettered("b2"))
    before = values(table)
    plan = table.convert_type(COW, dry_run=True)
    assert (plan.slices, plan.logs) == (1, 0)
    assert table.convert_type(COW).is_made
    table = hudi.Table.open(table.path)
    times = {
        one.requested_time
        for one in table.timeline.completed_writes()
        if one.action is not Action.DELTACOMMIT
    }
    for one in table.file_slices():
        assert one.base_instant in times or one.base_instant < min(times)
    assert values(table) == by_judge(table) == before
    assert table.validate().is_valid
    assert table.convert_type(MOR).is_made
    assert hudi.Table.open(table.path).convert_type(COW).slices == 0


def test_slices_without_rows_are_compared(tmp_path: Path) -> None:
    table = made(tmp_path / "t", MOR)
    table.delete(lettered("a1", "a2", "b1", "b2"))
    assert table.diff(table.timeline.completed_writes()[-1].requested_time).num_rows == 0
