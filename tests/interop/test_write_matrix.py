"""Every operation with every index, layout and table version, by every engine, on disk and S3.

hudi-rs shares no code with this project. Every row it reads, with the file and the place in the
file, must be the one a model foretells that this test keeps itself; so must the counts.

The complete matrix takes hours: ``HUDI_MATRIX=complete``, or ``make matrix``. ``make campaigns``
takes a sample in which any two values of different axes meet, ``make test`` half of it; with
``HUDI_MATRIX=places`` they meet in every place, which takes minutes. That and the complete matrix
also write what the operations find where they find it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import astuple
from itertools import combinations
from typing import Any, Literal

import pytest
from pyspark.errors import PySparkException

from hudi_core.errors import SchemaError
from tests.interop.matrix_batches import BATCH, DELETING, OVERWRITING, batch_rows, flagged
from tests.interop.matrix_cells import Cell, sample_by_place, sample_of_all, whole
from tests.interop.matrix_layouts import LEFT_OUT, MATRIX_COLUMNS, Row
from tests.interop.matrix_model import Expected
from tests.interop.matrix_tables import Copy, Shelf, discard
from tests.samples import sampled

DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


def perform(made: Copy) -> tuple[Expected, Any]:
    """Run the operation of a cell; return what it is to leave, and what it says."""
    operation, _, variant = made.cell.operation.partition("-")
    model = made.model
    batch = batch_rows(made.cell.keys, BATCH, "d")
    if operation == "insert":
        if variant:
            return model.insert_dropping(batch), made.write("insert", made.data(batch), DROP)
        return model.insert(batch), made.write("insert", made.data(batch))
    if operation == "upsert":
        return upsert(made, batch, variant)
    if operation == "delete":
        keys = batch_rows(made.cell.keys, DELETING, "e")
        columns = list(dict.fromkeys((*made.cell.keys.key, *made.cell.keys.partition)))
        return model.delete(keys), made.write("delete", made.data(keys, columns))
    if operation == "bulk_insert":
        return bulk_insert(made, batch, variant)
    if operation == "delete_partitions":
        first, second = batch_rows(made.cell.keys, ((0, 1, 0), (1, 1, 0)), "f")
        paths = [made.cell.keys.folder(row) for row in (first, second)]
        return model.delete_folders(paths), made.delete_partitions(first, paths[1])
    replacing = batch_rows(made.cell.keys, OVERWRITING, "d")
    everywhere = operation == "insert_overwrite_table"
    result = made.write(operation, made.data(replacing))
    return model.overwrite(replacing, everywhere), result


def upsert(made: Copy, batch: list[Row], variant: str) -> tuple[Expected, Any]:
    if variant == "partial":
        names = [name for name in MATRIX_COLUMNS.names if name not in LEFT_OUT]
        less = [{name: row[name] for name in names} for row in batch]
        return made.model.upsert(less), made.write("upsert", made.data(batch, names), KEEP)
    batch = flagged(batch) if variant else batch
    return made.model.upsert(batch), made.write("upsert", made.data(batch))


def bulk_insert(made: Copy, batch: list[Row], mode: str) -> tuple[Expected, Any]:
    spread: Literal["", "range", "hash"] = ""
    if made.cell.engine == "spark" and mode == "GLOBAL_SORT":
        spread = "range"
    elif made.cell.engine == "spark" and mode.startswith("PARTITION_PATH"):
        # without partitions the rows stay where they are
        spread = "hash" if made.cell.keys.partition else ""
    is_sorted = mode in ("PARTITION_SORT", "GLOBAL_SORT")
    expected = made.model.bulk_insert(made.tasks(batch), is_sorted, spread)
    options = {"hoodie.bulkinsert.sort.mode": mode}
    return expected, made.write("bulk_insert", made.data(batch), options)


EXTENT = os.environ.get("HUDI_MATRIX", "sample")
EXTENTS: dict[str, Callable[[], list[Cell]]] = {
    "sample": lambda: sampled(sample_of_all(), 6),
    "places": sample_by_place,
    "complete": whole,
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("matrix"), native=EXTENT != "sample")


def parameter(cell: Cell) -> Any:
    marks = [] if cell.engine == "local" else [pytest.mark.spark, pytest.mark.asks_for("spark")]
    if cell.store == "s3":
        marks.append(pytest.mark.asks_for("s3"))
    return pytest.param(cell, id=cell.name, marks=marks)


@pytest.mark.parametrize("cell", [parameter(cell) for cell in EXTENTS[EXTENT]()])
def test_hudi_rs_agrees(cell: Cell, shelf: Shelf, request: pytest.FixtureRequest) -> None:
    spark = None if cell.engine == "local" else request.getfixturevalue("spark")
    s3 = request.getfixturevalue("s3") if cell.store == "s3" else None
    made = shelf.copy(cell, spark, s3)
    if cell.operation == "upsert-partial" and cell.moves:
        # rows that move cannot keep what is stored in the file they leave
        with pytest.raises((SchemaError, PySparkException), match="cannot keep stored values"):
            perform(made)
        assert made.found() == {group.file_id: group for group in made.model.groups.values()}
    else:
        made.check(*perform(made))
    discard(made, s3)


def test_the_sample_has_every_pair() -> None:
    def pairs(cells: list[Cell]) -> set[Any]:
        return {pair for cell in cells for pair in combinations(enumerate(astuple(cell)), 2)}

    everything, some = whole(), sample_of_all()
    assert pairs(some) == pairs(everything)
    assert len(everything) == 6 * (14 * 7 * 8 * 2 - 7 * 2 * 2)
    assert {cell.place for cell in some} == {cell.place for cell in everything}
