"""What every test may ask for: a Spark session, real tables, an S3 service, a Hive metastore, and
bounded property tests."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from hudi_core.config.option_warnings import WARNED
from hudi_core.storage.options import StorageOptions

REPOSITORY = Path(__file__).resolve().parent.parent

# `make test` exports what the set-up found out for Spark; this does the same for a bare pytest
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# scripts that tests run import from the tests
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])
)
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


@pytest.fixture(autouse=True)
def _warn_again() -> None:
    """Forget which options were warned of, once in a process."""
    WARNED.clear()


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


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give the Hive metastore of this test run: one for all its processes, as it starts slowly."""
    from tests.hive_metastore import shared_metastore  # noqa: PLC0415 - with clients few tests need

    folder = tmp_path_factory.getbasetemp()
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    with shared_metastore(folder.parent if is_one_of_several else folder) as service:
        yield service


@dataclass(frozen=True)
class S3Service:
    """Where an S3 service is and how to reach it."""

    endpoint: str
    given: dict[str, str]
    options: StorageOptions
    filesystem: pafs.FileSystem

    def new_root(self, folder: str = "tables/one") -> str:
        """Make a bucket and return the URI of a folder in it."""
        bucket = f"bucket-{uuid.uuid4().hex}"
        self.filesystem.create_dir(bucket)
        return f"s3://{bucket}/{folder}"

    def objects(self, root: str) -> dict[str, bytes]:
        """Return everything that is stored below a URI."""
        selector = pafs.FileSelector(root.removeprefix("s3://"), recursive=True)
        found = [info for info in self.filesystem.get_file_info(selector) if info.is_file]
        return {info.path: self.filesystem.open_input_file(info.path).read() for info in found}


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Service]:
    """Give an S3 service of this test run."""
    with _serving(lambda application: application) as service:
        yield service


@pytest.fixture(scope="session")
def careless_s3(s3: S3Service) -> Iterator[S3Service]:
    """Give a service with the buckets of ``s3`` that ignores the conditions of puts."""

    def forgetful(application: Any) -> Any:
        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            for condition in ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"):
                environ.pop(condition, None)
            found: Iterable[bytes] = application(environ, start_response)
            return found

        return answer

    with _serving(forgetful) as service:
        yield service


@contextmanager
def _serving(middleware: Callable[[Any], Any]) -> Iterator[S3Service]:
    """Serve S3 from this process, on the loopback device and a free port."""
    # it takes seconds to import, which most tests need not pay
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
        DomainDispatcherApplication,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415

    application = middleware(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.port}"
        given = {
            "fs.s3a.access.key": "test-access-key",
            "fs.s3a.secret.key": "test-secret-key",
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
        }
        filesystem = pafs.S3FileSystem(
            access_key="test-access-key",
            secret_key="test-secret-key",
            endpoint_override=endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        )
        yield S3Service(endpoint, given, StorageOptions.from_options(given, {}), filesystem)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
