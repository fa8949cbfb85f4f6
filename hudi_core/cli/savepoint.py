"""`hudi savepoint` and `hudi restore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from hudi_core.services.savepoint import Savepoint

savepoint_app = typer.Typer(no_args_is_help=True, help="Commits whose files stay, to be restored.")


@savepoint_app.command()
def create(
    path: PathArgument,
    instant: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANT]", help="Requested time of the commit; else the last."),
    ] = None,
    *,
    user: Annotated[str, typer.Option("--user", help="Who asks for it.")] = "",
    comment: Annotated[str, typer.Option("--comment", help="What it is for.")] = "",
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep the files of a commit from being cleaned."""
    table = library.Table.open(path, parse_options(option))
    made = table.savepoint(instant, user=user, comment=comment)
    text = f"{table.path}: {made.instant.requested_time} is saved, with {made.files} files."
    answer(as_json, {"path": table.path, "savepoint": _document(made)}, [text])


@savepoint_app.command("list")
def show(path: PathArgument, option: OptionsOption = None, as_json: JsonOption = False) -> None:
    """Show the savepoints of a table, the oldest first."""
    table = library.Table.open(path, parse_options(option))
    found = table.savepoints
    rows = [
        (
            one.instant.requested_time,
            one.created.isoformat(timespec="seconds"),
            str(one.files),
            one.user,
            one.comment,
        )
        for one in found
    ]
    count = f"{len(rows)} savepoint{'' if len(rows) == 1 else 's'}"
    grid = Grid(["commit", "made", "files", "by", "comment"], rows, f"{table.path}: {count}")
    document = {"path": table.path, "savepoints": [_document(one) for one in found]}
    answer(as_json, document, [grid])


@savepoint_app.command()
def delete(
    path: PathArgument,
    instant: Annotated[
        str, typer.Argument(metavar="INSTANT", help="Requested time of the savepoint.")
    ],
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the files of a savepoint be cleaned again."""
    table = library.Table.open(path, parse_options(option))
    gone = table.delete_savepoint(instant)
    text = f"{table.path}: the savepoint of {gone.requested_time} is deleted."
    answer(as_json, {"path": table.path, "deleted": instant_document(gone, archived=False)}, [text])


def restore(
    path: PathArgument,
    instant: Annotated[
        str,
        typer.Argument(metavar="INSTANT", help="Requested time of the commit or its savepoint."),
    ],
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Restore: the commits after that one are gone.")
    ] = False,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a table back to a commit; what came later is gone.

    --dry-run lists the commits that would be taken out.
    """
    if not yes and not dry_run:
        raise typer.BadParameter("later commits are lost; say so", param_hint="'--yes'")
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.restore(instant, dry_run=dry_run, progress=progress)
    undone = [instant_document(one, archived=False) for one in done.undone]
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "to": instant_document(done.to, archived=False),
        "restore": instant_document(done.instant, archived=False) if done.instant else None,
        "undone": undone,
    }
    count = f"{len(undone)} commit{'' if len(undone) == 1 else 's'}"
    if not undone:
        text = f"{done.path}: nothing came after {done.to.requested_time}."
    elif dry_run:
        text = f"{done.path}: would take out {count} (--dry-run)."
    else:
        text = f"{done.path}: is as after {done.to.requested_time}; {count} taken out."
    rows = [(one.requested_time, one.action.value) for one in done.undone]
    parts: list[Part] = [text, Grid(["instant", "action"], rows, "undone")] if rows else [text]
    answer(as_json, document, parts)


def _document(one: Savepoint) -> dict[str, Any]:
    return {
        "commit": one.instant.requested_time,
        "completion_time": one.instant.completion_time,
        "created": one.created.isoformat(),
        "user": one.user,
        "comment": one.comment,
        "files": one.files,
    }
