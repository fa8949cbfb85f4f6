"""The metadata table of a table below many prefixes is rebuilt from them, and compared first."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CorruptMetadataError, IncompleteListingError
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions
from hudi_core.model.files import FileStatus
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from tests.federated_tables import Federated, Store, many, ordered, placed_table, trips
from tests.tables import FORMATS

INDEXES = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store("disk", tmp_path)


def made(disk: Store, table_format: str = "native") -> Federated:
    """A table with a history: updates, a replaced partition, a clustering, a rollback, a clean."""
    federated = placed_table(disk, table_format, options=INDEXES)
    table = hudi.Table.open(federated.base, {**INDEXES})
    table.insert(many(range(30), 1))
    table.upsert(many(range(10), 2))
    table.insert_overwrite(trips(("k001", "b", 3), ("n1", "b", 3)))
    table.cluster(partitions=["city=a"] if (Path(federated.base) / "city=a").exists() else ["a"])
    table.upsert(many(range(20, 25), 4))
    table.rollback(table.timeline.completed_writes()[-1])
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    return Federated(disk, table, federated.base, federated.root)


def answers(path: str) -> dict[str, Any]:
    """What each partition of the metadata table says."""
    client = open_table(path, {}).client
    snapshot = MetadataSnapshot.open(client)
    said = {}
    for name in StoredPartitions.of(client.config).complete:
        kind = partition_of(name)
        assert kind is not None
        said[name] = {one.key: kind.fact(one) for one in snapshot.scan(name)}
    return said


def moved(place: Path) -> Path:
    return Path(shutil.move(place, place.parent / "elsewhere"))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("table_format", FORMATS)
def test_a_lost_metadata_table_comes_back(disk: Store, table_format: str, threads: int) -> None:
    federated = made(disk, table_format)
    before, seen = answers(federated.base), ordered(federated.table.to_arrow())
    moved(Path(federated.base, METADATA_FOLDER))
    with pytest.raises(CorruptMetadataError):
        hudi.Table.open(federated.base).to_arrow()
    done = hudi.Table.open(federated.base).repair_metadata(engine=LocalEngine(threads))
    assert done.rebuilt is not None
    assert done.rebuilt.orphans == ()
    assert answers(federated.base) == before
    table = hudi.Table.open(federated.base, INDEXES)
    assert ordered(table.to_arrow()) == seen
    assert federated.foreign_rows() in (None, seen)
    table.upsert(many(range(5), 9))
    report = table.validate()
    assert (report.differences, report.orphans) == ((), ())
    assert {row["ts"] for row in ordered(table.to_arrow()) if row["id"] < "k005"} == {9}


@pytest.mark.parametrize("is_there", [True, False], ids=["in place", "moved away"])
@pytest.mark.parametrize("table_format", FORMATS)
def test_a_prefix_that_is_not_listed_is_noticed_before_the_swap(
    disk: Store, table_format: str, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    federated = made(disk, table_format)
    before, seen = answers(federated.base), ordered(federated.table.to_arrow())
    live = federated.table.file_slices()[0].base_file
    assert live is not None
    client = open_table(federated.base, {}).client
    if not is_there:
        moved(Path(federated.base, METADATA_FOLDER))
    prefix = client.files.uri(live.path).removeprefix(f"{federated.root}/").partition("/")[0]
    with monkeypatch.context() as patched:
        listed = PosixStorage.list_folders

        def hiding(storage: PosixStorage, folder: str = "") -> Sequence[str]:
            return [one for one in listed(storage, folder) if one != prefix]

        patched.setattr(PosixStorage, "list_folders", hiding)
        for dry_run in (True, False):
            with pytest.raises(IncompleteListingError, match="is not listed") as raised:
                hudi.Table.open(federated.base).repair_metadata(dry_run=dry_run)
            assert live.path in str(raised.value.missing)
        assert Path(federated.base, METADATA_FOLDER).exists() is is_there
        if is_there:  # reads ask no listing
            assert ordered(hudi.Table.open(federated.base).to_arrow()) == seen
    hudi.Table.open(federated.base).repair_metadata()
    assert answers(federated.base) == before
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == seen


def test_each_prefix_is_listed_once(disk: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    federated = placed_table(disk)
    federated.table.insert(many(range(30), 1))
    calls = Counter[str]()
    listed = PosixStorage.list

    def counting(
        storage: PosixStorage, prefix: str = "", *more: Any, **named: Any
    ) -> Iterator[FileStatus]:
        if storage.root == federated.root:
            calls[prefix.partition("/")[0]] += 1
        return listed(storage, prefix, *more, **named)

    monkeypatch.setattr(PosixStorage, "list", counting)
    hudi.Table.open(federated.base).repair_metadata()
    used = {path.partition("/")[0] for path in federated.data_files()}
    assert {name: count for name, count in calls.items() if name in used} == dict.fromkeys(used, 1)
