"""Members of a plugin are looked at as they are kept: nothing of its own is run by that."""

from __future__ import annotations

import types
from inspect import getattr_static
from typing import Any, NoReturn

import pytest

from hudi_core.errors import PluginContractError
from hudi_core.hookspecs import TableFormatHooks
from hudi_core.plugin import contract
from hudi_core.plugin.contract import new_manager, register
from hudi_core.spi import hookimpl
from native_format import NativeTableFormat

HOOK = "complete_clean"
ABSENT = contract._ABSENT


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("code of the plugin was run")


class Watched(type):
    """A metaclass that answers for its classes."""

    __getattribute__ = _refuse


class OfWatched(metaclass=Watched):
    def complete_clean(self) -> None: ...


class OwnDict:
    """Instead of a dictionary it has a property."""

    complete_clean = 1
    __dict__ = property(_refuse)


class Plain:
    def complete_clean(self) -> None: ...


class HiddenDict(Plain):
    """Its instances have a dictionary, and show another one."""

    __dict__ = {HOOK: "shown"}


class HiddenOfWatched(OfWatched):
    __dict__ = property(_refuse)


class Answering:
    """Answers for its instances."""

    __getattribute__ = _refuse
    __class__ = property(_refuse)


class Governed:
    """A property goes before what an instance keeps."""

    @property
    def complete_clean(self) -> NoReturn:
        _refuse()


class Slots:
    __slots__ = (HOOK,)


class OddDict(dict[str, Any]):
    __contains__ = __getitem__ = get = _refuse


def _keeping(cls: type, **own: object) -> object:
    owner: object = object.__new__(cls)
    for base in cls.__mro__:
        descriptor = vars(base).get("__dict__")
        if isinstance(descriptor, types.GetSetDescriptorType):
            descriptor.__get__(owner).update(own)
    return owner


def _with_odd_dict() -> object:
    owner = Plain()
    owner.__dict__ = OddDict({"other": 1})
    return owner


def _failure() -> Exception:
    failure = type("Failure", (Exception,), {})()
    failure.other = 6
    return failure  # type: ignore[no-any-return]


OWNERS: dict[str, tuple[object, str]] = {
    "a property for a dictionary": (object.__new__(OwnDict), HOOK),
    "what is behind such a property": (object.__new__(OwnDict), "absent"),
    "the class with such a property": (OwnDict, HOOK),
    "another dictionary in its place": (object.__new__(HiddenDict), HOOK),
    "an instance that answers": (_keeping(Answering, complete_clean=2), HOOK),
    "a property goes first": (_keeping(Governed, complete_clean=3), HOOK),
    "a method goes last": (_keeping(Plain, complete_clean=4), HOOK),
    "an own member": (_keeping(Plain, other=5), "other"),
    "a method": (Plain(), HOOK),
    "a dictionary that answers": (_with_odd_dict(), "other"),
    "slots": (Slots(), HOOK),
    "slots without it": (Slots(), "absent"),
    "a module": (contract, "HOOKS"),
    "what a module lacks": (contract, "absent"),
    "an error": (_failure(), "other"),
}


@pytest.mark.parametrize("case", OWNERS)
def test_a_member_is_found_as_it_is_kept(case: str) -> None:
    owner, name = OWNERS[case]
    assert contract._member(owner, name) is getattr_static(owner, name, ABSENT)


def test_a_metaclass_is_not_asked() -> None:
    kept = type.__dict__["__dict__"].__get__(OfWatched)[HOOK]
    both = (OfWatched, object.__new__(OfWatched), object.__new__(HiddenOfWatched))
    assert [contract._member(owner, HOOK) for owner in both] == [kept] * 3
    assert [contract._member(owner, "absent") for owner in both] == [ABSENT] * 3


def test_a_class_that_answers_for_its_members_registers_no_hook_by_that() -> None:
    """What pluggy itself asks of it fails as an error of the plugin."""
    with pytest.raises(PluginContractError, match=r"complete_clean.*not marked"):
        register(new_manager(), "odd", OfWatched)
    with pytest.raises(PluginContractError, match="code of the plugin was run"):
        register(new_manager(), "odd", object.__new__(OwnDict))


def test_a_format_with_members_of_its_own_still_has_its_hooks() -> None:
    plugin = NativeTableFormat()
    added = register(new_manager(), "native", plugin)
    keeping = _keeping(type("Keeping", (NativeTableFormat,), {}), settings=1)
    assert register(new_manager(), "native", keeping).keys() == added.keys()
    assert HOOK in added
    assert contract._member(plugin, HOOK) is vars(NativeTableFormat)[HOOK]
    assert contract._member(TableFormatHooks, HOOK) is vars(TableFormatHooks)[HOOK]
    marked = _keeping(Plain, complete_clean=hookimpl(lambda: None))
    assert HOOK in register(new_manager(), "marked", marked)
