"""Rows of files to be ingested: formats, types, queries."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, PathNotFoundError, SchemaError, SourceFileError
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
    infers = {"hoodie.streamer.csv.inferSchema": "true"}
    run(path, landing, options={"hoodie.datasource.write.operation": "bulk_insert", **infers})
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
                rows, landing.folder / f"{name}.csv", pa_csv.WriteOptions(include_header=False)
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
        "hoodie.streamer.transformer.sql": "SELECT id, concat(upper(name), 'it''s') AS name "
        "FROM <SRC> WHERE n > 1"
    }
    landing.json("a.json", [{"id": 1, "name": "a", "n": 1}, {"id": 2, "name": "b", "n": 2}])
    run(path, landing, options=options)
    assert rows_of(path) == [{"id": 2, "name": "Bit's"}]


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
    assert rows_of(path, "id", "name") == [{"id": "2", "name": "b"}]


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


# --- what strings are -----------------------------------------------------------------------------

NARROW = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("name", pa.string())])


@pytest.mark.parametrize("table_format", ["native", "iceberg,delta"])
def test_columns_of_a_new_table_are_texts(path: str, landing: Landing, table_format: str) -> None:
    options = {"hoodie.table.format": table_format}
    landing.text("a.csv", "id,zip,v\n007,01234,1E5\n7,00042,10000000000000000001\n", 1)
    run(path, landing, options=options)
    expected = [
        {"id": "007", "zip": "01234", "v": "1E5"},
        {"id": "7", "zip": "00042", "v": "10000000000000000001"},
    ]
    assert rows_of(path) == expected
    landing.text("b.csv", "id,v\nK1A0B1,x\n", 2)
    run(path, landing, options=options)
    assert rows_of(path)[-1] == {"id": "K1A0B1", "zip": None, "v": "x"}


def test_texts_of_json_are_keys_of_their_own(path: str, landing: Landing) -> None:
    keys = ["2024-01-01", "2024-01-01 00:00", "2024-01-01T00:00:00"]
    landing.json("a.json", [{"id": key, "s": {"at": [key]}} for key in keys])
    run(path, landing)
    assert rows_of(path) == [{"id": key, "s": {"at": [key]}} for key in sorted(keys)]


def test_types_are_inferred_where_an_option_asks(path: str, landing: Landing) -> None:
    options = {"hoodie.deltastreamer.csv.inferSchema": "true"}
    landing.text("a.csv", "id,n,f,zip,day,none\n1,1,1.5,01234,2026-01-02,\n", 1)
    landing.text("b.csv", "id,n,f,zip,day,none\n007,2,2,4,,\n", 2)
    run(path, landing, options=options)
    assert {one.name: one.type for one in hudi.Table.open(path).schema} == {
        "id": pa.string(),  # 007 is no key 7
        "n": pa.int64(),
        "f": pa.float64(),
        "zip": pa.string(),
        "day": pa.date32(),
    }
    assert [row["id"] for row in rows_of(path)] == ["007", "1"]


def test_strings_of_parquet_are_not_inferred(path: str, landing: Landing) -> None:
    options = {"hoodie.streamer.csv.inferSchema": "true"}
    landing.parquet("LOAD1.parquet", pa.table({"id": ["1"], "code": ["7"]}))
    run(path, landing, options=options, source_format="dms")
    assert rows_of(path, "id", "code") == [{"id": "1", "code": "7"}]


def test_types_are_those_of_a_schema(path: str, landing: Landing, tmp_path: Path) -> None:
    """Also of columns that the table does not have yet."""
    schema = tmp_path / "columns.avsc"
    options = {"hoodie.streamer.schemaprovider.source.schema.file": str(schema)}
    fields = [{"name": "id", "type": "long"}, {"name": "n", "type": ["null", "int"]}]
    schema.write_text(json.dumps({"type": "record", "name": "rows", "fields": fields}))
    landing.text("a.csv", "id,n,name\n1,007,a\n", 1)
    run(path, landing, options=options)
    fields.append({"name": "f", "type": ["null", "double"]})
    schema.write_text(json.dumps({"type": "record", "name": "rows", "fields": fields}))
    landing.text("b.csv", "id,f\n2,1.5\n", 2)
    run(path, landing, options=options)
    assert rows_of(path) == [
        {"id": 1, "n": 7, "name": "a", "f": None},
        {"id": 2, "n": None, "name": None, "f": 1.5},
    ]
    schema.write_text("{}")
    landing.text("c.csv", "id\n3\n", 3)
    with pytest.raises(SchemaError):
        run(path, landing, options=options)


@pytest.mark.parametrize(
    ("file", "text", "line", "column", "value"),
    [
        ("b.csv", 'id,name\n2,"b\nb"\n007,c\n', 4, "id", "007"),
        ("b.csv", "id,n\n2,1\n3,x\n", 3, "n", "x"),
        ("b.csv", "id,n\n2,1\n3,99999999999\n", 3, "n", "99999999999"),
        ("b.csv", "id,name\n2,caf\xe9\n", 2, None, None),
        ("b.csv", "id,name\n2\n", 2, None, None),
        ("b.json", '{"id": 2}\n{"id": "007"}', 2, "id", "007"),
        ("b.json", '{"id": 2}\n{"id": 3, "name": 7}', 2, "name", "7"),
        ("20260101.csv", "I,2,1,b\nU,007,1,c\n", 2, "id", "007"),
        ("20260101.csv", "I,2,1,b\nX,1,1,c\n", 2, "Op", "X"),
        ("20260101.csv", "I,2,1,b\nd,1,1,c\n", 2, "Op", "d"),
    ],
)
def test_a_file_that_contradicts_the_table_is_named_by_line(
    path: str, landing: Landing, file: str, text: str, line: int, column: str, value: str
) -> None:
    table = hudi.Table.create(path, NARROW, record_key="id")
    table.insert(pa.Table.from_pylist([{"id": 1, "n": 1, "name": "a"}], NARROW))
    before = rows_of(path)
    (landing.folder / file).write_bytes(text.encode("latin-1"))
    given = {"source_format": "dms"} if file.startswith("2") else {}
    with pytest.raises(SourceFileError, match=rf"^{file} .*: line {line} ") as refused:
        run(path, landing, **given)
    found = refused.value
    assert (found.path, found.line, found.column, found.value) == (file, line, column, value)
    assert rows_of(path) == before


def test_a_change_that_dms_does_not_make_is_refused(path: str, landing: Landing) -> None:
    landing.parquet("20260101.parquet", pa.table({"Op": ["I", None], "id": [1, 2]}))
    with pytest.raises(SourceFileError, match=r"row 2 has None in the column Op, .* I, U, D"):
        run(path, landing, source_format="dms")
    assert not Path(path).exists()


def test_csv_in_another_encoding(path: str, landing: Landing) -> None:
    (landing.folder / "a.csv").write_bytes("id,name\n1,café\n".encode("windows-1252"))
    with pytest.raises(SourceFileError, match=r"csv\.encoding"):
        run(path, landing)
    run(path, landing, options={"hoodie.streamer.csv.encoding": "windows-1252"})
    assert rows_of(path) == [{"id": "1", "name": "café"}]


def test_what_pandas_counts_rows_by_is_no_column(path: str, landing: Landing) -> None:
    frame = pd.DataFrame({"id": [1, 2]})
    frame[frame.id > 1].to_parquet(landing.folder / "a.parquet")
    run(path, landing)
    assert rows_of(path) == [{"id": 2}]


def test_files_of_one_commit_do_not_change_each_others_numbers(path: str, landing: Landing) -> None:
    landing.parquet("a.parquet", pa.table({"id": [(1 << 53) + 1, 1 << 53]}), 1)
    landing.parquet("b.parquet", pa.table({"id": [1.5]}), 2)
    with pytest.raises(SchemaError, match=r"Numbers in a\.parquet would change"):
        run(path, landing)
    landing.parquet("b.parquet", pa.table({"id": ["x"]}), 2)
    with pytest.raises(SchemaError, match=r"id has the type string in b\.parquet, and int64"):
        run(path, landing)
    assert not Path(path).exists()


# --- what rows lack -------------------------------------------------------------------------------

KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


def test_rows_of_files_keep_what_they_lack(path: str, landing: Landing) -> None:
    landing.json("a.json", [{"id": 1, "a": "1", "b": "1"}, {"id": 2, "a": "2", "b": "2"}], 1)
    run(path, landing)
    landing.json("b.json", [{"id": 1, "a": "x"}, {"id": 2, "b": "y"}, {"id": 1, "c": 3}], 2)
    landing.json("c.json", [{"id": 2, "c": 4}], 3)
    run(path, landing, options=KEEP)
    expected = [{"id": 1, "a": "x", "b": "1", "c": 3}, {"id": 2, "a": "2", "b": "y", "c": 4}]
    assert rows_of(path) == expected
    landing.parquet("d.parquet", pa.table({"id": [1], "a": ["z"]}), 4)
    landing.parquet("e.parquet", pa.table({"id": [2], "b": ["z"]}), 5)
    run(path, landing, options=KEEP, source_format="parquet")
    expected[0]["a"] = expected[1]["b"] = "z"
    assert rows_of(path) == expected
    sql = {"hoodie.streamer.transformer.sql": "SELECT * FROM <SRC>"}
    landing.json("f.json", [{"id": 1, "a": "x"}, {"id": 2}], 6)
    with pytest.raises(SchemaError, match=r"Line 2 of f\.json lacks the column 'a', and .* query"):
        run(path, landing, options={**KEEP, **sql}, source_format="json")


def test_rows_of_files_that_lack_columns_are_named(path: str, landing: Landing) -> None:
    strict = {"hoodie.write.set.null.for.missing.columns": "false"}
    landing.json("a.json", [{"id": 1, "s": {"a": 1, "b": 1}, "v": 1}], 1)
    run(path, landing, options=strict)
    landing.json("b.json", [{"id": 2, "s": {"a": 1, "b": 1}, "v": 1}], 2)
    landing.json("c.json", [{"id": 3, "s": {"a": 1, "b": 1}, "v": 1}, {"id": 4, "v": 1}], 3)
    with pytest.raises(SchemaError, match=r"^Line 2 of c\.json lacks the column 's'"):
        run(path, landing, options=strict)
    landing.json("c.json", [{"id": 3, "s": {"a": 1}, "v": 1}], 3)
    with pytest.raises(SchemaError, match=r"^Line 1 of c\.json lacks the column 's\.b'"):
        run(path, landing, options=strict)
    assert [row["id"] for row in rows_of(path)] == [1]
