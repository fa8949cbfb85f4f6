"""A writer that dies between the two steps of a commit, and what the next one makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.model.format import PARENT_KEY
from hudi_core.plugin.host import FormatHost

SCHEMA = pa.schema(
    [pa.field("id", pa.string()), pa.field("city", pa.string()), pa.field("ts", pa.int64())]
)


class Died(Exception):
    """The writer is no more."""


def batch(ts: int, *keys: str) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, "city": "rome" if key < "m" else "oslo", "ts": ts} for key in keys], SCHEMA
    )


def by_delta(path: Path) -> dict[str, int]:
    found = pa.table(DeltaTable(str(path)).to_pyarrow_table())
    return dict(zip(*found.select(["id", "ts"]).to_pydict().values(), strict=True))


def by_iceberg(path: Path) -> dict[str, int]:
    versions = (path / "metadata").glob("v*.metadata.json")
    newest = max(versions, key=lambda one: int(one.name.split(".")[0][1:]))
    found = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    return dict(zip(*found.select(["id", "ts"]).to_pydict().values(), strict=True))


READ: dict[str, Callable[[Path], dict[str, int]]] = {"delta": by_delta, "iceberg": by_iceberg}


@pytest.fixture(params=sorted(READ))
def format_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(tmp_path: Path, format_name: str) -> hudi.Table:
    made = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        options={"hoodie.table.format": format_name, "hoodie.fs.fsync": "false"},
    )
    made.insert(batch(1, "a", "b", "x"))
    return made


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make the next call of a hook the last thing its writer does."""

    def die_at(hook: str) -> None:
        monkeypatch.setattr(FormatHost, hook, _once(getattr(FormatHost, hook)))

    return die_at


def _once(hook: Callable[..., Any]) -> Callable[..., Any]:
    left = [Died()]

    def call(*arguments: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return hook(*arguments, **named)

    return call


def read(table: hudi.Table, format_name: str) -> dict[str, int]:
    """Return what the format's own reader and ours see; they agree."""
    foreign = READ[format_name](Path(table.path))
    found = hudi.Table.open(table.path).to_arrow(columns=["id", "ts"]).to_pydict()
    assert dict(zip(found["id"], found["ts"], strict=True)) == foreign
    return foreign


def test_a_write_is_published_by_the_next_one(
    table: hudi.Table, format_name: str, dying: Callable[[str], None]
) -> None:
    dying("complete_write")
    with pytest.raises(Died):
        table.upsert(batch(2, "a", "y"))
    assert read(table, format_name) == {"a": 1, "b": 1, "x": 1}

    table.upsert(batch(3, "b"))
    assert read(table, format_name) == {"a": 2, "b": 3, "x": 1, "y": 2}
    assert all(one.is_completed for one in hudi.Table.open(table.path).timeline.instants)


def test_of_two_writes_the_first_is_published_first(
    table: hudi.Table, format_name: str, dying: Callable[[str], None]
) -> None:
    dying("complete_write")
    with pytest.raises(Died):
        table.upsert(batch(2, "a"))
    dying("complete_write")
    with pytest.raises(Died):  # while it makes good what the first one left
        table.upsert(batch(3, "a"))
    table.upsert(batch(4, "z"))
    assert read(table, format_name) == {"a": 2, "b": 1, "x": 1, "z": 4}


def test_a_rollback_is_published_by_the_next_write(
    table: hudi.Table, format_name: str, dying: Callable[[str], None]
) -> None:
    undone = table.upsert(batch(2, "a", "y"))
    dying("complete_rollback")
    with pytest.raises(Died):
        table.rollback(undone.instant)
    table.upsert(batch(3, "b"))
    assert read(table, format_name) == {"a": 1, "b": 3, "x": 1}
    assert all(one.is_completed for one in hudi.Table.open(table.path).timeline.instants)


def test_commits_name_the_state_they_build_on(table: hudi.Table) -> None:
    timeline = hudi.Table.open(table.path).timeline
    client = table._session.opened.client
    (first,) = timeline.completed_writes()
    assert client.read_commit(first).extra_metadata[PARENT_KEY]
