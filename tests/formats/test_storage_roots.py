"""Several storage paths: another disk, another bucket, another service with its own credentials."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.config.placement import STORAGE_POINT
from hudi_core.errors import (
    PluginConflictError,
    PluginError,
    PluginLoadError,
    StoragePathTakenError,
    UnsupportedTableError,
)
from hudi_core.storage.hadoop import hadoop_options
from hudi_core.storage.options import StorageOptions
from tests.federated_tables import Store, is_data, many, new_table, ordered, states
from tests.moto_s3 import S3Service
from tests.s3_process import s3_in_a_process

STRATEGY = """
from hudi_core.spi import InvalidOptionError, StorageStrategy

class ByYear(StorageStrategy):
    depth = 2

    def __init__(self, options):
        super().__init__(options)
        if options.keys() - {"first"}:
            raise InvalidOptionError("hoodie.storage.strategy.x", "", "it is unknown", "Drop it.")

    @property
    def settings(self):
        return {"first": "files", **self._options}

    def location(self, partition_path, file_id):
        return f"{self.settings['first']}/{file_id[:1]}"
"""


@pytest.fixture(scope="module")
def s3_process() -> Iterator[S3Service]:
    with s3_in_a_process() as service:
        yield service


@pytest.mark.parametrize("table_format", ["native", "iceberg"])
@pytest.mark.parametrize("strategy", ["default", "object_store"])
def test_partitions_on_several_disks(tmp_path: Path, table_format: str, strategy: str) -> None:
    store = Store("disk", tmp_path)
    near, far = store.new("near"), store.new("far")
    options = {
        "hoodie.storage.path.partitions": f"b -> {far}; c* -> {far}",
        "hoodie.storage.strategy.class": strategy,
    }
    if strategy == "default":
        options["hoodie.storage.strategy.hash.bits"] = "5"  # of no use to it, and kept as it is
    federated = new_table(store, table_format, root=f"{near},{far}", options=options)
    plain = new_table(store, table_format, plain=True).table
    same = states(plain, lambda data: data)
    for _ in states(federated.table, lambda data: data):
        next(same)
        assert ordered(federated.table.to_arrow()) == ordered(plain.to_arrow())
    depth = 2 if strategy == "object_store" else 1
    found = {
        root: {path.split("/")[depth] for path in store.files(root) if is_data(path)}
        for root in (near, far)
    }
    assert found[far] == {"b", "c"}
    assert found[near] == {"a", "d"}
    assert federated.foreign_rows() in (None, ordered(plain.to_arrow()))
    report = federated.table.validate()
    assert (report.differences, report.orphans) == ((), ())
    federated.table.purge()
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == ordered(plain.to_arrow())
    federated.table.drop()
    assert store.files(near) == store.files(far) == []


def test_a_bucket_of_another_service(
    s3: S3Service, s3_process: S3Service, tmp_path: Path, spark: Any
) -> None:
    near, far = (service.new_root("").rstrip("/") for service in (s3, s3_process))
    bucket = far.removeprefix("s3://")
    given = {
        **s3.given,
        f"fs.s3a.bucket.{bucket}.endpoint": s3_process.endpoint,
        f"fs.s3a.bucket.{bucket}.access.key": "another-access-key",
        f"fs.s3a.bucket.{bucket}.secret.key": "another-secret-key",
    }
    options = {
        "hoodie.storage.path": f"{near},{far}",
        "hoodie.storage.path.partitions": f"b -> {far}",
        **given,
    }
    store = Store("s3", tmp_path, s3)
    federated = new_table(store, root=f"{near},{far}", options=options)
    federated.table.insert(many(range(12), 1))
    federated.table.upsert(spark.createDataFrame(many(range(6), 2).to_pandas()))
    expected = sorted(
        ordered(many(range(6), 2)) + ordered(many(range(6, 12), 1)), key=lambda row: row["id"]
    )
    assert ordered(federated.table.to_arrow()) == expected
    again = hudi.Table.open(federated.base, given)
    assert sorted(row["id"] for row in again.read(spark).collect()) == [
        row["id"] for row in expected
    ]
    there = [path for path in s3_process.objects(far) if is_data(path)]
    assert len(there) > 1
    assert all("/trips/b/" in path for path in there)
    properties = s3.objects(federated.base)
    text = b"".join(properties.values()).decode("latin-1")
    assert "another-" not in text
    with pytest.raises(UnsupportedTableError, match="one set of credentials"):
        new_table(store, "iceberg", root=f"{near},{far}", name="two", options=options)
    report = again.validate()
    assert (report.differences, report.orphans) == ((), ())
    again.drop()
    assert not s3_process.objects(far)


def test_options_of_a_bucket_go_before_those_of_all() -> None:
    given = {
        "fs.s3a.access.key": "all",
        "fs.s3a.secret.key": "hidden",
        "fs.s3a.session.token": "hidden too",
        "fs.s3a.endpoint": "http://all:1",
        "fs.s3a.bucket.a.b.access.key": "own",
        "fs.s3a.bucket.a.b.secret.key": "own secret",
        "fs.s3a.bucket.a.b.endpoint.region": "eu",
        "fs.s3a.bucket.other.unknown": "x",
    }
    options = StorageOptions.from_options(given, {})
    own = options.at("a.b")
    assert [name for name, _ in options.buckets] == ["a.b"]
    assert (own.s3_endpoint, own.s3_region) == ("http://all:1", "eu")
    assert own.s3_access_key is not None
    assert own.s3_access_key.reveal() == "own"
    assert own.s3_session_token is None
    assert options.at("other") == options
    assert "own secret" not in repr(options)
    hadoop = hadoop_options("s3://x", options)
    assert hadoop["fs.s3a.bucket.a.b.access.key"] == "own"
    assert hadoop["fs.s3a.access.key"] == "all"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution that registers a storage strategy."""
    site = tmp_path / "site"
    for name, attribute in (("by-year", "ByYear"), ("broken", "Missing"), ("wrong", "sys")):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[hudi.storage_strategies]\n{name} = year_strategy:{attribute}\n"
        )
    (site / "year_strategy.py").write_text("import sys\n" + STRATEGY)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "year_strategy", raising=False)
    return site


def test_a_strategy_of_a_distribution_is_found_by_its_name(tmp_path: Path, installed: Path) -> None:
    assert {"by-year", "default", "object_store"} <= {*STORAGE_POINT.names()}
    store, root = Store("disk", tmp_path), str(tmp_path / "store")
    by_year = {"hoodie.storage.strategy.class": "by-year", "hoodie.storage.path": root}
    federated = new_table(store, plain=True, options=by_year)
    for _ in states(federated.table, lambda data: data):
        pass
    expected = ordered(federated.table.to_arrow())
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == expected
    found = [path for path in store.files(root) if is_data(path)]
    assert found
    for path in found:
        first, letter, table, _, name = path.split("/")
        assert (first, letter, table) == ("files", name[0], "trips")
    stored = (Path(federated.base) / ".hoodie/hoodie.properties").read_text()
    assert "hoodie.storage.strategy.first=files" in stored
    assert federated.table.validate().orphans == ()
    federated.table.drop()
    assert store.files(root) == []


@pytest.mark.parametrize("name", ["broken", "wrong"])
def test_a_strategy_that_cannot_be_loaded_is_named(
    tmp_path: Path, installed: Path, name: str
) -> None:
    options = {"hoodie.storage.strategy.class": name, "hoodie.storage.path": str(tmp_path / "s")}
    with pytest.raises(PluginLoadError, match=f"storage strategy '{name}'"):
        new_table(Store("disk", tmp_path), plain=True, options=options)


def test_two_strategies_of_one_name_are_refused(tmp_path: Path, installed: Path) -> None:
    rival = installed / "rival-1.0.dist-info"
    rival.mkdir()
    (rival / "METADATA").write_text("Name: rival\nVersion: 1.0\n")
    (rival / "entry_points.txt").write_text(
        "[hudi.storage_strategies]\nby-year = year_strategy:StorageStrategy\n"
    )
    options = {
        "hoodie.storage.strategy.class": "by-year",
        "hoodie.storage.path": str(tmp_path / "s"),
    }
    with pytest.raises(PluginConflictError, match="by-year, rival"):
        new_table(Store("disk", tmp_path), plain=True, options=options)


BROKEN = """
from hudi_core.spi import StorageStrategy

class ByYear(StorageStrategy):
    depth = 1
    def location(self, partition_path, file_id):
        return {answer}
"""


@pytest.mark.parametrize(
    "answer", ["'..'", "'a/b'", "''", "'.hidden'", "7", "'/a'", "1 // 0", "'a\\0'"]
)
def test_a_strategy_that_breaks_its_contract_writes_nothing(
    tmp_path: Path, installed: Path, answer: str
) -> None:
    (installed / "year_strategy.py").write_text(BROKEN.format(answer=answer))
    store = Store("disk", tmp_path)
    options = {
        "hoodie.storage.strategy.class": "by-year",
        "hoodie.storage.path": str(tmp_path / "s"),
    }
    with pytest.raises(PluginError, match="storage strategy 'by-year'"):
        for _ in states(new_table(store, plain=True, options=options).table, lambda data: data):
            pass
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("table_format", ["native", "delta"])
def test_a_copy_of_a_table_does_not_touch_its_files(tmp_path: Path, table_format: str) -> None:
    store = Store("disk", tmp_path)
    root = store.new("store")
    original = new_table(store, table_format, root=root)
    for _ in states(original.table, lambda data: data):
        pass
    rows, files = ordered(original.table.to_arrow()), store.files(root)
    folder = Path(original.base)
    copy = folder.with_name("copied")
    shutil.copytree(folder, copy)
    table = hudi.Table.open(copy)
    assert ordered(table.to_arrow()) == rows
    last = table.timeline.completed_writes()[-1].requested_time
    for act in (
        lambda: table.delete(table.to_arrow()),
        lambda: table.clean(options={"hoodie.cleaner.commits.retained": "1"}),
        lambda: table.rollback(last),
        table.repair,
    ):
        with pytest.raises(StoragePathTakenError, match=r"those of the table at .*delete .*\.json"):
            act()
    assert store.files(root) == files
    original.table.delete(original.table.to_arrow().slice(0, 1))
    # a table that was moved takes its claim with it, where that is said
    [claim] = Path(root).glob(".hoodie_tables/*.json")
    claim.unlink()
    shutil.rmtree(copy)
    folder.rename(copy)
    moved = hudi.Table.open(copy)
    before = moved.count()
    moved.delete(moved.to_arrow().slice(0, 1))
    assert moved.count() == before - 1
    assert str(copy) in claim.read_text()
    moved.drop()
    assert not [one for one in store.files(root) if is_data(one)]
