"""What is kept of an index of keys says what its files say, or is not used."""

from __future__ import annotations

import os
import shutil
import time
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import InvalidOptionError, StorageError
from hudi_core.index.record_index import RecordIndex
from hudi_core.metadata import key_cache
from hudi_core.metadata.hfile import Codec, HFileOptions, HFileReader, write_hfile
from hudi_core.metadata.key_cache import KeyCache
from hudi_core.metadata.layers import Layer
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from tests.tables import new_table

VALUES = [b"one", b"another", b""]


class Counted:
    """A file that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.reads = data, 0

    def __call__(self, offset: int, length: int) -> bytes:
        self.reads += 1
        return self.data[offset : offset + length]


def layer_of(content: dict[bytes, bytes], name: str = "a") -> tuple[Layer, Counted]:
    data = write_hfile(sorted(content.items()), HFileOptions("{}", 0, Codec.NONE, block_bytes=500))
    file = Counted(data)
    reader = HFileReader(file, len(data), name)
    file.reads = 0
    return Layer(name, reader, identity=(name, len(data))), file


def numbered(count: int, step: int = 1) -> dict[bytes, bytes]:
    return {f"k{number}".encode(): VALUES[number % 3] for number in range(0, count, step)}


def found(cache: KeyCache, layer: Layer, keys: list[bytes], *others: Layer) -> dict[bytes, bytes]:
    told: dict[bytes, bytes] = {}
    for ordinals, values in cache.find(layer, pa.array(keys, pa.binary()), [layer, *others]):
        for ordinal, value in zip(ordinals.tolist(), values.to_pylist(), strict=True):
            assert keys[ordinal] not in told
            told[keys[ordinal]] = value
    return told


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyCache:
    monkeypatch.setattr(key_cache, "_LEAST_KEYS", 100)
    return KeyCache(str(tmp_path / "cache"), "group")


def kept(cache: KeyCache) -> list[Path]:
    return sorted(Path(cache.folder).rglob("*.arrow"))


def test_it_says_what_the_file_says(cache: KeyCache) -> None:
    content = numbered(2000, 2)
    layer, file = layer_of(content)
    keys = [f"k{number}".encode() for number in range(2000, -1, -1)]
    assert found(cache, layer, keys) == content
    assert len(kept(cache)) == 1
    first = file.reads
    assert first
    # in another order, and of a process that knows nothing
    assert found(cache, layer, sorted(keys)) == content
    some = sorted(content)[::50]
    assert found(cache, layer, [b"", *some, b"zzz"]) == {key: content[key] for key in some}
    assert found(cache, layer, []) == {}
    assert file.reads == first


def test_few_keys_and_small_files_are_read_as_they_are(cache: KeyCache) -> None:
    content = numbered(2000)
    layer, _ = layer_of(content)
    assert found(cache, layer, [b"k7", b"x"]) == {b"k7": content[b"k7"]}
    small, _ = layer_of(numbered(99), "small")
    assert found(cache, small, list(content)) == numbered(99)
    assert not kept(cache)


def test_for_few_keys_what_is_kept_is_not_read(
    cache: KeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = numbered(2000)
    layer, file = layer_of(content)
    found(cache, layer, list(content))
    opened: list[str] = []
    monkeypatch.setattr(PosixStorage, "read", lambda _, path: opened.append(path))
    before = file.reads
    assert found(cache, layer, [b"k7", b"x"]) == {b"k7": content[b"k7"]}
    assert file.reads > before
    assert not opened


@pytest.mark.parametrize("how", ["cut", "changed", "empty", "no arrow", "another's", "other type"])
def test_what_is_damaged_is_made_anew(cache: KeyCache, how: str) -> None:
    content = numbered(2000)
    layer, file = layer_of(content)
    other, _ = layer_of(dict.fromkeys(content, b"wrong"), "other")
    assert found(cache, layer, list(content)) == content
    (path,) = kept(cache)
    good = path.read_bytes()
    if how == "cut":
        path.write_bytes(good[:-100])
    elif how == "changed":
        path.write_bytes(good.replace(b"k1000", b"k1OOO"))
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "no arrow":
        path.write_bytes(b"nothing" + zlib.crc32(b"nothing").to_bytes(4, "big"))
    elif how == "another's":
        found(cache, other, list(content), layer)
        (wrong,) = set(kept(cache)) - {path}
        shutil.copy(wrong, path)
    else:
        sink = pa.BufferOutputStream()
        schema = pa.schema([("key", pa.string())], {b"identity": repr(layer.identity).encode()})
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([["k1"]], schema=schema))
        data = sink.getvalue().to_pybytes()
        path.write_bytes(data + zlib.crc32(data).to_bytes(4, "big"))
    assert path.read_bytes() != good
    before = file.reads
    assert found(cache, layer, list(content)) == content
    assert file.reads > before
    assert path.read_bytes() == good


def test_what_is_kept_of_files_that_are_gone_is_removed(cache: KeyCache) -> None:
    content = numbered(2000)
    (old, _), (log, _), (new, _) = (layer_of(content, name) for name in ("old", "log", "new"))
    found(cache, old, list(content), log)
    found(cache, log, list(content), old)
    elsewhere = KeyCache(cache.folder, "another group")
    found(elsewhere, old, list(content))
    assert len(kept(cache)) == 3
    found(cache, new, list(content), log)
    assert len(kept(cache)) == 3
    again, file = layer_of(content, "old")
    found(cache, again, list(content), new)
    assert file.reads


def test_what_was_kept_long_ago_is_removed(cache: KeyCache) -> None:
    """Of a table that is gone nobody asks for anything any more."""
    content = numbered(2000)
    gone, _ = layer_of(content, "gone")
    found(KeyCache(cache.folder, "a group that is gone"), gone, list(content))
    young, _ = layer_of(content, "young")
    found(KeyCache(cache.folder, "another group"), young, list(content))
    (old, *_) = before = sorted(kept(cache), key=lambda one: one.stat().st_mtime_ns)
    long_ago = time.time() - 31 * 86_400
    own = Path(cache.folder, "rows.arrow")
    own.write_bytes(b"of a user")
    for path in (old, own):
        os.utime(path, (long_ago, long_ago))
    new, _ = layer_of(content, "new")
    found(cache, new, list(content))
    assert len(before) == 2
    assert not old.exists()
    assert before[1].exists()
    assert own.exists()


@pytest.mark.parametrize("folder", ["s3://lake/cache", "GS://lake/cache", "abfss://c@a/cache"])
def test_a_folder_of_no_machine_is_refused(folder: str) -> None:
    with pytest.raises(InvalidOptionError, match="local path, such as /var/cache/hudi"):
        MetadataConfig.from_options({MetadataConfig.record_index_cache.key: folder})
    for local in ("/var/cache", "file:///var/cache", "cache"):
        assert (
            MetadataConfig.record_index_cache.read({MetadataConfig.record_index_cache.key: local})
            == local
        )


def test_a_folder_that_takes_nothing_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_LEAST_KEYS", 100)
    (tmp_path / "file").write_text("")
    content = numbered(500)
    layer, _ = layer_of(content)
    assert found(KeyCache(str(tmp_path / "file"), "g"), layer, list(content)) == content


@pytest.mark.parametrize("name", ["read", "put", "list"])
def test_a_folder_that_refuses_costs_no_answer(
    cache: KeyCache, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise StorageError("Permission denied", "Ask for it.")

    monkeypatch.setattr(PosixStorage, name, refuse)
    content = numbered(2000)
    layer, _ = layer_of(content)
    for _ in range(2):
        assert found(cache, layer, list(content)) == content


@pytest.mark.parametrize("first", [b"a", b"a" * 20], ids=["seems small", "seems large"])
def test_of_a_file_that_is_too_large_nothing_is_kept(
    cache: KeyCache, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {first: VALUES[0], **numbered(2000)}
    layer, _ = layer_of(content)
    monkeypatch.setattr(key_cache, "_MOST_BYTES", sum(map(len, content)) - 1)
    assert found(cache, layer, list(content)) == content
    assert not kept(cache)
    monkeypatch.setattr(key_cache, "_MOST_BYTES", 20 * len(content))
    assert found(cache, layer, list(content)) == content
    assert kept(cache)


def test_a_table_is_written_rightly_by_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_LEAST_KEYS", 100)
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.compact.max.delta.commits": "2",
        MetadataConfig.record_index_cache.key: str(tmp_path / "cache"),
    }
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])

    def rows(ids: range, v: int) -> pa.Table:
        data: dict[str, Any] = {"id": [f"k{n}" for n in ids], "p": ["a"] * len(ids)}
        return pa.table({**data, "v": [v] * len(ids)}, schema=schema)

    table = new_table(tmp_path / "t", schema, options, partition_by="p")
    table.insert(rows(range(1000), 0))
    expected = {f"k{n}": 0 for n in range(1000)}
    for v in range(1, 5):
        result = table.upsert(rows(range(100 * v, 1000 + 100 * v), v))
        assert (result.updated, result.inserted) == (900, 100)
        expected |= {f"k{n}": v for n in range(100 * v, 1000 + 100 * v)}
    got = table.to_arrow()
    assert dict(zip(got["id"].to_pylist(), got["v"].to_pylist(), strict=True)) == expected
    assert list((tmp_path / "cache").rglob("*.arrow"))
    # each process may look keys up
    keys = pa.array([*expected, "nowhere"])
    told = []
    for some in ({}, options):
        opened = open_table(table.path, some)
        index = RecordIndex.open(opened.client, opened.timeline())
        told.append(sorted(key for one in index.lookups(9) for key in one.find(keys).keys.tolist()))
    assert told[0] == told[1] == list(range(len(expected)))
