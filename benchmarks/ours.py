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

FOOTERS = "parquet footers, bloom filters of the keys"


class Ours:
    """Tables of the native format.

    ``engine``: ``spark`` or ``local``. ``metadata``: whether the metadata table is kept, with the
    ranges of columns. Most others keep nothing like it; ``metadata.py`` measures what it adds.
    """

    slow = False
    upserts = True
    loads = True

    def __init__(self, engine: str, *, metadata: bool = False) -> None:
        self.name = f"hudi-core-{engine}" + ("-metadata" if metadata else "")
        self.traits = Traits(
            layout="a folder per city, 5 meta columns",
            index="simple: the keys of the files of the batch's cities",
            ordering="yes",
            codec="zstd level 1",
            statistics=f"{FOOTERS}; {'metadata table' if metadata else 'no metadata table'}",
            fsync="data and metadata",
        )
        self._options = {"hoodie.metadata.enable": str(metadata).lower()}
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
            options=self._options,
        )
        created.bulk_insert(self._read(rows))

    def upsert(self, rows: Batch, table: Path) -> None:
        hudi.Table.open(str(table), self._options).upsert(self._read(rows))

    def files(self, table: Path) -> Sequence[Path]:
        return slices(table)


def slices(table: Path) -> Sequence[Path]:
    """Return the newest files of a Hudi table, as hudi-rs finds them."""
    found = HudiTableBuilder.from_base_uri(str(table)).build().get_file_slices()
    return [table / one.base_file_relative_path() for one in found]
