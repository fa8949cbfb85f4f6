"""The documented extensions, under the suites that extensions have to pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from hudi_conformance import (
    ConflictStrategySuite,
    IndexSuite,
    KeyGeneratorSuite,
    LockProviderSuite,
    RecordMergerSuite,
    StorageStrategySuite,
)

import hudi_core as hudi
from hudi_core.config.extension_points import KEY_GENERATOR_POINT, LOCK_POINT
from hudi_core.spi import CommitMetadata, load_extension
from tests import documented_extensions
from tests.foreign import by_hudi_rs
from tests.tables import TABLES, new_table, pairs, rows

pytestmark = pytest.mark.impure

UPSERT, DELETE = CommitMetadata(operation_type="UPSERT"), CommitMetadata(operation_type="DELETE")


@pytest.fixture(autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution of the page is installed."""
    documented_extensions.install(tmp_path_factory.mktemp("site"), monkeypatch)


class TestPaddedKeys(KeyGeneratorSuite):
    name = "acme_padded"
    options: ClassVar[Mapping[str, str]] = {"hoodie.table.keygenerator.acme_padded.width": "5"}


class TestStatusMerger(RecordMergerSuite):
    name = "acme_status"
    ordering = ("status",)
    versions = pa.table({"id": ["a"] * 3, "status": ["lost", "open", "sent"], "value": [3, 2, 1]})


class TestStatusMergerWithOtherSteps(RecordMergerSuite):
    name = "acme_status"
    ordering = ("status",)
    options: ClassVar[Mapping[str, str]] = {
        "hoodie.record.merge.property.acme_status.steps": "sent,paid,open",
        "hoodie.write.table.version": "9",
    }
    versions = pa.table({"id": ["a"] * 3, "status": ["sent", "paid", "open"]})


def test_a_table_keeps_its_extensions_through_versions(tmp_path: Path) -> None:
    versions = TestStatusMerger.versions
    options = {
        "hoodie.datasource.write.keygenerator.class": "ACME_padded",
        "hoodie.write.record.merge.strategy.id": "ACME_status",
        "hoodie.write.record.merge.mode": "CUSTOM",
    }
    table = new_table(tmp_path / "t", versions.schema, options, ordering_field="status")
    table.upsert(versions)
    for version in (9, 8):
        table.upgrade(version)
        table = hudi.Table.open(str(tmp_path / "t"))
        assert table.config.version == version
        table.upsert(versions.slice(1))
        for [row] in (table.to_arrow().to_pylist(), by_hudi_rs(tmp_path / "t")):
            assert (row["_hoodie_record_key"], row["status"]) == ("0000000a", "sent")


@pytest.mark.parametrize("table_format", TABLES)
def test_every_format_takes_them(tmp_path: Path, table_format: str) -> None:
    some = rows("1", "2", city=["Ulm", "Bonn"], status=["paid", "open"])
    options = {
        "hoodie.datasource.write.keygenerator.type": "acme_padded",
        "hoodie.write.record.merge.strategy.id": "acme_status",
        "hoodie.index.type": "acme_ranges",
        "hoodie.write.lock.provider": "acme_folder",
        "hoodie.write.lock.conflict.resolution.strategy": "acme_schema",
    }
    settings = {"ordering_field": "status", "format": table_format}
    table = new_table(tmp_path / "t", some.schema, options, **settings)
    table.upsert(some)
    table.upsert(some.set_column(2, "status", pa.array(["open", "sent"])))
    found = pairs(table.to_arrow(), "_hoodie_record_key", "_hoodie_partition_path", "status")
    assert found == [("00000001", "U", "paid"), ("00000002", "B", "sent")]
    assert table.validate().is_valid
    rest = table.to_arrow(filter=[("city", "=", "Bonn")])
    assert rest.column("id").to_pylist() == ["2"]


def test_words_and_classes_of_hudi_stand_for_what_is_built_in() -> None:
    for group, java, name in (
        (KEY_GENERATOR_POINT, "org.apache.hudi.keygen.ComplexAvroKeyGenerator", "complex"),
        (LOCK_POINT, "org.apache.hudi.client.transaction.lock.InProcessLockProvider", "in_process"),
    ):
        assert group.name(java) == name
        assert name in group.names()


def test_an_extension_is_loaded_by_group_and_name() -> None:
    assert load_extension("hudi.indexes", "ACME_ranges").__name__ == "RangeIndex"
    with pytest.raises(ValueError, match=r"hudi\.table_formats is none of"):
        load_extension("hudi.table_formats", "native")


class TestRangeIndex(IndexSuite):
    name = "acme_ranges"


class TestFolderLock(LockProviderSuite):
    name = "acme_folder"
    options: ClassVar[Mapping[str, str]] = {"suffix": ".taken"}


class TestOneOperation(ConflictStrategySuite):
    name = "acme_schema"
    conflicting = ((UPSERT, DELETE),)
    compatible = ((UPSERT, UPSERT), (DELETE, DELETE))


class TestByLetter(StorageStrategySuite):
    name = "acme_letters"


class TestByTwoLetters(StorageStrategySuite):
    name = "acme_letters"
    options: ClassVar[Mapping[str, str]] = {"letters": "2"}


def test_what_is_built_in_is_no_extension() -> None:
    with pytest.raises(ValueError, match="built in"):
        load_extension("hudi.storage_strategies", "object_store")
