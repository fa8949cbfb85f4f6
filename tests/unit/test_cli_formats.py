"""`hudi formats`, and formats that there are not."""

from __future__ import annotations

import inspect
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import KeyGeneratorType, TableType
from hudi_core.config.support import NOT_BUILT, require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.config.timebased import time_based
from hudi_core.errors import UnsupportedTableError
from hudi_core.extension.entry_points import installed_entry_points
from hudi_core.model.capability import Capability
from hudi_core.plugin.capability import table_needs
from tests.cli_runs import run, run_json

PLAIN = TableConfig(name="t", record_key_fields=("id",), partition_fields=("city",))
BY_DAY = {
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
SERVICES = {Capability.CLUSTERING: "cluster", Capability.SAVEPOINT: "savepoint"}
SERVICES |= {Capability.RESTORE: "restore", Capability.CONVERSION: "convert"}
SETTINGS = {
    Capability.COPY_ON_WRITE: PLAIN,
    Capability.MERGE_ON_READ: replace(PLAIN, table_type=TableType.MERGE_ON_READ),
    Capability.VIRTUAL_KEYS: replace(PLAIN, populate_meta_fields=False),
    Capability.DROPPED_PARTITION_COLUMNS: replace(PLAIN, drop_partition_columns=True),
    Capability.TRANSFORMED_PARTITIONS: replace(
        PLAIN, keygen_type=KeyGeneratorType.TIMESTAMP, time_based=time_based(BY_DAY)
    ),
}


def native() -> dict[str, Any]:
    (found,) = (one for one in run_json("formats")["formats"] if one["name"] == "native")
    return dict(found)


def test_every_ability_of_the_format_is_told_once() -> None:
    found = native()
    assert (found["distribution"], found["error"]) == ("hudi-core", None)
    built = {"copy_on_write", "replace", "add_column", "virtual_keys"}
    assert built | {"clustering", "restore", "savepoint"} <= set(found["capabilities"])
    assert "reorder_columns" in found["not_built"]
    assert not set(found["capabilities"]) & set(found["not_built"])


def test_options_of_the_formats_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [one for document in run_json("formats")["formats"] for one in document["options"]]
    options = {option["name"]: option for option in told}
    kind = options["hoodie.table.format.iceberg.catalog.type"]
    assert kind["choices"] == ["glue", "hive", "rest", "sql"]
    assert "hoodie.table.format.iceberg.catalog.*" in options
    assert options["hoodie.table.format.delta.deleted-file-retention-days"]["default"] == "36500"
    assert native()["options"] == []
    monkeypatch.setenv("COLUMNS", "1000")
    shown = run("formats").stdout
    assert all(name in shown for name in (*options, "native", "copy on write"))


@pytest.mark.parametrize("capability", SERVICES)
def test_services_are_told_when_there_is_one(capability: Capability) -> None:
    assert (capability in NOT_BUILT) == (not hasattr(hudi.Table, SERVICES[capability]))


@pytest.mark.parametrize("capability", SETTINGS)
def test_settings_are_told_when_such_a_table_can_be_written(capability: Capability) -> None:
    config = SETTINGS[capability]
    assert capability in table_needs(config)
    refused = pytest.raises(UnsupportedTableError) if capability in NOT_BUILT else nullcontext()
    with refused:
        require_writable_table(config, "/t")


def test_columns_are_reordered_when_alter_can() -> None:
    can = "reorder" in inspect.signature(hudi.Table.alter).parameters
    assert (Capability.REORDER_COLUMNS in NOT_BUILT) == (not can)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Where a table is to be, and a file with its columns."""
    schema = tmp_path / "columns.parquet"
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), schema)
    return {"PATH": str(tmp_path / "t"), "SCHEMA": str(schema)}


@pytest.mark.parametrize(
    "arguments",
    [
        "create PATH --record-key id --schema-from SCHEMA --format paimon",
        "create PATH --schema-from SCHEMA -o hoodie.table.format=paimon",
        "create PATH --schema-from SCHEMA -o hudi.table.format.plugin=Paimon",
        "convert PATH --to paimon",
        "adopt PATH --key id --format paimon",
        "adopt PATH --key id --from paimon",
        "show PATH -o hoodie.table.format=paimon",
    ],
)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_formats_that_there_are_not(
    places: dict[str, str], arguments: str, flags: list[str]
) -> None:
    used = run("table", *(places.get(word, word) for word in arguments.split()), *flags)
    assert used.exit_code == 2
    assert used.stderr.startswith("error: No installed plugin provides the table format 'paimon'")
    assert used.stderr.count("\n") == 1
    assert not Path(places["PATH"]).exists()
    if flags:
        told = json.loads(used.stdout)["error"]
        assert (told["type"], told["exit_code"]) == ("UnknownTableFormatError", 2)
        assert "hudi-paimon-format" in told["hint"]
    else:
        assert used.stdout == ""


def test_a_format_that_is_gone(places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, schema = places.values()
    named = ("--record-key", "id", "--schema-from", schema, "--format", "delta")
    assert run("table", "create", path, *named).exit_code == 0
    found = installed_entry_points
    monkeypatch.setattr(
        "hudi_core.plugin.registry.installed_entry_points",
        lambda group: [one for one in found(group) if one.name != "delta"],
    )
    shown = run_json("table", "show", path, code=1)
    assert shown["error"]["type"] == "UnknownTableFormatError"
