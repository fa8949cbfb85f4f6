"""What a format holds of an open table is given back once, by whoever ends the table."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hudi_conformance.formats.trace import TRACE, install

import hudi_core as hudi
from hudi_core.errors import PluginHookError, PluginLoadError, TableClosedError
from hudi_core.model.client import MetaClientView
from hudi_core.model.protocols import LockProvider
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.spi import (
    FileIndex,
    FileStatus,
    FileSystemViewManager,
    FormatCommit,
    InProcessLock,
    PartitionPath,
    hookimpl,
)
from native_format import NativeTableFormat
from tests.tables import new_table

CLIENT = cast("MetaClientView", object())
EVENTS: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect() -> Iterator[None]:
    """Collecting looks at what these tests made, and not at all that there was before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    gc.collect()
    EVENTS.clear()
    yield
    gc.collect()
    EVENTS.clear()


class Holding(NativeTableFormat):
    """Holds something for each open table."""

    def __init__(self) -> None:
        EVENTS.append("opened")

    def close(self) -> None:
        EVENTS.append("closed")

    def get_lock_provider(self, **_: Any) -> LockProvider:
        return InProcessLock("held")


class Failing(NativeTableFormat):
    def close(self) -> None:
        raise OSError("the connection is lost")


SHARED = Holding()


def host_of(plugin: object) -> FormatHost:
    return FormatHost(plugin, name="test")


def test_a_host_is_closed_once() -> None:
    host = host_of(Holding())
    host.close()
    assert EVENTS[-2:] == ["opened", "closed"]
    host.close()
    del host
    gc.collect()
    assert EVENTS.count("closed") == 1


def test_a_host_that_nobody_holds_is_closed() -> None:
    host = host_of(Holding())
    assert EVENTS[-1] == "opened"
    del host
    assert EVENTS[-1] == "closed"


def test_a_format_is_not_closed_while_its_lock_is_held() -> None:
    lock = host_of(Holding()).get_lock_provider(CLIENT, {})
    assert lock is not None
    assert lock.try_lock(1)
    lock.unlock()
    assert EVENTS[-1] == "opened"
    del lock
    assert EVENTS[-1] == "closed"


@pytest.mark.parametrize("plugin", [NativeTableFormat, Holding])
def test_a_closed_host_asks_nothing(plugin: type) -> None:
    host = host_of(plugin())
    host.close()
    with pytest.raises(TableClosedError, match="Open it again"):
        host.get_timeline_factory()


@pytest.mark.parametrize("is_asked", [True, False])
def test_observers_see_the_closing(is_asked: bool) -> None:
    class Watching:
        @hookimpl(wrapper=True)
        def close(self) -> Iterator[None]:
            EVENTS.append("before")
            yield
            EVENTS.append("after")

    host = FormatHost(Holding(), {"watching": Watching()}, name="test")
    if is_asked:
        host.close()
    del host
    assert EVENTS[-3:] == ["before", "closed", "after"]


def test_a_format_that_keeps_its_views_is_closed() -> None:
    kept: list[FileSystemViewManager] = []

    class Keeping(Holding):
        def open(  # type: ignore[override]
            self, view_manager: FileSystemViewManager, **_: Any
        ) -> FormatCommit:
            self.views = view_manager
            kept.append(view_manager)
            return FormatCommit("1")

    host = host_of(Keeping())
    host.open(CLIENT)
    assert EVENTS[-1] == "opened"
    del host
    gc.collect()
    assert EVENTS[-1] == "closed"
    with pytest.raises(TableClosedError):
        kept[0].view()


def test_what_a_closed_format_returned_asks_nothing() -> None:
    asked: list[str] = []

    class Lists(FileIndex):
        def list_partitions(self) -> Sequence[PartitionPath]:
            asked.append("partitions")
            return [PartitionPath("")]

        def list_files(
            self, partitions: Sequence[PartitionPath]
        ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
            asked.append("files")
            return dict.fromkeys(partitions, ())

    class Factory:
        def create(self, meta_client: MetaClientView) -> FileIndex:
            asked.append("lister")
            return Lists()

    class Listing(Holding):
        def get_metadata_factory(self) -> Any:
            return Factory()

    host = host_of(Listing())
    factory, lock = host.get_metadata_factory(), host.get_lock_provider(CLIENT, {})
    lister = factory.create(CLIENT)
    assert lister.list_partitions() == (PartitionPath(""),)
    assert lock is not None
    assert lock.try_lock(1)
    asked.clear()
    host.close()
    for use in (
        lister.list_partitions,
        lambda: lister.list_files([PartitionPath("")]),
        lambda: factory.create(CLIENT),
        lambda: lock.try_lock(0),
    ):
        with pytest.raises(TableClosedError):
            use()
    assert asked == []
    lock.unlock()  # a lock that is held is given back all the same
    other = InProcessLock("held")
    assert other.try_lock(0)
    other.unlock()


@pytest.mark.parametrize(
    "use",
    [
        lambda table: table.alter(add_columns=pa.schema([("v", pa.int64())])),
        lambda table: table.archive(),
        lambda table: table.clean(),
        lambda table: table.convert("native"),
        lambda table: table.count(),
        lambda table: table.drop(),
        lambda table: table.insert(pa.table({"id": ["a"]})),
        # options of a call open the table for it
        lambda table: table.insert(
            pa.table({"id": ["a"]}), options={"hoodie.clean.automatic": "false"}
        ),
        lambda table: table.repair(),
        lambda table: table.repair_metadata(),
        lambda table: table.savepoint(),
        lambda table: table.upgrade(9),
        lambda table: table.validate(),
    ],
)
def test_a_closed_table_is_not_opened_again(tmp_path: Path, use: Any) -> None:
    path = str(tmp_path / "t")
    schema = pa.schema([("id", pa.string())])
    with new_table(path, schema) as table:
        pass
    with pytest.raises(TableClosedError):
        use(table)
    with pytest.raises(TableClosedError):
        table.count()
    assert hudi.Table.open(path).count() == 0


def test_a_format_that_cannot_be_closed(caplog: pytest.LogCaptureFixture) -> None:
    host = host_of(Failing())
    with pytest.raises(PluginHookError, match=r"failed in close: OSError: the connection is lost"):
        host.close()
    host.close()
    with caplog.at_level(logging.WARNING):
        host_of(Failing())
    assert "the table format test could not be closed" in caplog.text


def test_every_table_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", {"holding": f"{__name__}:Holding", "shared": f"{__name__}:SHARED"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    schema = pa.schema([("id", pa.string())])
    path = str(tmp_path / "t")
    made = new_table(path, schema, format="holding")
    made.insert(pa.table({"id": ["a"]}))
    del made
    TRACE.calls.clear()  # the observer that is installed with it keeps what it saw
    gc.collect()
    assert EVENTS.count("opened") == EVENTS.count("closed")
    with hudi.Table.open(path) as one, hudi.Table.open(path) as other:
        assert one.count() == other.count() == 1
        assert EVENTS.count("opened") == EVENTS.count("closed") + 2
    assert EVENTS.count("opened") == EVENTS.count("closed")
    with pytest.raises(TableClosedError):
        one.count()
    with pytest.raises(PluginLoadError, match="is an object; name its class"):
        FormatRegistry().load("shared")
