"""Other writers of a table's format: deltalake and pyiceberg, which know nothing of Hudi."""

from __future__ import annotations

import base64
import json
import re
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from iceberg_format.table import IcebergTable


class _Folder(NoopCatalog):
    """Commits to an Iceberg table in its own folder, as any catalog would."""

    def __init__(self, table: OpenTable) -> None:
        super().__init__("foreign")
        self._catalog = IcebergTable.open(table.client).catalog

    def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
        loaded = self._catalog.load()
        assert loaded is not None
        made = self._catalog.commit(loaded, requirements, updates)
        return type("Answer", (), {"metadata": made.metadata, "metadata_location": made.location})()


def iceberg(path: Path) -> Table:
    """The Iceberg table in a folder, as pyiceberg writes it."""
    found = StaticTable.from_metadata(str(path))
    (part,) = (one for one in open_table(str(path), {}).each() if one.host.name == "iceberg")
    found.catalog = _Folder(part)
    return found


def version(path: Path, table_format: str) -> str:
    """The format's own id of its present state."""
    if table_format == "delta":
        return str(DeltaTable(str(path)).version())
    return str(StaticTable.from_metadata(str(path)).metadata.current_snapshot_id)


def append(path: Path, table_format: str, rows: pa.Table) -> str:
    """Append rows; return the id of the state that it makes."""
    if table_format == "delta":
        write_deltalake(str(path), rows, mode="append", schema_mode="merge")
    else:
        iceberg(path).append(rows)
    return version(path, table_format)


def delete(path: Path, table_format: str, key: str) -> None:
    """Delete the row of a key."""
    if table_format == "delta":
        DeltaTable(str(path)).delete(f"id = '{key}'")
    else:
        iceberg(path).delete(f"id == '{key}'")


def delete_in_place(path: Path, table_format: str, part: str, *, by_value: bool = False) -> None:
    """Delete the first row of a data file without writing that again, as merge on read does.

    ``part``: a regular expression that the file's path has in it. ``by_value``: whether Iceberg is
    given the key instead of the position.
    """
    if table_format == "delta":
        _put_vector(path, part)
    else:
        put_delete_file(iceberg(path), path, part, by_value)


def _put_vector(path: Path, part: str) -> None:
    log = sorted((path / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for one in log for line in one.read_text().splitlines()]
    add = next(
        one["add"]
        for one in reversed(actions)
        if re.search(part, one.get("add", {}).get("path", ""))
    )
    # a bitmap of the 32-bit key 0, with the one position 0 in one container
    bitmap = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 0)
    whole = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    vector = {
        "storageType": "i",
        "pathOrInlineDv": _z85(whole + bytes(-len(whole) % 4)),
        "sizeInBytes": len(whole),
        "cardinality": 1,
    }
    stats = json.loads(add["stats"]) | {"tightBounds": False}
    remove = {key: add[key] for key in ("path", "partitionValues", "size")} | {
        "deletionTimestamp": add["modificationTime"],
        "dataChange": True,
        **({"deletionVector": add["deletionVector"]} if "deletionVector" in add else {}),
    }
    names = ["deletionVectors"]
    version = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": names,
        "writerFeatures": [*names, "appendOnly", "invariants"],
    }
    info = {"operation": "DELETE", "operationParameters": {}, "engineInfo": "Delta-Lake/3.2"}
    made: list[dict[str, Any]] = [
        {"commitInfo": info | {"timestamp": add["modificationTime"] + 1000}},
        {"protocol": version},
        {"add": add | {"deletionVector": vector, "stats": json.dumps(stats)}},
        {"remove": remove},  # behind the add, as the order says nothing
    ]
    target = path / f"_delta_log/{int(log[-1].stem) + 1:020d}.json"
    target.write_text("\n".join(map(json.dumps, made)))


def _z85(data: bytes) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    others = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    return base64.b85encode(data).decode().translate(str.maketrans(others, digits))


class _DeleteManifest(ManifestWriterV2):
    """pyiceberg writes manifests of data files alone."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def put_delete_file(table: Table, path: Path, part: str, by_value: bool = False) -> None:
    """Delete the first row of a data file of an Iceberg table, as :func:`delete_in_place`."""
    metadata, io = table.metadata, table.io
    assert isinstance(metadata, TableMetadataV2)
    parent = metadata.current_snapshot()
    assert parent is not None
    target = next(
        one.file for one in table.scan().plan_files() if re.search(part, one.file.file_path)
    )
    file = path / f"data/{uuid.uuid4()}-deletes.parquet"
    file.parent.mkdir(exist_ok=True)
    if by_value:
        field = metadata.schema().find_field("id")
        key = pq.read_table(target.file_path.removeprefix("file://"), columns=["id"])["id"][0]
        columns = [("id", pa.string(), field.field_id, key.as_py())]
    else:
        columns = [
            ("file_path", pa.string(), 2147483546, target.file_path),
            ("pos", pa.int64(), 2147483545, 0),
        ]
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for name, kind, number, _ in columns
    ]
    pq.write_table(pa.table([[one[-1]] for one in columns], schema=pa.schema(fields)), file)
    content = DataFileContent.EQUALITY_DELETES if by_value else DataFileContent.POSITION_DELETES
    # nothing but what the format requires: all statistics are optional
    made = DataFile.from_args(
        content=content,
        file_path=f"file://{file}",
        file_format=FileFormat.PARQUET,
        partition=target.partition,
        record_count=1,
        file_size_in_bytes=file.stat().st_size,
        equality_ids=[field.field_id] if by_value else None,
        _table_format_version=2,
    )
    made.spec_id = target.spec_id
    snapshot_id, number = uuid.uuid4().int >> 66, metadata.last_sequence_number + 1
    output = io.new_output(f"file://{path}/metadata/{uuid.uuid4()}-m0.avro")
    spec = metadata.specs()[target.spec_id]
    with _DeleteManifest(spec, metadata.schema(), output, snapshot_id, "null") as writer:
        writer.add(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=made
            )
        )
    listed = f"file://{path}/metadata/snap-{snapshot_id}.avro"
    with write_manifest_list(
        2, io.new_output(listed), snapshot_id, parent.snapshot_id, number, "null"
    ) as lists:
        lists.add_manifests([writer.to_manifest_file(), *parent.manifests(io)])
    assert parent.summary is not None
    counts = {"total-records": parent.summary["total-records"] or "0"}
    counts["total-equality-deletes" if by_value else "total-position-deletes"] = "1"
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": parent.snapshot_id,
            "sequence-number": number,
            "timestamp-ms": parent.timestamp_ms + 1,
            "manifest-list": listed,
            "summary": Summary(Operation.DELETE, **counts),
            "schema-id": metadata.current_schema_id,
        }
    )
    main = SetSnapshotRefUpdate.model_validate(
        {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    )
    table.catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), main))


def rewrite(path: Path, table_format: str) -> None:
    """Put all rows into other files, as a compaction does."""
    if table_format == "delta":
        DeltaTable(str(path)).optimize.compact()
    else:
        table = iceberg(path)
        table.overwrite(table.scan().to_arrow())


def states(path: Path, table_format: str) -> list[pa.Table]:
    """The rows of every state that the format keeps, the oldest first."""
    if table_format == "delta":
        newest = DeltaTable(str(path)).version()
        return [
            DeltaTable(str(path), version=number).to_pyarrow_table() for number in range(newest + 1)
        ]
    table = StaticTable.from_metadata(str(path))
    snapshots = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    return [table.scan(snapshot_id=one.snapshot_id).to_arrow() for one in snapshots]


Append = Callable[[Path, str, pa.Table], str]
