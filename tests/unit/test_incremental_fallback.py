"""Incremental reads whose files were cleaned, with and without Hudi's fallback."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.errors import HistoryExpiredError
from tests.tables import TABLES, new_table, pairs, rows

OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"


@pytest.mark.parametrize("table_format", TABLES)
def test_the_rows_that_did_not_change_since(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    new_table(path, rows("a", "b", price=[1.0, 2.0]), format=table_format)
    for price in (3.0, 4.0, 5.0):
        hudi.write(rows("a", price=price), path, options=OPTIONS)
    first, second, *_ = hudi.Table.open(path).timeline.completed_writes()
    hudi.Table.open(path).clean(options={"hoodie.cleaner.commits.retained": 1})

    def read(end: str | None, **more: str) -> list[tuple[str, float]]:
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "earliest",
            "hoodie.datasource.read.end.instanttime": end or "",
            **more,
        }
        return pairs(hudi.read(None, path, options), "id", "price")

    for given in ({}, {FALLBACK: "false"}):
        with pytest.raises(HistoryExpiredError):
            read(first.completion_time, **given)
    assert read(first.completion_time, **{FALLBACK: "true"}) == [("b", 2.0)]
    assert read(second.completion_time, **{FALLBACK: "true"}) == [("b", 2.0)]
    # where nothing is missing it changes nothing
    assert read(None) == read(None, **{FALLBACK: "true"}) == [("a", 5.0), ("b", 2.0)]
