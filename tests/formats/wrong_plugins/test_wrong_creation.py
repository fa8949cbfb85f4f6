"""Formats that refuse a table, or fail while it is created."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    NotATableError,
    PluginHookError,
    SchemaError,
    StorageError,
    UnsupportedTableError,
)
from hudi_core.plugin.host import FormatHost
from hudi_core.txn.creation import CREATION_PATH
from tests.formats.two_steps import SCHEMA, batch
from tests.formats.wrong_format import FAULTS
from tests.formats.wrong_plugins.wrong_tables import ERROR, KEYS, WRONG, create, fails

# --- creation -------------------------------------------------------------------------------------


def test_a_format_refuses_a_table_before_the_first_file(tmp_path: Path) -> None:
    FAULTS["check_creation"] = fails(UnsupportedTableError("t", "is on the moon", "Go there."))
    with pytest.raises(UnsupportedTableError, match="on the moon"):
        create(tmp_path / "t")
    with pytest.raises(UnsupportedTableError, match="on the moon"):
        hudi.write(batch(1, "a"), str(tmp_path / "t"), options={**WRONG, **KEYS})
    assert not (tmp_path / "t").exists()


def test_a_table_to_be_is_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    def look(self: FormatHost, client: Any) -> None:
        shown.append(
            (client.base_path, client.schema.arrow.names, client.format_options, client.config.name)
        )
        assert client.timeline().instants == ()

    monkeypatch.setattr(FormatHost, "check_creation", look)
    create(tmp_path / "t", pace="fast")
    assert shown == [(f"{tmp_path}/t", SCHEMA.names, {"pace": "fast"}, "wrong")]


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_creation_that_failed_is_made_good_by_the_next(at: str, tmp_path: Path) -> None:
    def fail(right: Callable[[], Any]) -> Any:
        if at == "after":
            right()
        raise ERROR

    FAULTS["create_table"] = fail
    with pytest.raises(PluginHookError, match=r"create: .*database is locked"):
        create(tmp_path / "t")
    FAULTS.clear()
    assert (tmp_path / "t" / CREATION_PATH).exists()
    with pytest.raises(NotATableError, match=r"whose creation was not finished\. Create it again"):
        hudi.Table.open(str(tmp_path / "t"))
    result = hudi.write(batch(1, "a"), str(tmp_path / "t"), options={**WRONG, **KEYS})
    assert result is not None
    assert result.inserted == 1
    assert not (tmp_path / "t" / CREATION_PATH).exists()
    assert hudi.Table.open(str(tmp_path / "t")).validate().is_valid


def test_a_refusal_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def refuse(right: Callable[[], Any]) -> Any:
        right()
        raise SchemaError("There is no such column", "Add it.")

    FAULTS["create_table"] = refuse
    with pytest.raises(SchemaError, match="no such column"):
        create(tmp_path / "t")
    assert [one for one in (tmp_path / "t").rglob("*") if one.is_file()] == []


def test_what_a_dead_creator_left_gives_way_to_another_table(tmp_path: Path) -> None:
    FAULTS["create_table"] = lambda right: (right(), fails(ERROR)(right))
    with pytest.raises(PluginHookError):
        create(tmp_path / "t")
    assert (tmp_path / "t/.hoodie/toy").exists()
    made = hudi.Table.create(str(tmp_path / "t"), pa.schema([("k", pa.int64())]), record_key="k")
    made.insert(pa.table({"k": [1]}))
    assert not (tmp_path / "t/.hoodie/toy").exists()
    assert made.format == "native"
    assert made.validate().is_valid


@pytest.mark.parametrize("mine", ["mine.parquet", "notes.txt", "sub/data.json", "x/.hoodie/a"])
def test_files_beside_what_a_dead_creator_left_are_not_deleted(mine: str, tmp_path: Path) -> None:
    FAULTS["create_table"] = fails(StorageError("It does not answer", "Wait."))
    with pytest.raises(StorageError):
        create(tmp_path / "t")
    file = tmp_path / "t" / mine
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"PAR1")
    FAULTS.clear()
    with pytest.raises(NotATableError, match=rf"holds other files \({mine}\)"):
        create(tmp_path / "t")
    FAULTS["create_table"] = fails(SchemaError("There is no such column", "Add it."))
    with pytest.raises((NotATableError, SchemaError)):
        create(tmp_path / "t")
    assert file.exists()
    FAULTS.clear()
    file.unlink()
    create(tmp_path / "t")


def test_files_that_come_while_a_creation_is_refused_are_not_deleted(tmp_path: Path) -> None:
    def refuse(right: Callable[[], Any]) -> Any:
        right()
        (tmp_path / "t/notes.txt").write_text("mine")
        raise SchemaError("There is no such column", "Add it.")

    FAULTS["create_table"] = refuse
    with pytest.raises(SchemaError, match="no such column"):
        create(tmp_path / "t")
    assert [one.name for one in (tmp_path / "t").rglob("*") if one.is_file()] == ["notes.txt"]
