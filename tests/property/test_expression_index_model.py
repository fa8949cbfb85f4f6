"""Reads by expression indexes find the rows that reads without them find, whatever was done."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_core as hudi
from tests.property.histories import examples
from tests.tables import new_table

EXPRESSED = pa.schema(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("n", pa.int64()),
        ("p", pa.string()),
    ]
)
OPTIONS = {
    "hoodie.fs.fsync": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    # what is left out is left out by the indexes alone
    "hoodie.metadata.index.column.stats.column.list": "id",
}
PLAIN = {**OPTIONS, "hoodie.metadata.enable": "false"}
EXPRESSIONS: Sequence[tuple[str, Mapping[str, str]]] = [
    ("name", {"expr": "lower"}),
    ("name", {"expr": "upper"}),
    ("name", {"expr": "length"}),
    ("name", {"expr": "trim"}),
    ("name", {"expr": "rtrim", "trimString": "aß"}),
    ("name", {"expr": "substring", "pos": "1", "len": "2"}),
    ("name", {"expr": "substring", "pos": "-2", "len": "1"}),
    ("ts", {"expr": "date_format", "format": "yyyy-MM-dd HH"}),
    ("ts", {"expr": "year"}),
    ("ts", {"expr": "month"}),
    ("ts", {"expr": "day"}),
    ("ts", {"expr": "hour"}),
    ("ts", {"expr": "to_date"}),
    ("ts", {"expr": "unix_timestamp"}),
    ("ts", {"expr": "to_timestamp"}),
    ("day", {"expr": "day"}),
    ("day", {"expr": "month"}),
    ("day", {"expr": "date_format", "format": "yyyyMMdd"}),
    ("day", {"expr": "date_sub", "days": "40"}),
    ("day", {"expr": "to_timestamp"}),
    ("n", {"expr": "from_unixtime", "format": "yyyy-MM"}),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAP = datetime(2024, 2, 27, tzinfo=UTC)
TEXTS = st.one_of(
    st.sampled_from(["", " ", "Anna", "anna ", "ANNA", "Σίσυφος", "İ", "ß", "\U00010570", "ab"]),
    st.text(st.sampled_from("aAbB ßéÉжЖΣ漢😀"), max_size=4),
)
TIMES = st.one_of(
    st.sampled_from([EPOCH, EPOCH - timedelta(microseconds=1), datetime(1, 1, 1, tzinfo=UTC)]),
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 5 * 86_400).map(lambda one: LEAP + timedelta(seconds=one)),
)
DAYS = st.one_of(st.dates(), st.dates(date(2024, 2, 27), date(2024, 3, 3)))
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**9), st.sampled_from([-1, 0, 1])
)
VALUES = {"name": TEXTS, "ts": TIMES, "day": DAYS, "n": NUMBERS}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from([f"k{number}" for number in range(8)]),
            **{name: st.none() | values for name, values in VALUES.items()},
            "p": st.sampled_from(["x", "y"]),
        }
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one["id"],
)
ACTIONS = st.sampled_from(
    ["upsert", "upsert", "upsert", "delete", "insert_overwrite", "cluster", "rollback"]
)


@st.composite
def conditions(draw: st.DrawFn) -> list[tuple[str, str, Any]]:
    column = draw(st.sampled_from(sorted(VALUES)))
    op = draw(st.sampled_from(["=", "=", "<", "<=", ">", ">=", "!=", "in", "not in", "is null"]))
    if op in ("in", "not in"):
        return [(column, op, draw(st.lists(VALUES[column], min_size=1, max_size=3)))]
    return [(column, op, None if op == "is null" else draw(VALUES[column]))]


def act(table: hudi.Table, action: str, some: list[dict[str, Any]]) -> None:
    rows = pa.Table.from_pylist(some, EXPRESSED)
    match action:
        case "upsert":
            table.upsert(rows)
        case "delete":
            table.delete(rows.select(["id", "p"]))
        case "insert_overwrite":
            table.insert_overwrite(rows)
        case "cluster":
            table.cluster()
        case "rollback":
            writes = table.timeline.completed_writes()
            if len(writes) > 1:
                table.rollback(writes[-1].requested_time)


@pytest.mark.parametrize("version", ["8", "9"])
@given(data=st.data())
@examples(6, 3)
def test_reads_with_and_without_are_equal(
    tmp_path_factory: pytest.TempPathFactory, version: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("model")
    try:
        options = {**OPTIONS, "hoodie.write.table.version": version}
        table = new_table(folder / "t", EXPRESSED, options, partition_by="p", ordering_field=None)
        indexes = data.draw(st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=4))
        late = data.draw(st.integers(0, 2))
        history = data.draw(st.lists(st.tuples(ACTIONS, ROWS), min_size=2, max_size=5))
        for number, (action, some) in enumerate([("upsert", history[0][1]), *history]):
            if number == late:
                for place, (column, given_options) in enumerate(indexes):
                    table.create_index(f"e{place}", column, options=given_options)
            act(table, action, some)
        report = hudi.Table.open(table.path, options=OPTIONS).validate()
        assert report.is_valid, report.differences
        indexed = hudi.Table.open(table.path, options=OPTIONS)
        plain = hudi.Table.open(table.path, options=PLAIN)
        asked = data.draw(st.lists(conditions(), min_size=4, max_size=8))
        held = [
            [(name, "=", row[name])]
            for row in plain.to_arrow().to_pylist()
            for name in VALUES
            if row[name] is not None
        ]
        for condition in [*asked, *held]:
            found = indexed.to_arrow(["id"], filter=condition)["id"].to_pylist()
            right = plain.to_arrow(["id"], filter=condition)["id"].to_pylist()
            assert sorted(found) == sorted(right), condition
    finally:
        shutil.rmtree(folder)
