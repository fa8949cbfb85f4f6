"""Iceberg-Spark: tables of the format Iceberg.

Tables are read by their path, and in a REST catalog, which is the Iceberg project's own. What
Iceberg-Spark does to a table is either refused by itself, or harmless, or named by our next write:
until then our readers see what they saw before, and `hudi table repair` takes rows of it in, or
back, as it is asked to.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import ForeignCommitError, InvalidOptionError, MissingMetadataError
from tests.formats.iceberg_tables import NOTED, OPTIONS, bag, create, row, typed, without_meta
from tests.jvm.commands import is_sound
from tests.jvm.engines import Engine, EngineError
from tests.jvm.filters import Filter, among, compare, is_not_null, is_null, starts_with
from tests.jvm.lake import Lake, rest_lake

LAYOUTS: Final[Mapping[str, tuple[str | None, Mapping[str, str]]]] = {
    "identity": ("city", {}),
    "no partition": (None, {}),
    "day": (
        "at",
        {
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        },
    ),
}
FORMAT: Final = "hoodie.table.format.iceberg."
SPLIT: Final = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@pytest.fixture(scope="module")
def lake(iceberg_spark: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with rest_lake(iceberg_spark, tmp_path_factory.mktemp("rest")) as found:
        yield found


def by_path(engine: Engine, path: Path, options: Mapping[str, str] | None = None) -> Counter[str]:
    return bag(without_meta(engine.read(path, options, source="iceberg")))


def ours(path: Path, options: Mapping[str, str] = OPTIONS, as_of: Any = None) -> Counter[str]:
    return bag(without_meta(hudi.Table.open(str(path), options).to_arrow(as_of=as_of)))


def life(table: hudi.Table) -> Iterator[str]:
    """Operations one by one; yield the name of each when it is done."""
    done: list[tuple[str, Callable[[], Any]]] = [
        ("insert", lambda: table.insert(typed(range(12)))),
        ("upsert", lambda: table.upsert(typed([1, 2, 3, 20, 21], ts=1))),
        ("delete", lambda: table.delete(typed([4, 5]))),
        ("bulk_insert", lambda: table.bulk_insert(typed(range(30, 36)))),
        ("insert_overwrite", lambda: table.insert_overwrite(typed([6, 11], ts=2))),
        ("upsert again", lambda: table.upsert(typed([1, 30, 50], ts=3))),
        ("rollback", lambda: table.rollback(table.timeline.completed_writes()[-1])),
        ("upsert after it", lambda: table.upsert(typed([2, 51], ts=4))),
    ]
    for name, run in done:
        run()
        yield name


# --- reading -------------------------------------------------------------------------------------


def filters() -> list[Filter]:
    text, at = pa.string(), NOTED.field("at").type
    price, day = NOTED.field("price").type, pa.date32()
    some = row(8)
    return [
        compare("id", "=", "k008", text),
        among("id", ["k001", "k030", "nobody"], text),
        *(compare("city", "=", city, text) for city in ("rome", "new york", "a%b")),
        *(is_null("city"), is_not_null("inner"), starts_with("city", "o")),
        *(compare("value", sign, 3.5, pa.float64()) for sign in ("=", "<", ">", "!=")),
        compare("value", "=", math.nan, pa.float64()),
        *(compare("price", sign, some["price"], price) for sign in ("=", ">=")),
        *(compare("at", sign, some["at"], at) for sign in ("=", "<", ">")),
        *(compare("day", "<=", some["day"], day), compare("ts", ">", 0, pa.int64())),
        *(compare("flag", "=", True, pa.bool_()), compare("inner.x", ">", 7, pa.int32())),
        compare("city", "=", "oslo", text) & compare("ts", "=", 0, pa.int64()),
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_and_filters_by_path(iceberg_spark: Engine, tmp_path: Path, layout: str) -> None:
    """Rows after every operation, and filters on columns of every kind."""
    path = tmp_path / "table"
    partition, options = LAYOUTS[layout]
    table = create(path, partition, **options)
    for operation in life(table):
        assert by_path(iceberg_spark, path) == ours(path), operation
    held = hudi.Table.open(str(path)).to_arrow().to_pylist()
    asked = filters()
    found = iceberg_spark.answers(path, ["id"], [one.sql for one in asked], source="iceberg")
    answers = {
        one.sql: (answer.error or answer.rows, one.ids(held))
        for one, answer in zip(asked, found, strict=True)
    }
    assert not {sql: both for sql, both in answers.items() if both[0] != both[1]}
    assert sum(answer.files for answer in found) >= 0


def test_looking_for_nan(lake: Lake, tmp_path: Path) -> None:
    """NaN equals NaN and is greater than every number, though its own bounds leave it out."""
    path, name = tmp_path / "table", "with_nan"
    table = create(path, **lake.options(name))
    table.insert(typed(range(12)))
    held = table.to_arrow().to_pylist()
    signs = ((">", 1e9), ("=", math.nan), ("!=", -0.5), ("<", -2.0))
    asked = [compare("value", sign, value, pa.float64()) for sign, value in signs]
    found = {
        one.sql: sorted(lake.engine.sql(f"select id from lake.ns.{name} where {one.sql}"))
        for one in asked
    }
    assert found == {one.sql: one.ids(held) for one in asked}


def test_time_travel_and_metadata_tables(lake: Lake, tmp_path: Path) -> None:
    """Each snapshot is the state of its instant; files, partitions and manifests add up."""
    path, name = tmp_path / "table", "travelled"
    table = create(path, **lake.options(name))
    for operation in life(table):
        assert lake.rows(name) == ours(path, lake.options(name)), operation
    table = hudi.Table.open(str(path), lake.options(name))
    found = lake.engine.sql(
        f"select snapshot_id, summary['hudi.instant'] from lake.ns.{name}.snapshots "
        "where summary['hudi.instant'] is not null"
    )
    by_instant = {instant: number for number, instant in found}
    writes = table.timeline.completed_writes()
    assert len(writes) == 6
    for instant in writes:
        number = by_instant[instant.requested_time]
        past = ours(path, lake.options(name), as_of=instant)
        assert lake.rows(name, f"version as of {number}") == past
    slices = [one.base_file for one in table.file_slices()]
    sizes = {f"file://{path}/{one.path}": one.size for one in slices if one is not None}
    files = lake.engine.sql(
        f"select file_path, file_size_in_bytes, record_count from lake.ns.{name}.files"
    )
    assert {file: size for file, size, _ in files} == sizes
    held = table.to_arrow().num_rows
    counts = {
        "files": sum(count for _, _, count in files),
        "partitions": sum(
            count
            for (count,) in lake.engine.sql(f"select record_count from lake.ns.{name}.partitions")
        ),
        "count(*)": lake.engine.sql(f"select count(*) from lake.ns.{name}")[0][0],
    }
    assert set(counts.values()) == {held}, counts
    # Iceberg shortens the history where a snapshot is removed, as our rollback does
    history = lake.engine.sql(
        f"select snapshot_id from lake.ns.{name}.history order by made_current_at"
    )
    assert history[-1] == (by_instant[writes[-1].requested_time],)
    for kind in ("manifests", "entries", "all_data_files", "refs", "metadata_log_entries"):
        assert lake.engine.sql(f"select count(*) from lake.ns.{name}.{kind}")[0][0] > 0, kind


def test_changed_columns(lake: Lake, tmp_path: Path) -> None:
    """Renamed, dropped, added again, widened and nested columns, by their field ids."""
    path, name = tmp_path / "table", "changed"
    table = create(path, **lake.options(name))
    table.insert(typed(range(8)))
    table.alter(
        rename={"value": "amount", "inner.word": "text"},
        drop="flag",
        promote={"inner.x": pa.int64(), "price": pa.decimal128(38, 10)},
    )
    table.alter(add_columns={"flag": pa.string(), "inner.more": pa.date32()})
    new = {
        **{key: value for key, value in row(40).items() if key != "value"},
        "amount": 4.25,
        "flag": "yes",
        "inner": {"x": 2**40, "text": "w", "more": dt.date(2024, 5, 5)},
    }
    table.upsert(pa.Table.from_pylist([new], table.schema))
    held = hudi.Table.open(str(path), lake.options(name)).to_arrow()
    assert lake.rows(name) == bag(without_meta(held))
    asked = [
        *(compare("amount", sign, 4.25, pa.float64()) for sign in ("=", "<")),
        *(compare("flag", "=", "yes", pa.string()), is_null("flag")),
        *(compare("inner.x", ">", 2**35, pa.int64()), is_not_null("inner.more")),
    ]
    sqls = [one.sql for one in asked]
    found = lake.engine.answers(f"lake.ns.{name}", ["id"], sqls, source="iceberg")
    right = [one.ids(held.to_pylist()) for one in asked]
    assert [answer.error or answer.rows for answer in found] == right


# --- what Iceberg-Spark does to a table ----------------------------------------------------------

GC: Final = "GC is disabled"
REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "expire_snapshots": (
        (
            "call lake.system.expire_snapshots(table => 'ns.{0}', retain_last => 1, "
            "older_than => timestamp'2100-01-01 00:00:00')"
        ),
        GC,
    ),
    "remove_orphan_files": ("call lake.system.remove_orphan_files(table => 'ns.{0}')", GC),
    "remove_orphan_files, dry run": (
        "call lake.system.remove_orphan_files(table => 'ns.{0}', dry_run => true)",
        GC,
    ),
    "drop, purge": ("drop table lake.ns.{0} purge", GC),
}
"""What Iceberg-Spark refuses to do, and in which words."""
NAMED: Final = {
    "insert": "insert into lake.ns.{0} select * from lake.ns.{0} where id = 'k001'",
    "delete": "delete from lake.ns.{0} where id = 'k001'",
    "delete of a partition": "delete from lake.ns.{0} where city = 'rome'",
    "update": "update lake.ns.{0} set value = -1 where id = 'k001'",
    "merge": (
        "merge into lake.ns.{0} t using (select 'k001' id) s on t.id = s.id "
        "when matched then update set value = -2"
    ),
    "insert overwrite": (
        "insert overwrite lake.ns.{0} select * from lake.ns.{0} where id = 'k001'"
    ),
    "truncate": "truncate table lake.ns.{0}",
}
"""What stops our writes until it is taken in, or dropped."""
REWRITES: Final = {
    "rewrite_data_files": (
        "call lake.system.rewrite_data_files(table => 'ns.{0}', "
        "options => map('rewrite-all', 'true'))"
    ),
    "rewrite_manifests": "call lake.system.rewrite_manifests('ns.{0}')",
}
"""What stops our writes, and holds no change of rows that a repair might drop."""
BACKWARDS: Final = {
    "rollback_to_snapshot": "call lake.system.rollback_to_snapshot('ns.{0}', {1})",
    "set_current_snapshot": "call lake.system.set_current_snapshot('ns.{0}', {1})",
}
"""What makes an earlier snapshot the current one."""
HARMLESS: Final = {
    "set tblproperties": "alter table lake.ns.{0} set tblproperties ('some.key' = 'value')",
    "create tag": "alter table lake.ns.{0} create tag audited",
    "create branch": "alter table lake.ns.{0} create branch audit",
    "comment": "alter table lake.ns.{0} alter column value comment 'of somebody'",
}
"""What changes nothing that a write relies on."""
SCHEMA_CHANGES: Final = {
    "add column": "alter table lake.ns.{0} add column more int",
    "drop column": "alter table lake.ns.{0} drop column tags",
    "rename column": "alter table lake.ns.{0} rename column tags to labels",
    "partition field": "alter table lake.ns.{0} add partition field bucket(2, id)",
}


def prepared(lake: Lake, path: Path, name: str) -> tuple[str, Counter[str]]:
    """Make a table of two snapshots; return the first one's id, and our rows."""
    table = create(path, **lake.options(name))
    table.insert(typed(range(10)))
    table.upsert(typed([1, 2, 20], ts=1))
    first = lake.engine.sql(f"select snapshot_id from lake.ns.{name}.snapshots order by 1, 1")
    oldest = lake.engine.sql(
        f"select snapshot_id from lake.ns.{name}.snapshots "
        "where summary['hudi.instant'] is not null order by committed_at"
    )
    assert first
    return str(oldest[0][0]), ours(path, lake.options(name))


def goes_on(lake: Lake, path: Path, name: str) -> None:
    """Write once more; all readers agree, and validation finds nothing."""
    table = hudi.Table.open(str(path), lake.options(name))
    table.upsert(typed([3, 30], ts=9))
    held = ours(path, lake.options(name))
    assert any("'k030'" in one for one in held)
    assert lake.rows(name) == held
    validation = hudi.Table.open(str(path), lake.options(name)).validate()
    assert validation.is_valid, validation.differences


@pytest.mark.parametrize("action", REFUSED)
def test_what_it_refuses(lake: Lake, tmp_path: Path, action: str) -> None:
    """Maintenance that would delete files is refused by Iceberg-Spark itself."""
    path, name = tmp_path / "table", f"refused_{table_of(action)}"
    _, before = prepared(lake, path, name)
    statement, words = REFUSED[action]
    with pytest.raises(EngineError, match=words):
        lake.engine.sql(statement.format(name))
    assert ours(path, lake.options(name)) == before
    goes_on(lake, path, name)


def table_of(action: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in action)


def met(lake: Lake, path: Path, name: str) -> hudi.Table:
    """Meet a snapshot of Iceberg-Spark: our readers see what they saw, our writers name it."""
    before = ours(path, lake.options(name))
    [(current,)] = lake.engine.sql(
        f"select snapshot_id from lake.ns.{name}.refs where name = 'main'"
    )
    table = hudi.Table.open(str(path), lake.options(name))
    with pytest.raises(ForeignCommitError, match=str(current)):
        table.upsert(typed([3], ts=5))
    assert ours(path, lake.options(name)) == before
    assert not table.validate().is_valid
    return table


@pytest.mark.parametrize("action", NAMED)
def test_what_stops_our_writes(lake: Lake, tmp_path: Path, action: str) -> None:
    """A snapshot of Iceberg-Spark is named by the next write; a repair drops it if it may."""
    path, name = tmp_path / "table", f"named_{table_of(action)}"
    _, before = prepared(lake, path, name)
    lake.engine.sql(NAMED[action].format(name))
    theirs = lake.rows(name)
    table = met(lake, path, name)
    counted = table.repair(dry_run=True)
    assert counted.drops_rows
    with pytest.raises(ForeignCommitError):
        table.repair()
    assert lake.rows(name) == theirs
    assert not table.repair(discard=True).left
    assert ours(path, lake.options(name)) == before
    assert lake.rows(name) == before
    goes_on(lake, path, name)


def test_rows_that_it_appends_are_taken_in(lake: Lake, tmp_path: Path) -> None:
    """No reader of the format sees a snapshot without the rows, of any writer."""
    path, name = tmp_path / "table", "taken_in"
    prepared(lake, path, name)
    columns = lake.engine.query(f"select * from lake.ns.{name}").column_names
    chosen = ", ".join("concat('x', id)" if one == "id" else one for one in columns)
    lake.engine.sql(
        f"insert into lake.ns.{name} select {chosen} from lake.ns.{name} "
        "where id in ('k001', 'k003')"
    )
    theirs = lake.rows(name)
    table = met(lake, path, name)
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, counted.removed_rows) == (2, 0)
    table.repair(take_in=True)
    assert ours(path, lake.options(name)) == theirs == lake.rows(name)
    goes_on(lake, path, name)


@pytest.mark.parametrize("action", REWRITES)
def test_what_rewrites_files(lake: Lake, tmp_path: Path, action: str) -> None:
    """Files of the same rows are named by the next write, and repaired unasked."""
    path, name = tmp_path / "table", f"rewritten_{table_of(action)}"
    _, before = prepared(lake, path, name)
    lake.engine.sql(REWRITES[action].format(name))
    table = met(lake, path, name)
    assert not table.repair().left
    assert ours(path, lake.options(name)) == before == lake.rows(name)
    goes_on(lake, path, name)


def in_place_of_ours(path: Path, options: Mapping[str, str]) -> Iterator[Callable[[], Any]]:
    """Give a read, a write and a repair of a table that another one took the place of."""
    yield lambda: ours(path, options)
    yield lambda: hudi.Table.open(str(path), options).upsert(typed([3], ts=5))
    yield lambda: hudi.Table.open(str(path), options).repair()


def test_a_table_that_it_creates_or_replaces(lake: Lake, tmp_path: Path) -> None:
    """Our reads and writes name its snapshot; no read answers with no rows."""
    path, name = tmp_path / "table", "replaced"
    _, before = prepared(lake, path, name)
    lake.engine.sql(f"create or replace table lake.ns.{name} using iceberg as select 'k9' id")
    [(current,)] = lake.engine.sql(
        f"select snapshot_id from lake.ns.{name}.refs where name = 'main'"
    )
    for call in in_place_of_ours(path, lake.options(name)):
        with pytest.raises(ForeignCommitError, match=str(current)):
            call()
    hudi.Table.open(str(path), lake.options(name)).repair(discard=True)
    assert ours(path, lake.options(name)) == before == lake.rows(name)
    goes_on(lake, path, name)


def test_a_table_that_it_drops_and_creates(lake: Lake, tmp_path: Path) -> None:
    """The new one is somewhere else; our reads and writes name both places."""
    path, name = tmp_path / "table", "dropped_and_created"
    _, before = prepared(lake, path, name)
    lake.engine.sql(f"drop table lake.ns.{name}")
    lake.engine.sql(f"create table lake.ns.{name} using iceberg as select 'k9' id")
    for call in in_place_of_ours(path, lake.options(name)):
        with pytest.raises(InvalidOptionError, match=f"and not the one at file://{path}"):
            call()
    lake.engine.sql(f"drop table lake.ns.{name}")
    hudi.Table.open(str(path), lake.options(name)).repair()
    assert ours(path, lake.options(name)) == before == lake.rows(name)
    goes_on(lake, path, name)


def test_an_entry_that_it_drops(lake: Lake, tmp_path: Path) -> None:
    """The error names the entry; repair makes it anew."""
    path, name = tmp_path / "table", "dropped"
    _, before = prepared(lake, path, name)
    lake.engine.sql(f"drop table lake.ns.{name}")
    table = hudi.Table.open(str(path), lake.options(name))
    with pytest.raises(MissingMetadataError, match=f"ns.{name}"):
        table.upsert(typed([3], ts=5))
    table.repair()
    assert ours(path, lake.options(name)) == before == lake.rows(name)
    goes_on(lake, path, name)


def test_an_upgrade_of_the_format(lake: Lake, tmp_path: Path) -> None:
    """Version 3 is named as what it is, and repair makes it 2 again."""
    path, name = tmp_path / "table", "upgraded"
    _, before = prepared(lake, path, name)
    lake.engine.sql(f"alter table lake.ns.{name} set tblproperties ('format-version' = '3')")
    table = hudi.Table.open(str(path), lake.options(name))
    assert ours(path, lake.options(name)) == before
    with pytest.raises(ForeignCommitError, match="Version 3") as caught:
        table.upsert(typed([3], ts=5))
    assert "repair" in caught.value.hint
    assert not table.repair().left
    assert ours(path, lake.options(name)) == before == lake.rows(name)
    goes_on(lake, path, name)


@pytest.mark.parametrize("action", BACKWARDS)
def test_an_earlier_snapshot(lake: Lake, tmp_path: Path, action: str) -> None:
    """All readers see the earlier state, validation says why; our next write publishes the rest."""
    path, name = tmp_path / "table", f"backwards_{table_of(action)}"
    first, before = prepared(lake, path, name)
    lake.engine.sql(BACKWARDS[action].format(name, first))
    earlier = ours(path, lake.options(name))
    assert earlier == lake.rows(name) != before
    [pending] = hudi.Table.open(str(path), lake.options(name)).validate().differences
    assert pending.is_pending
    goes_on(lake, path, name)
    last = hudi.Table.open(str(path), lake.options(name)).timeline.completed_writes()[-2]
    assert ours(path, lake.options(name), as_of=last) == before


@pytest.mark.parametrize("action", HARMLESS)
def test_what_changes_nothing(lake: Lake, tmp_path: Path, action: str) -> None:
    """Properties, comments, tags and branches of others stay, and our writes go on."""
    path, name = tmp_path / "table", f"harmless_{table_of(action)}"
    _, before = prepared(lake, path, name)
    lake.engine.sql(HARMLESS[action].format(name))
    assert ours(path, lake.options(name)) == before
    goes_on(lake, path, name)


@pytest.mark.parametrize("action", SCHEMA_CHANGES)
def test_columns_that_it_changes(lake: Lake, tmp_path: Path, action: str) -> None:
    """A change of columns by Iceberg-Spark changes nothing for us; our next write takes it back."""
    path, name = tmp_path / "table", f"columns_{table_of(action)}"
    _, before = prepared(lake, path, name)
    columns = lake.engine.query(f"select * from lake.ns.{name}").column_names
    lake.engine.sql(SCHEMA_CHANGES[action].format(name))
    assert ours(path, lake.options(name)) == before
    goes_on(lake, path, name)
    assert lake.engine.query(f"select * from lake.ns.{name}").column_names == columns


def test_a_table_by_its_path_takes_nothing(iceberg_spark: Engine, tmp_path: Path) -> None:
    """In a folder that no catalog knows, Iceberg-Spark refuses every change."""
    path = tmp_path / "warehouse" / "ns" / "table"
    path.parent.mkdir(parents=True)
    table = create(path)
    table.insert(typed(range(10)))
    conf = {
        "spark.sql.catalog.folder": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.folder.type": "hadoop",
        "spark.sql.catalog.folder.warehouse": str(tmp_path / "warehouse"),
        "spark.sql.catalog.folder.cache-enabled": "false",
    }
    before = ours(path)
    with iceberg_spark.configured(conf):
        for statement in (
            "insert into folder.ns.table select * from folder.ns.table",
            "delete from folder.ns.table where id = 'k001'",
            (
                "call folder.system.rewrite_data_files(table => 'ns.table', "
                "options => map('rewrite-all', 'true'))"
            ),
            "alter table folder.ns.table add column more int",
        ):
            with pytest.raises(EngineError, match="cannot relocate metadata"):
                iceberg_spark.sql(statement)
    assert ours(path) == before
    table.upsert(typed([1, 50], ts=2))
    assert by_path(iceberg_spark, path) == ours(path)
    is_sound(path)


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_that_it_deletes_beside_ours(lake: Lake, tmp_path: Path, version: str) -> None:
    """They are counted beside ours, and can be taken out; a REST catalog takes both versions."""
    path, name = tmp_path / "table", f"beside_{version}"
    options = {**lake.options(name), **SPLIT, f"{FORMAT}format-version": version}
    table = create(path, **options)
    table.insert(typed(range(30)))
    table.upsert(typed([1, 2, 3, 40], ts=1))
    before = lake.rows(name)
    assert before == bag(hudi.Table.open(path, options).to_arrow().select(NOTED.names))
    lake.engine.sql(
        f"alter table lake.ns.{name} set tblproperties ('write.delete.mode' = 'merge-on-read')"
    )
    lake.engine.sql(f"delete from lake.ns.{name} where id in ('k001', 'k004')")
    assert sum(lake.rows(name).values()) == 29
    with pytest.raises(ForeignCommitError):
        hudi.Table.open(path, options).upsert(typed([5], ts=2))
    [counted] = hudi.Table.open(path, options).repair(dry_run=True).foreign
    assert (counted.added_rows, counted.removed_rows, counted.deleted_rows) == (0, 0, 2)
    hudi.Table.open(path, options).repair(discard=True)
    assert lake.rows(name) == before
    table = hudi.Table.open(path, options)
    table.upsert(typed([1, 5], ts=2))
    assert lake.rows(name) == bag(hudi.Table.open(path, options).to_arrow().select(NOTED.names))
    assert not hudi.Table.open(path, options).validate().differences
