"""Entries of tables in a Hive metastore, as its own clients see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from hudi_core.read.connector.handles import QueryKind, TableName
from hudi_core.sync.result import EntryChange
from tests.hudi_tables import TRIPS
from tests.unit.sync_hive.hive_tables import META_TYPES, SCHEMA, Lake, new_table, trips, types

BASE_FILES = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


REAL_TIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"


# --- entries -------------------------------------------------------------------------------------


def test_an_entry_is_what_hudis_readers_look_for(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    done = lake.sync(table)
    assert done.creates_database
    [entry] = done.entries
    assert (entry.database, entry.name, entry.change) == (lake.name, "trips", EntryChange.CREATED)
    assert entry.added == ("a", "b")
    found = lake.entry("trips")
    assert found.sd.inputFormat == BASE_FILES
    assert found.sd.outputFormat == (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
    )
    serde = found.sd.serdeInfo
    assert serde.serializationLib == "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    place = f"file://{tmp_path}/trips"
    assert serde.parameters == {
        "serialization.format": "1",
        "path": place,
        "hoodie.query.as.ro.table": "false",
    }
    assert (found.tableType, found.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert types(found.sd.cols) == [*META_TYPES, ("id", "bigint"), ("fare", "float")]
    assert types(found.partitionKeys) == [("day", "string")]
    assert found.parameters["last_commit_time_sync"] == done.last_commit
    partitions = lake.partitions("trips")
    assert sorted(partitions) == ["day=a", "day=b"]
    for value, one in zip("ab", partitions.values(), strict=True):
        assert one.sd.location.replace("file:/", "file:///").replace("////", "//") == (
            f"{place}/{value}"
        )
        assert one.sd.inputFormat == BASE_FILES
    assert lake.ids("trips") == [0, 1]


def test_an_entry_says_what_spark_needs(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(table, schema_string_length_thresh=100)
    found = lake.entry("trips").parameters
    assert found["spark.sql.sources.provider"] == "hudi"
    assert found["spark.sql.sources.schema.numPartCols"] == "1"
    assert found["spark.sql.sources.schema.partCol.0"] == "day"
    count = int(found["spark.sql.sources.schema.numParts"])
    parts = [found[f"spark.sql.sources.schema.part.{number}"] for number in range(count)]
    assert [len(part) for part in parts[:-1]] == [100] * (count - 1)
    fields = json.loads("".join(parts))["fields"]
    assert [one["name"] for one in fields] == [*(n for n, _ in META_TYPES), "id", "Fare", "day"]
    assert fields[0]["metadata"] == {"hudi.read": {"path": str(tmp_path / "trips")}}
    # fewer parts next time: none of the former ones stays
    lake.sync(table, schema_string_length_thresh=100_000)
    found = lake.entry("trips").parameters
    assert [key for key in found if ".part." in key] == ["spark.sql.sources.schema.part.0"]


def test_a_table_without_partitions(lake: Lake, tmp_path: Path) -> None:
    table = hudi.Table.create(tmp_path / "trips", SCHEMA, record_key="id")
    table.insert(trips([1], ["a"]))
    lake.sync(table)
    found = lake.entry("trips")
    assert found.partitionKeys == []
    assert types(found.sd.cols)[5:] == [("id", "bigint"), ("fare", "float"), ("day", "string")]
    assert "spark.sql.sources.schema.numPartCols" not in found.parameters
    assert lake.ids("trips") == [1]


def test_options_shape_an_entry(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(
        table,
        table="Rides",
        omit_metadata_fields=True,
        sync_as_datasource=False,
        create_managed_table=True,
        use_pre_apache_input_format=True,
        table_properties="owner team=a\nkind = fact",
        serde_properties="x=1",
    )
    found = lake.entry("rides")
    assert found.tableType == "MANAGED_TABLE"
    assert "EXTERNAL" not in found.parameters
    assert found.sd.inputFormat == "com.uber.hoodie.hadoop.HoodieInputFormat"
    assert types(found.sd.cols) == [("id", "bigint"), ("fare", "float")]
    assert (found.parameters["owner team"], found.parameters["kind"]) == ("a", "fact")
    assert found.sd.serdeInfo.parameters == {"serialization.format": "1", "x": "1"}
    assert not [key for key in found.parameters if key.startswith("spark.")]


def test_types_and_comments(lake: Lake, tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"doc": "who"}),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("price", pa.decimal128(12, 2)),
            ("tags", pa.list_(pa.string())),
            ("props", pa.map_(pa.string(), pa.int32())),
            ("home", pa.struct([("city", pa.string()), ("Zip", pa.int32())])),
            ("raw", pa.binary()),
            ("born", pa.date32()),
            ("ok", pa.bool_()),
            ("x", pa.float64()),
        ]
    )
    table = hudi.Table.create(tmp_path / "typed", schema, record_key="id")
    lake.sync(table, sync_comment=True)
    columns = lake.entry("typed").sd.cols
    assert types(columns)[5:] == [
        ("id", "bigint"),
        ("at", "timestamp"),
        ("local", "timestamp"),
        ("price", "decimal(12,2)"),
        ("tags", "array<string>"),
        ("props", "map<string,int>"),
        ("home", "struct<city:string,Zip:int>"),
        ("raw", "binary"),
        ("born", "date"),
        ("ok", "boolean"),
        ("x", "double"),
    ]
    assert columns[5].comment == "who"
    # known by other types now, which readers of the former cannot take them for
    with pytest.raises(SchemaError, match="column at of the type timestamp"):
        lake.sync(table, support_timestamp=False)
    again = lake.sync(table, support_timestamp=False, recreate_table_on_error=True)
    assert again.entries[0].change is EntryChange.RECREATED
    assert ("at", "bigint") in types(lake.entry("typed").sd.cols)


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({}, {"t_ro": BASE_FILES, "t_rt": REAL_TIME, "t": REAL_TIME}),
        ({"skip_ro_suffix": True}, {"t": BASE_FILES, "t_rt": REAL_TIME}),
        ({"table.strategy": "RO"}, {"t": BASE_FILES}),
        ({"table.strategy": "rt"}, {"t": REAL_TIME}),
    ],
)
def test_a_table_with_logs_has_an_entry_for_each_query(
    lake: Lake, real_tables: Any, options: dict[str, Any], entries: Mapping[str, str]
) -> None:
    table = hudi.Table.open(real_tables(TRIPS))
    done = lake.sync(table, table="t", **options)
    assert {one.name for one in done.entries} == set(entries)
    for name, input_format in entries.items():
        found = lake.entry(name)
        assert found.sd.inputFormat == input_format
        as_base_files = found.sd.serdeInfo.parameters["hoodie.query.as.ro.table"]
        assert as_base_files == str(input_format == BASE_FILES).lower()
        kind = lake.connector().table(TableName(lake.name, name)).kind
        assert (kind is QueryKind.READ_OPTIMIZED) is (input_format == BASE_FILES)
