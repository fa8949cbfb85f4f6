"""`hudi table convert`: give a table another format."""

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
    installed_format,
    parse_options,
)
from hudi_core.cli.output import Facts, Part, answer
from hudi_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from hudi_core.services.convert import Conversion


def convert(
    path: PathArgument,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="FORMAT", callback=installed_format, help="See `hudi formats`."
        ),
    ],
    option: OptionsOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change the table's format; data files and Hudi timeline stay.

    The metadata of the former format stays where it is, and is not kept up any more.
    """
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.convert(to, dry_run=dry_run, progress=progress)
    answer(as_json, conversion_document(done, dry_run=dry_run), _parts(done, dry_run))


def _parts(done: Conversion, dry_run: bool) -> Iterator[Part]:
    if not done.is_needed:
        yield f"{done.path} has the format {done.after} already: nothing to do."
    elif dry_run:
        yield Facts(
            [
                ("table", done.path),
                ("from", done.before),
                ("to", done.after),
                ("files", f"{done.files:,} in {done.partitions:,} partitions, {done.size:,} bytes"),
                ("instants", f"{done.instants:,}, complete by a watermark"),
                ("pending", f"{done.pending:,}, made good first" if done.pending else "-"),
            ]
        )
        yield "Nothing was changed (--dry-run)."
    else:
        yield (
            f"Converted {done.path} from {done.before} to {done.after}: {done.files:,} files in "
            f"{done.partitions:,} partitions."
        )


def conversion_document(done: Conversion, *, dry_run: bool) -> dict[str, Any]:
    """Return a conversion in the form its JSON has."""
    receipt = done.receipt
    return {
        "path": done.path,
        "dry_run": dry_run,
        "from": done.before,
        "to": done.after,
        "changed": receipt is not None,
        "files": done.files,
        "bytes": done.size,
        "partitions": done.partitions,
        "instants": done.instants,
        "pending": done.pending,
        "version": receipt.version if receipt else None,
        "location": receipt.location if receipt else None,
    }
