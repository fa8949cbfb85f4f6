"""Rows of log files: positions, blocks of each kind, and what damaged or forged ones do."""

from __future__ import annotations

import base64
import os
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

import hudi_core as hudi
from hudi_core.avro.wrappers import Wrapped
from hudi_core.config.kinds import LogBlockFormat
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    StorageError,
    UnsupportedTableError,
)
from hudi_core.file_slice.stored_slice import stored_slice
from hudi_core.log_format.block import BlockType, HeaderKey, encode_log_block
from hudi_core.log_format.positions import (
    decode_positions,
    decode_vector,
    encode_positions,
    encode_vector,
    frame_vector,
    unframe_vector,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.context import WriteContext
from tests.foreign import by_hudi_rs
from tests.log_files import (
    NO_METADATA_TABLE,
    data_block,
    delete_block,
    later,
    merge_on_read,
    positions,
    put_log,
)
from tests.property.test_metadata_model import client_of
from tests.samples import IS_WHOLE
from tests.tables import copied, new_table, rows
from tests.unit.refusals import refused

FIELDS = [pa.field("id", pa.string()), pa.field("ts", pa.int64()), pa.field("w", pa.string())]
SCHEMA_OF_LOGS = pa.schema(FIELDS)
PATH = "a log"


# --- positions


def decoded(content: bytes) -> list[int]:
    return [int(one) for one in decode_positions(base64.b64encode(content).decode(), PATH)]


@given(
    st.one_of(
        st.sets(st.integers(0, 2**40), max_size=50),
        st.builds(
            lambda start, count: set(range(start, start + count)), *[st.integers(0, 70_000)] * 2
        ),
        st.builds(
            lambda step, count: {step * number for number in range(count)},
            st.integers(1, 5),
            st.integers(0, 20_000),
        ),
    ),
    st.booleans(),
)
def test_positions_are_those_of_a_roaring_bitmap(of: set[int], has_runs: bool) -> None:
    bitmap = BitMap64(sorted(of))
    if has_runs:
        bitmap.run_optimize()
    assert decoded(bitmap.serialize()) == sorted(of)
    written = encode_positions(np.array(sorted(of), np.int64))
    assert BitMap64.deserialize(base64.b64decode(written)) == bitmap
    assert decode_positions(written, PATH).tolist() == sorted(of)


@pytest.mark.parametrize(
    "of",
    [range(0), range(4096), range(4097), range(0, 300_000, 3), [2**32 - 1, 2**32, 2**40, 2**62]],
    ids=["none", "array", "bits", "both", "high"],
)
def test_positions_are_written_as_by_roaring(of: Sequence[int]) -> None:
    bitmap = BitMap64()
    for one in of:
        bitmap.add(one)
    written = encode_positions(np.array(of, np.int64))
    assert base64.b64decode(written) == bitmap.serialize()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<q", -1),
        struct.pack("<q", 1 << 40),
        struct.pack("<qIII", 1, 0, 12346, 1 << 30),
        struct.pack("<qII", 1, 0, 99),
        # one container that says one value, and has runs of all values
        struct.pack("<qIIBHHHHH", 1, 0, 12347, 1, 0, 0, 1, 0, 65535),
        BitMap64([1, 2, 3]).serialize()[:-1],
    ],
    ids=["empty", "negative", "many", "containers", "form", "runs", "cut"],
)
def test_damaged_positions(content: bytes) -> None:
    with pytest.raises(CorruptMetadataError, match="positions"):
        decoded(content)


def test_a_deletion_vector_is_a_bitmap_in_a_frame() -> None:
    of = [0, 5, 2**33]
    vector = encode_vector(np.array(of, np.int64))
    assert vector == bytes.fromhex("d1d33964") + BitMap64(of).serialize()
    framed = frame_vector(vector)
    assert framed[:4] == struct.pack(">i", len(vector))
    assert framed[-4:] == struct.pack(">I", zlib.crc32(vector))
    assert unframe_vector(framed + b"the next one", PATH) == vector
    assert decode_vector(vector, PATH).tolist() == of


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda framed: framed[:-1], "is cut off"),
        (lambda framed: framed[:3], "is cut off"),
        (lambda framed: b"\xff" + framed[1:], "is cut off"),
        (lambda framed: framed[:-1] + b"!", "another checksum"),
        (lambda framed: framed[:9] + b"!" + framed[10:], "another checksum"),
    ],
    ids=["checksum", "length", "long", "other", "content"],
)
def test_damaged_frames(damage: Callable[[bytes], bytes], what: str) -> None:
    framed = frame_vector(encode_vector(np.array([1, 2, 3], np.int64)))
    with pytest.raises(CorruptMetadataError, match=what):
        unframe_vector(damage(framed), PATH)


@pytest.mark.parametrize("vector", [b"", b"\x64\x39\xd3\xd1", b"\xd1\xd3\x39\x64\x01"])
def test_damaged_deletion_vectors(vector: bytes) -> None:
    with pytest.raises(CorruptMetadataError, match="is damaged"):
        decode_vector(vector, PATH)


# --- blocks


def meta(instant: str, *keys: str) -> list[dict[str, Any]]:
    return [
        {
            "_hoodie_commit_time": instant,
            "_hoodie_commit_seqno": f"{instant}_0_0",
            "_hoodie_record_key": key,
            "_hoodie_partition_path": "",
            "_hoodie_file_name": "f",
            "id": key,
            "ts": 9,
            "w": "new",
        }
        for key in keys
    ]


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """A table of a file group with three rows, of the type MERGE_ON_READ."""
    return copied(tmp_path / "t", three_rows)


@pytest.fixture
def unordered(tmp_path: Path) -> hudi.Table:
    """The same, of which the last version of a row counts."""
    return copied(tmp_path / "t", three_rows, ordering_field=None)


def three_rows(path: Path, **settings: Any) -> hudi.Table:
    made = new_table(path, SCHEMA_OF_LOGS, **{"options": NO_METADATA_TABLE, **settings})
    made.bulk_insert(rows("a", "b", "c", ts=1, w="old", schema=SCHEMA_OF_LOGS))
    return merge_on_read(made)


def put(table: hudi.Table, *blocks: bytes) -> Path:
    [into] = table.file_slices()
    return put_log(table, into, later(into.base_instant, 1000), b"".join(blocks))


def instant_of(table: hudi.Table) -> str:
    return later(table.file_slices()[0].base_instant, 1000)


def shown(table: hudi.Table) -> dict[str, str]:
    found = hudi.Table.open(table.path).to_arrow().to_pylist()
    return {row["id"]: row["w"] for row in found}


def test_what_no_reader_knows_is_refused_by_name(table: hudi.Table) -> None:
    put(table, encode_log_block(BlockType.HFILE, {HeaderKey.INSTANT_TIME: instant_of(table)}, b"x"))
    with refused(Path(table.path), UnsupportedTableError, "HFile blocks"):
        shown(table)


def test_positions_beyond_the_base_file(table: hudi.Table) -> None:
    instant, [into] = instant_of(table), table.file_slices()
    header = positions([7], into.base_instant)
    put(table, data_block(instant, meta(instant, "a"), FIELDS, header=header))
    with refused(Path(table.path), CorruptMetadataError, "beyond its last row"):
        shown(table)


def test_positions_of_another_base_file_do_not_count(table: hudi.Table) -> None:
    instant = instant_of(table)
    header = positions([7], "20200101000000000")
    put(table, data_block(instant, meta(instant, "a"), FIELDS, header=header))
    assert shown(table) == {"a": "new", "b": "old", "c": "old"}


def test_as_many_positions_as_rows(table: hudi.Table) -> None:
    instant, [into] = instant_of(table), table.file_slices()
    header = positions([0, 1], into.base_instant)
    put(table, data_block(instant, meta(instant, "a"), FIELDS, header=header))
    with refused(Path(table.path), CorruptMetadataError, "1 records has 2 record positions"):
        shown(table)


def test_a_partial_update_of_no_row(table: hudi.Table) -> None:
    instant = instant_of(table)
    fields = [field for field in FIELDS if field.name != "w"]
    header = {HeaderKey.IS_PARTIAL: "true"}
    put(table, data_block(instant, meta(instant, "z"), fields, header=header))
    with refused(Path(table.path), CorruptMetadataError, "no row to update"):
        shown(table)


@pytest.mark.parametrize("ordering", [None, Wrapped("LongWrapper", 9)])
def test_a_partial_update_behind_a_delete(table: hudi.Table, ordering: Wrapped | None) -> None:
    """Logs are folded first: what it lacks comes from the base file, as in hudi-rs."""
    instant = instant_of(table)
    fields = [field for field in FIELDS if field.name != "w"]
    header = {HeaderKey.IS_PARTIAL: "true"}
    put(
        table,
        data_block(instant, meta(instant, "a", "z"), FIELDS),
        delete_block(instant, {"a": ordering, "z": ordering}),
        data_block(instant, meta(instant, "a", "z"), fields, header=header),
    )
    wanted = {"a": "old", "b": "old", "c": "old", "z": None}
    assert shown(table) == wanted
    assert {row["id"]: row["w"] for row in by_hudi_rs(table.path)} == wanted


@pytest.mark.parametrize("kind", [BlockType.AVRO, BlockType.PARQUET])
def test_partial_updates_of_other_columns_than_those_read(
    unordered: hudi.Table, kind: BlockType
) -> None:
    """Their rows count, though none of their columns is wanted."""
    instant = instant_of(unordered)
    at = positions([0, 2], unordered.file_slices()[0].base_instant)
    header = {HeaderKey.IS_PARTIAL: "true", **at}
    keys = [{**row, "ts": 7} for row in meta(instant, "a", "c")]
    put(unordered, data_block(instant, keys, FIELDS[:2], kind=kind, header=header))
    found = hudi.Table.open(unordered.path)
    assert found.count() == 3
    for name, values in (("w", ["old"] * 3), ("ts", [1, 7, 7]), ("id", ["a", "b", "c"])):
        assert sorted(found.to_arrow([name])[name].to_pylist()) == values


def test_a_log_changes_the_first_row_of_a_key(tmp_path: Path) -> None:
    """Further rows of a key stay as they are, as Hudi-Spark and hudi-rs read them."""
    made = new_table(tmp_path / "t", SCHEMA_OF_LOGS, NO_METADATA_TABLE, ordering_field=None)
    given = {"id": ["b", "a", "a", "b"], "ts": [1] * 4, "w": ["b1", "a1", "a2", "b2"]}
    made.bulk_insert(pa.table(given, schema=SCHEMA_OF_LOGS))
    table = merge_on_read(made)
    instant = instant_of(table)
    put(table, data_block(instant, meta(instant, "a"), FIELDS), delete_block(instant, {"b": None}))
    wanted = [("a", "a2"), ("a", "new"), ("b", "b2")]
    found = hudi.Table.open(table.path)
    streamed = pa.Table.from_batches(found.to_batches()).to_pylist()
    for read in (found.to_arrow().to_pylist(), streamed, by_hudi_rs(table.path)):
        assert sorted((row["id"], row["w"]) for row in read) == wanted


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_late_row_that_fills_a_stored_one_keeps_the_places_of_others(
    tmp_path: Path, version: str
) -> None:
    """Statements read few columns to find rows, and all of them to change these."""
    options = {
        **NO_METADATA_TABLE,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        ),
    }
    made = new_table(tmp_path / "t", SCHEMA_OF_LOGS, options)
    given = {"id": ["a", "b", "c"], "ts": [9] * 3, "w": [None, "b", "c"]}
    made.bulk_insert(pa.table(given, schema=SCHEMA_OF_LOGS))
    table = merge_on_read(made)
    instant = instant_of(table)
    [late, fresh] = meta(instant, "a", "c")
    put(table, data_block(instant, [{**late, "ts": 1}, fresh], FIELDS))
    assert shown(table) == {"a": "new", "b": "b", "c": "new"}
    source = pa.table({"id": ["c", "b"], "w": ["merged"] * 2})
    values = {"w": "source.w"}
    hudi.Table.open(table.path, options).merge(source, on="id").when_matched_update(
        values
    ).execute()
    found = hudi.Table.open(table.path).to_arrow(["_hoodie_record_key", "id", "w"])
    assert found["_hoodie_record_key"].to_pylist() == found["id"].to_pylist()
    assert shown(table) == {"a": "new", "b": "merged", "c": "merged"}


@pytest.mark.parametrize(("version", "is_last"), [("8", True), ("9", False)])
def test_meta_columns_of_a_late_row_over_another_log(
    tmp_path: Path, version: str, *, is_last: bool
) -> None:
    """Hudi's payload of partial updates makes a row of its own of them, which version 9 has not."""
    options = {
        **NO_METADATA_TABLE,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        ),
    }
    made = new_table(tmp_path / "t", SCHEMA_OF_LOGS, options)
    made.bulk_insert(rows("a", "b", ts=1, w="old", schema=SCHEMA_OF_LOGS))
    table = merge_on_read(made)
    first = InstantTime(instant_of(table))
    second = later(first, 1000)
    [early], [late] = meta(first, "a"), meta(second, "a")
    put(
        table,
        data_block(first, [early], FIELDS),
        data_block(first, [{**late, "ts": 8, "w": "late"}], FIELDS),
    )
    found = hudi.Table.open(table.path).to_arrow(["_hoodie_commit_time", "w"], [("id", "==", "a")])
    assert found.to_pylist() == [{"_hoodie_commit_time": second if is_last else first, "w": "new"}]


@pytest.mark.parametrize("form", LogBlockFormat)
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_columns_that_got_other_names_since(
    tmp_path: Path, form: LogBlockFormat, metadata: str
) -> None:
    place = pa.struct([("level", pa.int64()), ("word", pa.string())])
    schema = pa.schema([*FIELDS, ("place", place)])
    options = {"hoodie.logfile.data.block.format": form.value, "hoodie.metadata.enable": metadata}
    table = new_table(tmp_path / "t", schema, options, table_type="MERGE_ON_READ")

    def given(key: str, ts: int) -> dict[str, Any]:
        word = f"{key}{ts}"
        return {"id": key, "ts": ts, "w": word, "place": {"level": ts, "word": word}}

    table.insert(pa.Table.from_pylist([given("a", 1), given("b", 1)], schema))
    table.upsert(pa.Table.from_pylist([given("a", 2)], schema))
    table.alter(rename={"w": "called", "place.level": "floor"})
    table = hudi.Table.open(table.path)
    wanted: list[dict[str, Any]] = [
        {"id": "a", "called": "a2", "place": {"floor": 2, "word": "a2"}},
        {"id": "b", "called": "b1", "place": {"floor": 1, "word": "b1"}},
    ]
    names = list(wanted[0])
    assert table.to_arrow(names).sort_by("id").to_pylist() == wanted
    assert table.to_arrow(names, filter=[("called", "==", "a2")]).to_pylist() == wanted[:1]
    # a column of the name that another one had has no values of that
    table.alter(drop="called")
    table.alter(add_columns={"w": pa.string(), "called": pa.string()})
    table.alter(drop="place")
    table.alter(add_columns={"place": place})
    for one in wanted:
        one |= {"called": None, "w": None, "place": None}
    names.append("w")
    for _ in range(2):
        table = hudi.Table.open(table.path)
        assert table.to_arrow(names).sort_by("id").to_pylist() == wanted
        for name in ("w", "called"):
            assert table.count([(name, "==", "a2")]) == 0
        table.compact()


def test_blocks_of_archived_instants_count_behind_a_savepoint(tmp_path: Path) -> None:
    """What is archived is before the first write that is left, whatever else is listed."""
    made = new_table(tmp_path / "t", SCHEMA_OF_LOGS, NO_METADATA_TABLE, ordering_field=None)
    made.bulk_insert(rows("a", "b", "c", ts=1, w="old", schema=SCHEMA_OF_LOGS))
    made.savepoint()
    table = merge_on_read(made)
    first = table.file_slices()[0].base_instant
    instants = [later(first, 1000), later(first, 2000)]
    for key, instant in zip("ab", instants, strict=True):
        put_log(
            table,
            table.file_slices()[0],
            instant,
            data_block(instant, meta(instant, key), FIELDS),
        )
    timeline = Path(table.path, ".hoodie", "timeline")
    for time in (first, instants[0]):
        for file in timeline.glob(f"{time}*"):
            if "savepoint" not in file.name:
                file.unlink()
    assert shown(table) == {"a": "new", "b": "new", "c": "old"}


@pytest.mark.parametrize("instant", ["", "yesterday"])
def test_a_block_of_no_instant(table: hudi.Table, instant: str) -> None:
    put(table, data_block(instant, meta(instant_of(table), "a"), FIELDS))
    with refused(Path(table.path), CorruptMetadataError, "names no instant"):
        shown(table)


def test_rows_without_columns_are_as_many(table: hudi.Table) -> None:
    instant = instant_of(table)
    put(
        table,
        data_block(instant, meta(instant, "a", "z"), FIELDS),
        delete_block(instant, {"b": None}),
    )
    found = hudi.Table.open(table.path)
    for condition, count in ((None, 3), (pc.field("w") == "new", 2), (pc.field("w") == "old", 1)):
        assert found.to_arrow([], filter=condition).num_rows == count
        assert sum(one.num_rows for one in found.to_batches([], filter=condition)) == count


def test_rows_by_positions_without_columns_are_as_many(unordered: hudi.Table) -> None:
    """By positions and commit time merging itself needs no column."""
    instant, [into] = instant_of(unordered), unordered.file_slices()
    place = positions([1], into.base_instant)
    put(
        unordered,
        data_block(instant, meta(instant, "b"), FIELDS, header=place),
        delete_block(instant, {"c": None}, positions([2], into.base_instant)),
    )
    found = hudi.Table.open(unordered.path)
    assert found.count() == found.to_arrow([]).num_rows == 2
    assert sum(one.num_rows for one in found.to_batches([])) == 2


@pytest.mark.parametrize("limit", ["1", "1000000"], ids=["disk", "memory"])
def test_a_partial_update_of_a_table_without_meta_columns(tmp_path: Path, limit: str) -> None:
    options = {**NO_METADATA_TABLE, "hoodie.populate.meta.fields": "false"}
    table = copied(tmp_path / "t", three_rows, options=options)
    instant = instant_of(table)
    fields = [field for field in FIELDS if field.name != "w"]
    given = [
        {name: None if name.startswith("_hoodie_") else value for name, value in row.items()}
        for row in meta(instant, "a")
    ]
    header = {HeaderKey.IS_PARTIAL: "true"}
    put(table, data_block(instant, given, fields, kind=BlockType.PARQUET, header=header))
    found = hudi.Table.open(table.path, options={"hoodie.memory.merge.max.size": limit})
    read = {row["id"]: (row["ts"], row["w"]) for row in found.to_arrow().to_pylist()}
    assert read == {"a": (9, "old"), "b": (1, "old"), "c": (1, "old")}
    assert found.count() == 3


# --- rows on the disk


def open_files(folder: Path) -> list[str]:
    """What this process has open in a folder, files without names too."""
    own = Path("/proc/self/fd").iterdir()
    return [to for one in own if (to := link_of(one)).startswith(str(folder))]


def link_of(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # that of the listing itself
        return ""


def random_blocks(table: hudi.Table, drawn: random.Random, *, with_positions: bool) -> None:
    """Blocks of updates, inserts, partial updates and deletes of 200 keys, two of them in a log."""
    [into] = table.file_slices()
    assert into.base_file is not None
    stored = pq.read_table(Path(table.path, into.base_file.path)).column("id").to_pylist()
    for number in range(1, 7):
        instant, header = later(into.base_instant, 1000 * number), {}
        blocks = []
        for kind in drawn.sample(["rows", "partial", "delete"], 2):
            many = drawn.sample(range(len(stored) + (0 if with_positions else 40)), 60)
            keys = [stored[at] if at < len(stored) else f"new {at}" for at in sorted(many)]
            if with_positions:
                header = positions(sorted(many), into.base_instant)
            if kind == "delete":
                values = [None, *(Wrapped("LongWrapper", at) for at in range(8))]
                given = {key: drawn.choice(values) for key in keys}
                blocks.append(delete_block(instant, given, header))
                continue
            fields = FIELDS
            if kind == "partial":
                fields, keys = FIELDS[:2], [key for key in keys if key in stored]
                header = {**header, HeaderKey.IS_PARTIAL: "true"}
            given_rows = [
                {**row, "ts": drawn.randrange(8), "w": f"{number}"} for row in meta(instant, *keys)
            ]
            blocks.append(data_block(instant, given_rows, fields, header=header))
        put_log(table, into, instant, b"".join(blocks))


@pytest.mark.parametrize("with_positions", [True, False], ids=["positions", "keys"])
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event", "commit"])
def test_shards_on_the_disk_give_the_rows_of_memory(
    tmp_path: Path, ordering: str | None, with_positions: bool
) -> None:
    made = new_table(tmp_path / "t", SCHEMA_OF_LOGS, NO_METADATA_TABLE, ordering_field=ordering)
    drawn, folder = random.Random(5), tmp_path / "spilled"
    folder.mkdir()
    made.bulk_insert(rows(*map(str, range(200)), ts=4, w="old", schema=SCHEMA_OF_LOGS))
    table = merge_on_read(made)
    random_blocks(table, drawn, with_positions=with_positions)
    held = hudi.Table.open(table.path)
    wanted = sorted(map(str, held.to_arrow().to_pylist()))
    assert len(set(wanted)) == len(wanted) > 50
    for limit in ("9000", "20000"):
        options = {
            "hoodie.memory.merge.max.size": limit,
            "hoodie.memory.spillable.map.path": str(folder),
        }
        found = hudi.Table.open(table.path, options=options)
        assert sorted(map(str, found.to_arrow().to_pylist())) == wanted
        batches = found.to_batches()
        first = next(iter(batches))
        assert open_files(folder)
        assert not list(folder.iterdir())
        read = pa.Table.from_batches([first, *batches])
        assert sorted(map(str, read.to_pylist())) == wanted
        assert not open_files(folder)
        for column in ("w", "ts"):
            value = held.to_arrow().column(column)[0]
            condition = pc.field(column) == value
            assert found.to_arrow(filter=condition).num_rows == held.count(condition) > 0


def test_files_of_shards_end_with_the_read(table: hudi.Table, tmp_path: Path) -> None:
    instant, folder = instant_of(table), tmp_path / "spilled"
    folder.mkdir()
    options = {
        "hoodie.memory.merge.max.size": "1",
        "hoodie.memory.spillable.map.path": str(folder),
    }
    good = data_block(instant, meta(instant, "a", "z"), FIELDS)
    path = put(table, good)
    batches = hudi.Table.open(table.path, options=options).to_batches()
    next(iter(batches))
    assert open_files(folder)
    del batches
    assert not open_files(folder)
    fields = [field for field in FIELDS if field.name != "w"]
    header = {HeaderKey.IS_PARTIAL: "true"}
    path.write_bytes(good + data_block(instant, meta(instant, "y"), fields, header=header))
    with refused(Path(table.path), CorruptMetadataError, "no row to update"):
        hudi.Table.open(table.path, options=options).to_arrow()
    assert not open_files(folder)
    path.write_bytes(good)
    folder.rmdir()
    with refused(Path(table.path), StorageError, "hoodie.memory.spillable.map.path"):
        hudi.Table.open(table.path, options=options).to_arrow()


@pytest.mark.parametrize("kind", [BlockType.AVRO, BlockType.PARQUET])
def test_a_string_that_is_no_utf8(table: hudi.Table, kind: BlockType) -> None:
    content = data_block(instant_of(table), meta(instant_of(table), "a"), FIELDS, kind=kind)
    put(table, content.replace(b"new", b"n\xffw"))
    with refused(Path(table.path), CorruptMetadataError, "UTF"):
        shown(table)


@pytest.mark.parametrize("kind", [BlockType.AVRO, BlockType.PARQUET])
def test_changed_bytes_are_errors_or_rows(table: hudi.Table, kind: BlockType) -> None:
    """Whatever is changed in a log, a read ends with rows, or with an error that names a file."""
    instant, [into] = instant_of(table), table.file_slices()
    content = data_block(
        instant,
        meta(instant, "a", "b"),
        FIELDS,
        kind=kind,
        header=positions([0, 1], into.base_instant),
    ) + delete_block(instant, {"c": None}, positions([2], into.base_instant))
    path = put(table, content)
    assert shown(table) == {"a": "new", "b": "new"}
    drawn = random.Random(7)
    outcomes = set()
    for _ in range(2000 if IS_WHOLE else 150):
        changed = bytearray(content)
        at = drawn.randrange(len(changed))
        changed[at : at + drawn.choice([1, 1, 4, 8])] = drawn.randbytes(drawn.choice([1, 1, 4, 8]))
        path.write_bytes(changed[: drawn.choice([len(changed), len(changed), at + 1])])
        try:
            shown(table)
            outcomes.add("rows")
        except HudiError as error:
            outcomes.add(type(error).__name__)
    assert {"rows", "CorruptMetadataError"} <= outcomes


def test_a_write_holds_the_log_rows_that_it_may(tmp_path: Path) -> None:
    folder = tmp_path / "spilled"
    folder.mkdir()
    options = {
        "hoodie.memory.merge.max.size": "1000",
        "hoodie.memory.spillable.map.path": str(folder),
        "hoodie.compact.inline": "false",
    }
    table = new_table(tmp_path / "t", SCHEMA_OF_LOGS, NO_METADATA_TABLE, table_type="MERGE_ON_READ")
    keys = [f"{number:05}" for number in range(20_000)]
    table.insert(rows(*keys, ts=1, w="old", schema=SCHEMA_OF_LOGS))
    table.upsert(rows(*keys[:-5], ts=2, w="w" * 100, schema=SCHEMA_OF_LOGS))
    [one] = table.file_slices()
    assert one.base_file is not None
    client = client_of(Path(table.path))
    config = WriteConfig.from_options(options)
    time = later(one.base_instant, 100_000)
    context = WriteContext(
        client.base_path, client.storage_options, client.config, client.schema, config, time
    )
    base = replace(one.base_file, logs=tuple(log.status for log in one.log_files))
    before = pa.total_allocated_bytes()
    stored = stored_slice(context, base, client.schema.names)
    held = pa.total_allocated_bytes() - before
    assert stored.tail.nbytes > 2_000_000
    assert held < 500_000
    places = np.array([0, 7, 19_999])
    assert stored.rows(places, ["ts"])["ts"].to_pylist() == [2, 2, 1]
    del stored
    assert not open_files(folder)

    given = rows(keys[0], keys[-1], ts=3, w="new").cast(SCHEMA_OF_LOGS)
    result = hudi.Table.open(table.path, options).upsert(given)
    assert result.updated == 2
    folder.rmdir()
    with refused(Path(table.path), StorageError, "hoodie.memory.spillable.map.path"):
        hudi.Table.open(table.path, options).upsert(given)
