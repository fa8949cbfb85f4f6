"""Hudi-Spark: reading what this project writes.

Rows with their meta columns, past states and changes, after every operation, with every index, way
to key and partition, and version.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from tests.formats.delta_tables import content
from tests.interop.matrix_cells import Cell, sample, whole
from tests.interop.matrix_layouts import Row
from tests.interop.matrix_model import Model as MatrixModel
from tests.interop.matrix_tables import Shelf, discard
from tests.interop.test_type_matrix import history
from tests.interop.test_write_matrix import perform
from tests.interop.typed_values import KEY, Written, by_key, expected, given
from tests.jvm.engines import Engine
from tests.jvm.histories import (
    AGE,
    ENCODED,
    LIFE,
    Model,
    changes_by_hudi,
    live,
    read_by_hudi,
    read_by_us,
    since_options,
)
from tests.jvm.skipping import WAYS
from tests.jvm.writers import Shape, ours

VERSIONS: Final = ("8", "9")

# --- operation x index x layout x version --------------------------------------------------------

CELLS: Final = sample([cell for cell in whole() if cell.place == "local-disk"])
"""Any two values of different axes meet in one of these."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("matrix"), native=False)


@pytest.mark.parametrize("cell", [pytest.param(one, id=one.name) for one in CELLS])
def test_operations(hudi_spark: Engine, shelf: Shelf, cell: Cell) -> None:
    """Rows, the state before, and the changes, of one operation on a table with a past."""
    made = shelf.copy(cell, None, None)
    before = copy.deepcopy(made.model)
    last = made.table().timeline.completed_writes()[-1]
    if cell.operation == "upsert-partial" and cell.moves:
        with pytest.raises(SchemaError, match="cannot keep stored values"):
            perform(made)
        assert rows_of(hudi_spark, made.uri, {}) == held(before)
        return
    wanted, result = perform(made)
    made.check(wanted, result)
    right = held(made.model)
    for options in WAYS.values():
        assert rows_of(hudi_spark, made.uri, options) == right
    past = {"as.of.instant": last.requested_time}
    assert rows_of(hudi_spark, made.uri, past) == held(before)
    time = result.instant.requested_time
    new = [row for row in right if row["_hoodie_commit_time"] == time]
    assert rows_of(hudi_spark, made.uri, since_options(last)) == new
    discard(made, None)


def held(model: MatrixModel) -> list[Row]:
    """Rows of a model, sorted by the number that each has of its own."""
    return _sorted(row for group in model.groups.values() for row in group.rows)


def rows_of(engine: Engine, path: str, options: Mapping[str, str]) -> list[Row]:
    """Rows as the engine reads them, in the same order."""
    return _sorted(engine.read(path, options).to_pylist())


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row["_hoodie_commit_seqno"]))


# --- lives ---------------------------------------------------------------------------------------

PLAIN: Final = Shape("8", partition="city", ordering="ts", options=ENCODED)
HIVE: Final = {"hoodie.datasource.write.hive_style_partitioning": "true"}


SHAPES: Final[Mapping[str, Shape]] = {
    "record index": replace(
        PLAIN,
        options={
            **ENCODED,
            "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
            "hoodie.metadata.global.record.level.index.enable": "true",
        },
    ),
    "record index by partitions": replace(
        PLAIN,
        options={
            **ENCODED,
            "hoodie.index.type": "RECORD_LEVEL_INDEX",
            "hoodie.metadata.record.level.index.enable": "true",
        },
    ),
    "two keys, hive": replace(PLAIN, key="id,day", options={**ENCODED, **HIVE}),
    "bloom filters": replace(
        PLAIN,
        options={
            **ENCODED,
            "hoodie.index.type": "BLOOM",
            "hoodie.metadata.index.bloom.filter.enable": "true",
        },
    ),
    "files alone": replace(
        PLAIN, options={**ENCODED, "hoodie.metadata.index.column.stats.enable": "false"}
    ),
    "no metadata table": replace(PLAIN, options={**ENCODED, "hoodie.metadata.enable": "false"}),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_lives(hudi_spark: Engine, tmp_path: Path, shape: str, version: str) -> None:
    """A life with every operation, until the metadata table is compacted: every past state."""
    path, model = tmp_path / "table", Model()
    made = replace(SHAPES[shape], version=version)
    for step in live((*LIFE, *AGE), ours, path, made, model):
        assert read_by_hudi(hudi_spark, path) == model.content, step
    for options in WAYS.values():
        assert read_by_hudi(hudi_spark, path, options) == model.content
    table = hudi.Table.open(str(path))
    for instant in table.timeline.completed_writes()[::2]:
        past = {"as.of.instant": instant.requested_time}
        found = read_by_hudi(hudi_spark, path, past)
        assert found == read_by_us(path, instant.requested_time), instant
        changes = content(table.incremental(instant))
        assert changes_by_hudi(hudi_spark, path, instant) == changes, instant


# --- types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_values_of_every_type(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Inserted, bulk inserted, upserted and deleted values of every type.

    Hudi-Spark has no times of day, which come as microseconds, and takes times without a zone for
    moments in UTC: see ``docs/types.md``.
    """
    options = {"hoodie.write.table.version": version, "hoodie.fs.fsync": "false"}
    path = str(tmp_path / "types")
    table = hudi.Table.create(path, given({}).schema, record_key=KEY, options=options)
    written = history(table)
    assert read_types(hudi_spark, written) == expected(written)


def read_types(engine: Engine, written: Written) -> dict[str, Row]:
    found = engine.read(written.path)
    schema = pa.schema(
        [pa.field(KEY, pa.string()), *map(written.table.schema.field, written.names)]
    )
    columns = [
        pa.array([_as(value, field.type) for value in found[field.name].to_pylist()], field.type)
        for field in schema
    ]
    return by_key(pa.table(columns, schema=schema))


def _as(value: Any, kind: pa.DataType) -> Any:
    """Return a value of Spark's as the type of our column has it."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return value.replace(tzinfo=None)
    if pa.types.is_time(kind):
        return pa.scalar(value, pa.time64("us")).as_py()
    if pa.types.is_struct(kind):
        return {field.name: _as(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(key, _as(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [_as(item, kind.value_type) for item in value]
    return value
