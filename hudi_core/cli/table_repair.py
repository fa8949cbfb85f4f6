"""`hudi table repair`: rebuild metadata from the timeline and the data files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
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
    from hudi_core.services.foreign_changes import ForeignChanges
    from hudi_core.services.metadata_repair import MetadataRepair
    from hudi_core.services.repair import Repair
    from hudi_core.table import Table


def repair(
    path: PathArgument,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Rebuild the format's metadata in any case.")
    ] = False,
    take_in: Annotated[
        bool,
        typer.Option("--take-in", help="Write rows that another writer appended into the table."),
    ] = False,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard", help="Take commits of other writers out of the format's metadata."
        ),
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

    Where another writer than Hudi has added, deleted or changed rows in the format's metadata,
    nothing is changed unless --take-in or --discard says what becomes of them; --dry-run counts
    them. Exit code 4 says that something is wrong still.

    With --metadata the folders are listed, footers and keys read, and the metadata table that they
    make is compared with the commits, and with the one in use, before it replaces that.
    """
    if take_in and discard:
        raise typer.BadParameter("--take-in is given as well", param_hint="--discard")
    asked = {"--force": force, "--take-in": take_in, "--discard": discard}
    for name in (name for name, given in asked.items() if metadata and given):
        raise typer.BadParameter("it is about the format's metadata", param_hint=name)
    table = library.Table.open(path, parse_options(option))
    if metadata:
        _repair_metadata(table, dry_run=dry_run, as_json=as_json)
        return
    with progress_bar("files") as progress:
        done = table.repair(
            force=force, take_in=take_in, discard=discard, dry_run=dry_run, progress=progress
        )
    document = {
        "path": done.path,
        "format": done.table_format,
        "dry_run": dry_run,
        "foreign": [_foreign_document(one) for one in done.foreign],
        "taken_in": None if done.taken_in is None else asdict(done.taken_in),
        "found": [difference_document(one) for one in done.found],
        "rebuilt": _rebuilt(done),
        "rewritten": list(done.rewritten),
        "checksums_removed": done.checksums,
        "left": [difference_document(one) for one in done.left],
    }
    answer(as_json, document, _parts(done, dry_run, is_decided=discard))
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
            yield f"Left out, as nothing says which column they are of: {', '.join(made.gone)}"
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


def _foreign_document(one: ForeignChanges) -> dict[str, Any]:
    return {
        "format": one.table_format,
        "commits": list(one.commits),
        "version": one.version,
        "hudi_version": one.hudi_version,
        "added_files": len(one.added),
        "added_rows": one.added_rows,
        "removed_files": len(one.removed),
        "removed_rows": one.removed_rows,
        "deleted_rows": one.deleted_rows,
        "changes_rows": one.changes_rows,
        "problem": one.problem,
    }


def _parts(done: Repair, dry_run: bool, *, is_decided: bool) -> Iterator[Part]:
    yield from differences_grid("found", done.found)
    for one in done.foreign:
        commits = ", ".join(one.commits)
        yield f"Other writers in the {one.table_format} metadata ({commits}): {one.text}."
    if done.taken_in is not None:
        written = done.taken_in
        counts = (
            f"{written.inserted:,} new, {written.updated:,} updated, {written.deleted:,} deleted"
        )
        what = f"{written.rows:,} rows ({counts})"
        yield f"{'Would take' if dry_run else 'Took'} in {what}."
    elif done.drops_rows and dry_run and not is_decided:
        ways = "--take-in or --discard" if done.can_take_in else "--discard"
        yield f"Would be refused without {ways}. Nothing was changed (--dry-run)."
        return
    if not done.is_needed:
        yield f"{done.path}: nothing to rebuild."
    elif dry_run:
        what = " and ".join(_rebuilt(done)) or "nothing, but publish what is pending"
        yield f"Would rebuild: {what}. Nothing was changed (--dry-run)."
    else:
        what = " and ".join(_rebuilt(done)) or "nothing, but published what was pending"
        yield f"{done.path}: rebuilt: {what}."
    if done.rewritten:
        rewritten = "Would rewrite" if dry_run else "Rewrote"
        yield f"{rewritten} {len(done.rewritten):,} data files, with the same rows."
    if done.checksums:
        removed = "Would remove" if dry_run else "Removed"
        yield f"{removed} the checksum files that are wrong."
    yield from differences_grid("left, to be mended by hand", done.left)
