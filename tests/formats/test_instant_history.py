"""States of instants, as the command `timeline` shows them, and what they did, as Arrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.model.instant import Instant, State
from hudi_core.services.opening import open_table
from tests.calls import disk_requests
from tests.formats.two_steps import READABLE, batch, left_between, small_table

OFF = {"hoodie.table.services.enabled": "false", "hoodie.metadata.compact.max.delta.commits": "2"}
LIMITS = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def timeline(table: hudi.Table, *arguments: str) -> Any:
    shown = CliRunner().invoke(app, ["timeline", table.path, "--json", *arguments])
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)["instants"]


def written(path: Path, table_format: str) -> hudi.Table:
    """A table whose first writes are archived, after writes of several kinds."""
    table = small_table(path, table_format, **OFF)
    table.upsert(batch(2, "a", "c"), extra_metadata={"job": "7"})
    table.delete(batch(2, "b"))
    table.insert_overwrite(batch(4, "x", "y"))
    table.upsert(batch(5, "y"))
    table.clean(options=LIMITS)
    assert len(table.archive(options=LIMITS).instants) == 3
    return table


def completed_file(table: hudi.Table, instant: Instant) -> Path:
    return Path(table.path) / open_table(table.path, {}).client.active.path(instant)


@pytest.mark.parametrize("table_format", READABLE)
def test_every_state_of_an_instant_stands_side_by_side(
    path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    table = written(path, table_format)
    pending = left_between(monkeypatch, table, lambda: table.upsert(batch(6, "x")))

    active = timeline(table)
    every = timeline(table, "--all")

    assert every[-len(active) :] == active
    archived = every[: -len(active)]
    assert len(archived) == 3
    for one in archived:
        assert one["archived"]
        assert (one["state"], one["seen_as"]) == ("completed", "completed")
    if table_format == "iceberg":  # a Delta log still has their versions
        assert {one["format_state"] for one in archived} == {"expired"}
    *published, last = active
    assert len(published) == 3
    for one in published:
        assert (one["format_state"], one["seen_as"]) == ("published", "completed")
        assert one["format_version"]
        assert one["explanation"] is None
    assert last["instant"] == pending.requested_time
    assert (last["state"], last["format_state"], last["seen_as"], last["format_version"]) == (
        "completed",
        "absent",
        "inflight",
        None,
    )
    for words in ("pending publication", table_format, "next write", "without it"):
        assert words in last["explanation"]

    for_people = CliRunner().invoke(app, ["timeline", table.path], env={"COLUMNS": "120"}).stdout
    assert last["explanation"] in for_people
    line = next(line for line in for_people.splitlines() if pending.requested_time in line)
    assert line.split()[:5] == [pending.requested_time, "commit", "completed", "absent", "inflight"]

    table.upsert(batch(7, "x"))
    assert {one["seen_as"] for one in timeline(table)} == {"completed"}
    assert {one["explanation"] for one in timeline(table)} == {None}


@pytest.mark.parametrize("table_format", READABLE)
def test_instants_of_before_are_complete_by_watermark(path: Path, table_format: str) -> None:
    table = small_table(path, "native")
    table.convert(table_format)
    table.upsert(batch(2, "a"))

    before, after = timeline(table)

    assert (before["format_state"], before["format_version"]) == ("expired", None)
    assert (before["seen_as"], before["explanation"]) == ("completed", None)
    assert after["format_state"] == "published"


@pytest.mark.parametrize("table_format", READABLE)
def test_a_lost_completed_file_is_explained(path: Path, table_format: str) -> None:
    table = small_table(path, table_format)
    done = table.upsert(batch(2, "a")).instant
    completed_file(table, done).unlink()

    last = timeline(table)[-1]

    assert (last["instant"], last["state"], last["format_state"]) == (
        done.requested_time,
        "inflight",
        "published",
    )
    assert "hudi table repair" in last["explanation"]


@pytest.mark.parametrize("table_format", ["native", *READABLE])
def test_the_history_tells_what_each_instant_did(path: Path, table_format: str) -> None:
    table = written(path, table_format)

    history = table.history()
    found = history.to_arrow()

    columns = ["action", "operation", "archived", "rows_inserted", "rows_updated", "rows_deleted"]
    assert [tuple(row.values()) for row in found.select(columns).to_pylist()] == [
        ("clean", None, False, 0, 0, 0),
        ("commit", "UPSERT", False, 0, 1, 0),
        ("replacecommit", "INSERT_OVERWRITE", False, 2, 0, 0),
        ("commit", "DELETE", True, 0, 0, 1),
        ("commit", "UPSERT", True, 1, 1, 0),
        ("commit", "INSERT", True, 3, 0, 0),
    ]
    columns = ["files_added", "files_removed", "partitions"]
    assert [tuple(row.values()) for row in found.select(columns).to_pylist()] == [
        (0, found["files_removed"][0].as_py(), found["partitions"][0].as_py()),
        (1, 1, ["oslo"]),
        (1, 1, ["oslo"]),
        (1, 1, ["rome"]),
        (1, 1, ["rome"]),
        (2, 0, ["oslo", "rome"]),
    ]
    assert found["files_removed"][0].as_py() > 0
    assert all(size > 0 for size in found["bytes_written"].to_pylist()[1:])
    assert set(found["state"].to_pylist()) == {"completed"}
    times = found["instant"].to_pylist()
    assert times == sorted(times, reverse=True)
    assert None not in found["completion_time"].to_pylist()
    extra = found["extra_metadata"].to_pylist()
    assert extra.pop(4) == [("job", "7")]
    assert extra == [[]] * 5
    for limit in range(7):
        assert table.history(limit) == history[:limit]
        assert table.history(limit).to_arrow().equals(found.slice(0, limit))
    last = history[-1]
    assert (last.operation, last.partitions, last.rows_inserted) == ("INSERT", ("oslo", "rome"), 3)
    assert history[4].extra_metadata == {"job": "7"}
    assert pa.table(history) == found
    assert history.to_pylist() == found.to_pylist()
    assert history.to_pandas().columns.to_list() == found.column_names
    assert "rows_updated" in history._repr_html_()


@pytest.mark.parametrize("table_format", READABLE)
def test_history_is_fenced(path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str) -> None:
    table = small_table(path, table_format)
    pending = left_between(monkeypatch, table, lambda: table.upsert(batch(6, "x")))

    newest, first = table.history().to_pylist()

    assert (newest["instant"], newest["state"]) == (pending.requested_time, State.INFLIGHT)
    assert newest["completion_time"] is None
    assert newest["rows_updated"] is None
    assert (first["state"], first["rows_inserted"]) == ("completed", 3)


def test_a_limit_spares_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path / "t", "native")
    read = disk_requests(monkeypatch, "read")
    table.history(2)
    assert len([path for _, path in read if path.endswith((".commit", ".clean"))]) == 2
    assert not [path for _, path in read if path.endswith(".parquet")]


def test_a_negative_limit_is_refused(path: Path) -> None:
    table = small_table(path, "native")
    with pytest.raises(hudi.HudiError, match="limit"):
        table.history(-1)
    assert list(table.history(0)) == []
