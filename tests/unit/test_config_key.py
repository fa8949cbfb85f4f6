"""Declarations of options: parsing, aliases, choices, secrets, and their pages."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Self

import pytest

from hudi_core.config import parsers
from hudi_core.config.catalog import ALL_KEYS, DECLARED_NAMES, known_names
from hudi_core.config.docs import deviations, main, render
from hudi_core.config.key import ConfigKey, Group, Secret, is_secret_name
from hudi_core.config.options import Option, Options
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import InvalidOptionError
from hudi_core.plugin import option_page
from tests.tables import new_table, rows

OLD, TO_TEN = ("hoodie.old.size",), parsers.integer(1, 10)
SIZE = ConfigKey("hoodie.size", aliases=OLD, default=7, parse=TO_TEN, doc="A size.")
COLOUR = ConfigKey("hoodie.colour", default="RED", parse=str, choices=("RED", "BLUE"), doc="C.")


def test_default_key_and_alias() -> None:
    assert SIZE.read({}) == 7
    assert SIZE.read({"hoodie.size": " 3 "}) == 3
    assert SIZE.read({"hoodie.old.size": "4"}) == 4
    assert SIZE.read({"hoodie.old.size": "4", "hoodie.size": "4"}) == 4
    assert SIZE.is_given({"hoodie.old.size": "4"})
    assert not SIZE.is_given({"hoodie.siz": "4"})
    with pytest.raises(InvalidOptionError, match=r"hoodie\.size='3' names the same option"):
        SIZE.read({"hoodie.old.size": "4", "hoodie.size": "3"})


class Shape(Options, group=Group.WRITE):
    """An example of what options describe."""

    size: Option[int] = Option(
        "hoodie.size", default=7, parse=parsers.integer(1), doc="A size.", aliases=("size",)
    )
    colour = ConfigKey("hoodie.colour", default="RED", parse=str, doc="A colour.")
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

    key = ConfigKey("k", aliases=("l",), default=Secret(""), parse=refuse, doc="", secret=True)
    for given in ({"k": "canary"}, {"k": "canary", "l": "canary2"}):
        with pytest.raises(InvalidOptionError) as caught:
            key.read(given)
        assert "canary" not in f"{caught.value} {caught.value!r} {caught.value.facts}"


@pytest.mark.parametrize(
    ("secret", "names"),
    [
        (True, "fs.s3a.secret.key fs.s3a.access.key aws_access_key_id AWS_SESSION_TOKEN"),
        (True, "fs.azure.account.key.me.dfs.core.windows.net fs.azure.sas.fixed.token db.password"),
        (True, "hoodie.table.format.iceberg.catalog.credential parquet.encryption.key.list"),
        (False, "hoodie.table.recordkey.fields hoodie.table.keygenerator.type hoodie.sastre"),
        (False, "hoodie.datasource.write.recordkey.field hoodie.table.schema.last-column-id"),
    ],
)
def test_names_of_secrets(secret: bool, names: str) -> None:
    assert [is_secret_name(name) for name in names.split()] == [secret] * len(names.split())


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
    assert key.doc.endswith(".")
    assert key.reason is None or key.reason.endswith(".")
    if key.choices:
        # the default is one of the values a user may give
        assert any(key.read({key.key: choice}) == key.default for choice in key.choices)
    # deviations are listed with their reasons
    assert (f"| `{key.key}` |" in deviations()) is (key.hudi_default is not None)
    assert not key.reason or key.reason in deviations()


def test_a_deviation_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        ConfigKey(key="k", default="", parse=str, doc="", hudi_default="x")


def test_no_member_of_a_table_shows_a_secret(tmp_path: Path) -> None:
    options = {"fs.s3a.secret.key": "canary", "fs.s3a.access.key": "canary"}
    made = new_table(tmp_path / "t", rows(1).schema, options)
    made.upsert(rows(1), options=options)
    found, held = made._session.opened.client, repr(made._session.__dict__)
    assert "fs.s3a.secret.key" in held
    assert "canary" not in f"{made.__dict__} {held} {found.__dict__} {found!r} {found.options}"
    assert found.options["fs.s3a.secret.key"] == "canary"


DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_references_are_fresh() -> None:
    advice = "run `python -m hudi_core.config.docs` in the repository's root"
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == render(), advice
    by_hand = (DOCS / "deviations.md").read_text(encoding="utf-8")
    assert by_hand.endswith(f"\n\n{deviations()}"), advice
    advice = "run `python -m hudi_core.plugin.option_page` in the repository's root"
    assert (DOCS / "formats.md").read_text(encoding="utf-8") == option_page.render(), advice


def test_every_name_is_listed() -> None:
    text = render()
    assert not [name for name in known_names() if f"`{name}`" not in text]


def test_the_known_deviations_are_among_them() -> None:
    known = (
        "hoodie.write.table.version hoodie.table.timeline.timezone hoodie.index.bloom.num_entries"
    )
    known += " hoodie.parquet.compression.codec parquet.compression.codec.zstd.level"
    known += " hoodie.fs.fsync hoodie.write.lock.provider"
    assert [name for name in known.split() if f"`{name}`" not in deviations()] == []


def test_tables_are_well_formed() -> None:
    for block in render().split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        widths = {line.replace("\\|", "").count("|") for line in rows}
        assert len(widths) <= 1, rows[0]


def test_the_generator_keeps_what_is_written_by_hand(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    by_hand = docs / "deviations.md"
    by_hand.write_text("# By hand\n\n## Defaults of options\nold\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "hudi_core.config.docs"], cwd=tmp_path, check=True)
    assert (docs / "configuration.md").read_text(encoding="utf-8") == render()
    expected = f"# By hand\n\n{deviations()}"
    assert by_hand.read_text(encoding="utf-8") == expected
    assert main([str(docs)]) == 0
    assert by_hand.read_text(encoding="utf-8") == expected
