"""`hudi table`: create, show, and whole-table services."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import (
    JsonOption,
    OptionsOption,
    PathArgument,
    installed_format,
    parse_names,
    parse_options,
)
from hudi_core.cli.output import Facts, Grid, answer
from hudi_core.cli.table_document import table_document
from hudi_core.cli.table_rows import count, head
from hudi_core.cli.table_services import (
    adopt,
    convert,
    drop,
    repair,
    rewrite_keys,
    upgrade,
    validate,
)

if TYPE_CHECKING:
    import pyarrow as pa

table_app = typer.Typer(
    no_args_is_help=True, help="Create, show, read, convert, upgrade, repair, drop tables."
)
for one in (adopt, convert, upgrade, rewrite_keys, validate, repair, head, count, drop):
    table_app.command()(one)


@table_app.command()
def create(
    path: PathArgument,
    *,
    name: Annotated[
        str | None, typer.Option(help="Name of the table; by default the last part of the path.")
    ] = None,
    record_key: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns of the record key, with commas.")
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Partition columns, with commas.")
    ] = None,
    ordering_field: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of two rows with one key the greater value wins."),
    ] = None,
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format", callback=installed_format, help="Table format; see `hudi formats`."
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="The columns, as an Avro record schema."),
    ] = None,
    schema_from: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Take the columns of this file.")
    ] = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an empty table."""
    options = parse_options(option)
    columns = _columns(schema, schema_from)
    table = library.Table.create(
        path,
        columns,
        name=name,
        record_key=parse_names(record_key),
        partition_by=parse_names(partition_by),
        ordering_field=ordering_field,
        format=table_format,
        options=options,
    )
    made = f"{len(table.schema)} columns, format {table.format}"
    message = f"Created {table.config.name} at {table.path}: {made}."
    answer(as_json, table_document(table), [message])


@table_app.command()
def show(path: PathArgument, option: OptionsOption = None, as_json: JsonOption = False) -> None:
    """Show what a table is: settings, columns, size, latest write."""
    document = table_document(library.Table.open(path, parse_options(option)))
    facts = {name: value for name, value in document.items() if name != "columns"}
    columns = [[_fact(value) for value in column.values()] for column in document["columns"]]
    answer(
        as_json,
        document,
        [
            Facts([(name.replace("_", " "), _fact(value)) for name, value in facts.items()]),
            Grid(["id", "column", "type", "nullable"], columns),
        ],
    )


def _columns(schema: Path | None, schema_from: Path | None) -> pa.Schema:
    if schema is not None and schema_from is None:
        return library.read_avro_schema(schema)
    if schema_from is not None and schema is None:
        return library.read_parquet_schema(schema_from)
    raise typer.BadParameter("give one of --schema and --schema-from", param_hint="'--schema'")


def _fact(value: Any) -> str:
    match value:
        case None | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(str, value))
        case {"instant": instant, "action": action}:
            return f"{instant} ({action})"
        case _:
            return str(value)
