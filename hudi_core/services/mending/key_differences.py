"""Stored record keys compared with those that the columns make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.footer import opened_file
from hudi_core.meta_client import TableMetaClient
from hudi_core.schema.alignment import stored_fields
from hudi_core.schema.table_schema import RECORD_KEY

_BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class KeyDifferences:
    """The stored and the made keys of one file.

    ``rows`` is 0 where the file stores no keys; ``stored`` and ``made`` are the keys of the first
    row that differs.
    """

    path: str
    holds_keys: bool
    rows: int = 0
    differences: int = 0
    stored: str | None = None
    made: str | None = None

    def __str__(self) -> str:
        return f"{self.path} stores {self.stored!r} where its columns make {self.made!r}"


def holds_keys(client: TableMetaClient, path: str) -> bool:
    """Whether a data file stores its record keys."""
    with opened_file(client, path) as file:
        return RECORD_KEY in file.schema_arrow.names


def compare_keys(client: TableMetaClient, paths: Sequence[str]) -> list[KeyDifferences]:
    """Compare the keys of some files, row by row."""
    keys = FileKeys.made_by(client)

    def one(path: str) -> KeyDifferences:
        with opened_file(client, path) as file:
            return _compared(keys, file, path)

    return list(client.run_map(one, list(paths)))


def _compared(keys: FileKeys, file: pq.ParquetFile, path: str) -> KeyDifferences:
    stored = stored_fields(file.schema_arrow)
    needed = keys.columns(stored, path)
    if RECORD_KEY not in file.schema_arrow.names:
        return KeyDifferences(path, False)
    rows = differences = 0
    example: tuple[str | None, str | None] = None, None
    columns = list(dict.fromkeys([RECORD_KEY, *needed]))
    for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
        table = pa.Table.from_batches([batch])
        held = table.column(RECORD_KEY).cast(pa.string())
        made = keys.of_rows(table, stored, path)
        differs = pc.fill_null(pc.not_equal(held, made), True)
        count = pc.sum(differs, min_count=0).as_py()
        if count and not differences:
            place = pc.index(differs, True).as_py()
            example = held[place].as_py(), made[place].as_py()
        rows, differences = rows + len(table), differences + count
    return KeyDifferences(path, True, rows, differences, *example)
