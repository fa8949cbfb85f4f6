"""Exit codes of `hudi`, for scripts."""

from __future__ import annotations

from enum import IntEnum

from hudi_core.errors import CommitStateUnknownError, HudiError


class ExitCode(IntEnum):
    """The exit codes; a failure writes one message to standard error.

    With ``--json`` it is an object on the standard output as well (:mod:`.error_document`).

    ``ERROR``: it was not done, and the table is as it was. ``USAGE``: the table was not opened.
    ``UNKNOWN_OUTCOME``: it may have been done, and a repetition has to look first.
    ``VALIDATION_FAILED``: a check was made, and the table did not pass it.
    """

    OK = 0
    ERROR = 1
    USAGE = 2
    UNKNOWN_OUTCOME = 3
    VALIDATION_FAILED = 4


def exit_code_of(error: HudiError) -> ExitCode:
    """Return the exit code for an error that ended a command."""
    if isinstance(error, CommitStateUnknownError):
        return ExitCode.UNKNOWN_OUTCOME
    return ExitCode.ERROR
