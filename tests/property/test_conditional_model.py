"""Histories of updates, deletes and merges by conditions, against a dictionary and delta-rs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, Phase, given, settings

import hudi_core as hudi
from hudi_core.engine.spark import SparkEngine
from tests import tables
from tests.conditional_histories import (
    CITY_VALUES,
    Row,
    Step,
    beginnings,
    by_delta_rs,
    by_dictionary,
    by_us,
    content,
    steps,
)
from tests.formats.service_tables import READERS
from tests.samples import IS_WHOLE
from tests.tables import FORMATS

# examples are short, and making them shorter takes minutes
FOUND: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
    "report_multiple_bugs": False,
}
INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "RECORD_INDEX", "BUCKET")


def indexed_table(path: Path, format_name: str, index: str, version: int = 9) -> hudi.Table:
    more: dict[str, str] = {}
    if index == "RECORD_INDEX":
        more = {"hoodie.metadata.global.record.level.index.enable": "true"}
    if index == "BUCKET":
        more = {"hoodie.bucket.index.num.buckets": "3"}
    return tables.new_table(
        path,
        CITY_VALUES,
        {
            "hoodie.write.table.version": str(version),
            "hoodie.index.type": index,
            # files of three rows
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "3",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.fs.fsync": "false",
            **more,
        },
        format=format_name,
    )


def check(
    folder: Path, table: hudi.Table, first: tuple[Row, ...], history: list[Step], **engine: Any
) -> None:
    batch = pa.Table.from_pylist(list(first), CITY_VALUES)
    table.upsert(batch)
    write_deltalake(str(folder / "delta"), batch, partition_by=["city"])
    theirs = DeltaTable(str(folder / "delta"))
    held = {row["id"]: row for row in first}
    for step in history:
        before = len(table.timeline.instants)
        result = by_us(table, step, **engine)
        by_delta_rs(theirs, step)
        held, counts = by_dictionary(held, step)
        assert content(table.to_arrow()) == content(list(held.values()))
        assert content(theirs.to_pyarrow_table()) == content(list(held.values()))
        assert (result.inserted, result.updated, result.deleted) == counts
        assert result.operation == ("DELETE" if step.kind == "delete" else "UPSERT")
        assert len(table.timeline.instants) == before + 1
    for read in READERS[table.format]:
        assert content(read(Path(table.path))) == content(list(held.values())), read.__name__
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("format_name", FORMATS)
def test_histories_come_to_what_a_dictionary_and_delta_rs_make_of_them(
    tmp_path_factory: pytest.TempPathFactory, format_name: str
) -> None:
    @given(first=beginnings(), history=steps(), index=st.sampled_from(INDEXES))
    @settings(max_examples=20 if IS_WHOLE else 8, **FOUND)
    def run(first: tuple[Row, ...], history: list[Step], index: str) -> None:
        folder = tmp_path_factory.mktemp("history")
        check(folder, indexed_table(folder / "ours", format_name, index), first, history)

    run()


@pytest.mark.spark
@pytest.mark.parametrize("format_name", FORMATS)
def test_spark_makes_the_same_of_them(
    tmp_path_factory: pytest.TempPathFactory, spark: Any, format_name: str
) -> None:
    @given(first=beginnings(), history=steps(2), index=st.sampled_from(INDEXES))
    @settings(max_examples=3 if IS_WHOLE else 2, **FOUND)
    def run(first: tuple[Row, ...], history: list[Step], index: str) -> None:
        folder = tmp_path_factory.mktemp("history")
        table = indexed_table(folder / "ours", format_name, index)
        check(folder, table, first, history, spark=spark, engine=SparkEngine(spark))

    run()
