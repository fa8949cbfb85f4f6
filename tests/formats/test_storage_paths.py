"""Storage paths: several of them, beside other tables, and of engines that know of none."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

import hudi_core as hudi
from hudi_core import errors
from hudi_core.config.placement import STORAGE_POINT, PlacementKeys
from hudi_core.metadata.maintenance.lifecycle import announce_rebuild
from hudi_core.services.opening import open_table
from hudi_core.storage.claims import Claim
from hudi_core.storage.hadoop import hadoop_options
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import PROPERTIES_PATH, read_properties
from tests.counted_s3 import counted_s3
from tests.federated_tables import (
    OBJECT_STORE,
    STORES,
    TRIPS,
    Federated,
    Store,
    is_data,
    many,
    ordered,
    placed_table,
    seen,
    states,
    take_back,
    trips,
)
from tests.moto_s3 import S3Service
from tests.operators import operator

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
    federated = placed_table(store, table_format, root=f"{near},{far}", options=options)
    plain = placed_table(store, table_format, plain=True).table
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


def test_another_service(s3: S3Service, s3_process: S3Service, tmp_path: Path, spark: Any) -> None:
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
    federated = placed_table(store, root=f"{near},{far}", options=options)
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
    there = [path for path in s3_process.paths(far) if is_data(path)]
    assert len(there) > 1
    assert all("/trips/b/" in path for path in there)
    properties = s3.objects(federated.base)
    text = b"".join(properties.values()).decode("latin-1")
    assert "another-" not in text
    with pytest.raises(errors.UnsupportedTableError, match="one set of credentials"):
        placed_table(store, "iceberg", root=f"{near},{far}", name="two", options=options)
    report = again.validate()
    assert (report.differences, report.orphans) == ((), ())
    again.drop()
    assert not s3_process.paths(far)


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
    federated = placed_table(store, plain=True, options=by_year)
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
def test_a_strategy_that_fails_to_load_is_named(tmp_path: Path, installed: Path, name: str) -> None:
    options = {"hoodie.storage.strategy.class": name, "hoodie.storage.path": str(tmp_path / "s")}
    with pytest.raises(errors.PluginLoadError, match=f"storage strategy '{name}'"):
        placed_table(Store("disk", tmp_path), plain=True, options=options)


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
    with pytest.raises(errors.PluginConflictError, match="by-year, rival"):
        placed_table(Store("disk", tmp_path), plain=True, options=options)


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
def test_a_strategy_in_breach_writes_nothing(tmp_path: Path, installed: Path, answer: str) -> None:
    (installed / "year_strategy.py").write_text(BROKEN.format(answer=answer))
    store = Store("disk", tmp_path)
    options = {
        "hoodie.storage.strategy.class": "by-year",
        "hoodie.storage.path": str(tmp_path / "s"),
    }
    with pytest.raises(errors.PluginError, match="storage strategy 'by-year'"):
        for _ in states(placed_table(store, plain=True, options=options).table, lambda data: data):
            pass
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("table_format", ["native", "delta"])
def test_a_copy_of_a_table_does_not_touch_its_files(tmp_path: Path, table_format: str) -> None:
    store = Store("disk", tmp_path)
    root = store.new("store")
    original = placed_table(store, table_format, root=root)
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
        with pytest.raises(
            errors.StoragePathTakenError, match=r"those of the table at .*delete .*\.json"
        ):
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


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    s3 = request.getfixturevalue("s3_process") if request.param == "s3" else None
    return Store(request.param, tmp_path, s3)


def filled(made: Federated) -> Federated:
    made.table.insert(many(range(6), 1))
    return made


def refused(store: Store, error: type[errors.HudiError], match: str, **how: Any) -> None:
    """A table cannot be made, and nothing is left of it."""
    base = how.pop("base", None) or store.new("refused")
    before = files(store, base)
    with pytest.raises(error, match=match):
        placed_table(store, base=base, name="refused", **how)
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
    plain = filled(placed_table(store, "delta", plain=True))
    for root in (plain.base, f"{plain.base}/sub", f"{plain.base}/sub/sub"):
        before = store.files(plain.base)
        refused(
            store, errors.StoragePathTakenError, "_delta_log", table_format=table_format, root=root
        )
        assert store.files(plain.base) == before
    federated = filled(placed_table(store, "delta", name="first"))
    for root in (f"{federated.root}/sub", f"{federated.root}/a/b"):
        refused(
            store,
            errors.StoragePathTakenError,
            f"the table first at {federated.base} .*the delta format",
            table_format=table_format,
            root=root,
        )
    sound(plain, federated)


def test_no_delta_table_around_a_storage_path(store: Store) -> None:
    above = store.new("above")
    native = filled(placed_table(store, root=f"{above}/one/two"))
    for root in (above, f"{above}/one"):
        refused(
            store, errors.StoragePathTakenError, "hoodie_tables", table_format="delta", root=root
        )
    for base in (above, f"{above}/one", f"{above}/one/two"):
        refused(
            store, errors.NotATableError, "other files", table_format="delta", base=base, plain=True
        )
    # nor around the folder of a table, or anything else
    folder = store.new("folder")
    plain = filled(placed_table(store, base=f"{folder}/plain", plain=True))
    refused(store, errors.StoragePathTakenError, "is there", table_format="delta", root=folder)
    store.put(other := store.new("other"), "stray.parquet", b"")
    refused(store, errors.StoragePathTakenError, "stray", table_format="delta", root=other)
    sound(native, plain, filled(placed_table(store, "delta", root=f"{above}/three")))


@pytest.mark.parametrize("table_format", ["native", "iceberg"])
def test_no_folder_of_a_table_in_a_delta_table(store: Store, table_format: str) -> None:
    federated = filled(placed_table(store, "delta", name="first"))
    plain = filled(placed_table(store, "delta", plain=True))
    for base, match in (
        (f"{federated.root}/plain", "the table first"),
        (f"{federated.root}/a/b/plain", "the table first"),
        (f"{plain.base}/plain", "_delta_log"),
    ):
        for is_plain in (True, False):
            refused(
                store,
                errors.StoragePathTakenError,
                match,
                base=base,
                table_format=table_format,
                plain=is_plain,
            )
    sound(federated, plain)


def test_no_conversion_to_delta_around_files_of_others(store: Store) -> None:
    outer = filled(placed_table(store, plain=True))
    # as an earlier release let it be
    claim = Claim("inner", store.new("inner"), "native")
    store.put(outer.base, f"stores/one/{claim.path}", claim.encode())
    for dry_run in (True, False):
        with pytest.raises(
            errors.StoragePathTakenError, match=f"the table inner .{claim.base_path}"
        ):
            outer.table.convert("delta", dry_run=dry_run)
    assert hudi.Table.open(outer.base, store.options).format == "native"
    # tables below the storage path of one
    shared = filled(placed_table(store))
    inside = filled(placed_table(store, base=f"{shared.root}/tables/two", name="two", plain=True))
    with pytest.raises(errors.StoragePathTakenError, match="another table has files there"):
        shared.table.convert("delta")
    # and one that is itself below a Delta table
    around = store.new("around")
    below = filled(placed_table(store, base=f"{around}/below", plain=True))
    store.put(around, "_delta_log/00000000000000000000.json", b"{}\n")
    with pytest.raises(errors.StoragePathTakenError, match=r"has _delta_log"):
        below.table.convert("delta")
    inside.table.drop()
    shared.table.convert("delta")
    sound(outer, below, shared)


def test_a_delta_table_that_hudi_does_not_know(tmp_path: Path) -> None:
    store = Store("disk", tmp_path)
    theirs = store.new("theirs")
    write_deltalake(theirs, many(range(6), 1))
    refused(store, errors.StoragePathTakenError, "_delta_log", root=f"{theirs}/sub")
    refused(store, errors.StoragePathTakenError, "_delta_log", base=f"{theirs}/sub", plain=True)
    (tmp_path / "link").symlink_to(theirs)
    refused(store, errors.StoragePathTakenError, "_delta_log", root=f"{tmp_path}/link/sub")


def test_a_storage_path_in_the_folder_of_a_table(store: Store) -> None:
    """It would go with the table."""
    plain = filled(placed_table(store, plain=True))
    for root in (plain.base, f"{plain.base}/a/b"):
        refused(store, errors.StoragePathTakenError, "the folder of a table", root=root)
    sound(plain)


def test_a_table_outlives_a_place_that_its_successor_cannot_have(store: Store) -> None:
    delta = filled(placed_table(store, "delta", name="first"))
    taken = placed_table(store, name="taken")
    old = filled(placed_table(store, name="old"))
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
        with pytest.raises(errors.StoragePathTakenError):
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
    delta = filled(placed_table(store, "delta", root=f"{store.new()}/sub"))
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
            with pytest.raises(errors.StoragePathTakenError, match="the table outer"):
                placed_table(store, root=f"{above}/sub", name="inner")
            made.append(placed_table(store, root=store.new(), name="inner"))

    monkeypatch.setattr(PosixStorage, "put_if_absent", meet)
    outer = placed_table(store, "delta", root=above, name="outer")
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
    hudi.Table.create(s3.root(place), TRIPS, record_key="id", options={**s3.given, **options})
    return list(s3.requests()[before:])


Write = Callable[[hudi.Table], object]
INSERTED = trips(("new", "a", 5), ("newer", "b", 5))
WRITES: dict[str, Write] = {
    "insert": lambda table: table.insert(INSERTED),
    "bulk_insert": lambda table: table.bulk_insert(INSERTED),
    "insert_overwrite": lambda table: table.insert_overwrite(INSERTED),
}
NO_METADATA = {"hoodie.metadata.enable": "false"}
NO_GROWTH = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The path of a table with a storage path, of four rows."""
    made = placed_table(Store("disk", tmp_path))
    made.table.insert(trips(("k0", "a", 1), ("k1", "b", 1), ("k2", "c", 1)))
    made.table.upsert(trips(("k0", "a", 2), ("k3", "b", 2)))
    return made.base


@contextmanager
def another_engine(base: str) -> Iterator[hudi.Table]:
    """The table as an engine opens it that knows of no storage paths."""
    storage = open_storage(base)
    before = dict(read_properties(storage))
    own = {key: value for key, value in before.items() if "hoodie.storage." not in key}
    put_properties(base, own)
    yield hudi.Table.open(base, {**NO_GROWTH})
    placing = before.keys() - own.keys()
    now = {**read_properties(storage), **{key: before[key] for key in placing}}
    put_properties(base, now)


def put_properties(base: str, properties: dict[str, str]) -> None:
    text = "".join(f"{key}={escaped(value)}\n" for key, value in properties.items())
    Path(base, PROPERTIES_PATH).write_text(text)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(":", "\\:").replace("=", "\\=").replace("#", "\\#")


BEFORE = [("k0", 2), ("k1", 1), ("k2", 1), ("k3", 2)]


def undo(base: str) -> None:
    """What the errors advise, of all that the other engine wrote."""
    take_back(base, hudi.Table.open(base).timeline.completed_writes()[2:])


@pytest.mark.parametrize("operation", WRITES)
def test_what_others_wrote_is_named_by_all_who_look(base: str, operation: str) -> None:
    with another_engine(base) as theirs:
        WRITES[operation](theirs)
    last = hudi.Table.open(base).timeline.completed_writes()[-1].requested_time
    with pytest.raises(errors.MisplacedFileError) as caught:
        seen(base)
    assert caught.value.instant == last
    assert (Path(base) / caught.value.path).exists()
    assert f"hudi rollback {base} {last}" in caught.value.hint
    assert f"hudi table repair --metadata {base}" in caught.value.hint
    with pytest.raises(errors.MisplacedFileError):
        hudi.Table.open(base).upsert(trips(("new", "a", 6), ("newer", "b", 6)))
    with pytest.raises(errors.MisplacedFileError):
        hudi.Table.open(base).repair_metadata()
    told = [one.found or "" for one in hudi.Table.open(base).validate().differences]
    assert any("lies in the table's folder, and not below its storage path" in one for one in told)
    undo(base)
    assert seen(base) == BEFORE
    checked = hudi.Table.open(base).validate()
    assert checked.is_valid
    assert any(caught.value.path in one for one in checked.orphans)
    hudi.Table.open(base).upsert(INSERTED)
    assert seen(base) == [*BEFORE, ("new", 5), ("newer", 5)]


def drop_metadata_table(base: str) -> None:
    operator(base).delete()


def test_a_metadata_table_that_others_dropped_is_not_made_without_their_files(base: str) -> None:
    with another_engine(base) as theirs:
        drop_metadata_table(base)
        # it sees no row, so that both are new to it
        theirs.upsert(trips(("k0", "a", 3), ("new", "b", 3)), options=NO_METADATA)
    with pytest.raises(errors.CorruptMetadataError) as missing:
        seen(base)
    assert f"`hudi table repair --metadata {base}`" in missing.value.hint
    # it would take the table for one without these rows
    with pytest.raises(errors.MisplacedFileError):
        hudi.Table.open(base).insert(trips(("more", "c", 4)))
    with pytest.raises(errors.MisplacedFileError):
        hudi.Table.open(base).repair_metadata()
    undo(base)
    assert seen(base) == BEFORE


def test_a_metadata_table_that_others_dropped_is_made_again(base: str) -> None:
    with another_engine(base):
        drop_metadata_table(base)
    planned = hudi.Table.open(base).repair_metadata(dry_run=True)
    with pytest.raises(errors.CorruptMetadataError, match="is missing or is being rebuilt"):
        seen(base)
    done = hudi.Table.open(base).repair_metadata()
    assert done.partitions == planned.partitions
    assert "files" in done.partitions
    assert seen(base) == BEFORE
    assert hudi.Table.open(base).validate().is_valid


@pytest.mark.parametrize("service", ["restore", "rollback", "clean", "purge", "archive"])
def test_no_service_is_refused_where_a_rebuild_died(base: str, service: str) -> None:
    """Though nothing else lists the files."""
    table = hudi.Table.open(base)
    first = table.timeline.completed_writes()[-1]
    table.insert(INSERTED)
    last = hudi.Table.open(base).timeline.completed_writes()[-1]
    announce_rebuild(open_table(base, {}).client)
    with pytest.raises(errors.CorruptMetadataError, match="is missing or is being rebuilt"):
        seen(base)
    given = {"restore": [first.requested_time], "rollback": [last.requested_time]}.get(service, [])
    getattr(hudi.Table.open(base), service)(*given)
    if service == "restore":
        assert seen(base) == BEFORE
    hudi.Table.open(base).upsert(INSERTED)
    assert hudi.Table.open(base).validate().is_valid


@pytest.mark.parametrize("writes", [False, True])
def test_a_metadata_table_that_others_made_is_refused(base: str, writes: bool) -> None:
    with another_engine(base) as theirs:
        drop_metadata_table(base)
        theirs.insert(INSERTED)
    # it lists the table's folder alone, and does not state the zone of the timeline
    stated = Path(base, ".hoodie/metadata", PROPERTIES_PATH)
    lines = stated.read_text().splitlines()
    stated.write_text("\n".join(one for one in lines if "timezone" not in one))
    calls: list[Write] = [lambda table: table.to_arrow(), lambda table: table.count()]
    for call in calls:
        with pytest.raises(errors.ForeignMetadataError, match="another engine made it") as caught:
            call(hudi.Table.open(base))
        assert caught.value.hint.endswith("run `hudi table repair --metadata PATH`.")
    if writes:
        with pytest.raises(errors.MisplacedFileError):
            hudi.Table.open(base).insert(trips(("more", "c", 4)))
    undo(base)
    assert seen(base) == BEFORE
    assert hudi.Table.open(base).count() == len(BEFORE)


def test_a_metadata_table_that_others_made_stays_when_files_move(tmp_path: Path) -> None:
    store = Store("disk", tmp_path)
    made = placed_table(store, plain=True)
    made.table.insert(INSERTED)
    stated = Path(made.base, ".hoodie/metadata", PROPERTIES_PATH)
    lines = stated.read_text().splitlines()
    stated.write_text("\n".join(one for one in lines if "timezone" not in one))
    placed = {**OBJECT_STORE, "hoodie.storage.path": store.new()}
    assert hudi.Table.open(made.base).convert_storage(placed).is_made
    assert seen(made.base) == [("new", 5), ("newer", 5)]


def test_a_file_that_is_nowhere_is_another_error(base: str) -> None:
    client = open_table(base, {}).client
    client.data.discard([one.path for one in client.data.list("a", recursive=True)])
    with pytest.raises(errors.DataFileError) as caught:
        seen(base)
    assert not isinstance(caught.value, errors.MisplacedFileError)


def test_the_advice_about_damaged_definitions_of_indexes_helps(base: str) -> None:
    path = Path(base, ".hoodie/.index_defs/index.json")
    path.write_bytes(b"{")
    with pytest.raises(errors.CorruptMetadataError, match="delete this file, then run") as caught:
        hudi.Table.open(base).insert(INSERTED)
    assert caught.value.path == str(path)
    path.unlink()
    hudi.Table.open(base).repair_metadata()
    hudi.Table.open(base).insert(INSERTED)
    assert seen(base) == [*BEFORE, ("new", 5), ("newer", 5)]
    assert hudi.Table.open(base).validate().is_valid
