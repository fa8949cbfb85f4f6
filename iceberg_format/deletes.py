"""Deleted rows of data files: their positions, in files of their own.

Version 2 has position deletes, Parquet files of paths and positions; version 3 has deletion
vectors, roaring bitmaps in a Puffin file::

    PFA1, the vectors in their frames one behind the other,
    PFA1, JSON of where they are, int32 little-endian: bytes of it, 4 bytes of flags, PFA1

A data file has one of them at a time, so that a commit that rewrites the data file takes its
deletions out in the same snapshot. They are in the folder of the metadata: Hudi takes a Parquet
file in a folder of a partition for one of its own, and one with that ending in any folder, when it
looks for partitions, so the names end otherwise.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from hudi_core.spi import CorruptMetadataError, UnsupportedTableError
from hudi_core.spi.files import (
    Positions,
    decode_vector,
    encode_vector,
    frame_vector,
    unframe_vector,
)
from iceberg_format.files import MAX_BYTES, TableFiles
from iceberg_format.manifest_files import (
    THIRD,
    new_file,
    referenced_file,
    vector_place,
)

_PATH: Final = 2147483546
_POSITION: Final = 2147483545
_ROW_POSITION: Final = 2147483645
_PUFFIN: Final = b"PFA1"
_VECTOR: Final = "deletion-vector-v1"
_ROW_GROUP: Final = 1 << 20


def write_deletions(
    files: TableFiles,
    folder: str,
    version: int,
    dead: Sequence[tuple[DataFile, Positions]],
) -> list[DataFile]:
    """Write deleted positions; return the files as manifests have them.

    All of version 3 are in one file; each of version 2 in its own.
    """
    if not dead:
        return []
    if version < THIRD:
        return [_position_deletes(files, folder, *one) for one in dead]
    uri = files.uri(f"{folder}/{uuid.uuid4()}-deletes.puffin")
    vectors = [frame_vector(encode_vector(positions)) for _, positions in dead]
    content = bytearray(_PUFFIN)
    blobs, places = [], []
    for (file, positions), vector in zip(dead, vectors, strict=True):
        places.append((len(content), len(vector)))
        blobs.append(
            {
                "type": _VECTOR,
                "fields": [_ROW_POSITION],
                # not known before the commit
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(vector),
                "properties": {
                    "referenced-data-file": file.file_path,
                    "cardinality": str(len(positions)),
                },
            }
        )
        content += vector
    footer = json.dumps({"blobs": blobs}, separators=(",", ":")).encode()
    content += _PUFFIN + footer + len(footer).to_bytes(4, "little") + bytes(4) + _PUFFIN
    _put(files, uri, bytes(content))
    return [
        _described(file, uri, len(content), len(positions), place=place)
        for (file, positions), place in zip(dead, places, strict=True)
    ]


def _position_deletes(
    files: TableFiles, folder: str, file: DataFile, positions: Positions
) -> DataFile:
    uri = files.uri(f"{folder}/{uuid.uuid4()}.position-deletes")
    schema = pa.schema(
        [_field("file_path", pa.string(), _PATH), _field("pos", pa.int64(), _POSITION)]
    )
    paths = pa.repeat(pa.scalar(file.file_path), len(positions))
    stream = io.BytesIO()
    pq.write_table(
        pa.table([paths, pa.array(positions)], schema),
        stream,
        _ROW_GROUP,
        compression="zstd",
        use_dictionary=["file_path"],  # positions in plain, which all readers know
        store_schema=False,
    )
    content = stream.getvalue()
    _put(files, uri, content)
    return _described(file, uri, len(content), len(positions))


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})


def _put(files: TableFiles, uri: str, content: bytes) -> None:
    with files.new_output(uri).create() as stream:
        stream.write(content)


def _described(
    file: DataFile,
    uri: str,
    size: int,
    rows: int,
    *,
    place: tuple[int, int] | None = None,
) -> DataFile:
    path = {_PATH: file.file_path.encode()}
    found = new_file(
        content=DataFileContent.POSITION_DELETES,
        file_path=uri,
        file_format=FileFormat.PARQUET if place is None else FileFormat.PUFFIN,
        partition=file.partition,
        record_count=rows,
        file_size_in_bytes=size,
        lower_bounds=path,
        upper_bounds=path,
        referenced_data_file=file.file_path,
        content_offset=None if place is None else place[0],
        content_size_in_bytes=None if place is None else place[1],
    )
    found.spec_id = file.spec_id
    return found


def about(file: DataFile) -> str | None:
    """The data file that deletions are about; ``None`` for several."""
    named = referenced_file(file)
    if named is not None or file.content is not DataFileContent.POSITION_DELETES:
        return named
    low, high = ((side or {}).get(_PATH) for side in (file.lower_bounds, file.upper_bounds))
    # a bound of fewer characters than the path may be one of several
    is_whole = low is not None and low == high and low.endswith(b".parquet")
    return low.decode() if low is not None and is_whole else None


def identity(file: DataFile) -> tuple[str, int]:
    """What distinguishes a file of deletions: several vectors are in one file."""
    place = vector_place(file)
    return file.file_path, 0 if place is None else place[0]


def read_deletions(files: TableFiles, file: DataFile) -> Iterator[tuple[str, Positions]]:
    """Yield deleted positions, in ascending order, by data file."""
    path = files.path(file.file_path)
    if file.file_format is FileFormat.PUFFIN:
        place, of = vector_place(file), referenced_file(file)
        if place is None or of is None:
            raise CorruptMetadataError(path, "its manifest does not say where its vector is")
        framed = files.storage.read_range(path, *place)
        yield of, decode_vector(unframe_vector(framed, path), path)
        return
    if file.file_format is not FileFormat.PARQUET:
        raise UnsupportedTableError(
            path,
            f"has deleted rows in the format {file.file_format}",
            "Have its engine rewrite its data files first.",
        )
    try:
        content = pa.BufferReader(files.storage.read(path, MAX_BYTES))
        stored = pq.read_table(content, columns=["file_path", "pos"])
        rows = stored.cast(pa.schema([("file_path", pa.string()), ("pos", pa.int64())]))
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CorruptMetadataError(path, f"it holds no deleted positions: {error}") from error
    paths = rows.column("file_path").combine_chunks()
    for uri in pc.unique(paths).to_pylist():
        positions = rows.column("pos").filter(pc.equal(paths, uri))
        yield uri, np.unique(positions.to_numpy()).astype(np.int64)


def union(one: Positions | None, other: Positions) -> Positions:
    """Positions of both, in ascending order."""
    return other if one is None or not len(one) else np.union1d(one, other)
