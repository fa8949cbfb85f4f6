"""Record keys taken out of the files of a table, and put back into them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    InvalidOptionError,
    OptionConflictError,
    RecordKeyError,
    TableServiceError,
)
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.services.clustering import ClusteringService
from hudi_core.services.rewrite_keys import KeyStorage
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from tests.calls import failing
from tests.cli_runs import run, run_json
from tests.formats.dying_writers import death_in
from tests.formats.service_tables import READERS, bag
from tests.formats.virtual_tables import KEY_COLUMNS, Step, equal, history, made
from tests.tables import TABLES
from tests.tables import base_files as paths

FEW = {"hoodie.clustering.plan.strategy.max.num.groups": "2"}


def held(table: hudi.Table) -> set[bool]:
    """Whether present files hold the column of the key."""
    return {RECORD_KEY in pq.read_schema(path).names for path in paths(table)}


def replaced(rows: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), pa.array(values, pa.string()))


def keys(table: hudi.Table) -> list[str | None]:
    found: list[str | None] = table.to_arrow(columns=[RECORD_KEY]).column(0).to_pylist()
    return found


def upsert(table: hudi.Table, numbers: Sequence[int], ts: int) -> None:
    known = {row["id"]: row for row in history(7)[0].rows}
    rows = [{**known[f"k{one:03}"], "ts": ts} for one in numbers]
    table.upsert(pa.Table.from_pylist(rows, KEY_COLUMNS))


def sound(table: hudi.Table, other: hudi.Table) -> None:
    equal(table, other)
    assert hudi.Table.open(table.path).validate(keys=True).differences == ()
    for read in READERS[table.format]:
        wanted = bag(other.to_arrow(), KEY_COLUMNS.names)
        assert bag(read(Path(table.path)), KEY_COLUMNS.names) == wanted, read.__name__


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """A table of eight rows, whose keys are stored."""
    found = made(tmp_path / "t", None)
    history(7)[0].run(found)
    return found


@pytest.fixture(params=TABLES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[hudi.Table, hudi.Table]:
    """Two tables of the same rows; one stays as it is."""
    index = {"hoodie.metadata.record.index.enable": "true"}
    one, other = (
        made(tmp_path / name, None, table_format=request.param, **index, **FEW)
        for name in ("one", "other")
    )
    for table in (one, other):
        history(7)[0].run(table)
        upsert(table, [0, 3], 1)
    return one, other


def test_there_and_back(pair: tuple[hudi.Table, hudi.Table]) -> None:
    table, other = pair
    size = sum(path.stat().st_size for path in paths(table))
    plan = table.rewrite_keys(dry_run=True)
    assert (plan.before, plan.after) == (KeyStorage.STORED, KeyStorage.VIRTUAL)
    assert (plan.rows, plan.files, plan.size) == (8, len(paths(table)), size)
    assert held(table) == {True}
    done = table.rewrite_keys()
    assert (done.rows, done.files, done.size) == (plan.rows, plan.files, size)
    assert len(done.instants) == -(-plan.files // 2)
    assert done.new_size == sum(path.stat().st_size for path in paths(table))
    assert held(table) == {False}
    assert set(keys(table)) == {None}
    sound(table, other)
    assert not table.rewrite_keys().is_needed
    for one in pair:
        upsert(one, [1, 2, 3], 2)
        one.delete(one.to_arrow().slice(0, 0))
        # with the files from before goes what the metadata table has of their meta columns
        one.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert len(list(Path(table.path).rglob("*.parquet"))) < 3 * len(paths(table))
    sound(table, other)
    assert table.rewrite_keys(materialise=True).files == len(paths(table))
    assert held(table) == {True}
    assert sorted(filter(None, keys(table))) == sorted(filter(None, keys(other)))
    sound(table, other)
    for one in pair:
        upsert(one, [4], 3)
    sound(table, other)


def test_old_and_new_files_live_in_one_table(
    pair: tuple[hudi.Table, hudi.Table], caplog: pytest.LogCaptureFixture
) -> None:
    table, other = pair
    begin = table.timeline.completed_writes()[-1].requested_time
    table.rewrite_keys(keep_files=True)
    assert held(table) == {True}
    for one in pair:
        upsert(one, [1, 4], 2)
    assert held(table) == {True, False}
    with caplog.at_level(logging.WARNING):
        assert set(keys(table)) == {None}
    (warning,) = [one.message for one in caplog.records if RECORD_KEY in one.message]
    assert "it is ignored" in warning
    assert table.count(filter=pc.field(RECORD_KEY).is_valid()) == 0
    assert table.count(filter=pc.field(RECORD_KEY).is_null()) == 8
    sound(table, other)
    changed = table.incremental(begin)
    assert sorted(changed.column("id").to_pylist()) == ["k001", "k004"]
    assert set(changed.column(RECORD_KEY).to_pylist()) == {None}
    end = table.timeline.completed_writes()[-1].requested_time
    diff = table.diff(begin, end)
    assert set(diff.column("_change_type").to_pylist()) == {"update"}
    assert set(diff.column(RECORD_KEY).to_pylist()) == {None}


@pytest.mark.parametrize(
    "place",
    [
        "hudi_core.services.rewrite_keys.update_properties",
        "hudi_core.services.clustering.ClusteringService._rewrite",
        "hudi_core.txn.transaction.Transaction._complete",
        "hudi_core.txn.transaction.publish",
    ],
)
@pytest.mark.parametrize("materialise", [False, True])
def test_a_run_that_died_is_run_again(
    pair: tuple[hudi.Table, hudi.Table], place: str, materialise: bool
) -> None:
    table, other = pair
    if materialise:
        table.rewrite_keys()
    with death_in(place):
        table.rewrite_keys(materialise=materialise)
    again = hudi.Table.open(table.path, FEW)
    equal(again, other)
    again.rewrite_keys(materialise=materialise)
    assert held(again) == {materialise}
    sound(again, other)


def test_transition_writes_keys_and_counts_those_that_differ(table: hudi.Table) -> None:
    table.rewrite_keys(transition=True)
    upsert(table, [0, 1], 1)
    assert held(table) == {True}
    assert set(keys(table)) == {None}
    found = table.validate(keys=True)
    assert (found.differences, found.checked["stored record keys"]) == ((), 8)
    path = paths(table)[0]
    rows = pq.read_table(path)
    metadata = pq.read_metadata(path).metadata
    spoilt = replaced(rows, RECORD_KEY, ["other", *rows[RECORD_KEY].to_pylist()[1:]])
    pq.write_table(spoilt.replace_schema_metadata(metadata), path)
    differences = table.validate(keys=True, footers=False).differences
    (told,) = [one for one in differences if "record keys" in one.subject]
    assert f"1 of {rows.num_rows} rows have others" in str(told.found)
    assert "'other'" in str(told.found)


def test_keys_that_the_columns_do_not_make_are_kept(tmp_path: Path, table: hudi.Table) -> None:
    path = paths(table)[0]
    rows = pq.read_table(path)
    pq.write_table(replaced(rows, RECORD_KEY, [f"x{n}" for n in range(rows.num_rows)]), path)
    before = (tmp_path / "t/.hoodie/hoodie.properties").read_bytes()
    with pytest.raises(TableServiceError, match=f"{rows.num_rows} rows .* another record key"):
        table.rewrite_keys()
    assert (tmp_path / "t/.hoodie/hoodie.properties").read_bytes() == before


def test_a_writer_of_the_former_form_is_refused(table: hudi.Table) -> None:
    opened = hudi.Table.open(table.path)
    table.rewrite_keys()
    upsert(opened, [1], 5)  # it finds out by itself
    assert held(table) == {False}
    with pytest.raises(OptionConflictError, match="virtual"):
        hudi.Table.open(table.path, {"hoodie.recordkey.virtual.enabled": "false"})


def test_what_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    buckets = made(tmp_path / "buckets", None, index="BUCKET")
    history(7)[0].run(buckets)
    with pytest.raises(TableServiceError, match="buckets"):
        buckets.rewrite_keys()
    buckets.rewrite_keys(keep_files=True)
    upsert(buckets, range(8), 1)
    assert held(buckets) == {False}
    plain = made(tmp_path / "plain", "no meta columns")
    with pytest.raises(TableServiceError, match="no meta columns"):
        plain.rewrite_keys(materialise=True)
    keyless = hudi.Table.create(str(tmp_path / "keyless"), KEY_COLUMNS)
    with pytest.raises(InvalidOptionError, match="generated when rows are written"):
        keyless.rewrite_keys()
    with pytest.raises(InvalidOptionError, match="one of them"):
        buckets.rewrite_keys(materialise=True, transition=True)
    with pytest.raises(TableServiceError, match="cannot stay"):
        buckets.rewrite_keys(materialise=True, keep_files=True)
    scheduled = made(tmp_path / "scheduled", None, **{"hoodie.parquet.small.file.limit": "0"})
    for step in history(7)[:1] * 2:
        step.run(scheduled)
    plan = scheduled.cluster(schedule_only=True)
    with pytest.raises(TableServiceError, match=f"{plan.instant} .*is scheduled"):
        scheduled.rewrite_keys()


def test_the_command(table: hudi.Table) -> None:
    command = ("table", "rewrite-keys", table.path)
    plan = run(*command, "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert "would be virtual, and are stored" in " ".join(plan.output.split())
    assert held(table) == {True}
    assert run_json(*command)["after"] == "virtual"
    assert held(table) == {False}
    assert "nothing to do" in run(*command).output
    assert run(*command, "--materialise").exit_code == 0
    assert held(table) == {True}
    assert run(*command, "--materialise", "--transition").exit_code == 2


def test_a_file_without_a_column_of_the_key_is_an_error(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "no key column")
    history(7)[0].run(table)
    path = paths(table)[0]
    metadata = pq.read_metadata(path).metadata
    rows = pq.read_table(path)
    lacking = rows.drop_columns(["id"]).replace_schema_metadata(metadata)
    pq.write_table(lacking, path)
    with pytest.raises(RecordKeyError, match="has no column id, of which"):
        upsert(table, range(8), 1)
    nulls = replaced(rows, "id", [None] * rows.num_rows)
    pq.write_table(nulls.replace_schema_metadata(metadata), path)
    told = table.validate(keys=True, footers=False).differences
    assert any("null or empty" in str(one.found) for one in told)


def test_stored_keys_can_be_ignored_before_they_go(tmp_path: Path, table: hudi.Table) -> None:
    begin = table.timeline.completed_writes()[-1].requested_time
    upsert(table, [1, 2], 1)
    option = {"hoodie.recordkey.virtual.read.enabled": "true"}
    reader = hudi.Table.open(table.path, option)
    assert set(keys(reader)) == {None}
    assert set(filter(None, keys(table))) == {f"k{one:03}" for one in range(8)}
    changes = reader.incremental(begin, deletes=True)
    assert sorted(changes.column("id").to_pylist()) == ["k001", "k002"]
    assert set(changes.column("_change_type").to_pylist()) == {"update"}
    assert set(changes.column(RECORD_KEY).to_pylist()) == {None}
    keyless = hudi.Table.create(str(tmp_path / "keyless"), KEY_COLUMNS)
    keyless.insert(table.to_arrow(columns=KEY_COLUMNS.names))
    with pytest.raises(InvalidOptionError, match="no record key"):
        hudi.Table.open(keyless.path, option).to_arrow()


def test_rows_of_engines_that_know_no_such_tables_are_found_out(tmp_path: Path) -> None:
    """They leave out commit times as well, so that a window would silently lack their rows."""
    table = made(tmp_path / "t", "no key column")
    history(7)[0].run(table)
    begin = table.timeline.completed_writes()[-1].requested_time
    storage = PosixStorage(table.path)
    update_properties(storage, {"hoodie.recordkey.virtual.enabled": None})
    other = hudi.Table.open(table.path)
    assert not other.config.populate_meta_fields
    upsert(other, [1], 1)
    update_properties(storage, {"hoodie.recordkey.virtual.enabled": "true"})
    table = hudi.Table.open(table.path)
    assert table.count() == 8
    with pytest.raises(hudi.HudiError, match="do not say when they changed"):
        table.incremental(begin)


def test_a_step_can_be_undone_after_the_switch(tmp_path: Path) -> None:
    stored, table = made(tmp_path / "stored", None), made(tmp_path / "t", None)
    for one in (stored, table):
        history(7)[0].run(one)
        one.savepoint(one.timeline.completed_writes()[-1].requested_time)
    table.rewrite_keys()
    upsert(table, [1], 3)
    table.restore(table.savepoints[0].instant)
    assert held(table) == {True}
    assert set(keys(table)) == {None}
    sound(table, stored)
    step = Step("upsert", [{**one, "ts": 9} for one in history(7)[0].rows[:4]])
    assert step.run(table) == step.run(stored)
    sound(table, stored)


VIRTUAL = "hoodie.recordkey.virtual.enabled"


@pytest.mark.parametrize("table_format", ["native", "iceberg"])
@pytest.mark.parametrize("given", ["true", "false"])
def test_the_handle_that_made_the_table_goes_on_with_it(
    tmp_path: Path, table_format: str, given: str
) -> None:
    """Its options said where the keys were, which the rewrite changes."""
    table = made(tmp_path / "t", None, table_format=table_format, **{VIRTUAL: given})
    other = made(tmp_path / "other", None, table_format=table_format)
    for one in (table, other):
        history(7)[0].run(one)
    starts_virtual = given == "true"
    number = 1
    for materialise in (starts_virtual, not starts_virtual, starts_virtual):
        plan = table.rewrite_keys(materialise=materialise, dry_run=True)
        done = table.rewrite_keys(materialise=materialise)
        assert (done.before, done.after) == (plan.before, plan.after)
        assert done.files == len(paths(table))
        assert held(table) == {materialise}
        for one in (table, other):
            upsert(one, [number, number + 1], number)
        number += 1
        sound(table, other)
        assert not table.rewrite_keys(materialise=materialise).is_needed
    # what contradicts the table is refused as ever, by who opens it
    with pytest.raises(OptionConflictError, match="virtual"):
        hudi.Table.open(table.path, {VIRTUAL: "true" if starts_virtual else "false"})


@pytest.mark.parametrize("materialise", [False, True])
def test_the_handle_ends_a_rewriting_that_failed(
    tmp_path: Path, materialise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = "true" if materialise else "false"
    table, other = made(tmp_path / "t", None, **{VIRTUAL: given}, **FEW), made(tmp_path / "o", None)
    for one in (table, other):
        history(7)[0].run(one)
    with monkeypatch.context() as patched:
        patched.setattr(ClusteringService, "_rewrite", failing(ConnectionError("gone")))
        with pytest.raises(ConnectionError):
            table.rewrite_keys(materialise=materialise)
    for one in (table, other):
        upsert(one, [1], 1)
    table.rewrite_keys(materialise=materialise)
    assert held(table) == {materialise}
    sound(table, other)
