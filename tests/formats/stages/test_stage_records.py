"""Records of stages: validators, expiry, damage, commands."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.engine.base import TaskContext
from hudi_core.errors import (
    CommitValidationError,
    ConfigError,
    CorruptMetadataError,
    InvalidOptionError,
    SchemaError,
    StageConflictError,
    TableServiceError,
    UnknownStageError,
)
from hudi_core.model.files import BasePath
from hudi_core.services.stage import Stage, StageRows
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.shared import require_shared
from tests.formats.service_tables import SCHEMA, agree, batch
from tests.formats.stages.staged_rows import folder, rows, tree


def test_validators_run_before_and_again(native: hudi.Table) -> None:
    at_most = {
        "hoodie.precommit.validators": "single_value",
        "hoodie.precommit.validators.single.value.sql.queries": (
            "select count(*) <= 5 from <TABLE_NAME>#true"
        ),
    }
    with pytest.raises(CommitValidationError):
        native.stage(batch(5, "c", "d"), options=at_most)
    with pytest.raises(CommitValidationError):
        native.stage(batch(5, "c"), validators=[lambda rows, commit: False])
    assert list(folder(native).glob("*")) == []
    staged = native.stage(batch(5, "c"), options=at_most)
    native.bulk_insert(batch(5, "z"))
    # those of the publisher run, and none that a file of the table names
    strict = hudi.Table.open(native.path, at_most).find_stage(staged.id)
    with pytest.raises(CommitValidationError, match="it returns false, not true"):
        strict.publish()
    native.stages()[0].publish()
    assert native.count() == 6


def test_options_of_a_record_are_those_of_rows_alone(native: hudi.Table) -> None:
    """Whoever can write below the table must not steer what publishers do."""
    given = {"hoodie.parquet.small.file.limit": "0"}
    staged = native.stage(batch(5, "c"), options=given)
    forged = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.write.lock.provider": "in_process",
        "hoodie.write.auto.upgrade": "true",
        "hoodie.client.heartbeat.interval_in_ms": "1",
        "hoodie.datasource.write.commitmeta.key.prefix": "fs.s3a.",
        "hoodie.precommit.validators": "single_value",
        "hoodie.precommit.validators.single.value.sql.queries": "select 1 from <TABLE_NAME>#2",
    }
    _change(native, staged, "options", {**forged, **given})
    secret = {"fs.s3a.endpoint": "canary"}
    found = hudi.Table.open(native.path, secret).find_stage(staged.id)
    assert found.record.options == given
    files = {one for one in tree(native) if one.suffix == ".parquet"}
    done = found.publish()
    assert tree(native) > files
    assert "canary" not in str(done.metadata.extra_metadata)


def test_a_stage_expires(native: hudi.Table) -> None:
    hours = {"hoodie.stage.hours.retained": "3"}
    staged = native.stage(batch(5, "c"), options=hours)
    assert timedelta(hours=2.9) < staged.expires - datetime.now(UTC) <= timedelta(hours=3)
    kept = native.stage(batch(5, "d"))
    _age(native, staged)
    with pytest.raises(StageConflictError, match="it expired at"):
        staged.publish()
    with pytest.raises(UnknownStageError):
        native.find_stage(staged.id)
    assert [one.id for one in native.stages()] == [kept.id]
    # of one that its writer did not finish
    shutil.copytree(folder(native) / kept.id, folder(native) / "20200101000000000-01234567")
    (folder(native) / "20200101000000000-01234567/stage.json").unlink()
    (folder(native) / f"{kept.id[:17]}-01234567/rows").mkdir(parents=True)
    native.clean()
    assert {one.name[-8:] for one in folder(native).iterdir()} == {kept.id[-8:], "01234567"}
    assert not (folder(native) / "20200101000000000-01234567").exists()
    _age(native, kept)
    native.stage(batch(5, "e")).drop()
    assert [one.name for one in folder(native).iterdir()] == [f"{kept.id[:17]}-01234567"]


def test_a_commit_that_cleans_deletes_expired_stages(native: hudi.Table) -> None:
    staged = native.stage(batch(5, "c"))
    _age(native, staged)
    few = {"hoodie.cleaner.commits.retained": "1"}
    native.upsert(batch(6, "a"), options=few)
    native.upsert(batch(7, "a"), options=few)
    assert list(folder(native).glob("*")) == []


def _age(table: hudi.Table, stage: Stage) -> None:
    """Let a stage expire."""
    _change(table, stage, "expires", (datetime.now(UTC) - timedelta(seconds=1)).isoformat())


def _change(table: hudi.Table, stage: Stage, name: str, value: object) -> None:
    """Change the record of a stage, as whoever can write below the table can."""
    path = folder(table) / stage.id / "stage.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))


def test_what_cannot_be_staged_leaves_nothing(native: hudi.Table) -> None:
    for operation, given, error in (
        ("delete_partitions", ["rome"], InvalidOptionError),
        ("merge", batch(5, "a"), InvalidOptionError),
        ("upsert", batch(5, "a").drop_columns(["id"]), SchemaError),
        ("upsert", batch(5, "a").set_column(0, "id", pa.array([None], pa.string())), SchemaError),
    ):
        with pytest.raises(error):
            native.stage(given, operation)
    assert list(folder(native).glob("*")) == []


def test_no_secret_is_stored(native: hudi.Table) -> None:
    secret = {"fs.s3a.access.key": "canary", "fs.s3a.secret.key": "canary-7"}
    given = {"hoodie.combine.before.upsert": "false"}
    staged = hudi.Table.open(native.path, secret).stage(batch(5, "c"), options=given)
    text = (folder(native) / staged.id / "stage.json").read_text()
    assert "canary" not in text
    assert json.loads(text)["options"] == given


def test_rows_in_stages_are_not_forgotten_by_a_purge(native: hudi.Table) -> None:
    staged = native.stage(batch(5, "c"))
    with pytest.raises(TableServiceError, match=staged.id):
        native.purge()
    staged.drop()
    native.purge()


@pytest.mark.parametrize("table", ["delta"], indirect=True)
def test_what_is_staged_during_a_purge_is_named(table: hudi.Table) -> None:
    staged: list[Stage] = []

    def progress(*_: int) -> None:
        if not staged:
            staged.append(hudi.Table.open(table.path).stage(batch(5, "a")))

    with pytest.raises(TableServiceError, match="then purge the table again") as caught:
        table.purge(progress=progress)
    assert caught.value.facts["stages"] == [staged[0].id]
    table.drop_stage(staged[0].id)
    table.purge()


def test_rows_are_not_saved_on_another_disk(native: hudi.Table, tmp_path: Path) -> None:
    """As by a task on a machine that lacks the table."""
    there, other = native.path, tmp_path / "other"
    rows = StageRows(BasePath(str(other)), StorageOptions(), ".hoodie/.stage/s", SCHEMA)
    with pytest.raises(ConfigError, match="is not there on"):
        list(rows.save(TaskContext(0, 0, 0), iter(())))
    assert not other.exists()
    # the folder of the table's metadata alone, as an earlier task may have made it, is no table
    (other / ".hoodie").mkdir(parents=True)
    for root in (str(other), f"file://{other}"):
        with pytest.raises(ConfigError, match="is not there on"):
            require_shared(root)
    for root in (there, f"file://{there}", f"file:{there}", "s3://bucket/t"):
        require_shared(root)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("rows", ["../../../../etc/passwd"]),
        ("operation", "merge"),
        ("expires", "2026-01-01T00:00:00"),
        ("metadata", "AAAA"),
        ("schema", "AAAA"),
        ("extra_metadata", {"schema": "{}"}),
    ],
)
def test_a_damaged_record_is_named(
    native: hudi.Table, caplog: pytest.LogCaptureFixture, name: str, value: object
) -> None:
    staged = native.stage(batch(5, "c"))
    _change(native, staged, name, value)
    with pytest.raises(CorruptMetadataError, match=r"stage\.json"):
        native.find_stage(staged.id)
    assert native.stages() == ()
    assert f"stage {staged.id} is passed over" in caplog.text
    for unknown in ("../../timeline", f"{staged.id}/rows", ".", staged.id[:-1]):
        with pytest.raises(UnknownStageError):
            native.find_stage(unknown)
        with pytest.raises(UnknownStageError):
            native.drop_stage(unknown)
    assert native.timeline.instants
    native.drop_stage(staged.id)
    assert list(folder(native).glob("*")) == []


def test_damaged_stages_hinder_nobody(native: hudi.Table, caplog: pytest.LogCaptureFixture) -> None:
    sound, damaged = native.stage(batch(5, "c")), native.stage(batch(5, "d"))
    (folder(native) / damaged.id / "stage.json").write_text("[" * 100_000)
    # names that are no dates: with a record, and as their writer left them
    forged, unfinished = "20261399000000000-01234567", "99999999999999999-01234567"
    shutil.copytree(folder(native) / sound.id, folder(native) / forged)
    (folder(native) / unfinished / "rows").mkdir(parents=True)

    assert [one.id for one in native.stages()] == [sound.id]
    expired = native.stage(batch(5, "e"))
    _age(native, expired)
    native.clean()
    assert not (folder(native) / expired.id).exists()
    few = {"hoodie.cleaner.commits.retained": "1"}
    native.upsert(batch(6, "a"), options=few)
    assert f"stage {damaged.id} is kept" in caplog.text
    assert f"stage {forged} is kept" in caplog.text
    with pytest.raises(TableServiceError) as caught:
        native.purge()
    assert caught.value.facts["stages"] == sorted([sound.id, damaged.id, forged, unfinished])
    for one in (damaged.id, forged, unfinished):
        dropped = CliRunner().invoke(app, ["stage", "drop", native.path, one])
        assert dropped.exit_code == 0, dropped.output
    # an expired one is dropped as well
    _age(native, sound)
    native.drop_stage(sound.id)
    native.purge()


def test_the_commands(table: hudi.Table) -> None:
    def run(*arguments: str) -> str:
        found = CliRunner().invoke(app, ["stage", *arguments])
        assert found.exit_code == 0, found.output
        return found.stdout

    one, two = table.stage(batch(5, "a", "n")), table.stage(batch(5, "z"))
    listed = json.loads(run("list", table.path, "--json"))["stages"]
    assert [stage["stage"] for stage in listed] == [one.id, two.id]
    assert "upsert" in run("list", table.path)
    assert json.loads(run("publish", table.path, one.id, "--json"))["updated"] == 1
    assert two.id in run("drop", table.path, two.id)
    assert "0 stages" in run("list", table.path)
    assert CliRunner().invoke(app, ["stage", "publish", table.path, one.id]).exit_code == 1
    assert sum(agree(Path(table.path)).values()) == 5


@pytest.mark.spark
@pytest.mark.parametrize("table", ["iceberg"], indirect=True)
def test_spark_stages_and_publishes(spark: SparkSession, table: hudi.Table) -> None:
    columns = table.read(spark, SCHEMA.names).schema
    frame = spark.createDataFrame(batch(5, "a", "n").to_pandas(), columns)
    before = tree(table)
    seen = []
    staged = table.stage(frame, validators=[lambda rows, commit: seen.append(rows.count_rows())])
    assert (tree(table), seen) == (before, [5])
    would_be = rows(staged)
    assert staged.publish(spark, validators=[lambda rows, commit: True]).updated == 1
    assert agree(Path(table.path)) == would_be
    assert list(folder(table).glob("*")) == []
