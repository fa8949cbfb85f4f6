"""The commands on tables: create, show, timeline, rollback, head, count, drop."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from typer.testing import Result

import hudi_core as hudi
from hudi_core.cli.table import parse_where
from hudi_core.errors import ConcurrentWriterError
from hudi_core.txn.heartbeat import FOLDER
from tests.cli_runs import run, run_json
from tests.tables import FORMATS, copied, new_table, pairs, rows

TRIPS = pa.schema({"id": "int64", "city": "string", "fare": "float64", "ts": "int64"})
AVRO = {
    "type": "record",
    "name": "trip",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "fare", "type": ["null", "double"], "default": None},
        {"name": "ts", "type": ["null", "long"], "default": None},
    ],
}


def trips(*ids: int, city: str = "Rome") -> pa.Table:
    return rows(*ids, schema=TRIPS, city=city, fare=1.5, ts=1)


def two_cities(path: Path) -> hudi.Table:
    made = new_table(path, trips(1, 2), name="trips")
    made.insert(trips(3, city="Oslo"))
    return made


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "trips", two_cities)


@pytest.mark.parametrize("position", range(4))
def test_json_is_asked_for_anywhere(table: hudi.Table, position: int) -> None:
    words = ["table", "show", table.path]
    shown = run(*words[:position], "--json", *words[position:])
    assert shown.exit_code == 0, shown.stderr
    assert json.loads(shown.stdout)["path"] == table.path


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(AVRO))
    return path


# --- table create
def test_create_from_an_avro_schema(tmp_path: Path, schema_file: Path) -> None:
    path = tmp_path / "trips"
    made = run(
        *("table", "create", path, "--name", "journeys", "--record-key", "id, ts"),
        *("--partition-by", "city", "--ordering-field", "ts", "--format", "native"),
        *("--schema", schema_file),
        *("--option", "hoodie.datasource.write.hive_style_partitioning=true"),
    )
    assert made.exit_code == 0, made.stderr
    assert made.stderr == ""
    assert made.stdout == f"Created journeys at {path}: 4 columns, format native.\n"
    table = hudi.Table.open(str(path))
    assert table.config.name == "journeys"
    assert table.config.record_key_fields == ("id", "ts")
    assert table.config.partition_fields == ("city",)
    assert table.config.ordering_fields == ("ts",)
    assert table.config.hive_style
    assert [(one.name, one.type) for one in table.schema] == [(one.name, one.type) for one in TRIPS]


def test_create_from_a_parquet_file(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(trips(1), source)
    named = ("--record-key", "id", "--schema-from", source)
    document = run_json("table", "create", tmp_path / "made", *named)
    assert document["name"] == "made"
    assert document["partition_by"] == []
    names = [column["name"] for column in document["columns"]]
    assert names == ["id", "city", "fare", "ts"]


def test_create_a_table_with_log_files(tmp_path: Path, schema_file: Path) -> None:
    path = tmp_path / "trips"
    named = ("--record-key", "id", "--schema", schema_file, "--type", "MERGE_ON_READ")
    assert run("table", "create", path, *named).exit_code == 0
    assert hudi.Table.open(path).config.table_type == "MERGE_ON_READ"
    wrong = run("table", "create", tmp_path / "other", *named[:-1], "mor")
    assert (wrong.exit_code, "MERGE_ON_READ" in wrong.stderr) == (1, True)


def test_create_from_a_base_file_takes_no_meta_columns(tmp_path: Path, table: hudi.Table) -> None:
    base = next(Path(table.path).rglob("*.parquet"))

    run_json("table", "create", tmp_path / "copy", "--record-key", "id", "--schema-from", base)

    assert hudi.Table.open(str(tmp_path / "copy")).schema.names == table.schema.names


BAD_SCHEMAS = {
    "no JSON": b"{",
    "no record": b'"string"',
    "no Avro": b'{"type": "struct", "fields": []}',
    "no text": b"\xff\xfe\x00",
    "not there": None,
}


def refused(made: Result, path: Path, *, code: int = 1) -> str:
    """What a refused creation says on one line, having made nothing."""
    assert (made.exit_code, made.stdout) == (code, "")
    assert not path.exists()
    if code == 1:
        assert made.stderr.startswith("error: ")
        assert made.stderr.count("\n") == 1
    return made.stderr


@pytest.mark.parametrize("data", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS.keys())
@pytest.mark.parametrize("option", ["--schema", "--schema-from"])
def test_a_bad_schema_file_is_refused(tmp_path: Path, option: str, data: bytes | None) -> None:
    source = tmp_path / "bad"
    if data is not None:
        source.write_bytes(data)
    made = run("table", "create", tmp_path / "t", "--record-key", "id", option, source)
    assert "unexpected" not in refused(made, tmp_path / "t")


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "--schema a.json --schema-from b.parquet",
        "--schema SCHEMA --option hunter2",
        "--schema SCHEMA --option =x",
        "--schema SCHEMA -o a=1 -o a=2",
    ],
)
def test_wrong_usage_of_create(tmp_path: Path, schema_file: Path, wrong: str) -> None:
    arguments = wrong.replace("SCHEMA", str(schema_file)).split()
    made = run("table", "create", tmp_path / "t", "--record-key", "id", *arguments)
    assert "hunter2" not in refused(made, tmp_path / "t", code=2), "it may be a secret"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--record-key", "nope"], "nope"),
        (["--record-key", "id", "--partition-by", "nope"], "nope"),
        (["--record-key", "id", "-o", "hoodie.table.version=7"], "hoodie.table.version"),
    ],
)
def test_what_the_table_refuses_is_one_message(
    tmp_path: Path, schema_file: Path, arguments: list[str], words: str
) -> None:
    made = run("table", "create", tmp_path / "t", "--schema", schema_file, *arguments)
    assert words in refused(made, tmp_path / "t")


def test_an_unknown_option_is_a_warning(tmp_path: Path, schema_file: Path) -> None:
    made = run(
        *("table", "create", tmp_path / "t", "--record-key", "id", "--schema", schema_file),
        *("-o", "hoodie.table.nmae=x", "--json"),
    )

    assert made.exit_code == 0, made.stderr
    assert made.stderr.startswith("warning: ")
    assert "hoodie.table.nmae" in made.stderr
    assert json.loads(made.stdout)["name"] == "t"


def test_a_table_is_not_created_twice(table: hudi.Table, schema_file: Path) -> None:
    again = run("table", "create", table.path, "--record-key", "id", "--schema", schema_file)
    assert again.exit_code == 1
    assert table.path in again.stderr


# --- table show
def test_show(table: hudi.Table) -> None:
    document = run_json("table", "show", table.path)

    latest = table.timeline.completed_writes()[-1]
    slices = table.file_slices()
    assert document | {"columns": None, "latest_write": None} == {
        "path": table.path,
        "name": "trips",
        "format": "native",
        "type": "COPY_ON_WRITE",
        "mode": None,
        "version": 8,
        "record_key": ["id"],
        "partition_by": ["city"],
        "hive_style": False,
        "key_generator": "SIMPLE",
        "ordering_field": "ts",
        "merge_mode": "EVENT_TIME_ORDERING",
        "timezone": "UTC",
        "zone": "UTC",
        "writes": 2,
        "pending": 0,
        "latest_write": None,
        "partitions": 2,
        "file_groups": 2,
        "bytes": sum(one.total_size for one in slices),
        "log_files": 0,
        "log_bytes": 0,
        "columns": None,
        "slices": [],
        "logs_since": None,
    }
    assert document["latest_write"]["instant"] == latest.requested_time
    assert document["columns"][0] == {"id": 6, "name": "id", "type": "int64", "nullable": True}
    sizes = [path.stat().st_size for path in Path(table.path).rglob("*.parquet")]
    assert document["bytes"] == sum(sizes)


def test_show_for_people(table: hudi.Table) -> None:
    shown = run("table", "show", table.path)

    assert shown.exit_code == 0
    assert shown.stderr == ""
    for words in ("trips", "native", "EVENT_TIME_ORDERING", table.path, "fare", "double"):
        assert words in shown.stdout


def test_column_names_cannot_command_the_terminal(tmp_path: Path) -> None:
    hostile = "c\x1b]0;owned\x07[red]"
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([(hostile, pa.int64())]))])
    source = tmp_path / "s.parquet"
    pq.write_table(schema.empty_table(), source)

    made = run("table", "create", tmp_path / "t", "--record-key", "id", "--schema-from", source)
    shown = run("table", "show", tmp_path / "t")

    for result in (made, shown):
        assert "\x1b" not in result.output
        assert "\x07" not in result.output


@pytest.mark.parametrize("command", [["table", "show"], ["timeline"]])
def test_a_path_without_table(tmp_path: Path, command: list[str]) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        shown = run(*command, path, "--json")
        assert shown.exit_code == 1
        assert str(path) in json.loads(shown.stdout)["error"]["message"]
        assert str(path) in shown.stderr
        assert shown.stderr.count("\n") == 1


# --- timeline
def test_timeline(table: hudi.Table) -> None:
    document = run_json("timeline", table.path)
    assert document["path"] == table.path
    assert document["instants"] == [
        {
            "instant": instant.requested_time,
            "action": "commit",
            "state": "completed",
            "completion_time": instant.completion_time,
            "archived": False,
        }
        for instant in table.timeline.instants
    ]
    assert len(document["instants"]) == 2
    assert run_json("timeline", table.path, "--all") == document
    lines = run("timeline", table.path).stdout.splitlines()
    for instant in table.timeline.instants:
        line = next(line for line in lines if instant.requested_time in line)
        words = [instant.requested_time, "commit", "completed", instant.completion_time]
        assert line.split() == words


def test_pending_instants_are_shown(table: hudi.Table) -> None:
    pending = "20300101000000000"
    (Path(table.path) / ".hoodie" / "timeline" / f"{pending}.commit.requested").touch()
    shown = run_json("timeline", table.path)["instants"][-1]
    names = ("instant", "state", "completion_time")
    assert [shown[name] for name in names] == [pending, "requested", None]
    assert run_json("table", "show", table.path)["pending"] == 1


def test_archived_instants_are_shown_on_demand(table: hudi.Table) -> None:
    archive(table, "20200101000000000", "20200101000001000", action="clean")
    first = table.timeline.instants[0]
    assert first.completion_time is not None
    # archiving was interrupted: an instant is on both timelines
    archive(table, first.requested_time, first.completion_time, action="commit")

    active = run_json("timeline", table.path)["instants"]
    everything = run_json("timeline", table.path, "--all")["instants"]

    expected = [instant.requested_time for instant in table.timeline.instants]
    assert [instant["instant"] for instant in active] == expected
    assert everything == [
        {
            "instant": "20200101000000000",
            "action": "clean",
            "state": "completed",
            "completion_time": "20200101000001000",
            "archived": True,
        },
        *active,
    ]
    assert "archived" in run("timeline", table.path, "--all").stdout
    assert "archived" not in run("timeline", table.path).stdout


def archive(table: hudi.Table, requested: str, completed: str, action: str) -> None:
    """Add a file with one instant to the table's history, as Hudi's archiver does."""
    folder = Path(table.path) / ".hoodie" / "timeline" / "history"
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        "instantTime": [requested],
        "completionTime": [completed],
        "action": [action],
        "metadata": pa.array([b"{}"]),
        "plan": pa.array([None], pa.binary()),
        "version": pa.array([1], pa.int32()),
    }
    pq.write_table(pa.table(row), folder / f"{requested}_{requested}_0.parquet")
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.parquet")}
    entries = [{"fileName": name, "fileLen": size} for name, size in sizes.items()]
    (folder / "manifest_1").write_text(json.dumps({"files": entries}))
    (folder / "_version_").write_text("1")


# --- rollback
def test_rollback(table: hudi.Table) -> None:
    first, last = table.timeline.completed_writes()
    document = run_json("rollback", table.path, last.requested_time)
    assert document["path"] == table.path
    assert document["rolled_back"] == last.requested_time
    assert document["rollback"]["action"] == "rollback"
    assert document["rollback"]["state"] == "completed"
    assert table.timeline.completed_writes() == (first,)
    assert pairs(table.to_arrow("id")) == [(1,), (2,)]
    times = [instant.requested_time for instant in table.timeline.instants]
    assert times == [first.requested_time, document["rollback"]["instant"]]
    done = run("rollback", table.path, first.requested_time)
    said = f"Rolled back {first.requested_time} of {table.path}; the rollback is "
    assert (done.exit_code, done.stdout.startswith(said)) == (0, True)


def test_a_rollback_says_what_would_go_and_deletes_just_that(table: hudi.Table) -> None:
    last = table.timeline.completed_writes()[-1].requested_time
    root = Path(table.path)
    before = files(root)
    document = run_json("rollback", table.path, last, "--dry-run")
    shown = run("rollback", table.path, last, "--dry-run")
    assert files(root) == before
    assert document["target"] == last
    assert document["files"]
    assert f"would roll back {last} and delete {len(document['files'])} file" in shown.stdout
    assert all(one in shown.stdout for one in document["files"])
    table.rollback(last)
    gone = {*before} - {*files(root)}
    data = {str(one.relative_to(root)) for one in gone if one.suffix == ".parquet"}
    assert data == set(document["files"])


def test_a_restore_needs_a_word(table: hudi.Table) -> None:
    first = table.timeline.completed_writes()[0].requested_time
    before = table.timeline.instants
    refused = run("restore", table.path, first)
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert run("restore", table.path, first, "--dry-run").exit_code == 0
    assert hudi.Table.open(table.path).timeline.instants == before
    assert run("restore", table.path, first, "--yes").exit_code == 0
    assert hudi.Table.open(table.path).timeline.completed_writes()[-1].requested_time == first


@pytest.mark.parametrize("command", ["rollback", "restore"])
def test_a_terminal_shows_how_many_files_are_gone(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    first, last = (one.requested_time for one in table.timeline.completed_writes())
    monkeypatch.setattr("hudi_core.cli.terminal.Console", partial(Console, force_terminal=True))
    done = run(command, table.path, *([last] if command == "rollback" else [first, "--yes"]))
    assert done.exit_code == 0, done.stderr
    assert re.search(r"files .*?(\d+)/\1\b", done.stderr)


def test_rollback_refuses_what_is_not_there_or_not_last(table: hudi.Table) -> None:
    first = table.timeline.completed_writes()[0].requested_time
    before = table.to_arrow()
    for instant in ("20200101000000000", "yesterday", first):
        done = run("rollback", table.path, instant, "--json")
        planned = run("rollback", table.path, instant, "--json", "--dry-run")
        assert planned.stdout == done.stdout
        assert done.exit_code == planned.exit_code == 1
        assert json.loads(done.stdout).keys() == {"error"}
        assert (f"'{instant}'" if instant == "yesterday" else instant) in done.stderr
    assert table.to_arrow().equals(before)


# --- the program itself
def test_the_console_script(table: hudi.Table) -> None:
    hudi_program = Path(sys.executable).with_name("hudi")

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [hudi_program, *arguments], capture_output=True, text=True, check=False, timeout=120
        )

    shown = call("timeline", table.path, "--json")
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert len(json.loads(shown.stdout)["instants"]) == 2

    refused = call("timeline", table.path + "-not")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1

    assert run("timeline").exit_code == 2
    assert run("--version").stdout.startswith("hudi-core ")


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4]),
        "city": ["Rome", "Oslo", "St. John's", None],
        "fare": [1.5, float("nan"), 3.0, None],
        "price": pa.array([Decimal("1.50"), None, Decimal("3.25"), None], pa.decimal128(9, 2)),
        "day": pa.array([date(2026, 1, n) for n in (1, 2, 3, 4)]),
        "at": pa.array([datetime(2026, 1, n, tzinfo=UTC) for n in (1, 2, 3, 4)]),
        "paid": [True, False, None, True],
        "raw": [b"\x01", None, b"", b"\xff"],
        "tags": [["a", "b"], [], None, ["c"]],
    }
)


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    return new_table(tmp_path_factory.mktemp("rows") / "t", ROWS, partition_by=None)


WHERE = {
    "city = 'Rome'": [1],
    "city == 'St. John''s'": [3],
    "city <> 'Rome'": [2, 3],
    "city != 'Rome' and id < 3": [2],
    '"city" IS NULL': [4],
    "city is not null AND fare >= 1.5 AND price > 2": [3],
    "id in (1, 4, 9)": [1, 4],
    "id NOT IN (1, 4)": [2, 3],
    "paid = TRUE": [1, 4],
    "paid=false": [2],
    "day > '2026-01-02'": [3, 4],
    "at <= '2026-01-02T00:00:00'": [1, 2],
    "price = 3.25": [3],
    "fare > -1e0": [1, 3],
}


@pytest.mark.parametrize(("where", "ids"), WHERE.items(), ids=WHERE)
def test_conditions_choose_rows(typed: hudi.Table, where: str, ids: list[int]) -> None:
    found = typed.to_arrow(["id"], parse_where(where))
    assert sorted(found["id"].to_pylist()) == ids


@pytest.mark.parametrize(
    "where",
    [
        *("", "city", "city =", "city = Rome", "= 'Rome'", "'Rome' = city", "city = 'Rome"),
        *("city = null", "city = 'a' OR city = 'b'", "city = 'a',", "city = 'a'; DROP TABLE t"),
        *("city in ()", "city in ('a'", "city is 'a'", "id = 1.", "id = 1x", "id < (1)"),
        *("not city = 'a'", "id = __import__('os')"),
    ],
)
def test_other_conditions_are_wrong_usage(where: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_where(where)


def test_head(typed: hudi.Table) -> None:
    document = run_json("table", "head", typed.path)
    assert document["path"] == typed.path
    assert document["columns"] == typed.schema.names
    by_id = {row["id"]: row for row in document["rows"]}
    texts = ("1.50", "2026-01-01", "2026-01-01T00:00:00+00:00", True, "01", ["a", "b"])
    assert list(by_id[1]) == ROWS.column_names
    assert list(by_id[1].values()) == [1, "Rome", 1.5, *texts]
    assert by_id[2]["fare"] == "nan"
    assert by_id[4]["city"] is None


def test_head_of_some_columns_and_rows(typed: hudi.Table) -> None:
    words = ("table", "head", typed.path, "--columns", "city, id", "--where", "id >= 2")

    assert len(run_json("table", "head", typed.path, "-n", "3")["rows"]) == 3
    found = run_json(*words)
    assert found["columns"] == ["city", "id"]
    assert {row["id"] for row in found["rows"]} == {2, 3, 4}
    shown = run(*words, "-n", "10")
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["null", "4"] in lines
    assert ["city", "id"] in lines


def test_count(typed: hudi.Table) -> None:
    document = run_json("table", "count", typed.path)
    assert document == {"path": typed.path, "where": None, "rows": 4}
    where = "city = 'Rome'"
    assert run_json("table", "count", typed.path, "--where", where)["rows"] == 1
    assert run("table", "count", typed.path, "--where", where).stdout == "1\n"
    assert typed.count(pc.field("city") == "Rome") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["count", "--where", "city = Rome"], 2, "lacks"),
        (["head", "--where", "city ="], 2, "lacks"),
        (["head", "-n", "0"], 2, "greater"),
        (["count", "--where", "nope = 1"], 1, "nope"),
        (["count", "--where", "id = 'x'"], 1, "does not fit"),
        (["head", "--columns", "nope"], 1, "nope"),
    ],
)
def test_what_cannot_be_asked(
    typed: hudi.Table, arguments: list[str], code: int, words: str
) -> None:
    command, *rest = arguments
    shown = run_json("table", command, typed.path, *rest, code=code)
    assert words in shown["error"]["message"]


# --- drop
def files(path: Path) -> list[Path]:
    locks = path / ".hoodie" / ".locks"
    return [one for one in path.rglob("*") if one.is_file() and locks not in one.parents]


@pytest.mark.parametrize("table_format", FORMATS)
def test_drop(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    new_table(path, trips(1), format=table_format)
    there = files(path)
    assert run_json("table", "drop", path, "--dry-run") == {
        "path": str(path),
        "dry_run": True,
        "name": "t",
        "format": table_format,
        "files": len(there),
        "bytes": sum(one.stat().st_size for one in there),
    }
    assert files(path) == there
    done = run("table", "drop", path, "--yes")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"Dropped t at {path} (format {table_format}): {len(there)} file")
    assert files(path) == []
    again = run_json("table", "drop", path, "--yes", code=1)
    assert again["error"]["type"] == "NotATableError"


@pytest.mark.parametrize("arguments", [[], ["--yes", "--dry-run"]])
def test_drop_asks_for_a_word(table: hudi.Table, arguments: list[str]) -> None:
    there = files(Path(table.path))
    shown = run("table", "drop", table.path, *arguments)
    assert shown.exit_code == 2
    assert "--yes" in shown.stderr
    assert files(Path(table.path)) == there


def test_a_table_that_is_written_is_not_dropped(table: hudi.Table) -> None:
    path = Path(table.path)
    beat = path / FOLDER / "20300101000000000"
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    there = files(path)
    for how in ("--yes", "--dry-run"):
        assert run("table", "drop", table.path, how).exit_code == 1
    for dry_run in (False, True):
        with pytest.raises(ConcurrentWriterError):
            table.drop(dry_run=dry_run)
    assert files(path) == there
    beat.unlink()
    assert table.drop().files == len(there) - 1
