"""Ingestion of files: what is read, once; their rows; deaths, and other runs beside."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
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
from hudi_core.ingestion import IngestResult
from hudi_core.ingestion.formats import RowReader
from hudi_core.ingestion.source_files import CHECKPOINT_KEY, Checkpoint
from tests import cli_runs
from tests.calls import before
from tests.forked_commands import ForkedCommands
from tests.moto_s3 import S3Service
from tests.samples import IS_WHOLE
from tests.tables import TABLES

START = 1_700_000_000
MAIN = "from hudi_core.cli import main; main()"
KEYED = {"hoodie.datasource.write.recordkey.field": "id"}
UNSEEN = {"hoodie.datasource.write.operation": "bulk_insert"}
"""Inserts that look no keys up: a file that is read twice doubles its rows."""


class Landing:
    """A folder into which files arrive, at times that the test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def json(self, name: str, rows: Sequence[dict[str, Any]], seconds: float = 0) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return self._at(path, seconds)

    def parquet(self, name: str, rows: pa.Table, seconds: float = 0) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return self._at(path, seconds)

    def text(self, name: str, text: str, seconds: float = 0) -> Path:
        path = self.folder / name
        path.write_text(text)
        return self._at(path, seconds)

    def _at(self, path: Path, seconds: float) -> Path:
        os.utime(path, (START + seconds, START + seconds))
        return path


def run(path: str, landing: Landing, **more: Any) -> IngestResult:
    options = {**KEYED, **more.pop("options", {})}
    return hudi.ingest(path, landing.folder, options=options, **more)


def found_in(path: str, *columns: str) -> list[dict[str, Any]]:
    found = hudi.Table.open(path).to_arrow(list(columns) or None)
    names = [one for one in found.column_names if not one.startswith("_hoodie")]
    rows: list[dict[str, Any]] = found.select(names).sort_by("id").to_pylist()
    return rows


DAY = 86_400


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.mark.parametrize("table_format", TABLES)
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
    names = enumerate(["A", "b", "c"], 1)
    assert found_in(path) == [{"id": number, "name": name} for number, name in names]
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
    assert len(found_in(path)) == 10


def test_a_file_that_comes_late_is_read(path: str, landing: Landing) -> None:
    landing.json("new.json", [{"id": 1}], 8 * DAY)
    run(path, landing)
    landing.json("late.json", [{"id": 2}], 2 * DAY)
    assert run(path, landing).files == 1
    landing.json("too_late.json", [{"id": 3}], 0)
    done = run(path, landing)
    assert (done.files, done.late) == (0, 1)
    assert [row["id"] for row in found_in(path)] == [1, 2]


def test_old_files_of_a_first_run_are_all_read(path: str, landing: Landing) -> None:
    for n in range(40):
        landing.json(f"{n:02}.json", [{"id": n}], n * DAY)
    done = run(path, landing, options={"hoodie.ingest.commit.max.bytes": "60B"})
    assert done.files == 40
    assert len(done.commits) > 5
    assert done.late == 0
    again = run(path, landing)
    assert (again.files, again.late) == (0, 0)
    assert [row["id"] for row in found_in(path)] == list(range(40))


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
    assert found_in(path) == [{"id": 1, "n": 2}, {"id": 2, "n": 2}]


@pytest.mark.parametrize("text", ['{"id": 1}', '{"id": 1}\n{"id":'])
def test_a_file_that_changes_while_it_is_read_waits(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    landing.text("a.json", text, 1)
    landing.json("b.json", [{"id": 2}], 1)
    plain = RowReader.read

    def growing(self: RowReader, name: str) -> pa.Table:
        try:
            return plain(self, name)
        finally:
            if name == "a.json":
                landing.json("a.json", [{"id": 1}, {"id": 3}], 2)

    monkeypatch.setattr(RowReader, "read", growing)
    done = run(path, landing)
    assert (done.files, list(done.changed)) == (1, ["a.json"])
    monkeypatch.undo()
    assert run(path, landing).files == 1
    assert [row["id"] for row in found_in(path)] == [1, 2, 3]


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
    assert len(found_in(path)) == 2


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
    assert [row["id"] for row in found_in(path)] == [1]
    assert run(path, landing).files == 1
    assert [row["id"] for row in found_in(path)] == [1, 2]


def test_another_run_beside_takes_no_file_twice(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = UNSEEN
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing, options=options)
    landing.json("b.json", [{"id": 2}], 2)
    beside: list[int] = []

    def another(*_: object) -> None:
        landing.json("c.json", [{"id": 3}], 3)
        beside.append(run(path, landing, options=options).files)

    before(monkeypatch, RowReader, "read", another)
    mine = run(path, landing, options=options)
    assert (beside, mine.files) == ([2], 0)
    assert [row["id"] for row in found_in(path)] == [1, 2, 3]


@pytest.mark.parametrize("table_format", TABLES)
def test_killed_and_run_again_it_loses_and_doubles_nothing(
    path: str, landing: Landing, table_format: str, commands: ForkedCommands
) -> None:
    """Inserts look no keys up: a file that were read twice would double its rows."""
    seeded = random.Random(7)
    command = [MAIN, "ingest", path, str(landing.folder)]
    command += ["--op", "bulk_insert", "-o", f"hoodie.table.format={table_format}"]
    command += ["-o", "hoodie.ingest.commit.max.bytes=200B"]
    command += ["-o", "hoodie.datasource.write.recordkey.field=id"]
    count = 0
    for _ in range(20 if IS_WHOLE else 3):
        for _ in range(6):
            landing.json(f"{count:04}.json", [{"id": count, "text": "x" * 30}], count)
            count += 1
        running = commands.start(*command, printed=[Path(os.devnull)] * 2)
        time.sleep(seeded.uniform(0.05, 1.5))
        os.kill(running, signal.SIGKILL)
        commands.wait(running)
    done = commands.run(*command, "--json", cwd=landing.folder, environment=os.environ)
    assert done.returncode == 0, done.stderr
    found = Counter(hudi.Table.open(path).to_arrow("id")["id"].to_pylist())
    assert found == Counter(range(count))


def test_files_that_are_away_for_a_while_are_not_read_again(path: str, landing: Landing) -> None:
    options = UNSEEN
    landing.json("sub/a.json", [{"id": 1}], 1)
    run(path, landing, options=options)
    (landing.folder / "sub").rename(landing.folder / ".away")
    landing.json("b.json", [{"id": 2}], 2)
    run(path, landing, options=options)
    (landing.folder / ".away").rename(landing.folder / "sub")
    assert run(path, landing, options=options).files == 0
    assert [row["id"] for row in found_in(path)] == [1, 2]


def test_what_another_run_has_read_since_the_listing_is_remembered(
    path: str, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**UNSEEN, "hoodie.ingest.commit.max.bytes": "1B"}
    landing.json("a.json", [{"id": 1}], 10)
    landing.json("b.json", [{"id": 2}], 20)
    beside: list[int] = []
    unread = Checkpoint.unread

    def another(*_: object) -> None:
        landing.json("late.json", [{"id": 3}], 5)
        with monkeypatch.context() as one_file:
            one_file.setattr(Checkpoint, "unread", lambda me, listed: unread(me, listed)[:1])
            beside.append(run(path, landing, options=options).files)

    before(monkeypatch, RowReader, "read", another)
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


def test_a_damaged_file_is_named_and_nothing_is_written(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing)
    landing.json("b.json", [{"id": 2}], 2)
    landing.text("c.json", '{"id": 3}\n{"id": ', 3)
    with pytest.raises(SourceFileError, match=r"c\.json") as refused:
        run(path, landing)
    assert refused.value.path == "c.json"
    assert [row["id"] for row in found_in(path)] == [1]
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


def test_the_command(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    options = ["-o", "hoodie.datasource.write.recordkey.field=id"]
    options += ["-o", f"hoodie.deltastreamer.source.dfs.root={landing.folder}"]
    planned = CliRunner().invoke(app, ["ingest", path, *options, "--dry-run", "--json"])
    assert json.loads(planned.stdout)["commits"][0]["files"] == ["a.json"]
    assert not Path(path).exists()
    done = cli_runs.run("ingest", path, *options)
    assert done.exit_code == 0, done.output
    assert "1 file of" in done.stdout
    assert "no new file" in cli_runs.run("ingest", path, *options).stdout


def test_it_looks_for_new_files_until_it_is_stopped(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1}], 1)
    command = [sys.executable, "-c", MAIN, "ingest", path, str(landing.folder), "--json"]
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
    assert [row["id"] for row in found_in(path)] == [1, 2]


def test_parquet(path: str, landing: Landing) -> None:
    landing.parquet("a.parquet", pa.table({"id": [1], "n": pa.array([1], pa.int32())}), 1)
    landing.parquet("b.parquet", pa.table({"id": [2], "more": ["x"]}), 2)
    assert run(path, landing).files == 2
    landing.parquet("c.parquet", pa.table({"id": [3], "n": [2**40], "added": [True]}), 3)
    run(path, landing)
    assert found_in(path) == [
        {"id": 1, "n": 1, "more": None, "added": None},
        {"id": 2, "n": None, "more": "x", "added": None},
        {"id": 3, "n": 2**40, "more": None, "added": True},
    ]


def test_csv_takes_the_types_of_the_table(path: str, landing: Landing) -> None:
    landing.text("a.csv", "id,zip,price\n1,01234,1\n2,,2.5\n", 1)
    schema = pa.schema([("id", pa.int64()), ("zip", pa.string()), ("price", pa.decimal128(9, 2))])
    run(path, landing, schema=schema)
    landing.text("b.csv", "price,id,zip\n3,3,00001\n", 2)
    run(path, landing)
    assert [row["zip"] for row in found_in(path)] == ["01234", None, "00001"]
    assert hudi.Table.open(path).schema.field("price").type == pa.decimal128(9, 2)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_types_are_those_of_all_rows(path: str, landing: Landing, kind: str) -> None:
    """A number that is none of whole ones comes behind the first megabytes."""
    count = 200_000
    prices = ["1"] * (count - 1) + ["2.5"]
    if kind == "csv":
        lines = ["id,price", *(f"{n},{price}" for n, price in enumerate(prices))]
    else:
        lines = [f'{{"id": {n}, "price": {price}}}' for n, price in enumerate(prices)]
    landing.text(f"a.{kind}", "\n".join(lines) + "\n", 1)
    run(path, landing, options={"hoodie.streamer.csv.inferSchema": "true", **UNSEEN})
    assert hudi.Table.open(path).schema.field("price").type == pa.float64()
    assert hudi.Table.open(path).count([("price", "=", 2.5)]) == 1


def test_csv_without_names(path: str, landing: Landing) -> None:
    options = {"hoodie.deltastreamer.csv.header": "false", "hoodie.streamer.csv.sep": "\\t"}
    landing.text("a.csv", '1\t"a\tb"\n', 1)
    with pytest.raises(InvalidOptionError, match=r"without a line of names.* `--schema FILE`"):
        run(path, landing, options=options)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    run(path, landing, options=options, schema=schema)
    landing.text("b.csv", "2\tc\n", 2)
    run(path, landing, options=options)
    assert found_in(path) == [{"id": 1, "name": "a\tb"}, {"id": 2, "name": "c"}]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_changes_of_dms(path: str, landing: Landing, kind: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])

    def put(name: str, rows: pa.Table, seconds: int) -> None:
        if kind == "parquet":
            landing.parquet(f"{name}.parquet", rows, seconds)
        else:
            pa_csv.write_csv(
                rows, landing.folder / f"{name}.csv", pa_csv.WriteOptions(include_header=False)
            )

    put("LOAD00000001", pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), 9)
    changes = {"Op": ["U", "I", "U"], "id": [1, 4, 4], "name": ["A", "d", "D"]}
    put("20260101-100000", pa.table(changes), 1)
    put("20260101-110000", pa.table({"Op": ["D", "U"], "id": [2, 1], "name": ["b", "AA"]}), 2)
    done = run(path, landing, source_format="dms", schema=schema)
    assert done.files == 3
    found = [(row["id"], row["name"]) for row in found_in(path, "id", "name")]
    assert found == [(1, "AA"), (3, "c"), (4, "D")]
    put("20260102-100000", pa.table({"Op": ["D"], "id": [4], "name": ["D"]}), 3)
    assert run(path, landing, source_format="dms").commits[0].deleted == 1


def test_a_query_makes_the_rows(path: str, landing: Landing) -> None:
    options = {
        "hoodie.streamer.transformer.sql": "SELECT id, concat(upper(name), 'it''s') AS name "
        "FROM <SRC> WHERE n > 1"
    }
    landing.json("a.json", [{"id": 1, "name": "a", "n": 1}, {"id": 2, "name": "b", "n": 2}])
    run(path, landing, options=options)
    assert found_in(path) == [{"id": 2, "name": "Bit's"}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1", "<SRC>"),
        ("DROP TABLE <SRC>", "not one query"),
        ("SELECT * FROM <SRC>; SELECT 1", "not one query"),
        ("SELEC <SRC> FROM", "transformer.sql"),
    ],
)
def test_what_is_no_query_is_refused(path: str, landing: Landing, text: str, reason: str) -> None:
    landing.json("a.json", [{"id": 1}])
    with pytest.raises(InvalidOptionError, match=reason):
        run(path, landing, options={"hoodie.streamer.transformer.sql": text})
    assert not Path(path).exists()


def test_empty_files_make_no_table_and_are_read_once(path: str, landing: Landing) -> None:
    landing.text("a.json", "", 1)
    assert run(path, landing).files == 0
    assert not Path(path).exists()
    landing.json("b.json", [{"id": 1}], 2)
    assert run(path, landing).files == 2
    landing.text("c.json", "", 3)
    assert run(path, landing).files == 1
    assert run(path, landing).files == 0


def test_files_on_s3(path: str, s3: S3Service) -> None:
    folder = "s3://ingested/landing"
    s3.filesystem.create_dir("ingested")
    options = {**KEYED, **s3.given}

    def put(name: str, rows: bytes) -> None:
        with s3.filesystem.open_output_stream(f"ingested/landing/{name}", None) as file:
            file.write(rows)

    with pytest.raises(PathNotFoundError):
        hudi.ingest(path, folder, options=options)
    put("a.json", b'{"id": 1}')
    put("day=2/b.json.gz", gzip.compress(b'{"id": 2}'))
    assert hudi.ingest(path, folder, options=options).files == 2
    put("c.json", b'{"id": 3}')
    assert hudi.ingest(path, folder, options=options).files == 1
    assert [row["id"] for row in found_in(path)] == [1, 2, 3]
    for name in ("a.json", "day=2/b.json.gz", "c.json"):
        s3.filesystem.delete_file(f"ingested/landing/{name}")
    assert hudi.ingest(path, folder, options=options).files == 0  # an emptied prefix is no error


def test_names_of_csv_are_those_of_the_call(path: str, landing: Landing) -> None:
    options = {"hoodie.streamer.csv.header": "false"}
    columns = [("id", pa.int64()), ("name", pa.string()), ("city", pa.string())]
    hudi.Table.create(path, pa.schema([*columns, ("extra", pa.string())]), record_key="id")
    landing.text("a.csv", "1,Berlin,Ann\n", 1)
    order = pa.schema([columns[0], columns[2], columns[1]])
    run(path, landing, options=options, schema=order)
    assert found_in(path) == [{"id": 1, "name": "Ann", "city": "Berlin", "extra": None}]


@pytest.mark.parametrize("named", [False, True])
def test_files_of_dms(path: str, landing: Landing, named: bool) -> None:
    """The first load may have the column of changes as well, and a line of names."""
    landing.text("LOAD00000001.csv", "id,name\n1,a\n2,b\n" if named else "I,1,a\nI,2,b\n", 1)
    landing.text("20260101-100000.csv", "Op,id,name\n" * named + "D,1,a\n", 2)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    how = {"options": {"hoodie.ingest.dms.csv.header": "true"}} if named else {"schema": schema}
    run(path, landing, source_format="dms", **how)
    assert found_in(path, "id", "name") == [{"id": "2" if named else 2, "name": "b"}]


def test_times_of_spark_keep_their_years(path: str, landing: Landing) -> None:
    """INT96 as nanoseconds ends in 2262."""
    times = pa.array([253402214400000000], pa.timestamp("us"))
    rows = pa.table({"id": [1], "at": times})
    pq.write_table(rows, landing.folder / "a.parquet", use_deprecated_int96_timestamps=True)
    run(path, landing)
    assert found_in(path)[0]["at"].year == 9999


def test_parquet_under_any_name(path: str, landing: Landing) -> None:
    landing.parquet("part-0001", pa.table({"id": [1]}))
    assert run(path, landing, source_format="parquet").files == 1


def test_columns_without_any_value_wait_for_one(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1, "x": None, "tags": []}], 1)
    run(path, landing)
    assert hudi.Table.open(path).schema.names == ["id"]
    landing.json("b.json", [{"id": 2, "x": 5, "tags": ["a"]}], 2)
    run(path, landing)
    assert found_in(path)[1] == {"id": 2, "x": 5, "tags": ["a"]}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_texts_become_what_the_columns_are(path: str, landing: Landing, kind: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("n", pa.int32()),
            ("name", pa.string()),
        ]
    )
    hudi.Table.create(path, schema, record_key="id")
    day, time = "2026-01-02", "2026-01-02 03:04:05"
    if kind == "csv":
        landing.text("a.csv", f'id,day,at,local,n,name\n"1",{day},{time},{time},"",""\n', 1)
    else:
        row = {"id": 1, "day": day, "at": f"{time}Z", "local": time, "n": None, "name": ""}
        landing.json("a.json", [row], 1)
    run(path, landing)
    [found] = found_in(path)
    assert (str(found["day"]), found["n"], found["name"]) == (day, None, "")
    assert str(found["at"]) == f"{time}+00:00"
    assert str(found["local"]) == time


NARROW = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("name", pa.string())])


@pytest.mark.parametrize("table_format", TABLES)
def test_columns_of_a_new_table_are_texts(path: str, landing: Landing, table_format: str) -> None:
    options = {"hoodie.table.format": table_format}
    landing.text("a.csv", "id,zip,v\n007,01234,1E5\n7,00042,10000000000000000001\n", 1)
    run(path, landing, options=options)
    expected = [
        {"id": "007", "zip": "01234", "v": "1E5"},
        {"id": "7", "zip": "00042", "v": "10000000000000000001"},
    ]
    assert found_in(path) == expected
    landing.text("b.csv", "id,v\nK1A0B1,x\n", 2)
    run(path, landing, options=options)
    assert found_in(path)[-1] == {"id": "K1A0B1", "zip": None, "v": "x"}


def test_texts_of_json_are_keys_of_their_own(path: str, landing: Landing) -> None:
    keys = ["2024-01-01", "2024-01-01 00:00", "2024-01-01T00:00:00"]
    landing.json("a.json", [{"id": key, "s": {"at": [key]}} for key in keys])
    run(path, landing)
    assert found_in(path) == [{"id": key, "s": {"at": [key]}} for key in sorted(keys)]


def test_types_are_inferred_where_an_option_asks(path: str, landing: Landing) -> None:
    options = {"hoodie.deltastreamer.csv.inferSchema": "true"}
    landing.text("a.csv", "id,n,f,zip,day,none\n1,1,1.5,01234,2026-01-02,\n", 1)
    landing.text("b.csv", "id,n,f,zip,day,none\n007,2,2,4,,\n", 2)
    run(path, landing, options=options)
    assert {one.name: one.type for one in hudi.Table.open(path).schema} == {
        "id": pa.string(),  # 007 is no key 7
        "n": pa.int64(),
        "f": pa.float64(),
        "zip": pa.string(),
        "day": pa.date32(),
    }
    assert [row["id"] for row in found_in(path)] == ["007", "1"]


def test_strings_of_parquet_are_not_inferred(path: str, landing: Landing) -> None:
    options = {"hoodie.streamer.csv.inferSchema": "true"}
    landing.parquet("LOAD1.parquet", pa.table({"id": ["1"], "code": ["7"]}))
    run(path, landing, options=options, source_format="dms")
    assert found_in(path, "id", "code") == [{"id": "1", "code": "7"}]


def test_types_are_those_of_a_schema(path: str, landing: Landing, tmp_path: Path) -> None:
    """Also of columns that the table does not have yet."""
    schema = tmp_path / "columns.avsc"
    options = {"hoodie.streamer.schemaprovider.source.schema.file": str(schema)}
    fields = [{"name": "id", "type": "long"}, {"name": "n", "type": ["null", "int"]}]
    schema.write_text(json.dumps({"type": "record", "name": "rows", "fields": fields}))
    landing.text("a.csv", "id,n,name\n1,007,a\n", 1)
    run(path, landing, options=options)
    fields.append({"name": "f", "type": ["null", "double"]})
    schema.write_text(json.dumps({"type": "record", "name": "rows", "fields": fields}))
    landing.text("b.csv", "id,f\n2,1.5\n", 2)
    run(path, landing, options=options)
    assert found_in(path) == [
        {"id": 1, "n": 7, "name": "a", "f": None},
        {"id": 2, "n": None, "name": None, "f": 1.5},
    ]
    schema.write_text("{}")
    landing.text("c.csv", "id\n3\n", 3)
    with pytest.raises(SchemaError):
        run(path, landing, options=options)


@pytest.mark.parametrize(
    ("file", "text", "line", "column", "value"),
    [
        ("b.csv", 'id,name\n2,"b\nb"\n007,c\n', 4, "id", "007"),
        ("b.csv", "id,n\n2,1\n3,x\n", 3, "n", "x"),
        ("b.csv", "id,n\n2,1\n3,99999999999\n", 3, "n", "99999999999"),
        ("b.csv", "id,name\n2,caf\xe9\n", 2, None, None),
        ("b.csv", "id,name\n2\n", 2, None, None),
        ("b.json", '{"id": 2}\n{"id": "007"}', 2, "id", "007"),
        ("b.json", '{"id": 2}\n{"id": 3, "name": 7}', 2, "name", "7"),
        ("20260101.csv", "I,2,1,b\nU,007,1,c\n", 2, "id", "007"),
        ("20260101.csv", "I,2,1,b\nX,1,1,c\n", 2, "Op", "X"),
        ("20260101.csv", "I,2,1,b\nd,1,1,c\n", 2, "Op", "d"),
    ],
)
def test_a_file_that_contradicts_the_table_is_named_by_line(
    path: str, landing: Landing, file: str, text: str, line: int, column: str, value: str
) -> None:
    table = hudi.Table.create(path, NARROW, record_key="id")
    table.insert(pa.Table.from_pylist([{"id": 1, "n": 1, "name": "a"}], NARROW))
    before = found_in(path)
    (landing.folder / file).write_bytes(text.encode("latin-1"))
    given = {"source_format": "dms"} if file.startswith("2") else {}
    with pytest.raises(SourceFileError, match=rf"^{file} .*: line {line} ") as refused:
        run(path, landing, **given)
    found = refused.value
    assert (found.path, found.line, found.column, found.value) == (file, line, column, value)
    assert found_in(path) == before


def test_a_change_that_dms_does_not_make_is_refused(path: str, landing: Landing) -> None:
    landing.parquet("20260101.parquet", pa.table({"Op": ["I", None], "id": [1, 2]}))
    with pytest.raises(SourceFileError, match=r"row 2 has None in the column Op, .* I, U, D"):
        run(path, landing, source_format="dms")
    assert not Path(path).exists()


def test_csv_in_another_encoding(path: str, landing: Landing) -> None:
    (landing.folder / "a.csv").write_bytes("id,name\n1,café\n".encode("windows-1252"))
    with pytest.raises(SourceFileError, match=r"csv\.encoding"):
        run(path, landing)
    run(path, landing, options={"hoodie.streamer.csv.encoding": "windows-1252"})
    assert found_in(path) == [{"id": "1", "name": "café"}]


def test_what_pandas_counts_rows_by_is_no_column(path: str, landing: Landing) -> None:
    frame = pd.DataFrame({"id": [1, 2]})
    frame[frame.id > 1].to_parquet(landing.folder / "a.parquet")
    run(path, landing)
    assert found_in(path) == [{"id": 2}]


def test_files_of_one_commit_do_not_change_each_others_numbers(path: str, landing: Landing) -> None:
    landing.parquet("a.parquet", pa.table({"id": [(1 << 53) + 1, 1 << 53]}), 1)
    landing.parquet("b.parquet", pa.table({"id": [1.5]}), 2)
    with pytest.raises(SchemaError, match=r"Numbers in a\.parquet would change"):
        run(path, landing)
    landing.parquet("b.parquet", pa.table({"id": ["x"]}), 2)
    with pytest.raises(SchemaError, match=r"id has the type string in b\.parquet, and int64"):
        run(path, landing)
    assert not Path(path).exists()


KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


def test_rows_of_files_keep_what_they_lack(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1, "a": "1", "b": "1"}, {"id": 2, "a": "2", "b": "2"}], 1)
    run(path, landing)
    landing.json("b.json", [{"id": 1, "a": "x"}, {"id": 2, "b": "y"}, {"id": 1, "c": 3}], 2)
    landing.json("c.json", [{"id": 2, "c": 4}], 3)
    run(path, landing, options=KEEP)
    expected = [{"id": 1, "a": "x", "b": "1", "c": 3}, {"id": 2, "a": "2", "b": "y", "c": 4}]
    assert found_in(path) == expected
    landing.parquet("d.parquet", pa.table({"id": [1], "a": ["z"]}), 4)
    landing.parquet("e.parquet", pa.table({"id": [2], "b": ["z"]}), 5)
    run(path, landing, options=KEEP, source_format="parquet")
    expected[0]["a"] = expected[1]["b"] = "z"
    assert found_in(path) == expected
    sql = {"hoodie.streamer.transformer.sql": "SELECT * FROM <SRC>"}
    landing.json("f.json", [{"id": 1, "a": "x"}, {"id": 2}], 6)
    with pytest.raises(SchemaError, match=r"Line 2 of f\.json lacks the column 'a', and .* query"):
        run(path, landing, options={**KEEP, **sql}, source_format="json")


def test_rows_of_files_that_lack_columns_are_named(path: str, landing: Landing) -> None:
    strict = {"hoodie.write.set.null.for.missing.columns": "false"}
    landing.json("a.json", [{"id": 1, "s": {"a": 1, "b": 1}, "v": 1}], 1)
    run(path, landing, options=strict)
    landing.json("b.json", [{"id": 2, "s": {"a": 1, "b": 1}, "v": 1}], 2)
    landing.json("c.json", [{"id": 3, "s": {"a": 1, "b": 1}, "v": 1}, {"id": 4, "v": 1}], 3)
    with pytest.raises(SchemaError, match=r"^Line 2 of c\.json lacks the column 's'"):
        run(path, landing, options=strict)
    landing.json("c.json", [{"id": 3, "s": {"a": 1}, "v": 1}], 3)
    with pytest.raises(SchemaError, match=r"^Line 1 of c\.json lacks the column 's\.b'"):
        run(path, landing, options=strict)
    assert [row["id"] for row in found_in(path)] == [1]
