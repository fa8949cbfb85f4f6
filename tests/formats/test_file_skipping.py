"""A filter that one of three files can meet reads one file, in every format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_conformance.formats.trace import install

import hudi_core as hudi
from hudi_core.metadata.lister import MetadataLister
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.spi import (
    FileIndex,
    FileStatus,
    FormatCapabilities,
    InstantNotFoundError,
    InstantTime,
    MetaClientView,
    PartitionPath,
)
from hudi_core.spi.files import table_lister
from tests.formats.toy_format import ToyFormat
from tests.tables import TABLES, new_table

BOUNDED = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("share", pa.float64()),
        ("place", pa.struct([("zip", pa.int32())])),
    ]
)
LONG = "x" * 40
AT = datetime(2026, 1, 1, tzinfo=UTC)


def three_rows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": 10 * number + n,
            "name": f"{number}{LONG}{n}",
            "price": Decimal(10 * number + n),
            "day": date(2026, 1, 10 * number + n + 1),
            "at": AT + timedelta(days=number, microseconds=n * 1001),
            "share": math.nan if (number, n) == (1, 0) else number + n / 10,
            "place": {"zip": None if number == 2 else number},
        }
        for n in range(3)
    ]


EVERY_ROW = [row for number in range(3) for row in three_rows(number)]


def filled(
    path: Path, format_: str = "rangeless", options: dict[str, str] | None = None
) -> hudi.Table:
    """A table of three files."""
    made = new_table(path, BOUNDED, options, format=format_, partition_by=None)
    for number in range(3):
        made.bulk_insert(pa.Table.from_pylist(three_rows(number), BOUNDED))
    return made


class NoRanges(FileIndex):
    """Lists files, and knows nothing else."""

    def __init__(self, client: MetaClientView) -> None:
        self.table = table_lister(client)

    def list_partitions(self) -> Sequence[PartitionPath]:
        return self.table.list_partitions()

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        return self.table.list_files(partitions)


class NoRangesFactory:
    """Makes it."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        return NoRanges(meta_client)


class NoRangesFormat(ToyFormat):
    """The toy format with a lister of its own."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of("copy_on_write", "unpartitioned")

    def get_metadata_factory(self) -> Any:
        return NoRangesFactory()


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("site")
    install(folder, {"rangeless": f"{__name__}:NoRangesFormat"})
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        yield


@pytest.fixture(
    scope="module",
    params=[
        *((one, "true") for one in ("native", "rangeless")),
        *((f, m) for f in ("iceberg", "delta") for m in ("true", "false")),
    ],
    ids=lambda given: f"{given[0]}-{'with' if given[1] == 'true' else 'without'}-metadata-table",
)
def three_files(
    request: pytest.FixtureRequest, installed: None, tmp_path_factory: pytest.TempPathFactory
) -> hudi.Table:
    format_, metadata = request.param
    path: Path = tmp_path_factory.mktemp(format_) / "t"
    options = {"hoodie.metadata.enable": metadata}
    filled(path, format_, options)
    return hudi.Table.open(path, options)


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ([("id", "=", 11)], [11]),
        ([("id", "in", [1, 2])], [1, 2]),
        ([("name", ">", "2")], [20, 21, 22]),
        ([("price", "<", 1)], [0]),
        ([("day", ">=", "2026-01-22")], [21, 22]),
        ([("at", "=", AT + timedelta(days=1, microseconds=2002))], [12]),
        ((pc.field("id") > 21) | (pc.field("id") == 25), [22]),
    ],
    ids=str,
)
def test_one_file_of_three(given: Any, ids: list[int], three_files: hudi.Table) -> None:
    assert len(three_files.file_slices(filter=given)) == 1
    assert sorted(three_files.to_arrow(filter=given)["id"].to_pylist()) == ids


def test_no_row_is_lost_to_unknown_bounds(three_files: hudi.Table) -> None:
    """Of a file with NaN, of nulls, and of texts that are longer than a bound."""
    different = [row["id"] for row in EVERY_ROW if row["share"] != 0.1]
    assert (
        sorted(three_files.to_arrow(filter=[("share", "!=", 0.1)])["id"].to_pylist()) == different
    )
    assert len(three_files.file_slices(filter=[("share", "!=", 5.0)])) == 3
    nulls = three_files.to_arrow(filter=pc.field("place", "zip").is_null())
    assert sorted(nulls["id"].to_pylist()) == [20, 21, 22]
    for row in EVERY_ROW:
        found = three_files.to_arrow(filter=[("name", "=", row["name"]), ("at", "=", row["at"])])
        assert found["id"].to_pylist() == [row["id"]]


def test_a_damaged_metadata_table_takes_no_read_away(path: Path) -> None:
    filled(path)
    for file in (path / ".hoodie" / "metadata" / "column_stats").iterdir():
        file.write_bytes(b"no file of an index")
    for file in (path / ".hoodie" / "metadata" / "column_stats").iterdir():
        assert file.read_bytes() == b"no file of an index"
    table = hudi.Table.open(path)
    assert len(table.file_slices(filter=[("id", "=", 11)])) == 3
    assert table.to_arrow(filter=[("id", "=", 11)])["id"].to_pylist() == [11]


def test_several_columns_open_the_metadata_table_once_beside_the_format(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filled(path)

    def opened(columns: int) -> int:
        found = []
        real = MetadataSnapshot.open
        row = three_rows(1)[0]
        wanted = [(name, "=", row[name]) for name in ("id", "name", "at")[:columns]]
        table = hudi.Table.open(made.path)

        def counted(*given: Any) -> MetadataSnapshot:
            found.append(given)
            return real(*given)

        with monkeypatch.context() as patched:
            patched.setattr(MetadataSnapshot, "open", counted)
            assert len(table.file_slices(filter=wanted)) == 1
        return len(found)

    assert opened(3) == opened(1)


def test_ranges_that_go_away_take_no_read_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = filled(path)
    asked = []

    def gone(*_: object) -> None:
        asked.append(1)
        raise InstantNotFoundError(InstantTime("20260101000000000"), "its timeline")

    monkeypatch.setattr(MetadataLister, "file_ranges", gone)
    wanted = [("id", "=", three_rows(0)[0]["id"])]
    assert len(hudi.Table.open(made.path).file_slices(filter=wanted)) == 3
    assert asked


NAMED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    # what is left out is left out by the index alone
    "hoodie.metadata.index.column.stats.column.list": "id",
}


def named(*some: tuple[int, str]) -> pa.Table:
    days = [number * 400 for number, _ in some]
    columns = {"id": [number for number, _ in some], "name": [name for _, name in some]}
    return pa.table({**columns, "day": pa.array(days, pa.int32()).cast(pa.date32())}, NAMED)


@pytest.mark.parametrize("table_format", TABLES)
def test_every_format_has_them(path: Path, table_format: str) -> None:
    rows_ = named((1, "Ann"), (2, "ANTON"))
    table = new_table(path, rows_, OPTIONS, format=table_format, partition_by=None)
    table.create_index("low", "name", using="column_stats", options={"expr": "lower"})
    table.create_index("year", "day", using="column_stats", options={"expr": "year"})
    for number, name in ((3, "Bob"), (4, "Cid")):
        table.insert(named((number, name)))
    table.upsert(named((4, "Zoe")))
    table.delete(named((3, "")).select(["id"]))
    reader = hudi.Table.open(path, options=OPTIONS)
    low = reader.metadata("expr_index_low").to_pylist()
    assert ("ann", "anton") in [(one["min_value"], one["max_value"]) for one in low]
    for name, expected in (("ANTON", [2]), ("Zoe", [4]), ("Cid", []), ("ann", [])):
        condition = [("name", "=", name)]
        assert reader.to_arrow(["id"], filter=condition)["id"].to_pylist() == expected
    reader = hudi.Table.open(path, options=OPTIONS)
    assert len(reader.file_slices(filter=[("name", "=", "Zoe")])) < len(reader.file_slices())
    report = reader.validate()
    assert report.is_valid, report.differences
    assert "records of expr_index_year" in report.checked
