"""Splits, their scans, and predicates by column: no row is lost on its way."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from hypothesis import given
from hypothesis import strategies as st

import hudi_core as hudi
from hudi_core.config.connector import ConnectorConfig
from hudi_core.doors.connector import Connector
from hudi_core.errors import (
    DataFileError,
    InvalidOptionError,
    NotATableError,
    SchemaError,
    UnsafePathError,
    UnsupportedTableError,
)
from hudi_core.model.files import FileId, FileStatus, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.ranges import ValueRanges
from hudi_core.read.connector.domain import EVERYTHING, Domain, Range
from hudi_core.read.connector.partitions import PartitionInfo, PartitionKey, partition_info
from hudi_core.read.connector.predicate import ALL, NONE, TupleDomain
from hudi_core.read.connector.split_source import SplitSource
from hudi_core.read.connector.splits import Split, SplitFactory
from hudi_core.read.filters import to_filter
from hudi_core.read.plan import PlannedSlice
from tests.foreign import by_hudi_rs
from tests.hudi_tables import COPY_ON_WRITE, MERGE_ON_READ, RealTables
from tests.tables import new_table, rows

MB = 1 << 20
FIELD_IDS = pa.schema(
    [pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "6"}), pa.field("città", pa.string())]
)
KEYS = (PartitionKey("città", "東/b"), PartitionKey("n", None))
INFO = PartitionInfo(PartitionPath("città=東/b"), "città=東%2Fb", KEYS)


def listed(size: int, *logs: FileStatus) -> PlannedSlice:
    path = f"{INFO.path}/f-0_0-1-2_20260101000000000.parquet"
    return PlannedSlice(
        *(path, f"s3://b/t/{path}", size, INFO.path),
        *(FileId("f-0"), {}, InstantTime("20260101000000000"), logs),
    )


def factory(predicate: TupleDomain = ALL, options: Mapping[str, str] | None = None) -> SplitFactory:
    config = ConnectorConfig.from_options(options or {})
    return SplitFactory.of("s3://b/t", FIELD_IDS, predicate, "a mark", config)


@pytest.mark.parametrize(
    ("size", "lengths"),
    [
        *((300 * MB, [128, 128, 44]), (140 * MB, [140]), (141 * MB, [128, 13])),
        *((128 * MB, [128]), (256 * MB, [128, 128]), (MB, [1]), (0, [0])),
    ],
)
def test_a_file_is_cut_near_the_target(size: int, lengths: list[int]) -> None:
    splits = list(factory().splits(listed(size), INFO))
    assert [split.length // MB for split in splits] == lengths
    assert splits[0].start == 0
    assert [one.start + one.length for one in splits] == [*(one.start for one in splits[1:]), size]
    assert {split.file_size for split in splits} == {size}


def test_a_file_with_logs_is_one_split() -> None:
    [split] = factory().splits(listed(300 * MB, FileStatus(".f-0_1.log.1", MB)), INFO)
    assert (split.length, split.weight, split.log_files) == (300 * MB, 1.0, (".f-0_1.log.1",))
    [light] = factory().splits(listed(0, FileStatus(".f-0_1.log.1", 64 * MB)), INFO)
    assert light.weight == 0.5, "the logs are read, too"
    logs = (FileStatus(".f-0_1.log.1", 20 * MB), FileStatus(".f-0_2.log.1", 12 * MB))
    [both] = factory().splits(listed(32 * MB, *logs), INFO)
    assert (both.weight, both.log_sizes) == (0.5, (20 * MB, 12 * MB))


@pytest.mark.parametrize(
    ("size", "weight"), [(0, 0.05), (MB, 0.05), (64 * MB, 0.5), (128 * MB, 1.0), (140 * MB, 1.0)]
)
def test_small_splits_weigh_less(size: int, weight: float) -> None:
    [split] = factory().splits(listed(size), INFO)
    assert split.weight == weight


def test_options_decide_about_sizes_and_weights() -> None:
    sizes = {"hudi.target-split-size": "10MB", "hudi.standard-split-weight-size": "20MB"}
    made = factory(options={**sizes, "hudi.minimum-assigned-split-weight": "0.3"})
    assert [split.weight for split in made.splits(listed(24 * MB), INFO)] == [0.5, 0.5, 0.3]
    alike = factory(options={"hudi.size-based-split-weights-enabled": "false"})
    assert [split.weight for split in alike.splits(listed(MB), INFO)] == [1.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hudi.target-split-size", "128"),
        ("hudi.target-split-size", "0MB"),
        ("hudi.minimum-assigned-split-weight", "0"),
        ("hudi.minimum-assigned-split-weight", "1.5"),
        ("hudi.min-partition-batch-size", "200"),
        ("hudi.split-loader-parallelism", "0"),
        ("hive.metastore.uri", "metastore:9083"),
    ],
)
def test_options_that_cannot_be_used(name: str, text: str) -> None:
    with pytest.raises(InvalidOptionError):
        ConnectorConfig.from_options({name: text})


def test_defaults_are_those_of_the_connector_for_trino() -> None:
    config = ConnectorConfig()
    assert (config.max_outstanding, config.max_per_second) == (10_000, 2**31 - 1)
    assert (config.loader_parallelism, config.generator_parallelism) == (10, 4)
    assert (config.min_partition_batch, config.max_partition_batch) == (10, 100)
    assert (config.target_split_size, config.standard_weight_size) == (128 * MB, 128 * MB)
    assert (config.weighted, config.minimum_weight) == (True, 0.05)


@pytest.mark.parametrize("wanted", [ALL, NONE, TupleDomain.of([("id", ">", 3)], FIELD_IDS)])
def test_a_split_travels_as_json(wanted: TupleDomain) -> None:
    for file in (listed(300 * MB), listed(1, FileStatus(".l", 1))):
        for split in factory(wanted).splits(file, INFO):
            again = Split.from_json(split.to_json())
            assert again == split
            assert again.schema.equals(FIELD_IDS, check_metadata=True), "field ids find columns"


@pytest.mark.parametrize(
    "change",
    [
        *({"start": -1}, {"length": "5"}, {"length": True}, {"schema": "AAAA"}),
        *({"schema": "%"}, {"instant": "now"}, {"file": 1}, {"predicate": {"x": {}}}),
        *({"partitionKeys": [1]}, {"logFiles": [None]}, {"mark": None}),
    ],
    ids=str,
)
def test_other_json_is_refused(change: dict[str, Any]) -> None:
    [split] = factory().splits(listed(1), INFO)
    document = json.loads(split.to_json()) | change
    with pytest.raises(SchemaError):
        Split.from_json(json.dumps(document))
    for text in ("", "[]", "{}"):
        with pytest.raises(SchemaError, match="no split"):
            Split.from_json(text)


def test_a_partition_has_the_name_of_a_metastore() -> None:
    info = partition_info(PartitionPath("2026/a b"), {"day": "2026-01-31", "who": "a/b", "n": None})
    assert info.name == "day=2026-01-31/who=a%2Fb/n=__HIVE_DEFAULT_PARTITION__"
    assert partition_info(PartitionPath("odd"), {}).name == "odd"


SMALL = {"hudi.target-split-size": "3kB"}
FARES = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("city", pa.string(), metadata={"doc": "where it was"}),
        pa.field("fare", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
CITIES = ("Rome", "Oslo", "a=b", "naïve")
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": True}


def fares(ids: Sequence[int], fare: float = 0.5) -> pa.Table:
    columns = {"city": [CITIES[n % 4] for n in ids], "fare": [fare * n for n in ids]}
    return rows(*ids, schema=FARES, tags=[["x" * (n % 7)] * (n % 3) for n in ids], **columns)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table with several row groups in each file, and versions of them."""
    blocks = {"hoodie.parquet.block.size": 6_000}
    made = new_table(tmp_path_factory.mktemp("connector") / "t", FARES, ENCODED | blocks)
    made.insert(fares(range(4000)), options=blocks)
    made.upsert(fares(range(400), 2.0), options=blocks)
    made.delete(fares([8, 9]))
    return made


def of_city(table: hudi.Table, city: str = "Rome", connector: Connector | None = None) -> Split:
    """The one split of a city."""
    with (connector or Connector()).scan(table.path, [("city", "=", city)]) as source:
        [found] = list(source)
    return found


def bag(found: pa.Table) -> Counter[str]:
    return Counter(map(str, found.to_pylist()))


def read(connector: Connector, splits: SplitSource, columns: Any = None) -> pa.Table:
    """The rows of all splits, each of which has travelled."""
    with splits:
        parts = [connector.read(split.to_json(), columns).read_all() for split in splits]
    return pa.concat_tables(parts)


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        [("city", "=", "Rome")],
        [("city", "in", ["Oslo", "a=b"]), ("id", "<", 100)],
        [("id", ">=", 3990)],
        [("fare", ">", 100.0), ("fare", "<=", 300.0)],
        (pc.field("id") < 5) | (pc.field("id") == 77),
        [("_hoodie_commit_time", ">", "2")],
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [{}, SMALL], ids=["large", "small"])
def test_splits_hold_each_row_once(table: hudi.Table, wanted: Any, options: dict[str, str]) -> None:
    connector = Connector(options)
    found = read(connector, connector.scan(table.path, wanted))
    expected = table.to_arrow(filter=wanted)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert bag(found) == bag(expected)


def test_files_have_several_splits_with_rows(table: hudi.Table) -> None:
    connector = Connector(SMALL)
    with connector.scan(table.path, [("city", "=", "Rome")]) as source:
        splits = list(source)
    assert len({split.path for split in splits}) == 1
    counts = [connector.read(split, "id").read_all().num_rows for split in splits]
    assert sum(count > 0 for count in counts) > 2
    assert sum(counts) == pq.read_metadata(splits[0].path).num_rows


def test_partitions_that_cannot_match_are_not_listed(table: hudi.Table) -> None:
    connector = Connector()
    with connector.scan(table.path, [("city", "=", "Oslo")]) as source:
        [split] = list(source)
        assert source.progress.partitions == 1
    assert split.partition == "city=Oslo"
    assert dict(split.partition_keys) == {"city": "Oslo"}
    for nobody in ([("id", "<", 0)], [("city", "is null", None)]):
        with connector.scan(table.path, nobody) as source:
            assert list(source) == []


def test_columns_and_a_further_predicate(table: hudi.Table) -> None:
    connector, split = Connector(), of_city(table)
    further = TupleDomain.of([("id", "<", 50)], FARES)
    found = connector.read(split, ["fare", "id"], further).read_all()
    expected = table.to_arrow(["fare", "id"], [("city", "=", "Rome"), ("id", "<", 50)])
    assert found.column_names == ["fare", "id"]
    assert bag(found) == bag(expected)
    assert connector.read(split, "id", NONE).read_all().num_rows == 0
    assert sum(batch.num_rows for batch in connector.read(split, [])) == 999
    assert max(batch.num_rows for batch in connector.read(split, "id", batch_rows=7)) == 7
    with pytest.raises(SchemaError, match="no column"):
        connector.read(split, ["nothing"])


def test_hidden_columns_tell_where_a_row_is(table: hudi.Table) -> None:
    connector = Connector({"hudi.columns-to-hide": "Fare"})
    split = of_city(table, "a=b", connector)
    asked = ["$partition", "id", "$path", "$file_size", "$file_modified_time"]
    second = TupleDomain.of([("id", "=", 2)], FARES)
    [row] = connector.read(split, asked, second).read_all().to_pylist()
    stat = Path(split.path).stat()
    assert (row["$partition"], row["id"]) == ("city=a%3Db", 2)
    assert (row["$path"], row["$file_size"]) == (split.path, stat.st_size)
    assert abs(row["$file_modified_time"].timestamp() - stat.st_mtime) < 0.002
    assert connector.read(split, ["$path"]).read_all().num_rows == 1000
    columns = {column.name: column for column in connector.columns(table.path)}
    assert list(columns)[:5] == table.to_arrow().column_names[:5]
    assert list(columns)[-4:] == ["$path", "$file_size", "$file_modified_time", "$partition"]
    hidden = {name for name, column in columns.items() if column.is_hidden}
    assert hidden == {*list(columns)[-4:], "fare"}
    assert columns["city"].is_partition_key
    assert columns["city"].comment == "where it was"
    assert not columns["$path"].is_stored


def test_a_table_without_partitions(tmp_path: Path) -> None:
    made, connector = new_table(tmp_path / "t", FARES, partition_by=None), Connector()
    with connector.scan(made.path) as source:
        assert list(source) == [], "nothing is written yet"
    made.insert(fares(range(10)))
    assert bag(read(connector, connector.scan(made.path))) == bag(made.to_arrow())
    assert "$partition" not in {column.name for column in connector.columns(made.path)}


def test_rows_without_a_partition_value(tmp_path: Path) -> None:
    made = new_table(tmp_path / "t", rows(1, 2, schema=FARES, city=[None, "Rome"]))
    connector = Connector()
    for wanted in ([("city", "is null", None)], [("city", "=", "Rome")], None):
        found = read(connector, connector.scan(made.path, wanted), ["id", "city", "$partition"])
        assert bag(found.select(["id", "city"])) == bag(made.to_arrow(["id", "city"], wanted))
    names = dict(zip(*found.select(["id", "$partition"]).to_pydict().values(), strict=True))
    assert names == {1: "city=__HIVE_DEFAULT_PARTITION__", 2: "city=Rome"}


def test_past_states(table: hudi.Table) -> None:
    connector = Connector(SMALL)
    for instant in table.timeline.completed_writes():
        found = read(connector, connector.scan(table.path, [("id", "<", 20)], as_of=instant))
        assert bag(found) == bag(table.to_arrow(filter=[("id", "<", 20)], as_of=instant))


def test_changed_rows(table: hudi.Table) -> None:
    connector = Connector(SMALL)
    first, second, _ = table.timeline.completed_writes()
    for begin, end in ((None, None), (first, None), (first, second), (None, first)):
        for wanted in (None, [("city", "=", "Rome")], [("id", "in", [4, 401])]):
            scan = connector.scan(table.path, wanted, kind="incremental", begin=begin, end=end)
            with scan:
                splits = list(scan)
            parts = [connector.read(one.to_json()).read_all() for one in splits]
            expected = table.incremental(begin, end, filter=wanted)
            assert bag(pa.concat_tables([expected.slice(0, 0), *parts])) == bag(expected)


def test_files_from_before_columns_changed(tmp_path: Path) -> None:
    made = new_table(tmp_path / "t", FARES, ENCODED, partition_by=None)
    made.insert(fares(range(100)), options={"hoodie.parquet.block.size": 2_000})
    made.alter(rename={"fare": "price"}, add_columns=[pa.field("note", pa.string())])
    new = rows(200, schema=made.schema, city="Rome", price=7.5, note="new")
    made.insert(new, options={"hoodie.parquet.small.file.limit": 0})
    connector = Connector(SMALL)
    for wanted in (None, [("price", ">", 20.0)], [("note", "=", "new")]):
        found = read(connector, connector.scan(made.path, wanted))
        assert bag(found) == bag(made.to_arrow(filter=wanted))


def test_a_scan_that_needs_a_partition_filter(table: hudi.Table) -> None:
    connector = Connector({"hudi.query-partition-filter-required": True})
    with pytest.raises(SchemaError, match="limits no partition column"):
        connector.scan(table.path, [("id", "=", 1)])
    for wanted in ([("city", "=", "Rome")], [("_hoodie_partition_path", "=", "Rome")]):
        with connector.scan(table.path, wanted) as source:
            assert len(list(source)) == 1


def test_nothing_is_planned_that_nobody_wants(table: hudi.Table) -> None:
    connector = Connector()
    for kind in ("snapshot", "incremental", "read_optimized"):
        with connector.scan(table.path, NONE, kind=kind) as source:
            assert list(source) == []
            assert source.progress.partitions == 0


def test_the_storage_is_listed_where_options_ask_for_it(table: hudi.Table) -> None:
    connector = Connector({"hudi.metadata-enabled": False})
    assert bag(read(connector, connector.scan(table.path))) == bag(table.to_arrow())


def test_no_table_at_a_path(tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        Connector().scan(tmp_path / "nothing")


# --- what is refused
@pytest.fixture
def split(table: hudi.Table) -> Split:
    return of_city(table)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *(
            ({"file": f"a/f-0_0-1-2_20260101000000000.{name.lower()}"}, name)
            for name in ("ORC", "Avro", "HFile", "Lance")
        ),
        ({"file": "a/f-0"}, "no known format"),
    ],
    ids=str,
)
def test_what_has_no_source_is_refused(split: Split, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedTableError, match=reason):
        Connector().read(replace(split, **change))


@pytest.mark.parametrize("file", ["../other/x.parquet", "/etc/x.parquet", "a//x.parquet"])
def test_a_split_names_no_file_outside_of_its_table(split: Split, file: str) -> None:
    with pytest.raises(UnsafePathError):
        Connector().read(replace(split, file=file))


def test_the_place_in_a_split_is_not_trusted(split: Split, tmp_path: Path) -> None:
    document = json.loads(split.to_json()) | {"path": str(tmp_path / "elsewhere.parquet")}
    assert Connector().read(json.dumps(document)).read_all().num_rows == 999


def test_a_file_that_is_gone(split: Split) -> None:
    gone = split.file.replace("_2", "_3", 1)
    for start in (0, 1):
        with pytest.raises(DataFileError):
            Connector().read(replace(split, file=gone, start=start)).read_all()


# --- tables that Apache Hudi wrote
def keys(found: list[dict[str, Any]]) -> Counter[str]:
    names = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_file_name")
    return Counter(str([row[name] for name in names]) for row in found)


@pytest.mark.parametrize("name", COPY_ON_WRITE)
@pytest.mark.parametrize("kind", ["snapshot", "read_optimized"])
def test_tables_of_hudis(real_tables: RealTables, name: str, kind: str) -> None:
    path, connector = real_tables(name), Connector()
    found = read(connector, connector.scan(path, kind=kind))
    assert keys(found.to_pylist()) == keys(by_hudi_rs(path))


@pytest.mark.parametrize("name", MERGE_ON_READ)
def test_base_files_of_tables_with_logs(real_tables: RealTables, name: str) -> None:
    path, connector = real_tables(name), Connector()
    found = read(connector, connector.scan(path, kind="read_optimized"))
    judge = HudiTableBuilder.from_base_uri(str(path))
    judge = judge.with_option("hoodie.read.use.read_optimized.mode", "true")
    expected = [row for batch in judge.build().read() for row in batch.to_pylist()]
    assert keys(found.to_pylist()) == keys(expected)
    snapshot = read(connector, connector.scan(path))
    assert keys(snapshot.to_pylist()) == keys(by_hudi_rs(path))


# --- predicates by column: what ranges mean, from and to filters, as JSON
KIND = pa.int64()
NUMBERS = range(-1, 7)
TYPED_COLUMNS = pa.schema(
    {
        "i": pa.int32(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "m": pa.decimal128(9, 2),
        "x": pa.binary(),
        "c": pa.time64("us"),
        "l": pa.list_(pa.int32()),
    }
)
AT = dt.datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=dt.UTC)
ROWS = pa.Table.from_pylist(
    [
        {},
        {"i": 1, "f": float("nan"), "s": "", "b": True, "m": Decimal("1.50"), "x": b"\0\xff"},
        {"i": 2, "f": -0.0, "s": "a", "b": False, "d": dt.date(2026, 1, 31), "t": AT, "l": [1]},
        {"i": 3, "f": float("inf"), "s": "é", "c": dt.time(1, 2, 3), "x": b"", "l": []},
        {"i": -5, "f": 2.5, "s": "ab", "d": dt.date(1969, 7, 20), "m": Decimal("-3.25")},
        {"i": 7, "f": float("-inf"), "s": "\U0001f600", "t": AT + dt.timedelta(microseconds=1)},
    ],
    TYPED_COLUMNS,
)

bounds = st.none() | st.integers(0, 5)
ranges = st.builds(
    lambda low, high, has_low, has_high: Range(
        low, high, has_low and low is not None, has_high and high is not None
    ),
    *(bounds, bounds, st.booleans(), st.booleans()),
)
domains = st.builds(
    lambda some, nulls: Domain.of(KIND, some, nulls=nulls),
    *(st.lists(ranges, max_size=4), st.booleans()),
)


def holds(one: Range, value: float) -> bool:
    above = one.low is None or value > one.low or (one.has_low and value == one.low)
    below = one.high is None or value < one.high or (one.has_high and value == one.high)
    return above and below


def members(domain: Domain) -> set[int | None]:
    # halves stand for what is between two whole numbers
    found: set[Any] = {n for n in EVERY if any(holds(one, n) for one in domain.ranges)}
    return found | {None} if domain.nulls else found


EVERY = {n / 2 for n in range(-3, 14)}


class TestDomains:
    @given(st.lists(ranges, max_size=5))
    def test_ranges_are_ascending_and_apart(self, some: list[Range]) -> None:
        made = Domain.of(KIND, some).ranges
        expected = {n for n in EVERY if any(holds(one, n) for one in some)}
        assert members(Domain(KIND, made, nulls=False)) == expected
        assert all(not one.meets(two) for one, two in pairwise(made))

    @given(domains, domains)
    def test_both_and_either(self, one: Domain, two: Domain) -> None:
        assert members(one.intersect(two)) == members(one) & members(two)
        assert members(one.union(two)) == members(one) | members(two)
        assert one.intersect(two) == two.intersect(one)

    @given(domains)
    def test_the_other_values(self, one: Domain) -> None:
        assert members(one.other_values(nulls=False)) == EVERY - members(one)
        assert one.other_values(nulls=one.nulls).other_values(nulls=one.nulls) == one

    @given(domains)
    def test_json(self, one: Domain) -> None:
        assert Domain.from_json(one.to_json(), KIND) == one

    def test_words(self) -> None:
        assert Domain.all(KIND).is_all
        assert Domain(KIND, (EVERYTHING,), nulls=False).has_all_values
        assert Domain.of(KIND, [Range(3, 3)]).is_none
        assert Domain.of(KIND, [Range.of(2), Range.of(1)]).singles == (1, 2)
        assert Domain.of(KIND, [Range(1, 2)]).singles is None


EXACT: list[Any] = [
    None,
    *([("i", op, 2)] for op in ("=", "==", "!=", "<", "<=", ">", ">=")),
    [("i", "in", [1, 7, 3])],
    [("i", "not in", [1, 7])],
    [("i", ">", 0), ("i", "<", 7), ("s", "is not null", None)],
    [("s", "is null", None)],
    [("s", ">=", "a"), ("s", "<", "é")],
    [("s", "in", ["", "\U0001f600"])],
    [("b", "=", True)],
    [("b", "!=", True)],
    [("d", "<", "2000-01-01")],
    [("t", "=", AT)],
    [("t", ">", AT)],
    [("m", "<=", Decimal("1.5"))],
    [("x", ">", b"")],
    [("c", "=", dt.time(1, 2, 3))],
    [("f", "<", 3.0)],
    [("f", ">", float("-inf"))],
    [("f", "=", 0.0)],
    [("f", "is not null", None)],
    [("f", "in", [2.5, float("inf")])],
    [("l", "is null", None)],
    [("l", "is not null", None)],
    ~(pc.field("i") < 2),
    ~pc.field("i").isin([1, 2]),
    (pc.field("i") < 0) | (pc.field("i") == 3) | pc.field("i").is_null(),
    (pc.field("i") > 1) & ((pc.field("s") == "a") | (pc.field("s") > "b")),
    ~((pc.field("i") < 2) | (pc.field("s") == "a")),
    ~((pc.field("i") > 2) & (pc.field("i") < 5)),
]


@pytest.mark.parametrize("row_filter", EXACT, ids=str)
def test_a_predicate_accepts_the_rows_of_its_filter(row_filter: Any) -> None:
    wanted = to_filter(row_filter, TYPED_COLUMNS)
    expected = ROWS if wanted is None else ROWS.filter(wanted.expression)
    predicate = TupleDomain.of(row_filter, TYPED_COLUMNS)
    again = TupleDomain.from_json(predicate.to_json(), TYPED_COLUMNS)
    assert again == predicate
    found = again.to_filter(TYPED_COLUMNS)
    rows = ROWS if found is None else ROWS.filter(found.expression)
    # NaN is not equal to itself
    assert str(rows.to_pylist()) == str(expected.to_pylist())


@pytest.mark.parametrize(
    ("row_filter", "reason"),
    [
        ((pc.field("i") == 1) | (pc.field("s") == "a"), "'or' of i, s"),
        ([("f", "!=", 2.5)], "NaN"),
        ([("f", "not in", [2.5])], "NaN"),
        (~(pc.field("f") < 2.5), "NaN"),
        ([("f", "in", [float("nan")])], "NaN"),
        (pc.field("i") + 1 == 2, "no comparison"),
        ([("nothing", "=", 1)], "no column"),
    ],
    ids=str,
)
def test_what_is_none_of_columns_is_refused(row_filter: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        TupleDomain.of(row_filter, TYPED_COLUMNS)


def test_what_contradicts_itself_wants_nothing() -> None:
    one, two = (TupleDomain.of([("i", "=", n)], TYPED_COLUMNS) for n in (1, 2))
    assert one.intersect(two) == NONE
    assert NONE.intersect(ALL).is_none
    assert TupleDomain.from_json(NONE.to_json(), TYPED_COLUMNS).is_none
    assert one.intersect(ALL) == one
    assert not NONE.overlaps({}, 2).any()
    with pytest.raises(ValueError, match="no row"):
        NONE.to_filter(TYPED_COLUMNS)


def test_predicates_meet_ranges() -> None:
    lows, highs = pa.array([0, 5, None], pa.int32()), pa.array([4, 9, None], pa.int32())
    known = ValueRanges(lows, highs, np.zeros(3, np.bool_), np.ones(3, np.bool_))
    predicate = TupleDomain.of([("i", "in", [1, 2])], TYPED_COLUMNS)
    assert predicate.overlaps({"i": known}, 3).tolist() == [True, False, True]
    assert predicate.overlaps({}, 3).all()
    assert ALL.overlaps({"i": known}, 3).all()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"i":{}}', '{"i":{"nulls":1,"values":[1]}}'),
        *('{"i":{"nulls":true,"values":["a"]}}', '{"i":{"nulls":true,"ranges":[[1]]}}'),
        *('{"x":{"nulls":true,"values":["%"]}}', '{"l":{"nulls":true,"values":[[1]]}}'),
        *(
            '{"nothing":{"nulls":true,"ranges":[]}}',
            '{"m":{"nulls":true,"values":["12345678901.5"]}}',
        ),
    ],
)
def test_json_of_no_predicate_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        TupleDomain.from_json(text, TYPED_COLUMNS)
