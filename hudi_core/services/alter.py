"""Schema changes without rows: a commit of nothing but the schema."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.config.write import WriteConfig
from hudi_core.errors import DataFileError, SchemaError, UnsupportedTableError
from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import BaseFile
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.result import CommitResult
from hudi_core.schema.alignment import stored_fields
from hudi_core.schema.arrow_types import field_id
from hudi_core.schema.avro_types import has_ids
from hudi_core.schema.evolution import SchemaChange, altered_schema
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.create import as_arrow_schema
from hudi_core.table_handle import OpenTable
from hudi_core.txn.begin import begin
from hudi_core.txn.schema_step import SchemaStep, require_supported
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.ending import commit_metadata, undone_on_failure
from hudi_core.write.input_schema import fixed_columns, unchanged


def schema_change(
    add_columns: Any = None,
    rename: Mapping[str, str] | None = None,
    drop: str | Sequence[str] | None = None,
    promote: Mapping[str, pa.DataType] | None = None,
) -> SchemaChange:
    """Return a change from what a user wrote."""
    added: tuple[pa.Field, ...] = ()
    if isinstance(add_columns, Mapping):
        added = tuple(_column(name, kind) for name, kind in add_columns.items())
    elif isinstance(add_columns, list | tuple):
        added = tuple(as_arrow_schema(_schema_of(add_columns)))
    elif add_columns is not None:
        added = tuple(as_arrow_schema(add_columns))
    dropped = (drop,) if isinstance(drop, str) else tuple(drop or ())
    promoted = {name: _column(name, kind).type for name, kind in (promote or {}).items()}
    return SchemaChange(added, dict(rename or {}), dropped, promoted)


def _column(name: str, kind: Any) -> pa.Field:
    try:
        return pa.field(name, kind)
    except (TypeError, ValueError) as error:
        raise SchemaError(
            f"Column {name!r} cannot have the type {kind!r}",
            "Give a type of pyarrow, such as pyarrow.int64(), or its name, such as 'int64'.",
        ) from error


def _schema_of(fields: Sequence[Any]) -> Any:
    try:
        return pa.schema(fields)
    except (TypeError, ValueError):
        return fields


def alter_table(
    table: OpenTable, lock: TableLock, config: WriteConfig, change: SchemaChange
) -> CommitResult:
    """Change the columns of a table.

    Files stay as they are. Readers of this project find the columns in them by field id; readers
    that go by names find null under a new name until the rows are written again.

    A column cannot be renamed or dropped where files of another writer carry no field ids.
    """
    started = time.monotonic()
    table.client.require_writable()
    before = unchanged(table)
    change = replace(change, widely=config.schema.widen_numbers)
    new = altered_schema(before.base, change, fixed_columns(table.client.config))
    step = SchemaStep(before.base, new, before.last_write)
    require_supported(table, step)
    if change.rename or change.drop:
        _require_ids(table)
    # another change of the columns is no repetition: it could not be made twice
    config = replace(config, extras=config.extras.without_idempotency())
    operation = WriteOperation.ALTER_SCHEMA
    transaction = begin(table, lock, config, table.client.config.write_action, operation)
    transaction.schema_step = step
    transaction.after_commit = InlineServices(config.services)
    with undone_on_failure(transaction):
        metadata = commit_metadata((), new, table.client.config.name, operation)
        committed = transaction.commit(metadata, ())
    transaction.timings["total"] = time.monotonic() - started
    return committed.result(operation, transaction.timings)


def _require_ids(table: OpenTable) -> None:
    """Refuse a table with files whose columns have no ids.

    Such columns can be found by name only.
    """
    for instant, file in _a_file_of_each_write(table):
        if not _carries_ids(table, instant, file):
            raise UnsupportedTableError(
                table.client.base_path,
                f"has data files without field ids, such as {file.path}, whose columns would be "
                "lost or come back under another name",
                "Write their rows again with this release (insert_overwrite_table), then change "
                "the columns.",
            )


def _a_file_of_each_write(table: OpenTable) -> Iterable[tuple[InstantTime, BaseFile]]:
    """Return one present file of each write.

    A write writes all its files alike.
    """
    found: dict[InstantTime, BaseFile] = {}
    for slice_ in table.views().view().latest_slices():
        if slice_.base_file is not None:
            found.setdefault(slice_.base_instant, slice_.base_file)
    return found.items()


def _carries_ids(table: OpenTable, written: InstantTime, file: BaseFile) -> bool:
    client = table.client
    instant = next(
        (each for each in client.timeline().completed_writes() if each.requested_time == written),
        None,
    )
    text = client.read_commit(instant).schema_json if instant is not None else None
    if text is not None:
        return has_ids(text)
    try:
        with client.files.open(file.path) as source:
            schema = pq.read_schema(source)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataFileError(client.base_path, f"{file.path}: {error}") from error
    return any(field_id(field) is not None for field in stored_fields(schema))
