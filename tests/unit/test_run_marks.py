"""How tests get the mark ``pure``, and which cells of matrices a run takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.samples import cells_of_other_turns

SOME_TESTS = """
import subprocess, sys, threading
import pytest

@pytest.fixture
def folder(tmp_path):
    return tmp_path

def test_counts(monkeypatch):
    assert 1 + 1 == 2

def test_starts_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.mark.impure
def test_says_that_it_starts_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_writes_somewhere(request):
    with open(request.config.rootpath / "written", "w"):
        pass

def test_has_a_folder(folder):
    (folder / "file").write_text("")
"""


def test_a_pure_test_has_no_fixture_of_the_system_and_touches_nothing(tmp_path: Path) -> None:
    for room in ("one", "two"):
        (tmp_path / "tests" / room).mkdir(parents=True)
        (tmp_path / "tests" / room / f"test_{room}.py").write_text(SOME_TESTS)
    marks = [f"{mark}: of the plugin" for mark in ("pure", "impure")]
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  " + "\n  ".join(marks))
    plugins = ["-p", "tests.purity", "-p", "tests.folder_seconds", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-m", "pure", *plugins, "--tb=line", "tests"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert "4 failed, 2 passed, 4 deselected" in done.stdout, done.stdout
    assert "subprocess.Popen" in done.stdout
    assert f"open {tmp_path / 'written'}" in done.stdout
    table = done.stdout.partition("seconds by folder")[2]
    assert sorted(re.findall(r"s +(\d+) tests +(\S+)", table)) == [
        ("3", "tests/one"),
        ("3", "tests/two"),
    ]


# --- which cells of matrices a run takes
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100])
def test_each_cell_has_its_turn(count: int) -> None:
    """Within three commits in a row, and no test goes without a cell."""
    cells = {f"tests/test_x.py::test_it[{n}]" for n in range(count)}
    for first in range(12):
        taken = [cells - cells_of_other_turns(cells, first + n) for n in range(3)]
        assert set().union(*taken) == cells
        assert all(1 <= len(some) <= -(-count // min(3, count)) for some in taken)


def test_checks_of_a_module_may_be_one_matrix() -> None:
    names = [f"tests/test_x.py::TestIt::test_{check}" for check in "abcdef"]
    assert len(cells_of_other_turns([*names, "tests/test_x.py::test_it"], 0, names)) == 4


def test_tests_do_not_take_the_same_turn() -> None:
    names = [f"tests/test_{test}.py::test_it[{cell}]" for test in range(40) for cell in "abc"]
    taken = set(names) - cells_of_other_turns(names, 0)
    assert len(taken) == 40
    assert {name[-2] for name in taken} == {"a", "b", "c"}


@pytest.mark.impure
def test_files_are_in_memory_where_there_is_room(pytestconfig: pytest.Config) -> None:
    name = str(Path(__file__).parents[1] / "conftest.py")
    conftest = pytestconfig.pluginmanager.get_plugin(name)
    assert conftest is not None
    assert conftest.folder_in_memory(free=1 << 60) is None
    assert conftest.folder_in_memory(available=1 << 60) is None
    folder = conftest.folder_in_memory(0, 0)
    if folder is not None:  # there is none on other systems, or programs may not run from it
        script = Path(folder, f"runs-{os.getpid()}")
        script.write_text("#!/bin/sh\n")
        script.chmod(0o700)
        try:
            subprocess.run([script], check=True)
        finally:
            script.unlink()
