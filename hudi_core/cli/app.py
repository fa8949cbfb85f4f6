"""The application `hudi`: its commands, and the entry of the console script."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Final

import typer

from hudi_core.cli.formats import formats
from hudi_core.cli.ingest import ingest
from hudi_core.cli.metadata import metadata_app
from hudi_core.cli.root import RootGroup
from hudi_core.cli.serve_trino import serve_trino
from hudi_core.cli.services import SERVICES, savepoint_app, stage_app, sync_app
from hudi_core.cli.table import table_app
from hudi_core.cli.terminal import write_line
from hudi_core.cli.timeline import timeline

# --- the examples that `--help` of each command shows ---------------------------------------------
# A command without an entry, or an entry without a command, fails a test, and so does an example
# that does not run.


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


# --- the application ------------------------------------------------------------------------------


app = typer.Typer(
    name="hudi",
    cls=RootGroup,
    no_args_is_help=True,
    # every error ends in RootGroup
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        write_line(f"hudi-core {version('hudi-core')}")
        raise typer.Exit


@app.callback()
def hudi(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where an error comes from.")
    ] = False,
) -> None:
    """Work with Hudi tables, whatever their format.

    Exit codes: 0 done, 1 error, 2 wrong usage, 3 outcome unknown, 4 a check failed. With --json an
    error is an object on the standard output, besides its message on the standard error.
    """


app.add_typer(table_app, name="table")
app.add_typer(metadata_app, name="metadata")
app.add_typer(savepoint_app, name="savepoint")
app.add_typer(stage_app, name="stage")
app.add_typer(sync_app, name="sync")
for one in (timeline, ingest, *SERVICES):
    app.command()(one)
app.command("serve-trino")(serve_trino)
app.command()(formats)
add_examples(app)


def main() -> None:
    """Run the command line of this process and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that knows less than Unicode shows escapes rather than an error
            stream.reconfigure(errors="backslashreplace")
    app()
