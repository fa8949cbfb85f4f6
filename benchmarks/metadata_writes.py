"""The metadata table on the way of a write: its upkeep, and lookups in its record index."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from metadata_timing import Timing, measure, say
from object_store import Store, object_store
from ours import Ours
from workload import KEY, ORDERING, PARTITION, Change, Source, cores, make_base, make_upsert

import hudi_core as hudi
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.index.record_index import RecordIndex
from hudi_core.services.opening import open_table

UPKEEP, LOOKUPS, FEW_LOOKUPS = "upkeep", "lookups", "few lookups"
REPAIR, WAIT_S = "repair", 0.02
"""What each answer of a store takes, at least."""
CACHED_LOOKUPS = "cached lookups"
FILTERS = "bloom"
_KEYS_A_FILE = 1000
COMMITS = 10
"""As many as the metadata table takes before it is compacted."""
WITHOUT = {"hoodie.metadata.enable": "false"}
DEFAULT = {"hoodie.metadata.enable": "true"}
TARGETED = {**DEFAULT, "hoodie.metadata.index.partition.stats.enable": "false"}
INDEXED = {
    **DEFAULT,
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.global.record.level.index.enable": "true",
}


def measure_upkeep(folder: Path, rows: int, repeats: int) -> list[Timing]:
    """Measure upserts of 1 % of a table of 20 files, so many that one compaction is among them.

    Returns: A number is the mean of a round of commits.
    """
    source = Source("upkeep", rows)
    base = make_base(folder / "base", source)
    batch = make_upsert(folder / "batch", source, Change(rows // 100))
    rows_of = batch.read()
    variants = {
        "without": WITHOUT,
        "files and column_stats": TARGETED,
        "with partition_stats, as by default": DEFAULT,
    }
    for name in variants:
        created = _create(folder / name, base.files[0])
        created.bulk_insert(base.read(), options=WITHOUT)
    timings = {name: Timing(UPKEEP, name) for name in variants}
    for number in range(repeats + 1):
        rounds = {name: Timing(UPKEEP, name) for name in variants}
        for _ in range(COMMITS):
            for name, options in variants.items():
                rounds[name].call(lambda: _upsert(folder / name, rows_of, options), flush=True)  # noqa: B023
        for name, one in rounds.items():
            if number:  # the first builds the metadata table
                timings[name].answer = one.answer
                timings[name].seconds.append(sum(one.seconds) / COMMITS)
                timings[name].work.append(sum(one.work) / COMMITS)
            say(f"{UPKEEP:12} round {number} {name:36} {sum(one.seconds) / COMMITS:8.3f} s")
    for name in list(variants)[1:]:
        done = len(list((folder / name).glob(".hoodie/metadata/.hoodie/timeline/*.commit")))
        say(f"{UPKEEP:12} {name}: {done} compactions on the timeline")
        if not done:
            raise AssertionError(f"{name}: {repeats + 1} rounds led to no compaction")
    return list(timings.values())


def measure_repair(folder: Path, files: int, repeats: int) -> list[Timing]:
    """Measure rebuilding the metadata table from all files of a store that is far away.

    By as many requests at a time as by default, and by one after the other.
    """
    with object_store(folder, WAIT_S) as store:
        days = pa.array([f"day-{number:04}" for number in range(files // 2)])
        path = f"{store.root}/repair"
        table = hudi.Table.create(
            path,
            pa.schema({"id": pa.string(), "day": pa.string()}),
            name="far",
            record_key="id",
            partition_by="day",
            options={**store.hudi, **DEFAULT},
        )
        for number in range(2):
            keys = pa.array([f"{number}-{day}" for day in days])
            table.bulk_insert(pa.table({"id": keys, "day": days}))

        def repaired() -> int:
            done = hudi.Table.open(path, store.hudi).repair_metadata().rebuilt
            return 0 if done is None else done.files

        def one_after_the_other() -> int:
            with patch("hudi_core.meta_client._REQUESTS_AT_A_TIME", 1):
                return repaired()

        calls = {"threads": repaired, "file after file": one_after_the_other}
        return measure(REPAIR, calls, repeats, files)


def measure_lookups(folder: Path, keys: int, sought: int, repeats: int) -> list[Timing]:
    """Measure looking up keys against building the set of all keys; nine of ten are there."""
    source = Source("lookups", keys)
    base = make_base(folder / "base", source)
    table = _create(folder / "table", base.files[0])
    table.bulk_insert(base.read(), options=INDEXED)
    stored = base.read().column(KEY).combine_chunks().cast(pa.string())
    files = Ours("local").files(folder / "table")
    few = max(10, sought // 100)
    return [
        *_lookups(LOOKUPS, table, files, _some_of(stored, sought), repeats),
        *_lookups(FEW_LOOKUPS, table, files, _some_of(stored, few), repeats),
    ]


def measure_filters(store: Store, files: int, repeats: int) -> list[Timing]:
    """Measure which of many files in a store hold some keys, by filters of two places.

    The range of every file holds nearly all keys; one in twenty holds some of those asked for.
    """
    count = files * _KEYS_A_FILE
    stored = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), 12, "0")
    in_file = np.arange(count) % files
    options = {
        **DEFAULT,
        **store.hudi,
        "hoodie.index.type": "BLOOM",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": str(_KEYS_A_FILE),
        "hoodie.parquet.small.file.limit": "0",
    }
    rows = pa.table({"id": stored.take(pa.array(np.argsort(in_file, kind="stable")))})
    path = f"{store.root}/{FILTERS}"
    table = hudi.Table.create(path, rows.schema, name="keys", record_key="id", options=options)
    table.insert(rows)
    if len(table.file_slices()) != files:
        raise AssertionError(f"there are {len(table.file_slices())} files, not {files}")
    held = stored.take(pa.array(np.flatnonzero(in_file % 20 == 0)[:: _KEYS_A_FILE // 10]))
    absent = pc.binary_join_element_wise(stored[:: count // 1000 + 1], "x", "")
    wanted = pa.table({"id": pa.concat_arrays([held, absent])})

    def plan(asks: str) -> int:
        given = {"hoodie.bloom.index.use.metadata": asks}
        return table.plan("upsert", wanted, options=given).updated

    calls = {
        "filters in the metadata table": lambda: plan("true"),
        "filters in the footers": lambda: plan("false"),
    }
    return measure(FILTERS, calls, repeats, len(held))


def measure_cached_lookups(folder: Path, keys: int, sought: int, repeats: int) -> list[Timing]:
    """Measure the same among many more keys, with a folder that keeps them sorted, and without.

    The table has nothing but its keys: the others have no part in it.
    """
    numbers = pa.array(np.random.default_rng(keys).permutation(keys))
    stored = pc.utf8_lpad(numbers.cast(pa.string()), 20, "0")
    cities = pa.array([f"city-{number:02}" for number in range(20)])
    rows = pa.table({"id": stored, "city": cities.take(pa.array(np.arange(keys) % len(cities)))})
    table = hudi.Table.create(
        str(folder), rows.schema, name="keys", record_key="id", partition_by="city", options=WITHOUT
    )
    table.bulk_insert(rows, options=INDEXED)
    wanted = _some_of(stored, sought)
    del rows, numbers, stored
    cache = {MetadataConfig.record_index_cache.key: str(folder.with_name(folder.name + "-cache"))}
    files = Ours("local").files(folder)
    calls = {
        "record index, sorted cache": lambda: _look_up(table, wanted, cache),
        "record index, HFiles": lambda: _look_up(table, wanted, {}),
        "scan of the key column": lambda: _scan(files, wanted),
    }
    return measure(CACHED_LOOKUPS, calls, repeats, sought * 9 // 10)


def _some_of(stored: pa.Array, count: int) -> pa.Array:
    """Return keys in random order of which nine of ten are stored."""
    random = np.random.default_rng(count)
    there = stored.take(pa.array(random.choice(len(stored), count * 9 // 10, replace=False)))
    other = pa.array([f"no key {number}" for number in range(count - len(there))])
    return pa.concat_arrays([there, other])


def _lookups(
    case: str, table: hudi.Table, files: Sequence[Path], wanted: pa.Array, repeats: int
) -> list[Timing]:
    calls = {
        "record index, HFiles": lambda: _look_up(table, wanted, {}),
        "scan of the key column": lambda: _scan(files, wanted),
    }
    return measure(case, calls, repeats, len(wanted) * 9 // 10)


def _look_up(table: hudi.Table, wanted: pa.Array, options: dict[str, str]) -> int:
    opened = open_table(table.path, options)
    index = RecordIndex.open(opened.client, opened.timeline())
    with ThreadPoolExecutor(cores()) as pool:
        tasks = pool.map(lambda task: len(task.find(wanted).keys), index.lookups(len(wanted)))
        return sum(tasks)


def _scan(files: Sequence[Path], wanted: pa.Array) -> int:
    # what an index that keeps nothing does: all keys, and the set of them
    read = [pq.read_table(path, columns=["_hoodie_record_key"]).column(0) for path in files]
    known = pa.chunked_array([chunk for one in read for chunk in one.chunks])
    found: int = pc.sum(pc.is_in(wanted, value_set=known.cast(pa.string()))).as_py()
    return found


def _create(path: Path, like: Path) -> hudi.Table:
    return hudi.Table.create(
        str(path),
        pq.read_schema(like),
        name="trips",
        record_key=KEY,
        partition_by=PARTITION,
        ordering_field=ORDERING,
        options=WITHOUT,
    )


def _upsert(path: Path, rows: pa.Table, options: dict[str, str]) -> int:
    result = hudi.Table.open(str(path)).upsert(rows, options=options)
    return result.inserted + result.updated
