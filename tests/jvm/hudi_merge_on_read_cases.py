"""Random histories of merge-on-read tables that Hudi-Spark writes, read by us after each step.

Rows with their meta columns, base files alone, a past state, and filters with data skipping by the
metadata table that Hudi-Spark keeps, and without it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError
from tests.jvm.engines import Engine, EngineDiedError, EngineError
from tests.jvm.log_histories import CITIES, History, Kind, Options, kind_of
from tests.jvm.report import OwnFailureError, own_failure

COUNT: Final = 50
LEAST, MOST = 6, 12
WITHOUT: Final = {"hoodie.metadata.enable": "false"}
READ_OPTIMIZED: Final = {"hoodie.datasource.query.type": "read_optimized"}
OWN: Final = ["id", "fare"]
PLAIN: Final = Kind(
    version=9,
    partitioned=False,
    index="SIMPLE",
    ordering="ts",
    payload=None,
    mode="",
    blocks="avro",
    positions=True,
    metadata=False,
    deletes=False,
    small_files=False,
)


@pytest.mark.parametrize(
    "number", range(COUNT), ids=lambda number: f"{number:02}-{kind_of(number)}"
)
def test_a_history(hudi_spark: Engine, number: int, tmp_path: Path) -> None:
    history = History(number, kind_of(number), hudi_spark, tmp_path / "table")
    history.begin()
    is_read_like_theirs(history)
    for _ in range(history.drawn.randrange(LEAST, MOST + 1)):
        history.step()
        is_read_like_theirs(history)


# --- data skipping --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_updates_that_bring_rows_into_a_range(
    hudi_spark: Engine, version: int, blocks: str, tmp_path: Path
) -> None:
    """Base files do not have the values; the ranges of logs are those that Hudi-Spark keeps."""
    kind = replace(PLAIN, version=version, blocks=blocks, partitioned=True, metadata=True)
    history = History(2, kind, hudi_spark, tmp_path / "t")
    history.begin()
    history.taken += ["later"] * 9
    rows = history.rows([0, 1], deletes=False).drop_columns("fare")
    fares = pa.array([5e6, 6e6])
    rows = rows.sort_by("id").append_column("fare", fares).select(history.schema.names)
    history.save("upsert", rows.slice(0, 1))
    history.merge_into(rows.slice(1), ["fare", "ts"])
    history.sql("update {t} set fare = 7000000, ts = ts + 20 where id = 'k002'")
    table = hudi.Table.open(history.path)
    for number in range(4):
        wanted = pc.field("fare") >= 5e6 + number * 1e6
        slices = table.file_slices(filter=wanted)
        assert {one.group.partition_path for one in slices} == set(CITIES[number:])
        keys = [f"k{key:03}" for key in range(number, 3)]
        assert sorted(table.to_arrow("id", wanted)["id"].to_pylist()) == keys
    # the range of a slice holds what is between its base file and its logs
    assert len(table.file_slices(filter=pc.field("fare") == 5e6)) == len(CITIES)
    assert table.count(pc.field("fare") == 5e6) == 1


# --- what Hudi-Spark writes and cannot read -------------------------------------------------------


@own_failure("Hudi-Spark looks for `_hoodie_is_deleted` in updates of other columns")
@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_updates_of_some_columns_beside_a_delete_column(
    hudi_spark: Engine, blocks: str, tmp_path: Path
) -> None:
    """Hudi-Spark fails on those in Avro blocks, and loses the rows of those in Parquet blocks."""
    history = History(0, replace(PLAIN, deletes=True, blocks=blocks), hudi_spark, tmp_path / "t")
    history.begin()
    stored = {row["id"]: row for row in hudi.Table.open(history.path).to_arrow(OWN).to_pylist()}
    history.taken += ["later"] * 9  # by which the ordering values are greater
    given = history.rows([3, 5], deletes=False)
    history.merge_into(given, ["fare", "ts"])
    for row in given.to_pylist():
        stored[row["id"]]["fare"] = row["fare"]
    found = hudi.Table.open(history.path).to_arrow(OWN).to_pylist()
    assert {row["id"]: row for row in found} == stored
    theirs = of_hudi_spark(history)
    if stored.keys() - set(theirs["id"].to_pylist()) == set(given["id"].to_pylist()):
        raise OwnFailureError("the updated rows are gone")
    assert_alike(hudi.Table.open(history.path).to_arrow(), theirs, "")


def of_hudi_spark(history: History) -> pa.Table:
    """Rows as Hudi-Spark reads them, unless it fails."""
    try:
        return history.engine.read(history.path)
    except EngineError as error:
        raise OwnFailureError(str(error)) from error


DELETED: Final = own_failure("Hudi-Spark looks for the columns of the delete, which has none")


@pytest.mark.parametrize("ordering", ["ts", pytest.param("", marks=DELETED)])
def test_updates_of_a_row_that_logs_delete(
    hudi_spark: Engine, ordering: str, tmp_path: Path
) -> None:
    """Hudi finds the key in the base file, of which the row is there again."""
    history = History(3, replace(PLAIN, ordering=ordering), hudi_spark, tmp_path / "t")
    history.begin()
    stored = {row["id"]: row for row in hudi.Table.open(history.path).to_arrow(OWN).to_pylist()}
    history.save("delete", history.rows([0]))
    history.taken += ["later"] * 9
    given = history.rows([0], deletes=False)
    history.merge_into(given, ["fare", *([ordering] if ordering else [])])
    stored["k000"]["fare"] = given["fare"][0].as_py()
    found = hudi.Table.open(history.path).to_arrow(OWN).to_pylist()
    assert {row["id"]: row for row in found} == stored
    assert_alike(hudi.Table.open(history.path).to_arrow(), of_hudi_spark(history), "")


ORDERED: Final = pa.schema([(name, pa.string()) for name in ("id", "order", "word")])
STRINGS: Final = own_failure(
    "Hudi-Spark compares strings of Parquet blocks after their memory has other content"
)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("blocks", ["avro", pytest.param("parquet", marks=STRINGS)])
def test_strings_that_order_rows(
    hudi_spark: Engine, version: int, blocks: str, tmp_path: Path
) -> None:
    kind = replace(PLAIN, version=version, ordering="order", blocks=blocks)
    history = History(0, kind, hudi_spark, tmp_path / "t")
    before = [{"id": f"k{n}", "order": f"b{n % 5}", "word": "before"} for n in range(12)]
    after = [{"id": f"k{n}", "order": f"b{n * 3 % 5}", "word": "x" * (n % 4)} for n in range(12)]
    for operation, rows in (("insert", before), ("upsert", after)):
        history.save(operation, pa.Table.from_pylist(rows, ORDERED))
    pairs = zip(before, after, strict=True)
    right = [(new if new["order"] >= old["order"] else old)["word"] for old, new in pairs]
    found = hudi.Table.open(history.path).to_arrow(["id", "word"]).to_pylist()
    assert sorted(found, key=repr) == sorted(
        ({"id": row["id"], "word": word} for row, word in zip(before, right, strict=True)), key=repr
    )
    theirs = dict(hudi_spark.values(history.path, ["id", "word"]))
    if [theirs[row["id"]] for row in before] != right:
        raise OwnFailureError(str(theirs))


@own_failure("Hudi-Spark writes updates of rows that are not there, and reading ends its Java")
def test_updates_of_no_row(hudi_spark: Engine, tmp_path: Path) -> None:
    """Where keys have buckets, `MERGE INTO` does not look whether there is a row to update."""
    history = History(1, replace(PLAIN, index="BUCKET"), hudi_spark, tmp_path / "t")
    history.begin()
    history.merge_into(history.rows([900], deletes=False), ["fare", "ts"])
    with pytest.raises(CorruptMetadataError, match="a partial update in its logs has no row"):
        hudi.Table.open(history.path).to_arrow()
    try:
        hudi_spark.read(history.path)
    except (EngineError, EngineDiedError) as error:
        raise OwnFailureError(str(error)) from error


@own_failure("Hudi-Spark does not cluster buckets of a hash ring without a partition")
def test_a_clustering_of_buckets_without_partitions(hudi_spark: Engine, tmp_path: Path) -> None:
    """It plans to split or join them, and fails when it runs the plan; the rows stay."""
    history = History(20, replace(PLAIN, index="CONSISTENT"), hudi_spark, tmp_path / "t")
    history.begin()
    error = ""
    try:
        history.sql("call run_clustering(table => '{t}')")
    except EngineError as found:
        error = str(found)
    is_read_like_theirs(history)
    if error:
        assert "Partition should not be null or empty" in error
        raise OwnFailureError(error)


# --- the judge ------------------------------------------------------------------------------------


def is_read_like_theirs(history: History) -> None:
    """Compare every way to read a table with what Hudi-Spark reads."""
    drawn = random.Random(f"reads {history.number} {len(history.taken)}")
    path, engine, said = history.path, history.engine, " > ".join(history.taken)
    metadata = {"hoodie.metadata.enable": str(history.kind.metadata).lower()}
    theirs = engine.read(path, metadata)
    history.keys = frozenset(int(one[1:]) for one in theirs["id"].to_pylist())
    table, plain = hudi.Table.open(path), hudi.Table.open(path, WITHOUT)
    ours = table.to_arrow()
    assert ours.column_names == theirs.column_names, said
    assert_alike(ours, theirs, said)
    assert table.count() == theirs.num_rows, said
    bases = hudi.read(None, path, READ_OPTIMIZED)
    assert_alike(bases, engine.read(path, {**metadata, **READ_OPTIMIZED}), f"bases, {said}")
    times = [one.requested_time for one in table.timeline.completed_writes()]
    if len(times) > 1 and drawn.random() < 0.5:
        is_read_as_of(history, drawn.choice(times[:-1]), metadata)
    for _ in range(4):
        wanted = condition(theirs, drawn)
        right = texts(theirs.filter(wanted))
        for one in (table, plain):
            assert texts(one.to_arrow(filter=wanted)) == right, f"{wanted}, {said}"


def is_read_as_of(history: History, time: str, options: Options) -> None:
    """Compare a past state, unless Hudi-Spark refuses it after a clean."""
    said = f"as of {time}, {' > '.join(history.taken)}"
    try:
        theirs = history.engine.read(history.path, {**options, "as.of.instant": time})
    except EngineError as error:
        if "Cleaner cleaned up the timestamp of interest" in str(error):
            return
        raise
    ours = hudi.Table.open(history.path).to_arrow(as_of=time)
    # Hudi-Spark reads a past state in the columns of its time
    later = [name for name in ours.column_names if name not in theirs.column_names]
    assert all(ours[name].null_count == ours.num_rows for name in later), said
    assert_alike(ours.drop_columns(later), theirs, said)


def condition(rows: pa.Table, drawn: random.Random) -> pc.Expression:
    """A condition on values of some row, such as one that an update brought."""
    names = [
        *("id", "ts", "city", "name", "fare", "number", "price", "at", "day"),
        "_hoodie_record_key",
    ]
    name = drawn.choice(names)
    values = [one for one in rows[name].to_pylist() if one is not None]
    column = pc.field(name)
    if not values:
        return column.is_null()
    value = pa.scalar(drawn.choice(values), rows.schema.field(name).type)
    found: pc.Expression = drawn.choice(
        [column == value, column == value, column > value, column <= value, column.is_null()]
    )
    if drawn.random() < 0.3:
        found = found & condition(rows, drawn)
    return found


def assert_alike(ours: pa.Table, theirs: pa.Table, said: str) -> None:
    """Compare rows, in any order, and name those that differ."""
    found, wanted = texts(ours), texts(theirs)
    if found != wanted:
        more, less = list(found), list(wanted)
        for one in found:
            if one in less:
                less.remove(one)
                more.remove(one)
        raise AssertionError(f"{said}\nours: {_shown(more)}\ntheirs: {_shown(less)}")


def _shown(rows: Sequence[str]) -> str:
    return "\n  ".join([f"{len(rows)} rows", *rows[:3]])


def texts(rows: pa.Table) -> list[str]:
    """Rows as strings, sorted."""
    return sorted(str(sorted(row.items())) for row in rows.to_pylist())
