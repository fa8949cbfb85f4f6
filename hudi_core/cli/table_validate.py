"""`hudi table validate`: what the parts of a table say, compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.progress import progress_bar

if TYPE_CHECKING:
    from hudi_core.model.difference import Difference
    from hudi_core.services.differences import TableValidation
    from hudi_core.services.repeated_keys import RepeatedKeys

_SHOWN: Final = 20


def validate(
    path: PathArgument,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare files and sizes; read no data file.")
    ] = False,
    keys: Annotated[
        bool,
        typer.Option("--keys", help="Read the keys of all rows; count those of several rows."),
    ] = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare timeline, storage, metadata table and the format's own metadata.

    Exit code 4: they differ.
    """
    table = library.Table.open(path, parse_options(option))
    with progress_bar("files") as progress:
        report = table.validate(footers=not quick, keys=keys, progress=progress)
    document = {
        "path": report.path,
        "format": report.table_format,
        "valid": report.is_valid,
        "files": report.files,
        "rows": report.rows,
        "differences": [difference_document(one) for one in report.differences],
        "checked": dict(report.checked),
        "skipped": dict(report.skipped),
        "orphans": list(report.orphans),
        "repeated_keys": _repeated_document(report.repeated_keys),
    }
    answer(as_json, document, _parts(report))
    if not report.is_valid:
        raise typer.Exit(ExitCode.VALIDATION_FAILED)


def difference_document(one: Difference) -> dict[str, Any]:
    """Return a difference in the form its JSON has."""
    return {
        "source": str(one.source),
        "subject": one.subject,
        "expected": one.expected,
        "found": one.found,
    }


def _repeated_document(found: RepeatedKeys | None) -> dict[str, Any] | None:
    if found is None:
        return None
    some = [{"key": one.key, "files": list(one.paths)} for one in found.examples]
    return {"keys": found.keys, "rows": found.rows, "examples": some}


def differences_grid(title: str, differences: Sequence[Difference]) -> list[Part]:
    """Differences one a line, if there are any."""
    rows = [[one.source, one.subject, one.found or "", one.expected or ""] for one in differences]
    return [Grid(["who", "of what", "says", "expected"], rows, title)] if rows else []


def _parts(report: TableValidation) -> Iterator[Part]:
    yield from differences_grid("", report.differences)
    compared = [[what, f"{count:,}"] for what, count in report.checked.items()]
    yield Grid(["compared", "number"], compared)
    for what, reason in report.skipped.items():
        yield f"{what}: not compared, {reason}"
    if report.orphans:
        size = len(report.orphans)
        yield f"{size} orphan{'s' * (size > 1)}, files that belong to nothing:"
        for path in report.orphans[:_SHOWN]:
            yield f"  {path}"
        if size > _SHOWN:
            yield f"  and {size - _SHOWN} more (--json has them all)"
    found = report.repeated_keys
    if found is not None and found.keys and not found.are_forbidden:
        some = ", ".join(map(str, found.examples))
        more = ", ..." if found.keys > len(found.examples) else ""
        yield f"Keys that several rows have: {found.keys:,} in {found.rows:,} rows: {some}{more}"
    count = len(report.differences)
    result = "is sound" if report.is_valid else f"has {count} difference{'s' * (count > 1)}"
    rows_text = "" if report.rows is None else f", {report.rows:,} rows"
    yield (
        f"The {report.table_format} table at {report.path} {result}: "
        f"{report.files:,} files{rows_text}."
    )
