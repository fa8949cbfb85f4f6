"""What became of a file's keys, from its rows and those of the file before it."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

from hudi_core.metadata.key_index.key_changes import DELETED, INSERTED, changes_between, keys_of
from hudi_core.schema.table_schema import RECORD_KEY

Rows = list[tuple[str, int | None]]


def keyed_table(rows: Rows) -> pa.Table:
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    return pa.table({RECORD_KEY: pa.array(keys, pa.string()), "n": pa.array(values, pa.int64())})


some_rows = st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 2)))


@given(before=some_rows, after=some_rows)
def test_entries_and_keys_after_are_those_before_with_the_changes(
    before: Rows, after: Rows
) -> None:
    """Inserts may leave several rows of one key."""
    table = changes_between(keyed_table(before), keyed_table(after))
    old, new = {key for key, _ in before}, {key for key, _ in after}
    assert {*keys_of(table, INSERTED).to_pylist()} == new - old
    assert {*keys_of(table, DELETED).to_pylist()} == old - new
    changes = table.to_pylist()
    came = {(one["key"], one["after.n"]) for one in changes if one["change"] >= 0}
    gone = {(one["key"], one["before.n"]) for one in changes if one["change"] <= 0}
    assert came <= {*after}
    assert gone <= {*before}
    assert {*before} - (gone - came) | came == {*after}
    # keys whose values stay are not listed
    same = {key for key, _ in after} - {key for key, _ in {*before} ^ {*after}}
    single = {key for key in same if [one for one, _ in before + after].count(key) == 2}
    assert not single & {one["key"] for one in changes}


def test_a_column_that_the_file_before_lacks_had_nulls() -> None:
    lacking = pa.table({RECORD_KEY: ["a", "b"], "n": pa.nulls(2)})
    table = changes_between(lacking, keyed_table([("a", 1), ("b", None), ("c", 2)]))
    assert [(one["key"], one["change"], one["after.n"]) for one in table.to_pylist()] == [
        ("c", 1, 2),
        ("a", 0, 1),
    ]
