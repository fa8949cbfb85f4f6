"""Random histories of tables with a record index: filters on keys find what a full read finds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given

import hudi_core as hudi
from hudi_core.errors import TableServiceError
from hudi_core.model.instant_time import InstantTime
from tests.property.histories import examples
from tests.property.test_index_model import ApartEngine
from tests.samples import IS_WHOLE
from tests.tables import new_table

PARTS_AND_CITIES = pa.schema(
    [("id", pa.string()), ("part", pa.int64()), ("city", pa.string()), ("ts", pa.int64())]
)
CITIES = ("rome", "oslo", "lima")
OFF = {"hoodie.metadata.enable": "false"}
KINDS = {
    "whole": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    },
    "by partition": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
WRITES = ("upsert", "upsert", "upsert", "delete", "insert", "bulk_insert", "insert_overwrite")
SERVICES = ("cluster", "rollback", "restore", "clean")


@dataclass(frozen=True)
class Step:
    operation: str
    keys: tuple[tuple[int, int], ...] = ()
    index: str | None = None


def steps(kind: str) -> st.SearchStrategy[list[Step]]:
    keys = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=6)
    index = st.sampled_from([None, None, "SIMPLE", "GLOBAL_SIMPLE" if kind == "whole" else "BLOOM"])
    write = st.builds(Step, st.sampled_from(WRITES), keys.map(tuple), index)
    service = st.builds(Step, st.sampled_from(SERVICES))
    return st.lists(st.one_of(write, write, service), min_size=3, max_size=7)


def step_rows(step: Step, ts: int) -> pa.Table:
    numbers = [key for key, _ in step.keys]
    return pa.table(
        {
            "id": [f"k{key}" for key in numbers],
            "part": [key % 2 for key in numbers],
            "city": [CITIES[place] for _, place in step.keys],
            "ts": [ts] * len(numbers),
        },
        PARTS_AND_CITIES,
    )


def run(table: hudi.Table, step: Step, ts: int, kept: list[InstantTime], apart: bool) -> None:
    writes = [one.requested_time for one in table.timeline.completed_writes()]
    match step.operation:
        case "cluster":
            table.cluster(sort_by=["id"])
        case "clean":
            table.clean()
        case "rollback" | "restore" if len(writes) < 2:
            pass
        case "rollback":
            # of what is compacted in the metadata table nothing is taken back
            with suppress(TableServiceError):
                table.rollback(writes[-1])
        case "restore":
            with suppress(TableServiceError):
                table.restore(kept[-1] if kept else writes[0])
        case operation:
            options = {} if step.index is None else {"hoodie.index.type": step.index}
            engine = ApartEngine() if apart else None
            getattr(table, operation)(step_rows(step, ts), options=options, engine=engine)


def sorted_rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(
        map(tuple, (row.values() for row in found.select(PARTS_AND_CITIES.names).to_pylist()))
    )


def check(table: hudi.Table, keys: Sequence[str]) -> int:
    """Compare what filters find; return how many files they leave out."""
    everything = hudi.Table.open(table.path, options=OFF).to_arrow()
    all_files, left_out = len(table.file_slices()), 0
    wanted = [pc.field("id") == key for key in keys]
    wanted += [pc.field("id").isin(list(keys[:3])), pc.field("_hoodie_record_key") == keys[0]]
    if len(table.config.record_key_fields) > 1:
        part = pc.field("part")
        wanted += [(pc.field("id") == key) & (part == int(key[1:]) % 2) for key in keys]
    for one in wanted:
        assert sorted_rows(table.to_arrow(filter=one)) == sorted_rows(everything.filter(one)), one
        left_out += all_files - len(table.file_slices(filter=one))
    return left_out


@given(
    data=st.data(),
    kind=st.sampled_from(list(KINDS)),
    is_complex=st.booleans(),
    apart=st.booleans(),
    often=st.booleans(),
)
@examples(25, 3)
def test_filters_on_keys_find_what_a_full_read_finds(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    kind: str,
    is_complex: bool,
    apart: bool,
    often: bool,
) -> None:
    table = new_table(
        tmp_path_factory.mktemp("keys") / "table",
        PARTS_AND_CITIES,
        {
            **KINDS[kind],
            "hoodie.fs.fsync": "false",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "2",
            "hoodie.metadata.index.column.stats.enable": "false",
            "hoodie.metadata.compact.max.delta.commits": "1" if often else "50",
        },
        record_key=["id", "part"] if is_complex else "id",
        partition_by="city",
        ordering_field=None,
    )
    table.upsert(step_rows(Step("upsert", tuple((key, key % 3) for key in range(8))), 0))
    keys = [f"k{number}" for number in range(9)]
    assert check(table, keys) > 0
    kept: list[InstantTime] = []
    for ts, step in enumerate(data.draw(steps(kind)), 1):
        run(table, step, ts, kept, apart)
        # every third key after each step, another one first
        check(table, keys if IS_WHOLE else keys[ts % 3 :: 3])
        if ts == 2:
            kept.append(table.timeline.completed_writes()[-1].requested_time)
            table.savepoint(kept[-1])
