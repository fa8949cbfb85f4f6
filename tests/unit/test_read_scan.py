"""Planned files of several schemas, read as the table's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table import TableConfig
from hudi_core.errors import DataFileError, SchemaError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import BasePath, FileId, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.file_reader import can_push_down
from hudi_core.read.filters import Filter, to_filter
from hudi_core.read.foreign import referenced_columns
from hudi_core.read.plan import PlannedSlice, ReadPlan
from hudi_core.read.scan import file_scan, scan
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage

INNER = pa.struct([("a", pa.int64()), ("b", pa.string())])
SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("id", pa.int64()),
        ("price", pa.decimal128(12, 3)),
        ("code", pa.string()),
        ("place", INNER),
        ("places", pa.list_(INNER)),
        ("named", pa.map_(pa.string(), INNER)),
        ("added", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
OLD_INNER = pa.struct([("a", pa.int32())])
OLD_SCHEMA = pa.schema(
    [
        ("id", pa.int32()),  # columns in another order, narrower, or of another type
        ("_hoodie_commit_time", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("code", pa.int64()),
        ("place", OLD_INNER),
        ("places", pa.list_(OLD_INNER)),
        ("named", pa.map_(pa.string(), OLD_INNER)),
        ("at", pa.timestamp("us", "UTC")),
        ("dropped", pa.string()),
    ]
)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
OLD = [
    {
        "id": n,
        "_hoodie_commit_time": f"2026010100000000{n}",
        "price": Decimal("1.25") * n,
        "code": 10 * n,
        "place": {"a": n},
        "places": [{"a": n}],
        "named": [("x", {"a": n})],
        "at": MOMENT,
        "dropped": "gone",
    }
    for n in (1, 2)
]
NEW = [
    {
        "_hoodie_commit_time": "20260101000000003",
        "id": 3,
        "price": Decimal("0.125"),
        "code": "30",
        "place": {"a": 3, "b": "y"},
        "places": [],
        "named": [],
        "added": "z",
        "at": MOMENT,
    }
]
OLD_READ = [
    {
        "_hoodie_commit_time": row["_hoodie_commit_time"],
        "id": row["id"],
        "price": row["price"],
        "code": str(row["code"]),
        "place": {"a": row["id"], "b": None},
        "places": [{"a": row["id"], "b": None}],
        "named": [("x", {"a": row["id"], "b": None})],
        "added": None,
        "at": MOMENT,
    }
    for row in OLD
]


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    pq.write_table(
        pa.Table.from_pylist(OLD, OLD_SCHEMA), tmp_path / "old.parquet", store_schema=False
    )
    pq.write_table(pa.Table.from_pylist(NEW, SCHEMA), tmp_path / "new.parquet", store_schema=False)
    return TableMetaClient(
        BasePath(str(tmp_path)),
        PosixStorage(str(tmp_path)),
        TableConfig(name="t", record_key_fields=("id",)),
        StorageOptions(),
    )


def plan(
    *names: str, schema: pa.Schema = SCHEMA, times: frozenset[InstantTime] | None = None
) -> ReadPlan:
    files = tuple(
        PlannedSlice(
            name,
            f"/{name}",
            1,
            PartitionPath(""),
            FileId(name),
            {},
            InstantTime("20260101000000000"),
        )
        for name in names
    )
    return ReadPlan(files, schema, times)


BOTH = plan("old.parquet", "new.parquet")


def test_files_come_in_the_latest_schema_and_in_the_order_of_the_plan(
    client: TableMetaClient,
) -> None:
    table = scan(client, BOTH).read_all()

    assert table.schema == SCHEMA
    assert table.to_pylist() == OLD_READ + NEW
    backwards = scan(client, plan("new.parquet", "old.parquet")).read_all()
    assert backwards["id"].to_pylist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("row_filter", "ids"),
    [
        ([("id", ">", 1)], [2, 3]),
        ([("id", "=", 2**40)], []),
        ([("price", "=", Decimal("2.500"))], [2]),
        ([("code", "=", "20")], [2]),  # a number in the old file
        ([("code", "in", ["10", "30"])], [1, 3]),
        ([("code", ">", "3")], [3]),  # as texts: "10" and "20" are smaller
        ([("added", "is null", None)], [1, 2]),
        ([("added", "=", "z")], [3]),
        (pc.field("place", "a") > 1, [2, 3]),
        (pc.field("place", "b").is_null(), [1, 2]),
        ((pc.field("code") == "10") | (pc.field("id") == 3), [1, 3]),
        (pc.field("places").is_valid(), [1, 2, 3]),
    ],
)
def test_filters_see_the_latest_schema(
    client: TableMetaClient, row_filter: Any, ids: list[int]
) -> None:
    assert scan(client, BOTH, ["id"], row_filter).read_all()["id"].to_pylist() == ids
    everything = scan(client, BOTH, None, row_filter).read_all()
    assert everything.to_pylist() == [row for row in OLD_READ + NEW if row["id"] in ids]


def test_a_filter_needs_no_column_of_the_projection(client: TableMetaClient) -> None:
    table = scan(client, BOTH, ["added", "at"], [("code", "=", "30")]).read_all()
    assert table.to_pylist() == [{"added": "z", "at": MOMENT}]


def test_commit_times_select_rows(client: TableMetaClient) -> None:
    times = frozenset({InstantTime("20260101000000002"), InstantTime("20260101000000003")})
    files = ("old.parquet", "new.parquet")

    assert scan(client, plan(*files, times=times), ["id"]).read_all()["id"].to_pylist() == [2, 3]
    both = scan(client, plan(*files, times=times), ["id"], [("id", "<", 3)]).read_all()
    assert both["id"].to_pylist() == [2]
    assert scan(client, plan(*files, times=frozenset())).read_all().num_rows == 0


@pytest.mark.parametrize("row_filter", [None, [("code", "in", ["10", "30"])]])
def test_a_file_unlike_the_oldest_and_the_newest_is_read_as_the_tables(
    client: TableMetaClient, row_filter: Any
) -> None:
    newest = plan("new.parquet").files[0]
    files = (
        *(replace(newest, instant=InstantTime(f"2025010100000000{n}")) for n in range(3)),
        plan("old.parquet").files[0],  # a text is a number there, and members are missing
        replace(newest, instant=InstantTime("20270101000000000")),
    )
    given = ReadPlan(files, SCHEMA)

    table = file_scan(client, given, None, row_filter).table(files)

    old = OLD_READ if row_filter is None else OLD_READ[:1]
    assert table.to_pylist() == [*NEW, *NEW, *NEW, *old, *NEW]
    assert table.equals(scan(client, given, None, row_filter).read_all().combine_chunks())


def test_a_column_whose_name_was_another_ones_is_not_taken_for_it(
    client: TableMetaClient, tmp_path: Path
) -> None:
    avro = {b"parquet.avro.schema": b'{"field-id": 1}'}

    def column(number: int) -> pa.Schema:
        given = pa.field("v", pa.int64(), metadata={b"PARQUET:field_id": str(number).encode()})
        return pa.schema([given], metadata=avro)

    for name, number in (("first", 7), ("middle", 3), ("last", 7)):
        rows = pa.table({"v": [number]}, schema=column(number))
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    given = plan("first", "middle", "last", schema=column(7).remove_metadata())
    files = tuple(
        replace(file, path=f"{file.path}.parquet", instant=InstantTime(f"2026010100000000{n}"))
        for n, file in enumerate(given.files)
    )

    table = file_scan(client, replace(given, files=files)).table(files)

    assert table["v"].to_pylist() == [7, None, 7]


def test_a_damaged_file_between_others_is_named(client: TableMetaClient, tmp_path: Path) -> None:
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
    damaged = plan("damaged.parquet").files[0]
    newest = plan("new.parquet").files[0]
    files = (
        replace(newest, instant=InstantTime("20250101000000000")),
        damaged,
        replace(newest, instant=InstantTime("20270101000000000")),
    )

    with pytest.raises(DataFileError, match=r"damaged\.parquet|[Pp]arquet"):
        file_scan(client, ReadPlan(files, SCHEMA)).table(files)


def test_row_groups_outside_the_filter_are_not_read(
    client: TableMetaClient, tmp_path: Path
) -> None:
    path = tmp_path / "groups.parquet"
    rows = pa.table({"id": pa.array(range(300)), "text": ["x"] * 300})
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False, compression="NONE")
    column = pq.read_metadata(path).row_group(2).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset : column.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(data)
    damaged = plan("groups.parquet", schema=rows.schema)

    assert scan(client, damaged, None, [("id", "<", 150)]).read_all().num_rows == 150
    with pytest.raises(DataFileError):
        scan(client, damaged, None, [("id", "<", 250)]).read_all()


def test_batches_have_at_most_so_many_rows(client: TableMetaClient, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(1000))})
    pq.write_table(rows, tmp_path / "many.parquet")

    batches = list(scan(client, plan("many.parquet", schema=rows.schema), batch_rows=300))

    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]


def test_int96_timestamps_are_microseconds(client: TableMetaClient, tmp_path: Path) -> None:
    moment = datetime(2500, 1, 1, 0, 0, 0, 1, tzinfo=UTC)  # beyond nanoseconds in 64 bits
    rows = pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC"))})
    pq.write_table(
        rows, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False
    )
    assert pq.read_metadata(tmp_path / "int96.parquet").schema.column(0).physical_type == "INT96"

    table = scan(client, plan("int96.parquet", schema=rows.schema)).read_all()

    assert table["at"].to_pylist() == [moment]


def test_an_empty_plan_has_a_schema(client: TableMetaClient) -> None:
    table = scan(client, plan(), ["id", "code"], [("id", "=", 1)]).read_all()

    assert table.num_rows == 0
    assert table.column_names == ["id", "code"]


def test_what_does_not_fit_is_refused_before_a_file_is_opened(client: TableMetaClient) -> None:
    missing = plan("nowhere.parquet")

    with pytest.raises(SchemaError, match="'colour'"):
        scan(client, missing, ["colour"])
    with pytest.raises(SchemaError, match="'colour'"):
        scan(client, missing, None, [("colour", "=", 1)])


@pytest.mark.parametrize("row_filter", [None, [("id", "=", 1)]])
def test_a_missing_file_is_named(client: TableMetaClient, row_filter: Any) -> None:
    reader = scan(client, plan("old.parquet", "nowhere.parquet"), None, row_filter)
    with pytest.raises(DataFileError, match=r"nowhere\.parquet"):
        reader.read_all()


def test_a_value_that_does_not_fit_the_latest_type_is_an_error(client: TableMetaClient) -> None:
    changed = SCHEMA.set(SCHEMA.get_field_index("added"), pa.field("added", pa.int64()))

    with pytest.raises(DataFileError, match="'z'"):
        scan(client, plan("new.parquet", schema=changed), ["added"]).read_all()


def wanted(expression: pc.Expression) -> Filter:
    found = to_filter(expression, SCHEMA)
    assert found is not None
    return found


def test_which_filters_go_down() -> None:
    for column in ("id", "price", "place", "places", "named", "added", "at"):
        assert can_push_down(wanted(pc.field(column).is_valid()), OLD_SCHEMA, SCHEMA), column
    assert not can_push_down(wanted(pc.field("code").is_valid()), OLD_SCHEMA, SCHEMA)
    assert can_push_down(wanted(pc.field("code").is_valid()), SCHEMA, SCHEMA)
    shrunk = pa.schema([("place", pa.struct([("a", pa.string())]))])
    assert not can_push_down(wanted(pc.field("place", "b").is_null()), shrunk, SCHEMA)


def test_columns_an_expression_depends_on() -> None:
    expression = (pc.field("id") > 1) | pc.field("place", "b").is_null()

    assert referenced_columns(expression, SCHEMA, SCHEMA.names) == {"id", "place"}
    assert referenced_columns(expression, SCHEMA, ["id", "code"]) == {"id"}
    assert wanted(expression).columns == {"id", "place"}
    assert wanted((pc.field("id") + 1 > 2) & pc.field("code").is_null()).columns == {"id", "code"}
