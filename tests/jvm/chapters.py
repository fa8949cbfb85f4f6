"""Tables whose metadata two writers make: the same rows, placed in the same file groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa

from tests.jvm.histories import AGE, ENCODED, LIFE, Step
from tests.jvm.records import Records, kept, records_of
from tests.jvm.typed_columns import ALL, full_batches, typed_batches
from tests.jvm.writers import Shape, Writer, insert_all

VERSIONS: Final = ("8", "9")
GLOBAL: Final = {"hoodie.metadata.global.record.level.index.enable": "true"}
BY_PARTITIONS: Final = {"hoodie.metadata.record.level.index.enable": "true"}
HIVE: Final = {"hoodie.datasource.write.hive_style_partitioning": "true"}


@dataclass(frozen=True)
class Chapter:
    """A table to make.

    ``shape``: of version 8; the version is chosen when it is made.
    """

    shape: Shape
    write: Callable[[Writer, Path, Shape], object]

    def make(self, writer: Writer, path: Path, version: str) -> dict[str, Records]:
        """Let a writer make it; return the records of its metadata table by partition."""
        self.write(writer, path, replace(self.shape, version=version))
        return {name: records_of(path, name) for name in kept(path)}


def of_batches(batches: Callable[[], list[pa.Table]]) -> Callable[[Writer, Path, Shape], object]:
    return lambda writer, path, shape: insert_all(writer, path, shape, batches())


def of_steps(*steps: Step) -> Callable[[Writer, Path, Shape], object]:
    def write(writer: Writer, path: Path, shape: Shape) -> None:
        for step in steps:
            step.take(writer, path, shape)

    return write


def changed_columns() -> list[pa.Table]:
    """Rows that bring columns, and wider types of columns."""
    kinds = (pa.int32(), pa.float32(), pa.decimal128(5, 2))
    wider = (pa.int64(), pa.float64(), pa.decimal128(9, 2))

    def numbers(types: tuple[pa.DataType, ...], *values: int) -> dict[str, pa.Array]:
        return {
            "n": pa.array(values, types[0]),
            "f": pa.array([value + 0.5 for value in values], types[1]),
            "d": pa.array([Decimal(f"{value}.25") for value in values], types[2]),
        }

    return [
        pa.table({"id": [1, 2, 3], "city": ["A", "A", "B"], **numbers(kinds, 1, 3, 2)}),
        pa.table({"id": [4, 5], "city": ["A", "C"], **numbers(kinds, 4, 5), "added": [4, 5]}),
        pa.table({"id": [6, 7], "city": ["A", "B"], **numbers(wider, 60000, 7), "added": [6, 7]}),
    ]


_LIFE: Final = Shape("8", partition="city", ordering="ts", options={**ENCODED, **GLOBAL})
CHAPTERS: Final[Mapping[str, Chapter]] = {
    "types, one folder": Chapter(Shape("8", options=ALL), of_batches(full_batches)),
    "types, partitioned": Chapter(
        Shape("8", partition="city", options=ALL), of_batches(full_batches)
    ),
    "nulls, one folder": Chapter(Shape("8", options=ALL), of_batches(typed_batches)),
    "nulls, partitioned": Chapter(
        Shape("8", partition="city", options=ALL), of_batches(typed_batches)
    ),
    "life": Chapter(_LIFE, of_steps(*LIFE, *AGE)),
    "life, index by partitions": Chapter(
        replace(_LIFE, options={**ENCODED, **BY_PARTITIONS}), of_steps(*LIFE, *AGE)
    ),
    "life, two keys, hive": Chapter(
        replace(_LIFE, key="id,day", options={**ENCODED, **GLOBAL, **HIVE}), of_steps(*LIFE, *AGE)
    ),
    "overwritten": Chapter(_LIFE, of_steps(*LIFE[:6])),
    "changed columns, one folder": Chapter(Shape("8"), of_batches(changed_columns)),
    "changed columns, partitioned": Chapter(
        Shape("8", partition="city"), of_batches(changed_columns)
    ),
}
