"""What is planned without looking at every partition and file plans the same."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from hudi import HudiTable

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, PartitionValueError, UnsafePathError
from hudi_core.metadata import lister
from hudi_core.metadata.hfile.index import DataIndex, IndexEntry, encode_index, index_key
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.keys import id64, id64_of_many
from hudi_core.metadata.lister import MetadataLister
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import PartitionPath
from hudi_core.read import query
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.services.opening import open_table
from hudi_core.storage.partition_path import PartitionPathCodec
from hudi_core.storage.safe_path import are_unsafe, require_safe_path
from hudi_core.timeline import serde

ID_AND_DAY = pa.schema([("id", pa.int64()), ("day", pa.string())])
DAYS = ("2026-01-01", "2026-01-02", "a b", "b", "c", "d", None)
PATHS = (
    *("a", "a/b", "a/b/c", "x=1", "x=1/y=2", "y=2/x=1", "x=", "x=a/b/y=2", "%41", "x=%2F", "a%"),
    *("__HIVE_DEFAULT_PARTITION__", "x=__HIVE_DEFAULT_PARTITION__/y=2", ".a", "a/..", "a//b", "é"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of two commits with a partition for each day."""
    rows = pa.table({"id": range(len(DAYS)), "day": pa.array(DAYS)}, ID_AND_DAY)
    table = hudi.Table.create(
        tmp_path_factory.mktemp("days") / "t", rows, record_key="id", partition_by="day"
    )
    table.insert(rows.slice(0, 4))
    table.insert(rows.slice(4))
    return table.path


@pytest.mark.parametrize("fields", [("x",), ("x", "y")])
@pytest.mark.parametrize("is_hive", [False, True])
@pytest.mark.parametrize("is_encoded", [False, True])
@pytest.mark.parametrize("levels", [None, (2, 1)])
def test_many_paths_are_decoded_as_each_is(
    fields: Sequence[str], is_hive: bool, is_encoded: bool, levels: tuple[int, ...] | None
) -> None:
    codec = PartitionPathCodec(fields, is_hive, is_encoded, levels if len(fields) == 2 else None)
    for some in (PATHS, ("a/b", "c/d"), ("x=1/y=2", "x=3/y=4"), ("b", "c")):
        columns, regular = codec.decode_many(pa.array(some))
        for number, one in enumerate(some):
            if regular[number].as_py():
                values = tuple(column[number].as_py() for column in columns)
                assert values == codec.decode(one)
    if len(fields) == 1 and not is_hive:
        assert codec.decode_many(pa.array(["b", "c"]))[1].to_pylist() == [True, True]


def test_unsafe_paths_are_found_among_many() -> None:
    odd = ("", ".", "..", "/a", "a/", "a//b", "a/./b", "../a", "a/..", "a\0b")
    for some in ([*odd, "a.b", "a/b"], ["a.b", "a/.b", "b"], ["b"], [], ["b", "/"]):
        for number, is_unsafe in enumerate(are_unsafe(pa.array(some, pa.string())).to_pylist()):
            try:
                require_safe_path(some[number])
            except UnsafePathError:
                assert is_unsafe, some[number]
            else:
                assert not is_unsafe, some[number]


def test_ids_of_many_partitions_are_those_of_each() -> None:
    names = ["", ".", "2026/01/01", "Ä", *map(str, range(50))]
    assert id64_of_many(pa.array(names)).to_pylist() == [id64(one) for one in names]
    assert len(id64_of_many(pa.array([], pa.string()))) == 0


@pytest.mark.parametrize("full_keys", [False, True])
@pytest.mark.parametrize("width", [1, 7, 0])
def test_blocks_are_found_where_all_keys_have_one_length(full_keys: bool, width: int) -> None:
    keys = sorted({f"{number:0{width}}".encode() for number in range(10 ** min(width, 1) * 100)})
    keys = [key for key in keys if not width or len(key) == width]
    options = HFileOptions("{}", 0, block_bytes=40, full_keys=full_keys)
    reader = HFileReader.from_bytes(write_hfile([(key, key * 2) for key in keys], options), "x")
    assert reader.block_count > 1
    assert list(reader.entries()) == [(key, key * 2) for key in keys]
    for key in keys:
        assert reader.get(key) == key * 2
        assert reader.get(key + b"x") is None
    wanted = pa.array(keys[::3], pa.binary())
    assert reader.blocks_of(wanted) == sorted(set(reader.blocks_of(wanted)))
    assert not reader.is_most([keys[0]], b"") or reader.block_count < 3
    assert reader.is_most(keys, b"")


def test_an_index_out_of_order_is_refused() -> None:
    right, wrong = (
        [IndexEntry(index_key(key, full=False), 10 * n, 10) for n, key in enumerate(keys)]
        for keys in ((b"aa", b"bb"), (b"bb", b"aa"))
    )
    assert DataIndex.of_even(encode_index(right), 2, 20) is not None
    assert DataIndex.of_even(encode_index(right), 2, 19) is None
    assert DataIndex.of_even(encode_index(right), 3, 20) is None
    assert DataIndex.of_even(encode_index(wrong), 2, 20) is None
    with pytest.raises(CorruptMetadataError, match="not in order"):
        DataIndex.of_entries(wrong, "x")


@pytest.mark.parametrize("small", [50_000, 0])
def test_partitions_that_a_filter_names_are_looked_up(
    path: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lister, "_SMALL_BYTES", small)
    opened = open_table(path, {})
    index = opened.lister()
    assert isinstance(index, MetadataLister)
    known = index.list_partitions()
    assert sorted(index.partition_paths().to_pylist()) == known
    schema = pa.schema([("day", pa.string())])
    pruner = PartitionPruner(opened.client.config, schema)
    null = PartitionPath("__HIVE_DEFAULT_PARTITION__")
    for day in ("2026-01-02", "c", "a b", "nowhere"):
        wanted = to_filter([("day", "=", day)], schema)
        assert {*pruner.of_index(index, wanted)} == {null, *({day} & {*known})}
        assert pruner.of_index(index, wanted) == pruner.keep(known, wanted)
    for conditions in ([("day", "in", ["b", "é"])], [("day", ">", "b")], [("day", "!=", "b")]):
        wanted = to_filter(conditions, schema)
        assert pruner.of_index(index, wanted) == pruner.keep(known, wanted)


def test_the_list_of_partitions_is_not_read_for_a_named_one(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: MetadataLister) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr(MetadataLister, "_known", property(refused))
    [found] = hudi.Table.open(path).file_slices(filter=[("day", "=", "b"), ("id", "=", 3)])
    assert found.partition_path == "b"


def test_a_stream_plans_some_partitions_at_a_time(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "_PARTITIONS_AT_A_TIME", 2)
    table = hudi.Table.open(path)
    snapshot = table._session.snapshot()
    plans = list(snapshot.plans())
    assert len(plans) == 4
    assert [file for plan in plans for file in plan.files] == [*snapshot.plan().files]
    assert table.to_batches().read_all().equals(table.to_arrow().combine_chunks())
    first = table.timeline.completed_writes()[0].requested_time
    assert table.to_batches(as_of=first).read_all().num_rows == 4
    wanted = [("day", ">", "a")]
    assert table.to_batches(filter=wanted).read_all().num_rows == 4
    assert table.count(filter=wanted) == 4
    assert table.head(5).num_rows == 5


def test_foreign_paths_are_kept(path: str) -> None:
    pruner = PartitionPruner(open_table(path, {}).client.config, ID_AND_DAY)
    wanted = to_filter([("day", "=", "2026-01-01")], ID_AND_DAY)
    foreign = [PartitionPath(one) for one in ("2026/01/01", "2026-01-01", "z", "y/z")]
    assert pruner.keep(foreign, wanted) == ("2026/01/01", "2026-01-01", "y/z")
    with pytest.raises(PartitionValueError):
        PartitionPathCodec(("x", "y"), False, False).decode("y")


def test_a_commit_of_many_files_is_written_and_read_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serde, "_FILES_OF_A_BLOCK", 2)
    rows = pa.table({"id": range(len(DAYS)), "day": pa.array(DAYS)}, ID_AND_DAY)
    table = hudi.Table.create(tmp_path / "t", rows, record_key="id", partition_by="day")
    table.insert(rows)
    table.insert_overwrite_table(rows)
    client = open_table(table.path, {}).client
    for write in client.timeline().completed_writes():
        body = client.active.read(write)
        found = client.read_commit(write)
        assert len(found.stats) == len(DAYS)
        [record] = fastavro.reader(io.BytesIO(body))
        assert isinstance(record, dict)
        assert {*record["partitionToWriteStats"]} == {*found.partition_to_write_stats}
        with monkeypatch.context() as patch:
            patch.setattr(serde, "_FILES_OF_A_BLOCK", 100)
            whole = serde.encode(found)
        assert len(whole) < len(body)
        assert client.active.read_commit(write) == found
        is_plain = type(found) is CommitMetadata
        decode = serde.decode_commit if is_plain else serde.decode_replace_commit
        assert decode(whole, "x") == found
        with pytest.raises(CorruptMetadataError):
            decode(body[:-40], "x")
    assert sum(batch.num_rows for batch in HudiTable(table.path).read()) == len(DAYS)
    assert hudi.Table.open(table.path).to_arrow().num_rows == len(DAYS)
