"""deltalake (delta-rs): a Delta table without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from variant import Traits
from workload import KEY, ORDERING, PARTITION, Batch

_FILE_BYTES = 120 * 2**20
"""As large as this project's files."""


class Delta:
    """Write and merge of delta-rs, in this process."""

    name = "deltalake"
    slow = False
    loads = True
    upserts = True
    traits = Traits(
        layout="a folder per city",
        index="join of the batch with the files of its cities",
        ordering="only in big_files: polars removes duplicates, the merge compares",
        codec="zstd level 1",
        statistics="parquet footers, minimum and maximum in the log",
        fsync="none",
    )

    def load(self, rows: Batch, table: Path) -> None:
        write_deltalake(
            str(table),
            rows.read(),
            partition_by=[PARTITION],
            configuration={"delta.targetFileSize": str(_FILE_BYTES)},
            writer_properties=_properties(),
        )

    def upsert(self, rows: Batch, table: Path) -> None:
        source = rows.read()
        if rows.has_versions:
            source = _newest(source)
        merge = DeltaTable(str(table)).merge(
            source,
            predicate=f"t.{KEY} = s.{KEY} AND t.{PARTITION} = s.{PARTITION}",
            source_alias="s",
            target_alias="t",
            writer_properties=_properties(),
        )
        newer = f"s.{ORDERING} >= t.{ORDERING}" if rows.has_versions else None
        merge.when_matched_update_all(predicate=newer).when_not_matched_insert_all().execute()

    def files(self, table: Path) -> Sequence[Path]:
        uris = DeltaTable(str(table)).file_uris()
        return [Path(unquote(urlparse(uri).path) if "://" in uri else uri) for uri in uris]


def _newest(rows: pa.Table) -> pl.DataFrame:
    """Return the newest version of every key: a merge leaves that to its caller."""
    frame = pl.DataFrame(rows)
    return frame.sort(ORDERING, descending=True).unique(KEY, keep="first")


def _properties() -> Any:
    return WriterProperties(compression="ZSTD", compression_level=1)
