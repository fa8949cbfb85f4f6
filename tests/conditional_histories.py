"""Histories of conditional writes: what a dictionary, and Delta's own writer, make of them.

Conditions and values are the same texts for our writer and for delta-rs, and Python beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import hypothesis.strategies as st
import pyarrow as pa
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.engine.base import Engine

CITY_VALUES = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.float64())]
)
CITIES = ("rome", "oslo", "bern")
Row = dict[str, Any]
Table = dict[str, Row]


@dataclass(frozen=True)
class Condition:
    """A condition as text and as a function of the stored and the source row; null is ``None``."""

    text: str
    holds: Callable[[Row, Row], bool | None]


@dataclass(frozen=True)
class Setting:
    """Values of columns as texts and as functions."""

    texts: Mapping[str, str]
    values: Mapping[str, Callable[[Row, Row], Any]]


def _more(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else bool(one > other)


def _plus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


ALONE = (
    Condition("v > 2", lambda t, _: _more(t["v"], 2)),
    Condition("v IS NULL", lambda t, _: t["v"] is None),
    Condition("NOT (v > 2)", lambda t, _: None if t["v"] is None else not t["v"] > 2),
    Condition("ts >= 3 AND city <> 'oslo'", lambda t, _: t["ts"] >= 3 and t["city"] != "oslo"),
    Condition(
        "id IN ('k1', 'k2', 'k3') OR v = 1",
        lambda t, _: t["id"] in ("k1", "k2", "k3") or (None if t["v"] is None else t["v"] == 1),
    ),
    Condition("city = 'rome'", lambda t, _: t["city"] == "rome"),
    Condition("ts > 100", lambda t, _: False),
)
SET_ALONE = (
    Setting({"v": "v + 1"}, {"v": lambda t, _: _plus(t["v"], 1)}),
    # an ordering value that is lowered is a value as any other
    Setting({"ts": "ts - 10", "v": "0.5"}, {"ts": lambda t, _: t["ts"] - 10, "v": lambda *_: 0.5}),
    Setting({"v": "CAST(NULL AS DOUBLE)"}, {"v": lambda *_: None}),
    Setting({"city": "'bern'"}, {"city": lambda *_: "bern"}),
)
OF_BOTH = (
    Condition("source.v > target.v", lambda t, s: _more(s["v"], t["v"])),
    Condition("target.ts < 3", lambda t, _: t["ts"] < 3),
    Condition("source.v IS NULL", lambda _, s: s["v"] is None),
)
SET_BOTH = (
    Setting(
        {"v": "source.v", "ts": "target.ts - 1"},
        {"v": lambda _, s: s["v"], "ts": lambda t, _: t["ts"] - 1},
    ),
    Setting({"v": "target.v + source.v"}, {"v": lambda t, s: _plus(t["v"], s["v"])}),
    Setting({"city": "source.city"}, {"city": lambda _, s: s["city"]}),
)
OF_SOURCE = (Condition("source.v > 1", lambda _, s: _more(s["v"], 1)),)
OF_TARGET = (
    Condition("target.v > 3", lambda t, _: _more(t["v"], 3)),
    Condition("target.city = 'oslo'", lambda t, _: t["city"] == "oslo"),
)
SET_TARGET = (
    Setting({"v": "target.v * 2"}, {"v": lambda t, _: None if t["v"] is None else t["v"] * 2}),
)

Met = Literal["matched", "not_matched", "not_matched_by_source"]
Action = Literal["update", "update_all", "delete", "insert", "insert_all"]


@dataclass(frozen=True)
class When:
    met: Met
    action: Action
    condition: Condition | None
    setting: Setting | None = None


@dataclass(frozen=True)
class Step:
    """An update, a delete, or a merge of rows."""

    kind: Literal["update", "delete", "merge"]
    condition: Condition | None = None
    setting: Setting | None = None
    source: tuple[Row, ...] = ()
    whens: tuple[When, ...] = field(default=())


def _of_source(name: str) -> Callable[[Row, Row], Any]:
    return lambda _, source: source[name]


INSERTED = Setting(
    {"id": "source.id", "city": "source.city", "ts": "source.ts"},
    {name: _of_source(name) for name in ("id", "city", "ts")},
)


@st.composite
def drawn_rows(draw: st.DrawFn) -> Row:
    return {
        "id": f"k{draw(st.integers(0, 9))}",
        "city": draw(st.sampled_from(CITIES)),
        "ts": draw(st.integers(0, 5)),
        "v": draw(st.none() | st.integers(0, 5).map(float)),
    }


def _once(batch: list[Row]) -> tuple[Row, ...]:
    return tuple({row["id"]: row for row in batch}.values())


def _optional(conditions: tuple[Condition, ...]) -> st.SearchStrategy[Condition | None]:
    return st.none() | st.sampled_from(conditions)


def _whens() -> st.SearchStrategy[tuple[When, ...]]:
    matched = st.one_of(
        st.builds(
            When,
            st.just("matched"),
            st.just("update"),
            _optional(OF_BOTH),
            st.sampled_from(SET_BOTH),
        ),
        st.builds(When, st.just("matched"), st.just("update_all"), _optional(OF_BOTH)),
        st.builds(When, st.just("matched"), st.just("delete"), _optional(OF_BOTH)),
    )
    new = st.one_of(
        st.builds(When, st.just("not_matched"), st.just("insert_all"), _optional(OF_SOURCE)),
        st.builds(
            When, st.just("not_matched"), st.just("insert"), _optional(OF_SOURCE), st.just(INSERTED)
        ),
    )
    alone = st.one_of(
        st.builds(
            When,
            st.just("not_matched_by_source"),
            st.just("update"),
            st.sampled_from(OF_TARGET),
            st.sampled_from(SET_TARGET),
        ),
        st.builds(
            When, st.just("not_matched_by_source"), st.just("delete"), st.sampled_from(OF_TARGET)
        ),
    )
    return (
        st.tuples(
            st.lists(matched, max_size=2), st.lists(new, max_size=1), st.lists(alone, max_size=1)
        )
        .map(lambda found: (*found[0], *found[1], *found[2]))
        .filter(bool)
    )


def steps(most: int = 4) -> st.SearchStrategy[list[Step]]:
    update = st.builds(Step, st.just("update"), _optional(ALONE), st.sampled_from(SET_ALONE))
    delete = st.builds(Step, st.just("delete"), st.sampled_from(ALONE))
    batch = st.lists(drawn_rows(), min_size=1, max_size=8).map(_once)
    merge = st.builds(Step, st.just("merge"), st.none(), st.none(), batch, _whens())
    return st.lists(st.one_of(update, delete, merge, merge), min_size=1, max_size=most)


def beginnings() -> st.SearchStrategy[tuple[Row, ...]]:
    return st.lists(drawn_rows(), min_size=1, max_size=8).map(_once)


# --- what they come to ---------------------------------------------------------------------------


def by_dictionary(held: Table, step: Step) -> tuple[Table, tuple[int, int, int]]:
    """What a step leaves, and how many rows it inserts, updates and deletes; moves count twice."""
    after: Table = {}
    counts: Counter[str] = Counter()
    sources = {row["id"]: row for row in step.source}

    def kept(key: str, before: Row, now: Row) -> None:
        after[key] = now
        moved = now["city"] != before["city"]
        counts.update(["inserted", "deleted"] if moved else ["updated"])

    for key, row in held.items():
        source = sources.get(key)
        if step.kind != "merge":
            if step.condition is not None and step.condition.holds(row, {}) is not True:
                after[key] = row
            elif step.kind == "delete":
                counts["deleted"] += 1
            else:
                kept(key, row, _set(step.setting, row, {}))
            continue
        met: Met = "not_matched_by_source" if source is None else "matched"
        when = _first(step, met, row, source or {})
        if when is None:
            after[key] = row
        elif when.action == "delete":
            counts["deleted"] += 1
        elif when.action == "update_all":
            kept(key, row, dict(source or {}))
        else:
            kept(key, row, _set(when.setting, row, source or {}))
    for key, source in sources.items():
        when = None if key in held else _first(step, "not_matched", {}, source)
        if when is not None:
            empty = dict.fromkeys(CITY_VALUES.names)
            after[key] = dict(source) if when.setting is None else _set(when.setting, empty, source)
            counts["inserted"] += 1
    return after, (counts["inserted"], counts["updated"], counts["deleted"])


def _first(step: Step, met: Met, row: Row, source: Row) -> When | None:
    for when in step.whens:
        if when.met != met:
            continue
        if when.condition is None or when.condition.holds(row, source) is True:
            return when
    return None


def _set(setting: Setting | None, row: Row, source: Row) -> Row:
    assert setting is not None
    return {**row, **{name: value(row, source) for name, value in setting.values.items()}}


def by_us(
    table: hudi.Table, step: Step, engine: Engine | None = None, spark: Any = None
) -> hudi.CommitResult:
    """Do a step by our writer."""
    text = None if step.condition is None else step.condition.text
    if step.kind == "update":
        assert step.setting is not None
        return table.update(dict(step.setting.texts), text, engine=engine, spark=spark)
    if step.kind == "delete":
        return table.delete(where=text, engine=engine, spark=spark)
    source = pa.Table.from_pylist(list(step.source), CITY_VALUES)
    rows = source if spark is None else spark.createDataFrame(source)
    result: hudi.CommitResult = _clauses(table.merge(rows, "id", engine=engine), step).execute()
    return result


def by_delta_rs(table: DeltaTable, step: Step) -> None:
    """Do a step by delta-rs."""
    text = None if step.condition is None else step.condition.text
    if step.kind == "update":
        assert step.setting is not None
        table.update(updates=dict(step.setting.texts), predicate=text)
    elif step.kind == "delete":
        table.delete(text)
    else:
        source = pa.Table.from_pylist(list(step.source), CITY_VALUES)
        merger = table.merge(
            source, "target.id = source.id", source_alias="source", target_alias="target"
        )
        _clauses(merger, step).execute()


def _clauses(merger: Any, step: Step) -> Any:
    for when in step.whens:
        text = None if when.condition is None else when.condition.text
        method = getattr(merger, f"when_{when.met}_{when.action}")
        merger = method(text) if when.setting is None else method(dict(when.setting.texts), text)
    return merger


def content(found: Any) -> list[list[Any]]:
    """Rows as values, in an order that all readers give."""
    rows = found.to_pylist() if isinstance(found, pa.Table) else found
    return sorted(([row[name] for name in CITY_VALUES.names] for row in rows), key=repr)
