"""A table whose files were adopted as they are has no meta columns: read, and not written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, UnsupportedTableError
from tests.formats.adopt_folders import ALL, ENCODED, ROWS, agree, plain
from tests.formats.service_tables import bag, operator


@pytest.fixture(params=ALL)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    path = plain(tmp_path / "lake")
    hudi.Table.adopt(str(path), record_key="id", format=request.param, options=ENCODED)
    return hudi.Table.open(str(path))


def test_every_write_is_refused_with_what_to_do_and_leaves_nothing(table: hudi.Table) -> None:
    rows, before = ROWS.slice(0, 1), sorted(Path(table.path).rglob("*"))
    writes: list[Callable[[], object]] = [
        lambda: table.upsert(rows),
        lambda: table.insert(rows),
        lambda: table.bulk_insert(rows),
        lambda: table.delete(rows),
        lambda: table.insert_overwrite(rows),
        lambda: table.insert_overwrite_table(rows),
        lambda: table.delete_partitions([{"city": "rome"}]),
        lambda: table.alter(add_columns={"note": pa.string()}),
        lambda: table.rollback(table.timeline.completed_writes()[-1]),
        lambda: hudi.write(rows, table.path, mode="append"),
        lambda: operator(Path(table.path)).index("bloom_filters"),
    ]
    for write in writes:
        with pytest.raises(UnsupportedTableError, match="no meta columns") as refused:
            write()
        assert "bulk_insert(table.to_batches())" in refused.value.hint
    assert sorted(Path(table.path).rglob("*")) == before
    agree(Path(table.path))


def test_an_index_of_keys_that_no_file_holds_is_refused_at_first(tmp_path: Path) -> None:
    path = plain(tmp_path / "lake")
    before = sorted(path.rglob("*"))
    for kind in ("record.index", "record.level.index"):
        option = {f"hoodie.metadata.{kind}.enable": "true"}
        with pytest.raises(InvalidOptionError, match="no record keys"):
            hudi.Table.adopt(str(path), record_key="id", options={**ENCODED, **option})
    assert sorted(path.rglob("*")) == before


def test_its_rows_are_copied_as_the_refusal_says(table: hudi.Table, tmp_path: Path) -> None:
    new = hudi.Table.create(
        str(tmp_path / "new"),
        table.schema,
        record_key="id",
        partition_by="city",
        format=table.format,
        options=ENCODED,
    )
    new.bulk_insert(table.to_batches())
    assert bag(new.to_arrow(), ROWS.column_names) == bag(ROWS)
    new.upsert(ROWS.slice(0, 1))
