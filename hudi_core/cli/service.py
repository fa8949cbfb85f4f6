"""Services of a table as commands: what they take and answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hudi_core.cli import library
from hudi_core.cli.document import document_of
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.terminal import progress_bar
from hudi_core.errors import InvalidOptionError, UnknownTableFormatError

if TYPE_CHECKING:
    from hudi_core.table import Table


# --- arguments and options that several commands share --------------------------------------------


PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="Base path of the table: a local folder or a URI.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON object instead of text for people.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
]
OptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="A Hudi option, or an option of the store; may be repeated.",
    ),
]


def installed_format(name: str | None) -> str | None:
    """Return an installed format's name; imports nothing of the format.

    ``None`` is returned as it is.
    """
    if name is not None:
        try:
            key = library.TableKeys.table_format
            for one in key.parse_as(key.key, name).split(","):
                library.FormatRegistry().claims(one)
        except (InvalidOptionError, UnknownTableFormatError) as error:
            raise typer.BadParameter(str(error)) from error
    return name


def parse_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """Return the values of ``--option KEY=VALUE``.

    One key with two different values is refused, and so is a table format that is not installed.
    """
    options: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            # the text is not repeated: it may be a secret
            raise typer.BadParameter("an option is written KEY=VALUE", param_hint="'--option'")
        if options.setdefault(key, value) != value:
            raise typer.BadParameter(f"{key} is given twice", param_hint="'--option'")
    for key in library.TableKeys.table_format.names:
        installed_format(options.get(key))
    return options


def parse_names(text: str | None) -> list[str] | None:
    """Return a comma-separated list's column names; ``None`` for none."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()] or None


# --- services -------------------------------------------------------------------------------------


UNCHANGED: Final = "Nothing was changed (--dry-run)."
SHOWN: Final = 20


@dataclass
class Call:
    """A service with the arguments of one command line.

    ``given`` is what the method of ``Table`` takes, by its names.
    """

    path: str
    options: dict[str, str]
    given: dict[str, Any]
    as_json: bool = False

    @cached_property
    def table(self) -> Table:
        """The table, opened."""
        return library.Table.open(self.path, self.options)

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be changed."""
        return bool(self.given.get("dry_run"))

    @property
    def named(self) -> dict[str, Any]:
        """Arguments that are given; for the others a method has a default."""
        return {name: value for name, value in self.given.items() if value is not None}

    def fact(self, name: str) -> Any:
        """What a document says of the call: an argument, or the path."""
        return self.table.path if name == "path" else self.given.get(name, False)


Parts = Callable[[Any, Call], Iterable[Part]]
"""The text form of a service's result."""


# --- what services take ---------------------------------------------------------------------------


def argument(metavar: str, about: str, kind: Any = str, **default: Any) -> Parameter:
    """A word of the command line."""
    name = metavar.strip("[]").lower()
    annotation = Annotated[kind, typer.Argument(metavar=metavar, help=about)]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, **default)


def option(
    flag: str,
    about: str,
    kind: Any = str | None,
    default: Any = None,
    *,
    name: str = "",
    short: str = "",
    **more: Any,
) -> Parameter:
    """An option; ``name`` is the method's, where that has another one."""
    flags = (flag, short) if short else (flag,)
    annotation = Annotated[kind, typer.Option(*flags, help=about, **more)]
    name = name or flag.strip("-").replace("-", "_")
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def names(flag: str, about: str, name: str = "", metavar: str = "COLUMNS") -> Parameter:
    """An option that takes names with commas between."""
    return option(flag, about, name=name, metavar=metavar, callback=parse_names)


def switch(flag: str, about: str, name: str = "") -> Parameter:
    """An option without a value."""
    return option(flag, about, bool, False, name=name)


def shared(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    """One that is declared for functions, such as services."""
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


PATH: Final = shared("path", PathArgument)
DRY_RUN: Final = shared("dry_run", DryRunOption, False)
OPTION: Final = shared("option", OptionsOption, None)
_JSON: Final = shared("as_json", JsonOption, False)


# --- what services are ----------------------------------------------------------------------------


def service(
    *takes: Parameter,
    does: str | Callable[[Call], Any] = "",
    progress: str = "",
    check: Callable[[dict[str, Any]], None] | None = None,
    keys: str = "",
    facts: Callable[[Any, Call], Mapping[str, Any]] | None = None,
    is_wrong: Callable[[Any], bool] | None = None,
    examples: str = "",
) -> Callable[[Parts], Callable[..., None]]:
    """Make a command of a function that says a result in words.

    Name and help are those of the decorated function. ``takes`` is in the order of the help: the
    path is the first, Hudi's options and ``--json`` are the last, where it does not name them.
    ``does`` is the method of ``Table``, if it has another name, or calls it. ``progress`` is what
    the bar counts. ``check`` refuses arguments before the table is opened, and takes out those that
    the method does not have.

    ``keys`` are those of the document, where :mod:`hudi_core.cli.document` has none for the result;
    ``facts`` are further values for them. Where a result ``is_wrong``, a check has failed.
    ``examples`` are command lines that the help shows, one a line.
    """
    first = () if takes and takes[0].name == PATH.name else (PATH,)
    last = (_JSON,) if OPTION in takes else (OPTION, _JSON)

    def command_of(parts: Parts) -> Callable[..., None]:
        run = does or parts.__name__

        def command(*, path: str, option: list[str] | None, as_json: bool, **given: Any) -> None:
            if check is not None:
                check(given)
            call = Call(path, parse_options(option), given, as_json)
            method: Any = getattr(call.table, run) if isinstance(run, str) else run
            with progress_bar(progress) if progress else nullcontext() as report:
                if report is not None:
                    given["progress"] = report
                done = method(**call.named) if isinstance(run, str) else method(call)
            given |= {} if facts is None else facts(done, call)
            answer(as_json, document_of(done, call.fact, keys), parts(done, call))
            if is_wrong is not None and is_wrong(done):
                raise typer.Exit(ExitCode.VALIDATION_FAILED)

        command.__name__, command.__doc__ = parts.__name__, parts.__doc__
        vars(command).update(
            __signature__=Signature([*first, *takes, *last]), examples=tuple(examples.splitlines())
        )
        return command

    return command_of


# --- what services have in common -----------------------------------------------------------------


def confirmed(reason: str) -> Callable[[dict[str, Any]], None]:
    """A check that a loss is agreed to, or a dry run."""

    def check(given: dict[str, Any]) -> None:
        if not given.pop("yes") and not given["dry_run"]:
            raise typer.BadParameter(reason, param_hint="'--yes'")

    return check


def counted(number: int, noun: str, form: str = "") -> str:
    """A number with its noun."""
    return f"{number:{form}} {noun}{'' if number == 1 else 's'}"


def some_of(heading: str, found: Sequence[str], title: str) -> Iterator[Part]:
    """The first ones of many, one a line."""
    yield Grid([heading], [[one] for one in found[:SHOWN]], title)
    yield from more_than(found)


def more_than(found: Sequence[object]) -> Iterator[Part]:
    """A line where there are more than are shown."""
    if len(found) > SHOWN:
        yield f"... and {len(found) - SHOWN} more (--json lists all)."
