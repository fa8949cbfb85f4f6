"""Ingestion of files: formats of sources, checkpoints, deaths, and other runs beside."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.errors import (
    CorruptMetadataError,
    InvalidOptionError,
    PathNotFoundError,
    SchemaError,
    SourceFileError,
)
from hudi_core.ingestion.checkpoint import CHECKPOINT_KEY, Checkpoint
from hudi_core.ingestion.formats import RowReader
from tests.formats.landing import HUDI, KEYED, START, Landing, rows_of, run
from tests.samples import IS_WHOLE

FORMATS = ("native", "iceberg", "delta")
DAY = 86_400


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


# --- each file once ------------------------------------------------------------------------------


@pytest.mark.parametrize("table_format", FORMATS)
def test_each_run_reads_what_is_new(path: str, landing: Landing, table_format: str) -> None:
    options = {"hoodie.table.format": table_format}
    landing.json("a.json", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], 1)
    landing.json("day=2/b.json.gz", [{"id": 3, "name": "c"}], 2)
    first = run(path, landing, options=options)
    assert (first.files, len(first.commits), first.late) == (2, 1, 0)
    assert run(path, landing, options=options).batches == ()
    landing.json("c.json", [{"id": 1, "name": "A"}], 2)  # of the same time as the newest
    second = run(path, landing, options=options)
    assert [list(one.files) for one in second.batches] == [["c.json"]]
    assert second.commits[0].updated == 1
    assert rows_of(path) == [{"id": 1, "name": "A"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}]
    assert hudi.Table.open(path).format == table_format


def test_other_commits_between_change_nothing(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing)
    table = hudi.Table.open(path, {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    for n in range(8):
        table.upsert(pa.table({"id": [100 + n]}))
    table.archive()
    assert run(path, landing).batches == ()
    landing.json("b.json", [{"id": 2}], 2)
    assert run(path, landing).files == 1
    assert len(rows_of(path)) == 10


def test_a_file_that_comes_late_is_read(path: str, landing: Landing) -> None:
    landing.json("new.json", [{"id": 1}], 8 * DAY)
    run(path, landing)
    landing.json("late.json", [{"id": 2}], 2 * DAY)
    assert run(path, landing).files == 1
    landing.json("too_late.json", [{"id": 3}], 0)
    done = run(path, landing)
    assert (done.files, done.late) == (0, 1)
    assert [row["id"] for row in rows_of(path)] == [1, 2]


def test_old_files_of_a_first_run_are_all_read(path: str, landing: Landing) -> None:
    for n in range(40):
        landing.json(f"{n:02}.json", [{"id": n}], n * DAY)
    done = run(path, landing, options={"hoodie.ingest.commit.max.bytes": "60B"})
    assert done.files == 40
    assert len(done.commits) > 5
    assert done.late == 0
    again = run(path, landing)
    assert (again.files, again.late) == (0, 0)
    assert [row["id"] for row in rows_of(path)] == list(range(40))


def test_a_checkpoint_remembers_days_and_no_more(path: str, landing: Landing) -> None:
    for n in range(30):
        landing.json(f"{n:02}.json", [{"id": n}], n * DAY)
    done = run(path, landing, options={"hoodie.ingest.late.files.days": "3"})
    [kept] = [one.metadata.extra_metadata[CHECKPOINT_KEY] for one in done.commits]
    stated = json.loads(kept)
    assert (len(stated["read"]), stated["passed"]) == (3, 27)


def test_a_file_that_changes_is_read_again(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1, "n": 1}], 1)
    run(path, landing)
    landing.json("a.json", [{"id": 1, "n": 2}, {"id": 2, "n": 2}], 5)
    assert run(path, landing).files == 1
    assert rows_of(path) == [{"id": 1, "n": 2}, {"id": 2, "n": 2}]


def test_a_file_that_changes_while_it_is_read_waits(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    landing.json("b.json", [{"id": 2}], 1)
    plain = RowReader.read

    def growing(self: RowReader, name: str) -> pa.Table:
        rows = plain(self, name)
        if name == "a.json":
            landing.json("a.json", [{"id": 1}, {"id": 3}], 2)
        return rows

    monkeypatch.setattr(RowReader, "read", growing)
    done = run(path, landing)
    assert (done.files, list(done.changed)) == (1, ["a.json"])
    monkeypatch.undo()
    assert run(path, landing).files == 1
    assert [row["id"] for row in rows_of(path)] == [1, 2, 3]


def test_hidden_and_unfinished_files_are_left_out(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}])
    for name in ("_SUCCESS", ".b.json", "c.json.tmp", "d.json._COPYING_", "_temporary/e.json"):
        landing.json(name, [{"id": 9}])
    assert run(path, landing).files == 1


def test_two_ingestions_of_one_table(path: str, landing: Landing, tmp_path: Path) -> None:
    other = Landing(tmp_path / "other")
    landing.json("a.json", [{"id": 1}])
    other.json("a.json", [{"id": 2}])
    assert (run(path, landing).files, run(path, other).files) == (1, 1)
    assert (run(path, landing).files, run(path, other).files) == (0, 0)
    assert run(path, landing, name="again").files == 1
    assert len(rows_of(path)) == 2


def test_it_begins_where_hudi_streamer_stopped(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    landing.json("b.json", [{"id": 2}], 2)
    done = run(path, landing, since_ms=(START + 1) * 1000)
    assert [list(one.files) for one in done.batches] == [["b.json"]]
    assert run(path, landing).late == 0
    with pytest.raises(InvalidOptionError, match="has a checkpoint of its own"):
        run(path, landing, since_ms=0)


def test_a_rollback_has_the_files_read_again(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing)
    landing.json("b.json", [{"id": 2}], 2)
    [commit] = run(path, landing).commits
    hudi.Table.open(path).rollback(commit.instant)
    assert [row["id"] for row in rows_of(path)] == [1]
    assert run(path, landing).files == 1
    assert [row["id"] for row in rows_of(path)] == [1, 2]


def test_another_run_beside_takes_no_file_twice(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"hoodie.datasource.write.operation": "bulk_insert"}
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing, options=options)
    landing.json("b.json", [{"id": 2}], 2)
    beside: list[int] = []
    plain = RowReader.read

    def and_another(self: RowReader, name: str) -> pa.Table:
        if not beside:
            beside.append(0)
            landing.json("c.json", [{"id": 3}], 3)
            beside[0] = run(path, landing, options=options).files
        return plain(self, name)

    monkeypatch.setattr(RowReader, "read", and_another)
    mine = run(path, landing, options=options)
    assert (beside, mine.files) == ([2], 0)
    assert [row["id"] for row in rows_of(path)] == [1, 2, 3]


@pytest.mark.parametrize("table_format", FORMATS)
def test_killed_and_run_again_it_loses_and_doubles_nothing(
    path: str, landing: Landing, table_format: str
) -> None:
    """Inserts look no keys up: a file that were read twice would double its rows."""
    seeded = random.Random(7)
    command = [*HUDI, "ingest", path, str(landing.folder)]
    command += ["--op", "bulk_insert", "-o", f"hoodie.table.format={table_format}"]
    command += ["-o", "hoodie.ingest.commit.max.bytes=200B"]
    command += ["-o", "hoodie.datasource.write.recordkey.field=id"]
    count = 0
    for _ in range(20 if IS_WHOLE else 3):
        for _ in range(6):
            landing.json(f"{count:04}.json", [{"id": count, "text": "x" * 30}], count)
            count += 1
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seeded.uniform(0.8, 3.0))
        running.kill()
        running.wait()
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = Counter(hudi.Table.open(path).to_arrow("id")["id"].to_pylist())
    assert found == Counter(range(count))


def test_files_that_are_away_for_a_while_are_not_read_again(path: str, landing: Landing) -> None:
    options = {"hoodie.datasource.write.operation": "bulk_insert"}
    landing.json("sub/a.json", [{"id": 1}], 1)
    run(path, landing, options=options)
    (landing.folder / "sub").rename(landing.folder / ".away")
    landing.json("b.json", [{"id": 2}], 2)
    run(path, landing, options=options)
    (landing.folder / ".away").rename(landing.folder / "sub")
    assert run(path, landing, options=options).files == 0
    assert [row["id"] for row in rows_of(path)] == [1, 2]


def test_what_another_run_has_read_since_the_listing_is_remembered(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.ingest.commit.max.bytes": "1B",
    }
    landing.json("a.json", [{"id": 1}], 10)
    landing.json("b.json", [{"id": 2}], 20)
    beside: list[int] = []
    plain = RowReader.read

    def and_another(self: RowReader, name: str) -> pa.Table:
        if not beside:
            beside.append(0)
            landing.json("late.json", [{"id": 3}], 5)
            with monkeypatch.context() as one_file:
                one_file.setattr(Checkpoint, "unread", lambda me, listed: unread(me, listed)[:1])
                beside[0] = run(path, landing, options=options).files
        return plain(self, name)

    unread = Checkpoint.unread
    monkeypatch.setattr(RowReader, "read", and_another)
    run(path, landing, options=options)
    run(path, landing, options=options)
    assert beside[0] >= 1
    found = Counter(hudi.Table.open(path).to_arrow("id")["id"].to_pylist())
    assert found == Counter([1, 2, 3])


def test_a_file_from_the_future_makes_no_other_late(path: str, landing: Landing) -> None:
    now = time.time() - START
    landing.json("future.json", [{"id": 1}], now + 400 * DAY)
    run(path, landing)
    landing.json("now.json", [{"id": 2}], now)
    done = run(path, landing)
    assert (done.files, done.late) == (1, 0)
    assert run(path, landing).files == 0


def test_a_half_written_file_waits(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.text("a.json", '{"id": 1}\n{"id":', 1)
    landing.json("b.json", [{"id": 2}], 1)
    plain = RowReader.read

    def completed(self: RowReader, name: str) -> pa.Table:
        try:
            return plain(self, name)
        finally:
            if name == "a.json":
                landing.json("a.json", [{"id": 1}, {"id": 3}], 2)

    monkeypatch.setattr(RowReader, "read", completed)
    done = run(path, landing)
    assert (done.files, list(done.changed)) == (1, ["a.json"])
    monkeypatch.undo()
    assert run(path, landing).files == 1
    assert [row["id"] for row in rows_of(path)] == [1, 2, 3]


# --- what is refused -----------------------------------------------------------------------------


def test_a_damaged_file_is_named_and_nothing_of_its_commit_is_written(
    path: str, landing: Landing
) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing)
    landing.json("b.json", [{"id": 2}], 2)
    landing.text("c.json", '{"id": 3}\n{"id": ', 3)
    with pytest.raises(SourceFileError, match=r"c\.json") as refused:
        run(path, landing)
    assert refused.value.path == "c.json"
    assert [row["id"] for row in rows_of(path)] == [1]
    (landing.folder / "c.json").unlink()
    assert run(path, landing).files == 1


def test_columns_that_do_not_go_together(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1, "n": 1}], 1)
    landing.json("b.json", [{"id": 2, "n": {"x": 1}}], 2)
    with pytest.raises(SchemaError):
        run(path, landing)
    assert not Path(path).exists()


def test_sources_that_are_not_there(path: str, landing: Landing, tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError):
        hudi.ingest(path, tmp_path / "nowhere", options=KEYED)
    with pytest.raises(InvalidOptionError, match=r"hoodie\.streamer\.source\.dfs\.root"):
        hudi.ingest(path, options=KEYED)
    landing.text("a.xml", "<a/>")
    with pytest.raises(InvalidOptionError, match=r"hoodie\.ingest\.source\.format"):
        run(path, landing)
    assert run(path, Landing(tmp_path / "empty")).batches == ()


def test_a_damaged_checkpoint_is_an_error(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing, name="n")
    hudi.Table.open(path).upsert(
        pa.table({"id": [5]}), extra_metadata={CHECKPOINT_KEY: "{}"}, idempotency=("ingest:n", 2)
    )
    with pytest.raises(CorruptMetadataError, match="cannot be read"):
        run(path, landing, name="n")


# --- the command ---------------------------------------------------------------------------------


def test_the_command(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    options = ["-o", "hoodie.datasource.write.recordkey.field=id"]
    options += ["-o", f"hoodie.deltastreamer.source.dfs.root={landing.folder}"]
    planned = CliRunner().invoke(app, ["ingest", path, *options, "--dry-run", "--json"])
    assert json.loads(planned.stdout)["commits"][0]["files"] == ["a.json"]
    assert not Path(path).exists()
    done = CliRunner().invoke(app, ["ingest", path, *options])
    assert done.exit_code == 0, done.output
    assert "1 file of" in done.stdout
    again = CliRunner().invoke(app, ["ingest", path, *options])
    assert "no new file" in again.stdout


def test_it_looks_for_new_files_until_it_is_stopped(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    command = [*HUDI, "ingest", path, str(landing.folder), "--json"]
    command += ["-o", "hoodie.datasource.write.recordkey.field=id"]
    command += ["--continuous", "--min-sync-interval-seconds", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            assert json.loads(running.stdout.readline())["commits"][0]["files"] == ["a.json"]
            landing.json("b.json", [{"id": 2}], 2)
            assert json.loads(running.stdout.readline())["commits"][0]["files"] == ["b.json"]
        finally:
            running.terminate()
    assert [row["id"] for row in rows_of(path)] == [1, 2]
