"""hudi-rs on tables whose data files lie below a storage path: it fails, and finds nothing less.

It reads, and does not write. The metadata table and the timeline name files as if they were in the
table's folder, where it looks for them.
"""

from __future__ import annotations

from pathlib import Path

import hudi as hudi_rs
import pytest

import hudi_core as hudi
from tests.federated_tables import Store, placed_table, trips
from tests.foreign import by_hudi_rs


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The path of a table with a storage path."""
    made = placed_table(Store("disk", tmp_path))
    made.table.insert(trips(("k0", "a", 1), ("k1", "b", 1), ("k2", "c", 1)))
    made.table.upsert(trips(("k0", "a", 2), ("k3", "b", 2)))
    return made.base


@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("way", ["all rows", "a partition", "a past state", "changes"])
def test_every_read_fails(base: str, way: str, metadata: str) -> None:
    writes = hudi.Table.open(base).timeline.completed_writes()
    options = hudi_rs.HudiReadOptions().with_hudi_option("hoodie.metadata.enable", metadata)
    match way:
        case "a partition":
            options = options.with_filters([("city", "=", "a")])
        case "a past state":
            options = options.with_as_of_timestamp(str(writes[0].completion_time))
        case "changes":
            options = options.with_query_type(hudi_rs.HudiQueryType.Incremental)
            options = options.with_start_timestamp(str(writes[0].completion_time))
    with pytest.raises(Exception, match=r"NotFound.*table") as caught:
        by_hudi_rs(base, options)
    assert type(caught.value).__name__ == "HudiCoreError"


def test_it_names_the_files_that_it_does_not_find(base: str) -> None:
    """Whoever asks for files alone gets paths below the table, where nothing is."""
    found = [one.base_file_relative_path() for one in hudi_rs.HudiTable(base).get_file_slices()]
    slices = hudi.Table.open(base).file_slices()
    names = [one.base_file.path for one in slices if one.base_file is not None]
    assert sorted(found) == sorted(names)
    assert not any((Path(base) / path).exists() for path in found)


def test_it_reads_once_the_files_are_moved_into_the_folder(base: str) -> None:
    hudi.Table.open(base).convert_storage({"hoodie.storage.strategy.class": "default"})
    assert sorted((row["id"], row["ts"]) for row in by_hudi_rs(base)) == [
        ("k0", 2),
        ("k1", 1),
        ("k2", 1),
        ("k3", 2),
    ]
