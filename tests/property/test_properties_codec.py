"""Whatever is written to a properties file is read back, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.properties import format_properties, parse_properties
from hudi_core.errors import CorruptMetadataError

_SPECIAL = st.sampled_from(list(" \t\n\r\f\\=:#!uU0é€\x00\x1f\x7f\x85\u2028\N{GRINNING FACE}"))
_TEXT = st.text(st.one_of(_SPECIAL, st.characters(exclude_categories=["Cs"])), max_size=30)
_KEY = _TEXT.filter(lambda text: bool(text) and not set(text) & set("\r\n\0"))


@given(st.dictionaries(_KEY, _TEXT, max_size=8), st.lists(_TEXT, max_size=3))
def test_round_trip_in_order(properties: dict[str, str], comments: list[str]) -> None:
    data = format_properties(properties, comments)
    assert data.isascii()
    assert list(parse_properties(data).items()) == list(properties.items())


@given(st.dictionaries(_KEY, _TEXT, max_size=4), st.sampled_from([b"\r", b"\r\n"]))
def test_line_ends_do_not_matter(properties: dict[str, str], line_end: bytes) -> None:
    data = format_properties(properties).replace(b"\n", line_end)
    assert parse_properties(data) == properties


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_named_damaged(data: bytes) -> None:
    try:
        properties = parse_properties(data)
    except CorruptMetadataError:
        return
    # what was accepted can be stored again, but for keys that no writer may make
    storable = {
        key: value for key, value in properties.items() if key and not set(key) & set("\r\n\0")
    }
    assert parse_properties(format_properties(storable)) == storable


@given(_TEXT, _TEXT)
def test_a_value_never_makes_a_second_key(value: str, other: str) -> None:
    data = format_properties({"first": value, "second": other})
    assert set(parse_properties(data)) == {"first", "second"}
