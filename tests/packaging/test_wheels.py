"""Each wheel holds its part of the tree, whole and alone, and works with what it declares."""

from __future__ import annotations

import configparser
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.built_wheels import (
    CORE,
    PROJECTS,
    REPOSITORY,
    CleanEnvironment,
    Project,
    Wheels,
    declared,
    dist_info,
    new_environment,
    run,
)

REGISTERED = {
    CORE: {
        "console_scripts": {"hudi": "hudi_core.cli:main"},
        "hudi.table_formats": {"native": "native_format.plugin:NativeTableFormat"},
    },
    "hudi-iceberg-format": {
        "hudi.table_formats": {"iceberg": "iceberg_format.plugin:IcebergTableFormat"}
    },
    "hudi-delta-format": {"hudi.table_formats": {"delta": "delta_format.plugin:DeltaTableFormat"}},
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
    "hudi_core/read/polars_scan",
    "hudi_core/trino/",
    "hudi_conformance/glue",
    "hudi_conformance/hive_metastore",
    "hudi_conformance/java_process",
    "hudi_conformance/own_formats/",
    "hudi_sql_format/conformance",
)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_holds_its_part_of_the_tree_and_nothing_else(wheels: Wheels, name: str) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        in_wheel = {file for file in archive.namelist() if ".dist-info/" not in file}
    assert in_wheel == PROJECTS[name].files()
    assert in_wheel, "an empty wheel would equal an empty tree"


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_registers_what_it_can_do(wheels: Wheels, name: str) -> None:
    assert entry_points(wheels[name]) == REGISTERED[name]


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_carries_the_licence(wheels: Wheels, name: str) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        [licence] = [file for file in archive.namelist() if file.endswith("licenses/LICENSE")]
        assert archive.read(licence) == (REPOSITORY / "LICENSE").read_bytes()


IMPORT_EACH = """
import importlib, json, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
print(json.dumps({name: sys.modules[name].__file__ for name in sys.argv[1:]}))
"""


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_alone_imports_with_what_it_declares(
    wheels: Wheels, name: str, tmp_path: Path
) -> None:
    if name == CORE:
        environment = wheels.core_alone()
    else:
        # the kit of a format is the core: it is declared, and installed from its wheel
        environment = wheels.with_core(tmp_path / "clean")
        environment.install(wheels[name])
    modules = sorted(modules_of(PROJECTS[name]))
    places = json.loads(environment.run(IMPORT_EACH, *modules))
    outside = {
        module: place
        for module, place in places.items()
        if not Path(place).is_relative_to(environment.site_packages)
    }
    assert outside == {}


def test_the_command_of_the_core_wheel_finds_the_native_format(
    wheels: Wheels, tmp_path: Path
) -> None:
    program = wheels.core_alone().home / "bin" / "hudi"
    printed = run(program, "formats", "--json", cwd=tmp_path)
    assert "native" in json.dumps(json.loads(printed))


WITHOUT_THE_WHEEL = """
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", False)
builder = builder.config("spark.sql.shuffle.partitions", 2)
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
    wheels: Wheels, core_and_spark: CleanEnvironment, tmp_path: Path
) -> None:
    bare = new_environment(tmp_path / "bare")
    bare.link(one for one in declared(wheels[CORE], "spark") if one.name != "obstore")
    # what plans and commits runs beside the driver; what runs tasks is an executor's
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\nunset PYTHONPATH\n"
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


# --- how
def entry_points(wheel: Path) -> dict[str, dict[str, str]]:
    """Return the groups of entry points that the wheel registers."""
    parser = configparser.ConfigParser()
    parser.read_string((dist_info(wheel, "entry_points.txt") or b"").decode())
    return {group: dict(parser[group]) for group in parser.sections()}


def modules_of(project: Project) -> Iterator[str]:
    """Yield the modules that import without an extra."""
    for file in project.files():
        if file.endswith(".py") and not file.startswith(NEEDS_SPARK + NEEDS_CLIENT):
            yield file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
