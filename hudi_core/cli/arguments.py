"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from hudi_core.cli import library
from hudi_core.errors import InvalidOptionError, UnknownTableFormatError

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
