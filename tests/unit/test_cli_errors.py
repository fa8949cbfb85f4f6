"""Formats that there are not: wrong usage where the command line names them, an error where a table
does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from hudi_core.cli import app
from hudi_core.extension.entry_points import installed_entry_points


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), tmp_path / "columns.parquet")
    return tmp_path / "columns.parquet"


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "PATH", "--record-key", "id", "--schema-from", "SCHEMA", "--format", "paimon"],
        ["create", "PATH", "--schema-from", "SCHEMA", "-o", "hoodie.table.format=paimon"],
        ["create", "PATH", "--schema-from", "SCHEMA", "-o", "hudi.table.format.plugin=Paimon"],
        ["convert", "PATH", "--to", "paimon"],
        ["adopt", "PATH", "--key", "id", "--format", "paimon"],
        ["adopt", "PATH", "--key", "id", "--from", "paimon"],
        ["show", "PATH", "-o", "hoodie.table.format=paimon"],
    ],
    ids=lambda one: " ".join(one[-2:]),
)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_a_format_that_is_not_installed_is_wrong_usage(
    tmp_path: Path, schema_file: Path, arguments: list[str], flags: list[str]
) -> None:
    places = {"PATH": str(tmp_path / "t"), "SCHEMA": str(schema_file)}

    used = run("table", *(places.get(word, word) for word in arguments), *flags)

    assert used.exit_code == 2
    assert used.stderr.startswith("error: No installed plugin provides the table format 'paimon'")
    assert used.stderr.count("\n") == 1
    assert not (tmp_path / "t").exists()
    if flags:
        told = json.loads(used.stdout)["error"]
        assert (told["type"], told["exit_code"]) == ("UnknownTableFormatError", 2)
        assert "hudi-paimon-format" in told["hint"]
    else:
        assert used.stdout == ""


def test_a_table_of_a_format_that_is_gone_is_no_wrong_usage(
    tmp_path: Path, schema_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ("--record-key", "id", "--schema-from", schema_file, "--format", "delta")
    assert run("table", "create", tmp_path / "t", *named).exit_code == 0
    found = installed_entry_points
    monkeypatch.setattr(
        "hudi_core.plugin.registry.installed_entry_points",
        lambda group: [one for one in found(group) if one.name != "delta"],
    )

    shown = run("table", "show", tmp_path / "t", "--json")

    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["error"]["type"] == "UnknownTableFormatError"
