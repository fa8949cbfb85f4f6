"""A table as an Arrow dataset: what DuckDB, polars and Arrow find, and what they read for it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import hudi_core as hudi
from hudi_core.errors import DataFileError, SchemaError
from tests.tables import new_table


def rows(*numbers: int, city: str) -> pa.Table:
    return pa.table(
        {"id": [*numbers], "city": [city] * len(numbers), "v": [n / 2 for n in numbers]}
    )


def make(path: Path) -> hudi.Table:
    made = new_table(path, rows(1, city="").schema)
    made.insert(pa.concat_tables([rows(1, 2, city="oslo"), rows(3, 4, city="rome")]))
    made.bulk_insert(rows(5, 6, city="rome"))
    return made


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return make(tmp_path / "t")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table that no test changes."""
    return make(tmp_path_factory.mktemp("shared") / "t")


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table of which just the file of the rows 3 and 4 is left."""
    made = make(tmp_path_factory.mktemp("damaged") / "t")
    damage(made, 1, 5)
    return made


def answer(query: str, data: ds.Dataset) -> list[Any]:
    relation = duckdb.sql(query)
    assert relation is not None
    return relation.fetchall()


def damage(table: hudi.Table, *numbers: int) -> None:
    """Take away the file of each of some rows."""
    for number in numbers:
        [file] = table.to_arrow("_hoodie_file_name", [("id", "=", number)]).column(0).to_pylist()
        [path] = Path(table.path).rglob(file)
        path.unlink()


QUERIES: dict[str, Callable[[ds.Dataset], list[Any]]] = {
    "arrow": lambda data: (
        data.to_table(columns=["id"], filter=(pc.field("city") == "rome") & (pc.field("id") < 5))
        .column("id")
        .to_pylist()
    ),
    "arrow expressions": lambda data: (
        data.to_table(
            columns={"n": pc.field("id") * 1},
            filter=(pc.field("city") == "rome") & (pc.field("id") < 5),
        )
        .column("n")
        .to_pylist()
    ),
    "duckdb": lambda data: [
        row[0]
        for row in duckdb.from_arrow(data)
        .filter("city = 'rome' and id < 5")
        .project("id")
        .fetchall()
    ],
    "duckdb by name": lambda data: [
        row[0] for row in answer("select id from data where city = 'rome' and id < 5", data)
    ],
    "polars": lambda data: (
        pl.scan_pyarrow_dataset(data)
        .filter((pl.col("city") == "rome") & (pl.col("id") < 5))
        .select("id")
        .collect()["id"]
        .to_list()
    ),
}


@pytest.mark.parametrize("engine", QUERIES)
def test_filters_are_pushed_down_to_partitions_and_files(damaged: hudi.Table, engine: str) -> None:
    assert sorted(QUERIES[engine](damaged.scan())) == [3, 4]
    with pytest.raises(DataFileError):
        damaged.scan().to_table()


def test_columns_are_pushed_down(tmp_path: Path) -> None:
    # a column that is read makes more bytes than the other ever has
    wide = pa.table({"id": range(4000), "text": [f"{n:x}" * 40 for n in range(4000)]})
    made = new_table(tmp_path / "t", wide.schema)
    made.bulk_insert(wide)
    before = pa.total_allocated_bytes()
    narrow = made.scan().scanner(columns=["id"]).to_table()
    assert narrow.column_names == ["id"]
    assert pa.total_allocated_bytes() - before < 200_000
    assert duckdb.from_arrow(made.scan()).project("sum(id)").fetchall() == [(4000 * 3999 // 2,)]


def test_what_a_dataset_answers(shared: hudi.Table) -> None:
    data = shared.scan()
    assert isinstance(data, ds.Dataset)
    assert data.schema == shared.to_arrow().schema
    assert data.count_rows() == 6
    assert data.count_rows(filter=pc.field("id") > 4) == 2
    assert data.head(2, columns=["id"]).num_rows == 2
    assert data.head(9, columns={"n": pc.field("v") * 2}).column_names == ["n"]
    assert sum(batch.num_rows for batch in data.to_batches(columns=["v"], batch_size=1)) == 6
    assert max(batch.num_rows for batch in data.to_batches(batch_size=1)) == 1
    assert data.to_table(columns=[]).num_rows == 6
    assert data.to_table(columns=["id", "id"]).column_names == ["id", "id"]
    assert data.take(pa.array([0, 5])).num_rows == 2
    few = data.filter(pc.field("city") == "rome").filter(pc.field("id") > 3)
    assert few.count_rows() == 3
    assert sorted(few.to_table(filter=pc.field("id") < 6).column("id").to_pylist()) == [4, 5]
    order = data.sort_by([("id", "descending")]).to_table().column("id").to_pylist()
    assert order == [6, 5, 4, 3, 2, 1]
    names = pa.table({"city": ["oslo"], "country": ["no"]})
    joined = data.join(ds.InMemoryDataset(names), "city", join_type="inner").to_table()
    assert joined.num_rows == 2
    assert data.join(data, "id", right_suffix="_2").count_rows() == 6
    assert sorted(data.files) == sorted(
        f"{shared.path}/{one.base_file.path}" for one in shared.file_slices() if one.base_file
    )
    assert shared.scan([("city", "=", "oslo")]).to_table().num_rows == 2


def test_a_dataset_can_be_written_by_arrow(shared: hudi.Table, tmp_path: Path) -> None:
    for name, data in (("all", shared.scan()), ("some", shared.scan().scanner(columns=["id"]))):
        ds.write_dataset(data, tmp_path / name, format="parquet")
        assert ds.dataset(tmp_path / name).count_rows() == 6


def test_a_dataset_stays_at_its_state(table: hudi.Table) -> None:
    now, first = table.scan(), table.scan(as_of=table.timeline.completed_writes()[0])
    table.delete(pa.table({"id": [1, 2], "city": ["oslo"] * 2}))
    assert (now.count_rows(), first.count_rows(), table.scan().count_rows()) == (6, 4, 4)
    assert now.to_table(filter=pc.field("city") == "oslo").num_rows == 2
    assert first.to_table(filter=pc.field("city") == "rome").num_rows == 2


def test_files_of_former_columns_are_read_by_field_id(table: hudi.Table) -> None:
    table.alter(rename={"v": "fare"}, add_columns={"note": pa.string()})
    table.alter(add_columns={"v": pa.string()})
    table.insert(
        pa.table({"id": [7], "city": ["lima"], "fare": [3.5], "note": ["new"], "v": ["text"]})
    )
    data = table.scan()
    query = "select id, fare, note, v from data where fare > 1 and id > 2 order by id"
    expected = [(n, n / 2, None, None) for n in (3, 4, 5, 6)] + [(7, 3.5, "new", "text")]
    assert answer(query, data) == expected
    lazy = pl.scan_pyarrow_dataset(data).filter(pl.col("v").is_null()).select("fare")
    assert sorted(lazy.collect()["fare"].to_list()) == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert data.count_rows(filter=pc.field("v") == "text") == 1


def test_nan_is_compared_as_duckdb_does(table: hudi.Table) -> None:
    table.insert(pa.table({"id": [7], "city": ["rome"], "v": [float("nan")]}))
    data = table.scan()
    found = answer("select id from data where v > 2 order by id", data)
    assert found == [(5,), (6,), (7,)]


@pytest.mark.parametrize(
    "ask",
    [
        lambda data: data.to_table(columns=["fare"]),
        lambda data: data.to_table(filter=pc.field("fare") > 1),
        lambda data: data.filter(pc.field("fare") > 1).count_rows(),
        lambda data: data.head(1, columns=["fare"]),
    ],
)
def test_unknown_columns_are_named(shared: hudi.Table, ask: Callable[[ds.Dataset], Any]) -> None:
    with pytest.raises(SchemaError, match="fare"):
        ask(shared.scan())


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda data: list(data.get_fragments()), NotImplementedError),
        (lambda data: data.replace_schema(data.schema), NotImplementedError),
        (lambda data: ds.dataset([data, data]), NotImplementedError),
        (pickle.dumps, TypeError),
        # Arrow's own scan would find files by their names alone
        (
            lambda data: acero.Declaration("scan", acero.ScanNodeOptions(data)).to_table(),
            FileNotFoundError,
        ),
        (
            lambda data: ds.InMemoryDataset(pa.table({"id": [1]})).join(data, "id"),
            FileNotFoundError,
        ),
    ],
)
def test_what_would_pass_by_our_reader_is_refused(
    shared: hudi.Table, ask: Callable[[ds.Dataset], Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match="Hudi table"):
        ask(shared.scan())
