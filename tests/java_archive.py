"""An archive of Spark's classes, loaded and verified, which halves what a start of Spark costs.

A run of several workers has it made beside its first tests, and it stays in `.venv` for later
runs. What is started before it is there, or by another Java, does without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""Variable whose options each driver's Java takes."""


@cache
def archive() -> Path:
    """Where the archive for this Java and this Spark is."""
    home = Path(os.environ.get("JAVA_HOME", "/usr"))
    release = home / "release"
    facts = (
        home.resolve(),
        release.read_text(encoding="utf-8") if release.is_file() else "",
        str(_spark()),
        (_spark() / "version.py").read_text(encoding="utf-8"),
        os.environ.get("JDK_JAVA_OPTIONS"),
    )
    return Path(sys.prefix) / f"spark-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.jsa"


def pytest_configure(config: pytest.Config) -> None:
    """Begin to make it where a run has several workers and it is missing."""
    is_run_of_several = bool(getattr(config.option, "tx", None))
    if not is_run_of_several or hasattr(config, "workerinput") or archive().exists():
        return
    folder = tempfile.mkdtemp(dir=sys.prefix, prefix="spark-archive-")
    maker = subprocess.Popen(
        [sys.executable, "-m", "tests.java_archive", folder],
        cwd=config.rootpath,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def end() -> None:
        if maker.poll() is None:  # a run that ends leaves neither Java nor folder
            os.killpg(maker.pid, signal.SIGKILL)
            maker.wait()
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(end)


def pytest_runtest_setup() -> None:
    """Let Spark use it from now on, once it is there."""
    if _OPTIONS not in os.environ and (there := archive()).exists():
        os.environ[_OPTIONS] = f"-XX:SharedArchiveFile={there} -Xlog:cds*=off"
        # the archive is for these jars by this path; environments of tests link to them
        os.environ.setdefault("SPARK_HOME", str(_spark()))


def main(folder: str) -> None:
    """Let Spark do what tests do in a folder, and keep the classes that this has loaded."""
    there = archive()
    made = Path(folder, there.name)
    os.environ[_OPTIONS] = f"-XX:ArchiveClassesAtExit={made} -Xlog:cds*=off"
    _use_spark(folder)
    made.replace(there)


def _spark() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _use_spark(folder: str) -> None:
    from pyspark.sql import SparkSession, functions  # noqa: PLC0415 - none of it where it is used

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    rows = session.createDataFrame([(1, "a", 1.5), (2, "b", None)], "id int, name string, x double")
    rows.groupBy("name").agg(functions.count("id"), functions.max("x")).orderBy("name").collect()
    rows.mapInArrow(lambda batches: batches, rows.schema).collect()
    rows.write.partitionBy("name").saveAsTable("some")
    session.sql("INSERT INTO some VALUES (3, 2.5, 'c')")
    session.sql("SELECT one.* FROM some one JOIN some other USING (id) WHERE id > 1").collect()
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    process.stdin.close()
    process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
