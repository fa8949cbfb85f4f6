"""Record keys and partition paths of batches."""

from __future__ import annotations

import datetime as dt
import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.config.key_generators import KEY_GENERATORS
from hudi_core.config.table import KeyGeneratorType, TableConfig
from hudi_core.config.timebased import time_based
from hudi_core.errors import InvalidOptionError, PartitionValueError, RecordKeyError, SchemaError
from hudi_core.keygen import KeyGenerator, key_ambiguity, key_generator
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.keygen.base import to_text
from hudi_core.model.key_form import KeyForm
from hudi_core.schema.java_float import double_text, float_text
from hudi_core.schema.table_schema import TableSchema

COLUMNS = {
    "id": pa.string(),
    "n": pa.int64(),
    "city": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "f": pa.float64(),
    "s": pa.struct([("x", pa.int32()), ("l", pa.list_(pa.int32()))]),
}
TYPED = TableSchema.create(pa.schema(COLUMNS))


def keyed(
    keys: str, partitions: str = "", kind: KeyGeneratorType | None = None, **more: Any
) -> TableConfig:
    names = tuple(partitions.split(",")) if partitions else ()
    if kind is None:
        kind = KeyGeneratorType.SIMPLE if names else KeyGeneratorType.NON_PARTITION
    of = {"keygen_type": kind, "partition_fields": names, **more}
    return TableConfig(name="t", record_key_fields=tuple(keys.split(",")), **of)


def typed(**columns: Any) -> pa.RecordBatch:
    return TYPED.cast_batch(pa.record_batch(columns))


def keys_of(config: TableConfig, batch: pa.RecordBatch) -> list[str]:
    return list(key_generator(config, TYPED).record_keys(batch).to_pylist())


def paths(keygen: KeyGenerator, batch: pa.RecordBatch) -> list[str]:
    return list(keygen.partition_paths(batch).to_pylist())


# --- record keys
def test_simple_keys_are_bare_values() -> None:
    keys = key_generator(keyed("n", "city"), TYPED).record_keys(typed(n=[1, -2], city=["a", "b"]))
    assert keys.type == pa.string()
    assert keys.to_pylist() == ["1", "-2"]
    # without partitions, too, where there is one field
    batch = typed(id=["a"], n=[1])
    assert (keys_of(keyed("id"), batch), keys_of(keyed("id,n"), batch)) == (["a"], ["id:a,n:1"])


def test_complex_keys_name_their_fields() -> None:
    config = keyed("id,n", "city", KeyGeneratorType.COMPLEX)
    batch = typed(id=["a", "", None, "x:y,z"], n=[1, 2, 3, None], city=[*"cdef"])
    expected = ["id:a,n:1", "id:__empty__,n:2", "id:__null__,n:3", "id:x:y,z,n:__null__"]
    assert keys_of(config, batch) == expected
    # a sliced batch gives those of its rows
    assert keys_of(config, batch.slice(1, 2)) == expected[1:3]
    assert paths(key_generator(config, TYPED), batch.slice(1, 2)) == ["d", "e"]


@pytest.mark.parametrize(
    ("version", "new_encoding", "stored", "key"),
    [
        (8, False, None, "id:a"),
        (8, True, None, "a"),
        (9, False, None, "id:a"),
        (9, True, "VALUE_ONLY", "a"),
    ],
)
def test_one_field_of_a_complex_key_is_encoded_as_the_version_says(
    version: int, new_encoding: bool, stored: str | None, key: str
) -> None:
    config = keyed("id", "city,day", KeyGeneratorType.COMPLEX, version=version)
    raw = {"hoodie.table.complex.keygen.encoding": stored} if stored else {}
    config = replace(config, complex_keygen_new_encoding=new_encoding, raw=raw)
    batch = typed(id=["a"], city=["c"], day=[dt.date(2026, 1, 31)])
    assert key_generator(config, TYPED).record_keys(batch).to_pylist() == [key]


@pytest.mark.parametrize("config", [keyed("id"), keyed("id", "city")])
def test_null_and_empty_keys_are_counted_and_refused(config: TableConfig) -> None:
    batch = typed(id=["a", None, ""], city=["c", "c", "c"])
    with pytest.raises(RecordKeyError, match=r"\(id\) is null or empty in 2 of 3 rows") as caught:
        keys_of(config, batch)
    assert caught.value.facts == {"columns": ("id",), "rows": 2}
    with pytest.raises(RecordKeyError, match=r"\(id, n\) is null or empty in 1 of 3 rows"):
        keys_of(keyed("id,n"), typed(id=["", "a", None], n=[None, None, 1]))


def test_fields_of_structs_can_be_keys() -> None:
    assert keys_of(keyed("s.x"), typed(s=[{"x": 5}])) == ["5"]
    with pytest.raises(RecordKeyError, match="1 of 2 rows"):
        keys_of(keyed("s.x"), typed(s=[{"x": 5}, None]))


# --- partition paths
def test_paths_are_made_once_per_value() -> None:
    keygen = key_generator(keyed("id", "city", hive_style=True), TYPED)
    found = keygen.partition_paths(typed(id=["1", "2", "3"], city=["b", "a", "b"]))
    assert found.dictionary.to_pylist() == ["city=b", "city=a"]
    assert found.indices.to_pylist() == [0, 1, 0]
    assert found.type == pa.dictionary(pa.int32(), pa.string())


def test_paths_of_several_fields_keep_their_tuples_apart() -> None:
    config = keyed("id", "city,n,day", KeyGeneratorType.COMPLEX, hive_style=True)
    batch = typed(
        id=list("12345"),
        city=["a", "b", "a", None, "b"],
        n=[1, 2, 2, 1, 2],
        day=[dt.date(2026, 1, 31), None, dt.date(2026, 1, 31), dt.date(2026, 2, 1), None],
    )
    null = "__HIVE_DEFAULT_PARTITION__"
    assert paths(key_generator(config, TYPED), batch) == [
        "city=a/n=1/day=2026-01-31",
        f"city=b/n=2/day={null}",
        "city=a/n=2/day=2026-01-31",
        f"city={null}/n=1/day=2026-02-01",
        f"city=b/n=2/day={null}",
    ]


def test_zeros_of_both_signs_are_two_partitions() -> None:
    keygen = key_generator(keyed("id", "f"), TYPED)
    batch = typed(id=list("1234"), f=[0.0, -0.0, float("nan"), 0.0])
    assert paths(keygen, batch) == ["0.0", "-0.0", "NaN", "0.0"]


@pytest.mark.parametrize("config", [keyed("id"), keyed("id", "city")])
def test_a_batch_without_rows_has_no_paths(config: TableConfig) -> None:
    found = key_generator(config, TYPED).partition_paths(typed(id=[], city=[]))
    assert len(found) == len(found.dictionary) == 0
    assert paths(key_generator(keyed("id"), TYPED), typed(id=["a", "b"])) == ["", ""]


def test_values_that_cannot_be_folders_are_refused() -> None:
    with pytest.raises(PartitionValueError, match=r"'\.\.'"):
        paths(key_generator(keyed("id", "city"), TYPED), typed(id=["1"], city=[".."]))


def test_timestamps_are_microseconds_unless_logical_timestamps_are_consistent() -> None:
    config = keyed("id", "at", url_encode=True)
    timestamps = [dt.datetime(2026, 1, 31, 12, 0, 0, n, tzinfo=dt.UTC) for n in (1, 500_000)]
    batch = typed(id=["1", "2"], at=timestamps)
    plain = key_generator(config, TYPED)
    assert paths(plain, batch) == ["1769860800000001", "1769860800500000"]
    consistent = key_generator(replace(config, consistent_timestamps=True), TYPED)
    assert paths(consistent, batch) == ["2026-01-31 12%3A00%3A00.0", "2026-01-31 12%3A00%3A00.5"]
    there = replace(config, consistent_timestamps=True, local_zone="Asia/Kathmandu")
    assert paths(key_generator(there, TYPED), batch)[1] == "2026-01-31 17%3A45%3A00.5"


# --- every key generator
def test_every_generator_of_hudis_is_declared_but_a_users_own() -> None:
    assert {*KEY_GENERATORS} == {*KeyGeneratorType} - {KeyGeneratorType.USER_PROVIDED}


@pytest.mark.parametrize("kind", KEY_GENERATORS)
@pytest.mark.parametrize("keys", ["id", "id,n"])
def test_keys_are_the_same_where_partitions_are_unknown(kind: KeyGeneratorType, keys: str) -> None:
    form = KEY_GENERATORS[kind]
    config = keyed(keys, "" if form.most_partitions == 0 else "n", kind)
    if form.states_types:
        config = replace(config, partition_types=("TIMESTAMP",))
    if "TIMESTAMP" in config.field_types:
        counted = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy"}
        named = {f"hoodie.keygen.timebased.{name}": text for name, text in counted.items()}
        config = replace(config, time_based=time_based(named))
    if not form.fits(config.record_key_fields, config.partition_fields):
        return
    batch = typed(id=["a", ""], n=[1, 2])
    if keys == "id":
        batch = batch.slice(0, 1)
    alone = key_generator(config, TYPED, knows_partitions=False)
    assert alone.record_keys(batch) == key_generator(config, TYPED).record_keys(batch)
    assert set(paths(alone, batch)) == {""}


# --- what is refused up front
def test_other_key_generators_do_not_write() -> None:
    kind = KeyGeneratorType.USER_PROVIDED
    with pytest.raises(InvalidOptionError, match=f"'{kind.value}' cannot be used: tables with"):
        key_generator(keyed("id", "city", kind), TYPED)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (keyed("nope"), RecordKeyError, "no column 'nope', which its record key names"),
        (keyed("s.y"), RecordKeyError, r"no column 's\.y'"),
        (keyed("s.l.list.element"), RecordKeyError, "no column"),
        (keyed("id", "nope"), PartitionValueError, "no column 'nope', which its partition names"),
        (keyed("s"), SchemaError, "which cannot be part of the record key"),
        (keyed("id,n", "city", KeyGeneratorType.SIMPLE), InvalidOptionError, "one record key"),
        (keyed("id", "city,n", KeyGeneratorType.SIMPLE), InvalidOptionError, "one partition"),
        (keyed("id", "city", KeyGeneratorType.NON_PARTITION), InvalidOptionError, "no partitions"),
    ],
)
def test_columns_that_make_no_keys(
    config: TableConfig, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        key_generator(config, TYPED)


# --- texts
@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([True, False, None], pa.bool_(), ["true", "false", None]),
        ([-5, 2**31 - 1], pa.int32(), ["-5", "2147483647"]),
        ([dt.date(2026, 1, 31), dt.date(1, 1, 1)], pa.date32(), ["2026-01-31", "0001-01-01"]),
        ([2_932_896, 2_932_897], pa.date32(), ["9999-12-31", "+10000-01-01"]),
        ([-719_529], pa.date32(), ["-0001-12-31"]),
        ([Decimal("12.50"), Decimal("-0.01")], pa.decimal128(10, 2), ["12.50", "-0.01"]),
        ([Decimal("1E-9"), Decimal(0)], pa.decimal128(20, 9), ["1E-9", "0E-9"]),
        ([dt.time(0, 0, 1, 5)], pa.time64("us"), ["1000005"]),
        ([dt.time(0, 0, 1)], pa.time32("ms"), ["1000"]),
        ([-1], pa.timestamp("us"), ["-1"]),
        ([b"\x00\xff", b"", None, b"a"], pa.binary(), ["00ff", "", None, "61"]),
        ([1.5, None], pa.float32(), ["1.5", None]),
    ],
)
def test_values_as_in_java(values: list[Any], kind: pa.DataType, texts: list[str | None]) -> None:
    array = pa.array(values, kind)
    assert to_text(array).to_pylist() == texts
    twice = pa.concat_arrays([array, array])
    assert to_text(twice.slice(len(values))).to_pylist() == texts


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01 00:00:00.0"),
        (1_500_000, "1970-01-01 00:00:01.5"),
        (1_050_000, "1970-01-01 00:00:01.05"),
        (1_234_999, "1970-01-01 00:00:01.234"),
        (-1_999, "1969-12-31 23:59:59.999"),
        (10_000_000, "1970-01-01 00:00:10.0"),
    ],
)
def test_timestamps_as_text(micros: int, text: str) -> None:
    for zone, expected in (("UTC", text), (None, str(micros))):
        array = pa.array([micros], pa.timestamp("us", zone))
        assert to_text(array, KeyForm("UTC")).to_pylist() == [expected]


def test_timestamps_as_text_are_what_clocks_show() -> None:
    autumn = [dt.datetime(2026, 11, 1, hour, 30, tzinfo=dt.UTC) for hour in (8, 9, 10)]
    array = pa.array([*autumn, None], pa.timestamp("us", "UTC"))
    # clocks show one twice: two timestamps have one key, as in Hudi
    one, two = (f"2026-11-01 0{hour}:30:00.0" for hour in (1, 2))
    assert to_text(array, KeyForm("America/Los_Angeles")).to_pylist() == [one, one, two, None]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-1.25, "-1.25"), (100.0, "100.0")),
        *((123456.789, "123456.789"), (9999999.0, "9999999.0"), (9999999.999, "9999999.999")),
        *((1e7, "1.0E7"), (1.2345e10, "1.2345E10"), (0.001, "0.001"), (0.00123, "0.00123")),
        *((0.1, "0.1"), (9.99e-4, "9.99E-4"), (1e-5, "1.0E-5"), (2e-44, "2.0E-44")),
        *((1e23, "1.0E23"), (5e-324, "4.9E-324")),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        *((float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity")),
    ],
)
def test_doubles_are_spelled_as_java_does(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.1, "0.1"), (3.4028235e38, "3.4028235E38"), (1.4e-45, "1.4E-45")),
        *((1.17549435e-38, "1.1754944E-38"), (16777216.0, "1.6777216E7")),
        *((1234567.0, "1234567.0"), (-0.0, "-0.0"), (0.33333334, "0.33333334")),
    ],
)
def test_floats_are_spelled_as_java_does(value: float, text: str) -> None:
    assert float_text(np.float32(value)) == text


def test_numbers_are_spelled_as_java_before_19_does() -> None:
    lines = Path(__file__).with_name("java_17_floats.txt").read_text().splitlines()[1:]
    made, others = [], 0
    for kind, bits, text in map(str.split, lines):
        if kind == "double":
            value = struct.unpack(">d", bytes.fromhex(bits))[0]
            found, later = double_text(value, old=True), double_text(value)
            assert double_text(-value, old=True) == f"-{found}"
        else:
            number = np.frombuffer(bytes.fromhex(bits)[::-1], np.float32)[0]
            found, later = float_text(number, old=True), float_text(number)
        made.append((bits, found, text))
        others += later != text
    assert [one for one in made if one[1] != one[2]] == []
    assert others == 198  # that later releases spell otherwise


def test_keys_of_numbers_have_the_digits_of_a_tables_java() -> None:
    values = pa.array([1.5, 4.73e21, None, float("nan")])
    assert to_text(values).to_pylist() == ["1.5", "4.73E21", None, "NaN"]
    old = KeyForm(old_floats=True)
    assert to_text(values, old).to_pylist() == ["1.5", "4.729999999999999E21", None, "NaN"]
    config = keyed("id", "f", old_floats=True)
    found = paths(key_generator(config, TYPED), typed(id=["a"], f=[4.73e21]))
    assert found == ["4.729999999999999E21"]


NONE, PASSIVE, ACTIVE = Ambiguity
PIECES = ["1", ",b:", ",c:", ",a:", ",", ":", "__null__", "__empty__"]
VALUES: list[str | None] = [
    *(None, ""),
    *("".join(some) for count in (1, 2) for some in product(PIECES, repeat=count)),
]


def of_fields(*fields: str, **more: Any) -> TableConfig:
    return keyed(",".join(fields), **more)


def batch_of(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    return pa.record_batch([pa.array(one, kind.type) for one, kind in columns], schema)


def texts_of(*names: str) -> TableSchema:
    return TableSchema.create(pa.schema([(name, pa.string()) for name in names]))


def found(config_: TableConfig, schema: TableSchema, rows: Sequence[Sequence[Any]]) -> Ambiguity:
    finder = key_ambiguity(config_, schema)
    return NONE if finder is None else finder.of(batch_of(schema.arrow, rows))


def require_none_is_missed(
    config_: TableConfig, schema: TableSchema, rows: Sequence[Sequence[Any]]
) -> int:
    """Number of keys that several of the rows have."""
    keys = key_generator(config_, schema).record_keys(batch_of(schema.arrow, rows))
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
    schema = texts_of("a", "b")
    rows = [row for row in product(VALUES, VALUES) if any(row)]

    assert require_none_is_missed(of_fields("a", "b"), schema, rows) > 100


def test_no_keys_of_three_columns_are_missed() -> None:
    schema = texts_of(*"abc")
    some = [None, "", "__null__", "__empty__", "1", "2", "1,b:1", "2,c:2", "1,c:1", "1,b:1,c:2"]
    some += ["1,b:__null__", "__empty__,c:1"]
    rows = [row for row in product(some, repeat=3) if any(row)]

    assert require_none_is_missed(of_fields("a", "b", "c"), schema, rows) > 50


def test_other_keys_are_not_ambiguous() -> None:
    schema = texts_of("a", "b")
    rows = [("x,y:z", "b:1"), ("_null_", "a:1,c:2"), ("10:30", "__null"), (",b", ":"), ("é", "ü")]

    assert found(of_fields("a", "b"), schema, rows) is NONE
    finder = key_ambiguity(of_fields("a", "b"), schema)
    assert finder is not None
    keys = key_generator(of_fields("a", "b"), schema).record_keys(batch_of(schema.arrow, rows))
    assert not finder.among(keys).any()
    # a slice does not see what lies around it
    odd = batch_of(schema.arrow, [(",b:", "1"), ("x", "y"), ("__null__", "1")])
    assert finder.of(odd) is ACTIVE
    assert finder.of(odd.slice(1, 1)) is NONE


def test_nulls_of_other_types_are_not_ambiguous() -> None:
    schema = TableSchema.create(pa.schema({"a": "string", "n": "int64", "b": "binary"}))
    config_ = of_fields("a", "n", "b")

    assert found(config_, schema, [("x", None, None), ("y", 1, b"")]) is NONE
    assert found(config_, schema, [(None, 1, b"x")]) is PASSIVE
    assert found(config_, schema, [("__null__", 1, b"x")]) is ACTIVE


def test_keys_of_one_column_are_not_ambiguous() -> None:
    schema = texts_of("a")
    named = replace(of_fields("a"), keygen_type=KeyGeneratorType.COMPLEX)

    nothing = batch_of(schema.arrow, [("__null__",), (None,), ("",)])
    for one in (of_fields("a"), named):
        assert key_ambiguity(one, schema) is None
        with pytest.raises(RecordKeyError, match="null or empty in 2 of 3 rows"):
            key_generator(one, schema).record_keys(nothing)


def test_timestamps_as_clocks_show_them_are_ambiguous() -> None:
    schema = TableSchema.create(pa.schema([("at", pa.timestamp("us", "UTC"))]))
    zoned = of_fields("at", consistent_timestamps=True, local_zone="Europe/Rome")
    summer = dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC)
    winter = summer + dt.timedelta(hours=1)
    plain = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
    micros = [plain + dt.timedelta(microseconds=some) for some in (1, 2)]

    assert require_none_is_missed(zoned, schema, [(summer,), (winter,)]) == 1
    assert require_none_is_missed(zoned, schema, [(one,) for one in (plain, *micros)]) == 1
    assert found(zoned, schema, [(plain,)]) is PASSIVE
    assert key_ambiguity(of_fields("at"), schema) is None


@pytest.mark.takes_turns
@pytest.mark.parametrize("between", ["-", "--", "-a-", "aba", "ab", "a-a-"])
def test_a_concatenator_leaves_no_two_rows_one_key(between: str) -> None:
    schema = texts_of("x", "y")
    texts = ["".join(some) for count in range(4) for some in product("-ab", repeat=count)]
    config_ = of_fields("x", "y", virtual_keys=True, key_concatenator=between)
    made: dict[str, tuple[str, str]] = {}
    for row in product(texts[:30], texts):
        try:
            keys = key_generator(config_, schema).record_keys(batch_of(schema.arrow, [row]))
        except RecordKeyError:
            continue
        assert made.setdefault(keys[0].as_py(), row) == row
    assert len(made) > 100
    # and what is taken row by row is taken together
    whole = key_generator(config_, schema).record_keys(batch_of(schema.arrow, list(made.values())))
    assert whole.to_pylist() == list(made)
