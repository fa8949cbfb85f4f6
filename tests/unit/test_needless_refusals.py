"""What Apache Hudi takes: generators without partitions, slashes, empty values, keys alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

import hudi_core as hudi
from hudi_core.errors import (
    InvalidOptionError,
    OptionConflictError,
    PartitionValueError,
    SchemaError,
)
from tests.tables import new_table
from tests.unit.refusals import refused

CLASS = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
PARTITION = "hoodie.datasource.write.partitionpath.field"
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
SIMPLE, COMPLEX, NONE = (
    f"org.apache.hudi.keygen.{name}KeyGenerator" for name in ("Simple", "Complex", "Nonpartitioned")
)


def rows(ids: Sequence[str], city: Sequence[str | None], v: int = 1) -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "city": pa.array(city, pa.string()),
            "v": pa.array([v] * count, pa.int64()),
        }
    )


def written(path: Path, batch: pa.Table, **options: str) -> hudi.Table:
    given = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", **options}
    for _ in range(2):  # the second time with what the table has stored
        hudi.write(batch, str(path / "t"), options=given)
    return hudi.Table.open(str(path / "t"))


def places(table: hudi.Table) -> list[tuple[Any, ...]]:
    found = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"])
    return sorted(zip(*found.to_pydict().values(), strict=True))


def by_hudi_rs(table: hudi.Table, **options: Any) -> list[tuple[Any, ...]]:
    reader = HudiTableBuilder.from_base_uri(table.path).build()
    found = pa.Table.from_batches(reader.read(HudiReadOptions(**options))).select(["id", "city"])
    return sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


# --- generators ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "keys"),
    [
        ({CLASS: SIMPLE}, "NON_PARTITION", ["a", "b"]),
        ({CLASS: SIMPLE, PARTITION: ""}, "NON_PARTITION", ["a", "b"]),
        ({TYPE: "SIMPLE"}, "NON_PARTITION", ["a", "b"]),
        ({CLASS: COMPLEX}, "COMPLEX", ["id:a", "id:b"]),
        ({CLASS: COMPLEX, PARTITION: ""}, "COMPLEX", ["id:a", "id:b"]),
        ({TYPE: "COMPLEX", "hoodie.write.table.version": "9"}, "COMPLEX", ["id:a", "id:b"]),
        ({CLASS: NONE, PARTITION: "city"}, "NON_PARTITION", ["a", "b"]),
    ],
)
def test_generators_without_partitions(
    tmp_path: Path, options: dict[str, str], kind: str, keys: list[str]
) -> None:
    """What Hudi-Spark 1.2.0 stores of these options, and the keys it makes."""
    table = written(tmp_path, rows(["a", "b"], ["Rome", None]), **options)
    assert (table.config.keygen_type, table.config.partition_fields) == (kind, ())
    assert places(table) == [(key, "") for key in keys]
    assert by_hudi_rs(table) == [("a", "Rome"), ("b", None)]
    assert table.delete(rows(["a"], ["Rome"])).deleted == 1


def test_a_type_that_the_fields_contradict(tmp_path: Path) -> None:
    """Hudi's option of the type gives way to the fields, without a word."""
    given = {TYPE: "NON_PARTITION", PARTITION: "city"}
    with pytest.raises(InvalidOptionError, match="SIMPLE fits"):
        written(tmp_path, rows(["a"], ["Rome"]), **given)
    assert not (tmp_path / "t").exists() or not any((tmp_path / "t").iterdir())
    table = written(tmp_path, rows(["a"], ["Rome"]))
    with pytest.raises(OptionConflictError, match=PARTITION):
        hudi.Table.open(table.path, options={PARTITION: "city"})


# --- values of partitions ------------------------------------------------------------------------


@pytest.mark.parametrize("hive", [{}, HIVE])
def test_empty_values_share_the_partition_of_nulls(tmp_path: Path, hive: dict[str, str]) -> None:
    batch = rows(["a", "b", "c"], ["", None, "Rome"])
    table = written(tmp_path, batch, **{PARTITION: "city", **hive})
    prefix = "city=" if hive else ""
    default = f"{prefix}__HIVE_DEFAULT_PARTITION__"
    assert places(table) == [("a", default), ("b", default), ("c", f"{prefix}Rome")]
    expected = [("a", ""), ("b", None), ("c", "Rome")]
    assert by_hudi_rs(table) == expected
    filters = {"": ["a"], "Rome": ["c"]}
    for value, kept in filters.items():
        assert table.to_arrow(["id"], filter=[("city", "=", value)])["id"].to_pylist() == kept
    assert table.to_arrow(["id"], filter=pc.field("city").is_null())["id"].to_pylist() == ["b"]
    assert table.upsert(rows(["a"], [None], 2)).updated == 1
    assert table.validate().differences == ()


def test_empty_values_that_a_format_would_lose(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows([], []).schema, format="delta")
    for operation in (table.insert, table.bulk_insert, table.upsert):
        with pytest.raises(PartitionValueError, match="empty"):
            operation(rows(["a"], [""]))
    with pytest.raises(PartitionValueError, match="empty"):
        hudi.write(
            rows(["a"], [""]),
            table.path,
            mode="overwrite",
            options={
                "hoodie.table.format": "delta",
                "hoodie.table.name": "t",
                "hoodie.datasource.write.recordkey.field": "id",
                PARTITION: "city",
            },
        )
    assert table.insert(rows(["a"], [None])).inserted == 1


def test_a_table_with_empty_values_becomes_none_of_such_a_format(tmp_path: Path) -> None:
    table = written(tmp_path, rows(["a"], [""]), **{PARTITION: "city"})
    with pytest.raises(hudi.HudiError, match="empty string"):
        table.convert("delta")
    assert table.upsert(rows(["a"], [""])).updated == 1


DATES = ["2026/01/31", "2026/02/01"]


def test_slashes_in_hive_style(tmp_path: Path) -> None:
    table = written(tmp_path, rows(["a", "b"], DATES), **{PARTITION: "city", **HIVE})
    assert places(table) == [("a", f"city={DATES[0]}"), ("b", f"city={DATES[1]}")]
    assert by_hudi_rs(table) == [("a", DATES[0]), ("b", DATES[1])]
    assert table.to_arrow(["id"], filter=[("city", "=", DATES[1])])["id"].to_pylist() == ["b"]
    assert table.upsert(rows(["a"], DATES[:1], 2)).updated == 1
    table.delete_partitions([{"city": DATES[0]}])
    assert places(table) == [("b", f"city={DATES[1]}")]
    assert table.validate().differences == ()


def test_slashes_in_hive_style_of_several_fields(tmp_path: Path) -> None:
    batch = rows(["a", "b"], DATES).append_column("hour", pa.array(["1", "2/3"]))
    table = written(tmp_path, batch, **{PARTITION: "city,hour", **HIVE})
    expected = [("id:a", f"city={DATES[0]}/hour=1"), ("id:b", f"city={DATES[1]}/hour=2/3")]
    assert places(table) == expected
    for column, value in (("city", DATES[1]), ("hour", "2/3")):
        assert table.to_arrow(["id"], filter=[(column, "=", value)])["id"].to_pylist() == ["b"]


@pytest.mark.parametrize(
    ("stored", "new"), [("2026/01", "2026"), ("2026", "2026/01"), ("2026/01/31", "2026/01")]
)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_partitions_within_each_other_in_hive_style(
    tmp_path: Path, stored: str, new: str, operation: str
) -> None:
    table = written(tmp_path, rows(["a"], [stored]), **{PARTITION: "city", **HIVE})
    with pytest.raises(PartitionValueError, match="would lie within"):
        getattr(table, operation)(rows(["b"], [new]))
    assert places(table) == [("a", f"city={stored}")]


# --- deletes by key alone ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "partition_by"),
    [("GLOBAL_SIMPLE", "city"), ("GLOBAL_BLOOM", "city,v"), ("RECORD_INDEX", "city")],
)
def test_a_global_index_finds_rows_by_their_key_alone(
    tmp_path: Path, index: str, partition_by: str
) -> None:
    given = {
        "hoodie.index.type": index,
        "hoodie.metadata.global.record.level.index.enable": str(index == "RECORD_INDEX").lower(),
    }
    batch = rows(["a", "b", "c"], ["Rome", "Oslo", "Rome"])
    table = written(tmp_path, batch, **{PARTITION: partition_by, **given})
    by_key = batch.select(["id"])
    for some in (by_key.slice(0, 1), batch.select(["id", "v"]).slice(1, 1)):
        told = table.plan("delete", some, options=given)
        assert (told.deleted, told.inserted) == (1, 0)
        assert table.delete(some, options=given).deleted == 1
    assert table.delete(pa.table({"id": ["none"]}), options=given).deleted == 0
    assert table.to_arrow(["id"])["id"].to_pylist() == ["c"]
    # with the columns of the partition as before, wherever they say the row is
    assert table.delete(rows(["c"], ["Oslo"]), options=given).deleted == 1
    assert table.validate().differences == ()


def test_other_indexes_need_the_partition(tmp_path: Path) -> None:
    table = written(tmp_path, rows(["a"], ["Rome"]), **{PARTITION: "city"})
    with refused(tmp_path / "t", SchemaError, "'city'", "GLOBAL_SIMPLE"):
        table.delete(pa.table({"id": ["a"]}))
