"""Logs that a write makes: every type in both formats, what marks, orders and places rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

import hudi_core as hudi
from hudi_core.avro.wrappers import ARRAY, Wrapped
from hudi_core.base_file.writer import BaseFileWriter
from hudi_core.config.kinds import LogBlockFormat
from hudi_core.config.write import WriteConfig
from hudi_core.errors import IncompleteCommitError, InvalidOptionError
from hudi_core.file_slice.log_rows import wrapped_numbers, wrapped_orders
from hudi_core.log_format.block import (
    NATURAL_ORDER,
    BlockType,
    DeletedRecord,
    HeaderKey,
    LogBlock,
    decode_delete_content,
    encode_delete_content,
    encode_deletes,
    read_log_blocks,
)
from hudi_core.log_format.positions import decode_positions
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.files import FileSlice, WriteToken
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.stats import ColumnStats, joined_stats
from hudi_core.rows.context import WriteContext
from hudi_core.rows.meta_columns import RowOrigin, with_meta_columns
from hudi_core.schema.arrow_types import children
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.txn.markers import Marker, MarkerKind, Markers
from hudi_core.write.log_output import LogDeletes, LogPart, LogResult, write_log
from tests.foreign import by_hudi_rs
from tests.interop.test_type_matrix import read_by_us
from tests.interop.typed_values import KEY, NAMES, TYPES, Row, Written, expected, given, plain, row
from tests.log_files import NO_METADATA_TABLE, later, merge_on_read
from tests.property.test_metadata_model import client_of
from tests.tables import new_table, rows


def in_avro_by_hudi_rs(kind: pa.DataType, *, is_below: bool = False) -> bool:
    below = children(kind)
    if below:
        return all(in_avro_by_hudi_rs(one.field.type, is_below=True) for one in below)
    return not pa.types.is_timestamp(kind) or (kind.tz is not None and not is_below)


BLOCK_FORMATS = pytest.mark.parametrize("form", LogBlockFormat)
KEYED = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("w", pa.string())])
TOKEN = WriteToken(3, 1, 2)
NOT_BY_HUDI_RS: dict[LogBlockFormat, tuple[str, ...]] = {
    LogBlockFormat.PARQUET: (),
    # of Avro blocks it takes local timestamps for points in time, and fails on those below structs
    LogBlockFormat.AVRO: tuple(
        name for name in NAMES if not in_avro_by_hudi_rs(TYPES[name].stored)
    ),
}


@dataclass
class Log:
    """A log of a slice that may be written."""

    context: WriteContext
    into: FileSlice

    def write(
        self,
        data: pa.Table | None = None,
        at: Sequence[int] | None = None,
        deletes: LogDeletes | None = None,
    ) -> LogResult:
        """Write rows, which replace those of some positions, and deletes."""
        written = None if data is None else self.with_meta(data)
        [result] = write_log(
            self.context,
            self.into.partition_path,
            self.into.file_id,
            self.into.base_file,
            TOKEN,
            parts=[LogPart(written, None if at is None else np.array(at), deletes)],
        )
        return result

    def with_meta(self, data: pa.Table) -> pa.Table:
        keys = data.column(0).cast(pa.string())
        origin = RowOrigin(self.into.partition_path, str(self.into.file_id), 0)
        batches = data.combine_chunks().to_batches()
        cast = pa.Table.from_batches([self.context.schema.cast_batch(one) for one in batches])
        return with_meta_columns(cast, keys, self.context, origin)

    def blocks(self, result: LogResult) -> list[LogBlock]:
        path = Path(self.context.base_path, result.path)
        return list(read_log_blocks(path.read_bytes(), result.path))


@contextmanager
def log_of(
    table: hudi.Table,
    form: LogBlockFormat = LogBlockFormat.PARQUET,
    *,
    options: Mapping[str, str] | None = None,
    commits: bool = True,
) -> Iterator[Log]:
    """A log of the table's only slice, in a deltacommit that is completed in the end."""
    [into] = table.file_slices()
    time = later(into.base_instant, 1000)
    client = client_of(Path(table.path))
    requested = client.active.create_requested(Instant(time, Action.DELTACOMMIT, State.REQUESTED))
    inflight = client.active.to_inflight(requested)
    config = WriteConfig.from_options(
        {"hoodie.logfile.data.block.format": str(form), **(options or {})}
    )
    context = WriteContext(
        client.base_path, client.storage_options, client.config, client.schema, config, time
    )
    heart = Heartbeat(PosixStorage(table.path), time, 60_000)
    heart.start()
    try:
        yield Log(context, into)
    finally:
        heart.stop()
    if commits:
        complete(client, inflight, table, into)


def complete(client: Any, inflight: Instant, table: hudi.Table, into: FileSlice) -> None:
    time = inflight.requested_time
    [path] = Path(table.path, into.partition_path).glob(f".*{time}.log.*")
    stat = WriteStat(
        file_id=into.file_id,
        path=str(path.relative_to(table.path)),
        prev_commit=time,
        file_size_in_bytes=path.stat().st_size,
        partition_path=into.partition_path,
        log_version=1,
        base_file="" if into.base_file is None else into.base_file.status.name,
        log_files=(path.name,),
    )
    metadata = CommitMetadata({into.partition_path: (stat,)}, operation_type="UPSERT")
    client.active.complete(inflight, later(time, 1), encode(metadata), client.timeline())


def shown(path: str) -> dict[str, tuple[int, str]]:
    found = hudi.Table.open(path).to_arrow().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, by_hudi_rs(path)))
    return {one["id"]: (one["ts"], one["w"]) for one in found}


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """A table of the type MERGE_ON_READ, whose base file has the rows a, b, c and d."""
    made = new_table(tmp_path / "t", KEYED, NO_METADATA_TABLE)
    made.bulk_insert(rows("a", "b", "c", "d", ts=5, w="old", schema=KEYED))
    return merge_on_read(made)


# --- rows


@BLOCK_FORMATS
def test_every_type(tmp_path: Path, form: LogBlockFormat) -> None:
    written = with_log_of_types(tmp_path / "t", form, NAMES)
    assert read_by_us(written) == expected(written)


@BLOCK_FORMATS
def test_types_by_hudi_rs(tmp_path: Path, form: LogBlockFormat) -> None:
    names = tuple(name for name in NAMES if name not in NOT_BY_HUDI_RS[form])
    written = with_log_of_types(tmp_path / "t", form, names)
    found = {one[KEY]: one for one in by_hudi_rs(written.path)}
    assert {
        key: {name: plain(one[name]) for name in names} for key, one in found.items()
    } == expected(written)


def with_log_of_types(path: Path, form: LogBlockFormat, names: tuple[str, ...]) -> Written:
    stored = {"first": row(0), "second": row(1), "third": row(2), "none": row(None)}
    made = new_table(path, given(stored, names), NO_METADATA_TABLE, record_key=KEY)
    changed: dict[str, Row] = {"first": row(None), "second": row(2), "none": row(1)}
    written = Written(merge_on_read(made), stored | changed)
    with log_of(written.table, form) as log:
        log.write(given(changed, names), at=[0, 1, 3])
    return written


def test_new_rows_from_before_a_new_column_by_hudi_rs(tmp_path: Path) -> None:
    """It takes them for updates of some columns, whose types are to be those of the table."""
    place = pa.struct([("level", pa.int32())])
    kinds = {
        "tags": (pa.list_(pa.string()), ["x", None]),
        "place": (place, {"level": 1}),
        "counts": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
        "places": (pa.list_(place), [{"level": 2}]),
    }
    schema = pa.schema([("id", pa.string()), *((name, kind) for name, (kind, _) in kinds.items())])
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = new_table(
        tmp_path / "t", schema, options, table_type="MERGE_ON_READ", ordering_field=None
    )
    values = {name: value for name, (_, value) in kinds.items()}
    for key in "ab":
        table.upsert(pa.Table.from_pylist([{"id": key, **values}], schema))
    added = schema.append(pa.field("note", pa.string()))
    table.upsert(pa.Table.from_pylist([{"id": "a", "note": "n", **values}], added))
    assert [len(one.log_files) for one in table.file_slices()] == [2]
    found = [{name: row[name] for name in added.names} for row in by_hudi_rs(table.path)]
    wanted = [{"id": "a", **values, "note": "n"}, {"id": "b", **values, "note": None}]
    assert sorted(found, key=lambda row: row["id"]) == wanted


@BLOCK_FORMATS
def test_rows_and_deletes_of_one_log(table: hudi.Table, form: LogBlockFormat) -> None:
    deletes = LogDeletes(pa.array(["d", "b"]), [pa.array([7, 6])], np.array([3, 1]))
    with log_of(table, form) as log:
        given = rows("c", "a", ts=[8, 9], w=["C", "A"], schema=KEYED)
        result = log.write(given, at=[2, 0], deletes=deletes)
        data, deleted = log.blocks(result)
        base, schema = log.into.base_instant, log.context.schema
    assert result.name == f".{log.into.file_id}_{log.context.instant}.log.1_3-1-2"
    assert result.size == Path(table.path, result.path).stat().st_size
    assert [data.type, deleted.type] == [BlockType[form.name], BlockType.DELETE]
    for block in (data, deleted):
        assert block.header[HeaderKey.INSTANT_TIME] == log.context.instant
        assert block.header[HeaderKey.SCHEMA] == schema.to_avro("t", with_meta=True)
        assert block.header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] == base
    assert decode_positions(data.header[HeaderKey.RECORD_POSITIONS], "").tolist() == [0, 2]
    assert decode_positions(deleted.header[HeaderKey.RECORD_POSITIONS], "").tolist() == [1, 3]
    assert [
        (one.record_key, one.ordering) for one in decode_delete_content(deleted.content, "")
    ] == [
        ("b", Wrapped("LongWrapper", 6)),
        ("d", Wrapped("LongWrapper", 7)),
    ]
    assert shown(table.path) == {"a": (9, "A"), "c": (8, "C")}


@BLOCK_FORMATS
def test_rows_without_positions(table: hudi.Table, form: LogBlockFormat) -> None:
    with log_of(table, form) as log:
        result = log.write(rows("new", "a", ts=9, w="x", schema=KEYED))
        [block] = log.blocks(result)
    assert HeaderKey.RECORD_POSITIONS not in block.header
    old = dict.fromkeys("bcd", (5, "old"))
    assert shown(table.path) == {"a": (9, "x"), "new": (9, "x"), **old}


def test_row_groups_of_a_block(table: hudi.Table) -> None:
    options = {"hoodie.parquet.block.size": "100"}
    with log_of(table, options=options) as log:
        result = log.write(rows(*"abcd", ts=[9, 8, 7, 6], w="x" * 40, schema=KEYED), at=range(4))
        [block] = log.blocks(result)
    file = pq.ParquetFile(pa.BufferReader(block.content))
    assert file.num_row_groups == 4
    assert (result.stats["ts"].min_value, result.stats["ts"].max_value) == (6, 9)
    assert shown(table.path)["c"] == (7, "x" * 40)


@BLOCK_FORMATS
def test_rows_in_several_blocks(table: hudi.Table, form: LogBlockFormat) -> None:
    given = rows(*"dcba", ts=[6, 7, 8, 9], w="x" * 40, schema=KEYED)
    with log_of(table, form, options={"hoodie.logfile.data.block.max.size": "300"}) as log:
        result = log.write(given, at=[3, 2, 1, 0])
        blocks = log.blocks(result)
    places = [decode_positions(one.header[HeaderKey.RECORD_POSITIONS], "") for one in blocks]
    assert len(blocks) in (2, 4)
    assert np.concatenate(places).tolist() == [0, 1, 2, 3]
    of = result.stats["ts"]
    assert (of.min_value, of.max_value, of.value_count, of.null_count) == (6, 9, 4, 0)
    assert shown(table.path)["c"] == (7, "x" * 40)


@pytest.mark.parametrize(
    ("options", "codec"),
    [
        ({}, "SNAPPY"),
        ({"parquet.compression.codec.zstd.level": "3"}, "ZSTD"),
        ({"hoodie.parquet.compression.codec": "zstd"}, "ZSTD"),
        ({"hoodie.parquet.compression.codec": "gzip"}, "GZIP"),
    ],
)
def test_the_codec_of_few_rows(table: hudi.Table, options: dict[str, str], codec: str) -> None:
    with log_of(table, options=options) as log:
        result = log.write(rows("a", ts=9, w="x" * 40, schema=KEYED), at=[0])
        [block] = log.blocks(result)
    group = pq.ParquetFile(pa.BufferReader(block.content)).metadata.row_group(0)
    assert {group.column(one).compression for one in range(group.num_columns)} == {codec}
    assert shown(table.path)["a"] == (9, "x" * 40)


def test_the_codec_of_many_rows(tmp_path: Path) -> None:
    keys = [f"{number:04}" for number in range(4096)]
    made = new_table(tmp_path / "t", KEYED, NO_METADATA_TABLE)
    made.bulk_insert(rows(*keys, ts=5, w="old", schema=KEYED))
    with log_of(merge_on_read(made)) as log:
        [block] = log.blocks(log.write(rows(*keys, ts=9, w="x", schema=KEYED), at=range(4096)))
    group = pq.ParquetFile(pa.BufferReader(block.content)).metadata.row_group(0)
    assert {group.column(one).compression for one in range(group.num_columns)} == {"ZSTD"}


def test_a_bound_that_one_part_lacks_is_none() -> None:
    """A part without values says nothing of bounds."""
    known, unknown = ColumnStats(1, 5, 2, 0, 0, 9, 9), ColumnStats(None, None, 2, 0, 0, 9, 9)
    nulls = ColumnStats(None, None, 3, 3, 0, 9, 9)
    assert joined_stats([{"a": known}, {"a": nulls}]) == {"a": ColumnStats(1, 5, 5, 3, 0, 18, 18)}
    assert joined_stats([{"a": known}, {"a": unknown}]) == {
        "a": ColumnStats(None, None, 4, 0, 0, 18, 18)
    }


def test_positions_are_left_out_where_nobody_wants_them(table: hudi.Table) -> None:
    deletes = LogDeletes(pa.array(["d"]), [pa.array([7])], np.array([3]))
    with log_of(table, options={"hoodie.write.record.positions": "false"}) as log:
        result = log.write(rows("c", "a", ts=9, w="x", schema=KEYED), at=[2, 0], deletes=deletes)
        blocks = log.blocks(result)
    assert not [one for one in blocks if HeaderKey.RECORD_POSITIONS in one.header]
    assert shown(table.path) == {"a": (9, "x"), "b": (5, "old"), "c": (9, "x")}


_WHOLE = st.sampled_from([pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"), None])


@hypothesis.given(_WHOLE, st.text(max_size=9), st.data())
def test_deletes_by_columns_are_those_of_records(
    kind: pa.DataType | None, partition: str, data: st.DataObject
) -> None:
    keys = pa.array(data.draw(st.lists(st.text(max_size=200), max_size=9)), pa.string())
    size, order = len(keys), []
    if kind is not None:
        bits = 31 if kind.bit_width == 32 else 63
        numbers = st.none() | st.integers(-(2**bits), 2**bits - 1)
        drawn = data.draw(st.lists(numbers, min_size=size, max_size=size))
        order = [pa.array(drawn, pa.int32() if bits == 31 else pa.int64()).cast(kind)]
    orders = wrapped_orders(order) if order else [NATURAL_ORDER] * size
    records = map(DeletedRecord, keys.to_pylist(), [partition] * size, orders)
    numbers_of = wrapped_numbers(order)
    assert numbers_of is not None
    assert encode_deletes(keys, partition, *numbers_of) == encode_delete_content([*records])


@BLOCK_FORMATS
def test_statistics_are_those_of_a_base_file(tmp_path: Path, form: LogBlockFormat) -> None:
    stored = {"first": row(0), "second": row(1), "third": row(2), "none": row(None)}
    made = new_table(tmp_path / "t", given(stored), NO_METADATA_TABLE, record_key=KEY)
    with log_of(merge_on_read(made), form, commits=False) as log:
        result = log.write(given(stored), at=range(4))
        writer = BaseFileWriter(
            pafs.LocalFileSystem(), str(tmp_path / "b.parquet"), log.context.schema, "t"
        )
        writer.write(log.with_meta(given(stored)))
        base = writer.close().stats
    assert {name: bare(one) for name, one in result.stats.items()} == {
        name: bare(one) for name, one in base.items()
    }
    sizes = {one.compressed_size > 0 for one in result.stats.values()}
    assert sizes == {form is LogBlockFormat.PARQUET}


def bare(of: ColumnStats) -> ColumnStats:
    return replace(of, compressed_size=0, uncompressed_size=0)


@BLOCK_FORMATS
@pytest.mark.parametrize("virtual", ["hoodie.populate.meta.fields"])
def test_meta_columns_that_the_table_does_not_store(
    tmp_path: Path, form: LogBlockFormat, virtual: str
) -> None:
    made = new_table(tmp_path / "t", KEYED, {**NO_METADATA_TABLE, virtual: "false"})
    made.bulk_insert(rows("a", "b", "c", ts=5, w="old", schema=KEYED))
    with log_of(merge_on_read(made), form) as log:
        deletes = LogDeletes(pa.array(["b"]), [pa.array([6])], None)
        result = log.write(rows("a", ts=9, w="x", schema=KEYED), deletes=deletes)
        data, _ = log.blocks(result)
    assert set(result.stats) == set(KEYED.names)
    if form is LogBlockFormat.PARQUET:
        stored = pq.read_table(pa.BufferReader(data.content))
        assert stored.column_names == [*META_COLUMNS, *KEYED.names]
        assert all(stored.column(name).null_count == 1 for name in META_COLUMNS)
    assert {one["id"]: one["w"] for one in hudi.Table.open(made.path).to_arrow().to_pylist()} == {
        "a": "x",
        "c": "old",
    }


# --- markers and attempts


def test_the_marker_comes_before_the_log(table: hudi.Table) -> None:
    with log_of(table) as log:
        result = log.write(rows("a", ts=9, w="x", schema=KEYED), at=[0])
        markers = Markers(PosixStorage(table.path), log.context.instant)
        path = log.into.partition_path
        assert markers.list() == {Marker(path, result.name, MarkerKind.APPEND)}


def test_a_lost_attempt_leaves_no_log(table: hudi.Table) -> None:
    with log_of(table, commits=False) as log:
        Markers(PosixStorage(table.path), log.context.instant).seal()
        with pytest.raises(IncompleteCommitError, match="takes no further files"):
            log.write(rows("a", ts=9, w="x", schema=KEYED), at=[0])
    assert not list(Path(table.path).glob(".*.log.*"))


def test_an_attempt_that_is_lost_while_it_writes_removes_its_log(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with log_of(table, commits=False) as log:
        markers = Markers(PosixStorage(table.path), log.context.instant)
        put = PosixStorage.put_if_absent

        def sealed(self: PosixStorage, path: str, data: bytes) -> None:
            put(self, path, data)
            if ".log." in path and ".marker." not in path:
                markers.seal()

        monkeypatch.setattr(PosixStorage, "put_if_absent", sealed)
        with pytest.raises(IncompleteCommitError, match="takes no further files"):
            log.write(rows("a", ts=9, w="x", schema=KEYED), at=[0])
    assert not list(Path(table.path).glob(".*.log.*"))


def test_a_log_of_a_preview(table: hudi.Table) -> None:
    with log_of(table, commits=False) as log:
        context = replace(log.context, preview=".hoodie/.temp/preview")
        result = Log(context, log.into).write(rows("a", ts=9, w="x", schema=KEYED), at=[0])
        assert result.path == f".hoodie/.temp/preview/{result.name}"
        assert len(log.blocks(result)) == 1
        assert not Markers(PosixStorage(table.path), log.context.instant).list()


# --- ordering values of deletes

ORDERS: list[tuple[pa.DataType, Any, str]] = [
    (pa.int32(), 7, "IntWrapper"),
    (pa.int64(), 7, "LongWrapper"),
    (pa.float32(), 0.5, "FloatWrapper"),
    (pa.float64(), 0.1, "DoubleWrapper"),
    (pa.string(), "später", "StringWrapper"),
    (pa.bool_(), True, "BooleanWrapper"),
    (pa.date32(), dt.date(2026, 2, 3), "IntWrapper"),
    (pa.time64("us"), dt.time(1, 2, 3, 4), "LongWrapper"),
    (pa.timestamp("us"), dt.datetime(2026, 2, 3, 4, 5, 6, 7), "LongWrapper"),  # noqa: DTZ001
    (pa.timestamp("us", "UTC"), dt.datetime(2026, 2, 3, tzinfo=dt.UTC), "LongWrapper"),
    (pa.decimal128(12, 2), Decimal("-1.25"), "DecimalWrapper"),
    (pa.decimal128(30, 15), Decimal("9" * 15 + "." + "9" * 15), "DecimalWrapper"),
]


@pytest.mark.parametrize(("kind", "value", "wrapper"), ORDERS, ids=str)
def test_the_ordering_value_of_a_delete(
    tmp_path: Path, kind: pa.DataType, value: Any, wrapper: str
) -> None:
    """A row of the same ordering value that comes later counts, an older one does not."""
    order = pa.array([value], kind)
    [wrapped] = wrapped_orders([order])
    assert wrapped is not None
    assert wrapped.wrapper == wrapper
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("w", pa.string())])
    made = new_table(tmp_path / "t", schema, NO_METADATA_TABLE)
    made.bulk_insert(rows("a", "b", ts=[value, value], w="old", schema=schema))
    table = merge_on_read(made)
    with log_of(table) as log:
        log.write(deletes=LogDeletes(pa.array(["a"]), [order], np.array([0])))
    found = hudi.Table.open(table.path).to_arrow().to_pylist()
    assert [one["id"] for one in found] == ["b"]
    assert [one["id"] for one in by_hudi_rs(table.path)] == ["b"]


def test_deletes_that_always_hold() -> None:
    assert wrapped_orders([pa.array([1, None])]) == [Wrapped("LongWrapper", 1), None]
    digits = pa.array([Decimal("1e-16"), Decimal(10) ** 15], pa.decimal128(38, 16))
    assert wrapped_orders([digits]) == [None, None]


def test_several_ordering_values() -> None:
    found = wrapped_orders([pa.array([1, None]), pa.array(["x", "y"])])
    assert found == [
        Wrapped(ARRAY, (Wrapped("LongWrapper", 1), Wrapped("StringWrapper", "x"))),
        None,
    ]


def test_deletes_with_and_without_ordering_values(table: hudi.Table) -> None:
    """Of a row without a value nobody knows which version is the later one."""
    with log_of(table) as log:
        order = pa.array([None, 7], pa.int64())
        log.write(deletes=LogDeletes(pa.array(["a", "b"]), [order], np.array([0, 1])))
    assert sorted(shown(table.path)) == ["c", "d"]


def test_a_delete_without_ordering_values(table: hudi.Table) -> None:
    with log_of(table) as log:
        result = log.write(deletes=LogDeletes(pa.array(["a"]), [], np.array([0])))
        [block] = log.blocks(result)
    [one] = decode_delete_content(block.content, "")
    assert (one.record_key, one.ordering) == ("a", NATURAL_ORDER)
    assert not result.stats
    assert sorted(shown(table.path)) == ["b", "c", "d"]


# --- ordering values that readers compare otherwise

STORED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 5]),
    (pa.float64(), [None, -0.0, 0.0, float("nan")]),
    (pa.string(), [None, "b", "\U0001f600", "\uffee"]),
    (pa.bool_(), [None, False, True]),
    (pa.date32(), [None, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 1, 1)]),
    (pa.decimal128(38, 20), [None, *map(Decimal, ("0", "1e-18", "-1e-18"))]),
]


@pytest.mark.parametrize("deletes", [False, True], ids=["rows", "deletes"])
@pytest.mark.parametrize(("kind", "values"), STORED, ids=str)
def test_any_two_ordering_values(
    tmp_path: Path, kind: pa.DataType, values: list[Any], *, deletes: bool
) -> None:
    """Each stored value meets each; the outcome is that of a table without logs."""
    columns = [("id", pa.string()), ("ts", kind), ("w", pa.string())]
    schema = pa.schema([*columns, ("_hoodie_is_deleted", pa.bool_())])
    numbers = range(len(values) ** 2)
    ids = [f"k{number:02}" for number in numbers]
    stored = rows(*ids, ts=[values[n // len(values)] for n in numbers], w="old", schema=schema)
    order = [values[n % len(values)] for n in numbers]
    plain_table, logged = (
        new_table(tmp_path / name, schema, NO_METADATA_TABLE) for name in ("plain", "logged")
    )
    for table in (plain_table, logged):
        table.bulk_insert(stored)
    logged = merge_on_read(logged)
    for id_, ts in zip(ids, order, strict=True):
        gone = {"_hoodie_is_deleted": deletes}
        for table in (plain_table, logged):
            table.upsert(rows(id_, ts=pa.array([ts], kind), w="new", schema=schema, **gone))
        wanted = versions(plain_table.to_arrow().to_pylist())
        assert versions(logged.to_arrow().to_pylist()) == wanted
        assert versions(by_hudi_rs(logged.path)) == wanted


def versions(found: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {one["id"]: (str(one["ts"]), one["w"]) for one in found}


@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX"])
def test_large_logs_go_on_in_the_next_file(tmp_path: Path, index: str) -> None:
    options = {
        "hoodie.logfile.data.block.max.size": "1000",
        "hoodie.logfile.max.size": "8000",
        "hoodie.compact.inline": "false",
        "hoodie.index.type": index,
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    table = new_table(tmp_path / "t", KEYED, options, table_type="MERGE_ON_READ")
    keys = [f"{number:03}" for number in range(200)]
    table.insert(rows(*keys, ts=1, w="old", schema=KEYED))

    changes = rows(*keys[:150], ts=2, w="new", schema=KEYED)
    marked = changes.append_column(
        "_hoodie_is_deleted", pa.array([number > 140 for number in range(150)])
    )
    result = table.upsert(marked)

    assert (result.updated, result.deleted) == (141, 9)
    [one] = table.file_slices()
    names = [log.name for log in one.log_files]
    assert [name.version for name in names] == list(range(1, len(names) + 1))
    assert len(names) > 2
    assert len({str(name.instant) for name in names}) == 1
    sizes = [log.status.size for log in one.log_files]
    assert all(8000 <= size < 16_000 for size in sizes[:-1])
    found = [row["w"] for row in table.to_arrow(["id", "w"]).sort_by("id").to_pylist()]
    assert found == ["new"] * 141 + ["old"] * 50
    theirs = sorted(by_hudi_rs(table.path), key=lambda row: str(row["id"]))
    assert [row["w"] for row in theirs] == found
    assert table.count([("w", "=", "new")]) == 141
    assert table.validate(keys=True).is_valid

    again = table.upsert(rows(*keys[100:145], ts=3, w="again", schema=KEYED))
    assert (again.updated, again.inserted) == (41, 4)
    assert table.validate(keys=True).is_valid
    table.rollback(again.instant)
    assert [row["w"] for row in table.to_arrow(["id", "w"]).sort_by("id").to_pylist()] == found
    table.rollback(result.instant)
    assert table.file_slices()[0].log_files == ()
    assert not [path for path in Path(table.path).rglob("*.log.*") if ".hoodie" not in path.parts]
    assert table.validate(keys=True).is_valid


def test_blocks_of_hfile_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="Supported: parquet, avro"):
        WriteConfig.from_options({"hoodie.logfile.data.block.format": "hfile"})
