"""Tables whose data files lie below a storage path, on disk and on S3, and who else reads them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.model.files import BaseFileName, LogFileName
from hudi_core.model.instant import Instant

TRIPS = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("note", pa.string())]
)
STORES = ("disk", "s3")
OBJECT_STORE = {
    "hoodie.storage.strategy.class": "object_store",
    "hoodie.storage.strategy.hash.bits": "5",
}


@dataclass(frozen=True)
class Store:
    """Folders of tests, on disk or in buckets.

    ``kind``: ``disk`` or ``s3``. ``folder``: of a test on disk. ``s3``: the service of a test on
    S3.
    """

    kind: str
    folder: Path
    s3: Any = None

    @property
    def options(self) -> dict[str, str]:
        """How the store is reached."""
        return {"hoodie.fs.fsync": "false"} if self.s3 is None else dict(self.s3.given)

    def new(self, name: str = "store") -> str:
        """A folder, or bucket, of its own."""
        if self.s3 is None:
            return str(self.folder / f"{name}-{uuid.uuid4().hex[:6]}")
        return str(self.s3.new_root("")).rstrip("/")

    def files(self, root: str) -> list[str]:
        """Paths of everything below a folder, relative to it."""
        if self.s3 is None:
            place = Path(root)
            return sorted(str(one.relative_to(place)) for one in place.rglob("*") if one.is_file())
        bucket = root.removeprefix("s3://")
        return sorted(path.removeprefix(f"{bucket}/") for path in self.s3.paths(root))

    def put(self, root: str, path: str, data: bytes) -> None:
        """Store a file."""
        if self.s3 is None:
            place = Path(root, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            return
        with self.s3.filesystem.open_output_stream(f"{root[5:]}/{path}") as stream:
            stream.write(data)

    def get(self, root: str, path: str) -> bytes:
        """A file's bytes."""
        if self.s3 is None:
            return Path(root, path).read_bytes()
        with self.s3.filesystem.open_input_file(f"{root[5:]}/{path}") as stream:
            return bytes(stream.read())


@dataclass(frozen=True)
class Federated:
    """One table, and where its files are."""

    store: Store
    table: hudi.Table
    base: str
    root: str

    def data_files(self) -> list[str]:
        """Paths of data files below the storage path."""
        return [path for path in self.store.files(self.root) if is_data(path)]

    def require_placed(self) -> None:
        """All data files are below the storage path, in prefixes and the table's folders there."""
        wrong = [
            path
            for path in self.data_files()
            if not re.fullmatch(rf"[01][0-9a-f]/{self.table.config.name}/.+", path)
        ]
        assert not wrong
        assert not [path for path in self.store.files(self.base) if is_data(path)]

    def foreign_rows(self) -> list[dict[str, Any]] | None:
        """The rows as another reader of the format has them; ``None`` where there is none."""
        match self.table.format:
            case "iceberg":
                return ordered(self._by_pyiceberg())
            case "delta":
                return ordered(self._by_deltalake())
        return None

    def _by_pyiceberg(self) -> pa.Table:
        named = (re.fullmatch(r"metadata/v(\d+)\.\w+\.json", one) for one in self._metadata())
        newest = max((one for one in named if one), key=lambda one: int(one[1]))[0]
        how = {}
        if self.store.s3 is not None:
            given = self.store.s3.options
            how = {
                "s3.endpoint": self.store.s3.endpoint,
                "s3.access-key-id": given.s3_access_key.reveal(),
                "s3.secret-access-key": given.s3_secret_key.reveal(),
                "s3.region": "us-east-1",
                "s3.force-virtual-addressing": "false",
            }
        return StaticTable.from_metadata(f"{self.base}/{newest}", how).scan().to_arrow()

    def _metadata(self) -> list[str]:
        return [path for path in self.store.files(self.base) if path.startswith("metadata/")]

    def _by_deltalake(self) -> pa.Table:
        how = None
        if self.store.s3 is not None:
            how = self.store.s3.options.for_object_store()
        return DeltaTable(self.root, storage_options=how).to_pyarrow_table()


def is_data(path: str) -> bool:
    """Whether a path is that of a data file outside the tables' metadata."""
    name = path.rsplit("/", 1)[-1]
    in_data = not re.search(r"(^|/)\.hoodie/", path)
    return in_data and (BaseFileName.parse(name) or LogFileName.parse(name)) is not None


def trips(*made: tuple[str, str, int]) -> pa.Table:
    """Rows of id, city and time."""
    return pa.Table.from_pylist(
        [{"id": key, "city": city, "ts": ts, "note": f"{key}@{ts}"} for key, city, ts in made],
        TRIPS,
    )


def many(keys: range, ts: int) -> pa.Table:
    """Rows of some keys, over three partitions."""
    return trips(*((f"k{n:03d}", "abc"[n % 3], ts) for n in keys))


def placed_table(
    store: Store,
    table_format: str = "native",
    *,
    root: str | None = None,
    base: str | None = None,
    name: str = "trips",
    plain: bool = False,
    options: Mapping[str, str] | None = None,
) -> Federated:
    """A table below a storage path of its own; a plain one lies in its folder."""
    base = base or store.new("table")
    root = root or store.new("store")
    placed = {} if plain else {**OBJECT_STORE, "hoodie.storage.path": root}
    table = hudi.Table.create(
        base,
        TRIPS,
        name=name,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        format=table_format,
        options={**placed, **store.options, **(options or {})},
    )
    return Federated(store, table, base, root)


def ordered(found: pa.Table) -> list[dict[str, Any]]:
    """Rows without meta columns, by key."""
    return sorted(found.select(TRIPS.names).to_pylist(), key=lambda row: str(row["id"]))


def seen(base: str) -> list[tuple[str, int]]:
    """Keys and times of the rows that a table has."""
    found = hudi.Table.open(base).to_arrow().to_pylist()
    return sorted((row["id"], row["ts"]) for row in found)


def take_back(base: str, instants: Sequence[Instant]) -> None:
    """Take writes of another engine back, as the errors advise that they lead to."""
    for instant in reversed(instants):
        hudi.Table.open(base).rollback(instant.requested_time)
    hudi.Table.open(base).repair_metadata()


def states(table: hudi.Table, write: Any) -> Iterator[str]:
    """Do one of each write; yields what was done after each.

    ``write``: turns Arrow rows into what the table's engine takes.
    """
    table.insert(write(many(range(30), 1)))
    yield "insert"
    table.upsert(write(many(range(20, 40), 2)))
    yield "upsert"
    table.delete(write(many(range(6), 3)))
    yield "delete"
    table.bulk_insert(write(many(range(40, 50), 4)))
    yield "bulk insert"
    table.insert_overwrite(write(trips(("k001", "b", 5), ("n1", "b", 5))))
    yield "insert overwrite"
    table.delete_partitions(["c"])
    yield "delete partitions"
    table.insert(write(trips(("n2", "c", 6), ("n3", "d", 6))))
    yield "insert again"
