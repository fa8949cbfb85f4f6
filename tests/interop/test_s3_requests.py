"""How many requests a small write makes of an object store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.counted_s3 import CountedS3, counted_s3
from tests.tables import new_table

CITIES = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CountedS3]:
    with counted_s3(tmp_path_factory.mktemp("s3") / "requests") as service:
        yield service


def numbered_rows(count: int, first: int, ts: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "id": [f"k{number}" for number in numbers],
        "city": [f"c{number % 4}" for number in numbers],
        "ts": [ts] * count,
    }
    return pa.table(columns, CITIES)


@pytest.mark.parametrize(
    ("format_", "metadata", "most"),
    [
        ("native", "true", 33),
        ("native", "false", 24),
        ("iceberg", "true", 49),
        ("delta", "true", 53),
    ],
)
def test_an_upsert_into_four_partitions_makes_so_many_requests(
    format_: str, metadata: str, most: int, store: CountedS3
) -> None:
    options = {**store.given, "hoodie.metadata.enable": metadata}
    table = new_table(
        store.root(f"{format_}-{metadata}"), CITIES, {**options, "hoodie.table.format": format_}
    )
    table.upsert(numbered_rows(4000, 0, 1))
    table.upsert(numbered_rows(1000, 0, 2))
    before = len(store.requests())

    table.upsert(numbered_rows(1000, 2500, 3))

    made = store.requests()[before:]
    assert len(made) <= most, made
    data_files = [one for one in made if one.endswith(".parquet")]
    # one request fetches each, and one puts its successor; none is asked for beforehand. What gets
    # into a Delta log is seen to be there
    looks = {"HEAD": 4} if format_ == "delta" else {}
    assert Counter(one.partition(" ")[0] for one in data_files) == {"GET": 4, "PUT": 4} | looks
    markers = [one for one in made if ".marker." in one or ".sealed" in one]
    assert [one.partition(" ")[0] for one in markers] == ["PUT"] * 4
    # it is put and, with the markers, deleted
    assert [one.partition(" ")[0] for one in made if "/.heartbeat/" in one] == ["PUT"]
    assert table.count() == 4000


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_an_upsert_into_logs_fetches_no_file_twice(metadata: str, store: CountedS3) -> None:
    options = {
        **store.given,
        "hoodie.metadata.enable": metadata,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
    }
    table = new_table(store.root(f"logs-{metadata}"), CITIES, options)
    table.upsert(numbered_rows(4000, 0, 1))
    for ts in range(2, 5):
        before = len(store.requests())
        table.upsert(numbered_rows(1000, 1000 * (ts - 2), ts))
        made = store.requests()[before:]
        stored = Counter(one for one in made if one.startswith(f"GET /counted/logs-{metadata}/c"))
        assert set(stored.values()) == {1}, made
        assert len(stored) == 4, made  # and no log, as they were put here
        assert len(made) <= (36 if metadata == "true" else 24), made
    assert table.count() == 4000


@pytest.mark.parametrize(
    ("format_", "metadata", "most"),
    [
        ("native", "true", 45),
        ("native", "false", 30),
        ("iceberg", "true", 77),
        ("delta", "true", 86),
    ],
)
def test_an_upsert_with_its_clean_makes_so_many_requests(
    format_: str, metadata: str, most: int, store: CountedS3
) -> None:
    options = {
        **store.given,
        "hoodie.metadata.enable": metadata,
        "hoodie.table.format": format_,
        "hoodie.clean.commits.retained": "2",
        "hoodie.metadata.compact.max.delta.commits": "100",
    }
    table = new_table(store.root(f"cleaned-{format_}-{metadata}"), CITIES, options)
    table.upsert(numbered_rows(4000, 0, 1))
    for ts in range(2, 5):
        table.upsert(numbered_rows(1000, 0, ts))
    before = len(store.requests())

    table.upsert(numbered_rows(1000, 2500, 5))

    made = store.requests()[before:]
    assert table.timeline.instants[-1].action.value == "clean"
    assert len(made) <= most, made
    # nothing is asked of the files that go
    assert Counter(one.partition(" ")[0] for one in made if one.endswith(".parquet")) == (
        {"GET": 4, "PUT": 4} | ({"HEAD": 4} if format_ == "delta" else {})
    )


def test_a_compaction_of_the_metadata_table_fetches_no_log_that_was_put_here(
    store: CountedS3,
) -> None:
    options = {**store.given, "hoodie.metadata.compact.max.delta.commits": "4"}
    table = new_table(store.root("compacted"), CITIES, options)
    before = len(store.requests())
    for ts in range(6):
        table.upsert(numbered_rows(100, 50 * ts, ts))
    made = store.requests()[before:]
    bases = [one for one in made if one.startswith("PUT") and one.endswith(".hfile")]
    assert len(bases) == 4 * 2  # those that it was built with, and those of a compaction
    # but those that each file group begins with
    fetched = [one for one in made if one.startswith("GET") and ".log." in one]
    assert all("_00000000000000" in one for one in fetched), fetched
    other = hudi.Table.open(store.root("compacted"), store.given)
    assert other.validate().is_valid
    assert other.count() == 350


def test_filters_of_the_metadata_table_spare_requests_for_files(store: CountedS3) -> None:
    options = {
        **store.given,
        "hoodie.index.type": "BLOOM",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.parquet.small.file.limit": "0",
    }
    table = new_table(
        store.root("filtered"), CITIES, options, partition_by=None, ordering_field=None
    )
    keys = [f"k{number:03}" for number in range(160)]
    for part in range(8):  # the range of each holds nearly all keys
        some = keys[part::8]
        table.bulk_insert(pa.table({"id": some, "city": ["c"] * 20, "ts": [1] * 20}, CITIES))
    found = {}
    for asks in ("false", "true"):
        before = len(store.requests())
        late = pa.table({"id": ["k080", "k0795"], "city": ["c", "c"], "ts": [2, 2]}, CITIES)
        plan = table.plan("upsert", late, options={"hoodie.bloom.index.use.metadata": asks})
        assert (plan.updated, plan.inserted) == (1, 1)
        made = store.requests()[before:]
        found[asks] = Counter(one.endswith(".parquet") for one in made)
    assert found["false"][True] >= 8
    assert found["true"][True] == 1
    # one for each file group of the partition of filters, which is listed, and its log files
    assert found["true"][False] < found["false"][False] + 40


def test_filters_of_new_files_are_not_read_again(store: CountedS3) -> None:
    options = {**store.given, "hoodie.metadata.index.bloom.filter.enable": "true"}
    root = store.root("handed-on")
    table = new_table(root, CITIES, options, ordering_field=None)
    found: list[Counter[str]] = []
    for write in (table.bulk_insert, table.upsert):
        before = len(store.requests())
        write(numbered_rows(400, 100 * len(found), 1 + len(found)))
        made = [one for one in store.requests()[before:] if one.endswith(".parquet")]
        found.append(Counter(one.partition(" ")[0] for one in made))
    # four files are written; an upsert fetches what was there before
    assert found == [{"PUT": 4}, {"GET": 4, "PUT": 4}]
    filters = hudi.Table.open(root, store.given).metadata("bloom_filters")
    assert filters["type"].to_pylist() == ["DYNAMIC_V0"] * 8
    assert len(set(filters["bloom_filter"].to_pylist())) == 8
