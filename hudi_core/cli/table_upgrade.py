"""`hudi table upgrade`: bring a table to another version."""

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
from hudi_core.cli.output import Facts, Grid, Part, answer
from hudi_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from hudi_core.services.upgrade_plan import Upgrade


def upgrade(
    path: PathArgument,
    *,
    to: Annotated[
        int, typer.Option("--to", metavar="8|9", min=8, max=9, help="Version of the table.")
    ],
    option: OptionsOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the table to version 8 or 9.

    It comes from version 6, or from the other one of these. Writers that know only the former
    version must have ended. An upgrade that died is run again.
    """
    options = parse_options(option)
    if dry_run:
        done = library.plan_upgrade(path, options, to)
    else:
        with progress_bar("files") as progress:
            done = library.upgrade_table(path, options, to, progress)
    answer(as_json, _document(done, dry_run), _parts(done, dry_run))


def _parts(done: Upgrade, dry_run: bool) -> Iterator[Part]:
    if not done.is_needed:
        yield f"{done.path} has version {done.after} already: nothing to do."
        return
    if dry_run:
        yield Facts(
            [
                ("table", done.path),
                ("from", str(done.before)),
                ("to", str(done.after)),
                ("pending", ", ".join(map(str, done.pending)) or "-"),
                ("archive files", f"{len(done.archives):,}" if done.archives else "-"),
                ("rebuilt", ", ".join(done.partitions) or "-"),
            ]
        )
        changes = [
            [key, before or "-", after or "-"] for key, (before, after) in done.properties.items()
        ]
        if changes:
            yield Grid(["property", "before", "after"], changes, "properties")
        if done.renamed:
            yield Grid(["before", "after"], [list(pair) for pair in done.renamed], "timeline")
        if done.is_resumed:
            yield "An earlier upgrade was interrupted: this one ends it."
        yield "Nothing was changed (--dry-run)."
        return
    if done.before == done.after:
        yield f"Ended the interrupted upgrade of {done.path} to version {done.after}."
        return
    parts = [
        f"{len(done.renamed):,} files of the timeline",
        f"{len(done.archives):,} of the archive",
        f"{len(done.partitions):,} partitions of the metadata table rebuilt",
    ]
    yield f"Brought {done.path} from version {done.before} to {done.after}: {', '.join(parts)}."


def _document(done: Upgrade, dry_run: bool) -> dict[str, Any]:
    return {
        "path": done.path,
        "dry_run": dry_run,
        "from": done.before,
        "to": done.after,
        "changed": done.is_needed and not dry_run,
        "resumed": done.is_resumed,
        "properties": {
            key: {"before": before, "after": after}
            for key, (before, after) in done.properties.items()
        },
        "timeline": [{"before": before, "after": after} for before, after in done.renamed],
        "archives": list(done.archives),
        "pending": list(map(str, done.pending)),
        "metadata_partitions": list(done.partitions),
    }
