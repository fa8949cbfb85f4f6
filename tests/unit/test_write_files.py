"""Files that writes make: what other readers see in them, and what they take over."""

from __future__ import annotations

import datetime as dt
import gc
import json
import math
import resource
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.base_file.key_bounds import BloomSizing
from hudi_core.base_file.writer import BaseFileOptions, BaseFileResult, BaseFileWriter
from hudi_core.errors import DataFileError, StorageError
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.model.stats import ColumnStats
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY, TableSchema
from hudi_core.services.opening import open_table
from tests.tables import base_files, new_table

LOCAL = pafs.LocalFileSystem()
TYPED_COLUMNS = TableSchema.create(
    pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("name", pa.string()),
            ("price", pa.decimal128(38, 10)),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("time", pa.time64("us")),
            ("day", pa.date32()),
            ("x", pa.float64()),
            ("f", pa.float32()),
            ("flag", pa.bool_()),
            ("raw", pa.binary()),
            ("tags", pa.list_(pa.string())),
            ("props", pa.map_(pa.string(), pa.struct([("n", pa.float64())]))),
            ("address", pa.struct([("city", pa.string())])),
        ]
    )
)
FULL: list[dict[str, Any]] = [
    {
        "id": 2,
        "name": "b",
        "price": Decimal("-1234567890123456789012345678.0123456789"),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        "local": dt.datetime(2026, 1, 31),  # noqa: DTZ001
        "time": dt.time(1, 2, 3, 4),
        "day": dt.date(1960, 1, 1),
        "x": math.nan,
        "f": math.inf,
        "flag": True,
        "raw": b"\xff",
        "tags": ["z", None],
        "props": [("k", {"n": math.nan}), ("a", None)],
        "address": {"city": "Köln"},
    },
    {"id": 1, "x": -0.5, "f": math.nan, "tags": [], "address": {"city": None}, "flag": False},
    {
        "id": 3,
        "name": "ä",
        "price": Decimal("0.5"),
        "x": 1.5,
        "f": -1.0,
        "raw": b"",
        "tags": ["a"],
        "props": [("k", {"n": 2.0})],
    },
]


def with_meta(rows: list[dict[str, Any]], schema: TableSchema = TYPED_COLUMNS) -> pa.RecordBatch:
    meta = {
        "_hoodie_commit_time": "20260131000000000",
        "_hoodie_partition_path": "",
        "_hoodie_file_name": "f",
    }
    full = [
        {
            **meta,
            "_hoodie_record_key": str(row.get("id", n)),
            "_hoodie_commit_seqno": f"s_{n}",
            **row,
        }
        for n, row in enumerate(rows)
    ]
    return pa.RecordBatch.from_pylist(full, schema.with_meta())


def write(
    path: Path,
    batches: list[pa.RecordBatch],
    schema: TableSchema = TYPED_COLUMNS,
    options: BaseFileOptions | None = None,
) -> BaseFileResult:
    writer = BaseFileWriter(LOCAL, str(path), schema, "t", options)
    for batch in batches:
        writer.write(batch)
    return writer.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder" / "file.parquet"


def footers(path: Path) -> dict[str, str]:
    found = pq.read_metadata(path).metadata or {}
    return {key.decode(): value.decode() for key, value in found.items()}


def query(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return list(connection.execute(sql).fetchall())


# --- the file
def test_three_readers_see_the_rows(path: Path) -> None:
    result = write(path, [with_meta(FULL[:2]), with_meta(FULL[2:])])
    assert (result.rows, result.size) == (3, path.stat().st_size)
    table = pq.read_table(path)
    assert table.schema.equals(TYPED_COLUMNS.with_meta())
    assert repr(table.select(TYPED_COLUMNS.names).to_pylist()) == repr(
        pa.Table.from_pylist(FULL, TYPED_COLUMNS.arrow).to_pylist()
    )
    assert query(f"select count(*), min(price) from '{path}'") == [(3, FULL[0]["price"])]
    frame = pl.read_parquet(path)
    assert frame.columns == [*META_COLUMNS, *TYPED_COLUMNS.names]
    assert frame["tags"].to_list() == [["z", None], [], ["a"]]


def test_ids_are_in_the_file_at_every_depth(path: Path) -> None:
    write(path, [with_meta(FULL)])
    seen = query(f"select name, field_id from parquet_schema('{path}') where field_id is not null")
    ids = TYPED_COLUMNS.field_ids()
    assert seen == [(name.rsplit(".", 1)[-1], number) for name, number in ids.items()]
    read = pq.read_schema(path)
    assert read.field("tags").type.value_field.metadata[b"PARQUET:field_id"] == b"18"
    assert ids["tags.list.element"] == 18


def test_types_are_those_that_hudi_writes(path: Path) -> None:
    write(path, [with_meta(FULL)])
    text = str(pq.ParquetFile(path).schema)
    assert "required int64 field_id=6 id;" in text
    assert "optional binary field_id=1 _hoodie_commit_time (String);" in text
    assert "int64 field_id=9 at (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in text
    assert "fixed_len_byte_array(16) field_id=8 price (Decimal(precision=38, scale=10));" in text
    assert "repeated group field_id=-1 list {" in text


def test_footers(path: Path) -> None:
    keys = ["b", "a", "z", "aa"]
    rows = [{"id": n} for n in range(4)]
    batch = with_meta(rows).set_column(2, "_hoodie_record_key", pa.array(keys))
    result = write(path, [batch])
    assert (result.min_key, result.max_key) == ("a", "z")
    found = footers(path)
    assert sorted(found) == [
        "hoodie_bloom_filter_type_code",
        "hoodie_max_record_key",
        "hoodie_min_record_key",
        "hudi.bounds",
        "org.apache.hudi.bloomfilter",
        "parquet.avro.schema",
        "writer.model.name",
    ]
    assert found["hoodie_min_record_key"] == "a"
    assert found["hoodie_max_record_key"] == "z"
    assert found["hoodie_bloom_filter_type_code"] == "DYNAMIC_V0"
    assert found["writer.model.name"] == "avro"
    assert TableSchema.from_avro(found["parquet.avro.schema"]) == TYPED_COLUMNS
    bloom = DynamicBloom.parse(found["org.apache.hudi.bloomfilter"], str(path))
    assert bloom.entries == 4
    assert bloom.might_contain(pa.array([*keys, "c"])).to_pylist() == [True] * 4 + [False]


def test_the_bloom_filter_has_the_size_asked_for(path: Path) -> None:
    sizing = BloomSizing(fpp=0.01, max_entries=4, entries=2)
    write(path, [with_meta([{"id": n} for n in range(5)])], options=BaseFileOptions(bloom=sizing))
    expected = DynamicBloom.build(pa.array([str(n) for n in range(5)]), 2, 0.01, 4)
    assert footers(path)["org.apache.hudi.bloomfilter"] == expected.to_base64()
    write(path, [with_meta(FULL)], options=BaseFileOptions(bloom=None))
    assert "org.apache.hudi.bloomfilter" not in footers(path)
    assert footers(path)["hoodie_max_record_key"] == "3"


def test_keys_are_ordered_as_by_java(path: Path) -> None:
    keys = ["\uff5e", "😀", "a"]  # by UTF-16, the emoji's surrogates come before U+FF5E
    for batches in ([keys], [keys[:1], keys[1:]], [[key] for key in reversed(keys)]):
        result = write(
            path,
            [
                with_meta([{"id": n} for n in range(len(part))]).set_column(
                    2, "_hoodie_record_key", pa.array(part)
                )
                for part in batches
            ],
        )
        assert (result.min_key, result.max_key) == ("a", "\uff5e")
        # statistics go by bytes, as parquet, Iceberg and Delta do
        assert result.stats["_hoodie_record_key"].max_value == "😀"


def test_a_file_without_meta_columns(path: Path) -> None:
    writer = BaseFileWriter(LOCAL, str(path), TYPED_COLUMNS, "t", meta_columns=())
    writer.write(pa.Table.from_pylist(FULL, TYPED_COLUMNS.arrow))
    result = writer.close()
    assert (result.rows, result.min_key) == (3, None)
    assert sorted(footers(path)) == ["hudi.bounds", "parquet.avro.schema", "writer.model.name"]
    assert pq.read_schema(path).names == TYPED_COLUMNS.names


def test_a_file_without_rows(path: Path) -> None:
    result = write(path, [])
    assert (result.rows, result.min_key, result.max_key) == (0, None, None)
    assert result.stats["id"] == ColumnStats(None, None, 0, 0, 0, 0, 0)
    assert pq.read_table(path).num_rows == 0
    assert "hoodie_min_record_key" not in footers(path)
    assert "org.apache.hudi.bloomfilter" in footers(path)


@pytest.mark.parametrize(
    ("codec", "level", "name"),
    [
        ("zstd", 1, "ZSTD"),
        ("gzip", None, "GZIP"),
        ("lz4", None, "LZ4"),
        ("none", None, "UNCOMPRESSED"),
    ],
)
def test_codecs(path: Path, codec: str, level: int | None, name: str) -> None:
    write(path, [with_meta(FULL)], options=BaseFileOptions(codec=codec, level=level))
    assert pq.read_metadata(path).row_group(0).column(0).compression == name


def test_dictionaries_are_for_columns_that_repeat(path: Path) -> None:
    rows = [{"id": n, "name": f"n{n % 7}", "x": n / 3, "tags": ["t"]} for n in range(5_000)]
    write(path, [with_meta(rows)])
    encoded = encoded_columns(path)
    assert {"_hoodie_commit_time", "_hoodie_file_name", "name", "tags.list.element"} <= encoded
    assert not {"id", "x", "_hoodie_record_key", "_hoodie_commit_seqno", "price"} & encoded
    write(path, [with_meta(rows)], options=BaseFileOptions(dictionary=False))
    assert not encoded_columns(path)
    # of few rows in all, just what comes encoded is
    few = with_meta(rows[:3_000])
    at = few.schema.get_field_index("name")
    write(path, [few.set_column(at, "name", few.column(at).dictionary_encode())])
    assert encoded_columns(path) == {"name"}
    write(path, [few], options=BaseFileOptions(row_group_bytes=few.nbytes // 2))
    assert "name" in encoded_columns(path)


def encoded_columns(path: Path) -> set[str]:
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    return {c.path_in_schema for c in columns if "RLE_DICTIONARY" in c.encodings}


def test_row_groups_have_the_size_asked_for(path: Path) -> None:
    narrow = TableSchema.create(pa.schema([("id", pa.int64())]))
    batch = with_meta([{"id": n} for n in range(10_000)], narrow)
    options = BaseFileOptions(row_group_bytes=batch.nbytes // 4)
    result = write(path, [batch, batch.slice(0, 10)], narrow, options)
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert sum(sizes) == result.rows == 10_010
    assert 4 <= len(sizes) <= 6
    assert max(sizes) <= 2_600
    stats = result.stats["id"]
    assert (stats.min_value, stats.max_value, stats.value_count) == (0, 9_999, 10_010)


def test_bytes_written_grow_with_row_groups(path: Path) -> None:
    batch = with_meta(FULL)
    writer = BaseFileWriter(
        LOCAL, str(path), TYPED_COLUMNS, "t", BaseFileOptions(row_group_bytes=batch.nbytes)
    )
    assert writer.bytes_written == 0
    writer.write(batch)
    writer.write(batch)
    before = writer.bytes_written
    assert 0 < before < writer.close().size


# --- failure
def test_an_aborted_file_is_gone(path: Path) -> None:
    unbegun = BaseFileWriter(LOCAL, str(path), TYPED_COLUMNS, "t")
    unbegun.write(with_meta(FULL))
    unbegun.abort()
    assert not path.parent.exists()
    writer = BaseFileWriter(
        LOCAL, str(path), TYPED_COLUMNS, "t", BaseFileOptions(row_group_bytes=1)
    )
    writer.write(with_meta(FULL))
    assert path.exists()
    writer.abort()
    assert not path.exists()
    writer.abort()


def test_a_file_that_cannot_be_deleted_hides_no_other_error(path: Path) -> None:
    writer = BaseFileWriter(
        LOCAL, str(path), TYPED_COLUMNS, "t", BaseFileOptions(row_group_bytes=1)
    )
    writer.write(with_meta(FULL))
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        LOCAL.delete_file(str(path))
    writer.abort()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StorageError, match=r"file/x\.parquet cannot be written"):
        write(blocked / "x.parquet", [with_meta(FULL)])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("room", [0, 2, 100])
def test_a_full_disk_is_named_wherever_it_is_met(path: Path, room: int) -> None:
    writer = BaseFileWriter(LOCAL, str(path), TYPED_COLUMNS, "t")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        writer.write(with_meta(FULL))  # it is held
        with pytest.raises(StorageError, match="cannot be written"):
            writer.close()
        writer.abort()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    del writer
    gc.collect()
    assert not path.exists()


def test_rows_of_another_schema_are_not_written(path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        write(path, [with_meta(FULL).drop_columns(["name"])])


# --- statistics
def test_statistics_of_every_type(path: Path) -> None:
    stats = write(path, [with_meta(FULL)]).stats
    assert list(stats) == [
        *META_COLUMNS,
        *["id", "name", "price", "at", "local", "time", "day", "x", "f", "flag", "raw"],
        "tags.list.element",
        "props.key_value.key",
        "props.key_value.value.n",
        "address.city",
    ]

    def facts(path: str) -> tuple[Any, ...]:
        column = stats[path]
        return (column.min_value, column.max_value, column.null_count, column.nan_count)

    assert facts("id") == (1, 3, 0, 0)
    assert facts("name") == ("b", "ä", 1, 0)
    assert facts("price") == (FULL[0]["price"], Decimal("0.5"), 1, 0)
    assert facts("at") == (-1, -1, 2, 0)
    assert facts("local") == (1_769_817_600_000_000, 1_769_817_600_000_000, 2, 0)
    assert facts("time") == (3_723_000_004, 3_723_000_004, 2, 0)
    assert facts("day") == (-3653, -3653, 2, 0)
    assert facts("x") == (-0.5, 1.5, 0, 1)
    assert facts("f") == (-1.0, math.inf, 0, 1)
    assert facts("flag") == (False, True, 1, 0)
    assert facts("raw") == (b"", b"\xff", 1, 0)
    assert facts("tags.list.element") == ("a", "z", 2, 0)
    assert facts("props.key_value.key") == ("a", "k", 1, 0)
    assert facts("props.key_value.value.n") == (2.0, 2.0, 2, 1)
    assert facts("address.city") == ("Köln", "Köln", 2, 0)
    assert stats["tags.list.element"].value_count == 4
    assert isinstance(stats["flag"].min_value, bool)
    group = pq.read_metadata(path).row_group(0)
    sizes = [group.column(n).total_compressed_size for n in range(group.num_columns)]
    assert [column.compressed_size for column in stats.values()] == sizes


NAN_LAST = [*({"id": n, "x": float(n), "f": 0.5} for n in range(4)), {"id": 4, "x": math.nan}]


@pytest.mark.parametrize("group_bytes", [1, 10**6], ids=["row groups of one row", "one row group"])
def test_a_column_with_nan_has_no_bounds_in_the_footer(path: Path, group_bytes: int) -> None:
    """It may come with the last row; its null counts stay, and so do bounds of other columns."""
    written = write(
        path,
        [with_meta([row]) for row in NAN_LAST],
        options=BaseFileOptions(row_group_bytes=group_bytes),
    )
    assert path.stat().st_size == written.size
    footer = pq.read_metadata(path)
    assert footer.num_row_groups == (1 if group_bytes > 1 else 5)
    bounded, nulls = set(), Counter[str]()
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            nulls[chunk.path_in_schema] += chunk.statistics.null_count
            if chunk.statistics.has_min_max:
                bounded.add(chunk.path_in_schema)
    assert {"id", "f", "_hoodie_record_key"} <= bounded
    assert "x" not in bounded
    assert (nulls["x"], nulls["f"], nulls["id"]) == (0, 1, 0)
    stats = written.stats["x"]
    assert (stats.min_value, stats.max_value, stats.nan_count) == (0.0, 3.0, 1)
    assert stats.has_unbounded
    # what it says beside is as in any other file
    bloom = DynamicBloom.parse(footers(path)["org.apache.hudi.bloomfilter"], str(path))
    assert bloom.entries == 5
    assert footers(path)["hoodie_max_record_key"] == "4"


def test_engines_to_which_nan_is_the_greatest_number_find_it(path: Path) -> None:
    write(path, [with_meta(NAN_LAST)])
    for condition in ("x > 4", "x = 'nan'::double", "x >= 'nan'::double", "isnan(x)"):
        found = query(f"select id from '{path}' where {condition}")
        assert found == [(4,)], condition
    assert query(f"select id from '{path}' where x > 2") == [(3,), (4,)]
    frame = pl.scan_parquet(path)
    assert frame.filter(pl.col("x") > 4).collect()["id"].to_list() == [4]


def test_encoded_texts_take_the_memory_of_their_dictionary(path: Path) -> None:
    texts = pa.array([letter * 5000 for letter in "amz"])
    rows = (2 << 30) // 5000 + 1  # as texts they would be more than Arrow holds in one array
    numbers = pa.array(np.arange(rows, dtype=np.int32) % 2 + 1)
    schema = TableSchema.create(pa.schema([("note", pa.string())]))
    writer = BaseFileWriter(LOCAL, str(path), schema, "t", meta_columns=())
    writer.write(pa.table({"note": pa.DictionaryArray.from_arrays(numbers, texts)}))
    found = writer.close().stats["note"]
    assert (found.min_value, found.max_value) == ("m" * 5000, "z" * 5000)


def test_statistics_leave_out_what_null_parents_hide(path: Path) -> None:
    schema = TableSchema.create(
        pa.schema(
            [
                ("s", pa.struct([("x", pa.float64())])),
                ("l", pa.list_(pa.float64())),
                ("m", pa.map_(pa.string(), pa.float64())),
            ]
        )
    )
    nan = math.nan
    mask = pa.array([False, True])
    offsets = pa.array([0, 1, 2], pa.int32())
    hidden = {
        "s": pa.StructArray.from_arrays([pa.array([1.0, nan])], names=["x"], mask=mask),
        "l": pa.ListArray.from_arrays(offsets, pa.array([1.0, nan]), mask=mask),
        "m": pa.MapArray.from_arrays(
            offsets, pa.array(["a", "b"]), pa.array([1.0, nan]), mask=mask
        ),
    }
    rows = schema.cast_batch(pa.record_batch(hidden))
    writer = BaseFileWriter(LOCAL, str(path), schema, "t", meta_columns=())
    writer.write(rows)
    stats = writer.close().stats
    assert {name: column.nan_count for name, column in stats.items()} == {
        "s.x": 0,
        "l.list.element": 0,
        "m.key_value.key": 0,
        "m.key_value.value": 0,
    }
    assert stats["m.key_value.key"].max_value == "a"
    assert pq.read_table(path).to_pylist() == [
        {"s": {"x": 1.0}, "l": [1.0], "m": [("a", 1.0)]},
        {"s": None, "l": None, "m": None},
    ]


def test_milliseconds_become_microseconds(path: Path) -> None:
    fields = [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
    ]
    schema = TableSchema.from_avro(json.dumps({"type": "record", "name": "r", "fields": fields}))
    assert schema.arrow.field("at").type == pa.timestamp("ms", "UTC")
    writer = BaseFileWriter(LOCAL, str(path), schema, "t", meta_columns=())
    moment = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    writer.write(pa.Table.from_pylist([{"at": moment, "t": dt.time(0, 0, 2)}], schema.arrow))
    stats = writer.close().stats
    assert stats["at"].min_value == 1_000_000
    assert stats["t"].max_value == 2_000_000


# --- columns that stay dictionary encoded from one version of a file to the next
ENCODED_SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string())])
CITIES = ("rome", "oslo", "bern", "lima")
ARROW, OTHER = b"parquet-cpp-arrow", b"some-other-writer"


def dictionary(values: tuple[str, ...]) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value.encode() for value in values)


def forged(path: Path, cities: tuple[str, ...], writer: bytes) -> tuple[hudi.Table, Path]:
    """Return a table whose only file has another dictionary of cities, and that file."""
    table = new_table(
        path,
        ENCODED_SCHEMA,
        {"hoodie.parquet.compression.codec": "uncompressed"},
        partition_by=None,
    )
    rows = 5000
    ids = [f"key-{number}" for number in range(rows)]
    table.insert(pa.table({"id": ids, "city": CITIES * (rows // len(CITIES))}, ENCODED_SCHEMA))
    [file] = base_files(table)
    data = file.read_bytes()
    assert data.count(dictionary(CITIES)) == 1
    assert data.count(ARROW) == 1
    data = data.replace(dictionary(CITIES), dictionary(cities)).replace(ARROW, writer)
    file.write_bytes(data)
    return table, file


def test_a_dictionary_that_names_a_value_twice_changes_no_row(tmp_path: Path) -> None:
    table, file = forged(tmp_path / "t", ("rome", "rome", "bern", "lima"), OTHER)
    before = pq.read_table(file, columns=["id", "city"])
    assert before.column("city").slice(0, 4).to_pylist() == ["rome", "rome", "bern", "lima"]
    table.upsert(pa.table({"id": ["new"], "city": ["kyiv"]}, ENCODED_SCHEMA))
    after = table.to_arrow(["id", "city"])
    assert after.slice(0, before.num_rows).equals(before)
    assert after.slice(before.num_rows).to_pylist() == [{"id": "new", "city": "kyiv"}]


def test_numbers_beyond_the_dictionary_are_told(tmp_path: Path) -> None:
    table, file = forged(tmp_path / "t", ("rome", "rome", "rome", "rome"), ARROW)
    with pytest.raises(DataFileError, match=file.name):
        table.upsert(pa.table({"id": ["new"], "city": ["kyiv"]}, ENCODED_SCHEMA))


def dictionaries(table: hudi.Table) -> set[str]:
    [file] = base_files(table)
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_a_renamed_column_is_encoded_as_before(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("size", pa.int32())])
    table = new_table(tmp_path / "t", schema)
    ids = [f"key-{number}" for number in range(5000)]
    table.insert(pa.table({"id": ids, "size": [1, 2] * 2500}, schema))
    assert "size" in dictionaries(table)
    table.alter(rename={"size": "width"})
    table.upsert(pa.table({"id": ["new"], "width": pa.array([3], pa.int32())}))
    assert "width" in dictionaries(table)


# --- reading back the files of other writers that a write merges into
STORED_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def x_rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "part": ["x"] * len(ids)}, STORED_SCHEMA)


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_a_file_without_record_keys_is_named(tmp_path: Path, operation: str) -> None:
    table = new_table(
        tmp_path / "t",
        STORED_SCHEMA,
        {"hoodie.index.type": "SIMPLE"},
        record_key=["id", "part"],
        partition_by=None,
    )
    table.insert(x_rows("a", "b"))
    [file] = base_files(table)
    pq.write_table(pq.read_table(file).drop_columns([RECORD_KEY]), file)
    with pytest.raises(DataFileError, match=f"{file.name} has no column {RECORD_KEY}"):
        getattr(table, operation)(x_rows("c"))


def test_a_key_column_with_nulls_is_not_written_back(tmp_path: Path) -> None:
    """Another writer's keys may come from elsewhere: then the column does not say what they are."""
    table = new_table(tmp_path / "t", STORED_SCHEMA, partition_by=None)
    table.insert(x_rows("a", "b"))
    [file] = base_files(table)
    stored = pq.read_table(file)
    position = stored.schema.get_field_index("id")
    nulls = pa.array([None, "b"])
    pq.write_table(stored.set_column(position, stored.schema.field(position), nulls), file)
    with pytest.raises(DataFileError, match="rows without a id, the record key"):
        table.upsert(x_rows("b"))


def test_a_column_is_encoded_once_it_has_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("state", pa.string())])
    ids = [f"{number:05}" for number in range(6000)]

    def versions(state: str | None, count: int) -> pa.Table:
        return pa.table({"id": ids[:count], "state": [state] * count}, schema)

    table = new_table(tmp_path / "t", schema)
    table.insert(versions(None, 6000))
    table.upsert(versions("on", 1500))
    footer = pq.read_metadata(*base_files(table))
    chunks = map(footer.row_group(0).column, range(footer.num_columns))
    found = {chunk.path_in_schema: chunk.has_dictionary_page for chunk in chunks}
    assert (found["state"], found["id"]) == (True, False)


# --- A file written again takes over what its last version's footer says of the keys
TIMES = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def batch(numbers: range, ts: int) -> pa.Table:
    return pa.table({"id": [f"key-{n:05d}" for n in numbers], "ts": [ts] * len(numbers)}, TIMES)


def footer(table: hudi.Table) -> tuple[dict[bytes, bytes], DynamicBloom, pa.Array]:
    [path] = base_files(table)
    values = pq.read_metadata(path).metadata
    bloom = DynamicBloom.parse(values[b"org.apache.hudi.bloomfilter"], str(path))
    keys = pq.read_table(path, columns=["_hoodie_record_key"]).column(0).combine_chunks()
    return values, bloom, keys


def made_table(path: Path) -> hudi.Table:
    table = new_table(path, TIMES)
    table.insert(batch(range(1000, 2000), 1))
    return table


def test_a_few_new_keys_are_added_to_the_filter(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    size = len(footer(table)[1].to_base64())
    table.upsert(batch(range(950, 1010), 2))
    values, bloom, keys = footer(table)
    assert len(keys) == 1050
    assert bloom.might_contain(keys).to_pylist() == [True] * 1050
    assert len(bloom.to_base64()) == size, "the filter is the old one with more bits set"
    assert values[b"hoodie_min_record_key"] == b"key-00950"
    assert values[b"hoodie_max_record_key"] == b"key-01999"
    strangers = pa.array([f"other-{n}" for n in range(10_000)])
    assert sum(bloom.might_contain(strangers).to_pylist()) <= 1


def test_many_new_keys_make_a_new_filter(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    size = len(footer(table)[1].to_base64())
    table.upsert(batch(range(2000, 3000), 2))
    _, bloom, keys = footer(table)
    assert bloom.might_contain(keys).to_pylist() == [True] * 2000
    assert len(bloom.to_base64()) > 1.9 * size


def test_bounds_stay_true_when_rows_are_deleted(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    table.delete(batch(range(1000, 1100), 0))
    values, bloom, keys = footer(table)
    texts = keys.to_pylist()
    assert values[b"hoodie_min_record_key"].decode() <= min(texts)
    assert values[b"hoodie_max_record_key"].decode() >= max(texts)
    assert bloom.might_contain(keys).to_pylist() == [True] * 900


# --- timestamps without a zone under the word of Hudi's Java writer, where a table says it or
OPTION = "hoodie.write.schema.local.timestamps"
KINDS = {
    "us": pa.timestamp("us"),
    "moment": pa.timestamp("us", "UTC"),
    "inner": pa.struct([("at", pa.list_(pa.timestamp("us")))]),
}
LOCAL_SCHEMA = pa.schema([("id", pa.string()), *KINDS.items()])
SHOWN = dt.datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001


def local_rows(key: str = "a") -> pa.Table:
    moment = SHOWN.replace(tzinfo=dt.UTC)
    row = {"id": key, "us": SHOWN, "moment": moment, "inner": {"at": [SHOWN]}}
    return pa.Table.from_pylist([row], LOCAL_SCHEMA)


def create(path: Path, **options: str) -> hudi.Table:
    return hudi.Table.create(str(path / "t"), LOCAL_SCHEMA, record_key="id", options=options)


def says(table: hudi.Table) -> list[str]:
    """Return what the properties, the last commit, and the files of a table call timestamps."""
    client = open_table(table.path, {}).client
    writes = client.timeline().completed_writes()[-1:]
    texts = [client.config.create_schema or ""]
    texts += [client.read_commit(instant).schema_json or "" for instant in writes]
    for file in base_files(table):
        metadata = pq.read_metadata(file).metadata or {}
        texts.append(metadata[b"parquet.avro.schema"].decode())
    return ["local" if '"local-timestamp-micros"' in text else "plain" for text in texts]


def test_an_option_asks_for_the_word_of_java(tmp_path: Path) -> None:
    table = create(tmp_path, **{OPTION: "true"})
    table.insert(local_rows())
    assert says(table) == ["local"] * 3
    text = open_table(table.path, {}).client.schema.to_avro("t")
    assert text.count("local-timestamp-micros") == 2
    assert '"logicalType":"timestamp-micros"' in text
    assert "adjust-to-utc" not in text
    # who opens it later need not know
    again = hudi.Table.open(table.path)
    again.upsert(local_rows("b"))
    again.alter(add_columns={"more": pa.timestamp("us")})
    again.upsert(local_rows("c").append_column("more", local_rows()["us"]))
    assert set(says(again)) == {"local"}
    found = again.to_arrow(["us", "inner"]).to_pylist()
    assert found == [{"us": SHOWN, "inner": {"at": [SHOWN]}}] * 3
    assert again.validate().differences == ()


def test_without_it_every_reader_reads_the_table(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(local_rows())
    assert says(table) == ["plain"] * 3
    # from a write that asks for it on
    table.upsert(local_rows("b"), options={OPTION: "true"})
    assert says(table) == ["plain", "local", "local"]
    hudi.Table.open(table.path).upsert(local_rows("c"))
    assert says(table) == ["plain", "local", "local"]
    assert table.to_arrow().num_rows == 3


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
def test_other_formats_do_not_mind(tmp_path: Path, format_name: str) -> None:
    table = create(tmp_path, **{OPTION: "true", "hoodie.table.format": format_name})
    table.insert(local_rows())
    table.upsert(local_rows("b"))
    assert table.validate().differences == ()


def test_a_schema_without_such_columns_stays_as_it_is(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("moment", pa.timestamp("us", "UTC"))])
    assert TableSchema.create(schema).with_local_timestamps() == TableSchema.create(schema)
