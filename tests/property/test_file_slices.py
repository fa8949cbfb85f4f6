"""Slices with logs that Hudi might write, read by us, by hudi-rs, and by a model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_core as hudi
from hudi_core.avro.wrappers import Wrapped
from hudi_core.log_format.block import NATURAL_ORDER, BlockType
from tests.foreign import by_hudi_rs
from tests.log_files import (
    NO_METADATA_TABLE,
    data_block,
    delete_block,
    later,
    merge_on_read,
    positions,
    put_log,
)
from tests.tables import new_table, rows

KEYS = [f"k{number}" for number in range(8)]
STORED = KEYS[:5]
FIELDS = [pa.field("id", pa.string()), pa.field("ts", pa.int64()), pa.field("w", pa.string())]
BASE_ORDER = 5
LIMITS = ["1", "100", "1000000"]
"""Bytes of log rows in memory: more are merged in shards on the disk."""
Values = tuple[int, str]


class Block(NamedTuple):
    """Rows (with their ordering values) or deletes of one block, and how they are written.

    Deletes without an ordering value always hold.
    """

    kind: BlockType
    of: dict[str, int | None]
    with_positions: bool

    @property
    def deletes(self) -> bool:
        return self.kind is BlockType.DELETE


def data_blocks(keys: Sequence[str]) -> st.SearchStrategy[Block]:
    order = st.integers(1, 9)
    kinds = st.sampled_from([BlockType.AVRO, BlockType.PARQUET])
    some = st.dictionaries(st.sampled_from(keys), order, min_size=1, max_size=5)
    return st.builds(Block, kinds, some, st.booleans())


def delete_blocks(keys: Sequence[str]) -> st.SearchStrategy[Block]:
    # in one block Hudi writes either kind of ordering values
    key = st.sampled_from(keys)
    never: st.SearchStrategy[dict[str, int | None]] = st.dictionaries(key, st.none(), min_size=1)
    ordered = st.dictionaries(key, st.integers(1, 9), min_size=1)
    some = never | ordered
    return st.builds(Block, st.just(BlockType.DELETE), some, st.booleans())


# where all blocks have positions rows are found by them
BLOCKS = st.one_of(
    *(st.lists(data_blocks(some) | delete_blocks(some), max_size=5) for some in (KEYS, STORED))
)


def encoded(block: Block, number: int, instant: str, base: str, is_ordered: bool) -> bytes:
    """A block; its rows say by ``w`` which block they are of."""
    keys = sorted(block.of)
    header = {}
    if block.with_positions and set(keys) <= set(STORED):
        header = positions([STORED.index(key) for key in keys], base)
    if block.deletes:
        found = {
            key: NATURAL_ORDER if order is None or not is_ordered else Wrapped("LongWrapper", order)
            for key, order in sorted(block.of.items())
        }
        return delete_block(instant, found, header)
    meta: dict[str, Any] = {
        "_hoodie_commit_time": instant,
        "_hoodie_commit_seqno": f"{instant}_0_0",
        "_hoodie_partition_path": "",
        "_hoodie_file_name": "f",
    }
    made = [
        {**meta, "_hoodie_record_key": key, "id": key, "ts": block.of[key], "w": f"w{number}"}
        for key in keys
    ]
    return data_block(instant, made, FIELDS, kind=block.kind, header=header)


def expected(blocks: Sequence[Block], is_ordered: bool) -> dict[str, Values]:
    """Logs are folded, then merged into the base file; Hudi's rules, row by row."""
    logs: dict[str, tuple[int | None, str | None]] = {}
    for number, block in enumerate(blocks):
        for key, order in block.of.items():
            known = logs.get(key)
            always = block.deletes and (order is None or not is_ordered)
            if known is not None and is_ordered and not always:
                assert order is not None
                if known == (None, None) and block.deletes:
                    continue
                if known[0] is not None and known[0] > order:
                    continue
            logs[key] = (None if always else order, None if block.deletes else f"w{number}")
    found = dict.fromkeys(STORED, (BASE_ORDER, "base"))
    for key, (order, value) in logs.items():
        if order is not None and is_ordered and key in found and order < BASE_ORDER:
            continue
        found.pop(key, None)
        if value is not None:
            assert order is not None
            found[key] = (order, value)
    return found


def shown(table: pa.Table) -> dict[str, Values]:
    found = {row["id"]: (row["ts"], row["w"]) for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


@pytest.mark.impure
@given(BLOCKS, st.booleans(), st.booleans(), st.sampled_from(LIMITS))
def test_rows_of_a_slice_with_logs(
    blocks: list[Block], is_ordered: bool, one_file: bool, limit: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ordering, schema = "ts" if is_ordered else None, pa.schema(FIELDS)
        table = new_table(f"{folder}/t", schema, NO_METADATA_TABLE, ordering_field=ordering)
        table.bulk_insert(rows(*STORED, ts=BASE_ORDER, w="base", schema=schema))
        table = merge_on_read(table)
        [into] = table.file_slices()
        assert into.base_file is not None
        content = b""
        for number, block in enumerate(blocks):
            instant = later(into.base_instant, 10_000 + (0 if one_file else 1000 * number))
            content += encoded(block, number, instant, into.base_instant, is_ordered)
            if not one_file or number + 1 == len(blocks):
                put_log(table, into, instant, content)
                content = b""
        found = hudi.Table.open(table.path, {"hoodie.memory.merge.max.size": limit})
        wanted = expected(blocks, is_ordered)
        assert shown(found.to_arrow()) == wanted
        assert shown(found.to_arrow(["w", "id", "ts"])) == wanted
        assert found.count() == len(wanted)
        by_value = found.to_arrow(filter=pc.field("w") == "base")
        assert shown(by_value) == {k: v for k, v in wanted.items() if v[1] == "base"}
        theirs = {row["id"]: (row["ts"], row["w"]) for row in by_hudi_rs(table.path)}
        assert theirs == wanted
