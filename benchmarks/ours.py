"""This project, on both engines; files are found by hudi-rs, which none of it uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import spark_peer
from hudi import HudiTableBuilder
from variant import Traits
from workload import KEY, ORDERING, PARTITION, Batch

import hudi_core as hudi

OPTIONS = {"hoodie.metadata.enable": "false"}
"""The others keep nothing like the metadata table; ``metadata.py`` measures what it adds."""


class Ours:
    """Tables of the native format.

    Parameters
    ----------
    engine
        ``spark`` or ``local``.
    """

    slow = False
    upserts = True
    loads = True
    traits = Traits(
        layout="a folder per city, 5 meta columns",
        index="simple: the keys of the files of the batch's cities",
        ordering="yes",
        codec="zstd level 1",
        statistics="parquet footers, bloom filters of the keys; no metadata table",
        fsync="data and metadata",
    )

    def __init__(self, engine: str) -> None:
        self.name = f"hudi-core-{engine}"
        self._read: Callable[[Batch], Any] = spark_peer.read if engine == "spark" else Batch.read

    def load(self, rows: Batch, table: Path) -> None:
        schema = pq.read_schema(rows.files[0])
        created = hudi.Table.create(
            str(table),
            schema,
            name="trips",
            record_key=KEY,
            partition_by=PARTITION,
            ordering_field=ORDERING,
            options=OPTIONS,
        )
        created.bulk_insert(self._read(rows))

    def upsert(self, rows: Batch, table: Path) -> None:
        hudi.Table.open(str(table), OPTIONS).upsert(self._read(rows))

    def files(self, table: Path) -> Sequence[Path]:
        slices = HudiTableBuilder.from_base_uri(str(table)).build().get_file_slices()
        return [table / one.base_file_relative_path() for one in slices]
