"""Filtered reads of tables with a metadata table: right rows, from no more files than it takes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_core as hudi
from hudi_core.metadata.lister import MetadataLister
from hudi_core.model.files import FileStatus
from hudi_core.read.filters import Condition
from hudi_core.view.storage_lister import StorageLister
from tests.tables import new_table

OPTIONS = {"hoodie.metadata.enable": "true"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "a_bool": (pa.bool_(), [False, True]),
    "an_int": (pa.int32(), [-(2**31), -7, 0, 9, 2**31 - 1]),
    "a_long": (pa.int64(), [-(2**63), -7, 0, 9, 2**63 - 1]),
    "a_float": (pa.float32(), [-math.inf, -1.5, 0.0, 2.25, math.inf]),
    "a_double": (pa.float64(), [-1e300, -0.5, 0.0, 0.1, 1e300]),
    "a_text": (pa.string(), ["", "a", "ab", "é", "\U0001f600", "x" * 5000, "x" * 5000 + "y"]),
    "some_bytes": (pa.binary(), [b"", b"\0", b"a", b"\xff", b"\xff" * 5000]),
    "a_decimal": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal(0), Decimal("12.30")]),
    "big_decimal": (pa.decimal128(38, 6), [Decimal(-(10**31)), Decimal("0.1"), Decimal(10**31)]),
    "a_day": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2026, 11, 21)]),
    "a_moment": (pa.timestamp("us", "UTC"), [EPOCH - timedelta(microseconds=1), EPOCH]),
    "a_clock": (pa.timestamp("us"), [EPOCH.replace(year=year, tzinfo=None) for year in (1, 2026)]),
    "a_time": (pa.time64("us"), [time(0), time(12, 30, 0, 1), time(23, 59, 59, 999999)]),
}
SKIPPED = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        *((name, kind) for name, (kind, _) in KINDS.items()),
        ("with_nan", pa.float64()),
        ("no_value", pa.int32()),
        ("inner", pa.struct([("n", pa.int32()), ("deep", pa.struct([("t", pa.string())]))])),
        ("many", pa.list_(pa.int32())),
    ]
)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PARTITIONS = 8


def batch(schema: pa.Schema, partition: int) -> pa.Table:
    """Return the rows of one partition: of every column two values, or a value and a null."""
    rows: list[dict[str, Any]] = []
    for n in range(2):
        row: dict[str, Any] = {"id": 10 * partition + n, "p": f"p{partition}"}
        for name, (_, values) in KINDS.items():
            row[name] = values[(partition + n) % len(values)]
            if partition == PARTITIONS - 1 or (partition == 2 and n):
                row[name] = None
        row["with_nan"] = math.nan if n == partition % 3 else float(partition)
        row["no_value"] = None
        row["inner"] = {"n": partition, "deep": {"t": f"t{partition}"} if n else None}
        row["many"] = [partition, n]
        rows.append({name: row.get(name) for name in schema.names})
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.fixture(scope="module", params=["8", "9"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """Give a table with one file per partition."""
    path = str(tmp_path_factory.mktemp("skipping") / "all")
    options = {**OPTIONS, "hoodie.write.table.version": request.param}
    made = new_table(path, SKIPPED, options, partition_by="p")
    for partitions in ((0, 1, 2), (3,), tuple(range(4, PARTITIONS))):
        made.insert(pa.concat_tables(batch(SKIPPED, partition) for partition in partitions))
    return hudi.Table.open(path, options)


@pytest.fixture(scope="module")
def everything(table: hudi.Table) -> pa.Table:
    """All rows, read without a filter."""
    return table.to_arrow()


def planned(table: hudi.Table, row_filter: Any) -> set[str]:
    return {file.partition_path for file in table._session.snapshot().plan(None, row_filter).files}


def check(table: hudi.Table, everything: pa.Table, expression: pc.Expression) -> None:
    expected = everything.filter(expression)
    assert set(expected["p"].to_pylist()) <= planned(table, expression)
    found = table.to_arrow(filter=expression)
    assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist())


def test_the_tables_are_listed_from_their_metadata(table: hudi.Table) -> None:
    assert isinstance(table._session.opened.lister(), MetadataLister)
    assert {"files", "column_stats", "partition_stats"} <= set(table.config.metadata_partitions)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("op", [*COMPARISONS, "in"])
def test_only_files_that_can_match_are_read(
    table: hudi.Table, everything: pa.Table, name: str, op: str
) -> None:
    """A file holds two values: what lies between them may be in it, what lies beyond is not."""
    kind, values = KINDS[name]
    ranges: dict[str, tuple[pa.Scalar, pa.Scalar]] = {}
    for partition in (f"p{number}" for number in range(PARTITIONS)):
        bounds = pc.min_max(everything.filter(pc.field("p") == partition)[name])
        if bounds["min"].is_valid:
            ranges[partition] = (bounds["min"], bounds["max"])
    for value in values:
        condition: Condition = (name, op, [value] if op == "in" else value)
        wanted = set()
        for partition, (low, high) in ranges.items():
            scalar = pa.scalar(value, kind)
            can = {
                "=": low.as_py() <= value <= high.as_py(),
                "in": low.as_py() <= value <= high.as_py(),
                "!=": not low.equals(scalar) or not high.equals(scalar),
            }.get(op)
            if can is None:
                compared = low if op in ("<", "<=") else high
                can = COMPARISONS[op](compared.as_py(), value)
            if op == "!=" and pa.types.is_floating(kind):
                can = True
            if can:
                wanted.add(partition)
        if name == "big_decimal" and table.config.version == 8:
            # statistics of that version have no place for so many digits
            assert planned(table, [condition]) >= wanted, condition
        else:
            assert planned(table, [condition]) == wanted, condition
        found = sorted(table.to_arrow(filter=[condition])["id"].to_pylist())
        assert found == sorted(_rows(everything, condition))


def _rows(everything: pa.Table, condition: Condition) -> list[int]:
    name, op, value = condition
    column = pc.field(name)
    kind = everything.schema.field(name).type
    if op == "in":
        expression = column.isin(pa.array(value, kind))
    else:
        expression = COMPARISONS[op](column, pa.scalar(value, kind))
    found: list[int] = everything.filter(expression)["id"].to_pylist()
    return found


def test_nulls_and_nan(table: hudi.Table, everything: pa.Table) -> None:
    files = {f"p{n}" for n in range(PARTITIONS)}
    assert planned(table, [("an_int", "is null", None)]) == {"p2", f"p{PARTITIONS - 1}"}
    assert planned(table, [("an_int", "is not null", None)]) == files - {f"p{PARTITIONS - 1}"}
    assert planned(table, [("no_value", "is not null", None)]) == set()
    assert planned(table, [("no_value", "=", 1)]) == set()
    assert planned(table, [("no_value", "is null", None)]) == files
    # to some engines NaN is the greatest number, and to others it is none: any file may have it
    assert planned(table, [("with_nan", "!=", 3.0)]) == files
    assert planned(table, [("with_nan", ">", 3.5)]) == files - {"p2"}
    check(table, everything, pc.field("with_nan") != 3.0)
    check(table, everything, ~(pc.field("with_nan") < 3.0))
    check(table, everything, pc.is_nan(pc.field("with_nan")))
    check(table, everything, pc.field("with_nan") > 3.5)


def test_columns_without_statistics_exclude_nothing(table: hudi.Table) -> None:
    files = {f"p{n}" for n in range(PARTITIONS)}
    assert planned(table, [("many", "is null", None)]) == files
    assert planned(table, [("_hoodie_file_name", "=", "no such file")]) == files
    assert table.to_arrow(filter=[("many", "is null", None)]).num_rows == 0


def test_fields_of_structs(table: hudi.Table, everything: pa.Table) -> None:
    """Their ranges are kept where they are asked for."""
    check(table, everything, pc.field("inner", "n") == 3)
    named = "hoodie.metadata.index.column.stats.column.list"
    options = {**OPTIONS, named: "id,inner.n,inner.deep.t"}
    path = f"{table.path}-with-structs"
    made = new_table(path, SKIPPED, options, partition_by="p")
    made.insert(pa.concat_tables(batch(SKIPPED, partition) for partition in range(PARTITIONS)))
    made = hudi.Table.open(path, options)
    rows = made.to_arrow()
    assert planned(made, pc.field("inner", "n") == 3) == {"p3"}
    assert planned(made, pc.field("inner", "deep", "t") >= "t5") == {"p5", "p6", "p7"}
    check(made, rows, pc.field("inner", "n") == 3)
    check(made, rows, pc.field("inner", "deep", "t") >= "t5")
    check(made, rows, pc.field("inner", "deep", "t").is_null())


@given(data=st.data())
def test_any_filter_gives_the_rows_of_an_unfiltered_read(
    table: hudi.Table, everything: pa.Table, data: st.DataObject
) -> None:
    names = st.sampled_from([*KINDS, "with_nan", "no_value", "id"])

    def leaf(name: str) -> st.SearchStrategy[pc.Expression]:
        kind = SKIPPED.field(name).type
        values = KINDS[name][1] if name in KINDS else [0, 3, 11, 40]
        scalars = st.sampled_from(list(values)).map(lambda value: pa.scalar(value, kind))
        column = pc.field(name)
        return st.one_of(
            st.tuples(st.sampled_from(sorted(COMPARISONS)), scalars).map(
                lambda pair: COMPARISONS[pair[0]](column, pair[1])
            ),
            st.lists(scalars, min_size=1, max_size=3).map(
                lambda some: column.isin(pa.array([one.as_py() for one in some], kind))
            ),
            st.sampled_from([column.is_null(), column.is_valid()]),
        )

    expression = data.draw(
        st.recursive(
            names.flatmap(leaf),
            lambda inner: st.one_of(
                st.lists(inner, min_size=2, max_size=3).map(lambda e: reduce(operator.and_, e)),
                st.lists(inner, min_size=2, max_size=3).map(lambda e: reduce(operator.or_, e)),
                inner.map(operator.invert),
            ),
            max_leaves=4,
        )
    )
    check(table, everything, expression)


# --- columns that came, went and changed
OLD = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int32()), ("gone", pa.int32())])


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """Give a table whose column ``v`` was renamed to ``w``, and then added anew."""
    path = str(tmp_path_factory.mktemp("skipping") / "evolved")
    made = new_table(path, OLD, OPTIONS, partition_by="p")

    def insert(partition: str, **values: list[Any]) -> None:
        opened = hudi.Table.open(path, OPTIONS)
        names = ["id", "p", *values]
        number = int(partition[1:]) * 10
        columns = [[number, number + 1], [partition, partition], *values.values()]
        schema = pa.schema([opened.schema.field(name) for name in names])
        opened.insert(
            pa.table(
                [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
            )
        )

    insert("p0", v=[1, 2], gone=[7, 7])
    made = hudi.Table.open(path, OPTIONS)
    made.alter(add_columns={"new": pa.int32()})
    insert("p1", v=[3, 4], gone=[8, 8], new=[1, 1])
    hudi.Table.open(path, OPTIONS).alter(rename={"v": "w"}, drop="gone")
    insert("p2", w=[5, 6], new=[2, None])
    hudi.Table.open(path, OPTIONS).alter(add_columns={"v": pa.int32(), "gone": pa.string()})
    insert("p3", w=[7, 8], new=[3, 3], v=[1, 1], gone=["x", "y"])
    hudi.Table.open(path, OPTIONS).alter(promote={"new": pa.int64()})
    insert("p4", w=[9, 9], new=[2**40, 4], v=[5, 5], gone=["z", None])
    return hudi.Table.open(path, OPTIONS)


@pytest.fixture(scope="module")
def all_evolved(evolved: hudi.Table) -> pa.Table:
    return evolved.to_arrow()


@given(
    name=st.sampled_from(["v", "w", "new", "gone", "id"]),
    op=st.sampled_from([*COMPARISONS, "is null", "is not null"]),
    value=st.one_of(st.integers(0, 10), st.sampled_from([2**40, 31])),
    negated=st.booleans(),
)
def test_filters_on_evolved_columns(
    evolved: hudi.Table, all_evolved: pa.Table, name: str, op: str, value: int, negated: bool
) -> None:
    column = pc.field(name)
    kind = evolved.schema.field(name).type
    if op in COMPARISONS:
        given_value: Any = "x" if pa.types.is_string(kind) else value
        if pa.types.is_int32(kind):
            given_value = value % 2**20
        expression = COMPARISONS[op](column, pa.scalar(given_value, kind))
    else:
        expression = column.is_null() if op == "is null" else column.is_valid()
    check(evolved, all_evolved, ~expression if negated else expression)


def test_what_evolved_columns_exclude(evolved: hudi.Table) -> None:
    # files that have no such column are null in it, which no statistics tell
    assert planned(evolved, [("new", "=", 1)]) == {"p0", "p1"}
    assert planned(evolved, [("new", "=", 2**40)]) == {"p0", "p4"}
    assert planned(evolved, [("new", "is null", None)]) >= {"p0", "p2"}
    # under its new name, files from before the renaming have no statistics
    assert planned(evolved, [("w", "=", 5)]) == {"p0", "p1", "p2"}
    assert planned(evolved, [("w", "=", 9)]) == {"p0", "p1", "p4"}
    # names that stood for other columns tell nothing
    assert {"v", "gone"} <= evolved.config.former_names
    assert planned(evolved, [("v", "=", 1)]) == {"p0", "p1", "p2", "p3", "p4"}
    assert evolved.to_arrow(filter=[("v", "=", 1)])["id"].to_pylist() == [30, 31]
    assert evolved.to_arrow(filter=[("w", "=", 1)])["id"].to_pylist() == [0]


# --- past states, and the partitions of the metadata table apart
def test_past_states_are_read_right(tmp_path: Path) -> None:
    """Ranges of partitions are those of the present rows: for past rows they mean nothing."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int32())])
    made = new_table(tmp_path / "t", schema, OPTIONS, partition_by="p")
    rows = pa.table({"id": [1, 2], "p": ["a", "b"], "v": [1, 100]}, schema=schema)
    first = made.insert(rows).instant
    made.upsert(pa.table({"id": [1], "p": ["a"], "v": [50]}, schema=schema))
    table = hudi.Table.open(str(tmp_path / "t"), OPTIONS)

    assert table.to_arrow(filter=[("v", "=", 1)]).num_rows == 0
    assert planned(table, [("v", "=", 1)]) == set()
    assert table.to_arrow(filter=[("v", "=", 1)], as_of=first)["id"].to_pylist() == [1]
    assert [
        f.partition_path
        for f in table._session.snapshot().plan(first.requested_time, [("v", "=", 1)]).files
    ] == ["a"]


def test_files_that_cannot_match_are_not_even_described(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    original = FileStatus.__init__

    def note(self: FileStatus, path: str, *rest: Any, **more: Any) -> None:
        if path.endswith(".parquet"):
            described.append(path)
        original(self, path, *rest, **more)

    monkeypatch.setattr(FileStatus, "__init__", note)
    expression = (pc.field("id") == 30) | (pc.field("id") == 51)
    assert planned(table, expression) == {"p3", "p5"}
    assert {path.partition("/")[0] for path in described} == {"p3", "p5"}


def test_partitions_are_left_out_before_their_files_are_listed(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    original = MetadataLister._files

    def note(self: MetadataLister, partitions: Any) -> Any:
        listed.extend(partitions)
        return original(self, partitions)

    def refuse(*_: object) -> None:
        raise AssertionError("the storage was listed")

    monkeypatch.setattr(MetadataLister, "_files", note)
    monkeypatch.setattr(StorageLister, "list_partitions", refuse)
    assert planned(table, [("id", "=", 30)]) == {"p3"}
    assert listed == ["p3"]
