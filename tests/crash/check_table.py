"""What must hold of a table at any moment, whatever happened to its writers.

The promises, by the numbers that violations carry:

1. Every reader sees the same rows, each key once; the format's own reader is one of them.
2. They are the rows of some of the effects that were tried, each wholly or not at all: those that
   a caller was told took place, and none that a caller was told failed; what was seen once stays.
3. The metadata table tells the files that a listing tells.
4. Every file that the format names exists, and is as large and as long as it says.
5. No data file and nothing else remains of a dead writer after the next write.
6. The format holds every instant once, in the order of completion, and goes back in time to the
   same rows.
7. After the next write nothing is half complete.
8. All of this holds when recovery itself is interrupted: the scenes take care of that.
9. The lock is free.
10. No lister sees a file that is not whole.
11. No secret is written to any file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from hudi_core.config.write import WriteConfig
from hudi_core.errors import LockError
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.partitions.names import ALL_CHECKS, Check
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.files import BaseFileName, LogFileName
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
from hudi_core.timeline.serde import decode_commit
from hudi_core.txn.creation import CREATION_PATH
from hudi_core.txn.table_lock import table_lock
from tests.crash.place import Place, place_of
from tests.crash.readers import (
    ForeignReader,
    Row,
    as_tuples,
    disagreement,
    foreign_readers,
    read_by_hudi_rs,
)
from tests.crash.rows import BASE, Effect, Rows, as_rows, matching
from tests.crash.tables import CANARY, OPTIONS

ACKED: Final = "acked"
FAILED: Final = "failed"
OPEN: Final = "open"
"""The caller was told that the outcome is not known, or died before it was told."""

_RECENT: Final = 2
"""How many instants are travelled to."""


@dataclass(slots=True)
class Tried:
    """One thing that was tried on a table.

    ``name``: its name, once per history. ``effect``: what it makes of the rows. ``told``: what its
    caller was told: :data:`ACKED`, :data:`FAILED` or :data:`OPEN`. ``format_name``: the table's
    format once it is done; ``None`` where that stays. ``column``: name of the column that the table
    has once it is done; ``None`` where its columns stay.
    """

    name: str
    effect: Effect
    told: str = OPEN
    format_name: str | None = None
    column: str | None = None

    @property
    def changes_rows(self) -> bool:
        """Whether rows tell that it is done."""
        return as_rows(self.effect(BASE)) != as_rows(BASE)


class Report(NamedTuple):
    """What a check found.

    ``shown``: names of the effects that the rows show; ``None`` where the rows are those of no
    choice. ``violations``: broken promises, in words, each with its number first.
    """

    shown: frozenset[str] | None
    violations: list[str]


@dataclass
class _Check:
    """One check of a table.

    ``at_rest``: whether a write has completed since the last writer died: then nothing may be left
    open.
    """

    place: Place
    tried: Sequence[Tried]
    at_rest: bool
    found: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = self.place.open()
        self.client = self.table._session.opened.client
        self.raw = self.client.timeline().instants
        self.archived = self.client.archived.load(bodies=True)
        self.fenced = self.table.timeline
        self.format_name = self.table.format
        self.foreign = foreign_readers(self.place, self.format_name)

    def require(self, number: int, holds: bool, words: str) -> None:
        if not holds:
            self.found.append(f"{number}: {words}")

    # --- rows ------------------------------------------------------------------------------------

    def rows(self, seen: frozenset[str]) -> frozenset[str] | None:
        own = self.once("our reader", as_tuples(self.table.to_arrow()))
        # at rest the metadata table is compared with the listing in full
        if not self.at_rest and self.client.files.is_plain:
            plain = self.place.open({"hoodie.metadata.enable": "false"})
            self.same("our reader without the metadata table", as_tuples(plain.to_arrow()), own)
        for name, foreign in self.foreign.items():
            if self.at_rest or self.is_last(name):
                self.same(f"the reader of {name}", foreign.rows(), own)
            else:  # its step comes first, and it may be ahead by what is on its way
                early = self.once(f"the reader of {name}", foreign.rows())
                self.require(2, self.shown(early) is not None, f"{name} shows {sorted(early)}")
            if self.at_rest:
                self.same(f"a reader of {name} given the path", foreign.by_path(), own)
        for who, rows in read_by_hudi_rs(self.place).items():
            if not self.foreign or self.at_rest:
                self.same(who, rows, own)
            else:
                # it does not know the fence: it may be early, and never see a part
                early = self.once(who, rows)
                self.require(2, self.shown(early) is not None, f"{who} sees {sorted(early)}")
        return self.effects(own, seen)

    def is_last(self, name: str) -> bool:
        """Whether it is the last format to hold an instant: what it holds is complete."""
        return name == self.format_name.split(",")[-1]

    def once(self, who: str, rows: Sequence[Row]) -> Rows:
        twice = [key for key, count in Counter(row[0] for row in rows).items() if count > 1]
        self.require(1, not twice, f"{who} sees {twice} more than once")
        return frozenset(rows)

    def same(self, who: str, rows: Sequence[Row], own: Rows) -> None:
        found = self.once(who, rows)
        difference = f"{sorted(found - own)} more and {sorted(own - found)} less than ours"
        self.require(1, found == own, f"{who} sees {difference}")

    def shown(self, rows: Rows) -> frozenset[str] | None:
        return matching(rows, [(one.name, one.effect) for one in self.tried])

    def effects(self, own: Rows, seen: frozenset[str]) -> frozenset[str] | None:
        shown = self.shown(own)
        if shown is None:
            self.found.append(f"2: the rows are those of no whole effects: {sorted(own)}")
            return None
        for one in self.tried:
            there = one.name in shown
            is_quiet = not one.changes_rows  # it is in any rows
            hidden = not there or is_quiet or one.told != FAILED
            self.require(2, there or one.told != ACKED, f"{one.name} was told done and is not seen")
            self.require(2, hidden, f"{one.name} was told failed: is seen")
            self.require(2, there or one.name not in seen, f"{one.name} was seen and is gone")
        for one in self.tried:
            same = one.told != ACKED or one.format_name in (None, self.format_name)
            self.require(2, same, f"{one.name} was told done, and the format is {self.format_name}")
        return shown

    def columns(self, shown: frozenset[str] | None) -> None:
        """A column comes with what brings it, for every reader."""
        own = set(self.table.schema.names)
        brought = [one for one in self.tried if one.column is not None]
        for one in brought:
            there = one.column in own
            self.require(2, there or one.told != ACKED, f"{one.name} was told done: no column")
            self.require(2, not there or one.told != FAILED, f"{one.name} was told failed: column")
            is_seen = shown is not None and one.name in shown and one.changes_rows
            self.require(2, there or not is_seen, f"{one.name} is seen without its column")
        for foreign in self.foreign.values():
            theirs = {name for name in foreign.columns() if not name.startswith("_hoodie_")}
            # columns may come in a version of their own, before the rows
            early = set() if self.at_rest else {one.column for one in brought}
            right = own <= theirs <= own | early
            self.require(1, right, f"columns are {sorted(own)}, in the format {sorted(theirs)}")

    # --- files -----------------------------------------------------------------------------------

    def metadata(self) -> None:
        building = StoredPartitions.of(self.client.config).building
        if FILES in building and not self.at_rest:
            return  # it is being rebuilt: who comes now lists the folders
        self.require(
            7, not (building and self.at_rest), f"half built in the metadata table: {building}"
        )
        if self.at_rest:
            defined = read_definitions(self.client.storage, self.client.config).raw
            lost = set(defined) - set(StoredPartitions.of(self.client.config).complete)
            self.require(3, not lost, f"defined, and not in the metadata table: {lost}")
        report = validate(self.client, ALL_CHECKS if self.at_rest else frozenset({Check.FILES}))
        for finding in (*report.findings, *report.unreadable.items()):
            self.found.append(f"3: {finding}")

    def named_files(self) -> None:
        for file in (one for foreign in self.foreign.values() for one in foreign.files()):
            wrong = disagreement(self.place, file)
            self.require(4, wrong is None, str(wrong))
        for one in self.table.file_slices():
            for status in one.files:
                there = self.place.facts(self.client.files.uri(status.path))
                right = there is not None and there.size == status.size
                self.require(4, right, f"{status.path} is named with {status.size} bytes: {there}")

    def leftovers(self) -> None:
        named = {
            stat.path
            for instant in self.raw
            if instant.is_completed and instant.action in WRITE_ACTIONS
            for stat in self.client.read_commit(instant).stats
        }
        named |= {
            stat.path
            for one in self.archived
            if one.instant.action in WRITE_ACTIONS and one.metadata is not None
            for stat in decode_commit(one.metadata, str(one.instant)).stats
        }
        known = {str(one.requested_time) for one in self.raw}
        for inside in self.place.files():
            name = inside.rpartition("/")[2]
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if parsed is not None and not inside.startswith(".hoodie/"):
                is_known = self.place.logical(inside) in named
                self.require(5, is_known, f"{inside} is of no completed write")
            remains = inside.startswith(".hoodie/.temp/") or inside == CREATION_PATH
            self.require(5, not remains, f"{inside} remains")
            # one that was begun before its instant, and had not said yet on which machine, is left
            # for its age to decide
            heart = inside.startswith(".hoodie/.heartbeat/")
            early = heart and name not in known and b'"host": null' in self.place.read(inside)
            self.require(5, early or not heart, f"{inside} remains")
            if inside.startswith(".hoodie/timeline/") and "/history/" not in inside:
                self.require(5, name[:17] in known, f"{inside} is of no known instant")

    def visible(self) -> None:
        listed = list(self.client.storage.list("", recursive=True))
        for status in listed:
            hidden = status.name.startswith(TEMPORARY_PREFIX)
            self.require(10, not hidden, f"a lister sees {status.path}")

    def secrets(self) -> None:
        for file in self.place.files(hidden=True):
            if CANARY.encode() in self.place.read(file):
                self.found.append(f"11: {file} holds a secret")

    # --- instants --------------------------------------------------------------------------------

    def times(self) -> None:
        # a savepoint has the time of its commit
        times = [one.requested_time for one in self.raw if one.action is not Action.SAVEPOINT]
        times += [one.completion_time for one in self.raw if one.completion_time]
        self.require(6, len(set(times)) == len(times), f"a time is given twice: {sorted(times)}")

    def recorded(self, name: str, foreign: ForeignReader) -> None:
        """The format holds what the fence says, nothing twice, and nothing that Hudi has not."""
        writes, others = foreign.instants(), foreign.other_instants()
        ids = [(one.requested, one.action) for one in (*writes, *others)]
        self.require(6, len(set(ids)) == len(ids), f"the format holds an instant twice: {ids}")
        order = [one.completed for one in writes]
        self.require(6, order == sorted(order), f"the format holds them in the order {order}")
        hudi_has = _told_to_formats(self.raw)
        gone = _told_to_formats([one.instant for one in self.archived])
        # a savepoint that is being deleted leaves the format last
        leaving = {
            (str(one.requested_time), one.action.value)
            for one in self.raw
            if one.action is Action.SAVEPOINT and not one.is_completed
        }
        held = {one[:3] for one in (*writes, *others) if one[:2] not in leaving}
        early = held - hudi_has - gone
        self.require(6, not early, f"only the format holds {sorted(early)}")
        mark = foreign.watermark()
        known = {one[:3] for one in (*writes, *others)}
        late = {one for one in hudi_has - known if mark is None or one[2] > mark}
        self.require(7, not (late and self.at_rest), f"the format lacks {sorted(late)}")
        fenced = _told_to_formats(self.fenced.instants)
        both = hudi_has - late
        is_right = fenced == both if self.at_rest or self.is_last(name) else fenced <= both
        self.require(6, is_right, f"the fence says {sorted(fenced)}, {name} {sorted(both)}")

    def history(self, foreign: ForeignReader) -> None:
        """Our travel in time and the format's lead to the same rows."""
        recorded = foreign.instants()
        for number in range(len(recorded))[-_RECENT:]:
            # a plan that was run after a later write: the format's state has both
            latest = max(one.requested for one in recorded[: number + 1])
            own = as_tuples(self.table.to_arrow(as_of=latest))
            then = foreign.rows_at(recorded[number].version)
            same = sorted(own) == sorted(then)
            self.require(6, same, f"as of {latest} ours are {own}, the format's {then}")

    def changes(self, writes: Iterable[Instant]) -> None:
        """What came with a write is what its own snapshot has of it."""
        for one in writes:
            then = self.table.to_arrow(as_of=one)
            mine = [
                row
                for row, time in zip(
                    as_tuples(then), then.column("_hoodie_commit_time").to_pylist(), strict=True
                )
                if time == one.requested_time
            ]
            before = [
                other.effective_completion_time
                for other in self.fenced.completed_writes()
                if other.effective_completion_time < one.effective_completion_time
            ]
            found = as_tuples(self.table.incremental(max(before, default=None), one))
            same = sorted(found) == sorted(mine)
            self.require(6, same, f"changes of {one.requested_time}: {found}, not {mine}")

    def nothing_open(self) -> None:
        # a scheduled clustering is for somebody else to run
        raw = [one for one in self.raw if not one.is_scheduled]
        pending = [str(one) for one in raw if not one.is_completed]
        self.require(7, not pending, f"still pending: {pending}")
        seen = [one for one in self.fenced.instants if not one.is_scheduled]
        fenced = [str(one) for one in seen if not one.is_completed]
        self.require(7, not fenced, f"still pending in the format: {fenced}")
        inner = [str(one) for one in metadata_client(self.client).timeline().pending()]
        self.require(7, not inner, f"still pending in the metadata table: {inner}")

    def lock(self) -> None:
        config = WriteConfig.from_options({**OPTIONS, "hoodie.write.lock.wait_time_ms": "1"})
        try:
            with table_lock(self.table._session.opened, config).held():
                pass
        except LockError as error:
            self.found.append(f"9: {error}")


def check_rows(
    path: Path | Place, tried: Sequence[Tried], *, at_rest: bool, seen: frozenset[str] = frozenset()
) -> Report:
    """Return which promises a table breaks that tell of its rows and of its instants; see
    :func:`check_table`."""
    check = _Check(place_of(path), tried, at_rest)
    shown = check.rows(seen)
    check.times()
    for name, foreign in check.foreign.items():
        check.recorded(name, foreign)
    return Report(shown, check.found)


def check_table(
    path: Path | Place, tried: Sequence[Tried], *, at_rest: bool, seen: frozenset[str] = frozenset()
) -> Report:
    """Return which promises a table breaks.

    ``tried``: what was tried on it, in order, since it held the rows that every scene begins with.
    ``at_rest``: whether a write has completed since the last writer died: then nothing may be left
    open. ``seen``: names of the effects that an earlier check of the table has seen. Whatever a
    reader raises is not caught: a table that cannot be read breaks the first promise.
    """
    check = _Check(place_of(path), tried, at_rest)
    shown = check.rows(seen)
    check.columns(shown)
    check.metadata()
    check.named_files()
    check.visible()
    check.secrets()
    check.times()
    for name, foreign in check.foreign.items():
        check.recorded(name, foreign)
    check.lock()
    if at_rest:
        check.leftovers()
        check.nothing_open()
        if check.table.config.populate_meta_fields:
            check.changes(check.fenced.completed_writes()[-1:])
        for foreign in check.foreign.values():
            check.history(foreign)
    return Report(shown, check.found)


def _told_to_formats(instants: Iterable[Instant]) -> set[tuple[str, str, str]]:
    """Return the completed instants that formats are told of: of indexes they are not."""
    done = (one for one in instants if one.is_completed and one.action is not Action.INDEXING)
    return {_identity(one) for one in done}


def _identity(instant: Instant) -> tuple[str, str, str]:
    action = instant.action.completed_action.value
    return str(instant.requested_time), action, str(instant.effective_completion_time)
