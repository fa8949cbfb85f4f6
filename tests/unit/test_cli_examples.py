"""The examples of `--help`: every command has some, and they run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from hudi_core.cli import app
from hudi_core.cli.examples import EXAMPLES, HEADING
from tests.tables import new_table

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "city": ["Rome", "Oslo"], "fare": [12.5, 9.0]})
ELSEWHERE = ("sync ", "serve-trino", "metadata set")
"""Commands that need a server, run until they are stopped, or only refuse."""
MADE_UP = ("20260131120000000", "s3://")
"""What examples name and no test has."""


def commands(group: Any, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}"


def test_every_command_has_examples() -> None:
    assert set(EXAMPLES) == set(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_shows_them(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    shown = result.stdout.partition(HEADING)[2]
    assert [line in shown for line in EXAMPLES[name]] == [True] * len(EXAMPLES[name])


RUN = [
    (name, line)
    for name, lines in EXAMPLES.items()
    for line in lines
    if not name.startswith(ELSEWHERE) and not any(one in line for one in MADE_UP)
]


def test_most_of_them_are_run() -> None:
    assert len(RUN) > 40


@pytest.mark.parametrize(("name", "line"), RUN, ids=[line for _, line in RUN])
def test_examples_run(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(name, line)
    program, *arguments = shlex.split(line)
    assert (program, line.split()[1 : 1 + len(name.split())]) == ("hudi", name.split())
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


def prepare(name: str, line: str) -> None:
    """What the example's paths hold before it runs."""
    pq.write_table(ROWS, "rows.parquet")
    for folder in ("incoming", "files"):
        Path(folder).mkdir()
        pq.write_table(ROWS, f"{folder}/rows.parquet")
    options = {"hoodie.metadata.record.index.enable": "true"} if "lookup" in name else {}
    if name == "metadata index":
        options = {"hoodie.metadata.index.column.stats.enable": "true"}
    if name == "metadata create":
        options = {"hoodie.metadata.enable": "false"}
    for path in ("trips", "arrived") if name != "ingest" else ("trips",):
        new_table(path, ROWS, options).upsert(ROWS)
