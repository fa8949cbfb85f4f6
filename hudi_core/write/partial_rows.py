"""Upserts of rows that lack columns: stored values stay.

New rows have nulls.

Source: Hudi's ``PartialUpdateMode.KEEP_VALUES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from hudi_core.base_file.encoded_columns import plain
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.table import TableConfig
from hudi_core.errors import RecordKeyError, SchemaError
from hudi_core.model.operation import Operation
from hudi_core.rows.combine import Positions
from hudi_core.rows.context import WriteContext
from hudi_core.rows.filling import with_stored
from hudi_core.rows.gathering import take_values
from hudi_core.schema.absence import Absence, absent_values
from hudi_core.schema.table_schema import IS_DELETED, TableSchema


def require_essential_columns(
    names: Sequence[str], table: TableSchema, config: TableConfig
) -> None:
    """Refuse to leave out columns that every row needs.

    Essential are the columns of the partition path, the ordering column and those without nulls.
    """
    for name, reason in _essential(table, config).items():
        if name not in names:
            raise SchemaError(
                f"The rows lack the column {name!r}, and {reason}",
                f"Add it; {MergeKeys.partial_update_mode.key}=KEEP_VALUES is for the other "
                "columns.",
                columns=[name],
            )


def _essential(table: TableSchema, config: TableConfig) -> dict[str, str]:
    """Columns that every row needs, and why."""
    needed = {name.split(".")[0]: "it is part of the partition" for name in config.partition_fields}
    fields = (*config.ordering_fields, *merge_rules(config).order)
    needed |= {name.split(".")[0]: "it orders the versions of a row" for name in fields}
    for field in table.arrow:
        if not field.nullable:
            needed.setdefault(field.name, "it has no nulls, which new rows would need")
    return needed


@dataclass(frozen=True, slots=True)
class AbsentValues:
    """What a write makes of columns that some of its rows lack.

    ``table`` has the columns before the write. ``keeps_stored``: stored values stay where rows have
    none; ``fills``: null is written there. ``is_new``: the table was made for these rows.
    """

    table: TableSchema
    config: TableConfig
    operation: Operation
    keeps_stored: bool
    fills: bool
    is_new: bool

    def kept(self, absent: Sequence[Absence], staged: Sequence[str]) -> tuple[str, ...]:
        """The columns whose absent values give way to others.

        To those of other rows with the same key, and to stored ones. Of a column that is new no
        other row can have one stored, so that it is null there.
        """
        found = [one for one in absent if one.path != IS_DELETED and _top(one.path) in staged]
        keys = {_top(name) for name in self.config.record_key_fields}
        needed = {} if self.operation.deletes else _essential(self.table, self.config)
        refused: list[tuple[Absence, str]] = []
        optional = True
        kept = []
        for one in found:
            top, field = _top(one.path), self.table.field(one.path)
            is_top = one.path == top
            keeps = self.keeps_stored and self.operation.updates and is_top
            if top in keys:
                raise RecordKeyError(
                    f"{one.row} lacks the record key column {one.path!r}",
                    "Give it to every row.",
                    columns=[one.path],
                )
            if self.operation.deletes:
                refused.append((one, "a delete needs the columns of key and partition"))
            elif self.fills and not keeps:
                if field is not None and not field.nullable:
                    refused.append((one, needed.get(top, "it has no nulls")))
            elif top in needed and is_top:
                refused, optional = [(one, needed[top])], False
                break
            elif keeps or self.is_new or field is None:
                kept += [top] if is_top else []
            else:
                refused.append((one, "other rows have it, and the table too"))
        if refused:
            first, reason = refused[0]
            paths = [one.path for one, _ in refused if one.row == first.row]
            self._refuse(first.row, paths, reason, optional and not self.operation.deletes)
        return tuple(kept)

    def _refuse(self, row: str, paths: Sequence[str], reason: str, optional: bool) -> NoReturn:
        hint = "Give it to every row, with None where there is no value"
        if optional and not self.fills:
            if not self.keeps_stored:
                hint += f"; or set {MergeKeys.partial_update_mode.key}=KEEP_VALUES, by which an "
                hint += "upsert keeps what is stored"
            hint += f"; or set {SchemaConfig.fill_missing.key}=true, by which it becomes null"
        raise SchemaError(
            f"{row} lacks the column {', '.join(map(repr, paths))}: {reason}",
            f"{hint}.",
            columns=[*paths],
        )


def _top(path: str) -> str:
    return path.partition(".")[0]


def require_same_partition(
    staged: TableSchema, context: WriteContext, kept: Sequence[str] = ()
) -> None:
    """Refuse partial rows that may move to another partition.

    What they lack is in a file of the old partition, and they are written to one of the new.

    ``kept`` are columns that only some of the rows lack.
    """
    held = set(staged.names).difference(kept)
    missing = [name for name in context.schema.names if name not in held]
    fills = context.rules.fill is not None and context.table.is_partitioned
    if context.moves and (missing or fills):
        lack = f"The rows lack the column {', '.join(map(repr, missing))}"
        raise SchemaError(
            f"{lack if missing else 'The table fills rows from the stored ones'}, and a row that "
            f"moves to another partition cannot keep stored values",
            f"{'Add the columns, let' if missing else 'Let'} rows stay where they are "
            "(hoodie.simple.index.update.partition.path=false, or that of the bloom or the record "
            "index), or use an index that is not global.",
            columns=missing,
        )


def completed(
    incoming: pa.Table, met: Positions, stored: pa.Table, schema: TableSchema
) -> pa.Table:
    """Return incoming rows with every column of the table.

    ``incoming`` has the rows that update first, then the new ones; ``met`` has the positions of the
    stored rows for the former.
    """
    had = set(incoming.column_names)
    missing = [field for field in schema.arrow if field.name not in had]
    new_rows = incoming.num_rows - len(met)
    for field in missing:
        kept = plain(take_values(stored.column(field.name), met))
        values = [*kept.chunks, pa.nulls(new_rows, field.type)]
        incoming = incoming.append_column(field, pa.chunked_array(values, field.type))
    for name, absent in absent_values(incoming).items():
        takes = absent[: len(met)]
        if takes.any():
            kept = plain(take_values(stored.column(name), met))
            position = incoming.schema.get_field_index(name)
            incoming = with_stored(incoming, position, takes, kept)
    return incoming
