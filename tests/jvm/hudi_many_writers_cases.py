"""Hudi-Spark is one of four writers on a table, beside table services, kills and stops."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.crash.many_writers import Answers, Shared, run
from tests.jvm.engines import Engine, EngineError
from tests.jvm.hudi_lock_cases import PATIENT
from tests.tables import SCHEMA

COMMITS = 12
AGREED = {
    **{key: value for key, value in PATIENT.items() if key.startswith("hoodie.write.lock.")},
    "hoodie.write.lock.filesystem.expire": "1",  # minutes, after which a dead one's may be taken
    "hoodie.client.heartbeat.interval_in_ms": "5000",
}
HUDI = {
    **PATIENT,
    **AGREED,
    "hoodie.table.name": "shared",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
CONFLICTS = ("HoodieWriteConflict", "HoodieLockException", "HoodieClusteringUpdate")


def test_four_writers(hudi_spark: Engine, tmp_path: Path) -> None:
    table = Shared(Shared.at(tmp_path).place, str(tmp_path / "writer"), AGREED)
    path = Path(table.place.root)

    def theirs() -> Answers:
        answers = Answers()
        for number in range(COMMITS):
            rows = [(f"spark-{number}", "xyz"[number % 3], number), ("shared0", "x", number)]
            batch = pa.Table.from_pylist(
                [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA
            )
            for _ in range(30):
                try:
                    hudi_spark.save(batch, path, HUDI)
                except EngineError as error:
                    answers.conflicts += 1
                    if not any(one in str(error) for one in CONFLICTS):
                        raise
                else:
                    answers.acked.add(f"spark-{number}")
                    break
        return answers

    answers = run(table, "native", writers=3, commits=COMMITS, seed=5, guest=theirs)
    assert {f"spark-{number}" for number in range(COMMITS)} <= answers.acked
    wanted = sorted(hudi_spark.values(path, ["id"]))
    assert {key for (key,) in wanted} >= answers.acked
    assert len(set(wanted)) == len(wanted)
