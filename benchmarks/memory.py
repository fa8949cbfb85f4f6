"""Memory: is what a task takes bounded by one file group and its rows, however many groups?

A partition of one file group and a partition of many groups of the same size get an upsert of the
same share of their rows, on the LocalEngine with one task at a time. Each measurement is a process
of its own, which upserts a tiny table, reads the batch, and then counts how far the upsert lets it
grow. The peak is the kernel's own (``VmHWM``), not a sample; the process has no children.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from ours import Ours
from variant import restore, verify
from workload import KEY, ORDERING, PARTITION, Batch, Change, Source, make_base, make_upsert

import hudi_core as hudi

GROUPS = (1, 8)
_SHARE = 0.01
_GROUP_ROWS = 250_000
"""Rows of a file group at most: about 25 MB in a file, and 95 MB decoded."""
_SMALL_ROWS = 1000
"""Rows of the table that each process upserts before."""


@dataclass
class MemoryResult:
    """The memory of one upsert; a list has one number for each process.

    ``groups``: how many file groups the partition has. ``group_rows``: rows of each of them.
    ``group_bytes``, ``file_bytes``: one file group, decoded to Arrow, and its file.
    ``batch_bytes``: the rows of the batch in Arrow, which are there before the upsert begins.
    ``before``, ``peak``: resident bytes before the upsert, and the most during it.
    """

    groups: int
    group_rows: int
    group_bytes: int
    file_bytes: int
    batch_bytes: int = 0
    before: list[int] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)

    @property
    def variant(self) -> str:
        return f"{self.groups} group" + ("s" if self.groups > 1 else "")

    @property
    def growth(self) -> float:
        """The median of what the upsert added to the process, in bytes."""
        return statistics.median(p - b for p, b in zip(self.peak, self.before, strict=True))


def measure_memory(folder: Path, rows: int, repeats: int, groups: int) -> MemoryResult:
    """Measure upserts of a table of one partition with so many file groups.

    ``folder``: scratch space; must not exist. ``rows``: rows of the run; the groups are smaller
    than usual where it has few. ``repeats``: how many processes; one more is made before them and
    discarded.
    """
    size = min(_GROUP_ROWS, rows)
    source = Source("memory", size * groups, cities=1)
    ours = Ours("local")
    pristine, table = folder / "pristine", folder / "table"
    batch = _prepare(folder / "input", pristine, source, groups)
    tiny, small = folder / "tiny", folder / "small"
    tiny_batch = _prepare(folder / "tiny-input", tiny, Source("tiny", _SMALL_ROWS, cities=1), 1)
    files = ours.files(pristine)
    if len(files) != groups:
        raise AssertionError(f"the table has {len(files)} file groups, not {groups}")
    one = files[0]
    result = MemoryResult(
        groups,
        size,
        pq.read_table(one).nbytes,
        one.stat().st_size,
    )
    for number in range(repeats + 1):
        restore(pristine, table)
        restore(tiny, small)
        answer = _probe(small, tiny_batch.folder, table, batch.folder)
        verify(ours, table, source.rows, changed=batch.kept)
        if number:
            result.batch_bytes = answer["batch"]
            result.before.append(answer["before"])
            result.peak.append(answer["peak"])
    shutil.rmtree(folder)
    return result


def _prepare(folder: Path, table: Path, source: Source, groups: int) -> Batch:
    """Load a table, its rows in so many file groups, and return a batch that changes some."""
    base = make_base(folder / "base", source)
    created = hudi.Table.create(
        str(table),
        pq.read_schema(base.files[0]),
        name="trips",
        record_key=KEY,
        partition_by=PARTITION,
        ordering_field=ORDERING,
    )
    rows = base.read()
    size = rows.num_rows // groups
    for group in range(groups):  # one bulk insert makes one file group
        created.bulk_insert(rows.slice(group * size, size), engine=hudi.LocalEngine(parallelism=1))
    return make_upsert(folder / "batch", source, Change(round(source.rows * _SHARE), inserts=0))


def _probe(*folders: Path) -> dict[str, int]:
    script = Path(__file__).with_name("memory_probe.py")
    done = subprocess.run(
        [sys.executable, script, *folders],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ,
    )
    answer: dict[str, int] = json.loads(done.stdout)
    return answer
