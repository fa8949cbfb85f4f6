"""Every HFile and log file that Apache Hudi wrote: read, and written again the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.avro.datum import decode_datum, encode_datum, parse_writer_schema
from hudi_core.config.properties import parse_properties
from hudi_core.hashing.java_hash import shards_of
from hudi_core.log_format.block import (
    BlockType,
    HeaderKey,
    LogBlock,
    decode_avro_content,
    decode_delete_content,
    encode_delete_content,
    encode_log_block,
    find_log_blocks,
    read_log_blocks,
)
from hudi_core.metadata import keys
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.hfile.trailer import Trailer
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.log.record_codec import RecordDecoder, RecordEncoder
from hudi_core.metadata.log.records import (
    ColumnRange,
    FileList,
    MetadataRecord,
    RecordLocation,
    RecordType,
)
from hudi_core.metadata.merging import merge, present
from hudi_core.metadata.partition_types import shard_number
from hudi_core.metadata.statistics.bounds import bound_type
from hudi_core.metadata.statistics.column_ranges import decode_ranges
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from tests.hudi_tables import NO_METADATA, TRIPS, WITH_METADATA, RealTables
from tests.unit.test_metadata_ranges import unwrap, wrap

BY_HBASE = TRIPS
"""Of version 8: HBase's writer made its HFiles."""


class MetadataFile(NamedTuple):
    """One HFile of a metadata table, alone or in a log file."""

    partition: str
    name: str
    is_base: bool
    data: bytes

    @property
    def reader(self) -> HFileReader:
        return HFileReader.from_bytes(self.data, self.name)

    @property
    def shard(self) -> int:
        found = shard_number(FileId(self.name.lstrip(".").partition("_")[0]))
        assert found is not None
        return found


def log_files(table: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(table.rglob(".*.log.*")):
        if path.suffix != ".crc":
            yield path, path.read_bytes()


def hfiles(table: Path) -> Iterator[MetadataFile]:
    folder = table / ".hoodie" / "metadata"
    for path in sorted(folder.rglob("*.hfile")):
        yield MetadataFile(path.parent.name, path.name, True, path.read_bytes())
    for path, data in log_files(folder):
        for block in read_log_blocks(data, str(path)):
            if block.type == BlockType.HFILE:
                yield MetadataFile(path.parent.name, path.name, False, block.content)


def records(file: MetadataFile) -> Iterator[MetadataRecord]:
    reader = file.reader
    decoder = RecordDecoder(reader.schema, file.name)
    for key, value in reader.entries():
        record = decoder.decode(key, value)
        assert record is not None
        yield record


# --- HFiles -------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_METADATA)
def test_every_hfile_is_there(real_tables: RealTables, name: str) -> None:
    """Those that the commits name, which name log files with deletes alone as well."""
    table = real_tables(name)
    folder = table / ".hoodie/metadata"
    active = ActiveTimeline(PosixStorage(str(folder), fsync=False), ".hoodie/timeline")
    named = {
        stat.path
        for instant in active.load().completed_writes()
        for stat in active.read_commit(instant).stats
    }
    found = {f"{one.partition}/{one.name}" for one in hfiles(table)}
    deletes = {
        str(path.relative_to(folder))
        for path, data in log_files(folder)
        if {block.type for block in read_log_blocks(data, str(path))} == {BlockType.DELETE}
    }
    assert set() < found <= named <= found | deletes


def _written_again(file: MetadataFile, full_keys: bool) -> bytes:
    reader = file.reader
    bloom = reader.meta_block("bloomFilter")
    return write_hfile(
        reader.entries(),
        HFileOptions(
            schema=reader.schema,
            create_time_ms=int.from_bytes(reader.info["hfile.CREATE_TIME_TS"], "big"),
            codec=reader.trailer.codec,
            full_keys=full_keys,
            base_file=file.is_base,
            bloom=None if bloom is None else bloom.decode(),
        ),
    )


@pytest.mark.parametrize("name", [name for name in WITH_METADATA if name != BY_HBASE])
def test_hfiles_of_hudis_own_writer_are_written_again(real_tables: RealTables, name: str) -> None:
    for file in hfiles(real_tables(name)):
        ours = HFileReader.from_bytes(_written_again(file, full_keys=False), file.name)
        theirs = file.reader
        assert [cells.content for cells in ours.blocks()] == [
            cells.content for cells in theirs.blocks()
        ]
        assert list(ours.info.items()) == list(theirs.info.items())
        assert _without_offsets(ours.trailer) == _without_offsets(theirs.trailer)


def _without_offsets(trailer: Trailer) -> Trailer:
    # another release of zlib may compress to other bytes, and blocks begin elsewhere then
    return replace(trailer, file_info_offset=0, load_on_open_offset=0, last_data_offset=0)


def test_hfiles_of_hbases_writer_hold_the_same_blocks(real_tables: RealTables) -> None:
    for file in hfiles(real_tables(BY_HBASE)):
        ours = HFileReader.from_bytes(_written_again(file, full_keys=True), file.name)
        theirs = file.reader
        assert [cells.content for cells in ours.blocks()] == [
            cells.content for cells in theirs.blocks()
        ]
        # of an empty file it says no last key at all
        assert {
            name: value for name, value in ours.info.items() if value or name in theirs.info
        } == (dict(theirs.info))
        assert ours.entry_count == theirs.entry_count


@pytest.mark.parametrize("name", WITH_METADATA)
def test_every_key_is_found_alone_and_by_its_prefix(real_tables: RealTables, name: str) -> None:
    for file in hfiles(real_tables(name)):
        reader = file.reader
        entries = list(reader.entries())
        assert len(entries) == reader.entry_count
        assert list(reader.get_many(key for key, _ in entries)) == entries
        for key, value in entries:
            assert reader.get(key) == value
            assert reader.get(key + b"\0") is None
            assert (key, value) in list(reader.scan_prefixes([key[:12]]))
        if file.is_base and entries:
            assert (reader.min_key, reader.max_key) == (entries[0][0], entries[-1][0])


# --- log files ----------------------------------------------------------------


@pytest.mark.parametrize("name", [*WITH_METADATA, NO_METADATA])
def test_log_files_are_written_again(real_tables: RealTables, name: str) -> None:
    seen = set()
    for path, data in log_files(real_tables(name)):
        blocks = list(read_log_blocks(data, str(path)))
        again = [
            encode_log_block(
                BlockType(block.type),
                {HeaderKey(key): value for key, value in block.header.items()},
                block.content,
            )
            for block in blocks
        ]
        assert b"".join(again) == data
        assert blocks == list(read_log_blocks(data, str(path), skip_corrupt=True))
        for block in blocks:
            seen.add(block.type)
            _check_content(block, str(path))
    assert {BlockType.DELETE} < seen <= {BlockType.DELETE, BlockType.HFILE, BlockType.AVRO}


def _check_content(block: LogBlock, path: str) -> None:
    if block.type == BlockType.DELETE:
        assert encode_delete_content(decode_delete_content(block.content, path)) == block.content
    elif block.type == BlockType.AVRO:
        schema = parse_writer_schema(block.header[HeaderKey.SCHEMA], path).parsed
        rows = list(decode_avro_content(block.content, path))
        decoded = [decode_datum(row, schema, path) for row in rows]
        assert decoded
        assert all(row["_hoodie_record_key"] for row in decoded)
        assert [encode_datum(row, schema) for row in decoded] == rows


@pytest.mark.parametrize("name", WITH_METADATA)
def test_hfiles_are_read_in_place_in_log_files(real_tables: RealTables, name: str) -> None:
    for path, data in log_files(real_tables(name) / ".hoodie" / "metadata"):

        def read(offset: int, length: int, data: bytes = data) -> bytes:
            return data[offset : offset + length]

        for place in find_log_blocks(read, len(data), str(path)):
            if place.type == BlockType.HFILE:
                inside = HFileReader(read, place.size, str(path), place.offset)
                alone = HFileReader.from_bytes(
                    data[place.offset : place.offset + place.size], str(path)
                )
                assert list(inside.entries()) == list(alone.entries())


# --- records ------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_METADATA)
def test_records_are_encoded_again(real_tables: RealTables, name: str) -> None:
    # Hudi 1.0, which made the table of version 8, has no types of bounds
    is_same = name != BY_HBASE
    for file in hfiles(real_tables(name)):
        reader = file.reader
        schema = json.loads(reader.schema)
        assert (json.loads(RecordEncoder().schema) == _without_docs(schema)) is is_same
        decoder = RecordDecoder(reader.schema, file.name)
        for key, value in reader.entries():
            # four meta fields are null; base files say their name in the fifth, or do not
            file_name = file.name if value[4] == 2 else None
            record = decoder.decode(key, value)
            assert record is not None
            encoder = RecordEncoder(file_name)
            again = encoder.encode(record)
            if is_same:
                assert again == (key, value)
            else:
                assert RecordDecoder(encoder.schema, file.name).decode(*again) == record


def _without_docs(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_docs(value) for key, value in tree.items() if key != "doc"}
    return [_without_docs(item) for item in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("name", WITH_METADATA)
def test_keys_are_those_of_what_the_records_say(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    partitions = _partitions(table)
    counted = 0
    for file in hfiles(table):
        for record in records(file):
            payload = record.payload
            if isinstance(payload, ColumnRange):
                assert payload.column_name is not None
                assert payload.file_name is not None
                counted += 1
                name_of = payload.file_name
                expected = {
                    keys.partition_stats_key(payload.column_name, PartitionPath(name_of))
                    if record.type == RecordType.PARTITION_STATS
                    else keys.column_stats_key(payload.column_name, partition, name_of)
                    for partition in partitions
                }
                assert record.key in expected
            elif record.type == RecordType.SECONDARY_INDEX:
                value, record_key = keys.split_secondary_key(record.key, file.name)
                assert keys.secondary_key(value, record_key) == record.key
    assert counted > 20


def _partitions(table: Path) -> set[PartitionPath]:
    found = set()
    for file in hfiles(table):
        for record in records(file):
            if record.type == RecordType.ALL_PARTITIONS:
                assert isinstance(record.payload, FileList)
                found |= {keys.partition_path(path) for path in record.payload.files}
    return found


@pytest.mark.parametrize("name", WITH_METADATA)
def test_records_are_in_the_file_group_of_their_key(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    folder = table / ".hoodie" / "metadata"
    is_version_8 = name == BY_HBASE
    counted = 0
    for file in hfiles(table):
        ids = {
            path.name.lstrip(".").partition("_")[0] for path in (folder / file.partition).iterdir()
        }
        groups = {shard_number(FileId(text)) for text in ids} - {None}
        texts = [record.key for record in records(file)]
        if file.partition.startswith("secondary_index_") and not is_version_8:
            texts = [
                keys.secondary_prefix(keys.split_secondary_key(text, file.name)[0])
                for text in texts
            ]
        shards = shards_of(pa.array(texts, pa.string()), len(groups)).tolist()
        assert set(shards) <= {file.shard}
        counted += len(shards) if len(groups) > 1 else 0
    assert counted > 10


@pytest.mark.parametrize("name", WITH_METADATA)
def test_merged_lists_are_the_files_that_are_stored(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    merged: dict[str, MetadataRecord | None] = {}
    found = [file for file in hfiles(table) if file.partition == "files"]
    completed = _completion_times(table)
    for file in sorted(found, key=lambda file: _time(file, completed)):
        for record in records(file):
            # a base file holds what all files that were complete before it came to
            older = None if file.is_base else merged.get(record.key)
            merged[record.key] = merge(older, record)
    for result in map(present, merged.values()):
        assert result is not None
        assert isinstance(result.payload, FileList)
        if result.type == RecordType.ALL_PARTITIONS:
            continue
        folder = table / keys.partition_path(result.key)
        stored = {
            path.name: path.stat().st_size
            for path in folder.iterdir()
            if path.is_file() and (path.suffix == ".parquet" or ".log." in path.name)
            if path.suffix != ".crc"
        }
        assert {name: entry.size for name, entry in result.payload.files.items()} == stored


def _completion_times(table: Path) -> dict[str, str]:
    """Return when each instant of the metadata table was complete."""
    folder = table / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    stems = [path.name.partition(".")[0] for path in folder.iterdir() if path.is_file()]
    return dict(stem.split("_") for stem in stems if "_" in stem)


def _time(file: MetadataFile, completed: dict[str, str]) -> str:
    if file.is_base:
        return file.name.rpartition("_")[2].partition(".")[0]
    return completed[file.name.split("_")[1].partition(".")[0]]


@pytest.mark.parametrize("name", WITH_METADATA)
def test_statistics_are_those_of_the_data_files(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    stored = {path.name: path for path in table.rglob("*.parquet")}
    is_version_8 = name == BY_HBASE
    counted = 0
    for file in hfiles(table):
        for record in records(file):
            said = record.payload
            if record.type != RecordType.COLUMN_STATS or not isinstance(said, ColumnRange):
                continue
            path = stored.get(said.file_name or "")
            if path is None or said.is_deleted:
                continue
            assert said.column_name is not None
            assert said == _recomputed(path, said.column_name, not is_version_8)
            for bound in filter(None, (said.min_value, said.max_value)):
                kind = pq.read_schema(path).field(said.column_name).type
                value = unwrap(bound, said.value_type, kind)
                assert value is not None
                assert wrap(value, kind, not is_version_8) == bound
            counted += 1
    assert counted > 15


def _recomputed(path: Path, column: str, has_value_types: bool) -> ColumnRange:
    """Return the statistics of a column from its values, and its sizes from the footer."""
    with pq.ParquetFile(path) as parquet:
        values = parquet.read([column]).column(0)
        metadata = parquet.metadata
    leaf = [metadata.schema.column(n).path for n in range(metadata.num_columns)].index(column)
    chunks = [metadata.row_group(n).column(leaf) for n in range(metadata.num_row_groups)]
    kind = values.type
    if pa.types.is_date(kind):
        plain = values.cast(pa.int32())
    else:
        plain = values.cast(pa.int64()) if pa.types.is_timestamp(kind) else values
    bounds = {
        name: None if value is None else wrap(value, kind, has_value_types)
        for name, value in pc.min_max(plain).as_py().items()
    }
    return ColumnRange(
        file_name=path.name,
        column_name=column,
        min_value=bounds["min"],
        max_value=bounds["max"],
        value_count=len(values),
        null_count=values.null_count,
        total_size=sum(chunk.total_compressed_size for chunk in chunks),
        total_uncompressed_size=sum(chunk.total_uncompressed_size for chunk in chunks),
        value_type=bound_type(kind) if has_value_types else None,
    )


@pytest.mark.parametrize("name", WITH_METADATA)
def test_statistics_are_the_same_as_a_table(real_tables: RealTables, name: str) -> None:
    for file in hfiles(real_tables(name)):
        if file.partition not in ("column_stats", "partition_stats"):
            continue
        reader = file.reader
        rows = decode_ranges(reader.entries(), reader.schema, file.name).to_pylist()
        for row, record in zip(rows, records(file), strict=True):
            said = record.payload
            assert isinstance(said, ColumnRange)
            assert (row["key"], row["file_name"]) == (record.key, said.file_name)
            assert row["min_wrapper"] == (said.min_value and said.min_value.wrapper)
            assert (row["value_count"], row["null_count"]) == (said.value_count, said.null_count)
            assert (row["is_deleted"], row["is_tight_bound"]) == (
                said.is_deleted,
                said.is_tight_bound,
            )
            found = [row[f"max_{form}"] for form in ("int", "float", "bytes")]
            assert len([value for value in found if value is not None]) == bool(said.max_value)


@pytest.mark.parametrize("name", WITH_METADATA)
def test_locations_name_file_groups(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    for file in hfiles(table):
        for record in records(file):
            if isinstance(record.payload, RecordLocation):
                folder = table / record.payload.partition_name
                assert list(folder.glob(f"*{record.payload.file_id}_*")), record


@pytest.mark.parametrize("name", WITH_METADATA)
def test_the_metadata_partitions_of_the_properties_are_there(
    real_tables: RealTables, name: str
) -> None:
    table = real_tables(name)
    properties = parse_properties((table / ".hoodie" / "hoodie.properties").read_bytes())
    said = set(properties["hoodie.table.metadata.partitions"].split(","))
    assert {file.partition for file in hfiles(table)} <= said
