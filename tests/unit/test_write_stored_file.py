"""Reading back the files of other writers that a write merges into."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import DataFileError
from hudi_core.schema.table_schema import RECORD_KEY
from tests.tables import base_files, new_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "part": ["x"] * len(ids)}, SCHEMA)


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_a_file_without_record_keys_is_named(tmp_path: Path, operation: str) -> None:
    table = new_table(
        tmp_path / "t",
        SCHEMA,
        {"hoodie.index.type": "SIMPLE"},
        record_key=["id", "part"],
        partition_by=None,
    )
    table.insert(rows("a", "b"))
    [file] = base_files(table)
    pq.write_table(pq.read_table(file).drop_columns([RECORD_KEY]), file)
    with pytest.raises(DataFileError, match=f"{file.name} has no column {RECORD_KEY}"):
        getattr(table, operation)(rows("c"))


def test_a_key_column_with_nulls_is_not_written_back(tmp_path: Path) -> None:
    """Another writer's keys may come from elsewhere: then the column does not say what they are."""
    table = new_table(tmp_path / "t", SCHEMA, partition_by=None)
    table.insert(rows("a", "b"))
    [file] = base_files(table)
    stored = pq.read_table(file)
    position = stored.schema.get_field_index("id")
    nulls = pa.array([None, "b"])
    pq.write_table(stored.set_column(position, stored.schema.field(position), nulls), file)
    with pytest.raises(DataFileError, match="rows without a id, the record key"):
        table.upsert(rows("b"))


def test_a_column_is_encoded_once_it_has_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("state", pa.string())])
    ids = [f"{number:05}" for number in range(6000)]

    def versions(state: str | None, count: int) -> pa.Table:
        return pa.table({"id": ids[:count], "state": [state] * count}, schema)

    table = new_table(tmp_path / "t", schema)
    table.insert(versions(None, 6000))
    table.upsert(versions("on", 1500))
    footer = pq.read_metadata(*base_files(table))
    chunks = map(footer.row_group(0).column, range(footer.num_columns))
    found = {chunk.path_in_schema: chunk.has_dictionary_page for chunk in chunks}
    assert (found["state"], found["id"]) == (True, False)
