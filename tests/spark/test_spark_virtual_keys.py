"""Keys that are made again on Spark's executors are those that are made in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from tests.formats.service_tables import bag
from tests.formats.virtual_tables import GENERATORS, KEY_COLUMNS, Step, equal, history, made

LEVELS = ("no meta columns", "no key column")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_both_engines_make_the_same_keys(
    tmp_path: Path, spark: Any, level: str, generator: str
) -> None:
    here = made(tmp_path / "here", None, generator=generator)
    there = made(tmp_path / "there", level, generator=generator)
    insert, *_ = history(0, by_ts=generator == "simple number")
    last = [{**row, "value": row["value"] + 1} for row in insert.rows]
    steps = [
        insert,
        Step("upsert", last[:5]),
        Step("cluster"),
        Step("upsert", last[4:]),
        Step("delete", last[:3]),
    ]
    for step in steps:
        assert step.run(there, spark) == step.run(here), step.operation
        equal(there, here)
    assert not hudi.Table.open(there.path).validate(keys=True).differences
    frame = there.read(spark)
    rows = frame.toArrow()
    assert bag(rows, KEY_COLUMNS.names) == bag(here.to_arrow(), KEY_COLUMNS.names)
    assert ("_hoodie_record_key" in frame.columns) == (level == "no key column")
    if level == "no key column":
        assert frame.where("_hoodie_record_key is not null").count() == 0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("index", ["BLOOM", "RECORD_INDEX", "BUCKET"])
def test_indexes_find_made_keys_on_executors(
    tmp_path: Path, spark: Any, level: str, index: str
) -> None:
    here = made(tmp_path / "here", None, index=index)
    there = made(tmp_path / "there", level, index=index)
    for step in history(3, length=4)[:-1]:
        assert step.run(there, spark) == step.run(here), step.operation
        equal(there, here)
