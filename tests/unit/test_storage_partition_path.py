"""Partition values as folders: what Hudi writes, and what is refused."""

from __future__ import annotations

import pytest

from hudi_core.errors import PartitionValueError, UnsafePathError
from hudi_core.storage.partition_path import PartitionPathCodec, require_not_nested

NULL = "__HIVE_DEFAULT_PARTITION__"


def codec(
    *fields: str, hive: bool = False, url: bool = False, takes_empty: bool = True
) -> PartitionPathCodec:
    return PartitionPathCodec(fields, hive, url, takes_empty=takes_empty)


@pytest.mark.parametrize(
    ("hive", "url", "value", "path"),
    [
        (False, False, "us", "us"),
        (True, False, "us", "region=us"),
        (False, True, "us", "us"),
        (True, True, "us", "region=us"),
        (False, False, None, NULL),
        (True, True, None, f"region={NULL}"),
        # what stays as it is without encoding
        (False, False, "2026-01-31 10:20:30.5", "2026-01-31 10:20:30.5"),
        (False, False, "a=b 100% é", "a=b 100% é"),
        (True, False, "100%25 é", "region=100%25 é"),
        (True, False, ".x", "region=.x"),
        (True, False, "_x", "region=_x"),
        (False, False, "2026/01/31", "2026/01/31"),
        (True, False, "2026/01/31", "region=2026/01/31"),
        (True, False, "_a/_b", "region=_a/_b"),
        (False, False, "2026/_x", "2026/_x"),
        (False, False, "default", "default"),
        # the characters that Hive escapes, as Hudi's PartitionPathEncodeUtils writes them
        (False, True, "a/b", "a%2Fb"),
        (True, True, "a/b=c", "region=a%2Fb%3Dc"),
        (False, True, "\"#%'*:?\\{[]^\x7f\n\x01", "%22%23%25%27%2A%3A%3F%5C%7B%5B%5D%5E%7F%0A%01"),
        (False, True, "a b+é}~$&,;@!()`|<>.-_", "a b+é}~$&,;@!()`|<>.-_"),
        (False, True, "\x85\xa0", "\x85\xa0"),
        # and a first character that would hide the folder
        (False, True, ".", "%2E"),
        (False, True, "..", "%2E."),
        (False, True, "_x", "%5Fx"),
        (False, True, ".hoodie", "%2Ehoodie"),
        (True, True, "..", "region=.."),
        (True, True, "_x", "region=_x"),
    ],
)
def test_one_value_and_back(hive: bool, url: bool, value: str | None, path: str) -> None:
    subject = codec("region", hive=hive, url=url)
    assert subject.encode([value]) == path
    assert subject.decode(path) == (value,)


def test_several_fields_and_none() -> None:
    assert codec("a", "b").encode(["1", None]) == f"1/{NULL}"
    assert codec("a", "b", hive=True).encode(["1", "2"]) == "a=1/b=2"
    assert codec("a", "b", hive=True).decode("a=1/b=x=y") == ("1", "x=y")
    assert codec("a", "b").encode(["1", "_x"]) == "1/_x"
    assert codec("a.b", hive=True).encode(["1"]) == "a.b=1"
    assert codec("a", "b", hive=True).encode(["1/2", "3/4"]) == "a=1/2/b=3/4"
    assert codec("a", "b", hive=True).decode("a=1/2/b=3/4") == ("1/2", "3/4")
    assert codec("a", "a", hive=True).decode("a=1/a=2/3") == ("1", "2/3")
    assert codec().encode([]) == ""
    assert codec().decode("") == ()


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("url", [False, True])
@pytest.mark.parametrize(
    ("value", "reason"), [(NULL, "nulls"), ("a\0b", "NUL"), ("\ud800", "Unicode")]
)
def test_values_that_nothing_can_save(hive: bool, url: bool, value: str, reason: str) -> None:
    with pytest.raises(PartitionValueError, match=f"'region'.*{reason}") as caught:
        codec("region", hive=hive, url=url).encode([value])
    assert caught.value.facts["value"] == value
    assert "null" in caught.value.hint


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("url", [False, True])
def test_the_empty_text_shares_the_folder_of_null(hive: bool, url: bool) -> None:
    subject = codec("region", hive=hive, url=url)
    assert subject.encode([""]) == subject.encode([None])
    assert subject.decode(subject.encode([""])) == (None,)
    with pytest.raises(PartitionValueError, match=r"''.*'region'.*empty.*null"):
        codec("region", hive=hive, url=url, takes_empty=False).encode([""])


PLAIN = [
    "..",
    ".",
    "../../escape",
    "a/../b",
    "a/./b",
    "/a",
    "a/",
    "a//b",
    "/",
    ".hoodie",
    ".x",
    "a/.x",
    "_delta_log",
    "_x",
    "a\nb",
    "\x7f",
    "a\\..\\b",
    f"a/{NULL}",
]


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_that_are_no_visible_folder_below_the_table(value: str) -> None:
    with pytest.raises(PartitionValueError) as caught:
        codec("region").encode([value])
    assert repr(value) in str(caught.value)
    assert "hoodie.datasource.write.partitionpath.urlencode=true" in str(caught.value)
    # the way out that the error names is one
    assert codec("region", url=True).decode(codec("region", url=True).encode([value])) == (value,)


@pytest.mark.parametrize("value", ["a/b=c", "a=b", "a\\b", "\t", "../x", "..", ".", "a/.b", "/a"])
def test_plain_values_that_hive_style_cannot_hold(value: str) -> None:
    with pytest.raises(PartitionValueError, match="urlencode=true"):
        codec("region", hive=True).encode([value])
    encoded = codec("region", hive=True, url=True)
    assert encoded.decode(encoded.encode([value])) == (value,)


def test_a_slash_needs_a_table_with_one_partition_field() -> None:
    with pytest.raises(PartitionValueError, match="one more level"):
        codec("a", "b").encode(["1/2", "3"])


@pytest.mark.parametrize(
    ("hive", "url", "value"),
    [
        (False, False, "x" * 256),
        (True, False, "x" * 249),
        (False, False, "é" * 128),
        (False, True, "/" * 86),
        (False, False, "a/" + "x" * 256),
    ],
)
def test_names_longer_than_file_systems_take(hive: bool, url: bool, value: str) -> None:
    with pytest.raises(PartitionValueError, match="bytes of 255"):
        codec("region", hive=hive, url=url).encode([value])
    shorter = value[:-1]
    assert codec("region", hive=hive, url=url).encode([shorter])


def test_a_field_that_cannot_be_part_of_a_name() -> None:
    for field in ("a/b", "a\nb"):
        with pytest.raises(PartitionValueError, match="Rename the column"):
            codec(field, hive=True).encode(["1"])
        assert codec(field).encode(["1"]) == "1"


def test_as_many_values_as_fields() -> None:
    with pytest.raises(PartitionValueError, match=r"2 values.*a"):
        codec("a").encode(["1", "2"])


@pytest.mark.parametrize(
    ("fields", "hive", "path"),
    [
        (("a",), True, "b=1"),
        (("a",), True, "a="),
        (("a",), True, "1"),
        (("a",), False, ""),
        (("a", "b"), False, "1"),
        (("a", "b"), False, "1/2/3"),
        (("a", "b"), True, "b=1/a=2"),
        (("a", "b"), True, "x/a=1/b=2"),
        (("a", "b"), True, "a=1/2/3"),
        ((), False, "x"),
    ],
)
def test_paths_of_another_form(fields: tuple[str, ...], hive: bool, path: str) -> None:
    with pytest.raises(PartitionValueError, match="not a"):
        codec(*fields, hive=hive).decode(path)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../b", "a//b"])
def test_paths_that_leave_the_table(path: str) -> None:
    with pytest.raises(UnsafePathError):
        codec("a", "b").decode(path)


def test_what_other_writers_leave_is_read() -> None:
    assert codec("day", hive=True).decode("day=2026/01/31") == ("2026/01/31",)
    assert codec("day", url=True).decode("2026%2f01/x%zz") == ("2026/01/x%zz",)
    assert codec("day").decode("a%2Fb") == ("a%2Fb",)


@pytest.mark.parametrize(
    "paths",
    [["a", "a/b"], ["a/b/c", "x", "a"], ["a", "a!", "a/b"], ["", "2026", "2025", "2026/01"]],
)
def test_partitions_within_partitions_are_refused(paths: list[str]) -> None:
    with pytest.raises(PartitionValueError, match="would lie within"):
        require_not_nested(paths)


@pytest.mark.parametrize("paths", [[], [""], ["a", "b"], ["a/b", "a/c", "ab"], ["a", "a"]])
def test_partitions_beside_each_other_are_fine(paths: list[str]) -> None:
    require_not_nested(paths)
