"""A table that goes from its folder into a catalog leaves nothing behind that readers by its path
would take for its present state."""

from __future__ import annotations

import contextlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchNamespaceError,
)
from pyiceberg.table import StaticTable
from pyiceberg.table.update import SetPropertiesUpdate
from sqlalchemy import text

import hudi_core as hudi
import iceberg_format.creation
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    HudiError,
    InvalidOptionError,
    StorageError,
    UnsupportedTableError,
)
from hudi_core.services.mending.differences import Source
from hudi_core.services.opening import open_table
from iceberg_format.catalog import FolderCatalog
from iceberg_format.commit import requirements
from iceberg_format.external import FROM_FOLDER_KEY, ExternalCatalog
from iceberg_format.table import IcebergTable
from tests.calls import after, before, failing
from tests.formats.dying_writers import Died, MortalStorage
from tests.formats.iceberg_tables import NOTED, Iceberg, bag, create, opened, typed, without_meta
from tests.formats.named_catalogs import PREFIX

NAME = "lake.t"


@pytest.fixture
def options(lake: tuple[SqlCatalog, dict[str, str]]) -> dict[str, str]:
    return lake[1]


@pytest.fixture
def theirs(lake: tuple[SqlCatalog, dict[str, str]]) -> SqlCatalog:
    return lake[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "t"
    table = create(where)
    table.insert(typed(range(4)))
    table.upsert(typed([1], 1))
    return where


def by_path(path: Path) -> Counter[str] | None:
    """The rows that a reader sees which knows no catalog, or nothing."""
    try:
        table = StaticTable.from_metadata(str(path))
    except FileNotFoundError:
        return None
    return bag(table.scan().to_arrow())


def by_catalog(theirs: SqlCatalog, name: str = NAME) -> Counter[str]:
    return bag(theirs.load_table(name).scan().to_arrow())


def numbered(path: Path) -> list[str]:
    return [one.name for one in (path / "metadata").iterdir() if one.name.startswith("v")]


def test_a_catalog_without_the_table_says_so(path: Path, options: dict[str, str]) -> None:
    with pytest.raises(CorruptMetadataError, match=r"`hudi table repair .* into that catalog"):
        hudi.Table.open(path, options).to_arrow()
    with pytest.raises(CorruptMetadataError, match="is not in the sql catalog"):
        hudi.Table.open(path, options).upsert(typed([1], 2))
    assert by_path(path) == bag(hudi.Table.open(path).to_arrow())


def test_a_table_moves_into_a_catalog_with_its_history(
    path: Path, options: dict[str, str], theirs: SqlCatalog
) -> None:
    before = Iceberg(path).table.metadata
    held = by_path(path)
    assert hudi.Table.open(path, options).repair().left == ()
    assert numbered(path) == []
    assert by_path(path) is None
    assert by_catalog(theirs) == held
    table = hudi.Table.open(path, options)
    table.upsert(typed([2], 2))
    after = theirs.load_table(NAME).metadata
    assert after.table_uuid == before.table_uuid
    assert after.snapshots[:-1] == before.snapshots
    assert after.properties["hudi.catalog"] == f"sql hudi {NAME}"
    assert FROM_FOLDER_KEY not in after.properties
    assert by_catalog(theirs) == bag(table.to_arrow())
    with pytest.raises(CorruptMetadataError, match=r"catalog\.\*"):
        hudi.Table.open(path).to_arrow()
    with pytest.raises(UnsupportedTableError, match="a catalog knows the version"):
        hudi.Table.open(path).repair()


@pytest.mark.parametrize("is_done", [False, True])
def test_a_move_that_died_leaves_no_old_state_behind(
    tmp_path: Path, is_done: bool, options: dict[str, str], theirs: SqlCatalog, monkeypatch: Any
) -> None:
    mortal = MortalStorage(monkeypatch, is_done=is_done)
    for number in range(1, 100):
        path = tmp_path / f"t{number}"
        given = {**options, f"{PREFIX}identifier": f"lake.t{number}"}
        table = create(path, partition_by=None)
        table.insert(typed(range(2)))
        held = by_path(path)
        mortal.left = number
        with contextlib.suppress(Died):
            hudi.Table.open(path, given).repair()
        has_died, mortal.left = mortal.left <= 0, 0
        # whoever reads by the path sees the table as it is, or nothing
        assert by_path(path) in (held, None)
        if theirs.table_exists(f"lake.t{number}"):
            with pytest.raises(HudiError):
                hudi.Table.open(path).upsert(typed([1], 1))
        table = hudi.Table.open(path, given)
        try:
            table.upsert(typed([1], 1))
        except CorruptMetadataError:  # the catalog does not have it yet
            if numbered(path) and Iceberg(path).table.properties.get("hudi.moved-to-catalog"):
                with pytest.raises(UnsupportedTableError, match=f"lake.t{number}"):
                    hudi.Table.open(path).upsert(typed([1], 1))
            assert table.repair().left == ()
            table = hudi.Table.open(path, given)
            table.upsert(typed([1], 1))
        assert by_path(path) is None
        assert numbered(path) == []
        with pytest.raises(HudiError):
            hudi.Table.open(path).to_arrow()
        assert bag(without_meta(table.to_arrow())) == bag(typed([0])) + bag(typed([1], 1))
        if not has_died:
            break
    assert number > 6


def test_a_writer_that_slept_through_the_move_is_refused(
    path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = IcebergTable.open(opened(path).client).catalog
    state = asleep.load()
    assert state is not None

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "register_table", failing(Died()))
        catalog = IcebergTable.open(open_table(str(path), options).client).catalog
        with pytest.raises(Died):
            catalog.replace(state.metadata, catalog.newest())
    with pytest.raises(UnsupportedTableError, match=rf"into a catalog \(sql hudi {NAME}\)"):
        hudi.Table.open(path).to_arrow()
    update = SetPropertiesUpdate(updates={"k": "v"})
    with pytest.raises(CommitFailedException):
        asleep.commit(state, requirements(state.metadata), (update,))


def test_what_a_format_left_goes(path: Path, options: dict[str, str], theirs: SqlCatalog) -> None:
    hudi.Table.open(path).convert("native")
    hudi.Table.open(path).upsert(typed([2], 2))
    assert numbered(path) != []
    hudi.Table.open(path, options).convert("iceberg")
    assert numbered(path) == []
    assert by_path(path) is None
    assert by_catalog(theirs) == bag(hudi.Table.open(path, options).to_arrow())


def test_a_table_is_not_put_into_a_second_catalog(
    path: Path, options: dict[str, str], theirs: SqlCatalog
) -> None:
    hudi.Table.open(path, options).repair()
    other = {**options, f"{PREFIX}identifier": "lake.others"}
    with pytest.raises(UnsupportedTableError, match=rf"in another catalog \(sql hudi {NAME}\)"):
        hudi.Table.open(path, other).repair()
    hudi.Table.open(path, options).upsert(typed([1], 2))
    assert theirs.list_tables("lake") == [("lake", "t")]
    theirs.drop_table(NAME)  # by mistake
    hudi.Table.open(path, options).repair()
    assert by_catalog(theirs) == bag(hudi.Table.open(path, options).to_arrow())


@pytest.mark.parametrize("fault", ["version 1", "version 3", "damaged", "missing", "no folder"])
def test_another_table_of_the_name_stays_in_its_catalog(
    fault: str, path: Path, options: dict[str, str], theirs: SqlCatalog, tmp_path: Path
) -> None:
    theirs.create_namespace("lake")
    number = "1" if fault in ("version 1", "no folder") else "2"
    made = theirs.create_table(NAME, NOTED, properties={"format-version": number})
    file = Path(made.metadata_location.removeprefix("file://"))
    if fault == "version 3":
        third = b'"format-version":3,"next-row-id":0'
        file.write_bytes(file.read_bytes().replace(b'"format-version":2', third))
        assert theirs.load_table(NAME).metadata.format_version == 3
    elif fault == "damaged":
        file.write_text("{")
    elif fault == "missing":
        file.unlink()
    elif fault == "no folder":
        # its metadata would be looked for in ours
        theirs.drop_table(NAME)
        inside = path / "metadata" / "00000-x.metadata.json"
        inside.write_bytes(file.read_bytes())
        theirs.register_table(NAME, f"file://{inside}")
    row = text("select metadata_location from iceberg_tables")
    with theirs.engine.connect() as connection:
        before = connection.execute(row).all()
    held, versions = by_path(path), numbered(path)
    for force in (False, True):
        with pytest.raises(InvalidOptionError, match="the catalog has a table of this name"):
            hudi.Table.open(path, options).repair(force=force)
    with theirs.engine.connect() as connection:
        assert connection.execute(row).all() == before
    assert numbered(path) == versions
    assert by_path(path) == held
    hudi.Table.open(path).upsert(typed([1], 2))


@pytest.mark.parametrize("fault", ["damaged", "missing"])
def test_metadata_of_the_table_itself_is_made_anew(
    fault: str, path: Path, options: dict[str, str], theirs: SqlCatalog
) -> None:
    hudi.Table.open(path, options).repair()
    file = Path(theirs.load_table(NAME).metadata_location.removeprefix("file://"))
    if fault == "damaged":
        file.write_text("{")
    else:
        file.unlink()
    assert hudi.Table.open(path, options).repair().left == ()
    assert by_catalog(theirs) == bag(hudi.Table.open(path, options).to_arrow())


REFUSALS = [ForbiddenError("no"), BadRequestError("no"), NoSuchNamespaceError("no")]


@pytest.mark.parametrize("error", [*REFUSALS, OSError("lost")], ids=lambda one: type(one).__name__)
def test_a_move_that_the_catalog_refuses_is_undone(
    error: Exception, path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    was = Iceberg(path).table.metadata
    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "register_table", failing(error))
        with pytest.raises(StorageError, match=r"no|lost"):
            hudi.Table.open(path, options).repair()
    if error in REFUSALS:
        assert Iceberg(path).table.metadata.properties == was.properties
        assert Iceberg(path).table.metadata.snapshots == was.snapshots
    else:  # who knows; only the user
        for act in (lambda table: table.upsert(typed([1], 2)), hudi.Table.repair):
            with pytest.raises(UnsupportedTableError, match="--force"):
                act(hudi.Table.open(path))
        assert hudi.Table.open(path).repair(force=True).left == ()
    hudi.Table.open(path).upsert(typed([1], 2))
    assert by_path(path) == bag(hudi.Table.open(path).to_arrow())
    other = {**options, f"{PREFIX}identifier": "lake.others"}
    if error in REFUSALS:
        assert hudi.Table.open(path, other).repair().left == ()
        assert numbered(path) == []


def test_a_namespace_that_cannot_be_made_changes_nothing(
    path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = numbered(path)
    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "create_namespace", failing(ForbiddenError("not you")))
        with pytest.raises(StorageError, match="not you"):
            hudi.Table.open(path, options).repair()
    assert numbered(path) == versions
    hudi.Table.open(path).upsert(typed([1], 2))


def test_a_table_that_takes_the_name_meanwhile_undoes_the_move(
    path: Path, options: dict[str, str], theirs: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        be_first = lambda *_: theirs.create_table(NAME, NOTED)  # noqa: E731
        before(patched, SqlCatalog, "register_table", be_first)
        with pytest.raises(InvalidOptionError, match="of this name"):
            hudi.Table.open(path, options).repair()
    hudi.Table.open(path).upsert(typed([1], 2))
    assert by_path(path) == bag(hudi.Table.open(path).to_arrow())


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_commit_during_the_move_stays(
    is_whole: bool,
    path: Path,
    options: dict[str, str],
    theirs: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lease of the lock may run out."""
    catalog = IcebergTable.open(opened(path).client).catalog
    state = catalog.load()
    assert state is not None
    update = SetPropertiesUpdate(updates={"rival": "was here"})
    change = partial(catalog.commit, state, requirements(state.metadata), (update,))
    if is_whole:
        monkeypatch.setattr(iceberg_format.creation, "_from_folder", lambda _: None)
    before(monkeypatch, ExternalCatalog, "replace", lambda *_: change())
    with pytest.raises(CommitConflictError, match="run it again"):
        hudi.Table.open(path, options).repair()
    assert not theirs.table_exists(NAME)
    assert Iceberg(path).table.properties["rival"] == "was here"
    hudi.Table.open(path).upsert(typed([1], 2))


def test_the_folder_is_closed_once(path: Path) -> None:
    catalog = IcebergTable.open(opened(path).client).catalog
    assert isinstance(catalog, FolderCatalog)
    state = catalog.load()
    assert state is not None
    catalog.close(state.metadata, "here", catalog.newest())
    with pytest.raises(UnsupportedTableError, match="here"):
        catalog.load()
    held = by_path(path)
    with pytest.raises(UnsupportedTableError, match="here"):
        hudi.Table.open(path).repair()
    assert hudi.Table.open(path).repair(force=True).left == ()
    assert by_path(path) == held
    hudi.Table.open(path).upsert(typed([1], 2))


def register(theirs: SqlCatalog, path: Path, version: str) -> None:
    theirs.create_namespace_if_not_exists("lake")
    theirs.register_table(NAME, f"file://{path}/metadata/{version}")


def test_a_registered_version_that_lags_behind_is_named(
    path: Path, options: dict[str, str], theirs: SqlCatalog
) -> None:
    register(theirs, path, "v2.metadata.json")
    held, old = by_path(path), by_catalog(theirs)
    assert held != old
    assert hudi.Table.open(path).validate().is_valid  # nothing tells of the catalog
    [found] = hudi.Table.open(path, options).validate().differences
    assert found.source is Source.FORMAT
    assert "at v2.metadata.json" in str(found.found)
    assert "at v3.metadata.json" in str(found.found)
    for act in (hudi.Table.to_arrow, lambda table: table.upsert(typed([1], 2))):
        with pytest.raises(CorruptMetadataError, match="lags behind"):
            act(hudi.Table.open(path, options))
    assert by_path(path) == held
    assert hudi.Table.open(path, options).repair().left == ()
    assert by_path(path) is None
    table = hudi.Table.open(path, options)
    table.upsert(typed([1], 2))
    assert by_catalog(theirs) == bag(table.to_arrow())
    assert table.validate().is_valid


def test_a_copy_of_a_table_in_another_catalog_is_named(
    path: Path, options: dict[str, str], theirs: SqlCatalog, tmp_path: Path
) -> None:
    assert hudi.Table.open(path, options).repair().left == ()
    own = {**options, f"{PREFIX}uri": f"sqlite:///{tmp_path}/own.db", f"{PREFIX}identifier": "my.t"}
    [current] = (one.name for one in (path / "metadata").glob("*.metadata.json"))
    other = SqlCatalog("hudi", uri=own[f"{PREFIX}uri"])
    other.create_namespace("my")
    other.register_table("my.t", f"file://{path}/metadata/{current}")
    other.engine.dispose()
    hudi.Table.open(path, options).upsert(typed([1], 2))
    [found] = hudi.Table.open(path, own).validate().differences
    assert f"in another catalog (sql hudi {NAME})" in str(found.found)
    for act in (lambda table: table.upsert(typed([1], 3)), hudi.Table.repair):
        with pytest.raises(UnsupportedTableError, match="another catalog"):
            act(hudi.Table.open(path, own))
    assert hudi.Table.open(path, options).validate().is_valid


def renamed(path: Path, options: dict[str, str], theirs: SqlCatalog) -> dict[str, str]:
    """The options of the table once it has another name in its catalog."""
    hudi.Table.open(path, options).repair()
    theirs.rename_table(NAME, "lake.others")
    return {**options, f"{PREFIX}identifier": "lake.others"}


def test_a_write_to_a_renamed_table_does_not_make_its_readers_fail(
    path: Path, options: dict[str, str], theirs: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = renamed(path, options, theirs)
    reader, writer = hudi.Table.open(path, own), hudi.Table.open(path, own)
    after(monkeypatch, ExternalCatalog, "_found", lambda *_: writer.upsert(typed([1], 2)))
    assert reader.count() == 4
    assert hudi.Table.open(path, own).validate().is_valid


def test_what_a_refused_commit_left_does_not_block_a_renamed_table(
    path: Path, options: dict[str, str], theirs: SqlCatalog
) -> None:
    own = renamed(path, options, theirs)
    [newest] = (path / "metadata").glob("*.metadata.json")
    (path / f"metadata/{newest.name[:6]}ffffffff{newest.name[14:]}").write_bytes(
        newest.read_bytes()
    )
    table = hudi.Table.open(path, own)
    assert table.count() == 4
    table.upsert(typed([1], 2))
    assert theirs.load_table("lake.others").properties["hudi.catalog"] == "sql hudi lake.others"
    with pytest.raises(CorruptMetadataError, match="is not in the sql catalog"):
        hudi.Table.open(path, options).count()
    with pytest.raises(UnsupportedTableError, match=r"catalog \(sql hudi lake\.others\)") as told:
        hudi.Table.open(path, options).repair()
    assert "delete" not in str(told.value)


def test_version_3_does_not_go_where_it_is_not_written(
    path: Path, tmp_path: Path, options: dict[str, str], theirs: SqlCatalog
) -> None:
    third = {"hoodie.table.format.iceberg.format-version": "3"}
    with pytest.raises(UnsupportedTableError, match="in a sql catalog"):
        create(tmp_path / "new", **options, **third)
    assert not (tmp_path / "new").exists()
    hudi.Table.open(path, third).repair(force=True)
    held, versions = by_path(path), numbered(path)
    with pytest.raises(UnsupportedTableError, match="in a sql catalog"):
        hudi.Table.open(path, options).repair()
    assert (by_path(path), numbered(path)) == (held, versions)
    hudi.Table.open(path).upsert(typed([1], 2))
