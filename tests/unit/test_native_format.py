"""The native format through its host, on a table in a folder."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import cast

import pytest

import native_format
from hudi_core.config.table import TableConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.model import actions
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.spi import FormatCommit, Publication, hookimpl
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from native_format import NativeTableFormat

FILE = "6d0f2d4c-0000-0000-0000-000000000000-0_0-1-0_{time}.parquet"


def time(n: int) -> InstantTime:
    return InstantTime(f"202601010000{n:05d}")


@pytest.fixture
def host() -> FormatHost:
    return FormatHost.load(FormatRegistry(), "native")


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    config = TableConfig(name="t", record_key_fields=("id",), partition_fields=("p",))
    storage = PosixStorage(str(tmp_path), fsync=False)
    return TableMetaClient(BasePath(str(tmp_path)), storage, config, StorageOptions())


def begin(client: TableMetaClient, n: int, action: Action = Action.COMMIT) -> Instant:
    instant = Instant(time(n), action, State.REQUESTED)
    return client.active.to_inflight(client.active.create_requested(instant))


def finish(client: TableMetaClient, instant: Instant, n: int) -> Instant:
    kind = ReplaceCommitMetadata if instant.action is Action.CLUSTERING else CommitMetadata
    return client.active.complete(instant, time(n), encode(kind()))


def test_receipts_are_completion_times(host: FormatHost, client: TableMetaClient) -> None:
    done = Instant(time(10), Action.COMMIT, State.COMPLETED, time(12))
    receipt = FormatCommit(time(12))
    assert host.complete_write(client, CommitMetadata(), done) == receipt
    assert host.complete_clustering(client, ReplaceCommitMetadata(), done) == receipt
    assert host.complete_schema_change(client, CommitMetadata(), done) == receipt
    assert host.complete_clean(client, cast("actions.CleanMetadata", None), done) == receipt
    assert host.complete_rollback(client, cast("actions.RollbackMetadata", None), done) == receipt
    assert host.complete_savepoint(client, cast("actions.SavepointMetadata", None), done) == receipt
    assert host.complete_delete_savepoint(client, done) == receipt
    assert host.complete_restore(client, cast("actions.RestoreMetadata", None), done) == receipt


def test_hooks_before_an_action_leave_the_table_alone(
    host: FormatHost, client: TableMetaClient, tmp_path: Path
) -> None:
    done = finish(client, begin(client, 10), 12)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    host.before_clean(client, cast("actions.CleanerPlan", None), done)
    host.before_rollback(client, done)
    host.before_restore(client, actions.RestorePlan(), done)
    host.archive_instants(client, [done])
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_the_state_found_is_the_last_completion(host: FormatHost, client: TableMetaClient) -> None:
    assert host.create(client) == FormatCommit(EARLIEST)
    finish(client, begin(client, 10), 40)
    finish(client, begin(client, 20), 30)
    begin(client, 50)
    assert host.open(client) == FormatCommit(time(40))


def test_an_instant_is_published_when_the_timeline_holds_it(
    host: FormatHost, client: TableMetaClient
) -> None:
    inflight = begin(client, 10)
    assert host.find_publication(client, inflight) is None
    assert host.find_publication(client, inflight.to(State.COMPLETED, time(12))) is None
    done = finish(client, inflight, 12)
    found = Publication(time(10), Action.COMMIT, time(12), time(12))
    assert host.find_publication(client, done) == found
    # whatever state the caller knows of
    assert host.find_publication(client, inflight) == found
    savepoint = Instant(time(10), Action.SAVEPOINT, State.COMPLETED, time(13))
    assert host.find_publication(client, savepoint) is None


def test_a_clustering_is_found_as_what_it_became(host: FormatHost, client: TableMetaClient) -> None:
    clustering = begin(client, 10, Action.CLUSTERING)
    finish(client, clustering, 12)
    found = host.find_publication(client, clustering)
    assert found is not None
    assert found.action is Action.REPLACECOMMIT


def test_an_archived_write_is_published(host: FormatHost, client: TableMetaClient) -> None:
    finish(client, begin(client, 50), 51)
    archived = Instant(time(10), Action.COMMIT, State.COMPLETED, time(12))
    found = host.find_publication(client, archived)
    assert found == Publication(time(10), Action.COMMIT, time(12), time(12))
    rollback = Instant(time(10), Action.ROLLBACK, State.COMPLETED, time(12))
    assert host.find_publication(client, rollback) is None


def test_the_timeline_is_hudis_own(host: FormatHost, client: TableMetaClient) -> None:
    finish(client, begin(client, 10), 12)
    begin(client, 20)
    timeline = host.get_timeline_factory().active_timeline(client)
    assert timeline == client.timeline()


def test_files_are_listed(host: FormatHost, client: TableMetaClient, tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / FILE.format(time=time(10))).write_bytes(b"x")
    lister = host.get_metadata_factory().create(client)
    [partition] = lister.list_partitions()
    assert partition == "p=1"
    [status] = lister.list_files([partition])[partition]
    assert (status.name, status.size) == (FILE.format(time=time(10)), 1)


def test_hooks_get_the_slices_that_readers_see(client: TableMetaClient, tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    seen: list[list[str]] = []

    class Looking(NativeTableFormat):
        @hookimpl
        def complete_write(self, view_manager: object, instant: Instant) -> FormatCommit:  # type: ignore[override]
            views = view_manager.view()  # type: ignore[attr-defined]
            seen.append([str(one.base_instant) for one in views.latest_slices()])
            return FormatCommit("1")

    (tmp_path / "p=1" / FILE.format(time=time(10))).write_bytes(b"x")
    (tmp_path / "p=1" / FILE.format(time=time(20))).write_bytes(b"x")
    done = finish(client, begin(client, 10), 12)
    begin(client, 20)
    host = FormatHost(Looking(), name="looking")
    host.complete_write(client, CommitMetadata(), done)
    assert seen == [[time(10)]]


def test_it_imports_nothing_of_the_core_but_the_spi() -> None:
    [folder] = native_format.__path__
    modules = set()
    for file in Path(folder).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module)
            elif isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
    ours = {name for name in modules if name and name.startswith("hudi_core")}
    assert ours == {"hudi_core.spi", "hudi_core.spi.files"}
