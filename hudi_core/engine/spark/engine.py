"""The distributed engine: Arrow in tasks (``mapInArrow``), frozen values between."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import TaskContext as SparkTask
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from hudi_core.config.foreign import OptionTreatment, foreign_options
from hudi_core.engine.arrangement import Arrangement
from hudi_core.engine.base import InputFunction, TaskContext, TaskFunction, bins
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.spark.scan import to_arrow
from hudi_core.engine.spark.shipping import guarded
from hudi_core.errors import ConfigError, HudiError, SchemaError, TaskFailedError

T = TypeVar("T")
R = TypeVar("R")

_ON_THIS_MACHINE: Final = re.compile(r"local(\[|$)")
_ATTEMPTS: Final = re.compile(r",\s*([0-9]+)\s*\]$")
_FINAL: Final = (SchemaError, ConfigError)
"""Errors of the rows or the options: another attempt meets them again."""
_ENCRYPTION: Final = "parquet.crypto.factory.class"
_RESULT: Final = "result binary"
_BINS_PER_SLOT: Final = 2
_WIDE_ROW_BYTES: Final = 4096
_BATCH_SIZE_CHECK: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


class SparkEngine:
    """Runs on the executors of a Spark session.

    Values cross between driver and executors pickled, inside Spark's own channel and never at rest;
    rows cross as Arrow.

    ``tasks_on_driver``: tasks over staged rows run on threads of this process. By default only with
    a ``local`` master: the rows are in files that both see, and a thread is cheaper than a job and
    a Python process.
    """

    name = "spark"
    shares_memory = False

    def __init__(self, session: SparkSession, tasks_on_driver: bool | None = None) -> None:
        self.session = session
        if tasks_on_driver is None:
            tasks_on_driver = bool(_ON_THIS_MACHINE.match(session.sparkContext.master or ""))
        self._driver = LocalEngine(self.parallelism) if tasks_on_driver else None

    @property
    def tasks_here(self) -> bool:
        return self._driver is not None

    @property
    def parallelism(self) -> int:
        return max(1, int(self.session.sparkContext.defaultParallelism))

    def take(
        self,
        data: DataFrame,
        columns: Callable[[], pa.Schema] | None = None,  # noqa: ARG002 - frames have types
    ) -> DataFrame:
        _require_no_encryption(self.session)
        return data

    def schema_of(self, data: DataFrame) -> pa.Schema:
        return to_arrow(data.schema)

    def source_files(self, data: DataFrame) -> list[str]:
        return [unquote(file) for file in data.inputFiles()]

    def arrange(self, data: DataFrame, arrangement: Arrangement) -> DataFrame:
        columns = [sql.col(_path(name)) for name in arrangement.columns]
        if arrangement.as_text:
            columns = [column.cast("string") for column in columns]
        spread = data.repartitionByRange if arrangement.ranges else data.repartition
        if arrangement.tasks is None:
            return spread(*columns)
        return spread(arrangement.tasks, *columns)

    def map_input(self, data: DataFrame, function: InputFunction[R], stage: int) -> list[R]:
        schema, attempts = self.schema_of(data), self._attempts

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            task = _task_context(stage)
            typed = (_with_schema(batch, schema) for batch in batches)
            try:
                for result in function(task, typed):
                    yield _packed(task.task, result)
            except HudiError as error:
                if not _is_final(error, attempts):
                    raise
                yield _packed(task.task, _Refusal(error))

        with self._large_batches(schema):
            rows = data.mapInArrow(guarded(run), f"task int, {_RESULT}").collect()
        return [_result(row.result) for row in sorted(rows, key=lambda row: row.task)]

    def map_tasks(
        self,
        tasks: Sequence[T],
        function: TaskFunction[T, R],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[R]:
        if not tasks:
            return []
        if self._driver is not None:
            return self._driver.map_tasks(tasks, function, stage, weights)
        spread = bins(len(tasks), weights, _BINS_PER_SLOT * self.parallelism)
        attempts = self._attempts
        jobs = pa.table(
            {
                "bin": pa.array(
                    [number for number, members in enumerate(spread) for _ in members], pa.int32()
                ),
                "task": pa.array([task for members in spread for task in members], pa.int32()),
                "work": pa.array(
                    [pickle.dumps(tasks[task]) for members in spread for task in members],
                    pa.binary(),
                ),
            }
        )

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            attempt = _task_context(stage).attempt
            for batch in batches:
                for number, work in zip(batch.column("task"), batch.column("work"), strict=True):
                    task = TaskContext(number.as_py(), stage, attempt)
                    try:
                        result: object = function(task, _unpacked(work.as_py()))
                    except HudiError as error:
                        if not _is_final(error, attempts):
                            raise
                        result = _Refusal(error)
                    yield _packed(task.task, result)

        frame = self.session.createDataFrame(jobs).repartitionById(len(spread), "bin")
        with _typed_failures():
            rows = frame.mapInArrow(guarded(run), f"task int, {_RESULT}").collect()
        done = {row.task: _result(row.result) for row in rows}
        return [done[task] for task in range(len(tasks))]

    @property
    def _attempts(self) -> int:
        """How often Spark runs a task that fails."""
        context = self.session.sparkContext
        master = context.master or ""
        if _ON_THIS_MACHINE.match(master):
            stated = _ATTEMPTS.search(master)
            return int(stated[1]) if stated else 1
        return int(context.getConf().get("spark.task.maxFailures", "4") or 4)

    @contextmanager
    def _large_batches(self, schema: pa.Schema) -> Iterator[None]:
        """Lift Spark's per-row size check of Arrow batches for narrow rows.

        The check guards memory: it stays for schemas whose rows can be wide.
        """
        if _is_wide(schema):
            yield
            return
        conf = self.session.conf
        settings = {_BATCH_SIZE_CHECK: "2147483647", _BATCH_ROWS: "65536"}
        before = {key: conf.get(key, None) for key in settings}
        try:
            for key, value in settings.items():
                conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    conf.unset(key)
                else:
                    conf.set(key, old)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A task's error as a result, which keeps the error's type.

    Spark would not keep it. A task that cannot take its rows returns it at once, as Spark would
    rerun it in vain.

    With rows that it cannot take it fails at once, as Spark would run it again in vain.
    """

    error: HudiError


def _is_final(error: HudiError, attempts: int) -> bool:
    """Whether Spark will not, or need not, rerun a failed task."""
    task = SparkTask.get()
    return isinstance(error, _FINAL) or task is None or task.attemptNumber() + 1 >= attempts


@contextmanager
def _typed_failures() -> Iterator[None]:
    """Give a job that Spark gave up the type of such errors.

    For jobs over staged rows: what fails there is none of the caller's own functions.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise TaskFailedError(_reason(error)) from error


def _reason(error: PySparkException | Py4JError) -> str:
    """Most telling line of an error, without its traces."""
    if isinstance(error, Py4JJavaError):
        message = None
        with suppress(Py4JError):  # the JVM may be gone
            message = error.java_exception.getMessage()
        lines = str(message or "").strip().splitlines()
    else:
        lines = str(error).strip().splitlines()[-1:]
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def _result(data: bytes) -> Any:
    result = _unpacked(data)
    if isinstance(result, _Refusal):
        raise result.error
    return result


def _require_no_encryption(session: SparkSession) -> None:
    """Refuse to write plain files in a session that encrypts its files."""
    if getattr(session, "_jvm", None) is None:
        return  # unknown with Spark Connect
    conf = session.sparkContext._jsc.hadoopConfiguration()
    wanted = {_ENCRYPTION: conf.get(_ENCRYPTION) or ""}
    foreign_options().refuse(wanted, OptionTreatment.REFUSED_IN_WRITES)


def _path(name: str) -> str:
    """Return a column's or struct field's dotted name for Spark SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))


def _is_wide(schema: pa.Schema) -> bool:
    weight = 0
    for field in schema:
        nested = pa.types.is_nested(field.type)
        blob = pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)
        weight += 1024 if nested or blob else 32
    return weight > _WIDE_ROW_BYTES


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to the declared types.

    Spark passes timestamps in the session's time zone.
    """
    if batch.schema.equals(schema):
        return batch
    columns: list[Any] = [
        column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _task_context(stage: int) -> TaskContext:
    task = SparkTask.get()
    if task is None:
        raise HudiError(
            "A function for executors ran outside a Spark task", "Run it through the engine."
        )
    return TaskContext(task.partitionId(), stage, task.taskAttemptId())


def _packed(task: int, result: object) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "task": pa.array([task], pa.int32()),
            "result": pa.array([pickle.dumps(result)], pa.binary()),
        }
    )


def _unpacked(data: bytes) -> Any:
    # made by this very job in _packed, and only ever inside Spark's authenticated channel
    return pickle.loads(data)  # noqa: S301
