"""A REST catalog of the Iceberg project, in which Iceberg-Spark finds our tables by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.formats.iceberg_tables import OPTIONS, bag, without_meta
from tests.jvm.engines import Engine
from tests.jvm.prepare import FOLDER, REST_CATALOG
from tests.rest_catalog.server import rest_catalog

_PREFIX: Final = "hoodie.table.format.iceberg.catalog."


@dataclass(frozen=True)
class Lake:
    """A REST catalog, and the engine that knows it as ``lake``."""

    engine: Engine
    address: str

    def options(self, name: str) -> dict[str, str]:
        """Options that open a table of ours by its name."""
        given = {
            "type": "rest",
            "uri": self.address,
            "identifier": f"ns.{name}",
            "create-namespace": "true",
        }
        return {**OPTIONS, **{f"{_PREFIX}{key}": value for key, value in given.items()}}

    def rows(self, name: str, of: str = "") -> Counter[str]:
        """Rows of a table in the catalog."""
        return bag(without_meta(self.engine.query(f"select * from lake.ns.{name} {of}")))


@contextmanager
def rest_lake(engine: Engine, folder: Path) -> Iterator[Lake]:
    """Run a catalog that keeps its tables in a folder."""
    with rest_catalog(folder, FOLDER / REST_CATALOG.parent.name) as address:
        conf = {
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "rest",
            "spark.sql.catalog.lake.uri": address,
            "spark.sql.catalog.lake.cache-enabled": "false",
        }
        with engine.configured(conf):
            yield Lake(engine, address)
