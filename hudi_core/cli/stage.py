"""`hudi stage`: writes that wait for their publication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.output import Grid, answer
from hudi_core.cli.timeline import instant_document

if TYPE_CHECKING:
    from hudi_core.services.stage import Stage

stage_app = typer.Typer(no_args_is_help=True, help="Writes that wait for their publication.")

StageArgument = Annotated[str, typer.Argument(metavar="STAGE", help="Id of the stage.")]


@stage_app.command("list")
def show(path: PathArgument, option: OptionsOption = None, as_json: JsonOption = False) -> None:
    """Show the stages of a table, the oldest first."""
    table = library.Table.open(path, parse_options(option))
    found = table.stages()
    rows = [
        (
            one.id,
            one.operation,
            f"{one.commit.inserted:,}",
            f"{one.commit.updated:,}",
            f"{one.commit.deleted:,}",
            one.expires.isoformat(timespec="seconds"),
        )
        for one in found
    ]
    count = f"{len(rows)} stage{'' if len(rows) == 1 else 's'}"
    headings = ["stage", "operation", "inserted", "updated", "deleted", "expires"]
    document = {"path": table.path, "stages": [_document(one) for one in found]}
    answer(as_json, document, [Grid(headings, rows, f"{table.path}: {count}")])


@stage_app.command()
def publish(
    path: PathArgument,
    stage: StageArgument,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the rows of a stage, as one instant."""
    table = library.Table.open(path, parse_options(option))
    done = table.find_stage(stage).publish()
    document = {
        "path": table.path,
        "stage": stage,
        "commit": instant_document(done.instant, archived=False),
        "inserted": done.inserted,
        "updated": done.updated,
        "deleted": done.deleted,
        "is_repetition": done.is_repetition,
    }
    answer(as_json, document, [f"{table.path}: {done}"])


@stage_app.command()
def drop(
    path: PathArgument,
    stage: StageArgument,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a stage, be it expired, unfinished or damaged."""
    table = library.Table.open(path, parse_options(option))
    table.drop_stage(stage)
    answer(as_json, {"path": table.path, "dropped": stage}, [f"{table.path}: {stage} is dropped."])


def _document(one: Stage) -> dict[str, Any]:
    return {
        "stage": one.id,
        "operation": one.operation,
        "inserted": one.commit.inserted,
        "updated": one.commit.updated,
        "deleted": one.commit.deleted,
        "created": one.created.isoformat(),
        "expires": one.expires.isoformat(),
    }
