"""Hudi-Spark and this project in turns on merge-on-read tables, over random histories.

Either appends logs, compacts those of the other, runs compactions that the other has scheduled,
cleans and rolls back. After every step Hudi-Spark with and without data skipping, hudi-rs and this
project read the same rows, by filters too: those of a model, where one version of a row counts as a
whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import PayloadKind
from hudi_core.errors import CommitConflictError
from tests.foreign import by_hudi_rs
from tests.jvm.engines import Engine, EngineError
from tests.jvm.filters import compare
from tests.jvm.hudi_merge_on_read_cases import WITHOUT, assert_alike
from tests.jvm.log_histories import CITIES, History, Kind, Merging, Options, Row
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.skipping import WAYS

COUNT: Final = 50
LEAST, MOST = 6, 9
OURS, THEIRS = "our", "their"
INDEXES: Final = ("SIMPLE", "BLOOM", "RECORD_INDEX", "BUCKET", "GLOBAL_SIMPLE")
COMMIT, EVENT = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
MERGING: Final[Sequence[Merging]] = (
    ("ts", None, EVENT),
    ("ts", None, ""),
    ("", None, COMMIT),
    ("ts", None, COMMIT),
    ("ts", None, EVENT),
    ("ts", PayloadKind.PARTIAL_UPDATE, ""),
    ("", None, ""),
)
OWN: Final = {"hoodie.fs.fsync": "false"}
FEW_BLOCKS: Final = {"hoodie.log.compaction.blocks.threshold": "2"}
SHORT: Final = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
RETAINED: Final = {"hoodie.clean.commits.retained": "1"}


@dataclass(frozen=True)
class Alternation(Kind):
    """A kind of table of two writers.

    ``nulls``: whether some rows have no ordering value.
    """

    nulls: bool

    @property
    def moves(self) -> bool:
        """Whether upserts may bring rows into other partitions."""
        return self.partitioned and self.index == "GLOBAL_SIMPLE" and self.payload is None

    @property
    def options(self) -> dict[str, str]:
        """Options of every write: rows that take stored values stay in their partition."""
        stays = self.index == "GLOBAL_SIMPLE" and self.payload is not None
        more = {"hoodie.simple.index.update.partition.path": "false"} if stays else {}
        return {**super().options, **more}

    @property
    def is_simple(self) -> bool:
        """Whether rows count as a whole, by order or by the time of their commits."""
        return self.payload is None and not self.nulls

    @property
    def is_ordered(self) -> bool:
        """Whether the ordering value decides."""
        return bool(self.ordering) and self.mode != COMMIT


def alternation(number: int) -> Alternation:
    """The kind of table of a history."""
    drawn = random.Random(f"alternation {number}")
    ordering, payload, mode = MERGING[number // 2 % len(MERGING)]
    index = INDEXES[number // 2 % len(INDEXES)]
    return Alternation(
        version=8 + number % 2,
        partitioned=drawn.random() < 0.6,
        index=index,
        ordering=ordering,
        payload=payload,
        mode=mode,
        blocks=drawn.choice(["avro", "parquet"]),
        positions=drawn.random() < 0.6,
        metadata=index == "RECORD_INDEX" or drawn.random() < 0.8,
        deletes=drawn.random() < 0.4,
        small_files=drawn.random() < 0.5,
        # where values are kept, or from version 9 merged by order, Hudi-Spark fails to compare a
        # null's number with a long one, see below
        nulls=bool(ordering)
        and payload is None
        and drawn.random() < 0.2
        and (number % 2 == 0 or mode == COMMIT),
    )


@dataclass
class Model:
    """Rows as they should be, by key.

    ``gone``: the greatest ordering values of deleted rows, by which Hudi may hide rows that come
    later. ``partial``: keys of which Hudi has updated some columns: over a late row, it merges logs
    before they meet the base file. ``open``: keys of which Hudi's answer is taken.
    """

    is_ordered: bool
    rows: dict[str, Row] = field(default_factory=dict)
    gone: dict[str, Any] = field(default_factory=dict)
    partial: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)

    def remove(self, key: str, order: Any = None) -> None:
        """Delete a row."""
        stored = self.rows.pop(key, None)
        orders = [one for one in (self.gone.get(key), order, stored and stored["ts"]) if one]
        self.gone[key] = max(orders, default=0)

    def put(self, row: Row, by: str) -> None:
        """Upsert a row."""
        key = row["id"]
        stored = self.rows.get(key)
        if self.is_ordered and row["ts"] is not None:
            if stored is not None and row["ts"] < (stored["ts"] or 0):
                self.open |= self.partial & {key}
                return
            if by == THEIRS and row["ts"] < self.gone.get(key, 0):
                self.open.add(key)
        if row.get("_hoodie_is_deleted"):
            self.remove(key, row["ts"])
        else:
            self.rows[key] = row


class Alternating(History):
    """A history whose steps two writers take.

    ``by``: the writer of this step. ``signed``: steps so far, with their writers.
    """

    kind: Alternation
    is_moving = False

    def begin(self, by: str = "") -> None:
        """Make the table, by either."""
        self.model = Model(self.kind.is_ordered)
        self.by = by or self.drawn.choice([OURS, THEIRS])
        self.signed = [f"{self.number} {self.kind}: {self.by} insert"]
        super().begin()

    def step(self) -> str:
        """Take a drawn step, by a drawn writer."""
        self.by = self.drawn.choice([OURS, THEIRS])
        self.signed.append(f"{self.by} ?")
        name = super().step()
        self.signed[-1] = f"{self.by} {name}"
        return name

    @property
    def table(self) -> hudi.Table:
        """The table, as this project opens it to write."""
        return hudi.Table.open(self.path, {**self.kind.options, **OWN})

    def _row(self, key: int, *, deletes: bool) -> Row:
        row = super()._row(key, deletes=deletes)
        if self.kind.nulls and self.drawn.random() < 0.3:
            row["ts"] = None
        if row["id"] in self.model.rows:
            row["city"] = self.model.rows[row["id"]]["city"]
        return row

    def _upsert(self, more: Options | None = None) -> None:
        self.is_moving = self.kind.moves
        super()._upsert(more)

    @property
    def _cannot_delete(self) -> bool:
        """Whether Hudi-Spark fails to, see below."""
        is_such = self.kind.version == 9 and self.kind.index == "RECORD_INDEX"
        return self.by == THEIRS and is_such and f"{THEIRS} merge_into" in self.signed

    def _delete(self, more: Options | None = None) -> None:
        (self._upsert if self._cannot_delete else super()._delete)(more)

    def _delete_where(self) -> None:
        if self._cannot_delete:
            self._upsert()
        else:
            super()._delete_where()

    # --- writes ------------------------------------------------------------------------------

    def save(self, operation: str, rows: pa.Table, more: Options | None = None) -> None:
        """Write rows by either."""
        given = rows.to_pylist()
        if self.is_moving:
            self.is_moving = False
            for row in given:
                if self.drawn.random() < 0.3:
                    row["city"] = self.drawn.choice(CITIES)
            rows = pa.Table.from_pylist(given, rows.schema)
        keys = [row["id"] for row in given]
        self.model.open |= {key for key in keys if keys.count(key) > 1}
        if self.by == THEIRS:
            super().save(operation, rows, more)
        else:
            options = {**self.kind.options, **OWN, **(more or {})}
            options["hoodie.datasource.write.operation"] = operation
            hudi.write(rows, str(self.path), options=options)
        for row in given:
            if operation == "delete":
                self.model.remove(row["id"])
            else:
                self.model.put(row, self.by)

    def update(self, word: str, more: int) -> None:
        """Update by a condition; ours may lower ordering values, and take values away."""
        values: dict[str, Any] = {"fare": "-1.5"}
        if self.by == THEIRS:
            super().update(word, more)
        else:
            more = self.drawn.choice([more, -2])
            values |= {"ts": f"ts + {more}"} if more else {}
            values |= {"day": None} if self.drawn.random() < 0.5 else {}
            self.table.update(values, f"name = '{word}'")
        for row in self.model.rows.values():
            if row["name"] == word:
                row["fare"] = -1.5
                row["day"] = None if "day" in values else row["day"]
                row["ts"] = None if row["ts"] is None else row["ts"] + more

    def delete_where(self, low: int) -> None:
        """Delete by a condition."""
        if self.by == THEIRS:
            super().delete_where(low)
        else:
            where = f"number between {low} and {low + 8}"
            self.table.delete(where=where)
        for key, row in list(self.model.rows.items()):
            if low <= row["number"] <= low + 8:
                self.model.remove(key)

    def merge_into(self, rows: pa.Table, columns: Sequence[str], more: str = "") -> None:
        """Merge; ours brings deleted rows back, of which Hudi-Spark makes updates of no row."""
        if self.by == THEIRS:
            if self.kind.small_files:  # Hudi-Spark writes other values beside new rows, see below
                present = pa.array(list(self.model.rows), pa.string())
                rows, more = rows.filter(pc.is_in(rows["id"], present)), ""
            super().merge_into(rows, columns, more)
        else:
            if more:
                missing = [int(key[1:]) for key in self.model.gone if key not in self.model.rows]
                given = {row["id"] for row in rows.to_pylist()}
                again = [key for key in missing[:3] if f"k{key:03}" not in given]
                rows = pa.concat_tables([rows, self.rows(again, deletes=False)])
            values = {name: f"source.{name}" for name in columns}
            merger = self.table.merge(rows, on="id").when_matched_update(values)
            (merger.when_not_matched_insert_all() if more else merger).execute()
        for row in rows.to_pylist():
            stored = self.model.rows.get(row["id"])
            if stored is not None:
                is_late = (row["ts"] or 0) < (stored["ts"] or 0)
                if self.by == THEIRS and self.kind.is_ordered and is_late:
                    self.model.open.add(row["id"])
                stored |= {name: row[name] for name in columns}
                self.model.partial |= {row["id"]} if self.by == THEIRS else set()
            elif more:
                self.model.put(row, self.by)

    # --- services ----------------------------------------------------------------------------

    def _compact(self) -> None:
        if self.by == THEIRS:
            super()._compact()
        elif self.drawn.random() < 0.3:
            self.table.compact(schedule_only=True)
        else:
            self._run_compactions()

    def _run_compactions(self) -> None:
        with suppress(CommitConflictError):  # a slice of a plan may have been rewritten since
            self.table.run_compactions()
        self.table.compact()

    def _compact_logs(self) -> None:
        if self.by == THEIRS and self.kind.nulls:  # Hudi-Spark fails to, see below
            self._compact_inline()
        elif self.by == THEIRS:
            super()._compact_logs()
        else:
            self.table.compact(log_compaction=True, options=FEW_BLOCKS)

    def _archive(self) -> None:
        if self.by == THEIRS:
            super()._archive()
        else:
            self.table.clean(options=RETAINED)
            self.table.archive(options={**SHORT, **RETAINED})

    def _cluster(self) -> None:
        if self.by == THEIRS or not self._is_clustered:
            super()._cluster()
        else:
            self.table.optimize()

    def _clean(self) -> None:
        if self.by == THEIRS:
            super()._clean()
        else:
            self.table.clean(options=RETAINED)

    def _roll_back(self) -> None:
        before = {key: dict(row) for key, row in self.model.rows.items()}
        if self.by == THEIRS and self.drawn.random() < 0.5:
            super()._roll_back()
        else:
            self.drawn.choice([self._upsert, self._delete, self._insert])()
            last = self.table.timeline.completed_writes()[-1]
            self.by = self.drawn.choice([OURS, THEIRS])
            self.signed[-1] += f", {self.by} rollback"
            if self.by == OURS:
                self.table.rollback(last.requested_time)
            else:
                time = last.requested_time
                self.sql(f"call rollback_to_instant(table => '{{t}}', instant_time => '{time}')")
        self.model.rows = before

    def _add_column(self) -> None:
        if self.by == THEIRS:
            super()._add_column()
        else:
            note = pa.field("note", pa.string())
            if note.name not in self.schema.names:
                self.schema = self.schema.append(note)
            self._upsert()


@pytest.mark.parametrize(
    "number", range(COUNT), ids=lambda number: f"{number:02}-{alternation(number)}"
)
def test_a_history(hudi_spark: Engine, number: int, tmp_path: Path) -> None:
    history = Alternating(number, alternation(number), hudi_spark, tmp_path / "table")
    with named_steps(history):
        history.begin()
        is_read_alike(history)
        for _ in range(history.drawn.randrange(LEAST, MOST + 1)):
            history.step()
            is_read_alike(history)


# --- keys that come again -------------------------------------------------------------------------

TWICE: Final = own_failure(
    "Hudi-Spark updates the dead row of the key as well, which is there again"
)


@pytest.mark.parametrize(
    ("how", "index"),
    [
        *product(["upsert", "merge"], INDEXES),
        *product(["insert"], ["RECORD_INDEX", "BUCKET", "GLOBAL_SIMPLE"]),
        *(pytest.param("insert", one, marks=TWICE) for one in ("SIMPLE", "BLOOM")),
    ],
)
def test_a_key_that_logs_delete_and_that_comes_again(
    hudi_spark: Engine, how: str, index: str, tmp_path: Path
) -> None:
    """Into the file group of its dead row, which Hudi-Spark finds there, but for plain inserts."""
    kind = replace(alternation(0), version=9, index=index, deletes=False, metadata=True)

    def story(by: str) -> Alternating:
        history = Alternating(0, kind, hudi_spark, tmp_path / by)
        history.begin(by)
        history.taken += ["later"] * 9
        history.save("delete", history.rows([0, 1]))
        if how == "merge":
            history.merge_into(history.rows([0], deletes=False), ["fare", "ts"], "all")
        else:
            history.save(how, history.rows([0], deletes=False))
        history.signed[-1] += f", deleted and {how} by {by}"
        is_read_alike(history)
        history.taken += ["later"] * 9
        history.by = THEIRS
        history.save("upsert", history.rows([0, 2], deletes=False))
        return history

    history = story(OURS)
    keys = [key for (key,) in hudi_spark.values(history.path, ["id"])]
    if keys.count("k000") == 2:
        control = [key for (key,) in hudi_spark.values(story(THEIRS).path, ["id"])]
        assert control.count("k000") == 2
        raise OwnFailureError("there are two rows of the key")
    is_read_alike(history)
    history.sql("call run_compaction(op => 'scheduleAndExecute', table => '{t}')")
    is_read_alike(history)


@own_failure("Hudi-Spark writes updates of some columns wrong where new rows go to their file")
@pytest.mark.parametrize("version", [8, 9])
def test_updates_of_some_columns_beside_new_rows(
    hudi_spark: Engine, version: int, tmp_path: Path
) -> None:
    """Of rows in a small file that Hudi-Spark itself wrote."""
    kind = replace(alternation(4), version=version, index="SIMPLE", small_files=True)
    history = Alternating(0, kind, hudi_spark, tmp_path / "t")
    history.begin(THEIRS)
    rows = history.rows([0, 1, 2, *history.new(3)], deletes=False)
    History.merge_into(history, rows, ["fare"], " when not matched then insert *")
    found = hudi_spark.values(history.path, ["_hoodie_record_key", "id"])
    assert hudi.Table.open(history.path).count() == len(found)
    wrong = [each for each in found if each[0] != each[1]]
    if wrong:
        raise OwnFailureError(str(wrong))


@own_failure("Hudi-Spark fails to delete rows of a group in which it has updated some columns")
def test_deletes_beside_updates_of_some_columns(hudi_spark: Engine, tmp_path: Path) -> None:
    """Of a table of version 9 with a record index, which no other has written."""
    history = Alternating(0, alternation(15), hudi_spark, tmp_path / "t")
    history.begin(THEIRS)
    history.merge_into(history.rows([0, 1, 2], deletes=False), ["fare", "ts"])
    with pytest.raises(EngineError, match="Partial merging logic is not implemented"):
        history.save("delete", history.rows([0], deletes=False))
    raise OwnFailureError("the delete failed")


@own_failure("Hudi-Spark fails to compact the logs of rows without an ordering value")
def test_log_compaction_of_rows_without_an_ordering_value(
    hudi_spark: Engine, tmp_path: Path
) -> None:
    history = Alternating(0, alternation(22), hudi_spark, tmp_path / "t")
    history.begin(THEIRS)
    for _ in range(2):
        rows = history.rows([0, 1], deletes=False)
        unordered = pa.nulls(rows.num_rows, rows.schema.field("ts").type)
        at = rows.schema.get_field_index("ts")
        history.save("upsert", rows.set_column(at, rows.schema.field("ts"), unordered))
    with pytest.raises(EngineError, match="is null"):
        History._compact_logs(history)
    raise OwnFailureError("the compaction failed")


@own_failure("Hudi-Spark fails to merge rows that have an ordering value over ones that have none")
def test_order_of_rows_without_an_ordering_value(hudi_spark: Engine, tmp_path: Path) -> None:
    """Of a table of version 9 that is merged by order, which no other has written."""
    kind = replace(alternation(31), nulls=True)
    history = Alternating(0, kind, hudi_spark, tmp_path / "t")
    history.begin(THEIRS)
    history.kind = replace(kind, nulls=False)
    keys = [int(key[1:]) for key in history.model.rows]
    history.save("upsert", history.rows(keys, deletes=False))
    with pytest.raises(EngineError, match=r"Integer cannot be cast to class java\.lang\.Long"):
        hudi_spark.read(history.path)
    raise OwnFailureError("the rows are not merged")


# --- the judge ------------------------------------------------------------------------------------


@contextmanager
def named_steps(history: Alternating) -> Iterator[None]:
    """Name the steps with what goes wrong."""
    try:
        yield
    except Exception as error:
        error.add_note(" > ".join(history.signed))
        raise


def is_read_alike(history: Alternating) -> None:
    """Compare what everybody reads, and look whether the table is in order."""
    path, engine, kind = history.path, history.engine, history.kind
    said = " > ".join(history.signed)
    ways = ("skipping", "no skipping") if kind.metadata else ("listing", "listing")
    theirs = engine.read(path, WAYS[ways[0]])
    history.keys = frozenset(int(one[1:]) for one in theirs["id"].to_pylist())
    table, plain = hudi.Table.open(path), hudi.Table.open(path, WITHOUT)
    assert_alike(table.to_arrow(), theirs, said)
    assert table.count() == theirs.num_rows, said
    # hudi-rs refuses payloads that decide themselves, and lists of rows that only logs have, from
    # before a new column
    has_old_lists = kind.index == "BUCKET" and "note" in history.schema.names
    if kind.payload is None and not has_old_lists:
        names = history.schema.names[:4]
        theirs_too = pa.Table.from_pylist(by_hudi_rs(path)).select(names)
        assert_alike(theirs_too, theirs.select(names), f"hudi-rs, {said}")
    is_as_modelled(history, theirs, said)
    drawn = random.Random(f"filters {history.number} {len(history.signed)}")
    filters = [_condition(theirs, drawn) for _ in range(1)]
    rows = theirs.select(history.schema.names).to_pylist()
    for way in ways:
        found = engine.answers(path, ["id"], [one.sql for one, _ in filters], WAYS[way])
        for (one, wanted), answer in zip(filters, found, strict=True):
            assert not answer.error, (answer.error, said)
            assert answer.rows == one.ids(rows), (one.sql, way, said)
            for opened in (table, plain):
                ours = sorted((key,) for key in opened.to_arrow("id", wanted)["id"].to_pylist())
                assert ours == one.ids(rows), (one.sql, said)
    checked = table.validate(keys=kind.metadata)
    assert checked.is_valid, (checked, said)


def is_as_modelled(history: Alternating, theirs: pa.Table, said: str) -> None:
    """Compare rows with the model, and take those over that it leaves open."""
    model = history.model
    names = [name for name in history.schema.names if name != "_hoodie_is_deleted"]
    found = {row["id"]: row for row in theirs.select(history.schema.names).to_pylist()}
    for key in model.open:
        model.rows.pop(key, None)
        if key in found:
            model.rows[key] = found[key]
    model.open.clear()
    if history.kind.is_simple:
        wanted = [{name: row.get(name) for name in names} for row in model.rows.values()]
        schema = theirs.select(names).schema
        assert_alike(theirs.select(names), pa.Table.from_pylist(wanted, schema), f"model, {said}")
    else:
        model.rows = found


def _condition(rows: pa.Table, drawn: random.Random) -> Any:
    """A filter, and ours, on a value of some row."""
    name = drawn.choice(["id", "ts", "city", "name", "fare", "number"])
    kind = rows.schema.field(name).type
    values = [one for one in rows[name].to_pylist() if one is not None] or [
        pa.array([0]).cast(kind)[0].as_py()
    ]
    value, sign = drawn.choice(values), drawn.choice(["=", "=", ">", "<="])
    column, scalar = pc.field(name), pa.scalar(value, kind)
    signs = {"=": column == scalar, ">": column > scalar, "<=": column <= scalar}
    return compare(name, sign, value, kind), signs[sign]
