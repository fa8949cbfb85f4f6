"""Random histories of split tables in every format, drawn by a number, and a model of their rows.

Each step is one of ours; what readers see of the table, and how, is up to who follows the history.
"""

from __future__ import annotations

import datetime as dt
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    HistoryExpiredError,
    HudiError,
    UnsupportedCapabilityError,
)
from hudi_core.model.instant import Action
from tests.formats.history_readers import by_hudi_rs, content, delta_versions, iceberg_snapshots
from tests.tables import new_table

Row = dict[str, Any]
Rows = Mapping[str, Row]
Content = Counter[str]

COUNT: Final = 50
"""Histories of the whole campaign: ten of each kind."""
KINDS: Final = ("native", "iceberg 2", "iceberg 3", "delta", "iceberg,delta")
COLUMNS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.float64()),
        ("w", pa.string()),
        ("number", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("place", pa.struct([("level", pa.int32()), ("word", pa.string())])),
        ("tags", pa.list_(pa.string())),
    ]
)
CITIES: Final = ("rome", "oslo", "lima")
"""Without letters that paths escape: polars finds no vector then, of Delta tables of any writer."""
_INDEXES: Final[Mapping[str, Mapping[str, str]]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "RECORD_INDEX": {"hoodie.metadata.record.index.enable": "true"},
}
_ACTS: Final[Mapping[str, int]] = {
    "upsert": 6,
    "delete": 3,
    "insert": 1,
    "update": 2,
    "delete_where": 2,
    "merge": 2,
    "overwrite": 1,
    "add_column": 1,
    "bring_column": 1,
    "widen": 1,
    "drop": 1,
    "compact": 1,
    "schedule": 1,
    "run": 1,
    "cluster": 2,
    "clean": 1,
    "rollback": 2,
    "savepoint": 1,
    "restore": 1,
}


_SIGNS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class State(NamedTuple):
    """Rows by their keys, and the columns that they have."""

    rows: Rows
    schema: pa.Schema


class Condition(NamedTuple):
    """A filter: parts that a row satisfies, all of them.

    ``parts``: column, sign and value; a null is found by ``is``.
    """

    parts: Sequence[tuple[str, str, Any]]

    @property
    def sql(self) -> str:
        """As all engines read it."""
        texts = (f"{name} {sign} {_literal(value)}" for name, sign, value in self.parts)
        return " and ".join(texts)

    @property
    def expression(self) -> pc.Expression:
        """As we read it."""
        found = pc.scalar(True)
        for name, sign, value in self.parts:
            field = pc.field(name)
            found &= field.is_null() if value is None else _SIGNS[sign](field, value)
        return found

    def test(self, row: Row) -> bool:
        """Whether a row is found."""
        return all(
            row[name] is None
            if value is None
            else row[name] is not None and _SIGNS[sign](row[name], value)
            for name, sign, value in self.parts
        )


class History:
    """A table, and the model of it.

    ``number``: everything is drawn by it. ``now``: what the table holds. ``past``: by requested
    time, what each write that is still there left. ``log``: the steps so far.
    """

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.draw = draw = random.Random(number)
        self.format, _, version = KINDS[number % len(KINDS)].partition(" ")
        self.is_ordered = draw.random() < 0.5
        index = draw.choice([*_INDEXES])
        self.options = {
            "hoodie.table.merge-on-read.mode": "split",
            "hoodie.write.table.version": draw.choice(["8", "9"]),
            "hoodie.index.type": index,
            **_INDEXES[index],
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.parquet.small.file.limit": draw.choice(["0", "104857600"]),
            "hoodie.compact.inline": draw.choice(["true", "false"]),
            "hoodie.compact.inline.max.delta.commits": "4",
            "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
            "hoodie.write.set.null.for.missing.columns": "true",
            "hoodie.fs.fsync": "false",
        }
        if version:
            self.options["hoodie.table.format.iceberg.format-version"] = version
        new_table(
            path,
            COLUMNS,
            self.options,
            format=self.format,
            table_type="MERGE_ON_READ",
            partition_by="city" if draw.random() < 0.7 else None,
            ordering_field="ts" if self.is_ordered else None,
        )
        self.now = State({}, COLUMNS)
        self.past: dict[str, State] = {}
        self.log = [f"{self.format} {version} ordered: {self.is_ordered} {self.options}"]
        self._added = 0
        self._saved: str | None = None

    @property
    def table(self) -> hudi.Table:
        """The table, opened again."""
        return hudi.Table.open(self.path, self.options)

    @property
    def story(self) -> str:
        """What has been done."""
        return "\n".join(self.log)

    def steps(self, count: int) -> Iterator[int]:
        """Take steps; give the number of each when it is done."""
        self._act("insert")
        yield 0
        for step in range(1, count):
            self._act(self.draw.choices([*_ACTS], [*_ACTS.values()])[0])
            yield step

    def _act(self, name: str) -> None:
        self.log.append(name)
        before = self.now
        with suppress(_NothingToDoError, UnsupportedCapabilityError):
            self.now = getattr(self, f"_{name}")(self.table)
        kept = {one.requested_time: one.action for one in self.table.timeline.completed_writes()}
        self.past = {time: state for time, state in self.past.items() if time in kept}
        newest = max(self.past, default="")
        for time, action in kept.items():
            # compactions are commits; what was planned before writes that are complete has no
            # state of its own
            if action is not Action.COMMIT and time > newest:
                self.past[time] = self.now
        self.log[-1] += f": {len(before.rows)} -> {len(self.now.rows)} rows, {[*kept][-1:]}"

    # --- rows --------------------------------------------------------------------------------

    def _row(self, key: int, schema: pa.Schema) -> Row:
        draw, step = self.draw, len(self.log)
        row = {
            "id": f"k{key:03}",
            "city": CITIES[key % len(CITIES)],
            "ts": step + draw.randint(-3, 3),
            "v": draw.choice([None, step + key / 100, 0.0]),
            "w": draw.choice([None, f"s{step}", "wörd" * 9]),
            "number": draw.choice([None, key, -step]),
            "price": Decimal(key * 10 - step).scaleb(-2),
            "at": dt.datetime(2026, 1, 1, 12, 0, step, key, tzinfo=dt.UTC),
            "day": draw.choice([None, dt.date(2026, 1, 1) + dt.timedelta(days=step)]),
            "place": draw.choice([None, {"level": step, "word": draw.choice([None, "x"])}]),
            "tags": draw.choice([None, [], ["a", "b"]]),
        }
        return {one: row.get(one, step) for one in schema.names}

    def _some(self, schema: pa.Schema, most: int = 8) -> dict[str, Row]:
        keys = self.draw.sample(range(60), self.draw.randint(1, most))
        rows = [self._row(key, schema) for key in keys]
        return {row["id"]: row for row in rows}

    def _put(self, rows: Rows) -> State:
        held = {**self.now.rows}
        for key, row in rows.items():
            stored = held.get(key)
            if not self.is_ordered or stored is None or stored["ts"] <= row["ts"]:
                held[key] = row
        return self.now._replace(rows=held)

    def _changed(self, test: Callable[[Row], bool], **values: Callable[[Row], Any]) -> State:
        held = {
            key: {**row, **{name: made(row) for name, made in values.items()}} if test(row) else row
            for key, row in self.now.rows.items()
        }
        return self.now._replace(rows=held)

    def _without(self, test: Callable[[Row], bool]) -> State:
        held = {key: row for key, row in self.now.rows.items() if not test(row)}
        return self.now._replace(rows=held)

    # --- acts: each changes the table, and returns what it holds then ------------------------

    def _insert(self, table: hudi.Table) -> State:
        first = 100 * len(self.log)
        count = 40 if not self.past else 5
        numbers = range(40) if not self.past else range(first, first + count)
        rows = {row["id"]: row for row in (self._row(one, self.now.schema) for one in numbers)}
        insert = table.insert if self.draw.random() < 0.5 else table.bulk_insert
        insert(_arrow(rows, self.now.schema))
        return self._put(rows)

    def _upsert(self, table: hudi.Table) -> State:
        rows = self._some(self.now.schema)
        table.upsert(_arrow(rows, self.now.schema))
        return self._put(rows)

    def _delete(self, table: hudi.Table) -> State:
        rows = self._some(self.now.schema)
        table.delete(_arrow(rows, self.now.schema).select(["id", "city"]))
        return self._without(lambda row: row["id"] in rows)

    def _update(self, table: hudi.Table) -> State:
        low, high = sorted(f"k{self.draw.randrange(60):03}" for _ in range(2))
        table.update({"v": "v + 1", "w": "'set'"}, f"id >= '{low}' and id < '{high}'")
        return self._changed(
            lambda row: low <= row["id"] < high,
            v=lambda row: None if row["v"] is None else row["v"] + 1,
            w=lambda _: "set",
        )

    def _delete_where(self, table: hudi.Table) -> State:
        chosen = self.condition()
        if len(self._without(chosen.test).rows) < 8:
            raise _NothingToDoError
        table.delete(where=chosen.sql)
        return self._without(chosen.test)

    def _merge(self, table: hudi.Table) -> State:
        rows = self._some(self.now.schema)
        merger = table.merge(_arrow(rows, self.now.schema), on="id")
        merger.when_matched_update({"w": "source.w"}).when_not_matched_insert_all().execute()
        new = {key: row for key, row in rows.items() if key not in self.now.rows}
        held = self._changed(lambda row: row["id"] in rows, w=lambda row: rows[row["id"]]["w"])
        return held._replace(rows={**held.rows, **new})

    def _overwrite(self, table: hudi.Table) -> State:
        rows = self._some(self.now.schema, 3)
        cities = {row["city"] for row in rows.values()}
        is_parted = bool(table.config.partition_fields)
        table.insert_overwrite(_arrow(rows, self.now.schema))
        kept = self._without(lambda row: not is_parted or row["city"] in cities)
        return kept._replace(rows={**kept.rows, **rows})

    def _add_column(self, table: hudi.Table) -> State:
        self._added += 1
        field = pa.field(f"new{self._added}", pa.int64())
        table.alter(add_columns=[field])
        return self.now._replace(schema=self.now.schema.append(field))

    def _bring_column(self, table: hudi.Table) -> State:
        self._added += 1
        schema = self.now.schema.append(pa.field(f"new{self._added}", pa.int64()))
        rows = self._some(schema)
        table.upsert(_arrow(rows, schema))
        return self._put(rows)._replace(schema=schema)

    def _widen(self, table: hudi.Table) -> State:
        schema = self.now.schema
        if schema.field("number").type == pa.int64():
            raise _NothingToDoError
        table.alter(promote={"number": pa.int64()})
        place = schema.get_field_index("number")
        return self.now._replace(schema=schema.set(place, pa.field("number", pa.int64())))

    def _drop(self, table: hudi.Table) -> State:
        names = [name for name in self.now.schema.names if name.startswith("new")]
        if not names:
            raise _NothingToDoError
        table.alter(drop=names[0])
        schema = self.now.schema.remove(self.now.schema.get_field_index(names[0]))
        held = {
            key: {name: value for name, value in row.items() if name != names[0]}
            for key, row in self.now.rows.items()
        }
        return State(held, schema)

    def _compact(self, table: hudi.Table) -> State:
        table.compact()
        return self.now

    def _schedule(self, table: hudi.Table) -> State:
        if self.draw.random() < 0.5:
            table.compact(schedule_only=True)
        else:
            table.cluster(schedule_only=True)
        return self.now

    def _run(self, table: hudi.Table) -> State:
        """Run what is scheduled, but for what a write has changed since."""
        with suppress(CommitConflictError):
            table.run_compactions()
        for one in table.timeline.instants:
            if one.action is Action.CLUSTERING:
                with suppress(CommitConflictError):
                    self.table.run_clusterings(one.requested_time)
        return self.now

    def _cluster(self, table: hudi.Table) -> State:
        with suppress(CommitConflictError):  # what another plan has is not planned again
            table.cluster(sort_by=self.draw.choice([None, "ts", "id"]))
        return self.now

    def _clean(self, table: hudi.Table) -> State:
        table.clean(options={"hoodie.cleaner.commits.retained": "3"})
        return self.now

    def _rollback(self, table: hudi.Table) -> State:
        writes = table.timeline.completed_writes()
        [*_, before, last] = ["", "", *sorted(self.past)]
        if writes[-1].action is not Action.DELTACOMMIT or writes[-1].requested_time != last:
            raise _NothingToDoError
        if not before:
            raise _NothingToDoError
        try:
            table.rollback(last)
        except HudiError as error:
            self.log[-1] += f" refused by {type(error).__name__}"
            return self.now
        return self.past[before]

    def _savepoint(self, table: hudi.Table) -> State:
        self._saved = max(self.past)
        table.savepoint(self._saved)
        return self.now

    def _restore(self, table: hudi.Table) -> State:
        if self._saved not in self.past:
            raise _NothingToDoError
        assert self._saved is not None
        table.restore(self._saved)
        return self.past[self._saved]

    # --- what readers are to see -------------------------------------------------------------

    def condition(self) -> Condition:
        """A filter that finds some rows."""
        low = self.draw.randint(0, len(self.log) + 3)
        key = f"k{self.draw.randrange(60):03}"
        city = self.draw.choice(CITIES)
        parts: list[list[tuple[str, str, Any]]] = [
            [("id", "=", key)],
            [("ts", ">", low)],
            [("city", "=", city), ("ts", "<=", low)],
            [("v", "is", None), ("id", ">", key)],
            [("number", "<", low)],
            [("v", ">=", low + 0.5)],
        ]
        return Condition(self.draw.choice(parts))

    def matching(self, chosen: Condition) -> list[str]:
        """Keys of the rows that a filter finds."""
        return sorted(key for key, row in self.now.rows.items() if chosen.test(row))

    def check(self) -> None:
        """Compare what Python's readers see with the model."""
        expected = content(self.now.rows.values())
        table = self.table
        assert content(table.to_arrow().to_pylist()) == expected, self.story
        assert table.count() == len(self.now.rows), self.story
        assert content(by_hudi_rs(self.path)) == expected, self.story
        chosen = self.condition()
        right = self.matching(chosen)
        filtered = {"ours": table.to_arrow("id", chosen.expression)["id"].to_pylist()}
        if "iceberg" in self.format:
            iceberg = StaticTable.from_metadata(str(self.path))
            assert content(iceberg.scan().to_arrow().to_pylist()) == expected, self.story
            found = iceberg.scan(chosen.sql, ("id",)).to_arrow()
            filtered["pyiceberg"] = found["id"].to_pylist()
            frame = pl.scan_iceberg(iceberg.metadata_location)
            assert content(frame.collect().to_dicts()) == expected, self.story
            filtered["polars, Iceberg"] = _by_polars(frame, chosen)
        if "delta" in self.format:
            query = QueryBuilder().register("t", DeltaTable(str(self.path)))
            found = pa.table(query.execute("select * from t").read_all())
            assert content(found.to_pylist()) == expected, self.story
            found = pa.table(query.execute(f"select id from t where {chosen.sql}").read_all())
            filtered["delta-rs"] = found["id"].to_pylist()
            frame = pl.scan_delta(str(self.path))
            assert content(frame.collect().to_dicts()) == expected, self.story
            filtered["polars, Delta"] = _by_polars(frame, chosen)
        for reader, keys in filtered.items():
            assert sorted(keys) == right, (reader, chosen.sql, self.story)

    def retained(self) -> dict[str, State]:
        """Past states that we can still read, of which dropped columns are left out."""
        names = self.now.schema.names
        found = {}
        for time, state in self.past.items():
            try:
                read = self.table.to_arrow(as_of=time)
            except HistoryExpiredError:
                continue
            kept = {
                key: {name: value for name, value in row.items() if name in names}
                for key, row in state.rows.items()
            }
            found[time] = State(kept, state.schema)
            assert self.seen(read.to_pylist()) == content(kept.values()), (time, self.story)
        return found

    def seen(self, found: list[Row]) -> Content:
        """Rows of a past state, in the columns that there are still."""
        names = self.now.schema.names
        return content({name: one for name, one in row.items() if name in names} for row in found)

    def check_past(self) -> dict[str, State]:
        """Compare past states, by each format's own means; return those that are retained."""
        states = self.retained()
        assert states, self.story
        for time, state in states.items():
            seen = self.seen(by_hudi_rs(self.path, time))
            assert seen == content(state.rows.values()), (time, self.story)
        if "iceberg" in self.format:
            iceberg = StaticTable.from_metadata(str(self.path))
            for time, snapshot in self.kept(iceberg_snapshots(self.path), states).items():
                found = iceberg.scan(snapshot_id=snapshot).to_arrow().to_pylist()
                assert self.seen(found) == content(states[time].rows.values()), (time, self.story)
        if "delta" in self.format:
            for time, version in self.kept(delta_versions(self.path), states).items():
                query = QueryBuilder().register("t", DeltaTable(str(self.path), version))
                found = pa.table(query.execute("select * from t").read_all()).to_pylist()
                assert self.seen(found) == content(states[time].rows.values()), (time, self.story)
        validated = self.table.validate(keys=True)
        assert validated.is_valid, (validated, self.story)
        return states

    def kept(self, named: Mapping[str, int], states: Mapping[str, State]) -> dict[str, int]:
        """What a format calls the states that it has still: none is missing but the oldest."""
        assert named, self.story
        missing = [time for time in states if time not in named and time > min(named)]
        assert not missing, (missing, self.story)
        return {time: number for time, number in named.items() if time in states}


class _NothingToDoError(Exception):
    """A step that makes no sense now."""


def _literal(value: Any) -> str:
    return "null" if value is None else repr(value)  # strings in single quotes


def _arrow(rows: Rows, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), schema)


def _by_polars(frame: pl.LazyFrame, chosen: Condition) -> list[str]:
    found: list[str] = frame.filter(pl.sql_expr(chosen.sql)).select("id").collect()["id"].to_list()
    return found
