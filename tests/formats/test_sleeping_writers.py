"""Writers that sleep before step 2 while others take their writes back, and formats forget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.errors import CommitConflictError
from hudi_core.model.instant import Instant
from hudi_core.plugin.host import FormatHost
from tests.formats.two_steps import (
    FORMATS,
    SHARED,
    batch,
    blind,
    files_of,
    last_write,
    new_table,
    read_at_rest,
)

# the lock of the writer that sleeps has run out: another writer gets one
OTHERS = {**SHARED, "hoodie.write.lock.provider": "in_process"}
ONE_STATE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SHORT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **ONE_STATE}


@pytest.fixture(params=FORMATS)
def table(tmp_path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return new_table(tmp_path / "t", str(request.param))


def asleep(
    monkeypatch: pytest.MonkeyPatch, table: hudi.Table, meanwhile: Callable[[], object]
) -> Instant:
    """Upsert ``a``, by a writer that wakes up to a conflict; return the instant."""
    real, mine = FormatHost.complete_write, list[Instant]()

    def late(self: FormatHost, client: Any, metadata: Any, instant: Instant, *more: Any) -> Any:
        if not mine:
            mine.append(instant)
            meanwhile()
        return real(self, client, metadata, instant, *more)

    with monkeypatch.context() as patched:
        patched.setattr(FormatHost, "complete_write", late)
        with pytest.raises(CommitConflictError, match="no longer on the Hudi timeline"):
            table.upsert(batch(2, "a"))
    return mine[0]


def upserted(table: hudi.Table, ts: int, *keys: str) -> None:
    hudi.Table.open(table.path, OTHERS).upsert(batch(ts, *keys), options=ONE_STATE)


@pytest.mark.parametrize("forgets", ["nothing", "clean", "archive"])
def test_whoever_was_rolled_back_hears_of_it_whatever_the_watermark_covers(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, forgets: str
) -> None:
    def meanwhile() -> None:
        with blind(monkeypatch):
            upserted(table, 3, "a")
        for ts in range(4, 9):
            upserted(table, ts, "b", "x")
        if forgets != "nothing":
            hudi.Table.open(table.path, OTHERS).clean(options=ONE_STATE)
        if forgets == "archive":
            hudi.Table.open(table.path, OTHERS).archive(options=SHORT)

    mine = asleep(monkeypatch, table, meanwhile)
    assert read_at_rest(table) == {"a": 3, "b": 8, "x": 8}
    assert not files_of(table, mine)


def test_what_a_restore_took_out_is_not_published_again(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = last_write(table)

    def meanwhile() -> None:
        for beat in (Path(table.path) / ".hoodie" / ".heartbeat").iterdir():
            beat.unlink()
        upserted(table, 3, "b", "x")  # publishes the other one first
        hudi.Table.open(table.path, OTHERS).restore(first)

    mine = asleep(monkeypatch, table, meanwhile)
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1}
    assert not files_of(table, mine)
    table.upsert(batch(4, "a"))
    assert read_at_rest(table) == {"a": 4, "b": 1, "x": 1}
