"""Two concurrent writes that add one record key, in file groups of their own: one is given up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.base_file.footer import read_columns
from hudi_core.errors import CommitConflictError
from hudi_core.meta_client import TableMetaClient
from hudi_core.txn import added_keys
from tests.formats.two_steps import FAST, FORMATS, SCHEMA, SHARED, Write, batch, overlapping

# every write that adds rows makes file groups of its own, so that no two writes share one
APART = {"hoodie.parquet.small.file.limit": "0"}
LOOKED_UP = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "RECORD_INDEX", "RECORD_LEVEL_INDEX")
IN_TABLE = {"GLOBAL_SIMPLE", "RECORD_INDEX"}


def empty_table(path: Path, format_name: str, **options: str) -> hudi.Table:
    return hudi.Table.create(
        str(path),
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        options={"hoodie.table.format": format_name, **FAST, **options},
    )


def with_index(index: str) -> dict[str, str]:
    kept = {
        "RECORD_INDEX": "hoodie.metadata.global.record.level.index.enable",
        "RECORD_LEVEL_INDEX": "hoodie.metadata.record.level.index.enable",
    }
    more = {kept[index]: "true"} if index in kept else {}
    return {**APART, "hoodie.index.type": index, **more}


def keys(table: hudi.Table) -> Counter[str]:
    return Counter(hudi.Table.open(table.path).to_arrow().column("id").to_pylist())


def moved(key: str) -> pa.Table:
    """A row that its city, not its key, puts into a partition."""
    return pa.Table.from_pylist([{"id": key, "city": "bern", "ts": 5}], SCHEMA)


@pytest.mark.parametrize("index", LOOKED_UP)
@pytest.mark.parametrize("format_name", [*FORMATS, "native"])
def test_of_two_upserts_of_new_keys_one_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str, index: str
) -> None:
    options = with_index(index)
    table = empty_table(tmp_path / "t", format_name, **options)
    mine: Write = lambda t: t.upsert(batch(2, "c", "d", "x"))  # noqa: E731
    with pytest.raises(CommitConflictError, match="both added record key 'd'") as caught:
        overlapping(monkeypatch, table, mine, lambda t: t.upsert(batch(1, "d", "e")), options)
    assert caught.value.facts["granularity"] == "record_key"
    assert keys(table) == {"d": 1, "e": 1}
    mine(hudi.Table.open(table.path, {**SHARED, **options}))
    assert keys(table) == {"c": 1, "d": 1, "e": 1, "x": 1}


@pytest.mark.parametrize("index", LOOKED_UP)
def test_new_keys_of_their_own_do_not_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    options = with_index(index)
    table = empty_table(tmp_path / "t", "native", **options)
    table.upsert(batch(1, "a", "x"))
    overlapping(
        monkeypatch,
        table,
        # between the keys of the other write, and beside a row that only one of them updates
        lambda t: t.upsert(batch(2, "a", "c", "e", "\U0001f600")),
        lambda t: t.upsert(batch(2, "b", "d", "f", "\uffff")),
        options,
    )
    assert keys(table) == dict.fromkeys(
        ["a", "b", "c", "d", "e", "f", "x", "\U0001f600", "\uffff"], 1
    )


def test_keys_are_read_where_ranges_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = empty_table(tmp_path / "t", "native", **APART)
    read: list[str] = []

    def noted(client: TableMetaClient, path: str, *more: Any) -> pa.Table:
        read.append(path)
        return read_columns(client, path, *more)

    monkeypatch.setattr(added_keys, "read_columns", noted)
    mine: Write = lambda t: t.upsert(batch(1, "b", "d"))  # noqa: E731
    overlapping(monkeypatch, table, mine, lambda t: t.upsert(batch(2, "x", "z")), APART)
    assert not read


@pytest.mark.parametrize("index", LOOKED_UP)
def test_one_key_in_two_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    options = with_index(index)
    table = empty_table(tmp_path / "t", "native", **options)
    writes: tuple[Write, Write] = (
        lambda t: t.upsert(batch(1, "k")),
        lambda t: t.upsert(moved("k")),
    )
    if index in IN_TABLE:
        with pytest.raises(CommitConflictError, match="both added record key 'k'"):
            overlapping(monkeypatch, table, *writes, options)
        assert keys(table) == {"k": 1}
    else:
        overlapping(monkeypatch, table, *writes, options)
        assert keys(table) == {"k": 2}  # a key is unique in its partition


OTHERS: dict[str, tuple[Write, Write, bool]] = {
    "an insert looks nothing up": (
        lambda t: t.insert(batch(2, "k")),
        lambda t: t.upsert(batch(1, "k")),
        False,
    ),
    "an insert that drops what is there": (
        lambda t: t.insert(batch(2, "k"), options={"hoodie.datasource.insert.dup.policy": "drop"}),
        lambda t: t.upsert(batch(1, "k")),
        True,
    ),
    "an insert came before": (
        lambda t: t.upsert(batch(2, "k")),
        lambda t: t.bulk_insert(batch(1, "k")),
        True,
    ),
    "an overwritten partition": (
        lambda t: t.insert_overwrite(batch(2, "k", "l")),
        lambda t: t.upsert(batch(1, "k")),
        True,
    ),
    "an overwritten table": (
        lambda t: t.upsert(batch(1, "k")),
        lambda t: t.insert_overwrite_table(batch(2, "x", "k")),
        True,
    ),
    "a row that was deleted meanwhile is not new": (
        lambda t: t.upsert(batch(2, "b", "y")),
        lambda t: t.delete(batch(1, "x")),
        False,
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    mine, theirs, conflicts = OTHERS[case]
    table = empty_table(tmp_path / "t", "native", **APART)
    table.bulk_insert(batch(1, "x"))
    if conflicts:
        with pytest.raises(CommitConflictError, match="both added record key 'k'"):
            overlapping(monkeypatch, table, mine, theirs, APART)
        assert keys(table)["k"] == 1
    else:
        overlapping(monkeypatch, table, mine, theirs, APART)


def test_a_row_beside_stored_ones_is_new_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small file of one writer takes the row in, the other writer makes a new file for it."""
    table = empty_table(tmp_path / "t", "native")
    table.upsert(batch(1, "a", "b"))
    with pytest.raises(CommitConflictError, match="both added record key 'k'"):
        overlapping(
            monkeypatch,
            table,
            lambda t: t.upsert(batch(2, "a", "k")),
            lambda t: t.upsert(batch(2, "k"), options=APART),
        )
    assert keys(table) == {"a": 1, "b": 1, "k": 1}


def test_tables_without_a_record_key_have_no_keys_to_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, partition_by="city", options=FAST)
    same: Write = lambda t: t.insert(batch(1, "k"))  # noqa: E731
    overlapping(monkeypatch, table, same, same, APART)
    assert keys(table) == {"k": 2}
