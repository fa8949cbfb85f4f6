"""Tables on a cluster: where they are, what is done to them there, and what must hold of them.

Rows, effects and promises are those of the crash rig; here tasks run on executors.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.engine.base import InputFunction, TaskContext, TaskFunction
from hudi_core.engine.spark import SparkEngine
from tests.crash.check_table import Tried, check_rows, check_table
from tests.crash.place import Place, S3Place
from tests.crash.rows import FIRST, SECOND, Effect, Held, as_table, dropping, putting, replacing
from tests.crash.s3_service import BUCKET, REGION
from tests.crash.tables import CANARY, OPTIONS, crashing_table

T = TypeVar("T")
R = TypeVar("R")

STORES: Final = ("local", "s3")
SERVICES: Final = {
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "2",
    "hoodie.write.lock.storage.validity.timeout.secs": "10",
    "hoodie.write.lock.storage.renew.interval.secs": "1",
}
"""Has commits clean and archive, and the dead be known soon."""
_PARTS: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """A bucket for tables.

    ``endpoint``: URL of its store.
    """

    endpoint: str

    def new_place(self) -> S3Place:
        """A folder in it; the secret that opens it is one that no file may hold."""
        root = f"s3://{BUCKET}/{uuid.uuid4().hex}/t"
        return S3Place(root, self.endpoint, "cluster", CANARY, REGION)


def made(place: Place, format_name: str) -> hudi.Table:
    """A table with the rows that everything begins with."""
    given = place.given if isinstance(place, S3Place) else {}
    table = crashing_table(place.root, format_name, {**OPTIONS, **SERVICES, **given})
    table.insert(as_table(FIRST))
    table.upsert(as_table(SECOND))
    return table


def frame(spark: SparkSession, held: Held, tasks: int = 3) -> DataFrame:
    """Rows for the executors."""
    return spark.createDataFrame(as_table(held)).repartition(tasks)


def require_right(place: Place, tried: Sequence[Tried]) -> None:
    """Check every promise, in every reader of the table's format, once a write has completed."""
    report = check_table(place, tried, at_rest=True)
    assert not report.violations, "\n".join(report.violations)


def require_right_rows(place: Place, tried: Sequence[Tried]) -> None:
    """Check what readers see right after a writer has died, who may hold its lease yet."""
    report = check_rows(place, tried, at_rest=False)
    assert not report.violations, "\n".join(report.violations)


@dataclass(frozen=True, slots=True)
class _Noted:
    """A function of a task that notes its process.

    ``function``: what is done. ``folder``: where a file is left that is named by the process and
    its parent.
    """

    function: Callable[..., Any]
    folder: str

    def __call__(self, task: TaskContext, item: Any) -> Any:
        Path(self.folder, f"{os.getpid()}-{os.getppid()}").touch()
        return self.function(task, item)


class WatchedEngine(SparkEngine):
    """Spark's engine, whose tasks note the processes they run in.

    ``folder``: where they do.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        super().__init__(session)
        self._folder = folder
        self._folder.mkdir(exist_ok=True)

    def map_input(self, data: DataFrame, function: InputFunction[R], stage: int) -> list[R]:
        return super().map_input(data, _Noted(function, str(self._folder)), stage)

    def map_tasks(
        self,
        tasks: Sequence[T],
        function: TaskFunction[T, R],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[R]:
        return super().map_tasks(tasks, _Noted(function, str(self._folder)), stage, weights)

    def processes(self) -> set[int]:
        """The processes that tasks have run in."""
        return {int(one.name.partition("-")[0]) for one in self._folder.iterdir()}


# --- what a campaign does
@dataclass(frozen=True, slots=True)
class Step:
    """One thing done to a table.

    ``name``: number and operation. ``run``: does it to a table, with an engine. ``effect``: what it
    makes of the rows.
    """

    name: str
    run: Callable[[hudi.Table, SparkSession], object]
    effect: Effect


def drawn(seed: int, number: int) -> Step:
    """The step of a number: the same for everybody who knows the seed."""
    chance = Random(f"{seed}-{number}")
    kind = chance.choice(("upsert", "upsert", "upsert", "insert", "bulk_insert", "delete"))
    if number % 5 == 4:
        kind = chance.choice(("insert_overwrite", "cluster"))
    name = f"{number}-{kind}"
    if kind == "cluster":
        return Step(name, _cluster, dict)
    if kind == "delete":
        gone = dict.fromkeys(("a", "c", *(f"u{at}" for at in range(0, 40, 3))), ("x", 1 << 40))
        # in whatever partition they are
        return Step(name, _everywhere(gone), dropping(*gone))
    if kind == "insert_overwrite":
        rows = {f"o{number}-{at}": ("z", number) for at in range(30)}
        return Step(name, _written("insert_overwrite", rows), replacing("z", rows))
    rows = _rows_of(kind, number)
    return Step(name, _written(kind, rows), putting(rows))


def served(seed: int, number: int) -> Step:
    """Writes of new keys, each followed by a service: a clean, or a restore to before it."""
    rows = {f"s{number // 2}-{at}": (_PARTS[at % 3], number) for at in range(6)}
    if number % 2 == 0:
        return Step(
            f"{number}-upsert", lambda table, _: table.upsert(as_table(rows)), putting(rows)
        )
    if number % 4 == 1:
        return Step(f"{number}-clean", _cleaned, dict)
    return Step(f"{number}-restore", partial(_restored, key=next(iter(rows))), dropping(*rows))


STEPS: Final = {"writes": drawn, "services": served}
"""What a campaign strikes, and its steps by number."""


def _cleaned(table: hudi.Table, spark: SparkSession) -> object:
    with every_file_a_task():
        options = {"hoodie.cleaner.commits.retained": "1"}
        return table.clean(options=options, engine=SlowEngine(spark))


def _restored(table: hudi.Table, spark: SparkSession, key: str) -> object:
    if key not in table.to_arrow("id").column("id").to_pylist():
        return None  # the write died, or a restore that did was finished
    with every_file_a_task():
        before = table.timeline.completed_writes()[-2]
        return table.restore(before, engine=SlowEngine(spark))


@contextmanager
def every_file_a_task() -> Iterator[None]:
    """Has small tables serviced as large ones: each file or folder is worth a job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_core.engine.base._WORTH_A_JOB", 1)
        for name in ("_FLUSH", "_REQUEST"):
            patch.setattr(f"hudi_core.actions.deletion.{name}", 1)
        yield


@dataclass(frozen=True, slots=True)
class _Slow:
    """A function of a task that begins late, so that there is one to die in."""

    function: Callable[..., Any]

    def __call__(self, task: TaskContext, item: Any) -> Any:
        time.sleep(0.5)
        return self.function(task, item)


class SlowEngine(SparkEngine):
    """Spark's engine with slow tasks."""

    def map_tasks(
        self,
        tasks: Sequence[T],
        function: TaskFunction[T, R],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[R]:
        return super().map_tasks(tasks, _Slow(function), stage, weights)


def _rows_of(kind: str, number: int) -> dict[str, tuple[str, int]]:
    new = {f"n{number}-{at}": (_PARTS[at % 3], number) for at in range(60)}
    if kind != "upsert":
        return new
    return {**new, **{f"u{at}": (_PARTS[at % 2], 1000 + number) for at in range(40)}}


def _written(operation: str, rows: Held) -> Callable[[hudi.Table, SparkSession], object]:
    return partial(_write, operation=operation, rows=rows)


def _write(table: hudi.Table, spark: SparkSession, operation: str, rows: Held) -> object:
    return getattr(table, operation)(slowly(frame(spark, rows, 4)))


def _everywhere(gone: Held) -> Callable[[hudi.Table, SparkSession], object]:
    rows = pa.concat_tables(
        [as_table({key: (part, ts) for key, (_, ts) in gone.items()}) for part in _PARTS]
    )
    return lambda table, spark: table.delete(slowly(spark.createDataFrame(rows).repartition(4)))


def _cluster(table: hudi.Table, spark: SparkSession) -> object:
    return table.cluster(sort_by=["ts", "id"], engine=SparkEngine(spark))


def slowly(rows: DataFrame, seconds: float = 0.2) -> DataFrame:
    """Rows whose tasks take some time, so that there is one to die in."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time  # noqa: PLC0415 - this function is sent by value

        time.sleep(seconds)
        yield from batches

    return rows.mapInArrow(wait, rows.schema)
