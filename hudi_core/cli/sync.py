"""`hudi sync hive` and `hudi sync glue`: register tables in metastores."""

from __future__ import annotations

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
from hudi_core.cli.output import Grid, Part, answer

if TYPE_CHECKING:
    from hudi_core.sync.result import SyncedEntry, SyncResult

_PREFIX = "hoodie.datasource.hive_sync."
sync_app = typer.Typer(no_args_is_help=True, help="Register tables in metastores.")

DatabaseOption = Annotated[
    str | None, typer.Option("--database", help="The database; default by default.")
]
NameOption = Annotated[
    str | None, typer.Option("--table", help="The entry's name; the table's by default.")
]


@sync_app.command()
def hive(
    path: PathArgument,
    *,
    uri: Annotated[
        str | None, typer.Option("--uri", help="The metastore, such as thrift://metastore:9083.")
    ] = None,
    database: DatabaseOption = None,
    table: NameOption = None,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a table in a Hive metastore, or update its entry."""
    named = {"metastore.uris": uri, "database": database, "table": table}
    _sync("hive", path, named, parse_options(option), dry_run=dry_run, as_json=as_json)


@sync_app.command()
def glue(
    path: PathArgument,
    *,
    database: DatabaseOption = None,
    table: NameOption = None,
    dry_run: DryRunOption = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a table in AWS Glue, or update its entry."""
    named = {"database": database, "table": table}
    _sync("glue", path, named, parse_options(option), dry_run=dry_run, as_json=as_json)


def _sync(
    tool: str,
    path: str,
    named: dict[str, str | None],
    options: dict[str, str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    given = {f"{_PREFIX}{name}": value for name, value in named.items() if value is not None}
    opened = library.Table.open(path, {**options, **given})
    done = opened.sync(tool, dry_run=dry_run)
    document = {
        "path": done.path,
        "dry_run": dry_run,
        "tool": done.tool.value,
        "address": done.address,
        "last_commit": done.last_commit,
        "creates_database": done.creates_database,
        "entries": [_entry_document(one) for one in done.entries],
    }
    answer(as_json, document, _parts(done, dry_run=dry_run))


def _entry_document(entry: SyncedEntry) -> dict[str, Any]:
    return {
        "database": entry.database,
        "name": entry.name,
        "change": entry.change.value,
        "columns": list(entry.columns),
        "partitions_added": list(entry.added),
        "partitions_changed": list(entry.changed),
        "partitions_dropped": list(entry.dropped),
        "compared_all_partitions": entry.compares_all,
    }


def _parts(done: SyncResult, *, dry_run: bool) -> list[Part]:
    rows = [
        [
            f"{one.database}.{one.name}",
            one.change.value,
            str(len(one.added)),
            str(len(one.changed)),
            str(len(one.dropped)),
        ]
        for one in done.entries
    ]
    head = ["entry", "it is", "partitions added", "changed", "dropped"]
    parts: list[Part] = [Grid(head, rows, f"{done.path} in {done.address}")]
    parts += [f"{one.name}: {change}" for one in done.entries for change in one.columns]
    if dry_run:
        parts.append("Nothing was changed (--dry-run).")
    return parts
