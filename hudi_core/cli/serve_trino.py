"""`hudi serve-trino`: tables for Trino's Thrift connector."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import OptionsOption, parse_options
from hudi_core.cli.terminal import write_line


def serve_trino(
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="SCHEMA.NAME=PATH",
            help="A table by its path; may be repeated. Those of a metastore need none.",
        ),
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for a free one.", min=0, max=65535)] = 9090,
    option: OptionsOption = None,
) -> None:
    """Answer Trino's Thrift connector until stopped.

    For tables that are given, and for those of the metastore of -o hive.metastore.uri. The protocol
    has neither encryption nor authentication: who reaches the port reads the tables.
    """
    options = parse_options(option)
    library.require_library("thrift", "trino", ("--port", str(port)), "serving Trino needs thrift")
    tables = dict(map(_named, table or ()))
    if not tables and "hive.metastore.uri" not in options:
        raise typer.BadParameter(
            "no table is given, and no metastore (-o hive.metastore.uri)", param_hint="'--table'"
        )
    service = library.TrinoService(library.Connector(options), tables)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with library.ThriftServer(service, host, port).running() as (at_host, at_port):
        write_line(f"Trino finds the tables at {at_host}:{at_port}.")
        stopped.wait()


def _named(text: str) -> tuple[library.TableName, str]:
    name, equals, path = text.partition("=")
    schema, dot, table = name.partition(".")
    if not (equals and dot and schema and table and path):
        raise typer.BadParameter("a table is written SCHEMA.NAME=PATH", param_hint="'--table'")
    return library.TableName(schema, table), path
