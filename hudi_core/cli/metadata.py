"""`hudi metadata`: create, delete, check and inspect the metadata table."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.cli.metadata_document import (
    files_document,
    finding_document,
    finding_line,
    locations_document,
    stats_document,
)
from hudi_core.cli.output import Facts, Grid, Part, answer
from hudi_core.errors import TableServiceError
from hudi_core.metadata.partitions.names import ALL_CHECKS, BUILDABLE, Check

if TYPE_CHECKING:
    from hudi_core.meta_client import TableMetaClient
    from hudi_core.metadata.validator import ValidationReport
    from hudi_core.services.metadata import MetadataOperator

metadata_app = typer.Typer(no_args_is_help=True, help="The metadata table: what a table knows.")

PartitionArgument = Annotated[
    str,
    typer.Argument(
        metavar="PARTITION",
        help=f"{', '.join(BUILDABLE)}.",
    ),
]


@dataclass
class _Clock:
    """Seconds since a command began; fixed when its work is done."""

    seconds: float = 0.0

    def __str__(self) -> str:
        return f"(duration={self.seconds:.2f}sec)"


@contextmanager
def _timed() -> Iterator[_Clock]:
    clock, begin = _Clock(), time.monotonic()
    yield clock
    clock.seconds = round(time.monotonic() - begin, 3)


def _operator(path: str, option: list[str] | None) -> MetadataOperator:
    options = parse_options(option)
    table, config = library.open_table(path, options), library.WriteConfig.from_options(options)
    return library.MetadataOperator(table, library.table_lock(table, config), config)


def _client(path: str, option: list[str] | None) -> TableMetaClient:
    return library.open_table(path, parse_options(option)).client


def _where(client: TableMetaClient) -> str:
    return f"{client.base_path}/{library.METADATA_FOLDER}"


@metadata_app.command()
def create(path: PathArgument, option: OptionsOption = None, as_json: JsonOption = False) -> None:
    """Create the metadata table from a listing of the table."""
    operator = _operator(path, option)
    with _timed() as clock:
        partitions = operator.create()
    where = _where(operator.table.client)
    parts = [f"Created Metadata Table in {where} {clock}", f"Partitions: {', '.join(partitions)}"]
    _answer(as_json, where, clock, parts, partitions=list(partitions))


@metadata_app.command()
def delete(
    path: PathArgument,
    *,
    backup: Annotated[
        bool, typer.Option("--backup", help="Keep its files in a folder below .hoodie.")
    ] = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the metadata table; the table's folders are listed from then on."""
    operator = _operator(path, option)
    with _timed() as clock:
        kept = operator.delete(backup=backup)
    client = operator.table.client
    saved = f"{client.base_path}/{kept}" if kept else None
    parts = [f"Deleted Metadata Table in {_where(client)} {clock}"]
    if saved:
        parts.append(f"Its files are in {saved}")
    _answer(as_json, _where(client), clock, parts, backup=saved)


@metadata_app.command()
def init(
    path: PathArgument,
    *,
    readonly: Annotated[
        bool, typer.Option("--readonly", help="Only open it, as a reader does.")
    ] = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the metadata table up to date, with recovery and table services.

    Finishes what dead writers left, compacts and cleans.
    """
    operator = _operator(path, option)
    client = operator.table.client
    with _timed() as clock:
        if readonly:
            library.require_metadata(client)
            partitions = library.MetadataSnapshot.open(client).partitions
        else:
            partitions = operator.bring_to_date()
    done = "Opened" if readonly else "Initialized"
    where = _where(client)
    parts = [f"{done} Metadata Table in {where} {clock}"]
    _answer(as_json, where, clock, parts, partitions=list(partitions), readonly=readonly)


@metadata_app.command()
def stats(path: PathArgument, option: OptionsOption = None, as_json: JsonOption = False) -> None:
    """Show how large the metadata table is."""
    client = _client(path, option)
    with _timed() as clock:
        found = library.metadata_stats(client)
    document = stats_document(found)
    facts = [("Base path", str(client.base_path))]
    facts += [(name, _fact(value)) for name, value in document.items() if name != "partitions"]
    headings = ["partition", "base files", "log files", "base bytes", "log bytes"]
    sizes = document["partitions"].items()
    grid = Grid(headings, [[name, *map(str, size.values())] for name, size in sizes])
    _answer(as_json, _where(client), clock, [Facts(facts), grid], **document)


def _fact(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


@metadata_app.command("list-partitions")
def list_partitions(
    path: PathArgument, option: OptionsOption = None, as_json: JsonOption = False
) -> None:
    """List the partitions of the table.

    From its metadata table if it has one.
    """
    client = _client(path, option)
    with _timed() as clock:
        listing = library.lister_of(client)
        partitions = list(listing.lister.list_partitions())
    source = _source(listing.is_metadata)
    parts: list[Part] = [
        Grid(["partition"], [[one] for one in partitions]),
        f"{len(partitions)} partitions, listed from the {source} {clock}",
    ]
    _answer(as_json, _where(client), clock, parts, source=source, partitions=partitions)


@metadata_app.command("list-files")
def files(
    path: PathArgument,
    *,
    partition: Annotated[str, typer.Option(help="Path of a partition; blank without partitions.")],
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the files of one partition.

    From the metadata table if there is one.
    """
    client = _client(path, option)
    with _timed() as clock:
        found, is_metadata = library.list_files(client, partition)
    source, document = _source(is_metadata), files_document(found)
    parts: list[Part] = [
        Grid(["file", "bytes"], [[one["name"], str(one["size"])] for one in document]),
        f"{len(document)} files, listed from the {source} {clock}",
    ]
    facts = {"source": source, "partition": partition, "files": document}
    _answer(as_json, _where(client), clock, parts, **facts)


def _source(is_metadata: bool) -> str:
    return "metadata table" if is_metadata else "storage"


def _with_checks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one flag for each check."""
    own = inspect.signature(command, eval_str=True)
    flags = [
        inspect.Parameter(
            _flag(one),
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=Annotated[bool, typer.Option(help=one.about)],
        )
        for one in Check
    ]
    path, *others = [one for one in own.parameters.values() if one.name != "flags"]
    vars(command)["__signature__"] = own.replace(parameters=[path, *flags, *others])
    return command


def _flag(check: Check) -> str:
    return f"validate_{check.option.replace('-', '_')}"


@metadata_app.command("validate")
@_with_checks
def check(
    path: PathArgument,
    *,
    partition: Annotated[
        list[str] | None, typer.Option(help="Compare files of this partition only; repeatable.")
    ] = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
    **flags: bool,
) -> None:
    """Compare the metadata table with the files.

    Without a choice, in all its partitions.

    Exit code 4: they differ.
    """
    client = _client(path, option)
    library.require_metadata(client)
    wanted = (
        None if partition is None else [library.PartitionPath(one.strip("/")) for one in partition]
    )
    with _timed() as clock:
        checks = {one for one in Check if flags[_flag(one)]} or ALL_CHECKS
        report = library.validate(client, checks, wanted)
    _answer(
        as_json,
        _where(client),
        clock,
        _report_parts(report, clock),
        valid=report.is_valid,
        findings=[finding_document(one) for one in report.findings],
        checked=dict(report.checked),
        skipped=dict(report.skipped),
        unreadable=dict(report.unreadable),
    )
    if not report.is_valid:
        raise typer.Exit(ExitCode.VALIDATION_FAILED)


def _report_parts(report: ValidationReport, clock: _Clock) -> Iterator[Part]:
    yield from map(finding_line, report.findings)
    for name, reason in report.skipped.items():
        yield f"{name} was not compared: {reason}"
    for name, reason in report.unreadable.items():
        yield f"{name} could not be compared: {reason}"
    result = "is right" if report.is_valid else f"has {len(report.findings)} differences"
    if report.unreadable:
        result += ", as far as it could be compared"
    names = ", ".join(report.checked)
    yield f"The metadata table {result}; compared: {names or 'nothing'} {clock}"


@metadata_app.command("lookup-record-index")
def lookup(
    path: PathArgument,
    *,
    record_key: Annotated[
        list[str], typer.Option(help="A record key, as _hoodie_record_key spells it; repeatable.")
    ],
    partition: Annotated[
        str | None, typer.Option(help="The only partition of the table to look into.")
    ] = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the file groups of record keys by the record index."""
    client = _client(path, option)
    with _timed() as clock:
        found = library.look_up_keys(client, record_key, partition)
    document = locations_document(client, record_key, found)
    headings = ["record key", "partition", "file group", "instant"]
    rows = [["" if value is None else str(value) for value in one.values()] for one in document]
    parts: list[Part] = [
        Grid(headings, rows),
        f"{len(found)} of {len(record_key)} keys found {clock}",
    ]
    _answer(as_json, _where(client), clock, parts, locations=document)


@metadata_app.command()
def index(
    path: PathArgument,
    partition: PartitionArgument,
    *,
    column: Annotated[
        str | None, typer.Option(help="What a new index of a column, or of a function, is of.")
    ] = None,
    using: Annotated[
        str | None, typer.Option(help="What an expression index keeps: column_stats.")
    ] = None,
    index_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Function of an expression index, and what it takes: expr=date_format and "
            "format=yyyy-MM-dd; repeatable.",
        ),
    ] = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a partition to the metadata table, built from the table's files."""
    operator = _operator(path, option)
    with _timed() as clock:
        done = operator.index(partition, column, using, parse_options(index_option))
    facts = {"partition": partition, "instant": done.requested_time}
    where = _where(operator.table.client)
    _changed(where, f"Indexed {partition}", facts, clock, as_json=as_json)


@metadata_app.command()
def drop(
    path: PathArgument,
    partition: PartitionArgument,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drop a partition of the metadata table."""
    operator = _operator(path, option)
    with _timed() as clock:
        done = operator.drop(partition)
    facts = {"partition": partition, "instant": done.requested_time}
    where = _where(operator.table.client)
    _changed(where, f"Dropped {partition}", facts, clock, as_json=as_json)


@metadata_app.command("set")
def set_folder(
    path: PathArgument,
    *,
    metadata_dir: Annotated[
        str, typer.Option("--metadataDir", help="Where RFC-15 would put the metadata table.")
    ],
) -> None:
    """Refused: the metadata table stays in .hoodie/metadata.

    Every reader looks for it there.
    """
    raise TableServiceError(
        f"The metadata table of {path} cannot be put in {metadata_dir}: readers look for it in "
        f"its {library.METADATA_FOLDER} and nowhere else",
        "Copy the table to a place where it can be written, or read it without a metadata table.",
    )


def _changed(
    where: str, headline: str, facts: Mapping[str, str], clock: _Clock, *, as_json: bool
) -> None:
    line = f"{headline} of {where}; the indexing is {facts['instant']} {clock}"
    _answer(as_json, where, clock, [line], **facts)


def _answer(as_json: bool, where: str, clock: _Clock, parts: Iterable[Part], **facts: Any) -> None:
    document = {"metadata_table": where, **facts, "duration_s": clock.seconds}
    answer(as_json, document, parts)
