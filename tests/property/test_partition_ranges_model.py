"""Random writes to partitions of many files, whose ranges equal those of all their footers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import hudi_core as hudi
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.partition_types import COLUMN_STATS
from hudi_core.metadata.partitions import range_changes as touched_ranges
from hudi_core.metadata.partitions.column_stats import PartitionStats
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.snapshot import MetadataSnapshot
from tests.property.histories import Row, examples
from tests.property.test_metadata_model import client_of, metadata_table
from tests.property.test_table_model import MODEL_COLUMNS

KEYS = 14
SMALL = {"hoodie.copyonwrite.insert.split.size": "2", "hoodie.parquet.small.file.limit": "0"}
"""New files of two rows, which do not grow."""
OPERATIONS = ("upsert", "upsert", "upsert", "delete", "insert", "rollback", "insert_overwrite")


def row(key: int, ts: int, value: float | None) -> Row:
    return {"id": f"k{key:02}", "city": ("rome", "oslo")[key % 2], "ts": ts, "value": value}


@st.composite
def drawn_rows(draw: st.DrawFn) -> list[Row]:
    keys = draw(st.lists(st.integers(0, KEYS + 5), min_size=1, max_size=3, unique=True))
    value = st.none() | st.floats(-2, 2, width=16)
    return [row(key, draw(st.integers(0, 9)), draw(value)) for key in keys]


def check_ranges(path: Path) -> None:
    """Compare the stored ranges of partitions with those of a build."""
    client = client_of(path)
    definitions = read_definitions(client.storage, client.config)
    config = MetadataConfig.from_options({})
    config = replace(config, stats_columns=definitions.columns(COLUMN_STATS))
    table = ListedTable(client, config, definitions)
    comparison = RecordComparison(table, MetadataSnapshot.open(client), frozenset(), None)
    partition = PartitionStats()
    assert partition.listed(comparison) == partition.expected(comparison)


@given(
    steps=st.lists(st.tuples(st.sampled_from(OPERATIONS), drawn_rows()), min_size=6, max_size=6),
    version=st.sampled_from([8, 9]),
    compacted=st.booleans(),
)
@examples(3, 3)
def test_ranges_of_partitions_follow_their_files(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, list[Row]]],
    version: int,
    compacted: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        # few files here stand for many
        patched.setattr(touched_ranges, "_FEW_FILES", 0)
        follow(tmp_path_factory.mktemp("ranges") / "table", steps, version, compacted)


def follow(path: Path, steps: list[tuple[str, list[Row]]], version: int, compacted: bool) -> None:
    more = {"hoodie.metadata.compact.max.delta.commits": "3"} if compacted else {}
    table = metadata_table(path, version, False, **SMALL, **more)
    first = [row(key, key % 10, None if key < 4 else key / 7) for key in range(KEYS)]
    result: hudi.CommitResult | None = table.insert(pa.Table.from_pylist(first, MODEL_COLUMNS))
    for operation, some in steps:
        if operation == "rollback":
            if result is not None:
                table.rollback(result.instant)
                result = None
        else:
            batch = some
            if operation == "insert":
                batch = [one | {"id": f"n{one['id']}"} for one in some]
            result = getattr(table, operation)(pa.Table.from_pylist(batch, MODEL_COLUMNS))
        check_ranges(path)
