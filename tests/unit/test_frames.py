"""Tables between frames: what may be given for rows and columns, and what rows are returned as."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from tests.tables import copied, new_table, rows

ROWS = pa.table({"id": [1, 2, 3], "city": ["oslo", "rome", "oslo"], "v": [1.5, None, 3.5]})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", new_table, ROWS)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table that no test changes."""
    return new_table(tmp_path_factory.mktemp("shared") / "t", ROWS)


def held(table: hudi.Table) -> list[dict[str, Any]]:
    return list(table.to_arrow(ROWS.schema.names).sort_by("id").to_pylist())


# --- in
POLARS = pl.DataFrame(ROWS)
GIVEN: dict[str, Any] = {
    "arrow schema": ROWS.schema,
    "arrow table": ROWS,
    "reader": ROWS.to_reader(),
    "pandas": ROWS.to_pandas(),
    "polars": POLARS,
    "polars schema": POLARS.schema,
    "lazy": POLARS.lazy(),
    "duckdb": duckdb.from_arrow(ROWS),
    "dictionaries": ROWS.to_pylist(),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_columns_of_a_new_table(tmp_path: Path, kind: str) -> None:
    made = hudi.Table.create(tmp_path / "t", GIVEN[kind], record_key="id")
    assert made.schema.remove_metadata().equals(ROWS.schema)
    assert made.count() == 0
    made.insert(GIVEN["reader"] if kind == "reader" else POLARS)  # a reader was not read from
    assert held(made) == ROWS.to_pylist()


def test_a_table_tells_its_columns_to_another(shared: hudi.Table, tmp_path: Path) -> None:
    other = hudi.Table.create(tmp_path / "u", shared, record_key="id")
    assert other.schema.names == ROWS.schema.names
    other.insert(shared)
    assert held(other) == held(shared)


@pytest.mark.parametrize("wrong", [5, "id long", {"id": 1}, [1, 2]])
def test_what_has_no_columns_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(SchemaError, match="cannot be used"):
        hudi.Table.create(tmp_path / "t", wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [[1, 2], [{"id": 1}, 2], 5, "rows"])
def test_what_holds_no_rows_is_refused(shared: hudi.Table, wrong: Any) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        shared.delete(wrong)
    assert shared.count() == 3


def test_lazy_frames_are_written(tmp_path: Path) -> None:
    source = tmp_path / "rows.parquet"
    POLARS.write_parquet(source)
    lazy = pl.scan_parquet(source).with_columns(v=pl.col("v").fill_null(2.5))
    path = tmp_path / "t"
    options = {"hoodie.datasource.write.recordkey.field": "id"}
    first = hudi.write(lazy, path, options=options)
    second = hudi.write(lazy.filter(pl.col("id") > 1), path)
    assert first is not None
    assert second is not None
    assert (first.inserted, second.updated) == (3, 2)
    assert [row["v"] for row in held(hudi.Table.open(path))] == [1.5, 2.5, 3.5]
    again = hudi.write(lazy.limit(1), path, mode="overwrite", options=options)
    assert again is not None
    assert hudi.Table.open(path).count() == again.inserted == 1


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["oslo", "rome"])])
def test_texts_of_polars_are_sorted_joined_and_gathered(tmp_path: Path, kind: Any) -> None:
    """polars gives Arrow views, of which that gathers none."""
    frame = POLARS.with_columns(
        pl.col("city").cast(kind),
        tags=pl.concat_list("city").cast(pl.List(kind)),
        s=pl.struct(pl.col("city").cast(kind)),
    )
    made = hudi.Table.create(tmp_path / "t", frame, record_key="id", partition_by="city")
    made.bulk_insert(frame, options={"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    made.upsert(frame, options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    merge = made.merge(frame.select("id", "city"), on=["id", "city"])
    assert merge.when_matched_update({"v": "4.5"}).execute().updated == 3
    by_text = made.merge(frame.lazy().select("id", "city"), on="target.city = source.city")
    by_text.when_matched_update({"v": pc.field("source.id") + 5.0}, "source.id = 2").execute()
    assert made.delete(frame.filter(pl.col("id") == 3)).deleted == 1
    assert made.schema.field("s").type == pa.struct([("city", pa.string())])
    found = made.to_arrow(["id", "city", "v", "tags", "s"]).sort_by("id").to_pylist()
    assert found == [
        {"id": 1, "city": "oslo", "v": 4.5, "tags": ["oslo"], "s": {"city": "oslo"}},
        {"id": 2, "city": "rome", "v": 7.0, "tags": ["rome"], "s": {"city": "rome"}},
    ]


# --- out
def test_frames_of_pandas_and_polars(table: hudi.Table) -> None:
    oslo = [("city", "=", "oslo")]
    pandas = table.to_pandas(["id", "v"], oslo).sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(pandas, pd.DataFrame({"id": [1, 3], "v": [1.5, 3.5]}))
    polars = table.to_polars(["id", "v"], pc.field("city") == "oslo").sort("id")
    assert polars.equals(pl.DataFrame({"id": [1, 3], "v": [1.5, 3.5]}))
    first = table.timeline.completed_writes()[0]
    table.delete(pl.DataFrame({"id": [1], "city": ["oslo"]}))
    assert (len(table.to_pandas()), len(table.to_polars())) == (2, 2)
    assert (len(table.to_pandas(as_of=first)), len(table.to_polars(as_of=first))) == (3, 3)


def test_one_column_may_be_named_by_a_text(shared: hudi.Table) -> None:
    assert shared.to_arrow("city").column_names == ["city"]
    assert shared.to_batches("id").schema.names == ["id"]
    assert shared.head(columns="v").column_names == ["v"]
    assert shared.incremental(columns="v").column_names == ["v"]
    with pytest.raises(SchemaError, match="no column 'fare'"):
        shared.to_arrow("fare")
    with pytest.raises(SchemaError, match="is a string"):
        shared.to_arrow(filter="id > 1")


def test_who_takes_arrow_streams_takes_a_table(shared: hudi.Table) -> None:
    names = [*shared.to_arrow().column_names]
    assert pa.table(shared).column_names == pl.DataFrame(shared).columns == names
    assert pa.schema(shared).names == names
    with duckdb.connect() as connection:
        connection.register("t", shared)
        assert connection.sql("select sum(id) from t where city = 'oslo'").fetchall() == [(4,)]


def test_counts(table: hudi.Table) -> None:
    assert table.count() == 3
    assert table.count([("city", "=", "oslo")]) == 2
    assert table.count(pc.field("v").is_null()) == 1
    assert table.count([("id", ">", 7)]) == 0
    table.upsert(pa.table({"id": [1, 9], "city": ["oslo", "lima"], "v": [0.0, 0.0]}))
    table.delete(pa.table({"id": [2], "city": ["rome"]}))
    instants = table.timeline.completed_writes()
    assert [table.count(as_of=one) for one in instants] == [3, 4, 3]
    assert table.count() == 3


def test_a_count_reads_no_data_file(table: hudi.Table) -> None:
    for file in Path(table.path).rglob("*.parquet"):
        if ".hoodie" not in file.parts:
            file.write_bytes(b"")
    assert table.count() == 3
    assert table.scan().count_rows() == 3


def test_a_count_asks_the_footers_where_no_commit_tells(table: hudi.Table) -> None:
    """As when the commits of the files have been archived."""
    timeline = Path(table.path) / ".hoodie/timeline"
    [commit] = timeline.glob("*.commit")
    commit.write_bytes(commit.read_bytes().replace(b"numWrites", b"numWritts"))
    assert hudi.Table.open(table.path).count() == 3


def test_the_first_rows(table: hudi.Table) -> None:
    assert table.head(2).num_rows == 2
    assert table.head().num_rows == 3
    assert table.head(0).num_rows == 0
    assert table.head(1, ["id"], [("id", ">", 2)]).to_pylist() == [{"id": 3}]
    assert table.head(9).schema.names == table.to_arrow().schema.names
    # the second file is not opened for one row
    [_, last] = [one.base_file.path for one in table.file_slices() if one.base_file]
    Path(table.path, last).write_bytes(b"")
    assert table.head(1).num_rows == 1


def test_what_a_table_prints_as(tmp_path: Path) -> None:
    secret = {"fs.s3a.access.key": "me", "fs.s3a.secret.key": "canary"}
    made = new_table(tmp_path / "t", ROWS.schema, secret, record_key=["id", "v"])
    expected = (
        f"Table(path='{tmp_path}/t', name='t', format='native', record_key=['id', 'v'], "
        "partition_by=['city'])"
    )
    assert repr(made) == expected


def test_changes_as_batches(table: hudi.Table) -> None:
    first = table.timeline.completed_writes()[0]
    table.upsert(rows(1, 4, 5, city=["oslo", "rome", "lima"], v=[0.0, 4.0, 5.0]))
    batches = table.incremental_batches(first, columns=["id", "v"], filter=[("v", ">", 3)])
    assert isinstance(batches, pa.RecordBatchReader)
    assert batches.read_all().sort_by("id").to_pydict() == {"id": [4, 5], "v": [4.0, 5.0]}
    some = table.incremental(first, columns="id", filter=[("city", "=", "lima")])
    assert some.to_pydict() == {"id": [5]}
    # partitions that the filter excludes are not opened
    for file in Path(table.path).glob("rome/*.parquet"):
        file.unlink()
    assert table.incremental(first, filter=[("city", "=", "oslo")]).num_rows == 1


def test_a_copy_of_a_table_is_a_table(table: hudi.Table) -> None:
    for made in (copy.copy(table), copy.deepcopy({"t": [table]})["t"][0]):
        made.delete(ROWS.slice(0, 1))
        made.insert(ROWS.slice(0, 1))
        assert (made.path, held(made)) == (table.path, held(table))


def test_new_columns_are_warned_of(table: hudi.Table, caplog: pytest.LogCaptureFixture) -> None:
    row = {**ROWS.to_pylist()[0], "s": {"a": {"b": 1}}}
    table.upsert([row])
    [found] = [one.getMessage() for one in caplog.records if one.name == "hudi_core.write.client"]
    assert f"added the column s to {table.path} for good; unless hoodie.write.set.null" in found
    caplog.clear()
    table.upsert([row])
    fills = {"hoodie.write.set.null.for.missing.columns": "true"}
    table.upsert([{**row, "s": {"a": {"b": 1, "c": 1}}, "n": 1}], options=fills)
    [found] = [one.getMessage() for one in caplog.records if one.name == "hudi_core.write.client"]
    assert f"added the column n, s.a.c to {table.path} for good; Table.alter" in found
