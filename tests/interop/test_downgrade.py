"""Tables brought to version 6: ours, and those of Apache Hudi that had it once.

Our readers and hudi-rs see the same rows before and after, and wherever a downgrade dies; and the
way up again leaves what the way down began with.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    HistoryExpiredError,
    HudiError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.services.upgrade import MARK
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from hudi_core.timeline.archived import ArchivedTimeline
from tests.foreign import by_hudi_rs
from tests.formats.dying_writers import Died, MortalStorage
from tests.hudi_tables import LOGS_6, MERGE_ON_READ, OWN, OWN_LOGS
from tests.interop.test_compaction import by_judge, present_rows
from tests.samples import IS_WHOLE
from tests.version_6 import UTC, Left, unpack

OPTIONS: Final = {"hoodie.fs.fsync": "false", **UTC}
ROWS: Final = [
    {"id": f"k{one}", "city": "AB"[one % 2], "v": float(one), "ts": 1, "tags": [one], "note": None}
    for one in range(20)
]
COLUMNS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("v", pa.float64()),
        ("ts", pa.int64()),
        ("tags", pa.list_(pa.int64())),
        ("note", pa.string()),
    ]
)


def opened(path: Path) -> hudi.Table:
    return hudi.Table.open(str(path), OPTIONS)


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def agreed_rows(path: Path) -> list[str]:
    """Rows that both readers return alike, with their meta columns."""
    own = sorted_rows(opened(path).to_arrow().to_pylist())
    assert sorted_rows(by_hudi_rs(path)) == own
    return own


def changed(*keys: str, v: float = 100.0, ts: int = 2) -> list[dict[str, Any]]:
    found = [row for row in ROWS if row["id"] in keys]
    return [{**row, "v": v, "ts": ts} for row in found]


def written(path: Path, table_type: str, **options: str) -> hudi.Table:
    """A table that was inserted into, changed, clustered, and archived in part."""
    options = {
        "hoodie.write.table.version": "9",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.compact.inline": "false",
        "hoodie.fs.fsync": "false",
        **options,
    }
    table = hudi.Table.create(
        path,
        COLUMNS,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        table_type=table_type,
        options=options,
    )
    table.insert(pa.Table.from_pylist(ROWS, COLUMNS))
    for turn in range(4):
        table.upsert(changed("k1", "k2", v=turn, ts=2 + turn))
    table.delete([{"id": "k3", "city": "B"}])
    table.cluster()
    table.upsert(changed("k5", "k6"))
    table.archive(options={"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"})
    table.upsert(changed("k8"))
    return table


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_of_ours_comes_down_and_up_again(
    tmp_path: Path, table_type: str, version: str
) -> None:
    path = tmp_path / "t"
    table = written(path, table_type, **{"hoodie.write.table.version": version})
    before = sorted_rows(table.to_arrow().to_pylist())
    has_logs = any(one.log_files for one in table.file_slices())
    assert has_logs == (table_type == "MERGE_ON_READ")
    history = history_of(path)
    assert history
    plan = table.upgrade(6, dry_run=True)
    assert (plan.before, plan.after, plan.logs > 0) == (int(version), 6, has_logs)
    done = table.upgrade(6)
    assert (done.before, done.after) == (int(version), 6)

    table = opened(path)
    rows = agreed_rows(path)
    assert without_files(rows) == without_files(before)
    assert table.config.version == 6
    assert not list(path.rglob("*.log.*"))
    left = {one.name for one in (path / ".hoodie").iterdir()}
    assert left.isdisjoint({"timeline", "metadata", ".upgrade"})
    assert not list(path.rglob("index.json"))
    assert (path / ".hoodie/archived/.commits_.archive.1_1-0-1").exists()
    raw = table.config.raw
    assert raw["hoodie.table.version"] == "6"
    assert raw["hoodie.timeline.layout.version"] == "1"
    assert raw["hoodie.table.precombine.field"] == "ts"
    assert raw["hoodie.compaction.payload.class"].endswith("DefaultHoodieRecordPayload")
    assert raw["hoodie.table.keygenerator.class"].endswith("SimpleKeyGenerator")
    gone = ("merge.mode", "ordering.fields", "keygenerator.type", "metadata.partitions")
    assert not [key for key in raw if key.endswith(gone)]
    for file in (path / ".hoodie").glob("*.*commit"):
        assert json.loads(file.read_text())["partitionToWriteStats"] is not None
    writes = table.timeline.completed_writes()
    windows = sorted_rows(table.incremental(writes[0].requested_time).to_pylist())
    assert windows
    assert not opened(path).upgrade(6, dry_run=True).is_needed
    with pytest.raises(UnsupportedTableError):
        opened(path).upsert(changed("k1"))

    opened(path).upgrade(int(version))
    assert agreed_rows(path) == rows
    table = opened(path)
    assert history.items() <= history_of(path).items()
    assert table.validate(keys=True).is_valid
    assert table.upsert(changed("k1", v=7.0, ts=99)).updated == 1
    assert len(agreed_rows(path)) == len(rows)


def without_files(rows: list[str]) -> list[str]:
    """Rows without the names of the files that they are in, which a compaction changes."""
    return sorted(row[row.index("_hoodie_partition_path") :] for row in rows)


def history_of(path: Path) -> dict[str, tuple[str | None, bytes | None]]:
    """Completion times and contents of archived instants by their names."""
    archive = ArchivedTimeline(PosixStorage(str(path)), ".hoodie/timeline/history")
    found = archive.load(bodies=True)
    return {str(one.instant): (one.instant.completion_time, one.metadata) for one in found}


@pytest.mark.parametrize("through", [8, 9])
def test_a_table_of_hudi_comes_up_and_down_and_up(tmp_path: Path, through: int) -> None:
    """The second way up leaves what Hudi's own does, but for when instants completed."""
    path = unpack(tmp_path)
    before = agreed_rows(path)
    stored = opened(path).config
    opened(path).upgrade(through)
    opened(path).upgrade(6)
    assert agreed_rows(path) == before
    found = opened(path).config
    for name in ("payload", "merge_mode", "ordering_fields", "keygen_type", "partition_fields"):
        assert getattr(found, name) == getattr(stored, name)
    # its metadata table is for its writers to build
    assert (found.version, found.layout_version, found.metadata_partitions) == (6, 1, ())
    assert len(opened(path).savepoints) == 1

    opened(path).upgrade(8)
    assert agreed_rows(path) == before
    left, by_hudi = Left.of(path), Left.by_hudi(8)
    assert left.history == by_hudi.history
    assert without_times(left.instants) == without_times(by_hudi.instants)
    assert opened(path).validate(keys=True).is_valid


def without_times(instants: dict[str, Any]) -> dict[str, Any]:
    """Contents of completed files by their requested times and actions."""
    return {re.sub("_[0-9]+", "", name): body for name, body in instants.items()}


@pytest.mark.parametrize("name", [one for one in (*MERGE_ON_READ, *OWN_LOGS) if one != LOGS_6])
def test_merge_on_read_tables_of_hudi_come_down(tmp_path: Path, name: str) -> None:
    path = OWN.unpack(name, tmp_path / "t")
    before = state_of(path)
    opened(path).upgrade(6)
    assert state_of(path) == before
    assert present_rows(by_judge(path)) == before
    assert not [one for one in path.rglob(".*.log.*") if ".hoodie" not in one.parts]
    assert not (path / ".hoodie/timeline").exists()
    opened(path).upgrade(9)
    assert state_of(path) == before
    assert opened(path).validate(keys=True).is_valid


def state_of(path: Path) -> list[str]:
    return present_rows(opened(path).to_arrow().to_pylist())


def test_past_states_with_logs_are_gone(tmp_path: Path) -> None:
    """Readers of version 6 would take their logs for those of other states."""
    path = tmp_path / "t"
    table = written(path, "MERGE_ON_READ")
    past = table.timeline.completed_writes()[-2].requested_time
    assert table.to_arrow(as_of=past).num_rows
    saved = table.savepoint(past)
    with pytest.raises(TableServiceError, match="Delete the savepoints"):
        opened(path).upgrade(6)
    assert opened(path).config.version == 9
    rows = agreed_rows(path)
    opened(path).delete_savepoint(saved.instant.requested_time)
    opened(path).upgrade(6)
    assert agreed_rows(path) == rows
    with pytest.raises(HistoryExpiredError):
        opened(path).to_arrow(as_of=past)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hoodie.table.ordering.fields": "ts,v"}, "several fields"),
        ({"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, "partial updates"),
        ({"hoodie.table.format": "other"}, "other"),
    ],
)
def test_what_version_6_does_not_know(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    path = tmp_path / "t"
    written(path, "COPY_ON_WRITE")
    update_properties(PosixStorage(str(path)), changes)
    before = files_of(path)
    with pytest.raises(HudiError, match=reason):
        opened(path).upgrade(6)
    assert files_of(path) == before


def test_what_is_pending(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = written(path, "COPY_ON_WRITE")
    planned = table.cluster(sort_by=["v"], schedule_only=True)
    with pytest.raises(TableServiceError, match=r"pending \(.*clustering"):
        opened(path).upgrade(6)
    assert opened(path).config.version == 9
    opened(path).rollback(str(planned.instant))
    rows = agreed_rows(path)
    dead = str(int(opened(path).timeline.completed_writes()[-1].requested_time) + 1)
    for name in (f"{dead}.commit.requested", f"{dead}.inflight"):
        (path / ".hoodie/timeline" / name).write_bytes(b"")
    done = opened(path).upgrade(6)
    assert [one.requested_time for one in done.pending] == [dead]
    assert agreed_rows(path) == rows
    assert not list((path / ".hoodie").glob(f"{dead}*"))


@pytest.mark.parametrize("of_logs", [False, True])
def test_scheduled_compactions_are_given_up(tmp_path: Path, *, of_logs: bool) -> None:
    path = tmp_path / "t"
    table = written(path, "MERGE_ON_READ")
    table.upsert(changed("k8", v=3.0, ts=3))
    few = {"hoodie.log.compaction.blocks.threshold": "2"}
    planned = table.compact(schedule_only=True, log_compaction=of_logs, options=few)
    assert planned.instant is not None
    rows = without_files(agreed_rows(path))
    assert opened(path).upgrade(6, dry_run=True).logs
    opened(path).upgrade(6)
    assert without_files(agreed_rows(path)) == rows
    assert not list((path / ".hoodie").glob(f"{planned.instant}*"))
    assert not list(path.rglob(".*.log.*"))


def files_of(path: Path) -> dict[str, int]:
    return {
        str(file.relative_to(path)): file.stat().st_mtime_ns
        for file in path.rglob("*")
        if file.is_file() and {".locks", ".heartbeat"}.isdisjoint(file.parts)
    }


# --- deaths ---------------------------------------------------------------------------------------


def deaths(made: Path, folder: Path, apart: int) -> Iterator[tuple[Path, int]]:
    """Yield a copy of the table for each change in which a downgrade of it died."""
    for number in range(1, 1000, apart):
        path = Path(shutil.copytree(made, folder / f"dead-{number}"))
        with pytest.MonkeyPatch.context() as patched:
            storage = MortalStorage(patched, is_done=bool(number % 2))
            storage.left = number
            try:
                opened(path).upgrade(6)
            except Died:
                pass
            else:
                assert number > 20
                return
        yield path, number
        shutil.rmtree(path)


@pytest.mark.parametrize("again", [6, 8])
@pytest.mark.parametrize(("table_type", "apart"), [("COPY_ON_WRITE", 7), ("MERGE_ON_READ", 13)])
def test_a_downgrade_that_died_anywhere_is_whole_and_ends(
    tmp_path: Path, table_type: str, apart: int, again: int
) -> None:
    made = tmp_path / "t"
    written(made, table_type)
    expected, history = without_files(agreed_rows(made)), history_of(made)
    seen = set()
    for path, number in deaths(made, tmp_path, 1 if IS_WHOLE else apart):
        assert without_files(agreed_rows(path)) == expected, number
        seen.add(opened(path).config.version)
        opened(path).upgrade(again)
        assert without_files(agreed_rows(path)) == expected, number
        table = opened(path)
        assert not (path / MARK).exists(), number
        assert not table.upgrade(again, dry_run=True).is_needed, number
        if again == 6:
            assert not (path / ".hoodie/timeline").exists(), number
            assert not (path / ".hoodie/metadata").exists(), number
            table.upgrade(9)
        else:
            assert not list((path / ".hoodie").glob("[0-9]*")), number
        assert history.items() <= history_of(path).items(), number
        assert opened(path).validate(keys=True).is_valid, number
    assert seen == {6, 9} if IS_WHOLE else 9 in seen
