"""A table that is overwritten or dropped leaves nothing, but what it was told to keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, NotATableError
from hudi_core.services.drop import drop_table
from hudi_core.storage.posix import PosixStorage

OPTIONS = {
    "hoodie.table.name": "cities",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}
ROWS = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"]})


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_overwrite_leaves_only_the_new_rows_and_history(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudi.write(ROWS, str(path), "append", OPTIONS)
    hudi.write(ROWS.slice(0, 1), str(path), "overwrite", OPTIONS)
    table = hudi.Table.open(str(path))
    assert table.to_arrow(columns=["id"]).to_pylist() == [{"id": "a"}]
    assert len(table.timeline.completed_writes()) == 1
    assert not (path / "oslo").exists()


def test_overwrite_where_nothing_is_makes_the_table(tmp_path: Path) -> None:
    result = hudi.write(ROWS, str(tmp_path / "t"), "overwrite", OPTIONS)
    assert result is not None
    assert result.inserted == 2


def test_a_dropped_table_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudi.write(ROWS, str(path), "append", OPTIONS)
    (path / "stray").write_bytes(b"")
    drop_table(str(path), {})
    assert files(path) == set()
    with pytest.raises(NotATableError):
        drop_table(str(path), {})


def test_what_is_to_be_kept_stays_and_does_not_hinder_a_new_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudi.write(ROWS, str(path), "append", OPTIONS)
    storage = PosixStorage(str(path))
    for name in ("mine/rows", "mine-too/rows", "other/rows"):
        storage.put(f".hoodie/.temp/{name}", b"")
    drop_table(str(path), {}, keep=".hoodie/.temp/mine")
    assert files(path) == {".hoodie/.temp/mine/rows"}
    hudi.write(ROWS, str(path), "errorifexists", OPTIONS)
    assert ".hoodie/.temp/mine/rows" in files(path)


def test_a_drop_that_is_cut_short_anywhere_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = PosixStorage.delete_tree
    cuts = 0
    for left in range(20):
        path = tmp_path / f"t{left}"
        hudi.write(ROWS, str(path), "append", OPTIONS)
        steps = iter(range(left))

        def cut(storage: PosixStorage, folder: str, steps: Iterator[int] = steps) -> int:
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return whole(storage, folder)

        with monkeypatch.context() as patched:
            patched.setattr(PosixStorage, "delete_tree", cut)
            try:
                drop_table(str(path), {})
            except KeyboardInterrupt:
                cuts += 1
        hudi.write(ROWS, str(path), "overwrite", OPTIONS)
        table = hudi.Table.open(str(path))
        assert table.to_arrow().num_rows == 2
        assert len(table.timeline.completed_writes()) == 1
    assert 4 <= cuts < 20


def test_rows_are_deleted_in_append_mode_only(tmp_path: Path) -> None:
    hudi.write(ROWS, str(tmp_path / "t"), "append", OPTIONS)
    options = {**OPTIONS, "hoodie.datasource.write.operation": "delete"}
    with pytest.raises(InvalidOptionError, match="mode='overwrite'"):
        hudi.write(ROWS, str(tmp_path / "t"), "overwrite", options)
    result = hudi.write(ROWS.slice(0, 1), str(tmp_path / "t"), "append", options)
    assert result is not None
    assert result.deleted == 1
