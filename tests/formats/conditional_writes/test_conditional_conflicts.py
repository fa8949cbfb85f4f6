"""Conditional writes beside other writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import CommitConflictError
from tests.formats.conditional_writes.conditional_tables import FORMATS, held, new_table, some
from tests.formats.two_steps import SHARED, Write, overlapping


def upserting(row: tuple[Any, ...]) -> Write:
    return lambda table: table.upsert(some(row))


# --- other writers -------------------------------------------------------------------------------


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_file_group_that_somebody_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    table = new_table(tmp_path / "t", format_name, options=SHARED)
    table.upsert(some((1, "rome", 1, 1.0, "a"), (2, "oslo", 1, 2.0, "b")))
    writes: tuple[Write, ...] = (
        lambda t: t.update({"v": "v + 1"}, "city = 'rome'"),
        lambda t: t.delete(where="id = 1"),
        lambda t: t.merge(some((1, "rome", 0, 5.0, "m")), "id").when_matched_update_all().execute(),
    )
    for mine in writes:
        with pytest.raises(CommitConflictError, match="file group"):
            overlapping(monkeypatch, table, mine, upserting((1, "rome", 9, 100.0, "theirs")))
        assert held(hudi.Table.open(table.path))[0] == (1, "rome", 9, 100.0, "theirs")
        # of another partition it is nobody's business
        overlapping(monkeypatch, table, mine, upserting((2, "oslo", 9, 7.0, "theirs")))
        table.upsert(some((1, "rome", 9, 1.0, "a")))
    assert hudi.Table.open(table.path).validate(keys=True).is_valid


@pytest.mark.parametrize("format_name", FORMATS)
def test_of_two_merges_that_insert_one_key_one_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    table = new_table(tmp_path / "t", format_name, options=SHARED)

    def merge(table: hudi.Table, name: str) -> hudi.CommitResult:
        rows = some((1, "rome", 1, 1.0, name))
        merger = table.merge(rows, "id").when_not_matched_insert_all()
        return merger.when_matched_update({"name": f"concat(target.name, '+{name}')"}).execute()

    with pytest.raises(CommitConflictError):
        overlapping(monkeypatch, table, lambda t: merge(t, "mine"), lambda t: merge(t, "theirs"))
    merge(hudi.Table.open(table.path, SHARED), "mine")
    assert held(hudi.Table.open(table.path)) == [(1, "rome", 1, 1.0, "theirs+mine")]


def test_a_merge_by_no_key_sees_rows_that_others_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", record_key=None, ordering_field=None, options=SHARED)
    table.insert(some((0, "rome", 1, 1.0, "x")))

    def merge(table: hudi.Table) -> hudi.CommitResult:
        rows = some((1, "oslo", 1, 1.0, "n"))
        return table.merge(rows, "name").when_not_matched_insert_all().execute()

    with pytest.raises(CommitConflictError, match="added rows while this merge"):
        overlapping(monkeypatch, table, merge, merge)
    merge(hudi.Table.open(table.path, SHARED))
    assert len(held(hudi.Table.open(table.path))) == 2


def test_what_repeats_a_write_is_not_done_again(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a")))
    for _ in range(2):
        result = table.update({"v": "v + 1"}, idempotency=("job", 1), extra_metadata={"by": "me"})
        assert result.updated == 1
    assert held(table) == [(1, "rome", 1, 2.0, "a")]


def test_a_validator_sees_the_rows_as_they_would_be(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a")))

    def positive(rows: Any, _: Any) -> bool:
        return bool(rows.count_rows(pc.field("v") < 0) == 0)

    with pytest.raises(hudi.HudiError, match="positive"):
        table.update({"v": "-v"}, validators=[positive])
    assert held(table) == [(1, "rome", 1, 1.0, "a")]


@pytest.mark.parametrize("format_name", FORMATS)
def test_change_feeds_tell_what_became_of_rows(tmp_path: Path, format_name: str) -> None:
    table = new_table(tmp_path / "t", format_name, options={"hoodie.table.cdc.enabled": "true"})
    first = table.upsert(
        some((1, "rome", 1, 1.0, "a"), (2, "rome", 1, 2.0, "b"), (3, "rome", 1, 3.0, "c"))
    )
    merger = table.merge(some((2, "rome", 0, 20.0, "b"), (9, "rome", 0, 9.0, "n")), "id")
    merger.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()
    table.delete(where="id = 3")
    table.update({"city": "'oslo'"}, "id = 1")
    found = table.changes(first.instant, images="struct").to_pylist()
    assert [
        (row["op"], row["before"] and row["before"]["id"], row["after"] and row["after"]["id"])
        for row in found
    ] == [("i", None, 9), ("u", 2, 2), ("d", 3, None), ("d", 1, None), ("i", None, 1)]
    [changed] = [row for row in found if row["op"] == "u"]
    assert (changed["before"]["v"], changed["after"]["v"]) == (2.0, 20.0)
    assert table.validate(keys=True).is_valid
