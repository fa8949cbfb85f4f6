"""Rows of many bytes: columns of more than 2 GB, memory of a write, files of a fitting size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.rows.gathering import take
from hudi_core.rows.staging import normalised
from hudi_core.schema.table_schema import TableSchema
from tests.forked_commands import ForkedCommands
from tests.samples import IS_WHOLE
from tests.tables import new_table

MB = 1 << 20
BODY = pa.schema([("id", pa.string()), ("n", pa.int64()), ("body", pa.string())])


def test_positions_of_a_column_of_more_than_2_gb() -> None:
    # all chunks have one buffer, so that this takes no memory
    piece = pa.array(["a" * 4 * MB])
    column = pa.chunked_array([piece] * 600 + [pa.array(["b", "c"])])
    rows = pa.table({"n": np.arange(602), "body": column})
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        rows.take([0])
    for positions, kind in (
        ([601, 0, 600, 0], "i8"),
        ([600, 0, 1], "u8"),
        ([0, 600], "i8"),
        ([], "i8"),
    ):
        found = take(rows, np.array(positions, kind))
        assert found["n"].to_pylist() == positions
        firsts = pc.utf8_slice_codeunits(found["body"], 0, 1).to_pylist()
        assert firsts == [{600: "b", 601: "c"}.get(one, "a") for one in positions]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_values_behind_2_gb_of_others(kind: pa.DataType) -> None:
    far = (1 << 31) + 100
    data = np.zeros(far + 6, np.uint8)  # pages that nobody touches are not there
    data[far:] = np.frombuffer(b"onetwo", np.uint8)
    ends = pa.py_buffer(np.array([0, far, far + 3, far + 6], np.int64))
    large = pa.large_string() if kind == pa.string() else pa.large_binary()
    array = pa.Array.from_buffers(large, 3, [None, ends, pa.py_buffer(data)])
    batch = pa.record_batch([array.slice(1)], names=["body"])
    table = TableSchema.create(pa.schema([("body", kind)]))
    [found] = normalised(iter([batch]), table)
    assert found.column(0).type == kind
    assert found.column(0).cast(pa.string()).to_pylist() == ["one", "two"]


def test_heavy_rows_are_staged_in_several_batches() -> None:
    bodies = pa.array(["x" * 16 * MB] * 9, pa.large_string())
    table = TableSchema.create(pa.schema([("body", pa.string())]))
    found = list(normalised(iter([pa.record_batch([bodies], names=["body"])]), table))
    assert sum(one.num_rows for one in found) == 9
    assert max(one.nbytes for one in found) < 70 * MB


@pytest.mark.parametrize(
    ("options", "files"), [({}, 4), ({"hoodie.copyonwrite.record.size.estimate": "1024"}, 1)]
)
def test_a_first_write_sizes_files_by_its_rows(
    tmp_path: Path, options: dict[str, str], files: int
) -> None:
    noise = np.random.default_rng(1).integers(97, 123, (64, 64 << 10), np.uint8)
    rows = _rows(range(64), [bytes(one).decode() for one in noise])
    sizes = {"hoodie.parquet.max.file.size": "270000", "hoodie.fs.fsync": "false"}
    table = new_table(tmp_path / "t", BODY, sizes | options)
    table.insert(rows)
    assert len(table.file_slices()) == files
    assert table.count() == 64


WRITE = """
import numpy as np, pyarrow as pa
import hudi_core as hudi

noise = np.random.default_rng(1).integers(97, 123, (48, 1 << 20), np.uint8)
rows = pa.table({"id": [f"k{n:05}" for n in range(48)], "body": [bytes(n).decode() for n in noise]})
table = hudi.Table.create(
    "t", rows.schema, record_key="id", options={"hoodie.fs.fsync": "false"}
)
table.insert(rows)
print(pa.default_memory_pool().max_memory() - rows.nbytes)
"""


def test_a_write_takes_less_memory_than_its_rows(tmp_path: Path, commands: ForkedCommands) -> None:
    done = commands.run(WRITE, cwd=tmp_path, environment=os.environ)
    assert done.returncode == 0, done.stderr
    # a writer that put all values into one page would hold them several times
    assert int(done.stdout) < 32 * MB


COUNT = 560 if IS_WHOLE else 6
"""Of 4 MB each: more than 2 GB as a whole, in one file group."""


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_all_that_is_done_with_heavy_rows(tmp_path: Path, kind: str) -> None:
    sizes = {
        "hoodie.parquet.max.file.size": str(1 << 30),
        "hoodie.copyonwrite.record.size.estimate": "1024",
        "hoodie.compact.inline": "false",
        "hoodie.fs.fsync": "false",
    }
    table = new_table(tmp_path / "t", BODY, sizes, table_type=kind)
    table.insert(_heavy(range(COUNT), "a"))
    # in another order, most of them
    changed = range(COUNT - 1, 1, -1)
    table.upsert(_heavy(changed, "b"))
    expected = {one: "b" if one in changed else "a" for one in range(COUNT)}
    assert _firsts(table) == expected
    if kind == "MERGE_ON_READ":
        table.compact()
        assert _firsts(table) == expected
    table.cluster(sort_by=["n"])
    assert _firsts(table) == expected
    assert len(table.file_slices()) == 1


def _heavy(ids: range, letter: str) -> pa.Table:
    """Rows whose strings are in one piece, 4 MB each."""
    size = 4 * MB
    data = np.full(len(ids) * size, ord(letter), np.uint8)
    ends = pa.py_buffer(np.arange(len(ids) + 1, dtype=np.int64) * size)
    bodies = pa.Array.from_buffers(pa.large_string(), len(ids), [None, ends, pa.py_buffer(data)])
    return pa.table({"id": [f"k{one:05}" for one in ids], "n": list(ids), "body": bodies})


def _firsts(table: hudi.Table) -> dict[int, str]:
    """The first letter of each row, whose string is whole."""
    rows = table.to_arrow(columns=["n", "body"])
    assert set(pc.binary_length(rows["body"]).to_pylist()) == {4 * MB}
    firsts = pc.utf8_slice_codeunits(rows["body"], 0, 1).to_pylist()
    return dict(zip(rows["n"].to_pylist(), firsts, strict=True))


def _rows(ids: range, bodies: Sequence[str]) -> pa.Table:
    return pa.table([[f"k{one:05}" for one in ids], list(ids), bodies], schema=BODY)
