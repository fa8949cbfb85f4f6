"""Measure cleans of many files in an object store: by threads of this process, and by executors.

``make bench-services`` runs it; ``README.md`` says what is measured, and holds the results.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from metadata_timing import Timing, ratio_of, say
from object_store import Store, object_store
from pyspark.sql import SparkSession
from run_of_cases import Compared, main
from targets import Target

import hudi_core as hudi
from hudi_core.engine.base import Engine
from hudi_core.engine.spark import SparkEngine
from hudi_core.model.client import RunMap
from hudi_core.model.files import BaseFileName
from hudi_core.model.protocols import Storage
from hudi_core.services.opening import open_table
from tests.cluster.standalone import cluster

CASE = "clean"
FILES = 100_000
WAIT_S = 0.02
_IN_PARTITION = 100
_SEEDERS = 64
EACH, BULK = "a file by two requests, threads", "a thousand by one request, threads"
ONE, TWO = "one executor", "two executors"
OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}
TARGETS = ((BULK, EACH, 0.2), (TWO, EACH, 0.2), (TWO, BULK, None), (TWO, ONE, 0.6))


class Found(Compared):
    """A finished run."""

    def circumstances(self) -> str:
        return self.text(("hudi-core", "pyspark"))

    def targets(self) -> list[tuple[Target, float | None]]:
        """The targets, with the ratios of the run."""
        by = {one.variant: one.seconds for one in self.timings}
        return [
            (Target(CASE, name, yardstick, allowed), ratio_of(by[name], by[yardstick]))
            for name, yardstick, allowed in TARGETS
        ]


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Clean a table by each variant in turn; its old files are put back in between."""
    del cases
    found, count = Found(scale), round(FILES * scale)
    timings = {name: Timing(CASE, name) for name in (EACH, BULK, ONE, TWO)}
    with object_store(folder, WAIT_S) as store:
        past = Past(store, count)
        for _ in range(repeats):
            found.loads.append(os.getloadavg()[0])
            past.put()
            with patch("hudi_core.actions.clean.delete_together", one_by_one):
                timings[EACH].call(partial(past.cleaned, hudi.LocalEngine()))
            past.put()
            timings[BULK].call(partial(past.cleaned, hudi.LocalEngine()))
            for number, name in enumerate((ONE, TWO), 1):
                with executors(folder / name.replace(" ", "-"), number) as engine:
                    past.put()
                    engine.map_tasks(range(8), _nothing, 0)  # starts their processes of Python
                    timings[name].call(partial(past.cleaned, engine))
    found.timings += timings.values()
    for one in found.timings:
        say(f"{one.variant:40} {statistics.median(one.seconds):8.2f} s")
    return found


def one_by_one(storage: Storage, run_map: RunMap, paths: Sequence[str]) -> None:
    """Delete files as rollbacks and restores did: each is looked for, and then deleted."""
    list(run_map(storage.delete, paths))


def _nothing(task: object, item: int) -> int:
    del task
    return item


class Past:
    """A table with one file in each partition, and older versions of it made up by name."""

    def __init__(self, store: Store, count: int) -> None:
        partitions = max(1, count // _IN_PARTITION)
        rows = pa.table(
            {
                "id": [f"trip-{number:06}" for number in range(partitions)],
                "city": [f"city-{number:06}" for number in range(partitions)],
            }
        )
        self._path, self._options = f"{store.root}/trips", {**store.hudi, **OPTIONS}
        table = hudi.Table.create(
            self._path, rows, record_key="id", partition_by="city", options=self._options
        )
        table.insert(rows)
        self._client = open_table(self._path, self._options).client
        present = [one.files[0].path for one in table.file_slices()]
        self._old = [older(path, number) for path in present for number in range(_IN_PARTITION)]

    def cleaned(self, engine: Engine) -> int:
        """Clean the table; how many files went."""
        done = hudi.Table.open(self._path, options=self._options).clean(engine=engine)
        return len(done.files)

    def put(self) -> None:
        """Put the older versions."""
        put: Callable[[str], None] = partial(self._client.data.put, data=b"of the past")
        with ThreadPoolExecutor(_SEEDERS) as pool:
            list(pool.map(put, self._old))


def older(path: str, number: int) -> str:
    """A version of a file from before the table's timeline, which counts as archived."""
    folder, _, name = path.rpartition("/")
    parsed = BaseFileName.parse(name)
    assert parsed is not None
    time = f"20200101{number // 60:02}{number % 60:02}00000"
    return f"{folder}/{name.replace(parsed.instant, time)}"


@contextmanager
def executors(folder: Path, number: int) -> Iterator[Engine]:
    """So many executors of one core each, in processes of their own."""
    folder.mkdir(exist_ok=True)
    with cluster(folder) as running:
        session = (
            SparkSession.builder.master(running.url)
            .config("spark.cores.max", str(number))
            .config("spark.default.parallelism", str(number))
            .config("spark.executor.memory", "512m")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        try:
            yield SparkEngine(session)
        finally:
            session.stop()


if __name__ == "__main__":
    sys.exit(main(__doc__, "table_services", (CASE,), 1, run))
