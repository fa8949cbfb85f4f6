"""The core knows table formats by their hooks alone: it neither imports nor names one of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("hudi_core", "pyspark_hudi", "native_format")
FILES = [path for room in ROOMS for path in sorted((REPOSITORY / room).rglob("*.py"))]
# Hudi's own words begin with "delta" too: deltacommit, delta files, and the like
NAMES = re.compile(
    r"iceberg|deltalake|delta[ _-]?(lake|table|format|rs\b|log\b)|\bdelta's|[\"'`]delta[\"'`]",
    re.IGNORECASE,
)
AS_A_NAME = re.compile(r"(?<!\w)Delta(?!\w)")
# tables of other engines are to be seen where the package of their format is not installed, too
ALLOWED = {'hudi_core/storage/claims.py: FOREIGN_LOGS: Final = ("_delta_log",)'}
LIBRARIES = {"pyiceberg", "deltalake", "iceberg_format", "delta_format", "hudi_sql_format"}


@pytest.mark.parametrize(
    "text",
    [
        *("as Iceberg does", '"iceberg": 1', "a Delta version", "from deltalake import x"),
        *("hudi-delta-format", 'name == "delta"', "Delta's log", "the delta log", "delta_table"),
    ],
)
def test_a_name_is_seen(text: str) -> None:
    assert named(text)


@pytest.mark.parametrize(
    "text", ["timedelta", "deltacommit", "delta_file_paths", "max.delta.commits", "for delta in x"]
)
def test_words_of_hudi_are_no_names(text: str) -> None:
    assert not named(text)


def test_no_format_is_named() -> None:
    assert FILES
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if named(line) and f"{path.relative_to(REPOSITORY)}: {line}" not in ALLOWED
    ]
    assert found == []


def test_no_format_is_imported() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in FILES
        for name in imported(path)
        if name.partition(".")[0] in LIBRARIES
    ]
    assert found == []


def named(text: str) -> bool:
    return bool(NAMES.search(text) or AS_A_NAME.search(text))


def imported(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    if not any(name in source for name in LIBRARIES):
        return []
    nodes = list(ast.walk(ast.parse(source)))
    plain = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    return plain + [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
