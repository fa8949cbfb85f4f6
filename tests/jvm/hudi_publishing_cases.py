"""Validators, stages and expiry of partitions, beside those of Hudi-Spark.

The same options are given to both sides, on copies of one table. Validators have one query each:
several run on threads of the JVM that do not know the jars of the session.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.config.validators import VALIDATOR_CLASSES, ValidatorKind
from hudi_core.errors import CommitValidationError, StageConflictError
from tests.clock_set_back import clock_set_back
from tests.jvm.engines import Engine, EngineError
from tests.jvm.hudi_clustering_cases import (
    HUDI_OPTIONS,
    OPTIONS,
    Values,
    agree,
    made,
    upsert_by_hudi,
    valued_rows,
    versions,
)

CLASSES = {kind: name for name, kind in VALIDATOR_CLASSES.items()}
PREFIX = "hoodie.precommit.validators"
COUNT = "select count(*) from <TABLE_NAME>"
GREATEST = "select max(v) from <TABLE_NAME>"
UPDATE: Values = {0: ("A", 40.0), 1: ("B", 41.0)}
INSERT: Values = {0: ("A", 40.0), 77: ("B", 41.0)}


@pytest.mark.parametrize(
    ("kind", "option", "queries", "changed", "holds"),
    [
        (ValidatorKind.EQUALITY, "equality", COUNT, UPDATE, True),
        (ValidatorKind.EQUALITY, "equality", COUNT, INSERT, False),
        (ValidatorKind.INEQUALITY, "inequality", COUNT, INSERT, True),
        (ValidatorKind.INEQUALITY, "inequality", COUNT, UPDATE, False),
        (ValidatorKind.SINGLE_VALUE, "single.value", f"{COUNT} where v < 0#0", UPDATE, True),
        (ValidatorKind.SINGLE_VALUE, "single.value", f"{COUNT} where v > 40#0", UPDATE, False),
        (ValidatorKind.SINGLE_VALUE, "single.value", f"{GREATEST}#41.0", UPDATE, True),
    ],
)
def test_validators(
    hudi_spark: Engine,
    tmp_path: Path,
    kind: ValidatorKind,
    option: str,
    queries: str,
    changed: Values,
    holds: bool,
) -> None:
    """A commit that Hudi's validators take or refuse is taken or refused here"""
    table, held = made(tmp_path / "t", "9")
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    given = {PREFIX: CLASSES[kind], f"{PREFIX}.{option}.sql.queries": queries}
    if holds:
        table.upsert(valued_rows(changed, 500), options=given)
        upsert_by_hudi(hudi_spark, tmp_path / "copy", held, changed, **given)
    else:
        with pytest.raises(CommitValidationError):
            table.upsert(valued_rows(changed, 500), options=given)
        with pytest.raises(EngineError, match="validation failed"):
            upsert_by_hudi(hudi_spark, tmp_path / "copy", dict(held), changed, **given)
    agree(hudi_spark, tmp_path / "t", held)
    agree(hudi_spark, tmp_path / "copy", held)


@versions
def test_hudi_writes_beside_a_stage(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Hudi-Spark writes and cleans beside a stage, which is then published, or refused"""
    path = tmp_path / "t"
    table, held = made(path, version, {"hoodie.clean.automatic": "false"})
    changed: Values = {0: ("A", 50.0), 88: ("A", 51.0)}
    staged = table.stage(valued_rows(changed, 400))
    agree(hudi_spark, path, held)
    tidy = {"hoodie__clean__automatic": "true", "hoodie__cleaner__commits__retained": "1"}
    for value in (60.0, 61.0):
        upsert_by_hudi(hudi_spark, path, held, {11: ("B", value)}, **tidy)
    agree(hudi_spark, path, held)
    found = hudi.Table.open(str(path), OPTIONS).find_stage(staged.id)
    found.publish()
    held |= changed
    agree(hudi_spark, path, held)
    again = hudi.Table.open(str(path), OPTIONS).stage(valued_rows({0: ("A", 70.0)}, 450))
    upsert_by_hudi(hudi_spark, path, held, {88: ("A", 71.0), 0: ("A", 72.0)})
    with pytest.raises(StageConflictError):
        again.publish()
    again.drop()
    agree(hudi_spark, path, held)


@versions
@pytest.mark.parametrize("strategy", ["KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"])
def test_partitions_expire(hudi_spark: Engine, tmp_path: Path, version: str, strategy: str) -> None:
    """The partitions that Hudi-Spark deletes after a commit are those that we delete"""
    with clock_set_back(30):
        table, held = made(tmp_path / "t", version)
    table.upsert(valued_rows({11: ("B", 3.0)}, 400))
    held |= {11: ("B", 3.0)}
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    ttl = {
        "hoodie.partition.ttl.inline": "true",
        "hoodie.partition.ttl.management.strategy.type": strategy,
        "hoodie.partition.ttl.strategy.days.retain": "10",
    }
    changed: Values = {13: ("B", 5.0), 99: ("C", 6.0)}
    table.upsert(valued_rows(changed, 500), options=ttl)
    hudi_spark.save(
        valued_rows(changed, 500),
        tmp_path / "copy",
        {**HUDI_OPTIONS, "hoodie.datasource.write.operation": "upsert", **ttl},
    )
    stays = "BC" if strategy == "KEEP_BY_TIME" else "C"
    left = {key: one for key, one in (held | changed).items() if one[0] in stays}
    agree(hudi_spark, tmp_path / "t", left)
    agree(hudi_spark, tmp_path / "copy", left)
