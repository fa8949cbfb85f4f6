"""`hudi table convert`: give a table another format, or another storage layout."""

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
    from hudi_core.config.placement import Placement
    from hudi_core.services.convert import Conversion
    from hudi_core.services.relocate import StorageConversion


def convert(
    path: PathArgument,
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", callback=installed_format, help="See `hudi formats`."
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="STRATEGY",
            help="Move the data files: `object_store`, `default` or another storage strategy, with "
            "its options, such as -o hoodie.storage.path=PATH.",
        ),
    ] = None,
    option: OptionsOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change the table's format, or where its data files lie.

    With --to, data files and Hudi timeline stay, and the metadata of the former format stays where
    it is, and is not kept up any more. With --storage, data files move, and all else stays; a move
    that was interrupted goes on when it is run again.
    """
    options = parse_options(option)
    if storage is not None and to is None:
        _convert_storage(path, storage, options, dry_run=dry_run, as_json=as_json)
        return
    if to is None or storage is not None:
        raise typer.BadParameter("give one of --to and --storage", param_hint="'--to'")
    table = library.Table.open(path, options)
    with progress_bar("files") as progress:
        done = table.convert(to, dry_run=dry_run, progress=progress)
    answer(as_json, conversion_document(done, dry_run=dry_run), _parts(done, dry_run))


def _convert_storage(
    path: str, strategy: str, options: dict[str, str], *, dry_run: bool, as_json: bool
) -> None:
    table = library.Table.open(path, library.without_placement(options))
    wanted = {**options, "hoodie.storage.strategy.class": strategy}
    with progress_bar("files") as progress:
        done = table.convert_storage(wanted, dry_run=dry_run, progress=progress)
    answer(as_json, storage_document(done, dry_run=dry_run), _storage_parts(done, dry_run))


def _storage_parts(done: StorageConversion, dry_run: bool) -> Iterator[Part]:
    if not done.is_needed:
        yield f"The data files of {done.path} lie there already: nothing was moved."
        if done.deleted:
            yield f"{done.deleted:,} files that a move had left elsewhere were deleted."
    elif dry_run:
        yield Facts(
            [
                ("table", done.path),
                ("from", _words(done.before)),
                ("to", _words(done.after)),
                ("files", f"{done.files:,}, {done.size:,} bytes"),
                ("pending", f"{done.pending:,}, recovered first" if done.pending else "-"),
            ]
        )
        yield "Nothing was changed (--dry-run)."
    else:
        yield (
            f"Moved {done.files:,} files of {done.path} ({done.size:,} bytes) to "
            f"{_words(done.after)}: {done.copied:,} copied, {done.deleted:,} old ones deleted."
        )


def _words(placement: Placement) -> str:
    paths = ", ".join(placement.paths) or "the table's folder"
    return f"{paths} ({placement.strategy})"


def storage_document(done: StorageConversion, *, dry_run: bool) -> dict[str, Any]:
    """Return a move of data files in the form its JSON has."""
    return {
        "path": done.path,
        "dry_run": dry_run,
        "from": {"strategy": done.before.strategy, "paths": list(done.before.paths)},
        "to": {"strategy": done.after.strategy, "paths": list(done.after.paths)},
        "changed": done.is_made,
        "files": done.files,
        "bytes": done.size,
        "copied": done.copied,
        "deleted": done.deleted,
        "pending": done.pending,
    }


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
                ("pending", f"{done.pending:,}, recovered first" if done.pending else "-"),
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
