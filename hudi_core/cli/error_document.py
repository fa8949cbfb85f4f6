"""What ended a command, in the form its JSON has."""

from __future__ import annotations

from typing import Any

import typer

from hudi_core.cli.exit_codes import ExitCode
from hudi_core.errors import HudiError


def error_document(error: Exception, code: ExitCode) -> dict[str, Any]:
    """Return an error as the one member of a document.

    ``type`` is the name of the error's class, ``message`` says what is wrong and ``hint`` what to
    do. ``retryable`` is whether the same command may succeed when it is run again, ``facts`` are
    the values that the message names.
    """
    facts: dict[str, object] = {}
    if isinstance(error, HudiError):
        message, hint, facts = error.what, error.hint, error.facts
    elif isinstance(error, typer.TyperException):
        message, hint = error.format_message(), "Run the command with --help."
    else:
        message, hint = str(error), "Run it with `hudi --traceback` to see where it comes from."
    return {
        "error": {
            "type": type(error).__name__,
            "message": message,
            "hint": hint,
            "retryable": getattr(error, "retryable", False),
            "exit_code": code.value,
            "facts": {name: _plain(value) for name, value in facts.items()},
        }
    }


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return str(value)
