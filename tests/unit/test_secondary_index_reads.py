"""Filters on a column with a secondary index: only file groups that hold the value are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import TableServiceError
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.indexing import was_dropped
from hudi_core.metadata.unique_keys import has_repeated_keys
from hudi_core.services.metadata import MetadataOperator
from hudi_core.txn.table_lock import table_lock
from tests.tables import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("rider", pa.string()),
        ("code", pa.int32()),
    ]
)
OPTIONS = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    # what is left out is left out by the index alone
    "hoodie.metadata.index.column.stats.enable": "false",
}
Names = set[str]


def rows(
    keys: Sequence[int], rider: Callable[[int], str | None], ts: int = 1, shift: int = 0
) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key}" for key in keys],
            "city": [f"c{(key + shift) % 8}" for key in keys],
            "ts": [ts] * len(keys),
            "rider": [rider(key) for key in keys],
            "code": [key % 5 for key in keys],
        },
        schema=SCHEMA,
    )


def by_number(key: int) -> str | None:
    return None if key == 7 else f"r$\\{key}"


def create(path: Path, version: int = 8) -> hudi.Table:
    return new_table(
        path / "table", SCHEMA, {**OPTIONS, "hoodie.write.table.version": str(version)}
    )


def add_index(table: hudi.Table, column: str, **more: str) -> hudi.Table:
    opened = hudi.Table.open(table.path, options=OPTIONS | more)._session.opened
    config = WriteConfig.from_options(opened.client.options)
    operator = MetadataOperator(opened, table_lock(opened, config), config)
    operator.index(f"secondary_index_{column}", column)
    return hudi.Table.open(table.path, options=OPTIONS)


def planned(table: hudi.Table, row_filter: Any) -> Names:
    """Partitions, of which each has one file group, that a filtered read opens."""
    return {one.partition_path for one in table.file_slices(filter=row_filter)}


def ids(table: hudi.Table, row_filter: Any) -> list[str]:
    return sorted(table.to_arrow(filter=row_filter).column("id").to_pylist())


@pytest.mark.parametrize("version", [8, 9])
def test_equality_reads_the_files_of_the_value(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version)
    table.upsert(rows(range(16), by_number))
    table = add_index(table, "rider")
    rider = pc.field("rider")
    assert planned(table, rider == "r$\\3") == {"c3"}
    assert ids(table, rider == "r$\\3") == ["k3"]
    assert planned(table, rider.isin(["r$\\3", "r$\\12", "none"])) == {"c3", "c4"}
    assert planned(table, (rider == "r$\\3") & (pc.field("ts") == 1)) == {"c3"}
    assert planned(table, (rider == "r$\\3") | (rider == "r$\\5")) == {"c3", "c5"}
    assert planned(table, rider == "nobody") == set()
    # what the index does not tell leaves nothing out
    for other in (
        (rider == "r$\\3") | (pc.field("ts") == 1),
        rider != "r$\\3",
        rider.is_null(),
        rider > "r$\\3",
    ):
        assert len(planned(table, other)) == 8
    assert ids(table, rider.is_null()) == ["k7"]


def test_the_index_follows_writes(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(16), by_number))
    table = add_index(table, "rider")
    # new values, the same ones elsewhere, rows that go
    table.upsert(rows([1], lambda _: "new", 2))
    table.upsert(rows([2], by_number, 2, shift=3))
    table.delete(rows([3], by_number))
    table.insert_overwrite(rows([100], lambda _: "only", 1))
    table = hudi.Table.open(table.path, options=OPTIONS)
    rider = pc.field("rider")
    assert planned(table, rider == "new") == {"c1"}
    assert planned(table, rider == "r$\\1") == set()
    assert planned(table, rider == "r$\\2") == {"c5"}
    assert planned(table, rider == "r$\\3") == set()
    assert planned(table, rider == "only") == {"c4"}
    assert planned(table, rider == "r$\\4") == planned(table, rider == "r$\\12") == set()
    whole = table.to_arrow()
    for value in whole.column("rider").to_pylist():
        if value is not None:
            wanted = whole.filter(pc.equal(whole.column("rider"), value))
            assert ids(table, rider == value) == sorted(wanted.column("id").to_pylist())


def test_numbers_are_found_by_their_text(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows([0, 1, 2, 10, 11], by_number))
    table = add_index(table, "code")
    assert planned(table, pc.field("code") == 1) == {"c1", "c3"}
    assert ids(table, pc.field("code") == 1) == ["k1", "k11"]
    # what was indexed as another type is spelled otherwise
    table.alter(promote={"code": pa.int64()})
    table = hudi.Table.open(table.path, options=OPTIONS)
    assert len(planned(table, pc.field("code") == 1)) == 4


@pytest.mark.parametrize("before", [True, False])
def test_keys_in_several_file_groups_are_all_found(tmp_path: Path, before: bool) -> None:
    """Inserts look nothing up; the record index knows one place of each key."""
    table = create(tmp_path)
    table.upsert(rows(range(16), by_number))
    twice = rows([3], by_number, 1, shift=1)
    if before:
        table.insert(twice)
    table = add_index(table, "rider")
    if not before:
        assert len(planned(table, pc.field("rider") == "r$\\3")) == 1
        table.upsert(rows([4], by_number, 2, shift=3))
        opened = hudi.Table.open(table.path)._session.opened.client
        # what moves is in one place
        assert not has_repeated_keys(read_definitions(opened.storage, opened.config))
        table.insert(twice)
    table = hudi.Table.open(table.path, options=OPTIONS)
    assert ids(table, pc.field("rider") == "r$\\3") == ["k3", "k3"]


def test_past_states_are_read_without_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    first = table.upsert(rows(range(16), by_number)).instant.requested_time
    table = add_index(table, "rider")
    table.upsert(rows([1], lambda _: "new", 2))
    table = hudi.Table.open(table.path, options=OPTIONS)
    found = table.to_arrow(filter=pc.field("rider") == "r$\\1", as_of=first)
    assert found.column("id").to_pylist() == ["k1"]


def test_an_option_turns_it_off(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(16), by_number))
    add_index(table, "rider")
    off = {**OPTIONS, "hoodie.metadata.index.secondary.enable": "false"}
    table = hudi.Table.open(table.path, options=off)
    assert len(planned(table, pc.field("rider") == "r$\\3")) == 8


def test_an_index_made_again_on_another_column_loses_no_row_of_an_open_dataset(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path / "t", SCHEMA, OPTIONS, partition_by=None, ordering_field=None)
    whole = rows(range(6), by_number).set_column(1, "city", pa.array([f"c{n}" for n in range(6)]))
    for number in range(6):
        table.insert(whole.slice(number, 1), options={"hoodie.parquet.small.file.limit": "0"})
    table.create_index("secondary_index_x", "rider")
    dataset = hudi.Table.open(table.path, OPTIONS).scan()
    assert dataset.to_table(filter=pc.field("rider") == by_number(1)).num_rows == 1
    table.drop_index("secondary_index_x")
    table.create_index("secondary_index_x", "city")
    for _ in range(2):
        assert dataset.to_table(filter=pc.field("city") == "c1").num_rows == 1
        assert dataset.to_table(filter=pc.field("rider") == by_number(1)).num_rows == 1


@pytest.mark.parametrize("using", [None, "record_index", "secondary_index"])
def test_an_index_of_the_record_key_is_the_record_index(tmp_path: Path, using: str | None) -> None:
    options = {key: value for key, value in OPTIONS.items() if "record" not in key.lower()}
    options["hoodie.index.type"] = "SIMPLE"
    table = new_table(tmp_path / "t", rows(range(4), by_number), options, partition_by=None)
    with pytest.raises(TableServiceError, match="record index is of the record key, and not of"):
        table.create_index("of_keys", "city", using="record_index")
    with pytest.raises(TableServiceError, match="would be of 2 columns: id, city"):
        table.create_index("of_keys", ["id", "city"])

    table.create_index("of_keys", "id", using=using)

    assert "record_index" in table.config.metadata_partitions
    assert table.metadata("record_index").num_rows == 4
    table.create_index("of_rider", "rider")
    assert ids(table, pc.field("rider") == by_number(3)) == ["k3"]


def test_the_record_index_takes_those_that_need_it_along_when_asked(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows(range(4), by_number))
    table.create_index("of_rider", "rider")
    with pytest.raises(TableServiceError, match="secondary_index_of_rider go through the record"):
        table.drop_index("record_index")
    client = table._session.opened.client
    assert not was_dropped(client, "secondary_index_of_rider")

    table.drop_index("record_index", cascades=True)

    left = hudi.Table.open(table.path).config.metadata_partitions
    assert not {"record_index", "secondary_index_of_rider"} & {*left}
    for name, is_gone in {"record_index": True, "of_rider": True, "of_city": False}.items():
        partition = name if name == "record_index" else f"secondary_index_{name}"
        assert was_dropped(table._session.opened.client, partition) is is_gone
