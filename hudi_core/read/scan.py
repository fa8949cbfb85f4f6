"""Rows of planned files as Arrow batches."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate, chain, groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.config.kinds import TableType
from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.read import ReadConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.engine.base import thread_pool
from hudi_core.file_slice.merged_logs import BaseRows, MergedLogs, SliceMerging, beyond_last_row
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.filters import Filter, RowFilter, require_columns, to_filter
from hudi_core.read.plan import PlannedSlice, ReadPlan, SeenInstants
from hudi_core.rows.combine import Positions
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import DataFiles

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    import pyarrow.fs as pafs

    from hudi_core.read.file_reader import FileReader


# --- what readers see of record keys that are virtual (RFC-21) ------------------------------------
# ``_hoodie_record_key`` reads null, whatever a file holds. To compare rows their keys are made.


_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VirtualKeys:
    """Record keys of a scan that files may lack.

    ``are_hidden``: users read null; not so for a table that stores keys again, whose older files
    lack them.
    """

    made: FileKeys
    are_hidden: bool

    def hidden_in(self, rows: pa.Table) -> pa.Table:
        """Rows as users see them."""
        if not self.are_hidden or RECORD_KEY not in rows.column_names:
            return rows
        place = rows.schema.get_field_index(RECORD_KEY)
        field = rows.schema.field(place)
        return rows.set_column(place, field, pa.nulls(rows.num_rows, field.type))

    def added_to(self, rows: pa.Table, field: pa.Field, path: str, makes: bool) -> pa.Table:
        """Rows with the column of the key.

        Without ``makes`` the column is null.
        """
        made = self.made.made(rows, path) if makes else pa.nulls(rows.num_rows, field.type)
        return rows.append_column(field, made)


def hides_keys(client: TableMetaClient) -> bool:
    """Whether users of a table read null for the record key."""
    if client.config.makes_keys:
        return True
    return ReadConfig.ignores_stored_keys.read(client.options)


def virtual_keys(
    client: TableMetaClient, schema: pa.Schema, files: Sequence[PlannedSlice]
) -> VirtualKeys | None:
    """How a scan makes record keys; ``None`` where it reads them.

    Of ``files`` those that hold keys which are ignored are warned of. A table that ignores stored
    keys and has no columns to make others from is refused.
    """
    is_hidden = hides_keys(client)
    if RECORD_KEY not in schema.names or not (is_hidden or client.config.keys_differ_by_file):
        return None
    warn_of_ignored_keys(client, files)
    return VirtualKeys(FileKeys.made_by(client), is_hidden)


def warn_of_ignored_keys(client: TableMetaClient, files: Sequence[PlannedSlice]) -> None:
    """Warn once of files with stored keys that are ignored."""
    config = client.config
    since = ManagedKeys.virtual_since.read(config.raw)
    if not config.virtual_keys or config.keeps_virtual_keys or since is None:
        return
    older = sum(file.instant < since for file in files)
    if older:
        _log.warning(
            "%d files of %s hold %s from before keys were virtual: it is ignored; "
            "`hudi table rewrite-keys` writes them again without it",
            older,
            client.base_path,
            RECORD_KEY,
        )


# --- rows of planned files ------------------------------------------------------------------------


def scan(
    client: TableMetaClient,
    plan: ReadPlan,
    columns: Sequence[str] | None = None,
    row_filter: RowFilter | Filter | None = None,
    batch_rows: int | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of a plan.

    Only the columns asked for and those the filter needs are read, and row groups whose statistics
    exclude the filter are skipped. Files are brought to the plan's schema: columns they lack are
    null, narrower types are widened, in nested types too.

    ``SchemaError`` is raised here, before a file is opened; ``DataFileError`` while the reader is
    read.
    """
    scanned = file_scan(client, plan, columns, row_filter, batch_rows)
    return pa.RecordBatchReader.from_batches(scanned.output_schema, scanned.read(plan.files))


def file_scan(
    client: TableMetaClient,
    plan: ReadPlan,
    columns: Sequence[str] | None = None,
    row_filter: RowFilter | Filter | None = None,
    batch_rows: int | None = None,
) -> FileScan:
    """Reader of the plan's files, here or in tasks.

    See :func:`scan` for the parameters.
    """
    require_columns(columns, plan.schema)
    wanted = tuple(plan.schema.names if columns is None else columns)
    conditions = [to_filter(row_filter, plan.schema), plan.row_condition()]
    given = [condition for condition in conditions if condition is not None]
    condition = reduce(operator.and_, given) if given else None
    merging = None
    if may_have_logs(client.config, plan.files):
        merging = slice_merging(client, plan.schema, plan.timeline, skips=plan.skips_merge)
    return FileScan(
        client.files,
        plan.schema,
        wanted,
        condition,
        batch_rows,
        virtual_keys(client, plan.schema, plan.files),
        merging=merging,
    )


_NONE: Final = np.empty(0, dtype=np.int64)
_PART_VALUES: Final = 1 << 19
"""Row groups are read together up to so many values: half a million keys, or 24,000 rows of 22
columns."""
_SLICES_AT_A_TIME: Final = 2
"""Slices merged at the same time: Arrow itself reads each with more threads."""


def may_have_logs(config: TableConfig, files: Iterable[PlannedSlice]) -> bool:
    """Whether slices may have logs, as past ones may in any table."""
    return config.table_type is TableType.MERGE_ON_READ or any(map(_has_logs, files))


def slice_merging(
    client: TableMetaClient,
    schema: pa.Schema,
    timeline: SeenInstants | None,
    *,
    skips: bool = False,
) -> SliceMerging:
    """How slices with logs are merged, in the columns that readers see.

    Scans without such slices go to tasks without it: the timeline may be a format's own.
    """
    memory = MergeMemory.of(client.options)
    rules, keys = merge_rules(client.config), FileKeys.of(client)
    if client.config.keys_differ_by_file:
        keys = FileKeys.made_by(client)  # logs of past states may not hold any
    return SliceMerging(client.files, schema, rules, keys, timeline, memory, skips)


@dataclass(frozen=True, slots=True)
class FileScan:
    """Common settings of one scan, frozen and sent to executors.

    ``keys`` is set where record keys are virtual or not all files hold them. ``shows_keys``:
    ``_hoodie_record_key`` is the key that is made, as needed to compare rows. ``merging`` is set
    for tables whose file slices may have logs.
    """

    files: DataFiles
    schema: pa.Schema
    columns: tuple[str, ...]
    condition: Filter | None
    batch_rows: int | None
    keys: VirtualKeys | None = None
    shows_keys: bool = False
    merging: SliceMerging | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def read(self, files: Sequence[PlannedSlice]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files, in their order."""
        if not files:
            return
        if self.keys is not None and RECORD_KEY in self._asked:
            for file in files:
                yield from self._keyed(file).to_batches()
            return
        for has_logs, run in groupby(files, _has_logs):
            if has_logs:
                yield from chain.from_iterable(map(self._merged, run))
                continue
            for some in self._by_root([*run]):
                with self._reading(*some) as (reader, fragments):
                    yield from (batch for batch in reader.read(fragments) if batch.num_rows)

    def read_range(self, file: PlannedSlice, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the row groups within a range.

        They begin in that range of the file's bytes. Ranges that cover a file without overlapping
        have each of its rows once.

        ``end`` is the byte behind the last.
        """
        if self.keys is not None and RECORD_KEY in self._asked:
            yield from self._keyed(file, (start, end)).to_batches()
            return
        [some] = self._by_root([file])
        with self._reading(*some) as (reader, [fragment]):
            part = row_groups_within(fragment, start, end)
            if part is not None:
                yield from (batch for batch in reader.read([part]) if batch.num_rows)

    def table(self, files: Sequence[PlannedSlice]) -> pa.Table:
        """The rows of the files in their order, all at once.

        Faster than batch by batch.
        """
        if not files:
            return self.output_schema.empty_table()
        if not self.columns:
            # tables without columns lose their number of rows where they are cast or joined
            return pa.Table.from_batches(self.read(files), self.output_schema)
        if self.keys is not None and RECORD_KEY in self._asked:
            return pa.concat_tables(self._keyed(file) for file in files)
        found: list[pa.Table] = []
        for has_logs, run in groupby(files, _has_logs):
            if has_logs:
                with thread_pool(_SLICES_AT_A_TIME) as pool:
                    found += pool.map(self._merged_table, run)
                continue
            for some in self._by_root([*run]):
                with self._reading(*some) as (reader, fragments):
                    rows = reader.table(fragments, [fragments[n] for n in _ends(some[0])])
                    found.append(rows.cast(self.output_schema))
        return found[0] if len(found) == 1 else pa.concat_tables(found)

    def _by_root(
        self, files: Sequence[PlannedSlice]
    ) -> Iterator[tuple[Sequence[PlannedSlice], pafs.FileSystem, list[str]]]:
        """Runs of files below one root, and where they are."""
        start = 0
        for filesystem, places in self.files.filesystems([file.path for file in files]):
            yield files[start : start + len(places)], filesystem, places
            start += len(places)

    def as_shown(self, rows: pa.Table) -> pa.Table:
        """Rows that were read to be compared, as users see them."""
        return rows if self.keys is None else self.keys.hidden_in(rows)

    @property
    def _asked(self) -> set[str]:
        return {*self.columns, *(() if self.condition is None else self.condition.columns)}

    def _keyed(self, file: PlannedSlice, within: tuple[int, int] | None = None) -> pa.Table:
        """The rows of a file, or of a range, with virtual keys."""
        assert self.keys is not None  # noqa: S101 - asked for by the callers
        stored = pa.schema([field for field in self.schema if field.name != RECORD_KEY])
        makes = self.shows_keys or not self.keys.are_hidden
        needed = self._asked | (set(self.keys.made.made_of) if makes else set())
        names = [name for name in stored.names if name in needed] or stored.names[:1]
        plain = replace(self, schema=stored, columns=tuple(names), condition=None, keys=None)
        rows = (
            plain.table((file,))
            if within is None
            else pa.Table.from_batches(plain.read_range(file, *within), plain.output_schema)
        )
        rows = self.keys.added_to(rows, self.schema.field(RECORD_KEY), file.path, makes)
        if self.condition is not None:
            rows = rows.filter(self.condition.expression)
        return rows.select(list(self.columns))

    # --- slices with logs

    def _merged(self, file: PlannedSlice) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice, those of its logs last."""
        base = _StoredBase.of(self, file) if file.has_base else None
        with self._logs(file, base) as logs:
            if base is not None:
                yield from base.read(_NONE if logs is None else logs.dead)
            for rows in () if logs is None else logs.tail:
                yield from (batch for batch in self._wanted(rows).to_batches() if batch.num_rows)

    def row_count(self, file: PlannedSlice) -> int:
        """How many rows a slice with logs has; its footer is read."""
        base = _StoredBase.of(self, file) if file.has_base else None
        stored = 0 if base is None else base.row_count
        with self._logs(file, base) as logs:
            if logs is None:
                return stored
            if len(logs.dead) and logs.dead[-1] >= stored:
                raise beyond_last_row(file.path)
            added: int = sum(rows.num_rows for rows in logs.tail)
            return stored - len(logs.dead) + added

    def _merged_table(self, file: PlannedSlice) -> pa.Table:
        return pa.Table.from_batches(self._merged(file), self.output_schema)

    def _logs(
        self, file: PlannedSlice, base: BaseRows | None
    ) -> AbstractContextManager[MergedLogs | None]:
        """What the logs of a slice make of its base file."""
        assert self.merging is not None  # noqa: S101 - set where a file has logs
        condition = None if self.condition is None else self.condition.expression
        return self.merging.merged(file.logs, file.until, base, self._asked, condition)

    def _wanted(self, rows: pa.Table) -> pa.Table:
        """Wanted rows, in the columns of the scan."""
        if self.condition is not None:
            rows = rows.filter(self.condition.expression)
        rows = rows.select(list(self.columns))
        # tables without columns lose their number of rows where they are cast
        return rows.cast(self.output_schema) if self.columns else rows

    @contextmanager
    def _reading(
        self,
        files: Sequence[PlannedSlice],
        filesystem: pafs.FileSystem,
        places: Sequence[str],
        fragments: list[ds.Fragment] | None = None,
    ) -> Iterator[tuple[FileReader, list[ds.Fragment]]]:
        """Give a reader of files, and what it reads.

        Of ``fragments``, where they are given, the footers are known.
        """
        # pyarrow.dataset imports pandas, which takes longer than all of this project
        from hudi_core.read.file_reader import PARQUET, FileReader  # noqa: PLC0415

        paths = [file.path for file in files]
        if fragments is None:
            self.files.require_no_links(paths)
            fragments = [PARQUET.make_fragment(place, filesystem) for place in places]
        columns = list(self.columns)
        reader = FileReader(self.schema, filesystem, columns, self.condition, self.batch_rows)
        try:
            yield reader, fragments
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.files.unreadable(paths, str(error).split("\n", 1)[0]) from error


def _has_logs(file: PlannedSlice) -> bool:
    return bool(file.logs)


# --- base files of slices with logs ---------------------------------------------------------------


@dataclass(frozen=True)
class _StoredBase:
    """The base file of a slice, read by row groups.

    Its footer is read once. ``scan`` says which rows are wanted.
    """

    scan: FileScan
    file: PlannedSlice
    _place: tuple[pafs.FileSystem, list[str]]
    _fragment: ds.Fragment

    @classmethod
    def of(cls, scan: FileScan, file: PlannedSlice) -> _StoredBase:
        """The base file of a slice."""
        [(_, *place)] = scan._by_root([file])
        with scan._reading([file], *place) as (_, [fragment]):
            fragment.ensure_complete_metadata()
            return cls(scan, file, tuple(place), fragment)

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def instant(self) -> InstantTime:
        return self.file.instant

    @property
    def row_count(self) -> int:
        """Rows of the file, dead ones included."""
        return int(self._fragment.metadata.num_rows)

    @property
    def can_match(self) -> bool:
        return bool(self._matching)

    @cached_property
    def _matching(self) -> frozenset[int]:
        """Numbers of the row groups that may have wanted rows."""
        with self._reading(self.scan) as (reader, _):
            return reader.matching(self._fragment)

    def record_keys(self) -> Iterator[tuple[int, pa.ChunkedArray]]:
        assert self.scan.merging is not None  # noqa: S101 - set where a file has logs
        made_by = self.scan.merging.keys
        names = made_by.made_of if made_by.are_made else [RECORD_KEY]
        for start, rows in self.columns(names):
            yield start, made_by.made(rows, self.path) if made_by.are_made else rows.column(0)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        every = range(self._fragment.metadata.num_row_groups)
        scan = replace(self.scan, columns=tuple(names), condition=None)
        if not every:  # a file without rows has no row groups
            yield 0, scan.output_schema.empty_table()
        for start, _, part in self._parts(every, len(names)):
            with self._reading(scan, part) as (reader, fragments):
                rows = reader.table(fragments).cast(scan.output_schema)
            yield start, rows

    def read(self, dead: Positions) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows, but for some positions."""
        if len(dead) and dead[-1] >= self.row_count:
            raise beyond_last_row(self.path)
        for start, end, part in self._parts(sorted(self._matching), len(self.scan._asked)):
            gone = dead[np.searchsorted(dead, start) : np.searchsorted(dead, end)] - start
            with self._reading(self.scan, part) as (reader, fragments):
                found = reader.without(part, gone) if len(gone) else reader.read(fragments)
                yield from (batch for batch in found if batch.num_rows)

    def _parts(
        self, numbers: Iterable[int], columns: int
    ) -> Iterator[tuple[int, int, ds.Fragment]]:
        """Yield runs of row groups.

        Each with its first row, the row behind its last one, and what reads it.

        A run is one row group, or several with few values in so many columns.
        """
        footer = self._fragment.metadata
        counts = (footer.row_group(number).num_rows for number in range(footer.num_row_groups))
        starts = [0, *accumulate(counts)]
        run: list[int] = []
        for number in numbers:
            is_next = bool(run) and run[-1] == number - 1
            rows = starts[number + 1] - starts[run[0] if run else number]
            if run and not (is_next and rows * columns <= _PART_VALUES):
                yield starts[run[0]], starts[run[-1] + 1], self._fragment.subset(row_group_ids=run)
                run = []
            run.append(number)
        if run:
            yield starts[run[0]], starts[run[-1] + 1], self._fragment.subset(row_group_ids=run)

    def _reading(
        self, scan: FileScan, part: ds.Fragment | None = None
    ) -> AbstractContextManager[tuple[FileReader, list[ds.Fragment]]]:
        return scan._reading([self.file], *self._place, [part or self._fragment])


def _ends(files: Sequence[PlannedSlice]) -> list[int]:
    """Which files are the oldest and the newest."""
    by_time = sorted(range(len(files)), key=lambda n: files[n].instant)
    return sorted({by_time[0], by_time[-1]})


def row_groups_within(fragment: ds.Fragment, start: int, end: int) -> ds.Fragment | None:
    """The row groups that begin in a range of a file's bytes.

    ``None`` for none.
    """
    footer = fragment.metadata
    begins = [_begin(footer.row_group(n)) for n in range(footer.num_row_groups)]
    wanted = [n for n, begin in enumerate(begins) if start <= begin < end]
    if len(wanted) == len(begins):
        return fragment
    return fragment.subset(row_group_ids=wanted) if wanted else None


def _begin(group: Any) -> int:
    """Where the bytes of a row group's first column begin."""
    column = group.column(0)
    pages: int = column.data_page_offset
    dictionary: int | None = column.dictionary_page_offset
    # some writers say 0 where there is no dictionary
    return min(pages, dictionary) if dictionary else pages
