"""Iceberg tables for tests, and the readers that judge them: none of them is this project's."""

from __future__ import annotations

import datetime as dt
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from hudi import HudiTableBuilder
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot, ancestors_of

import hudi_core as hudi
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from tests.formats import columns
from tests.formats.columns import CITIES
from tests.tables import new_table

NOTED = columns.TYPED.append(pa.field("notes", pa.map_(pa.string(), pa.int64())))
OPTIONS = {
    "hoodie.table.format": "iceberg",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.fs.fsync": "false",
}
OWN_STATE = "hudi.state"

Row = dict[str, Any]


def row(key: int, ts: int = 0) -> Row:
    """A row whose key decides its partition, as the index looks only there."""
    return {
        "id": f"k{key:03d}",
        "city": CITIES[key % len(CITIES)],
        "ts": ts,
        "value": float("nan") if key % 7 == 6 else key - 3.5,
        "price": Decimal(key - 2) + Decimal("0.0000000001"),
        "at": dt.datetime(2024, 1, 1, 12, 0, 0, key, tzinfo=dt.UTC),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=key),
        "flag": bool(key % 2),
        "inner": None if key % 4 == 3 else {"x": key, "word": "wörd" * (3 + key % 5)},
        "tags": [None, "a", "b"][: key % 4],
        "notes": [("n", key)] * (key % 2),
    }


def typed(keys: Iterable[int], ts: int = 0) -> pa.Table:
    return pa.Table.from_pylist([row(key, ts) for key in keys], NOTED)


def create(path: Path, partition_by: str | list[str] | None = "city", **options: str) -> hudi.Table:
    return new_table(path, NOTED, {**OPTIONS, **options}, partition_by=partition_by)


def opened(path: Path) -> OpenTable:
    return open_table(str(path), {"hoodie.fs.fsync": "false"})


def bag(table: pa.Table) -> Counter[str]:
    return Counter(repr(sorted(each.items())) for each in table.to_pylist())


@dataclass(frozen=True)
class Iceberg:
    """The table as pyiceberg sees it."""

    path: Path

    @property
    def table(self) -> StaticTable:
        return StaticTable.from_metadata(str(self.path))

    @property
    def lineage(self) -> list[Snapshot]:
        """The instants' snapshots, the oldest first."""
        metadata = self.table.metadata
        chain = reversed(list(ancestors_of(metadata.current_snapshot(), metadata)))
        return [one for one in chain if OWN_STATE not in summary(one)]

    def rows(self, columns: Sequence[str], snapshot_id: int | None = None) -> pa.Table:
        return self.table.scan(snapshot_id=snapshot_id).to_arrow().select(columns)

    def paths(self) -> set[str]:
        root = f"file://{self.path}/"
        return {one.file.file_path.removeprefix(root) for one in self.table.scan().plan_files()}


def summary(snapshot: Snapshot) -> dict[str, str]:
    assert snapshot.summary is not None
    return snapshot.summary.additional_properties


def lose(path: Path) -> None:
    """Take the last Iceberg commit away, as if step 2 had never been reached."""
    location = Path(Iceberg(path).table.metadata_location.removeprefix("file://"))
    number = int(location.name.removeprefix("v").partition(".")[0])
    location.unlink()
    (location.parent / "version-hint.text").write_text(str(number - 1))


def by_polars(path: Path, columns: Sequence[str]) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells which of its planners it prefers
        frame = pl.scan_iceberg(Iceberg(path).table.metadata_location)
        return frame.select(columns).collect().to_arrow()


def by_hudi_rs(path: Path, columns: Sequence[str]) -> pa.Table:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    if not batches:
        return pa.table({name: [] for name in columns})
    return pa.Table.from_batches([pa.record_batch(each) for each in batches]).select(columns)


def ours(path: Path, as_of: str | None = None) -> Counter[str]:
    """Return the rows as this project reads them."""
    return bag(without_meta(hudi.Table.open(path).to_arrow(as_of=as_of)))


def agree(path: Path, *, hudi_rs: bool = True) -> Counter[str]:
    """Return the rows, which all readers must see alike."""
    read = hudi.Table.open(path).to_arrow()
    columns = read.column_names
    expected = bag(read)
    assert bag(Iceberg(path).rows(columns)) == expected
    plain = [name for name in columns if not pa.types.is_map(read.schema.field(name).type)]
    assert bag(by_polars(path, plain)) == bag(read.select(plain))
    if hudi_rs:
        assert bag(by_hudi_rs(path, columns)) == expected
    return bag(without_meta(read))


def without_meta(table: pa.Table) -> pa.Table:
    return table.select([name for name in table.column_names if not name.startswith("_hoodie_")])
