"""Pruning never drops a partition that holds a row which the filter accepts."""

from __future__ import annotations

import dataclasses
import operator
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.kinds import KeyGeneratorType
from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.storage.partition_path import PartitionPathCodec

PRUNED = pa.schema(
    [("_hoodie_partition_path", pa.string()), ("city", pa.string()), ("n", pa.int32())]
)
CITIES = st.one_of(st.none(), st.sampled_from(["a", "b", "a/b", "10", "%61", "A", "ä", "a b"]))
NUMBERS = st.one_of(st.none(), st.integers(-3, 12))
OPS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
CONDITIONS = st.one_of(
    st.tuples(st.just("city"), OPS, CITIES.filter(bool)),
    st.tuples(st.just("n"), OPS, st.integers(-3, 12)),
    st.tuples(st.sampled_from(["city", "n"]), st.sampled_from(["is null", "is not null"])).map(
        lambda pair: (*pair, None)
    ),
    st.tuples(
        st.just("n"), st.sampled_from(["in", "not in"]), st.lists(st.integers(-3, 12), min_size=1)
    ),
    st.tuples(
        st.just("city"),
        st.sampled_from(["in", "not in"]),
        st.lists(CITIES.filter(bool), min_size=1),
    ),
)


def expression_of(condition: tuple[str, str, Any]) -> pc.Expression:
    found = to_filter([condition], PRUNED)
    assert found is not None
    return found.expression


FILTERS = st.recursive(
    CONDITIONS.map(expression_of),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda each: reduce(operator.and_, each)),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: reduce(operator.or_, each)),
        inner.map(operator.invert),
    ),
    max_leaves=4,
)


@given(
    rows=st.lists(st.tuples(CITIES, NUMBERS), min_size=1, max_size=12),
    expression=FILTERS,
    hive=st.booleans(),
    encode=st.booleans(),
    opaque=st.booleans(),
)
def test_every_matching_row_is_in_a_partition_that_is_kept(
    rows: list[tuple[str | None, int | None]],
    expression: pc.Expression,
    hive: bool,
    encode: bool,
    opaque: bool,
) -> None:
    config = dataclasses.replace(
        TableConfig(name="t", record_key_fields=("n",), partition_fields=("city", "n")),
        keygen_type=KeyGeneratorType.COMPLEX,
        hive_style=hive,
        url_encode=encode,
    )
    codec = PartitionPathCodec(config.partition_fields, hive, encode)
    stored: list[dict[str, Any]] = []
    for city, n in rows:
        try:
            path = codec.encode([city, None if n is None else str(n)])
        except PartitionValueError:
            continue
        stored.append({"_hoodie_partition_path": path, "city": city, "n": n})
    table = pa.Table.from_pylist(stored, PRUNED)
    partitions = sorted({PartitionPath(row["_hoodie_partition_path"]) for row in stored})

    # a part that is not taken apart leaves the others to Arrow, which keeps no more
    taken_apart = to_filter(expression, PRUNED)
    given = expression & (pc.field("n") + 0 == pc.field("n") + 0) if opaque else expression
    kept = PartitionPruner(config, PRUNED).keep(partitions, to_filter(given, PRUNED))

    assert set(kept) <= set(PartitionPruner(config, PRUNED).keep(partitions, taken_apart))
    matching = table.filter(expression)["_hoodie_partition_path"].to_pylist()
    assert set(matching) <= set(kept)
    assert list(kept) == [path for path in partitions if path in set(kept)]
