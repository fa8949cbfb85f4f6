"""What a package index is given: each wheel's description, and ``hudi-core[all]`` from a folder."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.packaging.built_wheels import (
    CORE,
    PROJECTS,
    REPOSITORY,
    Wheels,
    about,
    new_environment,
    requirements,
    run,
)
from tests.packaging.local_index import LocalIndex

INSTALLING = REPOSITORY / "docs" / "install.md"
SUPPORT = REPOSITORY / "docs" / "support.md"
CHANGES = REPOSITORY / "CHANGELOG.md"
PERSONAS = ["For engineers", "For operators", "For authors of plugins"]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def settings(name: str) -> dict[str, Any]:
    text = (REPOSITORY / PROJECTS[name].folder / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def test_a_wheel_describes_itself(wheels: Wheels) -> None:
    for name, wheel in wheels.items():
        said = about(wheel)
        readme = REPOSITORY / PROJECTS[name].folder / "README.md"
        assert 20 < len(said["Summary"]) < 120
        assert said["License-Expression"] == "Apache-2.0"
        assert said["Description-Content-Type"] == "text/markdown"
        body = said.get_payload()
        assert isinstance(body, str)
        assert body.strip() == readme.read_text(encoding="utf-8").strip()
        assert body.startswith("# ")
        assert said["Keywords"]


def test_its_classifiers_say_what_it_requires(wheels: Wheels) -> None:
    # that each is one of the known ones, setuptools sees to by trove-classifiers
    for wheel in wheels.values():
        said = about(wheel)
        classifiers = said.get_all("Classifier", [])
        versions = [one.rpartition(" ")[2] for one in classifiers if re.search(r":: 3\.\d+$", one)]
        allowed = SpecifierSet(said["Requires-Python"])
        assert versions == list(allowed.filter(versions))
        assert "3.11" in versions
        assert "3.10" not in allowed
        # the licence is an expression; a classifier beside it is refused by indexes
        assert not [one for one in classifiers if one.startswith("License")]
        assert "Typing :: Typed" in classifiers


def test_every_package_of_a_wheel_is_typed(wheels: Wheels) -> None:
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            held = set(archive.namelist())
        assert {f"{package}/py.typed" for package in PROJECTS[name].packages} <= held


def test_the_wheels_ask_for_each_others_versions(wheels: Wheels) -> None:
    asked = [
        (name, Requirement(text)) for name, wheel in wheels.items() for text in requirements(wheel)
    ]
    own = [(name, one) for name, one in asked if canonicalize_name(one.name) in PROJECTS]
    versions = {name: about(wheel)["Version"] for name, wheel in wheels.items()}
    assert {name for name, _ in own} == set(PROJECTS)
    assert not [
        (name, str(one))
        for name, one in own
        if not one.specifier.contains(versions[canonicalize_name(one.name)])
    ]


def test_all_is_every_extra() -> None:
    extras = settings(CORE)["optional-dependencies"]
    [everything] = map(Requirement, extras["all"])
    assert everything.name == CORE
    assert everything.extras == set(extras) - {"all"}
    page = INSTALLING.read_text(encoding="utf-8")
    assert not [name for name in extras if f"[{name}]" not in page]


@pytest.mark.slow
def test_all_of_it_installs_from_a_folder_of_wheels(wheels: Wheels, tmp_path: Path) -> None:
    """As the page on installing says it, with what is not the project's linked from here."""
    page = INSTALLING.read_text(encoding="utf-8")
    [line] = re.findall(
        r"^pip install --find-links dist (.*\[all\].*?)(?: +#.*)?$", page, re.MULTILINE
    )
    wanted = shlex.split(line)
    assert wanted == ["hudi-core[all]", "hudi-sql-format", "hudi-conformance"]
    clean = new_environment(tmp_path / "clean")
    LocalIndex(tmp_path, dict(wheels)).install(clean, *wanted)
    assert {one.name for one in clean.site_packages.glob("hudi_*.dist-info")} == {
        f"{name.replace('-', '_')}-{about(wheel)['Version']}.dist-info"
        for name, wheel in wheels.items()
    }

    script = Path(__file__).with_name("every_format.py").read_text(encoding="utf-8")
    formats = ("native", "iceberg", "delta", "sql")
    told = json.loads(clean.run(script, *formats))
    assert told["rows"] == {name: [1, 12] for name in formats}
    assert Path(told["core"]).is_relative_to(clean.site_packages)
    listed = run(clean.home / "bin" / "hudi", "conformance", "list", "--json", cwd=tmp_path)
    assert set(formats) == set(json.loads(listed)["suites"])


def test_the_changelog_is_by_who_reads_it() -> None:
    text = CHANGES.read_text(encoding="utf-8")
    releases = re.split(r"^## \[", text, flags=re.MULTILINE)[1:]
    assert releases[0].startswith("Unreleased]")
    for release in releases:
        headings = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert [one for one in PERSONAS if one in headings] == headings
        assert set(re.findall(r"^#### (.*)$", release, re.MULTILINE)) <= KINDS
        # no line stands outside of both
        for part in re.split(r"^### .*$", release, flags=re.MULTILINE)[1:]:
            assert part.lstrip().startswith("#### ")


@pytest.mark.parametrize(
    ("name", "extra", "library"),
    [
        (CORE, "", "pyarrow"),
        (CORE, "spark", "pyspark"),
        ("hudi-iceberg-format", "", "pyiceberg"),
        ("hudi-delta-format", "", "deltalake"),
        ("hudi-sql-format", "", "sqlalchemy"),
    ],
)
def test_the_page_on_support_has_what_the_wheels_ask_for(
    name: str, extra: str, library: str
) -> None:
    said = settings(name)
    extras = said.get("optional-dependencies", {})
    asked = extras[extra] if extra else said["dependencies"]
    [specifier] = [one.specifier for one in map(Requirement, asked) if one.name == library]
    page = SUPPORT.read_text(encoding="utf-8")
    [row] = re.findall(rf"^\| .*\b{library}\b.* \|$", page, re.MULTILINE | re.IGNORECASE)
    [versions] = re.findall(r"`([<>=\d., ]+)`", row)
    assert SpecifierSet(versions) == specifier


def test_the_page_on_support_has_the_versions_of_python(wheels: Wheels) -> None:
    classifiers = about(wheels[CORE]).get_all("Classifier", [])
    versions = [one.rpartition(" ")[2] for one in classifiers if re.search(r":: 3\.\d+$", one)]
    [row] = re.findall(r"^\| Python \| (.*?) \|", SUPPORT.read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"3\.\d+", row) == versions
