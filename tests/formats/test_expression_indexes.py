"""Expression indexes are kept and asked whatever the format that lists the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
OPTIONS = {
    "hoodie.fs.fsync": "false",
    "hoodie.parquet.small.file.limit": "0",
    # what is left out is left out by the index alone
    "hoodie.metadata.index.column.stats.column.list": "id",
}


def rows(*some: tuple[int, str]) -> pa.Table:
    days = [number * 400 for number, _ in some]
    columns = {"id": [number for number, _ in some], "name": [name for _, name in some]}
    return pa.table({**columns, "day": pa.array(days, pa.int32()).cast(pa.date32())}, SCHEMA)


@pytest.mark.parametrize("table_format", ["native", "iceberg", "delta"])
def test_every_format_has_them(tmp_path: Path, table_format: str) -> None:
    path = str(tmp_path / "t")
    table = hudi.Table.create(
        path, SCHEMA, name="t", record_key="id", format=table_format, options=OPTIONS
    )
    table.insert(rows((1, "Ann"), (2, "ANTON")))
    table.create_index("low", "name", using="column_stats", options={"expr": "lower"})
    table.create_index("year", "day", using="column_stats", options={"expr": "year"})
    for number, name in ((3, "Bob"), (4, "Cid")):
        table.insert(rows((number, name)))
    table.upsert(rows((4, "Zoe")))
    table.delete(rows((3, "")).select(["id"]))
    reader = hudi.Table.open(path, options=OPTIONS)
    low = reader.metadata("expr_index_low").to_pylist()
    assert ("ann", "anton") in [(one["min_value"], one["max_value"]) for one in low]
    for name, expected in (("ANTON", [2]), ("Zoe", [4]), ("Cid", []), ("ann", [])):
        condition = [("name", "=", name)]
        assert reader.to_arrow(["id"], filter=condition)["id"].to_pylist() == expected
    reader = hudi.Table.open(path, options=OPTIONS)
    assert len(reader.file_slices(filter=[("name", "=", "Zoe")])) < len(reader.file_slices())
    report = reader.validate()
    assert report.is_valid, report.differences
    assert "records of expr_index_year" in report.checked
