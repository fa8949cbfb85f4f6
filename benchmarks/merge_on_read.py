"""Measure reads of file slices with logs, beside the same rows in base files alone, and hudi-rs.

``make bench-logs`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import fastavro
import hudi as hudi_rs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from metadata_timing import measure
from pyroaring import BitMap64
from run_of_cases import HERE, Compared, Section, main
from targets import Target
from workload import ORDERING, Source, make_base

import hudi_core as hudi
from hudi_core.avro.datum import encode_datum
from hudi_core.log_format.block import (
    BlockType,
    HeaderKey,
    encode_avro_content,
    encode_log_block,
)
from hudi_core.log_format.data_block import avro_rows, parquet_rows
from hudi_core.model.files import LogFileName, join_path
from hudi_core.model.instant_time import InstantTime, instant_time_of, to_datetime
from hudi_core.schema.avro_types import record_to_avro
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties

ROWS: Final = 1_000_000
LOGGED: Final = 10
"""One row of so many has a newer version in a log."""
TWO: Final = ["rider", "fare"]
WHOLE, BY_COMMIT, BY_EVENT, BY_KEYS = "whole", "two-columns", "two-columns-ordered", "keys"
READS: Final = (WHOLE, BY_COMMIT, BY_EVENT, BY_KEYS)
ONE_SLICE, BLOCK, MEMORY = "one-slice", "avro-block", "memory"
CASES: Final = (*READS, ONE_SLICE, BLOCK, MEMORY)
LOGS, BASES, HUDI_RS = "hudi-core", "base files alone", "hudi-rs"
AVRO, PARQUET = "Avro", "Parquet"
TARGETS: Final = (
    *(
        Target(case, LOGS, BASES, allowed)
        for case, allowed in (
            (WHOLE, 1.4),
            (BY_COMMIT, 1.5),
            (BY_EVENT, 2.7),
            (BY_KEYS, 3.0),
            (ONE_SLICE, 1.2),
        )
    ),
    *(Target(case, LOGS, HUDI_RS, 1.0) for case in READS),
    Target(BLOCK, AVRO, PARQUET, 6.0),
)
SLICES: Final = 100
BLOCK_ROWS: Final = 100_000
GROUP_ROWS: Final = 50_000
"""Rows of a row group where memory is measured."""


@dataclass
class Found(Compared):
    """A finished run.

    ``memory``: rows of the table of the memory that reads take.
    """

    measures = ("ratio", "work")
    memory: list[list[str]] = field(default_factory=list)

    def circumstances(self) -> str:
        return self.text(("hudi-core", "hudi", "pyarrow"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """The targets of the cases that were run, with the ratios by the clock and of work."""
        clock = {(one.case, one.variant): one.median for one in self.timings}
        work = {(one.case, one.variant): one.median_work for one in self.timings}
        run = {case for case, _ in clock}
        return [(one, one.ratio(clock), one.ratio(work)) for one in TARGETS if one.case in run]

    def tables(self) -> list[Section]:
        return [*super().tables(), *([(MEMORY, self.memory)] if self.memory else [])]


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, each on a table of its own and on one of the same rows without logs."""
    found = Found(scale)
    rows = make_base(folder / "rows", Source("base", max(2000, round(ROWS * scale)), 2)).read()
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        if case == BLOCK:
            found.timings += measure(case, *_of_blocks(rows, scale, repeats))
        elif case == MEMORY:
            found.memory = _memory(folder, rows)
        elif case == ONE_SLICE:
            numbers = pa.array((np.arange(rows.num_rows) % SLICES).astype(str))
            parted = rows.append_column("part", numbers)
            paths, _ = _pair(folder, case, parted, partition_by="part")
            wanted = pc.field("part") == "42"
            calls = {
                name: partial(_read, path, parted.column_names, wanted)
                for name, path in zip((LOGS, BASES), paths, strict=True)
            }
            expected = pc.sum(pc.equal(numbers, "42")).as_py()
            found.timings += measure(case, calls, repeats, expected)
        else:
            paths, names = _pair(folder, case, rows)
            calls = {
                LOGS: partial(_read, paths[0], names),
                BASES: partial(_read, paths[1], names),
                HUDI_RS: partial(_by_hudi_rs, paths[0], names),
            }
            found.timings += measure(case, calls, repeats, rows.num_rows)
    return found


def _pair(
    folder: Path, case: str, rows: pa.Table, *, partition_by: str | None = None
) -> tuple[list[Path], list[str]]:
    """Tables of the same rows, one with logs; and the columns to read."""
    paths = [folder / f"{case}-{name}" for name in ("logs", "bases")]
    tables = [
        _table(path, rows, is_ordered=case != BY_COMMIT, partition_by=partition_by)
        for path in paths
    ]
    tables[1].upsert(_put_logs(tables[0], with_positions=case != BY_KEYS))
    return paths, TWO if case in (BY_COMMIT, BY_EVENT, BY_KEYS) else rows.column_names


def _of_blocks(
    rows: pa.Table, scale: float, repeats: int
) -> tuple[dict[str, Callable[[], int]], int, int]:
    """Calls that bring a block into Arrow, and what :func:`measure` needs besides."""
    count = max(1000, round(BLOCK_ROWS * scale))
    meta = [pa.array(map(f"{name}{{:012}}".format, range(count))) for name in META_COLUMNS]
    fields = [*(pa.field(name, pa.string()) for name in META_COLUMNS), *rows.schema]
    block = pa.table([*meta, *rows.slice(0, count).columns], pa.schema(fields))
    sink = pa.BufferOutputStream()
    pq.write_table(block, sink, compression="zstd")
    parquet = sink.getvalue()
    schema = record_to_avro("t_record", "hoodie.t", list(block.schema))
    parsed = fastavro.parse_schema(schema)
    assert isinstance(parsed, dict)
    avro = encode_avro_content([encode_datum(row, parsed) for row in block.to_pylist()])
    text = json.dumps(schema)
    calls = {
        PARQUET: lambda: int(parquet_rows(parquet, None, "block").num_rows),
        AVRO: lambda: int(avro_rows(avro, text, None, "block").num_rows),
    }
    return calls, repeats, count


def _memory(folder: Path, rows: pa.Table) -> list[list[str]]:
    """What reads in batches take, each in a process of its own."""
    table = [["table", "limit of logs", "MB read", "MB of a row group", "MB of logs", "growth, MB"]]
    for name, is_ordered, with_positions in (
        ("commit time, positions", False, True),
        ("event time, positions", True, True),
        ("event time, keys", True, False),
    ):
        path = folder / f"memory-{name.replace(' ', '-')}"
        made = _table(path, rows, is_ordered=is_ordered)
        decoded = 0
        for one in made.file_slices():
            assert one.base_file is not None
            file = Path(made.path, one.base_file.path)
            stored = pq.read_table(file)
            decoded = max(decoded, stored.nbytes)
            pq.write_table(stored, file, GROUP_ROWS, compression="zstd", store_schema=False)
        _put_logs(made, with_positions=with_positions)
        logs = decoded // LOGGED
        group = decoded * GROUP_ROWS // stored.num_rows
        for limit in ("", str(logs // 4)):
            answer = subprocess.run(
                [sys.executable, HERE / "read_probe.py", path, limit],
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            sizes = (decoded, group, logs, int(answer.stdout))
            table.append([name, limit or "1 GB", *(f"{size / 2**20:.0f}" for size in sizes)])
    return table


def _read(path: Path, names: list[str], wanted: pc.Expression | None = None) -> int:
    return int(hudi.Table.open(path).to_arrow(names, wanted).num_rows)


def _by_hudi_rs(path: Path, names: list[str]) -> int:
    table = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build()
    options = hudi_rs.HudiReadOptions().with_projection(names)
    return sum(batch.num_rows for batch in table.read(options))


def _table(
    path: Path, rows: pa.Table, *, is_ordered: bool, partition_by: str | None = None
) -> hudi.Table:
    table = hudi.Table.create(
        path,
        rows.schema,
        record_key="id",
        partition_by=partition_by,
        ordering_field=ORDERING if is_ordered else None,
        options={"hoodie.metadata.enable": "false"},
    )
    table.bulk_insert(rows)
    return table


def _put_logs(table: hudi.Table, *, with_positions: bool) -> pa.Table:
    """Put a log file beside each base file; return the rows that are in them."""
    update_properties(PosixStorage(table.path), {"hoodie.table.type": "MERGE_ON_READ"})
    changed = []
    first = table.timeline.completed_writes()[-1]
    time = instant_time_of(to_datetime(first.requested_time) + timedelta(minutes=1))
    for one in table.file_slices():
        assert one.base_file is not None
        stored = pq.read_table(Path(table.path, one.base_file.path))
        at = np.arange(0, stored.num_rows, LOGGED)
        rows = stored.take(pa.array(at))
        place = rows.schema.get_field_index(ORDERING)
        field = rows.schema.field(place)
        later = pa.array(rows.column(place).cast(pa.int64()).to_numpy() + 10**9)
        # without what the footer of a base file says of its own rows
        rows = rows.set_column(place, field, later.cast(field.type)).replace_schema_metadata()
        header = {HeaderKey.INSTANT_TIME: str(time)}
        if with_positions:
            positions = base64.b64encode(BitMap64(at.tolist()).serialize()).decode()
            header[HeaderKey.RECORD_POSITIONS] = positions
            header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = one.base_instant
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        name = LogFileName(one.file_id, time, 1, "0-0-1")
        content = encode_log_block(BlockType.PARQUET, header, sink.getvalue().to_pybytes())
        Path(table.path, join_path(one.partition_path, str(name))).write_bytes(content)
        changed.append(rows)
    _complete(table, time)
    found = pa.concat_tables(changed)
    return found.drop_columns([one for one in found.column_names if one.startswith("_hoodie_")])


def _complete(table: hudi.Table, time: InstantTime) -> None:
    """Put the files of a deltacommit, whose log files readers then count."""
    folder = Path(table.path, ".hoodie/timeline")
    [done] = folder.glob("*_*.commit")
    end = instant_time_of(to_datetime(time) + timedelta(seconds=1))
    for name in (f"{time}.deltacommit.requested", f"{time}.deltacommit.inflight"):
        (folder / name).write_bytes(b"")
    (folder / f"{time}_{end}.deltacommit").write_bytes(done.read_bytes())


if __name__ == "__main__":
    sys.exit(main(__doc__, "merge-on-read", CASES, 7, run))
