"""Random histories with every index against a dictionary: rows, folders, counts, moved rows.

Where keys stay in their partition all indexes must give the same table. Where they do not, a global
index keeps every key once in the whole table.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given

import hudi_core as hudi
from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.engine.base import InputFunction, TaskFunction
from hudi_core.engine.local import LocalEngine
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.index import base, locating, tagging
from hudi_core.index.base import Index, SimpleIndex
from hudi_core.index.bloom import BloomIndex
from hudi_core.index.bucket import BucketIndex, bucket_numbers
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.buckets import Buckets, bucket_file_id
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import parse_instant_time
from tests.calls import calls_of
from tests.foreign import by_hudi_rs
from tests.property.histories import (
    DELETED,
    Model,
    Row,
    Step,
    content,
    counts,
    examples,
    perform,
    small_files,
)
from tests.tables import new_table

T = TypeVar("T")
R = TypeVar("R")

INDEXED = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("value", pa.int64())]
)
NAMES = ("_hoodie_partition_path", *INDEXED.names)
CITIES = ("rome", "oslo", "lima", None)
INDEXES = (
    *("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET"),
    *("RECORD_INDEX", "RECORD_LEVEL_INDEX"),
)
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    # only what finds keys is tested here
    "hoodie.metadata.index.column.stats.enable": "false",
}
PARTITIONED_RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.index.column.stats.enable": "false",
}


BLOOM_FILTERS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


class ApartEngine(LocalEngine):
    """Shares no memory, as executors do: all that crosses is pickled, the rest lies in files."""

    shares_memory = False

    def map_input(self, data: Any, function: InputFunction[R], stage: int) -> list[R]:
        found = super().map_input(data, function, stage)
        return [pickle.loads(pickle.dumps(one)) for one in found]

    def map_tasks(
        self,
        tasks: Sequence[T],
        function: TaskFunction[T, R],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[R]:
        sent = [pickle.loads(pickle.dumps(task)) for task in tasks]
        function = pickle.loads(pickle.dumps(function))
        found = super().map_tasks(sent, function, stage, weights)
        return [pickle.loads(pickle.dumps(one)) for one in found]


@st.composite
def drawn_rows(draw: st.DrawFn, same_city: bool) -> Row:
    key = draw(st.integers(0, 9))
    city = CITIES[key % len(CITIES)] if same_city else draw(st.sampled_from(CITIES))
    return {
        "id": f"k{key}",
        "city": city,
        "ts": draw(st.integers(0, 4)),
        "value": draw(st.integers(0, 99)),
        DELETED: draw(st.sampled_from([None, False, False, False, True])),
    }


def _step(operation: str, keys: Iterable[int], ts: int, *deleted: int) -> Step:
    rows = tuple(
        {
            "id": f"k{key}",
            "city": CITIES[key % len(CITIES)],
            "ts": ts,
            "value": key,
            DELETED: key in deleted,
        }
        for key in keys
    )
    return Step(operation, rows)


EVERY = [
    _step("insert", range(9), 1),
    _step("upsert", (0, 3, 4, 9), 2, 4),
    _step("delete", (0, 5, 7), 2),
    _step("upsert", (0, 1, 5), 3, 1),
]
"""A history with every operation: few that are drawn have them all."""


def steps(same_city: bool) -> st.SearchStrategy[list[Step]]:
    batch = st.lists(drawn_rows(same_city), min_size=1, max_size=8).map(tuple)
    operation = st.sampled_from(["upsert", "upsert", "upsert", "delete", "insert"])
    return st.lists(st.builds(Step, operation, batch), min_size=2, max_size=5)


def refused(*_: Any) -> NoReturn:
    raise AssertionError("the footer of a file is opened whose filter the metadata table has")


def indexed_table(path: Path, index: str, event_time: bool, **options: str) -> hudi.Table:
    given_options = {
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "3",
        **(RECORD_INDEX if index == "RECORD_INDEX" else {}),
        **(PARTITIONED_RECORD_INDEX if index == "RECORD_LEVEL_INDEX" else {}),
        **options,
    }
    ordering = "ts" if event_time else None
    return new_table(path, INDEXED, small_files(2) | given_options, ordering_field=ordering)


def written(table: hudi.Table, step: Step, apart: bool) -> tuple[int, int, int]:
    """Counts of a step, whose tasks share no memory if they are apart."""
    schema = (
        INDEXED if step.operation == "delete" else INDEXED.append(pa.field(DELETED, pa.bool_()))
    )
    return counts(perform(table, step, schema, ApartEngine() if apart else None))


def check(table: hudi.Table, model: Model) -> None:
    for found in (table.to_arrow().to_pylist(), by_hudi_rs(table.path)):
        assert all(row["_hoodie_record_key"] == row["id"] for row in found)
        assert content(found, NAMES) == model.content(NAMES)
    # by folder, as readers do that prune
    for slice_ in table.file_slices():
        assert slice_.base_file is not None
        assert slice_.base_file.path.startswith(f"{slice_.partition_path}/")
    if table._session.opened.client.options["hoodie.index.type"].startswith("RECORD"):
        assert indexed_keys(table) == stored_keys(table)


def indexed_keys(table: hudi.Table) -> dict[str, tuple[str, str]]:
    """Return where the record index says that keys are: partition and file group."""
    client = hudi.Table.open(table.path)._session.opened.client
    found = {}
    for record in MetadataSnapshot.open(client).scan("record_index"):
        assert isinstance(record.payload, RecordLocation)
        found[record.key] = (record.payload.partition_name, record.payload.file_id)
    return found


def stored_keys(table: hudi.Table) -> dict[str, tuple[str, str]]:
    """Return where keys are: partition and file group."""
    found: dict[str, tuple[str, str]] = {}
    for slice_ in table.file_slices():
        assert slice_.base_file is not None
        path = Path(table.path, slice_.base_file.path)
        keys = pq.ParquetFile(path).read(["_hoodie_record_key"]).column(0).to_pylist()
        found.update(dict.fromkeys(keys, (slice_.partition_path, slice_.file_id)))
    return found


@given(plan=steps(same_city=True), event_time=st.booleans(), wide=st.booleans())
@example(plan=EVERY, event_time=True, wide=True)
@examples(15, 2)
def test_every_index_gives_the_same_table(
    tmp_path_factory: pytest.TempPathFactory, plan: list[Step], event_time: bool, wide: bool
) -> None:
    folder = tmp_path_factory.mktemp("indexes")
    tables = {index: indexed_table(folder / index, index, event_time) for index in INDEXES}
    filtered = "BLOOM by metadata"
    tables[filtered] = indexed_table(folder / "filtered", "BLOOM", event_time, **BLOOM_FILTERS)
    model = Model(event_time=event_time)
    for step in (model.runnable(step) for step in plan):
        if not step.rows:
            continue
        expected = model.apply(step)
        for index, table in tables.items():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(tagging, "_FILES_PER_TASK", 1 if wide else 32)
                if index == filtered:
                    patch.setattr(locating, "read_known_keys", refused)
                assert written(table, step, wide) == expected, index
            check(table, model)


@given(
    plan=steps(same_city=False),
    event_time=st.booleans(),
    moves=st.booleans(),
    kind=st.sampled_from(["simple", "bloom", "record"]),
    filters=st.booleans(),
    wide=st.booleans(),
    apart=st.booleans(),
)
@examples(15, 4)
def test_global_indexes_follow_moved_keys(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Step],
    event_time: bool,
    moves: bool,
    kind: str,
    filters: bool,
    wide: bool,
    apart: bool,
) -> None:
    options = {f"hoodie.{kind}.index.update.partition.path": str(moves).lower()}
    options |= BLOOM_FILTERS if filters and kind == "bloom" else {}
    path = tmp_path_factory.mktemp("moves") / "table"
    index = "RECORD_INDEX" if kind == "record" else f"GLOBAL_{kind.upper()}"
    table = indexed_table(path, index, event_time, **options)
    model = Model(event_time=event_time, moves=moves)
    for step in (model.runnable(step) for step in plan):
        if not step.rows:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tagging, "_FILES_PER_TASK", 1 if wide else 32)
            if filters:
                patch.setattr(locating, "read_known_keys", refused)
            assert written(table, step, apart) == model.apply(step)
        check(table, model)


@given(plan=steps(same_city=True), event_time=st.booleans(), apart=st.booleans())
@examples(15, 4)
def test_buckets_hold_their_keys(
    tmp_path_factory: pytest.TempPathFactory, plan: list[Step], event_time: bool, apart: bool
) -> None:
    table = indexed_table(tmp_path_factory.mktemp("buckets") / "table", "BUCKET", event_time)
    model = Model(event_time=event_time)
    for step in (model.runnable(step) for step in plan):
        if not step.rows:
            continue
        bulk = replace(step, operation="bulk_insert") if step.operation == "insert" else step
        assert written(table, bulk, apart) == model.apply(step)
        check(table, model)
        buckets_hold(table, 3)


def buckets_hold(table: hudi.Table, number: int) -> None:
    """Every bucket of a partition is one file group, and holds the keys that hash to it."""
    slices = table.file_slices()
    groups = [(slice_.partition_path, slice_.file_id[:8]) for slice_ in slices]
    assert len(set(groups)) == len(groups)
    for row in table.to_arrow().to_pylist():
        units = [ord(letter) for letter in row["id"]]
        code = 0
        for unit in units:
            code = (31 * code + unit) & 0xFFFFFFFF
        bucket = ((31 + code) & 0x7FFFFFFF) % number
        assert row["_hoodie_file_name"].startswith(f"{bucket:08d}-")


# --- bLOOM finds the matches of SIMPLE, and reads fewer key columns for it
INSTANT = parse_instant_time("20260101000000000")


@dataclass
class Files:
    """Files in memory, which count what is read of them."""

    stored: list[list[str]]
    blooms: bool = True
    ranges: bool = True
    keys_read: list[int] = field(default_factory=list)
    footers_read: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.stored)

    def file_id(self, ordinal: int) -> FileId:
        return bucket_file_id(INSTANT, PartitionPath(""), ordinal)

    def footer(self, ordinal: int) -> KeyFooter:
        self.footers_read.append(ordinal)
        keys = self.stored[ordinal]
        low = high = bloom = None
        if self.ranges and keys:
            low, high = min(keys, key=java_order), max(keys, key=java_order)
        if self.blooms:
            bloom = DynamicBloom.build(pa.array(keys, pa.string()), max(1, len(keys)), 1e-3)
        return KeyFooter(low, high, bloom, len(keys))

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        self.keys_read.append(ordinal)
        keys = self.stored[ordinal]
        return pa.chunked_array([keys[:1], keys[1:]], pa.string())


def java_order(text: str) -> bytes:
    return text.encode("utf-16-be")


def matches(index: Index, keys: Sequence[str], files: Files) -> list[tuple[int, str, int]]:
    incoming = pa.array(keys, pa.string())
    return sorted(
        (match.candidate, keys[one], position)
        for match in index.tag(incoming, files)
        for one, position in zip(match.incoming.tolist(), match.stored.tolist(), strict=True)
    )


def by_hand(keys: Sequence[str], files: Files) -> list[tuple[int, str, int]]:
    return sorted(
        (number, key, position)
        for number, stored in enumerate(files.stored)
        for position, key in enumerate(stored)
        if key in keys
    )


TEXTS = st.text("ab~\u00e9\ue000\uffff\U0001f600", min_size=1, max_size=3)


@pytest.mark.parametrize(("held", "probes"), [(1 << 20, 1), (1, 3)])
def test_small_files_are_looked_into_together(
    monkeypatch: pytest.MonkeyPatch, held: int, probes: int
) -> None:
    made = calls_of(monkeypatch, pc, "index_in")
    monkeypatch.setattr(base, "_HELD_BYTES", held)
    files = Files([["a", "b"], ["c"], ["d", "b"]])
    assert matches(SimpleIndex(), ["b", "d"], files) == by_hand(["b", "d"], files)
    assert len(made) == probes


@given(
    keys=st.lists(TEXTS, unique=True, max_size=12),
    stored=st.lists(st.lists(TEXTS, max_size=6), max_size=4),
    blooms=st.booleans(),
    ranges=st.booleans(),
)
# the order of UTF-8 and that of UTF-16 differ here
@example(keys=["\ue000"], stored=[["a", "\ue000", "\U0001f600"]], blooms=False, ranges=True)
@example(keys=["\U0001f600"], stored=[["a", "\U0001f600", "\uffff"]], blooms=False, ranges=True)
def test_bloom_and_simple_find_the_same(
    keys: list[str], stored: list[list[str]], blooms: bool, ranges: bool
) -> None:
    simple, bloom = Files(stored, blooms, ranges), Files(stored, blooms, ranges)
    expected = by_hand(keys, simple)
    assert matches(SimpleIndex(), keys, simple) == expected
    assert matches(BloomIndex(), keys, bloom) == expected
    assert set(bloom.keys_read) <= set(simple.keys_read)


@given(keys=st.lists(TEXTS, unique=True, max_size=12), number=st.integers(1, 5))
def test_buckets_find_what_is_in_them(keys: list[str], number: int) -> None:
    buckets = Buckets(number, ("id",))
    of_keys = bucket_numbers(pa.array(keys, pa.string()), buckets).tolist()
    stored = [
        [key for key, bucket in zip(keys[::2], of_keys[::2], strict=True) if bucket == one]
        for one in range(number)
    ]
    files = Files(stored)
    assert matches(BucketIndex(buckets), keys, files) == by_hand(keys, files)
    assert set(files.keys_read) <= set(of_keys)


def test_files_are_ruled_out_before_their_keys_are_read() -> None:
    stored = [[f"{letter}{number:03d}" for number in range(0, 200, 2)] for letter in "abcd"]
    files = Files(stored)
    found = matches(BloomIndex(), ["b010", "b011", "d500"], files)
    assert found == [(1, "b010", 5)]
    assert files.footers_read == [0, 1, 2, 3]
    assert files.keys_read == [1]
    # by its filter alone
    files = Files(stored, ranges=False)
    assert matches(BloomIndex(), ["b011"], files) == []
    assert files.keys_read == []
    # by its range alone
    files = Files(stored, blooms=False)
    assert matches(BloomIndex(), ["c011"], files) == []
    assert files.keys_read == [2]


@pytest.mark.parametrize("index", [SimpleIndex(), BloomIndex(), BucketIndex(Buckets(2, ("id",)))])
def test_nothing_in_nothing(index: Index) -> None:
    assert matches(index, [], Files([["a"], []])) == []
    assert matches(index, ["a"], Files([])) == []
