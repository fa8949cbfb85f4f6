"""Upserts of rows that lack columns: stored values stay.

New rows have nulls.

Source: Hudi's ``PartialUpdateMode.KEEP_VALUES``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_core.base_file.encoded_columns import plain
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.table import TableConfig
from hudi_core.errors import SchemaError
from hudi_core.rows.combine import Positions
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import TableSchema


def require_essential_columns(
    names: Sequence[str], table: TableSchema, config: TableConfig
) -> None:
    """Refuse to leave out columns that every row needs.

    Parameters
    ----------
    names
        The columns of the incoming rows.

    Raises
    ------
    SchemaError
        A column of the partition path, the ordering column, or one without nulls is missing.
    """
    needed = {name.split(".")[0]: "it is part of the partition" for name in config.partition_fields}
    fields = (*config.ordering_fields, *merge_rules(config).order)
    needed |= {name.split(".")[0]: "it orders the versions of a row" for name in fields}
    for field in table.arrow:
        if not field.nullable:
            needed.setdefault(field.name, "it has no nulls, which new rows would need")
    for name, reason in needed.items():
        if name not in names:
            raise SchemaError(
                f"The rows lack the column {name!r}, and {reason}",
                f"Add it; {MergeKeys.partial_update_mode.key}=KEEP_VALUES is for the other "
                "columns.",
                columns=[name],
            )


def require_same_partition(staged: TableSchema, context: WriteContext) -> None:
    """Refuse partial rows that may move to another partition.

    What they lack is in a file of the old partition, and they are written to one of the new.

    Raises
    ------
    SchemaError
        Names the columns, where the rows lack columns.
    """
    missing = [name for name in context.schema.names if name not in staged.names]
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

    Parameters
    ----------
    incoming
        The rows to write: those that update stored rows first, then the new ones.
    met
        Positions of the stored rows that those that update take the place of.
    stored
        The rows of the file.
    """
    missing = [field for field in schema.arrow if field.name not in incoming.column_names]
    new_rows = incoming.num_rows - len(met)
    for field in missing:
        kept = plain(stored.column(field.name).take(pa.array(met)))
        values = [*kept.chunks, pa.nulls(new_rows, field.type)]
        incoming = incoming.append_column(field, pa.chunked_array(values, field.type))
    return incoming
