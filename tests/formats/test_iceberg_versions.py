"""Version 3 of the Iceberg format: written when it is asked for, and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError
from iceberg_format.manifest_files import first_row_id
from iceberg_format.manifests import ManifestStore
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import NOTED, Iceberg, bag, by_polars, create, opened, typed

VERSION = "hoodie.table.format.iceberg.format-version"


def agree(path: Path) -> int:
    """Rows that all readers see."""
    ours = hudi.Table.open(str(path)).to_arrow().select(NOTED.names)
    assert bag(ours) == bag(Iceberg(path).rows(NOTED.names))
    assert bag(ours) == bag(by_polars(path, NOTED.names))
    return int(ours.num_rows)


def newest(path: Path) -> dict[str, Any]:
    """The current metadata as JSON."""
    location = Iceberg(path).table.metadata_location.removeprefix("file://")
    found: dict[str, Any] = json.loads(Path(location).read_text())
    return found


def row_ids(path: Path) -> dict[str, range]:
    """Ids of rows by the data file that they are in."""
    found = {}
    iceberg = IcebergTable.open(opened(path).client)
    metadata = iceberg.load().metadata
    current = metadata.current_snapshot()
    assert current is not None
    for file in ManifestStore(iceberg.files, iceberg.folder, metadata).live(current):
        first = first_row_id(file)
        assert first is not None
        found[file.file_path] = range(first, first + file.record_count)
    return found


def test_rows_have_ids_in_version_3(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path, **{VERSION: "3"})
    table.insert(typed(range(12)))
    assert newest(path)["format-version"] == 3
    first = row_ids(path)
    for write in (
        lambda: table.upsert(typed([1, 2, 20], 1)),
        lambda: table.delete(typed([4])),
        lambda: table.bulk_insert(typed(range(30, 40))),
        lambda: table.rollback(table.timeline.completed_writes()[-1]),
        lambda: table.insert(typed(range(50, 55))),
        table.cluster,
    ):
        write()
        agree(path)
        ids = row_ids(path)
        # a file keeps the ids of its rows, and no two rows of the table have the same
        assert all(ids[name] == rows for name, rows in first.items() if name in ids)
        assert len({each for rows in ids.values() for each in rows}) == sum(map(len, ids.values()))
        assert newest(path)["next-row-id"] > max(rows.stop - 1 for rows in ids.values())
        first |= ids
    assert not hudi.Table.open(str(path)).validate().differences


def test_a_repair_makes_a_table_version_3(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    table.insert(typed(range(12)))
    table.upsert(typed([1, 2], 1))
    before = agree(path)
    asked = hudi.Table.open(path, {VERSION: "3"})
    asked.repair(force=True)
    assert newest(path)["format-version"] == 3
    assert agree(path) == before
    # from then on it stays so, whatever is asked for
    table = hudi.Table.open(path)
    table.upsert(typed([3, 40], 2))
    assert agree(path) == before + 1
    table.repair(force=True)
    assert newest(path)["format-version"] == 3
    assert agree(path) == before + 1
    assert not table.validate().differences


def test_a_version_that_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="2, 3"):
        create(tmp_path / "t", **{VERSION: "4"})
    assert not (tmp_path / "t").exists()
