"""``ALTER TABLE``, and names that are brought in line with their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hudi_core.errors import TableServiceError
from hudi_core.statements.partitions import drop_partitions
from hudi_core.statements.running import Statement, Target
from hudi_core.statements.words import Scanner, items_of, properties_of
from hudi_core.storage.location import location_of
from hudi_core.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NATIVE: Final = "native"


def alter(statement: Statement, scanner: Scanner) -> Any:
    """``ALTER TABLE``; ``None`` where its table is none of ours."""
    scanner.take("ALTER")
    if not scanner.take("TABLE"):
        return None
    target = statement.take_target(scanner)
    if target is None:
        return None
    for words, action in _ACTIONS.items():
        if scanner.take(*words.split()):
            return action(statement, target, scanner)
    raise statement.refusal(f"{scanner.rest()!r} is no change of a table that is known here")


def refresh(statement: Statement, scanner: Scanner) -> DataFrame | None:
    """``REFRESH TABLE`` and ``MSCK REPAIR TABLE``.

    A name gets the place and the columns of its table. One whose table is not there yet, as
    ``CREATE TABLE`` with columns in a session of Spark alone leaves it, gets the table too.
    """
    if not scanner.take("MSCK", "REPAIR", "TABLE") and not scanner.take("REFRESH", "TABLE"):
        scanner.take("REFRESH")
    target = statement.take_target(scanner)
    if target is None or target.name is None:
        return None
    for words in ("ADD|DROP|SYNC", "PARTITIONS"):
        scanner.take(words)
    statement.require_end(scanner)
    statement.refresh(target, statement.open(target))
    return statement.nothing()


# --- columns ----------------------------------------------------------------------------------


def _altered(statement: Statement, target: Target, **changes: Any) -> Any:
    """Change the columns of a table, and of its name."""
    table = statement.open(target)
    result = table.alter(options=target.options, **changes)
    statement.refresh(target, table)
    return result


def _add_columns(statement: Statement, target: Target, scanner: Scanner) -> Any:
    text = scanner.group() if scanner.is_symbol("(") else scanner.rest()
    statement.require_end(scanner)
    for item in items_of(text or ""):
        words = [one.upper() for one in item.split()]
        if "FIRST" in words[2:] or "AFTER" in words[2:]:
            raise statement.refusal("FIRST and AFTER cannot be done: columns are added at the end")
    columns = statement.catalog.stated_columns(text or "")
    return _altered(statement, target, add_columns=list(columns))


def _drop_columns(statement: Statement, target: Target, scanner: Scanner) -> Any:
    tolerant = scanner.take("IF", "EXISTS")
    text = scanner.group() if scanner.is_symbol("(") else scanner.rest()
    statement.require_end(scanner)
    names = [_dotted(statement, item) for item in items_of(text or "")]
    if tolerant:
        known = {name.lower() for name in statement.open(target).schema.names}
        names = [name for name in names if "." in name or name.lower() in known]
        if not names:
            return statement.nothing()
    return _altered(statement, target, drop=_spelled(statement, target, names))


def _rename_column(statement: Statement, target: Target, scanner: Scanner) -> Any:
    old = _name(statement, scanner)
    if not scanner.take("TO"):
        raise statement.refusal("RENAME COLUMN needs TO and a name")
    new = _name(statement, scanner)
    statement.require_end(scanner)
    [old] = _spelled(statement, target, [old])
    return _altered(statement, target, rename={old: new})


def _change_column(statement: Statement, target: Target, scanner: Scanner) -> Any:
    name = _name(statement, scanner)
    if scanner.take("COMMENT"):
        # the catalog keeps comments
        return statement.by_spark()
    if not scanner.take("TYPE"):
        # CHANGE COLUMN a b INT, as in Hive
        renamed = _name(statement, scanner)
        if renamed.lower() != name.lower():
            raise statement.refusal(
                "of a column only the type and the comment are changed here; RENAME COLUMN renames"
            )
    kind = scanner.until(lambda one: one.take("COMMENT|FIRST|AFTER"))
    if not scanner.is_at_end:
        raise statement.refusal("with a type nothing else of a column can be changed")
    [spelled] = _spelled(statement, target, [name])
    [field] = statement.catalog.stated_columns(f"c {kind}")
    return _altered(statement, target, promote={spelled: field.type})


def _spelled(statement: Statement, target: Target, names: list[str]) -> list[str]:
    """Columns as the table spells them, nested ones unchanged."""
    known = {name.lower(): name for name in statement.open(target).schema.names}
    return [known.get(name.lower(), name) for name in names]


def _name(statement: Statement, scanner: Scanner) -> str:
    found = scanner.name()
    if found is None:
        raise statement.refusal("it names no column")
    return ".".join(found)


def _dotted(statement: Statement, text: str) -> str:
    scanner = Scanner(text)
    name = _name(statement, scanner)
    statement.require_end(scanner)
    return name


# --- names and properties -----------------------------------------------------------------------


def _rename(statement: Statement, target: Target, scanner: Scanner) -> Any:
    parts = scanner.name()
    statement.require_end(scanner)
    entry = target.entry
    if parts is None or entry is None:
        raise statement.refusal("the table has no name in the catalog")
    if entry.is_managed:
        table = statement.open(target)
        if table.format != _NATIVE:
            raise TableServiceError(
                f"{target.name} cannot be renamed: Spark would move the table's files, and its "
                f"format {table.format} names them by their place",
                f"Make another name: CREATE TABLE ... USING hudi LOCATION '{table.path}'.",
            )
    done = statement.by_spark()
    renamed = statement.find(parts)
    if entry.is_managed and renamed is not None:
        statement.refresh(renamed, statement.open(renamed))
    return done


def _set_properties(statement: Statement, target: Target, scanner: Scanner) -> Any:
    given = properties_of(scanner.group() or "")
    statement.require_end(scanner)
    if given is None:
        raise statement.refusal("its properties are no list of names and values")
    entry = target.entry
    if entry is None:
        raise statement.refusal("the table has no name in the catalog, which keeps properties")
    wanted = replace(entry, properties={**entry.properties, **given})
    statement.open(statement.target(target.path, target.name, wanted))
    return statement.by_spark()


def _unset_properties(statement: Statement, target: Target, _: Scanner) -> Any:
    if target.entry is None:
        raise statement.refusal("the table has no name in the catalog, which keeps properties")
    return statement.by_spark()


def _set_location(statement: Statement, target: Target, scanner: Scanner) -> Any:
    path = scanner.take_string()
    statement.require_end(scanner)
    if path is None or target.entry is None or target.name is None:
        raise statement.refusal("the table has no name in the catalog, or LOCATION no path")
    place = location_of(path)
    table = Table.open(place, target.options)
    done = statement.by_spark()
    moved = replace(target, path=place, entry=replace(target.entry, note=None))
    statement.refresh(moved, table)
    return done


def _drop_partition(statement: Statement, target: Target, scanner: Scanner) -> Any:
    tolerant = scanner.take("IF", "EXISTS")
    following = scanner.peek()
    if following is None or following.word != "PARTITION":
        raise statement.refusal(f"DROP {scanner.rest()} is no change that is known here")
    return drop_partitions(statement, target, scanner, tolerant=tolerant)


def _recover(statement: Statement, target: Target, scanner: Scanner) -> Any:
    statement.require_end(scanner)
    statement.refresh(target, statement.open(target))
    return statement.nothing()


_Change = Callable[[Statement, Target, Scanner], Any]
_ACTIONS: Final[Mapping[str, _Change]] = {
    "ADD COLUMN|COLUMNS": _add_columns,
    "DROP COLUMN|COLUMNS": _drop_columns,
    "RENAME COLUMN": _rename_column,
    "ALTER|CHANGE COLUMN": _change_column,
    "CHANGE": _change_column,
    "RENAME TO": _rename,
    "SET TBLPROPERTIES": _set_properties,
    "UNSET TBLPROPERTIES": _unset_properties,
    "SET LOCATION": _set_location,
    "DROP": _drop_partition,
    "RECOVER PARTITIONS": _recover,
}
