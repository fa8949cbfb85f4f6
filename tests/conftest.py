"""What every test may ask for: a Spark session, an S3 service, a Hive metastore, and bounded
property tests."""

from __future__ import annotations

import gc
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings

# What every run imports is little: each fixture imports what it needs.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.forked_commands import ForkedCommands
    from tests.moto_s3 import S3Service

REPOSITORY = Path(__file__).resolve().parent.parent

_GIB: Final = 1 << 30


def folder_in_memory(free: int = 6 * _GIB, available: int = 12 * _GIB) -> str | None:
    """Return Linux' folder in memory where it has room: bytes in it, and of the machine.

    In containers it is often small, or no program may run from it.
    """
    folder = "/dev/shm"
    try:
        room = os.statvfs(folder)
        known = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        left = int(known["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return None
    is_large = room.f_bavail * room.f_frsize >= free and left >= available
    may_run = not room.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
    return folder if is_large and may_run and os.access(folder, os.W_OK) else None


# tests import what they share, also when pytest is not started as a module
if str(REPOSITORY) not in sys.path:
    sys.path.append(str(REPOSITORY))

# a run makes 300,000 files, most of them small; processes that it starts make theirs there as well
if "TMPDIR" not in os.environ and (_in_memory := folder_in_memory()):
    os.environ["TMPDIR"] = _in_memory
    tempfile.tempdir = None  # asked for again

# Hundreds of processes are started: where each compiles the sources, this takes longer than most of
# the tests that start them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Java of tests lives for seconds: its second compiler costs more than it gains, and to verify the
# classes of Spark takes a sixth of its start; the set-up keeps those that Spark loads, and Java
# warns where it cannot use them
_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
if (_classes := Path(sys.prefix) / "spark.jsa").exists():
    _JAVA_OPTIONS += f" -XX:SharedArchiveFile={_classes} -Xlog:disable -Xlog:all=error:stderr"
os.environ.setdefault("JDK_JAVA_OPTIONS", _JAVA_OPTIONS)
# `make test` exports what the set-up found out for Spark; this does the same for a bare pytest
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# scripts that tests run import from the tests
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])
)
# in its workers Spark runs a script, which runs this Python
os.environ["HUDI_TESTS_PATH"] = os.environ["PYTHONPATH"]
os.environ["HUDI_TESTS_PYTHON"] = sys.executable
os.environ["PYSPARK_PYTHON"] = str(REPOSITORY / "tests" / "spark_workers" / "python")
FOUND_BY_SET_UP = Path(sys.prefix) / "environment"
if FOUND_BY_SET_UP.exists():
    for word in shlex.split(FOUND_BY_SET_UP.read_text(encoding="utf-8")):
        name, assigns, value = word.partition("=")
        if assigns:
            os.environ.setdefault(name, value)

# One profile for everybody: the same examples on every machine, no example judged by its seconds.
# HYPOTHESIS_PROFILE=search looks for new ones, longer; `make check` takes the first few (quick).
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test` takes a third of them, others in each turn
settings.register_profile(
    "third", settings.get_profile("fixed"), derandomize=False, database=None, max_examples=20
)
settings.register_profile("quick", settings.get_profile("fixed"), max_examples=8)
settings.register_profile("search", deadline=None, max_examples=2000)
_USUAL = "third" if os.environ.get("HUDI_CAMPAIGN") == "third" else "fixed"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _USUAL))


pytest_plugins = [
    "hudi_conformance.services",
    "tests.purity",
    "tests.folder_seconds",
    "tests.hudi_tables",
    "tests.shared_services",
    "tests.samples",
]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the garbage collector pass over half a million objects that the tests are."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Let files stay in memory for as long as the system likes: no test cuts the power."""
    from hudi_core.storage.disk import Disk  # noqa: PLC0415 - workers import it, what starts them not

    together = Disk.sync_all

    def fsync(_: object) -> None:
        pass

    def sync_all(disk: Disk, paths: Collection[str]) -> None:
        # threads that have nothing to wait for take longer than what they do
        for some in [[path] for path in paths] if os.fsync is fsync else [paths]:
            together(disk, some)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        patched.setattr(Disk, "sync_all", sync_all)
        yield


@pytest.fixture(autouse=True)
def _warn_again() -> None:
    """Forget what was warned of or logged, once in a process."""
    for name, known in (
        ("hudi_core.config.option_warnings", "WARNED"),
        ("hudi_core.plugin.calls", "UNUSABLE"),
        ("hudi_core.write.planning", "WARNED_OF_LOGS"),
    ):
        if name in sys.modules:
            getattr(sys.modules[name], known).clear()


@pytest.fixture
def own_messages(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Give what this project has logged: servers of other tests log in threads of this process."""
    packages = {"hudi_core", "native_format", "iceberg_format", "delta_format", "hudi_sql_format"}
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.name.partition(".")[0] in packages
    ]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give the one Spark session of the run: two cores, UTC, reachable from this machine only."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - most runs do without

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
def commands() -> Iterator[ForkedCommands]:
    """Give what runs commands of Python without waiting for its start."""
    from tests.forked_commands import forked_commands  # noqa: PLC0415 - few tests need it

    with forked_commands() as forked:
        yield forked


@pytest.fixture(scope="session")
def metastore(hive_metastore: Any) -> Any:
    """Give the Hive metastore of this test run."""
    return hive_metastore


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give a ZooKeeper of this test run, in a process that has Curator, too."""
    from tests.zookeeper_server import zookeeper_server  # noqa: PLC0415 - few tests need Java

    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as service:
        yield service


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Service]:
    """Give an S3 service of this test run."""
    from tests.moto_s3 import serving  # noqa: PLC0415 - takes seconds, which few tests need pay

    with serving(lambda application: application) as service:
        yield service


@pytest.fixture(scope="session")
def s3_process() -> Iterator[S3Service]:
    """Give an S3 service in a process of its own, for clients that let no other thread run."""
    from tests.s3_process import s3_in_a_process  # noqa: PLC0415 - as above

    with s3_in_a_process() as service:
        yield service


@pytest.fixture(scope="session")
def careless_s3(s3: S3Service) -> Iterator[S3Service]:
    """Give a service with the buckets of ``s3`` that ignores the conditions of puts."""
    from tests.moto_s3 import serving  # noqa: PLC0415 - as above

    def forgetful(application: Any) -> Any:
        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            for condition in ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"):
                environ.pop(condition, None)
            found: Iterable[bytes] = application(environ, start_response)
            return found

        return answer

    with serving(forgetful) as service:
        yield service
