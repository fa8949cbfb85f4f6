"""Delta tables for tests, the readers that judge them, and writes that take only the first step."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hudi import HudiTableBuilder

import delta_format.plugin
import hudi_core as hudi
from hudi_core.errors import HudiError, StorageError
from hudi_core.model.instant import Instant
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from tests.formats.columns import CITIES, TYPED

OPTIONS = {
    "hoodie.table.format": "delta",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.fs.fsync": "false",
}

Row = dict[str, Any]


def row(key: int, ts: int = 0, value: float | None = 0.5) -> Row:
    """A row whose key decides its partition, as the index looks only there."""
    return {
        "id": f"k{key:03d}",
        "city": CITIES[key % len(CITIES)],
        "ts": ts,
        "value": value,
        "price": Decimal(key) + Decimal("0.0000000001"),
        "at": dt.datetime(2024, 1, 1, 12, 0, 0, key, tzinfo=dt.UTC),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=key),
        "flag": bool(key % 2),
        "inner": {"x": key, "word": "w" * (30 + key % 5)},
        "tags": ["a"] * (key % 3),
    }


def typed(*keys: int, ts: int = 0, schema: pa.Schema = TYPED) -> pa.Table:
    return pa.Table.from_pylist([row(key, ts) for key in keys], schema)


def delta_table(
    path: Path, *, partitioned: bool = True, more: Mapping[str, str] | None = None
) -> hudi.Table:
    return hudi.Table.create(
        path,
        TYPED,
        name="model",
        record_key="id",
        partition_by="city" if partitioned else None,
        options={**OPTIONS, **(more or {})},
    )


def content(table: pa.Table, names: list[str] | None = None) -> Counter[str]:
    wanted = sorted(TYPED.names if names is None else names)
    return Counter(repr([each[name] for name in wanted]) for each in table.to_pylist())


def by_deltalake(path: Path, version: int | None = None) -> pa.Table:
    return DeltaTable(str(path), version=version).to_pyarrow_table()


def by_polars(path: Path) -> pa.Table:
    return pl.scan_delta(str(path)).collect().to_arrow()


def by_datafusion(path: Path) -> pa.Table:
    from deltalake import QueryBuilder  # noqa: PLC0415 - only here

    builder = QueryBuilder().register("t", DeltaTable(str(path)))
    return pa.table(builder.execute("select * from t").read_all())


def by_hudi_rs(path: Path) -> pa.Table:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    return pa.Table.from_batches(batches) if batches else TYPED.empty_table()


READERS = {
    "deltalake": by_deltalake,
    "datafusion": by_datafusion,
    "polars": by_polars,
    "hudi-rs": by_hudi_rs,
}


def assert_all_read(path: Path, held: Counter[str], names: list[str] | None = None) -> None:
    """Every foreign reader sees just these rows."""
    for name, read in READERS.items():
        assert content(read(path), names) == held, name


def versions(path: Path) -> list[dict[str, Any]]:
    """What the versions report, the oldest first."""
    return DeltaTable(str(path)).history()[::-1]


def opened(path: Path) -> OpenTable:
    return open_table(str(path), {})


def last_write(path: Path) -> Instant:
    """The last write of the Hudi timeline, whatever the log says."""
    return opened(path).client.timeline().completed_writes()[-1]


def cut_short(monkeypatch: pytest.MonkeyPatch, write: Callable[[], Any]) -> None:
    """Do a write whose writer dies between the two steps."""

    def dies(*_: object) -> None:
        raise StorageError("The store is gone", "Wait for it.")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.plugin, "record", dies)
        with pytest.raises(HudiError):
            write()


def publish(path: Path, instant: Instant) -> Any:
    """Call the hook for a write as recovery does, without statuses."""
    found = opened(path)
    metadata = found.client.read_commit(instant)
    if metadata.operation_type == "ALTER_SCHEMA":
        return found.host.complete_schema_change(found.client, metadata, instant)
    return found.host.complete_write(found.client, metadata, instant)


def version(path: Path) -> int:
    return int(DeltaTable(str(path)).version())


def actions_of(path: Path, number: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{number:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
