"""Writes by engines that know of no storage paths, to tables that have one.

They read and write the table's own folder. Such an engine is this project, without the properties
that say where the data files lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CorruptMetadataError,
    DataFileError,
    ForeignMetadataError,
    MisplacedFileError,
)
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.storage.open import open_storage
from hudi_core.storage.properties_file import PROPERTIES_PATH, read_properties
from hudi_core.txn.table_lock import table_lock
from tests.federated_tables import OBJECT_STORE, Store, new_table, rows, seen, take_back

Write = Callable[[hudi.Table], object]
INSERTED = rows(("new", "a", 5), ("newer", "b", 5))
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
    made = new_table(Store("disk", tmp_path))
    made.table.insert(rows(("k0", "a", 1), ("k1", "b", 1), ("k2", "c", 1)))
    made.table.upsert(rows(("k0", "a", 2), ("k3", "b", 2)))
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
def test_what_others_wrote_is_named_by_reads_writes_and_validation(
    base: str, operation: str
) -> None:
    with another_engine(base) as theirs:
        WRITES[operation](theirs)
    last = hudi.Table.open(base).timeline.completed_writes()[-1].requested_time
    with pytest.raises(MisplacedFileError) as caught:
        seen(base)
    assert caught.value.instant == last
    assert (Path(base) / caught.value.path).exists()
    assert f"hudi rollback {base} {last}" in caught.value.hint
    assert f"hudi table repair --metadata {base}" in caught.value.hint
    with pytest.raises(MisplacedFileError):
        hudi.Table.open(base).upsert(rows(("new", "a", 6), ("newer", "b", 6)))
    with pytest.raises(MisplacedFileError):
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
    table = open_table(base, {})
    config = WriteConfig.from_options({})
    MetadataOperator(table, table_lock(table, config), config).delete()


def test_a_metadata_table_that_others_dropped_is_not_made_without_their_files(base: str) -> None:
    with another_engine(base) as theirs:
        drop_metadata_table(base)
        # it sees no row, so that both are new to it
        theirs.upsert(rows(("k0", "a", 3), ("new", "b", 3)), options=NO_METADATA)
    with pytest.raises(CorruptMetadataError) as missing:
        seen(base)
    assert f"`hudi table repair --metadata {base}`" in missing.value.hint
    # it would take the table for one without these rows
    with pytest.raises(MisplacedFileError):
        hudi.Table.open(base).insert(rows(("more", "c", 4)))
    with pytest.raises(MisplacedFileError):
        hudi.Table.open(base).repair_metadata()
    undo(base)
    assert seen(base) == BEFORE


def test_a_metadata_table_that_others_dropped_is_made_again(base: str) -> None:
    with another_engine(base):
        drop_metadata_table(base)
    planned = hudi.Table.open(base).repair_metadata(dry_run=True)
    with pytest.raises(CorruptMetadataError, match="is missing or is being rebuilt"):
        seen(base)
    done = hudi.Table.open(base).repair_metadata()
    assert done.partitions == planned.partitions
    assert "files" in done.partitions
    assert seen(base) == BEFORE
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
        with pytest.raises(ForeignMetadataError, match="another engine made it") as caught:
            call(hudi.Table.open(base))
        assert caught.value.hint.endswith("run `hudi table repair --metadata PATH`.")
    if writes:
        with pytest.raises(MisplacedFileError):
            hudi.Table.open(base).insert(rows(("more", "c", 4)))
    undo(base)
    assert seen(base) == BEFORE
    assert hudi.Table.open(base).count() == len(BEFORE)


def test_a_metadata_table_that_others_made_stays_when_files_move(tmp_path: Path) -> None:
    store = Store("disk", tmp_path)
    made = new_table(store, plain=True)
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
    with pytest.raises(DataFileError) as caught:
        seen(base)
    assert not isinstance(caught.value, MisplacedFileError)


def test_the_advice_about_damaged_definitions_of_indexes_helps(base: str) -> None:
    path = Path(base, ".hoodie/.index_defs/index.json")
    path.write_bytes(b"{")
    with pytest.raises(CorruptMetadataError, match="delete this file, then run") as caught:
        hudi.Table.open(base).insert(INSERTED)
    assert caught.value.path == str(path)
    path.unlink()
    hudi.Table.open(base).repair_metadata()
    hudi.Table.open(base).insert(INSERTED)
    assert seen(base) == [*BEFORE, ("new", 5), ("newer", 5)]
    assert hudi.Table.open(base).validate().is_valid
