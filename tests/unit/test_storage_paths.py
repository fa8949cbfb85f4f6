"""Where tables, partitions and data files are, and who may know it."""

from __future__ import annotations

import ast
import copy
import itertools
import pickle
import random
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

import hudi_core as hudi
from hudi_core.config.options import Secret
from hudi_core.config.placement import Placement, placement_of
from hudi_core.errors import (
    InvalidOptionError,
    PartitionValueError,
    StorageError,
    UnknownExtensionError,
    UnsafePathError,
)
from hudi_core.storage import data_files
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.layout import FederatedLayout, Place, PlainLayout, StorageLayout, layout_of
from hudi_core.storage.location import Location, StoreKind, location_of, parse_location
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.partition_path import PartitionPathCodec, require_not_nested
from hudi_core.storage.posix import PosixStorage
from tests.federated_tables import Store, is_data, many, ordered, placed_table, states
from tests.tables import FORMATS

BASE = "s3://tables/trips"
ROOT = "s3://data"
PATHS = [
    "f0-0_1-2-3_20260101000000000.parquet",
    "city=a/f0-0_1-2-3_20260101000000000.parquet",
    "city=a/day=1/f1-0_1-2-3_20260101000000000.parquet",
    "city=a/.f0-0_20260101000000000.log.1_0-22-26",
]
STAYING = [
    ".hoodie/hoodie.properties",
    ".hoodie/metadata/files/f0-0_1-2-3_20260101000000000.hfile",
    ".hoodie_partition_metadata",
    "city=a/.hoodie_partition_metadata",
    "city=a/README",
]


def federated(**options: str) -> StorageLayout:
    made = placement_of(
        {"hoodie.storage.path": ROOT, "hoodie.storage.strategy.class": "object_store"}
        | {f"hoodie.storage.{name.replace('__', '.')}": value for name, value in options.items()}
    )
    return layout_of(BASE, "trips", made)


@pytest.mark.parametrize("path", [*PATHS, *STAYING])
def test_by_default_everything_is_in_the_table_folder(path: str) -> None:
    layout = layout_of(BASE, "trips", Placement())
    assert isinstance(layout, PlainLayout)
    assert layout.place(path) == Place(BASE, path)
    assert layout.logical(Place(BASE, path)) == path
    assert layout.logical(Place(ROOT, path)) is None


@pytest.mark.parametrize("path", PATHS)
def test_data_files_are_below_a_prefix_and_the_table_name(path: str) -> None:
    layout = federated()
    place = layout.place(path)
    assert place.root == ROOT
    assert re.fullmatch(f"[0-9a-f]{{2}}/trips/{re.escape(path)}", place.path)
    assert layout.logical(place) == path


@pytest.mark.parametrize("path", STAYING)
def test_metadata_stays_in_the_table_folder(path: str) -> None:
    layout = federated()
    assert layout.place(path) == Place(BASE, path)
    assert layout.logical(Place(BASE, path)) == path


def test_a_base_file_and_its_logs_share_a_prefix() -> None:
    for options in ({}, {"strategy__hash__input": "partition_and_file_id"}):
        layout = federated(**options)
        base, log = (layout.place(PATHS[n]).path.partition("/")[0] for n in (1, 3))
        assert base == log


def test_partitions_share_a_prefix_only_where_the_file_id_alone_counts() -> None:
    name = PATHS[0]
    many = [f"city={number}/{name}" for number in range(40)]
    for form, prefixes in (("FILE_ID", 1), ("PARTITION_AND_FILE_ID", 20)):
        layout = federated(strategy__hash__input=form)
        found = {path.partition("/")[0] for run in layout.runs(many) for path in run.paths}
        assert len(found) >= prefixes
        assert (len(found) == 1) is (form == "FILE_ID")


@pytest.mark.parametrize(("bits", "digits"), [("1", 1), ("8", 2), ("10", 3), ("16", 4), ("32", 8)])
def test_bits_decide_how_long_a_prefix_is(bits: str, digits: int) -> None:
    for function in ("xxhash32", "xxhash64"):
        layout = federated(strategy__hash__bits=bits, strategy__hash__function=function)
        prefix = layout.place(PATHS[0]).path.partition("/")[0]
        assert re.fullmatch(f"[0-9a-f]{{{digits}}}", prefix)
        assert int(prefix, 16) < 1 << int(bits)


def test_with_all_bits_a_prefix_is_the_hash_itself() -> None:
    # the test vector of xxHash's specification: XXH32 of nothing, with seed 0, is 02cc5d05
    layout = federated(strategy__hash__bits="32")
    assert isinstance(layout, FederatedLayout)
    assert layout.strategy.location("", "") == "02cc5d05"
    assert layout.strategy.location("city=a", "") == "02cc5d05"
    # and XXH64 of nothing is ef46db3751d8e999
    layout = federated(strategy__hash__bits="64", strategy__hash__function="XXHASH64")
    assert isinstance(layout, FederatedLayout)
    assert layout.strategy.location("", "") == "ef46db3751d8e999"
    assert layout.logical(layout.place(PATHS[0])) == PATHS[0]


def test_a_file_under_another_prefix_is_not_the_tables() -> None:
    layout = federated()
    place = layout.place(PATHS[1])
    prefix, _, below = place.path.partition("/")
    other = f"{(int(prefix, 16) + 1) % 256:02x}"
    assert layout.logical(Place(ROOT, f"{other}/{below}")) is None
    assert layout.logical(Place(ROOT, place.path.replace("trips", "rides"))) is None
    assert layout.logical(Place(BASE, PATHS[1])) is None
    assert layout.logical(Place("s3://elsewhere", place.path)) is None
    assert layout.logical(Place(ROOT, f"{prefix}/trips")) is None


def test_partitions_have_the_root_of_the_first_pattern_that_matches() -> None:
    layout = federated(
        path="s3://data,s3://us,s3://eu",
        path__partitions="country=us* -> s3://us ; country=?e -> s3://eu; country=* -> s3://us",
    )
    name = PATHS[0]
    roots = {
        "country=usa": "s3://us",
        "country=de": "s3://eu",
        "country=fr/x=1": "s3://us",
        "": ROOT,
        "city=a": ROOT,
    }
    for partition, root in roots.items():
        path = f"{partition}/{name}" if partition else name
        assert layout.place(path).root == root
        assert layout.logical(layout.place(path)) == path
        # below another root it is nobody's
        other = next(one for one in layout.roots if one != root)
        assert layout.logical(Place(other, layout.place(path).path)) is None


def test_layouts_cross_to_other_processes() -> None:
    layout = federated(strategy__hash__bits="12", path__partitions="")
    layout.place(PATHS[1])
    again: StorageLayout = pickle.loads(pickle.dumps(layout))
    assert again.runs(PATHS) == layout.runs(PATHS)


@pytest.mark.parametrize("layout", [layout_of(BASE, "trips", Placement()), federated()])
@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../../x_1", "../x_1", "a//b", "a/b_1\0", "/a_1", "a_1/.."],
)
def test_paths_never_leave_the_table(layout: StorageLayout, path: str) -> None:
    with pytest.raises(UnsafePathError):
        layout.place(path)
    for count in (1, 9):
        with pytest.raises(UnsafePathError):
            layout.runs([path] * count)
    with pytest.raises(UnsafePathError):
        layout.logical(Place(layout.roots[0], path or ""))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("default", "default"),
        ("HoodieDefaultStorageStrategy", "default"),
        ("org.apache.hudi.common.storage.HoodieDefaultStorageStrategy", "default"),
        ("object_store", "object_store"),
        ("Object_Store", "object_store"),
        ("HoodieObjectStorageStrategy", "object_store"),
        ("org.apache.hudi.storage.HoodieObjectStorageStrategy", "object_store"),
    ],
)
def test_names_of_hudi_stand_for_ours(name: str, found: str) -> None:
    options = {"hoodie.storage.strategy.class": name, "hoodie.storage.path": ROOT}
    assert placement_of(options).strategy == found


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"strategy.class": "object_store"}, "needs a storage path"),
        ({"path": "data"}, "neither an absolute path nor a URI"),
        ({"path": "s3://a,s3://a/"}, "twice"),
        ({"path": "s3://a,s3://b"}, "nothing says which partitions lie below s3://b"),
        ({"path": "s3://a", "path.partitions": "x* -> s3://c"}, "s3://c is not among"),
        ({"path": "s3://a", "path.partitions": "x*"}, "PATTERN -> PATH"),
        ({"path": "s3://a", "path.partitions": "-> s3://a"}, "PATTERN -> PATH"),
        ({"path": "s3://a", "strategy.class": "x", "strategy.secret.key": "1"}, "no secret"),
        *(
            ({"path": ROOT, "strategy.class": name}, "name")  # no class is loaded
            for name in (
                *("os.system", "com.evil.Strategy", "com.evil.HoodieObjectStorageStrategy"),
                *("", "a:b", "\u212a"),
            )
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        placement_of({f"hoodie.storage.{name}": value for name, value in options.items()})


@pytest.mark.parametrize(
    "option",
    [
        ("hash.bits", "0"),
        ("hash.bits", "33"),  # of the function with 32
        ("hash.bits", "65"),
        ("hash.function", "md5"),
        ("bucket", "1"),
    ],
)
def test_options_of_object_store_are_checked(option: tuple[str, str]) -> None:
    name, value = option
    with pytest.raises(InvalidOptionError, match=name.replace(".", r"\.")):
        federated(**{f"strategy__{name.replace('.', '__')}": value})


def test_what_is_stored_is_read_again() -> None:
    placement = placement_of({"hoodie.storage.strategy.class": "far", "hoodie.storage.path": ROOT})
    with pytest.raises(UnknownExtensionError, match=r"'far'.*object_store"):
        layout_of(BASE, "trips", placement)
    options = {
        "hoodie.storage.strategy.class": "object_store",
        "hoodie.storage.path": "s3://a,/mnt/b/",
        "hoodie.storage.path.partitions": "x=1* -> /mnt/b",
        "hoodie.storage.strategy.hash.bits": "4",
    }
    placement = placement_of(options)
    stored = {key: value for key, value in placement.properties.items() if value is not None}
    assert placement_of(stored) == placement
    assert placement.paths == ("s3://a", "/mnt/b")


def places(layout: StorageLayout, paths: list[str]) -> list[Place]:
    """Where files are, asked for all at once."""
    return [Place(run.root, path) for run in layout.runs(paths) for path in run.paths]


@pytest.mark.parametrize("function", ["XXHASH32", "XXHASH64"])
@pytest.mark.parametrize("form", ["FILE_ID", "PARTITION_AND_FILE_ID"])
def test_files_spread_evenly_over_the_prefixes(function: str, form: str) -> None:
    seeds = random.Random(60)
    layout = federated(strategy__hash__function=function, strategy__hash__input=form)
    files, prefixes = 25_600, 256
    paths = [
        f"day={n % 7}/{uuid.UUID(int=seeds.getrandbits(128), version=4)}-0_0-0-0_2026.parquet"
        for n in range(files)
    ]
    counts = dict.fromkeys((f"{n:02x}" for n in range(prefixes)), 0)
    for place in places(layout, paths):
        counts[place.path.partition("/")[0]] += 1
    expected = files / prefixes
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    # the 0.1 % and 99.9 % points of the distribution with 255 degrees of freedom
    assert 188.0 < chi_square < 330.5


def test_many_paths_are_placed_as_each_of_them() -> None:
    logs = [f"city=a/.f{n}-0_20260101000000000.log.1_0-22-26" for n in range(5)]
    bases = [f"city=b/f{n}-0_1-2-3_20260101000000000.parquet" for n in range(9)]
    flat = [f"f{n}-0_1-2-3_20260101000000000.parquet" for n in range(9)]
    two_roots = {"path": "s3://data,s3://us", "path__partitions": "city=b -> s3://us"}
    for options in ({}, {"strategy__hash__input": "PARTITION_AND_FILE_ID"}, two_roots):
        layout = federated(**options)
        for paths in (logs, bases, flat, [*STAYING, *bases, *PATHS, *flat, *logs, *STAYING]):
            assert places(layout, paths) == [layout.place(path) for path in paths]
            roots = [run.root for run in layout.runs(paths)]
            assert all(one != other for one, other in itertools.pairwise(roots))
    for bad in ("/f_1", "city=b/f_1\0", "city=b/../f_1", "city=b//f_1"):
        with pytest.raises(UnsafePathError):
            federated().runs([*flat, *bases, *[bad] * 5])


# --- partition values as folders: what Hudi writes, and what is refused
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
    *("..", ".", "../../escape", "a/../b", "a/./b", "/a", "a/", "a//b", "/", ".hoodie", ".x"),
    *("a/.x", "_delta_log", "_x", "a\nb", "\x7f", "a\\..\\b", f"a/{NULL}"),
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


@pytest.mark.parametrize(
    ("hive", "url", "value"),
    [
        *((False, False, "x" * 256), (True, False, "x" * 249), (False, False, "é" * 128)),
        *((False, True, "/" * 86), (False, False, "a/" + "x" * 256)),
    ],
)
def test_names_longer_than_file_systems_take(hive: bool, url: bool, value: str) -> None:
    subject = codec("region", hive=hive, url=url)
    with pytest.raises(PartitionValueError, match="bytes of 255"):
        subject.encode([value])
    assert subject.encode([value[:-1]])


def test_values_and_fields_that_are_no_names() -> None:
    with pytest.raises(PartitionValueError, match="one more level"):
        codec("a", "b").encode(["1/2", "3"])
    with pytest.raises(PartitionValueError, match=r"2 values.*a"):
        codec("a").encode(["1", "2"])
    for field in ("a/b", "a\nb"):
        with pytest.raises(PartitionValueError, match="Rename the column"):
            codec(field, hive=True).encode(["1"])
        assert codec(field).encode(["1"]) == "1"


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


# --- paths and URIs of tables, and what they open
@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/data/t", Location(StoreKind.LOCAL, "/data/t", "", "/data/t")),
        ("/data/../t//x/", Location(StoreKind.LOCAL, "/t/x", "", "/t/x")),
        ("file:///data/a%20b", Location(StoreKind.LOCAL, "/data/a%20b", "", "/data/a%20b")),
        ("file:/data/t", Location(StoreKind.LOCAL, "/data/t", "", "/data/t")),
        ("s3://lake/a/t/", Location(StoreKind.S3, "s3://lake/a/t", "lake", "a/t")),
        ("S3A://lake/t", Location(StoreKind.S3, "S3A://lake/t", "lake", "t")),
        ("s3n://lake", Location(StoreKind.S3, "s3n://lake", "lake", "")),
        ("gs://lake/t?x#y", Location(StoreKind.GCS, "gs://lake/t?x#y", "lake", "t?x#y")),
        ("memory://m/t", Location(StoreKind.MEMORY, "memory://m/t", "m", "t")),
        ("az://box/t", Location(StoreKind.AZURE, "az://box/t", "box", "t")),
        (
            "abfss://box@acme.dfs.core.windows.net/t",
            Location(
                StoreKind.AZURE, "abfss://box@acme.dfs.core.windows.net/t", "box", "t", "acme"
            ),
        ),
    ],
)
def test_where_a_path_leads(uri: str, expected: Location) -> None:
    assert parse_location(uri) == expected


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_location("a/t").uri == f"{tmp_path}/a/t"
    assert open_storage("a/t").root == f"{tmp_path}/a/t"


def test_a_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert location_of("~/lake/t") == f"{tmp_path}/lake/t"
    assert location_of(Path("~/lake/t")) == f"{tmp_path}/lake/t"
    assert location_of("file:~/t") == f"{tmp_path}/t"
    assert location_of("~") == str(tmp_path)
    # inside a path, and in a store, it is a character
    monkeypatch.chdir(tmp_path)
    assert location_of("./~/t") == f"{tmp_path}/~/t"
    assert location_of("a~b") == f"{tmp_path}/a~b"
    assert location_of("s3://lake/~/t") == "s3://lake/~/t"


def test_a_folder_may_have_a_colon(tmp_path: Path) -> None:
    assert location_of(Path(f"{tmp_path}/a:/b")) == f"{tmp_path}/a:/b"


@pytest.mark.parametrize(
    "uri", ["s3://key:secret-canary@lake/t", "s3:///t", "s3://", "s3://@lake/t", "gs://a b/t"]
)
def test_a_uri_without_a_bucket_is_not_repeated(uri: str) -> None:
    with pytest.raises(StorageError, match="does not name a bucket") as caught:
        parse_location(uri)
    assert "canary" not in str(caught.value) + repr(caught.value.facts)


@pytest.mark.parametrize(
    "place",
    [
        *("", "file://host/t", "/a\0b", "s3://lake/a/../b", "s3://lake/a//b"),
        *(Path("s3://lake/t"), Path("gs://lake/t"), 5, None),
    ],
)
def test_unsafe_places_and_what_is_no_path_are_refused(place: Any) -> None:
    with pytest.raises(UnsafePathError):
        location_of(place)
    if isinstance(place, str):
        with pytest.raises(UnsafePathError):
            parse_location(place)


def test_the_scheme_picks_the_storage() -> None:
    with pytest.raises(StorageError, match=r"hdfs:// are not supported.*s3a://"):
        parse_location("hdfs://host/t")
    with pytest.raises(StorageError, match="memory"):
        data_filesystem("memory://m/t")
    assert isinstance(open_storage("/t"), PosixStorage)
    assert isinstance(open_storage("file:///t"), PosixStorage)
    assert open_storage("file:///t/").root == "/t"
    assert isinstance(open_storage("s3a://lake/t"), ObjectStorage)
    assert open_storage("s3a://lake/t/").root == "s3a://lake/t"


def test_data_files_have_a_file_system_and_a_root(tmp_path: Path) -> None:
    filesystem, root = data_filesystem(f"file://{tmp_path}/t/", StorageOptions())
    assert isinstance(filesystem, pafs.LocalFileSystem)
    assert root == f"{tmp_path}/t"

    options = StorageOptions.from_options(
        {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.endpoint.region": "x-1"}, {}
    )
    filesystem, root = data_filesystem("s3a://lake/a/t/", options)
    assert isinstance(filesystem, pafs.S3FileSystem)
    assert filesystem.region == "x-1"
    assert root == "lake/a/t"
    assert data_filesystem("s3://lake", options) == (filesystem, "lake")
    assert data_filesystem("s3://other/t", options)[0] is filesystem


def test_a_key_file_that_pyarrow_would_not_use_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    options = StorageOptions(gcs_key_file="/keys/one.json")
    with pytest.raises(InvalidOptionError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        data_filesystem("gs://lake/t", options)


# --- options of stores: one test per key and client, and secrets that stay secret
KEYS = {"fs.s3a.access.key": "id-canary", "fs.s3a.secret.key": "secret-canary"}


def options(given: dict[str, str], environment: dict[str, str] | None = None) -> StorageOptions:
    return StorageOptions.from_options(given, environment or {})


def obstore_s3(given: StorageOptions) -> dict[str, Any]:
    return given.for_obstore(StoreKind.S3, "lake")


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"fs.s3a.endpoint": "http://h:1"}, "s3_endpoint", "http://h:1"),
        ({"fs.s3a.endpoint": "h:1"}, "s3_endpoint", "https://h:1"),
        (
            {"fs.s3a.endpoint": "h:1", "fs.s3a.connection.ssl.enabled": "false"},
            "s3_endpoint",
            "http://h:1",
        ),
        ({"aws_endpoint_url": "http://h:1"}, "s3_endpoint", "http://h:1"),
        ({"fs.s3a.endpoint.region": "eu-1"}, "s3_region", "eu-1"),
        ({"aws_region": "eu-1"}, "s3_region", "eu-1"),
        ({"fs.s3a.path.style.access": "true"}, "s3_path_style", True),
        ({"fs.s3a.encryption.algorithm": "AES256"}, "s3_encryption", "AES256"),
        ({"fs.s3a.encryption.algorithm": "sse-kms"}, "s3_encryption", "aws:kms"),
        ({"fs.s3a.server-side-encryption-algorithm": "DSSE-KMS"}, "s3_encryption", "aws:kms:dsse"),
        ({"fs.gs.auth.service.account.json.keyfile": "/k.json"}, "gcs_key_file", "/k.json"),
        ({"fs.azure.account.name": "acme"}, "azure_account", "acme"),
        ({"fs.azure.account.key": "k"}, "azure_account_key", Secret("k")),
        ({"fs.azure.sas.fixed.token": "t"}, "azure_sas_token", Secret("t")),
        ({**KEYS, "fs.s3a.session.token": "t"}, "s3_session_token", Secret("t")),
        (KEYS, "s3_access_key", Secret("id-canary")),
        (KEYS, "s3_secret_key", Secret("secret-canary")),
    ],
)
def test_a_key_sets_its_field(given: dict[str, str], field: str, value: object) -> None:
    assert getattr(options(given), field) == value
    others = {name for name in StorageOptions.__dataclass_fields__ if name != field}
    changed = {n for n in others if getattr(options(given), n) != getattr(options({}), n)}
    assert changed <= {"s3_access_key", "s3_secret_key", "s3_path_style"}


@pytest.mark.parametrize(
    ("environment", "field", "value"),
    [
        ({"AWS_ENDPOINT_URL": "http://h:1"}, "s3_endpoint", "http://h:1"),
        (
            {"AWS_ENDPOINT_URL": "http://h:1", "AWS_ENDPOINT_URL_S3": "http://s3:1"},
            "s3_endpoint",
            "http://s3:1",
        ),
        ({"AWS_REGION": "eu-1", "AWS_DEFAULT_REGION": "us-2"}, "s3_region", "eu-1"),
        ({"AWS_REGION": " ", "AWS_DEFAULT_REGION": "us-2"}, "s3_region", "us-2"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/k.json"}, "gcs_key_file", "/k.json"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "acme"}, "azure_account", "acme"),
        ({"AZURE_STORAGE_ACCOUNT_KEY": "k"}, "azure_account_key", Secret("k")),
        ({"AZURE_STORAGE_SAS_TOKEN": "t"}, "azure_sas_token", Secret("t")),
        (
            {"AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
            "s3_session_token",
            Secret("t"),
        ),
    ],
)
def test_the_environment_answers_what_options_leave_open(
    environment: dict[str, str], field: str, value: object
) -> None:
    assert getattr(options({}, environment), field) == value


def test_options_go_before_the_environment() -> None:
    environment = {"AWS_REGION": "us-2", "AWS_ENDPOINT_URL_S3": "http://s3:1"}
    found = options(
        {"fs.s3a.endpoint.region": "eu-1", "fs.s3a.endpoint": "http://h:1"}, environment
    )
    assert (found.s3_region, found.s3_endpoint) == ("eu-1", "http://h:1")


def test_credentials_come_from_one_source() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "other",
        "AWS_SECRET_ACCESS_KEY": "other",
        "AWS_SESSION_TOKEN": "other",
        "AZURE_STORAGE_SAS_TOKEN": "other",
    }
    found = options({**KEYS, "fs.azure.account.key": "k"}, environment)
    assert found.s3_access_key == Secret("id-canary")
    assert found.s3_session_token is None
    assert found.azure_sas_token is None


@pytest.mark.parametrize("given", [*KEYS])
def test_half_of_a_key_pair_is_an_error(given: str) -> None:
    [missing] = set(KEYS) - {given}
    environment = {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}
    with pytest.raises(InvalidOptionError):
        options({"fs.s3a.endpoint.region": "eu-1", "aws_region": "us-2"})
    with pytest.raises(InvalidOptionError, match=f"{missing} is missing") as caught:
        options({given: "canary"}, environment)
    assert caught.value.key == given
    assert "canary" not in str(caught.value) + repr(caught.value.facts)


def test_a_service_of_ones_own_is_called_by_path_unless_told_otherwise() -> None:
    assert options({}).s3_path_style is False
    assert options({"fs.s3a.endpoint": "http://h:1"}).s3_path_style is True
    told = {"fs.s3a.endpoint": "http://h:1", "fs.s3a.path.style.access": "false"}
    assert options(told).s3_path_style is False


@pytest.mark.parametrize("key", ["encryption.key", "server-side-encryption.key"])
def test_a_key_of_the_store_goes_to_the_clients_that_write(key: str) -> None:
    found = options({"fs.s3a.encryption.algorithm": "SSE-KMS", f"fs.s3a.{key}": "arn:canary"})
    assert found.s3_encryption_key == Secret("arn:canary")
    assert "canary" not in repr(found)
    config = obstore_s3(found)["config"]
    assert (config["server_side_encryption"], config["sse_kms_key_id"]) == ("aws:kms", "arn:canary")
    config = found.for_object_store()
    assert config["aws_server_side_encryption"] == "aws:kms"
    assert config["aws_sse_kms_key_id"] == "arn:canary"
    assert found.for_pyarrow(StoreKind.S3) == options({}).for_pyarrow(StoreKind.S3)
    assert found.for_readers == options({})


def test_s3_for_obstore() -> None:
    assert obstore_s3(options({})) == {"config": {"virtual_hosted_style_request": True}}
    found = obstore_s3(
        options({**KEYS, "fs.s3a.endpoint": "http://h:1/", "fs.s3a.endpoint.region": "eu-1"})
    )
    provider = found.pop("credential_provider")
    assert found == {
        "config": {
            "region": "eu-1",
            "virtual_hosted_style_request": False,
            "endpoint": "http://h:1",
            "aws_endpoint_url_s3": "http://h:1",
        },
        "client_options": {"allow_http": True},
    }
    assert provider() == {
        "access_key_id": "id-canary",
        "secret_access_key": "secret-canary",
        "token": None,
        "expires_at": None,
    }


def test_s3_for_obstore_with_the_bucket_in_the_host() -> None:
    given = {"fs.s3a.endpoint": "https://h:1", "fs.s3a.path.style.access": "false"}
    found = obstore_s3(options(given))
    assert found["config"]["endpoint"] == "https://lake.h:1"
    assert found["config"]["virtual_hosted_style_request"] is True
    assert found["client_options"] == {"allow_http": False}


def test_s3_for_pyarrow() -> None:
    assert options({}).for_pyarrow(StoreKind.S3) == {"allow_delayed_open": True}
    given = {
        **KEYS,
        "fs.s3a.session.token": "t",
        "fs.s3a.endpoint": "http://h:1/",
        "fs.s3a.endpoint.region": "eu-1",
    }
    assert options(given).for_pyarrow(StoreKind.S3) == {
        "access_key": "id-canary",
        "secret_key": "secret-canary",
        "session_token": "t",
        "region": "eu-1",
        "scheme": "http",
        "endpoint_override": "h:1",
        "force_virtual_addressing": False,
        "allow_delayed_open": True,
    }


def test_azure_for_both_clients() -> None:
    given = options(
        {
            "fs.azure.account.name": "acme",
            "fs.azure.account.key": "k",
            "fs.azure.sas.fixed.token": "t",
        }
    )
    assert given.for_obstore(StoreKind.AZURE, "box") == {
        "config": {"account_name": "acme", "account_key": "k", "sas_key": "t"}
    }
    assert given.for_pyarrow(StoreKind.AZURE) == {
        "account_name": "acme",
        "account_key": "k",
        "sas_token": "t",
    }
    # the account in the path goes before the option
    assert given.for_obstore(StoreKind.AZURE, "box", "other")["config"]["account_name"] == "other"
    assert given.for_pyarrow(StoreKind.AZURE, "other")["account_name"] == "other"


def test_gcs_for_both_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/k.json")
    given = StorageOptions.from_options({})
    assert given.for_obstore(StoreKind.GCS, "lake") == {"config": {"service_account": "/k.json"}}
    assert given.for_pyarrow(StoreKind.GCS) == {}


@pytest.mark.parametrize("kind", [StoreKind.LOCAL, StoreKind.MEMORY])
def test_other_stores_need_nothing(kind: StoreKind) -> None:
    assert options(KEYS).for_obstore(kind, "") == {}
    assert options(KEYS).for_pyarrow(kind) == {}


def test_secrets_do_not_show() -> None:
    given = options({**KEYS, "fs.s3a.session.token": "canary", "fs.azure.account.key": "canary"})
    provider = obstore_s3(given)["credential_provider"]
    assert "canary" not in f"{given} {given!r} {provider!r} {provider}"


def test_options_cross_to_executors_and_are_keys_of_caches() -> None:
    given = options({**KEYS, "fs.s3a.endpoint": "http://h:1"})
    for other in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
        assert other == given
        assert hash(other) == hash(given)


# --- only ``hudi_core.storage`` knows where a data file is: a spy on stores, and a look at
REPOSITORY = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("hudi_core", "native_format", "iceberg_format", "delta_format", "pyspark_hudi")
ONE_FILE = (
    *("read", "read_range", "put_if_absent", "put", "head", "version"),
    *("compare_and_set", "delete", "link"),
)


class Spy:
    """Notes every data file that is looked for in a table's own folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
        self.asked, self.wrong = 0, list[str]()
        self._base = str(base)

        def watch(owner: Any, name: str, asked: Callable[..., list[tuple[str, str]]]) -> None:
            real = getattr(owner, name)

            def spied(*given: Any, **named: Any) -> Any:
                given = tuple(list(one) if isinstance(one, Iterator) else one for one in given)
                for root, path in asked(*given):
                    self._note(root, path)
                return real(*given, **named)

            monkeypatch.setattr(owner, name, spied)

        for name in ONE_FILE:
            watch(PosixStorage, name, lambda storage, path, *_: [(storage.root, path)])
        watch(
            PosixStorage, "discard", lambda storage, paths: [(storage.root, one) for one in paths]
        )
        watch(data_files, "require_no_links", lambda uri, paths: [(uri, one) for one in paths])
        # what is opened below it are data files
        watch(data_files, "data_filesystem", lambda uri, *_: [(uri, "")])

    def _note(self, root: str, path: str) -> None:
        self.asked += 1
        below = f"{root}/{path}".startswith(f"{self._base}/")
        if below and (is_data(f"{root}/{path}") or (root, path) == (self._base, "")):
            self.wrong.append(f"{root}/{path}")


@pytest.mark.parametrize("table_format", FORMATS)
def test_nobody_looks_for_a_data_file_in_the_tables_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    store, base = Store("disk", tmp_path), tmp_path / "table"
    logs = {"hoodie.table.cdc.enabled": "true", "hoodie.metadata.record.index.enable": "true"}
    spy = Spy(monkeypatch, base)
    federated = placed_table(store, table_format, base=str(base), options=logs)
    table = federated.table
    for done in states(table, lambda data: data):
        if done == "upsert":
            table.savepoint()
        if done == "delete":
            table.rollback(str(table.history().to_pylist()[0]["instant"]))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    table.cluster()
    saved = table.savepoints[0].instant
    table.restore(saved)
    table.delete_savepoint(saved)
    table.upsert(many(range(5), 9))
    table.purge()
    assert table.validate(keys=True).differences == ()
    table.repair()
    first = table.history().to_pylist()[-1]["instant"]
    assert table.incremental(str(first)) is not None
    assert ordered(hudi.Table.open(str(base)).to_arrow())
    federated.require_placed()
    table.drop()
    assert spy.asked > 1000
    assert spy.wrong == []


def test_the_spy_sees_who_goes_past_the_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch, tmp_path / "table")
    federated = placed_table(Store("disk", tmp_path), base=str(tmp_path / "table"))
    name = "b/8bb5f7be-b1bf-5a75-9ee1-6c26dbe44676-0_1-2-0_20260101000000000.parquet"
    assert federated.table._session.opened.client.storage.head(name) is None
    assert spy.wrong == [f"{tmp_path}/table/{name}"]


def joins(tree: ast.AST) -> Iterator[str]:
    """Texts that begin with a table's path, and go on with that of a file of it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or len(node.values) < 3:
            continue
        first, slash, second = node.values[:3]
        if (
            isinstance(first, ast.FormattedValue)
            and isinstance(slash, ast.Constant)
            and slash.value == "/"
            and isinstance(second, ast.FormattedValue)
        ):
            root, path = ast.unparse(first.value), ast.unparse(second.value)
            if root.split(".")[-1] in ("base_path", "root") and path in _DATA_PATHS:
                yield f"{node.lineno}: {ast.unparse(node)}"


_DATA_PATHS = frozenset(
    {
        "path",
        "file.path",
        "join_path(partition, name)",
        "one.base_file.path",
        "status.path",
        "stat.path",
    }
)
_OF_METADATA = frozenset(
    {
        "hudi_core/metadata/log/layers.py",
        "hudi_core/metadata/maintenance/compaction.py",
        "hudi_core/metadata/log/completeness.py",
        "hudi_core/metadata/index_definitions.py",
        "hudi_core/services/stage_record.py",
        "hudi_core/timeline/active.py",
        "hudi_core/timeline/lsm_history.py",
        "hudi_core/txn/markers.py",
        "iceberg_format/files.py",
    }
)
"""Modules that tell of files in the table's folder alone: of its metadata."""


def test_no_module_outside_storage_joins_a_tables_path_and_a_file() -> None:
    found = {}
    for package in PACKAGES:
        for module in sorted((REPOSITORY / package).rglob("*.py")):
            name = str(module.relative_to(REPOSITORY))
            some = list(joins(ast.parse(module.read_text(encoding="utf-8"))))
            if some and not name.startswith("hudi_core/storage/"):
                found[name] = some
    assert found.keys() == _OF_METADATA
