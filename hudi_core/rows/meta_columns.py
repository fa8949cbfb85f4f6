"""The five meta columns of new rows (``hudi-format`` section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import constant, encoded_schema
from hudi_core.model.files import PartitionPath
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import COMMIT_TIME, FILE_NAME, PARTITION_PATH

_CONSTANT: Final = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where new rows come from and go to.

    ``task`` is used by no other task of the write; with the row number, which begins at
    ``first_row`` within the task, it makes the sequence number, unique within the table.
    """

    partition_path: PartitionPath
    file_name: str
    task: int
    first_row: int = 0


def with_meta_columns(
    rows: pa.Table, keys: pa.ChunkedArray, context: WriteContext, origin: RowOrigin
) -> pa.Table:
    """Return new rows with their meta columns in front.

    Columns are in the order of the stored schema; those of one value are encoded.

    In a table without a record key the sequence number is the key of a row that brings none, as
    with Hudi: it follows from instant, task and row, so that a task that runs again gives the same
    keys.
    """
    count = rows.num_rows
    numbers = pa.array(np.arange(origin.first_row, origin.first_row + count)).cast(pa.string())
    sequence = pc.binary_join_element_wise(f"{context.instant}_{origin.task}_", numbers, "")
    schema = encoded_schema(context.schema.with_meta(), _CONSTANT)
    meta = [
        constant(str(context.instant), count),
        sequence,
        pc.coalesce(keys, sequence) if keys.null_count else keys,
        constant(str(origin.partition_path), count),
        constant(origin.file_name, count),
    ]
    data = [rows.column(field.name) for field in context.schema.arrow]
    return pa.table([*meta, *data], schema=schema)
