"""`hudi sync`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
from hudi_conformance.hive_metastore import HiveMetastore
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


def test_a_table_is_registered(metastore: HiveMetastore, tmp_path: Path) -> None:
    lake, path = f"s{uuid.uuid4().hex}", str(tmp_path / "trips")
    table = hudi.Table.create(path, SCHEMA, record_key="id", partition_by="day")
    table.insert(pa.table({"id": [1, 2], "day": ["a", "b"]}, SCHEMA))
    given = ["sync", "hive", path, "--uri", metastore.uri, "--database", lake, "--table", "rides"]
    planned = CliRunner().invoke(app, [*given, "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert "Nothing was changed" in planned.output
    done = json.loads(CliRunner().invoke(app, [*given, "--json"]).output)
    assert (done["tool"], done["address"], done["dry_run"]) == ("hive", metastore.uri, False)
    assert done["entries"] == [
        {
            "database": lake,
            "name": "rides",
            "change": "created",
            "columns": [],
            "partitions_added": ["a", "b"],
            "partitions_changed": [],
            "partitions_dropped": [],
            "compared_all_partitions": True,
        }
    ]
    table.alter(add_columns={"tip": pa.int32()})
    changed = CliRunner().invoke(app, given)
    assert "rides: tip int added" in changed.output

    table.insert(
        pa.table(
            {"id": [3], "day": ["c"], "tip": [None]}, SCHEMA.append(pa.field("tip", pa.int32()))
        )
    )
    hive = "hoodie.datasource.hive_sync."
    options = {
        "enable": "true",
        "metastore.uris": metastore.uri,
        "database": lake,
        "table": "rides",
    }
    asked = [part for name, value in options.items() for part in ("-o", f"{hive}{name}={value}")]
    report = CliRunner().invoke(app, ["table", "validate", path, *asked, "--json"])
    assert report.exit_code == 4, report.output
    assert json.loads(report.output)["differences"] == [
        {
            "source": "metastore",
            "subject": f"partition c of {lake}.rides",
            "expected": "there",
            "found": "not there",
        }
    ]


def test_a_metastore_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    hudi.Table.create(path, SCHEMA, record_key="id")
    done = CliRunner().invoke(app, ["sync", "hive", path, "--uri", "thrift://127.0.0.1:1"])
    assert done.exit_code == 1
    assert "did not answer" in done.output
