"""`hudi table head` and `hudi table count`: rows, or their number."""

from __future__ import annotations

import json
import math
from datetime import date, time
from typing import Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    JsonOption,
    OptionsOption,
    PathArgument,
    parse_names,
    parse_options,
)
from hudi_core.cli.output import Grid, answer
from hudi_core.cli.where import parse_where

WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITIONS",
        help="Rows to take, such as \"city = 'Rome' AND fare > 3\"; also IN and IS NULL.",
    ),
]


def head(
    path: PathArgument,
    *,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=1, metavar="N", help="Rows to show at most.")
    ] = 10,
    columns: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns to show, with commas; else the table's own."),
    ] = None,
    where: WhereOption = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show some rows, in no particular order."""
    conditions = parse_where(where)
    table = library.Table.open(path, parse_options(option))
    names = parse_names(columns) or table.schema.names
    found = [
        {name: json_value(value) for name, value in row.items()}
        for row in table.head(rows, names, conditions).to_pylist()
    ]
    shown = [[_cell(row[name]) for name in names] for row in found]
    document = {"path": table.path, "columns": names, "rows": found}
    answer(as_json, document, [Grid(names, shown)])


def count(
    path: PathArgument,
    *,
    where: WhereOption = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the rows; without conditions no data file is read."""
    conditions = parse_where(where)
    table = library.Table.open(path, parse_options(option))
    rows = table.count(conditions)
    answer(as_json, {"path": table.path, "where": where, "rows": rows}, [f"{rows:,}"])


def json_value(value: Any) -> Any:
    """A value of a row as JSON has it.

    Dates and times are ISO 8601, bytes hexadecimal; what JSON has no form for is its text.
    """
    if isinstance(value, dict):
        return {name: json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, date | time):
        return value.isoformat()
    is_json = value is None or isinstance(value, bool | int | str)
    is_number = isinstance(value, float) and math.isfinite(value)
    return value if is_json or is_number else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
