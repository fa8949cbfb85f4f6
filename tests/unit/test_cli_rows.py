"""The commands that read rows, and the one that deletes a table."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import typer
from typer.testing import CliRunner, Result

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.cli.where import parse_where
from hudi_core.errors import ConcurrentWriterError
from hudi_core.txn.heartbeat import FOLDER
from tests.formats.service_tables import new_table

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


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments: str | Path) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    made = hudi.Table.create(
        str(tmp_path_factory.mktemp("rows") / "t"), ROWS.schema, record_key="id"
    )
    made.insert(ROWS)
    return made


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
def test_conditions_choose_rows(table: hudi.Table, where: str, ids: list[int]) -> None:
    found = table.to_arrow(["id"], parse_where(where))
    assert sorted(found["id"].to_pylist()) == ids


@pytest.mark.parametrize(
    "where",
    [
        "",
        "city",
        "city =",
        "city = Rome",
        "= 'Rome'",
        "'Rome' = city",
        "city = 'Rome",
        "city = null",
        "city = 'a' OR city = 'b'",
        "city = 'a',",
        "city = 'a'; DROP TABLE t",
        "city in ()",
        "city in ('a'",
        "city is 'a'",
        "id = 1.",
        "id = 1x",
        "id < (1)",
        "not city = 'a'",
        "id = __import__('os')",
    ],
)
def test_other_conditions_are_wrong_usage(where: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_where(where)


def test_head(table: hudi.Table) -> None:
    document = run_json("table", "head", table.path)

    assert document["path"] == table.path
    assert document["columns"] == table.schema.names
    by_id = {row["id"]: row for row in document["rows"]}
    assert by_id[1] == {
        "id": 1,
        "city": "Rome",
        "fare": 1.5,
        "price": "1.50",
        "day": "2026-01-01",
        "at": "2026-01-01T00:00:00+00:00",
        "paid": True,
        "raw": "01",
        "tags": ["a", "b"],
    }
    assert by_id[2]["fare"] == "nan"
    assert by_id[4]["city"] is None


def test_head_of_some_columns_and_rows(table: hudi.Table) -> None:
    words = ("table", "head", table.path, "--columns", "city, id", "--where", "id >= 2")

    assert len(run_json("table", "head", table.path, "-n", "3")["rows"]) == 3
    found = run_json(*words)
    assert found["columns"] == ["city", "id"]
    assert {row["id"] for row in found["rows"]} == {2, 3, 4}
    shown = run(*words, "-n", "10")
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["null", "4"] in lines
    assert ["city", "id"] in lines


def test_count(table: hudi.Table) -> None:
    assert run_json("table", "count", table.path) == {"path": table.path, "where": None, "rows": 4}
    where = "city = 'Rome'"
    assert run_json("table", "count", table.path, "--where", where)["rows"] == 1
    assert run("table", "count", table.path, "--where", where).stdout == "1\n"
    assert table.count(pc.field("city") == "Rome") == 1


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
def test_what_cannot_be_asked_is_refused(
    table: hudi.Table, arguments: list[str], code: int, words: str
) -> None:
    command, *rest = arguments
    shown = run("table", command, table.path, *rest, "--json")

    assert shown.exit_code == code
    assert words in json.loads(shown.stdout)["error"]["message"]


# --- drop


def files(path: Path) -> list[Path]:
    locks = path / ".hoodie" / ".locks"
    return [one for one in path.rglob("*") if one.is_file() and locks not in one.parents]


@pytest.mark.parametrize("table_format", ["native", "iceberg", "delta"])
def test_drop(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    new_table(path, table_format)
    there = files(path)

    planned = run_json("table", "drop", path, "--dry-run")

    assert planned == {
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
    again = run("table", "drop", path, "--yes", "--json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["error"]["type"] == "NotATableError"


@pytest.mark.parametrize("arguments", [[], ["--yes", "--dry-run"]])
def test_drop_asks_for_a_word(tmp_path: Path, arguments: list[str]) -> None:
    new_table(tmp_path / "t")
    there = files(tmp_path / "t")

    shown = run("table", "drop", tmp_path / "t", *arguments)

    assert shown.exit_code == 2
    assert "--yes" in shown.stderr
    assert files(tmp_path / "t") == there


def test_a_table_that_is_written_is_not_dropped(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    beat = tmp_path / "t" / FOLDER / "20300101000000000"
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    there = files(tmp_path / "t")

    for how in ("--yes", "--dry-run"):
        assert run("table", "drop", table.path, how).exit_code == 1
    for dry_run in (False, True):
        with pytest.raises(ConcurrentWriterError):
            table.drop(dry_run=dry_run)
    assert files(tmp_path / "t") == there
    beat.unlink()
    assert table.drop().files == len(there) - 1
