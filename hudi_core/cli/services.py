"""`hudi clean`, `hudi archive` and `hudi ttl`: services on demand."""

from __future__ import annotations

from typing import Annotated, Final

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

_SHOWN: Final = 20


def clean(
    path: PathArgument,
    *,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete file slices that no retained state of the table needs."""
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.clean(dry_run=dry_run, progress=progress)
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "policy": done.policy.value,
        "earliest_retained": done.earliest_retained,
        "clean": instant_document(done.instant, archived=False) if done.instant else None,
        "files": list(done.files),
        "partitions": list(done.partitions),
    }
    since = f"as of {done.earliest_retained}" if done.earliest_retained else "as of every commit"
    if not done.files and not done.partitions:
        parts: list[Part] = [f"{done.path}: nothing to delete; readable {since} and later."]
    else:
        did = "would delete" if dry_run else "deleted"
        count = f"{len(done.files)} file{'' if len(done.files) == 1 else 's'}"
        parts = [
            Grid(["file"], [[one] for one in done.files[:_SHOWN]], f"{done.path}: {did} {count}")
        ]
        if len(done.files) > _SHOWN:
            parts.append(f"... and {len(done.files) - _SHOWN} more (--json lists all).")
        parts.append(f"Readable {since} and later ({done.policy.value}).")
        if dry_run:
            parts.append("Nothing was changed (--dry-run).")
    answer(as_json, document, parts)


def archive(
    path: PathArgument,
    *,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move old instants from the active timeline to its history."""
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        done = table.archive(dry_run=dry_run, progress=progress)
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "archived": [instant_document(one, archived=not dry_run) for one in done.instants],
        "active": done.active,
    }
    count = f"{len(done.instants)} instant{'' if len(done.instants) == 1 else 's'}"
    if not done.instants:
        text = f"{done.path}: nothing to archive; {done.active} instants are active."
    elif dry_run:
        text = f"{done.path}: would archive {count} (--dry-run); {done.active} would stay active."
    else:
        text = f"{done.path}: archived {count}; {done.active} stay active."
    answer(as_json, document, [text])


def ttl(
    path: PathArgument,
    *,
    days: Annotated[
        int | None, typer.Option("--days", help="Days that a partition is kept.", min=1)
    ] = None,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete partitions that were not written to for some days.

    Options -o hoodie.partition.ttl.* say from when on the age counts, and of which partitions.
    """
    table = library.Table.open(path, parse_options(option))
    with progress_bar("partitions") as progress:
        done = table.expire_partitions(days, dry_run=dry_run, progress=progress)
    instant = done.commit.instant if done.commit else None
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "strategy": done.strategy.value,
        "days": done.days,
        "partitions": list(done.partitions),
        "commit": instant_document(instant, archived=False) if instant else None,
    }
    count = f"{len(done.partitions)} partition{'' if len(done.partitions) == 1 else 's'}"
    did = "would delete" if dry_run else "deleted"
    if not done.partitions:
        parts: list[Part] = [f"{done.path}: no partition is older than {done.days} days."]
    else:
        rows = [[one] for one in done.partitions[:_SHOWN]]
        parts = [Grid(["partition"], rows, f"{done.path}: {did} {count}")]
        if len(done.partitions) > _SHOWN:
            parts.append(f"... and {len(done.partitions) - _SHOWN} more (--json lists all).")
        if dry_run:
            parts.append("Nothing was changed (--dry-run).")
    answer(as_json, document, parts)
