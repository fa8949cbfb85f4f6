"""Which record keys rows with other values could have, too: none of them is missed."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.table import KeyGeneratorType, TableConfig
from hudi_core.errors import RecordKeyError
from hudi_core.keygen import key_ambiguity, key_generator
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.schema.table_schema import TableSchema

NONE, PASSIVE, ACTIVE = Ambiguity
PIECES = ["1", ",b:", ",c:", ",a:", ",", ":", "__null__", "__empty__"]
VALUES: list[str | None] = [
    *(None, ""),
    *("".join(some) for count in (1, 2) for some in product(PIECES, repeat=count)),
]


def config(*fields: str, **more: Any) -> TableConfig:
    return TableConfig(
        name="t", record_key_fields=fields, keygen_type=KeyGeneratorType.NON_PARTITION, **more
    )


def batch(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    return pa.record_batch(
        [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)], schema
    )


def found(config_: TableConfig, schema: TableSchema, rows: Sequence[Sequence[Any]]) -> Ambiguity:
    finder = key_ambiguity(config_, schema)
    return NONE if finder is None else finder.of(batch(schema.arrow, rows))


def require_none_is_missed(
    config_: TableConfig, schema: TableSchema, rows: Sequence[Sequence[Any]]
) -> int:
    """Number of keys that several of the rows have."""
    keys = key_generator(config_, schema).record_keys(batch(schema.arrow, rows))
    by_key: dict[str, list[Sequence[Any]]] = defaultdict(list)
    for key, row in zip(keys.to_pylist(), rows, strict=True):
        by_key[key].append(row)
    finder = key_ambiguity(config_, schema)
    assert finder is not None
    shared = {key: some for key, some in by_key.items() if len(some) > 1}
    assert finder.among(pa.array(list(shared), pa.string())).all()
    for some in shared.values():
        levels = [found(config_, schema, [row]) for row in some]
        assert NONE not in levels
        for one, other in combinations(levels, 2):
            assert ACTIVE in (one, other)
    return len(shared)


def test_no_keys_of_two_columns_are_missed() -> None:
    schema = TableSchema.create(pa.schema([("a", pa.string()), ("b", pa.string())]))
    rows = [row for row in product(VALUES, VALUES) if any(row)]

    assert require_none_is_missed(config("a", "b"), schema, rows) > 100


def test_no_keys_of_three_columns_are_missed() -> None:
    schema = TableSchema.create(pa.schema([(name, pa.string()) for name in "abc"]))
    some = [None, "", "__null__", "__empty__", "1", "2", "1,b:1", "2,c:2", "1,c:1", "1,b:1,c:2"]
    some += ["1,b:__null__", "__empty__,c:1"]
    rows = [row for row in product(some, repeat=3) if any(row)]

    assert require_none_is_missed(config("a", "b", "c"), schema, rows) > 50


def test_other_keys_are_not_ambiguous() -> None:
    schema = TableSchema.create(pa.schema([("a", pa.string()), ("b", pa.string())]))
    rows = [("x,y:z", "b:1"), ("_null_", "a:1,c:2"), ("10:30", "__null"), (",b", ":"), ("é", "ü")]

    assert found(config("a", "b"), schema, rows) is NONE
    finder = key_ambiguity(config("a", "b"), schema)
    assert finder is not None
    keys = key_generator(config("a", "b"), schema).record_keys(batch(schema.arrow, rows))
    assert not finder.among(keys).any()
    # a slice does not see what lies around it
    odd = batch(schema.arrow, [(",b:", "1"), ("x", "y"), ("__null__", "1")])
    assert finder.of(odd) is ACTIVE
    assert finder.of(odd.slice(1, 1)) is NONE


def test_nulls_of_other_types_are_not_ambiguous() -> None:
    schema = TableSchema.create(
        pa.schema([("a", pa.string()), ("n", pa.int64()), ("b", pa.binary())])
    )
    config_ = config("a", "n", "b")

    assert found(config_, schema, [("x", None, None), ("y", 1, b"")]) is NONE
    assert found(config_, schema, [(None, 1, b"x")]) is PASSIVE
    assert found(config_, schema, [("__null__", 1, b"x")]) is ACTIVE


def test_keys_of_one_column_are_not_ambiguous() -> None:
    schema = TableSchema.create(pa.schema([("a", pa.string())]))
    named = replace(config("a"), keygen_type=KeyGeneratorType.COMPLEX)

    for one in (config("a"), named):
        assert key_ambiguity(one, schema) is None
        with pytest.raises(RecordKeyError, match="null or empty in 2 of 3 rows"):
            key_generator(one, schema).record_keys(
                batch(schema.arrow, [("__null__",), (None,), ("",)])
            )


def test_timestamps_as_clocks_show_them_are_ambiguous() -> None:
    schema = TableSchema.create(pa.schema([("at", pa.timestamp("us", "UTC"))]))
    zoned = config("at", consistent_timestamps=True, local_zone="Europe/Rome")
    summer = dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC)
    winter = summer + dt.timedelta(hours=1)
    plain = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
    micros = [plain + dt.timedelta(microseconds=some) for some in (1, 2)]

    assert require_none_is_missed(zoned, schema, [(summer,), (winter,)]) == 1
    assert require_none_is_missed(zoned, schema, [(one,) for one in (plain, *micros)]) == 1
    assert found(zoned, schema, [(plain,)]) is PASSIVE
    assert key_ambiguity(config("at"), schema) is None


@pytest.mark.parametrize("between", ["-", "--", "-a-", "aba", "ab", "a-a-"])
def test_a_concatenator_leaves_no_two_rows_one_key(between: str) -> None:
    schema = TableSchema.create(pa.schema([("x", pa.string()), ("y", pa.string())]))
    texts = ["".join(some) for count in range(4) for some in product("-ab", repeat=count)]
    config_ = config("x", "y", virtual_keys=True, key_concatenator=between)
    made: dict[str, tuple[str, str]] = {}
    for row in product(texts[:30], texts):
        try:
            keys = key_generator(config_, schema).record_keys(batch(schema.arrow, [row]))
        except RecordKeyError:
            continue
        assert made.setdefault(keys[0].as_py(), row) == row
    assert len(made) > 100
    # and what is taken row by row is taken together
    whole = key_generator(config_, schema).record_keys(batch(schema.arrow, list(made.values())))
    assert whole.to_pylist() == list(made)
