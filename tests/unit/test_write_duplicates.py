"""Combining before each operation, and inserts of keys that the table holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import DuplicateRecordKeyError
from tests.tables import new_table, pairs, rows_of

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
POLICY = "hoodie.datasource.insert.dup.policy"
DROP = "hoodie.datasource.write.insert.drop.duplicates"


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return new_table(
        tmp_path / "t", rows_of(SCHEMA, ("a", "rome", 5), ("b", "rome", 5), ("c", "oslo", 5))
    )


def held(table: hudi.Table) -> list[tuple[Any, ...]]:
    return pairs(table.to_arrow(), *SCHEMA.names)


OLD = [("a", "rome", 5), ("b", "rome", 5), ("c", "oslo", 5)]
MIXED = rows_of(
    SCHEMA, ("a", "rome", 9), ("d", "rome", 7), ("d", "rome", 8), ("d", "rome", 6), ("e", "bari", 1)
)


def test_insert_does_not_look_by_default(table: hudi.Table) -> None:
    table.insert(MIXED)

    assert len(held(table)) == 8


@pytest.mark.parametrize("option", [{POLICY: "drop"}, {DROP: "true"}])
def test_insert_drops_known_keys_and_combines(table: hudi.Table, option: dict[str, str]) -> None:
    dry = table.plan("insert", MIXED, options=option)
    result = table.insert(MIXED, options=option)

    assert (result.inserted, result.updated) == (dry.inserted, dry.updated) == (2, 0)
    assert held(table) == sorted([*OLD, ("d", "rome", 8), ("e", "bari", 1)])


def test_insert_drops_all_rows_when_all_are_known(table: hudi.Table) -> None:
    result = table.insert(rows_of(SCHEMA, ("a", "rome", 9)), options={POLICY: "drop"})

    assert (result.inserted, result.files) == (0, 0)
    assert held(table) == OLD


@pytest.mark.parametrize("planned", [True, False])
def test_insert_fails_on_known_keys_and_names_them(table: hudi.Table, planned: bool) -> None:
    before = table.timeline.instants
    insert: Any = partial(table.plan, "insert") if planned else table.insert

    with pytest.raises(DuplicateRecordKeyError, match=r"partition 'rome' holds already: 'a'\. "):
        insert(MIXED, options={POLICY: "fail"})

    assert table.timeline.instants == before
    assert held(table) == OLD


def test_insert_that_may_fail_takes_new_keys(table: hudi.Table) -> None:
    table.insert(rows_of(SCHEMA, ("d", "rome", 1), ("a", "oslo", 1)), options={POLICY: "fail"})

    assert len(held(table)) == 5


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_the_policy_is_for_inserts_only(table: hudi.Table, operation: str) -> None:
    getattr(table, operation)(rows_of(SCHEMA, ("a", "rome", 9)), options={POLICY: "fail"})

    assert ("a", "rome", 9) in held(table)


@pytest.mark.parametrize(
    "operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]
)
@pytest.mark.parametrize("combine", [True, False])
def test_inserting_operations_combine_when_asked_to(
    table: hudi.Table, operation: str, combine: bool
) -> None:
    batch = rows_of(SCHEMA, ("x", "bari", 3), ("x", "bari", 4), ("x", "bari", 2), ("y", "bari", 1))
    options = {"hoodie.combine.before.insert": combine}

    dry = table.plan(operation, batch, options=options)
    result = getattr(table, operation)(batch, options=options)

    assert dry.inserted == result.inserted == (2 if combine else 4)
    new = [row for row in held(table) if row[1] == "bari"]
    assert (new == [("x", "bari", 4), ("y", "bari", 1)]) is combine


@pytest.mark.parametrize("combine", [True, False])
def test_upsert_and_delete_combine_unless_told_not_to(table: hudi.Table, combine: bool) -> None:
    options = {"hoodie.combine.before.upsert": combine, "hoodie.combine.before.delete": combine}
    batch = rows_of(SCHEMA, ("x", "rome", 3), ("x", "rome", 4), ("x", "rome", 2))

    # rows that are not combined and go to a new file all stay
    table.upsert(batch, options={**options, "hoodie.parquet.small.file.limit": "0"})

    assert len([row for row in held(table) if row[0] == "x"]) == (1 if combine else 3)
    assert table.delete(batch, options=options).deleted == (1 if combine else 3)
    assert held(table) == OLD
