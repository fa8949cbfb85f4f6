"""Logical and physical paths of data files (RFC-60)."""

import itertools
import pickle
import random
import re
import uuid

import pytest

from hudi_core.config.placement import Placement, placement_of
from hudi_core.errors import InvalidOptionError, UnknownExtensionError, UnsafePathError
from hudi_core.storage.layout import FederatedLayout, Place, PlainLayout, StorageLayout, layout_of

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
    "name",
    ["os.system", "com.evil.Strategy", "com.evil.HoodieObjectStorageStrategy", "", "a:b", "\u212a"],
)
def test_no_class_is_loaded(name: str) -> None:
    with pytest.raises(InvalidOptionError, match="name"):
        placement_of({"hoodie.storage.strategy.class": name, "hoodie.storage.path": ROOT})


def test_a_strategy_that_nobody_has_is_refused() -> None:
    placement = placement_of({"hoodie.storage.strategy.class": "far", "hoodie.storage.path": ROOT})
    with pytest.raises(UnknownExtensionError, match=r"'far'.*object_store"):
        layout_of(BASE, "trips", placement)


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
