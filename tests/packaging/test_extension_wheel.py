"""A wheel with one extension of each kind: found by name, on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import documented_extensions
from tests.packaging.built_wheels import CleanEnvironment, Wheels, build_wheels, run
from tests.samples import sampled

DOORS = Path(__file__).with_name("through_spark_doors.py").read_text(encoding="utf-8")
WRITE_AND_READ = """
import json, os, sys

session = session_in(Path.cwd())
lacking, *cases = sys.argv[1:]
for case in cases:
    same_through_both(session, Path.cwd(), case)
told = {"doors": cases}
options = {
    "hoodie.datasource.write.keygenerator.type": "ACME_padded",
    "hoodie.table.keygenerator.acme_padded.width": "4",
    "hoodie.write.record.merge.strategy.id": "acme_status",
    "hoodie.index.type": "acme_ranges",
    "hoodie.write.lock.provider": "acme_folder",
    "hoodie.write.lock.acme_folder.suffix": ".taken",
    "hoodie.write.lock.conflict.resolution.strategy": "acme_schema",
    "hoodie.storage.strategy.class": "acme_letters",
}
BATCHES = (
    {"id": ["1", "2", "3"], "city": ["Ulm", "Ulm", "Bonn"], "status": ["paid", "open", "open"]},
    {"id": ["1", "2", "4"], "city": ["Ulm", "Ulm", "Bern"], "status": ["open", "sent", "open"]},
)
for engine in ("arrow", "spark", "lacking"):
    if engine == "lacking":
        session.sparkContext.pythonExec = lacking
    rows = [pa.table(batch) for batch in BATCHES]
    table = hudi.Table.create(
        engine, rows[0].schema, name="t", record_key="id", partition_by="city",
        ordering_field="status",
        options={**options, "hoodie.storage.path": os.path.abspath(f"{engine}-store")},
    )
    try:
        for batch in rows:
            table.upsert(batch if engine == "arrow" else session.createDataFrame(batch.to_pandas()))
    except Exception as error:
        told[engine] = f"{type(error).__name__}: {error}"
        continue
    names = ["_hoodie_record_key", "_hoodie_partition_path", "status"]
    read = hudi.Table.open(engine)
    found = read.to_arrow(columns=names).to_pylist()
    told[engine] = sorted(list(row.values()) for row in found)
    if engine == "spark":
        assert sorted(map(list, read.read(session).select(*names).collect())) == told[engine]
    told[f"{engine} properties"] = {
        name: value for name, value in read.config.raw.items() if "acme" in value or "acme" in name
    }
print(json.dumps(told))
session.stop()
"""
ROWS = [["0001", "U", "paid"], ["0002", "U", "sent"], ["0003", "B", "open"], ["0004", "B", "open"]]
KEPT = {
    "hoodie.table.keygenerator.class": "acme_padded",
    "hoodie.table.keygenerator.acme_padded.width": "4",
    "hoodie.record.merge.strategy.id": "acme_status",
    "hoodie.storage.strategy.class": "acme_letters",
}


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the extensions that the page shows."""
    folder = tmp_path_factory.mktemp("acme")
    (folder / f"{documented_extensions.MODULE}.py").write_text(documented_extensions.code())
    groups = "".join(
        f'[project.entry-points."{group}"]\n'
        + "".join(f'{name} = "{target}"\n' for name, target in entries.items())
        for group, entries in documented_extensions.entry_points().items()
    )
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        f'[project]\nname = "acme-hudi"\nversion = "1.0"\n{groups}'
        f'[tool.setuptools]\npy-modules = ["{documented_extensions.MODULE}"]\n'
    )
    [wheel] = build_wheels(folder)
    return wheel


@pytest.fixture(scope="module")
def with_extensions(
    wheels: Wheels, acme: Path, tmp_path_factory: pytest.TempPathFactory
) -> CleanEnvironment:
    environment = wheels.with_core(tmp_path_factory.mktemp("with") / "clean", "spark")
    environment.install(acme)
    return environment


@pytest.fixture(scope="module")
def told(
    with_extensions: CleanEnvironment,
    core_and_spark: CleanEnvironment,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The answers of one Spark: of its doors, of both engines, and at last of executors with
    another Python."""
    python = {"PYSPARK_PYTHON": str(with_extensions.python_of_spark())}
    command = (with_extensions.python, "-I", "-c", DOORS + WRITE_AND_READ)
    without = core_and_spark.python_of_spark()
    folder = tmp_path_factory.mktemp("written")
    cases = sampled(["flat-v8", "hive-v9"], 2, 1)
    found: dict[str, Any] = json.loads(run(*command, without, *cases, cwd=folder, more=python))
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_sparks_doors_need_nothing_but_wheels(told: dict[str, Any]) -> None:
    assert told["doors"]


@pytest.mark.spark
@pytest.mark.slow
def test_both_engines_find_them_by_name(told: dict[str, Any]) -> None:
    assert told["arrow"] == ROWS
    assert told["spark"] == ROWS
    for engine in ("arrow", "spark"):
        kept = told[f"{engine} properties"]
        assert kept == KEPT


@pytest.mark.spark
@pytest.mark.slow
def test_executors_that_lack_them_say_so(told: dict[str, Any]) -> None:
    assert told["lacking"].startswith("UnknownExtensionError")
    assert "on the executors" in told["lacking"]
