"""Formats that answer nothing where there are rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.errors import PluginContractError
from tests.formats.two_steps import FAST, SCHEMA, batch
from tests.formats.wrong_format import FAULTS
from tests.formats.wrong_plugins.wrong_tables import KEYS, WRONG, create, reads, writes

# --- nothing is no answer where there are rows ----------------------------------------------------


def emptied(right: Callable[[], Any]) -> Any:
    found = right()
    return dict.fromkeys(found, ()) if isinstance(found, dict) else []


@pytest.mark.parametrize("asked", ["list_partitions", "list_files"])
@pytest.mark.parametrize("metadata_table", ["true", "false"])
def test_rows_do_not_disappear(asked: str, metadata_table: str, tmp_path: Path) -> None:
    table = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        options={**WRONG, **KEYS, "hoodie.metadata.enable": metadata_table},
    )
    table.insert(batch(1, "a", "x"))
    table.insert(batch(1, "b"))
    FAULTS[asked] = emptied
    with pytest.raises(PluginContractError, match=rf"{asked} names no file .*\.parquet has rows"):
        reads(table)


def test_a_row_is_not_put_in_twice(table: hudi.Table) -> None:
    FAULTS["list_files"] = emptied
    with pytest.raises(PluginContractError, match=r"list_files names no file .* 'rome'"):
        writes(table)
    FAULTS.clear()
    assert reads(table) == {"a": 1, "b": 1, "x": 1}
    writes(table)
    assert reads(table) == {"a": 2, "b": 1, "x": 1}


def test_nothing_is_an_answer_where_there_are_no_rows(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    assert reads(table) == {}  # no partition
    table.insert(batch(1, "a"))
    table.insert(batch(1, "x"))  # a partition that comes
    table.delete(batch(2, "x"))  # one whose rows are gone, in a file without rows
    assert reads(table) == {"a": 1}
    table.upsert(batch(3, "x"))
    table.delete_partitions([{"city": "rome"}])
    assert reads(table) == {"x": 3}
    table.insert(batch(4, "a"))
    assert reads(table) == {"x": 3, "a": 4}


def test_a_writer_at_work_is_no_mistake_of_the_format(table: hudi.Table) -> None:
    """The partition is emptied after the timeline was read, and before the files are listed."""

    def after_another(right: Callable[[], Any]) -> Any:
        FAULTS.clear()
        other = hudi.Table.open(table.path, FAST)
        other.delete_partitions([{"city": "oslo"}])
        return right()

    FAULTS["list_files"] = after_another
    assert reads(table) == {"a": 1, "b": 1}


def test_an_answer_that_is_older_than_the_timeline_is_no_mistake(table: hudi.Table) -> None:
    def older(right: Callable[[], Any]) -> Any:
        FAULTS.clear()
        return emptied(right)

    FAULTS["list_files"] = older
    assert reads(table) == {}  # as of before the write; as it was
