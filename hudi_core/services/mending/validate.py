"""Compares a table's storage, timeline, metadata table and format metadata.

On local disks, checksums that Java has left beside files are compared with these as well.

What is true is taken from the files as they are: folders are listed, footers read. What readers can
live with is no difference: a bound that is wider than the values, or is not kept. What completes
while the comparison runs is left out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.footer import (
    Footer,
    columns_with_hidden_nan,
    footer_of,
    opened_file,
)
from hudi_core.config.key_settings import why_unmade
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    DataFileError,
    ForeignCommitError,
    HudiError,
    InvalidOptionError,
    LostCompletionError,
    PathNotFoundError,
    RecordKeyError,
    TableServiceError,
    UnfinishedMoveError,
    UnpublishedCommitsError,
    UnsupportedTableError,
)
from hudi_core.file_slice.deleted_positions import positions_of_slices
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.log_format.positions import Positions
from hudi_core.meta_client import META_FOLDER, TableMetaClient
from hudi_core.metadata.maintenance.validator import ValidationReport
from hudi_core.metadata.maintenance.validator import validate as validate_metadata
from hudi_core.metadata.partitions.names import ALL_CHECKS, Check
from hudi_core.metadata.table import (
    METADATA_FOLDER,
    StoredPartitions,
    is_readable,
)
from hudi_core.model.commit import WriteStat
from hudi_core.model.difference import Difference
from hudi_core.model.file_index import FileIndex, NamedFile, StatedColumn
from hudi_core.model.files import FileGroupId, FileSlice, FileStatus
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.stats import ColumnStats
from hudi_core.plugin.fenced import pending_publications
from hudi_core.services.mending.differences import (
    RepeatedKeys,
    Source,
    TableValidation,
    compare_keys,
    find_repeated_keys,
)
from hudi_core.services.mending.logs import LogComparison
from hudi_core.services.mending.lost_completions import lost_completions, returned_groups
from hudi_core.services.progress import Progress, counted, no_progress
from hudi_core.storage.hadoop_checksums import stale_checksums
from hudi_core.storage.location import parse_location
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.roll_forward import can_record
from hudi_core.view.committed_files import CommittedFiles, foreign_data_files, unnamed_files
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister

_ATTEMPTS: Final = 5
"""How often timeline and format are looked at for both to be of one moment."""
_UNREADABLE: Final = (
    *(CorruptMetadataError, CommitConflictError, TableServiceError),
    InvalidOptionError,  # the place of the metadata, in a table that was moved
    UnpublishedCommitsError,
    UnsupportedTableError,  # metadata of a kind that this release does not write
)
_REPAIR: Final = "`hudi table repair` rebuilds it from the timeline."
_UNREADABLE_ROWS: Final = (CorruptMetadataError, PathNotFoundError, UnsupportedTableError)
"""Errors of what says which rows a format has deleted."""
_FILES_AT_ONCE: Final = 1000
"""Files whose deleted rows are in memory at a time."""
_NO_ROWS: Final = np.empty(0, np.int64)
_NO_BOUNDS: Final = (
    "no bounds in its footer: it holds NaN, to Spark and others the greatest number, and they lose "
    "rows by bounds without it; `hudi cluster --sort-by`, as any write of the file, leaves them out"
)


def validate_table(
    table: OpenTable,
    *,
    footers: bool = True,
    keys: bool = False,
    progress: Progress = no_progress,
) -> TableValidation:
    """Compare what the parts of a table say.

    ``footers`` reads the footers of the present files and compares the metadata table's indexes as
    well; without it only files and sizes are compared. ``keys`` reads the keys of all rows, to
    count those that several rows have.
    """
    client = counted(table, progress).client
    for _ in range(_ATTEMPTS):
        timeline = client.timeline()
        comparison = _Comparison(table, replace(client, seen=timeline), timeline)
        if comparison.is_one_snapshot():
            break
    else:
        comparison.leave_out_format()
    return comparison.run(footers, keys)


class _Comparison:
    """One comparison."""

    def __init__(self, table: OpenTable, client: TableMetaClient, timeline: Timeline) -> None:
        self._now = table
        self._table = replace(table, client=client)
        self._client = client
        self._timeline = timeline
        self._found: list[Difference] = []
        self._checked: dict[str, int] = {}
        self._skipped: dict[str, str] = {}
        self._rows_of_commits: dict[str, int] = {}
        self._gone: set[FileGroupId] = set()  # file groups that an archived write replaced
        self._slices: list[FileSlice] = []
        self._is_readable = True  # the format's metadata
        self._old_lists: set[str] = set()
        self._ahead: set[str] = set()  # formats that hold what another one lacks
        self._listers: dict[str, FileIndex] = {}
        self._fenced = self._see_fenced()
        self._see_lost()
        # at once: what is written from now on is in neither
        self._named = self._see_named()

    def is_one_snapshot(self) -> bool:
        """Whether nothing was completed between the looks at timeline and format."""
        if self._named is None:
            return True
        seen, now = (
            [one for one in timeline.instants if one.completion_time is not None]
            for timeline in (self._fenced, self._now.timeline())
        )
        return seen == now

    def leave_out_format(self) -> None:
        self._named = None
        for one in self._table.each():
            self._skipped[f"files of {one.host.name}"] = "the table was written all the time"

    def run(self, footers: bool, keys: bool) -> TableValidation:
        stored = self._stored(self._fenced)
        committed = CommittedFiles.of_timeline(self._client, self._fenced)
        self._compare_commits(stored, committed)
        logs = self._compare_logs(committed, footers)
        rows = self._read(stored) if footers else None
        repeated = self._look_for_repeated_keys() if keys else None
        for name, named in (self._named or {}).items():
            self._compare_named(name, named, stored, rows)
        self._compare_dead_rows(stored)
        self._compare_metadata(ALL_CHECKS if footers else {Check.FILES})
        self._compare_checksums()
        orphans = self._orphans()
        return TableValidation(
            self._client.base_path,
            self._table.host.name,
            tuple(self._found),
            len(stored) + logs,
            None if rows is None or logs else sum(one.rows for one in rows.values()),
            self._checked,
            self._skipped,
            orphans,
            repeated,
            tuple(sorted(self._old_lists)),
        )

    def _orphans(self) -> tuple[str, ...]:
        found = list(foreign_data_files(self._client.data))
        if self._is_readable:
            try:
                found += self._table.leftovers()
            except CorruptMetadataError as error:
                what = f"metadata of {self._table.host.name}"
                self._say(Source.FORMAT, what, _REPAIR, error.what)
        return tuple(found)

    def _say(self, source: Source, subject: str, expected: str, found: str) -> None:
        self._found.append(Difference(source, subject, expected, found))

    # --- timeline ------------------------------------------------------------------------------

    def _see_fenced(self) -> Timeline:
        """Return the fenced timeline, or step 1's if the format fails."""
        table, timeline = self._table, self._timeline
        try:
            table.host.open(self._client)
            fenced = table.timeline()
        except LostCompletionError:
            # said of the timeline; what the format holds beyond it is no mistake of the format
            self._is_readable = False
            return timeline
        except UnfinishedMoveError:
            raise
        except ForeignCommitError as error:
            expected = "none but Hudi's; `hudi table repair --dry-run` counts what they changed"
            self._say(Source.FORMAT, f"commits to {table.host.name}", expected, error.what)
            self._is_readable = False
            return timeline
        except _UNREADABLE as error:
            self._say(Source.FORMAT, f"metadata of {table.host.name}", _REPAIR, error.what)
            self._is_readable = False
            return timeline
        self._checked["instants"] = len(timeline.instants)
        for instant in pending_publications(fenced):
            is_due = can_record(table.host, instant) and not self._is_cleaned(instant)
            what = f"{instant.action.value} {instant.requested_time}"
            outlook = "the next write publishes it" if is_due else "and cannot be by a write"
            several = len(table.host.parts) > 1
            if several:
                self._ahead.update(table.host.holders(self._client, instant))
            where = f" in {table.host.lacking(self._client, instant)}" if several else ""
            expected = "complete, as on the Hudi timeline"
            actual = f"it is not recorded{where}; {outlook}"
            self._found.append(Difference(Source.FORMAT, what, expected, actual, is_pending=is_due))
        return fenced if isinstance(fenced, Timeline) else timeline

    def _is_cleaned(self, instant: Instant) -> bool:
        """Whether files of a write are gone before it was published."""
        if instant.action not in WRITE_ACTIONS:
            return False
        paths = [stat.path for stat in self._client.read_commit(instant).stats if stat.path]
        return None in self._client.map_requests(self._client.data.head, paths)

    def _see_lost(self) -> None:
        lost = lost_completions(self._now, self._timeline)
        self._found += [one.difference for one in lost]

    # --- storage -------------------------------------------------------------------------------

    def _stored(self, fenced: Timeline) -> dict[str, FileSlice]:
        """Return present file slices in storage, by base file path."""
        client = self._client
        view = FileSystemView(
            StorageLister.of(client),
            fenced,
            replaced_groups(fenced, client.read_commit),
            written_files(fenced, client.read_commit),
        )
        returned = returned_groups(client, fenced, view)
        self._found += [one.difference for one in returned]
        # what replaced them counts: the other parts are compared without them
        self._gone = {one.group.id for one in returned if not one.is_written}
        self._slices = [one for one in view.latest_slices() if one.group not in self._gone]
        for one in view.duplicates:
            self._say(
                Source.STORAGE,
                f"file group {one.group.file_id}",
                f"one base file of instant {one.instant}, {one.kept}",
                f"{', '.join(one.ignored)} as well",
            )
        for file, instant in unnamed_files(view, fenced, client.read_commit):
            expected = f"named by {instant.action.value} {instant.requested_time}"
            self._say(Source.STORAGE, f"file {file.path}", expected, "stored, not named")
        return {one.base_file.path: one for one in self._slices if one.base_file is not None}

    def _compare_logs(self, committed: CommittedFiles, footers: bool) -> int:
        """Compare the logs of present slices; return how many there are."""
        gone = frozenset(self._gone)
        logs = LogComparison(self._client, self._fenced, committed, self._slices, gone)
        self._found += logs.compare()
        if footers:
            self._found += logs.torn()
        if logs.logs:
            self._checked["log files"] = len(logs.logs)
        return len(logs.logs)

    def _compare_commits(self, stored: Mapping[str, FileSlice], committed: CommittedFiles) -> None:
        """Compare the files with the active timeline's commit metadata."""
        by_group = {
            (str(one.partition_path), str(one.file_id)): path for path, one in stored.items()
        }
        latest = committed.present
        self._checked["files of commits"] = len(latest)
        for group, stat in latest.items():
            if group in self._gone:
                continue
            path = by_group.get((group.partition_path, group.file_id))
            if path is None or path != stat.path:
                self._say(
                    Source.STORAGE,
                    f"file {stat.path}",
                    "stored, as its commit says",
                    f"the newest of its file group is {path}" if path else self._absent(stat),
                )
                continue
            if stat.num_writes is not None:
                self._rows_of_commits[path] = stat.num_writes
            base = stored[path].base_file
            size = base.size if base is not None else 0
            if stat.file_size_in_bytes and size != stat.file_size_in_bytes:
                expected = f"{stat.file_size_in_bytes} bytes, as its commit says"
                self._say(Source.STORAGE, f"file {path}", expected, f"{size} bytes")

    def _absent(self, stat: WriteStat) -> str:
        files = self._client.files
        if stat.path is None or not files.is_misplaced(stat.path):
            return "it is not there"
        return files.unreadable([stat.path], "").what

    def _read(self, stored: Mapping[str, FileSlice]) -> dict[str, Footer]:
        """Return the footers of present files; report unreadable ones."""
        client, found = self._client, dict[str, Footer]()
        read_one = partial(_read_footer, client.for_tasks, client.schema.with_meta())
        for path, read in zip(stored, client.map_files(read_one, list(stored)), strict=True):
            if isinstance(read, str):
                self._say(Source.STORAGE, f"file {path}", "a footer that can be read", read)
                continue
            footer, hidden = read
            found[path] = footer
            for column in hidden:
                subject = f"column {column} of {path}"
                self._say(Source.FOOTER, subject, _NO_BOUNDS, "bounds that leave NaN out")
            committed = self._rows_of_commits.get(path, footer.rows)
            if committed != footer.rows:
                expected = f"{committed} rows, as its commit says"
                self._say(Source.STORAGE, f"file {path}", expected, f"{footer.rows} rows")
        self._checked["footers"] = len(found)
        return found

    def _look_for_repeated_keys(self) -> RepeatedKeys | None:
        """Find duplicate keys, whose rows no key index can find."""
        if (reason := why_unmade(self._client.config)) is not None:
            self._skipped["repeated keys"] = f"the files hold no record keys: {reason}"
            return None
        try:
            rows = StoredSlices(self._client, self._fenced)
            self._compare_stored_keys(rows)
            found = find_repeated_keys(rows, self._slices)
        except (DataFileError, RecordKeyError, CorruptMetadataError) as error:
            if isinstance(error, RecordKeyError):
                self._say(Source.STORAGE, "record keys", "a key for every row", error.what)
            self._skipped["repeated keys"] = error.what
            return None
        self._checked["files of keys"] = len(self._slices)
        if found.keys and found.are_forbidden:
            some = ", ".join(map(str, found.examples))
            more = ", ..." if found.keys > len(found.examples) else ""
            expected = "each in one row: the record index knows one place of a key"
            count = f"{found.keys} key{'s' * (found.keys > 1)}"
            actual = f"{count} in {found.rows} rows: {some}{more}"
            self._say(Source.STORAGE, "record keys", expected, actual)
        return found

    def _compare_stored_keys(self, rows: StoredSlices) -> None:
        """Compare keys that are stored all the same with the made ones."""
        if not self._client.config.keeps_virtual_keys:
            return  # what files hold of them else is ignored
        compared = compare_keys(rows, self._slices)
        self._checked["stored record keys"] = sum(one.rows for one in compared)
        for one in compared:
            if one.differences:
                actual = f"{one.differences:,} of {one.rows:,} rows have others: {one}"
                self._say(
                    Source.STORAGE, f"record keys of {one.path}", "those that are made", actual
                )

    # --- format --------------------------------------------------------------------------------

    def _see_named(self) -> dict[str, dict[str, NamedFile]] | None:
        """Files that each format names; ``None`` where none is comparable."""
        if not self._is_readable:
            return None
        for name in self._ahead:
            self._skipped[f"files of {name}"] = "it holds an instant that another format lacks yet"
        each = (one for one in self._table.each() if one.host.name not in self._ahead)
        seen = {one.host.name: self._see_named_by(one) for one in each}
        found = {name: named for name, named in seen.items() if named is not None}
        return found or None

    def _see_named_by(self, table: OpenTable) -> dict[str, NamedFile] | None:
        found: dict[str, NamedFile] = {}
        lister = self._listers[table.host.name] = table.lister()
        try:
            named = lister.named_files()
            if named is None:
                self._skipped[f"files of {table.host.name}"] = "the format keeps no list of its own"
                return None
            for one in named:
                subject = f"file {one.path}"
                if one.path in found:
                    self._say(Source.FORMAT, subject, "named once", "named more than once")
                if one.spelling is not None:
                    actual = f"named as {one.spelling}"
                    self._say(Source.FORMAT, subject, "spelled as all readers spell it", actual)
                found[one.path] = one
        except CorruptMetadataError as error:
            self._say(Source.FORMAT, f"metadata of {table.host.name}", _REPAIR, error.what)
            return None
        return found

    def _compare_named(
        self,
        name: str,
        named: Mapping[str, NamedFile],
        stored: Mapping[str, FileSlice],
        footers: Mapping[str, Footer] | None,
    ) -> None:
        is_one = len(self._table.host.parts) == 1
        self._checked["files of the format" if is_one else f"files of {name}"] = len(named)
        before = len(self._found)
        self._compare_files(named, stored, footers)
        self._compare_columns(self._listers[name], named, footers or {})
        if not is_one:  # which of the formats it is about
            self._found[before:] = [
                replace(one, subject=f"{one.subject} in {name}") for one in self._found[before:]
            ]

    def _compare_files(
        self,
        named: Mapping[str, NamedFile],
        stored: Mapping[str, FileSlice],
        footers: Mapping[str, Footer] | None,
    ) -> None:
        for path in sorted(named.keys() | stored.keys()):
            file, slice_ = named.get(path), stored.get(path)
            footer = None if footers is None else footers.get(path)
            if slice_ is None or slice_.base_file is None:
                self._say(
                    Source.FORMAT, f"file {path}", "none of the table's present files", "named"
                )
            elif file is not None:
                self._compare_file(file, slice_.base_file.status, footer)
            elif footer is None or footer.rows:  # a file without rows may be left out
                self._say(Source.FORMAT, f"file {path}", "named", "not named")

    def _compare_dead_rows(self, stored: Mapping[str, FileSlice]) -> None:
        """Compare the rows that formats have deleted with those of log files.

        Both are read of some files at a time.
        """
        if not self._client.config.is_split or not self._named:
            return
        paths = sorted(stored)
        for at in range(0, len(paths), _FILES_AT_ONCE):
            some = paths[at : at + _FILES_AT_ONCE]
            try:
                dead = positions_of_slices(self._client, [stored[path] for path in some])
            except HudiError:
                continue  # what is wrong with the log files has a line of its own
            for name, named in self._named.items():
                files = [named[path] for path in some if path in named]
                self._compare_positions(name, files, dead)

    def _compare_positions(
        self, name: str, files: Sequence[NamedFile], dead: Mapping[str, Positions]
    ) -> None:
        """Compare the deleted rows of some files of a format."""
        asked = [one.path for one in files if one.path in dead or one.deleted_rows]
        suffix = "" if len(self._table.host.parts) == 1 else f" in {name}"
        try:
            stated = self._listers[name].deleted_positions(asked) if asked else None
        except _UNREADABLE_ROWS as error:
            what = f"deleted rows of {len(asked)} file{'s' * (len(asked) > 1)}{suffix}"
            self._say(Source.FORMAT, what, f"those of their log files; {_REPAIR}", error.what)
            return
        for file in files:
            mine, count = dead.get(file.path, _NO_ROWS), file.deleted_rows
            theirs = None if stated is None else stated.get(file.path, _NO_ROWS)
            live, more = (
                (0, 0)
                if theirs is None
                else (len(np.setdiff1d(mine, theirs)), len(np.setdiff1d(theirs, mine)))
            )
            if count == len(mine) and not (live or more):
                continue
            actual = f"{count} rows deleted"
            if live or more:
                actual += f"; {live + more} positions differ: {live} missing, {more} too many"
            expected = f"{len(mine)} rows deleted, as its log files say; {_REPAIR}"
            self._say(Source.FORMAT, f"file {file.path}{suffix}", expected, actual)

    def _compare_columns(
        self, lister: FileIndex, named: Iterable[str], footers: Mapping[str, Footer]
    ) -> None:
        """Look for files of other engines that readers misread."""
        for path in sorted(footers.keys() & set(named)):
            reason = lister.unreadable(footers[path].schema)
            if reason is not None:
                expected = "columns that all readers of the format find"
                self._say(Source.FORMAT, f"file {path}", expected, reason)
            if footers[path].old_lists and not lister.reads_old_lists():
                self._old_lists.add(path)
                actual = f"of two levels in {', '.join(footers[path].old_lists)}"
                expected = "lists of three levels, as all readers of the format read them"
                self._say(Source.DATA_FILE, f"file {path}", expected, actual)

    def _compare_file(self, file: NamedFile, status: FileStatus, footer: Footer | None) -> None:
        if file.size != status.size:
            actual, expected = f"{file.size} bytes", f"{status.size} bytes"
            self._say(Source.FORMAT, f"file {file.path}", expected, actual)
        if footer is None:
            return
        if file.rows is not None and file.rows != footer.rows:
            actual, expected = f"{file.rows} rows", f"{footer.rows} rows"
            self._say(Source.FORMAT, f"file {file.path}", expected, actual)
        for column, stated in file.columns.items():
            known = footer.columns.get(column)
            if known is not None and not _holds(stated, known):
                self._say(
                    Source.FORMAT,
                    f"column {column} of {file.path}",
                    f"{known.min_value!r} to {known.max_value!r}, {known.null_count} nulls",
                    f"{stated.low!r} to {stated.high!r}, {stated.null_count} nulls",
                )

    # --- metadata table ------------------------------------------------------------------------

    def _compare_metadata(self, checks: frozenset[Check] | set[Check]) -> None:
        client, where = self._client, f"metadata table in {METADATA_FOLDER}"
        if not is_readable(client.config):
            self._skipped["metadata table"] = f"that of version {client.config.version} is not read"
            return
        if not StoredPartitions.of(client.config).is_there:
            if not StoredPartitions.of(client.config).is_rebuilding:
                self._skipped["metadata table"] = "there is none"
                return
            self._skipped["metadata table"] = "it is being rebuilt"
            actual = (
                "being rebuilt, or half made by a repair that died: the next write with "
                "hoodie.metadata.enable=true makes it, or `hudi table repair`"
            )
            due = Difference(Source.METADATA_TABLE, where, "complete", actual, is_pending=True)
            self._found.append(due)
            return
        try:
            report: ValidationReport = validate_metadata(client, checks)
        except CorruptMetadataError as error:
            self._say(Source.METADATA_TABLE, where, _REPAIR, error.what)
            return
        for name, count in report.checked.items():
            self._checked[f"records of {name}"] = count
        for name, reason in report.skipped.items():
            self._skipped[f"records of {name}"] = reason
        for name, reason in report.unreadable.items():
            self._say(
                Source.STORAGE, f"files that {name} is about", "files that can be read", reason
            )
        for one in report.findings:
            self._say(
                Source.METADATA_TABLE,
                f"{one.source}: {one.subject}",
                one.expected or "no such thing",
                one.found or "not known",
            )

    # --- checksums of Hadoop's file system -----------------------------------------------------

    def _compare_checksums(self) -> None:
        client = self._client
        if not parse_location(client.base_path).is_local:
            return
        for path in stale_checksums(client.storage, *checksum_folders(self._table)):
            what = "that of the file, or none: Hadoop does not read a file that is not as it says"
            self._say(Source.CHECKSUM, path, what, "another one; `hudi table repair` removes it")


def _read_footer(
    client: TableMetaClient, schema: pa.Schema, path: str
) -> tuple[Footer, list[str]] | str:
    """A footer and columns with hidden NaN, or why it is unreadable."""
    try:
        with opened_file(client, path) as file:
            return footer_of(file, schema), columns_with_hidden_nan(file)
    except DataFileError as error:
        return error.what


def checksum_folders(table: OpenTable) -> tuple[str, ...]:
    """Folders of a table that may hold Hadoop's checksum files."""
    try:
        return META_FOLDER, *table.host.get_metadata_folders(table.client)
    except InvalidOptionError:
        # a table that was moved still says where its format's metadata was; a repair mends it
        return (META_FOLDER,)


def _holds(stated: StatedColumn, known: ColumnStats) -> bool:
    """Whether a format's column statistics are true of the values."""
    counts = (stated.null_count, known.null_count)
    if None not in counts and counts[0] != counts[1]:
        return False
    values: Any = (stated.low, known.min_value, known.max_value, stated.high)
    low, least, greatest, high = values
    return (low is None or least is None or low <= least) and (
        high is None or greatest is None or greatest <= high
    )
