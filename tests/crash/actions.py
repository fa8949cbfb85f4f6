"""What is done to the tables of the crash rig, and what that makes of the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_core.doors.streaming import StreamBatch, write_batch
from hudi_core.errors import NotATableError, SchemaError
from hudi_core.metadata.table import StoredPartitions
from hudi_core.services.rollback import RestoreResult
from tests.crash.found_folders import PARTITION
from tests.crash.rows import (
    CHANGED,
    NEW,
    OTHER,
    Effect,
    Held,
    as_table,
    dropping,
    putting,
    replacing,
)
from tests.crash.tables import FEW_BLOCKS, OPTIONS, RETAINED, SEVERAL, crashing_table
from tests.operators import operator

_INSERTED: Final = {**OPTIONS, "hoodie.datasource.write.operation": "insert"}
"""Rows that are written twice are there twice."""
_BATCH: Final = StreamBatch("crashing", 3)
_MODIFIED_S: Final = 1_700_000_000
"""When the files of each folder were written: each run is to find the same."""


def ingest_files(path: str, rows: Held) -> None:
    """Ingest a folder of a file for each row; they come with one commit."""
    source = Path(f"{path}-source")
    source.mkdir(exist_ok=True)
    for key, row in rows.items():
        file = source / f"{key}.parquet"
        if not file.exists():
            begun = source / f".{key}"
            pq.write_table(as_table({key: row}), begun)
            os.utime(begun, (_MODIFIED_S, _MODIFIED_S))
            begun.rename(file)
    hudi.ingest(path, source, options=_INSERTED)


def write_stream_batch(path: str, rows: Held) -> None:
    """Write a batch as the sink of a stream does, which tries again by itself."""
    quickly = {"hoodie.datasource.write.streaming.retry.interval.ms": "1"}
    write_batch(lambda: as_table(rows), path, {**_INSERTED, **quickly}, _BATCH)


_ONE_GROUP: Final = {**OPTIONS, "hoodie.metadata.index.bloom.filter.file.group.count": "1"}
"""Names of files decide which of several groups are written."""

_BOUNDED: Final = {
    **RETAINED,
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "1",
}
"""Has a commit clean and archive."""
_COUNTED: Final = {**_BOUNDED, "hoodie.compact.inline.max.delta.commits": "1"}
"""Leaves no deltacommits for a compaction to count."""
_DUE: Final = {**OPTIONS, "hoodie.compact.inline.max.delta.commits": "1"}
"""Has a commit compact."""
_SCHEDULED: Final = {
    **_DUE,
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "true",
}
NOTE: Final = "note"
"""A column that comes later."""
INDEXES: Final = ".hoodie/.index_defs/index.json"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing done to a table.

    ``run``: does it to what a scene gives; see :attr:`Scene.opened`. ``effect``: what it makes of
    the rows. ``is_finished_by_others``: whether the next writer finishes it once it is begun,
    whatever its caller was told. ``format_name``: the table's format once it is done; ``None``
    where that stays. ``column``: name of the column that the table has once it is done; ``None``
    where its columns stay.
    """

    run: Callable[[Any], Any]
    effect: Effect
    is_finished_by_others: bool = False
    format_name: str | None = None
    column: str | None = None


def _publish(table: hudi.Table) -> None:
    for one in table.stages():
        one.publish()


def _drop_stages(table: hudi.Table) -> None:
    for one in table.stages():
        one.drop()


def _rollback(table: hudi.Table) -> hudi.Instant:
    return table.rollback(table.timeline.completed_writes()[-1])


def _rollback_dead(table: hudi.Table) -> hudi.Instant:
    pending = [one for one in table.timeline.instants if not one.is_completed]
    return table.rollback(pending[-1])


def _restore(table: hudi.Table) -> RestoreResult:
    return table.restore(table.timeline.completed_writes()[0])


def _delete_savepoint(table: hudi.Table) -> None:
    for one in table.savepoints:
        table.delete_savepoint(one.instant)


def _merge(table: hudi.Table) -> object:
    merger = table.merge(as_table(CHANGED), on="id")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


def _conversion(to: str) -> Action:
    return Action(lambda table: table.convert(to), dict, True, to)


def _with_note(table: hudi.Table) -> hudi.CommitResult:
    rows = as_table(CHANGED)
    return table.upsert(rows.append_column(NOTE, pa.array([f"n{at}" for at in range(len(rows))])))


def _repair(table: hudi.Table) -> None:
    done = table.repair()
    assert not done.left, done.left
    defined = json.loads((Path(table.path) / INDEXES).read_text())["indexDefinitions"]
    now = hudi.Table.open(table.path, OPTIONS)
    lost = defined.keys() - set(StoredPartitions.of(now.config).complete)
    assert not lost, f"indexes are gone: {lost}"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is to be a Hudi table."""

    path: Path
    format_name: str

    def adopt(self) -> None:
        """Make it one; what is one wholly stays as it is."""
        if _is_table(self.path) and not (self.path / ".hoodie/adoption.json").exists():
            return
        hudi.Table.adopt(
            str(self.path),
            name="crashing",
            record_key="id",
            partition_by=PARTITION,
            ordering_field="ts",
            format=self.format_name,
            # its files hold no keys to be indexed
            options={**OPTIONS, "hoodie.metadata.record.index.enable": "false"},
        )


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that each step opens: it is to be made, or changes its version."""

    path: str
    format_name: str
    options: Mapping[str, str]

    def create(self, format_name: str | None = None) -> None:
        """Make it, where that is not done."""
        try:
            hudi.Table.open(self.path, dict(self.options))
        except NotATableError:
            crashing_table(self.path, format_name or self.format_name, self.options)

    def upsert(self, rows: pa.Table) -> hudi.CommitResult:
        """Write to it."""
        return hudi.Table.open(self.path, dict(self.options)).upsert(rows)

    def upgrade(self, to: int) -> None:
        """Bring it to another version."""
        hudi.Table.open(self.path, dict(self.options)).upgrade(to)


def _is_table(path: Path) -> bool:
    return (path / ".hoodie/hoodie.properties").exists()


ACTIONS: Final[Mapping[str, Action]] = {
    "insert": Action(lambda table: table.insert(as_table(NEW)), putting(NEW)),
    "insert_once": Action(
        lambda table: table.insert(as_table(NEW), idempotency=("crashing", 1)), putting(NEW)
    ),
    "ingest": Action(lambda table: ingest_files(table.path, NEW), putting(NEW)),
    "stream": Action(lambda table: write_stream_batch(table.path, NEW), putting(NEW)),
    "upsert": Action(lambda table: table.upsert(as_table(CHANGED)), putting(CHANGED)),
    "delete": Action(
        lambda table: table.delete(as_table({"a": ("x", 9), "c": ("y", 9)})), dropping("a", "c")
    ),
    "bulk_insert": Action(lambda table: table.bulk_insert(as_table(NEW)), putting(NEW)),
    "insert_overwrite": Action(
        lambda table: table.insert_overwrite(as_table({"q": ("x", 5)})),
        replacing("x", {"q": ("x", 5)}),
    ),
    "delete_partitions": Action(
        lambda table: table.delete_partitions([{"part": "x"}]), replacing("x", {})
    ),
    "publish": Action(_publish, putting(NEW)),
    "expire": Action(lambda table: table.expire_partitions(10), replacing("x", {})),
    "rollback": Action(_rollback, putting({"b": ("x", 0)}), is_finished_by_others=True),
    "to_native": _conversion("native"),
    "to_iceberg": _conversion("iceberg"),
    "to_delta": _conversion("delta"),
    "to_both": _conversion(SEVERAL),
    "rollback_dead": Action(_rollback_dead, dict, is_finished_by_others=True),
    "alter": Action(lambda table: table.alter(add_columns={NOTE: pa.string()}), dict, column=NOTE),
    "write_column": Action(_with_note, putting(CHANGED), column=NOTE),
    "repair": Action(_repair, dict, is_finished_by_others=True),
    "repair_metadata": Action(
        lambda table: table.repair_metadata(), dict, is_finished_by_others=True
    ),
    "adopt": Action(Folder.adopt, dict, is_finished_by_others=True),
    # without the rows that other scenes begin with
    "create": Action(NewTable.create, lambda _: {}, is_finished_by_others=True),
    "create_native": Action(
        lambda new: new.create("native"), lambda _: {}, is_finished_by_others=True
    ),
    "index": Action(
        lambda table: operator(table.path, _ONE_GROUP).index("bloom_filters"), dict, True
    ),
    "drop_index": Action(
        lambda table: operator(table.path, OPTIONS).drop("record_index"), dict, True
    ),
    "clean": Action(lambda table: table.clean(options=RETAINED), dict, True),
    "purge": Action(lambda table: table.purge(), dict, True),
    "stage": Action(lambda table: table.stage(as_table(NEW), "bulk_insert"), dict, True),
    "drop_stages": Action(_drop_stages, dict, True),
    "archive": Action(lambda table: table.archive(options=_COUNTED), dict, True),
    "upsert_services": Action(
        lambda table: table.upsert(as_table(CHANGED), options=_BOUNDED), putting(CHANGED)
    ),
    "savepoint": Action(lambda table: table.savepoint(), dict, True),
    "delete_savepoint": Action(_delete_savepoint, dict, True),
    "restore": Action(_restore, putting({"b": ("x", 0)}), is_finished_by_others=True),
    "cluster": Action(lambda table: table.cluster(sort_by=["ts", "id"], layout="hilbert"), dict),
    "run_clustering": Action(lambda table: table.run_clusterings(), dict),
    "compact": Action(lambda table: table.compact(), dict),
    "schedule_compaction": Action(lambda table: table.compact(schedule_only=True), dict),
    "run_compaction": Action(lambda table: table.run_compactions(), dict),
    "rollback_compaction": Action(_rollback, dict, is_finished_by_others=True),
    "upsert_compacts": Action(
        lambda table: table.upsert(as_table(CHANGED), options=_DUE), putting(CHANGED)
    ),
    "upsert_schedules": Action(
        lambda table: table.upsert(as_table(CHANGED), options=_SCHEDULED), putting(CHANGED)
    ),
    "to_merge_on_read": Action(lambda table: table.convert_type("MERGE_ON_READ"), dict, True),
    "to_copy_on_write": Action(lambda table: table.convert_type("COPY_ON_WRITE"), dict, True),
    "update": Action(
        lambda table: table.update({"ts": 5}, "ts = 0 and id <> 'd'"),
        lambda held: {
            key: (part, 5 if ts == 0 and key != "d" else ts) for key, (part, ts) in held.items()
        },
    ),
    "delete_where": Action(
        lambda table: table.delete(where="id in ('a', 'c')"), dropping("a", "c")
    ),
    "merge": Action(_merge, putting(CHANGED)),
    "compact_logs": Action(
        lambda table: table.compact(log_compaction=True, options=FEW_BLOCKS), dict
    ),
    "upgrade": Action(lambda found: found.upgrade(9), dict, is_finished_by_others=True),
    "other": Action(lambda table: table.upsert(as_table(OTHER)), putting(OTHER)),
}


def next_write(number: int) -> Action:
    """Return a write that follows; every number has a row of its own."""
    rows: Held = {f"next{number}": ("y", 100 + number)}

    def found(table: hudi.Table) -> pa.Table:
        found = as_table(rows)
        # somebody else may have added columns since the table was opened
        for field in hudi.Table.open(table.path).schema:
            if field.name not in found.column_names:
                found = found.append_column(field, pa.nulls(len(found), field.type))
        return found

    def run(table: hudi.Table) -> hudi.CommitResult:
        try:
            return table.upsert(found(table))
        except SchemaError:
            # the write made good what a dead writer did to the columns: rows are made for those
            return table.upsert(found(table))

    return Action(run, putting(rows))
