"""`hudi formats` says what can be done, not what could be."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.config.kinds import KeyGeneratorType, TableType
from hudi_core.config.support import NOT_BUILT, require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.config.timebased import time_based
from hudi_core.errors import UnsupportedTableError
from hudi_core.model.capability import Capability
from hudi_core.plugin.capability import table_needs

PLAIN = TableConfig(name="t", record_key_fields=("id",), partition_fields=("city",))
BY_DAY = {
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
SERVICES = {
    Capability.CLUSTERING: "cluster",
    Capability.SAVEPOINT: "savepoint",
    Capability.RESTORE: "restore",
    Capability.CONVERSION: "convert",
}
SETTINGS = {
    Capability.COPY_ON_WRITE: PLAIN,
    Capability.MERGE_ON_READ: replace(PLAIN, table_type=TableType.MERGE_ON_READ),
    Capability.VIRTUAL_KEYS: replace(PLAIN, populate_meta_fields=False),
    Capability.DROPPED_PARTITION_COLUMNS: replace(PLAIN, drop_partition_columns=True),
    Capability.TRANSFORMED_PARTITIONS: replace(
        PLAIN, keygen_type=KeyGeneratorType.TIMESTAMP, time_based=time_based(BY_DAY)
    ),
}


def told() -> dict[str, Any]:
    shown = CliRunner().invoke(app, ["formats", "--json"], catch_exceptions=False)
    (native,) = (one for one in json.loads(shown.stdout)["formats"] if one["name"] == "native")
    found: dict[str, Any] = native
    return found


def test_every_ability_of_the_format_is_told_once() -> None:
    native = told()
    assert {"copy_on_write", "replace", "add_column"} <= set(native["capabilities"])
    assert "reorder_columns" in native["not_built"]
    assert "virtual_keys" in native["capabilities"]
    assert {"clustering", "restore", "savepoint"} <= set(native["capabilities"])
    assert not set(native["capabilities"]) & set(native["not_built"])


def test_options_of_the_formats_are_told() -> None:
    shown = CliRunner().invoke(app, ["formats", "--json"], catch_exceptions=False)
    options = {
        option["name"]: option
        for document in json.loads(shown.stdout)["formats"]
        for option in document["options"]
    }
    kind = options["hoodie.table.format.iceberg.catalog.type"]
    assert kind["choices"] == ["glue", "hive", "rest", "sql"]
    assert "hoodie.table.format.iceberg.catalog.*" in options
    assert options["hoodie.table.format.delta.deleted-file-retention-days"]["default"] == "36500"
    assert told()["options"] == []
    wide = {"COLUMNS": "1000"}
    table = CliRunner().invoke(app, ["formats"], env=wide, catch_exceptions=False).stdout
    assert all(name in table for name in options)


@pytest.mark.parametrize("capability", SERVICES)
def test_services_are_told_when_there_is_one(capability: Capability) -> None:
    assert (capability in NOT_BUILT) == (not hasattr(hudi.Table, SERVICES[capability]))


@pytest.mark.parametrize("capability", SETTINGS)
def test_settings_are_told_when_such_a_table_can_be_written(capability: Capability) -> None:
    config = SETTINGS[capability]
    assert capability in table_needs(config)
    if capability in NOT_BUILT:
        with pytest.raises(UnsupportedTableError):
            require_writable_table(config, "/t")
    else:
        require_writable_table(config, "/t")


def test_columns_are_reordered_when_alter_can() -> None:
    can = "reorder" in inspect.signature(hudi.Table.alter).parameters
    assert (Capability.REORDER_COLUMNS in NOT_BUILT) == (not can)
