"""Spark with the runtime of one format, in a process of its own: a reader and writer of tables that
shares no code with this project."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.jvm.prepare import FOLDER

SERVER: Final = Path(__file__).with_name("server.py")
_SHUTDOWN_S: Final = 30.0
POMS: Final = Path(__file__).with_name("jars")


class EngineError(Exception):
    """What an engine says went wrong; the message names the error and its causes."""


class EngineDiedError(Exception):
    """The process of an engine ended while a question was open."""


@dataclass(frozen=True)
class Kind:
    """One engine: where its Spark and its jars are, and what its session needs."""

    name: str
    environment: str
    jars: str
    conf: Mapping[str, str]

    @property
    def version(self) -> str:
        """Name and version of its main jar, as Maven is asked for it."""
        text = (POMS / self.jars / "pom.xml").read_text(encoding="utf-8")
        [found] = re.findall(
            r"<artifactId>((?:hudi|iceberg|delta)-spark[^<]*)</artifactId>\s*<version>([^<]+)<",
            text,
        )
        return "-".join(found)


_SPARK: Final = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark 4 has these by default
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
_QUICK: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Most queries are run once, on a few rows: compiling them would be most of their time."""
HUDI: Final = Kind(
    "Hudi-Spark",
    "spark35",
    "hudi",
    {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    },
)
ICEBERG: Final = Kind(
    "Iceberg-Spark",
    "spark40",
    "iceberg",
    {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
)
DELTA: Final = Kind(
    "Delta-Spark",
    "spark40",
    "delta",
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
)
KINDS: Final = (HUDI, ICEBERG, DELTA)


@dataclass(frozen=True)
class Answer:
    """What an engine made of one filter.

    ``rows``: rows of texts and numbers, sorted by their texts; none where it failed. ``files``:
    files that it read for them. ``error``: what went wrong: the class, and the first line of the
    message.
    """

    rows: list[tuple[Any, ...]]
    files: int = 0
    error: str = ""


@dataclass(eq=False)
class Engine:
    """A running session; starts when it is first asked, and again after it died.

    ``folder``: for its rows, its warehouse and its log. ``zone``: time zone of the Java process.
    ``more``: further settings of its session. ``versions``: of what it runs on, by name; empty
    until it has run. ``quick``: whether little is compiled, by Spark and by Java: for many small
    queries, not to measure.
    """

    kind: Kind
    folder: Path
    zone: str = "UTC"
    quick: bool = True
    more: Mapping[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[str] | None = None

    # --- reading ---------------------------------------------------------------------------------

    def read(
        self,
        path: Path | str,
        options: Mapping[str, str] | None = None,
        *,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        source: str = "hudi",
    ) -> pa.Table:
        """Return the rows of a table, of any types."""
        to = self._new_folder()
        self._ask(
            "load",
            source=source,
            path=str(path),
            options=dict(options or {}),
            to=str(to),
            where=where,
            columns=columns,
        )
        return _rows(to)

    def values(
        self,
        path: Path | str,
        columns: Sequence[str],
        where: str | None = None,
        options: Mapping[str, str] | None = None,
        source: str = "hudi",
    ) -> list[tuple[Any, ...]]:
        """Return rows of texts and numbers, sorted by their texts."""
        found = self._ask(
            "values",
            source=source,
            path=str(path),
            options=dict(options or {}),
            where=where,
            columns=list(columns),
        )
        return sorted((tuple(row) for row in found), key=repr)

    def answers(
        self,
        path: Path | str,
        columns: Sequence[str],
        wheres: Sequence[str],
        options: Mapping[str, str] | None = None,
        source: str = "hudi",
    ) -> list[Answer]:
        """Return what it makes of several filters of a table that it opens once."""
        found = self._ask(
            "answers",
            source=source,
            path=str(path),
            options=dict(options or {}),
            columns=list(columns),
            wheres=list(wheres),
        )
        return [_answer(one) for one in found]

    def schema(
        self, path: Path | str, options: Mapping[str, str] | None = None, source: str = "hudi"
    ) -> dict[str, str]:
        """Return the types of the columns, as Spark spells them."""
        given = dict(options or {})
        return dict(self._ask("schema", source=source, path=str(path), options=given))

    # --- writing ---------------------------------------------------------------------------------

    def save(
        self,
        rows: pa.Table | Path,
        path: Path | str,
        options: Mapping[str, str],
        *,
        mode: str = "append",
        source: str = "hudi",
        partition_by: Sequence[str] = (),
    ) -> None:
        """Write rows to a table: a few of them in one task, or those of a folder of Parquet files
        in as many as Spark makes of it."""
        given = rows
        if isinstance(rows, pa.Table):
            given = self._new_folder()
            given.mkdir()
            pq.write_table(rows, given / "rows.parquet")
        self._ask(
            "save",
            rows=str(given),
            tasks=1 if isinstance(rows, pa.Table) else None,
            source=source,
            path=str(path),
            mode=mode,
            options=dict(options),
            partition_by=list(partition_by),
        )

    def insert_avro(
        self,
        rows: Sequence[Mapping[str, Any]],
        path: Path,
        schema: Mapping[str, Any],
        key: str,
        version: str,
    ) -> None:
        """Make a table without partitions by Hudi's own client, of types that Spark lacks.

        ``rows``: of texts and numbers. ``schema``: of the rows, Avro's. ``key``: the record key's
        field. ``version``: of the table.
        """
        self._ask(
            "insert_avro",
            rows=list(rows),
            path=str(path),
            schema=json.dumps(schema),
            key=key,
            version=int(version),
        )

    def write_checkpoint(self, path: Path) -> None:
        """Write a checkpoint of the log of a Delta table."""
        self._ask("write_checkpoint", path=str(path))

    # --- SQL -------------------------------------------------------------------------------------

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, of texts and numbers."""
        return [tuple(row) for row in self._ask("sql", text=text)]

    def query(self, text: str) -> pa.Table:
        """Run a query and return its rows, of any types."""
        to = self._new_folder()
        self._ask("sql", text=text, to=str(to))
        return _rows(to)

    @contextmanager
    def configured(self, conf: Mapping[str, str]) -> Iterator[None]:
        """Change settings of the session for a while."""
        before = self._ask("configure", conf=dict(conf))
        try:
            yield
        finally:
            self._ask("configure", conf=before)

    # --- Hudi's own classes ----------------------------------------------------------------------

    def config_properties(self, classes: Sequence[str]) -> list[tuple[str, list[str], str]]:
        """Name, other names and default of each option that classes declare."""
        return [tuple(one) for one in self._ask("config_properties", classes=list(classes))]

    def lock(self, path: Path | str, options: Mapping[str, str] | None = None) -> bool:
        """Take a table's lock by Hudi's provider of the options, if it is free.

        By default ``FileSystemBasedLockProvider``. It waits for `hoodie.write.lock.wait_time_ms`.
        """
        return bool(self._ask("lock", path=str(path), options=dict(options or {})))

    def unlock(self, path: Path | str) -> None:
        """Give a lock back that :meth:`lock` took."""
        self._ask("unlock", path=str(path))

    def checkpoint(self, path: Path | str, key: str, identifier: str) -> str | None:
        """Return the checkpoint that Hudi's streaming sink would go on from."""
        found = self._ask("checkpoint", path=str(path), key=key, identifier=identifier)
        return None if found is None else str(found)

    # --- the process -----------------------------------------------------------------------------

    def stop(self) -> None:
        """End the process, and wait for its Java, which tidies its folders up until it is gone."""
        if self._process is not None:
            with self._process as process:
                process.kill()
            self._process = None
            _await_end(process.pid)

    def _ask(self, method: str, **arguments: Any) -> Any:
        process = self._running()
        try:
            answer = _exchange(process, [method, arguments])
        except BaseException:
            self.stop()  # what it answers later must not be taken for the next answer
            raise
        if "error" in answer:
            name, text = answer["error"]
            raise EngineError(f"{name}: {story(text)}")
        return answer["result"]

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.folder.mkdir(parents=True, exist_ok=True)
        jars = ",".join(str(jar) for jar in sorted((FOLDER / self.kind.jars).glob("*.jar")))
        java = f"-Duser.timezone={self.zone} -Dderby.system.home={self.folder}"
        if self.quick:
            # without the second compiler Java reserves 48 MB for code, which some hundred cases
            # fill: from then on everything is interpreted
            java += " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
        conf = {
            **_SPARK,
            **(_QUICK if self.quick else {}),
            **self.kind.conf,
            "spark.jars": jars,
            "spark.driver.extraJavaOptions": java,
            "spark.sql.warehouse.dir": f"{self.folder}/warehouse",
            "spark.local.dir": f"{self.folder}/local",
            **self.more,
        }
        python = FOLDER / self.kind.environment / "bin" / "python"
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [python, SERVER],
                cwd=self.folder,
                env=_environment(python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                process_group=0,
            )
        self.versions = _exchange(self._process, conf)["result"]
        return self._process

    def _new_folder(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"rows-{uuid.uuid4().hex}"


def _await_end(group: int) -> None:
    """Wait until no process of a group is left, and kill what does not end by itself."""
    last = time.monotonic() + _SHUTDOWN_S
    with suppress(ProcessLookupError):
        while time.monotonic() < last:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)


def _answer(found: Mapping[str, Any]) -> Answer:
    if "error" in found:
        name, text = found["error"]
        return Answer([], error=f"{name}: {cause(text)}")
    return Answer(sorted((tuple(row) for row in found["rows"]), key=repr), found["files"])


def cause(text: str) -> str:
    """Return the line of a Java error that says what happened at the bottom of it."""
    return story(text).splitlines()[-1]


def story(text: str) -> str:
    """Return the lines of a Java error that say what happened, without those that say where."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # the first line of py4j names an object, the next one begins with the colon
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return "\n".join([*(thrown[:1] or lines[:2]), *causes])


def _exchange(process: subprocess.Popen[str], question: Any) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(question), file=process.stdin, flush=True)
    line = process.stdout.readline()
    if not line:
        raise EngineDiedError("the process ended; its log says why")
    return json.loads(line)


def _environment(python: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON")
    }
    return {**kept, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}


def _rows(folder: Path) -> pa.Table:
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables(pq.ParquetFile(file).read() for file in files)
