"""What is imported when: a name of the library when it is used, and no sooner."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.impure  # nearly every test starts a process

# pyarrow.dataset imports pandas: one query needs it, opening a table does not
HEAVY = frozenset(
    {
        *("pandas", "pyarrow.dataset", "pyspark", "moto", "fsspec", "polars", "typer"),
        "prometheus_client",
    }
)
EXTRAS = frozenset(
    {"pyspark", "py4j", "kazoo", "boto3", "thrift", "pyiceberg", "deltalake", "hudi"}
)
"""Engines, servers and other formats."""

EVERY_HELP = """
import contextlib, io, sys
import typer
from hudi_core.cli import app

def commands(group, words):
    yield words
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, [*words, name])

shown = [*commands(typer.main.get_command(app), [])]
assert ["table", "adopt"] in shown and ["metadata", "validate"] in shown, shown
with contextlib.redirect_stdout(io.StringIO()) as printed:
    for words in [["--version"], *([*words, "--help"] for words in shown)]:
        try:
            app(words)
        except SystemExit as end:
            assert end.code == 0, words
assert printed.getvalue().count("Usage:") == len(shown)
"""


def loaded_by(code: str) -> frozenset[str]:
    """The modules that a fresh process has after it has run some code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def ours(modules: frozenset[str]) -> set[str]:
    return {name for name in modules if name.startswith("hudi_core.")}


ERRORS = "hudi_core.errors."
"""Modules of errors, which import one another alone."""


def test_the_package_alone_is_light() -> None:
    loaded = loaded_by("import hudi_core")
    # the packages read and write without any module of theirs
    light = {"errors", "lazy", "spark_python", "read", "write"}
    found = {name for name in ours(loaded) if not name.startswith(ERRORS)}
    assert found == {f"hudi_core.{name}" for name in light}
    assert loaded.isdisjoint({*HEAVY, "pyarrow", "numpy"})


def test_a_table_loads_what_most_queries_do_without() -> None:
    loaded = loaded_by("import hudi_core; hudi_core.Table; hudi_core.read; hudi_core.write")
    assert loaded.isdisjoint(HEAVY)


def test_the_interface_of_plugins_neither_reads_nor_writes_rows() -> None:
    loaded = loaded_by("import hudi_core.spi")
    assert loaded.isdisjoint({*HEAVY, *EXTRAS, "hudi_core.table", "hudi_core.doors.datasource"})
    rows = ("hudi_core.read.", "hudi_core.write.", "hudi_core.services.", "hudi_core.index")
    assert [name for name in ours(loaded) if name.startswith(rows)] == []


def test_every_help_comes_without_the_library() -> None:
    loaded = loaded_by(EVERY_HELP)
    assert loaded.isdisjoint({*HEAVY - {"typer"}, "pyarrow", "numpy", "hudi_core.config"})
    # of extension: how foreign code is called; commands: what commands of others are made of
    beside = (
        *("hudi_core.cli", "hudi_core.commands", "hudi_core.plugin", "hudi_core.extension"),
        ERRORS,
    )
    light = {"hudi_core." + name for name in ("errors", "lazy", "spark_python", "read", "write")}
    # names that commands show, in modules that import nothing
    names = "hudi_core.metadata.partitions.names"
    light |= {names.rsplit(".", depth)[0] for depth in (1, 2)} | {names}
    assert {name for name in ours(loaded) if not name.startswith(beside)} == light
    assert "hudi_core.plugin.host" not in loaded


@pytest.mark.parametrize("name", ["hudi_core", "hudi_core.cli.library"])
def test_type_checkers_see_the_names_where_they_are_imported_from(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    homes = module._HOMES
    assert dict(checked_imports(Path(module.__file__))) == homes
    assert homes.keys() <= set(module.__all__) <= set(dir(module))
    for one in module.__all__:
        assert getattr(module, one) is vars(module)[one]
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018 - the access is the test


def checked_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Names that a file imports for type checkers, each with its module."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for one in statement.body:
                assert isinstance(one, ast.ImportFrom)
                assert one.module is not None
                yield from ((alias.name, one.module) for alias in one.names)


def test_functions_keep_their_names_beside_packages_of_these_names() -> None:
    code = """
import hudi_core.read.plan, hudi_core.write.client
from hudi_core import *
from hudi_core.spi import *
from native_format.plugin import *
import hudi_core as hudi
import pickle
assert hudi.read is read and hudi.write is write
assert read.__module__ == write.__module__ == "hudi_core.doors.datasource"
assert sys.modules["hudi_core.read"] is not hudi.read
for one in (Table, LocalEngine, WriteOperation, HudiError, read):
    assert pickle.loads(pickle.dumps(one)) is one
"""
    assert loaded_by("import sys" + code).isdisjoint(EXTRAS)
