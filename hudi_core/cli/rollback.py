"""`hudi rollback`: undo the last write of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.output import answer
from hudi_core.cli.timeline import instant_document


def rollback(
    path: PathArgument,
    instant: Annotated[
        str, typer.Argument(metavar="INSTANT", help="Requested time, as `hudi timeline` shows it.")
    ],
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo the last completed write, or a dead writer's pending one."""
    table = library.Table.open(path, parse_options(option))
    done = table.rollback(instant)
    document = instant_document(done, archived=False)
    answer(
        as_json,
        {"path": table.path, "rolled_back": instant, "rollback": document},
        [f"Rolled back {instant} of {table.path}; the rollback is {done.requested_time}."],
    )
