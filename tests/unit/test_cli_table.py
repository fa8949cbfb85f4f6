"""The commands on real tables: create, show, timeline, rollback, formats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import hudi_core as hudi
from hudi_core.cli import app

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


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments: str | Path) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def trips(*ids: int, city: str = "Rome") -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([city] * count, pa.string()),
            "fare": pa.array([1.5] * count, pa.float64()),
            "ts": pa.array([1] * count, pa.int64()),
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = hudi.Table.create(
        str(tmp_path / "trips"),
        trips().schema,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering_field="ts",
    )
    made.insert(trips(1, 2))
    made.insert(trips(3, city="Oslo"))
    return made


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
    assert [(field.name, field.type) for field in table.schema] == [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("ts", pa.int64()),
    ]


def test_create_from_a_parquet_file(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(trips(1), source)

    document = run_json(
        *("table", "create", tmp_path / "made", "--record-key", "id", "--schema-from", source)
    )

    assert document["name"] == "made"
    assert document["partition_by"] == []
    names = [column["name"] for column in document["columns"]]
    assert names == ["id", "city", "fare", "ts"]


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


@pytest.mark.parametrize("data", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS.keys())
@pytest.mark.parametrize("option", ["--schema", "--schema-from"])
def test_a_bad_schema_file_is_refused(tmp_path: Path, option: str, data: bytes | None) -> None:
    source = tmp_path / "bad"
    if data is not None:
        source.write_bytes(data)

    made = run("table", "create", tmp_path / "t", "--record-key", "id", option, source)

    assert made.exit_code == 1
    assert made.stdout == ""
    assert made.stderr.startswith("error: ")
    assert made.stderr.count("\n") == 1
    assert "unexpected" not in made.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--schema", "a.json", "--schema-from", "b.parquet"],
        ["--schema", "SCHEMA", "--option", "novalue"],
        ["--schema", "SCHEMA", "--option", "=x"],
        ["--schema", "SCHEMA", "-o", "a=1", "-o", "a=2"],
    ],
)
def test_wrong_usage_of_create(tmp_path: Path, schema_file: Path, wrong: list[str]) -> None:
    arguments = [str(schema_file) if word == "SCHEMA" else word for word in wrong]

    made = run("table", "create", tmp_path / "t", "--record-key", "id", *arguments)

    assert made.exit_code == 2
    assert made.stdout == ""
    assert not (tmp_path / "t").exists()


def test_a_secret_in_a_malformed_option_is_not_shown(tmp_path: Path, schema_file: Path) -> None:
    made = run("table", "create", tmp_path / "t", "--schema", schema_file, "-o", "hunter2")

    assert made.exit_code == 2
    assert "hunter2" not in made.stderr


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

    assert made.exit_code == 1
    assert made.stdout == ""
    assert words in made.stderr
    assert made.stderr.startswith("error: ")
    assert made.stderr.count("\n") == 1
    assert not (tmp_path / "t").exists()


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
    again = run(*("table", "create", table.path, "--record-key", "id", "--schema", schema_file))

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
        "columns": None,
    }
    assert document["latest_write"]["instant"] == latest.requested_time
    assert document["columns"][0] == {"id": 6, "name": "id", "type": "int64", "nullable": True}
    assert document["bytes"] == sum(
        path.stat().st_size for path in Path(table.path).rglob("*.parquet")
    )


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


def test_timeline_for_people(table: hudi.Table) -> None:
    shown = run("timeline", table.path)

    assert shown.exit_code == 0
    for instant in table.timeline.instants:
        line = next(line for line in shown.stdout.splitlines() if instant.requested_time in line)
        words = [instant.requested_time, "commit", "completed", instant.completion_time]
        assert line.split() == words


def test_pending_instants_are_shown(table: hudi.Table) -> None:
    pending = "20300101000000000"
    (Path(table.path) / ".hoodie" / "timeline" / f"{pending}.commit.requested").touch()

    shown = run_json("timeline", table.path)["instants"][-1]

    assert (shown["instant"], shown["state"], shown["completion_time"]) == (
        pending,
        "requested",
        None,
    )
    assert run_json("table", "show", table.path)["pending"] == 1


def test_archived_instants_are_shown_on_demand(table: hudi.Table) -> None:
    archive(table, "20200101000000000", "20200101000001000", action="clean")
    first = table.timeline.instants[0]
    assert first.completion_time is not None
    # archiving was interrupted: an instant is on both timelines
    archive(table, first.requested_time, first.completion_time, action="commit")

    active = run_json("timeline", table.path)["instants"]
    everything = run_json("timeline", table.path, "--all")["instants"]

    assert [instant["instant"] for instant in active] == [
        instant.requested_time for instant in table.timeline.instants
    ]
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
    files = [
        {"fileName": path.name, "fileLen": path.stat().st_size} for path in folder.glob("*.parquet")
    ]
    (folder / "manifest_1").write_text(json.dumps({"files": files}))
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
    assert sorted(table.to_arrow(columns=["id"]).column("id").to_pylist()) == [1, 2]
    times = [instant.requested_time for instant in table.timeline.instants]
    assert times == [first.requested_time, document["rollback"]["instant"]]


def test_rollback_for_people(table: hudi.Table) -> None:
    last = table.timeline.completed_writes()[-1].requested_time

    done = run("rollback", table.path, last)

    assert done.exit_code == 0
    assert done.stdout.startswith(f"Rolled back {last} of {table.path}; the rollback is ")


def test_a_rollback_says_what_would_go_and_deletes_just_that(table: hudi.Table) -> None:
    last = table.timeline.completed_writes()[-1].requested_time
    root = Path(table.path)
    before = {str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()}

    document = run_json("rollback", table.path, last, "--dry-run")
    shown = run("rollback", table.path, last, "--dry-run")

    assert {str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()} == before
    assert document["target"] == last
    assert document["files"]
    assert f"would roll back {last} and delete {len(document['files'])} file" in shown.stdout
    assert all(one in shown.stdout for one in document["files"])
    table.rollback(last)
    there = {str(one.relative_to(root)) for one in root.rglob("*.parquet")}
    gone = {one for one in before - there if one.endswith(".parquet")}
    assert gone == set(document["files"])


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
    monkeypatch.setattr("hudi_core.cli.progress.Console", partial(Console, force_terminal=True))
    done = run(command, table.path, *([last] if command == "rollback" else [first, "--yes"]))
    assert done.exit_code == 0, done.stderr
    assert re.search(r"files .*?(\d+)/\1\b", done.stderr)


def test_rollback_refuses_what_is_not_there_or_not_last(table: hudi.Table) -> None:
    first = table.timeline.completed_writes()[0].requested_time
    before = table.to_arrow()

    for instant, words in (
        ("20200101000000000", "20200101000000000"),
        ("yesterday", "'yesterday'"),
        (first, first),
    ):
        done = run("rollback", table.path, instant, "--json")
        planned = run("rollback", table.path, instant, "--json", "--dry-run")
        assert planned.stdout == done.stdout
        assert done.exit_code == planned.exit_code == 1
        assert json.loads(done.stdout).keys() == {"error"}
        assert words in done.stderr
    assert table.to_arrow().equals(before)


# --- formats


def test_formats() -> None:
    native = next(one for one in run_json("formats")["formats"] if one["name"] == "native")

    assert native["distribution"] == "hudi-core"
    assert native["error"] is None
    assert "copy_on_write" in native["capabilities"]


def test_formats_for_people() -> None:
    shown = run("formats")

    assert shown.exit_code == 0
    assert "native" in shown.stdout
    assert "copy on write" in shown.stdout


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

    assert call("timeline").returncode == 2
    assert call("--version").stdout.startswith("hudi-core ")
