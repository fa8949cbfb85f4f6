"""Random histories of two tables that hold the same rows: one without logs, and one with them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from hudi import HudiReadOptions

import hudi_core as hudi
from hudi_core import HudiError, Table
from hudi_core.engine.base import TaskContext
from hudi_core.errors import CommitConflictError, HistoryExpiredError
from hudi_core.model.commit import WriteStatus
from hudi_core.model.files import BaseFile, BaseFileName, FileStatus
from hudi_core.model.instant import Action
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import TableSchema
from hudi_core.write import steps
from hudi_core.write.append_handle import append_group
from hudi_core.write.merge_handle import GroupTask
from tests.foreign import by_hudi_rs

COLUMNS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.float64()),
        ("w", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
_PAYLOAD: Final = "hoodie.datasource.write.payload.class"
_CLASSES: Final = "org.apache.hudi.common.model."
MERGING: Final[Sequence[Mapping[str, str]]] = (
    {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
    {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
    {},
    {_PAYLOAD: f"{_CLASSES}OverwriteWithLatestAvroPayload"},
    {_PAYLOAD: f"{_CLASSES}PartialUpdateAvroPayload"},
    {_PAYLOAD: f"{_CLASSES}OverwriteNonDefaultsWithLatestAvroPayload"},
)
INDEXES: Final[Sequence[Mapping[str, str]]] = (
    {"hoodie.index.type": "SIMPLE"},
    {"hoodie.index.type": "BLOOM"},
    {"hoodie.index.type": "GLOBAL_SIMPLE"},
    {"hoodie.index.type": "GLOBAL_BLOOM"},
    {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
)
_MODE: Final = "hoodie.table.merge-on-read.mode"
_KEYS: Final = 30
Row = tuple[Any, ...]


class History:
    """One history, drawn by a seed: a table of each type, and acts on both.

    ``merging`` and ``index`` are options; ``mode`` is that of the table with logs.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        merging: Mapping[str, str],
        index: Mapping[str, str],
        mode: str = "logs",
    ) -> None:
        self.is_split = mode == "split"
        self.draw = draw = random.Random(seed)
        metadata = index["hoodie.index.type"] == "RECORD_INDEX" or draw.random() < 0.7
        self.options = {
            **merging,
            **index,
            "hoodie.write.table.version": draw.choice(["8", "9"]),
            "hoodie.metadata.enable": str(metadata).lower(),
            "hoodie.populate.meta.fields": draw.choice(["true", "true", "false"]),
            "hoodie.logfile.data.block.format": draw.choice(["parquet", "parquet", "avro"]),
            "hoodie.spark.sql.merge.into.partial.updates": draw.choice(["true", "true", "false"]),
            "hoodie.memory.merge.max.size": draw.choice(["1000000000", "1000000000", "1"]),
            "hoodie.compact.inline.max.delta.commits": draw.choice(["2", "3", "100"]),
            # which files of a table are clustered depends on its type
            "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
            "hoodie.log.compaction.inline": draw.choice(["true", "false"]),
            "hoodie.log.compaction.blocks.threshold": "2",
        }
        if draw.random() < 0.3:
            self.options |= {"hoodie.logfile.data.block.max.size": "300"}
            self.options |= {"hoodie.logfile.max.size": draw.choice(["1", "9000"])}
        if draw.random() < 0.3:
            self.options["hoodie.parquet.small.file.limit"] = "0"
        self.begins_with_logs = draw.random() < 0.3 and not self.is_split
        is_ordered = bool(merging) and "COMMIT_TIME_ORDERING" not in merging.values()
        self.is_ordered = is_ordered or draw.random() < 0.5
        self.is_partitioned = draw.random() < 0.7
        self.moves = index["hoodie.index.type"] in {"GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"}
        # without the column that marks deletes, some updates are in blocks of their own columns
        self.columns = COLUMNS if draw.random() < 0.5 else COLUMNS.remove(len(COLUMNS) - 1)
        self.tables = [
            Table.create(
                folder / kind,
                self.columns,
                record_key="id",
                partition_by="city" if self.is_partitioned else None,
                ordering_field="ts" if self.is_ordered else None,
                table_type=kind,
                options=self.options | given,
            )
            for kind, given in (("COPY_ON_WRITE", {}), ("MERGE_ON_READ", {_MODE: mode}))
        ]
        self.log: list[str] = []
        self.states: dict[str, list[Row]] = {}

    def run(self, count: int) -> None:
        """Do some steps, and compare the tables after each."""
        acts: list[Callable[[int], _Act]] = [self._upsert, self._upsert, self._upsert]
        acts += [self._upsert, self._upsert, self._delete, self._delete, self._insert]
        acts += [self._overwrite, self._update, self._delete_where, self._merge, self._complete]
        acts += [self._compact, self._schedule]
        acts += [] if self.is_split else [self._compact_logs, self._schedule_logs]
        acts += [self._cluster, self._cluster, self._purge]
        for step in range(count):
            name, act = self.draw.choice(acts)(step)
            self.log.append(name)
            written, logged = self.tables
            outcomes = [_outcome(act, written)]
            with groups_begun_by_logs() if self.begins_with_logs else nullcontext():
                outcomes.append(_outcome(act, logged))
            assert outcomes[0] == outcomes[1], self._story()
            self._compare()

    def _story(self) -> str:
        return f"{self.options} {self.is_ordered=} {self.is_partitioned=}\n" + "\n".join(self.log)

    def _compare(self) -> None:
        written, logged = (Table.open(table.path) for table in self.tables)
        expected = _rows(written.to_arrow())
        assert _rows(logged.to_arrow()) == expected, self._story()
        last = max(self.states, default="")
        for one in logged.timeline.completed_writes():
            # compactions are commits, and change no row, nor do clusterings; those, and compactions
            # of logs, may have been requested before writes that are complete
            if one.action is not Action.COMMIT and one.requested_time > last:
                self.states[one.requested_time] = expected
        for low in (2, 4, 6):
            found = _rows(logged.to_arrow(filter=[("ts", ">=", low), ("city", "=", "a")]))
            wanted = [row for row in expected if row[1] == "a" and row[2] >= low]
            assert found == wanted, self._story()
        if self._is_judged:
            assert _rows(by_hudi_rs(logged.path)) == expected, self._story()

    @property
    def _is_judged(self) -> bool:
        """Whether hudi-rs reads the tables: it refuses payloads that decide themselves.

        And it leaves file groups of logs alone out where a metadata table lists files.
        """
        left_out = self.begins_with_logs and self.options["hoodie.metadata.enable"] == "true"
        return self.tables[1].config.merge_mode != "CUSTOM" and not left_out

    def _compare_past(self, logged: Table) -> None:
        """Compare every retained state."""
        compared = 0
        for time, expected in self.states.items():
            try:
                found = _rows(logged.to_arrow(as_of=time))
            except HistoryExpiredError:
                continue  # cleaned since
            compared += 1
            assert found == expected, (time, self._story())
            if self._is_judged:
                options = HudiReadOptions().with_as_of_timestamp(time)
                assert _rows(by_hudi_rs(logged.path, options)) == expected, (time, self._story())
        # of a purge the state of its compaction may be left alone
        assert compared or not self.states or "purge" in self.log

    def end(self) -> None:
        """Compare past states, and look whether the tables are in order."""
        written, logged = (Table.open(table.path) for table in self.tables)
        self._compare_past(logged)
        if written.validate(keys=True).is_valid:  # overwrites look for no key in other partitions
            found = logged.validate(keys=True)
            assert found.is_valid, (found, self._story())
        _run_clusterings(logged)
        _run_scheduled(logged)
        logged.compact()
        self._compare()
        self._compare_past(logged)
        compacted = _rows(logged.to_arrow())
        base_files = {"hoodie.datasource.query.type": "read_optimized"}
        assert _rows(hudi.read(None, logged.path, base_files)) == compacted, self._story()

    # --- acts; each gives a name, and what is done to both tables

    def _some(self, step: int, *, most: int = 12) -> pa.Table:
        draw = self.draw
        deletes = draw.random() < 0.2
        rows = []
        for number in draw.sample(range(_KEYS), draw.randint(1, most)):
            moves = self.moves and self.is_partitioned and draw.random() < 0.3
            rows.append(
                {
                    "id": f"k{number:02d}",
                    "city": draw.choice("abc") if moves else "abc"[number % 3],
                    "ts": draw.randint(1, 6),
                    "v": draw.choice([None, step + number / 100, 0.0]),
                    "w": draw.choice([None, f"s{step}"]),
                    "_hoodie_is_deleted": deletes and draw.random() < 0.4,
                }
            )
        return pa.Table.from_pylist(rows, self.columns)

    def _upsert(self, step: int) -> _Act:
        rows = self._some(step)
        return f"upsert {rows.to_pylist()}", lambda table: table.upsert(rows)

    def _complete(self, step: int) -> _Act:
        rows = self._some(step).select(["id", "city", "ts", self.draw.choice("vw")])
        options = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}
        return f"complete {rows.to_pylist()}", lambda table: table.upsert(rows, options=options)

    def _delete(self, step: int) -> _Act:
        rows = self._some(step)
        if self.draw.random() < 0.5:
            rows = rows.select(["id", "city"])
        return f"delete {rows.to_pylist()}", lambda table: table.delete(rows)

    def _insert(self, step: int) -> _Act:
        new = [
            {"id": f"n{step:02d}{number}", "city": "abc"[number % 3], "ts": 3, "v": 1.0}
            for number in range(5)
        ]
        rows = pa.Table.from_pylist(new, self.columns)
        return "insert", lambda table: table.insert(rows)

    def _overwrite(self, step: int) -> _Act:
        rows = self._some(step, most=2)
        return f"overwrite {rows.to_pylist()}", lambda table: table.insert_overwrite(rows)

    def _update(self, _: int) -> _Act:
        key, ts = f"k{self.draw.randrange(_KEYS):02d}", self.draw.randint(0, 7)
        values = {"v": "v + 1", "ts": ts}
        return f"update to {ts} below {key}", lambda table: table.update(values, f"id < '{key}'")

    def _delete_where(self, _: int) -> _Act:
        key = f"k{self.draw.randrange(_KEYS // 2, _KEYS):02d}"
        return f"delete above {key}", lambda table: table.delete(where=f"id > '{key}'")

    def _merge(self, step: int) -> _Act:
        rows = self._some(step, most=6)

        def merge(table: Table) -> None:
            merger = table.merge(rows, on="id").when_matched_update({"w": "source.w"})
            merger.when_not_matched_insert_all().execute()

        return f"merge {rows.to_pylist()}", merge

    def _compact(self, _: int) -> _Act:
        return "compact", lambda table: _of_logs(table, table.compact)

    def _schedule(self, _: int) -> _Act:
        def schedule(table: Table) -> None:
            _run_scheduled(table)
            table.compact(schedule_only=True)

        return "schedule", lambda table: _of_logs(table, lambda: schedule(table))

    def _cluster(self, _: int) -> _Act:
        order = self.draw.choice([[], ["v"], ["ts", "id"]])
        layout = self.draw.choice(["linear", "hilbert"])
        is_planned = self.draw.random() < 0.4

        def cluster(table: Table) -> None:
            table.cluster(sort_by=order, layout=layout, schedule_only=is_planned)
            if not is_planned:
                _run_clusterings(table)

        planned = "schedule a clustering" if is_planned else "cluster"
        return f"{planned} by {order} {layout}", cluster

    def _purge(self, _: int) -> _Act:
        def purge(table: Table) -> None:
            _run_clusterings(table)  # which would keep logs
            table.purge()

        return "purge", purge

    def _compact_logs(self, _: int) -> _Act:
        def compact(table: Table) -> None:
            table.compact(log_compaction=True)

        return "compact logs", lambda table: _of_logs(table, lambda: compact(table))

    def _schedule_logs(self, _: int) -> _Act:
        def schedule(table: Table) -> None:
            _run_scheduled(table)
            table.compact(log_compaction=True, schedule_only=True)

        return "schedule of logs", lambda table: _of_logs(table, lambda: schedule(table))


@contextmanager
def groups_begun_by_logs() -> Iterator[None]:
    """Write the first rows of file groups into logs, as Hudi does with some indexes."""

    def append(
        task: TaskContext, item: GroupTask, context: WriteContext, staged_schema: TableSchema
    ) -> list[WriteStatus]:
        group = item.group
        if group.base_file is None:
            name = BaseFileName(group.file_id, "", context.instant)
            base = BaseFile(FileStatus("", 0), name, adds_keys=True, is_stored=False)
            item = replace(item, group=replace(group, base_file=base, appends=True))
        return append_group(task, item, context, staged_schema)

    vars(steps)["append_group"] = append
    try:
        yield
    finally:
        vars(steps)["append_group"] = append_group


_Act = tuple[str, Callable[[Table], object]]


def _run_scheduled(table: Table) -> None:
    with suppress(CommitConflictError):  # a write has rewritten a slice of a plan of logs
        table.run_compactions()


def _of_logs(table: Table, act: Callable[[], object]) -> None:
    if table.config.table_type == "MERGE_ON_READ":
        act()


def _run_clusterings(table: Table) -> None:
    """Run what is scheduled, but for what a write has changed since."""
    for one in Table.open(table.path).timeline.instants:
        if one.action is Action.CLUSTERING:
            with suppress(CommitConflictError):
                table.run_clusterings(one.requested_time)


def _outcome(act: Callable[[Table], object], table: Table) -> str:
    try:
        act(table)
    except HudiError as error:
        return type(error).__name__
    return ""


def _rows(found: pa.Table | Sequence[Mapping[str, Any]]) -> list[Row]:
    names = [name for name in COLUMNS.names if name != "_hoodie_is_deleted"]
    rows: Iterator[Mapping[str, Any]] = iter(
        found.to_pylist() if isinstance(found, pa.Table) else found
    )
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)
