"""Updates, deletes and merges by condition on tables of every layout and kind of keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi

SCHEMA: Final = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("value", pa.int64())]
)
KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
    "virtual key": {"hoodie.recordkey.virtual.enabled": "true"},
    "object store": {"hoodie.storage.strategy.class": "object_store"},
}


def rows(*values: tuple[str, str, int, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, one, strict=True)) for one in values], SCHEMA
    )


@pytest.mark.parametrize("table_format", ["native", "iceberg", "delta"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_changed_by_condition(tmp_path: Path, kind: str, table_format: str) -> None:
    options = {"hoodie.fs.fsync": "false", "hoodie.metadata.record.index.enable": "true"}
    if kind == "object store":
        options["hoodie.storage.path"] = str(tmp_path / "store")
    table = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_key="id",
        partition_by="part",
        ordering_field="ts",
        format=table_format,
        options=options | dict(KINDS[kind]),
    )
    table.insert(rows(("a", "x", 1, 1), ("b", "x", 1, 2), ("c", "y", 1, 3), ("d", "y", 1, 4)))
    # the ordering field goes down, and the update counts all the same
    table.update({"value": pc.field("value") + 10, "ts": pa.scalar(0)}, pc.field("value") > 2)
    table.delete(where=[("id", "=", "a")])
    source = rows(("b", "x", 0, 77), ("e", "z", 0, 88))
    merge = table.merge(source, on=["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.update({"part": pa.scalar("q")}, [("id", "=", "c")])
    expected = rows(("b", "x", 0, 77), ("c", "q", 0, 13), ("d", "y", 0, 14), ("e", "z", 0, 88))
    now = hudi.Table.open(str(tmp_path / "t"))
    assert now.to_arrow(SCHEMA.names).sort_by("id").equals(expected)
    assert now.to_arrow(SCHEMA.names, filter=[("id", "=", "c")]).equals(expected.slice(1, 1))
    assert now.validate(keys=True).is_valid
