"""A clustering in a format's own metadata: files change, rows do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Operation

import hudi_core as hudi
from hudi_core.errors import CommitConflictError
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.txn.markers import Markers
from tests.formats.history_readers import FOREIGN, content

NUMBERED = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
OPTIONS = {"hoodie.parquet.small.file.limit": "0"}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


def four_rows(begin: int, n: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{begin + one}" for one in range(4)],
            "city": ["rome", "oslo"] * 2,
            "n": [n or -one for one in range(4)],
        },
        NUMBERED,
    )


def made(path: Path, format_name: str) -> hudi.Table:
    table = hudi.Table.create(
        path, NUMBERED, record_key="id", partition_by="city", format=format_name, options=OPTIONS
    )
    for begin in (0, 4, 8):
        table.insert(four_rows(begin))
    return table


def agree(table: hudi.Table, format_name: str) -> None:
    expected = content(table.to_arrow().to_pylist())
    for name, seen in FOREIGN[format_name].read(Path(table.path)).items():
        assert seen == expected, name
    assert table.validate(keys=True).is_valid


def test_iceberg_gets_one_snapshot_that_replaces(path: Path) -> None:
    table = made(path, "iceberg")
    before = StaticTable.from_metadata(table.path).snapshots()
    done = table.cluster(sort_by="n")
    after = StaticTable.from_metadata(table.path).snapshots()
    [new] = [one for one in after if one not in before]
    assert new.summary is not None
    assert new.summary.operation is Operation.REPLACE
    told = new.summary.additional_properties
    assert (told["added-data-files"], told["deleted-data-files"]) == ("2", "6")
    assert (told["total-records"], told["hudi.instant"]) == ("12", done.instant)
    agree(table, "iceberg")


def test_delta_gets_one_version_without_a_change_of_data(path: Path) -> None:
    table = made(path, "delta")
    version = DeltaTable(table.path).version()
    table.cluster(sort_by=["n", "id"], layout="z-order")
    assert DeltaTable(table.path).version() == version + 1
    log = Path(table.path, f"_delta_log/{version + 1:020}.json").read_text().splitlines()
    actions: list[dict[str, Any]] = [json.loads(line) for line in log]
    added = [one["add"] for one in actions if "add" in one]
    removed = [one["remove"] for one in actions if "remove" in one]
    assert (len(added), len(removed)) == (2, 6)
    assert not any(one["dataChange"] for one in (*added, *removed))
    agree(table, "delta")


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
def test_a_plan_out_of_date_is_given_up(path: Path, format_name: str) -> None:
    table = made(path, format_name)
    table.cluster(schedule_only=True)
    hudi.Table.open(table.path, OPTIONS | ALLOW).upsert(four_rows(0, n=5))
    with pytest.raises(CommitConflictError):
        table.run_clusterings()
    assert sum(one["n"] == 5 for one in table.to_arrow().to_pylist()) == 4
    agree(table, format_name)


def test_a_run_takes_an_earlier_seal_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(path, "native")
    time = InstantTime(table.cluster(schedule_only=True).instant or "")
    markers = Markers(open_table(table.path, {}).client.storage, time)
    markers.seal()  # whoever undid that run died before this went
    found: list[bool] = []
    to_inflight = ActiveTimeline.to_inflight

    def begun(self: ActiveTimeline, *given: Any) -> Any:
        found.append(markers.is_open())
        return to_inflight(self, *given)

    monkeypatch.setattr(ActiveTimeline, "to_inflight", begun)
    table.run_clusterings()
    assert found[0], "of the clustering itself"
