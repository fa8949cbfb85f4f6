"""Stages: writes that are checked, then published as one instant, or dropped."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core import errors
from hudi_core.engine.base import TaskContext
from hudi_core.model.files import BasePath
from hudi_core.services import stage as stage_service
from hudi_core.services.stage import Stage, StageRows
from hudi_core.storage.location import require_shared
from hudi_core.storage.options import StorageOptions
from tests.calls import after
from tests.cli_runs import run, run_json
from tests.formats.service_tables import TAGGED, agree, bag, batch, two_writes
from tests.formats.two_steps import SHARED, ours
from tests.tables import TABLES


def folder(table: hudi.Table) -> Path:
    return Path(table.path) / ".hoodie/.stage"


def tree(table: hudi.Table) -> set[Path]:
    """All of a table but its stages and locks."""
    apart = {".stage", ".locks"}
    return {one for one in Path(table.path).rglob("*") if not apart & set(one.parts)}


def staged_rows(stage: Stage) -> Counter[str]:
    return bag(stage.to_arrow(), TAGGED.names)


NOTED = batch(5, "a", "c").append_column("note", pa.array(["x", "y"]))
KEPT = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}
SORTED = {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
FEW = {"hoodie.cleaner.commits.retained": "1"}
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def test_nobody_sees_a_stage_before_its_publication(table: hudi.Table) -> None:
    path, before = Path(table.path), tree(table)
    old, writes = agree(path), table.timeline.completed_writes()
    staged = table.stage(batch(5, "a", "n"), extra_metadata={"job": "7"})
    assert tree(table) == before
    assert agree(path) == old
    assert table.timeline.instants == hudi.Table.open(table.path).timeline.instants
    assert (staged.commit.inserted, staged.commit.updated) == (1, 1)
    would_be = staged_rows(staged)
    assert (staged.count(), sum(would_be.values())) == (5, 5)
    result = staged.publish()
    assert (result.inserted, result.updated, result.is_repetition) == (1, 1, False)
    assert result.metadata.extra_metadata["job"] == "7"
    assert agree(path) == would_be
    assert len(table.timeline.completed_writes()) == len(writes) + 1
    # of publication's time, like those of any write
    times = table.to_arrow(["id", "_hoodie_commit_time"], filter=[("ts", "=", 5)])
    assert set(times["_hoodie_commit_time"].to_pylist()) == {result.instant.requested_time}
    assert bag(table.to_arrow(as_of=writes[-1]), TAGGED.names) == old
    assert list(folder(table).glob("*")) == []
    with pytest.raises(errors.UnknownStageError, match="published or dropped"):
        staged.publish()
    table.upsert(batch(6, "a"))


@pytest.mark.parametrize(
    ("table", "operation", "given", "options"),
    [
        ("delta", "insert", batch(5, "c", "z"), {}),
        ("native", "bulk_insert", batch(5, "c", "z"), SORTED),
        ("iceberg", "upsert", batch(5, "a", "b", "c"), {"hoodie.index.type": "GLOBAL_BLOOM"}),
        *((name, "upsert", NOTED, {}) for name in TABLES),
        ("native", "upsert", batch(5, "a", "c"), RECORD_INDEX),
        ("native", "upsert", batch(5, "a").drop_columns(["value"]), KEPT),
        ("native", "delete", batch(5, "a", "x").select(["id", "city"]), {}),
        *((name, "insert_overwrite", batch(5, "c"), {}) for name in TABLES),
        ("iceberg", "insert_overwrite_table", batch(5, "c"), {}),
        ("native", "insert", TAGGED.empty_table(), {}),
    ],
    indirect=["table"],
)
def test_publication_gives_what_was_shown(
    table: hudi.Table, operation: str, given: pa.Table, options: dict[str, str]
) -> None:
    if options is RECORD_INDEX:
        table.upsert(batch(4, "b"), options=options)
    before = tree(table)
    staged = table.stage(given, operation, options=options)
    assert tree(table) == before
    names = [name for name in staged.to_arrow().column_names if name[:8] != "_hoodie_"]
    would_be = bag(staged.to_arrow(), names)
    # by a handle that knows nothing of the options, and from a stream
    [found] = hudi.Table.open(table.path).stages()
    assert (found.id, found.operation) == (staged.id, operation)
    found.publish()
    agree(Path(table.path))
    now = hudi.Table.open(table.path)
    assert bag(now.to_arrow(), names) == would_be
    assert now.validate(keys=True).differences == ()


def test_a_dataset_is_queried_before_the_publication(native: hudi.Table) -> None:
    staged = native.stage(
        pa.RecordBatchReader.from_batches(TAGGED, batch(5, "a", "n").to_batches())
    )
    with duckdb.connect() as connection:
        connection.register("trips", staged.scan())
        assert connection.sql("select max(ts), count(*) from trips").fetchall() == [(5, 5)]
    assert staged.to_arrow("id", filter=[("ts", ">", 4)])["id"].to_pylist() == ["n", "a"]
    assert staged.count([("city", "=", "rome")]) == 2
    staged.drop()
    with pytest.raises(errors.UnknownStageError):
        staged.count()
    assert native.stages() == ()
    assert list(folder(native).glob("*")) == []


@pytest.mark.parametrize("strategy", ["default", "object_store"])
def test_a_stage_beside_a_storage_path_is_read(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a relative storage path is below the working directory
    options = {"hoodie.storage.path": "data", "hoodie.storage.strategy.class": strategy}
    table = two_writes(tmp_path / "t", "native", **options)
    monkeypatch.chdir("/")
    assert list((tmp_path / "data").rglob("*.parquet"))
    staged = table.stage(batch(5, "a", "n"))
    would_be = staged_rows(staged)
    assert staged.scan().to_table().num_rows == staged.count() == sum(would_be.values()) == 5
    staged.publish()
    assert bag(hudi.Table.open(table.path).to_arrow(), TAGGED.names) == would_be


def _archive(table: hudi.Table) -> None:
    short = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    often = {**FEW, **short, "hoodie.metadata.compact.max.delta.commits": "1"}
    for at in range(6):
        table.insert_overwrite(batch(5, f"z{at}"), options=often)
    assert table.history().to_pylist()[-1]["archived"]


CONFLICTS: list[tuple[str, tuple[str, ...], Callable[[hudi.Table], Any], str]] = [
    ("upsert", ("a",), lambda table: table.upsert(batch(9, "b")), "file group"),
    ("upsert", ("c", "a"), lambda table: table.delete(batch(9, "a")), "file group"),
    ("upsert", ("a",), lambda table: table.cluster(sort_by="ts"), "file group"),
    ("upsert", ("a",), lambda table: table.delete_partitions(["rome"]), "file group"),
    ("upsert", ("y",), lambda table: table.rollback(table.timeline.instants[-1]), "file group"),
    ("upsert", ("y",), lambda table: table.restore(table.timeline.instants[0]), "file group"),
    ("insert_overwrite", ("c",), lambda table: table.bulk_insert(batch(9, "d")), "overwrites"),
    ("insert", ("c",), lambda table: table.alter(add_columns={"note": pa.string()}), "columns"),
    ("insert", ("c",), _archive, "archived"),
]


@pytest.mark.parametrize(("operation", "keys", "meanwhile", "reason"), CONFLICTS)
def test_what_changed_since_is_a_conflict(
    native: hudi.Table,
    operation: str,
    keys: tuple[str, ...],
    meanwhile: Callable[[hudi.Table], Any],
    reason: str,
) -> None:
    staged = native.stage(batch(5, *keys), operation)
    meanwhile(hudi.Table.open(native.path))
    now = agree(Path(native.path))
    with pytest.raises(errors.StageConflictError, match="stage its rows again") as caught:
        staged.publish()
    assert reason in caught.value.reason
    assert not caught.value.retryable
    with pytest.raises(errors.StageConflictError):
        staged.to_arrow()
    assert agree(Path(native.path)) == now
    assert [one.id for one in native.stages()] == [staged.id]


def test_a_key_that_others_inserted_is_a_conflict(table: hudi.Table) -> None:
    new_files = {"hoodie.parquet.small.file.limit": "0"}
    staged = table.stage(batch(5, "n"), options=new_files)
    other = table.stage(batch(5, "o"), options=new_files)
    hudi.Table.open(table.path).upsert(batch(9, "n"), options=new_files)
    with pytest.raises(errors.StageConflictError, match="both added record key 'n'"):
        staged.publish()
    # in the same partition, and nothing in common
    other.publish()
    assert sum(agree(Path(table.path)).values()) == 6


MARKED = batch(9, "n", "a").append_column("_hoodie_is_deleted", pa.array([True, False]))


@pytest.mark.parametrize(
    ("operation", "given", "is_held"),
    [
        ("delete", batch(9, "n"), False),
        ("delete", batch(9, "n", "x"), False),
        ("delete", batch(9, "n"), True),
        ("upsert", MARKED, False),
    ],
)
def test_rows_that_nobody_checked_are_not_deleted(
    native: hudi.Table, operation: str, given: pa.Table, is_held: bool
) -> None:
    """Others insert a key that was not there to be deleted."""
    alone = {"hoodie.parquet.small.file.limit": "0"}
    if operation == "upsert":
        columns = batch(1, "z").append_column("_hoodie_is_deleted", pa.array([False]))
        native.upsert(columns)
    staged = native.stage(given, operation, options=alone)
    other = hudi.Table.open(native.path)
    if is_held:  # the row comes into a file group of before
        other.upsert(batch(5, "n"))
    else:
        other.upsert(batch(5, "n"), options=alone)
    now = agree(Path(native.path))
    with pytest.raises(errors.StageConflictError, match="delete rows that others inserted since"):
        staged.publish()
    assert agree(Path(native.path)) == now
    # once it has gone nothing is in the way
    other.delete(batch(5, "n"))
    staged.publish()
    assert "n" not in native.to_arrow("id")["id"].to_pylist()


def test_other_writes_go_on(table: hudi.Table) -> None:
    staged = table.stage(batch(5, "a"))
    for _ in range(2):
        table.upsert(batch(9, "x"))
    table.clean(options=FEW)
    would_be = staged_rows(staged)
    staged.publish()
    assert agree(Path(table.path)) == would_be
    assert ours(table.path) == {"a": 5, "b": 1, "x": 9, "y": 2}


def test_what_was_published_is_not_published_twice(table: hudi.Table, tmp_path: Path) -> None:
    """As after a crash between the commit and the deletion of the stage."""
    staged = table.stage(batch(5, "c"), "bulk_insert")
    shutil.copytree(folder(table), tmp_path / "kept")
    first = staged.publish()
    shutil.copytree(tmp_path / "kept", folder(table), dirs_exist_ok=True)
    again = hudi.Table.open(table.path).find_stage(staged.id).publish()
    assert again.is_repetition
    assert again.instant == first.instant
    assert sum(agree(Path(table.path)).values()) == 5
    assert table.stages() == ()


@pytest.mark.parametrize("step", ["require_publishable", "require_as_checked"])
def test_what_is_dropped_meanwhile_is_not_published(
    native: hudi.Table, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    staged = native.stage(batch(5, "c"))
    now, writes = agree(Path(native.path)), native.timeline.completed_writes()
    after(monkeypatch, stage_service, step, lambda *_: staged.drop())
    with pytest.raises(errors.UnknownStageError, match="published or dropped"):
        staged.publish()
    assert list(folder(native).glob("*")) == []
    assert agree(Path(native.path)) == now
    assert native.timeline.completed_writes() == writes


@pytest.mark.parametrize("when", ["it is validated", "the timeline was read"])
def test_what_another_publishes_meanwhile_is_published_once(
    native: hudi.Table, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The other is done, and has deleted the stage."""
    staged = hudi.Table.open(native.path, SHARED).stage(batch(5, "c"), "bulk_insert")
    first: list[Any] = []

    def publish_first(*_: object) -> None:
        if not first:
            first.append(None)
            first[0] = hudi.Table.open(native.path, SHARED).find_stage(staged.id).publish()

    if when == "it is validated":
        second = staged.publish(validators=[publish_first])
    else:
        after(monkeypatch, stage_service, "require_as_checked", publish_first)
        second = staged.publish()
    assert (second.is_repetition, second.instant) == (True, first[0].instant)
    assert sum(agree(Path(native.path)).values()) == 5


def test_validators_run_before_and_again(native: hudi.Table) -> None:
    at_most = {
        "hoodie.precommit.validators": "single_value",
        "hoodie.precommit.validators.single.value.sql.queries": (
            "select count(*) <= 5 from <TABLE_NAME>#true"
        ),
    }
    with pytest.raises(errors.CommitValidationError):
        native.stage(batch(5, "c", "d"), options=at_most)
    with pytest.raises(errors.CommitValidationError):
        native.stage(batch(5, "c"), validators=[lambda rows, commit: False])
    assert list(folder(native).glob("*")) == []
    staged = native.stage(batch(5, "c"), options=at_most)
    native.bulk_insert(batch(5, "z"))
    # those of the publisher run, and none that a file of the table names
    strict = hudi.Table.open(native.path, at_most).find_stage(staged.id)
    with pytest.raises(errors.CommitValidationError, match="it returns false, not true"):
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
    with pytest.raises(errors.StageConflictError, match="it expired at"):
        staged.publish()
    with pytest.raises(errors.UnknownStageError):
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
    for ts in (6, 7):
        native.upsert(batch(ts, "a"), options=FEW)
    assert list(folder(native).glob("*")) == []


def _age(table: hudi.Table, stage: Stage) -> None:
    """Let a stage expire."""
    _change(table, stage, "expires", (datetime.now(UTC) - timedelta(seconds=1)).isoformat())


def _change(table: hudi.Table, stage: Stage, name: str, value: object) -> None:
    """Change the record of a stage, as whoever can write below the table can."""
    path = folder(table) / stage.id / "stage.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))


def test_what_cannot_be_staged_leaves_nothing(native: hudi.Table) -> None:
    keyless = batch(5, "a").set_column(0, "id", pa.array([None], pa.string()))
    for operation, given, error in (
        ("delete_partitions", ["rome"], errors.InvalidOptionError),
        ("merge", batch(5, "a"), errors.InvalidOptionError),
        ("upsert", batch(5, "a").drop_columns(["id"]), errors.SchemaError),
        ("upsert", keyless, errors.SchemaError),
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
    with pytest.raises(errors.TableServiceError, match=staged.id):
        native.purge()
    staged.drop()
    native.purge()


@pytest.mark.parametrize("table", ["delta"], indirect=True)
def test_what_is_staged_during_a_purge_is_named(table: hudi.Table) -> None:
    staged: list[Stage] = []

    def progress(*_: int) -> None:
        if not staged:
            staged.append(hudi.Table.open(table.path).stage(batch(5, "a")))

    with pytest.raises(errors.TableServiceError, match="then purge the table again") as caught:
        table.purge(progress=progress)
    assert caught.value.facts["stages"] == [staged[0].id]
    table.drop_stage(staged[0].id)
    table.purge()


def test_rows_are_not_saved_on_another_disk(native: hudi.Table, tmp_path: Path) -> None:
    """As by a task on a machine that lacks the table."""
    there, other = native.path, tmp_path / "other"
    rows = StageRows(BasePath(str(other)), StorageOptions(), ".hoodie/.stage/s", TAGGED)
    with pytest.raises(errors.ConfigError, match="is not there on"):
        list(rows.save(TaskContext(0, 0, 0), iter(())))
    assert not other.exists()
    # the folder of the table's metadata alone, as an earlier task may have made it, is no table
    (other / ".hoodie").mkdir(parents=True)
    for root in (str(other), f"file://{other}"):
        with pytest.raises(errors.ConfigError, match="is not there on"):
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
    with pytest.raises(errors.CorruptMetadataError, match=r"stage\.json"):
        native.find_stage(staged.id)
    assert native.stages() == ()
    assert f"stage {staged.id} is passed over" in caplog.text
    for unknown in ("../../timeline", f"{staged.id}/rows", ".", staged.id[:-1]):
        with pytest.raises(errors.UnknownStageError):
            native.find_stage(unknown)
        with pytest.raises(errors.UnknownStageError):
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
    native.upsert(batch(6, "a"), options=FEW)
    assert f"stage {damaged.id} is kept" in caplog.text
    assert f"stage {forged} is kept" in caplog.text
    with pytest.raises(errors.TableServiceError) as caught:
        native.purge()
    assert caught.value.facts["stages"] == sorted([sound.id, damaged.id, forged, unfinished])
    for one in (damaged.id, forged, unfinished):
        dropped = run("stage", "drop", native.path, one)
        assert dropped.exit_code == 0, dropped.output
    # an expired one is dropped as well
    _age(native, sound)
    native.drop_stage(sound.id)
    native.purge()


def test_the_commands(table: hudi.Table) -> None:
    one, two = table.stage(batch(5, "a", "n")), table.stage(batch(5, "z"))
    listed = run_json("stage", "list", table.path)["stages"]
    assert [stage["stage"] for stage in listed] == [one.id, two.id]
    assert "upsert" in run("stage", "list", table.path).stdout
    assert run_json("stage", "publish", table.path, one.id)["updated"] == 1
    dropped = run("stage", "drop", table.path, two.id)
    assert (dropped.exit_code, two.id in dropped.stdout) == (0, True)
    assert "0 stages" in run("stage", "list", table.path).stdout
    assert run("stage", "publish", table.path, one.id).exit_code == 1
    assert sum(agree(Path(table.path)).values()) == 5


@pytest.mark.spark
@pytest.mark.parametrize("table", ["iceberg"], indirect=True)
def test_spark_stages_and_publishes(spark: SparkSession, table: hudi.Table) -> None:
    columns = table.read(spark, TAGGED.names).schema
    frame = spark.createDataFrame(batch(5, "a", "n").to_pandas(), columns)
    before = tree(table)
    seen = []
    staged = table.stage(frame, validators=[lambda rows, commit: seen.append(rows.count_rows())])
    assert (tree(table), seen) == (before, [5])
    would_be = staged_rows(staged)
    assert staged.publish(spark, validators=[lambda rows, commit: True]).updated == 1
    assert agree(Path(table.path)) == would_be
    assert list(folder(table).glob("*")) == []
