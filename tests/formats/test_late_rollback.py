"""A rollback whose completion lands after the next writer has finished it."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.model.instant import Action
from tests.formats.service_tables import FORMATS, agree, batch, new_table


@pytest.mark.parametrize("table_format", ["native", *FORMATS])
def test_the_completion_that_came_too_late_goes_with_the_next_write(
    tmp_path: Path, table_format: str
) -> None:
    path = tmp_path / "t"
    table = new_table(path, table_format)
    table.rollback(table.timeline.completed_writes()[-1].requested_time)
    (done,) = [
        one for one in hudi.Table.open(str(path)).timeline.instants if one.action is Action.ROLLBACK
    ]
    timeline = path / ".hoodie/timeline"
    counted = timeline / f"{done.requested_time}_{done.completion_time}.rollback"
    late = timeline / f"{done.requested_time}_{int(done.completion_time or 0) - 1}.rollback"
    late.write_bytes(counted.read_bytes())

    before = agree(path)
    found = [
        one for one in hudi.Table.open(str(path)).timeline.instants if one.action is Action.ROLLBACK
    ]
    assert found == [done]
    hudi.Table.open(str(path)).upsert(batch(3, "c"))
    assert not late.exists()
    assert counted.exists()
    assert sum(agree(path).values()) == sum(before.values()) + 1
    assert hudi.Table.open(str(path)).validate().is_valid
