"""A table format made from the template passes its conformance where only wheels are installed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from hudi_conformance.formats import CHECKS

from tests.formats.once import KNOWN_SOURCES
from tests.packaging.built_wheels import (
    CORE,
    REPOSITORY,
    CleanEnvironment,
    Wheels,
    build_wheels,
    new_environment,
    run,
)
from tests.packaging.local_index import LocalIndex
from tests.samples import IS_WHOLE, turn

GUIDE = REPOSITORY / "plugins" / "README.md"
NAME = "acme_ledger2"
DISTRIBUTION = "hudi-acme-ledger2-format"


@pytest.fixture(scope="module")
def documented() -> tuple[str, ...]:
    """The commands by which the guide makes a format from the template, and tests it."""
    [commands] = re.findall(r"```\w*\n(copier copy .*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    return tuple(commands.replace("NAME", NAME).splitlines())


@pytest.fixture(scope="module")
def project(documented: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that copier makes; of its questions only the name is answered."""
    program, *words = shlex.split(documented[0])
    home = tmp_path_factory.mktemp("made") / words[-1]
    words[-2:] = [str(REPOSITORY / words[-2]), str(home)]
    answers = ("--defaults", "--quiet", "--data", f"name={NAME}")
    run(sys.executable, "-m", program, *words, *answers)
    return home


@pytest.fixture(scope="module")
def environment(
    project: Path, wheels: Wheels, tmp_path_factory: pytest.TempPathFactory
) -> CleanEnvironment:
    """A clean environment with the format's wheel, and with what it asks for."""
    [wheel] = build_wheels(project)
    own = {name: wheels[name] for name in (CORE, "hudi-conformance")}
    index = LocalIndex(tmp_path_factory.mktemp("index"), own | {DISTRIBUTION: wheel})
    clean = new_environment(tmp_path_factory.mktemp("template") / "clean")
    index.install(clean, f"{DISTRIBUTION}[conformance]")
    return clean


def test_the_guide_installs_what_the_project_offers(
    documented: tuple[str, ...], project: Path
) -> None:
    change_folder, install = documented[1:3]
    assert change_folder == f"cd {project.name}"
    assert shlex.split(install) == ["pip", "install", "-e", ".[conformance]"]
    in_readme = re.findall(r"```console\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)
    assert documented[-1] in in_readme[0].splitlines()


@pytest.mark.slow
def test_it_passes_its_conformance_by_one_command(
    documented: tuple[str, ...], environment: CleanEnvironment, tmp_path: Path
) -> None:
    program, *words = shlex.split(documented[-1])
    report = tmp_path / "report.json"
    command = environment.home / "bin" / program
    more = {"TMPDIR": str(tmp_path), **KNOWN_SOURCES}
    if not IS_WHOLE:
        plugin = tmp_path / "plugin"
        plugin.mkdir()
        shutil.copy(REPOSITORY / "tests" / "formats" / "few_cases.py", plugin)
        now = str(turn() + 1)  # another third than that of the format of the guide
        more |= {"PYTHONPATH": str(plugin), "PYTEST_PLUGINS": "few_cases", "HUDI_TURN": now}
    run(command, *words, "--report", report, cwd=tmp_path, more=more)
    checks = json.loads(report.read_text())["checks"]
    expected = sorted(CHECKS) if IS_WHOLE else sorted(CHECKS)[(turn() + 1) % 3 :: 3]
    assert [one["id"] for one in checks] == expected
    outcomes = Counter(one["outcome"] for one in checks)
    assert set(outcomes) == {"pass", "refused"}
    assert outcomes["pass"] >= (35 if IS_WHOLE else 10)


def test_the_example_of_its_readme_runs(
    project: Path, environment: CleanEnvironment, tmp_path: Path
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)
    table = tmp_path / f"{NAME}_table"
    assert f'"/tmp/{table.name}"' in example
    environment.run(example.replace("/tmp", str(tmp_path)))
    assert list((table / ".hoodie" / NAME).glob("*.json"))
