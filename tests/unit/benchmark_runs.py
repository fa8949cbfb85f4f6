"""Benchmarks of the folder beside the tests: run as a program, or a module of one.

Most of a small run as a program is imports, and waiting for the disk: its sample runs in the
process of the tests, which imported most of it before, and flushes nothing.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.samples import IS_WHOLE

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program: in this process, unless campaigns run as a whole."""
    return (as_program if IS_WHOLE else _run_here)(program, *arguments)


def as_program(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, FOLDER / program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _run_here(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = [str(FOLDER / program), *map(str, arguments)]
    told, said = io.StringIO(), io.StringIO()
    code: object = 0
    with _undisturbed(words), redirect_stdout(told), redirect_stderr(said):
        try:
            runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            code = end.code
    if code is not None and not isinstance(code, int):  # a text, which Python prints, and ends by 1
        said.write(str(code))
        code = 1
    return subprocess.CompletedProcess(words, code or 0, told.getvalue(), said.getvalue())


@contextmanager
def _undisturbed(words: list[str]) -> Iterator[None]:
    """Let a program have its arguments, no disk to wait for, and its own garbage alone."""
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("default")
        patched.setattr(sys, "argv", words)
        patched.setattr(sys, "path", [str(FOLDER), *sys.path])
        for flush in ("sync", "fsync"):
            patched.setattr(os, flush, lambda *_: None)
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()


def some_cases(*few: str) -> tuple[str, ...]:
    """The arguments for a few cases; for all of them where campaigns run as a whole."""
    return () if IS_WHOLE else ("--cases", *few)


def module(name: str) -> Any:
    """Import a module of the folder, which is no package, as its programs do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(FOLDER), *sys.path])
        return importlib.import_module(name)
