"""Partitions as SQL names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hudi_core.errors import PartitionValueError, SchemaError
from hudi_core.model.files import PartitionPath
from hudi_core.model.result import CommitResult
from hudi_core.schema.table_schema import TableSchema
from hudi_core.statements.running import Statement, Target
from hudi_core.statements.words import Scanner, items_of
from hudi_core.table import Table
from hudi_core.write.replacing import partition_paths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Spec = Mapping[str, str | None]
"""Expressions of a ``PARTITION`` clause by column, ``None`` where it gives no value."""


def taken_partition(statement: Statement, scanner: Scanner) -> dict[str, str | None] | None:
    """Go past a ``PARTITION`` clause; ``None`` without one."""
    if not scanner.take("PARTITION"):
        return None
    found: dict[str, str | None] = {}
    for item in items_of(scanner.group() or ""):
        one = Scanner(item)
        name = one.name()
        if name is None:
            raise statement.refusal(f"{item!r} names no partition column")
        text = one.rest() if one.take_symbol("=") else None
        statement.require_end(one)
        found[".".join(name)] = text
    return found


def partition_values(statement: Statement, table: Table, spec: Spec) -> dict[str, Any]:
    """The values of a clause, in the types of their columns."""
    fields = {name.lower(): name for name in table.config.partition_fields}
    unknown = [name for name in spec if name.lower() not in fields]
    if unknown:
        raise SchemaError(
            f"{statement.given!r} names the partition column {unknown[0]!r}, which the table does "
            "not have",
            f"Its partition columns are: {', '.join(fields.values()) or '(none)'}.",
            column=unknown[0],
        )
    given = {fields[name.lower()]: text for name, text in spec.items() if text is not None}
    kinds = [statement.catalog.sql_type(table.schema.field(name).type) for name in given]
    casts = [f"CAST(({text}) AS {kind})" for text, kind in zip(given.values(), kinds, strict=True)]
    return dict(zip(given, statement.constants(casts), strict=True))


def matching_partitions(table: Table, values: Mapping[str, Any]) -> list[PartitionPath]:
    """The partitions with rows whose columns have some values."""
    paths = sorted({one.partition_path for one in table.file_slices()})
    config, schema = table.config, TableSchema.create(table.schema)
    if not values:
        return paths
    fields = config.partition_fields
    if len(values) == len(fields):
        wanted = set(partition_paths_of([values], config, schema))
        return [path for path in paths if path in wanted]
    segments = {
        fields.index(name): partition_paths_of(
            [{name: value}], replace(config, partition_fields=(name,)), schema
        )[0]
        for name, value in values.items()
    }
    found = []
    for path in paths:
        parts = path.split("/")
        if len(parts) != len(fields):
            raise PartitionValueError(
                f"The columns {', '.join(fields)} cannot be derived from the partition {path!r}",
                "Give values for all of them.",
            )
        if all(parts[place] == segment for place, segment in segments.items()):
            found.append(path)
    return found


def show_partitions(statement: Statement, target: Target, scanner: Scanner) -> DataFrame:
    """``SHOW PARTITIONS``: their paths."""
    spec = taken_partition(statement, scanner)
    statement.require_end(scanner)
    table = statement.open(target)
    if not table.config.partition_fields:
        raise PartitionValueError(f"{table!r} has no partitions", "There is nothing to show.")
    found = matching_partitions(table, partition_values(statement, table, spec or {}))
    return statement.spark.createDataFrame([(path,) for path in found], "partition string")


def drop_partitions(
    statement: Statement, target: Target, scanner: Scanner, *, tolerant: bool
) -> CommitResult | DataFrame:
    """``ALTER TABLE ... DROP PARTITION``."""
    specs = [taken_partition(statement, scanner) or {}]
    while scanner.take_symbol(","):
        specs.append(taken_partition(statement, scanner) or {})
    scanner.take("PURGE")
    statement.require_end(scanner)
    table = statement.open(target)
    paths: set[PartitionPath] = set()
    for spec in specs:
        if None in spec.values() or not spec:
            raise statement.refusal("a partition to drop needs a value for each column it names")
        values = partition_values(statement, table, spec)
        found = matching_partitions(table, values)
        if not found and not tolerant:
            raise PartitionValueError(
                f"The table has no rows in the partition {values!r}",
                "Nothing was deleted. SHOW PARTITIONS lists what there is.",
            )
        paths.update(found)
    if not paths:
        return statement.nothing()
    return table.delete_partitions(sorted(paths), options=target.options)


def truncate(statement: Statement, scanner: Scanner) -> CommitResult | DataFrame | None:
    """``TRUNCATE TABLE``; ``None`` where its table is none of ours."""
    scanner.take("TRUNCATE")
    if not scanner.take("TABLE"):
        return None
    target = statement.take_target(scanner)
    if target is None:
        return None
    at = Scanner(scanner.text, scanner.place)
    if at.take("PARTITION"):
        return drop_partitions(statement, target, scanner, tolerant=False)
    statement.require_end(scanner)
    table = statement.open(target)
    return table.insert_overwrite_table(table.schema.empty_table(), options=target.options)
