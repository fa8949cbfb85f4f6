"""Compactions of merge-on-read tables that Hudi-Spark wrote: the rows stay, for every reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import hudi as hudi_rs
import pytest

import hudi_core as hudi
from hudi_core.errors import UnsupportedTableError
from hudi_core.model.files import FileGroupId
from hudi_core.model.instant import Action
from tests.foreign import Row
from tests.hudi_tables import LOGS_6, MERGE_ON_READ, OWN, OWN_LOGS, TRIPS
from tests.interop.test_merge_on_read import shared, unzip, values
from tests.operators import operator

KINDS: Final = tuple(one for one in (*MERGE_ON_READ, *OWN_LOGS) if one != LOGS_6)
_ANSWERS_OTHERWISE: Final = {"block_lacks_column", "v8_payload_partial_update"}
"""Where hudi-rs takes a stored value for a column that a block lacks, or refuses the payload."""


def by_judge(path: Path, *, is_optimized: bool = False) -> list[Row]:
    """Rows as hudi-rs finds them."""
    builder = hudi_rs.HudiTableBuilder.from_base_uri(str(path))
    if is_optimized:
        builder = builder.with_option("hoodie.read.use.read_optimized.mode", "true")
    return [row for batch in builder.build().read() for row in batch.to_pylist()]


def present_rows(found: list[Row]) -> list[str]:
    """Rows but for the names of their files, to compare."""
    return sorted(str(_without(row, "_hoodie_file_name")) for row in found)


def _without(row: Mapping[str, Any], name: str) -> Row:
    return {key: row[key] for key in sorted(row) if key != name}


def compact(path: Path, *, makes_metadata: bool) -> set[FileGroupId]:
    """Run what is scheduled, and what came since; return the file groups that were merged.

    A table without a metadata table gets one, or not.
    """
    wanted = makes_metadata or (path / ".hoodie/metadata").exists()
    table = hudi.Table.open(path, {"hoodie.metadata.enable": str(wanted)})
    done = [*table.run_compactions(), table.compact()]
    for one in done:
        assert len({slice_.group for slice_ in one.slices}) == len(one.slices)
    return {slice_.group for one in done for slice_ in one.slices}


def check(path: Path, name: str, *, makes_metadata: bool = True) -> None:
    """Compact a table and compare what readers see of it."""
    table = hudi.Table.open(path)
    config, before = table.config, present_rows(table.to_arrow().to_pylist())
    is_judged = name not in _ANSWERS_OTHERWISE
    if is_judged:
        assert present_rows(by_judge(path)) == before
    writes = table.timeline.completed_writes()
    states = {one: present_rows(table.to_arrow(as_of=one).to_pylist()) for one in writes}
    merged = {one.group for one in table.file_slices() if one.log_files}
    assert compact(path, makes_metadata=makes_metadata) == merged
    table = hudi.Table.open(path)
    assert not any(one.log_files for one in table.file_slices())
    assert present_rows(table.to_arrow().to_pylist()) == before
    optimized = hudi.read(None, str(path), {"hoodie.datasource.query.type": "read_optimized"})
    assert present_rows(optimized.to_pylist()) == before
    if is_judged:
        assert present_rows(by_judge(path)) == before
        assert present_rows(by_judge(path, is_optimized=True)) == before
    assert {one: present_rows(table.to_arrow(as_of=one).to_pylist()) for one in writes} == states
    compactions = [one for one in table.timeline.completed_writes() if one not in writes]
    assert {one.action for one in compactions} <= {Action.COMMIT}
    assert table.validate().is_valid
    if config.stored_meta_columns and writes:
        last = max(one.effective_completion_time for one in writes)
        assert table.incremental(last).num_rows == 0


@pytest.mark.parametrize("makes_metadata", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_tables_of_hudi_spark(name: str, tmp_path: Path, makes_metadata: bool) -> None:
    path = OWN.unpack(name, tmp_path / name)
    if name == TRIPS:
        # hudi-rs reads no metadata table whose older records lack a field that newer ones have
        operator(str(path), {}).delete()
    check(path, name, makes_metadata=makes_metadata)
    expected = OWN.expected(name)
    table = hudi.Table.open(path)
    assert values(table.to_arrow(), expected["columns"]) == expected["values"]


def test_tables_of_another_judge(tmp_path: Path) -> None:
    for folder in ("mor", "mor_handmade"):
        for archive in shared(folder):
            path = unzip(archive, tmp_path / folder / archive.stem)
            table = hudi.Table.open(path)
            if table.config.version < 8:
                with pytest.raises(UnsupportedTableError, match="table version 6"):
                    table.compact()
                before = present_rows(table.to_arrow().to_pylist())
                table.upgrade(8, options={"hoodie.table.timeline.local.zone": "UTC"})
                assert present_rows(table.to_arrow().to_pylist()) == before
                again = table.to_arrow().select(table.schema.names)
                assert table.upsert(again).updated == again.num_rows
            check(path, archive.stem)


def test_log_rows_on_the_disk(tmp_path: Path) -> None:
    for name in KINDS:
        path = OWN.unpack(name, tmp_path / name)
        table = hudi.Table.open(path, {"hoodie.memory.merge.max.size": "1"})
        before = present_rows(table.to_arrow().to_pylist())
        table.compact()
        assert present_rows(hudi.Table.open(path).to_arrow().to_pylist()) == before


@pytest.mark.parametrize("name", KINDS)
def test_logs_of_hudi_spark_become_one(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / name)
    table = hudi.Table.open(path, {"hoodie.metadata.enable": "false"})
    before, writes = present_rows(table.to_arrow().to_pylist()), table.timeline.completed_writes()
    states = {one: present_rows(table.to_arrow(as_of=one).to_pylist()) for one in writes}
    done = table.compact(
        log_compaction=True, options={"hoodie.log.compaction.blocks.threshold": "1"}
    )
    assert all(one.base_file is not None for one in done.slices)
    assert present_rows(hudi.Table.open(path).to_arrow().to_pylist()) == before
    if name not in _ANSWERS_OTHERWISE:
        assert present_rows(by_judge(path)) == before
    table = hudi.Table.open(path, {"hoodie.metadata.enable": "false"})
    assert {one: present_rows(table.to_arrow(as_of=one).to_pylist()) for one in writes} == states
    table.run_compactions()
    table.compact()
    assert present_rows(hudi.Table.open(path).to_arrow().to_pylist()) == before
