"""A metadata table that is rebuilt: its indexes, and what others do before, meanwhile and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, HudiError, UnsupportedTableError
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.actions import IndexPartitionInfo, IndexPlan
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.mending.differences import Source
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import update_properties
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from tests.formats.dying_writers import death_in
from tests.formats.service_tables import agree, batch, damage_file_list, sound, two_writes
from tests.operators import operator

INDEX = "secondary_index_ts"
BUILD = "hudi_core.metadata.maintenance.lifecycle.PartitionBuilder.build"
OPTIONS = {"hoodie.metadata.global.record.level.index.enable": "true"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table with a secondary index, whose list of files is damaged."""
    where = tmp_path / "t"
    two_writes(where, **OPTIONS)
    operator(where).index(INDEX, "ts")
    damage_file_list(where)
    return where


def partitions(path: Path) -> set[str]:
    return set(hudi.Table.open(path).config.metadata_partitions)


@pytest.mark.parametrize(
    "step",
    [
        "hudi_core.metadata.maintenance.lifecycle.update_properties",
        "hudi_core.services.mending.repair._recovered",
    ],
)
def test_a_repair_that_died_forgets_none(path: Path, step: str) -> None:
    before = partitions(path)
    with death_in(step):
        hudi.Table.open(path).repair()
    done = hudi.Table.open(path).repair()
    assert done.left == ()
    assert partitions(path) == before
    assert INDEX in before
    hudi.Table.open(path).upsert(batch(3, "a"))
    sound(path)


@pytest.mark.parametrize("by", ["write", "repair", "create"])
def test_a_table_is_read_while_a_dead_repair_is_not_done_again(path: Path, by: str) -> None:
    """By those as well who were not told of a repair: they list the folders."""
    before = partitions(path)
    rows = hudi.Table.open(path, {"hoodie.metadata.enable": "false"}).to_arrow().num_rows
    with death_in(BUILD):
        hudi.Table.open(path).repair()
    assert hudi.Table.open(path).to_arrow().num_rows == rows
    agree(path)
    (due,) = hudi.Table.open(path).validate().differences
    assert (due.source, due.is_pending) == (Source.METADATA_TABLE, True)
    match by:
        case "write":
            hudi.Table.open(path).upsert(batch(3, "a"))
        case "repair":
            assert hudi.Table.open(path).repair().left == ()
        case "create":
            operator(path).create()
    agree(path)
    assert (
        set(hudi.Table.open(path).config.raw["hoodie.table.metadata.partitions"].split(","))
        == before
    )
    assert not hudi.Table.open(path).config.raw.get("hoodie.table.metadata.partitions.inflight")
    assert hudi.Table.open(path).validate().is_valid


def test_a_dry_run_after_a_dead_repair_is_charged_as_one_without_metadata_table(path: Path) -> None:
    with death_in(BUILD):
        hudi.Table.open(path).repair()
    assert hudi.Table.open(path).plan("upsert", batch(3, "a")).requests.writes


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"indexDefinitions": 1}'])
def test_an_index_without_its_column_is_left_out_and_told(path: Path, text: bytes) -> None:
    before = partitions(path)
    (path / ".hoodie/.index_defs/index.json").write_bytes(text)
    done = hudi.Table.open(path).repair()
    (lost,) = done.left
    assert (lost.source, lost.subject) == (Source.METADATA_TABLE, INDEX)
    assert partitions(path) == before - {INDEX}
    hudi.Table.open(path).upsert(batch(3, "a"))
    agree(path)
    operator(path).index(INDEX, "ts")
    assert hudi.Table.open(path).repair().left == ()


def test_what_the_error_about_damaged_definitions_advises_helps(path: Path) -> None:
    (path / ".hoodie/.index_defs/index.json").write_bytes(b"{")
    with pytest.raises(CorruptMetadataError, match="metadata create"):
        hudi.Table.open(path).upsert(batch(3, "a"))
    kept = operator(path).delete(backup=True)
    assert (path / str(kept) / "index.json").read_bytes() == b"{"
    operator(path).create()
    hudi.Table.open(path).upsert(batch(3, "a"))
    agree(path)


WITHOUT = {"hoodie.metadata.enable": "false"}
PROPERTIES = ".hoodie/hoodie.properties"
EMPTY = "hudi_core.metadata.maintenance.lifecycle.write_new"
"""Where a repair dies that has deleted the old metadata table, and made nothing of the new one."""


def complete(path: Path) -> tuple[str, ...]:
    config = hudi.Table.open(path).config
    partitions = StoredPartitions.of(config)
    assert partitions.building == ()
    return tuple(sorted(partitions.complete))


def all_of(path: Path) -> tuple[str, ...]:
    names = complete(path)
    assert INDEX in names
    return names


def roll_back(path: Path) -> None:
    table = hudi.Table.open(path)
    table.rollback(table.timeline.completed_writes()[-1].requested_time)
    table.upsert(batch(2, "a", "y"))


def write_without(path: Path) -> None:
    hudi.Table.open(path, WITHOUT).upsert(batch(4, "c", "z"))
    assert StoredPartitions.of(hudi.Table.open(path).config).complete == ()


def write_by_index(path: Path) -> None:
    options = {"hoodie.index.type": "RECORD_INDEX"}
    table = hudi.Table.open(path)
    planned = table.plan("upsert", batch(4, "a", "z"), options=options)
    done = table.upsert(batch(4, "a", "z"), options=options)
    assert (planned.updated, planned.inserted) == (done.updated, done.inserted) == (1, 1)


DONE: list[Callable[[Path], object]] = [
    roll_back,
    write_without,
    write_by_index,
    lambda path: hudi.Table.open(path).delete(batch(4, "x")),
]


@pytest.mark.parametrize("died_in", [BUILD, EMPTY])
@pytest.mark.parametrize("act", DONE)
def test_dead_repairs_stop_nobody(path: Path, act: Callable[[Path], object], died_in: str) -> None:
    names = all_of(path)
    early = hudi.Table.open(path)
    with death_in(died_in):
        hudi.Table.open(path).repair()
    assert early.to_arrow().num_rows == 4
    act(path)
    agree(path)
    hudi.Table.open(path).upsert(batch(5, "a"))
    assert complete(path) == names
    agree(path)
    assert early.to_arrow().num_rows
    assert hudi.Table.open(path).validate().is_valid


def test_a_metadata_table_is_deleted_after_a_dead_repair(path: Path) -> None:
    with death_in(BUILD):
        hudi.Table.open(path).repair()
    operator(path).delete()
    assert complete(path) == ()
    operator(path).create()
    hudi.Table.open(path).upsert(batch(5, "a"))
    sound(path)


@pytest.mark.parametrize("died_in", ["PartitionBuilder.build", "_complete"])
@pytest.mark.parametrize("after", ["delete", "repair", "dead repair"])
def test_an_indexing_that_died_stops_nobody_either(path: Path, died_in: str, after: str) -> None:
    names = all_of(path)
    hudi.Table.open(path).repair()
    with death_in(f"hudi_core.metadata.maintenance.indexing.{died_in}"):
        operator(path).index("bloom_filters")
    is_built = died_in == "_complete"
    match after:
        case "delete":
            operator(path).delete()
            names = tuple(one for one in names if one not in (INDEX, RECORD_INDEX))
        case "repair":
            damage_file_list(path)
            assert hudi.Table.open(path).repair().left == ()
        case _:
            damage_file_list(path)
            with death_in(EMPTY):
                hudi.Table.open(path).repair()
    hudi.Table.open(path).upsert(batch(5, "a"))
    kept = ("bloom_filters",) if is_built and after != "delete" else ()
    assert complete(path) == tuple(sorted((*names, *kept)))
    assert not open_table(str(path), {}).client.timeline().pending()
    sound(path)


def foreign_indexing(path: Path) -> None:
    client = open_table(str(path), {}).client
    time = TimelineClock(client.active).next_time()
    plan = IndexPlan(index_partition_infos=(IndexPartitionInfo(1, "bloom_filters", None),))
    client.active.create_requested(Instant(time, Action.INDEXING, State.REQUESTED), encode(plan))
    building = {"hoodie.table.metadata.partitions.inflight": "bloom_filters"}
    update_properties(client.storage, building)


def unknown_partition(path: Path) -> None:
    storage = open_table(str(path), {}).client.storage
    names = ",".join((*complete(path), "of_tomorrow"))
    update_properties(storage, {"hoodie.table.metadata.partitions": names})


def function_index(path: Path) -> None:
    file = path / ".hoodie/.index_defs/index.json"
    changed = file.read_text().replace('"identity"', '"upper"')
    assert changed != file.read_text(), file.read_text()
    file.write_text(changed)


@pytest.mark.parametrize("other", [foreign_indexing, unknown_partition, function_index])
def test_what_belongs_to_others_is_refused_before_anything_goes(
    path: Path, other: Callable[[Path], None]
) -> None:
    other(path)
    before = {str(one): one.read_bytes() for one in (path / ".hoodie").rglob("*") if one.is_file()}
    with pytest.raises(UnsupportedTableError):
        hudi.Table.open(path).repair()
    after = {str(one): one.read_bytes() for one in (path / ".hoodie").rglob("*") if one.is_file()}
    assert {name for name in before | after if before.get(name) != after.get(name)} <= {
        name for name in before | after if ".locks/" in name
    }


@pytest.mark.parametrize("died_in", [None, EMPTY])
def test_a_record_index_by_partitions_is_known(tmp_path: Path, died_in: str | None) -> None:
    path = tmp_path / "t"
    two_writes(path, **{"hoodie.metadata.record.level.index.enable": "true"})
    definitions = path / ".hoodie/.index_defs/index.json"
    definitions.write_bytes(b"{")
    if died_in is not None:
        with death_in(died_in):
            hudi.Table.open(path).repair()
        hudi.Table.open(path).upsert(batch(3, "a"))
    assert hudi.Table.open(path).repair().left == ()
    client = open_table(str(path), {}).client
    assert read_definitions(client.storage, client.config).is_partitioned(RECORD_INDEX)
    options = {"hoodie.index.type": "RECORD_LEVEL_INDEX"}
    assert hudi.Table.open(path).upsert(batch(4, "a"), options=options).updated == 1
    agree(path)


def test_the_error_of_a_damaged_metadata_table_names_the_repair(path: Path) -> None:
    with pytest.raises(CorruptMetadataError, match="hudi table repair") as found:
        hudi.Table.open(path).to_arrow()
    assert isinstance(found.value, HudiError)
    assert hudi.Table.open(path).repair().left == ()
    agree(path)
