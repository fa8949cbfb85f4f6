"""Options of formats: their declarations and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.errors import (
    InvalidOptionError,
    OptionConflictError,
    PluginContractError,
    UnknownOptionWarning,
)
from hudi_core.services.opening import open_table
from hudi_core.spi import FormatOption
from tests.formats.two_steps import SCHEMA
from tests.formats.wrong_format import FAULTS
from tests.formats.wrong_plugins.wrong_tables import KEYS, PREFIX, WRONG, create, gives

# --- options --------------------------------------------------------------------------------------


def test_a_bad_value_is_refused_before_the_first_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{PREFIX}pace='quick'.*Supported: slow, fast"):
        create(tmp_path / "t", pace="quick")
    with pytest.raises(InvalidOptionError, match=rf"{PREFIX}tries='x'"):
        create(tmp_path / "t", tries="x")
    assert not (tmp_path / "t").exists()


def test_a_value_that_is_to_be_kept_is_kept(tmp_path: Path) -> None:
    made = create(tmp_path / "t", pace="FAST", tries="7")
    assert made.config.raw[f"{PREFIX}pace"] == "FAST"
    assert f"{PREFIX}tries" not in made.config.raw
    client = open_table(made.path, {}).client
    pace = FormatOption("pace", "slow", str, "How fast.", ("slow", "fast"))
    assert pace.read(client) == "fast"
    assert FormatOption("tries", 3, int, "How often.").read(client) == 3
    with pytest.raises(OptionConflictError, match="contradicts the table"):
        hudi.Table.open(made.path, {f"{PREFIX}pace": "slow"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("trie", "no effect; did you mean hoodie.table.format.wrong.tries?"),
        ("nonsense", "is not a known option of the wrong format and has no effect."),
        ("engine.kin", "format; did you mean hoodie.table.format.wrong.engine.kind?"),
    ],
)
def test_a_name_that_is_not_declared_is_warned_of(name: str, said: str, tmp_path: Path) -> None:
    with pytest.warns(UnknownOptionWarning) as caught:
        create(tmp_path / "t", **{name: "1"})
    assert said in {
        str(one.message).removeprefix(f"{PREFIX}{name}")[-len(said) :] for one in caught
    }


def test_what_is_passed_on_is_not_warned_of(tmp_path: Path) -> None:
    create(tmp_path / "t", **{"engine.speed": "1", "location": f"{tmp_path}/t/.hoodie/toy"})


def test_options_of_a_format_that_declares_none_are_its_own(tmp_path: Path) -> None:
    options = {**WRONG, **KEYS, "hoodie.table.format": "toy", "hoodie.table.format.toy.any": "1"}
    hudi.Table.create(str(tmp_path / "t"), SCHEMA, options=options)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (7, "get_options returned a int"),
        (["pace"], "get_options returned a str, not a sequence of FormatOption"),
        ([FormatOption("a b", "", str, "")], "'a b', which is no name"),
        ([FormatOption("a", "", str, "")] * 2, "declares 'a' twice"),
        ([FormatOption("token", "", str, "", is_stored=True)], "as stored, which cannot be"),
    ],
)
def test_what_is_no_declaration(declared: Any, said: str, tmp_path: Path) -> None:
    FAULTS["get_options"] = gives(declared)
    with pytest.raises(PluginContractError, match=said):
        create(tmp_path / "t", pace="slow")


def test_a_value_that_a_table_holds_and_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    made = create(tmp_path / "t", pace="fast")
    option = FormatOption("pace", "slow", str, "How fast.", ("gentle",))
    with pytest.raises(InvalidOptionError, match=rf"{PREFIX}pace='fast'.*Supported: gentle"):
        option.read(open_table(made.path, {}).client)
