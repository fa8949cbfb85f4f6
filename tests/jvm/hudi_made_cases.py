"""Hudi-Spark's own tables.

Tables that Hudi-Spark made, with its own defaults but for what a case is about. This project reads
them as Hudi-Spark does, finds nothing wrong with them, writes them on, and Hudi-Spark after it.
What it does not write is refused by its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.errors import UnsupportedTableError
from tests.formats.delta_tables import content
from tests.jvm.commands import succeed
from tests.jvm.engines import Engine
from tests.jvm.histories import (
    LIFE,
    Model,
    Step,
    changes_by_hudi,
    encoded_changes,
    live,
    read_by_hudi,
    read_by_us,
    since_options,
)
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.skipping import WAYS
from tests.jvm.writers import HudiSpark, Shape


@dataclass(frozen=True)
class Asked(Shape):
    """What a user asks of Hudi-Spark, who leaves the rest to it."""

    @property
    def given(self) -> dict[str, str]:
        """The options."""
        own = {} if self.version == "9" else {"hoodie.write.table.version": self.version}
        return {
            **{name: value for name, value in super().given.items() if name in _ASKED},
            **own,
            **({} if self.version == "9" else {"hoodie.write.auto.upgrade": "false"}),
            **self.options,
        }


_ASKED: Final = (
    "hoodie.table.name",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.table.ordering.fields",
)
HIVE: Final = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ONE_KEY: Final = {"hoodie.write.complex.keygen.validation.enable": "false"}
"""Hudi-Spark takes a complex generator of one key field only where this is said."""
ENCODED: Final = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
PLAIN: Final = Asked("9", partition="city", ordering="ts", options=ENCODED)
SERVICES: Final = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "2",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


def with_options(*options: Mapping[str, str], **more: Any) -> Asked:
    """The plain table with more options."""
    merged = {name: value for one in (PLAIN.options, *options) for name, value in one.items()}
    return replace(PLAIN, options=merged, **more)


MADE_TABLES: Final[Mapping[str, Asked]] = {
    "plain": PLAIN,
    "hive": with_options(HIVE),
    "complex, hive": with_options(HIVE, key="id,day"),
    "complex": with_options(key="id,day"),
    "two levels, hive": with_options(HIVE, ONE_KEY, partition="city,flag"),
    "no partition": with_options(partition=""),
    "no ordering field": with_options(ordering=""),
    "bucket index": with_options(
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    ),
    "bloom index": with_options(
        {"hoodie.index.type": "BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"}
    ),
    "record index": with_options(
        {
            "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
            "hoodie.metadata.global.record.level.index.enable": "true",
        }
    ),
    "record index by partitions": with_options(
        {
            "hoodie.index.type": "RECORD_LEVEL_INDEX",
            "hoodie.metadata.record.level.index.enable": "true",
        }
    ),
    "no meta columns": with_options({"hoodie.populate.meta.fields": "false"}),
    "no metadata table": with_options({"hoodie.metadata.enable": "false"}),
    "clustered, cleaned, archived, compacted": with_options(SERVICES),
}
IN_BOTH_VERSIONS: Final = (
    "plain",
    "no meta columns",
    "record index",
    "clustered, cleaned, archived, compacted",
)
"""The others are made in one version, by turns."""
WITH_HISTORY: Final = ("plain", "two levels, hive", "no partition")
"""Those whose past states and changes are compared, commit by commit."""


def made_tables() -> Iterator[tuple[str, str]]:
    for number, table in enumerate(MADE_TABLES):
        both = table in IN_BOTH_VERSIONS
        yield from ((table, one) for one in (("8", "9") if both else ("89"[number % 2],)))


def agree(engine: Engine, path: Path, model: Model, turn: str) -> None:
    """Both readers see what the model says, and the commands that validate find nothing."""
    assert read_by_us(path) == model.content, turn
    assert read_by_hudi(engine, path) == model.content, turn
    check(path)


def check(path: Path) -> None:
    """Run the commands that validate."""
    succeed("table validate", path)
    if (path / ".hoodie" / "metadata").exists() and not is_old(path):
        succeed("metadata validate", path)


def is_old(path: Path) -> bool:
    return hudi.Table.open(str(path)).config.version < 8


@pytest.mark.parametrize(("table", "version"), [*made_tables()])
def test_read_and_written_on(hudi_spark: Engine, tmp_path: Path, table: str, version: str) -> None:
    """Rows, history and changes as Hudi-Spark reads them; then we write, and Hudi-Spark again."""
    path, shape = tmp_path / "table", replace(MADE_TABLES[table], version=version)
    model = Model(is_ordered=bool(shape.ordering))
    write = HudiSpark(hudi_spark)
    possible = {"insert", "upsert", "bulk_insert", "delete"}
    if shape.partition == "city":
        possible |= {"insert_overwrite", "delete_partition"}
    if table == "bucket index":
        possible -= {"bulk_insert"}  # by which Hudi-Spark makes a second file of a bucket
    steps = [one for one in LIFE if one.operation in possible]
    for _ in live(steps, write, path, shape, model):
        pass
    agree(hudi_spark, path, model, "made")
    if table in WITH_HISTORY:
        same_history(hudi_spark, path)
    # Hudi stores no index, and a table of buckets takes no other
    index = shape.options if table == "bucket index" else {}
    for step in (Step("upsert", [0, 5, 6, 200, 201], ts=50), Step("delete", [5, 20])):
        data = step.rows()
        getattr(hudi.Table.open(str(path), index), step.operation)(data)
        model.take(step)
        agree(hudi_spark, path, model, f"our {step.operation}")
    for step in (Step("upsert", [0, 6, 201, 203], ts=51), Step("delete", [200])):
        step.take(write, path, shape)
        model.take(step)
        agree(hudi_spark, path, model, f"its {step.operation}")
    for way, options in WAYS.items():
        assert read_by_hudi(hudi_spark, path, options) == model.content, way


def same_history(engine: Engine, path: Path) -> None:
    """Every past state, and the changes since each, are those that Hudi-Spark reads."""
    table = hudi.Table.open(str(path))
    for instant in table.timeline.completed_writes():
        past = {"as.of.instant": instant.requested_time}
        assert read_by_us(path, instant.requested_time) == read_by_hudi(engine, path, past)
        assert content(table.incremental(instant)) == changes_by_hudi(engine, path, instant)


@own_failure("Hudi-Spark takes the name of an encoded partition for the value of its column")
@pytest.mark.parametrize("version", ["8", "9"])
def test_changes_of_encoded_partitions(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Incremental queries of partitions whose names are encoded."""
    path = tmp_path / "table"
    shape = Shape(version, partition="city", ordering="ts", options=ENCODED)
    first = encoded_changes(HudiSpark(hudi_spark), path, shape)
    assert hudi.Table.open(str(path)).incremental(first)["city"].to_pylist() == ["a%b"]
    found = hudi_spark.values(path, ["city"], options=since_options(first))
    if found == [("a%25b",)]:
        raise OwnFailureError("the value is a%b")
    assert found == [("a%b",)]


# --- by SQL --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["8", "9"])
def test_made_by_sql(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """CREATE TABLE, INSERT, UPDATE, MERGE and DELETE; then we write, and SQL again."""
    path, name = tmp_path / "table", f"made_by_sql_{version}"
    with hudi_spark.configured({"hoodie.write.auto.upgrade": "false"}):
        hudi_spark.sql(
            f"create table {name} (id int, note string, fare double, ts bigint, city string) "
            f"using hudi partitioned by (city) location 'file://{path}' tblproperties ("
            f"primaryKey = 'id', orderingFields = 'ts', 'hoodie.write.table.version' = '{version}')"
        )
        hudi_spark.sql(f"insert into {name} values (1, 'a', 1.5, 1, 'A'), (2, 'b', 2.5, 1, 'B/C')")
        hudi_spark.sql(f"insert into {name} values (3, null, null, 1, 'A')")
        hudi_spark.sql(f"update {name} set note = 'changed', ts = 2 where id = 2")
        hudi_spark.sql(
            f"merge into {name} t using (select 1 id, 'm' note, 9.5 fare, 3L ts, 'A' city) s "
            "on t.id = s.id when matched then update set * when not matched then insert *"
        )
        hudi_spark.sql(f"delete from {name} where id = 3")
        rows: list[tuple[Any, ...]] = [(1, "m", 9.5, 3, "A"), (2, "changed", 2.5, 2, "B/C")]
        assert sorted(hudi_spark.sql(f"select id, note, fare, ts, city from {name}")) == rows
        assert of_sql(path) == rows
        check(path)
        table = hudi.Table.open(str(path))
        new = {"id": [2, 4], "note": ["ours", None], "fare": [4.0, 4.5], "ts": [5, 5]}
        data = pa.table({**new, "city": ["B/C", "D"]}).cast(table.schema)
        table.upsert(data)
        rows = [rows[0], (2, "ours", 4.0, 5, "B/C"), (4, None, 4.5, 5, "D")]
        assert of_sql(path) == rows
        hudi_spark.sql(f"refresh table {name}")
        assert sorted(hudi_spark.sql(f"select id, note, fare, ts, city from {name}")) == rows
        hudi_spark.sql(f"update {name} set note = 'after' where city = 'D'")
        rows[2] = (4, "after", 4.5, 5, "D")
        assert of_sql(path) == rows
        check(path)
        hudi_spark.sql(f"drop table {name}")


def of_sql(path: Path) -> list[tuple[Any, ...]]:
    columns = ("id", "note", "fare", "ts", "city")
    found = hudi.Table.open(str(path)).to_arrow(columns=columns).to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in found)


@pytest.mark.parametrize("version", ["8", "9"])
def test_made_without_a_key(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """A table whose record keys Hudi-Spark generates takes our inserts."""
    path = tmp_path / "table"
    shape = with_options(key="", ordering="", version=version)
    write = HudiSpark(hudi_spark)
    Step("insert", range(6)).take(write, path, shape)
    Step("insert", range(6, 9)).take(write, path, shape)
    check(path)
    hudi.Table.open(str(path)).insert(Step("insert", range(20, 23)).rows())
    Step("insert", range(30, 33)).take(write, path, shape)
    model = Model()
    for keys in (range(9), range(20, 23), range(30, 33)):
        model.take(Step("insert", keys))
    agree(hudi_spark, path, model, "both inserted")
    generated = hudi_spark.values(path, ["_hoodie_record_key"])
    assert len(set(generated)) == len(model.rows)


# --- what is not written, or not read -----------------------------------------------------------


def make(engine: Engine, path: Path, shape: Shape) -> Counter[str]:
    """Let Hudi-Spark make a table of two commits, and return what it reads."""
    write = HudiSpark(engine)
    Step("insert", range(8)).take(write, path, shape)
    Step("upsert", [0, 1, 9], ts=2).take(write, path, shape)
    return read_by_hudi(engine, path)


def refused(path: Path, words: str) -> None:
    """Every write is refused by name, and leaves no trace."""
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}
    table = hudi.Table.open(str(path))
    rows = Step("", [0]).rows()
    for write in (table.upsert, table.insert, table.delete):
        with pytest.raises(UnsupportedTableError, match=words):
            write(rows)
    after = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}
    assert after == before


def test_version_6(hudi_spark: Engine, tmp_path: Path) -> None:
    """Tables of version 6 are read; writes, and commands on their metadata table, are refused."""
    path = tmp_path / "table"
    model = Model()
    shape = with_options(version="6")
    for _ in live(LIFE, HudiSpark(hudi_spark), path, shape, model):
        pass
    agree(hudi_spark, path, model, "made")
    same_history(hudi_spark, path)
    assert (path / ".hoodie" / "metadata").exists()
    done = CliRunner().invoke(app, ["metadata", "validate", str(path)])
    assert done.exit_code == 1
    assert "version 6, whose metadata tables are not read" in " ".join(done.output.split())
    refused(path, "version 6")


@pytest.mark.parametrize("version", ["8", "9"])
def test_dropped_partition_columns(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Tables whose files lack the partition columns are refused by name, and validated."""
    path = tmp_path / "table"
    dropped = {"hoodie.datasource.write.drop.partition.columns": "true"}
    make(hudi_spark, path, with_options(dropped, HIVE, version=version))
    refused(path, "partition columns")
    with pytest.raises(UnsupportedTableError, match="partition columns"):
        hudi.Table.open(str(path)).to_arrow()
    check(path)


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    "options",
    [{}, {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}],
    ids=["plain", "consistent hashing"],
)
def test_merge_on_read(
    hudi_spark: Engine, tmp_path: Path, options: Mapping[str, str], version: str
) -> None:
    """Merge-on-read tables are read, validated, and their writes refused by name."""
    path = tmp_path / "table"
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    make(hudi_spark, path, with_options(kind, options, version=version))
    refused(path, "MERGE_ON_READ")
    names = ["id", "_hoodie_commit_seqno"]
    theirs = hudi_spark.read(path).select(names).sort_by(names[0])
    assert hudi.Table.open(str(path)).to_arrow(names).sort_by(names[0]).equals(theirs)
    check(path)
