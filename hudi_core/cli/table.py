"""`hudi table`: create, show, and read tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from datetime import time as time_of_day
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from hudi_core.cli import library
from hudi_core.cli.document import document_of
from hudi_core.cli.output import Facts, Grid, Part
from hudi_core.cli.service import (
    SHOWN,
    Call,
    installed_format,
    more_than,
    names,
    option,
    parse_names,
    service,
)
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

    from hudi_core.model.files import FileSlice
    from hudi_core.read.filters import Condition
    from hudi_core.table import Table


# --- the conditions of ``--where``: ``column operator literal``, joined by AND --------------------
# A small grammar of its own; nothing is evaluated, and no text becomes part of a query.
#
#     where     = condition { AND condition }
#     condition = column ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) literal
#               | column [ NOT ] IN "(" literal { "," literal } ")"
#               | column IS [ NOT ] NULL
#     column    = name | '"' name '"'
#     literal   = number | "'" text "'" | TRUE | FALSE
#
# Key words in any case; a quote within quotes is written twice.


_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<word>[^\W\d][\w.]*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_OPERATORS: Final = {sign: sign for sign in ("=", "==", "!=", "<", "<=", ">", ">=")} | {"<>": "!="}
_BOOLEANS: Final = {"true": True, "false": False}
_KEY_WORDS: Final = frozenset({"and", "in", "is", "not", "null", *_BOOLEANS})


def parse_where(text: str | None) -> list[Condition] | None:
    """Return the conditions of ``--where``; ``None`` without any."""
    return None if text is None else _Parser(text).conditions()


class _Parser:
    """Reads one condition from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._kind, self._token = "", ""
        self._next()

    def conditions(self) -> list[Condition]:
        found = [self._condition()]
        while self._takes("and"):
            found.append(self._condition())
        if self._kind:
            raise self._wrong("AND")
        return found

    def _condition(self) -> Condition:
        name = self._column()
        if self._takes("is"):
            negated = self._takes("not")
            self._require("null")
            return name, "is not null" if negated else "is null", None
        negated = self._takes("not")
        if negated or self._is("in"):
            self._require("in")
            return name, "not in" if negated else "in", self._literals()
        operator = _OPERATORS.get(self._token) if self._kind == "sign" else None
        if operator is None:
            raise self._wrong("an operator")
        self._next()
        return name, operator, self._literal()

    def _column(self) -> str:
        if self._kind == "quoted":
            name = self._token[1:-1].replace('""', '"')
        elif self._kind == "word" and self._token.lower() not in _KEY_WORDS:
            name = self._token
        else:
            raise self._wrong("a column")
        self._next()
        return name

    def _literals(self) -> list[object]:
        self._require("(")
        found = [self._literal()]
        while self._takes(","):
            found.append(self._literal())
        self._require(")")
        return found

    def _literal(self) -> object:
        token = self._token
        value: object = None
        match self._kind:
            case "text":
                value = token[1:-1].replace("''", "'")
            case "number":
                value = float(token) if re.search("[.eE]", token) else int(token)
            case "word":
                value = _BOOLEANS.get(token.lower())
        if value is None:
            raise self._wrong("a number, a 'text', true or false")
        self._next()
        return value

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is not None:
            self._kind = match.lastgroup or ""
            self._token = match[self._kind]
            self._at = match.end()
        elif self._text[self._at :].strip():
            self._kind, self._token = "unknown", self._text[self._at :].split()[0]
        else:
            self._kind, self._token = "", ""

    def _is(self, word: str) -> bool:
        return self._kind in ("word", "sign") and self._token.lower() == word

    def _takes(self, word: str) -> bool:
        found = self._is(word)
        if found:
            self._next()
        return found

    def _require(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(word.upper())

    def _wrong(self, wanted: str) -> typer.BadParameter:
        here = f"at {self._token}" if self._kind else "at its end"
        return typer.BadParameter(
            f"{self._text!r} lacks {wanted} {here}; conditions are written "
            "\"city = 'Rome' AND fare > 3\"",
            param_hint="'--where'",
        )


# --- commands -------------------------------------------------------------------------------------


_FIELD_ID: Final = b"PARQUET:field_id"
table_app = typer.Typer(
    no_args_is_help=True, help="Create, show, read, convert, upgrade, repair, drop tables."
)


# --- tables ---------------------------------------------------------------------------------------


def _facts(table: Table, call: Call) -> Mapping[str, Any]:
    """Settings and sizes of a table.

    Sizes and counts are those of what a snapshot query reads now; the files of older versions are
    not in them.
    """
    timeline, slices = table.timeline, table.file_slices()
    writes = timeline.completed_writes()
    logs = [log for one in slices for log in one.log_files]
    listed = table.config.table_type is library.TableType.MERGE_ON_READ
    return {
        "mode": table.config.merge_on_read_mode if listed else None,
        "ordering_field": ",".join(table.config.ordering_fields) or None,
        "writes": len(writes),
        "pending": sum(not instant.is_completed for instant in timeline.instants),
        "latest_write": writes[-1] if writes else None,
        "partitions": len({one.partition_path for one in slices}),
        "file_groups": len(slices),
        "bytes": sum(one.total_size for one in slices),
        "log_files": len(logs),
        "log_bytes": sum(log.status.size for log in logs),
        "logs_since": min((log.name.instant for log in logs), default=None),
        "slices": list(_slices(table, slices, call)) if listed else [],
        "columns": [_column(field) for field in table.schema],
    }


def _slices(table: Table, slices: Sequence[FileSlice], call: Call) -> Iterator[Mapping[str, Any]]:
    """What slices are made of, and their pending compactions."""
    client = library.open_table(table.path, call.options).client
    compactions = library.groups_under_compaction(client, table.timeline)
    for one in slices:
        base = one.base_file
        yield {
            "partition": one.partition_path,
            "file_group": one.file_id,
            "base_instant": one.base_instant,
            "base_bytes": None if base is None else base.size,
            "log_files": len(one.log_files),
            "log_bytes": one.total_size - (0 if base is None else base.size),
            "compaction": compactions.get(one.group),
        }


def _column(field: pa.Field) -> Mapping[str, Any]:
    field_id = (field.metadata or {}).get(_FIELD_ID)
    return {
        "id": int(field_id) if field_id is not None else None,
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
    }


def _create(call: Call) -> Table:
    schema, schema_from = call.given.pop("schema"), call.given.pop("schema_from")
    columns = _columns(schema, schema_from)
    return library.Table.create(call.path, columns, options=call.options, **call.given)


def _columns(schema: Path | None, schema_from: Path | None) -> pa.Schema:
    if schema is not None and schema_from is None:
        return library.read_avro_schema(schema)
    if schema_from is not None and schema is None:
        return library.read_parquet_schema(schema_from)
    raise typer.BadParameter("give one of --schema and --schema-from", param_hint="'--schema'")


@service(
    option("--name", "Name of the table; by default the last part of the path."),
    names("--record-key", "Columns of the record key, with commas."),
    names("--partition-by", "Partition columns, with commas."),
    option(
        "--ordering-field", "Of two rows with one key the greater value wins.", metavar="COLUMN"
    ),
    option("--format", "Table format; see `hudi formats`.", callback=installed_format),
    option("--type", "COPY_ON_WRITE or MERGE_ON_READ.", name="table_type", metavar="TYPE"),
    option("--schema", "The columns, as an Avro record schema.", Path | None, metavar="FILE.json"),
    option("--schema-from", "Take the columns of this file.", Path | None, metavar="FILE.parquet"),
    does=_create,
    facts=_facts,
    examples="hudi table create new --schema-from rows.parquet --record-key id --partition-by city",
)
def create(table: Table, _: Call) -> Iterator[Part]:
    """Create an empty table."""
    made = f"{len(table.schema)} columns, format {table.format}"
    yield f"Created {table.config.name} at {table.path}: {made}."


@service(
    does=lambda call: call.table,
    facts=_facts,
    examples="hudi table show trips\nhudi table show s3://lake/trips --json",
)
def show(table: Table, call: Call) -> Iterator[Part]:
    """Show what a table is: settings, columns, size, latest write.

    Of a table of the type MERGE_ON_READ also the log files that no compaction has merged yet, their
    bytes and the oldest write that they are of, and its latest file slices, each with the bytes of
    its base file and its logs, and the pending compaction that merges them.
    """
    facts = document_of(table, call.fact)
    columns = [[_fact(value) for value in one.values()] for one in facts.pop("columns")]
    slices = [[_fact(value) for value in one.values()] for one in facts.pop("slices")]
    yield Facts([(name.replace("_", " "), _fact(value)) for name, value in facts.items()])
    yield Grid(["id", "column", "type", "nullable"], columns)
    if slices:
        yield Grid(_OF_SLICES, slices[:SHOWN], "latest file slices")
        yield from more_than(slices)


_OF_SLICES: Final = (
    *("partition", "file group", "base instant", "base bytes"),
    *("logs", "log bytes", "compaction"),
)


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


# --- rows -----------------------------------------------------------------------------------------

_WHERE: Final = option(
    "--where",
    "Rows to take, such as \"city = 'Rome' AND fare > 3\"; also IN and IS NULL.",
    metavar="CONDITIONS",
)


def _head(call: Call) -> Sequence[Mapping[str, Any]]:
    conditions = parse_where(call.given["where"])
    shown = parse_names(call.given["columns"]) or call.table.schema.names
    call.given["columns"] = shown
    found = call.table.head(call.given["rows"], shown, conditions).to_pylist()
    return [{name: json_value(value) for name, value in row.items()} for row in found]


@service(
    option("--rows", "Rows to show at most.", int, 10, short="-n", min=1, metavar="N"),
    option("--columns", "Columns to show, with commas; else the table's own.", metavar="COLUMNS"),
    _WHERE,
    does=_head,
    keys="path=@path columns=@columns rows=",
    examples="hudi table head trips -n 5 --columns id,fare",
)
def head(found: Sequence[Mapping[str, Any]], call: Call) -> Iterator[Part]:
    """Show some rows, in no particular order."""
    shown = call.given["columns"]
    yield Grid(shown, [[_cell(row[name]) for name in shown] for row in found])


def _count(call: Call) -> int:
    conditions = parse_where(call.given["where"])
    return call.table.count(conditions)


@service(
    _WHERE,
    does=_count,
    keys="path=@path where=@where rows=",
    examples="hudi table count trips --where \"city = 'Rome' AND fare > 10\"",
)
def count(rows: int, _: Call) -> Iterator[Part]:
    """Count the rows; without conditions no data file is read."""
    yield f"{rows:,}"


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
    if isinstance(value, date | time_of_day):
        return value.isoformat()
    is_json = value is None or isinstance(value, bool | int | str)
    is_number = isinstance(value, float) and math.isfinite(value)
    return value if is_json or is_number else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


for one in (
    adopt,
    convert,
    upgrade,
    rewrite_keys,
    validate,
    repair,
    head,
    count,
    drop,
    create,
    show,
):
    table_app.command()(one)
