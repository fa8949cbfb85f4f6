"""Benchmarks of the folder beside the tests: run as a program, or a module of one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.samples import IS_WHOLE

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the folder."""
    return subprocess.run(
        [sys.executable, FOLDER / program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def some_cases(*few: str) -> tuple[str, ...]:
    """The arguments for a few cases; for all of them where campaigns run as a whole."""
    return () if IS_WHOLE else ("--cases", *few)


def module(name: str) -> Any:
    """Import a module of the folder, which is no package, as its programs do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(FOLDER), *sys.path])
        return importlib.import_module(name)
