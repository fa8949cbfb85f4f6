"""The root of `hudi`: finds commands, handles every error."""

from __future__ import annotations

import errno
import traceback
import warnings
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hudi_core.cli.exit_codes import ExitCode, exit_code_of
from hudi_core.cli.terminal import visible, write_error, write_json, write_warning
from hudi_core.errors import CommandConflictError, CommandLoadError, HudiError, UnknownOptionWarning
from hudi_core.extension.guard import Raised, attempt

# --- commands of other distributions: entry points of the group ``hudi.commands`` -----------------
# An entry point is a ``typer.Typer`` application; its name is the name of the command. Names are
# looked up when a command is asked for that this package does not have, or when all are listed. A
# distribution is imported only then, and one that cannot be is named when its command is used; the
# others go on working.


GROUP: Final = "hudi.commands"
_COMPLETION_OPTIONS: Final = frozenset({"install_completion", "show_completion"})


def discover() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points by command name, sorted; imports nothing."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        same = found.get(entry.name, ())
        # one distribution can be on the path twice, as an installed and as an editable one
        if all(_source(entry) != _source(other) for other in same):
            found[entry.name] = (*same, entry)
    return found


def command(name: str, entries: tuple[EntryPoint, ...]) -> Any:
    """Return the command of an entry point, for :class:`typer.core.TyperGroup`.

    ``entries`` are all entry points of that name. Where they clash or cannot be loaded, the command
    returned raises the error.
    """
    try:
        app = _load(name, entries)
    except HudiError as error:
        app = _stand_in(error)
    made = get_command(app)
    made.name = name
    # an application of its own would offer to install completion for a program of its own
    made.params = [option for option in made.params if option.name not in _COMPLETION_OPTIONS]
    return made


def _load(name: str, entries: tuple[EntryPoint, ...]) -> typer.Typer:
    if len(entries) > 1:
        raise CommandConflictError(name, sorted(distribution_of(entry) for entry in entries))
    entry = entries[0]
    outcome = attempt(lambda: _import(entry))
    if isinstance(outcome, Raised):
        raise CommandLoadError(name, distribution_of(entry), outcome.reason) from outcome.error
    app = outcome.value
    if not isinstance(app, typer.Typer):
        reason = f"{entry.value} is not a typer.Typer application"
        raise CommandLoadError(name, distribution_of(entry), reason)
    if not (app.registered_callback or app.registered_commands or app.registered_groups):
        raise CommandLoadError(name, distribution_of(entry), f"{entry.value} has no command")
    return app


def _import(entry: EntryPoint) -> object:
    try:
        loaded: object = entry.load()
    except SystemExit as error:
        # a script that runs when it is imported must not end the commands of others
        raise ImportError(f"it ends the program when it is imported (exit {error.code})") from error
    return loaded


def _stand_in(error: HudiError) -> typer.Typer:
    """Make an application that takes any arguments and raises ``error``."""
    app = typer.Typer(add_completion=False)

    @app.command(
        help="Cannot be used: run it to see why.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    def refuse() -> None:
        raise error

    return app


def distribution_of(entry: EntryPoint) -> str:
    """Return the name of the distribution an entry point belongs to."""
    return entry.dist.name if entry.dist else "unknown"


def _source(entry: EntryPoint) -> tuple[str, str]:
    return distribution_of(entry), entry.value


# --- the root command -----------------------------------------------------------------------------


_AS_JSON: Final = "hudi.json"
_JSON: Final = "--json"


class RootGroup(TyperGroup):
    """The group of all commands, the ones of other distributions included.

    The type of a context is no public name of typer, hence ``Any`` in the signatures.
    """

    @cached_property
    def _extensions(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        return discover()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, own ones first, without importing any."""
        own = sorted(super().list_commands(ctx))
        for name in self._extensions.keys() & own:
            owners = ", ".join(map(distribution_of, self._extensions[name]))
            write_warning(f"the command {name!r} of {owners} is not available: the name is taken")
        return [*own, *(name for name in self._extensions if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name, or ``None``; other distributions come last."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in self._extensions:
            return own
        return command(cmd_name, self._extensions[cmd_name])

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
