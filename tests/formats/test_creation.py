"""A table is created in one step: refused before the first file, or there as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError

import hudi_core as hudi
from hudi_core.errors import (
    CommitStateUnknownError,
    HudiError,
    InvalidOptionError,
    NotATableError,
    SchemaError,
    StorageError,
    UnknownOptionWarning,
)
from hudi_core.services import create
from hudi_core.services.create import create_table
from hudi_core.services.drop import drop_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import PROPERTIES_PATH
from hudi_core.txn.creation import CREATION_PATH
from tests.calls import after, before, failing
from tests.tables import TABLES

ICEBERG = "hoodie.table.format.iceberg."
DELTA = "hoodie.table.format.delta."
BOTH_INDEXES = [f"hoodie.metadata.record.{one}index.enable" for one in ("", "level.")]
NUMBERED_CITIES = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64())])
ROWS = pa.table({"id": [1, 2], "city": ["rome", "oslo"], "ts": [1, 1]}, NUMBERED_CITIES)
KEYS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


def options(table_format: str, **more: str) -> dict[str, str]:
    return {**KEYS, "hoodie.table.format": table_format, **more}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = SqlCatalog("hudi", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    yield made
    made.engine.dispose()


def in_catalog(tmp_path: Path, **more: str) -> dict[str, str]:
    named = {"uri": f"sqlite:///{tmp_path}/catalog.db", "identifier": "lake.trips"}
    given = {"type": "sql", **named, **more}
    return options("iceberg", **{f"{ICEBERG}catalog.{key}": value for key, value in given.items()})


def files(path: Path) -> list[str]:
    return sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())


def refused(tmp_path: Path, given: dict[str, str], kind: type[HudiError], said: str) -> None:
    """Both doors refuse a table, and leave no file and no folder."""
    path = tmp_path / "t"
    with pytest.raises(kind, match=said):
        hudi.Table.create(path, NUMBERED_CITIES, options=given)
    with pytest.raises(kind, match=said):
        hudi.write(ROWS, str(path), options=given)
    assert not path.exists()


def test_a_mistake_in_an_option_of_a_catalog_leaves_nothing_in_the_way(
    tmp_path: Path, catalog: SqlCatalog
) -> None:
    catalog.create_namespace("lake")
    right = in_catalog(tmp_path)
    wrong = {key.replace("catalog.type", "catalog.typ"): text for key, text in right.items()}
    path = str(tmp_path / "t")
    with (
        pytest.warns(UnknownOptionWarning, match=r"catalog\.typ .*did you mean .*catalog\.type\?"),
        pytest.raises(InvalidOptionError, match=r"catalog\.type=None .*catalog\.typ.* are given"),
    ):
        hudi.write(ROWS, path, options=wrong)
    assert not (tmp_path / "t").exists()
    hudi.write(ROWS, path, options=right)
    assert catalog.load_table("lake.trips").scan().to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "sqll"}, r"catalog\.type='sqll' .*Supported: glue, hive, rest, sql"),
        ({"identifier": "trips"}, r"catalog\.identifier='trips' .*namespace\.table"),
        ({"create-namespace": "maybe"}, r"create-namespace='maybe' .*neither true nor false"),
        *(
            ({one: "os.path", "type": "rest"}, "it names code to load")
            for one in ("py-catalog-impl", "py-io-impl", "auth.impl")
        ),
        ({"type": "dynamodb"}, r"catalog\.type='dynamodb'"),  # takes no commits
    ],
)
def test_options_of_catalogs_come_first(given: dict[str, str], said: str, tmp_path: Path) -> None:
    refused(tmp_path, in_catalog(tmp_path, **given), InvalidOptionError, said)


def test_a_missing_namespace_is_refused_unless_asked(tmp_path: Path, catalog: SqlCatalog) -> None:
    given = in_catalog(tmp_path)
    refused(tmp_path, given, InvalidOptionError, r"no namespace lake.*create-namespace=true")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("lake")
    given = in_catalog(tmp_path, **{"create-namespace": "TRUE"})
    hudi.write(ROWS, str(tmp_path / "t"), options=given)
    assert catalog.load_table("lake.trips").scan().to_arrow().num_rows == 2


def test_a_conversion_makes_no_namespace_either(tmp_path: Path, catalog: SqlCatalog) -> None:
    path = str(tmp_path / "t")
    hudi.write(ROWS, path, options=options("native"))
    given = {key: text for key, text in in_catalog(tmp_path).items() if key not in KEYS}
    del given["hoodie.table.format"]
    there = files(tmp_path / "t")
    for dry_run in (True, False):
        with pytest.raises(InvalidOptionError, match="no namespace lake"):
            hudi.Table.open(path, given).convert("iceberg", dry_run=dry_run)
    assert not [one for one in {*files(tmp_path / "t")} ^ {*there} if ".locks" not in one]
    catalog.create_namespace("lake")
    hudi.Table.open(path, given).convert("iceberg")
    assert catalog.load_table("lake.trips").scan().to_arrow().num_rows == 2


def test_a_name_that_is_taken_is_refused(tmp_path: Path, catalog: SqlCatalog) -> None:
    catalog.create_namespace("lake")
    catalog.create_table("lake.trips", NUMBERED_CITIES, location=f"file://{tmp_path}/theirs")
    refused(tmp_path, in_catalog(tmp_path), InvalidOptionError, r"a table of this name, .*theirs")
    assert catalog.load_table("lake.trips").location().endswith("theirs")


def test_a_catalog_that_does_not_answer_is_named(tmp_path: Path) -> None:
    given = in_catalog(tmp_path, uri=f"sqlite:///{tmp_path}/no/such/folder.db")
    refused(tmp_path, given, StorageError, "sql catalog of the Iceberg table did not do")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (options("iceberg", **{f"{ICEBERG}location": "/elsewhere"}), "is not a folder below"),
        (options("delta", **{f"{DELTA}location": "/elsewhere"}), "it is not the table's folder"),
        (options("delta", **{f"{DELTA}deleted-file-retention-days": "0"}), "no number of days"),
        (options("native", **dict.fromkeys(BOTH_INDEXES, "true")), "Give only one of them"),
    ],
)
def test_places_and_options_come_first(given: dict[str, str], said: str, tmp_path: Path) -> None:
    refused(tmp_path, given, InvalidOptionError, said)


def test_the_folder_of_the_table_may_be_named(path: Path) -> None:
    hudi.write(ROWS, str(path), options=options("delta", **{f"{DELTA}location": f"{path}/"}))
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("table_format", TABLES)
def test_a_table_is_there_when_its_properties_are(
    table_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "t", list[list[str]]()

    def look(storage: PosixStorage, name: str, _: bytes) -> None:
        if name == PROPERTIES_PATH and storage.root == str(path):
            seen.append(files(path))

    before(monkeypatch, PosixStorage, "put_if_absent", look, each=True)
    made = hudi.Table.create(path, NUMBERED_CITIES, options=options(table_format))
    now = set(files(path))
    assert now - set(seen[0]) == {PROPERTIES_PATH}
    assert set(seen[0]) - now == {CREATION_PATH}
    assert made.validate().is_valid
    assert made.to_arrow().num_rows == 0


def test_a_lost_answer_leaves_it_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")

    def lose(storage: PosixStorage, name: str, _: bytes) -> None:
        if name == PROPERTIES_PATH and storage.root == path:
            raise StorageError("The answer was lost", "Look.")

    with monkeypatch.context() as patched:
        after(patched, PosixStorage, "put_if_absent", lose, each=True)
        with pytest.raises(CommitStateUnknownError, match="where there is no table, create it"):
            hudi.Table.create(path, NUMBERED_CITIES, options=options("delta"))
    hudi.Table.open(path).insert(ROWS)
    assert not (tmp_path / "t" / CREATION_PATH).exists()
    assert DeltaTable(path).to_pyarrow_table().num_rows == 2


def test_properties_that_a_dead_creator_sent_come_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, put, late = str(tmp_path / "t"), PosixStorage.put_if_absent, list[bytes]()

    def travel(storage: PosixStorage, name: str, data: bytes) -> None:
        if name != PROPERTIES_PATH or storage.root != path:
            put(storage, name, data)
        elif not late:
            late.append(data)
            raise StorageError("No answer", "Wait.")
        else:
            put(storage, name, late[0])
            put(storage, name, data)

    monkeypatch.setattr(PosixStorage, "put_if_absent", travel)
    with pytest.raises(CommitStateUnknownError):
        hudi.Table.create(path, NUMBERED_CITIES, options=options("iceberg"))
    made = hudi.Table.create(path, NUMBERED_CITIES, name="second", record_key="id", format="delta")
    assert (made.format, hudi.Table.open(path).config.name) == ("delta", "second")
    made.insert(ROWS)
    assert made.validate().is_valid
    assert DeltaTable(path).to_pyarrow_table().num_rows == 2


def test_a_refusal_by_the_catalog_leaves_nothing(
    tmp_path: Path, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = failing(SchemaError("No such column", "Add it."))
    catalog.create_namespace("lake")
    with monkeypatch.context() as patched:
        patched.setattr("iceberg_format.creation._whole", refuse)
        with pytest.raises(SchemaError, match="No such column"):
            hudi.Table.create(tmp_path / "t", NUMBERED_CITIES, options=in_catalog(tmp_path))
    assert files(tmp_path / "t") == []
    hudi.Table.create(tmp_path / "t", NUMBERED_CITIES, options=in_catalog(tmp_path))


@pytest.mark.parametrize("how", ["dropped", "overwritten", "died"])
def test_a_name_that_a_catalog_still_has_is_the_new_tables(
    how: str, tmp_path: Path, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, given = str(tmp_path / "t"), in_catalog(tmp_path)
    catalog.create_namespace("lake")
    if how == "died":
        with monkeypatch.context() as patched:
            patched.setattr(create, "write_new", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                hudi.Table.create(path, NUMBERED_CITIES, options=given)
        assert catalog.load_table("lake.trips").current_snapshot() is not None
    else:
        hudi.write(ROWS, path, options=given)
    if how == "dropped":
        drop_table(path, given)
    more = ROWS.append_column("more", pa.array([1, 2]))
    hudi.write(more, path, "overwrite", given)
    made, found = hudi.Table.open(path, given), catalog.load_table("lake.trips").scan().to_arrow()
    assert found["more"].to_pylist() == made.to_arrow()["more"].to_pylist()
    assert made.validate().is_valid


@pytest.mark.parametrize("table_format", TABLES)
def test_what_a_dead_creator_left_goes_and_nothing_else(
    table_format: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(create, "write_new", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            hudi.Table.create(path, NUMBERED_CITIES, options=options(table_format))
    left = files(path)
    (path / "notes.txt").write_text("mine")
    with pytest.raises(NotATableError, match=r"other files \(notes\.txt\)"):
        hudi.Table.create(path, NUMBERED_CITIES, options=options("native"))
    assert set(files(path)) == {*left, "notes.txt"}
    (path / "notes.txt").unlink()
    hudi.Table.create(path, NUMBERED_CITIES, options=options("native"))
    assert {one.parts[0] for one in map(Path, files(path))} == {".hoodie"}


@pytest.mark.parametrize("mode", ["append", "errorifexists"])
def test_who_comes_second_writes_to_the_same_table(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")

    def overtake(*_: object) -> None:
        create_table(path, NUMBERED_CITIES, options("native")).timeline()
        hudi.Table.open(path).insert(ROWS)

    before(monkeypatch, create, "creation_lock", overtake)
    mine = pa.table({"id": [3], "city": ["rome"], "ts": [1]}, NUMBERED_CITIES)
    if mode == "append":
        hudi.write(mine, path, mode, options("native"))
        assert hudi.Table.open(path).to_arrow().num_rows == 3
    else:
        with pytest.raises(NotATableError, match="holds a table already"):
            hudi.write(mine, path, mode, options("native"))
        assert hudi.Table.open(path).to_arrow().num_rows == 2


@pytest.mark.parametrize("table_format", TABLES)
def test_a_table_made_while_the_folder_is_listed_is_called_a_table(
    table_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    made = lambda *_: create_table(path, NUMBERED_CITIES, options(table_format)).timeline()  # noqa: E731
    after(monkeypatch, create, "has_properties", made)
    with pytest.raises(NotATableError, match="holds a table already"):
        hudi.Table.create(path, NUMBERED_CITIES, options=options(table_format))


def made_at_once(path: str, name: str, given: dict[str, str], ready: threading.Barrier) -> str:
    ready.wait()
    try:
        hudi.Table.create(path, NUMBERED_CITIES, name=name, options=given)
    except NotATableError as error:
        return str(error)
    return name


@pytest.mark.parametrize("table_format", TABLES)
def test_of_several_one_makes_the_table(table_format: str, tmp_path: Path) -> None:
    path, given = str(tmp_path / "t"), options(table_format)
    del given["hoodie.table.name"]
    ready = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        making = [pool.submit(made_at_once, path, f"name{n}", given, ready) for n in range(3)]
    told = [one.result() for one in making]
    winners = [one for one in told if one.startswith("name")]
    assert len(winners) == 1
    assert all("holds a table already" in one for one in told if one not in winners)
    table = hudi.Table.open(path)
    assert table.config.name == winners[0]
    table.insert(ROWS)
    assert table.validate().is_valid
