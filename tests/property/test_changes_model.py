"""Random histories against dictionaries: what changed in every window, and every single change.

A row is the one with its key in its partition, and known by the number of the step that wrote it
last. The states after each step tell what a window must hold; the feed, applied change by change,
must go through the same states.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import hudi_core as hudi
from tests.property.histories import REPLACING, Model, Step, examples, perform, small_files
from tests.samples import IS_WHOLE
from tests.tables import new_table

CITY_VALUES = pa.schema([("id", pa.int64()), ("city", pa.string()), ("value", pa.string())])
CITIES = ("oslo", "rome", "turin")
OFTEN = ("upsert", "delete", "insert")
COLUMNS = ["id", "city", "value"]

Key = tuple[str, int]
State = Mapping[Key, str]
"""Value, which ends in the number of the step that wrote it, by key."""


def steps() -> st.SearchStrategy[list[tuple[str, list[Key]]]]:
    keys = st.tuples(st.sampled_from(CITIES), st.integers(0, 7))
    operation = st.sampled_from([*OFTEN, *OFTEN, *REPLACING])
    batch = st.lists(keys, min_size=1, max_size=8, unique=True)
    return st.lists(st.tuples(operation, batch), min_size=3, max_size=7)


def performed(
    path: Path, format_name: str, is_global: bool, plan: list[tuple[str, list[Key]]]
) -> tuple[hudi.Table, list[State], list[Any]]:
    """A table with a history, its states, the first of them empty, and their instants."""
    # several files for each partition
    options = small_files(3) | {"hoodie.index.type": "GLOBAL_SIMPLE" if is_global else "SIMPLE"}
    table = new_table(path, CITY_VALUES, options, format=format_name)
    model = Model(by_partition=not is_global)
    states: list[State] = [{}]
    times: list[Any] = [None]
    for operation, keys in plan:
        rows = (
            {"id": number, "city": city, "value": f"{number}@{len(states)}"}
            for city, number in keys
        )
        once = {model.key(row): row for row in rows}
        step = model.runnable(Step(operation, tuple(once.values())))
        if step.rows:
            times.append(perform(table, step, CITY_VALUES).instant)
            model.apply(step)
            states.append({(row["city"], row["id"]): row["value"] for row in model.held.values()})
    return table, states, times


def net(before: State, after: State, since: int) -> dict[Key, tuple[str, str]]:
    """What must be told of a window: value and change by key."""
    found = {key: (value, "delete") for key, value in before.items() if key not in after}
    for key, value in after.items():
        if key not in before:
            found[key] = value, "insert"
        elif int(value.partition("@")[2]) > since:
            found[key] = value, "update"
    return found


def told(rows: pa.Table) -> dict[Key, tuple[str, str]]:
    found = {
        (row["city"], row["id"]): (row["value"], row["_change_type"]) for row in rows.to_pylist()
    }
    assert len(found) == rows.num_rows
    return found


def check_windows(table: hudi.Table, states: list[State], times: list[Any]) -> None:
    for first, last in combinations(range(len(times)), 2):
        before, after = states[first], states[last]
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


def check_feed(table: hudi.Table, states: list[State], times: list[Any]) -> None:
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
        state = states[numbers[change["ts_ms"]]]
        assert {key: row["value"] for key, row in present.items()} == state


WHOLE, FEW = {"native": 6, "iceberg": 3, "delta": 3}, {"native": 3, "iceberg": 2, "delta": 2}


@pytest.mark.parametrize(("format_name", "count"), (WHOLE if IS_WHOLE else FEW).items())
def test_changes_lead_from_state_to_state(tmp_path: Path, format_name: str, count: int) -> None:
    drawn: list[Any] = []

    @given(plan=steps(), is_global=st.booleans())
    @examples(count, count)
    def check(plan: list[tuple[str, list[Key]]], is_global: bool) -> None:
        path = tmp_path / str(len(drawn))
        drawn.append(plan)
        table, states, times = performed(path, format_name, is_global, plan)
        check_windows(table, states, times)
        check_feed(table, states, times)

    check()
    assert drawn
