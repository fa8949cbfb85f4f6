"""Apache Hudi's own Spark runtime, in a process with the Spark that it is made for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ours import FOOTERS, slices
from spark_peer import CODEC
from variant import Traits
from workload import KEY, ORDERING, PARTITION, Batch, cores

# its session is that of the judges of the tests
sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.jvm.engines import HUDI, Engine

HudiSession = Engine
SESSION = {
    "spark.master": f"local[{cores()}]",
    "spark.driver.memory": "4g",
    # as the session of the other variants: two tasks a core
    "spark.sql.shuffle.partitions": str(2 * cores()),
    "spark.default.parallelism": str(2 * cores()),
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
}


def hudi_session(folder: Path) -> HudiSession:
    """Return the one session of all variants; it starts with the first call."""
    return Engine(HUDI, folder, more=SESSION, quick=False)


def peer_versions(session: HudiSession) -> dict[str, str]:
    """Versions that a session runs on, by name; empty where it never ran."""
    if not session.versions:
        return {}
    name, _, number = session.kind.version.rpartition("-")
    own = {f"its {name}": number for name, number in session.versions.items()}
    return {name: number, **own}


class HudiSpark:
    """Tables of Apache Hudi, by its defaults but for the codec.

    ``metadata``: whether the metadata table is kept.
    """

    slow = False
    upserts = True
    loads = True

    def __init__(self, engine: HudiSession, *, metadata: bool) -> None:
        self.name = "hudi-spark" + ("-metadata" if metadata else "")
        self.traits = Traits(
            layout="a folder per city, 5 meta columns",
            index="simple: the keys of the files of the batch's cities",
            ordering="yes",
            codec=CODEC,
            statistics=f"{FOOTERS}; {'metadata table' if metadata else 'no metadata table'}",
            fsync="none",
        )
        self._engine = engine
        self._options = {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.table.ordering.fields": ORDERING,
            "hoodie.metadata.enable": str(metadata).lower(),
            "hoodie.parquet.compression.codec": "zstd",
        }

    def load(self, rows: Batch, table: Path) -> None:
        self._write("bulk_insert", rows, table)

    def upsert(self, rows: Batch, table: Path) -> None:
        self._write("upsert", rows, table)

    def files(self, table: Path) -> Sequence[Path]:
        return slices(table)

    def _write(self, operation: str, rows: Batch, table: Path) -> None:
        options = {**self._options, "hoodie.datasource.write.operation": operation}
        self._engine.save(rows.folder, table, options)
