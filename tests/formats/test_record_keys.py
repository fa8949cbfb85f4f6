"""Record keys: added by two writers, of nested fields, that read alike, and virtual ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core import errors
from hudi_core.base_file.footer import read_columns
from hudi_core.index import collisions
from hudi_core.meta_client import TableMetaClient
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY
from hudi_core.txn import conflicts
from tests.foreign import by_hudi_rs
from tests.formats.service_tables import READERS, bag
from tests.formats.two_steps import CITIES, SHARED, Write, batch, overlapping
from tests.formats.virtual_tables import GENERATORS, INDEXES, LEVELS, Step, equal, history, made
from tests.formats.virtual_tables import KEY_COLUMNS as KEYED
from tests.samples import paired
from tests.tables import TABLES, new_table, rows_of

# every write that adds rows makes file groups of its own, so that no two writes share one
APART = {"hoodie.parquet.small.file.limit": "0"}
LOOKED_UP = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "RECORD_INDEX", "RECORD_LEVEL_INDEX")
IN_TABLE = {"GLOBAL_SIMPLE", "RECORD_INDEX"}


def with_index(index: str) -> dict[str, str]:
    kept = {
        "RECORD_INDEX": "hoodie.metadata.global.record.level.index.enable",
        "RECORD_LEVEL_INDEX": "hoodie.metadata.record.level.index.enable",
    }
    more = {kept[index]: "true"} if index in kept else {}
    return {**APART, "hoodie.index.type": index, **more}


def keys(table: hudi.Table) -> Counter[str]:
    return Counter(hudi.Table.open(table.path).to_arrow().column("id").to_pylist())


def moved(key: str) -> pa.Table:
    """A row that its city, not its key, puts into a partition."""
    return pa.Table.from_pylist([{"id": key, "city": "bern", "ts": 5}], CITIES)


@pytest.mark.parametrize("index", LOOKED_UP)
@pytest.mark.parametrize("format_name", TABLES)
def test_of_two_upserts_of_new_keys_one_is_given_up(
    path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str, index: str
) -> None:
    options = with_index(index)
    table = new_table(path, CITIES, options, format=format_name)
    mine: Write = lambda t: t.upsert(batch(2, "c", "d", "x"))  # noqa: E731
    with pytest.raises(errors.CommitConflictError, match="both added record key 'd'") as caught:
        overlapping(monkeypatch, table, mine, lambda t: t.upsert(batch(1, "d", "e")), options)
    assert caught.value.facts["granularity"] == "record_key"
    assert keys(table) == {"d": 1, "e": 1}
    mine(hudi.Table.open(table.path, {**SHARED, **options}))
    assert keys(table) == {"c": 1, "d": 1, "e": 1, "x": 1}


@pytest.mark.parametrize("index", LOOKED_UP)
def test_own_keys_do_not_conflict(path: Path, monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    options = with_index(index)
    table = new_table(path, CITIES, options)
    table.upsert(batch(1, "a", "x"))
    overlapping(
        monkeypatch,
        table,
        # between the keys of the other write, and beside a row that only one of them updates
        lambda t: t.upsert(batch(2, "a", "c", "e", "\U0001f600")),
        lambda t: t.upsert(batch(2, "b", "d", "f", "\uffff")),
        options,
    )
    assert keys(table) == dict.fromkeys(
        ["a", "b", "c", "d", "e", "f", "x", "\U0001f600", "\uffff"], 1
    )


def test_keys_are_read_where_ranges_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path / "t", CITIES, APART)
    read: list[str] = []

    def noted(client: TableMetaClient, path: str, *more: Any) -> pa.Table:
        read.append(path)
        return read_columns(client, path, *more)

    monkeypatch.setattr(conflicts, "read_columns", noted)
    mine: Write = lambda t: t.upsert(batch(1, "b", "d"))  # noqa: E731
    overlapping(monkeypatch, table, mine, lambda t: t.upsert(batch(2, "x", "z")), APART)
    assert not read


@pytest.mark.parametrize("index", LOOKED_UP)
def test_one_key_in_two_partitions(path: Path, monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    options = with_index(index)
    table = new_table(path, CITIES, options)
    writes: tuple[Write, Write] = (
        lambda t: t.upsert(batch(1, "k")),
        lambda t: t.upsert(moved("k")),
    )
    if index in IN_TABLE:
        with pytest.raises(errors.CommitConflictError, match="both added record key 'k'"):
            overlapping(monkeypatch, table, *writes, options)
        assert keys(table) == {"k": 1}
    else:
        overlapping(monkeypatch, table, *writes, options)
        assert keys(table) == {"k": 2}  # a key is unique in its partition


OTHERS: dict[str, tuple[Write, Write, bool]] = {
    "an insert looks nothing up": (
        lambda t: t.insert(batch(2, "k")),
        lambda t: t.upsert(batch(1, "k")),
        False,
    ),
    "an insert that drops what is there": (
        lambda t: t.insert(batch(2, "k"), options={"hoodie.datasource.insert.dup.policy": "drop"}),
        lambda t: t.upsert(batch(1, "k")),
        True,
    ),
    "an insert came before": (
        lambda t: t.upsert(batch(2, "k")),
        lambda t: t.bulk_insert(batch(1, "k")),
        True,
    ),
    "an overwritten partition": (
        lambda t: t.insert_overwrite(batch(2, "k", "l")),
        lambda t: t.upsert(batch(1, "k")),
        True,
    ),
    "an overwritten table": (
        lambda t: t.upsert(batch(1, "k")),
        lambda t: t.insert_overwrite_table(batch(2, "x", "k")),
        True,
    ),
    "a row that was deleted meanwhile is not new": (
        lambda t: t.upsert(batch(2, "b", "y")),
        lambda t: t.delete(batch(1, "x")),
        False,
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_operations(path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    mine, theirs, conflicts = OTHERS[case]
    table = new_table(path, CITIES, APART)
    table.bulk_insert(batch(1, "x"))
    if conflicts:
        with pytest.raises(errors.CommitConflictError, match="both added record key 'k'"):
            overlapping(monkeypatch, table, mine, theirs, APART)
        assert keys(table)["k"] == 1
    else:
        overlapping(monkeypatch, table, mine, theirs, APART)


def test_a_row_beside_stored_ones_is_new(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small file of one writer takes the row in, the other writer makes a new file for it."""
    table = new_table(path, CITIES)
    table.upsert(batch(1, "a", "b"))
    with pytest.raises(errors.CommitConflictError, match="both added record key 'k'"):
        overlapping(
            monkeypatch,
            table,
            lambda t: t.upsert(batch(2, "a", "k")),
            lambda t: t.upsert(batch(2, "k"), options=APART),
        )
    assert keys(table) == {"a": 1, "b": 1, "k": 1}


def test_tables_without_a_key_share_no_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(path, CITIES, record_key=None, ordering_field=None)
    same: Write = lambda t: t.insert(batch(1, "k"))  # noqa: E731
    overlapping(monkeypatch, table, same, same, APART)
    assert keys(table) == {"k": 2}


Key = tuple[str | None, str | None]
PAIRED = pa.schema([*((name, pa.string()) for name in ("a", "b", "city")), ("v", pa.int64())])
PAIRS: Mapping[str, tuple[Key, Key]] = {
    "joint": (("1,b:2", "3"), ("1", "2,b:3")),
    "null": ((None, "x"), ("__null__", "x")),
    "empty": (("y", ""), ("y", "__empty__")),
}
DUPLICATES = "hoodie.datasource.insert.dup.policy"
IN_FILE = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
COMBINED = {"hoodie.combine.before.insert": "true"}
PLAIN: tuple[str, str] = ("p", "q")


def keyed(*keys: Key, v: int = 1, city: str = "rome") -> pa.Table:
    return rows_of(PAIRED, *((*key, city, v + n) for n, key in enumerate(keys)))


def paired_table(path: Path, *, table_format: str = "native", **options: str) -> hudi.Table:
    return new_table(path, PAIRED, options, record_key=["a", "b"], format=table_format)


def pairs_held(table: hudi.Table) -> list[tuple[Any, ...]]:
    found = table.to_arrow(list(PAIRED.names)).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def refused(write: Callable[[], Any], key: Key, other: Key) -> None:
    """It is, and names both rows."""
    with pytest.raises(errors.KeyCollisionError) as caught:
        write()
    error = caught.value
    named = [tuple(row.values()) for row in (error.incoming, error.other)]
    assert sorted(named, key=repr) == sorted([key, other], key=repr)
    assert all(f"{name}={value!r}" in str(error) for name, value in error.incoming.items())


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_of_one_write_are_compared(tmp_path: Path, pair: str) -> None:
    one, other = PAIRS[pair]
    table = paired_table(tmp_path / "t")
    table.upsert(keyed(PLAIN))
    before = sorted(tmp_path.rglob("*.parquet"))
    both = keyed(PLAIN, one, other)
    for write in (
        partial(table.upsert, both),
        partial(table.upsert, both, options={"hoodie.combine.before.upsert": "false"}),
        partial(table.insert, both),
        partial(table.insert, both, options=COMBINED),
        partial(table.insert, both, options=IN_FILE),
        partial(table.insert, both, options={DUPLICATES: "drop"}),
        partial(table.bulk_insert, both, options=COMBINED),
        partial(table.insert_overwrite, both),
        partial(table.insert_overwrite_table, both, options=COMBINED),
        partial(table.delete, both),
        partial(table.plan, "upsert", both),
        table.merge(both, "target.v = source.v").when_not_matched_insert_all().execute,
    ):
        refused(write, one, other)
    assert pairs_held(table) == [("p", "q", "rome", 1)]
    assert sorted(tmp_path.rglob("*.parquet")) == before
    # partitions, whose keys are apart, do not meet
    table.upsert(keyed(one))
    table.upsert(keyed(other, city="oslo"))
    assert table.count() == 3


def test_a_bulk_insert_that_combines_nothing_compares_nothing(path: Path) -> None:
    table = paired_table(path)
    one, other = PAIRS["joint"]
    table.bulk_insert(keyed(one, other))
    assert table.count() == 2
    refused(lambda: table.upsert(keyed(one)), one, other)
    # as the error says: a condition on the columns finds the one row
    table.delete(where="a = '1'")
    table.upsert(keyed(one, v=7))
    assert pairs_held(table) == [(*one, "rome", 7)]


@pytest.mark.parametrize(
    ("index", "level"), paired(INDEXES, [None, "no key column", "no meta columns"])
)
def test_stored_rows_are_compared(path: Path, index: str, level: str | None) -> None:
    options = {"hoodie.index.type": index, **INDEXES[index], **(LEVELS[level] if level else {})}
    table = paired_table(path, **options)
    # virtual keys have no nulls
    pairs = [pair for name, pair in PAIRS.items() if level != "no key column" or name != "null"]
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            table.upsert(keyed(PLAIN, one))
            before = pairs_held(table)
            refused(partial(table.upsert, keyed(PLAIN, other, v=8)), other, one)
            refused(partial(table.delete, keyed(other)), other, one)
            assert pairs_held(table) == before
            assert table.upsert(keyed(one, v=9)).updated == 1
            assert table.delete(keyed(one)).deleted == 1
    assert pairs_held(table) == [("p", "q", "rome", 1)]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_rows_do_not_move_onto_another_key(path: Path, index: str) -> None:
    table = paired_table(path, **{"hoodie.index.type": index, **INDEXES[index]})
    one, other = PAIRS["joint"]
    table.upsert(keyed(one))
    by_key = keyed(other).drop_columns(["city", "v"])
    refused(lambda: table.upsert(keyed(other, city="oslo")), other, one)
    refused(lambda: table.delete(by_key), other, one)
    assert pairs_held(table) == [(*one, "rome", 1)]


@pytest.mark.parametrize("pair", PAIRS)
def test_inserts_that_look_for_keys_are_compared(path: Path, pair: str) -> None:
    one, other = PAIRS[pair]
    table = paired_table(path)
    table.upsert(keyed(one))
    new = keyed(other, v=5)
    by_columns = "target.a = source.a AND target.b = source.b"
    for write in (
        partial(table.insert, new, options={DUPLICATES: "drop"}),
        partial(table.insert, new, options={DUPLICATES: "fail"}),
        partial(table.insert, new, options=IN_FILE),
        table.merge(new, ["a", "b"]).when_not_matched_insert_all().execute,
        table.merge(new, by_columns).when_matched_delete().when_not_matched_insert_all().execute,
        table.merge(new, "target.v = source.v").when_not_matched_insert_all().execute,
    ):
        refused(write, other, one)
    assert pairs_held(table) == [(*one, "rome", 1)]
    # a row that goes with the merge makes room
    replace_it = table.merge(keyed(other, v=1), "target.v = source.v")
    replace_it.when_matched_delete().execute()
    table.upsert(new)
    assert pairs_held(table) == [(*other, "rome", 5)]


def test_every_format_refuses(path: Path) -> None:
    table = paired_table(path, table_format="iceberg,delta")
    for one, other in PAIRS.values():
        table.upsert(keyed(one))
        refused(partial(table.upsert, keyed(other)), other, one)
        refused(partial(table.delete, keyed(other)), other, one)
    assert table.count() == len(by_hudi_rs(table.path)) == 3
    assert table.validate(keys=True).is_valid
    for one, _ in PAIRS.values():
        is_it = pc.field("b") == one[1]
        assert table.to_arrow(["a", "b"], filter=is_it).to_pylist() == [{"a": one[0], "b": one[1]}]


def test_filters_by_key_columns_find_the_row_itself(path: Path) -> None:
    table = paired_table(path, **{"hoodie.index.type": "RECORD_INDEX", **INDEXES["RECORD_INDEX"]})
    for one, other in PAIRS.values():
        table.upsert(keyed(one, v=3))
        for (a, b), count in ((one, 1), (other, 0)):
            is_a = pc.field("a").is_null() if a is None else pc.field("a") == a
            assert table.to_arrow(filter=is_a & (pc.field("b") == b)).num_rows == count


@pytest.mark.parametrize("index", ["BLOOM", "RECORD_INDEX", "GLOBAL_SIMPLE", "BUCKET"])
def test_inserts_of_odd_values_are_compared(path: Path, index: str) -> None:
    table = paired_table(path, **{"hoodie.index.type": index, **INDEXES[index]})
    table.insert(keyed(*(one for one, _ in PAIRS.values())))
    before = pairs_held(table)
    for one, other in PAIRS.values():
        refused(partial(table.insert, keyed(PLAIN, other)), other, one)
        refused(partial(table.bulk_insert, keyed(other), options=COMBINED), other, one)
        refused(partial(table.plan, "insert", keyed(other)), other, one)
    assert pairs_held(table) == before
    # what replaces the stored rows does not meet them; and a partition is for itself
    assert table.insert_overwrite(keyed(PAIRS["joint"][1])).inserted == 1
    if index in ("BLOOM", "BUCKET"):
        assert table.insert(keyed(PAIRS["joint"][0], city="oslo")).inserted == 1


def test_a_null_beside_a_stored_placeholder_is_read_and_stays_apart(path: Path) -> None:
    """An insert looks no such key up: the record index knows one place of it, and is not asked."""
    small = {"hoodie.parquet.small.file.limit": "0"}
    index = {"hoodie.index.type": "RECORD_INDEX", **INDEXES["RECORD_INDEX"]}
    table = paired_table(path, **small, **index)
    keys = [key for name in ("null", "empty") for key in PAIRS[name][::-1]]
    for key in keys:
        table.insert(keyed(key))
    for a, b in keys:
        is_a = pc.field("a").is_null() if a is None else pc.field("a") == a
        assert table.to_arrow(filter=is_a & (pc.field("b") == b)).num_rows == 1
    for name in ("null", "empty"):
        one, other = PAIRS[name]
        refused(partial(table.upsert, keyed(other)), other, one)
        refused(partial(table.delete, keyed(other)), other, one)
    assert table.count() == len(keys)


def test_a_folder_with_such_rows_is_adopted_only_by_writing_them(tmp_path: Path) -> None:
    one, other = PAIRS["joint"]
    folder = tmp_path / "folder" / "city=rome"
    folder.mkdir(parents=True)
    pq.write_table(keyed(one, other), folder / "a.parquet")
    found: dict[str, Any] = {"record_key": ["a", "b"], "partition_by": "city", "source": "parquet"}
    with pytest.raises(errors.UnsupportedTableError, match="1 rows have the key of another row"):
        hudi.Table.adopt(folder.parent, **found)
    hudi.Table.adopt(folder.parent, rewrite=tmp_path / "new", **found)
    assert hudi.Table.open(tmp_path / "new").count() == 2


def test_timestamps_that_lose_their_microseconds_are_compared(path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    logical = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    table = hudi.Table.create(path, schema, record_key="at", options={logical: "true"})

    def of(*micros: int) -> pa.Table:
        return pa.table({"at": pa.array(micros, schema[0].type), "v": list(micros)}, schema)

    with pytest.raises(errors.KeyCollisionError, match="beside it"):
        table.upsert(of(1_000_001, 1_000_002))
    table.upsert(of(1_000_000, 2_000_000))
    with pytest.raises(errors.KeyCollisionError, match="stored in the table"):
        table.upsert(of(1_000_001, 2_000_000))
    assert table.upsert(of(1_000_000, 2_000_000)).updated == 2


def test_other_keys_cost_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = paired_table(path)
    table.upsert(keyed(PLAIN, ("x,y", "z:1")))
    one, other = PAIRS["null"]

    def read(*_: object) -> None:
        raise AssertionError("key columns were read")

    monkeypatch.setattr(collisions, "read_column", read)
    monkeypatch.setattr(collisions, "require_same_rows", read)
    assert table.upsert(keyed(PLAIN, ("x,y", "z:1"), v=4)).updated == 2
    # an ambiguous key that meets no stored row is no reason, either
    assert table.upsert(keyed(PLAIN, one, ("1,b:2", "3"))).inserted == 2
    with pytest.raises(AssertionError, match="key columns were read"):
        table.upsert(keyed(other))


def test_a_virtual_key_has_no_nulls(path: Path) -> None:
    table = paired_table(path, **LEVELS["no key column"])
    table.upsert(keyed(("__null__", "x")))
    with pytest.raises(errors.RecordKeyError, match="null or empty in 1 of 1 rows"):
        table.upsert(keyed((None, "x")))


@pytest.mark.spark
def test_spark_refuses(path: Path, spark: SparkSession) -> None:
    table = paired_table(path)

    def frame(*keys: Key) -> Any:
        # two tasks
        return spark.createDataFrame(keyed(*keys)).repartition(2, "b")

    one, other = PAIRS["joint"]
    refused(lambda: table.upsert(frame(PLAIN, one, other)), one, other)
    refused(lambda: table.insert(frame(one, other)), one, other)
    table.upsert(frame(PLAIN, one))
    refused(lambda: table.upsert(frame(other)), other, one)
    refused(lambda: table.delete(frame(other)), other, one)
    merge = table.merge(frame(other), ["a", "b"]).when_not_matched_insert_all()
    refused(merge.execute, other, one)
    assert sorted(row[:2] for row in pairs_held(table)) == sorted([PLAIN, one])


HEAD = pa.struct([("k", pa.string()), ("city", pa.string()), ("x", pa.int64())])
NESTED = pa.schema([("h", HEAD), ("n", pa.int64()), ("v", pa.int64())])
SHAPES: dict[str, tuple[list[str], list[str]]] = {
    "plain": (["h.k"], []),
    "several": (["h.k", "n"], []),
    "partitioned": (["h.k"], ["h.city"]),
    "composite": (["h.k", "n"], ["h.city"]),
}
"""Columns of the key and of the partition. hudi-rs does not open a table whose partition path is
of a field of a struct."""
KINDS = [(shape, level) for level in (None, *LEVELS) for shape in SHAPES][::3]


def nested(keys: str, v: int = 1, city: str = "rome") -> pa.Table:
    return rows_of(NESTED, *(({"k": key, "city": city, "x": v}, 7, v) for key in keys))


def nested_table(
    path: Path, shape: str = "plain", table_format: str = "native", **more: str
) -> Any:
    keys, partitions = SHAPES[shape]
    settings = {"record_key": keys, "partition_by": partitions, "format": table_format}
    return new_table(path, NESTED, more, **settings)  # type: ignore[arg-type]


def nested_held(table: hudi.Table) -> str:
    found = table.to_arrow(["h", "v"]).to_pylist()
    return " ".join(sorted(f"{row['h']['k']}{row['v']}{row['h']['x']}" for row in found))


@pytest.mark.parametrize(("index", "kind"), paired(INDEXES, KINDS))
def test_each_operation_takes_the_field(
    path: Path, index: str, kind: tuple[str, str | None]
) -> None:
    shape, level = kind
    own = LEVELS[level] if level else {}
    options = {"hoodie.index.type": index, **INDEXES[index], **own}
    table = nested_table(path, shape, **options)
    begin = table.insert(nested("abc")).instant
    result = table.upsert(nested("bde", 2))
    assert (result.inserted, result.updated) == (2, 1)
    assert table.delete(nested("c")).deleted == 1
    assert (
        table.insert(
            nested("ae", 3), options={"hoodie.datasource.insert.dup.policy": "drop"}
        ).inserted
        == 0
    )
    assert nested_held(table) == "a11 b22 d22 e22"
    on = "target.h.k = source.h.k AND target.n = source.n"
    merge = table.merge(nested("bz", 4), on)
    values = {"h": "source.h", "v": "source.v"}
    merge = merge.when_matched_update(values).when_not_matched_insert_all()
    assert (merge.execute().updated, nested_held(table)) == (1, "a11 b44 d22 e22 z44")
    table.update({"v": 9}, where="h.k = 'd'")
    table.delete(where="h.k = 'e'")
    assert nested_held(table) == "a11 b44 d92 z44"
    key = pc.field("h", "k") == "b"
    assert table.to_arrow(["v"], filter=key).column("v").to_pylist() == [4]
    diff = table.diff(begin, table.timeline.completed_writes()[-1])
    kinds = sorted((row["h"]["k"], row["_change_type"]) for row in diff.to_pylist())
    assert kinds == [("b", "update"), ("c", "delete"), ("d", "insert"), ("z", "insert")]
    if not table.config.partition_fields:
        assert len(by_hudi_rs(table.path)) == 4
    assert table.validate(keys=True).is_valid


def test_readers_of_every_format_see_the_rows(path: Path) -> None:
    table = nested_table(path, "composite", "iceberg,delta")
    table.insert(nested("ab"))
    table.upsert(pa.concat_tables([nested("bc", 2), nested("d", 2, "oslo")]))
    table.delete(nested("a"))
    for read in set(READERS[table.format]) - set(READERS["native"]):
        assert bag(read(path), ["h", "v"]) == bag(table.to_arrow(["h", "v"])), read
    paths = set(table.to_arrow(["_hoodie_partition_path"])[0].to_pylist())
    assert paths == {"rome", "oslo"}
    assert table.validate(keys=True).is_valid


def test_the_stored_key_is_hudis(tmp_path: Path) -> None:
    for shape, key in (("plain", "a"), ("several", "h.k:a,n:7")):
        table = nested_table(tmp_path / shape, shape)
        table.insert(nested("a"))
        (row,) = by_hudi_rs(table.path)
        assert row["_hoodie_record_key"] == key
        properties = (tmp_path / shape / ".hoodie" / "hoodie.properties").read_text()
        assert f"hoodie.table.recordkey.fields={','.join(SHAPES[shape][0])}" in properties


def test_a_delete_needs_the_fields_of_key_and_partition_alone(path: Path) -> None:
    table = nested_table(path, "partitioned", **{"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.insert(nested("abcd"))
    table.delete(pa.table({"h": pa.array([{"k": "a", "city": "rome"}])}))
    table.delete(pa.table({"h": pa.array([{"city": "rome", "k": "b", "new": 1}]), "new": [1]}))
    table.delete(pa.table({"h": pa.array([{"k": "c"}])}))  # an index of the whole table finds it
    assert nested_held(table) == "d11"
    by_partition = {"hoodie.index.type": "SIMPLE"}
    with pytest.raises(errors.SchemaError, match=r"lack the column 'h\.city'"):
        table.delete(pa.table({"h": pa.array([{"k": "d"}])}), options=by_partition)


def test_rows_move_by_a_nested_partition(path: Path) -> None:
    table = nested_table(path, "partitioned", **{"hoodie.index.type": "GLOBAL_BLOOM"})
    table.insert(nested("ab"))
    assert table.upsert(nested("a", 2, "oslo")).updated + table.count() >= 2
    paths = {
        row["h"]["k"]: row["_hoodie_partition_path"]
        for row in table.to_arrow(["h", "_hoodie_partition_path"]).to_pylist()
    }
    assert paths == {"a": "oslo", "b": "rome"}


def test_what_has_no_key_or_would_change_one_is_refused(tmp_path: Path) -> None:
    table = nested_table(tmp_path / "t")
    table.insert(nested("ab"))
    without = pa.table({"h": pa.array([{"x": 1}]), "n": [1], "v": [1]})
    for given in (pa.array([None], HEAD), pa.array([{"k": None}], HEAD)):
        with pytest.raises(
            errors.RecordKeyError, match=r"\(h\.k\) is null or empty in 1 of 1 rows"
        ):
            table.upsert(pa.table([given, [1], [1]], names=NESTED.names))
    with pytest.raises(errors.SchemaError, match=r"lack the column h\.k"):
        table.upsert(without)
    with pytest.raises(errors.RecordKeyError, match=r"lack the record key column 'h\.k'"):
        table.delete(without)
    with pytest.raises(errors.SchemaError, match="'h' is part of the record key"):
        table.update({"h": {"k": "z", "city": "rome", "x": 1}}, where="n = 7")
    by_number = table.merge(nested("z"), "target.n = source.n AND source.h.k = target.h.city")
    with pytest.raises(errors.SchemaError, match="'h' is part of the record key"):
        by_number.when_matched_update({"h": "source.h"}).execute()
    for change in ({"drop": ["h"]}, {"drop": ["h.k"]}, {"rename": {"h.k": "key"}}):
        with pytest.raises(errors.SchemaError, match=r"part of the record key|is part"):
            table.alter(**change)
    assert nested_held(table) == "a11 b11"
    for name in ("h.none", "h", "n.k", "h.k.x"):
        with pytest.raises(errors.SchemaError):
            hudi.Table.create(tmp_path / "no", NESTED, record_key=name)
        assert not (tmp_path / "no").exists()


@pytest.mark.spark
def test_spark_takes_them(path: Path, spark: SparkSession) -> None:
    table = nested_table(path, "composite")

    def frame(keys: str, v: int = 1) -> Any:
        return spark.createDataFrame(nested(keys, v))

    sort = {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
    table.bulk_insert(frame("abc"), options=sort)
    table.upsert(frame("bd", 2))
    table.delete(frame("c"))
    on = "target.h.k = source.h.k AND target.n = source.n"
    merge = table.merge(frame("dz", 4), on).when_matched_update({"h": "source.h"})
    merge.when_not_matched_insert_all().execute()
    assert nested_held(table) == "a11 b22 d24 z44"
    assert table.read(spark).where("h.k = 'z'").count() == 1


HELD = {
    "no meta columns": (),
    "no key column": tuple(name for name in META_COLUMNS if name != RECORD_KEY),
    "transition": META_COLUMNS,
}
"""The meta columns in the files."""


def compare(stored: hudi.Table, virtual: hudi.Table, seed: int, *, by_ts: bool = False) -> None:
    for step in history(seed, by_ts=by_ts):
        assert step.run(virtual) == step.run(stored), step.operation
        equal(virtual, stored)
    for table in (stored, virtual):
        found = hudi.Table.open(table.path).validate(keys=True)
        assert not found.differences
        assert "files of keys" in found.checked


@pytest.mark.parametrize(("index", "level"), paired(INDEXES, LEVELS))
def test_every_index_finds_keys_that_are_made(tmp_path: Path, level: str, index: str) -> None:
    stored = made(tmp_path / "stored", None, index=index)
    compare(stored, made(tmp_path / "virtual", level, index=index), list(INDEXES).index(index))


@pytest.mark.parametrize(("generator", "level"), paired(GENERATORS, LEVELS, 1))
def test_every_key_generator_makes_keys_again(tmp_path: Path, level: str, generator: str) -> None:
    stored = made(tmp_path / "stored", None, generator=generator)
    virtual = made(tmp_path / "virtual", level, generator=generator)
    seed = 20 + list(GENERATORS).index(generator)
    compare(stored, virtual, seed, by_ts=generator == "simple number")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("table_format", TABLES)
def test_readers_of_a_format_see_the_rows(tmp_path: Path, level: str, table_format: str) -> None:
    stored = made(tmp_path / "stored", None)
    virtual = made(tmp_path / "virtual", level, table_format=table_format)
    for step in history(40):
        assert step.run(virtual) == step.run(stored), step.operation
        equal(virtual, stored)
    for read in READERS[table_format]:
        found = read(tmp_path / "virtual")
        assert bag(found, KEYED.names) == bag(stored.to_arrow(), KEYED.names), read.__name__
    files = [one.base_file for one in virtual.file_slices()]
    for file in files:
        assert file is not None
        names = pq.read_schema(f"{virtual.path}/{file.path}").names
        assert tuple(names) == (*HELD[level], *KEYED.names)


@pytest.mark.parametrize("level", ["no key column", "transition"])
def test_changes_are_those_of_a_table_with_stored_keys(tmp_path: Path, level: str) -> None:
    stored, virtual = made(tmp_path / "stored", None), made(tmp_path / "virtual", level)
    steps = [one for one in history(51) if one.operation not in ("restore", "rollback")]
    for step in steps:
        assert step.run(virtual) == step.run(stored), step.operation
    columns = [*KEYED.names, "_change_type"]
    writes = [one.timeline.completed_writes() for one in (stored, virtual)]
    assert len(writes[0]) == len(writes[1]) > 4
    for one, other in zip(*writes, strict=True):
        assert bag(virtual.incremental(other), KEYED.names) == bag(
            stored.incremental(one), KEYED.names
        )
        changed = virtual.incremental(other, deletes=True)
        assert bag(changed, columns) == bag(stored.incremental(one, deletes=True), columns)
        assert set(changed.column(RECORD_KEY).to_pylist()) <= {None}
        feeds = [
            table.changes(begin, images="struct").drop_columns("ts_ms")
            for table, begin in ((virtual, other), (stored, one))
        ]
        assert bag(feeds[0]) == bag(feeds[1])
        diffs = [
            table.diff(begin, table.timeline.completed_writes()[-1])
            for table, begin in ((virtual, other), (stored, one))
        ]
        assert bag(diffs[0], columns) == bag(diffs[1], columns)


def test_what_needs_commit_times_is_refused_without_them(path: Path) -> None:
    table = made(path, "no meta columns")
    history(1)[0].run(table)
    begin = table.timeline.completed_writes()[0]
    for query in (table.incremental, table.changes):
        with pytest.raises(errors.UnsupportedTableError, match="Compare two snapshots") as refused:
            query(begin)
        assert "hoodie.populate.meta.fields=false" in str(refused.value)


SEPARATED = {
    "hoodie.recordkey.virtual.concatenator": "_",
    "hoodie.recordkey.virtual.foreign.keys.accepted": "true",
}


def test_a_concatenator_makes_keys_of_its_own(tmp_path: Path) -> None:
    index = {"hoodie.metadata.record.index.enable": "true"}
    stored = made(tmp_path / "stored", None, generator="complex")
    virtual = made(tmp_path / "virtual", "no key column", generator="complex", **SEPARATED, **index)
    for step in history(3):
        assert step.run(virtual) == step.run(stored), step.operation
    equal(virtual, stored)
    found = set(virtual.metadata("record_index").column("record_key").to_pylist())
    rows = virtual.to_arrow().to_pylist()
    assert found == {f"{row['id']}_{row['number']}" for row in rows}
    before = sorted(tmp_path.rglob("*.parquet"))
    wrong = [{**rows[0], "id": "a_1"}]
    with pytest.raises(errors.RecordKeyError, match=r"contains '_'.* in 1 of 1 rows"):
        virtual.upsert(pa.Table.from_pylist(wrong, KEYED))
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_each_column_of_a_virtual_key_has_a_value(tmp_path: Path) -> None:
    rows = [{**history(1)[0].rows[0], "number": None}]
    data = pa.Table.from_pylist(rows, KEYED)
    for level in ("no key column", "transition"):
        table = made(tmp_path / level, level, generator="complex")
        with pytest.raises(
            errors.RecordKeyError, match=r"id, number.*null or empty in 1 of 1 rows"
        ):
            table.insert(data)
        assert not list((tmp_path / level).rglob("*.parquet"))
    table = made(tmp_path / "hudi", "no meta columns", generator="complex")
    table.insert(data)  # as in Hudi, whose key of it is id:k000,number:__null__
    assert table.upsert(data).updated == 1


@pytest.mark.parametrize("kind", [pa.date32(), pa.decimal128(9, 2), pa.binary()])
def test_keys_that_others_make_otherwise_need_consent(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("id", kind), ("value", pa.int64())])
    virtual = {"hoodie.recordkey.virtual.enabled": "true"}
    consent = {"hoodie.recordkey.virtual.foreign.keys.accepted": "true"}
    with pytest.raises(errors.InvalidOptionError, match="in silence"):
        hudi.Table.create(tmp_path / "no", schema, record_key="id", options=virtual)
    assert not (tmp_path / "no").exists()
    options = {**virtual, **consent}
    hudi.Table.create(tmp_path / "yes", schema, record_key="id", options=options)
    stored = hudi.Table.create(tmp_path / "stored", schema, record_key="id")
    with pytest.raises(errors.InvalidOptionError, match="in silence"):
        stored.rewrite_keys()
    hudi.Table.open(stored.path, consent).rewrite_keys()


def test_rfc_21s_names_say_what_hudis_do(path: Path) -> None:
    table = hudi.Table.create(
        path,
        KEYED,
        partition_by="city",
        options={
            "hoodie.recordkey.virtual.enabled": "true",
            "hoodie.recordkey.virtual.columns": "id,number",
            "hoodie.recordkey.virtual.class": "COMPLEX",
        },
    )
    assert table.config.record_key_fields == ("id", "number")
    assert table.config.keygen_type == "COMPLEX"
    assert Step("insert", history(1)[0].rows).run(table) == (8, 0, 0)
    assert Step("upsert", history(1)[0].rows).run(table) == (0, 8, 0)
