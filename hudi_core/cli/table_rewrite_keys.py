"""`hudi table rewrite-keys`: take stored keys out of files, or back."""

from __future__ import annotations

from collections.abc import Iterator
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
from hudi_core.cli.output import Part, answer
from hudi_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from hudi_core.services.rewrite_keys import KeyRewrite


def rewrite_keys(
    path: PathArgument,
    *,
    materialise: Annotated[
        bool, typer.Option("--materialise", help="Put the keys back into the files.")
    ] = False,
    transition: Annotated[
        bool,
        typer.Option("--transition", help="Make keys here, and go on storing them for others."),
    ] = False,
    keep_files: Annotated[
        bool, typer.Option("--keep-files", help="Leave present files until a write changes them.")
    ] = False,
    option: OptionsOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take the stored record keys out of the files.

    They are made of their columns. All stored keys are compared with the made ones first. A run
    that died is run again.
    """
    if materialise and transition:
        raise typer.BadParameter("it is for other keys", param_hint="'--transition'")
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.rewrite_keys(
            materialise=materialise,
            transition=transition,
            keep_files=keep_files,
            dry_run=dry_run,
            progress=progress,
        )
    answer(as_json, _document(done, dry_run), _parts(done, dry_run))


def _parts(done: KeyRewrite, dry_run: bool) -> Iterator[Part]:
    if not done.is_needed:
        yield f"The keys of {done.path} are {done.after} already: nothing to do."
        return
    if done.rows:
        yield f"{done.rows:,} stored keys are those that their columns make."
    if dry_run:
        yield (
            f"The keys of {done.path} would be {done.after}, and are {done.before}: {done.files:,} "
            f"files, {done.size:,} bytes, would be rewritten."
        )
        yield "Nothing was changed (--dry-run)."
        return
    yield f"The keys of {done.path} are {done.after}, and were {done.before}."
    if done.files:
        yield f"{done.files:,} files were rewritten: {done.size:,} bytes became {done.new_size:,}."


def _document(done: KeyRewrite, dry_run: bool) -> dict[str, Any]:
    return {
        "path": done.path,
        "dry_run": dry_run,
        "before": str(done.before),
        "after": str(done.after),
        "changed": done.is_needed and not dry_run,
        "rows": done.rows,
        "files": done.files,
        "bytes": done.size,
        "new_bytes": done.new_size,
        "instants": list(done.instants),
    }
