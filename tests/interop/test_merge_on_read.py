"""Merge-on-read tables of Apache Hudi: every way to read gives the rows that Hudi-Spark reads."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import hudi as hudi_rs
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.actions.compaction import plan_compaction, request_compaction
from hudi_core.doors.connector import Connector
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.connector.splits import Split
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import encode
from tests.cli_runs import run, run_json
from tests.foreign import by_hudi_rs
from tests.hudi_tables import (
    BUCKETS,
    LOGS_6,
    LOGS_9,
    MERGE_ON_READ,
    OWN,
    OWN_LOGS,
    PARTIAL,
    TRIPS,
    plain,
)

ALL_LOGS: Final = (*MERGE_ON_READ, *OWN_LOGS)
_SHARED: Final = Path(os.environ.get("HUDI_REAL_TABLES", Path(__file__).parents[3] / "shared"))
SHARED: Final = _SHARED if _SHARED.name == "hudi_tables" else _SHARED / "hudi_tables"
"""More tables where they are there: a judge of its own, which is no part of this project."""
Values = list[list[Any]]


@pytest.fixture(params=ALL_LOGS)
def name(request: pytest.FixtureRequest) -> str:
    """Give the name of each table with logs."""
    return str(request.param)


@pytest.fixture
def path(name: str, tmp_path: Path) -> Path:
    """Give the test a copy of its own."""
    return OWN.unpack(name, tmp_path / name)


def values(found: pa.Table, columns: list[str]) -> Values:
    """Rows sorted by their keys, as the expectations have them."""
    ordered = found.sort_by(
        [("_hoodie_record_key", "ascending"), ("_hoodie_commit_time", "ascending")]
    )
    own = [one for one in columns if not one.startswith("_hoodie_")]
    return [[plain(row[one]) for one in own] for row in ordered.to_pylist()]


def by_split(path: Path, kind: str) -> pa.Table:
    connector = Connector()
    with connector.scan(path, kind=kind) as source:
        splits = [split.to_json() for split in source]
    assert [Split.from_json(one).to_json() for one in splits] == splits
    return pa.concat_tables(Connector().read(one).read_all() for one in splits)


READS: Final[dict[str, Callable[[Path], pa.Table]]] = {
    "at once": lambda path: hudi.Table.open(path).to_arrow(),
    "batches": lambda path: pa.Table.from_batches(hudi.Table.open(path).to_batches()),
    "first rows": lambda path: hudi.Table.open(path).head(1000),
    "polars": lambda path: hudi.Table.open(path).scan().polars().collect().to_arrow(),
    "window": lambda path: hudi.Table.open(path).incremental("earliest"),
    "splits": lambda path: by_split(path, "snapshot"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_way_to_read(name: str, path: Path, read: Callable[[Path], pa.Table]) -> None:
    expected = OWN.expected(name)
    assert values(read(path), expected["columns"]) == expected["values"]


def test_counts_and_projections(name: str, path: Path) -> None:
    table, expected = hudi.Table.open(path), OWN.expected(name)
    assert table.count() == expected["rows"]
    keys = table.to_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    assert sorted(keys) == expected["record_keys"]
    scanned = duckdb.from_arrow(table.scan()).aggregate("count(*)")
    assert scanned.fetchall() == [(len(keys),)]
    for key in set(keys):
        by_key = table.to_arrow(filter=pc.field("_hoodie_record_key") == key)
        assert by_key.num_rows == keys.count(key)
        assert table.count(pc.field("_hoodie_record_key") == key) == keys.count(key)


def test_log_rows_on_the_disk_give_the_same(name: str, path: Path) -> None:
    table = hudi.Table.open(path, options={"hoodie.memory.merge.max.size": "100"})
    held, columns = hudi.Table.open(path), OWN.expected(name)["columns"]
    wanted = values(held.to_arrow(), columns)
    assert wanted == OWN.expected(name)["values"]
    assert values(table.to_arrow(), columns) == wanted
    assert values(pa.Table.from_batches(table.to_batches()), columns) == wanted
    keys = held.to_arrow(["_hoodie_record_key"]).column(0).unique().to_pylist()
    for key in keys[:3]:
        condition = pc.field("_hoodie_record_key") == key
        assert table.count(condition) == held.count(condition)
    assert table.count() == held.count()


def test_base_files_alone(name: str, path: Path) -> None:
    builder = hudi_rs.HudiTableBuilder.from_base_uri(str(path))
    judge = builder.with_option("hoodie.read.use.read_optimized.mode", "true").build()
    wanted = sorted(row["_hoodie_commit_seqno"] for one in judge.read() for row in one.to_pylist())
    option = {"hoodie.datasource.query.type": "read_optimized"}
    for found in (hudi.read(None, path, option), by_split(path, "read_optimized")):
        assert sorted(found["_hoodie_commit_seqno"].to_pylist()) == wanted


def test_rows_as_they_were_written(path: Path) -> None:
    every = hudi.read(None, path, {"hoodie.datasource.merge.type": "skip_merge"})
    bases = hudi.read(None, path, {"hoodie.datasource.query.type": "read_optimized"})
    merged = hudi.Table.open(path).to_arrow()
    numbers = [set(one["_hoodie_commit_seqno"].to_pylist()) for one in (every, bases, merged)]
    assert numbers[0] >= numbers[1] | numbers[2]
    assert every.num_rows >= bases.num_rows


def test_every_past_state_and_window(name: str, path: Path) -> None:
    table = hudi.Table.open(path)
    times = [one.requested_time for one in table.timeline.completed_writes()]
    states = []
    for time in times:
        options = hudi_rs.HudiReadOptions().with_as_of_timestamp(time)
        state = table.to_arrow(as_of=time)
        assert sorted(map(str, state.to_pylist())) == sorted(map(str, by_hudi_rs(path, options)))
        states.append({row["_hoodie_record_key"] for row in state.to_pylist()})
    for number, time in enumerate(times[:-1]):
        net = table.incremental(time, deletes=True).to_pylist()
        kinds = {
            kind: {row["_hoodie_record_key"] for row in net if row["_change_type"] == kind}
            for kind in ("insert", "delete")
        }
        assert kinds["insert"] == states[-1] - states[number]
        assert kinds["delete"] == states[number] - states[-1]
        gone = [row for row in table.changes(time).to_pylist() if row["op"] == "d"]
        assert len(gone) >= len(kinds["delete"])


def test_logs_of_version_6_beside_a_pending_compaction(tmp_path: Path) -> None:
    """Writers of version 6 name them after the slice that the compaction makes."""
    path, expected = OWN.unpack(LOGS_6, tmp_path / "table"), OWN.expected(LOGS_6)
    first, last = hudi.Table.open(path).timeline.completed_writes()
    planned = InstantTime(str(int(first.requested_time) + 1))
    [found] = [one for one in hudi.Table.open(path).file_slices() if one.log_files]
    plan = plan_compaction([found])
    assert plan is not None
    (path / ".hoodie" / f"{planned}.compaction.requested").write_bytes(encode(plan))
    [log] = path.rglob("*.log.1_*")
    log.rename(log.with_name(log.name.replace(first.requested_time, planned)))
    table = hudi.Table.open(path)
    assert values(table.to_arrow(), expected["columns"]) == expected["values"]
    past = table.to_arrow(as_of=first.requested_time)
    assert not set(past["_hoodie_commit_time"].to_pylist()) & {last.requested_time}


def test_an_update_that_brings_a_row_into_a_range_is_found(tmp_path: Path) -> None:
    """Its base file has no such value, and the statistics say so."""
    path = OWN.unpack(TRIPS, tmp_path / "t")
    table = hudi.Table.open(path)
    for fare in (0.0, 1.5):
        wanted = [row for row in table.to_arrow().to_pylist() if row["fare"] == fare]
        assert wanted
        assert table.to_arrow(filter=pc.field("fare") == fare).to_pylist() == wanted


# --- commands


def test_show_lists_the_logs_of_slices(name: str, path: Path) -> None:
    shown = run_json("table", "show", path)
    found = {one["file_group"]: one for one in shown["slices"]}
    assert len(found) == shown["file_groups"]
    sizes = {one.name: one.stat().st_size for one in path.rglob("*") if one.is_file()}
    logs = bases = 0
    for one in hudi.Table.open(path).file_slices():
        line = found[one.file_id]
        base = None if one.base_file is None else sizes[one.base_file.status.name]
        own = [sizes[log.status.name] for log in one.log_files]
        assert (line["partition"], line["base_instant"]) == (one.partition_path, one.base_instant)
        assert (line["base_bytes"], line["log_files"], line["log_bytes"], line["compaction"]) == (
            base,
            len(own),
            sum(own),
            None,
        )
        logs, bases = logs + sum(own), bases + (base or 0)
    assert shown["log_bytes"] == logs
    assert shown["bytes"] == logs + bases
    printed = run("table", "show", path).stdout
    assert "latest file slices" in printed
    assert all(one in printed.replace("\n", "") for one in (f"{logs:,}", "log bytes"))


def test_show_names_the_compaction_that_a_slice_waits_for(tmp_path: Path) -> None:
    """As Hudi schedules one: its plan is on the timeline, and names the slice's logs."""
    path = OWN.unpack(TRIPS, tmp_path / "t")
    client = open_table(str(path), {}).client
    slices = hudi.Table.open(path).file_slices()
    plan = plan_compaction(slices)
    assert plan is not None
    instant = request_compaction(client, client.clock.next_time(client.timeline()), plan)
    shown = run_json("table", "show", path)
    waiting = [one.file_id for one in slices if one.log_files]
    assert 0 < len(waiting) < len(slices)
    named = {one["file_group"]: one["compaction"] for one in shown["slices"]}
    times = {one.file_id: instant.requested_time for one in slices if one.log_files}
    assert named == {one.file_id: times.get(one.file_id) for one in slices}
    assert "compaction" in run("table", "show", path).stdout


def test_commands_that_look(path: Path) -> None:
    table = hudi.Table.open(path)
    listed = run_json("metadata", "list-partitions", path)
    assert {one.partition_path for one in table.file_slices()} <= set(listed["partitions"])
    for one in table.file_slices():
        files = run_json("metadata", "list-files", path, "--partition", one.partition_path)
        assert {file.name for file in one.files} <= {file["name"] for file in files["files"]}
    instants = run_json("timeline", path)["instants"]
    assert [one["instant"] for one in instants] == [
        one.requested_time for one in table.timeline.instants
    ]
    assert run("timeline", path, "--html", path.parent / "page.html").exit_code == 0
    assert run_json("table", "count", path)["rows"] == table.count()
    assert len(run_json("table", "head", path, "-n", "1000")["rows"]) == table.count()
    assert run_json("savepoint", "list", path)["savepoints"] == []


def test_file_groups_of_logs_alone_and_partial_blocks_are_among_them(tmp_path: Path) -> None:
    slices = hudi.Table.open(OWN.unpack(BUCKETS, tmp_path / "b")).file_slices()
    assert any(one.log_files for one in slices)
    found = OWN.unpack(PARTIAL, tmp_path / "p")
    assert any(
        b"\x00\x00\x00\x07\x00\x00\x00\x04true" in one.read_bytes()
        for one in found.rglob(".*.log.*")
    )


# --- tables of another judge


def shared(folder: str) -> list[Path]:
    return sorted((SHARED / folder).glob("*.zip"))


def unzip(archive: Path, to: Path) -> Path:
    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(to)
    found = to.glob("**/.hoodie/hoodie.properties")
    return min(found, key=lambda one: len(one.parts)).parent.parent


def listed(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    return sorted(
        json.dumps({one: row.get(one) for one in columns}, sort_keys=True) for row in rows
    )


def test_tables_of_another_judge(tmp_path: Path) -> None:
    for archive in shared("mor"):
        expected = json.loads(archive.with_suffix("").with_suffix(".expected.json").read_text())
        path = unzip(archive, tmp_path / archive.stem)
        found = hudi.Table.open(path).to_arrow()
        bases = hudi.read(None, path, {"hoodie.datasource.query.type": "read_optimized"})
        for rows, wanted in ((found, "snapshot"), (bases, "read_optimized")):
            ours = listed(rows.to_pylist(), found.column_names)
            assert ours == listed(expected[wanted], found.column_names), archive.stem


def test_tables_with_one_feature_each(tmp_path: Path) -> None:
    for archive in shared("mor_handmade"):
        expected = json.loads((archive.parent / "expected.json").read_text())[archive.stem]
        found = hudi.Table.open(unzip(archive, tmp_path / archive.stem)).to_arrow().to_pylist()
        assert {row["id"]: [row["ts"], row["v"], row["w"]] for row in found} == expected


def test_hudi_rs_reads_base_files_alone_of_the_other_type(tmp_path: Path) -> None:
    """Of a table that Hudi-Spark wrote: past states with logs are judged by hudi-rs before."""
    path = OWN.unpack(LOGS_9, tmp_path / "table")
    table = hudi.Table.open(path)
    last = table.timeline.completed_writes()[-1].requested_time
    optimized = hudi.read(None, str(path), {"hoodie.datasource.query.type": "read_optimized"})
    merged, alone = (sorted(map(str, one.to_pylist())) for one in (table.to_arrow(), optimized))
    options = hudi_rs.HudiReadOptions().with_as_of_timestamp(last)
    assert sorted(map(str, by_hudi_rs(path, options))) == merged != alone
    stored = path / ".hoodie/hoodie.properties"
    stored.write_text(stored.read_text().replace("MERGE_ON_READ", "COPY_ON_WRITE"))
    assert sorted(map(str, by_hudi_rs(path, options))) == alone
