"""What every test may ask for: a Spark session, real tables, and bounded property tests."""

from __future__ import annotations

import os
import shlex
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parent.parent

# `make test` exports what the set-up found out for Spark; this does the same for a bare pytest
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
FOUND_BY_SET_UP = Path(sys.prefix) / "environment"
if FOUND_BY_SET_UP.exists():
    for word in shlex.split(FOUND_BY_SET_UP.read_text(encoding="utf-8")):
        name, assigns, value = word.partition("=")
        if assigns:
            os.environ.setdefault(name, value)

REAL_TABLES_VARIABLE = "HUDI_REAL_TABLES"
REAL_TABLES_DEFAULT = REPOSITORY.parent / "shared" / "hudi_tables"

# One profile for everybody: the same examples on every machine, no example judged by its seconds.
# HYPOTHESIS_PROFILE=search looks for new ones, longer.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def real_tables_folder() -> Path:
    """Give the folder with the tables that Apache Hudi wrote, or skip the test."""
    folder = Path(os.environ.get(REAL_TABLES_VARIABLE, REAL_TABLES_DEFAULT))
    if not folder.is_dir():
        pytest.skip(
            f"the tables written by Apache Hudi are not at {folder}; "
            f"set {REAL_TABLES_VARIABLE} to the folder that holds their zip files"
        )
    return folder


@pytest.fixture
def real_tables(real_tables_folder: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Give the test its own copy of a table that Apache Hudi wrote, by name."""

    def unzip(name: str) -> Path:
        target = tmp_path / "real" / name
        if not target.exists():
            with zipfile.ZipFile(real_tables_folder / f"{name}.zip") as archive:
                members = [m for m in archive.namelist() if not m.startswith("__MACOSX/")]
                archive.extractall(target, members)
        # a table with a metadata table holds a second table, deeper
        found = target.glob("**/.hoodie/hoodie.properties")
        return min(found, key=lambda path: len(path.parts)).parent.parent

    return unzip


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give the one Spark session of the run: two cores, UTC, reachable from this machine only."""
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config(
            "spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Dderby.system.home={scratch}"
        )
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.local.dir", f"{scratch}/local")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
