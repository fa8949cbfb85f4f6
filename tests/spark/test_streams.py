"""Structured streaming: a sink that writes each batch once, and a source that follows a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.doors.streaming import SINK_CHECKPOINT
from hudi_core.errors import HudiError
from hudi_core.services.opening import open_table
from tests.samples import paired
from tests.spark.judges import judged
from tests.tables import TABLES

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "streamed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
}
STREAMED = "id long, ts long, price double"


class Source:
    """A folder of JSON files, each of which is one batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        folder.mkdir()

    def add(self, *rows: tuple[int, int, float]) -> None:
        named = [dict(zip(("id", "ts", "price"), row, strict=True)) for row in rows]
        text = "".join(json.dumps(row) + "\n" for row in named)
        new = self.folder / f".{self.files:03d}.json"
        new.write_text(text)
        new.rename(self.folder / f"{self.files:03d}.json")
        self.files += 1

    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema(STREAMED).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path / "incoming")


def run(
    frame: DataFrame,
    path: Path,
    checkpoint: Path,
    door: str = "sink",
    output: str = "append",
    **more: str,
) -> Any:
    """Run a query until it has written what is there; what it says of its batches."""
    options = {**OPTIONS, **more}
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).outputMode(output)
    writer = writer.trigger(availableNow=True)
    if door == "sink":
        query = writer.format("hudi").options(**options).start(str(path))
    else:
        query = writer.foreachBatch(hudi.stream_sink(path, options)).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return query


def judged_rows(path: Path, table_format: str) -> list[tuple[int, int, float]]:
    """The rows as readers of each format find them."""
    first, *others = (
        sorted((row["id"], row["ts"], row["price"]) for row in judged(path, name))
        for name in table_format.split(",")
    )
    assert all(one == first for one in others)
    return first


def commits(path: Path) -> int:
    return len(hudi.Table.open(path).timeline.completed_writes())


def forget_last_batch(checkpoint: Path) -> None:
    """Make the checkpoint that of a query that died just after its last batch."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink()


@pytest.mark.parametrize(("door", "table_format"), paired(["sink", "function"], TABLES))
def test_batches_are_written_once(
    source: Source, tmp_path: Path, door: str, table_format: str
) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    more = {"hoodie.table.format": table_format, "hoodie.datasource.write.operation": "insert"}
    source.add((1, 0, 1.0), (2, 0, 2.0))
    source.add((3, 0, 3.0))
    run(source.stream(), path, checkpoint, door, **more)
    assert judged_rows(path, table_format) == [(1, 0, 1.0), (2, 0, 2.0), (3, 0, 3.0)]
    assert commits(path) == 2

    # Spark repeats the batch that its checkpoint does not know to be done
    forget_last_batch(checkpoint)
    source.add((4, 0, 4.0))
    run(source.stream(), path, checkpoint, door, **more)
    expected = [(1, 0, 1.0), (2, 0, 2.0), (3, 0, 3.0), (4, 0, 4.0)]
    assert judged_rows(path, table_format) == expected
    assert commits(path) == 3

    opened = open_table(str(path), {})
    kept = [
        opened.client.read_commit(one).extra_metadata[SINK_CHECKPOINT]
        for one in opened.timeline().completed_writes()
    ]
    assert kept == [json.dumps({"default_single_writer": str(n)}) for n in range(3)]
    assert not list((path / ".hoodie/.temp").rglob("*.arrow"))
    # with a checkpoint of its own a query is another one, and its batches are too
    run(source.stream(), path, tmp_path / "another", door, **more)
    assert len(judged_rows(path, table_format)) == 8


def each_twice(
    source: Source, path: Path, checkpoint: Path, first: Mapping[str, str], other: Mapping[str, str]
) -> None:
    """Write every batch by two sinks on one table, the second with other ids."""
    sinks = [hudi.stream_sink(path, {**OPTIONS, **more}) for more in (first, other)]

    def both(batch: DataFrame, number: int) -> None:
        sinks[0](batch, number)
        sinks[1](batch.selectExpr("id + 100 AS id", "ts", "price"), number)

    writer = source.stream().writeStream.foreachBatch(both).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def test_two_sinks_of_one_query_have_names_of_their_own(source: Source, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    name = "hoodie.datasource.write.streaming.checkpoint.identifier"
    insert = {"hoodie.datasource.write.operation": "insert"}
    named = {**insert, name: "second"}
    source.add((1, 0, 1.0))
    source.add((2, 0, 2.0))
    each_twice(source, path, checkpoint, insert, named)
    expected = [(1, 0, 1.0), (2, 0, 2.0), (101, 0, 1.0), (102, 0, 2.0)]
    assert judged_rows(path, "native") == expected
    # in another run of the query other sinks repeat its last batch
    forget_last_batch(checkpoint)
    each_twice(source, path, checkpoint, insert, named)
    assert judged_rows(path, "native") == expected
    for number, same in enumerate((insert, named)):
        with pytest.raises(StreamingQueryException, match="another sink of the query has written"):
            each_twice(source, path, tmp_path / f"same-{number}", same, same)


def test_sinks_that_are_made_anew_for_every_batch(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "t"
    source.add((1, 0, 1.0))
    source.add((2, 0, 2.0))

    def one(batch: DataFrame, number: int) -> None:
        with pytest.raises(HudiError):
            hudi.stream_sink(path, OPTIONS)(batch.selectExpr("CAST(ts AS STRING) AS other"), number)
        hudi.stream_sink(path, OPTIONS)(batch, number)

    writer = source.stream().writeStream.foreachBatch(one).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    assert judged_rows(path, "native") == [(1, 0, 1.0), (2, 0, 2.0)]


def test_upserts(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "t"
    source.add((1, 5, 1.0), (2, 5, 2.0))
    source.add((1, 6, 1.5), (2, 4, 9.0), (3, 1, 3.0))
    run(source.stream(), path, tmp_path / "checkpoint")
    assert judged_rows(path, "native") == [(1, 6, 1.5), (2, 5, 2.0), (3, 1, 3.0)]


def test_complete_results_replace_the_table(source: Source, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    source.add((1, 5, 1.0), (2, 5, 2.0))
    source.add((3, 6, 4.0))

    def totals() -> DataFrame:
        return source.stream().groupBy("ts").sum("price").toDF("id", "price")

    run(totals(), path, checkpoint, output="complete", **{"hoodie.table.ordering.fields": "price"})
    found = hudi.Table.open(path).to_arrow(["id", "price"]).sort_by("id").to_pylist()
    assert found == [{"id": 5, "price": 3.0}, {"id": 6, "price": 4.0}]
    assert hudi.Table.open(path).timeline.completed_writes()[-1].action.value == "replacecommit"
    with pytest.raises(StreamingQueryException, match="each batch replaces the whole table"):
        run(
            totals(),
            path,
            tmp_path / "another",
            output="complete",
            **{"hoodie.datasource.write.operation": "upsert"},
        )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": "overwrite"}, "a stream adds to its table"),
        ({"txnAppId": "a", "txnVersion": "1"}, "has a number of its own"),
        ({"hoodie.datasource.write.streaming.retry.count": "none"}, "not a whole number"),
    ],
)
def test_options_that_the_sink_refuses(
    source: Source, tmp_path: Path, more: Mapping[str, str], message: str
) -> None:
    source.add((1, 5, 1.0))
    with pytest.raises(StreamingQueryException, match=message):
        run(source.stream(), tmp_path / "t", tmp_path / "checkpoint", **more)
    assert not (tmp_path / "t").exists()


# --- the source ----------------------------------------------------------------------------------


def written(path: Path, *rows: tuple[int, int, float], **options: str) -> None:
    ids, ts, price = zip(*rows, strict=True)
    hudi.write(
        pa.table({"id": ids, "ts": ts, "price": price}), path, options={**OPTIONS, **options}
    )


class Follower:
    """A query that keeps what it reads, batch by batch, in a folder of JSON files."""

    def __init__(self, spark: SparkSession, path: Path, checkpoint: Path, **options: str) -> None:
        self.spark, self.path, self.checkpoint, self.options = spark, path, checkpoint, options
        self.batches: list[list[tuple[Any, ...]]] = []
        self.columns: tuple[str, ...] = ("id", "price")

    def run(self) -> list[list[tuple[Any, ...]]]:
        """Read all that waits; the rows of each batch."""
        self.batches.clear()
        frame = self.spark.readStream.format("hudi").options(**self.options).load(str(self.path))

        def keep(batch: DataFrame, _: int) -> None:
            self.batches.append(sorted(tuple(row) for row in batch.select(*self.columns).collect()))

        writer = frame.writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [batch for batch in self.batches if batch]


@pytest.mark.parametrize("table_format", TABLES)
def test_the_source_follows_a_table(spark: SparkSession, tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    written(path, (1, 1, 1.0), (2, 1, 2.0), **{"hoodie.table.format": table_format})
    written(path, (2, 2, 2.5), (3, 1, 3.0))
    follower = Follower(spark, path, tmp_path / "checkpoint")
    assert follower.run() == [[(1, 1.0), (2, 2.5), (3, 3.0)]]
    assert follower.run() == []
    written(path, (3, 2, 3.5))
    written(path, (4, 1, 4.0))
    assert follower.run() == [[(3, 3.5), (4, 4.0)]]
    # after a death the same batch comes again
    forget_last_batch(tmp_path / "checkpoint")
    written(path, (5, 1, 5.0))
    assert follower.run() == [[(3, 3.5), (4, 4.0)], [(5, 5.0)]]


def test_where_the_source_begins_and_how_much_it_takes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(4):
        written(path, (number, 1, float(number)))
    second = hudi.Table.open(path).timeline.completed_writes()[1]
    start = "hoodie.datasource.streaming.startOffset"

    def follow(name: str, **options: str) -> Follower:
        return Follower(spark, path, tmp_path / name, **options)

    latest = follow("latest", **{start: "latest"})
    assert latest.run() == []
    since = follow("since", **{start: second.effective_completion_time, "maxFilesPerTrigger": "1"})
    assert since.run() == [[(2, 2.0)], [(3, 3.0)]]
    written(path, (9, 1, 9.0))
    assert latest.run() == [[(9, 9.0)]]
    assert since.run() == [[(9, 9.0)]]


def test_the_source_gives_the_change_feed(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, (1, 1, 1.0))
    follower = Follower(
        spark,
        path,
        tmp_path / "checkpoint",
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.query.incremental.format": "cdc",
        },
    )
    follower.columns = ("op", "before", "after")
    first = '{"id":1,"ts":1,"price":1.0}'
    assert follower.run() == [[("i", None, first)]]
    written(path, (1, 2, 1.5))
    assert follower.run() == [[("u", first, '{"id":1,"ts":2,"price":1.5}')]]


def test_the_source_says_what_was_cleaned(spark: SparkSession, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    written(path, (1, 1, 1.0), (2, 1, 2.0))
    follower = Follower(spark, path, checkpoint)
    follower.run()
    forget_last_batch(checkpoint)
    for ts in range(2, 5):
        written(path, (1, ts, float(ts)))
    hudi.Table.open(path).clean(options={"hoodie.clean.commits.retained": "1"})
    with pytest.raises(StreamingQueryException, match="HistoryExpiredError"):
        follower.run()
    follower.options["hoodie.datasource.read.incr.fallback.fulltablescan.enable"] = "true"
    # the row that changed again comes with the batch in which it did
    assert follower.run() == [[(2, 2.0)], [(1, 4.0)]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"as.of.instant": "20260101"}, "a stream goes on for ever"),
        ({"hoodie.datasource.streaming.startOffset": "soon"}, "no known form of a time"),
    ],
)
def test_options_that_the_source_refuses(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    written(tmp_path / "t", (1, 1, 1.0))
    with pytest.raises(StreamingQueryException, match=message):
        Follower(spark, tmp_path / "t", tmp_path / "checkpoint", **options).run()
