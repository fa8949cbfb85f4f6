"""Data files that move to another storage layout and back, in every format."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.config.placement import placement_of
from hudi_core.config.storage_move import MOVE_PROPERTY, MovePhase, StorageMove
from hudi_core.config.write import WriteConfig
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import (
    ConcurrentWriterError,
    InvalidOptionError,
    OptionConflictError,
    StoragePathTakenError,
    TableServiceError,
    UnsupportedCapabilityError,
)
from hudi_core.model.commit import WriteOperation
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.storage.disk import Disk
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.txn.begin import begin
from hudi_core.txn.table_lock import table_lock
from tests.federated_tables import (
    OBJECT_STORE,
    Federated,
    Store,
    is_data,
    many,
    ordered,
    placed_table,
    trips,
)
from tests.moto_s3 import S3Service
from tests.samples import IS_WHOLE, sampled
from tests.tables import FORMATS
from tests.unit.mortal_disk import Killed, MortalDisk

BACK = {"hoodie.storage.strategy.class": "default"}


def at(root: str, bits: int = 5, **more: str) -> dict[str, str]:
    """Options of an object-store layout."""
    return {
        **OBJECT_STORE,
        "hoodie.storage.path": root,
        "hoodie.storage.strategy.hash.bits": str(bits),
        **more,
    }


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store("disk", tmp_path)


def filled(store: Store, table_format: str, **how: Any) -> tuple[Federated, dict[str, Any]]:
    """A table of some commits, and its rows as of each."""
    made = placed_table(store, table_format, **how)
    for ts, keys in enumerate((range(12), range(6, 18), range(3)), start=1):
        made.table.upsert(many(keys, ts))
    past: dict[str, Any] = {
        one.requested_time: ordered(made.table.to_arrow(as_of=one))
        for one in made.table.timeline.completed_writes()
    }
    return made, past


def data_places(store: Store, *roots: str) -> list[str]:
    return [path for root in roots for path in store.files(root) if is_data(path)]


def require_whole(one: Federated, expected: Any, past: Mapping[str, Any]) -> None:
    """Everybody reads the rows, and nothing is left over."""
    table = hudi.Table.open(one.base, one.store.options)
    assert ordered(table.to_arrow()) == expected
    here = Federated(one.store, table, one.base, one.root)
    assert here.foreign_rows() in (None, expected)
    for instant, there in past.items():
        assert ordered(table.to_arrow(as_of=instant)) == there
    report = table.validate()
    assert (report.differences, report.orphans) == ((), ())
    assert MOVE_PROPERTY not in read_properties(
        open_table(one.base, one.store.options).client.storage
    )


def moved(one: Federated, root: str) -> Federated:
    return Federated(one.store, one.table, one.base, root)


@pytest.mark.parametrize("table_format", FORMATS)
def test_files_move_there_and_back(disk: Store, table_format: str) -> None:
    plain, past = filled(disk, table_format, plain=True)
    expected = ordered(plain.table.to_arrow())
    first, second = disk.new("first"), disk.new("second")
    before = sorted(path.rpartition("/")[2] for path in data_places(disk, plain.base))
    stale = hudi.Table.open(plain.base)

    done = plain.table.convert_storage(at(first))
    assert (done.is_made, done.copied, done.files) == (True, len(before), len(before))
    one = moved(plain, first)
    one.require_placed()
    assert sorted(path.rpartition("/")[2] for path in one.data_files()) == before
    require_whole(one, expected, past)
    # one that was opened before writes where the files are now
    stale.upsert(many(range(2), 7))
    one.require_placed()
    expected = ordered(hudi.Table.open(plain.base).to_arrow())
    assert {row["ts"] for row in expected if row["id"] in ("k000", "k001")} == {7}
    require_whole(one, expected, past)

    # other prefixes in the same place, then another place
    one.table.convert_storage(at(first, bits=3))
    assert {path[:2] for path in one.data_files()} <= {f"{n}/" for n in range(8)}
    require_whole(one, expected, past)
    one.table.convert_storage(at(second))
    assert disk.files(first) == []
    one = moved(one, second)
    one.require_placed()
    require_whole(one, expected, past)
    one.table.convert_storage({**BACK, "hoodie.storage.path": first})
    assert disk.files(second) == []
    assert all(path.startswith("trips/") for path in data_places(disk, first))
    require_whole(moved(one, first), expected, past)

    done = one.table.convert_storage(BACK)
    assert done.is_made
    assert disk.files(first) == []
    one = moved(one, one.base)
    require_whole(one, expected, past)
    assert not one.table.convert_storage(BACK).is_needed
    one.table.insert(many(range(50, 53), 8))
    expected = ordered(hudi.Table.open(plain.base).to_arrow())
    assert len(expected) == 21
    require_whole(one, expected, past)


@pytest.mark.parametrize("table_format", FORMATS)
def test_services_go_on_at_the_new_place(disk: Store, table_format: str) -> None:
    plain, _ = filled(disk, table_format, plain=True)
    root = disk.new("store")
    plain.table.convert_storage(at(root))
    one, table = moved(plain, root), plain.table
    table.upsert(many(range(18), 5))
    saved = ordered(table.to_arrow())
    instant = str(table.history().to_pylist()[0]["instant"])
    table.savepoint(instant)
    table.upsert(many(range(4), 6))
    table.rollback(str(table.history().to_pylist()[0]["instant"]))
    assert ordered(table.to_arrow()) == saved
    table.upsert(many(range(4), 7))
    table.upsert(many(range(4), 8))
    files = len(one.data_files())
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert len(one.data_files()) < files
    table.restore(instant)
    one.require_placed()
    require_whole(one, saved, {})
    table.delete_savepoint(instant)
    table.drop()
    assert disk.files(root) == []


def test_savepoints_move_with_a_native_table(disk: Store) -> None:
    plain, past = filled(disk, "native", plain=True)
    instants = sorted(past)
    plain.table.savepoint(instants[1])
    root = disk.new("store")
    plain.table.convert_storage(at(root))
    plain.table.rollback(instants[2])
    plain.table.restore(instants[1])
    require_whole(moved(plain, root), past[instants[1]], {instants[0]: past[instants[0]]})


@pytest.mark.parametrize("table_format", sampled(FORMATS, 3, 2))
def test_files_move_to_buckets_and_back(
    tmp_path: Path, s3_process: S3Service, table_format: str
) -> None:
    store = Store("s3", tmp_path, s3_process)
    plain, past = filled(store, table_format, plain=True)
    expected = ordered(plain.table.to_arrow())
    root = store.new("store")
    plain.table.convert_storage(at(root))
    one = moved(plain, root)
    one.require_placed()
    require_whole(one, expected, past)
    one.table.convert_storage(BACK)
    assert store.files(root) == []
    require_whole(moved(one, one.base), expected, past)


# --- deaths --------------------------------------------------------------------------------------


class _Dying:
    """Storages whose disk dies at its n-th change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk: MortalDisk | None = None
        plain = {name: getattr(Disk, name) for name in _CHANGES}
        for name in _CHANGES:
            monkeypatch.setattr(Disk, name, self._wrapped(name, plain[name]))

    def _wrapped(self, name: str, plain: Callable[..., None]) -> Callable[..., None]:
        def change(disk: Disk, *arguments: Any, **more: Any) -> None:
            if self.disk is None or isinstance(disk, MortalDisk):
                plain(disk, *arguments, **more)
            else:
                getattr(self.disk, name)(*arguments, **more)

        return change


_CHANGES = ("make_folder", "write_new", "link", "replace", "remove", "remove_folder")


def deaths(
    dying: _Dying, folder: Path, act: Callable[[], object], apart: int
) -> Iterator[list[str]]:
    """Put the folder back, and die in it at one step after the other."""
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    for step in itertools.count(0, apart):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        dying.disk = MortalDisk(step, ("before", "after", "torn")[step % 3])
        try:
            act()
        except Killed:
            steps, dying.disk = dying.disk.steps, None
            yield steps
        else:
            dying.disk = None
            assert step > 3
            return


@pytest.mark.parametrize(
    ("table_format", "way"),
    sampled(list(itertools.product(FORMATS, ["there", "back", "same root"])), 4),
)
def test_a_death_at_any_step_leaves_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str, way: str
) -> None:
    place = tmp_path / "all"
    place.mkdir()
    store = Store("disk", place)
    made, past = filled(store, table_format, plain=way == "there")
    expected = ordered(made.table.to_arrow())
    target = BACK if way == "back" else at(made.root, bits=3)
    root = made.base if way == "back" else made.root
    dying = _Dying(monkeypatch)
    seen = set()

    def move() -> None:
        hudi.Table.open(made.base, store.options).convert_storage(target)

    for number, _ in enumerate(deaths(dying, place, move, 1 if IS_WHOLE else 7)):
        table = hudi.Table.open(made.base, store.options)
        found = table.config.storage_move
        seen.add(None if found is None else found.phase.value)
        assert ordered(table.to_arrow()) == expected
        for instant, there in past.items():
            assert ordered(table.to_arrow(as_of=instant)) == there
        now, after = expected, dict(past)
        if number % 2:
            table.upsert(many(range(30, 33), 9))
            now = ordered(many(range(30, 33), 9)) + expected
            now.sort(key=lambda row: str(row["id"]))
            assert ordered(hudi.Table.open(made.base).to_arrow()) == now
        if number % 3 == 2:
            # given up, or finished: what was copied goes
            here = hudi.Table.open(made.base, store.options)
            if not here.config.placement.is_default:
                shown = {k: v for k, v in here.config.placement.properties.items() if v}
                here.convert_storage(shown)
            else:
                here.convert_storage(BACK)
            own = made.base if here.config.placement.is_default else made.root
            require_whole(moved(made, own), now, after)
        move()
        require_whole(moved(made, root), now, after)
        left = made.root if way == "back" else made.base
        assert data_places(store, left) == [] or left == root
    assert {"copying", "deleting"} <= seen
    if table_format != "native":
        assert "publishing" in seen or not IS_WHOLE


# --- refusals ------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused_before_anything_changes(disk: Store) -> None:
    plain, _ = filled(disk, "delta", plain=True)
    iceberg, _ = filled(disk, "iceberg", plain=True)
    other = placed_table(disk, "native")
    other.table.insert(many(range(3), 1))
    before = {str(one): one.stat().st_mtime_ns for one in disk.folder.rglob("*")}
    two = {**at(f"{disk.new()},{disk.new()}")}
    two["hoodie.storage.path.partitions"] = f"b -> {two['hoodie.storage.path'].split(',')[1]}"
    for dry_run in (True, False):
        with pytest.raises(UnsupportedCapabilityError):
            plain.table.convert_storage(two, dry_run=dry_run)
        with pytest.raises(InvalidOptionError, match="no option says"):
            plain.table.convert_storage({}, dry_run=dry_run)
        with pytest.raises(InvalidOptionError, match="table's folder"):
            iceberg.table.convert_storage(at(f"{iceberg.base}/data"), dry_run=dry_run)
    with pytest.raises(StoragePathTakenError):
        plain.table.convert_storage(at(other.root))
    with pytest.raises(StoragePathTakenError):
        iceberg.table.convert_storage(at(other.root))
    with pytest.raises(OptionConflictError, match="hudi table convert"):
        hudi.Table.open(plain.base, at(disk.new()))
    for one in (plain, iceberg):
        assert one.table.config.storage_move is None
        one.table.validate()
        # nothing of the refused move is left
        again = hudi.Table.open(one.base)
        assert again.config.storage_move is None
    after = {str(one): one.stat().st_mtime_ns for one in disk.folder.rglob("*")}
    changed = {path for path in after.keys() | before.keys() if after.get(path) != before.get(path)}
    assert not [path for path in changed if "_delta_log" in path or path.endswith(".parquet")]


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_savepoints_and_stages_are_in_the_way(disk: Store, table_format: str) -> None:
    plain, _ = filled(disk, table_format, plain=True)
    plain.table.savepoint()
    for dry_run in (True, False):
        with pytest.raises(TableServiceError, match="savepoints"):
            plain.table.convert_storage(at(disk.new()), dry_run=dry_run)
    plain.table.delete_savepoint(plain.table.savepoints[0].instant)
    staged = plain.table.stage(many(range(3), 9), "upsert")
    with pytest.raises(TableServiceError, match="Stages"):
        plain.table.convert_storage(at(disk.new()))
    staged.drop()
    assert plain.table.convert_storage(at(disk.new())).is_made


def test_logs_of_changes_move_too(disk: Store) -> None:
    logs = {"hoodie.table.cdc.enabled": "true"}
    plain, past = filled(disk, "native", plain=True, options=logs)
    first = min(past)
    expected, changes = ordered(plain.table.to_arrow()), plain.table.changes(first)
    assert any(".cdc" in path for path in data_places(disk, plain.base))
    root = disk.new()
    plain.table.convert_storage(at(root))
    assert plain.table.changes(first).equals(changes)
    assert changes.num_rows > 0
    require_whole(moved(plain, root), expected, past)


def test_executors_of_spark_copy_many_files(disk: Store, spark: Any) -> None:
    plain = placed_table(disk, "iceberg", plain=True)
    plain.table.insert(trips(*((f"k{n}", f"c{n}", 1) for n in range(40))))
    expected, root = ordered(plain.table.to_arrow()), disk.new()
    told: list[tuple[int, int]] = []
    engine = SparkEngine(spark)
    report = told.append
    plain.table.convert_storage(at(root), engine=engine, progress=lambda *one: report(one))
    assert told[-1] == (40, 40)
    require_whole(moved(plain, root), expected, {})
    assert plain.table.read(spark).count() == 40


def test_a_table_without_a_metadata_table_gets_one(disk: Store) -> None:
    off = {"hoodie.metadata.enable": "false"}
    plain = placed_table(disk, plain=True, options=off)
    plain.table.upsert(many(range(12), 1))
    expected = ordered(plain.table.to_arrow())
    with pytest.raises(InvalidOptionError, match="only its metadata table"):
        plain.table.convert_storage(at(disk.new()))
    root = disk.new()
    hudi.Table.open(plain.base).convert_storage(at(root))
    require_whole(moved(plain, root), expected, {})


def test_another_table_of_the_name_keeps_its_files(disk: Store) -> None:
    other = placed_table(disk, "native")
    other.table.insert(many(range(12), 1))
    files = other.data_files()
    plain, past = filled(disk, "native", plain=True)
    expected = ordered(plain.table.to_arrow())
    # dead before it found out that the name is taken there
    move = StorageMove(MovePhase.COPYING, other.table.config.placement)
    storage = open_table(plain.base, {}).client.storage
    update_properties(storage, {MOVE_PROPERTY: move.text})
    with pytest.raises(StoragePathTakenError):
        plain.table.convert_storage(at(other.root))
    update_properties(storage, {MOVE_PROPERTY: move.text})
    assert plain.table.convert_storage(BACK).deleted == 0
    assert other.data_files() == files
    require_whole(moved(plain, plain.base), expected, past)


def test_a_table_that_is_dropped_half_moved_leaves_nothing(disk: Store) -> None:
    plain, _ = filled(disk, "native", plain=True)
    root = disk.new()
    plain.table.convert_storage(at(root))
    # the first of a move back: both places have files
    storage = open_table(plain.base, {}).client.storage
    second = disk.new("second")
    plain.table.convert_storage(at(second))
    shutil.copytree(second, root, dirs_exist_ok=True)
    move = StorageMove(MovePhase.DELETING, placement_of(at(root)))
    update_properties(storage, {MOVE_PROPERTY: move.text})
    hudi.Table.open(plain.base).drop()
    assert disk.files(root) == disk.files(second) == []


def test_a_writer_at_work_is_in_the_way(disk: Store) -> None:
    plain, _ = filled(disk, "native", plain=True)
    opened = open_table(plain.base, {})
    config = WriteConfig.from_options({})
    lock = table_lock(opened, config)
    writing = begin(opened, lock, config, Action.COMMIT, WriteOperation.UPSERT)
    with pytest.raises(ConcurrentWriterError):
        plain.table.convert_storage(at(disk.new()))
    assert hudi.Table.open(plain.base).config.storage_move is None
    writing.abort()
    assert plain.table.convert_storage(at(disk.new())).is_made


def test_a_dry_run_changes_nothing(disk: Store) -> None:
    plain, _ = filled(disk, "native", plain=True)
    before = {str(one): one.stat().st_mtime_ns for one in disk.folder.rglob("*")}
    root = disk.new()
    plan = plain.table.convert_storage(at(root), dry_run=True)
    assert (plan.is_needed, plan.is_made) == (True, False)
    assert plan.files == len(data_places(disk, plain.base))
    assert plan.size > 0
    assert {str(one): one.stat().st_mtime_ns for one in disk.folder.rglob("*")} == before


def test_progress_is_told_by_file(disk: Store) -> None:
    plain, _ = filled(disk, "native", plain=True)
    told: list[tuple[int, int]] = []
    done = plain.table.convert_storage(at(disk.new()), progress=lambda *one: told.append(one))
    assert told == [(n + 1, done.files) for n in range(done.files)]


# --- the command line ----------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(app, ["table", "convert", *arguments, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_moves_files(disk: Store) -> None:
    plain, past = filled(disk, "native", plain=True)
    expected, root = ordered(plain.table.to_arrow()), disk.new()
    files = len(data_places(disk, plain.base))
    there = ["--storage", "object_store", "-o", f"hoodie.storage.path={root}"]
    there += ["-o", "hoodie.storage.strategy.hash.bits=5"]
    planned = run(plain.base, *there, "--dry-run")
    assert (planned["changed"], planned["files"], planned["copied"]) == (False, files, 0)
    told = run(plain.base, *there)
    assert (told["changed"], told["files"], told["copied"]) == (True, files, files)
    assert told["to"] == {"strategy": "object_store", "paths": [root]}
    one = moved(plain, root)
    one.require_placed()
    require_whole(one, expected, past)
    assert not run(plain.base, *there)["changed"]
    back = CliRunner().invoke(app, ["table", "convert", plain.base, "--storage", "default"])
    assert f"Moved {files} files" in " ".join(back.stdout.split())
    require_whole(moved(one, one.base), expected, past)


@pytest.mark.parametrize("more", [[], ["--to", "native", "--storage", "default"]])
def test_the_command_does_one_of_both(disk: Store, more: list[str]) -> None:
    plain = placed_table(disk, plain=True)
    done = CliRunner().invoke(app, ["table", "convert", plain.base, *more])
    assert done.exit_code == 2
    assert "one of --to, --type and --storage" in done.stderr
