"""Net changes: rows inserted, updated and deleted between two times.

A row is the one with its record key in its partition. What several writes of the window did to it
comes once, as the difference between before the first and after the last of them, wherever within
the partition its file is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import SchemaError
from hudi_core.model.files import PartitionPath
from hudi_core.read.changes.file_changes import GroupChange
from hudi_core.read.changes.row_changes import RowChanges, SliceComparison, keys_among
from hudi_core.read.filters import Filter
from hudi_core.schema.table_schema import RECORD_KEY

CHANGE_TYPE: Final = "_change_type"
"""The column that says what happened to a row; see :class:`ChangeType`."""


class ChangeType(StrEnum):
    """What happened to a row within a window."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


def require_no_change_column(schema: pa.Schema) -> None:
    """Refuse a table with a column of the name that changes need."""
    if CHANGE_TYPE in schema.names:
        raise SchemaError(
            f"The table has a column {CHANGE_TYPE}, which would say what changed",
            "Rename the column, or read the change feed with Table.changes.",
            column=CHANGE_TYPE,
        )


@dataclass(frozen=True, slots=True)
class NetPartitionChange:
    """What a window did to the file groups of one partition."""

    partition_path: PartitionPath
    changes: tuple[GroupChange, ...]

    @property
    def size(self) -> int:
        """Bytes of the files, where known."""
        return sum(change.size for change in self.changes)

    @classmethod
    def of(cls, changes: Iterable[GroupChange]) -> tuple[NetPartitionChange, ...]:
        """Changes by partition; they are in the order of their groups."""
        by_path = groupby(changes, key=lambda change: change.group.partition_path)
        return tuple(cls(path, tuple(some)) for path, some in by_path)


@dataclass(frozen=True, slots=True)
class NetChanges:
    """Reads net changes, here or in tasks.

    ``condition`` applies to rows as they are after the window, and to deleted ones as they were
    before.
    """

    comparison: SliceComparison
    columns: tuple[str, ...]
    condition: Filter | None

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        schema = self.comparison.scan.schema
        fields = [schema.field(name) for name in self.columns]
        return pa.schema([*fields, pa.field(CHANGE_TYPE, pa.string(), nullable=False)])

    def read(self, partitions: Sequence[NetPartitionChange]) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows, partition by partition."""
        for partition in partitions:
            yield from self._of_partition(partition.changes)

    def _of_partition(self, changes: Sequence[GroupChange]) -> Iterator[pa.RecordBatch]:
        inserted: list[pa.Table] = []
        deleted: list[pa.Table] = []
        moved: list[pa.Array] = []
        of_keys: list[RowChanges] = []
        # where nothing was there before, nothing can have been deleted
        is_new = all(change.before is None for change in changes)
        for change, rows in self.comparison.each(changes):
            if not change.whole:
                of_keys.append(rows)
                continue
            if is_new:
                yield from self._rows(rows.written, ChangeType.INSERT)
                continue
            yield from self._rows(rows.written.filter(pc.invert(rows.is_new)), ChangeType.UPDATE)
            inserted.append(rows.written.filter(rows.is_new))
            deleted.append(rows.gone.filter(rows.is_deleted))
            moved += [rows.copied] if rows.copied is not None else []
        here = [*_keys(inserted), *moved]
        before = _keys(deleted)
        for rows in of_keys:
            here += _keys([rows.written.filter(rows.is_new)])
            here += [rows.copied] if rows.copied is not None else []
            before += _keys([rows.gone.filter(rows.is_deleted)])
        # a row may have been deleted from one file and written to another
        for rows in inserted:
            known = keys_among(rows[RECORD_KEY], before)
            yield from self._rows(rows.filter(known), ChangeType.UPDATE)
            yield from self._rows(rows.filter(pc.invert(known)), ChangeType.INSERT)
        for rows in deleted:
            known = keys_among(rows[RECORD_KEY], here)
            yield from self._rows(rows.filter(pc.invert(known)), ChangeType.DELETE)

    def _rows(self, rows: pa.Table, kind: ChangeType) -> Iterator[pa.RecordBatch]:
        rows = self.comparison.scan.as_shown(rows)
        if self.condition is not None:
            rows = rows.filter(self.condition.expression)
        if not rows.num_rows:
            return
        kinds = pa.repeat(pa.scalar(kind.value), rows.num_rows)
        shown = rows.select(list(self.columns)).append_column(CHANGE_TYPE, kinds)
        yield from shown.cast(self.output_schema).to_batches()


def _keys(tables: Sequence[pa.Table]) -> list[pa.Array]:
    return [chunk for rows in tables for chunk in rows[RECORD_KEY].chunks]
