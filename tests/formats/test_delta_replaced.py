"""Delta logs that cannot go on, and what their readers see while another takes their place."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

import hudi_core as hudi
from hudi_core.storage.posix import PosixStorage
from tests.formats.delta_tables import new_table, rows
from tests.formats.service_tables import READERS, bag

CITIES = pa.table({"id": ["a", "b", "c"], "city": ["rome", "rome", "oslo"], "n": [1, 2, 3]})

Watch = Callable[[Path], list[Path]]


def seen(path: Path) -> Counter[str] | None:
    """Return what deltalake sees; ``None`` where it says that it cannot read the table."""
    try:
        found = DeltaTable(str(path)).to_pyarrow_table()
    except (DeltaError, OSError):
        return None
    return bag(found, sorted(found.column_names))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Watch:
    """Return what begins to copy a table after each deletion of a file."""
    real = PosixStorage.delete

    def begin(path: Path) -> list[Path]:
        copies: list[Path] = []

        def delete(self: Any, name: str) -> None:
            real(self, name)
            copies.append(tmp_path / f"copy-{len(copies)}")
            shutil.copytree(path, copies[-1])

        monkeypatch.setattr(PosixStorage, "delete", delete)
        return copies

    return begin


def test_a_table_that_gets_partitions_is_replaced_in_one_version(
    tmp_path: Path, watch: Watch
) -> None:
    path = tmp_path / "t"
    owned = {"delta.deletedFileRetentionDuration": "interval 9 days"}
    write_deltalake(path, CITIES.slice(0, 2), configuration=owned)
    write_deltalake(path, CITIES.slice(2), mode="append")
    before = seen(path)
    copies = watch(path)
    hudi.Table.adopt(str(path), record_key="id", partition_by="city", format="delta")
    assert copies
    assert all(seen(one) == before for one in copies)
    table = DeltaTable(str(path))
    assert table.metadata().partition_columns == ["city"]
    assert owned.items() <= table.metadata().configuration.items()
    assert [one["version"] for one in table.history()] == [2, 1, 0]
    for read in READERS["delta"]:
        assert bag(read(path), CITIES.column_names) == bag(CITIES, CITIES.column_names)
    assert hudi.Table.open(str(path)).validate().is_valid


def test_a_damaged_log_shows_no_older_state_while_it_goes(tmp_path: Path, watch: Watch) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    for key in range(3):
        table.insert(rows(key))
    before = seen(path)
    newest = max((path / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:40])
    assert seen(path) is None
    copies = watch(path)
    assert hudi.Table.open(str(path)).repair().left == ()
    looks = [seen(one) for one in copies]
    assert looks.count(None) >= 4
    assert all(one in (None, before) for one in looks)
    assert seen(path) == before
