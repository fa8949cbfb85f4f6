"""The lock names every package by version and hash, and no place to fetch it from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")


def pinned() -> dict[str, list[tuple[str, str]]]:
    """Return the versions of each package, with the lines that belong to each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in re.findall(r"^\S.*(?:\n .*)*", LOCK, re.MULTILINE):
        if not entry.startswith("#"):
            requirement = Requirement(entry.partition("\n")[0].rstrip(" \\"))
            [pin] = requirement.specifier
            assert pin.operator == "=="
            found.setdefault(canonicalize_name(requirement.name), []).append((pin.version, entry))
    return found


def wanted() -> list[Requirement]:
    """Return what `pyproject.toml` asks for: to run, for Spark, and to develop."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    lists = (
        project["dependencies"],
        project["optional-dependencies"]["spark"],
        settings["dependency-groups"]["dev"],
    )
    return [Requirement(text) for requirements in lists for text in requirements]


@pytest.mark.parametrize(
    "trace", ["://", "--index-url", "--extra-index-url", "--find-links", " @ "]
)
def test_the_lock_names_no_place(trace: str) -> None:
    assert trace not in LOCK


def test_every_package_has_a_hash() -> None:
    entries = [entry for versions in pinned().values() for _, entry in versions]
    assert len(entries) > len(wanted())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_holds_what_the_project_asks_for() -> None:
    versions = {name: [version for version, _ in found] for name, found in pinned().items()}
    stale = [
        str(requirement)
        for requirement in wanted()
        if not any(
            requirement.specifier.contains(version)
            for version in versions.get(canonicalize_name(requirement.name), [])
        )
    ]
    assert stale == [], "make lock"
