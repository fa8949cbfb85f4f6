"""Random histories against dictionaries: what changed in every window, and every single change.

A row is the one with its key in its partition, and known by the number of the step that wrote it
last. The states after each step tell what a window must hold; the feed, applied change by change,
must go through the same states.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import hudi_core as hudi
from tests.samples import IS_WHOLE

SCHEMA = pa.schema(
    [pa.field("id", pa.int64()), pa.field("city", pa.string()), pa.field("value", pa.string())]
)
CITIES = ("oslo", "rome", "turin")
OFTEN = ("upsert", "delete", "insert")
RARELY = ("insert_overwrite", "insert_overwrite_table", "delete_partitions")
COLUMNS = ["id", "city", "value"]

Key = tuple[str, int]
State = Mapping[Key, tuple[str, int]]
"""Value and number of the step that wrote it, by key."""


@dataclass(frozen=True)
class Step:
    operation: str
    rows: tuple[Key, ...]


def steps() -> st.SearchStrategy[list[Step]]:
    keys = st.tuples(st.sampled_from(CITIES), st.integers(0, 7))
    operation = st.sampled_from([*OFTEN, *OFTEN, *RARELY])
    batch = st.lists(keys, min_size=1, max_size=8, unique=True).map(tuple)
    return st.lists(st.builds(Step, operation, batch), min_size=3, max_size=7)


@dataclass
class Model:
    """The states of a table, the first of them empty."""

    is_global: bool
    states: list[dict[Key, tuple[str, int]]] = field(default_factory=lambda: [{}])

    def batch(self, step: Step) -> list[dict[str, Any]]:
        """The rows of a step: of inserts and overwrites only keys that are not elsewhere."""
        held = self.states[-1]
        once = {number: (city, number) for city, number in step.rows}
        keys: Iterable[Key] = once.values() if self.is_global else step.rows
        if step.operation == "insert":
            taken = {number for _, number in held} if self.is_global else set()
            keys = [key for key in keys if key not in held and key[1] not in taken]
        if step.operation == "insert_overwrite" and self.is_global:
            replaced = {city for city, _ in keys}
            taken = {number for city, number in held if city not in replaced}
            keys = [key for key in keys if key[1] not in taken]
        number = len(self.states)
        return [{"id": key, "city": city, "value": f"{key}@{number}"} for city, key in keys]

    def apply(self, step: Step, rows: list[dict[str, Any]]) -> None:
        held = dict(self.states[-1])
        keys = {(row["city"], row["id"]) for row in rows}
        cities = {city for city, _ in keys}
        if step.operation == "insert_overwrite_table":
            held = {}
        elif step.operation in RARELY:
            held = {key: row for key, row in held.items() if key[0] not in cities}
        elif step.operation != "insert" and self.is_global:
            numbers = {number for _, number in keys}
            gone = keys if step.operation == "delete" else set()
            held = {k: v for k, v in held.items() if k[1] not in numbers or (k in keys - gone)}
        elif step.operation == "delete":
            held = {key: row for key, row in held.items() if key not in keys}
        if step.operation not in ("delete", "delete_partitions"):
            number = len(self.states)
            held |= {(row["city"], row["id"]): (row["value"], number) for row in rows}
        self.states.append(held)


def new_table(path: Path, format_name: str, is_global: bool) -> hudi.Table:
    return hudi.Table.create(
        str(path),
        SCHEMA,
        record_key="id",
        partition_by="city",
        format=format_name,
        options={
            "hoodie.index.type": "GLOBAL_SIMPLE" if is_global else "SIMPLE",
            # several files for each partition
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "3",
            "hoodie.fs.fsync": "false",
        },
    )


def performed(
    path: Path, format_name: str, is_global: bool, plan: list[Step]
) -> tuple[hudi.Table, Model, list[Any]]:
    """A table with a history, what it must be, and the instants of its states."""
    table, model = new_table(path, format_name, is_global), Model(is_global)
    times: list[Any] = [None]
    for step in plan:
        rows = model.batch(step)
        if step.operation == "delete_partitions":
            present = {city for city, _ in model.states[-1]}
            rows = [row for row in rows if row["city"] in present]
        if not rows:
            continue
        if step.operation == "delete_partitions":
            cities = sorted({row["city"] for row in rows})
            result = table.delete_partitions([{"city": city} for city in cities])
        else:
            result = getattr(table, step.operation)(pa.Table.from_pylist(rows, SCHEMA))
        model.apply(step, rows)
        times.append(result.instant)
    return table, model, times


def net(before: State, after: State, since: int) -> dict[Key, tuple[str, str]]:
    """What must be told of a window: value and change by key."""
    found = {key: (row[0], "delete") for key, row in before.items() if key not in after}
    for key, (value, step) in after.items():
        if key not in before:
            found[key] = value, "insert"
        elif step > since:
            found[key] = value, "update"
    return found


def told(rows: pa.Table) -> dict[Key, tuple[str, str]]:
    found = {
        (row["city"], row["id"]): (row["value"], row["_change_type"]) for row in rows.to_pylist()
    }
    assert len(found) == rows.num_rows
    return found


def check_windows(table: hudi.Table, model: Model, times: list[Any]) -> None:
    for first, last in combinations(range(len(times)), 2):
        before, after = model.states[first], model.states[last]
        expected = net(before, after, first)
        window = times[first], times[last]
        assert told(table.incremental(*window, columns=COLUMNS, deletes=True)) == expected
        rows = table.incremental(*window, columns=COLUMNS)
        shown = {(row["city"], row["id"]): row["value"] for row in rows.to_pylist()}
        there = {key: value for key, (value, kind) in expected.items() if kind != "delete"}
        assert shown == there
        few = table.incremental(
            *window, columns=COLUMNS, filter=[("value", ">=", "4")], deletes=True
        )
        assert told(few) == {key: one for key, one in expected.items() if one[0] >= "4"}


def check_feed(table: hudi.Table, model: Model, times: list[Any]) -> None:
    present: dict[Key, dict[str, Any]] = {}
    changes = table.changes(None, times[-1]).to_pylist()
    numbers = {time.requested_time: number for number, time in enumerate(times) if time}
    for place, change in enumerate(changes):
        before, after = (
            None if change[side] is None else json.loads(change[side])
            for side in ("before", "after")
        )
        assert (
            change["op"]
            == {(True, False): "d", (True, True): "u", (False, True): "i"}[
                (before is not None, after is not None)
            ]
        )
        row = after or before or {}
        key = row["city"], row["id"]
        assert present.pop(key, None) == before
        if after is not None:
            present[key] = after
        if changes[place + 1 :][:1] and changes[place + 1]["ts_ms"] == change["ts_ms"]:
            continue
        state = model.states[numbers[change["ts_ms"]]]
        assert {key: row["value"] for key, row in present.items()} == {
            key: value for key, (value, _) in state.items()
        }


WHOLE, FEW = {"native": 6, "iceberg": 3, "delta": 3}, {"native": 3, "iceberg": 2, "delta": 2}


@pytest.mark.parametrize(("format_name", "examples"), (WHOLE if IS_WHOLE else FEW).items())
def test_changes_lead_from_state_to_state(tmp_path: Path, format_name: str, examples: int) -> None:
    drawn: list[list[Step]] = []

    @given(plan=steps(), is_global=st.booleans())
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    def check(plan: list[Step], is_global: bool) -> None:
        path = tmp_path / str(len(drawn))
        drawn.append(plan)
        table, model, times = performed(path, format_name, is_global, plan)
        check_windows(table, model, times)
        check_feed(table, model, times)

    check()
    assert drawn
