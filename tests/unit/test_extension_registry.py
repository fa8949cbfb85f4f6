"""Extensions found by name among installed distributions."""

from __future__ import annotations

import logging
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_core.errors import (
    ExtensionCallError,
    InvalidOptionError,
    PluginConflictError,
    PluginLoadError,
    UnknownExtensionError,
)
from hudi_core.extension.registry import ExtensionPoint, InstalledExtension
from tests.fake_distributions import Install, fake_distributions

GROUP = "hudi.test_things"


class Thing(ABC):
    """What an extension of these tests is."""

    @abstractmethod
    def answer(self) -> int: ...


POINT = ExtensionPoint(GROUP, "thing", frozenset({"plain"}), {"org.apache.hudi.Plain": "plain"})
OWN_THING = f"""
from {__name__} import Thing

class Mine(Thing):
    def answer(self):
        return 42

class Half(Thing):
    pass

class Other:
    pass

class Picky(Thing):
    def __init__(self):
        raise KeyError("no luck")
    def answer(self):
        return 0
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Thing.__module__])
    yield from fake_distributions(tmp_path, monkeypatch, GROUP)


@pytest.mark.parametrize("text", ["plain", "PLAIN", "org.apache.hudi.Plain"])
def test_names_of_hudi_stand_for_ours(text: str) -> None:
    assert POINT.name(text) == "plain"


@pytest.mark.parametrize("text", ["", "a.b:C", "com.acme.Mine", "ſ", "1st", "x" * 33, "a b"])
def test_a_class_path_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"plain, org\.apache\.hudi\.Plain"):
        POINT.name(text)


def test_an_installed_one_is_found_by_name_and_only_then_imported(install: Install) -> None:
    install("acme-things", {"Mine": "acme_things:Mine"}, "acme_things", OWN_THING)
    assert POINT.names() == ("mine", "plain")
    [found] = POINT.installed()
    assert found == InstalledExtension("mine", "acme-things", "1.2", "acme_things:Mine")
    POINT.require("mine")
    assert "acme_things" not in sys.modules
    assert POINT.make("mine", Thing, lambda kind: kind()).answer() == 42


def test_an_unknown_name_is_refused_with_those_that_there_are(install: Install) -> None:
    install("acme-things", {"mine": "acme_things:Mine"}, "acme_things", OWN_THING)
    with pytest.raises(UnknownExtensionError, match=r"mine, plain.*entry-point") as caught:
        POINT.require("nobody")
    assert (caught.value.known, caught.value.group) == (("mine", "plain"), GROUP)
    with pytest.raises(UnknownExtensionError, match="Did you mean 'mine'"):
        POINT.load("mines", Thing)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (UnknownExtensionError, str(caught.value))


def test_rivals_are_refused(install: Install) -> None:
    install("acme-things", {"mine": "acme_things:Mine"}, "acme_things", OWN_THING)
    install("zeta-things", {"MINE": "zeta_things:Mine", "plain": "zeta_things:Mine"})
    with pytest.raises(PluginConflictError, match=r"The thing 'mine'.*acme-things, zeta-things"):
        POINT.require("mine")
    with pytest.raises(PluginConflictError, match="hudi-core, zeta-things"):
        POINT.require("plain")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("acme_things:Half", "lacks answer"),
        ("acme_things:Other", "no class derived from .*Thing"),
        ("acme_things:OWN", "AttributeError"),
        ("acme_missing:Mine", "ModuleNotFoundError"),
    ],
)
def test_one_that_cannot_be_loaded_is_named(install: Install, target: str, reason: str) -> None:
    install("acme-things", {"mine": target}, "acme_things", OWN_THING)
    with pytest.raises(PluginLoadError, match=reason) as caught:
        POINT.load("mine", Thing)
    assert (caught.value.kind, caught.value.distribution) == ("thing", "acme-things")


def test_a_foreign_error_names_the_extension(install: Install) -> None:
    install("acme-things", {"picky": "acme_things:Picky"}, "acme_things", OWN_THING)
    with pytest.raises(ExtensionCallError, match="thing 'picky' failed in __init__: KeyError"):
        POINT.make("picky", Thing, lambda kind: kind())


def test_an_error_of_the_project_passes() -> None:
    def refuse() -> None:
        raise InvalidOptionError("a", "b", "no", "Change it.")

    with pytest.raises(InvalidOptionError):
        POINT.guard("mine").call("answer", refuse)


def test_names_that_are_none_are_left_out(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("acme-things", {"a.b": "acme_things:Mine"})
    with caplog.at_level(logging.WARNING):
        assert POINT.names() == ("plain",)
    assert "registers the thing 'a.b'" in caplog.text
