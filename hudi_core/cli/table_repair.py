"""`hudi table repair`: rebuild metadata from the timeline and the data files."""

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
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.cli.output import Part, answer
from hudi_core.cli.progress import progress_bar
from hudi_core.cli.table_validate import difference_document, differences_grid

if TYPE_CHECKING:
    from hudi_core.services.metadata_repair import MetadataRepair
    from hudi_core.services.repair import Repair
    from hudi_core.table import Table


def repair(
    path: PathArgument,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Rebuild the format's metadata in any case.")
    ] = False,
    metadata: Annotated[
        bool,
        typer.Option(
            "--metadata", help="Rebuild just the metadata table, from all files, in any case."
        ),
    ] = False,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild lost or wrong parts of metadata table and format's metadata.

    Commits of other writers than Hudi are not in the format's metadata any more. Exit code 4 tells
    that something is wrong still.

    With --metadata the folders are listed, footers and keys read, and the metadata table that they
    make is compared with the commits, and with the one in use, before it replaces that.
    """
    if metadata and force:
        raise typer.BadParameter("it rebuilds the format's metadata", param_hint="--force")
    table = library.Table.open(path, parse_options(option))
    if metadata:
        _repair_metadata(table, dry_run=dry_run, as_json=as_json)
        return
    with progress_bar("files") as progress:
        done = table.repair(force=force, dry_run=dry_run, progress=progress)
    document = {
        "path": done.path,
        "format": done.table_format,
        "dry_run": dry_run,
        "found": [difference_document(one) for one in done.found],
        "rebuilt": _rebuilt(done),
        "checksums_removed": done.checksums,
        "left": [difference_document(one) for one in done.left],
    }
    answer(as_json, document, _parts(done, dry_run))
    if done.left:
        raise typer.Exit(ExitCode.VALIDATION_FAILED)


def _repair_metadata(table: Table, *, dry_run: bool, as_json: bool) -> None:
    with progress_bar("files") as progress:
        done = table.repair_metadata(dry_run=dry_run, progress=progress)
    made = done.rebuilt
    document: dict[str, Any] = {
        "path": done.path,
        "dry_run": dry_run,
        "resumed": made is None,
        "partitions": list(done.partitions),
    }
    if made is not None:
        document |= {
            "files": made.files,
            "records": made.records,
            "differences": [difference_document(one) for one in made.differences],
            "not_compared": made.unreadable,
            "orphans": list(made.orphans),
            "lost_indexes": list(made.gone),
        }
    answer(as_json, document, _parts_of_metadata(done, dry_run))


def _parts_of_metadata(done: MetadataRepair, dry_run: bool) -> Iterator[Part]:
    made = done.rebuilt
    if made is None:
        yield f"{done.path}: put the metadata table in place that an earlier repair had built."
    else:
        yield from differences_grid("differences from the one in use", made.differences)
        if made.unreadable is not None:
            yield f"The one in use could not be compared: {made.unreadable}."
        if made.orphans:
            yield f"Not listed, for no commit names them: {', '.join(made.orphans)}"
        if made.gone:
            yield f"Left out, for nothing tells their column: {', '.join(made.gone)}"
        rebuilt = "Would rebuild" if dry_run else "Rebuilt"
        yield f"{rebuilt} the metadata table of {done.path} from {made.files} files."
    yield f"Partitions: {', '.join(done.partitions)}"
    if dry_run:
        yield "Nothing was changed (--dry-run)."


def _rebuilt(done: Repair) -> list[str]:
    parts = {"metadata table": done.metadata_table, done.table_format: done.format_metadata}
    commits = [f"the completed file of {time}" for time in done.commits]
    commits += [f"what replaced file group {one}" for one in done.returned]
    return commits + [name for name, is_rebuilt in parts.items() if is_rebuilt]


def _parts(done: Repair, dry_run: bool) -> Iterator[Part]:
    yield from differences_grid("found", done.found)
    if not done.is_needed:
        yield f"{done.path}: nothing to rebuild."
    elif dry_run:
        what = " and ".join(_rebuilt(done)) or "nothing, but publish what is pending"
        yield f"Would rebuild: {what}. Nothing was changed (--dry-run)."
    else:
        what = " and ".join(_rebuilt(done)) or "nothing, but published what was pending"
        yield f"{done.path}: rebuilt: {what}."
    if done.checksums:
        removed = "Would remove" if dry_run else "Removed"
        yield f"{removed} the checksum files that are wrong."
    yield from differences_grid("left, to be mended by hand", done.left)
