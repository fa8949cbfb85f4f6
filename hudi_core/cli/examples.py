"""The examples that `--help` of each command shows.

A command without an entry, or an entry without a command, fails a test, and so does an example
that does not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import typer

HEADING: Final = "Examples:"
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "archive": ("hudi archive trips --dry-run", "hudi archive trips -o hoodie.keep.max.commits=40"),
    "clean": ("hudi clean trips --dry-run", "hudi clean trips -o hoodie.clean.commits.retained=5"),
    "cluster": (
        "hudi cluster trips --sort-by fare --dry-run",
        "hudi cluster trips --sort-by city,fare --layout hilbert",
    ),
    "formats": ("hudi formats", "hudi formats --json"),
    "ingest": (
        "hudi ingest arrived incoming -o hoodie.datasource.write.recordkey.field=id",
        "hudi ingest arrived incoming --from parquet --dry-run",
    ),
    "metadata create": ("hudi metadata create trips",),
    "metadata delete": ("hudi metadata delete trips",),
    "metadata drop": ("hudi metadata drop trips column_stats",),
    "metadata index": (
        "hudi metadata index trips record_index",
        "hudi metadata index trips bloom_filters",
    ),
    "metadata init": ("hudi metadata init trips", "hudi metadata init trips --readonly"),
    "metadata list-files": ("hudi metadata list-files trips --partition Rome",),
    "metadata list-partitions": ("hudi metadata list-partitions trips",),
    "metadata lookup-record-index": ("hudi metadata lookup-record-index trips --record-key 1",),
    "metadata set": ("hudi metadata set trips --metadataDir s3://lake/metadata",),
    "metadata stats": ("hudi metadata stats trips",),
    "metadata validate": ("hudi metadata validate trips",),
    "optimize": ("hudi optimize trips --dry-run",),
    "purge": (
        "hudi purge trips --dry-run",
        "hudi purge trips --yes",
        "hudi purge trips --savepoint 20260131120000000 --yes",
    ),
    "restore": (
        "hudi restore trips 20260131120000000 --dry-run",
        "hudi restore trips 20260131120000000 --yes",
    ),
    "rollback": (
        "hudi rollback trips 20260131120000000 --dry-run",
        "hudi rollback trips 20260131120000000",
    ),
    "savepoint create": ("hudi savepoint create trips --comment 'before the load'",),
    "savepoint delete": ("hudi savepoint delete trips 20260131120000000",),
    "savepoint list": ("hudi savepoint list trips --json",),
    "serve-trino": (
        "hudi serve-trino --table lake.trips=trips --port 7779",
        "hudi serve-trino -o hive.metastore.uri=thrift://metastore:9083",
    ),
    "stage drop": ("hudi stage drop trips 20260131120000000-00000001",),
    "stage list": ("hudi stage list trips",),
    "stage publish": ("hudi stage publish trips 20260131120000000-00000001",),
    "sync glue": ("hudi sync glue trips --database lake --dry-run",),
    "sync hive": ("hudi sync hive trips --uri thrift://metastore:9083 --database lake",),
    "table adopt": (
        "hudi table adopt files --key id --dry-run",
        "hudi table adopt files --key id --rewrite rewritten",
    ),
    "table convert": (
        "hudi table convert trips --to native --dry-run",
        "hudi table convert trips --to native",
    ),
    "table count": ("hudi table count trips --where \"city = 'Rome' AND fare > 10\"",),
    "table create": (
        "hudi table create new --schema-from rows.parquet --record-key id --partition-by city",
    ),
    "table drop": ("hudi table drop arrived --dry-run",),
    "table head": ("hudi table head trips -n 5 --columns id,fare",),
    "table repair": ("hudi table repair trips --dry-run", "hudi table repair trips --metadata"),
    "table rewrite-keys": ("hudi table rewrite-keys trips --dry-run",),
    "table show": ("hudi table show trips", "hudi table show s3://lake/trips --json"),
    "table upgrade": ("hudi table upgrade trips --to 9 --dry-run",),
    "table validate": ("hudi table validate trips --json",),
    "timeline": (
        "hudi timeline trips",
        "hudi timeline trips --all --json",
        "hudi timeline trips --html trips.html",
    ),
    "ttl": ("hudi ttl trips --days 365 --dry-run",),
}
"""Lines by command."""


def add_examples(app: typer.Typer, above: str = "") -> None:
    """Give the commands of an application their examples."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        command.epilog = _epilog(EXAMPLES.get(f"{above}{name}", ()))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, f"{above}{group.name} ")


def _epilog(lines: Iterable[str]) -> str | None:
    # paragraphs of their own: lines of one paragraph are run together
    return "\n\n".join([HEADING, *lines]) if lines else None
