"""Columns that stay dictionary encoded from one version of a file to the next."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import DataFileError
from tests.tables import base_files, new_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string())])
CITIES = ("rome", "oslo", "bern", "lima")
ARROW, OTHER = b"parquet-cpp-arrow", b"some-other-writer"


def dictionary(values: tuple[str, ...]) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value.encode() for value in values)


def forged(path: Path, cities: tuple[str, ...], writer: bytes) -> tuple[hudi.Table, Path]:
    """Return a table whose only file has another dictionary of cities, and that file."""
    table = new_table(
        path, SCHEMA, {"hoodie.parquet.compression.codec": "uncompressed"}, partition_by=None
    )
    rows = 5000
    ids = [f"key-{number}" for number in range(rows)]
    table.insert(pa.table({"id": ids, "city": CITIES * (rows // len(CITIES))}, SCHEMA))
    [file] = base_files(table)
    data = file.read_bytes()
    assert data.count(dictionary(CITIES)) == 1
    assert data.count(ARROW) == 1
    data = data.replace(dictionary(CITIES), dictionary(cities)).replace(ARROW, writer)
    file.write_bytes(data)
    return table, file


def test_a_dictionary_that_names_a_value_twice_changes_no_row(tmp_path: Path) -> None:
    table, file = forged(tmp_path / "t", ("rome", "rome", "bern", "lima"), OTHER)
    before = pq.read_table(file, columns=["id", "city"])
    assert before.column("city").slice(0, 4).to_pylist() == ["rome", "rome", "bern", "lima"]
    table.upsert(pa.table({"id": ["new"], "city": ["kyiv"]}, SCHEMA))
    after = table.to_arrow(["id", "city"])
    assert after.slice(0, before.num_rows).equals(before)
    assert after.slice(before.num_rows).to_pylist() == [{"id": "new", "city": "kyiv"}]


def test_numbers_beyond_the_dictionary_are_told(tmp_path: Path) -> None:
    table, file = forged(tmp_path / "t", ("rome", "rome", "rome", "rome"), ARROW)
    with pytest.raises(DataFileError, match=file.name):
        table.upsert(pa.table({"id": ["new"], "city": ["kyiv"]}, SCHEMA))


def dictionaries(table: hudi.Table) -> set[str]:
    [file] = base_files(table)
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_a_renamed_column_is_encoded_as_before(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("size", pa.int32())])
    table = new_table(tmp_path / "t", schema)
    ids = [f"key-{number}" for number in range(5000)]
    table.insert(pa.table({"id": ids, "size": [1, 2] * 2500}, schema))
    assert "size" in dictionaries(table)
    table.alter(rename={"size": "width"})
    table.upsert(pa.table({"id": ["new"], "width": pa.array([3], pa.int32())}))
    assert "width" in dictionaries(table)
