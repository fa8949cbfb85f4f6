"""What the two steps of a commit leave in a Delta table, and writes that take only the first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import delta_format.plugin
from hudi_core.errors import HudiError, StorageError
from hudi_core.model.instant import Instant
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable


def opened(path: Path) -> OpenTable:
    return open_table(str(path), {})


def last_write(path: Path) -> Instant:
    """The last write of the Hudi timeline, whatever the log says."""
    return opened(path).client.timeline().completed_writes()[-1]


def cut_short(monkeypatch: pytest.MonkeyPatch, write: Callable[[], Any]) -> None:
    """Do a write whose writer dies between the two steps."""

    def dies(*_: object) -> None:
        raise StorageError("The store is gone", "Wait for it.")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.plugin, "record", dies)
        with pytest.raises(HudiError):
            write()


def publish(path: Path, instant: Instant) -> Any:
    """Call the hook for a write as recovery does, without statuses."""
    found = opened(path)
    metadata = found.client.read_commit(instant)
    if metadata.operation_type == "ALTER_SCHEMA":
        return found.host.complete_schema_change(found.client, metadata, instant)
    return found.host.complete_write(found.client, metadata, instant)


def version(path: Path) -> int:
    return int(DeltaTable(str(path)).version())


def actions_of(path: Path, number: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{number:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
