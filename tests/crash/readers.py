"""Tables as their formats' own readers see them; none of these readers is this project's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from hudi import HudiTableBuilder
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot, ancestors_of

from hudi_core.model.format import ACTION_KEY, COMPLETION_TIME_KEY, INSTANT_KEY, WATERMARK_KEY
from hudi_core.model.instant_time import instant_time_of
from tests.crash.place import Place, place_of

COLUMNS = ("id", "part", "ts")
TAKEN_KEY = "hudi.step-of"
_VERSION = re.compile(r"metadata/v[0-9]+\.metadata\.json")
_WRITES = ("commit", "deltacommit", "replacecommit")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = tuple[str, str, int]


class Recorded(NamedTuple):
    """An instant as a format records it."""

    requested: str
    action: str
    completed: str
    version: str


class NamedFile(NamedTuple):
    """A data file as a format names it: its path or URI, bytes and rows."""

    path: str
    size: int
    rows: int


class ForeignReader(Protocol):
    """What is asked of the reader of a format."""

    def rows(self) -> list[Row]:
        """Return the rows as of now."""
        ...

    def by_path(self) -> list[Row]:
        """Return the rows that a reader sees which is given the table's path and nothing else."""
        ...

    def rows_at(self, version: str) -> list[Row]:
        """Return the rows of a version that was recorded."""
        ...

    def instants(self) -> Sequence[Recorded]:
        """Return the instants that changed rows, the oldest first."""
        ...

    def states(self) -> Sequence[Recorded]:
        """Return the instants whose rows can be read, those of savepoints with them."""
        ...

    def other_instants(self) -> Sequence[Recorded]:
        """Return the other instants that are recorded."""
        ...

    def watermark(self) -> str | None:
        """Return the time up to which every instant is complete that is not recorded."""
        ...

    def columns(self) -> Sequence[str]:
        """Return the names of all columns as of now."""
        ...

    def files(self) -> Iterator[NamedFile]:
        """Yield the files of every version that can be read."""
        ...


def foreign_reader(where: Path | Place, format_name: str) -> ForeignReader | None:
    """Return the reader of a format; ``None`` for Hudi's own, which has no second step."""
    readers: dict[str, type[IcebergReader | DeltaReader]] = {
        "iceberg": IcebergReader,
        "delta": DeltaReader,
    }
    return readers[format_name](place_of(where)) if format_name in readers else None


def foreign_readers(where: Path | Place, format_names: str) -> dict[str, ForeignReader]:
    """Return the reader of each format of a table, in the order of the table."""
    found = {name: foreign_reader(where, name) for name in format_names.split(",")}
    return {name: reader for name, reader in found.items() if reader is not None}


def by_hudi_rs(where: Path | Place) -> list[Row]:
    """Return the rows that hudi-rs sees."""
    place = place_of(where)
    builder = HudiTableBuilder.from_base_uri(place.root).with_storage_options(dict(place.rust))
    return [row for batch in builder.build().read() for row in as_tuples(pa.table(batch))]


def read_by_hudi_rs(where: Path | Place) -> dict[str, list[Row]]:
    """Return the rows that hudi-rs sees, by its name; nothing where it cannot read the table."""
    place = place_of(where)
    return {"hudi-rs": by_hudi_rs(place)} if place.hudi_rs_reads else {}


def as_tuples(table: pa.Table) -> list[Row]:
    """Return rows as values that can be compared."""
    return list(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))


def disagreement(place: Place, file: NamedFile) -> str | None:
    """Return what is wrong with what a format says of a file; ``None`` if nothing is."""
    found = place.facts(file.path)
    if found is None:
        return f"{file.path} is named and not there"
    if found != (file.size, file.rows):
        return f"{file.path} has {found}; named are {file.size} bytes, {file.rows} rows"
    return None


class IcebergReader:
    """pyiceberg, without a catalog."""

    def __init__(self, place: Place) -> None:
        # the hint may be behind: a version is there once it has its name
        versions = filter(_VERSION.fullmatch, place.files())
        newest = max(versions, key=lambda one: int(one.split(".")[0].partition("/v")[2]))
        self._place = place
        self._table = StaticTable.from_metadata(f"{place.root}/{newest}", place.pyiceberg)

    def rows(self) -> list[Row]:
        return as_tuples(self._table.scan(selected_fields=COLUMNS).to_arrow())

    def by_path(self) -> list[Row]:
        table = StaticTable.from_metadata(self._place.root, self._place.pyiceberg)
        return as_tuples(table.scan(selected_fields=COLUMNS).to_arrow())

    def rows_at(self, version: str) -> list[Row]:
        scan = self._table.scan(snapshot_id=int(version), selected_fields=COLUMNS)
        return as_tuples(scan.to_arrow())

    def instants(self) -> Sequence[Recorded]:
        return [found for one in self._lineage() if (found := _of_snapshot(one)) is not None]

    def states(self) -> Sequence[Recorded]:
        saved = {ref.snapshot_id for ref in self._table.metadata.refs.values()}
        pinned = [one for one in self._table.metadata.snapshots if one.snapshot_id in saved]
        found = [one for one in map(_of_snapshot, pinned) if one is not None]
        return [*found, *self.instants()]

    def other_instants(self) -> Sequence[Recorded]:
        prefix = f"{INSTANT_KEY}."
        found = []
        for key, value in self._table.metadata.properties.items():
            if key.startswith(prefix):
                requested, _, action = key.removeprefix(prefix).partition(".")
                completed, _, version = value.partition(" ")
                found.append(Recorded(requested, action, completed, version))
        return found

    def watermark(self) -> str | None:
        return self._table.metadata.properties.get(WATERMARK_KEY)

    def columns(self) -> Sequence[str]:
        return [field.name for field in self._table.schema().fields]

    def files(self) -> Iterator[NamedFile]:
        seen = set()
        for snapshot in self._lineage():
            for task in self._table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
                file = task.file
                if file.file_path not in seen:
                    seen.add(file.file_path)
                    yield NamedFile(file.file_path, file.file_size_in_bytes, file.record_count)

    def _lineage(self) -> list[Snapshot]:
        metadata = self._table.metadata
        return list(ancestors_of(metadata.current_snapshot(), metadata))[::-1]


def _of_snapshot(snapshot: Snapshot) -> Recorded | None:
    said = snapshot.summary.additional_properties if snapshot.summary else {}
    if INSTANT_KEY not in said:
        return None
    return Recorded(
        said[INSTANT_KEY], said[ACTION_KEY], said[COMPLETION_TIME_KEY], str(snapshot.snapshot_id)
    )


class DeltaReader:
    """deltalake."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._table = self._open()

    def rows(self) -> list[Row]:
        return as_tuples(_by_kernel(self._table))

    def by_path(self) -> list[Row]:
        return self.rows()

    def rows_at(self, version: str) -> list[Row]:
        return as_tuples(_by_kernel(self._open(int(version))))

    def instants(self) -> Sequence[Recorded]:
        return [one for one in self._recorded() if one.action in _WRITES]

    def states(self) -> Sequence[Recorded]:
        return self.instants()

    def other_instants(self) -> Sequence[Recorded]:
        return [one for one in self._recorded() if one.action not in _WRITES]

    def watermark(self) -> str | None:
        millis = self._table.transaction_version(WATERMARK_KEY)
        return None if millis is None else instant_time_of(_EPOCH + timedelta(milliseconds=millis))

    def columns(self) -> Sequence[str]:
        return [field.name for field in self._table.schema().fields]

    def files(self) -> Iterator[NamedFile]:
        actions = pa.table(self._table.get_add_actions(flatten=True))
        for one in actions.to_pylist():
            where = f"{self._place.data_root}/{unquote(one['path'])}"
            yield NamedFile(where, one["size_bytes"], one["num_records"])

    def _open(self, version: int | None = None) -> DeltaTable:
        return DeltaTable(self._place.data_root, version, dict(self._place.rust))

    def _recorded(self) -> list[Recorded]:
        """Return the instants of the versions, without those that were taken back later."""
        found: list[Recorded] = []
        for info in self._table.history()[::-1]:
            taken = info.get(TAKEN_KEY) if _takes_back(info) else None
            if taken is not None:
                found = [one for one in found if one.requested not in taken.split(",")]
            elif info.get("hudi.step") == "delete-savepoint":
                saved = info[TAKEN_KEY], "savepoint"
                found = [one for one in found if (one.requested, one.action) != saved]
            elif INSTANT_KEY in info:
                found.append(
                    Recorded(
                        info[INSTANT_KEY],
                        info[ACTION_KEY],
                        info[COMPLETION_TIME_KEY],
                        str(info["version"]),
                    )
                )
        return found


def _by_kernel(table: DeltaTable) -> pa.Table:
    """The rows, without those that deletion vectors take out."""
    query = QueryBuilder().register("t", table)
    return pa.table(query.execute(f"select {', '.join(COLUMNS)} from t").read_all())


def _takes_back(info: Mapping[str, Any]) -> bool:
    return info.get("hudi.step") in ("revert", "fence")
