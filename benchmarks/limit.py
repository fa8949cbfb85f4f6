"""The limit: reading and writing the touched files with pyarrow, no table and no merge."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from variant import Traits, Variant
from workload import KEY, LOW_CARDINALITY, Batch, cores


class Limit:
    """What a copy-on-write upsert does at the least, done plainly: decode each touched file once,
    encode it once. An upsert that leaves strings of few values encoded can come in below.

    ``of``: the variant whose table is rewritten.
    """

    name = "limit"
    slow = False
    loads = False
    upserts = True

    def __init__(self, of: Variant) -> None:
        self._of = of
        self._touched: dict[tuple[Path, Path], list[Path]] = {}

    @property
    def traits(self) -> Traits:
        return Traits(
            layout=f"the files of {self._of.name} that the batch touches",
            index="none: which files are touched was found out before",
            ordering="no",
            codec="zstd level 1",
            statistics="parquet footers",
            fsync="none",
        )

    def load(self, rows: Batch, table: Path) -> None:
        self._of.load(rows, table)

    def find_touched(self, rows: Batch, table: Path) -> None:
        """Find the files that hold a key of the batch; not measured."""
        keys = pa.concat_tables(pq.read_table(path, columns=[KEY]) for path in rows.files)
        wanted = keys.column(KEY)
        touched = []
        for path in self._of.files(table):
            stored = pq.ParquetFile(path).read([KEY]).column(KEY)
            if pc.any(pc.is_in(stored.cast(wanted.type), value_set=wanted)).as_py():
                touched.append(path)
        self._touched[rows.folder, table] = touched

    def upsert(self, rows: Batch, table: Path) -> None:
        scratch = table.with_name(table.name + ".rewritten")
        scratch.mkdir()
        touched = self._touched[rows.folder, table]
        # cores that have no file of their own help to decode: pyarrow does it column by column
        threads = len(touched) < cores()
        with ThreadPoolExecutor(cores()) as pool:
            jobs = [(path, scratch / f"{number}.parquet") for number, path in enumerate(touched)]
            list(pool.map(lambda job: _rewrite(job[0], job[1], threads), jobs))
        shutil.rmtree(scratch)

    def files(self, table: Path) -> Sequence[Path]:
        return self._of.files(table)


def _rewrite(source: Path, target: Path, threads: bool) -> None:
    rows = pq.ParquetFile(source).read(use_threads=threads)
    low = [name for name in rows.column_names if name in LOW_CARDINALITY or name in _CONSTANT]
    pq.write_table(
        rows,
        target,
        compression="zstd",
        compression_level=1,
        use_dictionary=low,
        store_schema=False,
    )


_CONSTANT = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name")
