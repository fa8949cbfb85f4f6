"""The examples that `--help` of each command shows.

A command without an entry, or an entry without a command, fails a test, and so does an example
that does not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import typer

HEADING: Final = "Examples:"
EXAMPLES: Final[dict[str, Sequence[str]]] = {
    "formats": ("hudi formats", "hudi formats --json"),
    "metadata set": ("hudi metadata set trips --metadataDir s3://lake/metadata",),
    "serve-trino": (
        "hudi serve-trino --table lake.trips=trips --port 7779",
        "hudi serve-trino -o hive.metastore.uri=thrift://metastore:9083",
    ),
}
"""Lines by command; services bring theirs, see :mod:`hudi_core.cli.service`."""


def add_examples(app: typer.Typer, above: str = "") -> None:
    """Give the commands of an application their examples."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        lines = getattr(command.callback, "examples", ())
        if lines:
            EXAMPLES[f"{above}{name}"] = lines
        command.epilog = _epilog(EXAMPLES.get(f"{above}{name}", ()))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, f"{above}{group.name} ")


def _epilog(lines: Sequence[str]) -> str | None:
    # paragraphs of their own: lines of one paragraph are run together
    return "\n\n".join([HEADING, *lines]) if lines else None
