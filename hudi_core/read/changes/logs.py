"""Logs of changes as a source of changed rows.

A table with ``hoodie.table.cdc.enabled`` has them beside the base files that took the place of
others: :mod:`hudi_core.write.change_log` says what is in them. Hudi's own may be several files of
several blocks, and their rows may have meta columns, which are left out here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.avro import decode_datum, parse_writer_schema
from hudi_core.avro.columns import arrow_values
from hudi_core.errors import CorruptMetadataError, SchemaError
from hudi_core.log_format import BlockType, HeaderKey, decode_avro_content, find_log_blocks
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.alignment import align, counterparts
from hudi_core.schema.avro_types import record_from_avro
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import DataFiles

DELETED: Final = "d"
UPDATED: Final = "u"
INSERTED: Final = "i"
_OPERATION: Final = "op"
_KEY: Final = "record_key"
BEFORE: Final = "before"
AFTER: Final = "after"
_HAS: Final = {DELETED: {BEFORE}, UPDATED: {BEFORE, AFTER}, INSERTED: {AFTER}}
"""The images that a change has by its operation, in the order of a feed."""

Images: TypeAlias = Iterator[tuple[str, pa.Table | None, pa.Table | None]]
"""An operation, the rows before and the rows after, each where it has some; deletes first."""


@dataclass(frozen=True, slots=True)
class ChangeLogs:
    """Reads logs of changes, here or in tasks."""

    files: DataFiles
    columns: pa.Schema

    def read(
        self, logs: Sequence[FileStatus], time: InstantTime, *, whole: bool = True
    ) -> LoggedChanges:
        """Return the changes of one write in one file group.

        Without ``whole`` only which images there are is found out, not the changes.
        """
        found: list[_Block] = []
        for log in logs:
            path = self.files.uri(log.path)
            try:
                with self.files.open(log.path, log.size) as source:
                    found += _blocks_of(source, log.size, path, time, whole)
            except OSError as error:
                reason = f"{log.path}: {error}".split("\n", 1)[0]
                raise self.files.unreadable([log.path], reason) from error
        return LoggedChanges(tuple(found), self.columns)


@dataclass(frozen=True, slots=True)
class LoggedChanges:
    """What the logs of one write hold of one file group.

    Its methods raise ``CorruptMetadataError``, where a log is damaged.
    """

    blocks: tuple[_Block, ...]
    columns: pa.Schema

    def holds(self, *names: str) -> bool:
        """Whether each change has some images, :data:`BEFORE` or :data:`AFTER`."""
        return bool(self.blocks) and all(block.held.issuperset(names) for block in self.blocks)

    def is_current(self) -> bool:
        """Whether the images have the types that the table's columns have now."""
        return all(
            found is None or found.type.equals(field.type)
            for block in self.blocks
            for name in sorted(block.held)
            for field, found in zip(self.columns, block.stored(name, self.columns), strict=True)
        )

    def images(self) -> Images:
        """Yield the changes of logs that hold both images."""
        some = [(block, block.changes({BEFORE, AFTER})) for block in self.blocks]
        for operation, has in _HAS.items():
            before, after = (
                pa.concat_tables(
                    block.image(
                        [one for one in changes if one[_OPERATION] == operation], name, self.columns
                    )
                    for block, changes in some
                )
                if name in has
                else None
                for name in (BEFORE, AFTER)
            )
            yield operation, before, after

    def gone(self) -> pa.Table:
        """Return the rows before, of logs that hold these and record keys."""
        found = []
        for block in self.blocks:
            some = [one for one in block.changes({BEFORE}) if one[BEFORE] is not None]
            keys = block.array([one.get(_KEY) for one in some], pa.string())
            if keys.null_count:
                raise CorruptMetadataError(block.path, "a change has no record key")
            found.append(block.image(some, BEFORE, self.columns).append_column(RECORD_KEY, keys))
        return pa.concat_tables(found)


def _blocks_of(
    source: pa.NativeFile, size: int, path: str, time: InstantTime, whole: bool
) -> Iterator[_Block]:
    length = source.size()
    # one that ends between two blocks looks whole
    if length != size:
        raise CorruptMetadataError(path, f"it has {length} bytes, and its commit says {size}")

    def read(offset: int, count: int) -> bytes:
        source.seek(offset)
        return bytes(source.read(count))

    for place in find_log_blocks(read, length, path):
        schema = place.header.get(HeaderKey.SCHEMA)
        instant = place.header.get(HeaderKey.INSTANT_TIME)
        if place.type != BlockType.CDC or schema is None or instant != time:
            raise CorruptMetadataError(path, f"a block of it holds no changes of {time}")
        try:
            fields = {field.name: field for field in record_from_avro(schema)}
        except SchemaError as error:
            raise CorruptMetadataError(path, str(error)) from error
        content = read(place.offset, place.size) if whole else b""
        yield _Block(path, schema, fields, content)


@dataclass(frozen=True, slots=True)
class _Block:
    """The Avro schema of changes, their fields by name, and their bytes."""

    path: str
    schema: str
    fields: Mapping[str, pa.Field]
    content: bytes

    @property
    def held(self) -> frozenset[str]:
        """Names of the images that it holds."""
        names = (name for name in (BEFORE, AFTER) if name in self.fields)
        return frozenset(name for name in names if pt.is_struct(self.fields[name].type))

    def changes(self, needed: set[str]) -> list[dict[str, Any]]:
        """Return its changes, each with the needed images."""
        parsed = parse_writer_schema(self.schema, self.path).parsed
        found = [
            decode_datum(datum, parsed, self.path)
            for datum in decode_avro_content(self.content, self.path)
        ]
        held = self.held
        for change in found:
            operation = change.get(_OPERATION)
            has = _HAS.get(operation) if isinstance(operation, str) else None
            images = {name for name in held if change[name] is not None}
            if has is None or not needed <= held or images != held & has:
                raise CorruptMetadataError(self.path, "a change lacks rows of its operation")
        return found

    def stored(self, name: str, columns: pa.Schema) -> list[pa.Field | None]:
        """The fields of an image for columns; ``None`` where it lacks one."""
        return counterparts(self.fields[name].type, columns)

    def image(self, changes: Sequence[dict[str, Any]], name: str, columns: pa.Schema) -> pa.Table:
        """One image of changes, in columns of the table."""
        stored = [field for field in self.stored(name, columns) if field is not None]
        rows = self.array([one[name] for one in changes], pa.struct(stored))
        try:
            return align(pa.Table.from_struct_array(rows), stored, columns)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise CorruptMetadataError(self.path, str(error)) from error

    def array(self, values: list[Any], kind: pa.DataType) -> pa.Array:
        """Decoded values as an array."""
        try:
            return arrow_values(values, kind)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise CorruptMetadataError(self.path, f"its rows are not right: {error}") from error
