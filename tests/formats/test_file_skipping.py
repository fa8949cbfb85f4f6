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

SCHEMA = pa.schema(
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


def rows(number: int) -> list[dict[str, Any]]:
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


EVERY_ROW = [row for number in range(3) for row in rows(number)]


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
def table(
    request: pytest.FixtureRequest, installed: None, tmp_path_factory: pytest.TempPathFactory
) -> hudi.Table:
    format_, metadata = request.param
    path: Path = tmp_path_factory.mktemp(format_) / "t"
    options = {"hoodie.fs.fsync": "false", "hoodie.metadata.enable": metadata}
    made = hudi.Table.create(str(path), SCHEMA, record_key="id", format=format_, options=options)
    for number in range(3):
        made.bulk_insert(pa.Table.from_pylist(rows(number), SCHEMA))
    return hudi.Table.open(str(path), options)


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
def test_one_file_of_three(given: Any, ids: list[int], table: hudi.Table) -> None:
    assert len(table.file_slices(filter=given)) == 1
    assert sorted(table.to_arrow(filter=given)["id"].to_pylist()) == ids


def test_no_row_is_lost_to_unknown_bounds(table: hudi.Table) -> None:
    """Of a file with NaN, of nulls, and of texts that are longer than a bound."""
    different = [row["id"] for row in EVERY_ROW if row["share"] != 0.1]
    assert sorted(table.to_arrow(filter=[("share", "!=", 0.1)])["id"].to_pylist()) == different
    assert len(table.file_slices(filter=[("share", "!=", 5.0)])) == 3
    nulls = table.to_arrow(filter=pc.field("place", "zip").is_null())
    assert sorted(nulls["id"].to_pylist()) == [20, 21, 22]
    for row in EVERY_ROW:
        found = table.to_arrow(filter=[("name", "=", row["name"]), ("at", "=", row["at"])])
        assert found["id"].to_pylist() == [row["id"]]


def test_a_damaged_metadata_table_takes_no_read_away(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = {"hoodie.fs.fsync": "false"}
    made = hudi.Table.create(
        str(path), SCHEMA, record_key="id", format="rangeless", options=options
    )
    for number in range(3):
        made.bulk_insert(pa.Table.from_pylist(rows(number), SCHEMA))
    for file in (path / ".hoodie" / "metadata" / "column_stats").iterdir():
        file.write_bytes(b"no file of an index")
    for file in (path / ".hoodie" / "metadata" / "column_stats").iterdir():
        assert file.read_bytes() == b"no file of an index"
    table = hudi.Table.open(str(path), options)
    assert len(table.file_slices(filter=[("id", "=", 11)])) == 3
    assert table.to_arrow(filter=[("id", "=", 11)])["id"].to_pylist() == [11]


def test_several_columns_open_the_metadata_table_once_beside_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        record_key="id",
        format="rangeless",
        options={"hoodie.fs.fsync": "false"},
    )
    for number in range(3):
        made.bulk_insert(pa.Table.from_pylist(rows(number), SCHEMA))

    def opened(columns: int) -> int:
        found = []
        real = MetadataSnapshot.open
        row = rows(1)[0]
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


def test_ranges_that_go_away_take_no_read_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        record_key="id",
        format="rangeless",
        options={"hoodie.fs.fsync": "false"},
    )
    for number in range(3):
        made.bulk_insert(pa.Table.from_pylist(rows(number), SCHEMA))
    asked = []

    def gone(*_: object) -> None:
        asked.append(1)
        raise InstantNotFoundError(InstantTime("20260101000000000"), "its timeline")

    monkeypatch.setattr(MetadataLister, "file_ranges", gone)
    wanted = [("id", "=", rows(0)[0]["id"])]
    assert len(hudi.Table.open(made.path).file_slices(filter=wanted)) == 3
    assert asked
