"""Rows of very many columns: work grows with their number, not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.table.name_mapping import MappedField

from hudi_core.config.table import TableConfig
from hudi_core.model.operation import UPSERT
from hudi_core.read.filters import require_columns
from hudi_core.schema.evolution import merged_schema
from hudi_core.schema.table_schema import TableSchema
from hudi_core.write.input_schema import staged_schema
from hudi_core.write.partial_rows import completed
from iceberg_format.schema import _merged

FEW, TIMES = 400, 8
MOST = 2.5
"""Times of the linear growth; the square of it would be eight times."""
CONFIG = TableConfig(name="t", record_key_fields=("c0",))


@pytest.mark.parametrize(
    "step",
    [
        lambda rows, table: staged_schema(rows.schema, table, CONFIG, UPSERT),
        lambda rows, table: merged_schema(table, rows.schema, (), fill_missing=False),
        lambda rows, table: table.cast_batch(rows.to_batches()[0]),
        lambda rows, table: completed(rows, np.arange(1), rows, table),
        lambda rows, table: require_columns(rows.schema.names, table.arrow),
        lambda rows, _: _merged(_mapped(rows), _mapped(rows), False),
    ],
    ids=["plan", "merge", "cast", "complete", "project", "names of Iceberg"],
)
def test_work_grows_with_the_columns(step: Callable[[pa.Table, TableSchema], object]) -> None:
    few, many = (_seconds(step, count) for count in (FEW, FEW * TIMES))
    assert many < MOST * TIMES * few


def _mapped(rows: pa.Table) -> list[MappedField]:
    return [
        MappedField.model_construct(field_id=number, names=[name], fields=[])
        for number, name in enumerate(rows.schema.names)
    ]


def _seconds(step: Callable[[pa.Table, TableSchema], object], columns: int) -> float:
    """The least of three calls: others only add to it."""
    rows = pa.table({f"c{number}": [number] for number in range(columns)})
    table = TableSchema.create(rows.schema)
    found = []
    for _ in range(3):
        began = time.thread_time()
        step(rows, table)
        found.append(time.thread_time() - began)
    return min(found)
