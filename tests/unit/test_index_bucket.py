"""Buckets of keys, and files whose keys a write reads."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.config.kinds import IndexType
from hudi_core.hashing.java_hash import list_hash, string_hashes
from hudi_core.index import index_of, locating, tagging
from hudi_core.index.bloom import BloomIndex
from hudi_core.index.bucket import BucketIndex, bucket_numbers, hashed_values
from hudi_core.model.buckets import Buckets, bucket_file_id, bucket_of_file
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import parse_instant_time
from tests.tables import new_table, rows

INSTANT = parse_instant_time("20260101000000000")


def by_hand(text: str) -> int:
    """``String.hashCode``, as its documentation states it."""
    units = np.frombuffer(text.encode("utf-16-le"), "<u2").tolist()
    total = 0
    for unit in units:
        total = (31 * total + unit) & 0xFFFFFFFF
    return total


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # values of String.hashCode that are widely published
        *(("", 0), ("a", 97), ("hello", 99162322), ("Aa", 2112), ("BB", 2112)),
        *(("polygenelubricants", 0x80000000), ("\U0001f600", 55357 * 31 + 56832), ("é", 233)),
    ],
)
def test_hash_codes_of_strings(text: str, code: int) -> None:
    assert int(string_hashes(pa.array([text]))[0]) == code == by_hand(text)


def test_hash_codes_of_columns() -> None:
    texts = ["", "a", None, "ab" * 40, "é", "日本", "x\U0001f600y", "k0001", "k0002"]
    found = string_hashes(pa.array(["before", *texts]).slice(1))
    assert found.tolist() == [0 if text is None else by_hand(text) for text in texts]
    assert string_hashes(pa.array([], pa.string())).tolist() == []


@pytest.mark.parametrize("count", [1, 31, 32, 40])
def test_hash_codes_of_texts_of_all_lengths(count: int) -> None:
    texts = [("x" * (n * n % 97) + "é" * (n % 3)) * (1 + 49 * (n % 11 == 0)) for n in range(count)]
    found = string_hashes(pa.array(texts)).tolist()
    assert found == [by_hand(text) for text in texts]


def test_hash_codes_of_lists() -> None:
    assert list_hash(["hello"]) == 31 + 99162322
    assert list_hash(["a", None, "b"]) == ((31 + 97) * 31 + 0) * 31 + 98
    # negative in Java, and bucket 31 of 256 with the sign bit cleared
    assert list_hash(["polygenelubricants"]) == 0x80000000 + 31


@pytest.mark.parametrize(
    ("key", "fields", "values"),
    [
        ("k1", ("id",), ["k1"]),
        ("2024-10-24 10:11:12", ("ts",), ["2024-10-24 10:11:12"]),
        ("a,b", ("id",), ["a,b"]),
        # a single field keeps its name: there is no comma
        ("id:7", ("id",), ["id:7"]),
        ("id:7,8", ("id",), ["7,8"]),
        ("id:1,line:2", ("id", "line"), ["1", "2"]),
        ("id:1,line:2", ("line", "id"), ["1", "2"]),
        ("id:1,line:2", ("line",), ["2"]),
        ("id:1,line:__null__,city:__empty__", ("id", "line", "city"), ["1", None, ""]),
        ("id:ab:cd,line:ef", ("id", "line"), ["ab:cd", "ef"]),
        ("id:1,line:2,2", ("id", "line"), ["1", "2,2"]),
        ("id:1,1,1,line:,2,2,,city:3", ("line",), [",2,2,"]),
        (
            "a:1,,,b:2024-10-22 14:11:53.023,c:,,3,d:::1:2::4::",
            ("b", "a", "c", "d"),
            ["1,,", "2024-10-22 14:11:53.023", ",,3", "::1:2::4::"],
        ),
        # a bare value that looks like one, without the index field in it
        ("x:1,y:2", ("id",), ["x:1,y:2"]),
        ("a,b:c", ("id",), ["a,b:c"]),
    ],
)
def test_what_is_hashed_of_a_key(key: str, fields: tuple[str, ...], values: list[str]) -> None:
    assert hashed_values(key, fields) == values
    buckets = Buckets(8191, fields)
    expected = (list_hash(values) & 0x7FFFFFFF) % 8191
    assert bucket_numbers(pa.array([key]), buckets).tolist() == [expected]


def test_a_column_of_all_kinds_of_keys() -> None:
    keys = ["id:1,line:2", "id:3,line:__empty__", "id:__null__,line:4", "id:a,b,line:c:d"]
    keys += ["line:2,id:1", "plain", "id:9", "é:1,line:2"]
    buckets = Buckets(1021, ("id", "line"))
    expected = [(list_hash(hashed_values(key, buckets.fields)) & 0x7FFFFFFF) % 1021 for key in keys]
    for turn in range(len(keys)):
        turned = keys[turn:] + keys[:turn]
        found = bucket_numbers(pa.array(turned), buckets).tolist()
        assert found == expected[turn:] + expected[:turn]


def test_known_buckets() -> None:
    found = bucket_numbers(pa.array(["hello", "polygenelubricants", "Aa"]), Buckets(256, ("id",)))
    assert found.tolist() == [99162353 % 256, 31, (31 + 2112) % 256]


def test_file_ids_begin_with_the_bucket() -> None:
    rome, oslo = PartitionPath("city=rome"), PartitionPath("city=oslo")
    made = bucket_file_id(INSTANT, rome, 42)
    assert re.fullmatch(r"00000042(-[0-9a-f]{4}){3}-[0-9a-f]{12}-0", made)
    assert uuid.UUID(made.removesuffix("-0"))
    assert bucket_of_file(made) == 42
    assert made == bucket_file_id(INSTANT, rome, 42)
    later = parse_instant_time("20260101000000001")
    others = [(INSTANT, oslo, 42), (later, rome, 42), (INSTANT, rome, 43)]
    assert len({made, *(bucket_file_id(*one) for one in others)}) == 4
    assert bucket_of_file(FileId("4f1d3a52-3b0a-5d55-9f6c-0a6a2a4be0d7-0")) is None


@pytest.mark.parametrize("kind", IndexType)
def test_every_index_option_has_an_index(kind: IndexType) -> None:
    assert isinstance(index_of(kind, Buckets(4, ("id",))), BucketIndex)
    is_bloom = isinstance(index_of(kind, None), BloomIndex)
    assert is_bloom is (kind in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM))


FAST = {"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"}
# UTF-8 and UTF-16 order the last two differently
KEYS = (("a1", "a3"), ("b1", "b3"), ("c1", "é3"), ("\uff00", "\U0001f600"))


def files_read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Paths of the files whose keys are asked for from now on, each task having one file."""
    read: set[str] = set()
    for name in ("read_record_keys", "read_known_keys"):
        original = getattr(locating, name)

        def note(context: Any, path: str, *rest: Any, original: Any = original) -> Any:
            read.add(path)
            return original(context, path, *rest)

        monkeypatch.setattr(locating, name, note)
    monkeypatch.setattr(tagging, "_FILES_PER_TASK", 1)
    return read


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("has_ranges", [True, False])
def test_files_without_an_incoming_key_are_not_read(
    index: str, has_ranges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = {"hoodie.metadata.index.column.stats.enable": str(has_ranges).lower()}
    options = {**FAST, **ranges, "hoodie.index.type": index}
    table = new_table(tmp_path / "t", rows("", city="oslo", n=1).schema, options)
    for keys in KEYS:
        table.bulk_insert(rows(*keys, city="oslo", n=1))
    read = files_read(monkeypatch)
    result = table.upsert(rows("b3", "a2", "new", "\U0001f600", city="oslo", n=2))
    assert (result.updated, result.inserted) == (2, 2)
    # "new" lies between the keys of the third file, "a2" between those of the first
    assert len(read) == 4
    read.clear()
    result = table.upsert(rows("b1", "b2", city="oslo", n=3))
    assert (result.updated, result.inserted) == (1, 1)
    found = dict(zip(*table.to_arrow(columns=["id", "n"]).to_pydict().values(), strict=True))
    assert len(found) == 11
    assert {key for key, n in found.items() if n == 3} == {"b1", "b2"}
    assert {key for key, n in found.items() if n == 2} == {"b3", "a2", "new", "\U0001f600"}
    # the new rows are in a file of their own, with keys from "a2" to "new"
    assert len(read) == (2 if has_ranges else 5)
