"""Claims of tables below a storage path, and what keeps a table from being there."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.config.placement import Placement
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    InvalidOptionError,
    StoragePathTakenError,
    UnsupportedCapabilityError,
)
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.services import create
from hudi_core.services.placement import with_placement
from hudi_core.storage.claims import Claim, claims_of, put_claim, release_claim
from hudi_core.storage.posix import PosixStorage
from tests.federated_tables import Store, is_data, many, ordered, placed_table


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store("disk", tmp_path)


def files(root: str) -> list[str]:
    return [str(one) for one in Path(root).rglob("*") if one.is_file()]


@pytest.mark.parametrize("table_format", ["native", "iceberg"])
def test_tables_share_a_storage_path(store: Store, table_format: str) -> None:
    root = store.new()
    one = placed_table(store, table_format, root=root, name="one")
    two = placed_table(store, "native", root=root, name="two")
    one.table.insert(many(range(12), 1))
    two.table.insert(many(range(5), 2))
    one.table.upsert(many(range(12), 3))
    assert ordered(one.table.to_arrow()) == ordered(many(range(12), 3))
    one.table.clean(options={"hoodie.clean.commits.retained": "1"})
    one.table.purge()
    assert one.table.validate().orphans == ()
    assert two.table.validate().orphans == ()
    one.table.drop()
    assert ordered(two.table.to_arrow()) == ordered(many(range(5), 2))
    assert [one.table for one in claims_of(PosixStorage(root))] == ["two"]
    assert all("/two/" in path or path.endswith("two.json") for path in files(root))


def test_one_name_is_taken_once(store: Store) -> None:
    root = store.new()
    first = placed_table(store, root=root)
    first.table.insert(many(range(3), 1))
    base = store.new("other")
    with pytest.raises(StoragePathTakenError, match=f"{first.base} has the name trips"):
        placed_table(store, root=root, base=base)
    assert files(base) == []
    # in another one it is free, and here once the first is gone
    placed_table(store, base=base).table.insert(many(range(2), 1))
    first.table.drop()
    again = placed_table(store, root=root)
    again.table.insert(many(range(2), 1))
    assert ordered(again.table.to_arrow()) == ordered(many(range(2), 1))


@pytest.mark.parametrize("formats", [("delta", "native"), ("iceberg", "delta"), ("delta", "delta")])
def test_a_table_whose_log_is_in_the_storage_path_is_alone(
    store: Store, formats: tuple[str, str]
) -> None:
    root = store.new()
    first = placed_table(store, formats[0], root=root, name="first")
    first.table.insert(many(range(6), 1))
    base = store.new("second")
    with pytest.raises(StoragePathTakenError, match=r"the table first at .*delta format"):
        placed_table(store, formats[1], root=root, base=base, name="second")
    assert files(base) == []
    assert [one.table for one in claims_of(PosixStorage(root))] == ["first"]
    assert ordered(first.table.to_arrow()) == ordered(many(range(6), 1))
    assert first.foreign_rows() == (None if formats[0] == "native" else ordered(many(range(6), 1)))


def test_what_lies_in_the_storage_path_already_is_left_alone(store: Store) -> None:
    root = store.new()
    store.put(root, "_delta_log/00000000000000000000.json", b"{}\n")
    with pytest.raises(StoragePathTakenError, match="_delta_log is there already"):
        placed_table(store, "delta", root=root)
    assert store.files(root) == ["_delta_log/00000000000000000000.json"]
    root = store.new()
    store.put(root, "0a/trips/left.parquet", b"")
    with pytest.raises(StoragePathTakenError, match="folder of the table's name"):
        placed_table(store, root=root)
    assert store.files(root) == ["0a/trips/left.parquet"]


def test_overwriting_a_table_takes_its_files_along(store: Store) -> None:
    federated = placed_table(store)
    federated.table.insert(many(range(9), 1))
    given = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        **store.options,
    }
    moved = store.new()
    options = {**given, "hoodie.storage.path": moved}
    hudi.write(many(range(4), 2), federated.base, mode="overwrite", options=options)
    assert files(federated.root) == []
    assert claims_of(PosixStorage(federated.root)) == []
    found = [path for path in store.files(moved) if is_data(path)]
    assert found
    # the default strategy with a storage path: no prefix
    assert all(path.startswith("trips/") for path in found)
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == ordered(many(range(4), 2))
    hudi.write(many(range(2), 3), federated.base, mode="overwrite", options=given)
    assert files(moved) == []
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == ordered(many(range(2), 3))


def test_a_creation_that_died_is_made_again(store: Store, monkeypatch: Any) -> None:
    root, base = store.new(), store.new("table")
    for table_format in ("delta", "native"):
        with monkeypatch.context() as patched:
            patched.setattr(create, "_put_properties", _die)
            with pytest.raises(_DiedError):
                placed_table(store, table_format, root=root, base=base)
        assert [one.table for one in claims_of(PosixStorage(root))] == ["trips"]
        made = placed_table(store, table_format, root=root, base=base)
        made.table.insert(many(range(3), 1))
        assert ordered(made.table.to_arrow()) == ordered(many(range(3), 1))
        made.table.drop()
        assert files(root) == []


class _DiedError(BaseException):
    pass


def _die(*_: object) -> None:
    raise _DiedError


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("{base}", "the table's folder"),
        ("{base}/data", "the table's folder, or below it"),
        ("{store}/a,{store}/a/b", "is below it"),
    ],
)
def test_storage_paths_that_would_meet_are_refused(store: Store, path: str, reason: str) -> None:
    base = store.new("table")
    text = path.format(base=base, store=store.folder)
    more = {"hoodie.storage.path.partitions": f"city=a* -> {text.split(',')[-1]}"}
    options = more if "," in text else {}
    with pytest.raises(InvalidOptionError, match=reason):
        placed_table(store, base=base, root=text, options=options)
    assert files(base) == []


def test_the_folder_of_a_delta_table_is_not_below_its_log(store: Store) -> None:
    root = store.new()
    with pytest.raises(InvalidOptionError, match="table's folder is below it"):
        placed_table(store, "delta", root=root, base=f"{root}/tables/one")
    inside = placed_table(store, "iceberg", root=root, base=f"{root}/tables/one")
    inside.table.insert(many(range(3), 1))
    inside.require_placed()
    assert inside.table.validate().orphans == ()


@pytest.mark.parametrize("name", ["a/b", ".trips", "_trips", "x" * 201])
def test_a_name_that_is_no_folder_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidOptionError, match="name of folders"):
        placed_table(store, name=name)


def test_delta_takes_one_storage_path_only(store: Store) -> None:
    two = {"hoodie.storage.path.partitions": f"a -> {store.folder}/b"}
    with pytest.raises(UnsupportedCapabilityError, match="several storage paths"):
        placed_table(store, "delta", root=f"{store.folder}/a,{store.folder}/b", options=two)
    assert files(str(store.folder)) == []


def test_a_folder_of_a_bucket_is_warned_of(caplog: pytest.LogCaptureFixture, store: Store) -> None:
    host = FormatHost.load(FormatRegistry(), "native")
    for path, warnings in (("s3://bucket/folder", 1), ("s3://bucket", 0), ("/mnt/disk", 0)):
        caplog.clear()
        config = placed_table(store, base=store.new("t"), plain=True).table.config
        placed = replace(config, placement=Placement("object_store", (path,)))
        with caplog.at_level(logging.WARNING, "hudi_core.services.placement"):
            placed_config = with_placement(placed, "s3://tables/t", host)
        assert len(caplog.records) == warnings
        assert dict(placed_config.placement.options)["hash.bits"] == "8"


def test_claims_are_read_with_care(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    assert put_claim(storage, Claim("t", "/b", "native"))
    assert not put_claim(storage, Claim("t", "/b", "native"))
    with pytest.raises(StoragePathTakenError):
        put_claim(storage, Claim("t", "/c", "native"))
    assert release_claim(storage, "t", "/c") == ()
    assert claims_of(storage) == [Claim("t", "/b", "native")]
    for bad in (b"", b"[]", b"{}", json.dumps({"folders": ["../x"], "table": "t"}).encode()):
        (tmp_path / ".hoodie_tables/t.json").write_bytes(bad)
        with pytest.raises((CorruptMetadataError, HudiError)):
            claims_of(storage)
