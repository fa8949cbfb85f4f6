"""Measure many small upserts, one after the other, on a local disk and on an object store.

``make bench`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from metadata_timing import Timing, ratio_of, say
from object_store import Store, object_store
from pyiceberg.catalog.sql import SqlCatalog
from run_of_cases import Compared, main
from targets import Target

import hudi_core as hudi

LOCAL, S3 = "small_commits", "small_commits_s3"
CASES = (LOCAL, S3)
ROWS, BATCH, COMMITS = 20_000, 1_000, 200
DELTALAKE, PYICEBERG = "deltalake", "pyiceberg"
NATIVE, BARE, ICEBERG, DELTA = "native", "native, no metadata table", "iceberg", "delta"
SERVED, LOGGED = "native, with table services", "native, in logs"
ALLOWED = {NATIVE: 1.5, BARE: 1.0, ICEBERG: 1.8, DELTA: 1.8, SERVED: None, LOGGED: 1.0}
"""Of a merge of deltalake's on a local disk; ``None`` without a target."""
SCHEMA = pa.schema({"id": pa.string(), "city": pa.string(), "ts": pa.int64(), "fare": pa.float64()})
_CITIES = 4
_NAME = ("bench", "trips")


@dataclass(frozen=True)
class Peer:
    """A table that takes part.

    ``upsert``: upserts rows into it. ``count``: counts its rows.
    """

    upsert: Callable[[pa.Table], object]
    count: Callable[[], int]


class Found(Compared):
    """A finished run."""

    measures = ("ratio", "work")

    def circumstances(self) -> str:
        return self.text(("hudi-core", "pyiceberg", "deltalake"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """The targets of the cases that were run, with the ratios by the clock and of work."""
        run = {(one.case, one.variant): one for one in self.timings}
        found: list[tuple[Target, float | None, float | None]] = []
        for case in dict.fromkeys(case for case, _ in run):
            for name, allowed in ALLOWED.items():
                for yardstick in (DELTALAKE, PYICEBERG):
                    is_promised = (case, yardstick) == (LOCAL, DELTALAKE)
                    target = Target(case, name, yardstick, allowed if is_promised else None)
                    ours, other = run[case, name], run[case, yardstick]
                    clock = ratio_of(ours.seconds, other.seconds)
                    found.append((target, clock, ratio_of(ours.work, other.work)))
        return found


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Make the tables of each case, and upsert into all of them in turn."""
    found = Found(scale)
    commits = max(1, round(COMMITS * scale)) * repeats
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        with _place(case, folder / case) as place:
            found.timings += _measure(case, tables(place), commits)
        found.loads.append(os.getloadavg()[0])
    return found


@contextmanager
def _place(case: str, folder: Path) -> Iterator[Store]:
    folder.mkdir(parents=True)
    if case == LOCAL:
        yield Store(str(folder), folder)
    else:
        with object_store(folder) as store:
            yield store


def _measure(case: str, peers: Mapping[str, Peer], commits: int) -> list[Timing]:
    timings = {name: Timing(case, name) for name in peers}
    names = list(peers)
    for number in range(commits + 1):
        rows = batch(number)
        start = number % len(names)
        for name in names[start:] + names[:start]:
            # the first call of each is no measurement
            timing = timings[name] if number else Timing(case, name)
            timing.call(partial(_upserted, peers[name], rows), flush=case == LOCAL)
    for one in timings.values():
        one.answer = peers[one.variant].count()
        if one.answer != ROWS:
            raise AssertionError(f"{case}: {one.variant} has {one.answer} rows, not {ROWS}")
        say(f"{case:12} {one.variant:32} {one.median:8.4f} s")
    return list(timings.values())


def _upserted(peer: Peer, rows: pa.Table) -> int:
    peer.upsert(rows)
    return int(rows.num_rows)


def batch(number: int) -> pa.Table:
    """Return new versions of a thousand rows, of all cities."""
    return rows(range(number * 97 % ROWS, number * 97 % ROWS + BATCH), number + 1)


def rows(numbers: range, ts: int, *, of: int = ROWS, cities: int = _CITIES) -> pa.Table:
    """Rows by number, which starts over after as many as the table has."""
    wrapped = [number % of for number in numbers]
    columns = {
        "id": [f"trip-{number:06}" for number in wrapped],
        "city": [f"city-{number % cities}" for number in wrapped],
        "ts": [ts] * len(wrapped),
        "fare": [float(number + ts) for number in wrapped],
    }
    return pa.table(columns, SCHEMA)


def tables(store: Store) -> dict[str, Peer]:
    """Make the tables."""
    first = rows(range(ROWS), 0)
    return {
        NATIVE: _ours(store, "native", first, metadata=True),
        BARE: _ours(store, "native", first, metadata=False),
        ICEBERG: _ours(store, "iceberg", first, metadata=True),
        DELTA: _ours(store, "delta", first, metadata=True),
        SERVED: _ours(store, "native", first, metadata=True, services=True),
        LOGGED: _ours(store, "native", first, metadata=True, services=True, logs=True),
        DELTALAKE: _deltalake(store, first),
        PYICEBERG: _pyiceberg(store, first),
    }


def _ours(
    store: Store,
    format_: str,
    first: pa.Table,
    *,
    metadata: bool,
    services: bool = False,
    logs: bool = False,
) -> Peer:
    # the peers neither clean nor archive
    options = {
        **store.hudi,
        "hoodie.metadata.enable": str(metadata).lower(),
        "hoodie.table.services.enabled": str(services).lower(),
    }
    if logs:  # compactions are part of what logs cost
        options |= {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    table = hudi.Table.create(
        f"{store.root}/{format_}-{metadata}-{services}-{logs}",
        SCHEMA,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        format=format_,
        table_type="MERGE_ON_READ" if logs else None,
        options=options,
    )
    table.bulk_insert(first)
    return Peer(table.upsert, table.count)


def _deltalake(store: Store, first: pa.Table) -> Peer:
    where = f"{store.root}/deltalake"
    properties = WriterProperties(compression="ZSTD", compression_level=1)
    write_deltalake(where, first, partition_by=["city"], storage_options=store.deltalake)

    def upsert(rows: pa.Table) -> None:
        table = DeltaTable(where, storage_options=store.deltalake)
        merge = table.merge(
            rows,
            predicate="t.id = s.id AND t.city = s.city",
            source_alias="s",
            target_alias="t",
            writer_properties=properties,
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def count() -> int:
        return int(DeltaTable(where, storage_options=store.deltalake).count())

    return Peer(upsert, count)


def _pyiceberg(store: Store, first: pa.Table) -> Peer:
    database = f"sqlite:///{store.folder}/catalog.db"
    warehouse = store.root if "://" in store.root else f"file://{store.root}"
    catalog = SqlCatalog(
        "bench", uri=database, warehouse=f"{warehouse}/warehouse", **store.pyiceberg
    )
    catalog.create_namespace(_NAME[0])
    properties = {"write.parquet.compression-level": "1"}
    created = catalog.create_table(_NAME, first.schema, properties=properties)
    with created.update_spec() as spec:
        spec.add_identity("city")
    created.append(first)
    return Peer(
        lambda rows: catalog.load_table(_NAME).upsert(rows, join_cols=["id"]),
        lambda: int(catalog.load_table(_NAME).scan().count()),
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, "small-commits", CASES, 1, run))
