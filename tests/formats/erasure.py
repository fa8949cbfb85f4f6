"""What files of a table hold, decoded, whatever their kind."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq

from hudi_core.log_format.scan import read_log_blocks
from hudi_core.metadata.hfile.reader import HFileReader

_AVRO = b"Obj\x01"
_LOG = b"#HUDI#"
_PARQUET = b"PAR1"


def traces(root: Path, text: str) -> list[str]:
    """Files below a folder that hold a text, in whatever form they keep it."""
    return [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*"))
        if file.is_file() and any(text in part for part in _parts(file))
    ]


def _parts(file: Path) -> Iterator[str]:
    data = file.read_bytes()
    yield data.decode("latin-1")
    if data.startswith(_PARQUET):
        yield _parquet(file)
    elif data.startswith(_AVRO):
        with file.open("rb") as stream:
            yield "".join(map(_shown, fastavro.reader(stream)))
    elif data.startswith(_LOG):
        for block in read_log_blocks(data, str(file)):
            content = bytes(block.content)
            yield content.decode("latin-1")
            if content.startswith(b"DATABLK*"):
                yield _hfile(content)
    elif file.suffix == ".hfile":
        yield _hfile(data)
    elif data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data).decode("latin-1")
    else:
        try:
            yield zlib.decompress(data).decode("latin-1")
        except zlib.error:
            return


def _parquet(file: Path) -> str:
    with pq.ParquetFile(file) as opened:
        footer = opened.metadata
        statistics = [
            footer.row_group(group).column(column).statistics
            for group in range(footer.num_row_groups)
            for column in range(footer.num_columns)
        ]
        bounds = [(one.min, one.max) for one in statistics if one is not None and one.has_min_max]
        return _shown([opened.read().to_pylist(), footer.metadata, bounds])


def _hfile(data: bytes) -> str:
    reader = HFileReader.from_bytes(data, "traces")
    return "".join(
        f"{key.decode('latin-1')}{value.decode('latin-1')}" for key, value in reader.entries()
    )


def _shown(value: Any) -> str:
    return repr(value)
