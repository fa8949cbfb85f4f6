"""The object-store layout in every format: writes, reads of others, time travel, services."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.errors import (
    CorruptMetadataError,
    InvalidOptionError,
    NotATableError,
    OptionConflictError,
    StoragePathTakenError,
)
from hudi_core.services.opening import open_table
from tests.federated_tables import (
    STORES,
    Federated,
    Store,
    is_data,
    many,
    ordered,
    placed_table,
    states,
    trips,
)
from tests.samples import sampled
from tests.tables import FORMATS

LOCAL, OTHERS = (
    [
        (store, engine, name)
        for store, engine, name in product(STORES, ["local", "spark"], FORMATS)
        if ((store, engine) == ("disk", "local")) == is_local
    ]
    for is_local in (True, False)
)


def parameter(store: str, engine: str, name: str) -> Any:
    asked = {"s3": "s3_process", "spark": "spark"}
    marks = [pytest.mark.asks_for(asked[one]) for one in (store, engine) if one in asked]
    return pytest.param(store, engine, name, marks=marks)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    s3 = request.getfixturevalue("s3_process") if request.param == "s3" else None
    return Store(request.param, tmp_path, s3)


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store("disk", tmp_path)


@pytest.fixture
def write(engine: str, request: pytest.FixtureRequest) -> Any:
    if engine == "local":
        return lambda data: data
    session = request.getfixturevalue("spark")
    return lambda data: session.createDataFrame(data.to_pandas())


def beside_plain(federated: Federated, plain: hudi.Table, write: Any) -> Iterator[str]:
    """Do the same in both tables, in the plain one in this process, and compare after each step."""
    steps = zip(states(federated.table, write), states(plain, lambda data: data), strict=True)
    for done, same in steps:
        assert done == same
        expected = ordered(plain.to_arrow())
        assert ordered(federated.table.to_arrow()) == expected
        theirs = federated.foreign_rows()
        assert theirs in (None, expected)
        federated.require_placed()
        yield done


@pytest.mark.parametrize(
    ("store", "engine", "table_format"),
    [parameter(*each) for each in (*LOCAL, *sampled(OTHERS, 5))],
    indirect=["store"],
)
def test_writes_and_reads_are_those_of_a_plain_table(
    store: Store,
    engine: str,
    table_format: str,
    write: Any,
    disk: Store,
    request: pytest.FixtureRequest,
) -> None:
    federated = placed_table(store, table_format)
    plain = placed_table(disk, table_format, plain=True).table
    seen = []
    for _ in beside_plain(federated, plain, write):
        last = federated.table.history().to_pylist()[0]
        seen.append((str(last["instant"]), ordered(plain.to_arrow())))
    assert len({path.split("/", 1)[0] for path in federated.data_files()}) > 5
    for instant, expected in seen:
        assert ordered(federated.table.to_arrow(as_of=instant)) == expected
    again = hudi.Table.open(federated.base, store.options)
    assert ordered(again.to_arrow()) == seen[-1][1]
    assert ordered(again.to_arrow(filter=[("city", "=", "b")])) == [
        row for row in seen[-1][1] if row["city"] == "b"
    ]
    if engine == "spark":
        session = request.getfixturevalue("spark")
        read = again.read(session).collect()
        assert sorted(row["id"] for row in read) == [row["id"] for row in seen[-1][1]]
    report = again.validate()
    assert report.differences == ()
    assert report.orphans == ()


@pytest.mark.parametrize(
    ("store", "table_format"),
    [*product(["disk"], FORMATS), *sampled(list(product(["s3"], FORMATS)), 3, 1)],
    indirect=["store"],
)
def test_services_find_the_files(store: Store, table_format: str) -> None:
    federated = placed_table(store, table_format)
    table = federated.table
    table.insert(many(range(30), 1))
    first = str(table.history().to_pylist()[0]["instant"])
    saved = ordered(table.to_arrow())
    table.savepoint(first)
    for ts in range(2, 6):
        table.upsert(many(range(30), ts))
    written = len(federated.data_files())
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    cleaned = federated.data_files()
    assert len(cleaned) < written
    assert ordered(table.to_arrow()) == ordered(many(range(30), 5))
    assert federated.foreign_rows() in (None, ordered(table.to_arrow()))
    table.upsert(many(range(10), 9))
    last = str(table.history().to_pylist()[0]["instant"])
    table.rollback(last)
    assert federated.data_files() == cleaned
    assert ordered(table.to_arrow()) == ordered(many(range(30), 5))
    table.restore(first)
    assert ordered(table.to_arrow()) == saved
    assert federated.foreign_rows() in (None, saved)
    assert all(first in path for path in federated.data_files())
    table.delete_savepoint(first)
    table.insert(many(range(30, 60), 2))
    table.cluster()
    assert ordered(table.to_arrow()) == sorted(
        [*saved, *ordered(many(range(30, 60), 2))], key=lambda row: str(row["id"])
    )
    assert federated.foreign_rows() in (None, ordered(table.to_arrow()))
    table.delete(trips(("k007", "b", 9)))
    table.purge()
    assert "k007" not in {row["id"] for row in table.to_arrow().to_pylist()}
    present = set(federated.data_files())
    named = {federated.root + "/" + path for path in present}
    slices = open_table(federated.base, store.options).views().view().latest_slices()
    client = open_table(federated.base, store.options).client
    assert named == {client.files.uri(one.base_file.path) for one in slices if one.base_file}
    report = table.validate()
    assert report.differences == ()
    assert report.orphans == ()
    federated.require_placed()
    dropped = table.drop()
    assert dropped.files > len(present)
    assert store.files(federated.root) == []
    assert [path for path in store.files(federated.base) if is_data(path)] == []


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_stray_file_of_a_completed_instant_is_no_row_and_goes(
    store: Store, table_format: str
) -> None:
    federated = placed_table(store, table_format)
    table = federated.table
    table.insert(many(range(12), 1))
    before = federated.data_files()
    table.upsert(many(range(12), 2))
    written = [path for path in federated.data_files() if path not in before]
    expected = ordered(table.to_arrow())
    # another attempt at a task, which came too late for the commit
    strays = []
    for path in written:
        file_id, token, end = path.split("_")
        task, stage, attempt = token.split("-")
        strays.append(f"{file_id}_{task}-{stage}-{int(attempt) + 7}_{end}")
        store.put(federated.root, strays[-1], store.get(federated.root, path))
    again = hudi.Table.open(federated.base, store.options)
    assert ordered(again.to_arrow()) == expected
    told = "\n".join(map(str, again.validate().differences))
    assert all(path.rsplit("/", 1)[-1] in told for path in strays)
    instant = str(again.history().to_pylist()[0]["instant"])
    again.rollback(instant)
    assert federated.data_files() == before
    assert ordered(again.to_arrow()) == ordered(many(range(12), 1))


def test_a_file_in_a_wrong_place_is_an_orphan(store: Store) -> None:
    federated = placed_table(store)
    federated.table.insert(many(range(6), 1))
    expected = ordered(federated.table.to_arrow())
    path = federated.data_files()[0]
    prefix, _, below = path.partition("/")
    other = f"{(int(prefix, 16) + 1) % 32:02x}"
    data = store.get(federated.root, path)
    store.put(federated.root, f"{other}/{below}", data)
    store.put(federated.base, below.removeprefix("trips/"), data)
    report = federated.table.validate()
    assert report.differences == ()
    assert sorted(report.orphans) == sorted(
        [f"{federated.root}/{other}/{below}", f"{federated.base}/{below.removeprefix('trips/')}"]
    )
    assert ordered(federated.table.to_arrow()) == expected


def test_nothing_is_listed_where_the_metadata_table_is_gone(disk: Store) -> None:
    federated = placed_table(disk)
    federated.table.insert(many(range(6), 1))
    expected = ordered(federated.table.to_arrow())
    (Path(federated.base) / ".hoodie/metadata").rename(Path(federated.base) / "away")
    with pytest.raises(CorruptMetadataError):
        hudi.Table.open(federated.base).to_arrow()
    table = hudi.Table.open(federated.base)
    table.repair()
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == expected


def test_without_a_metadata_table_there_is_no_such_table(disk: Store) -> None:
    off = {"hoodie.metadata.enable": "false"}
    with pytest.raises(InvalidOptionError, match="only its metadata table lists"):
        placed_table(disk, options=off)
    assert not [path for path in disk.folder.rglob("*") if path.is_file()]
    federated = placed_table(disk)
    with pytest.raises(InvalidOptionError, match="only its metadata table lists"):
        hudi.Table.open(federated.base, off)
    with pytest.raises(InvalidOptionError, match="only its metadata table lists"):
        federated.table.insert(many(range(3), 1), options=off)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.storage.path", "/elsewhere"),
        ("hoodie.storage.strategy.class", "default"),
        ("hoodie.storage.strategy.hash.bits", "6"),
        ("hoodie.storage.strategy.hash.function", "XXHASH64"),
        ("hoodie.storage.strategy.hash.input", "PARTITION_AND_FILE_ID"),
        ("hoodie.storage.path.partitions", "city=a -> /elsewhere"),
        ("hoodie.storage.strategy.other", "x"),
    ],
)
def test_the_layout_of_a_table_never_changes(disk: Store, option: str, value: str) -> None:
    federated = placed_table(disk)
    with pytest.raises(OptionConflictError, match="another strategy") as refused:
        hudi.Table.open(federated.base, {option: value})
    assert refused.value.key == option


def test_a_plain_table_gets_no_storage_path_later(disk: Store) -> None:
    plain = placed_table(disk, plain=True)
    for options in (
        {"hoodie.storage.strategy.class": "object_store", "hoodie.storage.path": plain.root},
        {"hoodie.storage.path": plain.root},
    ):
        with pytest.raises(OptionConflictError, match="another strategy"):
            hudi.Table.open(plain.base, options)
    same = {"hoodie.storage.strategy.class": "HoodieDefaultStorageStrategy"}
    hudi.Table.open(plain.base, same)


def test_the_options_of_creation_open_the_table_again(disk: Store) -> None:
    root = disk.new()
    federated = placed_table(disk, root=root)
    given = {
        "hoodie.storage.path": f"{root}/",
        "hoodie.storage.strategy.class": "org.apache.hudi.storage.HoodieObjectStorageStrategy",
        "hoodie.storage.strategy.hash.bits": "5",
        "hoodie.storage.strategy.hash.function": "xxhash32",
    }
    hudi.Table.open(federated.base, given).insert(many(range(3), 1))
    federated.require_placed()


@pytest.mark.parametrize("table_format", FORMATS)
def test_folders_of_data_files_are_no_tables(disk: Store, table_format: str) -> None:
    federated = placed_table(disk, table_format)
    federated.table.insert(many(range(12), 1))
    file = federated.data_files()[0]
    folder = file.rpartition("/")[0]
    for path in ("", "/*/trips/*", "/*/*/*/*.parquet", f"/{folder}", f"/{file}"):
        with pytest.raises(NotATableError, match=r"hudi\.read") as refused:
            hudi.read(None, f"{federated.root}{path}")
        assert federated.base in str(refused.value)
    # partitions by their paths below the table, which the metadata table tells
    found = hudi.read(None, f"{federated.base}/b")
    assert {row["city"] for row in found.to_pylist()} == {"b"}
    found = hudi.read(None, f"{federated.base}/*")
    assert ordered(found) == ordered(many(range(12), 1))


def test_every_door_names_the_table_of_a_storage_path(disk: Store) -> None:
    federated = placed_table(disk)
    federated.table.insert(many(range(12), 1))
    folder = federated.data_files()[0].rpartition("/")[0]
    doors: list[Any] = [
        hudi.Table.open,
        hudi.polars,
        lambda path: hudi.duckdb(None, path),
        lambda path: hudi.Connector().scan(path),
        lambda path: hudi.read_metadata(None, path),
    ]
    for path, door in product((federated.root, f"{federated.root}/{folder}"), doors):
        with pytest.raises(NotATableError, match=r"is in a storage path") as refused:
            door(path)
        assert f"hudi.Table.open({federated.base!r})" in str(refused.value)
    with pytest.raises(NotATableError, match="Check the path, or create a table"):
        hudi.Table.open(disk.new("nothing"))


def test_a_conversion_takes_no_storage_path_that_others_share(disk: Store) -> None:
    root = disk.new()
    first, other = (placed_table(disk, root=root, name=name) for name in ("first", "other"))
    first.table.insert(many(range(6), 1))
    other.table.insert(many(range(6), 2))
    before = disk.files(root)
    for dry_run in (True, False):
        with pytest.raises(StoragePathTakenError, match="the table other"):
            first.table.convert("delta", dry_run=dry_run)
        assert disk.files(root) == before
    first.table.upsert(many(range(3), 3))
    other.table.drop()
    first.table.convert("delta")
    with pytest.raises(StoragePathTakenError, match="metadata of the delta format"):
        placed_table(disk, root=root, name="other")
    assert Federated(disk, hudi.Table.open(first.base), first.base, root).foreign_rows() == ordered(
        first.table.to_arrow()
    )
    # the log that it had stays for its readers, and is still alone
    first.table.convert("native")
    with pytest.raises(StoragePathTakenError, match="metadata of the"):
        placed_table(disk, root=root, name="other")
    first.table.convert("delta")
    first.table.drop()
    assert disk.files(root) == []


def test_a_conversion_meets_a_log_that_is_not_its_own(disk: Store) -> None:
    federated = placed_table(disk)
    federated.table.insert(many(range(6), 1))
    disk.put(federated.root, "_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(StoragePathTakenError, match="_delta_log is there already"):
        federated.table.convert("delta")
    assert ordered(hudi.Table.open(federated.base).to_arrow()) == ordered(many(range(6), 1))


def test_a_conversion_keeps_a_format_from_deleting_the_table(disk: Store) -> None:
    root = disk.new()
    federated = placed_table(disk, root=root, base=f"{root}/tables/trips")
    federated.table.insert(many(range(6), 1))
    with pytest.raises(InvalidOptionError, match="the delta format deletes files"):
        federated.table.convert("delta")
