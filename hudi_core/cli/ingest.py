"""`hudi ingest`: write a folder's files into a table, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_core.cli import library
from hudi_core.cli.document import document_of
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.service import DRY_RUN, UNCHANGED, Call, argument, option, service, switch
from hudi_core.cli.terminal import progress_bar, write_line

if TYPE_CHECKING:
    from hudi_core.ingestion import IngestResult


def _ingest(call: Call) -> IngestResult:
    given = call.given
    continuous, pause = given.pop("continuous"), given.pop("pause")
    operation, schema = given.pop("operation"), given.pop("schema")
    if operation is not None:
        call.options[library.WriteConfig.operation.key] = operation
    given["schema"] = None if schema is None else library.read_avro_schema(schema)
    while True:
        with progress_bar("files") as progress:
            done = library.ingest(call.path, options=call.options, progress=progress, **given)
        if not continuous or call.dry_run:
            return done
        if done.batches:
            given["since_ms"] = None
            document = document_of(done, call.fact)
            if call.as_json:
                write_line(json.dumps(document))  # an object in each line
            else:
                answer(False, document, _parts(done, call))
        time.sleep(pause)


def _parts(done: IngestResult, call: Call) -> Iterator[Part]:
    if not done.batches:
        yield f"{done.path}: no new file in {done.source}."
    elif call.dry_run:
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


@service(
    argument(
        "SOURCE",
        "The folder of the files; by default hoodie.streamer.source.dfs.root.",
        str | None,
        default=None,
    ),
    option(
        "--from",
        "What the files hold: parquet, json, csv or dms; by default their names say it.",
        name="source_format",
    ),
    option("--op", "upsert (the default), insert or bulk_insert.", name="operation"),
    option("--name", "Name of the ingestion; by default the place of the folder."),
    option(
        "--schema",
        "Columns of the files, as an Avro schema in JSON.",
        Path | None,
        metavar="FILE",
    ),
    option(
        "--checkpoint",
        "At the first run: only files that were modified later.",
        int | None,
        name="since_ms",
        metavar="MILLIS",
    ),
    switch("--continuous", "Look for new files until it is stopped."),
    option(
        "--min-sync-interval-seconds", "Seconds between two looks.", int, 10, name="pause", min=1
    ),
    DRY_RUN,
    does=_ingest,
    examples="hudi ingest arrived incoming -o hoodie.datasource.write.recordkey.field=id\n"
    "hudi ingest arrived incoming --from parquet --dry-run",
)
def ingest(done: IngestResult, call: Call) -> Iterator[Part]:
    """Write the unread files of a folder into a table.

    The table is created where there is none, by Hudi's options, such as
    -o hoodie.datasource.write.recordkey.field=id. The commit that brings a file's rows keeps that
    it was read, so that each is read once.
    """
    return _parts(done, call)
