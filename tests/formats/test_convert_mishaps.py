"""Conversions that are refused, meet other writers, or die half-way."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.errors import (
    ConcurrentWriterError,
    HudiError,
    OptionConflictError,
    UnknownTableFormatError,
)
from tests.formats.dying_writers import Died, MortalStorage
from tests.formats.service_tables import FORMATS, agree, batch, new_table


def test_a_format_that_is_not_installed_is_named(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(UnknownTableFormatError, match="paimon"):
        table.convert("paimon")
    assert table.format == "native"


def test_a_column_that_the_format_lacks_is_named_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("at", pa.time64("us"))])
    table = hudi.Table.create(str(path), schema, record_key="id")
    table.insert(pa.table({"id": ["a"], "at": pa.array([1], pa.time64("us"))}))
    before = sorted(str(one) for one in path.rglob("*"))
    with pytest.raises(HudiError, match="at"):
        table.convert("delta")
    assert sorted(str(one) for one in path.rglob("*")) == before


def test_a_live_writer_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path / "t")

    def convert_meanwhile(*_: Any, **__: Any) -> Any:
        hudi.Table.open(table.path).convert("delta")

    monkeypatch.setattr("hudi_core.txn.transaction.Transaction.commit", convert_meanwhile)
    with pytest.raises(ConcurrentWriterError):
        table.upsert(batch(5, "a"))
    monkeypatch.undo()
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_who_opened_the_table_before_does_not_write_in_its_former_format(tmp_path: Path) -> None:
    path = tmp_path / "t"
    stale = new_table(path)
    hudi.Table.open(str(path)).convert("delta")
    with contextlib.suppress(HudiError):  # told to open it again
        stale.upsert(batch(7, "a"))
    hudi.Table.open(str(path)).upsert(batch(8, "b"))
    agree(path)


def test_a_format_among_the_options_is_no_contradiction_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "t"
    new_table(path)
    table = hudi.Table.open(str(path), {"hoodie.table.format": "native"})
    table.convert("delta")
    table.upsert(batch(3, "a"))
    with pytest.raises(OptionConflictError):
        hudi.Table.open(str(path), {"hoodie.table.format": "native"})


def test_the_format_it_has_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, "delta")
    done = table.convert("DELTA")
    assert (done.is_needed, done.receipt) == (False, None)
    assert DeltaTable(str(path)).version() == 2


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("to", FORMATS)
def test_a_conversion_that_died_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, is_done: bool
) -> None:
    path = tmp_path / "t"
    new_table(path)
    held = agree(path)
    storage = MortalStorage(monkeypatch, is_done=is_done)
    for calls in range(1, 100):
        copy = tmp_path / f"t{calls}"
        shutil.copytree(path, copy)
        storage.left = calls
        try:
            hudi.Table.open(str(copy)).convert(to)
        except Died:
            storage.left = 0
            # before the last step it is what it was, after it what it was to become
            assert agree(copy) == held
            hudi.Table.open(str(copy)).upsert(batch(6, "new"))
            more = agree(copy)
            hudi.Table.open(str(copy)).convert(to)
            assert hudi.Table.open(str(copy)).format == to
            assert agree(copy) == more
        else:
            break
    assert calls > (6 if to == "iceberg" else 3)
