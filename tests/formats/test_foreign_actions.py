"""Actions of engines that know nothing of a table's format."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.model.actions import InstantInfo, RestoreMetadata, SavepointMetadata
from hudi_core.model.capability import Capability
from hudi_core.model.instant import Action, Instant, State
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.services.opening import open_table
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from tests.formats.service_tables import FORMATS, agree, bag, batch, new_table

SAVED = encode(SavepointMetadata("somebody", 0, "", {}))


def restore_of(*times: str) -> bytes:
    """The body of a restore that took back these commits."""
    infos = tuple(InstantInfo(time, "commit") for time in times)
    return encode(RestoreMetadata(times[0], 1, times, restore_instant_info=infos))


def put(path: Path, action: Action, body: bytes, *, is_complete: bool = True) -> Instant:
    """Put an action on the Hudi timeline, and nowhere else, as Hudi does without the plugin."""
    client = open_table(str(path), {}).client
    clock = TimelineClock(client.active)
    requested = Instant(clock.next_time(), action, State.REQUESTED)
    client.active.create_requested(requested)
    inflight = client.active.to_inflight(requested)
    return client.active.complete(inflight, clock.next_time(), body) if is_complete else inflight


def restored(path: Path) -> Instant:
    """Take the last write back: its file goes, and its instant, and a restore tells of it."""
    table = open_table(str(path), {})
    last = table.client.timeline().completed_writes()[-1]
    for stat in table.client.read_commit(last).stats:
        (path / str(stat.path)).unlink()
    table.client.active.delete(last)
    for state in (State.INFLIGHT, State.REQUESTED):
        table.client.active.delete(Instant(last.requested_time, last.action, state))
    return put(path, Action.RESTORE, restore_of(last.requested_time))


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", request.param)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_restore_is_made_in_the_format_by_the_next_write(
    tmp_path: Path, table_format: str
) -> None:
    path = tmp_path / "t"
    off = {"hoodie.metadata.enable": "false"}
    table = new_table(path, table_format, **off)
    before = bag(table.to_arrow())
    table.upsert(batch(9, "a"))
    restore = restored(path)
    assert bag(hudi.Table.open(str(path)).to_arrow()) == before
    (wrong, *_) = hudi.Table.open(str(path)).validate().differences
    assert restore.requested_time in str(wrong)
    hudi.Table.open(str(path)).upsert(batch(5, "b"))
    rows = agree(path)
    assert any("5" in one for one in rows)
    assert not any("9" in one for one in rows)
    assert hudi.Table.open(str(path)).timeline.find(restore.requested_time) == restore
    assert hudi.Table.open(str(path)).validate().differences == ()


def test_a_savepoint_is_recorded_where_the_format_has_them(table: hudi.Table) -> None:
    path = Path(table.path)
    saved = put(path, Action.SAVEPOINT, SAVED)
    held = agree(path)
    if table.format == "iceberg":
        # of no commit of that time, so that no state could be tagged
        with pytest.raises(hudi.HudiError, match=saved.requested_time):
            table.upsert(batch(5, "b"))
        return
    table.upsert(batch(5, "b"))
    assert agree(path) != held
    assert [one.instant for one in table.savepoints] == [saved]


@pytest.mark.parametrize("action", [Action.RESTORE, Action.SAVEPOINT])
def test_what_died_before_it_said_anything_is_dropped(table: hudi.Table, action: Action) -> None:
    begun = put(Path(table.path), action, b"", is_complete=False)
    table.upsert(batch(5, "b"))
    assert table.timeline.find(begun.requested_time, action) is None
    agree(Path(table.path))


def test_a_clean_that_another_engine_has_begun_stops_no_write(table: hudi.Table) -> None:
    begun = put(Path(table.path), Action.CLEAN, b"", is_complete=False)
    table.upsert(batch(5, "b"), options={"hoodie.clean.automatic": "false"})
    assert table.timeline.find(begun.requested_time) is not None
    table.upsert(batch(6, "b"))  # whose clean drops a plan without content
    assert table.timeline.find(begun.requested_time) is None
    agree(Path(table.path))


def test_what_a_format_does_not_declare_it_gives_a_reason_for() -> None:
    """Services that no format lacks by accident."""
    wanted = {Capability.SAVEPOINT, Capability.RESTORE, Capability.CLUSTERING}
    for name in ("native", *FORMATS):
        host = FormatHost.load(FormatRegistry(), name)
        missing = wanted - set(host.capabilities)
        assert all(host.capabilities.reasons.get(one) for one in missing), name
