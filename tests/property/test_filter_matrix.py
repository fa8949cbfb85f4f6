"""Random filters on random tables: every engine finds the rows that it finds in its own memory."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from tests.filter_matrix import Engines, MatrixTable, some_constraint, some_table
from tests.filter_words import WORD_COLUMNS, Negated, Null, some_conditions, some_filter
from tests.samples import IS_WHOLE

TABLES, FILTERS = (50, 40) if IS_WHOLE else (2, 5)


@pytest.mark.parametrize("number", range(TABLES))
def test_every_engine_finds_what_it_finds_in_its_memory(number: int, tmp_path: Path) -> None:
    one, rng = some_table(number, tmp_path / "t"), random.Random(1000 + number)
    stored = one.table.to_arrow(WORD_COLUMNS.names).sort_by("id").to_pylist()
    assert list(map(str, stored)) == list(map(str, one.rows.to_pylist()))  # NaN is not itself
    engines = Engines(one)
    for _ in range(FILTERS):
        given = some_filter(rng), some_conditions(rng), some_constraint(rng)
        assert not [*engines.differences(*given)], (one.facts, given[0])
    engines.close()


def test_each_engine_that_is_wrong_is_found(tmp_path: Path) -> None:
    one = some_table(0, tmp_path / "t")
    lost = one.rows.slice(0, 1).set_column(0, "id", pa.array([-1]))
    engines = Engines(MatrixTable(one.table, pa.concat_tables([one.rows, lost])))
    found = [*engines.differences(Negated(Null("id")), [("id", "is not null", None)], {})]
    assert {text.split()[0] for text in found} == {
        *("to_arrow", "count", "scanner", "dataset", "connector", "duckdb", "polars", "change"),
        *("text", "conditions", "pandas", "scan", "--where", "trino"),
    }
    engines.close()
