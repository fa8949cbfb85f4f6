"""One Spark session that does what another process asks for.

Runs in an environment that has PySpark and nothing else. Every line on the standard input is a JSON
object, a method of :class:`Session` and its arguments; every line of the answer is one as well:
``result``, or ``error`` with the class and the message of what went wrong. Spark's own output goes
to the standard error.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

CHANGED_BY_HUDI = (
    "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.parquet.filterPushdown",
    "spark.sql.parquet.recordLevelFilter.enabled",
)
"""Settings of the session that Hudi-Spark changes when it reads some tables, for all later queries.

With filters of records, Parquet takes -0.0 for another number than 0.0."""

TABLE = "table"
"""For a source: the path is the name of a table in the session's catalog."""
LOCKS = "org.apache.hudi.client.transaction.lock"


class Session:
    """What can be asked for; paths name folders of Parquet files on this machine."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        builder = SparkSession.builder
        for name, value in conf.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._locks: dict[str, Any] = {}
        self._own = {name: self._spark.conf.get(name, None) for name in CHANGED_BY_HUDI}
        self._spark.sparkContext.setLogLevel("ERROR")

    def restore(self) -> None:
        """Take back what earlier queries have done to settings of the session."""
        for name in CHANGED_BY_HUDI:
            value = self._own.get(name)
            if self._spark.conf.get(name, None) == value:
                continue
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)

    def versions(self) -> dict[str, str]:
        """Versions of what the session runs on, by name."""
        java = self._java
        return {
            "PySpark": str(self._spark.version),
            "Scala": str(java.scala.util.Properties.versionNumberString()),
            "Java": str(java.System.getProperty("java.version")),
            "Python": platform.python_version(),
        }

    def configure(self, conf: Mapping[str, str | None]) -> Any:
        """Change settings of the session, null unsets them; what they were before."""
        before = {name: self._spark.conf.get(name, None) for name in conf}
        for name, value in conf.items():
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)
            if name in self._own:
                self._own[name] = self._spark.conf.get(name, None)
        return before

    def load(
        self, source: str, path: str, options: Mapping[str, str], to: str, **query: Any
    ) -> None:
        """Write the rows of a table to a folder."""
        _write(_select(self._frame(source, path, options), **query), to)

    def values(self, source: str, path: str, options: Mapping[str, str], **query: Any) -> Any:
        """Rows of simple values."""
        frame = _select(self._frame(source, path, options), **query)
        return [list(row) for row in frame.collect()]

    def answers(
        self,
        source: str,
        path: str,
        options: Mapping[str, str],
        columns: list[str],
        wheres: list[str],
    ) -> Any:
        """Rows of simple values and the number of files read for them, filter by filter.

        A filter that fails has the class and the message of its error instead.
        """
        frame = self._frame(source, path, options)
        # planning takes longer than reading a few rows: one plans while another one reads, but for
        # a table of the catalog, of which Spark keeps one list of files, not made for threads
        with ThreadPoolExecutor(1 if source == TABLE else 2) as pool:
            return list(pool.map(lambda where: self._answer(frame, columns, where), wheres))

    def save(
        self,
        rows: str,
        tasks: int | None,
        source: str,
        path: str,
        mode: str,
        options: Mapping[str, str],
        partition_by: list[str],
    ) -> None:
        """Write rows to a table, in at most so many tasks."""
        frame = self._spark.read.parquet(rows)
        writer = (frame if tasks is None else frame.coalesce(tasks)).write
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.format(source).mode(mode).options(**options).save(path)

    def sql(self, text: str, to: str | None = None) -> Any:
        """Run a statement; its rows go to a folder, or are returned where they are simple."""
        frame = self._spark.sql(text)
        if to is not None:
            _write(frame, to)
            return None
        return [list(row) for row in frame.collect()]

    def write_checkpoint(self, path: str) -> None:
        """Write a checkpoint of a Delta log, which no statement does."""
        java = self._java
        delta = java.org.apache.spark.sql.delta.DeltaLog
        session: Any = self._spark
        delta.forTable(session._jsparkSession, path).checkpoint()

    # --- Hudi's own classes ----------------------------------------------------------------------

    def insert_avro(
        self, rows: list[Mapping[str, Any]], path: str, schema: str, key: str, version: int
    ) -> None:
        """Make a table without partitions by Hudi's write client, of records of Avro."""
        java, context = self._java, self._spark._jsc
        hudi = java.org.apache.hudi
        builder = hudi.common.table.HoodieTableMetaClient.newTableBuilder()
        builder.setTableType("COPY_ON_WRITE").setTableName("t").setRecordKeyFields(key)
        builder.setKeyGeneratorClassProp("org.apache.hudi.keygen.NonpartitionedKeyGenerator")
        builder.setTableVersion(version).initTable(self._hadoop(), path)
        config = (
            hudi.config.HoodieWriteConfig.newBuilder()
            .withPath(path)
            .forTable("t")
            .withSchema(schema)
            .withParallelism(1, 1)
            .withWriteTableVersion(version)
            .withAutoUpgradeVersion(False)
            .build()
        )
        engine = hudi.client.common.HoodieSparkEngineContext(context)
        client = hudi.client.SparkRDDWriteClient(engine, config)
        parsed = java.org.apache.avro.Schema.Parser().parse(schema)
        records = java.java.util.ArrayList()
        for row in rows:
            record = java.org.apache.avro.generic.GenericData.Record(parsed)
            for name, value in row.items():
                record.put(name, value)
            payload = hudi.common.model.OverwriteWithLatestAvroPayload(
                hudi.common.util.Option.of(record)
            )
            named = hudi.common.model.HoodieKey(str(row[key]), "")
            records.add(hudi.common.model.HoodieAvroRecord(named, payload))
        instant = client.startCommit()
        client.commit(instant, client.insert(context.parallelize(records, 1), instant))
        client.close()

    def config_properties(self, classes: list[str]) -> Any:
        """Name, other names and default of each option that classes declare."""
        java = self._java
        loader = java.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        found = []
        for name in classes:
            kind = java.java.lang.Class.forName(name, True, loader)
            # the members of a Scala object are fields of its one instance
            owner = kind.getField("MODULE$").get(None) if name.endswith("$") else None
            for field in kind.getDeclaredFields():
                if field.getType().getName() == "org.apache.hudi.common.config.ConfigProperty":
                    field.setAccessible(True)
                    option = field.get(owner)
                    default = option.defaultValue() if option.hasDefaultValue() else None
                    found.append([option.key(), list(option.getAlternatives()), str(default)])
        return found

    def lock(self, path: str, options: Mapping[str, str]) -> bool:
        """Take a table's lock by the provider of the options, if it is free."""
        java = self._java
        properties = java.org.apache.hudi.common.config.TypedProperties()
        needed = {"hoodie.base.path": path, "hoodie.write.lock.filesystem.expire": "0"}
        for name, value in {**needed, **options}.items():
            properties.setProperty(name, value)
        named = options.get("hoodie.write.lock.provider", f"{LOCKS}.FileSystemBasedLockProvider")
        kind = java
        for part in named.split("."):
            kind = getattr(kind, part)
        lock = kind(
            java.org.apache.hudi.common.config.LockConfiguration(properties), self._hadoop()
        )
        wait_ms = int(options.get("hoodie.write.lock.wait_time_ms", "0"))
        try:
            taken = lock.tryLock(wait_ms, java.java.util.concurrent.TimeUnit.MILLISECONDS)
        except Py4JJavaError as error:
            # some providers say so by an error
            if "FAILED_TO_ACQUIRE" not in error.java_exception.toString():
                raise
            taken = False
        if taken:
            self._locks[path] = lock
        elif not _is_file(lock):
            lock.close()
        return bool(taken)

    def unlock(self, path: str) -> None:
        """Give a lock back that :meth:`lock` took."""
        lock = self._locks.pop(path)
        lock.unlock()
        if not _is_file(lock):
            lock.close()

    def checkpoint(self, path: str, key: str, identifier: str) -> str | None:
        """Return the checkpoint that Hudi's streaming sink would go on from."""
        java = self._java
        client = (
            java.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(self._hadoop())
            .setBasePath(path)
            .build()
        )
        timeline = client.getActiveTimeline().getWriteTimeline()
        found = java.org.apache.hudi.common.util.CommitUtils.getValidCheckpointForCurrentWriter(
            timeline, key, identifier
        )
        return str(found.get()) if found.isPresent() else None

    @property
    def _java(self) -> Any:
        return self._spark._jvm

    def _hadoop(self) -> Any:
        context: Any = self._spark._jsc
        utils = self._java.org.apache.hudi.hadoop.fs.HadoopFSUtils
        return utils.getStorageConf(context.hadoopConfiguration())

    def schema(self, source: str, path: str, options: Mapping[str, str]) -> Any:
        """Names and types of the columns of a table."""
        frame = self._frame(source, path, options)
        return [[field.name, field.dataType.simpleString()] for field in frame.schema]

    def _frame(self, source: str, path: str, options: Mapping[str, str]) -> DataFrame:
        if source == TABLE:
            return self._spark.table(path)
        return self._spark.read.format(source).options(**options).load(path)

    def _answer(self, frame: DataFrame, columns: list[str], where: str) -> Any:
        try:
            chosen = _select(frame, where, columns)
            rows = [list(row) for row in chosen.collect()]
        except Py4JNetworkError:  # Java has ended, which is no answer
            raise
        except (PySparkException, Py4JError) as error:
            return {"error": [type(error).__name__, str(error)]}
        return {"rows": rows, "files": self._files_read(chosen)}

    def _files_read(self, frame: DataFrame) -> int:
        """Files that the scans of a frame that was collected have opened."""
        query: Any = frame._jdf
        leaves = query.queryExecution().executedPlan().collectLeaves()
        found = 0
        for number in range(leaves.size()):
            metrics = leaves.apply(number).metrics()
            if metrics.contains("numFiles"):
                found += metrics.apply("numFiles").value()
        return found


def _is_file(lock: Any) -> bool:
    """Whether a lock is a file, which to close it deletes, whoever holds it."""
    return bool(lock.getClass().getSimpleName() == "FileSystemBasedLockProvider")


def _select(frame: DataFrame, where: str | None = None, columns: list[str] | None = None) -> Any:
    if where is not None:
        frame = frame.where(where)
    return frame if columns is None else frame.select(*columns)


def _write(frame: DataFrame, to: str) -> None:
    frame.coalesce(1).write.parquet(to)


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Spark and Java print must not stand between answers
    session = Session(json.loads(sys.stdin.readline()))
    print(json.dumps({"result": session.versions()}), file=answers, flush=True)
    for line in sys.stdin:
        method, arguments = json.loads(line)
        try:
            session.restore()
            answer = {"result": getattr(session, method)(**arguments)}
        except Py4JNetworkError:  # Java has ended, and so does this process
            raise
        except (PySparkException, Py4JError) as error:
            answer = {"error": [type(error).__name__, str(error)]}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
