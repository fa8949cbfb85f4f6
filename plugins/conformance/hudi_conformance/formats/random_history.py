"""A table under operations in any order, and the rows that it must hold.

The rows are kept in a dictionary, too, by what each operation means. Where a process died, the
table may hold what it held before or what it would hold after, until a write has decided it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_conformance.formats.faults import Death, is_killed
from hudi_conformance.formats.tables import FAST, create, ours
from hudi_conformance.formats.under_test import FormatUnderTest, Row, TwoStepFormat, bag
from hudi_core.errors import HistoryExpiredError
from hudi_core.spi import (
    Capability,
    CommitConflictError,
    CorruptMetadataError,
    FormatCapabilities,
    TableServiceError,
)
from hudi_core.spi.testing import load_format, meets

KEYS: Final = range(9)
CITIES: Final = ("rome", "Ålesund 100%/é", None)
COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "id": pa.string(),
    "city": pa.string(),
    "ts": pa.int64(),
    "value": pa.float64(),
    "count": pa.int32(),
    "word": pa.string(),
}
FIXED: Final = ("id", "city", "ts")
"""Columns that nothing changes."""
ADDABLE: Final[Mapping[str, pa.DataType]] = {
    "more": pa.int64(),
    "value": pa.string(),
    "count": pa.float64(),
}
"""Columns that may be added; some names may have been those of other columns before."""
VALUES: Final[Mapping[pa.DataType, Sequence[Any]]] = {
    pa.float64(): (0.5, math.nan, -0.0, None, -math.inf),
    pa.string(): ("plain", "", "'\"\\\n\u2028 é 𝄞", None, "x" * 300),
    pa.int32(): (0, -(1 << 31), (1 << 31) - 1, None),
    pa.int64(): (0, -(1 << 63), (1 << 63) - 1, None),
}
OPTIONS: Final = {
    **FAST,
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    # new files hold three rows, so that there are several
    "hoodie.copyonwrite.insert.auto.split": "false",
    "hoodie.copyonwrite.insert.split.size": "3",
    # services have something to do at once, and come when they are called
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    # what the metadata table needs is not archived
    "hoodie.metadata.compact.max.delta.commits": "2",
}
CLEANS: Final[Sequence[Mapping[str, str]]] = (
    {},
    {"hoodie.clean.commits.retained": "2"},
    {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    },
)
"""Limits of cleans, by which the one keeps what another one need not."""
SHARED: Final = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
REFUSALS: Final = (TableServiceError, HistoryExpiredError)
"""What a table says to going back to a state that it need not have any more."""
_LOOKS_NOTHING_UP: Final = ("insert", "bulk_insert")


@dataclass(frozen=True)
class TableState:
    """What a table holds.

    Attributes
    ----------
    rows
        By key.
    columns
        Their types, by name.
    """

    rows: Mapping[str, Row] = field(default_factory=dict)
    columns: Mapping[str, pa.DataType] = field(default_factory=lambda: COLUMNS)

    def bag(self) -> Counter[str]:
        return bag(self.rows.values())

    def put(self, rows: Mapping[str, Row]) -> TableState:
        return replace(self, rows={**self.rows, **rows})

    def only(self, keep: Callable[[Row], bool]) -> TableState:
        return replace(self, rows={key: row for key, row in self.rows.items() if keep(row)})


Effect = Callable[[TableState], TableState]


class RandomHistory:
    """A table, what it may hold, and what it held.

    Attributes
    ----------
    possible
        What it may hold: one state, unless a process died in between.
    past
        What it held after each of its writes, by requested time.
    promised
        Requested times of the writes whose states must still be readable.
    restorable
        Those of them that the format knows, too.
    saved
        Requested times of the savepoints.
    done
        How often each thing was done, and died.
    """

    def __init__(
        self,
        path: Path,
        format_under_test: FormatUnderTest,
        *,
        is_partitioned: bool,
        is_split: bool = False,
    ) -> None:
        self.path, self.format = path, format_under_test
        self.capabilities: FormatCapabilities = load_format(format_under_test.name).capabilities
        self.is_partitioned, self.is_split = is_partitioned, is_split
        self.possible = [TableState()]
        self.past: dict[str, TableState] = {}
        self.promised: set[str] = set()
        self.restorable: set[str] = set()
        self.saved: set[str] = set()
        self.done: Counter[str] = Counter()
        self._may_be_saved = self._is_pending = False
        self._ts = 0
        self._writes: list[str] = []
        self._lasting = [*COLUMNS]
        create(
            path,
            replace(format_under_test, options={**OPTIONS, **format_under_test.options}),
            "city" if is_partitioned else None,
            pa.schema(list(COLUMNS.items())),
            "MERGE_ON_READ" if is_split else None,
            {"hoodie.table.merge-on-read.mode": "split"} if is_split else None,
        )
        self.handles = [self._opened(), self._opened()]

    @property
    def table(self) -> hudi.Table:
        """The handle that is used."""
        return self.handles[0]

    @property
    def state(self) -> TableState:
        """One of the possible states."""
        return self.possible[0]

    @property
    def is_known(self) -> bool:
        """Whether it is known what the table holds."""
        return len(self.possible) == 1

    @property
    def is_clear(self) -> bool:
        """Whether it is known, too, that the next write finishes nothing else first."""
        return self.is_known and not self._is_pending

    def _opened(self) -> hudi.Table:
        return hudi.Table.open(str(self.path), OPTIONS)

    # --- writes ----------------------------------------------------------------------------------

    def write(self, name: str, keys: Iterable[int], death: Death | None = None) -> None:
        """Write rows of some keys; of new ones, where the operation looks nothing up."""
        if name in _LOOKS_NOTHING_UP:
            held = {row["id"] for one in self.possible for row in one.rows.values()}
            free = [key for key in KEYS if f"k{key}" not in held]
            keys = {*keys} & {*free} or free[:1]
        rows = self._rows(keys)
        if rows:
            data = self._data(rows)
            self._do(name, lambda: getattr(self.table, name)(data), self._effect(name, rows), death)

    def delete_partition(self, city: str | None, death: Death | None = None) -> None:
        """Delete a partition that has rows in any case."""
        if all(any(row["city"] == city for row in one.rows.values()) for one in self.possible):
            self._do(
                "delete_partitions",
                lambda: self.table.delete_partitions([{"city": city}]),
                lambda state: state.only(lambda row: row["city"] != city),
                death,
            )

    def meet(self, mine: Iterable[int], theirs: Iterable[int]) -> None:
        """Upsert rows while another writer upserts others, and commits first."""
        rows, other_rows = self._rows({*mine} - {*theirs}), self._rows(theirs)
        if not (rows and other_rows):
            return
        data, other_data = self._data(rows), self._data(other_rows)
        one, other = (hudi.Table.open(str(self.path), OPTIONS | SHARED) for _ in range(2))

        def both() -> None:
            with meets(lambda: other.upsert(other_data)):
                one.upsert(data)

        try:
            # the state as of the one that began first and ended last is neither before nor after
            self._do("meet", both, lambda state: state.put(other_rows).put(rows), is_state=False)
        except CommitConflictError:
            self.done["meet, in conflict"] += 1
            self._conclude([state.put(other_rows) for state in self.possible])

    def _rows(self, keys: Iterable[int]) -> dict[str, Row]:
        self._ts += 1
        return {
            f"k{key}": _row(key, self._ts, self.possible[-1].columns) for key in sorted({*keys})
        }

    def _data(self, rows: Mapping[str, Row]) -> pa.Table:
        return pa.Table.from_pylist(
            [*rows.values()], pa.schema(list(self.possible[-1].columns.items()))
        )

    def _effect(self, name: str, rows: Mapping[str, Row]) -> Effect:
        cities = {row["city"] for row in rows.values()} if self.is_partitioned else {*CITIES}
        match name:
            case "delete":
                return lambda state: state.only(lambda row: row["id"] not in rows)
            case "insert_overwrite":
                return lambda state: state.only(lambda row: row["city"] not in cities).put(rows)
            case "insert_overwrite_table":
                return lambda state: replace(state, rows=rows)
            case _:
                return lambda state: state.put(rows)

    # --- columns ---------------------------------------------------------------------------------

    @property
    def changes(self) -> Sequence[Callable[[int], object]]:
        """The changes of columns that the format declares; each gets a number to choose by."""
        known = {
            Capability.ADD_COLUMN: self.add_column,
            Capability.DROP_COLUMN: self.drop_column,
            Capability.RENAME_COLUMN: self.rename_column,
            Capability.PROMOTE_TYPE: self.promote_column,
        }
        return [change for ability, change in known.items() if ability in self.capabilities]

    def add_column(self, which: int) -> None:
        """Add a column, whose name another one may have had."""
        free = [name for name in ADDABLE if name not in self.state.columns]
        if free:
            name = free[which % len(free)]
            column = {name: ADDABLE[name]}
            self._do(
                "alter",
                lambda: self.table.alter(add_columns=column),
                lambda state: replace(state, columns={**state.columns, **column}),
            )

    def drop_column(self, which: int) -> None:
        """Drop a column."""
        some = [name for name in self.state.columns if name not in FIXED]
        if some:
            name = some[which % len(some)]
            self._rename({name: None}, lambda: self.table.alter(drop=name))

    def rename_column(self, which: int) -> None:
        """Rename a column."""
        some = [name for name in self.state.columns if name not in FIXED]
        free = [name for name in ("renamed", *ADDABLE) if name not in self.state.columns]
        if some and free:
            names = {some[which % len(some)]: free[which % len(free)]}
            self._rename(names, lambda: self.table.alter(rename=names))

    def _rename(self, names: Mapping[str, str | None], act: Callable[[], object]) -> None:
        others = {*names, *names.values()}
        self._lasting = [one for one in self._lasting if one not in others]
        self._do("alter", act, _renaming(names))

    def promote_column(self, which: int) -> None:
        """Make a type wider."""
        narrow = [name for name, kind in self.state.columns.items() if kind == pa.int32()]
        if narrow and self.capabilities.can_promote("int to long"):
            wider = {narrow[which % len(narrow)]: pa.int64()}
            self._do(
                "alter",
                lambda: self.table.alter(promote=wider),
                lambda state: replace(state, columns={**state.columns, **wider}),
            )

    # --- services --------------------------------------------------------------------------------

    def clean(self, death: Death | None = None, limits: Mapping[str, str] | None = None) -> None:
        """Delete the files that the last state and the savepoints do not need.

        By some limits more of them, or fewer, stay for a while.
        """
        options = {**OPTIONS, **(limits or {})}
        self._serve("clean", lambda: self.table.clean(options=options), death)
        last = set(self._writes[-1:]) if self.is_known else set()
        self.promised &= last | self.saved
        self.restorable &= self.promised

    def archive(self, death: Death | None = None) -> None:
        """Move old instants away."""
        self._serve("archive", lambda: self.table.archive(options=OPTIONS), death)
        left = {*self._writes}
        self.promised &= left
        self.restorable &= left

    def cluster(self, layout: str, death: Death | None = None) -> None:
        """Write the rows into other files."""
        options = {**OPTIONS, "hoodie.clustering.plan.strategy.sort.columns": "ts,id"}
        self._serve("cluster", lambda: self.table.cluster(layout=layout, options=options), death)

    def compact(self, death: Death | None = None) -> None:
        """Write the live rows of files with dead ones into other files."""
        self._serve("compact", lambda: self.table.compact(options=OPTIONS), death)

    def save(self, death: Death | None = None) -> None:
        """Make a savepoint of the present state."""
        last = self._writes[-1]
        after = {*self.saved, last}
        self._serve("savepoint", lambda: self.table.savepoint(last), death, saved=after)

    @property
    def can_save(self) -> bool:
        """Whether the last state must be one that can be kept, and is not yet."""
        last = self._writes[-1]
        return self.is_clear and last in self.restorable and last not in self.saved

    def delete_savepoint(self, which: int, death: Death | None = None) -> None:
        """Delete one of the savepoints."""
        gone = sorted(self.saved)[which % len(self.saved)]
        self._serve(
            "delete_savepoint",
            lambda: self.table.delete_savepoint(gone),
            death,
            saved=self.saved - {gone},
        )

    @property
    def can_restore(self) -> bool:
        """Whether there is a savepoint to go back to."""
        return self.is_clear and max(self.saved, default="") in self.past

    def restore(self, death: Death | None = None) -> None:
        """Go back to the last savepoint."""
        last = max(self.saved)
        self._go_back(
            "restore",
            lambda: self.table.restore(last),
            self.past[last],
            death,
            may_be_refused=last not in self.restorable,
        )

    @property
    def can_roll_back(self) -> bool:
        """Whether the last write can be undone, and what there was before it is known."""
        last = self._writes[-2:]
        is_known = len(last) == 2 and {*last} <= self.past.keys()
        return self.is_clear and is_known and last[1] not in self.saved

    def roll_back(self, death: Death | None = None) -> None:
        """Undo the last write."""
        writes = self._writes[-2:]
        self._go_back(
            "rollback",
            lambda: self.table.rollback(writes[1]),
            self.past[writes[0]],
            death,
            may_be_refused=not {*writes} <= self.restorable,
        )

    def lose_and_rebuild(self, lose: Callable[[Path], object]) -> None:
        """Lose the format's metadata, and rebuild it where the format can do that."""
        lose(self.path)
        for use in (lambda: ours(self.path), lambda: self._opened().upsert(_no_rows())):
            with pytest.raises(CorruptMetadataError):
                use()
        self._opened().repair()
        self.done["rebuild"] += 1
        self.restorable = set()
        self.reopen()
        self.look()

    def reopen(self) -> None:
        """Forget what the handles know."""
        self.handles = [self._opened(), self._opened()]

    def change_hands(self) -> None:
        """Go on with the other handle, which has not seen what was done meanwhile."""
        self.handles.reverse()

    # --- how it is done --------------------------------------------------------------------------

    def _go_back(
        self,
        name: str,
        act: Callable[[], object],
        then: TableState,
        death: Death | None,
        *,
        may_be_refused: bool,
    ) -> None:
        try:
            self._do(name, act, lambda _: then, death)
        except REFUSALS:
            if not may_be_refused:
                raise
            self.done[f"{name}, refused"] += 1
            self.reopen()
            self.look()

    def _serve(
        self,
        name: str,
        act: Callable[[], object],
        death: Death | None,
        *,
        saved: set[str] | None = None,
    ) -> None:
        before = self._writes
        if self._ends(name, act, death):
            self._may_be_saved = self._may_be_saved or saved is not None
        elif saved is not None:
            self.saved = saved
        self.look()
        if death is None and self._writes[-1:] != before[-1:]:
            self._conclude(self.possible)

    def _do(
        self,
        name: str,
        act: Callable[[], object],
        effect: Effect,
        death: Death | None = None,
        *,
        is_state: bool = True,
    ) -> None:
        after = [effect(one) for one in self.possible]
        if self._ends(name, act, death):
            self.possible += [one for one in after if one not in self.possible]
            self.look()
        else:
            self._conclude(after, is_state=is_state)

    def _ends(self, name: str, act: Callable[[], object], death: Death | None) -> bool:
        """Do something; whether the process died at it."""
        if death is None or not is_killed(death, act):
            if death is None:
                act()
            self.done[name] += 1
            return False
        self.done[f"{name}, died {death}"] += 1
        self._is_pending = True
        self.reopen()
        return True

    # --- what must be so -------------------------------------------------------------------------

    def look(self) -> list[TableState]:
        """Have all readers see one of the possible states; those that it may be."""
        now = hudi.Table.open(str(self.path))
        found_rows = now.to_arrow().to_pylist()
        mine = bag(found_rows)
        self._compare_with_format(found_rows)
        matching = [one for one in self.possible if one.bag() == mine]
        assert matching, _difference("the table", mine, self.possible[-1].bag())
        columns = [*now.schema.names]
        matching = [one for one in matching if sorted(one.columns) == sorted(columns)]
        assert matching, f"the columns are {columns}, not {[*self.possible[-1].columns]}"
        found = {str(one.instant.requested_time) for one in now.savepoints}
        if self._may_be_saved:  # by a process that died at it
            self.saved = found
        assert found == self.saved, f"there are savepoints of {found}, not of {self.saved}"
        done = now.timeline.completed_writes()
        ordered = sorted(done, key=lambda one: one.effective_completion_time)
        self._writes = [str(one.requested_time) for one in ordered]
        return matching

    def _compare_with_format(self, mine: Sequence[Row]) -> None:
        """Compare rows with what the format's own reader sees.

        A format without metadata of its own cannot show it which column had another name.
        """
        theirs: Sequence[Row] = list(self.format.read(self.path))
        if not isinstance(self.format, TwoStepFormat):
            mine, theirs = self._lasting_columns(mine), self._lasting_columns(theirs)
        expected, found = bag(mine), bag(theirs)
        assert found == expected, _difference("the format's own reader", found, expected)

    def _lasting_columns(self, rows: Sequence[Row]) -> list[Row]:
        return [{name: row.get(name) for name in self._lasting} for row in rows]

    def _conclude(self, after: list[TableState], *, is_state: bool = True) -> None:
        """A write has gone through: whatever a dead process left is done, or is undone."""
        self.possible = after
        self.possible = self.look()[:1]
        self._may_be_saved = self._is_pending = False
        writes = self._writes
        self.past = {time: state for time, state in self.past.items() if time in writes}
        self.promised &= {*writes}
        self.restorable &= {*writes}
        if writes and is_state:
            if writes[-1] not in self.past:
                self.promised.add(writes[-1])
                self.restorable.add(writes[-1])
            self.past[writes[-1]] = self.state

    def look_back(self) -> None:
        """Read the states of before, by the columns that there always are."""
        now = hudi.Table.open(str(self.path))
        for time in self._writes:
            if time not in self.past:
                continue
            try:
                then = bag(now.to_arrow(as_of=time, columns=[*FIXED]).to_pylist())
            except HistoryExpiredError:
                assert time not in self.promised, f"the state as of {time} was to be kept"
            else:
                expected = bag(
                    {name: row[name] for name in FIXED} for row in self.past[time].rows.values()
                )
                assert then == expected, _difference(f"the state as of {time}", then, expected)

    def finish(self) -> None:
        """Write once more, and have all metadata agree."""
        self.write("upsert", [0])
        self.look_back()
        found = hudi.Table.open(str(self.path)).validate().differences
        # the metadata table is no affair of the format
        assert not [one for one in found if not one.source.startswith("metadata table")]

    def can(self, *abilities: Capability) -> bool:
        """Whether the format declares some abilities."""
        return all(one in self.capabilities for one in abilities)


def _row(key: int, ts: int, columns: Mapping[str, pa.DataType]) -> Row:
    """A row whose key decides its partition, as the index looks only there."""
    fixed = {"id": f"k{key}", "city": CITIES[key % len(CITIES)], "ts": ts}
    others = {
        name: VALUES[kind][(key + ts) % len(VALUES[kind])]
        for name, kind in columns.items()
        if name not in FIXED
    }
    return fixed | others


def _no_rows() -> pa.Table:
    return pa.Table.from_pylist([_row(0, 0, COLUMNS)], pa.schema(list(COLUMNS.items())))


def _renaming(names: Mapping[str, str | None]) -> Effect:
    """Give columns other names; one without a new name is dropped."""

    def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
        found = {names.get(name, name): value for name, value in values.items()}
        return {name: value for name, value in found.items() if name is not None}

    def effect(state: TableState) -> TableState:
        rows = {key: renamed(row) for key, row in state.rows.items()}
        return TableState(rows, renamed(state.columns))

    return effect


def _difference(who: str, found: Counter[str], expected: Counter[str]) -> str:
    return f"{who} has too much {[*(found - expected)]} and lacks {[*(expected - found)]}"
