"""Tables with buckets: what is kept with them, what contradicts it, and where rows go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.properties import parse_properties
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    ConfigError,
    InvalidOptionError,
    OptionConflictError,
    UnsupportedTableError,
)
from hudi_core.index.bucket import bucket_numbers
from hudi_core.model.buckets import Buckets, bucket_of_file
from hudi_core.model.operation import UPSERT
from hudi_core.services.opening import open_table
from hudi_core.txn.table_lock import table_lock
from hudi_core.write.client import WriteClient
from hudi_core.write.steps import WriteSteps
from tests.tables import new_table

INDEX = "hoodie.index.type"
NUMBER = "hoodie.bucket.index.num.buckets"
FIELDS = "hoodie.bucket.index.hash.field"
BUCKETS = {INDEX: "BUCKET", NUMBER: "4"}
SCHEMA = pa.schema(
    [("id", pa.string()), ("line", pa.int32()), ("city", pa.string()), ("value", pa.int64())]
)


def create(path: Path, options: Mapping[str, object], *key: str) -> hudi.Table:
    return new_table(path / "table", SCHEMA, options, record_key=key or "id")


def rows(*numbers: int, value: int = 0) -> pa.Table:
    made = [
        {"id": f"k{number}", "line": number % 3, "city": f"c{number % 2}", "value": value}
        for number in numbers
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def properties(table: hudi.Table) -> dict[str, str]:
    path = Path(table.path) / ".hoodie" / "hoodie.properties"
    return parse_properties(path.read_bytes(), str(path))


def groups(table: hudi.Table) -> dict[tuple[str, int | None], str]:
    found = [
        ((one.partition_path, bucket_of_file(one.file_id)), one.file_id)
        for one in table.file_slices()
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def values(table: hudi.Table) -> dict[str, list[int]]:
    held: dict[str, list[int]] = {}
    for row in table.to_arrow().to_pylist():
        held.setdefault(row["id"], []).append(row["value"])
    return held


def test_buckets_are_kept_with_the_table(tmp_path: Path) -> None:
    table = create(tmp_path, {**BUCKETS, FIELDS: "line"}, "id", "line")
    kept = properties(table)
    assert (kept[INDEX], kept[NUMBER], kept[FIELDS]) == ("BUCKET", "4", "line")
    opened = hudi.Table.open(table.path)
    assert opened.config.buckets == Buckets(4, ("line",))
    # no option is needed from then on
    opened.upsert(rows(*range(20)))
    assert {bucket for _, bucket in groups(opened)} == set(
        bucket_numbers(pa.array([f"id:k1,line:{line}" for line in range(3)]), Buckets(4, ("line",)))
    )


def test_the_defaults_are_hudis(tmp_path: Path) -> None:
    table = create(tmp_path, {INDEX: "bucket"}, "id", "line")
    assert table.config.buckets == Buckets(256, ("id", "line"))


@pytest.mark.parametrize(
    ("option", "value", "stored"),
    [
        (NUMBER, "5", "4"),
        (FIELDS, "line", "id"),
        (INDEX, "SIMPLE", "BUCKET"),
        (INDEX, "GLOBAL_BLOOM", "BUCKET"),
    ],
)
def test_contradictions_name_both(tmp_path: Path, option: str, value: str, stored: str) -> None:
    table = create(tmp_path, BUCKETS, "id", "line")
    table.upsert(rows(1))
    given = {option: value} if option != FIELDS else {option: value, NUMBER: "4"}
    with pytest.raises(OptionConflictError) as caught:
        table.upsert(rows(2), options=given)
    assert (caught.value.key, caught.value.given) == (option, value)
    assert stored in str(caught.value.stored)
    assert values(table).keys() == {"k1"}


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({**BUCKETS, FIELDS: "city"}, FIELDS),
        ({**BUCKETS, NUMBER: "0"}, NUMBER),
        ({**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, None),
    ],
)
def test_what_cannot_be(tmp_path: Path, options: dict[str, str], key: str | None) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        create(tmp_path, options)
    assert caught.value.key == (key or "hoodie.index.bucket.engine")
    assert not (tmp_path / "table").exists()


def test_a_table_without_a_record_key_has_no_buckets(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="computed from the record key"):
        hudi.Table.create(str(tmp_path / "table"), SCHEMA, name="t", options=BUCKETS)


def test_an_empty_table_takes_the_buckets_of_its_first_write(tmp_path: Path) -> None:
    table = create(tmp_path, {})
    assert INDEX not in properties(table)
    table.upsert(rows(*range(10)), options=BUCKETS)
    assert properties(table)[NUMBER] == "4"
    with pytest.raises(OptionConflictError):
        table.upsert(rows(1), options={**BUCKETS, NUMBER: "8"})
    table.upsert(rows(*range(10), value=1))
    assert values(table) == {f"k{number}": [1] for number in range(10)}


def test_a_table_that_was_written_otherwise_takes_none(tmp_path: Path) -> None:
    table = create(tmp_path, {})
    table.insert(rows(1, 2, 3))
    with pytest.raises(UnsupportedTableError, match="which is none of its 4 buckets"):
        table.upsert(rows(1), options=BUCKETS)
    assert INDEX not in properties(table)
    table.upsert(rows(1, value=5))
    assert values(table)["k1"] == [5]


def test_fewer_buckets_than_the_files_tell(tmp_path: Path) -> None:
    """A foreign writer may keep the number of buckets to itself."""
    table = create(tmp_path, BUCKETS)
    table.upsert(rows(*range(30)))
    path = Path(table.path) / ".hoodie" / "hoodie.properties"
    kept = [line for line in path.read_text().splitlines() if "bucket" not in line.lower()]
    path.write_text("\n".join(kept) + "\n")
    with pytest.raises(UnsupportedTableError, match=NUMBER):
        hudi.Table.open(table.path).upsert(rows(1), options={INDEX: "BUCKET", NUMBER: "2"})
    table = hudi.Table.open(table.path, options=BUCKETS)
    before = groups(table)
    table.upsert(rows(*range(30), value=2))
    assert groups(table) == before
    assert values(table) == {f"k{number}": [2] for number in range(30)}


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
def test_rows_join_the_group_of_their_bucket(tmp_path: Path, operation: str) -> None:
    table = create(tmp_path, BUCKETS)
    write = getattr(table, operation)
    first = write(rows(*range(0, 40, 2)))
    assert first.inserted == 20
    before = groups(table)
    assert len(before) == 4  # one partition, four buckets
    # however small or large: there is one group per bucket
    second = write(rows(*range(40)), options={"hoodie.parquet.small.file.limit": "0"})
    after = groups(table)
    assert {place: after[place] for place in before} == before
    assert len(after) == 8
    doubled = 0 if operation == "upsert" else 20
    assert (second.inserted, second.updated) == (20 + doubled, 20 - doubled)
    found = values(table)
    assert sum(len(each) for each in found.values()) == 40 + doubled
    for row in table.to_arrow().to_pylist():
        (bucket,) = bucket_numbers(pa.array([row["id"]]), Buckets(4, ("id",)))
        assert row["_hoodie_file_name"].startswith(f"{bucket:08d}-")


def test_replaced_buckets_get_new_groups(tmp_path: Path) -> None:
    table = create(tmp_path, BUCKETS)
    table.upsert(rows(*range(20)))
    before = groups(table)
    table.insert_overwrite(rows(*range(0, 20, 2), value=3))
    after = groups(table)
    assert {place for place in before if place[0] == "c1"} <= after.keys()
    replaced = [place for place in after if place[0] == "c0"]
    assert replaced
    assert not {after[place] for place in replaced} & set(before.values())
    table.upsert(rows(*range(20), value=4))
    assert values(table) == {f"k{number}": [4] for number in range(20)}


def test_two_groups_for_one_bucket_are_refused(tmp_path: Path) -> None:
    # who lists the storage finds it; a metadata table does not know it
    table = create(tmp_path, {**BUCKETS, "hoodie.metadata.enable": "false"})
    table.upsert(rows(2))
    (slice_,) = table.file_slices()
    twin = slice_.file_id[:-3] + ("f" if slice_.file_id[-3] != "f" else "e") + "-0"
    assert slice_.base_file is not None
    folder = Path(table.path)
    original = folder / slice_.base_file.path
    original.with_name(original.name.replace(slice_.file_id, twin)).write_bytes(
        original.read_bytes()
    )
    with pytest.raises(UnsupportedTableError, match="two file groups for bucket"):
        table.upsert(rows(2, value=1))


def test_two_writers_cannot_both_make_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    table = create(tmp_path, {**BUCKETS, NUMBER: "1", **options})
    opened = open_table(table.path, options)
    config = WriteConfig.from_options(options)
    real = WriteSteps.run
    raced: list[Any] = []

    def run(steps: Any, data: Any) -> Any:
        if not raced:
            raced.append(None)
            raced[0] = hudi.Table.open(table.path, options=options).upsert(rows(2))
        return real(steps, data)

    monkeypatch.setattr(WriteSteps, "run", run)
    writer = WriteClient(opened, table_lock(opened, config), hudi.LocalEngine(), config)
    with pytest.raises(CommitConflictError, match="file group 00000000-"):
        writer.write(rows(4), UPSERT)
    assert values(table).keys() == {"k2"}
    assert issubclass(UnsupportedTableError, ConfigError)
