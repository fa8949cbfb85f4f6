"""The command line, run in the process of the tests."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from hudi_core.cli import app


def run(*arguments: object) -> Result:
    """Run `hudi` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments: object, code: int = 0) -> Any:
    """Return the document that `hudi` prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)
