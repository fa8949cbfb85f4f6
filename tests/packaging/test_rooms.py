"""The check of rooms finds what it is there for."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "rooms.py"
PRIVATE = '''"""A module."""


class Thing:
    """A thing.

    Attributes
    ----------
    size
        Its size.
    """

    size: int  # a comment
'''


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give the script, over a small library."""
    found = importlib.util.spec_from_file_location("rooms", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name in ("hudi_core/__init__.py", "hudi_core/read/a.py", "hudi_core/write/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PRIVATE if name[-4] in "ab" else "")
    return module


def test_what_it_refuses(rooms: ModuleType, tmp_path: Path) -> None:
    modules = {
        one.name: one for one in map(rooms.Module, sorted((tmp_path / "hudi_core").rglob("*.py")))
    }
    public = {"rooms": ["hudi_core/read/"], "doors": ["hudi_core"]}
    [section] = rooms.sections(modules, public)
    assert section.startswith("hudi_core/write/b.py:4: Thing is private")
    [name] = rooms.doubled_names(modules)
    assert "has a class Thing, too" in name
    lines = {one.room: one.code_lines() for one in modules.values()}
    assert lines == {"top": 0, "read": 2, "write": 2}
    found = list(rooms.over_budget(lines, {"top": 0, "read": 2, "write": 1, "gone": 3}))
    assert [one.partition(": ")[2].split(";")[0].split(",")[0] for one in found] == [
        "room write holds 2 lines of code",
        "there is no room gone",
    ]


def test_helpers_that_tests_share_have_one_home(rooms: ModuleType, tmp_path: Path) -> None:
    files = {
        "tables": "SCHEMA: Final = 1\n_OWN = 2\n\n\ndef rows() -> None: ...\n",
        "test_a": "from tests.tables import rows\n_OWN = 3\n\n\ndef rows_of_a() -> None: ...\n",
        "test_b": "_A, SCHEMA = 4, 4\n\n\ndef rows() -> None: ...\ndef table() -> None: ...\n",
        "test_c": "@pytest.fixture\ndef table(rows: int) -> None:\n    SCHEMA = 5\n",
    }
    (tmp_path / "tests").mkdir()
    for name, text in files.items():
        (tmp_path / "tests" / f"{name}.py").write_text(text)
    modules = {one.name: one for one in map(rooms.Module, (tmp_path / "tests").iterdir())}
    found = sorted(rooms.doubled_helpers(modules, "tests.tables"))
    assert [one.split(" is for ")[0] for one in found] == [
        "tests/test_b.py:1: SCHEMA",
        "tests/test_b.py:4: rows",
        "tests/test_b.py:5: table",
    ]
