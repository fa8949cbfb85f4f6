"""Row filters: conditions and expressions against a schema."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import SchemaError
from hudi_core.read.filters import OPERATORS, Condition, require_columns, to_filter

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
        ("place", pa.struct([("city", pa.string())])),
    ]
)
NAIVE = datetime(2026, 1, 2)  # noqa: DTZ001 - what callers without zones give
ROWS = pa.Table.from_pylist(
    [
        {
            "id": n,
            "name": name,
            "price": Decimal(n),
            "day": date(2026, 1, n),
            "at": datetime(2026, 1, n, tzinfo=UTC),
            "ok": n > 2,
            "place": {"city": name},
        }
        for n, name in ((1, "a"), (2, "b"), (3, None), (4, "d'; DROP TABLE t --"))
    ],
    SCHEMA,
)


def ids(row_filter: Any) -> list[int]:
    wanted = to_filter(row_filter, SCHEMA)
    assert wanted is not None
    found: list[int] = ROWS.filter(wanted.expression)["id"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("id", "=", 2), [2]),
        (("id", "==", "2"), [2]),
        (("id", "!=", 2), [1, 3, 4]),
        (("id", "<", 2), [1]),
        (("id", "<=", 2.0), [1, 2]),
        (("id", ">", 3), [4]),
        (("id", ">=", 3), [3, 4]),
        (("id", "in", [1, "4", 9]), [1, 4]),
        (("id", "NOT  IN", [1, 4]), [2, 3]),
        (("name", "!=", "a"), [2, 4]),
        (("name", "not in", ["a"]), [2, 4]),
        (("name", "is null", None), [3]),
        (("name", "is not null", None), [1, 2, 4]),
        (("name", "=", "d'; DROP TABLE t --"), [4]),
        (("price", "<", 1.5), [1]),
        (("price", "=", Decimal(3)), [3]),
        (("day", ">=", "2026-01-03"), [3, 4]),
        (("day", "=", date(2026, 1, 2)), [2]),
        (("at", ">", "2026-01-03"), [4]),
        (("at", "=", "2026-01-03T01:00:00+01:00"), [3]),
        (("at", "<", NAIVE), [1]),
        (("ok", "=", "true"), [3, 4]),
        (("ok", "=", False), [1, 2]),
    ],
)
def test_a_condition_selects_rows(condition: Condition, expected: list[int]) -> None:
    assert ids([condition]) == expected


def test_every_condition_has_to_hold() -> None:
    assert ids([("id", ">", 1), ("name", "is not null", None)]) == [2, 4]


def test_an_expression_is_taken_as_it_is() -> None:
    expression = (pc.field("id") > 1) & (pc.field("place", "city") == "b")
    assert ids(expression) == [2]


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_no_filter(nothing: Any) -> None:
    assert to_filter(nothing, SCHEMA) is None


@pytest.mark.parametrize(
    ("row_filter", "named"),
    [
        ([("colour", "=", 1)], "'colour'"),
        (pc.field("colour") == 1, "colour"),
        (pc.field("place", "street") == "x", "street"),
        (pc.field("id") == "x", "equal"),
        (pc.field("id") + 1, "bool"),
        ([("id", "like", 1)], "'like'"),
        ([("id", "=", "x")], "int32"),
        ([("id", "=", 3.5)], "int32"),
        ([("id", "=", Decimal("3.5"))], "int32"),
        ([("id", "=", 2**40)], "int32"),
        ([("id", "=", True)], "int32"),
        ([("ok", "=", 1)], "bool"),
        ([("name", "=", 5)], "string"),
        ([("day", "=", datetime(2026, 1, 1, 12, tzinfo=UTC))], "date32"),
        ([("price", "=", 1.005)], "decimal128"),
        ([("at", "=", "yesterday")], "timestamp"),
        ([("place", "=", "x")], "struct"),
        ([("id", "=", None)], "is null"),
        ([("id", "in", [1, None])], "is null"),
        ([("id", "in", [])], "list of values"),
        ([("id", "in", 5)], "list of values"),
        ([("name", "in", "abc")], "list of values"),
        ([("id", "=")], "tuple"),
        (["id = 1"], "tuple"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(row_filter: Any, named: str) -> None:
    with pytest.raises(SchemaError, match=named):
        to_filter(row_filter, SCHEMA)


def test_text_is_never_a_filter() -> None:
    with pytest.raises(SchemaError, match="tuple"):
        to_filter("id = 1", SCHEMA)


def test_unknown_columns_are_named() -> None:
    require_columns(["id", "name"], SCHEMA)
    require_columns(None, SCHEMA)
    with pytest.raises(SchemaError, match=r"no column 'x', 'y'.*id, name"):
        require_columns(["x", "id", "y"], SCHEMA)


def test_a_column_is_asked_for_once() -> None:
    with pytest.raises(SchemaError, match="'id' are asked for twice"):
        require_columns(["id", "name", "id"], SCHEMA)


def test_operators_are_listed() -> None:
    with pytest.raises(SchemaError) as caught:
        to_filter([("id", "~", 1)], SCHEMA)
    assert all(operator in str(caught.value) for operator in OPERATORS)
