"""A table as an Arrow dataset, in DuckDB and polars, and read again."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import hudi_core as hudi
from hudi_core.errors import DataFileError, NotATableError, SchemaError
from hudi_core.read import known_state
from hudi_core.read.query import SnapshotQuery
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView
from tests.calls import calls_of
from tests.tables import FORMATS, copied, new_table


def halves(*numbers: int, city: str) -> pa.Table:
    return pa.table(
        {"id": [*numbers], "city": [city] * len(numbers), "v": [n / 2 for n in numbers]}
    )


def make(path: Path) -> hudi.Table:
    made = new_table(path, halves(1, city="").schema)
    made.insert(pa.concat_tables([halves(1, 2, city="oslo"), halves(3, 4, city="rome")]))
    made.bulk_insert(halves(5, 6, city="rome"))
    return made


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", make)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table that no test changes."""
    return copied(tmp_path_factory.mktemp("shared") / "t", make)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table of which just the file of the rows 3 and 4 is left."""
    made = copied(tmp_path_factory.mktemp("damaged") / "t", make)
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
    ("ask", "error"),
    [
        (lambda data: data.to_table(columns=["fare"]), SchemaError),
        (lambda data: data.to_table(filter=pc.field("fare") > 1), SchemaError),
        (lambda data: data.filter(pc.field("fare") > 1).count_rows(), SchemaError),
        (lambda data: data.head(1, columns=["fare"]), SchemaError),
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
def test_unknown_columns_and_what_would_pass_by_our_reader_are_refused(
    shared: hudi.Table, ask: Callable[[ds.Dataset], Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match="fare" if error is SchemaError else "Hudi table"):
        ask(shared.scan())


# --- tables and datasets that stay open and are read again: what they plan anew, and what they
UPSERT = """
import sys
import pyarrow as pa
import hudi_core as hudi

rows = pa.table({"id": [1], "city": ["oslo"], "v": [100.0]})
hudi.Table.open(sys.argv[1], {}).upsert(rows)
"""


def again_make(path: Path, format_name: str, **options: Any) -> hudi.Table:
    made = new_table(path, halves(1, city="").schema, options, format=format_name)
    made.insert(pa.concat_tables([halves(1, 2, city="oslo"), halves(3, 4, city="rome")]))
    made.bulk_insert(halves(5, 6, city="rome"))
    return made


@contextmanager
def listings() -> Iterator[list[tuple[Any, ...]]]:
    """Count how often the file groups of partitions are asked for."""
    with pytest.MonkeyPatch.context() as patched:
        yield calls_of(patched, FileSystemView, "file_groups")


def values(table: Any, **query: Any) -> list[Any]:
    read = table.to_arrow if isinstance(table, hudi.Table) else table.to_table
    return sorted(read(columns=["id", "v"], **query).to_pydict().items())


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_unchanged_table_is_planned_once(tmp_path: Path, format_name: str) -> None:
    table = hudi.Table.open(again_make(tmp_path / "t", format_name).path)
    before = hudi.Table.open(table.path)
    with listings() as listed:
        first = table.to_arrow(["id", "v"])
        assert listed
        listed.clear()
        for _ in range(3):
            assert table.to_arrow(["id", "v"]).equals(first)
            assert table.scan().to_table(["id", "v"]).equals(first)
            assert table.count() == 6
            assert table.head(2).num_rows == 2
        assert not listed
    assert before.to_arrow(["id", "v"]).equals(first)


@pytest.mark.parametrize("format_name", FORMATS)
def test_statistics_of_an_unchanged_table_are_asked_for_once(
    tmp_path: Path, format_name: str
) -> None:
    table = hudi.Table.open(again_make(tmp_path / "t", format_name).path)
    wanted = [("v", ">", 2.0)]
    index = type(table._session.opened.lister())
    first = table.file_slices(filter=wanted)
    assert len(first) == 1
    asked = mock.Mock(wraps=index.file_ranges)

    def file_ranges(*args: Any) -> Any:
        return asked(*args)

    with mock.patch.object(index, "file_ranges", file_ranges):
        assert table.file_slices(filter=wanted) == first
        assert table.file_slices(filter=[("v", "<", 1.0)])[0].group.partition_path == "oslo"
        assert asked.call_count == 0
        assert table.file_slices(filter=[("id", ">", 4)]) == first
        assert asked.call_count > 0


@pytest.mark.parametrize("format_name", FORMATS)
def test_what_another_process_commits_is_seen_by_the_next_read(
    tmp_path: Path, format_name: str
) -> None:
    made = again_make(tmp_path / "t", format_name)
    table = hudi.Table.open(made.path)
    stays = table.scan()
    before = values(table)
    assert values(stays) == before
    subprocess.run([sys.executable, "-c", UPSERT, made.path], check=True)

    assert values(table, filter=[("id", "=", 1)]) == [("id", [1]), ("v", [100.0])]
    assert values(table, filter=[("v", ">", 50.0)]) == [("id", [1]), ("v", [100.0])]
    assert values(stays) == before  # the dataset is of one state
    now = stays.refreshed()
    assert now is not stays
    assert values(now) == values(table)
    assert now.refreshed() is now


@pytest.mark.parametrize("format_name", FORMATS)
def test_rollbacks_and_replacements_are_seen(tmp_path: Path, format_name: str) -> None:
    made = again_make(tmp_path / "t", format_name)
    table = hudi.Table.open(made.path)
    assert table.count() == 6
    last = made.delete(halves(5, 6, city="rome"))
    assert table.count() == 4
    made.rollback(last.instant)
    assert table.count() == 6
    assert table.to_arrow(["id"]).num_rows == 6
    made.insert_overwrite(halves(7, city="rome"))
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == [1, 2, 7]
    before = table.scan()
    made.alter(add_columns={"w": pa.int64()})
    assert "w" in table.to_arrow().column_names
    assert "w" not in before.to_table().column_names
    assert before.refreshed().schema.names[-1] == "w"


def test_a_refreshed_dataset_keeps_its_filter_and_its_past_state(tmp_path: Path) -> None:
    table = again_make(tmp_path / "t", "native")
    first = table.timeline.completed_writes()[0]
    few = table.scan([("city", "=", "rome")]).filter(pc.field("id") > 3)
    past = table.scan(as_of=first)
    table.upsert(halves(9, city="rome"))
    table.upsert(halves(10, city="oslo"))

    assert sorted(few.to_table(["id"])["id"].to_pylist()) == [4, 5, 6]
    assert sorted(few.refreshed().to_table(["id"])["id"].to_pylist()) == [4, 5, 6, 9]
    assert past.refreshed().count_rows() == past.count_rows() == 4


def test_long_lists_of_files_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = again_make(tmp_path / "t", "native")
    monkeypatch.setattr(known_state, "_MAX_FILES", 1)
    with listings() as listed:
        first = table.file_slices()
        count = len(listed)
        assert table.file_slices() == first
        assert len(listed) == 2 * count
    monkeypatch.setattr(known_state, "_MAX_FILES", len(first))
    with listings() as listed:
        table.file_slices()
        listed.clear()
        assert table.file_slices() == first
        assert not listed


def test_a_repaired_metadata_table_is_asked_again(tmp_path: Path) -> None:
    table = again_make(tmp_path / "t", "native")
    first = table.file_slices()
    with listings() as listed:
        table.file_slices()
        assert not listed
        table.repair_metadata()
        listed.clear()
        assert table.file_slices() == first
        assert listed


def test_a_table_that_is_validated_is_listed_by_each_query(tmp_path: Path) -> None:
    path = again_make(tmp_path / "t", "native").path
    table = hudi.Table.open(path, {"hoodie.metadata.validate": "true"})
    with listings() as listed:
        table.file_slices()
        count = len(listed)
        table.file_slices()
        assert len(listed) == 2 * count


def test_a_state_that_another_thread_has_found_is_not_taken_for_the_own(tmp_path: Path) -> None:
    made = again_make(tmp_path / "t", "native")
    table = hudi.Table.open(made.path)
    assert table.count() == 6
    # a copy, for what is the very same object is not compared
    opened = table._session.opened.seeing(copy(table._session.opened.client.timeline()))
    made.upsert(halves(9, city="rome"))
    latest, plain = table._session.latest, Timeline.__eq__
    newer = table._session.opened.client.timeline()
    others: list[SnapshotQuery] = []

    def compared(one: Timeline, other: object) -> bool:
        same = plain(one, other)
        if same and not others:
            # the other thread looks at the newer timeline, between two looks of this one
            with mock.patch.object(Timeline, "__eq__", plain):
                others.append(latest.query(table._session.opened.seeing(newer)))
        return same

    with mock.patch.object(Timeline, "__eq__", compared):
        query = latest.query(opened)
    assert others
    assert query.count() == 6
    assert others[0].count() == 7
    assert table.count() == 7


# --- tables in DuckDB and polars by one call
ROWS = pa.table({"id": [1, 2, 3], "fare": [0.5, 1.5, 2.5]})


@pytest.fixture
def query_table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "trips", new_table, ROWS)


def test_duckdb_knows_the_table_by_name(query_table: hudi.Table) -> None:
    first = query_table.timeline.completed_writes()[0]
    with duckdb.connect() as connection:
        view = hudi.duckdb(connection, query_table.path)
        assert view.filter("fare > 1").aggregate("sum(id)").fetchall() == [(5,)]
        assert connection.sql("SELECT max(fare) FROM trips").fetchall() == [(2.5,)]
        query_table.delete(ROWS.slice(2))
        assert connection.sql("SELECT count(*) FROM trips").fetchall() == [(3,)]
        hudi.duckdb(connection, query_table.path)
        assert connection.sql("SELECT count(*) FROM trips").fetchall() == [(2,)]
        past = hudi.duckdb(connection, query_table.path, 'an "old" one', as_of=first)
        assert past.aggregate("count(*)").fetchall() == [(3,)]


def test_polars_scans_it(query_table: hudi.Table) -> None:
    found = hudi.polars(query_table.path).filter(pl.col("fare") < 2).select("id").collect()
    assert sorted(found["id"].to_list()) == [1, 2]
    assert query_table.timeline.completed_writes()


SEVERAL = pa.table(
    {
        "id": pa.array(range(40)),
        "part": pa.array([f"p{n // 10}" for n in range(40)]),
        "f": pa.array([[0.0, -0.0, math.nan, None, 5.0][n % 5] for n in range(40)]),
        "s": pa.array([["Oslo", None, "Rome"][n % 3] for n in range(40)]),
    }
)


@pytest.fixture
def several(tmp_path: Path) -> hudi.Table:
    """Four files, one for each partition."""
    return copied(tmp_path / "several", new_table, SEVERAL)


@pytest.mark.parametrize(
    "predicate",
    [
        ~pl.col("s").is_in(["Oslo"]),
        pl.col("s") != "Oslo",
        pl.col("f") > 1,
        ~(pl.col("f") > 1),
        pl.col("f").eq(math.nan),
        pl.col("f").is_in([0.0]),
        pl.col("f").is_in([math.nan, 5.0]),
        pl.col("f").is_between(-0.0, 1.0),
        pl.col("f").is_null() | (pl.col("id") % 7 == 0),
        pl.sql_expr("s NOT IN ('Oslo', 'Paris') AND id BETWEEN 3 AND 30"),
        pl.col("id") == pl.col("id").max(),
    ],
    ids=str,
)
def test_a_filter_of_polars_means_what_it_means_in_its_own_frames(
    several: hudi.Table, predicate: pl.Expr
) -> None:
    expected = pl.DataFrame(SEVERAL).filter(predicate)["id"].to_list()
    for engine in ("in-memory", "streaming"):
        lazy = hudi.polars(several.path).filter(predicate).select("id")
        found = lazy.collect(engine=engine)
        assert sorted(found["id"].to_list()) == expected


def test_polars_reads_the_files_that_it_needs(several: hudi.Table) -> None:
    lazy = hudi.polars(several.path)
    names = [file.name for file in Path(several.path).glob("p[123]/*.parquet")]
    for partition in ("p1", "p2", "p3"):
        for file in (Path(several.path) / partition).glob("*.parquet"):
            file.unlink()
    assert len(names) == 3
    wanted = lazy.filter((pl.col("id") < 5) & (pl.col("f") >= 0)).select("s", "id")
    assert wanted.collect()["id"].to_list() == [0, 1, 2, 4]
    assert lazy.filter(pl.col("part").is_in(["p0", "p9"])).select(pl.len()).collect().item() == 10
    assert lazy.head(7).filter(pl.col("id") > 4).collect()["id"].to_list() == [5, 6]
    assert lazy.collect_schema().names() == several.to_arrow(filter=[("id", "<", 1)]).column_names
    with pytest.raises(DataFileError):
        lazy.filter(pl.col("f") > 4).collect()


def test_a_dataset_is_a_frame_of_polars_as_well(several: hudi.Table) -> None:
    first = several.timeline.completed_writes()[0]
    several.delete(SEVERAL.slice(0, 10))
    then = several.scan([("part", "<", "p2")], as_of=first).polars()
    assert then.select(pl.len()).collect().item() == 20
    assert then.filter(pl.col("f").is_nan()).collect()["id"].to_list() == [2, 7, 12, 17]
    assert several.scan().polars().select(pl.len()).collect().item() == 30


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        hudi.polars(tmp_path / "nothing")
