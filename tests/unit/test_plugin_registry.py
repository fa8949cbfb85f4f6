"""Finding plugins among installed distributions, which are faked by their metadata folders."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from hudi_core.errors import (
    InvalidOptionError,
    PluginConflictError,
    PluginLoadError,
    UnknownTableFormatError,
)
from hudi_core.extension import entry_points as extension_entry_points
from hudi_core.extension.entry_points import InstalledExtension
from hudi_core.plugin.registry import FORMAT_GROUP, OBSERVER_GROUP, FormatRegistry
from tests.fake_distributions import Install, fake_distributions


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
    [
        ("iceberg", "hudi-iceberg-format"),
        ("Delta", "hudi-delta-format"),
        ("native", "hudi-core"),
    ],
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
    reads = []

    def counting(group: str) -> object:
        reads.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(extension_entry_points, "entry_points", counting)
    assert "first" in FormatRegistry().names()
    assert reads == []

    time.sleep(0.02)  # what file systems round times of change to
    install("two", {"second": "rival_b:X"})
    assert {"first", "second"} <= set(FormatRegistry().names())
    assert reads == [FORMAT_GROUP]
