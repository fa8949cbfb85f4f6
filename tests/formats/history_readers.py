"""What foreign readers see of a table of any format, now and at any instant of its history."""

from __future__ import annotations

import datetime as dt
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import hudi as hudi_rs
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import ancestors_of

from tests.readers import by_duckdb

Read = Callable[[Path], Iterable[Mapping[str, Any]]]


def content(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return rows as they compare in all readers: a column that is missing is a null."""
    return Counter(repr(plain(row)) for row in rows)


def plain(value: Any) -> Any:
    match value:
        case Mapping():
            kept = {name: plain(one) for name, one in value.items() if one is not None}
            return sorted((name, one) for name, one in kept.items() if name[:8] != "_hoodie_")
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat()
        case list() | tuple():
            return [plain(one) for one in value]
    return value


@dataclass(frozen=True)
class Foreign:
    """How others read a format.

    ``readers``: readers of the present rows. ``history``: reads the rows that each instant left, by
    requested time, in the order of completion. Instants that leave no state of their own are not in
    it.
    """

    readers: Mapping[str, Read]
    history: Callable[[Path], Mapping[str, Iterable[Mapping[str, Any]]]]

    def read(self, path: Path) -> dict[str, Counter[str]]:
        """Return the rows that each reader sees."""
        seen = {name: content(read(path)) for name, read in self.readers.items()}
        seen["hudi-rs"] = content(by_hudi_rs(path))
        return seen


def _native_by_duckdb(path: Path) -> list[dict[str, Any]]:
    """Read the files that hudi-rs lists: there is no reader of Hudi tables."""
    files = _native_files(path)
    if not files:
        return []
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        found = connection.read_parquet(list(files), union_by_name=True, hive_partitioning=False)
        rows: list[dict[str, Any]] = found.to_arrow_table().to_pylist()
    return rows


def by_hudi_rs(path: Path, as_of: str | None = None) -> list[dict[str, Any]]:
    options = hudi_rs.HudiReadOptions().with_as_of_timestamp(as_of) if as_of else None
    batches = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build().read(options)
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist()]


def _native_files(path: Path) -> list[str]:
    table = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build()
    return [f"{path}/{one.base_file_relative_path()}" for one in table.get_file_slices()]


def _native_history(path: Path) -> dict[str, list[dict[str, Any]]]:
    table = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build()
    instants = table.get_timeline().get_completed_commits()
    replaced = table.get_timeline().get_completed_replacecommits()
    times = sorted(one.timestamp for one in (*instants, *replaced))
    return {time: by_hudi_rs(path, time) for time in times}


def _native_by_polars(path: Path) -> list[dict[str, Any]]:
    files = _native_files(path)
    frames = [pl.read_parquet(file, hive_partitioning=False) for file in files]
    return pl.concat(frames, how="diagonal").to_dicts() if frames else []


def _iceberg(path: Path) -> StaticTable:
    return StaticTable.from_metadata(str(path))


def _by_pyiceberg(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _iceberg(path).scan().to_arrow().to_pylist()
    return rows


def _iceberg_by_polars(path: Path) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells which of its planners it prefers
        frame = pl.scan_iceberg(_iceberg(path).metadata_location)
        return frame.collect().to_dicts()


def iceberg_snapshots(path: Path) -> dict[str, int]:
    """Return the snapshot of each instant, in their order."""
    table = _iceberg(path)
    found = {}
    for snapshot in reversed(list(ancestors_of(table.current_snapshot(), table.metadata))):
        summary = snapshot.summary
        assert summary is not None
        instant = summary.additional_properties.get("hudi.instant")
        if instant is not None:
            found[instant] = snapshot.snapshot_id
    return found


def _iceberg_history(path: Path) -> dict[str, list[dict[str, Any]]]:
    table = _iceberg(path)
    return {
        instant: table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
        for instant, snapshot in iceberg_snapshots(path).items()
    }


def _by_deltalake(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return rows


def _by_datafusion(path: Path) -> list[dict[str, Any]]:
    builder = QueryBuilder().register("t", DeltaTable(str(path)))
    rows: list[dict[str, Any]] = pa.table(builder.execute("select * from t").read_all()).to_pylist()
    return rows


def _delta_by_polars(path: Path) -> list[dict[str, Any]]:
    return pl.scan_delta(str(path)).collect().to_dicts()


def delta_versions(path: Path) -> dict[str, int]:
    """Return the version of each instant, in their order."""
    versions: dict[str, int] = {}
    for info in DeltaTable(str(path)).history()[::-1]:
        if info.get("hudi.step") == "revert":
            for taken in info["hudi.step-of"].split(","):
                del versions[taken]
        if info.get("hudi.action") in ("commit", "deltacommit", "replacecommit"):
            versions[info["hudi.instant"]] = info["version"]
    return versions


def _delta_history(path: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        instant: DeltaTable(str(path), version=version).to_pyarrow_table().to_pylist()
        for instant, version in delta_versions(path).items()
    }


FOREIGN: Mapping[str, Foreign] = {
    "native": Foreign({"polars": _native_by_polars, "duckdb": _native_by_duckdb}, _native_history),
    "iceberg": Foreign(
        {
            "pyiceberg": _by_pyiceberg,
            "polars": _iceberg_by_polars,
            "duckdb": by_duckdb.read_iceberg,
        },
        _iceberg_history,
    ),
    "delta": Foreign(
        {
            "deltalake": _by_deltalake,
            "datafusion": _by_datafusion,
            "polars": _delta_by_polars,
            "duckdb": by_duckdb.read_delta,
        },
        _delta_history,
    ),
}
