"""The metadata table written by tasks: what reaches the process that commits, and what is written.

With tasks in other processes nothing but values crosses; here they are pickled both ways.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.engine.base import TaskFunction, _Each
from hudi_core.errors import IncompleteCommitError
from hudi_core.metadata.key_index.key_changes import INSERTED
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.log.shards import WriteLogs
from hudi_core.metadata.maintenance import compaction
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partitions import key_changes
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.services.metadata import repair_metadata_table
from tests.property.test_index_model import ApartEngine
from tests.unit.partitioned_index_tables import GLOBAL, MIN, ON, PLAIN, create, group_ids, keyed

MOST_BYTES = 300
"""Of what comes back of a file of the metadata table."""
COMPACTION = "hoodie.metadata.compact.max.delta.commits"
LOCATION = RecordLocation("oslo", "x-0", 0)
NEW_KEYS = pa.table({"key": ["k"], "change": pa.array([INSERTED], pa.int8())})
KINDS = {
    "whole": ({**GLOBAL, "hoodie.index.type": "RECORD_INDEX"}, 10),
    "by-partition": ({**ON, MIN: "3"}, 6),
}


class KilledError(Exception):
    """The stage of tasks is gone."""


class Watched(ApartEngine):
    """Notes what comes back from tasks that work for the metadata table."""

    def __init__(self) -> None:
        super().__init__(2)
        self.answers: list[bytes] = []

    def map_tasks(
        self,
        tasks: Sequence[Any],
        function: TaskFunction[Any, Any],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[Any]:
        found = super().map_tasks(tasks, function, stage, weights)
        # a folder that is listed answers with all of its files
        is_listing = isinstance(function, _Each) and "view" in type(function.function).__module__
        if isinstance(function, _Each) and not is_listing:
            self.answers += map(pickle.dumps, found)
        return found

    @contextmanager
    def seeing_no_keys(self) -> Iterator[None]:
        self.answers.clear()
        yield
        assert self.answers
        assert max(map(len, self.answers)) <= MOST_BYTES
        assert not [one for one in self.answers if re.search(rb"k\d{6}", one)]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys are those of a few rows already."""
    monkeypatch.setattr(key_changes, "FEW_KEYS", 5)
    monkeypatch.setattr(compaction, "_LIGHT", 0)


def is_right(table: hudi.Table, groups: int) -> None:
    report = validate(hudi.Table.open(table.path)._session.opened.client)
    assert report.is_valid, report.findings
    assert len(group_ids(table)) == groups
    folder = Path(table.path, ".hoodie")
    assert not [*folder.glob(".temp/*"), *folder.glob("metadata/*/.stage")]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_writes(tmp_path: Path, kind: str, few: None) -> None:
    options, groups = KINDS[kind]
    table, engine = create(tmp_path, options), Watched()
    table.insert(keyed(range(20), "oslo"), engine=engine)
    table.create_index("by_value", "value")
    steps: Sequence[tuple[Callable[..., Any], Any]] = [
        (table.upsert, keyed(range(10, 40), "oslo", 2)),
        (table.bulk_insert, keyed(range(100, 130), "rome")),
        (table.delete, keyed(range(5, 25), "oslo")),
        (table.insert_overwrite, keyed(range(110, 150), "rome", 3)),
    ]
    for write, rows in steps:
        with engine.seeing_no_keys():
            write(rows, engine=engine)
    is_right(table, groups)


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_keys_are_noted(tmp_path: Path, kind: str, few: None) -> None:
    table, engine = create(tmp_path, KINDS[kind][0]), Watched()
    table.insert(keyed(range(20), "oslo"), engine=engine)
    wanted = [("id", "=", "k000003")]
    assert len(table.file_slices(filter=wanted)) == 1
    table.bulk_insert(keyed(range(3, 10), "oslo"), engine=engine)
    assert len(hudi.Table.open(table.path).to_arrow(filter=wanted)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_built_and_compacted(tmp_path: Path, kind: str, few: None) -> None:
    options, groups = KINDS[kind]
    plain = {**PLAIN, "hoodie.metadata.enable": "true"}
    made, engine = create(tmp_path, plain), Watched()
    made.bulk_insert(keyed(range(30), "oslo"))
    made.bulk_insert(keyed(range(100, 130), "rome"))
    table = hudi.Table.open(made.path, options={**plain, **options, COMPACTION: "2"})
    with engine.seeing_no_keys():
        table.upsert(keyed(range(20, 40), "oslo", 2), engine=engine)
    is_right(table, groups)
    with engine.seeing_no_keys():
        table.create_index("by_value", "value", engine=engine)
    is_right(table, groups)
    with engine.seeing_no_keys():
        for number in range(3):
            table.upsert(keyed(range(number, 50), "oslo", 3 + number), engine=engine)
    compacted = [*Path(table.path, ".hoodie/metadata/.hoodie/timeline").glob("*.commit")]
    assert compacted
    assert any(b"MergedFile" in one for one in engine.answers)
    is_right(table, groups)
    engine.answers.clear()
    repair_metadata_table(table.path, options, engine)
    assert sum(b"WrittenShards" in one for one in engine.answers) >= groups
    is_right(table, groups)


def test_an_attempt_puts_nothing_once_the_commit_is_taken_back(tmp_path: Path, few: None) -> None:
    table = create(tmp_path, KINDS["whole"][0])
    late: list[tuple[Any, Any]] = []

    class Late(Watched):
        """Has an attempt at each task of the metadata table that runs when all is over."""

        def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
            if isinstance(function, _Each) and isinstance(function.function, WriteLogs):
                late.extend((function.function, task) for task in tasks)
                raise KilledError
            return super().map_tasks(tasks, function, stage, weights)

    with pytest.raises(KilledError):
        table.insert(keyed(range(20), "oslo"), engine=Late())
    assert late
    table.insert(keyed(range(20), "oslo"))
    before = {*Path(table.path).rglob("*")}
    for write, task in late:
        late_tables = replace(write.change, files={None: [(LOCATION, NEW_KEYS)]})
        with pytest.raises(IncompleteCommitError, match="taken back"):
            replace(write, change=late_tables)(task)
    assert {*Path(table.path).rglob("*")} == before


def test_an_index_that_has_outgrown_its_file_groups(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    size = "hoodie.metadata.record.index.max.filegroup.size"
    options = {**GLOBAL, COMPACTION: "2"}
    table = create(tmp_path, options, None)
    table.bulk_insert(keyed(range(30), ""))
    table.create_index("by_value", "value")
    assert not caplog.messages
    # both are laid out again for smaller ones
    small = {**options, size: "100"}
    for number in range(3):
        table.upsert(keyed(range(30 + number), ""), options=small)
    said = {one.split(" of ")[1] for one in caplog.messages if size in one}
    assert said == {"record_index", "secondary_index_by_value"}
    opened = hudi.Table.open(table.path, options=small)
    opened.drop_index("by_value")
    opened.create_index("by_value", "value")
    # 32 keys of 48 bytes each, and as many again to come
    client = hudi.Table.open(table.path)._session.opened.client
    assert len(MetadataSnapshot.open(client).groups("secondary_index_by_value")) == 31
