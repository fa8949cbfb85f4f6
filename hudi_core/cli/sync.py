"""`hudi sync hive` and `hudi sync glue`: register tables in metastores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import typer

from hudi_core.cli.output import Grid, Part
from hudi_core.cli.service import DRY_RUN, UNCHANGED, Call, option, service

if TYPE_CHECKING:
    from hudi_core.sync.result import SyncResult

_PREFIX: Final = "hoodie.datasource.hive_sync."
_URI: Final = option("--uri", "The metastore, such as thrift://metastore:9083.")
_ENTRY: Final = (
    option("--database", "The database; default by default."),
    option("--table", "The entry's name; the table's by default."),
)
sync_app = typer.Typer(no_args_is_help=True, help="Register tables in metastores.")


def _sync(tool: str, call: Call) -> SyncResult:
    keys = {"uri": "metastore.uris", "database": "database", "table": "table"}
    given = {f"{_PREFIX}{key}": call.given.get(name) for name, key in keys.items()}
    call.options |= {key: value for key, value in given.items() if value is not None}
    return call.table.sync(tool, dry_run=call.dry_run)


@sync_app.command()
@service(_URI, *_ENTRY, DRY_RUN, does=lambda call: _sync("hive", call))
def hive(done: SyncResult, call: Call) -> Iterator[Part]:
    """Register a table in a Hive metastore, or update its entry."""
    return _synced(done, call)


@sync_app.command()
@service(*_ENTRY, DRY_RUN, does=lambda call: _sync("glue", call))
def glue(done: SyncResult, call: Call) -> Iterator[Part]:
    """Register a table in AWS Glue, or update its entry."""
    return _synced(done, call)


def _synced(done: SyncResult, call: Call) -> Iterator[Part]:
    rows = [
        [
            f"{one.database}.{one.name}",
            one.change.value,
            *(str(len(paths)) for paths in (one.added, one.changed, one.dropped)),
        ]
        for one in done.entries
    ]
    head = ["entry", "it is", "partitions added", "changed", "dropped"]
    yield Grid(head, rows, f"{done.path} in {done.address}")
    for one in done.entries:
        yield from (f"{one.name}: {change}" for change in one.columns)
    if call.dry_run:
        yield UNCHANGED
