"""Partition columns and values of a table in Delta.

Delta's readers take the value of a partition column from the log, not from the file. So a column is
one only where its value is exact in the log; a table with partitions of another kind, such as those
that a key generator makes of timestamps, is not partitioned in Delta, where statistics leave out
files instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from delta_format.values import partition_text
from hudi_core.spi import CommitError, FileStats, MetaClientView, PartitionTransform


def is_partition_type(kind: pa.DataType) -> bool:
    """Whether Delta keeps partition values of a type exactly.

    And in one way.
    """
    return bool(
        pt.is_string(kind)
        or pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_date(kind)
        or pt.is_decimal(kind)
    )


def partition_columns(meta_client: MetaClientView, schema: pa.Schema) -> list[str]:
    """Return the table's partition columns in Delta; empty for none."""
    config = meta_client.config
    names = list(config.partition_fields)
    if any(one is not PartitionTransform.IDENTITY for one in config.partition_transforms):
        return []
    known = all(
        name in schema.names and is_partition_type(schema.field(name).type) for name in names
    )
    # Delta does not have tables without columns that are none of the partitions
    return names if known and len(names) < len(schema.names) else []


def partition_values(
    path: str, columns: FileStats, schema: pa.Schema, partition_by: Sequence[str]
) -> dict[str, str | None]:
    """Return the partition values of one file: those that its rows have.

    The statistics in ``columns`` must show one value for all rows; otherwise it is a
    :class:`CommitError`.
    """
    values: dict[str, str | None] = {}
    for name in partition_by:
        known = columns.get(name)
        if known is not None and known.null_count == known.value_count:
            values[name] = None
            continue
        if known is None or known.min_value is None or known.min_value != known.max_value:
            raise CommitError(
                f"The file {path} does not have one value of the partition column {name}, which "
                "the Delta log needs",
                f"Set {name} in all rows of a partition to one value, or take another partition "
                "column.",
                path=path,
                column=name,
            )
        text = partition_text(known.min_value, schema.field(name).type)
        if not text:
            raise CommitError(
                f"The rows of the file {path} have the empty string in the partition column "
                f"{name}, which the Delta log keeps for null",
                f"Give them nulls or another string, or take another partition column than {name}.",
                path=path,
                column=name,
            )
        values[name] = text
    return values
