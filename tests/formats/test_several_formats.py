"""Tables that are published in two formats with every commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core import errors
from hudi_core.cli import app
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import Action, State
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.plugin.several import join_versions, split_versions
from tests.formats.dying_writers import Died
from tests.formats.two_steps import CITIES, READ, batch, ours, read, read_at_rest, small_table
from tests.readers import by_duckdb

BOTH = "iceberg,delta"
ORDERS = (BOTH, "delta,iceberg")


@pytest.fixture(params=ORDERS)
def formats(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(path: Path, formats: str) -> hudi.Table:
    return small_table(path, formats)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, BaseException], None]:
    """Make the next call of a hook of one format raise an error."""

    def fail(name: str, hook: str, error: BaseException) -> None:
        left, right = [error], getattr(FormatHost, hook)

        def call(self: FormatHost, *arguments: Any, **named: Any) -> Any:
            if left and self.name == name:
                raise left.pop()
            return right(self, *arguments, **named)

        monkeypatch.setattr(FormatHost, hook, call)

    return fail


def test_every_reader_sees_the_same_rows_after_every_action(table: hudi.Table) -> None:
    saved = table.upsert(batch(2, "a", "c")).instant
    table.savepoint()
    undone = table.upsert(batch(3, "b")).instant
    table.rollback(undone)
    assert read_at_rest(table) == {"a": 2, "b": 1, "c": 2, "x": 1}
    table.insert_overwrite(batch(4, "z"))
    table.delete(batch(5, "a"))
    assert read_at_rest(table) == {"b": 1, "c": 2, "z": 4}
    table.restore(saved)
    assert read_at_rest(table) == {"a": 2, "b": 1, "c": 2, "x": 1}
    table.delete_savepoint(saved)
    for ts in range(6, 10):
        table.upsert(batch(ts, "a", "x"))
    cleaned = table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert cleaned.files
    table.cluster(sort_by="ts")
    table.alter(add_columns={"note": pa.string()})
    table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert read_at_rest(table) == {"a": 9, "b": 1, "c": 2, "x": 9}
    report = hudi.Table.open(table.path).validate()
    assert report.differences == ()
    assert {"files of iceberg", "files of delta"} <= report.checked.keys()


def test_duckdb_reads_either(path: Path) -> None:
    table = small_table(path, BOTH)
    table.upsert(batch(2, "a", "n"))
    own = ours(table.path)
    for found in (by_duckdb.read_delta(path), by_duckdb.read_iceberg(path)):
        assert {row["id"]: row["ts"] for row in found} == own
        assert len(found) == len(own)


def test_a_commit_names_the_states_that_it_builds_on(table: hudi.Table, formats: str) -> None:
    result = table.upsert(batch(2, "a"))
    client = table._session.opened.client
    before, after = [
        client.read_commit(one).extra_metadata[PARENT_KEY] for one in table.timeline.instants
    ]
    assert list(split_versions(after)) == formats.split(",")
    assert before != after
    assert list(split_versions(result.receipt.version)) == formats.split(",")


def test_versions_are_told_apart_whatever_they_are() -> None:
    versions = {"one": "a=b,c%", "two": "7"}
    assert split_versions(join_versions(versions)) == versions
    assert split_versions("7") == split_versions(None) == {}


def test_what_the_last_format_lacks_is_not_there_yet(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    first, last = formats.split(",")
    failing(last, "complete_write", Died())
    with pytest.raises(Died):
        table.upsert(batch(2, "a", "n"))
    old, new = {"a": 1, "b": 1, "x": 1}, {"a": 2, "b": 1, "n": 2, "x": 1}
    assert READ[first](Path(table.path)) == new
    assert READ[last](Path(table.path)) == ours(table.path) == old
    report = hudi.Table.open(table.path).validate()
    (lag,) = report.differences
    assert lag.is_pending
    assert f"not recorded in {last};" in (lag.found or "")
    shown = CliRunner().invoke(app, ["timeline", table.path]).output
    assert f"not in the {last} metadata yet" in " ".join(shown.split())
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {**new, "z": 3}
    assert hudi.Table.open(table.path).validate().differences == ()


def test_what_neither_holds_is_published_in_both(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    failing(formats, "complete_write", Died())
    with pytest.raises(Died):
        table.upsert(batch(2, "a"))
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1, "z": 3}


def test_a_lost_answer_of_one_is_no_failure(
    table: hudi.Table, formats: str, failing: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    right, left = FormatHost.complete_write, list(formats.split(","))

    def lossy(self: FormatHost, *arguments: Any, **named: Any) -> Any:
        receipt = right(self, *arguments, **named)
        if self.name in left:
            left.remove(self.name)
            raise errors.CommitStateUnknownError("The answer was lost", "Look again.")
        return receipt

    monkeypatch.setattr(FormatHost, "complete_write", lossy)
    table.upsert(batch(2, "a"))
    assert not left
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}


def test_what_the_last_format_never_takes_is_taken_out_of_the_first(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    failing(formats.split(",")[1], "complete_write", errors.IncompleteCommitError("No", "Never."))
    with pytest.raises(errors.CommitConflictError, match="rolled back"):
        table.upsert(batch(2, "a", "n"))
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1}
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1, "z": 3}


def test_a_write_that_one_holds_comes_before_older_ones(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    """Of two pending ones, the older of which no format holds."""
    failing(formats, "complete_write", Died())
    with pytest.raises(Died):
        table.upsert(batch(2, "a"))
    older = table._session.opened.client.timeline().instants[-1]
    last = formats.split(",")[1]
    failing(last, "complete_write", Died())
    with pytest.raises(Died):  # recovery brings the older one into the first format, and dies
        hudi.Table.open(table.path).upsert(batch(3, "b"))
    opened = hudi.Table.open(table.path)
    held = opened._session.opened.host.holders(opened._session.opened.client, older)
    assert held == (formats.split(",", maxsplit=1)[0],)
    opened.upsert(batch(4, "z"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1, "z": 4}


def test_a_rollback_leaves_the_last_format_first(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    first, last = formats.split(",")
    undone = table.upsert(batch(2, "a")).instant
    failing(first, "before_rollback", Died())
    with pytest.raises(Died):
        table.rollback(undone)
    assert READ[first](Path(table.path))["a"] == 2
    assert READ[last](Path(table.path)) == ours(table.path) == {"a": 1, "b": 1, "x": 1}
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1, "z": 3}


def test_a_savepoint_leaves_the_timeline_first_and_the_last_format_next(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    first, _, _ = formats.partition(",")
    saved = table.upsert(batch(2, "a")).instant
    kept = table.savepoint().instant
    failing(first, "complete_delete_savepoint", Died())
    with pytest.raises(Died):
        table.delete_savepoint(saved)
    left = hudi.Table.open(table.path)
    assert left._session.opened.host.holders(left._session.opened.client, kept) == (first,)
    assert hudi.Table.open(table.path).savepoints == ()
    # the next writer takes it out of the first format
    left.upsert(batch(3, "z"))
    assert left._session.opened.host.holders(left._session.opened.client, kept) == ()
    assert hudi.Table.open(table.path).savepoints == ()
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1, "z": 3}


def test_a_savepoint_that_the_last_format_refuses_is_in_no_format(
    table: hudi.Table, formats: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, save = formats.split(",")[1], FormatHost.complete_savepoint

    def refusing(self: FormatHost, *given: Any, **named: Any) -> Any:
        if self.name == last:
            raise errors.TableServiceError("It is forgotten", "Save a later one.")
        return save(self, *given, **named)

    monkeypatch.setattr(FormatHost, "complete_savepoint", refusing)
    with pytest.raises(errors.TableServiceError, match="forgotten"):
        table.savepoint()
    opened = hudi.Table.open(table.path)._session.opened
    done = replace(opened.client.timeline().completed_writes()[-1], action=Action.SAVEPOINT)
    assert opened.host.holders(opened.client, done.to(State.INFLIGHT)) == ()
    assert [one.action for one in opened.client.timeline().instants] == [Action.COMMIT]
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1, "z": 3}


def test_a_rollback_that_the_last_format_refuses_changes_nothing(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    done = table.upsert(batch(2, "a")).instant
    failing(
        formats.split(",")[1], "before_rollback", errors.TableServiceError("No", "Not this one.")
    )
    with pytest.raises(errors.TableServiceError, match="No"):
        table.rollback(done)
    assert read_at_rest(table)["a"] == 2
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1, "z": 3}


def test_a_rollback_that_the_first_format_refuses_later_goes_on(
    table: hudi.Table, formats: str, failing: Callable[..., None]
) -> None:
    done = table.upsert(batch(2, "a")).instant
    failing(
        formats.split(",", maxsplit=1)[0],
        "before_rollback",
        errors.TableServiceError("No", "Not this one."),
    )
    with pytest.raises(errors.IncompleteCommitError, match="has done already"):
        table.rollback(done)
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1, "z": 3}


@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_what_any_format_cannot_go_back_behind_is_refused_before_one_has(
    table: hudi.Table, formats: str, failing: Callable[..., None], way: str
) -> None:
    """Iceberg may have expired the state that the other format keeps."""
    before = table.timeline.completed_writes()[-1]
    done = table.upsert(batch(2, "a")).instant
    instant = done if way == "rollback" else before
    lost = errors.TableServiceError("No", "It is gone.")
    for dry_run in (True, False):
        failing(formats.split(",", maxsplit=1)[0], "check_restore", lost)
        with pytest.raises(errors.TableServiceError, match="No"):
            getattr(table, way)(instant, dry_run=dry_run)
        assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}
    hudi.Table.open(table.path).upsert(batch(3, "z"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1, "z": 3}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("native,iceberg", "every table is native as well"),
        ("delta,iceberg,Delta", "names delta twice"),
        ("iceberg,", "letter"),
        ("iceberg;delta", "letter"),
    ],
)
def test_a_list_that_is_none_is_refused(given: str, said: str, path: Path) -> None:
    with pytest.raises(errors.InvalidOptionError, match=said):
        small_table(path, given)
    assert not path.exists()


def test_a_missing_plugin_in_the_list_is_named(path: Path) -> None:
    with pytest.raises(errors.UnknownTableFormatError, match="nowhere"):
        small_table(path, "iceberg,nowhere")
    assert not path.exists()


def test_names_may_be_a_list_in_any_case(path: Path) -> None:
    assert small_table(path, ["Iceberg", " delta"]).format == BOTH


def test_abilities_are_those_that_all_have(formats: str) -> None:
    registry = FormatRegistry()
    host = FormatHost.load(registry, formats)
    each = [FormatHost.load(registry, one).capabilities for one in formats.split(",")]
    assert host.capabilities.declared <= each[0].declared & each[1].declared
    missing = each[0].declared ^ each[1].declared
    assert not missing & host.capabilities.declared
    assert all(host.capabilities.reasons[one] for one in missing)


def test_files_stay_in_the_folder_of_the_table(tmp_path: Path, formats: str) -> None:
    with pytest.raises(errors.UnsupportedCapabilityError, match="keeps all files in its folder"):
        small_table(tmp_path / "t", formats, **{"hoodie.storage.path": str(tmp_path / "store")})
    assert not (tmp_path / "t").exists()


def test_what_one_cannot_hold_is_refused_before_anything_is_written(path: Path) -> None:
    schema = CITIES.append(pa.field("at", pa.time64("us")))
    with pytest.raises(hudi.HudiError):
        hudi.Table.create(path, schema, record_key="id", format=BOTH)
    assert not path.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("native", BOTH),
        ("iceberg", BOTH),
        ("delta", BOTH),
        (BOTH, "iceberg"),
        (BOTH, "delta"),
        (BOTH, "delta,iceberg"),
        (BOTH, "native"),
    ],
)
def test_a_format_is_added_or_dropped(before: str, after: str, path: Path) -> None:
    table = small_table(path, before)
    table.upsert(batch(2, "a"))
    kept = {one: READ[one](Path(table.path)) for one in before.split(",") if one in READ}
    done = table.convert(after.split(","))
    assert (done.before, done.after, table.format) == (before, after, after)
    table.upsert(batch(3, "z"))
    rows = {"a": 2, "b": 1, "x": 1, "z": 3}
    assert ours(table.path) == rows
    for one, seen in READ.items():
        if one in after:
            assert seen(Path(table.path)) == rows
        elif one in kept:  # what is dropped stays as it was
            assert seen(Path(table.path)) == kept[one]
    assert hudi.Table.open(table.path).validate().differences == ()


def test_a_format_that_stays_keeps_its_history(path: Path) -> None:
    table = small_table(path, "delta")
    table.upsert(batch(2, "a"))
    versions = DeltaTable(table.path).version()
    table.savepoint()
    with pytest.raises(errors.TableServiceError, match="savepoints"):
        table.convert(BOTH)  # the new one could not go back to them
    table.delete_savepoint(table.timeline.completed_writes()[-1].requested_time)
    table.convert(BOTH)
    assert DeltaTable(table.path).version() >= versions
    assert DeltaTable(table.path, 1).to_pyarrow_table().num_rows


def test_a_conversion_that_dies_is_run_again(path: Path, failing: Callable[..., None]) -> None:
    table = small_table(path, "native")
    failing("delta", "rebuild", Died())
    with pytest.raises(Died):
        table.convert(BOTH)
    assert hudi.Table.open(table.path).format == "native"
    hudi.Table.open(table.path).upsert(batch(2, "a"))
    hudi.Table.open(table.path).convert(BOTH)
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}


def test_a_lost_format_is_rebuilt_beside_the_other(path: Path) -> None:
    table = small_table(path, BOTH)
    for file in (path / "_delta_log").iterdir():
        file.unlink()
    hudi.Table.open(table.path).repair()
    hudi.Table.open(table.path).upsert(batch(2, "a"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}
