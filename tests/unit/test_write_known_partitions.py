"""Partitions that are named to be deleted: looked at alone, and refused when they hold no rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import UnknownPartitionError
from hudi_core.storage.posix import PosixStorage
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Give a table with fifty partitions."""
    table = new_table(tmp_path / "t", SCHEMA, {"hoodie.metadata.enable": "false"})
    names = [f"p{n:02}" for n in range(50)]
    table.bulk_insert(pa.table({"id": names, "part": names}, SCHEMA))
    return table


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the folders outside of the table's own that are listed, headed or searched."""
    found: list[str] = []

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def asked(self: PosixStorage, path: str = "", *given: Any, **named: Any) -> Any:
            if not path.startswith(".hoodie"):
                found.append(path)
            return real(self, path, *given, **named)

        return asked

    for name in ("head", "list", "list_folders"):
        monkeypatch.setattr(PosixStorage, name, watched(getattr(PosixStorage, name)))
    return found


def test_only_the_named_partitions_are_looked_at(table: hudi.Table, looked_at: list[str]) -> None:
    table.delete_partitions(["p07", "p08"])
    assert set(looked_at) == {"p07", "p08"}
    assert table.to_arrow().num_rows == 48


@pytest.mark.parametrize(
    "name", ["p50", "p07/", "../t/p07", "/etc", "", ".hoodie/timeline", "p07//x", "p\0"]
)
def test_what_names_no_partition_is_refused(name: str, table: hudi.Table) -> None:
    with pytest.raises(UnknownPartitionError, match=r"'p00', .* and 40 more") as refused:
        table.delete_partitions(["p07", name])
    assert refused.value.facts["partitions"] == (name,)
    assert table.to_arrow().num_rows == 50
    table.delete_partitions(["p07"])
    with pytest.raises(UnknownPartitionError, match="'p07'"):
        table.delete_partitions(["p07"])
