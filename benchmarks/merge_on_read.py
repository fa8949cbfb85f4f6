"""Measure reads of file slices with logs, beside the same rows in base files alone, and hudi-rs.

``make bench-logs`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import hudi as hudi_rs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from metadata_timing import measure
from pyroaring import BitMap64
from run_of_cases import Compared, main
from targets import Target
from workload import ORDERING, Source, make_base

import hudi_core as hudi
from hudi_core.log_format.block import BlockType, HeaderKey, encode_log_block
from hudi_core.model.files import LogFileName, join_path
from hudi_core.model.instant_time import InstantTime, instant_time_of, to_datetime
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties

ROWS: Final = 1_000_000
LOGGED: Final = 10
"""One row of so many has a newer version in a log."""
TWO: Final = ["rider", "fare"]
WHOLE, BY_COMMIT, BY_EVENT, BY_KEYS = "whole", "two-columns", "two-columns-ordered", "keys"
CASES: Final = (WHOLE, BY_COMMIT, BY_EVENT, BY_KEYS)
LOGS, BASES, HUDI_RS = "hudi-core", "base files alone", "hudi-rs"
TARGETS: Final = (
    *(
        Target(case, LOGS, BASES, allowed)
        for case, allowed in ((WHOLE, 1.4), (BY_COMMIT, 1.5), (BY_EVENT, 2.7), (BY_KEYS, 3.0))
    ),
    *(Target(case, LOGS, HUDI_RS, 1.0) for case in CASES),
)


class Found(Compared):
    """A finished run."""

    measures = ("ratio", "work")

    def circumstances(self) -> str:
        return self.text(("hudi-core", "hudi", "pyarrow"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """The targets of the cases that were run, with the ratios by the clock and of work."""
        clock = {(one.case, one.variant): one.median for one in self.timings}
        work = {(one.case, one.variant): one.median_work for one in self.timings}
        run = {case for case, _ in clock}
        return [(one, one.ratio(clock), one.ratio(work)) for one in TARGETS if one.case in run]


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, each on a table of its own and on one of the same rows without logs."""
    found = Found(scale)
    rows = make_base(folder / "rows", Source("base", max(2000, round(ROWS * scale)), 2)).read()
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        paths = [folder / f"{case}-{name}" for name in ("logs", "bases")]
        tables = [_table(path, rows, is_ordered=case != BY_COMMIT) for path in paths]
        changed = _put_logs(tables[0], with_positions=case != BY_KEYS)
        tables[1].upsert(changed)
        names = rows.column_names if case == WHOLE else TWO
        calls: dict[str, Callable[[], int]] = {
            LOGS: partial(_read, paths[0], names),
            BASES: partial(_read, paths[1], names),
            HUDI_RS: partial(_by_hudi_rs, paths[0], names),
        }
        found.timings += measure(case, calls, repeats, rows.num_rows)
    return found


def _read(path: Path, names: list[str]) -> int:
    return int(hudi.Table.open(path).to_arrow(names).num_rows)


def _by_hudi_rs(path: Path, names: list[str]) -> int:
    table = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build()
    options = hudi_rs.HudiReadOptions().with_projection(names)
    return sum(batch.num_rows for batch in table.read(options))


def _table(path: Path, rows: pa.Table, *, is_ordered: bool) -> hudi.Table:
    table = hudi.Table.create(
        path,
        rows.schema,
        record_key="id",
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
