"""Commits of an engine that knows neither the table's format nor field ids: published, or named."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.errors import UnpublishedCommitsError
from hudi_core.model.instant import Action
from hudi_core.services.differences import Source
from tests import tables
from tests.formats import columns
from tests.formats.delta_tables import row
from tests.formats.foreign_writers import iceberg
from tests.formats.other_engines import NO_SERVICES, other_engine
from tests.formats.service_tables import agree, bag, batch, by_delta, by_iceberg, new_table

NAMES = "schema.name-mapping.default"
FORMATS = ("iceberg", "delta", "iceberg,delta")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t"


def rows(*keys: int, ts: int = 0) -> pa.Table:
    return pa.Table.from_pylist([row(key, ts, key / 4) for key in keys], columns.SCHEMA)


@pytest.mark.parametrize("table_format", FORMATS)
def test_its_files_are_read_right_once_they_are_published(path: Path, table_format: str) -> None:
    """Columns of every kind, found by their names where the file has no field ids."""
    table = tables.new_table(path, rows(*range(8)), format=table_format)
    with other_engine(path) as theirs:
        theirs.upsert(rows(1, 20, ts=5))
    table.upsert(rows(3, ts=6))
    held = bag(hudi.Table.open(path).to_arrow())
    for read in (by_iceberg, by_delta):
        if read.__name__.removeprefix("by_") in table_format:
            assert bag(read(path)) == held
    found = hudi.Table.open(path).to_arrow(filter=[("id", "=", row(1, 5)["id"])])
    assert found["ts"].to_pylist() == [5]
    assert hudi.Table.open(path).validate().is_valid


@pytest.mark.parametrize("cure", ["repair", "write"])
def test_tables_with_such_files_are_named_and_healed(path: Path, cure: str) -> None:
    """As releases before published them: their Iceberg tables have no name mapping."""
    table = new_table(path, "iceberg")
    with other_engine(path) as theirs:
        theirs.upsert(batch(5, "a"))
    table.upsert(batch(6, "x"))
    with iceberg(path).transaction() as transaction:
        transaction.remove_properties(NAMES)
    with pytest.raises(ValueError, match="field-ids"):
        by_iceberg(path)
    differences = table.validate().of(Source.FORMAT)
    assert [one.subject.partition("/")[0] for one in differences] == ["file rome"]
    assert NAMES in str(differences[0])
    assert not table.validate(footers=False).differences
    if cure == "repair":
        assert table.repair().left == ()
    else:
        table.upsert(batch(7, "y"))
    assert hudi.Table.open(path).validate().is_valid
    assert len(agree(path)) == 4


def test_names_of_former_and_new_columns(path: Path) -> None:
    """A file without ids knows the names of its day, and a name may be another column's later."""
    table = new_table(path, "iceberg")
    with other_engine(path) as theirs:
        theirs.upsert(batch(5, "a"))
    table.alter(rename={"value": "amount"})
    table = hudi.Table.open(path)
    table.alter(add_columns={"value": pa.string()})
    found = {one["id"]: one for one in by_iceberg(path).to_pylist()}
    assert (found["a"]["amount"], found["a"]["value"]) == (5.0, None)

    new = batch(7, "x").rename_columns(["id", "city", "ts", "amount", "tags"])
    with other_engine(path) as theirs:
        theirs.upsert(new.append_column("value", pa.array(["seven"])))
    hudi.Table.open(path).delete(batch(8, "b").select(["id", "city"]))
    found = {one["id"]: one for one in by_iceberg(path).to_pylist()}
    assert (found["x"]["amount"], found["x"]["value"]) == (7.0, "seven")
    assert hudi.Table.open(path).validate().is_valid


@pytest.mark.parametrize("table_format", FORMATS)
def test_reads_say_once_that_the_timeline_is_ahead(
    path: Path, table_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table(path, table_format)
    held = bag(table.to_arrow())
    with other_engine(path) as theirs:
        theirs.upsert(batch(5, "a"))
        last = theirs.upsert(batch(6, "x")).instant.requested_time
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert bag(hudi.Table.open(path).to_arrow()) == held
    (said,) = [one.getMessage() for one in caplog.records if "does not know" in one.getMessage()]
    assert f"completed 2 commits on the Hudi timeline, the last of them {last}" in said
    assert f"hudi table repair {path}" in said
    assert hudi.Table.open(path).repair().left == ()
    assert hudi.Table.open(path).to_arrow(filter=[("id", "=", "x")])["ts"].to_pylist() == [6]


@pytest.mark.parametrize("service", ["clean", "archive"])
@pytest.mark.parametrize("table_format", FORMATS)
def test_cleaned_files_of_the_published_state_are_named(
    path: Path, table_format: str, service: str
) -> None:
    """Never fewer rows, and never an error about a file alone."""
    new_table(path, table_format)
    few = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    with other_engine(path):
        for ts in range(5, 11):
            hudi.Table.open(path).upsert(batch(ts, "a", "x"), options=NO_SERVICES)
        hudi.Table.open(path).clean(options=few)
        if service == "archive":
            hudi.Table.open(path, few).archive()
    table = hudi.Table.open(path)
    before = set(path.rglob("*.parquet"))
    for call in (table.to_arrow, table.count, lambda: table.upsert(batch(20, "b"))):
        with pytest.raises(UnpublishedCommitsError, match=f"hudi table repair {path}"):
            call()
    assert set(path.rglob("*.parquet")) == before
    assert any("cleaned files" in str(one) for one in table.validate().differences)
    assert table.repair().left == ()
    table = hudi.Table.open(path)
    held = {one["id"]: one["ts"] for one in table.to_arrow(columns=["id", "ts"]).to_pylist()}
    assert held == {"a": 10, "b": 1, "x": 10, "y": 2}
    table.upsert(batch(20, "b"))
    for read in (by_iceberg, by_delta):
        if read.__name__.removeprefix("by_") in table_format:
            assert bag(read(path)) == bag(hudi.Table.open(path).to_arrow())


def test_a_file_group_that_came_and_went_is_named(path: Path) -> None:
    """The published state is whole; a commit in between cannot be published any more."""
    table = new_table(path, "delta")
    with other_engine(path):
        for ts in (5, 6, 7):
            paris = batch(ts, "n").set_column(1, "city", pa.array(["paris"]))
            hudi.Table.open(path).upsert(paris, options=NO_SERVICES)
        hudi.Table.open(path).clean(options={"hoodie.clean.commits.retained": "1"})
    assert hudi.Table.open(path).count() == 4
    assert not all(one.is_pending for one in table.validate().differences)
    with pytest.raises(UnpublishedCommitsError, match="paris/"):
        table.upsert(batch(20, "b"))
    assert table.repair().left == ()
    assert hudi.Table.open(path).count() == 5
    agree(path)


def test_every_commit_keeps_the_names(path: Path) -> None:
    table = new_table(path, "iceberg")
    table.alter(add_columns={"note": pa.string()})
    names = StaticTable.from_metadata(str(path)).properties[NAMES]
    assert '"note"' in names
    assert '"element"' in names


@pytest.mark.parametrize("table_format", FORMATS)
def test_lists_of_two_levels_are_named_and_rewritten(
    path: Path, table_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Readers of Iceberg in Java fail on them; all others read them as they are."""
    table = new_table(path, table_format)
    table.delete(where="id = 'b'")  # its NaN, without which footers are as they are written
    with other_engine(path, by_avro=True) as theirs:
        theirs.upsert(batch(5, "a"))
    with caplog.at_level(logging.WARNING):
        table.upsert(batch(6, "x"))
    held = agree(path)
    said = [one.getMessage() for one in caplog.records if "two levels" in one.getMessage()]
    found = table.validate()
    planned, left = table.repair(dry_run=True).rewritten, table.repair().left
    assert left == ()
    if "iceberg" not in table_format:
        assert not said
        assert found.is_valid
        assert planned == ()
        return
    assert len(said) == 1
    assert "the columns tags" in said[0]
    assert f"hudi table repair {path}" in said[0]
    (difference,) = found.of(Source.DATA_FILE)
    assert difference.found == "of two levels in tags"
    assert f"file {planned[0]}" in difference.subject
    assert len(found.differences) == len(planned) == 1
    table = hudi.Table.open(path)
    assert table.validate().is_valid
    assert table.repair().is_needed is False
    assert agree(path) == held
    last = table.timeline.completed_writes()[-1]
    assert last.action is Action.REPLACECOMMIT


def test_a_conversion_names_lists_of_two_levels(
    path: Path, native: hudi.Table, caplog: pytest.LogCaptureFixture
) -> None:
    native.delete(where="id = 'b'")  # its NaN, without which footers are as they are written
    with other_engine(path, by_avro=True) as theirs:
        theirs.upsert(batch(5, "a", "x"))
    assert native.validate().is_valid
    with caplog.at_level(logging.WARNING):
        hudi.Table.open(path).convert("iceberg")
    assert "2 data files of" in caplog.text
    native = hudi.Table.open(path)
    assert len(native.repair().rewritten) == 2
    assert native.validate().is_valid
    agree(path)


def test_files_with_buckets_stay(path: Path) -> None:
    """A clustering would put their rows into other file groups."""
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    rows = batch(1, "a", "b")
    table = tables.new_table(path, rows, options, format="iceberg", partition_by=None)
    with other_engine(path, by_avro=True) as theirs:
        theirs.upsert(batch(5, "a"))
    table.upsert(batch(6, "b"))
    assert not table.repair(dry_run=True).rewritten
    (left,) = table.repair().left
    assert left.source is Source.DATA_FILE
    table.upsert(batch(7, "a"))
    assert table.validate().is_valid
