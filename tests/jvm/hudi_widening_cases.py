"""Hudi-Spark reads, filters and goes on with what rows were let to do here: types that grew wide,
local timestamps, generators without partitions, odd partition values."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.schema.casting import BY_OPTION
from tests.jvm.engines import Engine
from tests.tables import new_table
from tests.unit.test_write_columns import CASES

WAYS = {
    "skipping": {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"},
    "no skipping": {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "false"},
    "listing": {"hoodie.metadata.enable": "false"},
}
HERE = {"hoodie.table.timeline.local.zone": "UTC"}
SEPARATE = {"hoodie.parquet.small.file.limit": "0"}


def job(operation: str = "upsert", **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.operation": operation,
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.auto.upgrade": "false",
        **more,
    }


def typed_rows(ids: list[str], values: list[Any], kind: pa.DataType, ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "city": ["A" if one in "ac" else "B" for one in ids],
            "n": pa.array(values, kind),
            "ts": pa.array([ts] * len(ids), pa.int64()),
        }
    )


# in version 8 Hudi-Spark cannot merge ranges of two types, in tables of its own neither
@pytest.mark.parametrize(("maker", "version"), [("ours", "8"), ("ours", "9"), ("theirs", "9")])
@pytest.mark.parametrize(("stored", "wanted", "values", "wide", "read"), CASES)
def test_types_that_rows_widened(
    hudi_spark: Engine,
    tmp_path: Path,
    stored: pa.DataType,
    wanted: pa.DataType,
    values: list[Any],
    wide: list[Any],
    read: list[Any],
    maker: str,
    version: str,
) -> None:
    path, given = tmp_path / "table", {**HERE, **SEPARATE, BY_OPTION: "true"}
    first, second = typed_rows(["a", "b"], values, stored), typed_rows(["c"], wide, wanted)
    options = {"hoodie.write.table.version": version}
    if maker == "ours":
        table = new_table(path, first.schema, {**given, **options}, name="t")
        table.insert(first)
        table.insert(second)
    else:
        hudi_spark.save(first, path, job("insert", **options, **SEPARATE))
        hudi_spark.save(second, path, job("insert", **options, **SEPARATE))
    expected = dict(zip(["a", "b", "c"], [*read, *wide], strict=True))
    table = hudi.Table.open(str(path), options=given)

    def check() -> None:
        found = table.to_arrow(["id", "n"])
        assert dict(zip(*found.to_pydict().values(), strict=True)) == expected
        for way in WAYS.values():
            assert dict(hudi_spark.values(path, ["id", "n"], options=way)) == expected
            for value in expected.values():
                literal = f"'{value}'" if isinstance(value, str) else f"cast({value!r} as double)"
                kept = [(one,) for one, other in expected.items() if other >= value]
                assert hudi_spark.values(path, ["id"], f"n >= {literal}", way) == sorted(kept)

    check()
    table.upsert(typed_rows(["b", "d"], values, stored, 2))
    expected |= {"b": read[0], "d": read[1]}
    check()
    if version == "9":
        hudi_spark.save(typed_rows(["a"], wide, wanted, 3), path, job())
        expected["a"] = wide[0]
        check()
    assert table.validate().differences == ()


def test_local_timestamps_stay_local(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table"
    shown = dt.datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001
    batch = pa.table(
        {
            "id": ["a", "b"],
            "city": ["A", "B"],
            "at": pa.array([shown, None], pa.timestamp("us")),
            "ts": pa.array([1, 1], pa.int64()),
        }
    )
    table = new_table(
        path,
        batch.schema,
        {"hoodie.write.schema.local.timestamps": "true", "hoodie.write.table.version": "9"},
        name="t",
    )
    table.insert(batch)
    assert hudi_spark.schema(path)["at"] == "timestamp_ntz"
    for way in WAYS.values():
        condition = "at = timestamp_ntz'2026-03-29 02:30:00'"
        assert hudi_spark.values(path, ["id"], condition, way) == [("a",)]
    hudi_spark.save(batch.slice(1), path, job())
    assert hudi_spark.schema(path)["at"] == "timestamp_ntz"
    table.upsert(batch)
    found = table.to_arrow(["id", "at"])
    assert found.schema.field("at").type == pa.timestamp("us")
    assert dict(zip(*found.to_pydict().values(), strict=True)) == {"a": shown, "b": None}
    assert hudi_spark.read(path, columns=["id", "at"]).schema.field("at").type.tz is None


def test_a_table_of_theirs_goes_on_saying_local(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table"
    shown = dt.datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001
    batch = pa.table({"id": ["a"], "city": ["A"], "at": [shown], "ts": [1]})
    hudi_spark.save(batch, path, job())
    assert hudi_spark.schema(path)["at"] == "timestamp_ntz"
    hudi.Table.open(str(path), options=HERE).upsert(batch)
    assert hudi_spark.schema(path)["at"] == "timestamp_ntz"
    hudi_spark.save(batch, path, job())
    found = hudi.Table.open(str(path), options=HERE).to_arrow(["at"])
    assert found["at"].to_pylist() == [shown]


NAMES = "org.apache.hudi.keygen."


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (
            {
                "hoodie.datasource.write.keygenerator.class": f"{NAMES}ComplexKeyGenerator",
                "hoodie.datasource.write.partitionpath.field": "",
            },
            "id:a",
        ),
        (
            {
                "hoodie.datasource.write.keygenerator.class": f"{NAMES}NonpartitionedKeyGenerator",
                "hoodie.datasource.write.partitionpath.field": "city",
            },
            "a",
        ),
    ],
)
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_generators_without_partitions(
    hudi_spark: Engine, tmp_path: Path, options: dict[str, str], key: str, maker: str
) -> None:
    path, batch = tmp_path / "table", typed_rows(["a", "b"], [1, 2], pa.int64())
    given = {
        **job(),
        **options,
        **HERE,
        "hoodie.write.table.version": "9",
        "hoodie.write.complex.keygen.validation.enable": "false",
    }
    if maker == "theirs":
        hudi_spark.save(batch, path, given)
    hudi.write(batch, str(path), options=given)
    hudi_spark.save(batch, path, given)
    hudi.write(batch, str(path), options=given)
    found = hudi_spark.values(path, ["_hoodie_record_key", "_hoodie_partition_path"])
    assert found[0] == (key, "")
    assert len(found) == 2


@pytest.mark.parametrize("hive", ["true", "false"])
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_odd_values_of_partitions(
    hudi_spark: Engine, tmp_path: Path, hive: str, maker: str
) -> None:
    path = tmp_path / "table"
    batch = typed_rows(["a", "b", "c", "d"], [1, 2, 3, 4], pa.int64())
    city = pa.array(["2026/01/31", "2026/02/01", "", None])
    batch = batch.set_column(1, "city", city)
    given = {**job(), **HERE, "hoodie.datasource.write.hive_style_partitioning": hive}
    if maker == "theirs":
        hudi_spark.save(batch, path, given)
    hudi.write(batch, str(path), options=given)
    hudi_spark.save(batch, path, given)
    hudi.write(batch, str(path), options=given)
    prefix = "city=" if hive == "true" else ""
    default = f"{prefix}__HIVE_DEFAULT_PARTITION__"
    for way in WAYS.values():
        assert hudi_spark.values(path, ["id", "_hoodie_partition_path"], options=way) == [
            ("a", f"{prefix}2026/01/31"),
            ("b", f"{prefix}2026/02/01"),
            ("c", default),
            ("d", default),
        ]
        assert hudi_spark.values(path, ["id"], "city = '2026/02/01'", way) == [("b",)]
    found = hudi.Table.open(str(path), options=HERE).to_arrow(["id", "city"])
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
        ("a", "2026/01/31"),
        ("b", "2026/02/01"),
        ("c", ""),
        ("d", None),
    ]
