"""Random histories with a record index that is kept by partitions, against a dictionary.

A key is unique in its partition, and the same key may be in several. After every step the rows are
those of the dictionary, for hudi-rs too; and the index has each key in the shard of its own
partition that Hudi's hash says, whatever failed before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings

import hudi_core as hudi
from hudi_core.errors import HudiError, TableServiceError
from hudi_core.metadata.merging import present
from hudi_core.metadata.records import RecordLocation
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.validator import validate
from tests.foreign import by_hudi_rs
from tests.property.test_index_model import ApartEngine
from tests.property.test_metadata_model import failing

Key = tuple[str, str]
Row = dict[str, Any]
Content = Counter[tuple[Any, ...]]
Location = tuple[str, str]

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
CITIES = ("rome", "a_b-c", "x/y=1", None)
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
FAILURES = (None, None, None, "log", "metadata", "completion", "rollback")


@dataclass(frozen=True)
class Step:
    operation: str
    rows: tuple[Row, ...]
    failure: str | None


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


@dataclass
class Model:
    held: dict[Key, Row] = field(default_factory=dict)

    def after(self, step: Step) -> dict[Key, Row]:
        """Return what the table holds after a step."""
        came = {key_of(row): row for row in step.rows}
        partitions = {partition for partition, _ in came}
        left = {key: row for key, row in self.held.items() if key[0] not in partitions}
        match step.operation:
            case "delete":
                return {key: row for key, row in self.held.items() if key not in came}
            case "insert_overwrite":
                return left | came
            case "insert_overwrite_table":
                return came
            case "delete_partitions":
                return left
        return self.held | came


def key_of(row: Row) -> Key:
    return row["city"] or UNKNOWN, row["id"]


def runnable(step: Step, held: dict[Key, Row]) -> Step:
    """Inserts bring new keys, each once; only partitions that are there can go."""
    chosen = {key_of(row): row for row in step.rows}
    if step.operation in ("insert", "bulk_insert"):
        chosen = {key: row for key, row in chosen.items() if key not in held}
    if step.operation == "delete_partitions":
        there = {partition for partition, _ in held}
        chosen = {key: row for key, row in chosen.items() if key[0] in there}
    return Step(step.operation, tuple(chosen.values()), step.failure)


def execute(table: hudi.Table, step: Step, apart: bool) -> hudi.CommitResult:
    method = getattr(table, step.operation)
    if step.operation == "delete_partitions":
        result: hudi.CommitResult = method([key_of(row)[0] for row in step.rows])
        return result
    data = pa.Table.from_pylist(list(step.rows), SCHEMA)
    written: hudi.CommitResult = method(data, engine=ApartEngine() if apart else None)
    return written


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


def content(rows: Sequence[Row]) -> Content:
    names = ("_hoodie_partition_path", *SCHEMA.names)
    return Counter(tuple(row[name] for name in names) for row in rows)


def check(table: hudi.Table, held: dict[Key, Row], groups: int) -> None:
    wanted = Counter((key[0], *(row[name] for name in SCHEMA.names)) for key, row in held.items())
    assert content(table.to_arrow().to_pylist()) == wanted
    assert content(by_hudi_rs(table.path)) == wanted
    opened = hudi.Table.open(table.path)._session.opened.client
    if "record_index" not in MetadataSnapshot.open(opened).partitions:
        return
    assert indexed(table, groups) == stored(table)
    assert stored(table).keys() == held.keys()
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
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_index_follows_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Step],
    groups: int,
    late: bool,
    compacted: bool,
    apart: bool,
) -> None:
    path = str(tmp_path_factory.mktemp("partitioned") / "table")
    common = {
        "hoodie.fs.fsync": "false",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "2" if compacted else "10",
        # what the index costs is tested, not what ranges do
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "2",
    }
    options = {
        **common,
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.metadata.record.level.index.min.filegroup.count": str(groups),
    }
    table = hudi.Table.create(
        path, SCHEMA, record_key="id", partition_by="city", options=common if late else options
    )
    model = Model()
    for number, drawn in enumerate(plan):
        if number == 1:
            table = hudi.Table.open(path, options=options)
        step = runnable(drawn, model.held)
        if not step.rows:
            continue
        after = model.after(step)
        with failing(step.failure) as hit:
            try:
                result = execute(table, step, apart)
            except HudiError:
                assert hit
                check(table, model.held, groups)
                continue
        assert not hit
        if step.operation in ("upsert", "delete"):
            came = {key_of(row) for row in step.rows}
            met = len(came & model.held.keys())
            counts = (0, 0, met) if step.operation == "delete" else (len(came) - met, met, 0)
            assert (result.inserted, result.updated, result.deleted) == counts
        if step.failure == "rollback":
            try:
                table.rollback(result.instant)
                after = model.held
            except TableServiceError as error:
                assert "compaction" in str(error)  # noqa: PT017 - either may be
        model.held = after
        check(table, model.held, groups)
