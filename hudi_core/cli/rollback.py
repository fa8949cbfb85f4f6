"""`hudi rollback`: undo the last write of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    DryRunOption,
    JsonOption,
    OptionsOption,
    PathArgument,
    parse_options,
)
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.progress import progress_bar
from hudi_core.cli.timeline import instant_document


def rollback(
    path: PathArgument,
    instant: Annotated[
        str, typer.Argument(metavar="INSTANT", help="Requested time, as `hudi timeline` shows it.")
    ],
    *,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo the last completed write, or a dead writer's pending one."""
    table = library.Table.open(path, parse_options(option))
    if dry_run:
        with progress_bar("files") as progress:
            preview = table.rollback(instant, dry_run=True, progress=progress)
        paths = [f"{folder}/{name}" for folder, names in preview.files.items() for name in names]
        paths = [one.removeprefix("/") for one in paths]
        count = f"{len(paths)} file{'' if len(paths) == 1 else 's'}"
        text = f"{preview.path}: would roll back {instant} and delete {count} (--dry-run)."
        parts: list[Part] = [text]
        if paths:
            parts.append(Grid(["file"], [(one,) for one in paths], "files"))
        document = {"path": preview.path, "dry_run": True, "target": instant, "files": paths}
        answer(as_json, document, parts)
        return
    with progress_bar("files") as progress:
        done = table.rollback(instant, progress=progress)
    document = instant_document(done, archived=False)
    answer(
        as_json,
        {"path": table.path, "rolled_back": instant, "rollback": document},
        [f"Rolled back {instant} of {table.path}; the rollback is {done.requested_time}."],
    )
