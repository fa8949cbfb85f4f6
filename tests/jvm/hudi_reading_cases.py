"""Hudi-Spark: reading what this project writes.

Rows with their meta columns, past states and changes, after every operation, with every index, way
to key and partition, and version.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from tests.formats.delta_tables import content
from tests.interop.matrix_cells import Cell, sample, whole
from tests.interop.matrix_layouts import ESCAPED, LAYOUTS, Row
from tests.interop.matrix_model import Model as MatrixModel
from tests.interop.matrix_tables import Shelf, discard
from tests.interop.test_type_matrix import history
from tests.interop.test_write_matrix import perform
from tests.interop.typed_values import KEY, NAMES, TYPES, Written, by_key, expected, given, row
from tests.jvm.engines import Engine, EngineError
from tests.jvm.histories import (
    AGE,
    ENCODED,
    LIFE,
    Model,
    changes_by_hudi,
    encoded_changes,
    live,
    read_by_hudi,
    read_by_us,
    since_options,
)
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.skipping import WAYS
from tests.jvm.writers import HudiSpark, Shape, ours

VERSIONS: Final = ("8", "9")

# --- operation x index x layout x version --------------------------------------------------------

CELLS: Final = sample([cell for cell in whole() if cell.place == "local-disk"])
"""Any two values of different axes meet in one of these."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("matrix"), native=False)


@pytest.fixture(scope="module")
def takes_names_for_values(
    hudi_spark: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], bool]:
    """Give whether Hudi-Spark takes encoded names for values in changes of its own table.

    It is of the layout and version of a cell, and made once each.
    """

    @cache
    def found(layout: str, version: str) -> bool:
        path, of = tmp_path_factory.mktemp("encoded") / "table", LAYOUTS[layout]
        key = "id" if len(of.key) == 1 else "id,day"
        shape = Shape(version, key, ",".join(of.partition), ordering="ts", options=of.options)
        before = encoded_changes(HudiSpark(hudi_spark), path, shape)
        return hudi_spark.values(path, ["city"], options=since_options(before)) == [("a%25b",)]

    return found


def brings_encoded_names(cell: Cell) -> bool:
    """Whether an operation writes rows to partitions whose names are encoded."""
    is_refused = cell.operation == "upsert-partial" and cell.moves
    return "encoded" in cell.layout and "delete" not in cell.operation and not is_refused


NAMES_FOR_VALUES: Final = own_failure(
    "Hudi-Spark takes the names of encoded partitions for values in incremental queries"
)


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(one, id=one.name, marks=NAMES_FOR_VALUES if brings_encoded_names(one) else ())
        for one in CELLS
    ],
)
def test_operations(
    hudi_spark: Engine, shelf: Shelf, takes_names_for_values: Callable[[str, str], bool], cell: Cell
) -> None:
    """Rows, the state before, and the changes, of one operation on a table with a past."""
    made = shelf.copy(cell, None, None)
    before = copy.deepcopy(made.model)
    last = made.table().timeline.completed_writes()[-1]
    if cell.operation == "upsert-partial" and cell.moves:
        with pytest.raises(SchemaError, match="cannot keep stored values"):
            perform(made)
        assert read_rows(hudi_spark, made.uri, {}) == held(before)
        return
    counted, result = perform(made)
    made.check(counted, result)
    right = held(made.model)
    for options in WAYS.values():
        assert read_rows(hudi_spark, made.uri, options) == right
    past = {"as.of.instant": last.requested_time}
    assert read_rows(hudi_spark, made.uri, past) == held(before)
    time = result.instant.requested_time
    new = [row for row in right if row["_hoodie_commit_time"] == time]
    changes = read_rows(hudi_spark, made.uri, since_options(last))
    discard(made, None)
    if brings_encoded_names(cell) and changes != new:
        assert changes == [{**row, "city": ESCAPED.get(row["city"], row["city"])} for row in new]
        own = takes_names_for_values(cell.layout, cell.version)
        assert own, "it is right about its own table"
        raise OwnFailureError("of its own table as well")
    assert changes == new


def held(model: MatrixModel) -> list[Row]:
    """Rows of a model, sorted by the number that each has of its own."""
    return _sorted(row for group in model.groups.values() for row in group.rows)


def read_rows(engine: Engine, path: str, options: Mapping[str, str]) -> list[Row]:
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


def has_time(kind: pa.DataType) -> bool:
    """Whether values of a type have times of day in them."""
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return pa.types.is_time(kind) or any(map(has_time, inner))


TIMES: Final = tuple(name for name in NAMES if has_time(TYPES[name].stored))
NESTED: Final = "struct_of_all"
TIMELESS: Final = pa.struct([field for field in TYPES[NESTED].stored if not has_time(field.type)])


def without_times(data: pa.Table) -> pa.Table:
    """Rows without their times of day, in columns and members of them."""
    return data.drop_columns(TIMES).append_column(NESTED, data[NESTED].cast(TIMELESS))


@pytest.mark.parametrize("version", VERSIONS)
def test_values_of_every_type(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Inserted, bulk inserted, upserted and deleted values of every type but times of day.

    Hudi-Spark takes times without a zone for timestamps in UTC: see ``docs/types.md``.
    """
    options = {"hoodie.write.table.version": version, "hoodie.fs.fsync": "false"}
    path, schema = str(tmp_path / "types"), without_times(given({})).schema
    table = hudi.Table.create(path, schema, record_key=KEY, options=options)
    written = history(table, without_times)
    wanted = expected(written)
    for values in wanted.values():
        if values[NESTED] is not None:
            del values[NESTED]["t"]
    assert read_types(hudi_spark, written, written.names) == wanted


BY_DEFAULT: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Spark's own settings, with which it reads Parquet by columns: the engine has others."""
ILLEGAL: Final = "Illegal Parquet type: INT64 (TIME(MICROS,"
"""What Spark says of the file; Hudi's own writer has times in UTC, and we in no zone."""
TIMED: Final = ("int32", "time_us", NESTED)
WITH_TIMES: Final = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "number", "type": ["null", "int"], "default": None},
        {
            "name": "time",
            "type": ["null", {"type": "long", "logicalType": "time-micros"}],
            "default": None,
        },
    ],
}


def its_times(engine: Engine, path: Path, version: str) -> Path:
    """A table with times of day that Hudi's own client made, as Spark has no such type."""
    rows = [{"id": "a", "number": 1, "time": 3_723_000_004}, {"id": "b", "number": 2, "time": None}]
    engine.insert_avro(rows, path, WITH_TIMES, "id", version)
    return path


@own_failure("Spark 3.5 opens no Parquet file that has times of day")
@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("version", VERSIONS)
def test_times_of_day(hudi_spark: Engine, tmp_path: Path, name: str, version: str) -> None:
    """Times of day, as microseconds, and another column beside them."""
    rows = {"k": row(0), "none": row(None)}
    data = given(rows, TIMED)
    path = str(tmp_path / "table")
    options = {"hoodie.write.table.version": version, "hoodie.fs.fsync": "false"}
    table = hudi.Table.create(path, data.schema, record_key=KEY, options=options)
    table.insert(data)
    written = Written(table, rows)
    with hudi_spark.configured(BY_DEFAULT):
        try:
            found = read_types(hudi_spark, written, [name])
        except EngineError as error:
            if ILLEGAL not in str(error):
                raise
            for column in ("number", "time"):
                with pytest.raises(EngineError, match=re.escape(ILLEGAL)):
                    hudi_spark.values(its_times(hudi_spark, tmp_path / column, version), [column])
            raise OwnFailureError("of its own table as well") from error
    assert found == {key: {name: values[name]} for key, values in expected(written).items()}


def read_types(engine: Engine, written: Written, names: Sequence[str]) -> dict[str, Row]:
    """The same as the engine reads them."""
    found = engine.read(written.path, columns=[KEY, *names])
    schema = pa.schema([pa.field(KEY, pa.string()), *map(written.table.schema.field, names)])
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
