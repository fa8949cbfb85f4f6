"""`hudi purge`: make deleted rows leave the disk."""

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
from hudi_core.cli.output import answer
from hudi_core.cli.progress import progress_bar
from hudi_core.cli.timeline import instant_document


def purge(
    path: PathArgument,
    *,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Only rows that went before this instant time."),
    ] = None,
    savepoint: Annotated[
        list[str] | None,
        typer.Option("--savepoint", help="A savepoint to delete first; may be given often."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete: past states cannot be read any more.")
    ] = False,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete every trace of rows that the table no longer has.

    --dry-run lists the files with rows of past states; indexes, statistics and the metadata of the
    table's format are rebuilt besides.
    """
    if not yes and not dry_run:
        raise typer.BadParameter("past states go for good; say so", param_hint="'--yes'")
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.purge(
            older_than, savepoints=savepoint or (), dry_run=dry_run, progress=progress
        )
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "clean": instant_document(done.instant, archived=False) if done.instant else None,
        "files": list(done.files),
        "metadata_files": list(done.metadata_files),
    }
    count = len(done.files) + len(done.metadata_files)
    if dry_run:
        lines = [f"{done.path}: {count} files would be deleted.", *done.files]
        answer(as_json, document, lines)
        return
    text = f"{done.path}: deleted {count} files of past states and rebuilt the metadata."
    answer(as_json, document, [text])
