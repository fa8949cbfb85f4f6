"""Tables with a record index that is kept by partitions, and what such an index must hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.snapshot import MetadataSnapshot
from tests.property.test_partitioned_index_model import indexed, stored

VALUED = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
PLAIN = {"hoodie.fs.fsync": "false", "hoodie.metadata.index.column.stats.enable": "false"}
ON = {
    **PLAIN,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
}
MIN = "hoodie.metadata.record.level.index.min.filegroup.count"
GLOBAL = {
    **PLAIN,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}


def create(path: Path, options: dict[str, str], partition_by: str | None = "city") -> hudi.Table:
    return hudi.Table.create(
        str(path / "table"), VALUED, record_key="id", partition_by=partition_by, options=options
    )


def keyed(keys: Sequence[int], city: str, value: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key:06d}" for key in keys],
            "city": [city] * len(keys),
            "value": [value] * len(keys),
        },
        schema=VALUED,
    )


def group_ids(table: hudi.Table) -> set[str]:
    client = hudi.Table.open(table.path)._session.opened.client
    return {str(one.slice.file_id) for one in MetadataSnapshot.open(client).groups("record_index")}


def check(table: hudi.Table, groups: int = 1) -> None:
    assert indexed(table, groups) == stored(table)
    report = validate(hudi.Table.open(table.path)._session.opened.client)
    assert report.is_valid, report.findings
    read = HudiTableBuilder.from_base_uri(table.path).build().read()
    assert sum(batch.num_rows for batch in read) == table.to_arrow().num_rows
