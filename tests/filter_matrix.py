"""Random tables and filters in the words of every engine, with the engine itself as the judge.

A case is a table and a filter. Rows have nulls, NaN and both zeros; each file holds few values of a
column, so that its statistics say much. Every engine that can say the filter has to find the rows
of the table that it finds among the same rows in its own memory.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa

import hudi_core as hudi
from hudi_core.cli.table import parse_where
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import SchemaError
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.trino import wire
from hudi_core.trino.constraints import predicate_of
from hudi_core.write.conditional.changes import ChangeWhere, TableColumns
from tests.filter_words import (
    EPOCH,
    KINDS,
    WORD_COLUMNS,
    Unsaid,
    accepts,
    as_arrow,
    as_polars,
    as_sql,
    as_where,
)

# --- tables --------------------------------------------------------------------------------------

TABLE_FORMATS: Final = ("native", "iceberg,delta", "native", "iceberg", "delta")
PARTITIONS: Final = (None, "p", "n", "d", "p", None)


@dataclass
class MatrixTable:
    """A table and its rows, as they were written."""

    table: hudi.Table
    rows: pa.Table
    facts: Mapping[str, Any] = field(default_factory=dict)


def some_table(number: int, path: Path) -> MatrixTable:
    """A table of a number, which decides about all of it."""
    rng = random.Random(number)
    table_format, partition = (
        TABLE_FORMATS[number % len(TABLE_FORMATS)],
        PARTITIONS[number % len(PARTITIONS)],
    )
    has_meta = rng.random() < 0.8
    evolves = rng.random() < 0.4
    options = {
        "hoodie.fs.fsync": "false",
        "hoodie.write.table.version": rng.choice(["8", "9"]),
        "hoodie.metadata.index.column.stats.enable": rng.choice(["true", "true", "true", "false"]),
        "hoodie.metadata.global.record.level.index.enable": rng.choice(["true", "false"]),
        "hoodie.datasource.write.hive_style_partitioning": rng.choice(["true", "false"]),
        "hoodie.populate.meta.fields": str(has_meta).lower(),
        # each insert is a file of its own
        "hoodie.parquet.small.file.limit": "0",
    }
    first = WORD_COLUMNS
    # Delta widens no types, and finds columns by their names
    widens = evolves and partition != "n" and "delta" not in table_format
    if evolves:
        narrow = pa.int32() if widens else pa.int64()
        first = WORD_COLUMNS.set(WORD_COLUMNS.get_field_index("n"), pa.field("n", narrow))
        first = first.remove(first.get_field_index("late"))
        if "delta" not in table_format:
            first = first.set(first.get_field_index("s"), pa.field("former", pa.string()))
    table = hudi.Table.create(
        path, first, name="m", record_key="id", partition_by=partition, format=table_format,
        options=options,
    )  # fmt: skip
    model: dict[int, dict[str, Any]] = {}
    for number_of_file in range(rng.randint(3, 6)):
        if evolves and number_of_file == 2:
            if "former" in first.names:
                table.alter(rename={"former": "s"})
            table.alter(add_columns={"late": pa.float64()})
            if widens:
                table.alter(promote={"n": pa.int64()})
        made = some_rows(rng, len(model) + 100 * number_of_file)
        model |= {row["id"]: row for row in made}
        schema = table.schema
        names = {"former": "s"}
        given = [{name: row[names.get(name, name)] for name in schema.names} for row in made]
        table.insert(pa.Table.from_pylist(given, schema))
        if evolves and number_of_file < 2:
            model |= {row["id"]: {**row, "late": None} for row in made}
    changed = [{**model[key], "f": 0.0, "g": None} for key in rng.sample(sorted(model), 2)]
    table.upsert(pa.Table.from_pylist(changed, table.schema))
    model |= {row["id"]: row for row in changed}
    gone = rng.choice(sorted(model))
    table.delete(pa.Table.from_pylist([model.pop(gone)], table.schema))
    rows = pa.Table.from_pylist([model[key] for key in sorted(model)], WORD_COLUMNS)
    facts = {"format": table_format, "partition": partition, "evolves": evolves, **options}
    return MatrixTable(table, rows, facts)


def some_rows(rng: random.Random, first: int) -> list[dict[str, Any]]:
    """The rows of one file, of whose columns many have a single value, or none."""
    pools = {}
    for name, (kind, values) in KINDS.items():
        pool = [pa.scalar(value, kind).as_py() for value in values]
        few: list[Any] = rng.choice(
            [[rng.choice(pool)], [rng.choice(pool)], [rng.choice(pool), None], [None], pool,
             [*pool, None]]
        )  # fmt: skip
        if pa.types.is_floating(kind) and rng.random() < 0.4:
            few = rng.choice([[0.0], [-0.0], [0.0, -0.0], [0.0, None], [math.nan, 1.0], [math.nan]])
        pools[name] = few
    count = rng.randint(2, 7)
    return [
        {"id": first + n, **{name: rng.choice(pool) for name, pool in pools.items()}}
        for n in range(count)
    ]


# --- engines -------------------------------------------------------------------------------------


def ids(rows: Any) -> list[int]:
    return sorted(rows["id"].to_pylist())


def found_by(table: hudi.Table, where: Any, spark: Any = None) -> Any:
    """The rows that a conditional write would change, before it writes one."""
    opened = table._session.opened
    schema = opened.client.schema_at(opened.timeline())
    columns = TableColumns(table.config, schema, is_global=False)
    changes = ChangeWhere(where, {"m": None}).resolve(columns)
    engine = LocalEngine() if spark is None else SparkEngine(spark)
    found = changes.find(engine, opened.client, table._session.snapshot(spark))
    if spark is not None:
        names = found.names or tuple(found.rows.columns)
        return found.rows.toDF(*names).select("id").toArrow()
    rows = found.rows
    return rows if isinstance(rows, pa.Table) else rows.read_all()


class Engines:
    """Every way to filter in this process, and the rows of a table in their memory."""

    def __init__(self, one: MatrixTable) -> None:
        self.table, self.rows = one.table, one.rows
        self.connection = duckdb.connect()
        hudi.duckdb(self.connection, one.table.path, "stored")
        self.connection.register("given", one.rows)
        # DuckDB hands filters on Arrow tables to Arrow as well
        self.connection.execute("CREATE TABLE in_memory AS SELECT * FROM given")
        self.lazy, self.frame = hudi.polars(one.table.path), pl.DataFrame(one.rows)
        self.dataset, self.connector = one.table.scan(), hudi.Connector()

    def close(self) -> None:
        self.connection.close()

    def differences(
        self, wanted: Any, conditions: list[tuple[str, str, Any]], constraint: Mapping[str, Any]
    ) -> Iterator[str]:
        """Yield what does not find the rows that the judge finds."""
        for name, found, expected in (
            *self.arrow(wanted),
            *self.duckdb(wanted),
            *self.polars(wanted),
            *self.changes(wanted),
            *self.conditions(conditions),
            *self.trino(constraint),
        ):
            if found != expected:
                yield f"{name}: found {found}, expected {expected}"

    def arrow(self, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
        given = as_arrow(wanted)
        expected = ids(self.rows.filter(given))
        yield f"to_arrow {given}", ids(self.table.to_arrow("id", given)), expected
        yield f"count {given}", self.table.count(given), len(expected)
        batches = self.dataset.scanner(["id"], given).to_reader()
        yield f"scanner {given}", ids(batches.read_all()), expected
        filtered = self.dataset.filter(given)
        yield f"dataset {given}", ids(filtered.to_table(["id"])), expected
        yield f"head {given}", filtered.head(3, ["id"]).num_rows, min(3, len(expected))
        try:
            domain = TupleDomain.of(given, WORD_COLUMNS)
        except SchemaError:
            return
        yield f"connector {given}", self.connected(domain), expected

    def connected(self, domain: Any) -> list[int]:
        with self.connector.scan(self.table.path, domain) as splits:
            parts = [
                self.connector.read(split.to_json(), ["id"]).read_all()["id"].to_pylist()
                for split in splits
            ]
        return sorted(key for part in parts for key in part)

    def duckdb(self, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
        try:
            text = as_sql(wanted, "duckdb")
        except Unsaid:
            return
        found, expected = (
            sorted(
                key
                for (key,) in self.connection.sql(f"SELECT id FROM {name} WHERE {text}").fetchall()
            )
            for name in ("stored", "in_memory")
        )
        yield f"duckdb {text}", found, expected

    def polars(self, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
        given = as_polars(wanted)
        expected = sorted(self.frame.filter(given)["id"].to_list())
        for how in ("in-memory", "streaming"):
            found = self.lazy.filter(given).select("id").collect(engine=how)
            yield f"polars {how} {given}", sorted(found["id"].to_list()), expected

    def changes(self, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
        """Rows that a conditional write finds, by an expression and by a text in Spark's SQL."""
        given = as_arrow(wanted)
        yield f"change {given}", ids(found_by(self.table, given)), ids(self.rows.filter(given))
        try:
            text = as_sql(wanted, "spark")
        except Unsaid:
            return
        judged = f"SELECT id FROM in_memory WHERE {as_sql(wanted, 'duckdb')}"
        expected = sorted(key for (key,) in self.connection.sql(judged).fetchall())
        yield f"text {text}", ids(found_by(self.table, text)), expected

    def conditions(self, given: list[tuple[str, str, Any]]) -> Iterator[tuple[str, Any, Any]]:
        expected = [
            row["id"] for row in self.rows.to_pylist() if all(accepts(row, one) for one in given)
        ]
        yield f"conditions {given}", ids(self.table.to_arrow("id", given)), expected
        yield f"count {given}", self.table.count(given), len(expected)
        yield f"pandas {given}", sorted(self.table.to_pandas("id", given)["id"]), expected
        yield f"scan {given}", ids(self.table.scan(given).to_table(["id"])), expected
        text = as_where(given)
        if text is not None:
            asked = parse_where(text)
            yield f"--where {text}", ids(self.table.to_arrow("id", asked)), expected
        try:
            domain = TupleDomain.of(given, WORD_COLUMNS)
        except SchemaError:
            return
        again = TupleDomain.from_json(domain.to_json(), WORD_COLUMNS)
        yield f"connector {given}", self.connected(again), expected

    def trino(self, constraint: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
        """Trino filters what it gets once more: no row of its may be missing."""
        schema = self.table.schema
        wanted = predicate_of(wire.Constraint(domains=dict(constraint)), schema)
        expected = {row["id"] for row in self.rows.to_pylist() if is_within(row, constraint)}
        found = {*self.connected(wanted)}
        yield f"trino {shown(constraint)}", sorted(expected & found), sorted(expected)


# --- Trino's constraints -------------------------------------------------------------------------

BLOCKS: Final = {
    "n": (wire.BigintValues, "bigint"),
    "f": (wire.DoubleValues, "double"),
    "g": (wire.DoubleValues, "double"),
    "late": (wire.DoubleValues, "double"),
    "s": (wire.VarcharValues, "varchar"),
    "p": (wire.VarcharValues, "varchar"),
    "d": (wire.DateValues, "date"),
    "t": (wire.TimestampValues, "timestamp"),
    "w": (wire.TimestampValues, "timestamp"),
}
BELOW, EXACTLY, ABOVE = 1, 2, 3


def in_trino(column: str, value: Any) -> Any:
    """A value as Trino has it: days, milliseconds, doubles."""
    match value:
        case dt.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (aware - EPOCH) // dt.timedelta(milliseconds=1)
        case dt.date():
            return (value - EPOCH.date()).days
        case _ if column == "g" and value is not None:
            return pa.scalar(value, pa.float32()).as_py()
    return value


def some_constraint(rng: random.Random) -> dict[str, Any]:
    """Of one or two columns, what they may be."""
    found: dict[str, Any] = {}
    for column in rng.sample(sorted(BLOCKS), rng.choice([1, 1, 2])):
        numbers = [in_trino(column, value) for value in KINDS[column][1]]
        values = sorted(value for value in numbers if value == value)
        low, high = sorted(rng.sample(values, 2))
        value_set = wire.ValueSet()
        match rng.choice(["one", "some", "range", "below", "above", "other", "all", "none"]):
            case "one":
                value_set.ranges = wire.Ranges(ranges=[between(column, low, low)])
            case "some":
                each = [between(column, one, one) for one in dict.fromkeys((low, high))]
                value_set.ranges = wire.Ranges(ranges=each)
            case "range":
                bounds = rng.choice([(EXACTLY, EXACTLY), (ABOVE, EXACTLY), (EXACTLY, BELOW)])
                value_set.ranges = wire.Ranges(ranges=[between(column, low, high, bounds)])
            case "below":
                value_set.ranges = wire.Ranges(ranges=[between(column, None, high)])
            case "above":
                one = between(column, low, None, rng.choice([(EXACTLY, BELOW), (ABOVE, BELOW)]))
                value_set.ranges = wire.Ranges(ranges=[one])
            case "other":
                sides = [(None, low, (ABOVE, BELOW)), (low, None, (ABOVE, BELOW))]
                value_set.ranges = wire.Ranges(ranges=[between(column, *one) for one in sides])
            case "all":
                value_set.all_or_none = wire.AllOrNone(all=True)
            case _:
                value_set.all_or_none = wire.AllOrNone(all=False)
        found[column] = wire.ColumnDomain(value_set=value_set, null_allowed=rng.random() < 0.4)
    return found


def between(column: str, low: Any, high: Any, bounds: tuple[int, int] = (EXACTLY, EXACTLY)) -> Any:
    ends = [
        wire.Marker(value=None, bound=ABOVE) if low is None else marker(column, low, bounds[0]),
        wire.Marker(value=None, bound=BELOW) if high is None else marker(column, high, bounds[1]),
    ]
    return wire.Bounds(low=ends[0], high=ends[1])


def marker(column: str, value: Any, bound: int) -> Any:
    kind, name = BLOCKS[column]
    if name == "varchar":
        data = value.encode()
        values = kind(nulls=None, sizes=[len(data)], data=data)
    else:
        values = kind(nulls=None, values=[value])
    return wire.Marker(value=wire.Block(**{name: values}), bound=bound)


def is_within(row: Mapping[str, Any], constraint: Mapping[str, Any]) -> bool:
    """Whether Trino accepts a row: NaN is in a set that is all, or all but some values."""
    for column, domain in constraint.items():
        found = in_trino(column, row[column])
        if found is None:
            if not domain.null_allowed:
                return False
            continue
        if domain.value_set.all_or_none is not None:
            if not domain.value_set.all_or_none.all:
                return False
            continue
        ranges = domain.value_set.ranges.ranges
        is_nan = isinstance(found, float) and math.isnan(found)
        is_other = ranges[0].low.value is None and ranges[-1].high.value is None
        if not (is_other if is_nan else any(is_in(found, one) for one in ranges)):
            return False
    return True


def is_in(value: Any, one: Any) -> bool:
    low, high = content(one.low.value), content(one.high.value)
    is_above = low is None or value > low or (value == low and one.low.bound == EXACTLY)
    is_below = high is None or value < high or (value == high and one.high.bound == EXACTLY)
    return is_above and is_below


def content(found: Any) -> Any:
    if found is None:
        return None
    [values] = [one for one in vars(found).values() if one is not None]
    return values.data.decode() if hasattr(values, "data") else values.values[0]


def shown(constraint: Mapping[str, Any]) -> str:
    return str({name: repr(domain)[:300] for name, domain in constraint.items()})
