"""`hudi ingest`: write a folder's files into a table, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    DryRunOption,
    JsonOption,
    OptionsOption,
    PathArgument,
    parse_options,
)
from hudi_core.cli.document import document_of
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.progress import progress_bar
from hudi_core.cli.service import UNCHANGED
from hudi_core.cli.terminal import write_line

if TYPE_CHECKING:
    from hudi_core.ingestion import IngestResult


def ingest(
    path: PathArgument,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="The folder of the files; by default hoodie.streamer.source.dfs.root.",
        ),
    ] = None,
    *,
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="What the files hold: parquet, json, csv or dms; by default their names say it.",
        ),
    ] = None,
    operation: Annotated[
        str | None, typer.Option("--op", help="upsert (the default), insert or bulk_insert.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the ingestion; by default the place of the folder."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Columns of the files, as an Avro schema in JSON."),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--checkpoint",
            metavar="MILLIS",
            help="At the first run: only files that were modified later.",
        ),
    ] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Look for new files until it is stopped.")
    ] = False,
    pause: Annotated[
        int,
        typer.Option("--min-sync-interval-seconds", help="Seconds between two looks.", min=1),
    ] = 10,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the unread files of a folder into a table.

    The table is created where there is none, by Hudi's options, such as
    -o hoodie.datasource.write.recordkey.field=id. The commit that brings a file's rows keeps that
    it was read, so that each is read once.
    """
    options = parse_options(option)
    if operation is not None:
        options[library.WriteConfig.operation.key] = operation
    columns = None if schema is None else library.read_avro_schema(schema)
    while True:
        with progress_bar("files") as progress:
            done = library.ingest(
                path,
                source,
                source_format=source_format,
                name=name,
                options=options,
                schema=columns,
                since_ms=since,
                dry_run=dry_run,
                progress=progress,
            )
        document = document_of(done, lambda name: name == "dry_run" and dry_run)
        parts = _parts(done, dry_run)
        if not continuous or dry_run:
            answer(as_json, document, parts)
            return
        if done.batches and as_json:
            write_line(json.dumps(document))  # an object in each line
        elif done.batches:
            answer(False, document, parts)
        since = None if done.batches else since
        time.sleep(pause)


def _parts(done: IngestResult, dry_run: bool) -> Iterator[Part]:
    if not done.batches:
        yield f"{done.path}: no new file in {done.source}."
    elif dry_run:
        rows = [[f"{len(one.files):,}", f"{one.size:,}", one.files[0]] for one in done.batches]
        yield Grid(["files", "bytes", "first file"], rows, f"{done.path}: would write {done}")
        yield UNCHANGED
    else:
        made = [
            [
                one.commit.instant.requested_time,
                f"{len(one.files):,}",
                f"{one.commit.inserted:,}",
                f"{one.commit.updated:,}",
                f"{one.commit.deleted:,}",
            ]
            for one in done.batches
            if one.commit is not None
        ]
        headings = ["commit", "files", "inserted", "updated", "deleted"]
        yield Grid(headings, made, f"{done.path}: {done}")
    if done.late:
        yield (
            f"{done.late:,} files are older than what is remembered and were not read "
            "(hoodie.ingest.late.files.days)."
        )
    for one in done.changed:
        yield f"{one} changed while it was read; the next run reads it."
