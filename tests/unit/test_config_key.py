"""Declarations of options: parsing, aliases, choices, secrets."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import NoneType
from typing import Self, get_args, get_type_hints

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config import parsers
from hudi_core.config.docs import meanings
from hudi_core.config.kinds import LOCK_CLASSES
from hudi_core.config.lock import LockConfig
from hudi_core.config.option_warnings import ALL_KEYS, DECLARED_NAMES, OPTIONS
from hudi_core.config.options import ConfigKey, Group, Option, Options, Secret, is_secret_name
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.sync import Extractor, SyncConfig
from hudi_core.config.ttl import STRATEGY_CLASSES, TtlConfig
from hudi_core.config.validators import VALIDATOR_CLASSES, ValidatorsConfig
from hudi_core.errors import InvalidOptionError

SIZE = ConfigKey(
    key="hoodie.size", aliases=("hoodie.old.size",), default=7, parse=parsers.integer(1, 10)
)
COLOUR = ConfigKey(key="hoodie.colour", default="RED", parse=str, choices=("RED", "BLUE"))


def test_default_key_and_alias() -> None:
    assert SIZE.read({}) == 7
    assert SIZE.read({"hoodie.size": " 3 "}) == 3
    assert SIZE.read({"hoodie.old.size": "4"}) == 4
    assert SIZE.read({"hoodie.old.size": "4", "hoodie.size": "4"}) == 4
    assert SIZE.is_given({"hoodie.old.size": "4"})
    assert not SIZE.is_given({"hoodie.siz": "4"})


class Shape(Options, group=Group.WRITE):
    """An example of what options describe."""

    size: Option[int] = Option(
        "hoodie.size", default=7, parse=parsers.integer(1), aliases=("size",)
    )
    colour = ConfigKey("hoodie.colour", default="RED", parse=str)
    is_red: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        return cls._read(options, is_red=cls.colour.read(options) == "RED")


def test_a_field_is_the_declaration_of_its_option() -> None:
    assert [key.key for key in Shape.keys] == ["hoodie.size", "hoodie.colour"]
    assert (Shape.group, Shape.size.key) == (Group.WRITE, "hoodie.size")
    assert Shape() == Shape(size=7, is_red=True) == Shape.from_options({"other": "1"})
    given = Shape.from_options({"size": "3", "hoodie.colour": "BLUE"})
    assert given == Shape(size=3, is_red=False)
    assert replace(given, size=4).size == 4
    assert pickle.loads(pickle.dumps(given)) == given
    with pytest.raises(FrozenInstanceError):
        given.size = 5  # type: ignore[misc]
    with pytest.raises(InvalidOptionError, match="less than 1"):
        Shape.from_options({"hoodie.size": "0"})


def test_names_that_contradict_each_other() -> None:
    with pytest.raises(InvalidOptionError, match=r"hoodie\.size='3' names the same option"):
        SIZE.read({"hoodie.old.size": "4", "hoodie.size": "3"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [("0", "less than 1"), ("11", "more than 10"), ("x", "whole"), ("", "whole"), ("1e1", "whole")],
)
def test_a_bad_value_names_option_and_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason) as caught:
        SIZE.read({"hoodie.old.size": text})
    assert (caught.value.key, caught.value.value) == ("hoodie.old.size", text)


def test_choices_ignore_case_and_are_named() -> None:
    assert COLOUR.read({"hoodie.colour": "blue"}) == "BLUE"
    with pytest.raises(InvalidOptionError, match="Supported: RED, BLUE"):
        COLOUR.read({"hoodie.colour": "green"})


@pytest.mark.parametrize("text", ["١٢", "²", "+1", "1_0", "0x1", "-", "9" * 19])
def test_whole_numbers_are_ascii_digits(text: str) -> None:
    with pytest.raises(ValueError, match="whole"):
        parsers.integer(-5)(text)


def test_parsers() -> None:
    assert parsers.integer(-5)("-3") == -3
    assert [parsers.boolean(text) for text in ("true", "FALSE")] == [True, False]
    assert parsers.names(" a, b,,c ,") == ("a", "b", "c")
    assert parsers.names("") == ()
    assert parsers.number(0, 1)("1e-9") == 1e-9
    assert parsers.optional(parsers.integer(1))("") is None
    assert parsers.optional(parsers.integer(1))("2") == 2
    for text in ("yes", "1", ""):
        with pytest.raises(ValueError, match="neither"):
            parsers.boolean(text)
    for text in ("0", "1", "nan", "inf", "x"):
        with pytest.raises(ValueError, match="it is not"):
            parsers.number(0, 1)(text)
    with pytest.raises(ValueError, match="a twice"):
        parsers.names("a,b,a")


def test_a_secret_does_not_show_itself() -> None:
    value = Secret("canary")
    shown = f"{value} {value!r} {[value]} {value!s:>20}"
    assert "canary" not in shown
    assert value.reveal() == "canary"
    assert value == Secret("canary")
    assert value != Secret("other")
    assert len({value, Secret("canary")}) == 1
    restored = pickle.loads(pickle.dumps(value))
    assert restored == value


def test_a_bad_secret_does_not_show_in_the_error() -> None:
    def refuse(text: str) -> Secret:
        raise ValueError("it is too short")

    key = ConfigKey(key="k", aliases=("l",), default=Secret(""), parse=refuse, secret=True)
    with pytest.raises(InvalidOptionError) as caught:
        key.read({"k": "canary"})
    assert "canary" not in f"{caught.value} {caught.value!r} {caught.value.facts}"
    with pytest.raises(InvalidOptionError) as caught:
        key.read({"k": "canary", "l": "canary2"})
    assert "canary" not in f"{caught.value} {caught.value!r} {caught.value.facts}"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("fs.s3a.secret.key", True),
        ("fs.s3a.access.key", True),
        ("aws_access_key_id", True),
        ("AWS_SESSION_TOKEN", True),
        ("fs.azure.account.key.me.dfs.core.windows.net", True),
        ("fs.azure.sas.fixed.token", True),
        ("hoodie.table.format.iceberg.catalog.credential", True),
        ("db.password", True),
        ("parquet.encryption.key.list", True),
        ("hoodie.table.recordkey.fields", False),
        ("hoodie.table.keygenerator.type", False),
        ("hoodie.datasource.write.recordkey.field", False),
        ("hoodie.table.schema.last-column-id", False),
        ("hoodie.sastre", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_every_secret_option_is_recognised_by_its_name() -> None:
    for key in ALL_KEYS:
        if key.secret:
            assert all(is_secret_name(name) for name in key.names)
    assert not [name for key in ManagedKeys.keys for name in key.names if is_secret_name(name)], (
        "these are stored"
    )


def test_no_name_is_declared_twice() -> None:
    names = [name for key in (*ALL_KEYS, *ManagedKeys.keys) for name in key.names]
    assert sorted(names) == sorted(set(names))
    assert set(names) == DECLARED_NAMES


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.key)
def test_every_declaration_is_complete(key: ConfigKey[object]) -> None:
    assert key.reason is None or key.reason.endswith(".")
    if key.choices:
        # the default is one of the values a user may give
        assert any(key.read({key.key: choice}) == key.default for choice in key.choices)


@pytest.mark.parametrize("declared", [*OPTIONS, ManagedKeys])
def test_each_option_has_its_meaning_below_it(declared: type[Options]) -> None:
    found = meanings(declared)
    assert found.keys() == declared.by_attribute.keys()
    assert all(text.endswith(".") for text in found.values())


@pytest.mark.parametrize(
    ("declared", "name", "values"),
    [
        (LockConfig, "provider", LOCK_CLASSES),
        (TtlConfig, "strategy_class", STRATEGY_CLASSES),
        (ValidatorsConfig, "kinds", VALIDATOR_CLASSES),
        (SyncConfig, "extractor", Extractor),
    ],
)
def test_what_an_option_may_be_is_named_below_it(
    declared: type[Options], name: str, values: Iterable[str]
) -> None:
    assert ", ".join(f"`{value}`" for value in values) in meanings(declared)[name]


def test_only_what_may_be_none_has_no_default() -> None:
    for one in OPTIONS:
        hints = get_type_hints(one)
        for name, key in one.by_attribute.items():
            if isinstance(key, Option) and key.default is None:
                (held,) = get_args(hints[name])
                assert NoneType in get_args(held), f"{one.__name__}.{name}"


def test_a_deviation_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        ConfigKey(key="k", default="", parse=str, hudi_default="x")


def test_no_member_of_a_table_shows_a_secret(tmp_path: Path) -> None:
    options = {"fs.s3a.secret.key": "canary", "fs.s3a.access.key": "canary"}
    rows = pa.table({"id": [1]})
    made = hudi.Table.create(str(tmp_path / "t"), rows.schema, record_key="id", options=options)
    made.upsert(rows, options=options)
    found, held = made._session.opened.client, repr(made._session.__dict__)
    assert "fs.s3a.secret.key" in held
    assert "canary" not in f"{made.__dict__} {held} {found.__dict__} {found!r} {found.options}"
    assert found.options["fs.s3a.secret.key"] == "canary"
