"""Deletion vectors of the Delta format: what commits of split tables write, and what is read."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyroaring import BitMap64

import hudi_core as hudi
from delta_format.vectors import FOLDER, LogVectors, Vector, new_vectors, positions
from hudi_core.errors import (
    CorruptMetadataError,
    ForeignCommitError,
    HudiError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import parse_instant_time
from hudi_core.services.opening import open_table
from tests.foreign import by_hudi_rs
from tests.formats.delta_tables import actions_of, cut_short
from tests.formats.dying_writers import death_in
from tests.formats.foreign_writers import delete_in_place
from tests.tables import SCHEMA, new_table, rows

BY_HAND = {"hoodie.compact.inline": "false", "hoodie.clustering.inline": "false"}
MANY = 6000
"""Rows whose every other one makes a vector too large for an action."""

Held = list[tuple[str, int]]


def split(path: Path, **options: str) -> hudi.Table:
    return new_table(
        path,
        SCHEMA,
        {**BY_HAND, **options},
        table_type="MERGE_ON_READ",
        format="delta",
        partition_by=None,
    )


def reopened(path: Path) -> hudi.Table:
    return hudi.Table.open(path, BY_HAND)


def of(keys: Iterable[str], ts: int = 1) -> pa.Table:
    return rows(*keys, part="p", ts=ts)


def held(found: Iterable[dict[str, Any]]) -> Held:
    return sorted((one["id"], one["ts"]) for one in found)


def by_datafusion(path: Path, version: int | None = None) -> Held:
    builder = QueryBuilder().register("t", DeltaTable(str(path), version=version))
    return held(pa.table(builder.execute("select id, ts from t").read_all()).to_pylist())


def by_polars(path: Path, version: int | None = None) -> Held:
    return held(pl.scan_delta(str(path), version=version).collect().to_dicts())


def agree(path: Path) -> Held:
    """The rows, as we and all others read them.

    Files of other engines may keep their names beside those of Hudi.
    """
    found = held(reopened(path).to_arrow().to_pylist())
    assert reopened(path).count() == len(found)
    assert by_datafusion(path) == found
    assert by_polars(path) == found
    assert held(by_hudi_rs(path)) == found
    validated = reopened(path).validate(keys=True)
    assert validated.differences == ()
    assert all(one.startswith("part-") for one in validated.orphans)
    return found


def newest(path: Path) -> int:
    return int(DeltaTable(str(path)).version())


def changed(path: Path, number: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """The files that a version adds and removes."""
    found: dict[str, list[dict[str, Any]]] = {"add": [], "remove": []}
    for action in actions_of(path, newest(path) if number is None else number):
        for name in found.keys() & action.keys():
            found[name].append(action[name])
    return found


def live_vectors(path: Path) -> dict[str, Vector]:
    return dict(LogVectors(open_table(str(path), {}).client, DeltaTable(str(path))).by_file)


def vector_files(path: Path) -> list[str]:
    return sorted(str(one.relative_to(path)) for one in path.rglob("deletion_vector_*.bin"))


def keys(count: int, begin: int = 0) -> list[str]:
    return [f"k{number:05d}" for number in range(begin, begin + count)]


# --- what is written ------------------------------------------------------------------------------


def test_a_vector_is_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).delete(of("bd"))
    assert agree(path) == [("a", 1), ("c", 1), ("e", 1)]
    (added,), (removed,) = changed(path)["add"], changed(path)["remove"]
    assert added["path"] == removed["path"]
    assert "deletionVector" not in removed
    vector = added["deletionVector"]
    # the vacuum of Delta-Spark knows none that is in its action
    assert (vector["storageType"], vector["cardinality"]) == ("u", 2)
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (5, False)
    assert len(vector_files(path)) == 1
    assert DeltaTable(str(path)).protocol().reader_features == ["deletionVectors"]


def test_a_large_vector_is_in_a_file_that_others_may_share(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, SCHEMA, BY_HAND, table_type="MERGE_ON_READ", format="delta")
    parts = {part: keys(MANY, begin) for part, begin in (("p", 0), ("q", MANY))}
    for part, some in parts.items():
        table.insert(rows(*some, part=part, ts=1))
    gone = {part: some[::2] for part, some in parts.items()}
    table.delete(pa.concat_tables(rows(*some, part=part) for part, some in gone.items()))
    left = [key for some in parts.values() for key in some[1::2]]
    assert [key for key, _ in agree(path)] == left
    (file,) = vector_files(path)
    assert file.startswith(f"{FOLDER}/")
    data = (path / file).read_bytes()
    assert data[0] == 1
    for one in changed(path)["add"]:
        vector = one["deletionVector"]
        begin = vector["offset"]
        size = int.from_bytes(data[begin : begin + 4], "big")
        assert size == vector["sizeInBytes"]
        bitmap = BitMap64.deserialize(data[begin + 8 : begin + 4 + size])
        assert list(bitmap) == list(range(0, MANY, 2))


def test_the_next_vector_has_the_rows_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).delete(of("b"))
    before = changed(path)["add"][0]["deletionVector"]
    reopened(path).upsert(of("de", ts=2))
    assert agree(path) == [("a", 1), ("c", 1), ("d", 2), ("e", 2)]
    found = changed(path)
    (removed,) = found["remove"]
    assert removed["deletionVector"] == before
    by_rows = {json.loads(one["stats"])["numRecords"]: one for one in found["add"]}
    assert by_rows[5]["path"] == removed["path"]
    assert by_rows[5]["deletionVector"]["cardinality"] == 3
    assert "deletionVector" not in by_rows[2]


def test_each_commit_is_a_version_that_others_travel_to(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path, **{"hoodie.clean.automatic": "false"}).insert(of("abcdefgh"))
    seen = {newest(path): agree(path)}
    for number, key in enumerate("abcabcabcabc", 2):  # past a checkpoint
        table = hudi.Table.open(path, {**BY_HAND, "hoodie.clean.automatic": "false"})
        table.upsert(of([key, f"n{number}"], ts=number))
        seen[newest(path)] = agree(path)
    assert any((path / "_delta_log").glob("*.checkpoint.parquet"))
    for number, found in seen.items():
        assert by_datafusion(path, number) == found
        assert by_polars(path, number) == found


def test_a_copy_on_write_table_needs_no_feature(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", SCHEMA, BY_HAND, format="delta")
    table.insert(of("ab"))
    table.delete(of("a"))
    assert DeltaTable(table.path).protocol().min_reader_version == 1


# --- contents -------------------------------------------------------------------------------------


def instant() -> Instant:
    time = parse_instant_time("20240101000000000")
    return Instant(time, Action.DELTACOMMIT, State.COMPLETED, time)


@pytest.mark.parametrize("count", [1, 3, 5000], ids=["one", "few", "many"])
def test_vectors_are_read_as_they_are_written(tmp_path: Path, count: int) -> None:
    client = open_table(split(tmp_path / "t").path, {}).client
    of_file = pa.array(range(0, 3 * count, 3)).to_numpy()
    (vector,) = new_vectors(client, instant(), {"f": of_file, "none": of_file[:0]}).values()
    assert (vector.storage, vector.cardinality) == ("u", count)
    assert positions(client, vector).tolist() == of_file.tolist()


def test_inline_vectors_are_in_z85(tmp_path: Path) -> None:
    client = open_table(split(tmp_path / "t").path, {}).client
    # another's implementation of it has other digits
    vector = Vector("i", "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg00000", None, 34, 1)
    assert positions(client, vector).tolist() == [0]
    assert base64.b85decode("HelloWorld")  # and that one's are no Z85
    damaged = Vector("i", '"', None, vector.size, 1)
    with pytest.raises(CorruptMetadataError, match="no Z85"):
        positions(client, damaged)
    with pytest.raises(CorruptMetadataError, match="another size"):
        positions(client, Vector("i", vector.place, None, vector.size, 2))
    with pytest.raises(UnsupportedTableError, match="outside of its folder"):
        positions(client, Vector("p", "s3://b/x.bin", 1, 34, 1))


# --- services -------------------------------------------------------------------------------------


def test_a_compaction_drops_the_vectors_it_merges(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).delete(of("bd"))
    reopened(path).compact()
    assert agree(path) == [("a", 1), ("c", 1), ("e", 1)]
    found = changed(path)
    assert [one["deletionVector"]["cardinality"] for one in found["remove"]] == [2]
    assert [one.get("deletionVector") for one in found["add"]] == [None]
    assert {one["dataChange"] for some in found.values() for one in some} == {False}
    assert live_vectors(path) == {}


def test_a_delete_since_the_plan_of_a_compaction_stays(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).delete(of("a"))
    reopened(path).compact(schedule_only=True)
    reopened(path).delete(of("d"))
    assert agree(path) == [("b", 1), ("c", 1), ("e", 1)]
    reopened(path).run_compactions()
    assert agree(path) == [("b", 1), ("c", 1), ("e", 1)]
    (added,) = changed(path)["add"]
    assert added["deletionVector"]["cardinality"] == 1
    assert json.loads(added["stats"])["numRecords"] == 4
    reopened(path).upsert(of("c", ts=2))
    assert agree(path) == [("b", 1), ("c", 2), ("e", 1)]


def test_a_clustering_drops_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    for number in range(2, 5):
        reopened(path).upsert(of("bd", ts=number))
    before = agree(path)
    assert reopened(path).cluster().result is not None
    assert agree(path) == before
    assert live_vectors(path) == {}


@pytest.mark.parametrize("key", ["b", "x"], ids=["present", "not there"])
def test_a_rollback_brings_the_vector_before_back(tmp_path: Path, key: str) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).delete(of("a"))
    before, vectors = agree(path), live_vectors(path)
    done = reopened(path).upsert(of([key], ts=2))
    reopened(path).rollback(done.instant.requested_time)
    assert agree(path) == before
    assert live_vectors(path) == vectors
    reopened(path).upsert(of("c", ts=3))
    assert agree(path) == sorted([*(one for one in before if one[0] != "c"), ("c", 3)])


def test_a_rollback_deletes_the_files_of_its_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    reopened(path).delete(of(keys(MANY)[::2]))
    before, files = agree(path), vector_files(path)
    done = reopened(path).delete(of(keys(MANY)[1:100]))
    assert len(vector_files(path)) == 2
    reopened(path).rollback(done.instant.requested_time)
    assert agree(path) == before
    assert vector_files(path) == files


def test_a_restore_brings_the_vectors_of_its_commit_back(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    kept = reopened(path).delete(of(keys(MANY)[::2]))
    before, files = agree(path), vector_files(path)
    reopened(path).savepoint(kept.instant.requested_time)
    reopened(path).delete(of(keys(MANY)[1:500]))
    reopened(path).cluster()
    reopened(path).upsert(of(keys(3, MANY), ts=4))
    reopened(path).restore(kept.instant.requested_time)
    assert agree(path) == before
    assert vector_files(path) == files
    reopened(path).upsert(of(keys(3), ts=5))
    assert len(agree(path)) == len(before) + 2


def test_a_restore_without_the_file_of_a_vector_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    kept = reopened(path).delete(of(keys(MANY)[::2]))
    reopened(path).savepoint(kept.instant.requested_time)
    reopened(path).delete(of(keys(MANY)[1:500]))
    (first, _) = sorted(vector_files(path))
    (path / first).unlink()
    with pytest.raises(TableServiceError, match="is gone"):
        reopened(path).restore(kept.instant.requested_time)


# --- what goes wrong ------------------------------------------------------------------------------


def test_vectors_of_a_dead_write_are_recovered(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    before = agree(path)
    with death_in("delta_format.commit.make_next"):
        reopened(path).delete(of(keys(MANY)[::2]))
    assert len(vector_files(path)) == 1
    reopened(path).upsert(of(keys(1), ts=7))  # which publishes the other first
    assert len(agree(path)) == len(before) // 2 + 1


def test_a_write_that_is_published_later_has_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    cut_short(monkeypatch, lambda: reopened(path).upsert(of("bd", ts=2)))
    reopened(path).upsert(of("e", ts=3))
    assert agree(path) == [("a", 1), ("b", 2), ("c", 1), ("d", 2), ("e", 3)]


def test_a_rolled_back_write_leaves_no_file_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    with death_in("delta_format.commit.make_next"):
        reopened(path).delete(of(keys(MANY)[::2]))
    assert len(vector_files(path)) == 1
    last = open_table(str(path), {}).client.timeline().completed_writes()[-1]
    reopened(path).rollback(last.requested_time)
    assert len(agree(path)) == MANY
    assert vector_files(path) == []


def test_files_of_vectors_go_with_the_versions_that_name_them(tmp_path: Path) -> None:
    path = tmp_path / "t"
    small = {
        "hoodie.cleaner.commits.retained": "2",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    split(path).insert(of(keys(MANY)))
    for number in range(26):
        some = keys(MANY)[number * 100 : number * 100 + 100 : 2]
        hudi.Table.open(path, {**BY_HAND, **small}).delete(of(some))
    assert len(agree(path)) == MANY - 26 * 50
    assert len(vector_files(path)) < 26
    named = {one.path for one in live_vectors(path).values()}
    assert named <= {*vector_files(path)}


@pytest.mark.parametrize("damage", ["cut", "gone", "changed"])
def test_a_damaged_file_of_vectors_is_an_error(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    reopened(path).delete(of(keys(MANY)[::2]))
    (file,) = (path / one for one in vector_files(path))
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-1] if damage == "cut" else data[:50] + b"!" + data[51:])
    with pytest.raises(HudiError, match="deletion_vector_"):
        reopened(path).delete(of(keys(MANY)[1:3]))
    assert reopened(path).repair(force=True).left == ()
    reopened(path).upsert(of(keys(1), ts=2))
    # what could not be published at first has taken one row out
    assert len(agree(path)) == MANY // 2 - 1 + 1


def _without_log(path: Path) -> None:
    shutil.rmtree(path / "_delta_log")


def _without_vector(path: Path) -> None:
    file = path / "_delta_log" / f"{newest(path):020d}.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("deletionVector", None)
    file.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize("damage", [_without_log, _without_vector])
def test_a_repair_makes_the_vectors_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    reopened(path).delete(of(keys(MANY)[::2]))
    before = agree(path)
    damage(path)
    assert reopened(path).validate().differences
    assert reopened(path).repair().left == ()
    assert agree(path) == before
    reopened(path).upsert(of(keys(1), ts=2))
    assert len(agree(path)) == len(before) + 1


def test_a_split_table_is_given_the_format(tmp_path: Path) -> None:
    path = tmp_path / "t"
    mode = {"hoodie.table.merge-on-read.mode": "split"}
    table = new_table(
        path, SCHEMA, {**BY_HAND, **mode}, table_type="MERGE_ON_READ", partition_by=None
    )
    table.insert(of("abcde"))
    table.upsert(of("bd", ts=2))
    reopened(path).convert("delta")
    assert agree(path) == [("a", 1), ("b", 2), ("c", 1), ("d", 2), ("e", 1)]
    reopened(path).delete(of("a"))
    assert len(agree(path)) == 4
    reopened(path).convert("native")
    assert len(reopened(path).to_arrow()) == 4
    assert vector_files(path)  # as the log does, which stays


def test_vectors_of_another_engine_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).upsert(of("e", ts=2))
    before = agree(path)
    (new,) = (one["path"] for one in changed(path)["add"] if "deletionVector" not in one)
    delete_in_place(path, "delta", new)
    (counted,) = reopened(path).repair(dry_run=True).foreign
    assert counted.deleted_rows == 1
    with pytest.raises(ForeignCommitError, match=r"4 rows.*5 rows"):
        reopened(path).upsert(of("b", ts=3))
    reopened(path).repair(discard=True)
    assert agree(path) == before


def test_a_vector_of_others_is_not_taken_in(tmp_path: Path) -> None:
    """As many rows are deleted as before, and others."""
    path = tmp_path / "t"
    split(path).insert(of("abcde"))
    reopened(path).delete(of("e"))
    before = agree(path)
    (file,) = (one["path"] for one in changed(path)["add"])
    delete_in_place(path, "delta", file)
    assert by_datafusion(path) == [("b", 1), ("c", 1), ("d", 1), ("e", 1)]
    write_deltalake(path, reopened(path).to_arrow().slice(0, 1), mode="append")
    with pytest.raises(HudiError, match=r"not made by a Hudi writer"):
        reopened(path).repair(take_in=True)
    reopened(path).repair(discard=True)
    assert agree(path) == before


def test_a_vacuum_of_all_leaves_files_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t"
    split(path).insert(of(keys(MANY)))
    reopened(path).delete(of(keys(MANY)[::2]))
    found = DeltaTable(str(path)).vacuum(
        0, dry_run=True, enforce_retention_duration=False, full=True
    )
    assert not [one for one in found if "deletion_vector" in one]


# --- adoption -------------------------------------------------------------------------------------


def of_others(path: Path) -> pa.Table:
    """A table of another engine, one of whose rows has a vector; its rows."""
    for some in ("abc", "de"):
        write_deltalake(path, of(some), mode="append")
    delete_in_place(path, "delta", ".")  # the first of the second file
    return of("abce")


def test_a_table_with_vectors_is_adopted_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "t"
    held_before = held(of_others(path).to_pylist())
    planned = hudi.Table.adopt(path, record_key="id", dry_run=True)
    assert (planned.rows, planned.obstacles) == (4, ())
    assert not (path / ".hoodie").exists()
    done = hudi.Table.adopt(path, record_key="id")
    assert (done.rows, done.files, done.keeps_history) == (4, 2, True)
    assert agree(path) == held_before
    assert by_datafusion(path, 2) == held_before  # the state of the other engine
    reopened(path).upsert(of("be", ts=2))
    assert agree(path) == [("a", 1), ("b", 2), ("c", 1), ("e", 2)]
    reopened(path).delete(of("a"))
    reopened(path).compact()
    assert agree(path) == [("b", 2), ("c", 1), ("e", 2)]


def test_a_table_that_may_have_vectors_is_adopted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, of("abc"))
    log = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    feature = ["deletionVectors"]
    for action in actions:
        action.get("protocol", {}).update(
            {"minReaderVersion": 3, "minWriterVersion": 7}
            | {"readerFeatures": feature, "writerFeatures": feature}
        )
    log.write_text("\n".join(map(json.dumps, actions)))
    hudi.Table.adopt(path, record_key="id")
    reopened(path).upsert(of("b", ts=2))
    assert agree(path) == [("a", 1), ("b", 2), ("c", 1)]


@pytest.mark.parametrize(
    "place",
    [
        "hudi_core.services.adoption.adopt.delete_dead_rows",
        "hudi_core.services.adoption.dead_rows.encode",
        "hudi_core.services.adoption.adopt._make_format",
        "hudi_core.services.adoption.adopt._remove_sources",
    ],
)
def test_an_adoption_that_died_goes_on(tmp_path: Path, place: str) -> None:
    path = tmp_path / "t"
    before = held(of_others(path).to_pylist())
    with death_in(place):
        hudi.Table.adopt(path, record_key="id")
    assert by_datafusion(path) == before
    hudi.Table.adopt(path, record_key="id")
    assert agree(path) == before


def test_a_table_with_vectors_is_no_copy_on_write_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    of_others(path)
    cow = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    with pytest.raises(UnsupportedTableError, match="deletionVectors"):
        hudi.Table.adopt(path, record_key="id", options=cow)
    assert not (path / ".hoodie").exists()


def test_rows_of_a_table_with_vectors_are_written_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    before = held(of_others(path).to_pylist())
    done = hudi.Table.adopt(path, record_key="id", rewrite=tmp_path / "new")
    assert done.rows == 4
    assert agree(tmp_path / "new") == before


# --- types, and another reader ------------------------------------------------------------------


def test_a_table_becomes_one_of_vectors_and_one_of_files_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    new_table(path, SCHEMA, BY_HAND, format="delta", partition_by=None).insert(of("abcde"))
    reopened(path).convert_type("MERGE_ON_READ")
    assert agree(path) == [(key, 1) for key in "abcde"]
    reopened(path).upsert(of("b", ts=2))
    assert agree(path) == [("a", 1), ("b", 2), ("c", 1), ("d", 1), ("e", 1)]
    assert live_vectors(path)
    reopened(path).convert_type("COPY_ON_WRITE")
    assert live_vectors(path) == {}
    reopened(path).upsert(of("a", ts=3))
    assert agree(path) == [("a", 3), ("b", 2), ("c", 1), ("d", 1), ("e", 1)]


def test_polars_finds_no_vector_where_a_path_is_escaped(tmp_path: Path) -> None:
    """Of any writer: the first file of a partition with a space, without its first row."""
    path = tmp_path / "t"
    two = pa.table({"id": ["a", "b"], "ts": [1, 1], "part": ["x y", "x y"]})
    write_deltalake(path, two, partition_by=["part"])
    delete_in_place(path, "delta", ".")
    assert by_datafusion(path) == [("b", 1)]
    assert by_polars(path) == [("a", 1), ("b", 1)]  # a newer polars may see one
