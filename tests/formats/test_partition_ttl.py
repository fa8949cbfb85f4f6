"""Partitions that expire, and go."""

from __future__ import annotations

import json
import logging
import re
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.config.ttl import TtlConfig, TtlStrategy
from hudi_core.errors import CommitValidationError, InvalidOptionError, PartitionValueError
from hudi_core.model.files import PartitionPath
from hudi_core.services import partition_ttl
from hudi_core.services.progress import Progress
from hudi_core.table_handle import OpenTable
from tests.clock_set_back import clock_set_back
from tests.formats.service_tables import TAGGED, agree, batch, two_writes
from tests.tables import TABLES

BY_CREATION = {TtlConfig.strategy.key: "KEEP_BY_CREATION_TIME"}
INLINE = {TtlConfig.inline.key: "true", TtlConfig.days_retained.key: "10"}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, path: Path) -> hudi.Table:
    """Rome was written to 30 days ago, Oslo then and now."""
    with clock_set_back(30):
        made = two_writes(path, request.param)
    made.upsert(batch(3, "x"))
    return made


@pytest.fixture
def native(path: Path) -> hudi.Table:
    with clock_set_back(30):
        return two_writes(path)


def cities(table: hudi.Table) -> set[str]:
    agree(Path(table.path))
    return set(hudi.Table.open(table.path).to_arrow()["city"].to_pylist())


def test_what_nobody_writes_to_goes(table: hudi.Table) -> None:
    before = agree(Path(table.path))
    plan = table.expire_partitions(10, dry_run=True)
    assert (plan.partitions, plan.commit) == (("rome",), None)
    assert table.expire_partitions(40).partitions == ()
    assert agree(Path(table.path)) == before
    done = table.expire_partitions(10)
    assert done.partitions == ("rome",)
    assert done.commit is not None
    assert (done.commit.operation, done.commit.deleted) == ("DELETE_PARTITION", 2)
    assert cities(table) == {"oslo"}
    assert len(table.to_arrow(as_of=table.timeline.completed_writes()[-2])) == 4
    # there is nothing left to go
    writes = len(table.timeline.completed_writes())
    assert table.expire_partitions(10).commit is None
    assert len(table.timeline.completed_writes()) == writes


def test_by_the_time_of_their_creation(table: hudi.Table) -> None:
    done = table.expire_partitions(10, options=BY_CREATION)
    assert (done.partitions, done.strategy) == (("oslo", "rome"), TtlStrategy.KEEP_BY_CREATION_TIME)
    assert hudi.Table.open(table.path).count() == 0


def test_progress_counts_partitions(native: hudi.Table) -> None:
    told: list[tuple[int, int]] = []
    options = {**BY_CREATION, TtlConfig.max_partitions.key: "1"}
    native.expire_partitions(10, options=options, progress=lambda *one: told.append(one))
    assert told == [(1, 2), (2, 2), (0, 1), (1, 1)], "two looked at, one of them deleted"


def test_options_choose(native: hudi.Table) -> None:
    def planned(**options: str) -> tuple[str, ...]:
        return native.expire_partitions(10, options=options, dry_run=True).partitions

    # of one commit each has its last
    assert planned() == ("rome", "oslo") or planned() == ("oslo", "rome")
    assert len(planned(**{TtlConfig.max_partitions.key: "1"})) == 1
    assert planned(**{TtlConfig.partitions.key: "oslo,paris"}) == ("oslo",)
    by_class = "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"
    native.upsert(batch(3, "x"))
    assert planned() == ("rome",)
    assert set(planned(**{TtlConfig.strategy_class.key: by_class})) == {"rome", "oslo"}
    # who made a partition is not known where its file is lost
    (Path(native.path) / "rome/.hoodie_partition_metadata").unlink()
    assert planned(**BY_CREATION) == ("oslo",)


def test_after_a_commit(table: hudi.Table) -> None:
    def one_more(rows: object, commit: object) -> bool:
        return len(agree(Path(table.path))) == 4

    table.upsert(batch(4, "y"), options=INLINE, extra_metadata={"job": "7"}, validators=[one_more])
    upsert, expiry = table.timeline.completed_writes()[-2:]
    assert [one.action.value for one in (upsert, expiry)] == ["commit", "replacecommit"]
    assert cities(table) == {"oslo"}
    by_instant = {row["instant"]: row for row in table.history().to_pylist()}
    assert ("job", "7") in by_instant[upsert.requested_time]["extra_metadata"]
    assert ("job", "7") not in by_instant[expiry.requested_time]["extra_metadata"]


def test_after_a_publication(table: hudi.Table) -> None:
    staged = hudi.Table.open(table.path, INLINE).stage(batch(4, "y"))
    hudi.Table.open(table.path, INLINE).find_stage(staged.id).publish()
    upsert, expiry = table.timeline.completed_writes()[-2:]
    assert [one.action.value for one in (upsert, expiry)] == ["commit", "replacecommit"]
    assert cities(table) == {"oslo"}


def test_not_after_every_commit(native: hudi.Table) -> None:
    for options in (
        {TtlConfig.inline.key: "true"},
        {TtlConfig.days_retained.key: "10"},
        {**INLINE, "hoodie.table.services.enabled": "false"},
    ):
        native.upsert(batch(4, "y"), options=options)
        assert cities(native) == {"rome", "oslo"}


def test_failure_is_for_the_next_one(native: hudi.Table, caplog: pytest.LogCaptureFixture) -> None:
    plan = native.cluster(sort_by="ts", partitions="rome", schedule_only=True)
    assert plan.groups
    with caplog.at_level(logging.WARNING):
        native.upsert(batch(4, "y"), options=INLINE)
    assert "the expiry of partitions" in caplog.text
    assert cities(native) == {"rome", "oslo"}


def test_what_is_written_to_stays(native: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer is faster, after the partitions were looked at first."""
    look = partition_ttl.expired
    asked: list[list[PartitionPath]] = []

    def looked(table: OpenTable, config: TtlConfig, *progress: Progress) -> list[PartitionPath]:
        found = look(table, config, *progress)
        if not asked:
            hudi.Table.open(native.path).upsert(batch(9, "a", "x"))
        asked.append(list(found))
        return found

    monkeypatch.setattr(partition_ttl, "expired", looked)
    done = native.expire_partitions(10)
    assert [len(found) for found in asked] == [2, 0]
    assert (done.partitions, done.commit) == ((), None)
    assert cities(native) == {"rome", "oslo"}


def test_what_is_refused(native: hudi.Table, tmp_path: Path) -> None:
    for days in (None, 0, -1):
        with pytest.raises(InvalidOptionError, match="no partition is ever that old"):
            native.expire_partitions(days)
    flat = hudi.Table.create(tmp_path / "flat", TAGGED, record_key="id")
    with pytest.raises(PartitionValueError, match="has no partitions"):
        flat.expire_partitions(10)
    with pytest.raises(CommitValidationError):
        native.expire_partitions(
            10,
            options={
                "hoodie.precommit.validators": "equality",
                "hoodie.precommit.validators.equality.sql.queries": "from <TABLE_NAME>",
            },
        )
    assert flat.upsert(batch(1, "a"), options=INLINE).inserted == 1


def test_the_command(table: hudi.Table) -> None:
    def run(*arguments: str) -> str:
        found = CliRunner().invoke(app, ["ttl", table.path, *arguments])
        assert found.exit_code == 0, found.output
        return found.stdout

    assert json.loads(run("--days", "10", "--dry-run", "--json"))["partitions"] == ["rome"]
    assert "rome" in run("--days", "10", "--dry-run")
    document = json.loads(run("--json", "-o", f"{TtlConfig.days_retained.key}=10"))
    assert document["commit"]["action"] == "replacecommit"
    assert "no partition is older" in run("--days", "10")
    assert cities(table) == {"oslo"}


def test_the_command_shows_a_bar(native: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudi_core.cli.terminal.Console", partial(Console, force_terminal=True))
    shown = CliRunner().invoke(app, ["ttl", native.path, "--days", "10"])
    assert shown.exit_code == 0, shown.output
    assert re.search("partitions .*2/2", shown.stderr)
