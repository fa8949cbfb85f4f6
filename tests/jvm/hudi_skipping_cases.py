"""Hudi-Spark's data skipping on our statistics.

Every filter gives equal rows with skipping on, off, and without the metadata table.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hudi_core as hudi
from tests.jvm.engines import Engine

WAYS = {
    "skipping": {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"},
    "no skipping": {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "false"},
    "listing": {"hoodie.metadata.enable": "false"},
}


def found(engine: Engine, path: Path, where: str) -> dict[str, list[tuple[object, ...]]]:
    return {name: engine.values(path, ["id"], where, way) for name, way in WAYS.items()}


def test_filter_on_a_value(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table"
    rows = pa.table({"id": [1, 2, 3], "city": ["A", "B", "A"], "fare": [1.5, 2.5, 3.5]})
    hudi.Table.create(str(path), rows.schema, record_key="id", partition_by="city").upsert(rows)
    assert found(hudi_spark, path, "fare > 2") == {way: [(2,), (3,)] for way in WAYS}
