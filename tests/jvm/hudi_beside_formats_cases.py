"""Hudi-Spark beside the formats Iceberg and Delta, which it does not know.

It writes to the timeline alone, and its files have no field ids. Our next write publishes them, and
readers of the formats see their rows as ours; until then, reads say what the formats lack.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.errors import UnpublishedCommitsError
from hudi_core.services.mending.differences import Source
from tests.jvm.engines import Engine
from tests.tables import new_table

PUBLISHED: Final = ("iceberg", "delta", "iceberg,delta")
TYPED_COLUMNS: Final = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("notes", pa.map_(pa.string(), pa.int32())),
        ("who", pa.struct([("name", pa.string()), ("ages", pa.list_(pa.int32()))])),
    ]
)
NO_SERVICES: Final = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
Rows = dict[int, Mapping[str, Any]]


def row(key: int, ts: int) -> dict[str, Any]:
    return {
        "id": key,
        "city": "AB"[key % 2],
        "ts": ts,
        "v": ts + key / 4,
        "price": Decimal(key) + Decimal("0.25"),
        "at": dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC) + dt.timedelta(microseconds=key),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=key),
        "tags": ["x", f"t{ts}"],
        "notes": [("n", key)],
        "who": {"name": f"p{ts}", "ages": [key, ts]},
    }


def made(path: Path, table_format: str, version: str) -> hudi.Table:
    table = new_table(
        path,
        TYPED_COLUMNS,
        {"hoodie.write.table.version": version, "hoodie.fs.fsync": "false", **NO_SERVICES},
        format=table_format,
    )
    table.insert(batch(range(1, 7), 1))
    return table


def batch(keys: Any, ts: int) -> pa.Table:
    return pa.Table.from_pylist([row(key, ts) for key in keys], TYPED_COLUMNS)


def plain(value: Any) -> Any:
    """A value without its reader's way of giving maps and zones."""
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC)
    return value


def by_id(rows: pa.Table) -> Rows:
    held = rows.select(TYPED_COLUMNS.names).to_pylist()
    found: Rows = {one["id"]: {name: plain(value) for name, value in one.items()} for one in held}
    assert len(found) == rows.num_rows
    return found


Reader = Callable[[Path], pa.Table]


def readers(table_format: str, iceberg: Engine, delta: Engine) -> dict[str, Reader]:
    """Every reader of the formats, by name."""
    found: dict[str, Reader] = {"ours": lambda path: hudi.Table.open(path).to_arrow()}
    if "iceberg" in table_format:
        found["pyiceberg"] = lambda path: StaticTable.from_metadata(str(path)).scan().to_arrow()
        found["Iceberg-Spark"] = lambda path: iceberg.read(path, source="iceberg")
    if "delta" in table_format:
        found["deltalake"] = lambda path: DeltaTable(str(path)).to_pyarrow_table()
        found["Delta-Spark"] = lambda path: delta.query(f"select * from delta.`{path}`")
    return found


def agree(path: Path, expected: Rows, by: Mapping[str, Reader]) -> None:
    seen = {name: by_id(read(path)) for name, read in by.items()}
    assert {name for name, rows in seen.items() if rows != expected} == set(), seen


def name_of(path: Path) -> str:
    return f"t_{abs(hash(str(path)))}"


def updated(engine: Engine, path: Path, key: int, ts: int) -> None:
    """Update a row by Hudi-Spark's SQL; the columns that it does not name stay."""
    name = name_of(path)
    with engine.configured(NO_SERVICES):
        engine.sql(f"create table if not exists {name} using hudi location '{path}'")
        engine.sql(
            f"update {name} set ts = {ts}, v = {ts + key / 4}, tags = array('x', 't{ts}'), "
            f"who = named_struct('name', 'p{ts}', 'ages', array({key}, {ts})) where id = {key}"
        )


def old_lists(table_format: str) -> set[Source]:
    return {Source.DATA_FILE} if "iceberg" in table_format else set()


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("table_format", PUBLISHED)
def test_its_rows_are_published_for_every_reader(
    hudi_spark: Engine,
    iceberg_spark: Engine,
    delta_spark: Engine,
    tmp_path: Path,
    table_format: str,
    version: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Columns of every kind, from files whose columns have no field ids."""
    path = tmp_path / "t"
    table = made(path, table_format, version)
    by = readers(table_format, iceberg_spark, delta_spark)
    held = by_id(batch(range(1, 7), 1))
    agree(path, held, by)
    updated(hudi_spark, path, 2, 5)
    with caplog.at_level(logging.WARNING):
        agree(path, held, by)
    assert sum("does not know" in one.getMessage() for one in caplog.records) >= 1
    table = hudi.Table.open(str(path))
    table.upsert(batch([3], 6), options=NO_SERVICES)
    held |= by_id(batch([2], 5)) | by_id(batch([3], 6))
    # its lists have two levels, which the Java library of Iceberg does not read
    assert {one.source for one in table.validate().differences} == old_lists(table_format)
    assert bool(table.repair().rewritten) == ("iceberg" in table_format)
    agree(path, held, by)
    assert by_id(hudi_spark.read(path)) == held
    assert table.validate().is_valid
    updated(hudi_spark, path, 2, 7)
    assert hudi.Table.open(str(path)).repair().left == ()
    held |= by_id(batch([2], 7))
    agree(path, held, by)
    assert hudi.Table.open(str(path)).validate().is_valid


@pytest.mark.parametrize("service", ["clean", "archive"])
@pytest.mark.parametrize("table_format", PUBLISHED)
def test_its_services_before_we_publish(
    hudi_spark: Engine,
    iceberg_spark: Engine,
    delta_spark: Engine,
    tmp_path: Path,
    table_format: str,
    service: str,
) -> None:
    """It cleans or archives what the formats still need: an error names it, and repair cures."""
    path = tmp_path / "t"
    made(path, table_format, "9")
    for ts in range(5, 12):
        updated(hudi_spark, path, 2, ts)
    hudi_spark.sql(f"call run_clean(table => '{name_of(path)}', retain_commits => 1)")
    if service == "archive":
        hudi_spark.sql(
            f"call archive_commits(path => '{path}', min_commits => 2, max_commits => 3, "
            "retain_commits => 1)"
        )
    table = hudi.Table.open(str(path))
    for call in (table.to_arrow, lambda: table.upsert(batch([3], 20), options=NO_SERVICES)):
        with pytest.raises(UnpublishedCommitsError, match="hudi table repair"):
            call()
    assert not table.validate().is_valid
    assert table.repair().left == ()
    table = hudi.Table.open(str(path))
    by = readers(table_format, iceberg_spark, delta_spark)
    held = by_id(batch(range(1, 7), 1)) | by_id(batch([2], 11))
    agree(path, held, by)
    table.upsert(batch([3], 20), options=NO_SERVICES)
    agree(path, held | by_id(batch([3], 20)), by)
    assert table.validate().is_valid
