"""Indexes, procedures, and what is shown of a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from hudi_core.doors.sql_procedures import Procedures
from hudi_core.errors import TableServiceError
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.maintenance.indexing import was_dropped
from hudi_core.metadata.partitions.names import full_name
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.services.opening import open_table
from hudi_core.statements.creating import PURGED
from hudi_core.statements.partitions import show_partitions
from hudi_core.statements.running import Statement, Target
from hudi_core.statements.words import Scanner, items_of, properties_of, spelled
from hudi_core.write.conditional.sql_text import quoted_string

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INDEXES: Final = "index_name string, col_name string, index_type string"
_OF_SPARK: Final = ("provider", "owner", "location", "external", "path", PURGED)
"""Properties that Spark keeps for itself, and ours."""


def create_index(statement: Statement, scanner: Scanner) -> DataFrame | None:
    """``CREATE INDEX``; ``None`` where its table is none of ours."""
    scanner.take("CREATE")
    if not scanner.take("INDEX"):
        return None
    tolerant = scanner.take("IF", "NOT", "EXISTS")
    name = scanner.name()
    if name is None or not scanner.take("ON"):
        return None
    scanner.take("TABLE")
    target = statement.take_target(scanner)
    if target is None:
        return None
    using = scanner.name() if scanner.take("USING") else None
    columns = []
    for item in items_of(scanner.group() or ""):
        one = Scanner(item)
        columns.append(".".join(one.name() or ()))
        statement.require_end(one)
    options = properties_of(scanner.group() or "") if scanner.take("OPTIONS") else {}
    statement.require_end(scanner)
    if options is None or not all(columns) or not columns:
        raise statement.refusal("its columns, or its options, are not understood")
    table = statement.open(target)
    kind = None if using is None else ".".join(using).lower()
    try:
        table.create_index(name[-1], columns, using=kind, options=options)
    except TableServiceError:
        if not (tolerant and _has_index(statement, target, name[-1])):
            raise
    return statement.nothing()


def drop_index(statement: Statement, scanner: Scanner) -> DataFrame | None:
    """``DROP INDEX``; ``None`` where its table is none of ours."""
    scanner.take("DROP")
    if not scanner.take("INDEX"):
        return None
    tolerant = scanner.take("IF", "EXISTS")
    name = scanner.name()
    if name is None or not scanner.take("ON"):
        return None
    scanner.take("TABLE")
    target = statement.take_target(scanner)
    if target is None:
        return None
    statement.require_end(scanner)
    table = statement.open(target)
    client = open_table(table.path, dict(target.options)).client
    is_gone = not _has_index(statement, target, name[-1])
    # as a secondary index goes with the record index
    went = is_gone and any(was_dropped(client, one) for one in _full_names(name[-1]))
    if not (is_gone and (tolerant or went)):
        table.drop_index(name[-1], cascades=True)
    return statement.nothing()


def _has_index(statement: Statement, target: Target, name: str) -> bool:
    known = {index for index, _, _ in _index_rows(statement, target)}
    return not known.isdisjoint(_full_names(name))


def _full_names(name: str) -> tuple[str, ...]:
    """Names of the partition that an index may be."""
    return (
        name,
        full_name(name, is_of_function=True),
        full_name(name, is_of_function=False),
    )


def _index_rows(statement: Statement, target: Target) -> list[tuple[str, str, str]]:
    """Every index as Hudi shows it."""
    client = open_table(statement.open(target).path, dict(target.options)).client.as_stored()
    definitions = read_definitions(client.storage, client.config)
    return [
        (
            name,
            ",".join(definitions.columns(name)),
            str(definitions.raw.get(name, {}).get("indexType") or name).lower(),
        )
        for name in sorted(client.config.metadata_partitions)
        if (partition := partition_of(name)) is None or not partition.is_required
    ]


def show(statement: Statement, scanner: Scanner) -> DataFrame | None:
    """``SHOW`` of a table; ``None`` for what is Spark's."""
    scanner.take("SHOW")
    for words, action in _SHOWN.items():
        if scanner.take(*words.split()):
            target = statement.take_target(scanner)
            return None if target is None else action(statement, target, scanner)
    return None


def _show_indexes(statement: Statement, target: Target, scanner: Scanner) -> DataFrame:
    statement.require_end(scanner)
    return statement.spark.createDataFrame(_index_rows(statement, target), _INDEXES)


def _show_definition(statement: Statement, target: Target, scanner: Scanner) -> DataFrame | None:
    scanner.take("AS", "SERDE")
    statement.require_end(scanner)
    if target.name is None:
        raise statement.refusal("the table has no name in the catalog")
    text = _definition(statement, target)
    return statement.spark.createDataFrame([(text,)], "createtab_stmt string")


def _show_properties(statement: Statement, target: Target, scanner: Scanner) -> DataFrame | None:
    wanted = properties_of(scanner.group() or "")
    statement.require_end(scanner)
    rows = [one for one in _properties(target).items() if not wanted or one[0] in wanted]
    return statement.spark.createDataFrame(rows, "key string, value string")


_SHOWN: Final[Mapping[str, Callable[[Statement, Target, Scanner], DataFrame | None]]] = {
    "PARTITIONS": show_partitions,
    "INDEXES|INDEX FROM|IN": _show_indexes,
    "CREATE TABLE": _show_definition,
    "TBLPROPERTIES": _show_properties,
}


def _properties(target: Target) -> dict[str, str]:
    properties = {} if target.entry is None else target.entry.properties
    return {
        name: properties[name]
        for name in sorted(properties)
        if name not in _OF_SPARK and not name.startswith("option.")
    }


def _definition(statement: Statement, target: Target) -> str:
    """The statement that makes a name."""
    table = statement.open(target)
    kinds = [statement.catalog.sql_type(field.type).upper() for field in table.schema]
    columns = [
        f"  {spelled([field.name])} {kind}" + ("" if field.nullable else " NOT NULL")
        for field, kind in zip(table.schema, kinds, strict=True)
    ]
    fields = ", ".join(spelled([name]) for name in table.config.partition_fields)
    properties = ",\n".join(
        f"  {quoted_string(name)} = {quoted_string(text)}"
        for name, text in _properties(target).items()
    )
    lines = [f"CREATE TABLE {target.name} (", ",\n".join(columns) + ")", "USING hudi"]
    lines += [f"PARTITIONED BY ({fields})"] if fields else []
    lines += [f"LOCATION {quoted_string(table.path)}"]
    lines += [f"TBLPROPERTIES (\n{properties})"] if properties else []
    return "\n".join(lines)


def call(statement: Statement, scanner: Scanner) -> Any:
    """``CALL``; ``None`` for a procedure that is none of Hudi's here."""
    scanner.take("CALL")
    name = scanner.name()
    known = {
        one: function
        for one, function in inspect.getmembers(Procedures, inspect.isfunction)
        if not one.startswith("_")
    }
    function = None if name is None or len(name) > 1 else known.get(name[0].lower())
    if function is None:
        return _of_others(statement, sorted(known))
    given = _arguments(statement, scanner.group() or "", inspect.signature(function))
    statement.require_end(scanner)
    options = {**statement.session_options(), **statement.options}
    return function(Procedures(statement.spark, options), **given)


def _of_others(statement: Statement, known: list[str]) -> DataFrame:
    try:
        return statement.by_spark()
    except Exception as error:
        if "UNRESOLVED_ROUTINE" in str(error):
            error.add_note(f"Procedures of Hudi's that are known here: {', '.join(known)}.")
        raise


def _arguments(statement: Statement, text: str, signature: inspect.Signature) -> dict[str, Any]:
    """The arguments of a call, named or by their position."""
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    names = {one.name.lower(): one.name for one in parameters}
    by_place = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    texts: dict[str, str] = {}
    for place, item in enumerate(items_of(text)):
        scanner = Scanner(item)
        name = scanner.name()
        if name is not None and scanner.take_symbol("=>"):
            key = "table" if name[0].lower() == "path" else name[0].lower()
            if key not in names:
                shown = ", ".join(names.values())
                raise statement.refusal(f"there is no argument {name[0]}: it takes {shown}")
            texts[names[key]] = scanner.rest()
        elif place < len(by_place):
            texts[by_place[place]] = item
        else:
            raise statement.refusal(f"the argument {item!r} needs its name, as in table => 't'")
    values = statement.constants(list(texts.values()))
    return dict(zip(texts, values, strict=True))
