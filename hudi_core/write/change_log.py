"""Logs of changes, for change data capture queries of Apache Hudi.

A base file that takes the place of another one gets a log beside it, in one block: the operation
and the key of each changed row, or the rows before and after, as the table asks for. Files of new
groups need none, for all of their rows are new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa

from hudi_core.avro.datum import ParsedSchema, encode_datum
from hudi_core.config.kinds import ChangeLogging
from hudi_core.log_format.block import BlockType, HeaderKey, encode_avro_content, encode_log_block
from hudi_core.log_format.data_block import datums
from hudi_core.model.files import BaseFileName, LogFileName, PartitionPath, join_path
from hudi_core.rows.context import WriteContext
from hudi_core.rows.gathering import take
from hudi_core.rows.merging import Merged
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.file_output import mark

_TEXT: Final = {"default": None, "type": ["null", "string"], "doc": ""}


@dataclass(slots=True)
class ChangeLog:
    """The log beside one base file.

    ``sizes`` has bytes by path, and is filled by :meth:`write`.
    """

    context: WriteContext
    partition_path: PartitionPath
    file_name: str
    sizes: dict[str, int] = field(default_factory=dict)

    def write(self, merged: Merged, stored: pa.Table, written: pa.Table) -> None:
        """Write the changes of one file.

        ``stored`` are the rows of the file's last version; ``written`` has meta columns, and
        updates come before new rows.
        """
        updates = len(merged.updates)
        gone = np.setdiff1d(merged.removed, merged.replaced, assume_unique=True)
        changes = [
            ("d", take(stored, gone), None),
            ("u", take(stored, merged.replaced), written.slice(0, updates)),
            ("i", None, written.slice(updates)),
        ]
        table = self.context.table
        schema = _log_schema(table.change_logging, self.context.schema.to_avro(table.name))
        parsed = fastavro.parse_schema(schema)
        assert isinstance(parsed, dict)  # noqa: S101 - a dict parses to a dict
        records = [
            encode_datum(record, parsed)
            for operation, before, after in changes
            for record in self._records(parsed, operation, before, after)
        ]
        header = {
            HeaderKey.INSTANT_TIME: self.context.instant,
            HeaderKey.SCHEMA: json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
        }
        data = encode_log_block(BlockType.CDC, header, encode_avro_content(records))
        mark(self.context, self.partition_path, self.file_name, MarkerKind.APPEND)
        storage = self.context.files.storage(fsync=self.context.write.fsync)
        storage.put_if_absent(self._path, data)
        self.sizes[self._path] = len(data)

    def _records(
        self, schema: ParsedSchema, operation: str, before: pa.Table | None, after: pa.Table | None
    ) -> Iterator[dict[str, Any]]:
        """Yield changes as the log holds them."""
        rows = after if before is None else before
        if rows is None or not rows.num_rows:
            return
        names = {field["name"] for field in schema["fields"]}
        images = [
            [None] * rows.num_rows if some is None or name not in names else datums(_data(some))
            for name, some in (("before", before), ("after", after))
        ]
        keys = rows.column(RECORD_KEY).cast(pa.string()).to_pylist()
        for key, was, now in zip(keys, *images, strict=True):
            whole = {"op": operation, "ts_ms": self.context.instant, "record_key": key}
            whole |= {"before": was, "after": now}
            yield {name: value for name, value in whole.items() if name in names}

    def discard(self) -> None:
        """Delete what is written."""
        if self.sizes:
            self.context.files.storage(fsync=False).delete(self._path)

    @property
    def _path(self) -> str:
        return join_path(self.partition_path, self.file_name)


@contextmanager
def open_change_log(
    context: WriteContext, partition_path: PartitionPath, base_file: BaseFileName
) -> Iterator[ChangeLog]:
    """Open the log of a base file's changes; an error deletes it."""
    name = LogFileName(base_file.file_id, context.instant, 1, base_file.write_token, is_cdc=True)
    log = ChangeLog(context, partition_path, str(name))
    try:
        yield log
    except BaseException:
        log.discard()
        raise


def _log_schema(mode: ChangeLogging, table_schema: str) -> dict[str, Any]:
    """The Avro schema of a log, as Hudi makes it."""
    if mode is ChangeLogging.OP_KEY_ONLY:
        texts = [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")]
        return {"type": "record", "name": "Record", "fields": texts}
    row = json.loads(table_schema)
    image = {"type": ["null", row], "doc": "", "default": None}
    fields: list[dict[str, Any]] = [{"name": "op", **_TEXT}]
    if mode is ChangeLogging.DATA_BEFORE:
        fields += [{"name": "record_key", **_TEXT}, {"name": "before", **image}]
    else:
        again = {**image, "type": ["null", _full_name(row)]}
        fields += [
            {"name": "ts_ms", **_TEXT},
            {"name": "before", **image},
            {"name": "after", **again},
        ]
    named = {"namespace": row["namespace"]} if row.get("namespace") else {}
    return {"type": "record", "name": "CDC", **named, "doc": "", "fields": fields}


def _full_name(row: Mapping[str, Any]) -> str:
    space = row.get("namespace")
    return f"{space}.{row['name']}" if space else str(row["name"])


def _data(rows: pa.Table) -> pa.Table:
    """Rows without meta columns."""
    return rows.select([name for name in rows.column_names if name not in META_COLUMNS])
