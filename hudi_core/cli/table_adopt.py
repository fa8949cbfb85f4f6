"""`hudi table adopt`: make a Hudi table of what a folder holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    DryRunOption,
    JsonOption,
    OptionsOption,
    installed_format,
    parse_names,
    parse_options,
)
from hudi_core.cli.output import Facts, Part, answer
from hudi_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from hudi_core.services.adopt_plan import Adoption


def adopt(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A folder of Parquet files, or a table of an installed format."
        ),
    ],
    *,
    key: Annotated[
        str | None, typer.Option("--key", metavar="COLUMNS", help="Columns of the record key.")
    ] = None,
    partition_by: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Partition columns; by default those found there."),
    ] = None,
    ordering_field: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of two rows with one key the greater value wins."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the table; by default the last part of the path.")
    ] = None,
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            callback=installed_format,
            help="Table format; by default the one found there.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", help="What to adopt, of several: a format, or parquet."),
    ] = None,
    rewrite: Annotated[
        str | None,
        typer.Option(metavar="NEW_PATH", help="Write the rows into a new table there instead."),
    ] = None,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Adopt a folder of Parquet files, or another format's table.

    The files stay as they are and get new names. They have no meta columns, so that the table has
    virtual keys and no incremental queries. With --rewrite the rows are written into a new table
    that is like any other, and the folder stays as it is.
    """
    if source != library.PLAIN:
        installed_format(source)
    with progress_bar("files") as progress:
        done = library.Table.adopt(
            path,
            record_key=parse_names(key),
            partition_by=parse_names(partition_by),
            ordering_field=ordering_field,
            name=name,
            format=table_format,
            source=source,
            rewrite=rewrite,
            options=parse_options(option),
            dry_run=dry_run,
            progress=progress,
        )
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "from": done.source,
        "format": done.table_format,
        "files": done.files,
        "rows": done.rows,
        "bytes": done.size,
        "partitions": done.partitions,
        "rewritten": done.is_rewritten,
        "keeps_history": done.keeps_history,
        "obstacles": list(done.obstacles),
    }
    answer(as_json, document, _plan_parts(done) if dry_run else _parts(done))


def _parts(done: Adoption) -> Iterator[Part]:
    how = "rewritten" if done.is_rewritten else "as they are"
    yield (
        f"Adopted {done.files:,} files with {done.rows:,} rows, {how}, as the "
        f"{done.table_format} table {done.path}."
    )
    if not done.is_rewritten:
        yield "Its files have no meta columns: it has virtual keys, and no incremental queries."
        yield from _of_history(done, "stay", "ended")


def _of_history(done: Adoption, stay: str, end: str) -> Iterator[Part]:
    """What becomes of the states that the format had before."""
    if done.source == library.PLAIN:
        return
    if done.keeps_history:
        yield f"Former states of the {done.source} table {stay}: files keep their former names too."
    else:
        yield (
            f"Former states of the {done.source} table {end}: files lose their former names, as "
            "the table has no metadata table (hoodie.metadata.enable=false)."
        )


def _plan_parts(plan: Adoption) -> Iterator[Part]:
    yield Facts(
        [
            ("table", plan.path),
            ("from", plan.source),
            ("to", plan.table_format),
            ("files", f"{plan.files:,}, {plan.size:,} bytes"),
            ("rows", f"{plan.rows:,}, {'rewritten' if plan.is_rewritten else 'as they are'}"),
            ("partitions", "-" if plan.partitions is None else f"{plan.partitions:,}"),
        ]
    )
    if not plan.is_rewritten and not plan.obstacles:
        yield from _of_history(plan, "would stay", "would end")
    for obstacle in plan.obstacles:
        yield f"not possible without --rewrite: {obstacle}"
    yield "Nothing was changed (--dry-run)."
