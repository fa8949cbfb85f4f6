"""Which members of a plugin are its hooks, and how often that is looked at."""

from __future__ import annotations

import types
from typing import NoReturn

import pytest

from hudi_core.errors import PluginContractError
from hudi_core.hookspecs import HOOKS
from hudi_core.plugin import contract
from hudi_core.plugin.contract import implementations_of
from hudi_core.plugin.host import FormatHost
from hudi_core.spi import TableFormat, hookimpl
from native_format import NativeTableFormat

HOOK = "complete_clean"


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("code of the plugin was run")


class Answering:
    """Answers for its instances."""

    __getattribute__ = _refuse


def test_a_class_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Format(NativeTableFormat):
        pass

    FormatHost(Format(), name="native")
    monkeypatch.setattr(contract, "_checked", _refuse)
    assert (
        FormatHost(Format(), name="native").capabilities == NativeTableFormat().get_capabilities()
    )


def test_a_class_that_breaks_the_contract_is_refused_each_time() -> None:
    class Format:
        def complete_clean(self) -> None: ...

    for _ in range(2):
        with pytest.raises(PluginContractError, match=r"complete_clean.*not marked"):
            implementations_of("odd", Format())


def test_hooks_of_an_instance_are_seen_though_its_class_is_known() -> None:
    class Plain:
        pass

    assert not implementations_of("plain", Plain())
    marked = Plain()
    marked.__dict__[HOOK] = hookimpl(lambda: None)
    assert set(implementations_of("marked", marked)) == {HOOK}
    assert not implementations_of("plain", Plain())
    forgotten = Plain()
    forgotten.__dict__[HOOK] = lambda: None
    with pytest.raises(PluginContractError, match=r"complete_clean.*not marked"):
        implementations_of("forgotten", forgotten)


def test_a_module_has_hooks_of_its_own() -> None:
    for hook in list(HOOKS)[:2]:
        module = types.ModuleType("of_a_plugin")
        module.__dict__[hook] = hookimpl(lambda: None)
        assert set(implementations_of("module", module)) == {hook}


def test_a_hook_may_have_another_name() -> None:
    class Format:
        @hookimpl(specname=HOOK)
        def tidy(self, instant: object) -> None: ...

    (found,) = implementations_of("named", Format()).values()
    assert (found.member, found.arguments) == ("tidy", ("instant",))


def test_what_a_class_inherits_of_the_contract_implements_nothing() -> None:
    inherits: type = type("Format", (TableFormat,), {"spi_version": "1.0"})
    assert not implementations_of("none", object.__new__(inherits))


def test_a_plugin_that_answers_for_its_members_fails_as_a_plugin() -> None:
    with pytest.raises(PluginContractError, match="code of the plugin was run"):
        implementations_of("odd", object.__new__(Answering))
