"""Options of SQL: statements, limits, Hudi's short words for properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from hudi_core.config.kinds import TableType
from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import integer
from hudi_core.config.table_keys import TableKeys
from hudi_core.model.operation import BULK_INSERT, INSERT, UPSERT, Operation

_INSERTS: Final = (INSERT, BULK_INSERT, UPSERT)
_PREFIXES: Final = ("hoodie.", "fs.")
_OPTION: Final = "option."
"""What Spark puts before options of a table among its properties."""
_OF_READERS: Final = "hoodie.query."
"""What Hudi's sync keeps with an entry of a catalog."""
_WORDS: Final = {
    "primarykey": TableKeys.record_key_fields.key,
    "precombinefield": TableKeys.ordering.key,
    "orderingfields": TableKeys.ordering.key,
    "type": TableKeys.table_type.key,
    "payloadclass": TableKeys.payload_class.key,
    "recordmergemode": TableKeys.merge_mode.key,
    "recordmergestrategyid": TableKeys.merge_strategy.key,
}
_MEMORY: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?([KMGT]i?B|%)", re.IGNORECASE)
_TYPES: Final = {"cow": TableType.COPY_ON_WRITE, "mor": TableType.MERGE_ON_READ}


class OverwriteMode(StrEnum):
    """What ``INSERT OVERWRITE`` replaces."""

    STATIC = "STATIC"
    DYNAMIC = "DYNAMIC"


def _insert_operation(text: str) -> Operation:
    for one in _INSERTS:
        if one.option == text.lower():
            return one
    raise ValueError(f"supported are {', '.join(one.option for one in _INSERTS)}")


def _overwrite_mode(text: str) -> OverwriteMode:
    if text.upper() not in tuple(OverwriteMode):
        raise ValueError(f"supported are {', '.join(OverwriteMode)}")
    return OverwriteMode(text.upper())


def _memory(text: str) -> str:
    """Check an amount of memory, as DuckDB writes it."""
    if _MEMORY.fullmatch(text.strip()) is None:
        raise ValueError("it is no amount of memory, such as 500MB, 2GB or 50%")
    return text.strip()


class SqlConfig(Options, group=Group.WRITE):
    """What statements in SQL do."""

    insert_operation: Option[Operation | None] = Option(
        "hoodie.spark.sql.insert.into.operation",
        parse=_insert_operation,
        default_text="upsert with a record key and an ordering field, else insert",
    )
    """What `INSERT INTO` does with its rows, by `hudi.sql` and `hudi.sql_session`: `insert`,
    `bulk_insert` or `upsert`."""
    overwrite_mode: Option[OverwriteMode | None] = Option(
        "hoodie.datasource.overwrite.mode",
        parse=_overwrite_mode,
        default_text="(spark.sql.sources.partitionOverwriteMode)",
    )
    """What `INSERT OVERWRITE` replaces in a table with partitions. STATIC: all rows, or those of
    the partitions that a PARTITION clause names. DYNAMIC: the partitions that the rows belong to,
    as operations that overwrite always do; these refuse STATIC."""


class SqlLimits(Options, group=Group.WRITE):
    """What DuckDB may take for SQL in writes."""

    memory_limit: Option[str] = Option("hudi.sql.memory.limit", default="50%", parse=_memory)
    """Memory that DuckDB takes at most for one write with SQL text (conditions, values, validators,
    transformers): an amount, or a part of the machine's. Nothing is spilled to a disk. On Spark the
    SQL is run by Spark."""
    timeout_s: Option[int] = Option("hudi.sql.timeout", default=600, parse=integer(0))
    """Seconds after which DuckDB gives up on a SQL text, which is run file by file; 0 for no limit.
    It looks at the clock between batches of rows, not within one function of one row."""


def options_of_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The options among the properties of a table in a catalog.

    Hudi's short words, such as ``primaryKey``, are recognised in any case, since data sources get
    names in lower case.
    """
    found: dict[str, str] = {}
    for name, text in properties.items():
        key = _WORDS.get(name.removeprefix(_OPTION).lower(), name.removeprefix(_OPTION))
        if key.startswith(_PREFIXES) and not key.startswith(_OF_READERS):
            is_type = key == TableKeys.table_type.key
            found[key] = _TYPES.get(text.strip().lower(), text) if is_type else text
    return found
