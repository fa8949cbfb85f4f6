"""Observers watch the hooks and never decide what becomes of a commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any, cast

import pytest

from hudi_core.errors import CommitConflictError, HudiError, PluginContractError, PluginHookError
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.plugin.host import FormatHost
from hudi_core.spi import FormatCommit, hookimpl
from native_format import NativeTableFormat

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


# --- no observer decides -----------------------------------------------------------------------


class RaisesBefore:
    fails = True

    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        if self.fails:
            raise RuntimeError("before")
        yield


class RaisesAfter:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        yield
        raise RuntimeError("after")


class RaisesHudiError:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        yield
        raise CommitConflictError("A lie", "Ignore it.")


class ChangesTheResult:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        yield
        return FormatCommit("another")


class Swallows:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        try:
            yield
        except HudiError:
            return FormatCommit("all is well")


class ReplacesTheError:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        try:
            yield
        except HudiError as error:
            raise OSError("mine") from error


class DoesNotYield:
    yields = False

    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        if self.yields:
            yield


class YieldsTwice:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        yield
        yield


class RefusesToStop:
    @hookimpl(wrapper=True)
    def complete_write(self) -> Wrapper:
        for _ in range(3):
            try:
                yield
            except BaseException:  # noqa: BLE001 - refusing to stop is the point
                continue


MEDDLERS = (
    RaisesBefore,
    RaisesAfter,
    RaisesHudiError,
    ChangesTheResult,
    Swallows,
    ReplacesTheError,
    DoesNotYield,
    YieldsTwice,
    RefusesToStop,
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
    paths = [str(entry.path) for entry in caught.traceback]
    assert not any(path.endswith("plugin/observers.py") for path in paths)


@pytest.mark.parametrize(
    ("meddler", "said"),
    [
        (RaisesBefore, "RuntimeError: before"),
        (RaisesAfter, "RuntimeError: after"),
        (RaisesHudiError, "A lie"),
        (DoesNotYield, "it did not yield"),
        (YieldsTwice, "it has a second yield"),
    ],
)
def test_a_failure_is_logged(meddler: type, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        commit(host_with(meddler()))
    assert "observer 0 failed in complete_write" in caplog.text
    assert said in caplog.text


@pytest.mark.parametrize("meddler", [ChangesTheResult, Swallows])
def test_a_harmless_observer_is_not_logged(
    meddler: type, own_messages: Callable[[], list[str]]
) -> None:
    commit(host_with(meddler()))
    assert own_messages() == []


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


# --- observers that break the contract ---------------------------------------------------------


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
