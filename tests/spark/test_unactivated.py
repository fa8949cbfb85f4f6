"""The data source where Spark runs another Python than the one that has the project.

So it is where a virtual environment is not activated: Spark runs ``python3`` of the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_core.spark_python import name_this_python
from tests.samples import sampled

CODE = """
import sys
from pyspark.sql import SparkSession

early = sys.argv[1] == "early"
if early:
    import hudi_core
folder = sys.argv[2]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", folder + "/warehouse")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
if not early:
    import hudi_core
rows = spark.sql("select id, 'a' city from range(3)")
options = {"hoodie.datasource.write.recordkey.field": "id"}
source = "hudi" if early else "org.apache.hudi"
rows.write.format(source).options(**options).mode("append").save(folder + "/t")
print(spark.read.format(source).load(folder + "/t").count())
"""


@pytest.mark.spark
@pytest.mark.parametrize("when", sampled(["late", "early"], 2))
def test_importing_the_project_is_enough(tmp_path: Path, when: str) -> None:
    hidden = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    other = tmp_path / "bin"
    other.mkdir()
    # as the system's own: it has nothing installed
    (other / "python3").write_text(f'#!/bin/sh\nexec "{sys._base_executable}" -I "$@"\n')  # type: ignore[attr-defined]  # of every venv
    (other / "python3").chmod(0o755)
    folders = [
        one for one in os.environ["PATH"].split(":") if one != os.path.dirname(sys.executable)
    ]
    environment["PATH"] = ":".join([str(other), *folders])
    done = subprocess.run(
        [sys.executable, "-c", CODE, when, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["3"]


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_what_the_user_names_stays(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, "python3.9")
    monkeypatch.setenv("PATH", "")
    name_this_python()
    named = {one: os.environ[one] for one in os.environ if one.startswith("PYSPARK_")}
    assert {one for one in named if one.endswith("PYTHON")} == {name}
    assert named[name] == "python3.9"


def test_an_activated_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    name_this_python()
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ
