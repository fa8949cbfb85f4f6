"""Tables whose metadata table compacts, cleans and archives itself, as hudi-rs reads them.

It lists from the metadata table: what that loses, its answers lose.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, plan_archive
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.table import metadata_client
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.storage import open as opening
from hudi_core.storage.disk import Disk
from hudi_core.storage.posix import PosixStorage
from tests import tables
from tests.foreign import by_hudi_rs
from tests.operators import operator
from tests.samples import IS_WHOLE, turn
from tests.tables import SCHEMA
from tests.unit.mortal_disk import Killed, MortalDisk

OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.fs.fsync": "false",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.metadata.cleaner.commits.retained": "2",
    "hoodie.metadata.keep.min.commits": "3",
    "hoodie.metadata.keep.max.commits": "4",
    "hoodie.metadata.index.column.stats.enable": "false",
}
Rows = list[tuple[str, int]]


def upsert(path: Path, number: int) -> None:
    """Write three rows to each partition, two of which are there already."""
    rows = [
        {"id": f"{part}{number + n}", "part": part, "ts": number} for part in "xy" for n in range(3)
    ]
    hudi.Table.open(str(path), OPTIONS).upsert(pa.Table.from_pylist(rows, SCHEMA))


def expected(count: int) -> Rows:
    """Return what so many writes leave."""
    return sorted(
        (f"{part}{key}", min(key, count - 1)) for part in "xy" for key in range(count + 2)
    )


def empty_table(path: Path, **options: str) -> None:
    tables.new_table(path, SCHEMA, {**OPTIONS, **options})


def test_a_table_in_an_object_store(s3: Any) -> None:
    root = s3.new_root()
    options = {**OPTIONS, **s3.given}
    table = tables.new_table(root, SCHEMA, options, partition_by=None, ordering_field=None)
    for number in range(8):
        table.upsert(pa.Table.from_pylist([{"id": f"{number}", "part": "x", "ts": number}], SCHEMA))

    client = operator(root, options).table.client
    kinds = {one.action for one in metadata_client(client).timeline()}
    assert kinds == {Action.DELTACOMMIT, Action.COMMIT, Action.CLEAN}
    assert validate(client).is_valid
    operator(root, options).index("bloom_filters")
    operator(root, options).drop("bloom_filters")
    operator(root, options).index("bloom_filters")
    report = validate(operator(root, options).table.client)
    assert (report.is_valid, report.checked["bloom_filters"]) == (True, 8)
    kept = operator(root, options).delete(backup=True)
    objects = {path for path in s3.paths(root) if ".hoodie/metadata" in path}
    assert (objects, kept is not None) == (set(), True)
    assert len(operator(root, options).create()) == 1
    assert validate(operator(root, options).table.client).is_valid
    assert hudi.Table.open(root, options).to_arrow().num_rows == 8


def foreign_rows(path: Path) -> Rows:
    return sorted((row["id"], row["ts"]) for row in by_hudi_rs(path))


def own_rows(path: Path) -> Rows:
    found = hudi.Table.open(str(path)).to_arrow().to_pylist()
    return sorted((row["id"], row["ts"]) for row in found)


def archive_most(path: Path) -> int:
    client = open_table(str(path), OPTIONS).client
    return len(archive(client, plan_archive(client.timeline(), ArchiveRules(2, 3), None)))


@pytest.mark.parametrize("version", ["8", "9"])
def test_rows_stay_through_all_services(version: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    indexes = ("global.record.level.index", "index.bloom.filter", "index.column.stats")
    every = {f"hoodie.metadata.{one}.enable": "true" for one in indexes}
    empty_table(path, **{"hoodie.write.table.version": version}, **every)
    seen: set[Action] = set()
    for number in range(14):
        upsert(path, number)
        if number == 9:
            # the metadata table's own archival follows that of the table
            assert archive_most(path) == 8
        client = open_table(str(path), {}).client
        assert foreign_rows(path) == own_rows(path) == expected(number + 1)
        report = validate(client)
        assert report.is_valid, report.findings[:3]
        seen |= {one.action for one in metadata_client(client).timeline()}
    assert seen == {Action.DELTACOMMIT, Action.COMMIT, Action.CLEAN}
    metadata = metadata_client(open_table(str(path), {}).client)
    assert len(metadata.archived.load()) > 8
    files = (path / ".hoodie/metadata/files").glob("*.hfile")
    assert len(list(files)) <= 3


@pytest.mark.slow
def test_a_write_may_die_at_any_step_of_the_services_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "t"
    empty_table(template)
    for number in range(8):
        upsert(template, number)
    archive_most(template)
    disk: Disk | None = None

    def dying(root: str, fsync: bool) -> PosixStorage:
        return PosixStorage(root, fsync, disk=disk)

    monkeypatch.setattr(opening, "PosixStorage", dying)
    before, after = expected(8), expected(9)
    done = 0
    apart = 1 if IS_WHOLE else 9
    for number, step in enumerate(itertools.count(turn() % apart, apart)):
        path = tmp_path / f"step-{step}"
        shutil.copytree(template, path)
        disk = MortalDisk(step, ("before", "after", "torn")[number % 3])
        try:
            upsert(path, 8)
        except Killed:
            disk = None
        else:
            break
        now = foreign_rows(path)
        assert own_rows(path) == now
        assert now in (before, after)
        done += now == after
        assert validate(open_table(str(path), {}).client).is_valid
        upsert(path, 8)
        upsert(path, 9)
        assert foreign_rows(path) == own_rows(path) == expected(10)
        client = open_table(str(path), {}).client
        assert validate(client).is_valid
        assert not metadata_client(client).timeline().pending().instants
        shutil.rmtree(path)
    # of the steps after the commit, which are those of the services
    assert done > (30 if IS_WHOLE else 2)
