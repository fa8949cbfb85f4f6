"""Commands of other distributions: entry points of the group ``hudi.commands``.

An entry point is a ``typer.Typer`` application; its name is the name of the command. Names are
looked up when a command is asked for that this package does not have, or when all are listed. A
distribution is imported only then, and one that cannot be is named when its command is used; the
others go on working.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import typer
from typer.main import get_command

from hudi_core.errors import CommandConflictError, CommandLoadError, HudiError
from hudi_core.extension.guard import Raised, attempt

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
