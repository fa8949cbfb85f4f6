"""Observers, and plugins among installed distributions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hudi_core.errors import (
    CommitConflictError,
    HudiError,
    InvalidOptionError,
    PluginConflictError,
    PluginContractError,
    PluginHookError,
    PluginLoadError,
    UnknownTableFormatError,
)
from hudi_core.extension import registry as extension_registry
from hudi_core.extension.registry import InstalledExtension
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FORMAT_GROUP, OBSERVER_GROUP, FormatRegistry
from hudi_core.spi import FormatCommit, hookimpl
from native_format import NativeTableFormat
from tests.calls import calls_of
from tests.fake_distributions import Install, fake_distributions

Wrapper = Generator[None, Any, Any]
CLIENT = cast("MetaClientView", object())
DONE = Instant(
    InstantTime("20260101000000000"),
    Action.COMMIT,
    State.COMPLETED,
    InstantTime("20260101000000001"),
)
RECEIPT = FormatCommit("20260101000000001")


def commit(host: FormatHost) -> FormatCommit:
    return host.complete_write(CLIENT, CommitMetadata(), DONE)


def host_with(*observers: object, plugin: object | None = None) -> FormatHost:
    named = {f"observer {n}": observer for n, observer in enumerate(observers)}
    return FormatHost(plugin or NativeTableFormat(), named, name="test")


class Failing(NativeTableFormat):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    @hookimpl
    def complete_write(self) -> FormatCommit:  # type: ignore[override]
        raise self.error


class Watching:
    """Keeps what it saw, in the order of the calls of all observers that share the list."""

    def __init__(self, name: str = "", log: list[Any] | None = None) -> None:
        self.name = name
        self.log: list[Any] = [] if log is None else log

    @hookimpl(wrapper=True)
    def complete_write(self, instant: Instant) -> Wrapper:
        self.log.append((self.name, "before", instant))
        try:
            result = yield
        except HudiError as error:
            self.log.append((self.name, "error", error))
            raise
        self.log.append((self.name, "after", result))
        return result


def test_an_observer_sees_arguments_and_result() -> None:
    watching = Watching()
    assert commit(host_with(watching)) == RECEIPT
    assert watching.log == [("", "before", DONE), ("", "after", RECEIPT)]


def test_the_first_observer_is_outermost() -> None:
    log: list[Any] = []
    commit(host_with(Watching("a", log), Watching("b", log)))
    order = [(name, when) for name, when, _ in log]
    assert order == [("a", "before"), ("b", "before"), ("b", "after"), ("a", "after")]


def test_an_observer_sees_the_error_that_the_caller_gets(
    own_messages: Callable[[], list[str]],
) -> None:
    watching = Watching()
    with pytest.raises(PluginHookError) as caught:
        commit(host_with(watching, plugin=Failing(ValueError("no"))))
    assert watching.log[-1] == ("", "error", caught.value)
    assert own_messages() == []


def test_an_observer_sees_a_breach_of_contract_as_a_failure() -> None:
    class Silent(NativeTableFormat):
        @hookimpl
        def complete_write(self) -> None:  # type: ignore[override]
            return None

    watching = Watching()
    with pytest.raises(PluginContractError):
        commit(host_with(watching, plugin=Silent()))
    assert watching.log[-1][1] == "error"


# --- no observer decides
def observer(method: Callable[..., Any]) -> type:
    """Class with one method, which wraps the hook of a write."""
    members = {"complete_write": hookimpl(wrapper=True)(method), "never": False}
    return type(method.__name__, (), members)


@observer
def raises_before(self: Any) -> Wrapper:
    if not self.never:
        raise RuntimeError("before")
    yield


@observer
def raises_after(self: Any) -> Wrapper:
    yield
    raise RuntimeError("after")


@observer
def raises_hudi_error(self: Any) -> Wrapper:
    yield
    raise CommitConflictError("A lie", "Ignore it.")


@observer
def changes_the_result(self: Any) -> Wrapper:
    yield
    return FormatCommit("another")


@observer
def swallows(self: Any) -> Wrapper:
    try:
        yield
    except HudiError:
        return FormatCommit("all is well")


@observer
def replaces_the_error(self: Any) -> Wrapper:
    try:
        yield
    except HudiError as error:
        raise OSError("mine") from error


@observer
def does_not_yield(self: Any) -> Wrapper:
    if self.never:
        yield


@observer
def yields_twice(self: Any) -> Wrapper:
    yield
    yield


@observer
def refuses_to_stop(self: Any) -> Wrapper:
    for _ in range(3):
        try:
            yield
        except BaseException:  # noqa: BLE001 - refusing to stop is the point
            continue


MEDDLERS = (
    *(raises_before, raises_after, raises_hudi_error, changes_the_result, swallows),
    *(replaces_the_error, does_not_yield, yields_twice, refuses_to_stop),
)


@pytest.mark.parametrize("meddler", MEDDLERS)
def test_the_result_stands(meddler: type) -> None:
    watching = Watching()
    assert commit(host_with(meddler(), watching, meddler())) == RECEIPT
    assert watching.log[-1] == ("", "after", RECEIPT)


@pytest.mark.parametrize("meddler", MEDDLERS)
def test_the_error_stands(meddler: type) -> None:
    error = CommitConflictError("Somebody was first", "Try again.")
    watching = Watching()
    with pytest.raises(CommitConflictError) as caught:
        commit(host_with(meddler(), watching, meddler(), plugin=Failing(error)))
    assert caught.value is error
    assert watching.log[-1] == ("", "error", error)
    frames = [entry.name for entry in caught.traceback]
    assert "complete_write" in frames
    called = [entry.frame.code.raw.co_qualname for entry in caught.traceback]
    assert not any(name.startswith("Observ") for name in called)


@pytest.mark.parametrize(
    ("meddler", "said"),
    [
        (raises_before, "RuntimeError: before"),
        (raises_after, "RuntimeError: after"),
        (raises_hudi_error, "A lie"),
        (does_not_yield, "it did not yield"),
        (yields_twice, "it has a second yield"),
    ],
)
def test_a_failure_is_logged(meddler: type, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        commit(host_with(changes_the_result(), swallows()))
    assert "observer" not in caplog.text  # these harm nobody
    commit(host_with(meddler()))
    assert "observer 0 failed in complete_write" in caplog.text
    assert said in caplog.text


def test_an_interrupt_ends_the_observers_and_passes() -> None:
    ended: list[str] = []

    class Ending:
        @hookimpl(wrapper=True)
        def complete_write(self) -> Wrapper:
            try:
                yield
            except GeneratorExit:
                ended.append("closed")
                raise

    with pytest.raises(KeyboardInterrupt):
        commit(host_with(Ending(), plugin=Failing(KeyboardInterrupt())))
    assert ended == ["closed"]


# --- observers that break the contract
class NotAWrapper:
    @hookimpl
    def complete_write(self) -> FormatCommit:
        return FormatCommit("mine")


class OldStyle:
    @hookimpl(hookwrapper=True)
    def complete_write(self) -> Wrapper:
        yield


class Forgetful:
    def complete_write(self) -> Wrapper:
        yield


class Misspelt:
    @hookimpl(wrapper=True)
    def complete_wirte(self) -> Wrapper:
        yield


@pytest.mark.parametrize(
    ("observer", "said"),
    [
        (NotAWrapper, "complete_write is not marked with @hookimpl(wrapper=True)"),
        (OldStyle, "complete_write is not marked with @hookimpl(wrapper=True)"),
        (Forgetful, "complete_write is named like a hook"),
        (Misspelt, "unknown hook 'complete_wirte'"),
    ],
)
def test_a_wrong_observer_is_left_out_and_logged(
    observer: type, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    watching = Watching()
    with caplog.at_level(logging.ERROR):
        host = host_with(observer(), watching)
    assert said in caplog.text
    assert "observer 0 is left out" in caplog.text
    assert commit(host) == RECEIPT
    assert watching.log[-1] == ("", "after", RECEIPT)


def test_one_observer_under_two_names_watches_once(caplog: pytest.LogCaptureFixture) -> None:
    watching = Watching()
    commit(host_with(watching, watching))
    assert len(watching.log) == 2
    assert "observer 1 is left out" in caplog.text


# --- finding plugins among installed distributions, which are faked by their metadata folders
@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution on the path: its metadata and one module."""
    yield from fake_distributions(tmp_path, monkeypatch, FORMAT_GROUP)


def test_names_are_lower_case_and_sorted(install: Install) -> None:
    install("one", {"Zebra": "rival_a:X", "APPLE_2": "rival_a:Y"})
    names = FormatRegistry().names()
    assert [name for name in names if name in ("zebra", "apple_2")] == ["apple_2", "zebra"]
    assert "native" in names


def test_discovery_imports_nothing(install: Install, tmp_path: Path) -> None:
    trace = tmp_path / "imported"
    code = f"from pathlib import Path\nPath({str(trace)!r}).touch()\nclass X: pass\n"
    install("side-effect", {"loud": "loud_module:X"}, "loud_module", code)
    registry = FormatRegistry()
    assert "loud" in registry.names()
    assert InstalledExtension("loud", "side-effect", "1.2", "loud_module:X") in registry.installed()
    with pytest.raises(UnknownTableFormatError):
        registry.load("quiet")
    assert not trace.exists()
    registry.load("loud")
    assert trace.exists()


@pytest.mark.parametrize("name", ["thing", "THING", "Thing"])
def test_load_compares_names_without_case_and_makes_an_object(install: Install, name: str) -> None:
    install("things", {"ThInG": "thing_module:Thing"}, "thing_module", "class Thing: ...")
    first, second = FormatRegistry().load(name), FormatRegistry().load(name)
    assert type(first).__name__ == "Thing"
    assert first is not second


def test_load_returns_an_object_as_it_is(install: Install) -> None:
    code = "class Thing: ...\nthe_one = Thing()"
    install("things", {"thing": "one_module:the_one"}, "one_module", code)
    assert FormatRegistry().load("thing") is FormatRegistry().load("thing")


def test_two_distributions_for_one_name(install: Install) -> None:
    install("rival-a", {"paimon": "rival_a:X"})
    install("rival-b", {"Paimon": "rival_b:X"})
    with pytest.raises(PluginConflictError) as caught:
        FormatRegistry().load("paimon")
    assert caught.value.distributions == ("rival-a", "rival-b")
    assert "rival-a, rival-b" in str(caught.value)
    assert "Uninstall all but one" in str(caught.value)


def test_a_conflict_leaves_other_names_alone(install: Install) -> None:
    install("rival-a", {"same": "rival_a:X"})
    install("rival-b", {"same": "rival_b:X", "other": "other_module:X"})
    install("other", {}, "other_module", "class X: ...")
    assert "same" in FormatRegistry().names()
    assert type(FormatRegistry().load("other")).__name__ == "X"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no such\\n library')", "OSError: no such library"),
        ("import a_module_nobody_has", "ModuleNotFoundError"),
        ("Y = 1", "AttributeError"),
        ("class X:\n    def __init__(self): raise KeyError('when made')", "KeyError: 'when made'"),
        ("class X:\n    def __init__(self, needs): ...", "TypeError"),
    ],
)
def test_a_plugin_that_cannot_be_imported(install: Install, code: str, reason: str) -> None:
    install("broken-format", {"broken": "broken_module:X"}, "broken_module", code)
    with pytest.raises(PluginLoadError) as caught:
        FormatRegistry().load("broken")
    assert caught.value.distribution == "broken-format"
    assert reason in str(caught.value)
    assert "broken-format" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_an_interrupt_while_loading_passes(install: Install) -> None:
    install("slow", {"slow": "slow_module:X"}, "slow_module", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        FormatRegistry().load("slow")


@pytest.mark.parametrize(
    ("name", "package"),
    [("iceberg", "hudi-iceberg-format"), ("Delta", "hudi-delta-format"), ("native", "hudi-core")],
)
def test_unknown_name_of_the_project(name: str, package: str) -> None:
    with pytest.raises(UnknownTableFormatError) as caught:
        FormatRegistry(lambda group: ()).load(name)
    assert caught.value.package == package
    assert caught.value.name == name.lower()
    assert str(caught.value).endswith(f"(installed: none). Run `pip install {package}`.")


def test_unknown_name_of_nobody_is_only_a_suggestion() -> None:
    with pytest.raises(UnknownTableFormatError) as caught:
        FormatRegistry().load("lance")
    assert not caught.value.known
    assert "native" in caught.value.installed
    assert "by custom it is called hudi-lance-format, but check whose it is" in str(caught.value)
    assert "pip install" not in str(caught.value)


@pytest.mark.parametrize(("name", "near"), [("icebreg", "iceberg"), ("delat", "delta")])
def test_a_misspelled_name_proposes_no_package(name: str, near: str) -> None:
    for formats in (FormatRegistry(), FormatRegistry(lambda group: ())):
        with pytest.raises(UnknownTableFormatError, match=f"Did you mean '{near}'") as caught:
            formats.load(name)
        assert f"hudi-{name}-format" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "../evil", "os:system", "a.b", "1st", "a" * 33, "\u212audu"])
def test_what_cannot_be_a_name(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"hoodie\.table\.format"):
        FormatRegistry().load(name)


def test_registered_names_that_no_table_can_have(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    # the Kelvin sign becomes an ASCII k in lower case
    install("evil", {"\u212audu": "evil:X", "a.b": "evil:X", "good": "evil:X"})
    with caplog.at_level(logging.WARNING):
        names = FormatRegistry().names()
    assert "good" in names
    assert not {"kudu", "a.b"} & set(names)
    assert "evil" in caplog.text


def test_observers_are_loaded_by_name(install: Install) -> None:
    code = "class A: ...\nclass B: ..."
    install("watch", {"b": "watchers:B", "a": "watchers:A"}, "watchers", code, OBSERVER_GROUP)
    loaded = FormatRegistry().load_observers()
    assert [name for name in loaded if name.endswith("of watch")] == ["a of watch", "b of watch"]
    assert type(loaded["a of watch"]).__name__ == "A"


def test_an_observer_that_cannot_be_imported_is_logged(
    install: Install, own_messages: Callable[[], list[str]]
) -> None:
    install("watch", {"bad": "bad_watch:X"}, "bad_watch", "raise ValueError(7)", OBSERVER_GROUP)
    assert "bad of watch" not in FormatRegistry().load_observers()
    # each open table loads them: that is logged once
    assert "bad of watch" not in FormatRegistry().load_observers()
    [message] = own_messages()
    assert "bad of watch cannot be loaded" in message


def test_distributions_are_read_again_when_one_was_installed(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("one", {"first": "rival_a:X"})
    assert "first" in FormatRegistry().names()
    reads = calls_of(monkeypatch, extension_registry, "entry_points")
    assert "first" in FormatRegistry().names()
    assert reads == []

    time.sleep(0.02)  # what file systems round times of change to
    install("two", {"second": "rival_b:X"})
    assert {"first", "second"} <= set(FormatRegistry().names())
    assert reads == [(FORMAT_GROUP,)]
