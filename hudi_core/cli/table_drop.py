"""`hudi table drop`: delete a table."""

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


def drop(
    path: PathArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Delete it; nothing is asked.")] = False,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a table with all its rows and history.

    An entry of it in a catalog stays, to be dropped there.
    """
    options = parse_options(option)
    if yes == dry_run:
        raise typer.BadParameter("give one of --yes and --dry-run", param_hint="'--yes'")
    done = library.plan_drop(path, options) if dry_run else library.drop_table(path, options)
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "name": done.name,
        "format": done.table_format,
        "files": done.files,
        "bytes": done.size,
    }
    did = "Would drop" if dry_run else "Dropped"
    what = f"{done.files:,} file{'' if done.files == 1 else 's'}, {done.size:,} bytes"
    text = f"{did} {done.name or 'the table'} at {done.path} (format {done.table_format}): {what}."
    answer(as_json, document, [text, "Nothing was changed (--dry-run)."] if dry_run else [text])
