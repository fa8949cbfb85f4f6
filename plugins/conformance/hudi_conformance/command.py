"""``hudi conformance``: run what a table format must do, and report it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_conformance import kit
from hudi_core.commands import ExitCode, Grid, JsonOption, Part, answer, progress_bar

if TYPE_CHECKING:
    from hudi_conformance.formats.report import FormatReport

app = typer.Typer(no_args_is_help=True, help="Run what a table format must do.")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="The format, as tables name it.")],
    checks: Annotated[
        str, typer.Option(help="Ids of checks, with commas between; all by default.")
    ] = "",
    histories: Annotated[
        int | None,
        typer.Option(help="How many random histories; by default a few that stay the same.", min=1),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="File that gets the report in JSON.", dir_okay=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the conformance suite that a package registers for a format.

    The exit code is 4 where a check fails that is no known deviation.

    Examples: `hudi conformance run delta --report delta.json`,
    `hudi conformance run my_format --checks F01,F16`,
    `hudi conformance run my_format --checks F52 --histories 500`
    """
    with progress_bar("tests") as progress:
        found = kit.run_format(name, progress, [one for one in checks.split(",") if one], histories)
    document = found.to_document()
    if report is not None:
        report.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    answer(as_json, document, _parts(found))
    if not found.is_right:
        raise typer.Exit(ExitCode.VALIDATION_FAILED)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """Show the formats that have a registered suite, and all checks."""
    suites = {name: one.value for name, one in kit.registered().items()}
    checks = [(one.id, one.sentence) for one in sorted(kit.CHECKS.values(), key=lambda one: one.id)]
    answer(
        as_json,
        {"suites": suites, "checks": dict(checks)},
        [
            Grid(["format", "suite"], [*suites.items()], "Suites"),
            Grid(["id", "what a format must do"], checks, "Checks"),
        ],
    )


def _parts(found: FormatReport) -> Iterator[Part]:
    yield Grid(
        ["id", "outcome", "tests", "what a format must do"],
        [
            (one.check.id, str(one.outcome), str(one.tests), one.check.sentence)
            for one in found.results
        ],
        f"Table format {found.name}",
    )
    yield ", ".join(f"{number} {outcome}" for outcome, number in found.counts().items())
    for one in found.results:
        if one.reason:
            yield f"\n{one.check}\n{one.reason}"
