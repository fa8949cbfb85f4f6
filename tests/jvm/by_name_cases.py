"""Tables that a sync registered in a Hive metastore, read by their names by each format's engine.

The metastore is the catalog of Hudi-Spark, Iceberg-Spark and Delta-Spark. They find the rows that
we find, leave out the files that a filter excludes, and see what later syncs add.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.table_keys import TableKeys
from tests.jvm.engines import DELTA, HUDI, ICEBERG, Engine, Kind
from tests.tables import new_table

TWO: Final = ("Rome", "Oslo")
COLUMNS: Final = ("id", "name", "city", "v")
WHERES: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "true": lambda row: True,
    "city = 'Rome'": lambda row: row["city"] == "Rome",
    "city IN ('Rome', 'Oslo') AND v > 3": lambda row: row["city"] in TWO and row["v"] > 3,
    "city <> 'Rome'": lambda row: row["city"] != "Rome",
    "v < 2.5": lambda row: row["v"] < 2.5,
    "name = 'rider 7' OR id = 2": lambda row: row["id"] in (2, 7),
    "note IS NULL": lambda row: row["note"] is None,
    "city = 'nowhere'": lambda row: False,
}
"""What is asked for, in SQL and as it is meant."""
_HIVE: Final = {"hoodie.datasource.write.hive_style_partitioning": "true"}
_VIRTUAL: Final = {"hoodie.populate.meta.fields": "false"}


@dataclass(frozen=True)
class Layout:
    """What a native table is made as."""

    name: str
    partition_by: str | list[str] | None = "city"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_by_city(self) -> bool:
        return self.partition_by is not None


LAYOUTS: Final = (
    Layout("folders"),
    Layout("hive-style", options=_HIVE),
    Layout("two-columns", ["city", "day"], _HIVE),
    Layout("unpartitioned", None),
    Layout("virtual-keys", options=_HIVE | _VIRTUAL),
    Layout("unpartitioned-virtual-keys", None, _VIRTUAL),
    Layout("no-metadata-table", options=_HIVE | {"hoodie.metadata.enable": "false"}),
)
VERSIONS: Final = ("8", "9")


def rider_rows(first: int, count: int, **more: Any) -> pa.Table:
    """Rows of three cities."""
    return pa.Table.from_pylist(
        [
            {
                "id": n,
                "name": f"rider {n}",
                "city": ("Rome", "Oslo", "Ulm")[n % 3],
                "day": f"2026-01-0{1 + n % 2}",
                "v": n / 2,
                "note": None if n % 4 else "kept",
                **more,
            }
            for n in range(first, first + count)
        ],
        RIDERS,
    )


RIDERS: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("city", pa.string()),
        ("day", pa.string()),
        ("v", pa.float64()),
        ("note", pa.string()),
    ]
)


@dataclass(frozen=True)
class Lake:
    """A database of the metastore, and an engine whose catalog it is.

    ``catalog``: what stands before the names of tables in SQL.
    """

    engine: Engine
    folder: Path
    uri: str
    database: str
    catalog: str = ""

    def create(self, format_name: str, layout: Layout, version: str = "8") -> hudi.Table:
        """Make a table that has been written to several times, and register it."""
        name = f"t{uuid.uuid4().hex}"
        table = new_table(
            self.folder / name,
            RIDERS,
            {
                TableKeys.version.key: version,
                "hoodie.fs.fsync": "false",
                "hoodie.parquet.small.file.limit": "0",
                **layout.options,
            },
            format=format_name,
            partition_by=layout.partition_by,
        )
        table.insert(rider_rows(0, 12))
        table.upsert(rider_rows(3, 2, v=100.0))
        table.delete(rider_rows(5, 1))
        table.insert(rider_rows(20, 6))
        self.sync(table)
        return table

    def sync(self, table: hudi.Table) -> None:
        """Register a table, or bring its entry up to date."""
        table.sync(
            "hive",
            options={
                "hoodie.datasource.hive_sync.metastore.uris": self.uri,
                "hoodie.datasource.hive_sync.database": self.database,
                "hoodie.datasource.hive_sync.table": table.config.name,
            },
        )
        # Spark remembers the files of a table that it has read
        self.engine.sql(f"REFRESH TABLE {self.name(table)}")

    def name(self, table: hudi.Table) -> str:
        """The table's name in SQL."""
        return f"{self.catalog}{self.database}.{table.config.name}"

    def require_same(self, table: hudi.Table) -> dict[str, int]:
        """Compare the answers of all filters with ours; return how many files each has read."""
        known = table.to_arrow().to_pylist()
        found = self.engine.answers(self.name(table), COLUMNS, list(WHERES), source="table")
        for (where, meant), answer in zip(WHERES.items(), found, strict=True):
            right = [tuple(row[name] for name in COLUMNS) for row in known if meant(row)]
            assert answer.error == "", where
            assert answer.rows == sorted(right, key=repr), where
        counted = self.engine.sql(f"SELECT count(*) FROM {self.name(table)}")
        assert counted == [(len(known),)]
        return {where: one.files for where, one in zip(WHERES, found, strict=True)}


Made = Callable[[Kind, Mapping[str, str], str], Lake]


@pytest.fixture(scope="module")
def lakes(metastore: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    started: list[Engine] = []

    def make(kind: Kind, conf: Mapping[str, str], catalog: str) -> Lake:
        hive = {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": metastore.uri,
        }
        folder = tmp_path_factory.mktemp(kind.name)
        engine = Engine(kind, folder / "spark", more=hive | dict(conf))
        started.append(engine)
        return Lake(engine, folder, metastore.uri, f"d{uuid.uuid4().hex}", catalog)

    yield make
    for engine in started:
        engine.stop()


@pytest.fixture(scope="module")
def hudi_lake(lakes: Made) -> Lake:
    return lakes(HUDI, {}, "")


@pytest.fixture(scope="module")
def iceberg_lake(lakes: Made, metastore: Any) -> Lake:
    catalog = "spark.sql.catalog.lake"
    conf = {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hive",
        f"{catalog}.uri": metastore.uri,
        f"{catalog}.cache-enabled": "false",
    }
    return lakes(ICEBERG, conf, "lake.")


@pytest.fixture(scope="module")
def delta_lake(lakes: Made) -> Lake:
    return lakes(DELTA, {}, "")


def files_of(table: hudi.Table, city: str) -> int:
    """How many files hold rows of a city."""
    return len(table.file_slices(filter=[("city", "=", city)]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_rows_and_partitions(hudi_lake: Lake, layout: Layout, version: str) -> None:
    """Filters by columns and partitions; of other partitions no file is read."""
    table = hudi_lake.create("native", layout, version)
    read = hudi_lake.require_same(table)
    assert read["true"] == len(table.file_slices())
    if layout.is_by_city:
        assert read["city = 'Rome'"] == files_of(table, "Rome") < read["true"]
        assert read["city = 'nowhere'"] == 0
        listed = hudi_lake.engine.sql(f"SHOW PARTITIONS {hudi_lake.name(table)}")
        assert len(listed) == len({one.group.partition_path for one in table.file_slices()})


@pytest.mark.parametrize("version", VERSIONS)
def test_what_later_syncs_tell(hudi_lake: Lake, version: str) -> None:
    """A new partition, one that is gone, replaced rows, a new column, and a rollback."""
    table = hudi_lake.create("native", LAYOUTS[1], version)
    before = table.timeline.completed_writes()[-1]
    table.insert(rider_rows(40, 3, city="Bonn"))
    table.delete_partitions(["city=Oslo"])
    hudi_lake.sync(table)
    assert hudi_lake.require_same(table)["city IN ('Rome', 'Oslo') AND v > 3"] > 0
    listed = hudi_lake.engine.sql(f"SHOW PARTITIONS {hudi_lake.name(table)}")
    assert [name for (name,) in sorted(listed)] == ["city=Bonn", "city=Rome", "city=Ulm"]

    name = hudi_lake.name(table)
    then = f"SELECT count(*) FROM {name} TIMESTAMP AS OF '{before.requested_time}'"
    assert hudi_lake.engine.sql(then) == [(table.count(as_of=before),)]

    table.alter(add_columns={"tip": pa.int64()})
    last = table.insert(rider_rows(50, 3).append_column("tip", pa.array([1, 2, 3], pa.int64())))
    hudi_lake.sync(table)
    hudi_lake.require_same(table)
    tips = hudi_lake.engine.sql(f"SELECT tip FROM {name} WHERE tip IS NOT NULL ORDER BY tip")
    assert tips == [(1,), (2,), (3,)]

    table.rollback(last.instant)
    hudi_lake.sync(table)
    hudi_lake.require_same(table)
    assert hudi_lake.engine.sql(f"SELECT tip FROM {name} WHERE tip IS NOT NULL") == []


@pytest.mark.parametrize("layout", LAYOUTS[1:4], ids=lambda layout: layout.name)
def test_statements_that_write(hudi_lake: Lake, layout: Layout) -> None:
    """UPDATE and DELETE by the name; we read, write and sync on."""
    table = hudi_lake.create("native", layout, "9")
    name = hudi_lake.name(table)
    hudi_lake.engine.sql(f"UPDATE {name} SET v = v + 1000 WHERE id = 4")
    hudi_lake.engine.sql(f"DELETE FROM {name} WHERE id = 1")
    read = hudi.Table.open(table.path)
    found = dict(zip(*read.to_arrow(["id", "v"]).to_pydict().values(), strict=True))
    assert found[4] == 1100.0
    assert 1 not in found
    read.upsert(rider_rows(60, 3))
    hudi_lake.sync(read)
    hudi_lake.require_same(read)
    assert read.validate().differences == ()


@pytest.mark.parametrize("partition_by", ["city", None], ids=["partitioned", "unpartitioned"])
def test_iceberg_entries(iceberg_lake: Lake, partition_by: str | None) -> None:
    """Rows, filters, the snapshots, and what a later sync adds."""
    table = iceberg_lake.create("iceberg", Layout("", partition_by))
    iceberg_lake.require_same(table)
    name = iceberg_lake.name(table)
    snapshots = iceberg_lake.engine.sql(f"SELECT count(*) FROM {name}.snapshots")
    assert snapshots[0][0] >= len(table.timeline.completed_writes())
    table.upsert(rider_rows(2, 2, v=7.0))
    table.alter(add_columns={"tip": pa.int64()})
    iceberg_lake.sync(table)
    iceberg_lake.require_same(table)
    assert iceberg_lake.engine.sql(f"SELECT count(tip) FROM {name}") == [(0,)]


@pytest.mark.parametrize("partition_by", ["city", None], ids=["partitioned", "unpartitioned"])
def test_delta_entries(delta_lake: Lake, partition_by: str | None) -> None:
    """Rows and filters, with the partitions that they leave out; the entry needs no later sync."""
    table = delta_lake.create("delta", Layout("", partition_by))
    read = delta_lake.require_same(table)
    if partition_by is not None:
        assert read["city = 'Rome'"] == files_of(table, "Rome") < read["true"]
    table.upsert(rider_rows(2, 2, v=7.0))
    table.alter(add_columns={"tip": pa.int64()})
    delta_lake.require_same(table)
    name = delta_lake.name(table)
    assert delta_lake.engine.sql(f"SELECT count(tip) FROM {name}") == [(0,)]
