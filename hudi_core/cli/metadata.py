"""`hudi metadata`: create, delete, check and inspect the metadata table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hudi_core.cli import library
from hudi_core.cli.document import document_of, plain
from hudi_core.cli.output import Facts, Grid, Part
from hudi_core.cli.service import (
    Call,
    PathArgument,
    argument,
    option,
    parse_options,
    service,
    shared,
    switch,
)
from hudi_core.errors import TableServiceError
from hudi_core.metadata.partitions.names import ALL_CHECKS, BUILDABLE, Check

if TYPE_CHECKING:
    from hudi_core.meta_client import TableMetaClient
    from hudi_core.metadata.log.records import RecordLocation
    from hudi_core.metadata.maintenance.validator import ValidationReport
    from hudi_core.model.difference import Difference
    from hudi_core.model.files import FileStatus
    from hudi_core.model.instant import Instant
    from hudi_core.services.metadata import MetadataOperator, MetadataStats

metadata_app = typer.Typer(no_args_is_help=True, help="The metadata table: what a table knows.")

_PARTITION: Final = argument("PARTITION", f"{', '.join(BUILDABLE)}.")


def _operator(call: Call) -> MetadataOperator:
    table = library.open_table(call.path, call.options)
    config = library.WriteConfig.from_options(call.options)
    return library.MetadataOperator(table, library.table_lock(table, config), config)


def _client(call: Call) -> TableMetaClient:
    return library.open_table(call.path, call.options).client


def _command(
    *takes: Parameter,
    does: str | Callable[..., Any],
    keys: str,
    by: Callable[[Call], Any],
    **more: Any,
) -> Callable[[Callable[[Any, Call], Iterator[Part]]], Callable[..., None]]:
    """A service of the metadata table.

    ``does``, a function or its name in the library, is called with what ``by`` opens, and with the
    arguments by name. The seconds are those of this call alone.
    """

    def run(call: Call) -> Any:
        opened, begin = by(call), time.monotonic()
        work = getattr(library, does) if isinstance(does, str) else does
        done = work(opened, **call.named)
        client = opened.table.client if by is _operator else opened
        call.given |= {
            "base_path": str(client.base_path),
            "metadata_table": f"{client.base_path}/{library.METADATA_FOLDER}",
            "duration_s": round(time.monotonic() - begin, 3),
        }
        return done

    keys = f"metadata_table=@metadata_table {keys} duration_s=@duration_s"
    return service(*takes, does=run, keys=keys, **more)


def _where(call: Call) -> str:
    return f"{call.given['metadata_table']} {_took(call)}"


def _took(call: Call) -> str:
    return f"(duration={call.given['duration_s']:.2f}sec)"


@metadata_app.command()
@_command(
    does=lambda operator: operator.create(),
    by=_operator,
    keys="partitions=",
    examples="hudi metadata create trips",
)
def create(partitions: Sequence[str], call: Call) -> Iterator[Part]:
    """Create the metadata table from a listing of the table."""
    yield f"Created Metadata Table in {_where(call)}"
    yield f"Partitions: {', '.join(partitions)}"


@metadata_app.command()
@_command(
    switch("--backup", "Keep its files in a folder below .hoodie."),
    does=lambda operator, backup: operator.delete(backup=backup),
    by=_operator,
    keys="backup=@saved",
    facts=lambda kept, call: {"saved": f"{call.given['base_path']}/{kept}" if kept else None},
    examples="hudi metadata delete trips",
)
def delete(_: str | None, call: Call) -> Iterator[Part]:
    """Delete the metadata table; the table's folders are listed from then on."""
    yield f"Deleted Metadata Table in {_where(call)}"
    if call.given["saved"]:
        yield f"Its files are in {call.given['saved']}"


def _init(operator: MetadataOperator, *, readonly: bool) -> Sequence[str]:
    if not readonly:
        return operator.bring_to_date()
    client = operator.table.client
    library.require_metadata(client)
    return library.MetadataSnapshot.open(client).partitions


@metadata_app.command()
@_command(
    switch("--readonly", "Only open it, as a reader does."),
    does=_init,
    by=_operator,
    keys="partitions= readonly=@readonly",
    examples="hudi metadata init trips\nhudi metadata init trips --readonly",
)
def init(_: Sequence[str], call: Call) -> Iterator[Part]:
    """Bring the metadata table up to date, with recovery and table services.

    Finishes what dead writers left, compacts and cleans.
    """
    done = "Opened" if call.given["readonly"] else "Initialized"
    yield f"{done} Metadata Table in {_where(call)}"


@metadata_app.command()
@_command(does="metadata_stats", by=_client, keys="*", examples="hudi metadata stats trips")
def stats(found: MetadataStats, call: Call) -> Iterator[Part]:
    """Show how large the metadata table is."""
    document = plain(found)
    facts = [("Base path", call.given["base_path"])]
    facts += [(name, _fact(value)) for name, value in document.items() if name != "partitions"]
    yield Facts(facts)
    headings = ["partition", "base files", "log files", "base bytes", "log bytes"]
    sizes = document["partitions"].items()
    yield Grid(headings, [[name, *map(str, size.values())] for name, size in sizes])


def _fact(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _partitions(client: TableMetaClient) -> tuple[Sequence[str], bool]:
    listing = library.lister_of(client)
    return list(listing.lister.list_partitions()), listing.is_metadata


@metadata_app.command("list-partitions")
@_command(
    does=_partitions,
    by=_client,
    keys="source=@source partitions=@partitions",
    facts=lambda found, _: {"source": _source(found), "partitions": found[0]},
    examples="hudi metadata list-partitions trips",
)
def list_partitions(found: tuple[Sequence[str], bool], call: Call) -> Iterator[Part]:
    """List the partitions of the table.

    From its metadata table if it has one.
    """
    yield Grid(["partition"], [[one] for one in found[0]])
    yield f"{len(found[0])} partitions, listed from the {_source(found)} {_took(call)}"


@metadata_app.command("list-files")
@_command(
    option("--partition", "Path of a partition; blank without partitions.", str, Parameter.empty),
    does="list_files",
    by=_client,
    keys="source=@source partition=@partition files=@files",
    facts=lambda found, _: {"source": _source(found), "files": _by_name(found[0])},
    examples="hudi metadata list-files trips --partition Rome",
)
def files(found: tuple[Sequence[FileStatus], bool], call: Call) -> Iterator[Part]:
    """List the files of one partition.

    From the metadata table if there is one.
    """
    yield Grid(["file", "bytes"], [[one.name, str(one.size)] for one in _by_name(found[0])])
    yield f"{len(found[0])} files, listed from the {_source(found)} {_took(call)}"


def _by_name(found: Sequence[FileStatus]) -> list[FileStatus]:
    return sorted(found, key=lambda one: one.name)


def _source(found: tuple[object, bool]) -> str:
    return "metadata table" if found[1] else "storage"


# --- checking -------------------------------------------------------------------------------------


def _flag(check: Check) -> str:
    return f"validate_{check.option.replace('-', '_')}"


def _validate(
    client: TableMetaClient, partition: Sequence[str] | None = None, **flags: bool
) -> ValidationReport:
    library.require_metadata(client)
    wanted = [library.PartitionPath(one.strip("/")) for one in partition or ()]
    checks = {one for one in Check if flags[_flag(one)]} or ALL_CHECKS
    return library.validate(client, checks, wanted or None)


@metadata_app.command("validate")
@_command(
    *(shared(_flag(one), Annotated[bool, typer.Option(help=one.about)], False) for one in Check),
    option("--partition", "Compare files of this partition only; repeatable.", list[str] | None),
    does=_validate,
    by=_client,
    keys="valid=is_valid findings=@findings checked skipped unreadable",
    facts=lambda report, _: {"findings": list(map(_finding, report.findings))},
    is_wrong=lambda report: not report.is_valid,
    examples="hudi metadata validate trips",
)
def check(report: ValidationReport, call: Call) -> Iterator[Part]:
    """Compare the metadata table with the files.

    Without a choice, in all its partitions.

    Exit code 4: they differ.
    """
    yield from map(_finding_line, report.findings)
    for name, reason in report.skipped.items():
        yield f"{name} was not compared: {reason}"
    for name, reason in report.unreadable.items():
        yield f"{name} could not be compared: {reason}"
    result = "is right" if report.is_valid else f"has {len(report.findings)} differences"
    if report.unreadable:
        result += ", as far as it could be compared"
    names = ", ".join(report.checked)
    yield f"The metadata table {result}; compared: {names or 'nothing'} {_took(call)}"


def _finding(one: Difference) -> dict[str, Any]:
    """A difference between the metadata table and the files, as JSON."""
    return document_of(one, keys="partition=source subject expected listed=found")


def _finding_line(one: Difference) -> str:
    """The same in words."""
    stated = "does not know it" if one.found is None else f"says {one.found}"
    actual = "there is no such thing" if one.expected is None else f"it is {one.expected}"
    return f"{one.source}: {one.subject}: the metadata table {stated}, {actual}"


def _look_up(
    client: TableMetaClient, record_key: Sequence[str], partition: str | None = None
) -> list[dict[str, Any]]:
    """The locations of keys, in the given order.

    A key that is nowhere has a location without values.
    """
    found = library.look_up_keys(client, record_key, partition)
    return [
        {
            "record_key": key,
            "partition": where.partition_name if where else None,
            "file_group": where.file_id if where else None,
            "instant": _instant(client, where),
        }
        for key in record_key
        for where in found.get(key, [None])
    ]


def _instant(client: TableMetaClient, where: RecordLocation | None) -> str | None:
    if where is None or where.instant_ms is None:
        return None
    return client.config.zone.digits(datetime.fromtimestamp(where.instant_ms / 1000, UTC))


@metadata_app.command("lookup-record-index")
@_command(
    option(
        "--record-key",
        "A record key, as _hoodie_record_key spells it; repeatable.",
        list[str],
        Parameter.empty,
    ),
    option("--partition", "The only partition of the table to look into."),
    does=_look_up,
    by=_client,
    keys="locations=",
    examples="hudi metadata lookup-record-index trips --record-key 1",
)
def lookup(locations: Sequence[Mapping[str, Any]], call: Call) -> Iterator[Part]:
    """Show the file groups of record keys by the record index."""
    headings = ["record key", "partition", "file group", "instant"]
    rows = [["" if value is None else str(value) for value in one.values()] for one in locations]
    yield Grid(headings, rows)
    known = {one["record_key"] for one in locations if one["file_group"] is not None}
    yield f"{len(known)} of {len(call.given['record_key'])} keys found {_took(call)}"


# --- partitions -----------------------------------------------------------------------------------

_INDEXING: Final = "partition=@partition instant=requested_time"


def _index(
    operator: MetadataOperator,
    partition: str,
    column: str | None = None,
    using: str | None = None,
    index_option: Sequence[str] | None = None,
) -> Instant:
    return operator.index(partition, column, using, parse_options(index_option))


@metadata_app.command()
@_command(
    _PARTITION,
    option("--column", "What a new index of a column, or of a function, is of."),
    option("--using", "What an expression index keeps: column_stats."),
    option(
        "--index-option",
        "Function of an expression index, and what it takes: expr=date_format and "
        "format=yyyy-MM-dd; repeatable.",
        list[str] | None,
        metavar="NAME=VALUE",
    ),
    does=_index,
    by=_operator,
    keys=_INDEXING,
    examples="hudi metadata index trips record_index\nhudi metadata index trips bloom_filters",
)
def index(done: Instant, call: Call) -> Iterator[Part]:
    """Add a partition to the metadata table, built from the table's files."""
    return _changed("Indexed", done, call)


@metadata_app.command()
@_command(
    _PARTITION,
    does=lambda operator, partition: operator.drop(partition),
    by=_operator,
    keys=_INDEXING,
    examples="hudi metadata drop trips column_stats",
)
def drop(done: Instant, call: Call) -> Iterator[Part]:
    """Drop a partition of the metadata table."""
    return _changed("Dropped", done, call)


def _changed(did: str, done: Instant, call: Call) -> Iterator[Part]:
    where = f"{call.given['partition']} of {call.given['metadata_table']}"
    yield f"{did} {where}; the indexing is {done.requested_time} {_took(call)}"


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
