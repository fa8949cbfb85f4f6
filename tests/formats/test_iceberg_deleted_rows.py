"""Rows that commits of split tables delete by position, in Iceberg's versions 2 and 3."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFileContent, FileFormat

import hudi_core as hudi
from hudi_core.errors import (
    CommitStateUnknownError,
    ForeignCommitError,
    UnsupportedCapabilityError,
)
from iceberg_format.deletes import about, read_deletions
from iceberg_format.manifest_files import vector_place
from iceberg_format.manifests import ManifestStore
from iceberg_format.table import IcebergTable
from tests.formats.columns import CITIES
from tests.formats.dying_writers import Died, MortalStorage
from tests.formats.foreign_writers import delete_in_place
from tests.formats.iceberg_tables import (
    NOTED,
    OPTIONS,
    Iceberg,
    bag,
    by_hudi_rs,
    by_polars,
    create,
    lose,
    opened,
    summary,
    typed,
)
from tests.tables import new_table

SPLIT = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
VERSION = "hoodie.table.format.iceberg.format-version"


@pytest.fixture(params=["2", "3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    made = create(tmp_path / "t", **SPLIT, **{VERSION: request.param})
    made.insert(typed(range(30)))
    return made


def agree(table: hudi.Table) -> Counter[str]:
    """Rows that all readers see; the metadata and the log files say the same."""
    path, names = Path(table.path), NOTED.names
    ours = bag(hudi.Table.open(path).to_arrow().select(names))
    assert ours == bag(Iceberg(path).rows(names))
    assert ours == bag(by_polars(path, names))
    assert ours == bag(by_hudi_rs(path, names))
    assert not hudi.Table.open(path).validate().differences
    return ours


def store_of(table: hudi.Table) -> ManifestStore:
    iceberg = IcebergTable.open(opened(Path(table.path)).client)
    return ManifestStore(iceberg.files, iceberg.folder, iceberg.load().metadata)


def deletions(table: hudi.Table) -> dict[str, list[int]]:
    """Deleted positions by data file, of the current snapshot."""
    store = store_of(table)
    current = store.metadata.current_snapshot()
    assert current is not None
    found: dict[str, list[int]] = {}
    for file in store.deletions(current):
        assert file.content is DataFileContent.POSITION_DELETES
        is_vector = file.file_format is FileFormat.PUFFIN
        assert is_vector == (store.version == 3) == (vector_place(file) is not None)
        for path, positions in read_deletions(store.files, file):
            assert path == about(file)
            assert path not in found  # one file of a data file's deletions at a time
            assert len(positions) == file.record_count
            found[path] = positions.tolist()
    return found


def files_of_deletions(table: hudi.Table) -> set[Path]:
    return {*(Path(table.path) / "metadata").glob("*delet*")}


def test_every_operation_is_one_snapshot(table: hudi.Table) -> None:
    path = Path(table.path)
    for keys, ts in (([1, 2, 3, 40], 1), ([1, 4, 5], 2), ([40, 8], 3)):
        count = len(Iceberg(path).lineage)
        table.upsert(typed(keys, ts))
        assert len(Iceberg(path).lineage) == count + 1
        agree(table)
    table.delete(typed([6, 7]))
    agree(table)
    held = deletions(table)
    dead = sum(map(len, held.values()))
    counts = summary(Iceberg(path).lineage[-1])
    assert counts["total-position-deletes"] == str(dead)
    assert counts["total-delete-files"] == str(len(held))
    assert int(counts["total-records"]) - dead == hudi.Table.open(path).count()
    table.compact()
    assert deletions(table) == {}
    agree(table)
    table.upsert(typed([9], 4))
    assert deletions(table)
    agree(table)
    table.cluster()
    assert deletions(table) == {}
    agree(table)


def test_snapshots_of_before_are_as_they_were(table: hudi.Table) -> None:
    path, names = Path(table.path), NOTED.names
    states = []
    for ts in range(1, 5):
        made = table.upsert(typed([1, ts, 20 + ts], ts))
        states.append((made.instant, Iceberg(path).lineage[-1].snapshot_id, agree(table)))
    for instant, snapshot, rows in states:
        assert bag(hudi.Table.open(path).to_arrow(as_of=instant).select(names)) == rows
        assert bag(Iceberg(path).rows(names, snapshot)) == rows
    for number, (instant, _, _) in enumerate(states[:-1]):
        came = hudi.Table.open(path).incremental(instant, columns=["id", "ts"]).to_pylist()
        newest = {key: ts for ts in range(number + 2, 5) for key in (1, ts, 20 + ts)}
        assert {(one["id"], one["ts"]) for one in came} == {
            (f"k{key:03d}", ts) for key, ts in newest.items()
        }


def test_a_rollback_brings_rows_back(table: hudi.Table) -> None:
    table.upsert(typed([1, 2], 1))
    before, kept, positions = agree(table), files_of_deletions(table), deletions(table)
    table.upsert(typed([1, 3], 2))
    table.rollback(table.timeline.completed_writes()[-1])
    assert agree(table) == before
    assert files_of_deletions(table) == kept
    assert deletions(table) == positions


def test_a_restore_brings_rows_back(table: hudi.Table) -> None:
    saved = table.upsert(typed([1, 2], 1))
    before, positions = agree(table), deletions(table)
    table.savepoint(saved.instant)
    table.upsert(typed([1, 3], 2))
    table.compact()
    table.delete(typed([4]))
    table.restore(saved.instant)
    assert agree(table) == before
    assert deletions(table) == positions
    table.upsert(typed([5], 3))
    agree(table)


def test_files_of_deletions_go_with_their_snapshots(table: hudi.Table) -> None:
    for ts in range(1, 5):
        table.upsert(typed([1, 2, 20 + ts], ts))
    table.compact()
    for ts in range(5, 9):
        table.upsert(typed([3, 20 + ts], ts))
    agree(table)
    path = Path(table.path)
    named = {
        file.file_path
        for one in Iceberg(path).table.metadata.snapshots
        for file in store_of(table).deletions(one)
    }
    assert {f"file://{one}" for one in files_of_deletions(table)} == named
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    left = {
        file.file_path
        for one in Iceberg(path).table.metadata.snapshots
        for file in store_of(table).deletions(one)
    }
    assert left < named
    assert {f"file://{one}" for one in files_of_deletions(table)} == left
    agree(table)


def test_a_commit_that_iceberg_lacks_is_published_with_its_deletions(table: hudi.Table) -> None:
    path = Path(table.path)
    table.upsert(typed([1, 2], 1))
    table.upsert(typed([1, 3], 2))
    expected = agree(table)
    lose(path)
    table.clean()
    assert agree(table) == expected


def test_what_a_failed_attempt_left_is_found(table: hudi.Table) -> None:
    path = Path(table.path)
    table.upsert(typed([1, 2], 1))
    lose(path)
    assert any("delet" in one for one in opened(path).lister().leftovers())
    table.upsert(typed([3], 2))
    expected = agree(table)
    left = [one for one in opened(path).lister().leftovers() if "delet" in one]
    assert left  # those of the attempt that was made again
    table.purge()
    assert not [*opened(path).lister().leftovers()]
    assert agree(table) == expected


def test_metadata_is_rebuilt_with_deletions(table: hudi.Table) -> None:
    path = Path(table.path)
    table.upsert(typed([1, 2, 3], 1))
    table.delete(typed([4]))
    before, positions = agree(table), deletions(table)
    number = store_of(table).version
    for one in (path / "metadata").iterdir():
        one.unlink()
    hudi.Table.open(path).repair()
    assert agree(table) == before
    assert store_of(table).version == number
    assert deletions(table) == positions
    table.upsert(typed([1, 5], 2))
    agree(table)


def test_rows_that_are_deleted_while_a_compaction_waits_stay_deleted(table: hudi.Table) -> None:
    table.upsert(typed([1, 2, 3], 1))
    table.compact(schedule_only=True)
    table.delete(typed([4, 7]))
    expected = agree(table)
    table.run_compactions()
    assert agree(table) == expected
    # the files that it wrote have these rows
    assert sum(map(len, deletions(table).values())) == 2
    table.compact()
    assert agree(table) == expected
    assert deletions(table) == {}


def test_a_table_of_logs_with_positions_becomes_one_of_iceberg(tmp_path: Path) -> None:
    more = {"hoodie.table.format": "native", "hoodie.table.merge-on-read.mode": "split"}
    table = create(tmp_path / "t", **SPLIT, **more)
    table.insert(typed(range(20)))
    table.upsert(typed([1, 2, 30], 1))
    table.delete(typed([3]))
    table.convert("iceberg")
    expected = agree(table)
    assert sum(map(len, deletions(table).values())) == 3
    table = hudi.Table.open(table.path)
    table.upsert(typed([1, 4], 2))
    assert agree(table) != expected


def test_logs_with_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedCapabilityError, match="merge on read"):
        create(tmp_path / "new", **SPLIT, **{"hoodie.table.merge-on-read.mode": "logs"})
    assert not (tmp_path / "new").exists()
    table = create(tmp_path / "t", **SPLIT, **{"hoodie.table.format": "native"})
    table.insert(typed(range(5)))
    table.upsert(typed([1], 1))
    with pytest.raises(UnsupportedCapabilityError, match="merge on read"):
        table.convert("iceberg")
    assert not (tmp_path / "t" / "metadata").exists()


@pytest.mark.parametrize("part", ["rome", "oslo"])
def test_rows_that_others_delete_beside_ours(part: str, tmp_path: Path) -> None:
    """They are counted apart from ours, and can be taken out."""
    table = create(tmp_path / "t", **SPLIT)
    path = Path(table.path)
    table.insert(typed(range(30)))
    table.upsert(typed([8, 13], 1))
    expected, held = agree(table), deletions(table)
    delete_in_place(path, "iceberg", part)
    with pytest.raises(ForeignCommitError):
        hudi.Table.open(path).upsert(typed([2], 2))
    [counted] = hudi.Table.open(path).repair(dry_run=True).foreign
    assert (counted.added_rows, counted.removed_rows, counted.deleted_rows) == (0, 0, 1)
    hudi.Table.open(path).repair(discard=True)
    assert agree(table) == expected
    assert deletions(table) == held


@pytest.mark.parametrize("action", ["upsert", "compact", "rollback"])
def test_writers_that_die_leave_all_or_nothing(
    table: hudi.Table, action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, image = Path(table.path), tmp_path / "image"
    table.upsert(typed([1, 2, 8], 1))
    before = agree(table)
    shutil.copytree(path, image)

    def act() -> None:
        now = hudi.Table.open(path)
        if action == "upsert":
            now.upsert(typed([1, 3, 40], 2))
        elif action == "compact":
            now.compact()
        else:
            now.rollback(now.timeline.completed_writes()[-1])

    act()
    after = agree(table)
    storage = MortalStorage(monkeypatch)
    every = {"2": 5, "3": 7}[str(store_of(table).version)]
    for calls in range(1, 400):
        if calls % every:
            continue
        shutil.rmtree(path)
        shutil.copytree(image, path)
        storage.left = calls
        try:
            act()
        except Died:
            storage.left = 0
        else:
            break
        hudi.Table.open(path).delete(typed([29]))
        found = agree(table)
        for rows in (before, after):
            if found == rows - bag(typed([29])):
                break
        else:
            raise AssertionError(f"after {calls} changes: rows of neither state")
        assert not [*hudi.Table.open(path).validate().differences]
    storage.left = 0
    assert calls > 20, calls


PLAIN = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])


def plain(keys: Iterable[int], ts: int) -> pa.Table:
    rows = [{"id": f"k{key}", "city": ["rome", "oslo"][key % 2], "ts": ts} for key in keys]
    return pa.Table.from_pylist(rows, PLAIN)


@pytest.mark.parametrize("version", ["2", "3"])
def test_two_formats_have_the_deleted_rows_of_one_commit(tmp_path: Path, version: str) -> None:
    path, names = tmp_path / "t", PLAIN.names
    options = {**OPTIONS, **SPLIT, VERSION: version, "hoodie.table.format": "iceberg,delta"}
    table = new_table(path, PLAIN, options, partition_by="city")
    table.insert(plain(range(20), 0))
    acts: list[Callable[[], object]] = [
        lambda: table.upsert(plain([1, 2, 30], 1)),
        lambda: table.delete(plain([3], 1)),
        lambda: table.rollback(table.timeline.completed_writes()[-1]),
        lambda: table.upsert(plain([1, 5], 2)),
        table.compact,
        lambda: table.upsert(plain([6], 3)),
        table.cluster,
    ]
    for act in acts:
        act()
        ours = bag(hudi.Table.open(path).to_arrow().select(names))
        found = pl.scan_delta(str(path)).select(names).collect().to_arrow().cast(PLAIN)
        for rows in (Iceberg(path).rows(names), by_polars(path, names), found):
            assert bag(rows) == ours
        assert not hudi.Table.open(path).validate().differences


def test_data_files_elsewhere_lose_rows_too(tmp_path: Path) -> None:
    path, names = tmp_path / "t", PLAIN.names
    place = {
        "hoodie.storage.path": str(tmp_path / "store"),
        "hoodie.storage.strategy.class": "object_store",
    }
    table = new_table(path, PLAIN, {**OPTIONS, **SPLIT, **place}, partition_by="city")
    table.insert(plain(range(20), 0))
    for delete in (False, True):
        if delete:
            table.delete(plain([3], 1))
        else:
            table.upsert(plain([1, 2, 30], 1))
        assert bag(table.to_arrow().select(names)) == bag(Iceberg(path).rows(names))
    assert not hudi.Table.open(path).validate().differences


def test_damaged_deletions_are_named_and_made_again(table: hudi.Table) -> None:
    path = Path(table.path)
    table.upsert(typed([1, 2], 1))
    expected, held = agree(table), deletions(table)
    for one in files_of_deletions(table):
        content = bytearray(one.read_bytes())
        content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
        one.write_bytes(content)
    again = typed([1 + len(CITIES)], 2)  # another row of a file that has lost one
    with pytest.raises(CommitStateUnknownError, match=r"(puffin|deletes) is damaged"):
        hudi.Table.open(path).upsert(again)
    hudi.Table.open(path).repair(force=True)
    now = agree(table)
    assert now - expected == bag(again)
    assert sum(map(len, deletions(table).values())) == sum(map(len, held.values())) + 1


def test_states_of_before_a_change_of_the_type_keep_their_rows(table: hudi.Table) -> None:
    path, names = Path(table.path), NOTED.names
    made = table.upsert(typed([1, 2], 1))
    before = agree(table)
    hudi.Table.open(path).convert_type("COPY_ON_WRITE")
    table = hudi.Table.open(path)
    assert agree(table) == before
    table.upsert(typed([1, 3], 2))
    assert agree(table) != before
    assert bag(hudi.Table.open(path).to_arrow(as_of=made.instant).select(names)) == before
