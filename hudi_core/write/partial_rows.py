"""Upserts of rows that lack columns: what is stored stays, and new rows have nulls.

Source: Hudi's ``PartialUpdateMode.KEEP_VALUES``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.config.write_keys import PARTIAL_UPDATE_MODE
from hudi_core.errors import SchemaError
from hudi_core.model.schema import TableSchema
from hudi_core.write.combine import Positions


def check_left_out(names: Sequence[str], table: TableSchema, config: TableConfig) -> None:
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
    if config.ordering_field is not None:
        needed[config.ordering_field] = "it orders the versions of a row"
    for field in table.arrow:
        if not field.nullable:
            needed.setdefault(field.name, "it has no nulls, which new rows would need")
    for name, reason in needed.items():
        if name not in names:
            raise SchemaError(
                f"The rows lack the column {name!r}, and {reason}",
                f"Add it; {PARTIAL_UPDATE_MODE.key}=KEEP_VALUES is for the other columns.",
                columns=[name],
            )


def completed(
    incoming: pa.Table,
    updates: Positions,
    located: tuple[Positions, Positions] | None,
    stored: pa.Table,
    schema: TableSchema,
) -> pa.Table:
    """Return incoming rows with every column of the table.

    Parameters
    ----------
    incoming
        The rows to write: those that update stored rows first, in the order of ``updates``, then
        the new ones.
    updates
        Arrival positions of the rows that update.
    located
        Arrival and stored positions of the pairs that have one key; of several stored rows of one
        key the last one's values are kept.
    stored
        The rows of the file.
    """
    missing = [field for field in schema.arrow if field.name not in incoming.column_names]
    if not missing:
        return incoming
    met = np.empty(0, dtype=np.int64)
    if located is not None and len(updates):
        arrivals, positions = located
        order = np.argsort(arrivals, kind="stable")
        last = np.searchsorted(arrivals[order], updates, side="right") - 1
        met = positions[order[last]]
    new_rows = incoming.num_rows - len(met)
    for field in missing:
        kept = stored.column(field.name).take(pa.array(met))
        values = [*kept.chunks, pa.nulls(new_rows, field.type)]
        incoming = incoming.append_column(field, pa.chunked_array(values, field.type))
    return incoming
