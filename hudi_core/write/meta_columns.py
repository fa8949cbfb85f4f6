"""The five meta columns of rows that a write puts into a file (``hudi-format`` section 4)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.model.files import PartitionPath
from hudi_core.write.context import WriteContext


def with_meta_columns(
    rows: pa.Table,
    keys: pa.ChunkedArray,
    context: WriteContext,
    partition_path: PartitionPath,
    file_name: str,
    task: int,
    first_row: int,
) -> pa.Table:
    """Return new rows with their meta columns in front, in the order of the stored schema.

    Parameters
    ----------
    task
        Number that no other task of the write uses; with the row number it makes the sequence number, which
        is unique within the table.
    first_row
        Row number of the first row within the task.
    """
    count = rows.num_rows
    numbers = pa.array(np.arange(first_row, first_row + count)).cast(pa.string())
    sequence = pc.binary_join_element_wise(f"{context.instant}_{task}_", numbers, "")
    schema = context.schema.with_meta()
    meta = [
        pa.repeat(pa.scalar(str(context.instant)), count),
        sequence,
        keys,
        pa.repeat(pa.scalar(str(partition_path)), count),
        pa.repeat(pa.scalar(file_name), count),
    ]
    data = [rows.column(field.name) for field in context.schema.arrow]
    return pa.table([*meta, *data], schema=schema)
