"""Rollbacks and restores of writes that replaced file groups, once the metadata table compacted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.spi.testing import CommitResult
from tests.formats.service_tables import FORMATS, agree, bag, batch, new_table

# every commit of the table is compacted into base files of the metadata table at once
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "1"}
REPLACING: dict[str, Callable[[hudi.Table], CommitResult]] = {
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(batch(9, "a")),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "rome"}]),
    "insert_overwrite": lambda table: table.insert_overwrite(batch(9, "a")),
}


def filtered(path: Path) -> list[str]:
    """Keys by a filter on each city, which leaves out partitions by their ranges."""
    table = hudi.Table.open(str(path))
    cities = {row["city"] for row in table.to_arrow().to_pylist()}
    found = [table.to_arrow(filter=[("city", "=", city), ("ts", ">=", 0)]) for city in cities]
    return sorted(key for rows in found for key in rows["id"].to_pylist())


@pytest.mark.parametrize("undo", ["rollback", "restore"])
@pytest.mark.parametrize("name", REPLACING)
@pytest.mark.parametrize("table_format", ["native", *FORMATS])
def test_partitions_that_come_back_have_ranges_again(
    tmp_path: Path, table_format: str, name: str, undo: str
) -> None:
    path = tmp_path / "t"
    table = new_table(path, table_format, **COMPACTED)
    before, keys = bag(table.to_arrow()), filtered(path)
    first = table.timeline.completed_writes()[-1].requested_time
    table.savepoint(first)
    instant = REPLACING[name](table).instant
    if undo == "rollback":
        table.rollback(instant.requested_time)
    else:
        table.restore(first)
    assert bag(hudi.Table.open(str(path)).to_arrow()) == before
    assert filtered(path) == keys
    assert hudi.Table.open(str(path)).validate().differences == ()
    agree(path)
