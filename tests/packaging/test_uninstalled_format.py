"""A table whose format is not installed: its package is named, and no other table suffers.

The package is uninstalled for processes of their own: they find every distribution of this
environment but that one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow as pa
import pytest

from tests.tables import new_table

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})
LEFT_OUT = ("delta", "iceberg")

USE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
import pyarrow as pa
import hudi_core as hudi
from hudi_core.cli import main
told = {}
def attempt(name, work):
    try:
        told[name] = work()
    except hudi.HudiError as error:
        told[name] = f"{type(error).__name__}: {error}"
foreign, native, new, name = sys.argv[1:]
rows = pa.table({"id": ["a", "c"], "n": [7, 8]})
attempt("open", lambda: hudi.Table.open(foreign).to_arrow().num_rows)
attempt("write", lambda: hudi.write(rows, foreign, mode="append", options={
    "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}).inserted)
attempt("create", lambda: hudi.Table.create(
    new, rows.schema, record_key="id", options={"hoodie.table.format": name}).path)
attempt("native", lambda: hudi.Table.open(native).upsert(rows).updated)
attempt("rows", lambda: sorted(hudi.Table.open(native).to_arrow()["n"].to_pylist()))
sys.argv[1:] = ["table", "show", foreign]
said = io.StringIO()
with redirect_stdout(said), redirect_stderr(said):
    try:
        main()
    except SystemExit as end:
        told["command"] = [end.code, said.getvalue()]
print(json.dumps(told))
"""


@pytest.fixture(params=LEFT_OUT)
def missing(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def without(tmp_path: Path, missing: str) -> dict[str, str]:
    """Give the environment of a process that does not have the format."""
    site = tmp_path / "site"
    site.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if f"hudi_{missing}_format" not in entry.name and entry.suffix != ".pth":
            (site / entry.name).symlink_to(entry)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(site)])}


def create(path: Path, format_name: str) -> Path:
    table = new_table(
        path,
        ROWS.schema,
        {"hoodie.table.format": format_name, "hoodie.fs.fsync": "false"},
        name="t",
    )
    table.insert(ROWS)
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_its_tables_fail_by_name_and_native_ones_go_on(
    tmp_path: Path, missing: str, without: dict[str, str]
) -> None:
    foreign, native = create(tmp_path / "foreign", missing), create(tmp_path / "native", "native")
    before = contents(foreign)
    paths = (str(foreign), str(native), str(tmp_path / "new"))
    done = subprocess.run(
        [sys.executable, "-S", "-c", USE, *paths, missing],
        env={**without, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for refused in ("open", "write", "create"):
        assert told[refused].startswith("UnknownTableFormatError"), told[refused]
        assert f"pip install hudi-{missing}-format" in told[refused]
        assert "native" in told[refused]
    assert not (tmp_path / "new").exists()
    assert contents(foreign) == before
    assert told["native"] == 1
    assert told["rows"] == [2, 7, 8]
    # the command line says it, too
    code, said = told["command"]
    assert code == 1
    assert f"pip install hudi-{missing}-format" in said
