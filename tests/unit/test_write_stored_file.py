"""Reading back the files of other writers that a write merges into."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import DataFileError
from hudi_core.model.schema import RECORD_KEY

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "part": ["x"] * len(ids)}, SCHEMA)


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_a_file_without_record_keys_is_named(tmp_path: Path, operation: str) -> None:
    table = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        record_key=["id", "part"],
        options={"hoodie.fs.fsync": "false", "hoodie.index.type": "SIMPLE"},
    )
    table.insert(rows("a", "b"))
    (found,) = table.file_slices()
    assert found.base_file is not None
    file = Path(table.path) / found.base_file.path
    pq.write_table(pq.read_table(file).drop_columns([RECORD_KEY]), file)
    with pytest.raises(DataFileError, match=f"{file.name} has no column {RECORD_KEY}"):
        getattr(table, operation)(rows("c"))
