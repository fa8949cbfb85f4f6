"""A table under random operations, services and deaths of writers, with the rows it must hold.

What is done is drawn by somebody else: :mod:`tests.crash.random_commits` draws hundreds of steps
for one table, a state machine of hypothesis short histories that it can make shorter still.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from hudi import HudiReadOptions

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    HistoryExpiredError,
    HudiError,
    InstantNotFoundError,
    PendingClusteringError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.model.files import BaseFileName, LogFileName
from hudi_core.model.instant import Instant
from tests.crash.counting_storage import CountedSteps, Fault, in_fork
from tests.crash.kinds import (
    LOGGED_KINDS,
    SPREAD,
    STORED,
    creation_options,
    is_possible,
    storage_path,
)
from tests.crash.log_acts import (
    ACTS,
    CONDITIONAL,
    LATE,
    LATENESS,
    TYPES,
    UNLISTED,
    born_with,
    effect_of,
    given,
)
from tests.crash.readers import ForeignReader, foreign_readers, read_by_hudi_rs
from tests.crash.rows import (
    Effect,
    Held,
    Rows,
    as_rows,
    as_table,
    dropping,
    putting,
    replacing,
)
from tests.foreign import by_hudi_rs
from tests.foreign_services import VERSIONS, foreign_archive, foreign_clean
from tests.formats.foreign_writers import append
from tests.tables import SCHEMA, new_table

_REMEMBERED: Final = 40
PARTS: Final = ("x", "y", "z")
WRITES: Final = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite")
SERVICES: Final = ("clean", "archive", "cluster", "schedule", "run", "optimize")
REPLACING: Final = ("insert_overwrite_table", "delete_partitions")
LIMITED: Final[Mapping[str, Mapping[str, str]]] = {
    "clean, one commit": {"hoodie.cleaner.commits.retained": "1"},
    "clean, one version": {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    },
    "clean, two versions": {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "2",
    },
    "clean, by hours": {
        "hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.cleaner.hours.retained": "1",
    },
    "archive, few": {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    },
}
"""Services with other limits than the table's own."""
FOREIGN: Final = ("foreign clean", "foreign clean by versions", "foreign archive")
"""Services of another engine, or of an earlier release."""
BY_OTHERS: Final = ("take in", "discard")
"""What a repair does with rows that another writer of the format has appended."""
_TAKING: Final = (
    *("purge", "clean, one commit", "clean, one version", "clean, two versions"),
    *FOREIGN[:2],
)
"""Services that need not keep any state but the last one, and those of savepoints."""
_HISTORY: Final = (TableServiceError, HistoryExpiredError)
_STATE: Final = (*_HISTORY, InstantNotFoundError)
REFUSALS: Final[Mapping[str, tuple[type[HudiError], ...]]] = {
    **dict.fromkeys((*WRITES, *REPLACING), (PendingClusteringError,)),
    **dict.fromkeys(("savepoint", "restore"), _STATE),
    **dict.fromkeys(("rollback", "purge", "delete_savepoint"), _HISTORY),
    "convert": (*_HISTORY, UnsupportedTableError),
    **dict.fromkeys(("run", "run compactions"), (CommitConflictError,)),
    **dict.fromkeys((*CONDITIONAL, "alter"), (PendingClusteringError,)),
    **dict.fromkeys(TYPES, (TableServiceError,)),
}
"""What a table may be unable to do, and stays as it is: a clustering that is scheduled stands
against a write, a later write against that clustering, a savepoint or lost history against others,
the end of a rollback whose writer died against the state that it takes out, columns that changed
against Delta.
"""
_STATED: Final = ("has savepoints of later commits", "were under way together with")
"""Reasons for which a state that was promised may not be restored."""
WRITES_WIN: Final = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
"""Has a write to files of a scheduled clustering go through."""

SMALL_FILES: Final = {
    "hoodie.fs.fsync": "false",
    "hoodie.copyonwrite.insert.auto.split": "false",
    "hoodie.copyonwrite.insert.split.size": "3",
}
TIGHT: Final = {
    **SMALL_FILES,
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
"""Has services come often."""


def _cluster(table: hudi.Table, layout: str) -> object:
    return table.cluster(sort_by="id,ts", layout=layout)


def _write(name: str) -> Callable[[hudi.Table, Held], object]:
    return lambda table, rows: getattr(table, name)(given(table, rows))


def _limited(name: str) -> Callable[[hudi.Table, Any], object]:
    service = name.partition(",")[0]
    return lambda table, _: getattr(table, service)(options=LIMITED[name])


_ACTS: Final[Mapping[str, Callable[[hudi.Table, Any], object]]] = {
    **{name: _write(name) for name in (*WRITES, "insert_overwrite_table")},
    "delete_partitions": lambda table, part: table.delete_partitions([{"part": part}]),
    "clean": lambda table, _: table.clean(),
    "archive": lambda table, _: table.archive(),
    "optimize": lambda table, _: table.optimize(),
    "cluster": _cluster,
    "schedule": lambda table, _: table.cluster(schedule_only=True),
    "run": lambda table, _: table.run_clusterings(),
    "savepoint": lambda table, instant: table.savepoint(instant),
    "delete_savepoint": lambda table, instant: table.delete_savepoint(instant),
    "restore": lambda table, instant: table.restore(instant),
    "rollback": lambda table, instant: table.rollback(instant),
    "convert": lambda table, to: table.convert(to),
    "purge": lambda table, savepoints: table.purge(savepoints=savepoints),
    **{name: _limited(name) for name in LIMITED},
    "foreign clean": lambda table, _: foreign_clean(table),
    "foreign clean by versions": lambda table, _: foreign_clean(table, VERSIONS),
    "foreign archive": lambda table, _: foreign_archive(table),
    "take in": lambda table, given: _append_and_repair(table, *given),
    "discard": lambda table, given: _append_and_repair(table, *given, discard=True),
    **ACTS,
}


def _append_and_repair(
    table: hudi.Table, format_name: str, rows: Held, *, discard: bool = False
) -> None:
    append(Path(table.path), format_name, as_table(rows))
    table.repair(take_in=not discard, discard=discard)


def part_of(key: str) -> str:
    """Partition of a key, always the same: the index looks only there."""
    return PARTS[int(key[1:]) % len(PARTS)]


@dataclass
class RandomTable:
    """A table, what it may hold, and what it held.

    ``kind``: what kind of table it is; see :mod:`tests.crash.kinds`. ``possible``: what it may
    hold: one state, unless a writer died in between. ``past``: what it held after each of its
    writes, by requested time. ``promised``: requested times of the active writes whose states must
    still be readable. ``readable``: the same of all writes, archived ones too. ``saved``: requested
    times of the savepoints. ``done``: how often each thing was done, died, or was refused. ``log``:
    the last things that were done.
    """

    path: Path
    format_name: str
    options: Mapping[str, str] = field(default_factory=lambda: TIGHT)
    kind: str = STORED
    possible: list[Held] = field(default_factory=lambda: [{}])
    past: dict[str, Held] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    readable: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _ts: int = 0
    _may_be_saved: bool = False
    _has_died: bool = False
    _writes: set[str] = field(default_factory=set)
    _lost_promise: set[str] = field(default_factory=set)
    _lists_alone: set[str] = field(default_factory=set)
    _unknown_to_format: set[str] = field(default_factory=set)
    _unnamed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.table = new_table(
            self.path,
            SCHEMA,
            {**self.options, **creation_options(self.kind, self.path)},
            format=self.format_name,
        )

    # --- what is done to it ----------------------------------------------------------------------

    def write(self, name: str, numbers: Iterable[int], death: Fault | None = None) -> None:
        """Write rows of some keys; those that make no sense are passed over."""
        self._ts += 1
        keys = {f"k{number}" for number in numbers}
        if name in ("insert", "bulk_insert"):  # these look nothing up
            keys = {key for key in keys if not any(key in one for one in self.possible)}
        rows = {key: (part_of(key), self._ts) for key in sorted(keys)}
        if rows:
            self._do(name, rows, _effect(name, rows), death)

    def write_if(self, name: str, numbers: Iterable[int], death: Fault | None = None) -> None:
        """Write rows of some keys by one of the conditional writes, or late ones."""
        self._ts += 1
        is_late = name in LATE or (name == "update" and self._ts % 3 == 0)
        ts = self._ts - LATENESS if is_late else self._ts
        rows = {key: (part_of(key), ts) for key in sorted(f"k{number}" for number in {*numbers})}
        if name == UNLISTED and self.kind == SPREAD:
            return  # nothing but the metadata table lists its files
        self._do(name, rows, effect_of(name, rows), death)

    def delete_partition(self, part: str, death: Fault | None = None) -> None:
        """Delete a partition that has rows in any case."""
        if all(any(there == part for there, _ in one.values()) for one in self.possible):
            self._do("delete_partitions", part, replacing(part, {}), death)

    def serve(self, name: str, argument: str = "", death: Fault | None = None) -> None:
        """Run a table service."""
        before, late = self._not_last(), self._late()
        self._do(name, argument, dict, death)
        if name == "compact":
            self._look_at_base_files()
        if name in _TAKING:
            self._take_promises(before)
        if name in FOREIGN:
            self._lists_alone |= late

    def _look_at_base_files(self) -> None:
        """Read base files alone, where a compaction has left no log behind."""
        now = hudi.Table.open(str(self.path))
        if len(self.possible) == 1 and not any(one.log_files for one in now.file_slices()):
            alone = hudi.read(None, now.path, {"hoodie.datasource.query.type": "read_optimized"})
            assert _rows(alone.to_pylist()) == as_rows(self.possible[0]), "base files alone"

    def _late(self) -> set[str]:
        """Savepointed writes before which one was requested that completed after the savepoint.

        It belongs to the state since, and other engines keep what the savepoint lists.
        """
        writes = self.table.timeline.completed_writes()
        return {
            saved.requested_time
            for saved in (one.instant for one in self.table.savepoints)
            if any(
                one.requested_time < saved.requested_time
                and one.effective_completion_time > saved.effective_completion_time
                for one in writes
            )
        }

    def append_by_others(self, way: str, numbers: Iterable[int], which: int) -> None:
        """Let another writer of a format append rows, and have a repair take them in or out."""
        formats = [one for one in self.table.format.split(",") if one != "native"]
        if not formats or len(self.possible) > 1:
            return
        self._do("run", "", dict, None)  # its files are not rewritten while there are such rows
        self._ts += 1
        rows = {key: (part_of(key), self._ts) for key in (f"k{one}" for one in sorted({*numbers}))}
        effect = putting(rows) if way == "take in" else dict
        writes = self.table.timeline.completed_writes()
        self._do(way, (formats[which % len(formats)], rows), effect, None)
        if way == "discard":  # it rebuilds the format's metadata
            self._forget_names(writes)

    def purge(self, death: Fault | None = None) -> None:
        """Delete all past states, and the savepoints that keep some."""
        before, writes = self._not_last(), self.table.timeline.completed_writes()
        has_logs = self.kind in LOGGED_KINDS  # others may not be read before the next writer
        if has_logs and any(one.log_files for one in self.table.file_slices()):
            before = sorted(self.past.keys() | self.promised)  # a compaction is the only state left
        if not self._do("purge", sorted(self.saved), dict, death, set()):
            self._take_promises(before)
            self._forget_names(writes)

    def _not_last(self) -> Sequence[str]:
        """The states before the last one, which may be that of a writer that died.

        A write that died and that the next writer finished is promised, and was never looked at.
        """
        times = sorted(self.past.keys() | self.promised)
        return times[:-1] if len(self.possible) == 1 else times

    def _take_promises(self, before: Iterable[str]) -> None:
        """Promise some states no more."""
        self._lost_promise |= {*before}
        self.promised -= self._lost_promise
        self.readable -= self._lost_promise

    def save(self, which: int, death: Fault | None = None) -> None:
        """Make a savepoint of one of the last writes."""
        writes = sorted(self.promised)
        if writes:
            instant = writes[which % len(writes)]
            must = self._must_be_known(instant)
            refused = self._do("savepoint", instant, dict, death, {*self.saved, instant})
            assert not (must and refused), f"{instant} was to be saved: {refused}"

    def delete_savepoint(self, which: int, death: Fault | None = None) -> None:
        """Delete one of the savepoints."""
        saved = sorted(self.saved)
        if saved:
            instant = saved[which % len(saved)]
            self._do("delete_savepoint", instant, dict, death, self.saved - {instant})

    def restore(self, which: int, death: Fault | None = None) -> None:
        """Go back to a savepoint, or to one of the last writes."""
        known = sorted({*self.saved, *self.promised} & self.past.keys())
        if known:
            instant = known[which % len(known)]
            then, must = self.past[instant], self._must_be_known(instant)
            refused = self._do("restore", instant, lambda _: then, death)
            is_wrong = must and refused and not any(why in refused for why in _STATED)
            assert not is_wrong, f"{instant} was to be restored: {refused}"

    def roll_back(self, death: Fault | None = None) -> None:
        """Undo the last write, where it is clear which one that is."""
        writes = [one.requested_time for one in self.table.timeline.completed_writes()[-2:]]
        if len(self.possible) == 1 and len(writes) == 2 and writes[0] in self.past:
            before = self.past[writes[0]]
            self._do("rollback", writes[1], lambda _: before, death)

    def convert(self, to: str, death: Fault | None = None) -> None:
        """Change the format, which then knows the present state, and by no name."""
        now = hudi.Table.open(str(self.path)).config
        has_rows_in_logs = now.table_type == "MERGE_ON_READ" and now.merge_on_read_mode == "logs"
        if not is_possible(self.kind, to) or (has_rows_in_logs and to != "native"):
            return
        is_same = to == self.table.format
        if self._do("convert", to, dict, death) or is_same:
            return
        self._forget_names(self.table.timeline.completed_writes())

    def _forget_names(self, writes: Sequence[Instant]) -> None:
        """The format was made anew: it knows the present state, and by no name."""
        before = {one.requested_time for one in writes}
        self._unnamed |= before
        if writes and len(self.possible) == 1:
            before.remove(max(writes, key=lambda one: one.effective_completion_time).requested_time)
        self._unknown_to_format |= before

    def reopen(self) -> None:
        """Forget what the handle knows."""
        self.table = hudi.Table.open(str(self.path), self.options)

    def _must_be_known(self, instant: str) -> bool:
        """Whether a promised state can be saved and restored in any case.

        What a writer did that died may be finished before, and may take the state out.
        """
        is_known = self.table.format == "native" or instant not in self._unknown_to_format
        return is_known and len(self.possible) == 1

    def _do(
        self,
        name: str,
        argument: Any,
        effect: Effect,
        death: Fault | None,
        saved: set[str] | None = None,
    ) -> str:
        """Do something; return why it was refused, and is no more."""
        after = [effect(one) for one in self.possible]
        before = self.table.timeline.instants
        self.log.append(f"{name} {argument}{'' if death is None else f', {death}'}")
        if death is not None:
            ended = in_fork(_act_and_die, str(self.path), self.options, name, argument, death)
            if ended.is_killed:
                self.done[f"{name}, died"] += 1
                self.possible += after
                self._has_died = True
                self._may_be_saved = self._may_be_saved or saved is not None
                self.reopen()
                return ""
            assert ended.status == 0, f"{name} failed in a process of its own"
            refused: str = ended.answer
            self.reopen()
        else:
            refused = _act(self.table, name, argument)
        self.done[f"{name}, refused" if refused else name] += 1
        self.log[-1] += f"; refused: {refused}" if refused else ""
        if "pending clustering" in refused and name != "rollback":
            self._do("run", "", dict, None)
            return self._do(name, argument, effect, None, saved)
        if refused:
            self._go_on()
            return refused
        self.possible = after
        # what writes nothing ends nothing
        self._has_died = self._has_died and self.table.timeline.instants == before
        self.saved = self.saved if saved is None else saved
        self._look()
        self.log[-1] += f" -> {self.table.timeline.instants[-1]}"
        return ""

    def _go_on(self) -> None:
        """Write after something was refused: nothing of it may stand in the way."""
        self._ts += 1
        rows = {"k0": (part_of("k0"), self._ts)}
        refused = _act(self.table, "upsert", rows)
        if "pending clustering" in refused:
            self.table.run_clusterings()
            refused = _act(self.table, "upsert", rows)
        assert not refused, refused
        self.possible = [putting(rows)(one) for one in self.possible]
        self._look()

    # --- what must be so -------------------------------------------------------------------------

    def _look(self) -> None:
        there = self.table.to_arrow().to_pylist()
        assert all(map(born_with, there)), "a column has the value of another version of its row"
        rows = _rows(there)
        matching = [one for one in self.possible if as_rows(one) == rows]
        states = [sorted(as_rows(one)) for one in self.possible]
        assert matching, f"{sorted(rows)} are none of {states}"
        others = [one for one in self.possible if one is not matching[0]]
        self.possible = [matching[0], *others] if self._is_unpublished() else matching[:1]
        writes = [str(one.requested_time) for one in self.table.timeline.completed_writes()]
        if writes:
            self.past[writes[-1]] = self.possible[0]
            gone = {time for time in self.past if time > writes[0]} - set(writes)
            for time in gone:
                del self.past[time]
            # a write, its compaction and their archive come together: some were never looked at
            self._writes = {time for time in self._writes if time < writes[0]} | {*writes}
        recent = {*sorted(self._writes)[-self.retained :]}
        self._lost_promise |= self._writes - recent
        self.readable = recent - self._lost_promise
        self.promised = self.readable & {*writes}
        found: set[str] = {one.instant.requested_time for one in self.table.savepoints}
        if self._may_be_saved:  # by a writer that died at it
            self.saved, self._may_be_saved = found, self._is_unpublished()
        assert self.saved == found

    def _is_unpublished(self) -> bool:
        """Whether an instant is complete on Hudi's timeline and not in the format.

        Its writer has died. What writes nothing itself leaves it so; the next that does publishes
        it, or takes it back.
        """
        completed = self.path.glob(".hoodie/timeline/*_*")
        seen = {one.requested_time for one in self.table.timeline.instants if one.is_completed}
        return any(one.name.partition("_")[0] not in seen for one in completed)

    @property
    def retained(self) -> int:
        """How many commits a clean retains."""
        return int(self.options.get("hoodie.cleaner.commits.retained", "10"))

    @property
    def deltas(self) -> int:
        """After how many deltacommits the metadata table is compacted."""
        return int(self.options.get("hoodie.metadata.compact.max.delta.commits", "10"))

    @property
    def kept(self) -> int:
        """How many instants may be active before the archive moves some."""
        return int(self.options.get("hoodie.keep.max.commits", "30"))

    def check(self) -> None:
        """Let all readers read it, its present state and its past ones."""
        if self._has_died or len(self.possible) > 1:  # the next write ends what a dead one began
            self.write("upsert", [0])
        now = hudi.Table.open(str(self.path))
        expected = as_rows(self.possible[0])
        self._check_readers(now, expected)
        assert now.validate().differences == ()
        self._check_past(now)

    def _check_readers(self, table: hudi.Table, expected: Rows) -> None:
        foreign = foreign_readers(self.path, table.format)
        theirs = read_by_hudi_rs(self.path)
        theirs |= {name: reader.by_path() for name, reader in foreign.items()}
        for who, rows in theirs.items():
            assert sorted(rows) == sorted(expected), who
        for reader in foreign.values():
            self._check_past_of_format(reader)
        for least in {ts for _, _, ts in expected}:
            found = table.to_arrow(SCHEMA.names, [("ts", ">=", least)]).to_pylist()
            assert _rows(found) == {row for row in expected if row[2] >= least}, f"from {least} on"

    def look_back(self, others: Sequence[str] = ()) -> None:
        """Let all readers read the present state, and every past one that is there.

        ``others``: states that need not be there, to be read as well.
        """
        if len(self.possible) > 1:
            return
        now = hudi.Table.open(str(self.path))
        expected = as_rows(self.possible[0])
        self._check_readers(now, expected)
        must = (self.readable | (self.saved - self._lists_alone)) & self.past.keys()
        for time in sorted(must.union(others)):
            try:
                then = _rows(now.to_arrow(as_of=time).select(SCHEMA.names).to_pylist())
                count = now.count(as_of=time)
            except HistoryExpiredError:
                assert time not in must, f"{time} was to be retained"
                continue
            assert then == as_rows(self.past[time]), f"as of {time}"
            assert count == len(then)
            # of other types hudi-rs reads base files alone, in past states too
            if now.config.table_type == "MERGE_ON_READ" and time in must:
                as_of = HudiReadOptions().with_as_of_timestamp(time)
                assert _rows(by_hudi_rs(self.path, as_of)) == then, f"hudi-rs as of {time}"

    def follow(self, time: str) -> None:
        """Apply what changed since a state to it; the present state must come out."""
        if len(self.possible) > 1 or time not in self.past:
            return
        now = hudi.Table.open(str(self.path))
        begin = next((one for one in now.timeline.instants if one.requested_time == time), time)
        expected = as_rows(self.possible[0])
        marked = now.config.populate_meta_fields  # else no row says when it changed
        for since in (*((self._fed, self._changed) if marked else ()), self._differing):
            try:
                rows = since(
                    now, begin, {(row[0], row[1]): row for row in as_rows(self.past[time])}
                )
            except HistoryExpiredError:
                assert time not in self.readable, f"what changed since {time} was to be retained"
                continue
            assert rows == expected, f"{since.__name__} since {time}"

    def _fed(self, table: hudi.Table, begin: Any, held: dict[Any, Any]) -> Rows:
        for one in table.changes(begin).to_pylist():
            before, after = (json.loads(one[side] or "null") for side in ("before", "after"))
            if before is not None:
                known = held.pop((before["id"], before["part"]), None)
                assert known == (before["id"], before["part"], before["ts"])
            if after is not None:
                held[after["id"], after["part"]] = after["id"], after["part"], after["ts"]
        return frozenset(held.values())

    def _changed(self, table: hudi.Table, begin: Any, held: dict[Any, Any]) -> Rows:
        return _applied(table.incremental(begin, deletes=True), held)

    def _differing(self, table: hudi.Table, begin: Any, held: dict[Any, Any]) -> Rows:
        return _applied(table.diff(begin), held)

    def _check_past_of_format(self, foreign: ForeignReader) -> None:
        """Let the format's own reader read every state that is promised."""
        named = {one.requested: one.version for one in foreign.states()}
        for time in sorted((self.promised | self.saved) & self.past.keys()):
            if time in named:
                rows = foreign.rows_at(named[time])
                assert sorted(rows) == sorted(as_rows(self.past[time])), f"{time} in the format"
            else:
                assert time in self._unnamed, f"the format does not name {time}"

    def _check_past(self, table: hudi.Table) -> None:
        for one in table.timeline.completed_writes():
            time = one.requested_time
            try:
                then = _rows(table.to_arrow(as_of=one).select(SCHEMA.names).to_pylist())
            except HistoryExpiredError:
                must_be_there = self.promised | (self.saved - self._lists_alone)
                assert time not in must_be_there, f"{time} was to be retained"
                continue
            if time in self.past:
                assert then == as_rows(self.past[time]), f"as of {time}"

    def held_back(self) -> tuple[int, int]:
        """How many active instants neither clean nor archive may pass.

        They are not older than the oldest savepoint, or than the oldest plan that nobody has run.
        The second number is that of the metadata table: a deltacommit for each of them, and for
        those that were taken out since. Its own compactions and cleans are not counted.
        """
        instants = self.table.timeline.instants
        held = [one.requested_time for one in instants if not one.is_completed]
        held += [one.instant.requested_time for one in self.table.savepoints]
        if not held:
            return 0, 0
        oldest = min(held)
        recorded = [*self._of_metadata("deltacommit"), *self._of_metadata("rollback")]
        return (
            sum(one.requested_time >= oldest for one in instants),
            sum(one.name.partition("_")[0] >= oldest for one in recorded),
        )

    def _of_metadata(self, action: str = "*") -> list[Path]:
        """Completed instants on the active timeline of the metadata table."""
        return list(self.path.glob(f".hoodie/metadata/.hoodie/timeline/*_*.{action}"))

    def sizes(self) -> Sizes:
        """What there is on disk and on the timelines."""
        meta = self.path / ".hoodie"
        folders = (self.path, storage_path(self.path))
        everything = [one for place in folders for one in place.rglob("*") if one.is_file()]
        data = [
            one for one in everything if BaseFileName.parse(one.name) or LogFileName.parse(one.name)
        ]
        return Sizes(
            active=len(list((meta / "timeline").glob("*_*"))),
            of_metadata=len(self._of_metadata()),
            data_files=sum(".hoodie" not in one.parts for one in data),
            live=len(self.table.file_slices()),
            files=len(everything),
            bytes=sum(one.stat().st_size for one in everything),
        )


@dataclass(frozen=True)
class Sizes:
    """How large a table is.

    ``active``, ``of_metadata``: completed instants on the active timelines of the table and of its
    metadata table. ``data_files``, ``live``: data files on disk, and those of the latest state.
    ``files``, ``bytes``: all files on disk.
    """

    active: int
    of_metadata: int
    data_files: int
    live: int
    files: int
    bytes: int


def _applied(changes: pa.Table, held: dict[Any, Any]) -> Rows:
    for row in changes.to_pylist():
        key = row["id"], row["part"]
        if row["_change_type"] == "delete":
            del held[key]
        else:
            assert (key in held) == (row["_change_type"] == "update")
            held[key] = (*key, row["ts"])
    return frozenset(held.values())


def _effect(name: str, rows: Held) -> Effect:
    match name:
        case "delete":
            return dropping(*rows)
        case "insert_overwrite":
            parts = {part for part, _ in rows.values()}
            return lambda held: {
                **{key: value for key, value in held.items() if value[0] not in parts},
                **rows,
            }
        case "insert_overwrite_table":
            return lambda _: rows
        case _:
            return putting(rows)


def _act(table: hudi.Table, name: str, argument: Any) -> str:
    """Do something; return why it was refused."""
    try:
        _ACTS[name](table, argument)
    except REFUSALS.get(name, ()) as error:
        return str(error)
    return ""


def _act_and_die(
    path: str, options: Mapping[str, str], name: str, argument: Any, death: Fault
) -> str:
    table = hudi.Table.open(path, options)
    with CountedSteps(death):
        return _act(table, name, argument)


def _rows(found: Sequence[Mapping[str, Any]]) -> Rows:
    rows = frozenset((row["id"], row["part"], row["ts"]) for row in found)
    assert len(rows) == len(found), "a row is there twice"
    return rows
