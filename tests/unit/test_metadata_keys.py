"""Keys, shards and file groups of the metadata table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata import keys, partition_types
from hudi_core.metadata.partition_types import shard_file_id, shard_number, shards_of
from hudi_core.model.files import FileId, PartitionPath


def test_ids_of_real_metadata_tables() -> None:
    # as Hudi's files hold them
    assert keys.id64("driver") == "AjpJ7N1gBZc="
    assert keys.id64("currency") == "/m6lxu4Dh5w="
    assert keys.id64("region=us") == "431THTTwO5Q="
    assert len(keys.id64("")) == 12
    assert keys.id128("") == "1B2M2Y8AsgTpgAmY7PhCfg=="


def test_keys_are_made_of_ids() -> None:
    partition, file = PartitionPath("city=x"), "f.parquet"
    prefix = keys.partition_stats_key("a.b", partition)
    assert keys.column_stats_key("a.b", partition, file) == prefix + keys.id128(file)
    assert prefix == keys.id64("a.b") + keys.id64("city=x")
    assert keys.bloom_filter_key(partition, file) == keys.id64("city=x") + keys.id128(file)
    assert keys.column_stats_key("c", PartitionPath(""), "f")[12:24] == keys.id64(".")


def test_the_one_partition_has_a_name() -> None:
    assert keys.partition_name(PartitionPath("")) == "."
    assert keys.partition_path(".") == ""
    assert keys.partition_path("a=1/b=2") == "a=1/b=2"


@given(st.none() | st.text(), st.text())
def test_secondary_keys_can_be_taken_apart(value: str | None, record_key: str) -> None:
    key = keys.secondary_key(value, record_key)
    assert key.startswith(keys.secondary_prefix(value))
    assert keys.split_secondary_key(key, "f") == (value, record_key)


@pytest.mark.parametrize(
    ("value", "record_key", "key"),
    [
        ("rider-F", "e3cf", "rider-F$e3cf"),
        ("a$b", "c\\d", "a\\$b$c\\\\d"),
        (None, "k", "\0$k"),
        ("\0", "k", "\\\0$k"),
        ("", "", "$"),
    ],
)
def test_secondary_keys_escape(value: str | None, record_key: str, key: str) -> None:
    assert keys.secondary_key(value, record_key) == key


@pytest.mark.parametrize("key", ["", "abc", "a\\$b", "a$b$c", "a$b\\"])
def test_keys_that_are_none_of_a_secondary_index_are_damage(key: str) -> None:
    with pytest.raises(CorruptMetadataError, match="secondary index"):
        keys.split_secondary_key(key, "f")


@pytest.mark.parametrize(
    ("key", "count", "shard"),
    [
        ("hello", 10, 2),  # 99162322
        ("", 10, 0),
        # the least int, which has no absolute value in Java
        ("polygenelubricants", 10, 8),
        ("polygenelubricants", 7, 2147483648 % 7),
        ("rider-F$", 1, 0),
    ],
)
def test_shards_by_javas_hash(key: str, count: int, shard: int) -> None:
    assert shards_of(pa.array([key]), count).tolist() == [shard]


@given(st.lists(st.text(max_size=20)), st.integers(1, 50))
def test_shards_of_many_are_those_of_each(texts: list[str], count: int) -> None:
    found = shards_of(pa.array(texts, pa.string()), count).tolist()
    assert found == [shards_of(pa.array([text]), count)[0] for text in texts]
    assert all(0 <= shard < count for shard in found)


@pytest.mark.parametrize(
    ("partition", "file_id"),
    [
        (partition_types.FILES, "files-0003-0"),
        (partition_types.COLUMN_STATS, "col-stats-0003-0"),
        (partition_types.BLOOM_FILTERS, "bloom-filters-0003-0"),
        (partition_types.RECORD_INDEX, "record-index-0003-0"),
        (partition_types.PARTITION_STATS, "partition-stats-0003-0"),
        ("secondary_index_rider_idx", "secondary-index-rider-idx-0003-0"),
        ("expr_index_by_day", "expr-index-by-day-0003-0"),
    ],
)
def test_file_groups_have_numbers(partition: str, file_id: str) -> None:
    assert shard_file_id(partition, 3) == file_id
    assert shard_number(FileId(file_id)) == 3
    assert shard_number(shard_file_id(partition, 12345)) == 12345


@pytest.mark.parametrize("file_id", ["files", "files-1-0", "files-0001", "files-0001-0-x"])
def test_other_ids_have_no_number(file_id: str) -> None:
    assert shard_number(FileId(file_id)) is None
