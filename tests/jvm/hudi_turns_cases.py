"""Hudi-Spark and this project in turns.

Both write one table, a dozen turns and more, and each tidies up in its own way: Hudi-Spark cleans,
clusters, archives and compacts the metadata table inline. After every turn both read what a
dictionary says, and the commands that validate the table and its metadata table find nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.jvm.commands import is_sound
from tests.jvm.engines import Engine
from tests.jvm.histories import ENCODED, Model, Step, of_city, read_by_hudi, read_by_us
from tests.jvm.skipping import WAYS
from tests.jvm.writers import HudiSpark, Shape, ours

TURNS: Final[tuple[tuple[str, Step], ...]] = (
    ("creator", Step("insert", range(20))),
    ("spark", Step("upsert", [0, 1, 2, 30, 31], ts=1)),
    ("ours", Step("upsert", [1, 3, 32, 33], ts=2)),
    ("spark", Step("delete", [4, 30])),
    ("spark", Step("upsert", [1, 5], ts=1)),
    ("ours", Step("delete", [6, 31])),
    ("spark", Step("insert", range(40, 45))),
    ("ours", Step("insert", range(45, 50))),
    ("spark", Step("insert_overwrite", of_city("oslo", 60, 3))),
    ("ours", Step("upsert", of_city("oslo", 60, 1), ts=3)),
    ("spark", Step("delete_partition", city="new york")),
    ("ours", Step("insert", of_city("new york", 80, 2))),
    ("spark", Step("upsert", range(0, 50, 3), ts=4)),
    ("ours", Step("insert_overwrite", of_city("rome", 100, 3))),
    ("spark", Step("bulk_insert", range(120, 125))),
    ("ours", Step("delete_partition", city="a%b")),
    ("spark", Step("insert", of_city("a%b", 140, 2))),
    ("ours", Step("upsert", range(0, 150, 7), ts=5)),
    ("spark", Step("upsert", range(0, 150, 5), ts=6)),
)
INLINE: Final = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "3",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
"""What Hudi-Spark does beside its writes."""
INDEXES: Final[Mapping[str, Mapping[str, str]]] = {
    "simple": {},
    "record index": {
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    },
}


@pytest.mark.parametrize(
    ("version", "index", "creator"),
    [
        # any two values of different kinds meet in one of these
        ("8", "simple", "ours"),
        ("8", "record index", "spark"),
        ("9", "simple", "spark"),
        ("9", "record index", "ours"),
    ],
)
def test_turns(hudi_spark: Engine, tmp_path: Path, version: str, index: str, creator: str) -> None:
    """Upserts, deletes, inserts, overwritten and deleted partitions, by one and by the other."""
    path = tmp_path / "table"
    shape = Shape(version, partition="city", ordering="ts", options={**ENCODED, **INDEXES[index]})
    model = Model()
    for number, (who, step) in enumerate(TURNS):
        turn = f"turn {number}, {step.operation} by {who}"
        if (creator if who == "creator" else who) == "ours":
            step.take(ours, path, shape)
        else:
            step.take(HudiSpark(hudi_spark), path, shape.with_options(INLINE))
        model.take(step)
        assert read_by_us(path) == model.content, turn
        assert read_by_hudi(hudi_spark, path) == model.content, turn
        is_sound(path)
    for way, options in WAYS.items():
        assert read_by_hudi(hudi_spark, path, options) == model.content, way
