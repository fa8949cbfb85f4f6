"""Delta-Spark: tables of the format Delta.

What Delta-Spark does to a table is refused by itself, or harmless, or named by our next write:
until then our readers see what they saw before, and `hudi table repair` takes rows of it in, or
back, as it is asked to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import hudi_core as hudi
from hudi_core.errors import ForeignCommitError
from hudi_core.model.files import BaseFile
from tests.formats.columns import TYPED
from tests.formats.delta_tables import content, delta_table, row
from tests.jvm.commands import succeed
from tests.jvm.engines import Engine, EngineError
from tests.jvm.filters import Filter, among, compare, is_not_null, is_null, starts_with

CITIES: Final = ("rome", "São Paulo/x", "new york", "a%b", None)
NO_CHECK: Final = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


def typed(*keys: int, ts: int = 0) -> pa.Table:
    """Rows whose key decides their city, of letters beyond ASCII among others."""
    made = [{**row(key, ts, key / 4), "city": CITIES[key % len(CITIES)]} for key in keys]
    return pa.Table.from_pylist(made, TYPED)


def by_spark(engine: Engine, path: Path, of: str = "") -> Counter[str]:
    return content(engine.query(f"select * from delta.`{path}` {of}"))


def ours(path: Path, as_of: Any = None) -> Counter[str]:
    return content(hudi.Table.open(str(path)).to_arrow(as_of=as_of))


def life(table: hudi.Table) -> Iterator[str]:
    """Operations one by one; yield the name of each when it is done."""
    done: list[tuple[str, Callable[[], Any]]] = [
        ("insert", lambda: table.insert(typed(*range(12)))),
        ("upsert", lambda: table.upsert(typed(1, 2, 3, 20, 21, ts=1))),
        ("delete", lambda: table.delete(typed(4, 5))),
        ("bulk_insert", lambda: table.bulk_insert(typed(*range(30, 36)))),
        ("insert_overwrite", lambda: table.insert_overwrite(typed(6, 11, ts=2))),
        ("upsert again", lambda: table.upsert(typed(1, 30, 50, ts=3))),
        ("rollback", lambda: table.rollback(table.timeline.completed_writes()[-1])),
        ("upsert after it", lambda: table.upsert(typed(2, 51, ts=4))),
        # so that a checkpoint is read
        *((f"turn {ts}", lambda ts=ts: table.upsert(typed(7, 60 + ts, ts=ts))) for ts in range(8)),
    ]
    for name, run in done:
        run()
        yield name


# --- reading -------------------------------------------------------------------------------------


def filters() -> list[Filter]:
    text, at = pa.string(), TYPED.field("at").type
    price, day = TYPED.field("price").type, pa.date32()
    some = row(8)
    return [
        compare("id", "=", "k008", text),
        among("id", ["k001", "k030", "nobody"], text),
        *(compare("city", "=", city, text) for city in CITIES if city is not None),
        *(is_null("city"), is_not_null("inner"), starts_with("city", "S")),
        *(compare("value", sign, 2.0, pa.float64()) for sign in ("=", "<", ">")),
        *(compare("price", sign, some["price"], price) for sign in ("=", ">=")),
        *(compare("at", sign, some["at"], at) for sign in ("=", "<", ">")),
        *(compare("day", "<=", some["day"], day), compare("ts", ">", 0, pa.int64())),
        *(compare("flag", "=", True, pa.bool_()), compare("inner.x", ">", 7, pa.int32())),
        compare("city", "=", "rome", text) & compare("ts", "=", 0, pa.int64()),
    ]


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "one folder"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"], ids=["files", "vectors"])
def test_rows_and_filters(
    delta_spark: Engine, tmp_path: Path, kind: str, partitioned: bool
) -> None:
    """Rows after every operation, and filters on columns of every kind."""
    path = tmp_path / "table"
    more = {"hoodie.datasource.write.table.type": kind}
    for operation in life(delta_table(path, partitioned=partitioned, more=more)):
        assert by_spark(delta_spark, path) == ours(path), operation
    held = hudi.Table.open(str(path)).to_arrow().to_pylist()
    asked = filters()
    found = delta_spark.answers(path, ["id"], [one.sql for one in asked], source="delta")
    answers = {
        one.sql: (answer.error or answer.rows, one.ids(held))
        for one, answer in zip(asked, found, strict=True)
    }
    assert not {sql: both for sql, both in answers.items() if both[0] != both[1]}
    [(count, most)] = delta_spark.sql(f"select count(*), max(ts) from delta.`{path}`")
    assert (count, most) == (len(held), max(one["ts"] for one in held))


def test_a_table_with_vectors_of_spark(delta_spark: Engine, tmp_path: Path) -> None:
    """It is adopted, and goes on with vectors of both."""
    path = tmp_path / "table"
    delta_spark.sql(
        f"create table delta.`{path}` (id bigint, ts bigint) using delta "
        "tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    delta_spark.sql(f"insert into delta.`{path}` select /*+ coalesce(1) */ id, 0 from range(9000)")
    delta_spark.sql(f"delete from delta.`{path}` where id % 3 = 0")
    delta_spark.sql(f"delete from delta.`{path}` where id = 1")
    assert [*path.glob("**/deletion_vector_*.bin")]

    def agreed() -> Counter[Any]:
        found = Counter(
            (one["id"], one["ts"]) for one in hudi.Table.open(str(path)).to_arrow().to_pylist()
        )
        read = delta_spark.sql(f"select id, ts from delta.`{path}`")
        assert Counter(map(tuple, read)) == found
        return found

    hudi.Table.adopt(path, record_key="id", ordering_field="ts")
    held = agreed()
    assert held == Counter((key, 0) for key in range(9000) if key % 3 and key != 1)
    changed = pa.table({"id": [*range(5, 6000, 2)], "ts": [1] * 2998})
    hudi.Table.open(str(path)).upsert(changed)
    held = Counter({one for one in held if not (5 <= one[0] < 6000 and one[0] % 2)})
    held |= Counter(zip(*changed.to_pydict().values(), strict=True))
    assert agreed() == held
    delta_spark.sql(f"vacuum delta.`{path}` lite")
    delta_spark.sql(f"vacuum delta.`{path}`")
    hudi.Table.open(str(path)).compact()
    assert agreed() == held
    hudi.Table.open(str(path)).delete(pa.table({"id": [2, 5, 8998]}))
    assert agreed() == held - Counter([(2, 0), (5, 1), (8998, 0)])


def test_looking_for_nan(delta_spark: Engine, tmp_path: Path) -> None:
    """NaN equals NaN and is greater than every number, alone in a file and among numbers."""
    path, kind = tmp_path / "table", pa.float64()
    batches: list[dict[int, float | None]] = [
        {1: math.nan},
        {2: 5.0},
        {3: 1.0, 4: math.nan},
        {5: 2.0, 6: None},
    ]
    held = [{"id": key, "x": value} for batch in batches for key, value in batch.items()]
    table = hudi.Table.create(
        str(path),
        pa.schema([("id", pa.int64()), ("x", kind)]),
        record_key="id",
        format="delta",
        options={"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"},
    )
    for batch in batches:
        table.insert(pa.table({"id": list(batch), "x": list(batch.values())}))
    signs = (("=", math.nan), (">", 4.0), ("!=", 1.0), ("<", 2.0), ("=", 1.0))
    asked = [compare("x", sign, value, kind) for sign, value in signs]
    found = delta_spark.answers(path, ["id"], [one.sql for one in asked], source="delta")
    answers = {one.sql: answer.rows for one, answer in zip(asked, found, strict=True)}
    assert answers == {one.sql: one.ids(held) for one in asked}


def test_history_and_time_travel(delta_spark: Engine, tmp_path: Path) -> None:
    """Each version of an instant is the state of that instant, and details add up."""
    path = tmp_path / "table"
    for _ in life(delta_table(path, more={"hoodie.cleaner.commits.retained": "30"})):
        pass
    table = hudi.Table.open(str(path))
    versions = {
        one["hudi.instant"]: one["version"]
        for one in DeltaTable(str(path)).history()
        if one.get("hudi.action") in ("commit", "replacecommit")
    }
    writes = table.timeline.completed_writes()
    assert {one.requested_time for one in writes} <= versions.keys()
    for instant in writes:
        version = versions[instant.requested_time]
        past = by_spark(delta_spark, path, f"version as of {version}")
        assert past == ours(path, as_of=instant), instant
    history = delta_spark.query(f"describe history delta.`{path}`")
    assert set(history["version"].to_pylist()) >= set(versions.values())
    names = ("format", "numFiles", "sizeInBytes", "minReaderVersion", "minWriterVersion")
    [described] = delta_spark.query(f"describe detail delta.`{path}`").to_pylist()
    detail = tuple(described[name] for name in names)
    files = [one.base_file for one in table.file_slices()]
    size = sum(one.size for one in files if one is not None)
    assert detail == ("delta", len(files), size, 1, 2)


def test_added_columns(delta_spark: Engine, tmp_path: Path) -> None:
    """Columns and members that alter and rows add."""
    path = tmp_path / "table"
    table = delta_table(path)
    table.insert(typed(*range(6)))
    table.alter(add_columns={"inner.more": pa.date32(), "price2": pa.decimal128(38, 10)})
    new = {**typed(9).to_pylist()[0], "late": pa.scalar(1).as_py(), "price2": None}
    new["inner"] = {**new["inner"], "more": None}
    data = pa.Table.from_pylist([new], table.schema.append(pa.field("late", pa.timestamp("us"))))
    table.upsert(data)
    held = hudi.Table.open(str(path)).to_arrow()
    names = [name for name in held.column_names if not name.startswith("_hoodie_")]
    found = delta_spark.query(f"select * from delta.`{path}`")
    assert content(found, names) == content(held, names)
    asked = [is_null("late"), is_not_null("late"), is_null("inner.more")]
    answers = delta_spark.answers(path, ["id"], [one.sql for one in asked], source="delta")
    right = [one.ids(held.to_pylist()) for one in asked]
    assert [answer.error or answer.rows for answer in answers] == right


# --- what Delta-Spark does to a table ------------------------------------------------------------

HARMLESS: Final[Mapping[str, str]] = {
    "vacuum": "vacuum delta.`{0}`",
    "vacuum lite": "vacuum delta.`{0}` lite",
    "vacuum, dry run": "vacuum delta.`{0}` dry run",
    "vacuum retain 0, dry run": "vacuum delta.`{0}` retain 876000 hours dry run",
}
NAMED: Final[Mapping[str, str]] = {
    "insert": "insert into delta.`{0}` select * from delta.`{0}` where id = 'k001'",
    "delete": "delete from delta.`{0}` where id = 'k001'",
    "delete of a partition": "delete from delta.`{0}` where city = 'São Paulo/x'",
    "update": "update delta.`{0}` set value = -1 where id in ('k001', 'k002')",
    "merge": (
        "merge into delta.`{0}` t using (select 'k001' id) s on t.id = s.id "
        "when matched then update set value = -2"
    ),
    "insert overwrite": "insert overwrite delta.`{0}` select * from delta.`{0}` where ts = 1",
    "create or replace": (
        "create or replace table delta.`{0}` using delta as select * from delta.`{0}` where ts = 1"
    ),
    "restore": "restore table delta.`{0}` to version as of 1",
    "truncate": "delete from delta.`{0}`",
}
"""What stops our writes until it is taken in, or dropped."""
SAME_ROWS: Final[Mapping[str, str]] = {
    "optimize": "optimize delta.`{0}`",
    "optimize, z-order": "optimize delta.`{0}` zorder by (id)",
    "add column": "alter table delta.`{0}` add column (more int)",
    "some property": "alter table delta.`{0}` set tblproperties ('some.key' = 'value')",
    "deletion vectors": (
        "alter table delta.`{0}` set tblproperties ('delta.enableDeletionVectors' = 'true')"
    ),
    "column mapping": (
        "alter table delta.`{0}` set tblproperties ('delta.columnMapping.mode' = 'name')"
    ),
}
"""What stops our writes, and holds no change of rows that a repair might drop."""


def prepared(path: Path) -> Counter[str]:
    """Make a table of several versions, of small files that OPTIMIZE puts together."""
    table = delta_table(path, more={"hoodie.parquet.small.file.limit": "0"})
    table.insert(typed(*range(10)))
    table.insert(typed(*range(10, 20)))
    table.upsert(typed(1, 2, 25, ts=1))
    return ours(path)


def goes_on(engine: Engine, path: Path) -> None:
    """Write once more; all readers agree, and validation finds nothing."""
    written_on(engine, path)
    succeed("table validate", path)


def written_on(engine: Engine, path: Path) -> None:
    """Write once more; all readers agree."""
    hudi.Table.open(str(path)).upsert(typed(3, 30, ts=9))
    held = ours(path)
    assert any("'k030'" in one for one in held)
    assert by_spark(engine, path) == held
    query = QueryBuilder().register("t", DeltaTable(str(path)))  # which knows deletion vectors
    assert content(pa.table(query.execute("select * from t").read_all())) == held


@pytest.mark.parametrize("action", HARMLESS)
def test_what_changes_nothing(delta_spark: Engine, tmp_path: Path, action: str) -> None:
    """Vacuums find nothing, and our writes go on."""
    path = tmp_path / "table"
    before = prepared(path)
    first = hudi.Table.open(str(path)).timeline.completed_writes()[0]
    past = ours(path, as_of=first)
    delta_spark.sql(HARMLESS[action].format(path))
    assert ours(path) == before
    assert ours(path, as_of=first) == past
    goes_on(delta_spark, path)


def test_a_vacuum_of_everything_is_refused(delta_spark: Engine, tmp_path: Path) -> None:
    """Delta-Spark refuses to keep nothing, as the table's properties keep files for ever."""
    path = tmp_path / "table"
    before = prepared(path)
    with pytest.raises(EngineError, match="retention period"):
        delta_spark.sql(f"vacuum delta.`{path}` retain 0 hours")
    assert ours(path) == before
    goes_on(delta_spark, path)


@pytest.mark.parametrize("kind", ["", " lite"], ids=["full", "lite"])
def test_a_vacuum_of_everything_by_force(delta_spark: Engine, tmp_path: Path, kind: str) -> None:
    """With its check switched off it deletes older slices, which are named, and no present row."""
    path = tmp_path / "table"
    before = prepared(path)
    older = {file.name for file in path.rglob("*.parquet")}
    older -= {one.path.rpartition("/")[2] for one in present(path)}
    with delta_spark.configured(NO_CHECK):
        delta_spark.sql(f"vacuum delta.`{path}`{kind} retain 0 hours")
    assert ours(path) == before
    assert by_spark(delta_spark, path) == before
    missed = {one.subject for one in hudi.Table.open(str(path)).validate().differences}
    assert older
    assert all(any(name in subject for subject in missed) for name in older)
    assert all(any(name in subject for name in older) for subject in missed)
    written_on(delta_spark, path)


def present(path: Path) -> list[BaseFile]:
    slices = hudi.Table.open(str(path)).file_slices()
    return [one.base_file for one in slices if one.base_file is not None]


def met(path: Path) -> hudi.Table:
    """Meet a version of Delta-Spark: our readers see what they saw, our writers name it."""
    before, version = ours(path), DeltaTable(str(path)).version()
    table = hudi.Table.open(str(path))
    with pytest.raises(ForeignCommitError, match=f"[Vv]ersion {version}"):
        table.upsert(typed(3, ts=5))
    assert ours(path) == before
    assert not table.validate().is_valid
    return table


@pytest.mark.parametrize("action", NAMED)
def test_what_stops_our_writes(delta_spark: Engine, tmp_path: Path, action: str) -> None:
    """A version of Delta-Spark is named by the next write; a repair drops it if it may."""
    path = tmp_path / "table"
    before = prepared(path)
    delta_spark.sql(NAMED[action].format(path))
    theirs = by_spark(delta_spark, path)
    table = met(path)
    assert table.repair(dry_run=True).drops_rows
    with pytest.raises(ForeignCommitError):
        table.repair()
    assert by_spark(delta_spark, path) == theirs
    assert not table.repair(discard=True).left
    assert ours(path) == before
    assert by_spark(delta_spark, path) == before
    goes_on(delta_spark, path)


def test_rows_that_it_appends_are_taken_in(delta_spark: Engine, tmp_path: Path) -> None:
    """No reader of the format sees a version without the rows, of any writer."""
    path = tmp_path / "table"
    prepared(path)
    columns = delta_spark.query(f"select * from delta.`{path}`").column_names
    chosen = ", ".join("concat('x', id)" if one == "id" else one for one in columns)
    delta_spark.sql(
        f"insert into delta.`{path}` select {chosen} from delta.`{path}` "
        "where id in ('k001', 'k003')"
    )
    theirs = by_spark(delta_spark, path)
    table = met(path)
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, counted.removed_rows) == (2, 0)
    table.repair(take_in=True)
    assert ours(path) == theirs == by_spark(delta_spark, path)
    goes_on(delta_spark, path)


@pytest.mark.parametrize("action", SAME_ROWS)
def test_what_changes_no_row(delta_spark: Engine, tmp_path: Path, action: str) -> None:
    """Files of the same rows, and other properties, are named, and repaired unasked."""
    path = tmp_path / "table"
    before = prepared(path)
    delta_spark.sql(SAME_ROWS[action].format(path))
    table = met(path)
    assert not table.repair().left
    assert ours(path) == before
    assert by_spark(delta_spark, path) == before
    goes_on(delta_spark, path)


def test_checkpoints(delta_spark: Engine, tmp_path: Path) -> None:
    """A checkpoint of Delta-Spark, in the other form as well, is read on."""
    path = tmp_path / "table"
    before = prepared(path)
    delta_spark.write_checkpoint(path)
    assert list((path / "_delta_log").glob("*.checkpoint*"))
    assert ours(path) == before
    goes_on(delta_spark, path)
