"""What an instant took out of a table stays out of it when the instant is archived."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.errors import ForeignCommitError, TableServiceError
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from tests.foreign_services import foreign_archive, foreign_clean
from tests.formats.foreign_writers import append
from tests.formats.service_tables import SCHEMA, agree, bag, batch, by_hudi_rs, operator
from tests.samples import IS_WHOLE
from tests.tables import new_table

FEW = {
    "hoodie.fs.fsync": "false",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
BY_HAND = {**FEW, "hoodie.clean.automatic": "false"}
ALONE = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}


def replace(table: hudi.Table, by: str) -> None:
    if by == "cluster":
        table.cluster(sort_by="ts", options=ALONE)
    else:
        table.insert_overwrite(batch(2, "c"))


def go_on(table: hudi.Table, writes: int, since: int = 10) -> None:
    """Write to the other partition; what is there must stay as it is."""
    before = Counter(row["id"] for row in table.to_arrow(["id"]).to_pylist())
    before["x"] = 1
    for ts in range(since, since + writes):
        table.upsert(batch(ts, "x"))
        now = hudi.Table.open(table.path).to_arrow(["id"]).to_pylist()
        assert Counter(row["id"] for row in now) == before


def archived(table: hudi.Table) -> set[Action]:
    client = open_table(table.path, {}).client
    return {one.instant.action for one in client.archived.load()}


@pytest.mark.parametrize(
    ("table_format", "by"),
    [
        ("native", "cluster"),
        ("native", "insert_overwrite"),
        ("iceberg,delta", "cluster"),
        *([("iceberg,delta", "insert_overwrite")] if IS_WHOLE else []),
    ],
)
def test_replaced_rows_stay_out_when_a_savepoint_goes(
    tmp_path: Path, table_format: str, by: str
) -> None:
    path = tmp_path / "t"
    table = new_table(path, batch(1, "a", "b"), format=table_format, options=BY_HAND)
    saved = table.savepoint()
    replace(table, by)
    go_on(table, 2)
    table.clean()  # which leaves what the savepoint keeps
    table.delete_savepoint(saved.instant)
    go_on(table, 6)
    assert bag(by_hudi_rs(path), SCHEMA.names) == bag(table.to_arrow(), SCHEMA.names)
    assert archived(table) == {Action.COMMIT}
    assert table.clean().files  # of all partitions, as a savepoint is gone
    go_on(table, 3)
    assert Action.REPLACECOMMIT in archived(table)
    agree(path)
    assert hudi.Table.open(str(path)).validate(keys=True).differences == ()


def test_cleans_look_again_where_replaced_files_keep_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, batch(1, "a", "b"), format="native", options=FEW)
    saved = table.savepoint()
    replace(table, "cluster")
    go_on(table, 2)
    table.delete_savepoint(saved.instant)
    # a clean of another engine, which does not look again, is the last one
    table.upsert(batch(12, "x"), options={"hoodie.clean.automatic": "false"})
    blind_clean(table)
    go_on(table, 5, since=13)
    assert Action.REPLACECOMMIT in archived(table)
    assert len(table.timeline.completed_writes()) <= 4
    assert len(list(path.glob("rome/*.parquet"))) == 1


def blind_clean(table: hudi.Table) -> None:
    """A clean that knows of no savepoint, and looked at one partition only."""
    before = {one: one.read_bytes() for one in Path(table.path).glob("rome/*.parquet")}
    assert foreign_clean(table) is not None
    for one, content in before.items():
        one.write_bytes(content)


def test_a_table_that_is_clustered_for_long_keeps_a_short_timeline(tmp_path: Path) -> None:
    path, chance = tmp_path / "t", random.Random(3)
    table = new_table(
        path,
        batch(1, "a", "b"),
        format="native",
        options={**FEW, "hoodie.cleaner.commits.retained": "2"},
    )
    saved = None
    for ts in range(2, 1000 if IS_WHOLE else 28):
        table.upsert(batch(ts, chance.choice("abcnop")))
        if not ts % 3:
            table.cluster(sort_by="ts", options=ALONE)
        if not ts % 5:
            if saved is not None:
                table.delete_savepoint(saved.instant)
            saved = table.savepoint()
        if not ts % 13:
            keys = [row["id"] for row in hudi.Table.open(str(path)).to_arrow(["id"]).to_pylist()]
            assert len(keys) == len(set(keys))
            # what a savepoint holds back, and as much again
            assert len(table.timeline.completed_writes()) <= 4 + 2 * 7 + 3
    agree(path)
    assert table.validate(keys=True).differences == ()


def test_a_savepoint_whose_commit_replaced_files_that_are_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "t"
    beyond = {**BY_HAND, "hoodie.archive.beyond.savepoint": "true"}
    table = new_table(path, batch(1, "a", "b"), format="native", options=beyond)
    replaced = table.insert_overwrite(batch(2, "c")).instant
    saved = table.savepoint(replaced)
    go_on(table, 3)
    # another engine archives what came later
    client = open_table(str(path), {}).client
    archive(client, [one for one in table.timeline.completed_writes() if one != replaced][:3])
    table = hudi.Table.open(str(path), beyond)
    with pytest.raises(TableServiceError, match="files that it replaced"):
        table.delete_savepoint(saved.instant)
    assert [one.instant for one in table.savepoints] == [saved.instant]
    before = bag(table.to_arrow(), SCHEMA.names)
    table.clean(options={"hoodie.cleaner.incremental.mode": "false"})
    table.delete_savepoint(saved.instant)
    assert bag(hudi.Table.open(str(path)).to_arrow(), SCHEMA.names) == before


@pytest.mark.parametrize("undone", ["rollback", "restore"])
def test_late_files_of_undone_writes_never_count(
    tmp_path: Path, undone: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t"
    table = new_table(
        path,
        batch(1, "a", "b"),
        format="native",
        options={**FEW, "hoodie.metadata.enable": "false"},
    )
    kept = table.timeline.completed_writes()[-1]
    gone = table.upsert(batch(2, "a", "e")).instant
    [file] = path.glob(f"rome/*_{gone.requested_time}.parquet")
    copy = tmp_path / "late"
    shutil.copy(file, copy)
    if undone == "rollback":
        table.rollback(gone)
    else:
        table.restore(kept)
    shutil.copy(copy, file)  # by a task that outlived its write
    go_on(table, 7)
    assert gone.requested_time < table.timeline.completed_writes()[0].requested_time
    assert not file.exists()
    assert f"{file.name} is left" in caplog.text
    agree(path)


def damaged(path: Path, table_format: str, by: str) -> hudi.Table:
    """A table whose replaced rows are back: what replaced them was archived too early."""
    table = new_table(
        path,
        batch(1, "a", "b"),
        format=table_format,
        options={**BY_HAND, "hoodie.archive.automatic": "false"},
    )
    replace(table, by)
    go_on(table, 3)
    expected = bag(table.to_arrow(), SCHEMA.names)
    assert any(
        one.action is Action.REPLACECOMMIT for one in foreign_archive(table, with_replacing=True)
    )
    table = hudi.Table.open(str(path), {**BY_HAND, "hoodie.archive.automatic": "false"})
    assert bag(table.to_arrow(), SCHEMA.names) != expected
    return table


DAMAGED = [
    *[("native", "cluster"), ("native", "insert_overwrite"), ("iceberg,delta", "cluster")],
    *([("iceberg,delta", "insert_overwrite")] if IS_WHOLE else []),
]


@pytest.mark.parametrize(("table_format", "by"), DAMAGED)
def test_a_repair_takes_out_what_has_come_back(tmp_path: Path, table_format: str, by: str) -> None:
    path = tmp_path / "t"
    table = damaged(path, table_format, by)
    found = table.validate().differences
    assert any("is the table's again" in str(one) for one in found)
    before = sorted(path.rglob("*.parquet"))
    planned = table.repair(dry_run=True)
    assert (len(planned.returned), sorted(path.rglob("*.parquet"))) == (1, before)
    done = table.repair()
    assert (done.returned, done.left) == (planned.returned, ())
    table = hudi.Table.open(str(path), FEW)
    want = ["a", "b", "x"] if by == "cluster" else ["c", "x"]
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == want
    agree(path)
    assert table.validate(keys=True).differences == ()
    assert not table.repair().is_needed
    go_on(table, 6, since=20)
    agree(path)


BESIDE = [
    *[("iceberg", "cluster"), ("delta", "insert_overwrite")],
    *([("iceberg", "insert_overwrite"), ("delta", "cluster")] if IS_WHOLE else []),
]


@pytest.mark.parametrize(("table_format", "by"), BESIDE)
@pytest.mark.parametrize("way", ["take_in", "discard"])
def test_a_repair_takes_them_out_beside_rows_of_others(
    tmp_path: Path, table_format: str, by: str, way: str
) -> None:
    """The format names no file of theirs, which is nobody's deletion; a key is in one of them."""
    path = tmp_path / "t"
    damaged(path, table_format, by)
    append(path, table_format, batch(50, "a", "e", "z"))
    table = hudi.Table.open(str(path))
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, counted.removed) == (3, ())
    with pytest.raises(ForeignCommitError, match=r"3 rows in 2 files added\."):
        table.repair()
    done = table.repair(take_in=True) if way == "take_in" else table.repair(discard=True)
    assert (len(done.returned), done.left) == (1, ())
    want = {"a", "b", "x"} if by == "cluster" else {"c", "x"}
    want |= {"a", "e", "z"} if way == "take_in" else set()
    table = hudi.Table.open(str(path), FEW)
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == sorted(want)
    agree(path)
    assert table.validate(keys=True).differences == ()
    go_on(table, 5, since=60)
    agree(path)


@pytest.mark.parametrize("by", ["cluster", "insert_overwrite"])
@pytest.mark.parametrize("indexed", ["true", "false"])
def test_what_was_written_to_them_since_is_kept(tmp_path: Path, by: str, indexed: str) -> None:
    path = tmp_path / "t"
    table = damaged(path, "native", by)
    if indexed == "true":
        operator(path).index("record_index")
    # of the rows that are back one is updated, one deleted; a new one may be put beside them
    table.upsert(batch(30, "a", "d"))
    table.delete(batch(31, "b"))
    assert any("written to since" in str(one) for one in table.validate().differences)
    done = table.repair()
    assert (len(done.returned), done.left) == (1, ())
    table = hudi.Table.open(str(path), FEW)
    want = [("a", 30), ("d", 30), ("x", 12)] + ([("c", 2)] if by != "cluster" else [])
    rows = table.to_arrow(["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in rows) == sorted(want)
    assert table.validate(keys=True).differences == ()
    agree(path)
    table.upsert(batch(40, "a", "d"))
    assert table.count() == len(want)
    go_on(table, 5, since=41)


def test_a_savepoint_that_keeps_them_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(
        path,
        batch(1, "a", "b"),
        format="native",
        options={**BY_HAND, "hoodie.archive.automatic": "false"},
    )
    saved, first = table.savepoint(), bag(table.to_arrow(), SCHEMA.names)
    replace(table, "insert_overwrite")
    go_on(table, 3)
    expected = bag(table.to_arrow(), SCHEMA.names)
    client = open_table(str(path), {}).client
    archive(client, table.timeline.completed_writes()[1:-1])
    assert bag(hudi.Table.open(str(path)).to_arrow(), SCHEMA.names) != expected
    done = table.repair()
    assert (len(done.returned), done.left) == (1, ())
    assert bag(hudi.Table.open(str(path)).to_arrow(), SCHEMA.names) == expected
    assert bag(table.to_arrow(as_of=saved.instant), SCHEMA.names) == first


def test_a_repair_that_died_is_finished_by_a_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    table = damaged(path, "native", "cluster")

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("hudi_core.txn.clean.delete_cleaned", die)
        with pytest.raises(SystemExit):
            table.repair()
    table.clean()
    assert table.validate(keys=True).differences == ()
    agree(path)
