"""`hudi cluster` and `hudi optimize`: rewrite small files into larger ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    DryRunOption,
    JsonOption,
    OptionsOption,
    PathArgument,
    parse_names,
    parse_options,
)
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from hudi_core.services.clustering import Clustering

PartitionsOption = Annotated[
    str | None,
    typer.Option("--partitions", metavar="PATHS", help="Partitions to look at; commas between."),
]


def cluster(
    path: PathArgument,
    *,
    sort_by: Annotated[
        str | None,
        typer.Option("--sort-by", metavar="COLUMNS", help="Sort the rows; commas between."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="How several columns sort: linear, z-order or hilbert."),
    ] = None,
    partitions: PartitionsOption = None,
    schedule: Annotated[
        bool, typer.Option("--schedule", help="Only put a plan on the timeline.")
    ] = False,
    run: Annotated[bool, typer.Option("--run", help="Only run what is scheduled.")] = False,
    instant: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="With --run: which plan.")
    ] = None,
    option: OptionsOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rewrite small files into larger ones, their rows in another order.

    By default a plan is made and run at once. Options -o hoodie.clustering.* say which files.
    """
    if run and (schedule or dry_run or sort_by or layout or partitions):
        raise typer.BadParameter("the plan has it all", param_hint="'--run'")
    if instant is not None and not run:
        raise typer.BadParameter("it goes with --run", param_hint="'--instant'")
    table = library.Table.open(path, parse_options(option))
    with progress_bar("groups") as progress:
        if run:
            done = table.run_clusterings(instant, progress=progress)
        else:
            one = table.cluster(
                sort_by=parse_names(sort_by),
                layout=layout,
                partitions=parse_names(partitions),
                schedule_only=schedule,
                dry_run=dry_run,
                progress=progress,
            )
            done = [one]
    _answer(table.path, done, dry_run=dry_run, as_json=as_json)


def optimize(
    path: PathArgument,
    *,
    partitions: PartitionsOption = None,
    option: OptionsOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rewrite all small files into larger ones; rows stay in their order."""
    table = library.Table.open(path, parse_options(option))
    with progress_bar("groups") as progress:
        done = table.optimize(parse_names(partitions), dry_run=dry_run, progress=progress)
    _answer(table.path, [done], dry_run=dry_run, as_json=as_json)


def _answer(path: str, done: Sequence[Clustering], *, dry_run: bool, as_json: bool) -> None:
    found = [one for one in done if one.groups]
    document = {
        "path": path,
        "dry_run": dry_run,
        "clusterings": [clustering_document(one) for one in found],
    }
    answer(as_json, document, _parts(path, found, dry_run))


def _parts(path: str, found: Sequence[Clustering], dry_run: bool) -> Iterator[Part]:
    if not found:
        yield f"{path}: there is nothing to rewrite."
    for one in found:
        if one.result is not None:
            yield (
                f"Clustered {path} by instant {one.instant}: {one.files:,} files, {one.size:,} "
                f"bytes, became {one.result.files:,} files, {one.result.bytes_written:,} bytes."
            )
            continue
        rows = [
            [
                group.partition_path or "-",
                f"{len(group.files):,}",
                f"{group.size:,}",
                f"{group.outputs:,}",
            ]
            for group in one.groups
        ]
        yield Grid(["partition", "files", "bytes", "new files"], rows)
        if dry_run:
            yield "Nothing was changed (--dry-run)."
        else:
            yield f"Scheduled as instant {one.instant}: `hudi cluster {path} --run` runs it."


def clustering_document(one: Clustering) -> dict[str, Any]:
    """Return a clustering in the form its JSON has."""
    result = one.result
    return {
        "instant": one.instant,
        "completed": None if result is None else result.instant.completion_time,
        "files": one.files,
        "bytes": one.size,
        "new_files": one.outputs if result is None else result.files,
        "new_bytes": None if result is None else result.bytes_written,
        "groups": [
            {
                "partition": group.partition_path,
                "files": [file.path for file in group.files],
                "bytes": group.size,
                "new_files": group.outputs,
            }
            for group in one.groups
        ],
    }
