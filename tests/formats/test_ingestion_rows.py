"""Rows of files to be ingested: formats, types, queries."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, PathNotFoundError
from tests.formats.landing import KEYED, Landing, rows_of, run
from tests.moto_s3 import S3Service


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def test_parquet(path: str, landing: Landing) -> None:
    landing.parquet("a.parquet", pa.table({"id": [1], "n": pa.array([1], pa.int32())}), 1)
    landing.parquet("b.parquet", pa.table({"id": [2], "more": ["x"]}), 2)
    assert run(path, landing).files == 2
    landing.parquet("c.parquet", pa.table({"id": [3], "n": [2**40], "added": [True]}), 3)
    run(path, landing)
    assert rows_of(path) == [
        {"id": 1, "n": 1, "more": None, "added": None},
        {"id": 2, "n": None, "more": "x", "added": None},
        {"id": 3, "n": 2**40, "more": None, "added": True},
    ]


def test_csv_takes_the_types_of_the_table(path: str, landing: Landing) -> None:
    landing.text("a.csv", "id,zip,price\n1,01234,1\n2,,2.5\n", 1)
    schema = pa.schema([("id", pa.int64()), ("zip", pa.string()), ("price", pa.decimal128(9, 2))])
    run(path, landing, schema=schema)
    landing.text("b.csv", "price,id,zip\n3,3,00001\n", 2)
    run(path, landing)
    assert [row["zip"] for row in rows_of(path)] == ["01234", None, "00001"]
    assert hudi.Table.open(path).schema.field("price").type == pa.decimal128(9, 2)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_types_are_those_of_all_rows(path: str, landing: Landing, kind: str) -> None:
    """A number that is none of whole ones comes behind the first megabytes."""
    count = 200_000
    prices = ["1"] * (count - 1) + ["2.5"]
    if kind == "csv":
        lines = ["id,price", *(f"{n},{price}" for n, price in enumerate(prices))]
    else:
        lines = [f'{{"id": {n}, "price": {price}}}' for n, price in enumerate(prices)]
    landing.text(f"a.{kind}", "\n".join(lines) + "\n", 1)
    run(path, landing, options={"hoodie.datasource.write.operation": "bulk_insert"})
    assert hudi.Table.open(path).schema.field("price").type == pa.float64()
    assert hudi.Table.open(path).count([("price", "=", 2.5)]) == 1


def test_csv_without_names(path: str, landing: Landing) -> None:
    options = {"hoodie.deltastreamer.csv.header": "false", "hoodie.streamer.csv.sep": "\\t"}
    landing.text("a.csv", '1\t"a\tb"\n', 1)
    with pytest.raises(InvalidOptionError, match=r"without a line of names.* `--schema FILE`"):
        run(path, landing, options=options)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    run(path, landing, options=options, schema=schema)
    landing.text("b.csv", "2\tc\n", 2)
    run(path, landing, options=options)
    assert rows_of(path) == [{"id": 1, "name": "a\tb"}, {"id": 2, "name": "c"}]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_changes_of_dms(path: str, landing: Landing, kind: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])

    def put(name: str, rows: pa.Table, seconds: int) -> None:
        if kind == "parquet":
            landing.parquet(f"{name}.parquet", rows, seconds)
        else:
            pa_csv.write_csv(
                rows,
                landing.folder / f"{name}.csv",
                pa_csv.WriteOptions(include_header=False),
            )

    put("LOAD00000001", pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), 9)
    put(
        "20260101-100000",
        pa.table({"Op": ["U", "I", "U"], "id": [1, 4, 4], "name": ["A", "d", "D"]}),
        1,
    )
    put("20260101-110000", pa.table({"Op": ["D", "U"], "id": [2, 1], "name": ["b", "AA"]}), 2)
    done = run(path, landing, source_format="dms", schema=schema)
    assert done.files == 3
    assert rows_of(path, "id", "name") == [
        {"id": 1, "name": "AA"},
        {"id": 3, "name": "c"},
        {"id": 4, "name": "D"},
    ]
    put("20260102-100000", pa.table({"Op": ["D"], "id": [4], "name": ["D"]}), 3)
    assert run(path, landing, source_format="dms").commits[0].deleted == 1


def test_a_query_makes_the_rows(path: str, landing: Landing) -> None:
    options = {
        "hoodie.streamer.transformer.sql": "SELECT id, upper(name) AS name FROM <SRC> WHERE n > 1"
    }
    landing.json("a.json", [{"id": 1, "name": "a", "n": 1}, {"id": 2, "name": "b", "n": 2}])
    run(path, landing, options=options)
    assert rows_of(path) == [{"id": 2, "name": "B"}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1", "<SRC>"),
        ("DROP TABLE <SRC>", "not one query"),
        ("SELECT * FROM <SRC>; SELECT 1", "not one query"),
        ("SELEC <SRC> FROM", "transformer.sql"),
    ],
)
def test_what_is_no_query_is_refused(path: str, landing: Landing, text: str, reason: str) -> None:
    landing.json("a.json", [{"id": 1}])
    with pytest.raises(InvalidOptionError, match=reason):
        run(path, landing, options={"hoodie.streamer.transformer.sql": text})
    assert not Path(path).exists()


def test_rows_without_a_file_of_rows(path: str, landing: Landing) -> None:
    """Empty files are read, and no run reads them again."""
    landing.json("a.json", [{"id": 1}], 1)
    run(path, landing)
    landing.text("b.json", "", 2)
    assert run(path, landing).files == 1
    assert run(path, landing).files == 0


def test_of_empty_files_no_table_is_made(path: str, landing: Landing) -> None:
    landing.text("a.json", "", 1)
    assert run(path, landing).files == 0
    assert not Path(path).exists()
    landing.json("b.json", [{"id": 1}], 2)
    assert run(path, landing).files == 2


def test_files_on_s3(path: str, s3: S3Service) -> None:
    folder = "s3://ingested/landing"
    s3.filesystem.create_dir("ingested")
    options = {**KEYED, **s3.given}

    def put(name: str, rows: bytes) -> None:
        with s3.filesystem.open_output_stream(f"ingested/landing/{name}", None) as file:
            file.write(rows)

    with pytest.raises(PathNotFoundError):
        hudi.ingest(path, folder, options=options)
    put("a.json", b'{"id": 1}')
    put("day=2/b.json.gz", gzip.compress(b'{"id": 2}'))
    assert hudi.ingest(path, folder, options=options).files == 2
    put("c.json", b'{"id": 3}')
    assert hudi.ingest(path, folder, options=options).files == 1
    assert [row["id"] for row in rows_of(path)] == [1, 2, 3]


def test_names_of_csv_are_those_of_the_call(path: str, landing: Landing) -> None:
    options = {"hoodie.streamer.csv.header": "false"}
    columns = [("id", pa.int64()), ("name", pa.string()), ("city", pa.string())]
    hudi.Table.create(path, pa.schema([*columns, ("extra", pa.string())]), record_key="id")
    landing.text("a.csv", "1,Berlin,Ann\n", 1)
    order = pa.schema([columns[0], columns[2], columns[1]])
    run(path, landing, options=options, schema=order)
    assert rows_of(path) == [{"id": 1, "name": "Ann", "city": "Berlin", "extra": None}]


def test_the_first_load_of_dms_may_have_the_changes_too(path: str, landing: Landing) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    landing.text("LOAD00000001.csv", "I,1,a\nI,2,b\n", 1)
    landing.text("20260101-100000.csv", "D,1,a\n", 2)
    run(path, landing, source_format="dms", schema=schema)
    assert rows_of(path, "id", "name") == [{"id": 2, "name": "b"}]


def test_files_of_dms_with_names(path: str, landing: Landing) -> None:
    options = {"hoodie.ingest.dms.csv.header": "true"}
    landing.text("LOAD00000001.csv", "id,name\n1,a\n2,b\n", 1)
    landing.text("20260101-100000.csv", "Op,id,name\nD,1,a\n", 2)
    run(path, landing, source_format="dms", options=options)
    assert rows_of(path, "id", "name") == [{"id": 2, "name": "b"}]


def test_times_of_spark_keep_their_years(path: str, landing: Landing) -> None:
    """INT96 as nanoseconds ends in 2262."""
    times = pa.array([253402214400000000], pa.timestamp("us"))
    rows = pa.table({"id": [1], "at": times})
    pq.write_table(rows, landing.folder / "a.parquet", use_deprecated_int96_timestamps=True)
    run(path, landing)
    assert rows_of(path)[0]["at"].year == 9999


def test_parquet_under_any_name(path: str, landing: Landing) -> None:
    landing.parquet("part-0001", pa.table({"id": [1]}))
    assert run(path, landing, source_format="parquet").files == 1


def test_columns_without_any_value_wait_for_one(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1, "x": None, "tags": []}], 1)
    run(path, landing)
    assert hudi.Table.open(path).schema.names == ["id"]
    landing.json("b.json", [{"id": 2, "x": 5, "tags": ["a"]}], 2)
    run(path, landing)
    assert rows_of(path)[1] == {"id": 2, "x": 5, "tags": ["a"]}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_texts_become_what_the_columns_are(path: str, landing: Landing, kind: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("n", pa.int32()),
            ("name", pa.string()),
        ]
    )
    hudi.Table.create(path, schema, record_key="id")
    day, time = "2026-01-02", "2026-01-02 03:04:05"
    if kind == "csv":
        landing.text("a.csv", f'id,day,at,local,n,name\n"1",{day},{time},{time},"",""\n', 1)
    else:
        row = {"id": 1, "day": day, "at": f"{time}Z", "local": time, "n": None, "name": ""}
        landing.json("a.json", [row], 1)
    run(path, landing)
    [found] = rows_of(path)
    assert (str(found["day"]), found["n"], found["name"]) == (day, None, "")
    assert str(found["at"]) == f"{time}+00:00"
    assert str(found["local"]) == time


def test_an_emptied_prefix_is_no_error(path: str, s3: S3Service) -> None:
    folder = "s3://emptied/landing"
    s3.filesystem.create_dir("emptied")
    with s3.filesystem.open_output_stream("emptied/landing/a.json", None) as file:
        file.write(b'{"id": 1}')
    options = {**KEYED, **s3.given}
    assert hudi.ingest(path, folder, options=options).files == 1
    s3.filesystem.delete_file("emptied/landing/a.json")
    assert hudi.ingest(path, folder, options=options).files == 0
