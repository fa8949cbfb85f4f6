"""Random histories with a record index that is kept by partitions, against a dictionary.

A key is unique in its partition, and the same key may be in several. After every step the rows are
those of the dictionary, for hudi-rs too; and the index has each key in the shard of its own
partition that Hudi's hash says, whatever failed before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given

import hudi_core as hudi
from hudi_core.errors import HudiError, TableServiceError
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.merging import present
from hudi_core.metadata.snapshot import MetadataSnapshot
from tests.foreign import by_hudi_rs
from tests.property.histories import (
    UNKNOWN,
    Model,
    Step,
    content,
    counts,
    examples,
    perform,
    small_files,
)
from tests.property.test_index_model import ApartEngine
from tests.property.test_metadata_model import failing
from tests.tables import new_table

Key = tuple[str, str]
Location = tuple[str, str]

CITY_VALUES = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
CITIES = ("rome", "a_b-c", "x/y=1", None)
NAMES = ("_hoodie_partition_path", *CITY_VALUES.names)
FAILURES = (None, None, None, "log", "metadata", "completion", "rollback")


@st.composite
def steps(draw: st.DrawFn) -> Step:
    row = st.fixed_dictionaries(
        {
            "id": st.integers(0, 7).map("k{}".format),
            "city": st.sampled_from(CITIES),
            "value": st.integers(0, 99),
        }
    )
    batch = draw(st.lists(row, min_size=1, max_size=8))
    operation = draw(
        st.sampled_from(
            [
                *("upsert", "upsert", "upsert", "insert", "bulk_insert", "delete", "delete"),
                *("insert_overwrite", "insert_overwrite_table", "delete_partitions"),
            ]
        )
    )
    return Step(operation, tuple(batch), draw(st.sampled_from(FAILURES)))


def _step(operation: str, keys: Iterable[int], value: int) -> Step:
    rows = tuple({"id": f"k{n % 6}", "city": CITIES[n % 4], "value": value} for n in keys)
    return Step(operation, rows, None)


EVERY = [
    _step("insert", range(8), 1),
    _step("upsert", (0, 1, 9), 2),
    _step("delete", (0, 2, 7, 11), 2),
    _step("insert_overwrite", (1, 5), 3),
    _step("delete_partitions", (3,), 3),
    _step("insert_overwrite_table", (0, 1, 2), 4),
]
"""A history with every operation: few that are drawn have them all."""


def java_hash(text: str) -> int:
    found = 0
    for letter in text:
        found = (31 * found + ord(letter)) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def indexed(table: hudi.Table, groups: int) -> dict[Key, Location]:
    """Return where the index says that keys are, of each partition in its own shards."""
    snapshot = MetadataSnapshot.open(hudi.Table.open(table.path)._session.opened.client)
    found: dict[Key, Location] = {}
    for group in snapshot.groups("record_index"):
        name = re.fullmatch(r"record-index-([^-]*)-([0-9]{4})-0", group.slice.file_id)
        assert name is not None
        partition, shard = unquote(name[1]), int(name[2])
        for key, record in group.scan().items():
            seen = present(record)
            if seen is None:
                continue
            assert isinstance(seen.payload, RecordLocation)
            assert seen.payload.partition_name == partition
            assert abs(java_hash(key)) % groups == shard
            assert (partition, key) not in found
            found[partition, key] = (partition, seen.payload.file_id)
    return found


def stored(table: hudi.Table) -> dict[Key, Location]:
    found: dict[Key, Location] = {}
    for one in table.file_slices():
        assert one.base_file is not None
        keys = pq.ParquetFile(Path(table.path, one.base_file.path)).read(["_hoodie_record_key"])
        for key in keys.column(0).to_pylist():
            found[one.partition_path, key] = (one.partition_path, one.file_id)
    return found


def check(table: hudi.Table, model: Model, groups: int) -> None:
    assert content(table.to_arrow().to_pylist(), NAMES) == model.content(NAMES)
    assert content(by_hudi_rs(table.path), NAMES) == model.content(NAMES)
    opened = hudi.Table.open(table.path)._session.opened.client
    if "record_index" not in MetadataSnapshot.open(opened).partitions:
        return
    assert indexed(table, groups) == stored(table)
    assert stored(table).keys() == {(city or UNKNOWN, key) for city, key in model.held}
    report = validate(opened)
    assert report.is_valid, report.findings


@given(
    plan=st.lists(steps(), min_size=2, max_size=5),
    groups=st.sampled_from([1, 3]),
    late=st.booleans(),
    compacted=st.booleans(),
    apart=st.booleans(),
)
@example(plan=EVERY, groups=3, late=False, compacted=False, apart=True)
@examples(20, 20)
def test_the_index_follows_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Step],
    groups: int,
    late: bool,
    compacted: bool,
    apart: bool,
) -> None:
    path = tmp_path_factory.mktemp("partitioned") / "table"
    common = small_files(2) | {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "2" if compacted else "10",
        # what the index costs is tested, not what ranges do
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    options = common | {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.metadata.record.level.index.min.filegroup.count": str(groups),
    }
    table = new_table(path, CITY_VALUES, common if late else options)
    model = Model(by_partition=True)
    for number, drawn in enumerate(plan):
        if number == 1:
            table = hudi.Table.open(str(path), options=options)
        step = model.runnable(drawn)
        if not step.rows:
            continue
        after = replace(model, held=dict(model.held))
        expected = after.apply(step)
        with failing(step.failure) as hit:
            try:
                result = perform(table, step, CITY_VALUES, ApartEngine() if apart else None)
            except HudiError:
                assert hit
                check(table, model, groups)
                continue
        assert not hit
        assert counts(result) == expected
        if step.failure == "rollback":
            try:
                table.rollback(result.instant)
                after = model
            except TableServiceError as error:
                assert "compaction" in str(error)  # noqa: PT017 - either may be
        model = after
        check(table, model, groups)
