"""Spark's filters as conditions of ours.

Spark applies every filter to the rows once more, so leaving one out costs time and nothing else;
one that accepts fewer rows than Spark's would lose rows, and is left out for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import datasource as spark

from hudi_core.errors import SchemaError
from hudi_core.read.filters import Condition, to_filter

_COMPARISONS: Final[dict[type[spark.Filter], str]] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}
_NEGATED: Final = {"=": "!=", ">": "<=", ">=": "<", "<": ">=", "<=": ">", "in": "not in"}


def conditions_of(filters: Iterable[spark.Filter], schema: pa.Schema) -> list[Condition]:
    """Return the conditions that hold for every row the filters accept.

    Parameters
    ----------
    schema
        The table's columns.
    """
    found = (each for one in filters for each in _translated(one))
    return [condition for condition in found if _fits(condition, schema)]


def _translated(given: spark.Filter) -> Iterator[Condition]:
    match given:
        case spark.IsNull(attribute=(name,)):
            yield name, "is null", None
        case spark.IsNotNull(attribute=(name,)):
            yield name, "is not null", None
        case spark.In(attribute=(name,), value=values):
            yield name, "in", [value for value in values if value is not None]
        case spark.Not(child=spark.EqualNullSafe()):
            return  # accepts nulls, which no comparison of ours does
        case spark.Not(child=child):
            for name, word, value in _translated(child):
                if word in _NEGATED:
                    yield name, _NEGATED[word], value
        case _ if type(given) in _COMPARISONS:
            path: tuple[str, ...] = getattr(given, "attribute", ())
            value = getattr(given, "value", None)
            if len(path) == 1 and value is not None:
                yield path[0], _COMPARISONS[type(given)], value


def _fits(condition: Condition, schema: pa.Schema) -> bool:
    name = condition[0]
    if name not in schema.names or pa.types.is_floating(schema.field(name).type):
        return False  # to Spark, NaN equals itself and is greater than every number
    try:
        to_filter([condition], schema)
    except SchemaError:
        return False
    return True
