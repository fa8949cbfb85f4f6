"""A table whose files were adopted as they are has no meta columns, and is written as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import RecordKeyError
from tests.formats.adopt_folders import ALL, ENCODED, ROWS, agree, plain
from tests.formats.service_tables import bag


@pytest.fixture(params=ALL)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    path = plain(tmp_path / "lake")
    hudi.Table.adopt(str(path), record_key="id", format=request.param, options=ENCODED)
    return hudi.Table.open(str(path))


def test_every_operation_writes_to_adopted_files(table: hudi.Table) -> None:
    """Keys are made of the rows, so that files without meta columns are updated as any others."""
    held = {row["id"]: row for row in ROWS.to_pylist()}

    def of(*rows: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), ROWS.schema)

    def expect() -> None:
        wanted = pa.Table.from_pylist(list(held.values()), ROWS.schema)
        agree(Path(table.path), wanted)

    first, second, *_ = held
    changed, new = {**held[first], "n": 77}, {**held[second], "id": "new"}
    result = table.upsert(of(changed, new))
    assert (result.inserted, result.updated) == (1, 1)
    held |= {first: changed, "new": new}
    expect()
    assert table.delete(of(held[second])).deleted == 1
    del held[second]
    expect()
    table.bulk_insert(of({**new, "id": "newer"}))
    held["newer"] = {**new, "id": "newer"}
    table.cluster()
    expect()
    city = new["city"]
    table.insert_overwrite(of({**new, "id": "only"}))
    held = {key: row for key, row in held.items() if row["city"] != city}
    held["only"] = {**new, "id": "only"}
    expect()
    table.delete_partitions([{"city": city}])
    del held["only"]
    expect()
    table.alter(add_columns={"note": pa.string()})
    table.upsert(of(changed).append_column("note", pa.array(["x"])))
    table.rollback(table.timeline.completed_writes()[-1].requested_time)
    assert not table.validate(keys=True).differences


def test_a_row_that_lost_its_key_is_told_before_anything_is_written(table: hudi.Table) -> None:
    rows = ROWS.slice(0, 1).set_column(0, ROWS.schema.field(0), [pa.array([None], pa.string())])
    before = sorted(Path(table.path).rglob("*"))
    with pytest.raises(RecordKeyError, match="null or empty in 1 of 1 rows"):
        table.upsert(rows)
    assert [one for one in sorted(Path(table.path).rglob("*.parquet")) if one not in before] == []


def test_adopted_files_get_a_record_index(tmp_path: Path) -> None:
    path = plain(tmp_path / "lake")
    index = {"hoodie.metadata.record.index.enable": "true"}
    hudi.Table.adopt(str(path), record_key="id", options={**ENCODED, **index})
    table = hudi.Table.open(str(path), options={"hoodie.index.type": "RECORD_INDEX", **index})
    found = {row["record_key"] for row in table.metadata("record_index").to_pylist()}
    assert found == set(ROWS.column("id").to_pylist())
    assert table.upsert(ROWS.slice(0, 2)).updated == 2
    assert not table.validate(keys=True).differences


def test_its_rows_are_copied_into_a_table_with_meta_columns(
    table: hudi.Table, tmp_path: Path
) -> None:
    new = hudi.Table.create(
        str(tmp_path / "new"),
        table.schema,
        record_key="id",
        partition_by="city",
        format=table.format,
        options=ENCODED,
    )
    new.bulk_insert(table.to_batches())
    assert bag(new.to_arrow(), ROWS.column_names) == bag(ROWS)
    new.upsert(ROWS.slice(0, 1))
