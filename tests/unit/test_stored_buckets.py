"""Bucket tables of other writers: stored keys prove the number of their buckets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import UnsupportedTableError
from hudi_core.index.bucket import key_hashes
from hudi_core.model.files import FileId
from hudi_core.write import planning
from tests.unit.refusals import refused
from tests.unit.test_stored_keys import INDEX, NUMBER, forget, keys, made_elsewhere, rows, stored

FIELDS = "hoodie.bucket.index.hash.field"


def buckets(number: int, **more: str) -> dict[str, str]:
    return {INDEX: "BUCKET", NUMBER: str(number), **more}


def texts(numbers: Sequence[int]) -> list[str]:
    return [f"k{one}" for one in numbers]


@pytest.mark.parametrize("wrong", [2, 3, 8, 256])
def test_the_number_of_buckets_is_proved_before_it_is_stored(tmp_path: Path, wrong: int) -> None:
    ids = texts(range(40))
    folder = made_elsewhere(tmp_path, [rows(ids)], options=buckets(4))
    with refused(folder, UnsupportedTableError, NUMBER):
        hudi.Table.open(str(folder), options=buckets(wrong)).upsert(rows(ids, 2))
    assert NUMBER not in stored(folder)
    table = hudi.Table.open(str(folder), options=buckets(4))
    assert table.upsert(rows([*ids, "new"], 2)).updated == 40
    assert stored(folder)[NUMBER] == "4"
    assert keys(folder) == dict.fromkeys([*ids, "new"], 2)


def test_a_multiple_that_few_keys_fit_by_their_groups_is_refused_by_them(tmp_path: Path) -> None:
    """Four buckets of eight exist, and say nothing; the keys of each do."""
    ids = texts(range(200))
    hashes = key_hashes(pa.array(ids), ("id",))
    low = [one for one, value in zip(ids, hashes.tolist(), strict=True) if value % 8 < 4][:3]
    folder = made_elsewhere(tmp_path, [rows(low)], options=buckets(8))
    with refused(folder, UnsupportedTableError, "buckets"):
        hudi.Table.open(str(folder), options=buckets(7)).upsert(rows(low, 2))
    # three keys fit four buckets as well as eight: nobody can know better than the user
    assert hudi.Table.open(str(folder), options=buckets(8)).upsert(rows(low, 2)).updated == 3


def test_the_fields_that_are_hashed_are_proved_as_well(tmp_path: Path) -> None:
    batch = rows(texts(range(40)), other=texts(range(100, 140)))
    given = {**buckets(4), FIELDS: "other"}
    folder = made_elsewhere(tmp_path, [batch], "id,other", options=given)
    with refused(folder, UnsupportedTableError, FIELDS):
        hudi.Table.open(str(folder), options={**buckets(4), FIELDS: "id"}).upsert(batch)
    table = hudi.Table.open(str(folder), options={**buckets(4), FIELDS: "other"})
    assert table.upsert(batch).updated == 40


@pytest.mark.parametrize(
    ("index", "operation"),
    [("SIMPLE", "upsert"), ("BLOOM", "insert"), ("GLOBAL_SIMPLE", "bulk_insert")],
)
def test_another_index_adds_no_groups_to_a_bucket_table(
    tmp_path: Path, index: str, operation: str
) -> None:
    folder = made_elsewhere(tmp_path, [rows(texts(range(20)))], options=buckets(4))
    table = hudi.Table.open(str(folder), options={INDEX: index})
    with refused(folder, UnsupportedTableError, "has buckets, 4 of them", f"{INDEX}=BUCKET"):
        getattr(table, operation)(rows(["new"]))
    # what is new altogether is for the writer to lay out
    result = table.insert_overwrite_table(rows(["new"]))
    assert result.inserted == 1
    assert table.upsert(rows(["new"], 2)).updated == 1


def test_a_file_group_that_looks_like_a_bucket_by_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = FileId("00012345-52a8-4e70-9d7d-2d5b2a7f3a11-0")
    monkeypatch.setattr(planning, "derive_file_id", lambda *_: name)
    folder = made_elsewhere(tmp_path, [rows(texts(range(20)))])
    monkeypatch.undo()
    assert hudi.Table.open(str(folder)).upsert(rows(["k1"], 2)).updated == 1


def test_numbers_of_buckets_by_partition_are_refused(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [rows(texts(range(20)))], options=buckets(4))
    settings = folder / ".hoodie" / ".bucket_index" / "partition_bucket_index_meta"
    settings.mkdir(parents=True)
    (settings / "00000000000000.hashing_config").write_text("{}")
    with refused(folder, UnsupportedTableError, ".hoodie/.bucket_index"):
        hudi.Table.open(str(folder), options=buckets(4)).upsert(rows(["k1"], 2))


def test_a_table_of_ours_is_not_asked_for_its_buckets(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [rows(texts(range(20)))], options=buckets(4))
    hudi.Table.open(str(folder), options=buckets(4)).upsert(rows(["k1"], 2))
    assert hudi.Table.open(str(folder)).upsert(rows(["k1"], 3)).updated == 1
    forget(folder)
    with pytest.raises(UnsupportedTableError, match="4 of them"):
        hudi.Table.open(str(folder)).upsert(rows(["k1"], 4))
