"""Plugins of an older and of a later contract than this release has."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hudi_conformance.formats.trace import install

import hudi_core as hudi
from hudi_core import spi
from hudi_core.errors import PluginContractError, PluginContractWarning
from hudi_core.hookspecs import HOOKS, Hook
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.plugin import contract, members, versions
from hudi_core.plugin.host import FormatHost
from hudi_core.spi import (
    SPI_VERSION,
    Capability,
    FormatCapabilities,
    FormatCommit,
    Publication,
    hookimpl,
)
from hudi_core.spi import MetaClientView as View
from hudi_core.timeline.timeline import Timeline
from native_format import NativeTableFormat
from tests.formats.toy_format import ToyFormat
from tests.tables import new_table

CLIENT = cast("MetaClientView", object())
DONE = Instant(
    InstantTime("20260101000000000"),
    Action.COMMIT,
    State.COMPLETED,
    InstantTime("20260101000000001"),
)


@pytest.fixture(autouse=True)
def warned_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_WARNED", set())
    monkeypatch.setattr(contract, "_CHECKED", type(contract._CHECKED)())


def host_of(plugin: object) -> FormatHost:
    return FormatHost(plugin, name="odd")


def loaded(plugin: object) -> tuple[FormatHost, list[str]]:
    """Load a plugin, twice; return its host, and the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        hosts = [host_of(plugin), host_of(type(plugin)())]
    assert {one.category for one in found} <= {PluginContractWarning}
    return hosts[0], [str(one.message) for one in found]


# --- older
class Former:
    """A format as it was written for the contract that had no version: the toy format's state."""

    calls: list[tuple[bool, bool]] = []  # noqa: RUF012 - what all of them were asked

    def __init__(self) -> None:
        self.toy = ToyFormat()

    @hookimpl
    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(Capability.COPY_ON_WRITE, Capability.IDENTITY_PARTITIONS)

    @hookimpl
    def initialize(
        self, meta_client: View, view_manager: object, create: bool, rebuild: bool
    ) -> FormatCommit:
        assert view_manager is not None
        self.calls.append((create, rebuild))
        return self.toy.create(meta_client) if create else self.toy.open(meta_client)

    @hookimpl
    def find_publication(self, meta_client: View, instant: Instant) -> Publication | None:
        return self.toy.find_publication(meta_client, instant)

    @hookimpl
    def get_timeline_factory(self) -> Any:
        return self.toy.get_timeline_factory()

    @hookimpl
    def get_metadata_factory(self) -> Any:
        return self.toy.get_metadata_factory()

    @hookimpl
    def complete_write(
        self, meta_client: View, commit_metadata: CommitMetadata, instant: Instant
    ) -> FormatCommit:
        # as the contract was: the parent is among what the commit keeps
        parent = commit_metadata.extra_metadata["hudi.format-parent"]
        return self.toy.complete_write(meta_client, commit_metadata, instant, parent)

    @hookimpl
    def before_clean(self) -> None: ...

    @hookimpl
    def complete_clean(self, meta_client: View, instant: Instant) -> FormatCommit:
        return self.toy.complete_clean(meta_client, instant, None)

    @hookimpl
    def archive_instants(self) -> None: ...

    @hookimpl
    def before_rollback(self, meta_client: View, instant: Instant) -> None:
        self.toy.before_rollback(meta_client, instant, None)

    @hookimpl
    def complete_rollback(self, meta_client: View, instant: Instant) -> FormatCommit:
        return self.toy.complete_rollback(meta_client, instant, None)

    def close(self) -> None:
        """Something of its own: it was no hook yet."""
        raise AssertionError

    create = close


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path / "site", {"former": f"{__name__}:Former"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    Former.calls.clear()
    yield
    Former.calls.clear()


@pytest.mark.usefixtures("installed")
def test_a_plugin_of_the_contract_before_is_called_as_it_was(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("city", pa.string())])
    rows = pa.table({"id": ["a"], "city": ["rome"]})
    path = str(tmp_path / "t")
    with pytest.warns(PluginContractWarning) as found:
        made = new_table(path, schema, format="former")
    assert len(found) == 1
    told = str(found[0].message)
    assert "'former' is written for contract 0" in told
    assert f"this hudi-core has {SPI_VERSION}" in told
    assert "initialize became create, open and rebuild" in told
    assert "until contract 2" in told
    assert Former.calls == [(True, False)]  # it declares no conversion
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = made.insert(rows)
        assert result.receipt.version == "2"
        made.rollback(result.instant)
        made.insert(rows)
        assert hudi.Table.open(path).to_arrow(columns=["id"]).to_pylist() == [{"id": "a"}]
    assert set(Former.calls[1:]) == {(False, False)}


def test_an_observer_of_a_former_hook_sees_what_became_of_it() -> None:
    seen = []

    class Watching:
        @hookimpl(wrapper=True)
        def initialize(self, create: bool) -> Any:
            receipt = yield
            seen.append((create, receipt.version))
            return receipt

    with pytest.warns(PluginContractWarning, match="initialize became") as found:
        host = FormatHost(NativeTableFormat(), {"watching": Watching()}, name="odd")
    assert not any("Derive" in str(one.message) for one in found if "watching" in str(one.message))
    host.calls.answer("create", meta_client=_Timeless(), view_manager=None)
    assert seen == [(True, "00000000000000000")]


class _Timeless:
    """A table without instants."""

    def timeline(self) -> Any:
        return Timeline.of([])


def test_a_former_conversion_is_a_rebuild() -> None:
    asked = []

    class Converting(Former):
        @hookimpl
        def get_capabilities(self) -> FormatCapabilities:
            return FormatCapabilities.of(Capability.CONVERSION)

        @hookimpl
        def initialize(self, create: bool = False, rebuild: bool = False) -> FormatCommit:  # type: ignore[override]
            asked.append((create, rebuild))
            return FormatCommit("1")

    host, _ = loaded(Converting())
    host.create(CLIENT)
    host.open(CLIENT)
    host.rebuild(CLIENT)
    assert asked == [(True, True), (False, False), (True, True)]


def test_an_argument_of_its_own_was_no_error() -> None:
    class Tuned(Former):
        @hookimpl
        def complete_clean(self, tries: int = 3) -> FormatCommit:  # type: ignore[override]
            return FormatCommit(str(tries))

    host, told = loaded(Tuned())
    assert host.complete_clean(CLIENT, cast("Any", None), DONE).version == "3"
    assert len(told) == 1


# --- later
class Later(NativeTableFormat):
    """Written for a contract with more hooks, arguments and abilities."""

    spi_version = "1.7"

    def get_capabilities(self) -> FormatCapabilities:
        known = super().get_capabilities()
        return FormatCapabilities.of(
            *known, "vector_search", "promote_type", promotions=["int to int128"]
        )

    def complete_wirte(self) -> None:
        """What a hook may be called that comes."""

    def complete_write(self, instant: Instant, wait_s: float = 1.5, **_: Any) -> FormatCommit:
        return FormatCommit(f"waited {wait_s}")


def test_a_plugin_of_a_later_minor_contract_works_for_what_is_known() -> None:
    host, told = loaded(Later())
    assert len(told) == 2
    for one in told:
        assert "'odd' is written for contract 1.7 of table formats" in one
        assert f"this hudi-core has {SPI_VERSION}, which does not know" in one
    assert "the hook complete_wirte" in told[0]
    assert "'int to int128', " in told[1] or "'vector_search'" in told[1]
    assert host.complete_write(CLIENT, CommitMetadata(), DONE).version == "waited 1.5"
    assert Capability.CLUSTERING in host.capabilities
    assert "vector_search" in host.capabilities
    assert "vector_search" not in {*host.capabilities}


def test_a_later_plugin_is_warned_of_whatever_its_methods_are_called() -> None:
    class Compacting(NativeTableFormat):
        spi_version = "1.3"

        def compact_everything(self, **_: Any) -> None:
            """May be a hook that comes."""

    _, told = loaded(Compacting())
    assert len(told) == 1
    assert "'odd' is written for contract 1.3 of table formats" in told[0]
    assert f"this hudi-core has {SPI_VERSION}: it works without what came later" in told[0]


class Both(Former):
    @hookimpl(specname="open")
    def as_now(self) -> FormatCommit:
        return FormatCommit("1")


class Mixed(NativeTableFormat):
    @hookimpl
    def initialize(self) -> FormatCommit:
        return FormatCommit("1")


class Newest(NativeTableFormat):
    spi_version = "2.0"


class Demanding(Later):
    def complete_clean(self, wait_s: float, **_: Any) -> FormatCommit:  # type: ignore[override]
        return FormatCommit(str(wait_s))


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (Both, "open is implemented twice"),
        (Mixed, "unknown hook 'initialize'"),
        (Newest, r"contract 2\.0.*needs hudi-core >=.*upgrade"),
        (Demanding, r"'wait_s' without a default"),
    ],
)
def test_what_fits_no_contract_is_refused(plugin: type, said: str) -> None:
    with pytest.raises(PluginContractError, match=said):
        host_of(plugin())


def test_this_contract_knows_what_is_unknown() -> None:
    def declaring(*abilities: str) -> Callable[[], FormatCapabilities]:
        return lambda *_: FormatCapabilities.of(*abilities)

    plugin = type("Odd", (NativeTableFormat,), {"get_capabilities": declaring("clusterin")})
    with pytest.raises(PluginContractError, match=r"clusterin; did you mean 'clustering'"):
        host_of(plugin())
    named = type("Named", (NativeTableFormat,), {"get_capabilities": declaring("clustering")})
    assert Capability.CLUSTERING in host_of(named()).capabilities


@pytest.mark.parametrize(
    "declared",
    [
        lambda: FormatCapabilities.of(cast("Any", 3)),
        lambda: FormatCapabilities.of("copy_on_write", cast("Any", 3)),
        lambda: FormatCapabilities.of(cast("Any", None)),
        lambda: FormatCapabilities(cast("Any", ["copy_on_write"])),
        lambda: FormatCapabilities(cast("Any", None)),
        lambda: FormatCapabilities(promotions=cast("Any", ["int to long"])),
        lambda: FormatCapabilities(promotions=frozenset({cast("Any", 3)})),
    ],
)
def test_abilities_are_texts(declared: Callable[[], FormatCapabilities]) -> None:
    plugin = type("Odd", (NativeTableFormat,), {"get_capabilities": lambda _: declared()})
    with pytest.raises(PluginContractError, match=r"it declares the (abilities|promotions) .*not"):
        host_of(plugin())


def test_a_hook_that_came_later_is_not_taken_from_an_older_plugin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Older(NativeTableFormat):
        def complete_indexing(self) -> str:
            return "something of its own"

    newer = Hook("complete_indexing", (), lambda: None, False, frozenset(), "1.1")
    assert "complete_indexing" not in HOOKS
    monkeypatch.setattr(members, "HOOKS", {**HOOKS, "complete_indexing": newer})
    found = contract.implementations_of("older", Older())
    assert "complete_indexing" not in found
    assert "complete_write" in found


def test_names_of_the_former_contract_are_still_there() -> None:

    for name, (module, there, advice) in versions.FORMER_NAMES.items():
        with pytest.warns(PluginContractWarning, match=f"^{name} of hudi_core.spi") as warned:
            assert getattr(spi, name) is getattr(import_module(module), there)
        assert [advice in str(one.message) for one in warned] == [True]
        assert warned[0].filename == __file__
    with pytest.raises(ImportError, match="derive the class of the format from TableFormat"):
        exec("from hudi_core.spi import TableFormatHooks")
    with pytest.raises(ImportError, match="cannot import name 'TableFormt'"):
        exec("from hudi_core.spi import TableFormt")
