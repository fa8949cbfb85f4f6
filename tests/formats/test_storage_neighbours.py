"""No table is made where a vacuum of another one would delete its files, nor around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

import hudi_core as hudi
from hudi_core.config.placement import PlacementKeys
from hudi_core.errors import HudiError, NotATableError, StoragePathTakenError
from hudi_core.storage.claims import Claim
from hudi_core.storage.posix import PosixStorage
from tests.counted_s3 import counted_s3
from tests.federated_tables import SCHEMA, STORES, Federated, Store, many, new_table, ordered
from tests.moto_s3 import S3Service
from tests.s3_process import s3_in_a_process


@pytest.fixture(scope="module")
def s3_process() -> Iterator[S3Service]:
    with s3_in_a_process() as service:
        yield service


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    s3 = request.getfixturevalue("s3_process") if request.param == "s3" else None
    return Store(request.param, tmp_path, s3)


def filled(made: Federated) -> Federated:
    made.table.insert(many(range(6), 1))
    return made


def refused(store: Store, error: type[HudiError], match: str, **how: Any) -> None:
    """A table cannot be made, and nothing is left of it."""
    base = how.pop("base", None) or store.new("refused")
    before = files(store, base)
    with pytest.raises(error, match=match):
        new_table(store, base=base, name="refused", **how)
    assert files(store, base) == before


def files(store: Store, base: str) -> list[str]:
    try:
        return store.files(base)
    except FileNotFoundError:
        return []


def sound(*tables: Federated) -> None:
    """A full vacuum of each Delta table deletes no row of any."""
    for one in tables:
        if one.table.format == "delta":
            how = None if one.store.s3 is None else one.store.s3.options.for_object_store()
            root = one.root if one.table.config.placement.paths else one.base
            DeltaTable(root, storage_options=how).vacuum(
                0, dry_run=False, enforce_retention_duration=False, full=True
            )
    for one in tables:
        assert ordered(one.table.to_arrow()) == ordered(many(range(6), 1))


@pytest.mark.parametrize("table_format", ["native", "iceberg", "delta"])
def test_no_storage_path_in_a_delta_table(store: Store, table_format: str) -> None:
    plain = filled(new_table(store, "delta", plain=True))
    for root in (plain.base, f"{plain.base}/sub", f"{plain.base}/sub/sub"):
        before = store.files(plain.base)
        refused(store, StoragePathTakenError, "_delta_log", table_format=table_format, root=root)
        assert store.files(plain.base) == before
    federated = filled(new_table(store, "delta", name="first"))
    for root in (f"{federated.root}/sub", f"{federated.root}/a/b"):
        refused(
            store,
            StoragePathTakenError,
            f"the table first at {federated.base} .*the delta format",
            table_format=table_format,
            root=root,
        )
    sound(plain, federated)


def test_no_delta_table_around_a_storage_path(store: Store) -> None:
    above = store.new("above")
    native = filled(new_table(store, root=f"{above}/one/two"))
    for root in (above, f"{above}/one"):
        refused(store, StoragePathTakenError, "hoodie_tables", table_format="delta", root=root)
    for base in (above, f"{above}/one", f"{above}/one/two"):
        refused(store, NotATableError, "other files", table_format="delta", base=base, plain=True)
    # nor around the folder of a table, or anything else
    folder = store.new("folder")
    plain = filled(new_table(store, base=f"{folder}/plain", plain=True))
    refused(store, StoragePathTakenError, "is there", table_format="delta", root=folder)
    store.put(other := store.new("other"), "stray.parquet", b"")
    refused(store, StoragePathTakenError, "stray", table_format="delta", root=other)
    sound(native, plain, filled(new_table(store, "delta", root=f"{above}/three")))


@pytest.mark.parametrize("table_format", ["native", "iceberg"])
def test_no_folder_of_a_table_in_a_delta_table(store: Store, table_format: str) -> None:
    federated = filled(new_table(store, "delta", name="first"))
    plain = filled(new_table(store, "delta", plain=True))
    for base, match in (
        (f"{federated.root}/plain", "the table first"),
        (f"{federated.root}/a/b/plain", "the table first"),
        (f"{plain.base}/plain", "_delta_log"),
    ):
        for is_plain in (True, False):
            refused(
                store,
                StoragePathTakenError,
                match,
                base=base,
                table_format=table_format,
                plain=is_plain,
            )
    sound(federated, plain)


def test_no_conversion_to_delta_around_files_of_others(store: Store) -> None:
    outer = filled(new_table(store, plain=True))
    # as an earlier release let it be
    claim = Claim("inner", store.new("inner"), "native")
    store.put(outer.base, f"stores/one/{claim.path}", claim.encode())
    for dry_run in (True, False):
        with pytest.raises(StoragePathTakenError, match=f"the table inner .{claim.base_path}"):
            outer.table.convert("delta", dry_run=dry_run)
    assert hudi.Table.open(outer.base, store.options).format == "native"
    # tables below the storage path of one
    shared = filled(new_table(store))
    inside = filled(new_table(store, base=f"{shared.root}/tables/two", name="two", plain=True))
    with pytest.raises(StoragePathTakenError, match="another table has files there"):
        shared.table.convert("delta")
    # and one that is itself below a Delta table
    around = store.new("around")
    below = filled(new_table(store, base=f"{around}/below", plain=True))
    store.put(around, "_delta_log/00000000000000000000.json", b"{}\n")
    with pytest.raises(StoragePathTakenError, match=r"has _delta_log"):
        below.table.convert("delta")
    inside.table.drop()
    shared.table.convert("delta")
    sound(outer, below, shared)


def test_a_delta_table_that_hudi_does_not_know(tmp_path: Path) -> None:
    store = Store("disk", tmp_path)
    theirs = store.new("theirs")
    write_deltalake(theirs, many(range(6), 1))
    refused(store, StoragePathTakenError, "_delta_log", root=f"{theirs}/sub")
    refused(store, StoragePathTakenError, "_delta_log", base=f"{theirs}/sub", plain=True)
    (tmp_path / "link").symlink_to(theirs)
    refused(store, StoragePathTakenError, "_delta_log", root=f"{tmp_path}/link/sub")


def test_a_storage_path_in_the_folder_of_a_table(store: Store) -> None:
    """It would go with the table."""
    plain = filled(new_table(store, plain=True))
    for root in (plain.base, f"{plain.base}/a/b"):
        refused(store, StoragePathTakenError, "the folder of a table", root=root)
    sound(plain)


def test_a_table_outlives_a_place_that_its_successor_cannot_have(store: Store) -> None:
    delta = filled(new_table(store, "delta", name="first"))
    taken = new_table(store, name="taken")
    old = filled(new_table(store, name="old"))
    options = {
        "hoodie.table.name": "old",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        **store.options,
    }
    before = store.files(old.base), store.files(old.root)
    for changed in (
        {PlacementKeys.path.key: f"{delta.root}/sub"},
        {PlacementKeys.path.key: delta.root},
        {PlacementKeys.path.key: taken.root, "hoodie.table.name": "taken"},
        {PlacementKeys.path.key: taken.root, "hoodie.table.format": "delta"},
    ):
        with pytest.raises(StoragePathTakenError):
            hudi.write(many(range(2), 2), old.base, "overwrite", {**options, **changed})
        assert (store.files(old.base), store.files(old.root)) == before
    sound(old, delta)
    # in its own place it may change all
    own = {PlacementKeys.path.key: old.root, "hoodie.table.name": "renamed"}
    for more in ({"hoodie.table.format": "delta"}, {}, {"hoodie.table.format": "delta"}):
        hudi.write(many(range(6), 1), old.base, "overwrite", {**options, **own, **more})
        made = hudi.Table.open(old.base, store.options)
        assert made.format == more.get("hoodie.table.format", "native")
        assert ordered(made.to_arrow()) == ordered(many(range(6), 1))
        assert made.validate().differences == ()


def test_a_delta_table_moves_up_and_down(store: Store) -> None:
    delta = filled(new_table(store, "delta", root=f"{store.new()}/sub"))
    above = delta.root.rpartition("/")[0]
    table = delta.table
    for root in (above, f"{above}/sub/sub", above):
        table.convert_storage({"hoodie.storage.path": root})
        assert ordered(table.to_arrow()) == ordered(many(range(6), 1))
        assert table.validate().orphans == ()
        sound(Federated(store, table, delta.base, root))


def test_two_that_look_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each puts its claim before it looks around: at most one of them is made."""
    store = Store("disk", tmp_path)
    above, made = store.new("above"), list[Federated]()
    whole = PosixStorage.put_if_absent

    def meet(storage: PosixStorage, path: str, data: bytes) -> None:
        whole(storage, path, data)
        if path == ".hoodie_tables/outer.json":
            monkeypatch.undo()
            with pytest.raises(StoragePathTakenError, match="the table outer"):
                new_table(store, root=f"{above}/sub", name="inner")
            made.append(new_table(store, root=store.new(), name="inner"))

    monkeypatch.setattr(PosixStorage, "put_if_absent", meet)
    outer = new_table(store, "delta", root=above, name="outer")
    assert len(made) == 1
    sound(filled(outer))


def test_requests_of_a_creation(tmp_path: Path) -> None:
    with counted_s3(tmp_path / "log") as s3:
        plain = cost(s3, "lake/db/one", {})
        stored = cost(s3, "lake/db/two", {"hoodie.storage.path": s3.root("store/two")})
    around = ("_delta_log/", ".hoodie_tables/")
    assert plain  # it is made
    # two for each of the three folders above: the bucket, and two in it
    assert sum(any(sign in one for sign in around) for one in plain) <= 6
    assert sum(any(sign in one for sign in around) for one in stored) <= 6 + 2 * 3 + 3


def cost(s3: Any, place: str, options: dict[str, str]) -> list[str]:
    before = len(s3.requests())
    hudi.Table.create(s3.root(place), SCHEMA, record_key="id", options={**s3.given, **options})
    return list(s3.requests()[before:])
