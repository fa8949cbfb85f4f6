"""The codec of ``hoodie.properties`` against the rules of java.util.Properties."""

from __future__ import annotations

import zlib

import pytest

from hudi_core.config.properties import (
    MAX_BYTES,
    format_properties,
    parse_properties,
    require_whole_properties,
    table_checksum,
)
from hudi_core.errors import ConfigError, CorruptMetadataError, InvalidOptionError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a=b\n", {"a": "b"}),
        (b"a:b\n", {"a": "b"}),
        (b"a b\n", {"a": "b"}),
        (b"a  =  b \n", {"a": "b "}),
        (b"\t a\t:\f b", {"a": "b"}),
        (b"a==b", {"a": "=b"}),
        (b"a = : b", {"a": ": b"}),
        (b"a", {"a": ""}),
        (b"a\\=b=c", {"a=b": "c"}),
        (b"a\\ b c", {"a b": "c"}),
        (b"# x\n!y\n   # z\n\n a=b", {"a": "b"}),
        (b"a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        (b"a=one, \\\n    two\n", {"a": "one, two"}),
        (b"a=one\\\r\n\ttwo", {"a": "onetwo"}),
        (b"a=x\\\n# y", {"a": "x# y"}),
        (b"a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        (b"a=x\\\\\\\n  y", {"a": "x\\y"}),
        (b"a=x\\\n\nb=y", {"a": "x", "b": "y"}),
        (b"# c\\\na=b", {"a": "b"}),
        (b"a=x\\", {"a": "x"}),
        (b"\\\n\n", {}),
        (b"a=\\t\\n\\r\\f\\q\\#", {"a": "\t\n\r\fq#"}),
        (b"a=\\u00e4\\u20AC", {"a": "ä€"}),
        (b"a=\\uD83D\\uDE00", {"a": "\N{GRINNING FACE}"}),
        (b"a=\xe4", {"a": "ä"}),
        # str.splitlines would end lines at these
        (b"a=x\x0by\x1cz\x85", {"a": "x\x0by\x1cz\x85"}),
        (b"", {}),
    ],
)
def test_parses_as_java_loads(data: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(data) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        *((b"a=\\u12", "malformed"), (b"a=\\u12G4", "malformed"), (b"a\\uFF=b", "malformed")),
        *((b"a=\\uD83D", "surrogate"), (b"a=\\uDE00\\uD83D", "surrogate")),
        *((b"a=1\nb=2\na=1\n", "twice"), (b"a=1\n\\u0061=2\n", "twice")),
        (b"#" * (MAX_BYTES + 1), "bytes"),
    ],
)
def test_names_the_damaged_file(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        parse_properties(data, "t/.hoodie/hoodie.properties")
    assert caught.value.path == "t/.hoodie/hoodie.properties"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"a": "b"}, b"a=b\n"),
        ({"a": ""}, b"a=\n"),
        ({"a b:c=d": "x"}, b"a\\ b\\:c\\=d=x\n"),
        ({"a": "  x y "}, b"a=\\  x y \n"),
        ({"a": '{"t":"x#!"}\\'}, b'a={"t"\\:"x\\#\\!"}\\\\\n'),
        ({"a": "ä\N{GRINNING FACE}\x7f\0"}, b"a=\\u00E4\\uD83D\\uDE00\\u007F\\u0000\n"),
        ({"#a": "x", "!b": "y"}, b"\\#a=x\n\\!b=y\n"),
    ],
)
def test_formats_as_java_stores(properties: dict[str, str], expected: bytes) -> None:
    assert format_properties(properties) == expected
    assert parse_properties(expected) == properties


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        *((key, "x", "name") for key in ("", "a\nb", "a\rb", "a\0b")),
        *((key, value, "surrogate") for key, value in (("a", "\ud83d"), ("\ude00", "x"))),
    ],
)
def test_refuses_keys_that_break_lines_and_half_pairs(key: str, value: str, reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        format_properties({key: value})


def test_refuses_to_write_what_it_would_not_read() -> None:
    fits = {"a": "x" * (MAX_BYTES - 3)}
    assert parse_properties(format_properties(fits)) == fits
    with pytest.raises(ConfigError, match="bytes"):
        format_properties({"a": "x" * (MAX_BYTES - 2)})


def test_comments_stay_comments() -> None:
    data = format_properties({"a": "b"}, ["saved\nx=y\\", "ä"])
    assert data == b"#saved\n#x=y\\\n#\\u00E4\na=b\n"
    assert parse_properties(data) == {"a": "b"}


def test_checksum_covers_database_and_name() -> None:
    # tables published by Apache Hudi on Spark, with and without a database
    assert table_checksum("default", "v8_nonpartitioned") == 1908876706
    assert table_checksum(None, "v9_txns_cow_simple_meta_metadata") == 1362276322
    assert table_checksum(None, "ä") == zlib.crc32(".ä".encode())


NAMED = {
    "hoodie.table.name": "t",
    "hoodie.database.name": "d",
    "hoodie.table.checksum": str(table_checksum("d", "t")),
}


def test_whole_properties_pass() -> None:
    require_whole_properties(format_properties(NAMED), NAMED, "p")
    no_newline = format_properties(NAMED)[:-1]
    require_whole_properties(no_newline, parse_properties(no_newline), "p")


@pytest.mark.parametrize("cut", range(1, len(format_properties(NAMED)) - 1))
def test_a_file_cut_off_anywhere_is_damaged(cut: int) -> None:
    data = format_properties(NAMED)[:cut]
    with pytest.raises(CorruptMetadataError):
        require_whole_properties(data, parse_properties(data, "p"), "p")


def test_a_cut_behind_the_checksum_is_seen() -> None:
    # Java writes in hash order: the checksum may come first
    data = format_properties({**dict(reversed(NAMED.items())), "hoodie.z": "value"})[:-3]
    with pytest.raises(CorruptMetadataError, match="cut off"):
        require_whole_properties(data, parse_properties(data), "p")


def test_wrong_checksum_says_the_right_one() -> None:
    damaged = NAMED | {"hoodie.table.checksum": "1"}
    with pytest.raises(CorruptMetadataError, match=str(table_checksum("d", "t"))):
        require_whole_properties(format_properties(damaged), damaged, "p")
