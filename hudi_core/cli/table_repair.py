"""`hudi table repair`: make anew what the timeline and the data files tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    DryRunOption,
    JsonOption,
    OptionsOption,
    PathArgument,
    parse_options,
)
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.cli.progress import progress_bar
from hudi_core.cli.table_validate import difference_document, write_differences
from hudi_core.cli.terminal import write_json, write_line

if TYPE_CHECKING:
    from hudi_core.services.repair import Repair


def repair(
    path: PathArgument,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Make the format's metadata anew in any case.")
    ] = False,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make anew what is missing or wrong of the metadata table and of the format's metadata.

    Commits of other writers than Hudi are not in the format's metadata any more. Exit code 4 tells
    that something is wrong still.
    """
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.repair(force=force, dry_run=dry_run, progress=progress)
    if as_json:
        write_json(
            {
                "path": done.path,
                "format": done.table_format,
                "dry_run": dry_run,
                "found": [difference_document(one) for one in done.found],
                "rebuilt": _rebuilt(done),
                "checksums_removed": done.checksums,
                "left": [difference_document(one) for one in done.left],
            }
        )
    else:
        _write(done, dry_run)
    if done.left:
        raise typer.Exit(ExitCode.VALIDATION_FAILED)


def _rebuilt(done: Repair) -> list[str]:
    parts = {"metadata table": done.metadata_table, done.table_format: done.format_metadata}
    commits = [f"the completed file of {time}" for time in done.commits]
    return commits + [name for name, is_rebuilt in parts.items() if is_rebuilt]


def _write(done: Repair, dry_run: bool) -> None:
    write_differences("found", done.found)
    if not done.is_needed:
        write_line(f"{done.path}: nothing to make anew.")
    elif dry_run:
        what = " and ".join(_rebuilt(done)) or "nothing, but publish what is pending"
        write_line(f"Would make anew: {what}. Nothing was changed (--dry-run).")
    else:
        what = " and ".join(_rebuilt(done)) or "nothing, but published what was pending"
        write_line(f"{done.path}: made anew: {what}.")
    if done.checksums:
        removed = "Would remove" if dry_run else "Removed"
        write_line(f"{removed} the checksum files that are wrong.")
    write_differences("left, to be mended by hand", done.left)
