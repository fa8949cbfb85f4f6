"""Random histories of split tables in every format, read by the Sparks beside all other readers.

Hudi-Spark, Iceberg-Spark and Delta-Spark read the rows after every fifth step and after the last,
with filters and their own data skipping, as Python's readers do. In the end each state that is
retained is read by each format's own time travel. A run takes every third of 50 histories,
`HUDI_CAMPAIGN=whole` all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.formats.history_readers import content, delta_versions, iceberg_snapshots
from tests.jvm.engines import Engine, EngineError
from tests.samples import sampled
from tests.split_histories import COUNT, Condition, History, State

STEPS: Final = 15
EVERY: Final = 5
SKIPPING: Final = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


@dataclass(frozen=True)
class Judge:
    """A Spark that reads a table of its format.

    ``times``: options of its time travel to each of some states.
    """

    engine: Engine
    source: str
    options: Mapping[str, str]
    times: Callable[[Mapping[str, State]], Mapping[str, Mapping[str, str]]]

    def rows(self, path: Path, time: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Rows, now or at a time."""
        found = self.engine.read(path, {**self.options, **(time or {})}, source=self.source)
        return list(found.to_pylist())

    def keys(self, path: Path, asked: list[Condition]) -> list[Any]:
        """Keys by filter, or the error that it ends with."""
        wheres = [one.sql for one in asked]
        answers = self.engine.answers(path, ["id"], wheres, self.options, self.source)
        return [one.error or [key for (key,) in one.rows] for one in answers]


def judges(
    history: History, hudi_spark: Engine, iceberg_spark: Engine, delta_spark: Engine
) -> dict[str, Judge]:
    """Those who know a format of the table."""

    def snapshots(states: Mapping[str, State]) -> dict[str, dict[str, str]]:
        found = history.kept(iceberg_snapshots(history.path), states)
        return {time: {"snapshot-id": str(number)} for time, number in found.items()}

    def versions(states: Mapping[str, State]) -> dict[str, dict[str, str]]:
        found = history.kept(delta_versions(history.path), states)
        return {time: {"versionAsOf": str(number)} for time, number in found.items()}

    def instants(states: Mapping[str, State]) -> dict[str, dict[str, str]]:
        return {time: {"as.of.instant": time} for time in states}

    positions = history.draw.choice(["true", "false"])
    given = {**SKIPPING, "hoodie.merge.use.record.positions": positions}
    every = {
        "native": Judge(hudi_spark, "hudi", given, instants),
        "iceberg": Judge(iceberg_spark, "iceberg", {}, snapshots),
        "delta": Judge(delta_spark, "delta", {}, versions),
    }
    return {
        name: one for name, one in every.items() if name in ("native", *history.format.split(","))
    }


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize("number", sampled(range(COUNT), 3))
def test_a_history(
    hudi_spark: Engine,
    iceberg_spark: Engine,
    delta_spark: Engine,
    number: int,
    tmp_path: Path,
) -> None:
    history = History(tmp_path / "t", number)
    asked = judges(history, hudi_spark, iceberg_spark, delta_spark)
    for step in history.steps(STEPS):
        if step and step % EVERY and step + 1 < STEPS:
            continue
        history.check()
        conditions = [history.condition() for _ in range(6)]
        right = [history.matching(one) for one in conditions]
        for name, judge in asked.items():
            found = content(judge.rows(history.path))
            assert found == content(history.now.rows.values()), (name, history.story)
            keys = judge.keys(history.path, conditions)
            assert keys == right, (name, [one.sql for one in conditions], history.story)
    states = history.check_past()
    for name, judge in asked.items():
        read = 0
        for time, options in judge.times(states).items():
            try:
                then = history.seen(judge.rows(history.path, options))
            except EngineError as error:
                # of cleaned tables Hudi-Spark reads no state before those that a clean keeps
                if "Cleaner cleaned up the timestamp" not in str(error):
                    raise
                continue
            read += 1
            assert then == content(states[time].rows.values()), (name, time, history.story)
        assert read, (name, history.story)
