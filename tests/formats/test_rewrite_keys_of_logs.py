"""Record keys taken out of base files and logs of a table, and put back into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import TableServiceError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.log_format.block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_log_block,
    read_log_blocks,
)
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.services.opening import open_table
from hudi_core.services.rewrite_keys import KeyStorage
from tests.formats.dying_writers import death_in
from tests.formats.service_tables import bag, by_hudi_rs
from tests.formats.virtual_tables import KEY_COLUMNS, equal, made
from tests.tables import base_files

LOGGED = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.clustering.plan.strategy.max.num.groups": "2",
}
CITIES = ("rome", "oslo", "new york")


def numbered(numbers: Sequence[int], ts: int) -> pa.Table:
    found = [
        {"id": f"k{one:03}", "number": one, "city": CITIES[one % 3], "day": 0, "ts": ts}
        for one in numbers
    ]
    return pa.Table.from_pylist(found, KEY_COLUMNS)


def changed(table: hudi.Table) -> hudi.Table:
    """A table of eight rows, of which logs changed some, and deleted one more."""
    table.insert(numbered(range(9), 0))
    table.upsert(numbered([0, 3, 4], 1))
    table.delete(numbered([8], 2))
    table.upsert(numbered([1], 3))
    return table


@pytest.fixture(params=[("8", "parquet", "true"), ("9", "avro", "false")])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[hudi.Table, hudi.Table]:
    """Two tables of the same rows; one keeps its keys as they are."""
    version, block, positions = request.param
    options = {
        "hoodie.write.table.version": version,
        "hoodie.logfile.data.block.format": block,
        "hoodie.write.record.positions": positions,
    }
    one, other = (made(tmp_path / name, None, **LOGGED, **options) for name in ("one", "other"))
    return changed(one), changed(other)


def held(table: hudi.Table) -> set[bool]:
    """Whether rows of present files, and of their logs, hold a key."""
    now = hudi.Table.open(table.path)
    found = {RECORD_KEY in pq.read_schema(path).names for path in base_files(now)}
    opened = open_table(table.path, {})
    stored = StoredSlices(opened.client, opened.timeline())
    for one in now.file_slices():
        for log in one.log_files:
            for part, _ in stored.written(log.status):
                found |= set(pc.is_valid(part.column(RECORD_KEY)).to_pylist())
    return found


def logs(table: hudi.Table) -> int:
    return sum(len(one.log_files) for one in hudi.Table.open(table.path).file_slices())


def sound(table: hudi.Table, other: hudi.Table) -> None:
    equal(table, other)
    assert hudi.Table.open(table.path).validate(keys=True).differences == ()
    wanted = bag(other.to_arrow(), KEY_COLUMNS.names)
    assert bag(by_hudi_rs(Path(table.path)), KEY_COLUMNS.names) == wanted


def test_there_and_back(pair: tuple[hudi.Table, hudi.Table]) -> None:
    table, other = pair
    times = [one.requested_time for one in table.timeline.completed_writes()]
    past = [bag(table.to_arrow(as_of=time), KEY_COLUMNS.names) for time in times]
    plan = table.rewrite_keys(dry_run=True)
    assert (plan.before, plan.after) == (KeyStorage.STORED, KeyStorage.VIRTUAL)
    # rows of base files and of logs
    assert (plan.rows, plan.files) == (9 + 4, len(base_files(table)))
    assert plan.size == sum(one.total_size for one in table.file_slices())
    assert held(table) == {True}
    done = table.rewrite_keys()
    assert (done.rows, done.files, done.size) == (plan.rows, plan.files, plan.size)
    assert (held(table), logs(table)) == ({False}, 0)
    sound(table, other)
    assert not table.rewrite_keys().is_needed
    for one in pair:
        one.upsert(numbered([2, 5, 9], 4))
        one.delete(numbered([6], 4))
    assert (held(table), logs(table) > 0) == ({False}, True)
    sound(table, other)
    between = [one.requested_time for one in table.timeline.completed_writes()[-2:]]
    states = [bag(table.to_arrow(as_of=time), KEY_COLUMNS.names) for time in between]
    back = table.rewrite_keys(materialise=True)
    assert back.files == len(base_files(table))
    assert (held(table), logs(table)) == ({True}, 0)
    found = table.to_arrow([RECORD_KEY]).column(0).to_pylist()
    assert sorted(found) == sorted(other.to_arrow([RECORD_KEY]).column(0).to_pylist())
    sound(table, other)
    for one in pair:
        one.upsert(numbered([2, 7], 5))
    sound(table, other)
    assert [bag(table.to_arrow(as_of=time), KEY_COLUMNS.names) for time in times] == past
    # states of logs without keys, in a table that stores them
    assert [bag(table.to_arrow(as_of=time), KEY_COLUMNS.names) for time in between] == states


def test_old_and_new_logs_live_in_one_slice(pair: tuple[hudi.Table, hudi.Table]) -> None:
    table, other = pair
    table.rewrite_keys(keep_files=True)
    assert held(table) == {True}
    for one in pair:
        one.upsert(numbered([0, 1, 2, 9], 4))
    assert held(table) == {True, False}
    assert set(table.to_arrow([RECORD_KEY]).column(0).to_pylist()) == {None}
    sound(table, other)
    table.rewrite_keys()
    assert held(table) == {False}
    sound(table, other)


@pytest.mark.parametrize("materialise", [False, True])
def test_logs_of_the_other_form_alone_are_rewritten(
    pair: tuple[hudi.Table, hudi.Table], materialise: bool
) -> None:
    """A slice whose base file is as it should be, and whose log is not."""
    table, other = pair
    if materialise:
        table.rewrite_keys()
    table.rewrite_keys(transition=True)
    for one in pair:
        one.upsert(numbered([0], 4))
    table.rewrite_keys(materialise=materialise)
    assert held(table) == {materialise}
    sound(table, other)


@pytest.mark.parametrize(
    "place",
    [
        "hudi_core.services.rewrite_keys.update_properties",
        "hudi_core.services.clustering.ClusteringService._rewrite",
        "hudi_core.txn.transaction.Transaction._complete",
    ],
)
@pytest.mark.parametrize("materialise", [False, True])
def test_a_run_that_died_is_run_again(
    pair: tuple[hudi.Table, hudi.Table], place: str, materialise: bool
) -> None:
    table, other = pair
    if materialise:
        table.rewrite_keys()
        for one in pair:
            one.upsert(numbered([0, 1, 2], 4))
    with death_in(place):
        table.rewrite_keys(materialise=materialise)
    again = hudi.Table.open(table.path)
    equal(again, other)
    for one in (again, other):
        one.upsert(numbered([3], 5))
    again.rewrite_keys(materialise=materialise)
    assert held(again) == {materialise}
    sound(again, other)


def test_keys_of_logs_that_columns_do_not_make_are_kept(tmp_path: Path) -> None:
    """As another engine may write them."""
    table = changed(made(tmp_path / "t", None, **LOGGED))
    table.rewrite_keys(transition=True)
    path = next(Path(table.path).rglob(".*.log.*"))
    blocks = read_log_blocks(path.read_bytes(), str(path))
    path.write_bytes(b"".join(map(with_other_keys, blocks)))
    differences = table.validate(keys=True, footers=False).differences
    [found] = [one for one in differences if "record keys" in one.subject]
    assert str(path.relative_to(table.path)) in found.subject
    assert "have others" in str(found.found)
    before = (tmp_path / "t/.hoodie/hoodie.properties").read_bytes()
    with pytest.raises(TableServiceError, match="another record key"):
        table.rewrite_keys()
    assert (tmp_path / "t/.hoodie/hoodie.properties").read_bytes() == before


def with_other_keys(block: LogBlock) -> bytes:
    content = bytes(block.content)
    if block.type == BlockType.PARQUET:
        found = pq.read_table(pa.BufferReader(content))
        place = found.schema.get_field_index(RECORD_KEY)
        others = pa.array([f"x{one}" for one in range(found.num_rows)], pa.string())
        sink = pa.BufferOutputStream()
        pq.write_table(found.set_column(place, found.schema.field(place), others), sink)
        content = sink.getvalue().to_pybytes()
    header = {HeaderKey(key): value for key, value in block.header.items()}
    return encode_log_block(BlockType(block.type), header, content)


@pytest.mark.parametrize("kind", ["cluster", "compact"])
def test_what_is_scheduled_is_named(pair: tuple[hudi.Table, hudi.Table], kind: str) -> None:
    table, other = pair
    options = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    planned = getattr(table, kind)(schedule_only=True, options=options)
    assert planned.instant
    with pytest.raises(TableServiceError, match=f"{planned.instant} .*is scheduled"):
        table.rewrite_keys()
    assert held(table) == {True}
    table.rollback(planned.instant)
    table.rewrite_keys()
    sound(table, other)
