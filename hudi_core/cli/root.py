"""The root of `hudi`: finds commands, handles every error."""

from __future__ import annotations

import errno
import traceback
import warnings
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any, Final

import typer
from typer.core import TyperGroup

from hudi_core.cli import extensions
from hudi_core.cli.exit_codes import ExitCode, exit_code_of
from hudi_core.cli.terminal import visible, write_error, write_json, write_warning
from hudi_core.errors import HudiError, UnknownOptionWarning

_AS_JSON: Final = "hudi.json"
_JSON: Final = "--json"


class RootGroup(TyperGroup):
    """The group of all commands, the ones of other distributions included.

    The type of a context is no public name of typer, hence ``Any`` in the signatures.
    """

    @cached_property
    def _extensions(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        return extensions.discover()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, own ones first, without importing any."""
        own = sorted(super().list_commands(ctx))
        for name in self._extensions.keys() & own:
            owners = ", ".join(map(extensions.distribution_of, self._extensions[name]))
            write_warning(f"the command {name!r} of {owners} is not available: the name is taken")
        return [*own, *(name for name in self._extensions if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name, or ``None``; other distributions come last."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in self._extensions:
            return own
        return extensions.command(cmd_name, self._extensions[cmd_name])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; turn its error into a message and exit code."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                # shown to people, whatever the warning filters of Python say
                warnings.simplefilter("always", UnknownOptionWarning)
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except typer.TyperException as error:
            cause = error.__cause__
            if not isinstance(cause, HudiError):
                self._document(ctx, error, ExitCode.USAGE)
                raise  # typer reports it
            self._report(ctx, str(cause), cause, ExitCode.USAGE)
            raise typer.Exit(ExitCode.USAGE) from error
        except HudiError as error:
            code = exit_code_of(error)
            self._report(ctx, str(error), error, code)
            raise typer.Exit(code) from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of our output closed the pipe; typer ends quietly
            message = f"unexpected {type(error).__name__}: {error}"
            self._report(ctx, message, error, ExitCode.ERROR)
            raise typer.Exit(ExitCode.ERROR) from error

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before the command; it reads the rest."""
        # a command line that cannot be parsed has no options: look for --json among its words
        ctx.meta[_AS_JSON] = _JSON in args
        try:
            return super().parse_args(ctx, _json_last(args))
        except typer.TyperException as error:
            self._document(ctx, error, ExitCode.USAGE)
            raise

    def _report(self, ctx: Any, message: str, error: Exception, code: ExitCode) -> None:
        if ctx.params.get("traceback"):
            for line in "".join(traceback.format_exception(error)).splitlines():
                typer.echo(visible(line), err=True)
        write_error(message)
        self._document(ctx, error, code)

    @staticmethod
    def _document(ctx: Any, error: Exception, code: ExitCode) -> None:
        if ctx.meta[_AS_JSON]:
            write_json(error_document(error, code))


def _json_last(args: list[str]) -> list[str]:
    """Move ``--json`` behind the command, wherever it was given."""
    end = args.index("--") if "--" in args else len(args)
    if _JSON not in args[:end]:
        return args
    return [*(one for one in args[:end] if one != _JSON), _JSON, *args[end:]]


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    # where a warning was raised means nothing to who typed the command
    write_warning(str(message))


# --- errors as JSON -------------------------------------------------------------------------------


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
