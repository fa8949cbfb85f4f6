"""`hudi serve-trino`: tables for Trino's Thrift connector."""

from __future__ import annotations

import ipaddress
import signal
import threading
from typing import Annotated

import typer

from hudi_core.cli import library
from hudi_core.cli.service import OptionsOption, parse_options
from hudi_core.cli.terminal import write_line, write_warning


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

    For tables that are given, and for those of the metastore of -o hive.metastore.uri. All who
    reach the port read these tables, unless -o hudi.trino.tls.client-ca-file names the authorities
    of the clients that are let in. Options hudi.trino.* set limits, and the file of the key that
    several servers share.
    """
    options = parse_options(option)
    library.require_library("thrift", "trino", ("--port", str(port)), "serving Trino needs thrift")
    tables = dict(map(_named, table or ()))
    if not tables and "hive.metastore.uri" not in options:
        raise typer.BadParameter(
            "no table is given, and no metastore (-o hive.metastore.uri)", param_hint="'--table'"
        )
    config = library.TrinoConfig.from_options(options)
    service = library.TrinoService(library.Connector(options), tables, config)
    if config.client_ca_file is None and not _is_loopback(host):
        write_warning(
            f"all who reach {host}:{port} read the tables: "
            f"{library.TrinoConfig.client_ca_file.key} names whose clients are let in"
        )
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


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
