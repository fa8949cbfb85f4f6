"""Expressions in this process have the values that Spark gives them, or are refused."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.config.sql import SqlLimits
from hudi_core.errors import SchemaError
from hudi_core.write.duckdb_text import DuckDb
from hudi_core.write.sql_text import SqlText, Visible
from tests.spark_values import ERRORS, REFUSED, ROW, VALUES, same


def computed(database: DuckDb, *texts: str) -> list[Any]:
    visible = Visible(ROW.schema, {"": ""})
    columns = {
        f"c{number}": SqlText.parse(text, visible).sql("duckdb")
        for number, text in enumerate(texts)
    }
    [row] = database.computed(ROW, columns).select(list(columns)).to_pylist()
    return list(row.values())


def test_values_are_those_of_spark() -> None:
    with DuckDb(SqlLimits()) as database:
        found = computed(database, *(text for text, _ in VALUES))
    wrong = [
        (text, value, wanted)
        for (text, wanted), value in zip(VALUES, found, strict=True)
        if not same(value, wanted)
    ]
    assert not wrong


def test_what_is_an_error_in_spark_is_one_here() -> None:
    with DuckDb(SqlLimits()) as database:
        for text in ERRORS:
            with pytest.raises(SchemaError):
                computed(database, text)


def test_what_cannot_be_computed_as_spark_does_is_refused_by_name() -> None:
    with DuckDb(SqlLimits()) as database:
        for text, said in REFUSED:
            with pytest.raises(SchemaError, match=said):
                computed(database, text)
