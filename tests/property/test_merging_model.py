"""Merging of columns against merging of rows one by one, as ``BufferedRecordMerger`` does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from hudi_core.config.merge_keys import DeleteMarker
from hudi_core.config.merge_rules import Fill, MergeRules
from hudi_core.rows.combine import ascending, distinct, existing_is_newer, ranked, winners
from hudi_core.rows.deciding import order_values
from hudi_core.rows.filling import filled, folded
from hudi_core.rows.merging import Located, merge
from hudi_core.schema.absence import ABSENT, Lacking, absent_values, with_absence

Row = dict[str, Any]

GONE = "not sent"
MERGED = pa.schema(
    [
        ("t", pa.int64()),
        ("s", pa.struct([("u", pa.float64())])),
        ("op", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
        ("v", pa.string()),
        ("b", pa.binary()),
        ("n", pa.int64()),
    ]
)
RULES = [
    MergeRules(order, order, markers=(DeleteMarker("op", "d", any_case),), **fill)
    for order in ((), ("t",), ("s.u",), ("t", "s.u"))
    for any_case in (False, True)
    for fill in (
        {},
        {"fill": Fill.NULLS},
        {"fill": Fill.UNAVAILABLE, "unavailable": GONE},
        {"fill": Fill.UNAVAILABLE, "unavailable": GONE, "fills_stored": False},
        {"fill": Fill.NULLS, "deletes_always": True},
    )
]

NUMBER = st.none() | st.integers(0, 2)
ROW = st.fixed_dictionaries(
    {
        "t": NUMBER,
        "s": st.none()
        | st.fixed_dictionaries({"u": st.none() | st.sampled_from([1.0, 2.0, float("nan")])}),
        "op": st.sampled_from([None, "u", "u", "u", "d", "D"]),
        "_hoodie_is_deleted": st.sampled_from([None, False, False, False, True]),
        "v": st.sampled_from([None, GONE, "x", "y"]),
        "b": st.sampled_from([None, GONE.encode(), b"x"]),
        "n": NUMBER,
    }
)


@dataclass(frozen=True)
class Model:
    rules: MergeRules

    def times(self, row: Row, fields: tuple[str, ...]) -> list[Any]:
        found = []
        for name in fields:
            value: Any = row
            for part in name.split("."):
                value = None if value is None else value[part]
            # a number is no smaller than itself, which "not a number" is
            found.append((1, 0) if value != value else value if value is None else (0, value))
        return found

    def deletes(self, row: Row) -> bool:
        (marker,) = self.rules.markers
        text = row["op"]
        marked = text == marker.value or (marker.any_case and (text or "").lower() == marker.value)
        return bool(row["_hoodie_is_deleted"]) or marked

    def lacks(self, value: Any) -> bool:
        if self.rules.fill is Fill.NULLS:
            return value is None
        return self.rules.fill is not None and value in (GONE, GONE.encode())

    def merged(self, first: Row, other: Row) -> Row:
        """The first row with what it takes from the other."""
        return {name: other[name] if self.lacks(value) else value for name, value in first.items()}

    def fold(self, rows: list[Row]) -> Row:
        """What incoming rows with one key come to, in the order they arrive."""
        held = rows[0]
        for row in rows[1:]:
            had, came = (
                [(value is not None, value or ()) for value in self.times(one, order)]
                for one in (held, row)
                for order in (self.rules.batch_order,)
            )
            first, other = (held, row) if had > came else (row, held)
            deletes = self.deletes(first) or self.deletes(other)
            held = first if deletes else self.merged(first, other)
        return held

    def is_late(self, stored: Row, row: Row) -> bool:
        order = self.rules.stored_order
        for had, came in zip(self.times(stored, order), self.times(row, order), strict=True):
            if had is None or came is None or had < came:
                return False
            if had > came:
                return True
        return False

    def update(self, stored: Row, row: Row) -> tuple[str, Row | None]:
        """What becomes of a stored row, and whether it is rewritten."""
        late, deletes = self.is_late(stored, row), self.deletes(row)
        if deletes and (not late or self.rules.deletes_always):
            return "deleted", None
        if not late:
            return "written", self.merged(row, stored)
        if deletes or not self.rules.fills_stored or not any(map(self.lacks, stored.values())):
            return "kept", stored
        return "written", self.merged(stored, row)


NOTHING = object()


class AbsentModel(Model):
    """Rows that may have nothing at all for a column."""

    def lacks(self, value: Any) -> bool:
        return value is NOTHING or super().lacks(value)

    def merged(self, first: Row, other: Row) -> Row:
        """The first row with what it takes from the other; a null rather than nothing."""
        return {
            name: other[name]
            if self.lacks(value) and not (other[name] is NOTHING and value is None)
            else value
            for name, value in first.items()
        }

    def was_deleted(self, rows: list[Row]) -> bool:
        """Whether a delete counted at some time."""
        return any(self.deletes(self.fold(rows[: end + 1])) for end in range(len(rows)))


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, MERGED)


def texts(rows: list[Row]) -> list[str]:
    return [repr([row[name] for name in MERGED.names]) for row in rows]


@given(st.sampled_from(RULES), st.lists(st.tuples(st.integers(0, 2), ROW), min_size=1, max_size=14))
@settings(max_examples=2 * settings().max_examples)
def test_rows_of_one_batch(rules: MergeRules, drawn: list[tuple[int, Row]]) -> None:
    by_key: dict[int, list[Row]] = {}
    for key, row in drawn:
        by_key.setdefault(key, []).append(row)
    keys = sorted(by_key)
    codes = np.array([keys.index(key) for key, _ in drawn])
    rows = arrow([row for _, row in drawn])

    found, counted = folded(rows, codes, rules)

    model = Model(rules)
    assert texts(found.to_pylist()) == texts([model.fold(by_key[key]) for key in keys])
    texts_ = pa.chunked_array([pa.array([str(key) for key, _ in drawn])])
    left = winners(texts_, order_values(rows, rules.batch_order, rules))
    expected = range(len(drawn)) if left is None else left.tolist()
    assert sorted(counted.tolist()) == sorted(expected)


@given(st.sampled_from(RULES), st.lists(st.tuples(st.integers(0, 3), ROW), max_size=8), st.data())
@settings(max_examples=2 * settings().max_examples)
def test_rows_against_stored_ones(
    rules: MergeRules, held: list[tuple[int, Row]], data: st.DataObject
) -> None:
    batch = data.draw(st.dictionaries(st.integers(0, 4), ROW, min_size=1))
    keys = list(batch)
    pairs = [(keys.index(key), position) for position, (key, _) in enumerate(held) if key in batch]
    located = np.array(pairs, np.int64).reshape(-1, 2)
    stored, incoming = arrow([row for _, row in held]), arrow(list(batch.values()))

    merged = merge(stored, incoming, Located(located[:, 0], located[:, 1]), rules, False)
    rows = incoming.take(pa.array(merged.updates))
    written = filled(rows, merged.replaced, merged.late, stored, rules)

    model = Model(rules)
    kept: list[Row] = []
    new: list[Row] = []
    deleted = 0
    for key, row in held:
        done, result = model.update(row, batch[key]) if key in batch else ("kept", row)
        deleted += done == "deleted"
        if result is not None:
            (kept if done == "kept" else new).append(result)
    assert texts(merged.kept.to_pylist()) == texts(kept)
    assert sorted(texts(written.to_pylist())) == sorted(texts(new))
    assert merged.deletes == deleted


@given(st.sampled_from(RULES), ROW, ROW)
def test_which_of_two_is_late(rules: MergeRules, stored: Row, row: Row) -> None:
    if rules.stored_order:
        had, came = (order_values(arrow([one]), rules.stored_order, rules) for one in (stored, row))
        assert existing_is_newer(had, came).to_pylist() == [Model(rules).is_late(stored, row)]


@given(
    st.sampled_from([one for one in RULES if one.fill in (None, Fill.NULLS)]),
    st.lists(
        st.tuples(st.integers(0, 2), ROW, st.sets(st.sampled_from(["v", "n"]))),
        min_size=1,
        max_size=12,
    ),
)
def test_rows_of_one_batch_that_lack_columns(
    rules: MergeRules, drawn: list[tuple[int, Row, set[str]]]
) -> None:
    """A value that a row lacks is no null of it, and what nobody gives stays absent."""
    model = AbsentModel(rules)
    by_key: dict[int, list[Row]] = {}
    for key, row, absent in drawn:
        by_key.setdefault(key, []).append(row | dict.fromkeys(absent, NOTHING))
    keys = sorted(by_key)
    codes = np.array([keys.index(key) for key, _, _ in drawn])
    given_rows = arrow([row | dict.fromkeys(absent) for _, row, absent in drawn])
    flags = {
        name: Lacking(np.array([name in absent for _, _, absent in drawn]), "")
        for name in ("v", "n")
    }

    found, _ = folded(with_absence(given_rows, flags), codes, rules)

    expected = [model.fold(by_key[key]) for key in keys]
    still = absent_values(found)
    plain = [
        {name: None if value is NOTHING else value for name, value in row.items()}
        for row in expected
    ]
    assert texts(found.drop_columns(ABSENT).to_pylist()) == texts(plain)
    for name in ("v", "n") if rules.fill is None else ():  # or null takes the stored value too
        # behind a delete nothing is left to be kept
        lacks = [
            row[name] is NOTHING and not model.was_deleted(by_key[key])
            for key, row in zip(keys, expected, strict=True)
        ]
        assert still[name].tolist() == lacks


@given(
    positions=st.lists(st.integers(0, 30) | st.integers(0, 10**6), max_size=20),
    share=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_positions_are_put_in_order_however_far_apart(
    positions: list[int], share: list[bool]
) -> None:
    numbers = np.array(positions, np.int64)
    ordered, places = ranked(numbers)
    assert ordered.tolist() == distinct(numbers).tolist() == sorted(set(positions))
    assert ordered[places].tolist() == positions
    chosen = np.flatnonzero(share[: len(positions)])
    in_order = sorted(chosen.tolist(), key=lambda row: positions[row])
    assert ascending(numbers, chosen).tolist() == in_order
