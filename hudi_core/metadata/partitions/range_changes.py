"""Changes of column ranges, and of the columns with ranges.

Readers of other engines leave out a partition that has no range of a column which the list names.
So a column comes into the list with the first file that can have it, or with an index that is built
from all files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.keys import partition_path, partition_stats_key
from hudi_core.metadata.log.records import ColumnRange, MetadataRecord
from hudi_core.metadata.partition_types import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata.partitions.ranges import (
    ranges_of_files,
    ranges_of_partitions,
    stored_ranges,
)
from hudi_core.metadata.partitions.work import Commit, ranged_files
from hudi_core.metadata.statistics.bound_forms import BoundForm, has_type, in_form, widest
from hudi_core.metadata.statistics.column_records import (
    file_ranges,
    partition_range_record,
    range_records,
    removed_partition_range,
    updated_range,
)
from hudi_core.metadata.statistics.indexed_columns import IndexableColumns, IndexedColumns
from hudi_core.metadata.table import has_value_types
from hudi_core.model.files import PartitionPath
from hudi_core.schema.avro_types import local_timestamps
from hudi_core.schema.casting import promotion
from hudi_core.schema.table_schema import TableSchema


@dataclass(eq=False)
class RangeChanges:
    """The changes of one write."""

    commit: Commit
    known: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.known = self.commit.definitions.columns(COLUMN_STATS)

    # --- which columns -------------------------------------------------------------------------

    @cached_property
    def _schema(self) -> TableSchema:
        return TableSchema.from_avro(self.commit.schema_text)

    @cached_property
    def columns(self) -> IndexedColumns:
        """The columns that have ranges.

        Of all files, or no file has them yet.

        Files may have another column under a name that stood for one. Where that had no ranges, the
        new one gets some with an index that is built from all files.
        """
        commit, local = self.commit, local_timestamps(self.commit.schema_text)
        indexable = IndexableColumns.of(
            self._schema, commit.client.config, commit.definitions, local=local
        )
        base = self.commit.base
        return {
            path: form
            for path, form in indexable.wanted(self.commit.config, self.known).items()
            if path in self.known
            or path in indexable.meta
            or (base is not None and base.field(path) is None and not self._is_missing(path))
        }

    # --- their records -------------------------------------------------------------------------

    @cached_property
    def _fresh(self) -> Mapping[str, Mapping[str, ColumnRange]]:
        return {
            file.path: file_ranges(file.name, status.columns, self.columns)
            for status, file in self.commit.new
        }

    def of_files(self) -> Iterator[MetadataRecord]:
        """Yield the new ranges of files."""
        for _, file in self.commit.new:
            ranges = self._fresh[file.path].values()
            yield from range_records(file.partition_path, file.name, ranges)
        other = {
            path: form
            for path, form in self._retyped.items()
            if path in self._given_up or self._are_mixed or not self._widened_by_rows(path, form)
        }
        yield from self._in_form(COLUMN_STATS, other)

    def of_partitions(self) -> Iterator[MetadataRecord]:
        """Yield the new ranges of the table's partitions."""
        touched = self.commit.touched
        if touched:
            yield from touched_ranges(self.commit, self.columns, self._fresh)
        for record in self._in_form(PARTITION_STATS, self._retyped):
            name = record.payload.file_name if isinstance(record.payload, ColumnRange) else None
            if partition_path(name or "") not in touched:
                yield record
        # readers would take partitions without a range of a column for such without values
        gone = [
            path
            for path in self.known
            if path not in self.columns and self._schema.field(path) is not None
        ]
        for _, one in stored_ranges(self.commit, PARTITION_STATS, gone):
            name, path = partition_path(one.file_name or ""), one.column_name or ""
            yield removed_partition_range(name, path)

    def _in_form(
        self, partition: str, columns: Mapping[str, BoundForm]
    ) -> Iterator[MetadataRecord]:
        """Yield stored ranges of columns, in present bound form."""
        for record, one in stored_ranges(self.commit, partition, columns):
            path = one.column_name or ""
            # what is stored may have been made of a column before the last one
            change = widest if path in self._given_up else in_form
            # Hudi merges a range that is not tight with the stored one, which has another type
            stated = replace(change(one, columns[path]), is_tight_bound=True)
            yield replace(record, payload=stated)

    def _is_missing(self, path: str) -> bool:
        """Whether a name stood for another column, without ranges."""
        if path not in self._given_up:
            return False
        return not any(True for _ in stored_ranges(self.commit, COLUMN_STATS, [path]))

    @cached_property
    def _are_mixed(self) -> bool:
        """Whether some ranges are of another version than their index.

        Releases before this one wrote those of the table's version where Hudi, which had raised
        the table, had left the index as it was. Then the replaced files have such, or the
        partitions.
        """
        commit = self.commit
        config, column = commit.client.config, next(iter(self.columns), None)
        is_as_new = commit.definitions.has_bound_types(COLUMN_STATS, config)
        if column is None or is_as_new is has_value_types(config):
            return False
        replaced = filter(commit.takes_out, ranged_files(commit.before))
        ranges = [*ranges_of_files(commit, ((file, [column]) for file in replaced)).values()]
        if PARTITION_STATS in commit.stored.complete:
            keys = [partition_stats_key(column, partition) for partition in commit.touched]
            found = commit.snapshot.lookup(PARTITION_STATS, keys).values()
            ranges += [one.payload for one in found if isinstance(one.payload, ColumnRange)]
        return any(map(has_type, ranges))

    # --- columns of other types ----------------------------------------------------------------

    @cached_property
    def _given_up(self) -> frozenset[str]:
        """Names that once stood for other columns."""
        if self.commit.base is None:
            return frozenset()
        former = self.commit.client.config.former_names
        return former | self.commit.base.given_up_in(self._schema)

    @cached_property
    def _retyped(self) -> Mapping[str, BoundForm]:
        """Columns whose stored ranges need another form everywhere.

        Version 1 of the statistics does not record types, and Hudi reads what it finds as of the
        column's type. Version 2 does, and Hudi widens what rows widen. Under the name of a column
        that was dropped there may be ranges of any type.
        """
        if self.commit.base is None:
            return {}
        if self._are_mixed:
            return self.columns
        changed: dict[str, BoundForm] = {}
        for path, form in self.columns.items():
            old = self.commit.base.field(path)
            is_same = old is not None and old.type.equals(form.kind)
            if path in self._given_up:
                is_reported = path in self.known and is_same
            else:
                reported_so = form.value_type is not None and self._widened_by_rows(path, form)
                is_reported = old is None or is_same or reported_so
            if not is_reported:
                changed[path] = form
        return changed

    def _widened_by_rows(self, path: str, form: BoundForm) -> bool:
        old = None if self.commit.base is None else self.commit.base.field(path)
        found = None if old is None else promotion(old.type, form.kind)
        return found is not None and found.on_write


# --- ranges of touched partitions -----------------------------------------------------------------

# A partition may have very many files, of which a write replaces few: its stored range is updated
# with the ranges of those. Only where that is not enough, the ranges of all its files are read.


_Place = tuple[PartitionPath, str]
"""A column in a partition."""
_FEW_FILES: Final = 32
"""Of so many files, ranges take less to read than those of partitions do: on an object store, a
request for every log file."""


def touched_ranges(
    commit: Commit,
    columns: IndexedColumns,
    fresh: Mapping[str, Mapping[str, ColumnRange]],
) -> Iterator[MetadataRecord]:
    """Yield the ranges of every partition that a write touches."""
    files = _Files(commit)
    updated = dict(_updated(commit, files, columns, fresh))
    for (partition, path), whole in updated.items():
        yield partition_range_record(partition, path, whole)
    wanted = {
        partition: {path: columns[path] for path in columns if (partition, path) not in updated}
        for partition in commit.touched
    }
    yield from ranges_of_partitions(commit, wanted, files.after, fresh)


class _Files:
    """The files of touched partitions: replaced, staying, and new."""

    def __init__(self, commit: Commit) -> None:
        self.gone: dict[PartitionPath, list[DataFile]] = {one: [] for one in commit.touched}
        self.came: dict[PartitionPath, list[DataFile]] = {one: [] for one in commit.touched}
        staying: dict[PartitionPath, list[DataFile]] = {one: [] for one in commit.touched}
        for file in ranged_files(commit.before):
            side = self.gone if commit.takes_out(file) else staying
            side[file.partition_path].append(file)
        new = [file for _, file in commit.new]
        for file in new:
            self.came[file.partition_path].append(file)
        self.after = [*new, *(file for held in staying.values() for file in held)]
        self.updatable = [
            path for path, held in staying.items() if len(held) > len(self.gone[path]) + _FEW_FILES
        ]
        """Partitions of which many more files stay than go."""


def _updated(
    commit: Commit,
    files: _Files,
    columns: IndexedColumns,
    fresh: Mapping[str, Mapping[str, ColumnRange]],
) -> Iterator[tuple[_Place, ColumnRange]]:
    """Yield the new ranges that follow from the replaced and new files."""
    if PARTITION_STATS not in commit.stored.complete or not files.updatable:
        return
    keys = {
        partition_stats_key(path, partition): (partition, path)
        for partition in files.updatable
        for path in columns
    }
    stored = {
        keys[key]: record.payload
        for key, record in commit.snapshot.lookup(PARTITION_STATS, keys).items()
        if isinstance(record.payload, ColumnRange)
    }
    replaced = ranges_of_files(
        commit, ((file, columns) for partition in files.updatable for file in files.gone[partition])
    )
    for (partition, path), one in stored.items():
        old = (replaced.get((file.path, path)) for file in files.gone[partition])
        new = (fresh[file.path].get(path) for file in files.came[partition])
        gone, came = ([part for part in some if part is not None] for some in (old, new))
        found = updated_range(one, gone, came, columns[path])
        if found is not None:
            yield (partition, path), found
