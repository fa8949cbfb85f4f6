"""Measure the connector: splits of a large table, narrow and repeated scans, Thrift pages.

``make bench-connector`` runs it; ``README.md`` says what is measured and has the results.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from hive_metastore import ttypes
from metadata_timing import measure
from ours import Ours
from run_of_cases import Compared, main
from targets import Target
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer
from workload import Source, make_base

import hudi_core as hudi
from hudi_core.doors.connector import Connector
from hudi_core.metastore.catalog import MetastoreTable
from hudi_core.metastore.hive import HiveMetastore
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileStatus, PartitionPath, derive_file_id
from hudi_core.read.connector.handles import QueryKind, TableHandle, TableName
from hudi_core.read.connector.listing import SnapshotListing
from hudi_core.read.connector.partitions import BatchSizes, MetastorePartitions, PartitionInfo
from hudi_core.read.connector.predicate import ALL
from hudi_core.read.connector.splits import SplitFactory
from hudi_core.read.query import SnapshotQuery
from hudi_core.services.opening import open_table
from hudi_core.trino.blocks import page
from hudi_core.trino.wire import (
    TRINO,
    BigintValues,
    Block,
    DoubleValues,
    TimestampValues,
    VarcharValues,
)

# the metastore is that of the tests
sys.path.append(str(Path(__file__).resolve().parent.parent))

from hudi_conformance.hive_metastore import HiveMetastore as Service
from hudi_conformance.hive_metastore import hive_metastore

PARTITIONS, FILES = 1000, 100
"""Partitions of the planned table, and files of each."""
LATENCY_S = 0.005
"""What listing a partition waits for its store."""
ROWS = 2_000_000
FIRST, ALL_SPLITS, NARROW = "first-splits", "all-splits", "two-of-22-columns"
THRIFT = "thrift-pages"
UNCHANGED = {one: f"unchanged-{one}" for one in ("native", "iceberg", "delta")}
CASES = (FIRST, ALL_SPLITS, NARROW, *UNCHANGED.values(), THRIFT)
BACKGROUND, SYNCHRONOUS = "background", "synchronous"
READER, SPLITS, ARROW = "scan", "splits", "pyarrow"
PAGES, GENERIC = "pages", "generic"
AGAIN, OPENED = "again", "opened"
FILTERED = "filtered "
PLANNED_FILES = 1000
"""Files of the table that is planned again and again."""
TWO = ["rider", "fare"]
PAGE_ROWS = 100_000

TARGETS = (
    Target(FIRST, BACKGROUND, SYNCHRONOUS, 0.05),
    Target(ALL_SPLITS, BACKGROUND, SYNCHRONOUS, 0.2),
    Target(NARROW, READER, ARROW, 1.1),
    Target(NARROW, SPLITS, ARROW, None),
    *(
        Target(case, f"{way}{AGAIN}", f"{way}{OPENED}", None)
        for case in UNCHANGED.values()
        for way in ("", FILTERED)
    ),
    Target(THRIFT, PAGES, GENERIC, 0.1),
)


class Found(Compared):
    """A finished run."""

    measures = ("ratio", "work")

    def circumstances(self) -> str:
        return self.text(("hudi-core", "pyarrow"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """The targets of the cases that were run, with the ratios by the clock and of work."""
        clock = {(one.case, one.variant): one.median for one in self.timings}
        work = {(one.case, one.variant): one.median_work for one in self.timings}
        run = {case for case, _ in clock}
        return [(one, one.ratio(clock), one.ratio(work)) for one in TARGETS if one.case in run]


class SlowIndex(FileIndex):
    """The files of a table that is not there; each list of them takes its time."""

    def __init__(self, instant: str, partitions: int) -> None:
        self._instant, self._partitions = instant, partitions

    def list_partitions(self) -> Sequence[PartitionPath]:
        return [PartitionPath(day(n)) for n in range(self._partitions)]

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        time.sleep(LATENCY_S * len(partitions))
        return {path: self._files(path) for path in partitions}

    def _files(self, path: PartitionPath) -> Sequence[FileStatus]:
        begin = int(path.rpartition("=")[2])
        names = (
            f"{derive_file_id(self._instant, begin, n)}_0-{n}-0_{self._instant}.parquet"  # type: ignore[arg-type]
            for n in range(FILES)
        )
        return [FileStatus(f"{path}/{name}", 120 << 20) for name in names]


def day(number: int) -> str:
    return f"day={number:04d}"


@dataclass
class Planned:
    """A large table in a metastore, and both ways to plan a scan of it."""

    uri: str
    handle: TableHandle
    entry: MetastoreTable
    path: str
    instant: str
    partitions: int

    def first(self) -> int:
        """The splits of the first batch, with the planning before."""
        with Connector({"hive.metastore.uri": self.uri}).split_manager.load(
            self.handle, self._listing()
        ) as source:
            return len(source.get_next_batch().splits)

    def all(self) -> int:
        """The number of all splits, planned in the background."""
        connector = Connector({"hive.metastore.uri": self.uri})
        with connector.split_manager.load(self.handle, self._listing()) as source:
            return sum(1 for _ in source)

    def one_by_one(self) -> int:
        """The number of all splits, planned in one thread with one partition a call."""
        connector, listing = Connector({"hive.metastore.uri": self.uri}), self._listing()
        factory = SplitFactory.of(self.path, listing.schema, ALL, listing.mark, connector.config)
        splits = []
        source = MetastorePartitions(
            HiveMetastore([self.uri]), self.entry, listing, self.handle, BatchSizes(1, 1)
        )
        for batch in source.batches():
            for info in batch:
                splits += _splits_of(info, listing, factory)
        source.close()
        return len(splits)

    def _listing(self) -> SnapshotListing:
        opened = open_table(self.path, {})
        index = SlowIndex(self.instant, self.partitions)
        return SnapshotListing(SnapshotQuery(opened.client, index, opened.timeline()), ALL)


def _splits_of(
    info: PartitionInfo, listing: SnapshotListing, factory: SplitFactory
) -> list[object]:
    found = listing.list_files([info.path])
    return [split for file in found for split in factory.splits(file, info)]


def planned_table(folder: Path, service: Service, partitions: int) -> Planned:
    """Make a table, and partitions in the metastore that only it and the index know."""
    rows = pa.table({"id": pa.array([1], pa.int64()), "day": ["0000"]})
    table = hudi.Table.create(
        folder / "planned",
        rows,
        record_key="id",
        partition_by="day",
        options={"hoodie.datasource.write.hive_style_partitioning": True},
    )
    instant = table.insert(rows).instant
    columns = [ttypes.FieldSchema(name="id", type="bigint")]
    with service.client() as client:
        place = _descriptor(columns, table.path)
        keys = [ttypes.FieldSchema(name="day", type="string")]
        client.create_table(
            ttypes.Table(
                tableName="planned",
                dbName="default",
                sd=place,
                partitionKeys=keys,
                parameters={"EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
            )
        )
        client.add_partitions(
            [
                ttypes.Partition(
                    values=[f"{n:04d}"],
                    dbName="default",
                    tableName="planned",
                    sd=_descriptor(columns, f"{table.path}/{day(n)}"),
                )
                for n in range(partitions)
            ]
        )
    with closing(HiveMetastore([service.uri])) as metastore:
        entry = metastore.table("default", "planned")
    assert entry is not None
    handle = TableHandle(
        table.path,
        TableName("default", "planned"),
        QueryKind.SNAPSHOT,
        "native",
        ("day",),
        entry,
    )
    return Planned(service.uri, handle, entry, table.path, instant.requested_time, partitions)


def _descriptor(columns: list[ttypes.FieldSchema], place: str) -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(
        cols=columns,
        location=place,
        inputFormat="org.apache.hudi.hadoop.HoodieParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serdeInfo=ttypes.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            parameters={},
        ),
    )


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases."""
    found = Found(scale)
    if FIRST in cases or ALL_SPLITS in cases:
        (folder / "metastore").mkdir()
        with hive_metastore(folder / "metastore") as service:
            planned = planned_table(folder, service, max(20, round(PARTITIONS * scale)))
            _plan(found, planned, cases, repeats)
    if NARROW in cases:
        path = folder / "trips"
        batch = make_base(folder / "rows", Source("base", max(20_000, round(ROWS * scale))))
        Ours("local", metadata=True).load(batch, path)
        found.loads.append(os.getloadavg()[0])
        found.timings += measure(NARROW, _scans(str(path)), 7 * repeats)
    for format_name, case in UNCHANGED.items():
        if case in cases:
            files = max(20, round(PLANNED_FILES * scale))
            planned_path = _many_files(folder / case, format_name, files)
            found.loads.append(os.getloadavg()[0])
            found.timings += measure(case, _plans(planned_path, files), 3 * repeats)
    if THRIFT in cases:
        found.loads.append(os.getloadavg()[0])
        found.timings += measure(THRIFT, _pages(max(1000, round(PAGE_ROWS * scale))), repeats)
    return found


def _plan(found: Found, planned: Planned, cases: Sequence[str], repeats: int) -> None:
    count = planned.partitions * FILES
    ways: dict[str, tuple[Callable[[], int], int | None]] = {
        FIRST: (planned.first, None),
        ALL_SPLITS: (planned.all, count),
    }
    for case in (one for one in cases if one in ways):
        way, expected = ways[case]
        found.loads.append(os.getloadavg()[0])
        calls = {BACKGROUND: way, SYNCHRONOUS: planned.one_by_one}
        found.timings += measure(case, calls, repeats, expected)


def _scans(path: str) -> dict[str, Callable[[], int]]:
    """Scans of two columns: by the dataset, by splits, and of the same files by pyarrow."""
    table = hudi.Table.open(path)
    files = table.scan().files
    connector = Connector()

    def by_splits() -> int:
        with connector.scan(path) as source:
            return sum(connector.read(one, TWO).read_all().num_rows for one in source)

    return {
        READER: lambda: table.scan().to_table(TWO).num_rows,
        SPLITS: by_splits,
        ARROW: lambda: ds.dataset(files, format="parquet").to_table(TWO).num_rows,
    }


def _many_files(path: Path, format_name: str, files: int) -> str:
    """Make a table of many files in 20 partitions, one row in each."""
    rows = pa.table(
        {
            "id": pa.array(range(files), pa.int64()),
            "city": [f"city {n % 20}" for n in range(files)],
            "fare": [n / 2 for n in range(files)],
        }
    )
    table = hudi.Table.create(
        path,
        rows,
        record_key="id",
        partition_by="city",
        format=format_name,
        options={
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "1",
            "hoodie.fs.fsync": "false",
        },
    )
    table.insert(rows)
    return table.path


def _plans(path: str, files: int) -> dict[str, Callable[[], int]]:
    """Plans of an unchanged table: by one that stays open, and by one that is opened each time."""
    table = hudi.Table.open(path)
    some = [("fare", ">=", (files - 5) / 2)]
    return {
        AGAIN: lambda: len(table.scan().files),
        OPENED: lambda: len(hudi.Table.open(path).scan().files),
        f"{FILTERED}{AGAIN}": lambda: len(table.scan(some).files),
        f"{FILTERED}{OPENED}": lambda: len(hudi.Table.open(path).scan(some).files),
    }


def _pages(rows: int) -> dict[str, Callable[[], int]]:
    """A page of Trino's protocol: of whole arrays, and by Thrift's own serializer of lists."""
    columns = {
        "bigint": pa.array(range(rows), pa.int64()),
        "double": pa.array([n / 3 for n in range(rows)], pa.float64()),
        "varchar": pa.array([f"rider-{n}" for n in range(rows)]),
        "timestamp": pa.array(range(rows), pa.timestamp("ms")),
    }
    result = TRINO.struct("Page", "1: list<Block> blocks, 2: i32 rows")

    def generic() -> int:
        bigint, double, text, time = (
            columns[name].to_pylist() for name in ("bigint", "double", "varchar", "timestamp")
        )
        data = [one.encode() for one in text]
        sizes = [len(one) for one in data]
        times = [round(one.timestamp() * 1000) for one in time]
        blocks = [
            Block(bigint=BigintValues(values=bigint)),
            Block(double=DoubleValues(values=double)),
            Block(varchar=VarcharValues(sizes=sizes, data=b"".join(data))),
            Block(timestamp=TimestampValues(values=times)),
        ]
        buffer = TMemoryBuffer()
        result(blocks=blocks, rows=rows).write(TBinaryProtocolAccelerated(buffer, fallback=False))
        return len(buffer.getvalue())

    return {PAGES: lambda: len(page(list(columns.values()), rows, None)), GENERIC: generic}


if __name__ == "__main__":
    sys.exit(main(__doc__, "connector", CASES, 3, run))
