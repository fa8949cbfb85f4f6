"""The change feed: every change, with the row before and after.

The columns are those of Hudi's change data capture queries. Each write is compared with what was
there before, file group by file group: a row that a write moved to another partition is deleted in
one and inserted in the other. In a split table all file groups of a partition are compared at once,
as an updated row leaves one of them and comes into another one. Where clean has removed what was
there before, logs of changes give the same; see :mod:`hudi_core.read.changes.incremental`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.avro.columns import arrow_values
from hudi_core.avro.datum import decode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError, DataFileError, SchemaError
from hudi_core.log_format.block import BlockType, HeaderKey, decode_avro_content, find_log_blocks
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.changes.file_changes import ChangeSource, GroupChange
from hudi_core.read.changes.net_changes import RowChanges, SliceComparison
from hudi_core.read.filters import Filter
from hudi_core.read.json_text import json_rows
from hudi_core.read.plan import PlannedSlice
from hudi_core.schema.alignment import align, counterparts
from hudi_core.schema.avro_types import record_from_avro
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import DataFiles

# --- logs of changes as a source of changed rows --------------------------------------------------
# A table with ``hoodie.table.cdc.enabled`` has them beside the base files that took the place of
# others: :mod:`hudi_core.write.change_log` says what is in them. Hudi's own may be several files of
# several blocks, and their rows may have meta columns, which are left out here.


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


# --- the feed -------------------------------------------------------------------------------------


OPERATION: Final = "op"
"""``i``, ``u`` or ``d``: the row was inserted, updated or deleted."""
TIMESTAMP: Final = "ts_ms"
"""Requested time of the write."""
FEED_SCHEMA: Final = pa.schema(
    [
        pa.field(OPERATION, pa.string(), nullable=False),
        pa.field(TIMESTAMP, pa.string(), nullable=False),
        pa.field(BEFORE, pa.string()),
        pa.field(AFTER, pa.string()),
    ]
)
"""The columns of a feed whose images are JSON strings."""


@dataclass(frozen=True, slots=True)
class FeedPart:
    """What one write did to a file group, or to a partition."""

    changes: tuple[GroupChange, ...]

    @property
    def files(self) -> tuple[PlannedSlice, ...]:
        """Its slices, before and after."""
        return tuple(file for change in self.changes for file in change.files)

    @property
    def size(self) -> int:
        """Bytes to read, where known."""
        return sum(change.size for change in self.changes)

    @classmethod
    def of(cls, changes: Iterable[GroupChange], *, pairs: bool) -> tuple[FeedPart, ...]:
        """The parts of a feed; ``pairs`` is for a split table."""
        if not pairs:
            # the versions of a group one after the other, so that each is read once
            ordered = sorted(changes, key=lambda change: change.group)
            return tuple(cls((change,)) for change in ordered)

        def write(change: GroupChange) -> tuple[str, str]:
            return change.group.partition_path, min(change.times)

        return tuple(cls(tuple(some)) for _, some in groupby(sorted(changes, key=write), write))


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """Reads the changes of file groups, here or in tasks.

    A row change is returned where ``condition`` holds for its image before or after. With
    ``as_text`` images are JSON strings, else structs. ``pairs``: one file group may have the row
    before, and another one that after.
    """

    comparison: SliceComparison
    logs: ChangeLogs
    columns: tuple[str, ...]
    condition: Filter | None
    as_text: bool
    pairs: bool = False

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        if self.as_text:
            return FEED_SCHEMA
        image = pa.struct([self.comparison.scan.schema.field(name) for name in self.columns])
        fields = [*FEED_SCHEMA][:2]
        return pa.schema([*fields, pa.field(BEFORE, image), pa.field(AFTER, image)])

    def read(self, parts: Sequence[FeedPart]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of changes, in their order."""
        if self.pairs:
            for part in parts:
                yield from self._batches_of(min(part.changes[0].times), self._paired(part.changes))
            return
        changes = [change for part in parts for change in part.changes]
        for source, some in groupby(changes, key=attrgetter("source")):
            by_files = source is ChangeSource.FILES
            for change, images in self._compared(some) if by_files else self._logged(some):
                [time] = change.times
                yield from self._batches_of(time, images)

    def _paired(self, changes: Iterable[GroupChange]) -> Images:
        """The changes of a partition, whatever file groups they are in."""
        found = [rows for _, rows in self.comparison.each(changes)]
        gone, written = [one.gone for one in found], [one.written for one in found]
        return _images(RowChanges(pa.concat_tables(gone), pa.concat_tables(written), None))

    def _batches_of(self, time: str, images: Images) -> Iterator[pa.RecordBatch]:
        for operation, before, after in images:
            yield from self._batches(operation, time, before, after)

    def _compared(self, changes: Iterable[GroupChange]) -> Iterator[tuple[GroupChange, Images]]:
        for change, rows in self.comparison.each(changes):
            yield change, _images(rows)

    def _logged(self, changes: Iterable[GroupChange]) -> Iterator[tuple[GroupChange, Images]]:
        for change in changes:
            if change.source is ChangeSource.LOGS_OR_FILES:
                images = self._preferred(change)
                if images is None:
                    yield from self._compared([change])
                else:
                    yield change, images
                continue
            [time] = change.times
            logged = self.logs.read(change.logs, time)
            if change.source is ChangeSource.LOGS:
                yield change, logged.images()
            else:
                yield change, _images(self.comparison.with_gone(change, logged.gone()))

    def _preferred(self, change: GroupChange) -> Images | None:
        """The rows of preferred logs; ``None`` where files are to be compared."""
        [time] = change.times
        try:
            logged = self.logs.read(change.logs, time)
            if not logged.holds(BEFORE, AFTER) or not logged.is_current():
                return None
            return iter(list(logged.images()))
        except (CorruptMetadataError, DataFileError):
            # copies of a folder may lack logs, for the names of these begin with a dot
            return None

    def _batches(
        self, operation: str, time: str, before: pa.Table | None, after: pa.Table | None
    ) -> Iterator[pa.RecordBatch]:
        before, after = (
            None if rows is None else self.comparison.scan.as_shown(rows)
            for rows in (before, after)
        )
        if self.condition is not None:
            images = [each for each in (before, after) if each is not None]
            wanted = np.unique(np.concatenate([_accepted(self.condition, one) for one in images]))
            before, after = (
                None if rows is None else rows.take(wanted) for rows in (before, after)
            )
        count = next(rows.num_rows for rows in (before, after) if rows is not None)
        if not count:
            return
        columns = [pa.repeat(operation, count), pa.repeat(time, count)]
        columns += self._shown(before, after, count)
        yield pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def _shown(
        self, before: pa.Table | None, after: pa.Table | None, count: int
    ) -> tuple[pa.Array, pa.Array]:
        """Both images."""
        present = [rows.select(list(self.columns)) for rows in (before, after) if rows is not None]
        kind = self.output_schema.field(AFTER).type
        # strings are made column by column: of all rows at once
        rows = pa.concat_tables(present).combine_chunks()
        if not self.columns:
            images = _without_columns(kind, count * len(present))
        elif self.as_text:
            images = json_rows(rows)
        else:
            arrays = [column.combine_chunks() for column in rows.columns]
            images = pa.StructArray.from_arrays(arrays, fields=list(kind))
        none = pa.nulls(count, kind)
        first = none if before is None else images.slice(0, count)
        return first, none if after is None else images.slice(len(images) - count)


def _images(rows: RowChanges) -> Images:
    """Yield the operation, the rows before and the rows after; deletes first."""
    yield DELETED, rows.gone.filter(rows.is_deleted), None
    updated = rows.written.filter(pc.invert(rows.is_new))
    if updated.num_rows:
        gone = rows.gone.combine_chunks()
        places = _places(updated[RECORD_KEY].combine_chunks(), gone[RECORD_KEY].combine_chunks())
        yield UPDATED, gone.take(places), updated
    yield INSERTED, None, rows.written.filter(rows.is_new)


def _places(updated: pa.Array, gone: pa.Array) -> pa.Array:
    """Where the row before of each updated row is, by their keys.

    Of rows with the same key, which inserts may add, the first becomes the first, and so on.
    """
    places = pc.index_in(updated, value_set=gone)
    first = places.to_numpy()
    ordered = np.argsort(first, kind="stable")
    key = first[ordered]
    begin = np.searchsorted(key, key)
    if np.array_equal(begin, np.arange(len(key))):
        return places
    firsts = pc.index_in(gone, value_set=gone).to_numpy()
    rows = np.argsort(firsts, kind="stable")
    low, high = (np.searchsorted(firsts, key, side, sorter=rows) for side in ("left", "right"))
    found = np.empty(len(key), np.int64)
    found[ordered] = rows[np.minimum(low + np.arange(len(key)) - begin, high - 1)]
    return pa.array(found)


def _without_columns(kind: pa.DataType, count: int) -> pa.Array:
    """Images of no columns, as many as there are rows."""
    if pt.is_struct(kind):
        return pa.Array.from_buffers(kind, count, [None], children=[])
    return pa.repeat("{}", count)


def _accepted(condition: Filter, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Places of the rows that a filter accepts."""
    place = "\0place"
    numbered = rows.append_column(place, pa.array(np.arange(rows.num_rows)))
    found: np.ndarray[tuple[int], np.dtype[np.int64]]
    found = numbered.filter(condition.expression)[place].to_numpy()
    return found
