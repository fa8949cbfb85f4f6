"""Tables to register in a Hive metastore, and what its clients see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi_conformance.hive_metastore import HiveMetastore as Service

import hudi_core as hudi
from hudi_core.connector import Connector
from hudi_core.read.connector.handles import TableName
from hudi_core.sync.result import SyncResult

HIVE = "hoodie.datasource.hive_sync."


META_TYPES = [
    (name, "string")
    for name in (
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    )
]


SCHEMA = pa.schema([("id", pa.int64()), ("Fare", pa.float32()), ("day", pa.string())])


@dataclass
class Lake:
    """A database of its own in the metastore of the run."""

    service: Service
    name: str

    @property
    def options(self) -> dict[str, str]:
        return {f"{HIVE}metastore.uris": self.service.uri, f"{HIVE}database": self.name}

    def sync(self, table: hudi.Table, /, *, dry_run: bool = False, **options: Any) -> SyncResult:
        given = {f"{HIVE}{name}": value for name, value in options.items()}
        return table.sync(options={**self.options, **given}, dry_run=dry_run)

    def entry(self, name: str) -> Any:
        with self.service.client() as client:
            return client.get_table(self.name, name)

    def partitions(self, name: str) -> dict[str, Any]:
        with self.service.client() as client:
            names = client.get_partition_names(self.name, name, -1)
            found = client.get_partitions_by_names(self.name, name, names) if names else []
        keys = [key.name for key in self.entry(name).partitionKeys]
        return {
            "/".join(f"{key}={value}" for key, value in zip(keys, one.values, strict=True)): one
            for one in found
        }

    def connector(self, uri: str | None = None) -> Connector:
        return Connector({"hive.metastore.uri": uri or self.service.uri})

    def ids(self, name: str, uri: str | None = None, **query: Any) -> list[int]:
        connector = self.connector(uri)
        with connector.scan(TableName(self.name, name), **query) as source:
            parts = [connector.read(split, ["id"]).read_all() for split in source]
        return sorted(value for part in parts for value in part["id"].to_pylist())


def new_table(path: Path, days: Sequence[str | None] = ("a", "b"), **options: Any) -> hudi.Table:
    table = hudi.Table.create(
        path / "trips",
        SCHEMA,
        record_key="id",
        partition_by="day",
        options={"hoodie.fs.fsync": False, **options},
    )
    table.bulk_insert(trips(range(len(days)), days))
    return table


def trips(ids: Sequence[int], days: Sequence[str | None]) -> pa.Table:
    columns = {"id": list(ids), "Fare": [1.5] * len(ids), "day": list(days)}
    return pa.table(columns, SCHEMA)


def types(columns: Sequence[Any]) -> list[tuple[str, str]]:
    return [(one.name, one.type) for one in columns]
