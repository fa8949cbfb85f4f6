"""Each wheel holds its part of the tree, whole and alone, and works with what it declares."""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
LEFT_BY_TOOLS = shutil.ignore_patterns("__pycache__", "build", "dist", "*.egg-info", ".*_cache")


@dataclass(frozen=True)
class Project:
    """One wheel of the repository: its folder, and the import packages that are in it."""

    folder: str
    packages: tuple[str, ...]

    def files(self) -> set[str]:
        """Name every file of the packages, as the wheel should name it."""
        return {
            path.relative_to(self.home).as_posix()
            for package in self.packages
            for path in (self.home / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and not self._stays_out(path)
        }

    @property
    def home(self) -> Path:
        """The folder that holds the packages."""
        packages_inside = (REPOSITORY / self.folder / self.packages[0]).is_dir()
        return REPOSITORY / self.folder if packages_inside else REPOSITORY

    def _stays_out(self, path: Path) -> bool:
        # a folder that is project and package at once also holds what describes the project
        about = {"pyproject.toml", "README.md"}
        is_about = path.name in about and path.parent == REPOSITORY / self.folder
        return is_about or any(part.endswith(".egg-info") for part in path.parts)


def core_packages() -> tuple[str, ...]:
    wanted = ("hudi_core", "native_format", "pyspark_hudi", "pyspark_org_apache_hudi")
    return tuple(name for name in wanted if (REPOSITORY / name).is_dir())


CORE = "hudi-core"
PROJECTS = {
    CORE: Project(".", core_packages()),
    "hudi-iceberg-format": Project("iceberg_format", ("iceberg_format",)),
    "hudi-delta-format": Project("delta_format", ("delta_format",)),
    "hudi-conformance": Project("plugins/conformance", ("hudi_conformance",)),
    "hudi-sql-format": Project("plugins/sql_format", ("hudi_sql_format",)),
}
REGISTERED = {
    CORE: {
        "console_scripts": {"hudi": "hudi_core.cli:main"},
        "hudi.table_formats": {"native": "native_format.plugin:NativeTableFormat"},
    },
    "hudi-iceberg-format": {
        "hudi.table_formats": {"iceberg": "iceberg_format.plugin:IcebergTableFormat"},
    },
    "hudi-delta-format": {
        "hudi.table_formats": {"delta": "delta_format.plugin:DeltaTableFormat"},
    },
    "hudi-conformance": {
        "pytest11": {"hudi_conformance": "hudi_conformance.pytest_plugin"},
        "hudi.commands": {"conformance": "hudi_conformance.command:app"},
        "hudi.conformance": {
            name: f"hudi_conformance.own_formats.{name}:{name.title()}Suite"
            for name in ("native", "iceberg", "delta")
        },
    },
    "hudi-sql-format": {
        "hudi.table_formats": {"sql": "hudi_sql_format.plugin:SqlTableFormat"},
        "hudi.conformance": {"sql": "hudi_sql_format.conformance:SqlSuite"},
    },
}
# what imports pyspark at its top, and is imported only where an engine is picked
NEEDS_SPARK = ("hudi_core/engine/spark/", "pyspark_hudi/", "pyspark_org_apache_hudi/")
# the same for locks that servers keep and for metastores, whose libraries extras install
NEEDS_CLIENT = (
    *(f"hudi_core/txn/locks/{server}" for server in ("dynamodb", "hive_", "zookeeper")),
    "hudi_core/metastore/glue",
    "hudi_core/metastore/hive",
    "hudi_core/metastore/thrift_calls",
    "hudi_core/trino/",
    "hudi_conformance/glue",
    "hudi_conformance/hive_metastore",
    "hudi_conformance/java_process",
    "hudi_conformance/own_formats/",
    "hudi_sql_format/conformance",
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build_wheel(project, tmp_path_factory) for name, project in PROJECTS.items()}


def build_wheel(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel through its source distribution, from a copy that nothing was built in."""
    source = tmp_path_factory.mktemp("source")
    if project.folder == ".":
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(REPOSITORY / file, source)
        for package in project.packages:
            shutil.copytree(REPOSITORY / package, source / package, ignore=LEFT_BY_TOOLS)
    else:
        folder = REPOSITORY / project.folder
        shutil.copytree(folder, source, ignore=LEFT_BY_TOOLS, dirs_exist_ok=True)
    output = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", output, source)
    assert len(list(output.glob("*.tar.gz"))) == 1
    [wheel] = output.glob("*.whl")
    return wheel


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_holds_its_part_of_the_tree_and_nothing_else(
    wheels: dict[str, Path], name: str
) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        in_wheel = {file for file in archive.namelist() if ".dist-info/" not in file}
    assert in_wheel == PROJECTS[name].files()
    assert in_wheel, "an empty wheel would equal an empty tree"


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_registers_what_it_can_do(wheels: dict[str, Path], name: str) -> None:
    assert entry_points(wheels[name]) == REGISTERED[name]


def test_the_core_wheel_carries_the_licence(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels[CORE]) as archive:
        [licence] = [file for file in archive.namelist() if file.endswith("licenses/LICENSE")]
        assert archive.read(licence) == (REPOSITORY / "LICENSE").read_bytes()


@dataclass(frozen=True)
class CleanEnvironment:
    """A virtual environment that cannot see the source tree."""

    home: Path

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        [found] = self.home.glob("lib/python*/site-packages")
        return found

    def install(self, wheel: Path, extra: str = "") -> None:
        """Install the wheel alone; link the packages it declares from this environment.

        Nothing is downloaded, and what the wheel does not declare cannot be imported.
        """
        options = ("--no-deps", "--no-index", "--no-compile", "--quiet")
        run(sys.executable, "-m", "pip", "--python", self.python, "install", *options, wheel)
        self.link(declared(wheel, extra))

    def link(self, distributions: Iterable[importlib.metadata.Distribution]) -> None:
        """Make packages of this environment importable."""
        for distribution in distributions:
            for top in top_level_files(distribution):
                link = self.site_packages / top.name
                if not link.exists():
                    link.symlink_to(top)

    def run(self, code: str, *arguments: str) -> str:
        """Run Python code outside the source tree; return what it printed."""
        return run(self.python, "-I", "-W", "error", "-c", code, *arguments, cwd=self.home)


def new_environment(folder: Path) -> CleanEnvironment:
    venv.create(folder, with_pip=False, symlinks=True)
    return CleanEnvironment(folder)


@pytest.fixture(scope="module")
def core_alone(
    wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> CleanEnvironment:
    """An environment with the core's wheel; tests change nothing in it."""
    environment = new_environment(tmp_path_factory.mktemp("core") / "clean")
    environment.install(wheels[CORE])
    return environment


@pytest.fixture(scope="module")
def core_and_spark(
    wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> CleanEnvironment:
    """An environment with the core's wheel and Spark; tests change nothing in it."""
    environment = new_environment(tmp_path_factory.mktemp("spark") / "clean")
    environment.install(wheels[CORE], extra="spark")
    return environment


IMPORT_EACH = """
import importlib, json, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
print(json.dumps({name: sys.modules[name].__file__ for name in sys.argv[1:]}))
"""


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_alone_imports_with_what_it_declares(
    wheels: dict[str, Path], name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name == CORE:
        environment = request.getfixturevalue("core_alone")
    else:
        environment = new_environment(tmp_path / "clean")
        environment.install(wheels[name])
        # the kit of a format is the core: it is declared, and installed from its wheel
        environment.install(wheels[CORE])
    modules = sorted(modules_of(PROJECTS[name]))
    places = json.loads(environment.run(IMPORT_EACH, *modules))
    outside = {
        module: place
        for module, place in places.items()
        if not Path(place).is_relative_to(environment.site_packages)
    }
    assert outside == {}


def test_the_command_of_the_core_wheel_finds_the_native_format(
    core_alone: CleanEnvironment, tmp_path: Path
) -> None:
    printed = run(core_alone.home / "bin" / "hudi", "formats", "--json", cwd=tmp_path)
    assert "native" in json.dumps(json.loads(printed))


@pytest.mark.spark
@pytest.mark.slow
def test_sparks_doors_need_nothing_but_the_wheel(
    core_and_spark: CleanEnvironment, tmp_path: Path
) -> None:
    script = Path(__file__).with_name("through_spark_doors.py").read_text(encoding="utf-8")
    python = {"PYSPARK_PYTHON": str(core_and_spark.python)}
    command = (core_and_spark.python, "-I", "-c", script, tmp_path)
    printed = run(*command, cwd=tmp_path, more=python)
    assert printed.splitlines() == ["flat-v8: the same", "hive-v9: the same"]


WITHOUT_THE_WHEEL = """
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", False)
session = builder.config("spark.ui.showConsoleProgress", False).getOrCreate()
session.sparkContext.setLogLevel("OFF")
frame = session.range(3)
options = {"hoodie.datasource.write.recordkey.field": "id"}
try:
    frame.write.format("hudi").options(**options).mode("append").save("table")
except PySparkException as error:
    print("door:", error)
import hudi_core as hudi
try:
    hudi.write(frame, "table", "append", options)
except PySparkException as error:
    print("api:", error)
session.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_executors_that_lack_the_wheel_say_so(
    wheels: dict[str, Path], core_and_spark: CleanEnvironment, tmp_path: Path
) -> None:
    bare = new_environment(tmp_path / "bare")
    bare.link(one for one in declared(wheels[CORE], "spark") if one.name != "obstore")
    # what plans and commits runs beside the driver; what runs tasks is an executor's
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *" pyspark.worker"*) exec {bare.python} "$@";; esac\n'
        f'exec {core_and_spark.python} "$@"\n'
    )
    python.chmod(0o755)
    command = (core_and_spark.python, "-I", "-c", WITHOUT_THE_WHEEL)
    printed = run(*command, cwd=tmp_path, more={"PYSPARK_PYTHON": str(python)})
    for door in ("door:", "api:"):
        [line] = [line for line in printed.splitlines() if line.startswith(door)]
        rest = printed[printed.index(line) :]
        assert "spark.addArtifacts" in rest
        assert str(bare.python) in rest


@pytest.mark.impure
@pytest.mark.parametrize("module", ["hudi_core", "hudi_core.spi", "native_format.plugin"])
def test_importing_loads_no_engine_and_no_other_format(module: str) -> None:
    # names may be imported when they are used
    code = f"import sys\nfrom {module} import *\nprint('\\n'.join(sys.modules))"
    loaded = {name.partition(".")[0] for name in run(sys.executable, "-c", code).split()}
    extras = {"pyspark", "py4j", "kazoo", "boto3", "thrift"}
    assert loaded & (extras | {"pyiceberg", "deltalake", "hudi"}) == set()
    assert "hudi_core" in loaded


# --- how ------------------------------------------------------------------------------------------


def run(
    *command: str | Path, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> str:
    """Run a command without the tree on its path; return what it printed.

    ``more`` are variables of its environment.
    """
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    environment |= more or {}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def dist_info(wheel: Path, file: str) -> bytes | None:
    """Return a file of the wheel's own description."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.partition("/")[2] == file and ".dist-info/" in name:
                return archive.read(name)
    return None


def entry_points(wheel: Path) -> dict[str, dict[str, str]]:
    """Return the groups of entry points that the wheel registers."""
    parser = configparser.ConfigParser()
    parser.read_string((dist_info(wheel, "entry_points.txt") or b"").decode())
    return {group: dict(parser[group]) for group in parser.sections()}


def declared(wheel: Path, extra: str = "") -> list[importlib.metadata.Distribution]:
    """Return every distribution the wheel requires, directly or not, but for the project's own."""
    metadata = dist_info(wheel, "METADATA")
    assert metadata is not None
    waiting = message_from_bytes(metadata).get_all("Requires-Dist", [])
    found: dict[str, importlib.metadata.Distribution] = {}
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if not applies or name in found or name in PROJECTS:
            continue
        found[name] = importlib.metadata.distribution(name)
        assert requirement.specifier.contains(found[name].version, prereleases=True)
        waiting += found[name].requires or []
    return list(found.values())


def top_level_files(distribution: importlib.metadata.Distribution) -> Iterator[Path]:
    """Yield the files and folders that the distribution put beside each other in site-packages."""
    for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
        yield Path(str(distribution.locate_file(top)))


def modules_of(project: Project) -> Iterator[str]:
    """Yield the modules that import without an extra."""
    for file in project.files():
        if file.endswith(".py") and not file.startswith(NEEDS_SPARK + NEEDS_CLIENT):
            yield file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
