"""Changes of other writers to a format's metadata, counted.

The format names files that Hudi knows nothing of, or does not name files of Hudi's any more. What
was only rewritten, as by a compaction of another engine, its rows show: both sides are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from hudi_core.base_file.footer import read_footer
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    ForeignCommitError,
    HudiError,
    TableServiceError,
)
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.protocols import TimelineView
from hudi_core.services.adoption.rows import rows_of_files
from hudi_core.services.mending.lost_completions import returned_groups
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister

_MODULUS: Final = 1 << 128


@dataclass(frozen=True, slots=True)
class ForeignChanges:
    """What other writers have done to the metadata of one format.

    ``commits`` are as the format names them, oldest first. ``version`` is the format's present
    state and ``hudi_version`` the newest one of Hudi; ``None`` where none is left or known.
    ``removed`` are files of Hudi's that the format does not name any more. Row counts are ``None``
    where they are not known; ``deleted_rows``, of vectors and delete files, is so where these name
    values and not rows.

    ``is_rewrite`` means that the files that came have just the rows of those that went. ``problem``
    is why nothing could be counted; else ``None``.
    """

    table_format: str
    commits: tuple[str, ...]
    version: str
    hudi_version: str | None
    added: tuple[str, ...] = ()
    added_rows: int | None = 0
    removed: tuple[str, ...] = ()
    removed_rows: int | None = 0
    deleted_rows: int | None = 0
    is_rewrite: bool = False
    problem: str | None = None

    @property
    def changes_rows(self) -> bool:
        """Whether going back to Hudi's state would change rows.

        Files without rows do not count.
        """
        if self.problem is not None:
            return True
        counts = (self.added_rows, self.removed_rows, self.deleted_rows)
        return not self.is_rewrite and any(count != 0 for count in counts)

    @property
    def is_append(self) -> bool:
        """Whether rows were added, and nothing else."""
        is_counted = self.problem is None and not self.removed and self.deleted_rows == 0
        return is_counted and bool(self.added)

    @property
    def text(self) -> str:
        """What was done, in one sentence without its end."""
        if self.problem is not None:
            return f"what it changed cannot be counted ({self.problem})"
        if self.is_rewrite:
            return (
                f"{_files(self.removed)} with {_rows(self.removed_rows)} rewritten as "
                f"{_files(self.added)}, no row changed"
            )
        parts = [
            f"{_rows(self.added_rows)} in {_files(self.added)} added" if self.added else "",
            f"{_files(self.removed)} with {_rows(self.removed_rows)} went" if self.removed else "",
            f"{_rows(self.deleted_rows)} deleted by vectors or delete files"
            if self.deleted_rows
            else "",
            "rows deleted by value, which cannot be counted" if self.deleted_rows is None else "",
        ]
        return ", ".join(filter(None, parts)) or "no row changed"


def foreign_changes(table: OpenTable, *, reads_rows: bool = True) -> tuple[ForeignChanges, ...]:
    """Changes of other writers, for each format that has some.

    Costs nothing where they have not. The metadata of a format that is damaged or missing is
    passed over.

    Without ``reads_rows``, a rewriting that only rows could distinguish from a change counts as a
    change.
    """
    found = []
    for one in table.each():
        try:
            one.host.open(one.client)
        except ForeignCommitError as error:
            found.append(_changes(one, error, reads_rows))
        except (CommitConflictError, TableServiceError) as error:
            # what plugins of before raise, without a word of what it was
            name = one.host.name
            found.append(ForeignChanges(name, (error.what,), "", None, problem="it does not say"))
        except HudiError:
            continue
    return tuple(found)


def _present(table: OpenTable, seen: TimelineView) -> FileSystemView:
    """Stored files of a timeline's present state."""
    client = table.client
    whole = seen if isinstance(seen, Timeline) else Timeline.of(seen.instants)
    return FileSystemView(
        StorageLister(client.data, client.config.is_partitioned, client.run_map),
        whole,
        replaced_groups(whole, client.read_commit),
        written_files(whole, client.read_commit),
    )


def _changes(table: OpenTable, error: ForeignCommitError, reads_rows: bool) -> ForeignChanges:
    made = ForeignChanges(table.host.name, error.commits, error.version, error.hudi_version)
    try:
        try:
            seen = table.fenced()
        except ForeignCommitError:
            seen = table.client.timeline()  # nothing of Hudi's is left in the format
        view = _present(table, seen)
        bases = [one.base_file for one in view.latest_slices() if one.base_file is not None]
        present = {one.path: one.status for one in bases}
        returned = returned_groups(table.client, table.client.timeline(), view)
        listed = table.lister().named_files()
    except HudiError as problem:
        return replace(made, problem=problem.what)
    if listed is None:
        return replace(made, problem="the format keeps no list of its files")
    try:
        named = {one.path: one for one in listed}
        # a file of deletions has no rows
        added = [one for path, one in named.items() if path not in present and one.rows != 0]
        # the format was right to leave out what has come back
        kept = present.keys() - {file.path for one in returned for file in one.files}
        removed = [path for path in kept if path not in named]
        made = replace(
            made,
            added=tuple(sorted(one.path for one in added)),
            added_rows=_sum(one.rows for one in added),
            deleted_rows=_sum(one.deleted_rows for one in named.values()),
        )
        counts = {path: _rows_of(table, path) for path in removed}
    except HudiError as problem:
        return replace(made, problem=problem.what)
    # a file without rows need not be named
    removed = sorted(path for path, rows in counts.items() if rows != 0)
    made = replace(
        made, removed=tuple(removed), removed_rows=_sum(counts[path] for path in removed)
    )
    may_be_same = bool(made.added and removed) and made.added_rows == made.removed_rows
    if may_be_same and reads_rows and made.deleted_rows == 0:
        sizes = {path: present[path].size for path in removed}
        return replace(made, is_rewrite=_is_rewrite(table, made, sizes))
    return made


def _rows_of(table: OpenTable, path: str) -> int | None:
    try:
        return read_footer(table.client, path, pa.schema([])).rows
    except HudiError:
        return None  # the writer that took it out may have deleted it


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(filter(None, known))


# --- rewritten files ---------------------------------------------------------------------------


def found_table(table: OpenTable, files: Sequence[str]) -> FoundTable:
    """The table that the format's readers see, with some files.

    ``UnsupportedTableError`` means that the files alone do not have the rows.
    """
    found = table.host.find_table(table.client)
    by_path = {} if found is None else {one.path: one for one in found.files}
    missing = [path for path in files if path not in by_path]
    if found is None or missing:
        what = f"it does not name {missing[0]}" if missing else "there is none"
        raise CorruptMetadataError(f"The {table.host.name} table", what)
    return replace(found, files=tuple(by_path[path] for path in files))


def _is_rewrite(table: OpenTable, made: ForeignChanges, removed: Mapping[str, int]) -> bool:
    """Whether files that came have just the rows of those that went."""
    if not table.client.files.is_plain:
        return False  # where files of others are is not known
    try:
        came = found_table(table, made.added)
        went = replace(came, files=tuple(FoundFile(*one) for one in removed.items()))
        return _digest(table, came) == _digest(table, went)
    except HudiError:
        return False


def _digest(table: OpenTable, found: FoundTable) -> tuple[int, int]:
    """Count and sum of the hashes of all rows, whatever their order."""
    count = total = 0
    for batch in rows_of_files(table.client.files.open, found.files, found.schema):
        columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            hashed = hashlib.blake2b(repr(row).encode(), digest_size=16).digest()
            total = (total + int.from_bytes(hashed)) % _MODULUS
        count += batch.num_rows
    return count, total


def _files(paths: Sequence[str]) -> str:
    return f"{len(paths):,} file{'s' * (len(paths) != 1)}"


def _rows(count: int | None) -> str:
    return "an unknown number of rows" if count is None else f"{count:,} row{'s' * (count != 1)}"
