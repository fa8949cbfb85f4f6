"""`hudi rollback`: undo the last write of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.terminal import write_json, write_line
from hudi_core.cli.timeline import instant_document


def rollback(
    path: PathArgument,
    instant: Annotated[
        str, typer.Argument(metavar="INSTANT", help="Requested time, as `hudi timeline` shows it.")
    ],
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo the last completed write, or a pending one whose writer is gone."""
    table = library.Table.open(path, parse_options(option))
    done = table.rollback(instant)
    if as_json:
        document = instant_document(done, archived=False)
        write_json({"path": table.path, "rolled_back": instant, "rollback": document})
        return
    write_line(f"Rolled back {instant} of {table.path}; the rollback is {done.requested_time}.")
