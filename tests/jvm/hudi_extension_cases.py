"""Tables that name a key generator, or a record merger, which Hudi-Spark does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests import documented_extensions
from tests.jvm.engines import Engine, EngineError

ROWS = pa.table(
    {"id": ["1", "2"], "city": ["Ulm", "Bonn"], "status": ["paid", "open"], "v": [1, 1]}
)
NEWER = ROWS.set_column(2, "status", pa.array(["open", "sent"]))
KEYGEN = {"hoodie.datasource.write.keygenerator.type": "acme_padded"}
MERGER = {"hoodie.write.record.merge.strategy.id": "acme_status"}
SIMPLE = "org.apache.hudi.keygen.SimpleKeyGenerator"
OURS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "status",
    "hoodie.datasource.write.operation": "upsert",
}
Make = Callable[..., Path]


@pytest.fixture
def make(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Make:
    """A table of ours with extensions of the page."""
    documented_extensions.install(tmp_path_factory.mktemp("site"), monkeypatch)

    def table(version: str, options: dict[str, str]) -> Path:
        made = hudi.Table.create(
            str(tmp_path / "t"),
            ROWS.schema,
            options={**OURS, **options, "hoodie.write.table.version": version},
        )
        made.upsert(ROWS)
        return tmp_path / "t"

    return table


def stored_rows(path: Path) -> list[tuple[str, ...]]:
    """Key, partition and status of each row."""
    names = ["_hoodie_record_key", "_hoodie_partition_path", "status"]
    found = hudi.Table.open(str(path)).to_arrow(names).to_pylist()
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert", "delete"])
def test_a_key_generator_it_does_not_know(
    hudi_spark: Engine, make: Make, version: str, operation: str
) -> None:
    """Hudi-Spark reads the table and refuses every write, whatever class it is given."""
    path = make(version, KEYGEN)
    before = stored_rows(path)
    assert before == [("00000001", "U", "paid"), ("00000002", "B", "open")]
    assert hudi_spark.values(path, ["_hoodie_record_key"]) == [("00000001",), ("00000002",)]
    simple = {"hoodie.datasource.write.keygenerator.class": SIMPLE}
    for more in ({}, simple):
        with pytest.raises(EngineError, match="ClassNotFoundException: acme_padded"):
            hudi_spark.save(
                NEWER, path, {**OURS, **more, "hoodie.datasource.write.operation": operation}
            )
    assert stored_rows(path) == before


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_record_merger_it_does_not_know(
    hudi_spark: Engine, make: Make, version: str, operation: str
) -> None:
    """Hudi-Spark reads the table, refuses to merge rows, and we go on afterwards."""
    path = make(version, MERGER)
    before = stored_rows(path)
    assert hudi_spark.values(path, ["id", "status"]) == [("1", "paid"), ("2", "open")]
    with pytest.raises(EngineError, match="No valid merger implementation set"):
        hudi_spark.save(NEWER, path, {**OURS, "hoodie.datasource.write.operation": operation})
    assert stored_rows(path) == before
    hudi.Table.open(str(path)).upsert(NEWER)
    assert stored_rows(path) == [("1", "Ulm", "paid"), ("2", "Bonn", "sent")]


@pytest.mark.parametrize("version", ["8", "9"])
def test_inserts_need_no_merger(hudi_spark: Engine, make: Make, version: str) -> None:
    """Hudi-Spark adds rows as it does to any table: an insert merges nothing."""
    path = make(version, MERGER)
    operation = {
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.metadata.enable": "false",
    }
    other = NEWER.set_column(0, "id", pa.array(["3", "4"]))
    hudi_spark.save(other, path, {**OURS, **operation})
    assert [key for key, _, _ in stored_rows(path)] == ["1", "2", "3", "4"]
    hudi.Table.open(str(path)).upsert(NEWER)
    assert [status for _, _, status in stored_rows(path)] == ["paid", "sent", "open", "sent"]
