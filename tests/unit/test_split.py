"""Tables of the mode split: an update deletes a position, and adds a row elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import (
    CommitConflictError,
    OptionConflictError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.file_slice import stored_slice
from hudi_core.model import operation as operations
from hudi_core.model.files import BaseFileName, FileId, LogFileName, PartitionPath
from hudi_core.services.opening import open_table
from hudi_core.spi.files import all_deleted_positions
from hudi_core.write import steps
from hudi_core.write.append_handle import append_group, give_up_rows
from hudi_core.write.merge_handle import GroupTask, MovedRows
from hudi_core.write.planning import GroupWrite
from hudi_core.write.steps import with_moved
from tests.calls import calls_of
from tests.cli_runs import run
from tests.foreign import by_hudi_rs
from tests.tables import new_table

MODE: Final = "hoodie.table.merge-on-read.mode"
SHARE: Final = "hoodie.clustering.plan.strategy.deleted.rows.share"
SMALL: Final = "hoodie.clustering.plan.strategy.small.file.limit"
BASE_FILES: Final = {"hoodie.datasource.query.type": "read_optimized"}
OPTIONS: Final = {MODE: "split", "hoodie.compact.inline": "false"}
COLUMNS: Final = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
)
INDEXES: Final[Mapping[str, Mapping[str, str]]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "RECORD_INDEX": {"hoodie.metadata.record.index.enable": "true"},
}


def lettered(*ids: str, ts: int = 1, v: str = "", part: str | None = None) -> pa.Table:
    """Rows whose keys begin with their partition."""
    parts = [part or one[0] for one in ids]
    return pa.table([list(ids), parts, [ts] * len(ids), [v] * len(ids)], schema=COLUMNS)


def made(path: Path, options: Mapping[str, str] = OPTIONS, **given: Any) -> hudi.Table:
    """A table of two partitions, each of one file."""
    table = new_table(path, COLUMNS, {**OPTIONS, **options}, table_type="MERGE_ON_READ", **given)
    table.insert(lettered("a1", "a2", "a3", "a4", "b1", "b2"))
    return table


def values(table: hudi.Table, **given: Any) -> dict[str, str]:
    """Key and value of each row, of which no two have one key."""
    found = hudi.Table.open(table.path).to_arrow(["id", "v"], **given).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


def by_judge(table: hudi.Table) -> dict[str, str]:
    found = by_hudi_rs(table.path)
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


def require_split(table: hudi.Table) -> None:
    """Compare rows, and require that base files without dead positions are the table."""
    assert values(table) == by_judge(table)
    opened = hudi.Table.open(table.path)
    assert opened.count() == len(values(table))
    slices = opened.file_slices()
    dead = all_deleted_positions(open_table(table.path, {}).client, slices)
    read = []
    for one in slices:
        assert one.base_file is not None
        file = one.base_file.path
        found = pa.parquet.read_table(Path(table.path, file)).to_pylist()
        gone = set(dead.get(file, ()))
        read += [row for number, row in enumerate(found) if number not in gone]
    assert {row["id"]: row["v"] for row in read} == values(table)
    assert opened.validate(keys=True).is_valid


def written(table: hudi.Table) -> tuple[set[FileId], set[FileId]]:
    """File groups that got a log, and a base file, by the last commit."""
    client = open_table(table.path, {}).client
    stats = client.read_commit(client.timeline().completed_writes()[-1]).stats
    names = [(stat.path or "").rpartition("/")[2] for stat in stats]
    logs = [LogFileName.parse(name) for name in names]
    bases = [BaseFileName.parse(name) for name in names]
    found = {one.file_id for one in logs if one}, {one.file_id for one in bases if one}
    assert not found[0] & found[1]
    return found


@pytest.mark.parametrize("index", INDEXES)
def test_an_update_deletes_a_position_and_adds_a_row(tmp_path: Path, index: str) -> None:
    table = made(tmp_path / "t", {"hoodie.index.type": index, **INDEXES[index]})
    groups = {one.file_id for one in table.file_slices()}
    done = table.upsert(lettered("a1", "b1", "a5", ts=2, v="new"))
    assert (done.inserted, done.updated, done.deleted, done.action) == (1, 2, 0, "deltacommit")
    given, taken = written(table)
    assert given == groups
    assert len(taken) == 2
    require_split(table)
    # the key is in two base files by now, and its row in one
    assert table.upsert(lettered("a1", ts=3, v="newer")).updated == 1
    assert table.delete(lettered("a1", "b2")).deleted == 2
    assert "a1" not in values(table)
    require_split(table)
    # a key that was deleted comes again as a new row
    assert table.upsert(lettered("a1", ts=1, v="again")).inserted == 1
    assert values(table)["a1"] == "again"
    require_split(table)


@pytest.mark.parametrize(("processors", "rounds"), [(1, 1), (2, 2)])
def test_partitions_are_tasks_unless_one_is_long(
    tmp_path: Path, processors: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_SHORT_TASK", 0)
    table = made(tmp_path / "t")
    noted = calls_of(monkeypatch, LocalEngine, "map_tasks")
    rows = lettered("a1", "a2", "a9", "b1", ts=2, v="new")
    done = table.upsert(rows, engine=LocalEngine(processors))
    assert (done.inserted, done.updated, done.files) == (1, 3, 4)
    writing = {give_up_rows, append_group, steps.split_partition}
    functions = [getattr(function, "func", None) for _, _, function, *_ in noted]
    assert len(writing.intersection(functions)) == rounds
    require_split(table)


@pytest.mark.parametrize("order", ["ts", None])
def test_late_updates_change_nothing(tmp_path: Path, order: str | None) -> None:
    table = made(tmp_path / "t", ordering_field=order)
    late = table.upsert(lettered("a1", ts=0, v="late"))
    assert late.updated == (0 if order else 1)
    assert values(table)["a1"] == ("" if order else "late")
    assert table.upsert(lettered("a2", ts=1, v="same")).updated == 1
    require_split(table)


def test_partial_updates_take_the_rest_of_the_row(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.upsert(lettered("a1", "a2", ts=2, v="kept"))
    some = lettered("a1", ts=3).select(["id", "part", "ts"])
    table.upsert(some, options={"hoodie.table.partial.update.mode": "KEEP_VALUES"})
    assert values(table)["a1"] == "kept"
    table.update({"v": "v || '!'"}, where="ts = 3")
    assert values(table)["a1"] == "kept!"
    assert written(table)[0]
    merger = table.merge(lettered("a2", "a9", ts=5, v="m"), on="id").when_matched_update(
        {"v": "'x'"}
    )
    merger.when_not_matched_insert_all().execute()
    assert (values(table)["a2"], values(table)["a9"]) == ("x", "m")
    assert table.delete(where="id = 'a3'").deleted == 1
    require_split(table)


def test_rows_move_between_partitions(tmp_path: Path) -> None:
    options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    table = made(tmp_path / "t", options)
    done = table.upsert(lettered("a1", ts=2, v="moved", part="b"))
    assert values(table)["a1"] == "moved"
    assert done.files == 2
    require_split(table)


def test_small_files_take_rows_unless_they_give_some_up(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.upsert(lettered("a1", ts=2, v="new"))
    [first], [second] = written(table)
    # the second group is small, and gives up nothing
    table.upsert(lettered("a2", "a7", ts=2, v="new"))
    assert written(table) == ({first}, {second})
    # now it does, and the row of a new group comes with it
    table.upsert(lettered("a2", "a8", ts=3, v="newer"))
    [gave], [took] = written(table)
    assert (gave, took != first) == (second, True)
    require_split(table)


def test_every_row_that_is_given_up_has_a_group() -> None:
    part, operation = PartitionPath("a"), operations.UPSERT

    def task(name: str, moved: int) -> GroupTask:
        group = GroupWrite(part, FileId(name), None, None, 0, 0, 0, moved=moved)
        return GroupTask(group, (), None, operation)

    def taken(*given: int) -> list[list[tuple[str, int, int]]]:
        rows = [MovedRows(str(count), 0, count, 0) for count in given]
        tasks = with_moved([task("x", 2), task("y", 1), task("z", 1)], {part: rows})
        return [[(str(one.rows), one.begin, one.end) for one in some.moved] for some in tasks]

    assert taken(3, 1) == [[("3", 0, 2)], [("3", 2, 3)], [("1", 0, 1)]]
    # fewer than there is room for, and more
    assert taken(1) == [[("1", 0, 1)]]
    assert taken(1, 5) == [[("1", 0, 1), ("5", 0, 1)], [("5", 1, 2)], [("5", 2, 5)]]


def test_a_change_feed_pairs_deletion_and_row(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    begin = table.upsert(lettered("a1", "b1", "b9", ts=2, v="new")).instant
    table.delete(lettered("a2"))
    first = table.timeline.completed_writes()[0].requested_time
    found = table.changes(first, images="struct").to_pylist()
    ops = {(row["op"], (row["after"] or row["before"])["id"]) for row in found}
    assert ops == {("u", "a1"), ("u", "b1"), ("i", "b9"), ("d", "a2")}
    [update] = [row for row in found if (row["after"] or {}).get("id") == "a1"]
    assert (update["before"]["v"], update["after"]["v"]) == ("", "new")
    [matched] = table.changes(first, filter=[("v", "=", "new"), ("id", "=", "b1")]).to_pylist()
    assert matched["op"] == "u"
    net = table.incremental(first, deletes=True, columns=["id", "_change_type"])
    assert {(row["id"], row["_change_type"]) for row in net.to_pylist()} == {
        ("a1", "update"),
        ("b1", "update"),
        ("b9", "insert"),
        ("a2", "delete"),
    }
    assert table.incremental(begin, columns=["id"]).num_rows == 0
    assert table.compact().result is not None
    assert table.changes(begin).num_rows == 1


def test_base_files_alone_are_refused_until_they_are_the_table(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert hudi.read(None, table.path, BASE_FILES).num_rows == 6
    table.upsert(lettered("a1", ts=2, v="new"))
    with pytest.raises(UnsupportedTableError, match="former version of an updated row"):
        hudi.read(None, table.path, BASE_FILES)
    before = values(table)
    assert table.compact().logs == 1
    found = hudi.read(None, table.path, BASE_FILES).to_pylist()
    assert {row["id"]: row["v"] for row in found} == values(table) == before
    with pytest.raises(TableServiceError, match="its log files have no rows"):
        table.compact(log_compaction=True)
    require_split(table)


@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_deletes_since_a_plan_stay_deleted(tmp_path: Path, service: str) -> None:
    given = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    table = made(tmp_path / "t", given)
    table.upsert(lettered("a1", "a2", ts=2, v="new"))
    planned = getattr(table, service)(schedule_only=True).instant
    table.delete(lettered("a1", "a3"))
    table.upsert(lettered("a2", ts=3, v="newer"))
    expected = values(table)
    other = hudi.Table.open(table.path, given)
    if service == "compact":
        other.run_compactions()
    else:
        with pytest.raises(CommitConflictError):  # it is given up: its slices have other logs
            other.run_clusterings(planned)
    assert values(table) == expected == {"a2": "newer", "a4": "", "b1": "", "b2": ""}
    require_split(table)
    table.compact()
    require_split(table)


def test_clustering_takes_files_with_many_dead_rows(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"hoodie.parquet.small.file.limit": "0"})
    table.delete(lettered("a1"))
    expected = values(table)
    few = {SMALL: "0", SHARE: "0.3"}
    assert table.cluster(options=few).result is None
    done = table.cluster(options={SMALL: "0"})
    assert (done.files, done.logs) == (1, 1)
    assert values(table) == expected
    assert all(not one.log_files for one in table.file_slices())
    require_split(table)


def test_a_compaction_after_a_commit_takes_what_is_worth_it(tmp_path: Path) -> None:
    given = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    table = made(tmp_path / "t", {**given, SHARE: "0.5", "hoodie.parquet.small.file.limit": "0"})
    table.delete(lettered("a1", "b1"))
    table.upsert(lettered("a2", ts=2, v="new"))
    # of 4 rows of the first file two are dead, of two rows of the other one
    assert [len(one.log_files) for one in table.file_slices()] == [0, 0, 0]
    table.delete(lettered("a3"))
    table.upsert(lettered("a4", "b3", ts=3, v="new"))
    table.upsert(lettered("b3", ts=4, v="newer"))
    require_split(table)


def test_a_table_becomes_split_and_goes_back(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", COLUMNS)
    table.insert(lettered("a1", "a2"))
    with pytest.raises(OptionConflictError, match="split"):
        hudi.Table.open(table.path, {MODE: "split"})
    found = run("table", "convert", table.path, "--type", "MERGE_ON_READ", "-o", f"{MODE}=split")
    assert found.exit_code == 0, found.output
    table = hudi.Table.open(table.path)
    assert table.config.merge_on_read_mode == "split"
    table.upsert(lettered("a1", ts=2, v="new"))
    require_split(table)
    with pytest.raises(OptionConflictError, match="split"):
        table.convert_type("MERGE_ON_READ", options={MODE: "logs"})
    assert table.convert_type("COPY_ON_WRITE").logs == 1
    table = hudi.Table.open(table.path)
    assert not table.config.is_split
    assert values(table) == by_judge(table) == {"a1": "new", "a2": ""}
    table.convert_type("MERGE_ON_READ")
    assert hudi.Table.open(table.path).config.merge_on_read_mode == "logs"
    again = made(tmp_path / "again")
    assert again.convert_type("COPY_ON_WRITE").is_made  # its options name the mode
    assert again.upsert(lettered("a1", ts=2, v="new")).action == "commit"


def test_a_purge_erases_dead_rows(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.upsert(lettered("a1", ts=2, v="new"))
    table.delete(lettered("a1", "b1"))
    expected = values(table)
    table.purge()
    assert values(table) == by_judge(table) == expected
    files = [one for one in Path(table.path).rglob("*.parquet") if ".hoodie" not in one.parts]
    held = {row["id"] for one in files for row in pa.parquet.read_table(one).to_pylist()}
    assert held == set(expected)


def test_a_rollback_takes_both_halves_back(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"hoodie.index.type": "RECORD_INDEX", **INDEXES["RECORD_INDEX"]})
    saved = table.savepoint().instant
    before = values(table)
    done = table.upsert(lettered("a1", "b1", ts=2, v="new"))
    table.rollback(done.instant)
    assert values(table) == before
    require_split(table)
    table.upsert(lettered("a1", ts=3, v="other"))
    table.restore(saved)
    assert values(table) == before
    require_split(table)
    table.upsert(lettered("a1", ts=3, v="last"))
    require_split(table)
    assert values(table, as_of=saved) == before


def test_a_stage_is_published(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    stage = table.stage(lettered("a1", "a9", ts=2, v="staged"))
    assert values(table)["a1"] == ""
    stage.publish()
    assert (values(table)["a1"], values(table)["a9"]) == ("staged", "staged")
    require_split(table)


def test_a_dry_run_plans_both_halves(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    plan = table.plan("upsert", lettered("a1", ts=2, v="new"))
    assert {one.change.value for one in plan.files} == {"append", "create"}


@pytest.mark.parametrize("mode", ["split", "logs"])
def test_changes_since_a_plan_that_was_run_later(tmp_path: Path, mode: str) -> None:
    """The slice before the compaction is cleaned; the state that changes are asked from is not."""
    table = made(tmp_path / "t", {MODE: mode, "hoodie.clean.automatic": "false"})
    table.upsert(lettered("a1", ts=2, v="one"))
    table.compact(schedule_only=True)
    begin = table.upsert(lettered("a2", ts=3, v="two")).instant
    table.run_compactions()
    table.delete(lettered("a3"))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    found = table.changes(begin, images="struct").to_pylist()
    assert [(row["op"], row["before"]["id"]) for row in found] == [("d", "a3")]
    net = table.incremental(begin, deletes=True, columns=["id"]).to_pylist()
    assert [(row["id"], row["_change_type"]) for row in net] == [("a3", "delete")]


def test_the_version_changes_and_keys_become_virtual(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"hoodie.write.table.version": "8"})
    table.upsert(lettered("a1", "b1", ts=2, v="new"))
    expected = values(table)
    table.upgrade(9)
    assert values(table) == by_judge(table) == expected
    table = hudi.Table.open(table.path)
    table.upsert(lettered("a2", ts=3, v="newer"))
    table.rewrite_keys()
    table = hudi.Table.open(table.path)
    assert table.upsert(lettered("a2", "b2", ts=4, v="last")).updated == 2
    assert written(table)[0]
    assert values(table) == {**expected, "a2": "last", "b2": "last"}
    assert hudi.Table.open(table.path).validate(keys=True).is_valid


@pytest.mark.parametrize("meta", ["hoodie.populate.meta.fields", "hoodie.metadata.enable"])
def test_tables_without_meta_columns_or_metadata_table(tmp_path: Path, meta: str) -> None:
    table = made(tmp_path / "t", {meta: "false"})
    table.upsert(lettered("a1", "b1", "a9", ts=2, v="new"))
    table.delete(lettered("a2"))
    require_split(table)


def test_streams_of_rows_of_one_key_are_combined(tmp_path: Path) -> None:
    """Of several rows of a key one is written, in whatever groups they meet."""
    table = made(tmp_path / "t", {"hoodie.combine.before.upsert": "false"})
    twice = pa.concat_tables([lettered("a1", ts=2, v="x"), lettered("a1", ts=3, v="y")])
    table.upsert(twice)
    assert values(table)["a1"] == "y"
    require_split(table)


def test_tables_with_rows_of_one_key_are_rewritten(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"hoodie.parquet.small.file.limit": "0"})
    table.insert_overwrite(pa.concat_tables([lettered("a1", "a2"), lettered("a1")]))
    assert table.upsert(lettered("a1", "b1", ts=2, v="new")).updated == 3
    given, taken = written(table)
    assert (len(given), len(taken)) == (1, 2)
    found = [row["v"] for row in table.to_arrow().to_pylist() if row["id"] == "a1"]
    assert found == ["new", "new"]


def test_deleted_rows_have_the_keys_they_were_found_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t")
    read = calls_of(monkeypatch, stored_slice, "read_columns")
    table.upsert(lettered("a2", "b1", ts=2, v="new"))
    # those of stored rows are not read a second time
    assert [names for *_, names in read] == [["ts"], ["ts"]]
    require_split(table)
    table.delete(lettered("a3"))
    require_split(table)
    assert values(table).keys() == {"a1", "a2", "a4", "b1", "b2"}
