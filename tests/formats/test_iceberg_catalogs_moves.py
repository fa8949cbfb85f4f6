"""A table that goes from its folder into a catalog leaves nothing behind that readers by its path
would take for its present state."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import StaticTable
from pyiceberg.table.update import SetPropertiesUpdate

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, HudiError, UnsupportedTableError
from hudi_core.services.opening import open_table
from iceberg_format.catalog import FolderCatalog
from iceberg_format.commit import requirements
from iceberg_format.external import FROM_FOLDER_KEY
from iceberg_format.table import IcebergTable
from tests.formats.dying_writers import Died, MortalStorage
from tests.formats.iceberg_tables import Iceberg, bag, create, opened, rows, without_meta
from tests.formats.named_catalogs import PREFIX

NAME = "lake.trips"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "identifier": NAME}
    return {"hoodie.fs.fsync": "false", **{f"{PREFIX}{key}": one for key, one in given.items()}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "t"
    table = create(where)
    table.insert(rows(range(4)))
    table.upsert(rows([1], 1))
    return where


def by_path(path: Path) -> Counter[str] | None:
    """The rows that a reader sees which knows no catalog, or nothing."""
    try:
        table = StaticTable.from_metadata(str(path))
    except FileNotFoundError:
        return None
    return bag(table.scan().to_arrow())


def by_catalog(options: dict[str, str]) -> Counter[str]:
    theirs = SqlCatalog("hudi", uri=options[f"{PREFIX}uri"])
    try:
        return bag(theirs.load_table(NAME).scan().to_arrow())
    finally:
        theirs.engine.dispose()


def is_in_catalog(options: dict[str, str]) -> bool:
    theirs = SqlCatalog("hudi", uri=options[f"{PREFIX}uri"])
    try:
        return theirs.table_exists(options[f"{PREFIX}identifier"])
    finally:
        theirs.engine.dispose()


def numbered(path: Path) -> list[str]:
    return [one.name for one in (path / "metadata").iterdir() if one.name.startswith("v")]


def test_a_catalog_that_does_not_have_the_table_says_so(
    path: Path, options: dict[str, str]
) -> None:
    with pytest.raises(CorruptMetadataError, match=r"`hudi table repair .* into that catalog"):
        hudi.Table.open(str(path), options).to_arrow()
    with pytest.raises(CorruptMetadataError, match="does not have it"):
        hudi.Table.open(str(path), options).upsert(rows([1], 2))
    assert by_path(path) == bag(hudi.Table.open(str(path)).to_arrow())


def test_a_table_moves_into_a_catalog_with_its_history(path: Path, options: dict[str, str]) -> None:
    before = Iceberg(path).table.metadata
    held = by_path(path)
    assert hudi.Table.open(str(path), options).repair().left == ()
    assert numbered(path) == []
    assert by_path(path) is None
    assert by_catalog(options) == held

    table = hudi.Table.open(str(path), options)
    table.upsert(rows([2], 2))
    theirs = SqlCatalog("hudi", uri=options[f"{PREFIX}uri"])
    after = theirs.load_table(NAME).metadata
    theirs.engine.dispose()
    assert after.table_uuid == before.table_uuid
    assert after.snapshots[:-1] == before.snapshots
    assert after.properties["hudi.catalog"] == f"sql hudi {NAME}"
    assert FROM_FOLDER_KEY not in after.properties
    assert by_catalog(options) == bag(table.to_arrow())
    with pytest.raises(CorruptMetadataError, match=r"catalog\.\*"):
        hudi.Table.open(str(path)).to_arrow()
    with pytest.raises(UnsupportedTableError, match="a catalog knows the version"):
        hudi.Table.open(str(path)).repair()


@pytest.mark.parametrize("is_done", [False, True])
def test_a_move_that_died_leaves_no_old_state_behind(
    tmp_path: Path, is_done: bool, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mortal = MortalStorage(monkeypatch, is_done=is_done)
    for number in range(1, 100):
        path = tmp_path / f"t{number}"
        given = {**options, f"{PREFIX}identifier": f"lake.trips{number}"}
        table = create(path, partition_by=None)
        table.insert(rows(range(2)))
        held = by_path(path)
        mortal.left = number
        with contextlib.suppress(Died):
            hudi.Table.open(str(path), given).repair()
        has_died, mortal.left = mortal.left <= 0, 0
        # whoever reads by the path sees the table as it is, or nothing
        assert by_path(path) in (held, None)
        if is_in_catalog(given):
            with pytest.raises(HudiError):
                hudi.Table.open(str(path)).upsert(rows([1], 1))
        table = hudi.Table.open(str(path), given)
        try:
            table.upsert(rows([1], 1))
        except CorruptMetadataError:  # the catalog does not have it yet
            if numbered(path) and Iceberg(path).table.properties.get("hudi.moved-to-catalog"):
                with pytest.raises(UnsupportedTableError, match=f"lake.trips{number}"):
                    hudi.Table.open(str(path)).upsert(rows([1], 1))
            assert table.repair().left == ()
            table = hudi.Table.open(str(path), given)
            table.upsert(rows([1], 1))
        assert by_path(path) is None
        assert numbered(path) == []
        with pytest.raises(HudiError):
            hudi.Table.open(str(path)).to_arrow()
        assert bag(without_meta(table.to_arrow())) == bag(rows([0])) + bag(rows([1], 1))
        if not has_died:
            break
    assert number > 6


def test_a_writer_that_slept_through_the_move_is_refused(
    path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = IcebergTable.open(opened(path).client).catalog
    state = asleep.load()
    assert state is not None

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "register_table", die)
        with pytest.raises(Died):
            IcebergTable.open(open_table(str(path), options).client).catalog.replace(state.metadata)
    with pytest.raises(UnsupportedTableError, match=rf"into a catalog \(sql hudi {NAME}\)"):
        hudi.Table.open(str(path)).to_arrow()
    update = SetPropertiesUpdate(updates={"k": "v"})
    with pytest.raises(CommitFailedException):
        asleep.commit(state, requirements(state.metadata), (update,))


def test_what_a_former_format_left_goes_too(path: Path, options: dict[str, str]) -> None:
    hudi.Table.open(str(path)).convert("native")
    hudi.Table.open(str(path)).upsert(rows([2], 2))
    assert numbered(path) != []
    hudi.Table.open(str(path), options).convert("iceberg")
    assert numbered(path) == []
    assert by_path(path) is None
    assert by_catalog(options) == bag(hudi.Table.open(str(path), options).to_arrow())


def test_a_table_is_not_put_into_a_second_catalog(path: Path, options: dict[str, str]) -> None:
    hudi.Table.open(str(path), options).repair()
    other = {**options, f"{PREFIX}identifier": "lake.others"}
    with pytest.raises(UnsupportedTableError, match=rf"in another catalog \(sql hudi {NAME}\)"):
        hudi.Table.open(str(path), other).repair()
    hudi.Table.open(str(path), options).upsert(rows([1], 2))
    theirs = SqlCatalog("hudi", uri=options[f"{PREFIX}uri"])
    assert theirs.list_tables("lake") == [("lake", "trips")]
    theirs.drop_table(NAME)  # by mistake
    theirs.engine.dispose()
    hudi.Table.open(str(path), options).repair()
    assert by_catalog(options) == bag(hudi.Table.open(str(path), options).to_arrow())


def test_the_folder_is_closed_once(path: Path) -> None:
    catalog = IcebergTable.open(opened(path).client).catalog
    assert isinstance(catalog, FolderCatalog)
    state = catalog.load()
    assert state is not None
    catalog.close(state.metadata, "here")
    with pytest.raises(UnsupportedTableError, match="here"):
        catalog.load()
    with pytest.raises(UnsupportedTableError, match="here"):
        hudi.Table.open(str(path)).repair(force=True)
    assert by_path(path) is not None
