"""Secondary indexes of a metadata table that is rebuilt: none is forgotten without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError
from hudi_core.services.differences import Source
from tests.formats.dying_writers import death_in
from tests.formats.service_tables import agree, batch, damage_file_list, new_table, operator

INDEX = "secondary_index_ts"
OPTIONS = {"hoodie.metadata.global.record.level.index.enable": "true"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table with a secondary index, whose list of files is damaged."""
    where = tmp_path / "t"
    new_table(where, **OPTIONS)
    operator(where).index(INDEX, "ts")
    damage_file_list(where)
    return where


def partitions(path: Path) -> set[str]:
    return set(hudi.Table.open(str(path)).config.metadata_partitions)


@pytest.mark.parametrize(
    "step",
    ["hudi_core.metadata.lifecycle.update_properties", "hudi_core.services.repair._recovered"],
)
def test_a_repair_that_died_forgets_none(path: Path, step: str) -> None:
    before = partitions(path)
    with death_in(step):
        hudi.Table.open(str(path)).repair()
    done = hudi.Table.open(str(path)).repair()
    assert done.left == ()
    assert partitions(path) == before
    assert INDEX in before
    hudi.Table.open(str(path)).upsert(batch(3, "a"))
    agree(path)
    assert hudi.Table.open(str(path)).validate().is_valid


@pytest.mark.parametrize("by", ["write", "repair", "create"])
def test_a_table_is_read_while_a_dead_repair_is_not_done_again(path: Path, by: str) -> None:
    """By those as well who were not told of a repair: they list the folders."""
    before = partitions(path)
    rows = hudi.Table.open(str(path), {"hoodie.metadata.enable": "false"}).to_arrow().num_rows
    with death_in("hudi_core.metadata.build_plan.PartitionBuilder.build"):
        hudi.Table.open(str(path)).repair()
    assert hudi.Table.open(str(path)).to_arrow().num_rows == rows
    agree(path)
    (due,) = hudi.Table.open(str(path)).validate().differences
    assert (due.source, due.is_pending) == (Source.METADATA_TABLE, True)
    match by:
        case "write":
            hudi.Table.open(str(path)).upsert(batch(3, "a"))
        case "repair":
            assert hudi.Table.open(str(path)).repair().left == ()
        case "create":
            operator(path).create()
    agree(path)
    assert (
        set(hudi.Table.open(str(path)).config.raw["hoodie.table.metadata.partitions"].split(","))
        == before
    )
    assert not hudi.Table.open(str(path)).config.raw.get(
        "hoodie.table.metadata.partitions.inflight"
    )
    assert hudi.Table.open(str(path)).validate().is_valid


def test_a_dry_run_after_a_dead_repair_is_charged_as_one_without_metadata_table(path: Path) -> None:
    with death_in("hudi_core.metadata.build_plan.PartitionBuilder.build"):
        hudi.Table.open(str(path)).repair()
    assert hudi.Table.open(str(path)).plan("upsert", batch(3, "a")).requests.writes


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"indexDefinitions": 1}'])
def test_an_index_of_which_nothing_tells_the_column_is_left_out_and_told(
    path: Path, text: bytes
) -> None:
    before = partitions(path)
    (path / ".hoodie/.index_defs/index.json").write_bytes(text)
    done = hudi.Table.open(str(path)).repair()
    (lost,) = done.left
    assert (lost.source, lost.subject) == (Source.METADATA_TABLE, INDEX)
    assert partitions(path) == before - {INDEX}
    hudi.Table.open(str(path)).upsert(batch(3, "a"))
    agree(path)
    operator(path).index(INDEX, "ts")
    assert hudi.Table.open(str(path)).repair().left == ()


def test_what_the_error_about_damaged_definitions_advises_helps(path: Path) -> None:
    (path / ".hoodie/.index_defs/index.json").write_bytes(b"{")
    with pytest.raises(CorruptMetadataError, match="metadata create"):
        hudi.Table.open(str(path)).upsert(batch(3, "a"))
    kept = operator(path).delete(backup=True)
    assert (path / str(kept) / "index.json").read_bytes() == b"{"
    operator(path).create()
    hudi.Table.open(str(path)).upsert(batch(3, "a"))
    agree(path)
