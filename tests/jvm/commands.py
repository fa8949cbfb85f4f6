"""The command line, as an operator uses it on a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from hudi_core.cli import app


def succeed(words: str, path: Path, *more: str) -> Any:
    """Run a command on a table, such as ``table validate``, and return what it says as JSON.

    It must end with exit code 0.
    """
    done = CliRunner().invoke(app, [*words.split(), str(path), *more, "--json"])
    assert done.exit_code == 0, (words, done.output)
    return json.loads(done.stdout)


def is_sound(path: Path) -> None:
    """Check a table and its metadata table with the commands that validate them."""
    succeed("table validate", path)
    succeed("metadata validate", path)
