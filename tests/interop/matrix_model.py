"""A table as lists of rows, kept by the test: what every file group holds, and in which order.

In a file the rows that stay come first, in their order; then the incoming rows that take the
place of stored ones, once for each of them; then the new rows. Incoming rows come as they arrive:
task by task, row by row; where a global index lets rows of several partitions meet, partition by
partition.

Which of several file groups takes in the new rows of a partition is the one thing that is looked
up and not foretold; that it is just one of them is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.interop.matrix_batches import DELETED
from tests.interop.matrix_layouts import LEFT_OUT, MATRIX_COLUMNS, Layout, Row

Counts = tuple[int, int, int]


@dataclass
class Group:
    """A file group as it is, or as it is to become."""

    folder: str
    file_name: str
    rows: list[Row]

    @property
    def file_id(self) -> str:
        return self.file_name.split("_")[0]


@dataclass
class Expected:
    """What an operation is to leave.

    ``changed`` has what becomes of the rows of file groups, ``inserts`` the new rows by folder,
    ``fresh`` the new rows of folders by the task that brings them, for files of their own; ``gone``
    the groups that are replaced. ``spread`` tells how tasks exchange fresh rows first.
    """

    changed: dict[str, list[Row]] = field(default_factory=dict)
    inserts: dict[str, list[Row]] = field(default_factory=dict)
    fresh: dict[str, list[list[Row]]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    spread: Literal["", "range", "hash"] = ""
    counts: Counts = (0, 0, 0)


@dataclass
class Model:
    """The rows of a table, by file group."""

    layout: Layout
    is_global: bool = False
    moves: bool = False
    buckets: bool = False
    groups: dict[str, Group] = field(default_factory=dict)

    # --- what the operations do ---------------------------------------------------------------

    def insert(self, batch: Sequence[Row]) -> Expected:
        return self._into_groups(batch)

    def insert_dropping(self, batch: Sequence[Row]) -> Expected:
        return self._into_groups([row for row in self._combined(batch) if not self._met(row)])

    def bulk_insert(
        self,
        tasks: Sequence[Sequence[Row]],
        is_sorted: bool,
        spread: Literal["", "range", "hash"] = "",
    ) -> Expected:
        """Put rows into files of their own; bucket by bucket into what is there."""
        order: Callable[[Row], Any] = self.layout.record_key
        arrived = [row for task in tasks for row in task]
        if self.buckets:
            return self._into_groups(sorted(arrived, key=order) if is_sorted else arrived)
        expected = Expected(counts=(len(arrived), 0, 0), spread=spread)
        for task in tasks:
            for folder, rows in self._by_folder(task).items():
                files = expected.fresh.setdefault(folder, [])
                files.append(sorted(rows, key=order) if is_sorted and not spread else rows)
        return expected

    def overwrite(self, batch: Sequence[Row], whole_table: bool) -> Expected:
        by_folder = self._by_folder(batch)
        expected = Expected(counts=(len(batch), 0, 0))
        expected.gone = {
            group.file_id
            for group in self.groups.values()
            if whole_table or group.folder in by_folder
        }
        expected.inserts = by_folder
        return expected

    def delete_folders(self, folders: Iterable[str]) -> Expected:
        named = set(folders)
        gone = [group for group in self.groups.values() if group.folder in named]
        assert gone
        lost = sum(len(group.rows) for group in gone)
        return Expected(gone={group.file_id for group in gone}, counts=(0, 0, lost))

    def delete(self, batch: Sequence[Row]) -> Expected:
        expected = Expected()
        met = {id(stored) for row in batch for _, stored in self._met(row)}
        for group in self.groups.values():
            kept = [row for row in group.rows if id(row) not in met]
            if len(kept) < len(group.rows):
                expected.changed[group.file_id] = kept
        expected.counts = (0, 0, len(met))
        return expected

    def upsert(self, batch: Sequence[Row]) -> Expected:
        """Merge rows; what a row lacks is taken from the stored row, or null."""
        removed: set[int] = set()
        updates: dict[str, list[Row]] = {}
        inserts: list[Row] = []
        incoming = self._combined(batch)
        if self.is_global:
            incoming = [
                row for rows in sorted(self._by_folder(incoming).items()) for row in rows[1]
            ]
        for row in incoming:
            met = self._met(row)
            stays = self._leaves(row, met, removed) if self._may_leave(row) else bool(met)
            for file_id in dict.fromkeys(file_id for file_id, _ in met):
                group = self.groups[file_id]
                if self._may_leave(row) and group.folder != self.layout.folder(row):
                    continue
                stored = [one for where, one in met if where == file_id]
                older = [one for one in stored if not _later(one, row)]
                removed |= {id(one) for one in older}
                if not row.get(DELETED):
                    # each stored row is merged for itself
                    updates.setdefault(file_id, []).extend(self._merged(row, one) for one in older)
            if not stays and not row.get(DELETED):
                inserts.append(row)
        expected = Expected(inserts=self._by_folder(inserts))
        updated = sum(map(len, updates.values()))
        for group in self.groups.values():
            kept = [row for row in group.rows if id(row) not in removed]
            if len(kept) < len(group.rows):
                expected.changed[group.file_id] = kept + updates.get(group.file_id, [])
        expected.counts = (len(inserts), updated, len(removed) - updated)
        return expected

    def _may_leave(self, row: Row) -> bool:
        """Whether a row takes its key along to another partition; deletes work where keys are."""
        return self.moves and not row.get(DELETED)

    def _leaves(self, row: Row, met: list[tuple[str, Row]], removed: set[int]) -> bool:
        """Take the stored rows of other partitions away; return whether one of any stays."""
        stays = False
        for file_id, stored in met:
            if self.groups[file_id].folder == self.layout.folder(row) or _later(stored, row):
                stays = True
            else:
                removed.add(id(stored))
        return stays

    def _merged(self, row: Row, stored: Row) -> Row:
        kept: tuple[str, ...] = () if LEFT_OUT[0] in row else LEFT_OUT
        # where a row stays that came for another partition, folder and columns go on saying one
        kept += self.layout.partition if self.is_global and not self.moves else ()
        return {**row, **{name: stored[name] for name in kept}}

    def _met(self, row: Row) -> list[tuple[str, Row]]:
        """Return the stored rows that have the key of a row, with their groups, in file order."""
        key, folder = self.layout.record_key(row), self.layout.folder(row)
        return [
            (group.file_id, stored)
            for group in self.groups.values()
            for stored in group.rows
            if stored["_hoodie_record_key"] == key and (self.is_global or group.folder == folder)
        ]

    def _combined(self, batch: Sequence[Row]) -> list[Row]:
        best: dict[tuple[str, str], int] = {}
        for position, row in enumerate(batch):
            folder = "" if self.is_global else self.layout.folder(row)
            other = best.setdefault((self.layout.record_key(row), folder), position)
            if _rank(row) >= _rank(batch[other]):
                best[self.layout.record_key(row), folder] = position
        return [batch[position] for position in sorted(best.values())]

    def _by_folder(self, batch: Iterable[Row]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in batch:
            found.setdefault(self.layout.folder(row), []).append(row)
        return found

    def _into_groups(self, batch: Sequence[Row]) -> Expected:
        return Expected(inserts=self._by_folder(batch), counts=(len(batch), 0, 0))

    # --- what they left -------------------------------------------------------------------------

    def foretold(self, expected: Expected, found: dict[str, Group], instant: str) -> list[Group]:
        """Return the file groups as they must be now.

        ``found`` has those that a reader sees, by id; it only tells which of the groups of a folder
        took in its new rows, and how new groups are called.
        """
        after = {
            file_id: Group(group.folder, group.file_name, list(group.rows))
            for file_id, group in self.groups.items()
            if file_id not in expected.gone
        }
        for file_id, kept in expected.changed.items():
            after[file_id].rows = list(kept)
        changed = set(expected.changed)
        for folder, rows in expected.inserts.items():
            for target, some in self._targets(folder, rows, after, found):
                after.setdefault(target, Group(folder, "", [])).rows += some
                changed.add(target)
        changed |= self._place_fresh(expected, after, found)
        for file_id in changed:
            group = after[file_id]
            # a file without rows has no name that a reader of rows could tell
            group.file_name = found[file_id].file_name if file_id in found else group.file_name
            group.rows = [self._stored(row, group, instant) for row in group.rows]
        self.groups = after
        return [group for group in after.values() if group.rows]

    def _targets(
        self, folder: str, rows: list[Row], after: dict[str, Group], found: dict[str, Group]
    ) -> Iterable[tuple[str, list[Row]]]:
        here = {file_id for file_id, group in after.items() if group.folder == folder}
        new = {
            file_id
            for file_id, group in found.items()
            if group.folder == folder and file_id not in self.groups
        }
        if not self.buckets:
            grown = [one for one in here if one in found and _grew(found[one], after[one])]
            [target] = grown if here else new
            yield target, rows
            return
        by_bucket: dict[int, list[Row]] = {}
        for row in rows:
            by_bucket.setdefault(self.layout.bucket(row), []).append(row)
        for bucket, some in by_bucket.items():
            [target] = [one for one in here | new if one.startswith(f"{bucket:08d}-")]
            yield target, some

    def _place_fresh(
        self, expected: Expected, after: dict[str, Group], found: dict[str, Group]
    ) -> set[str]:
        placed = set()
        for folder, tasks in expected.fresh.items():
            new = [
                file_id
                for file_id, group in found.items()
                if group.folder == folder and file_id not in self.groups
            ]
            new.sort(key=lambda file_id: _task(found[file_id]))
            files = tasks
            if expected.spread:
                files = self._spread(expected.spread, tasks, [found[one].rows for one in new])
            assert len(new) == len(files), f"the new files of {folder!r}: {new}"
            for file_id, rows in zip(new, files, strict=True):
                after[file_id] = Group(folder, "", list(rows))
                placed.add(file_id)
        return placed

    def _spread(
        self, spread: str, tasks: list[list[Row]], found: list[list[Row]]
    ) -> list[list[Row]]:
        """Return rows that executors exchanged, file by file.

        A range of keys is sorted, and rows of one key come in any order; else the rows of a folder
        are in one file, and those of one task in their order.
        """
        by_mark = {row["mark"]: row for task in tasks for row in task}
        files = [[by_mark.pop(row["mark"]) for row in rows] for rows in found]
        assert not by_mark
        together = [row for rows in files for row in rows]
        if spread == "range":
            keys = [self.layout.record_key(row) for row in together]
            assert keys == sorted(keys)
        else:
            assert len(files) == 1
            for task in tasks:
                marks = {row["mark"] for row in task}
                assert [row for row in together if row["mark"] in marks] == task
        return files

    def _stored(self, row: Row, group: Group, instant: str) -> Row:
        """Return a row as it is stored in a file that was written now."""
        if "_hoodie_commit_time" in row:
            return {**row, "_hoodie_file_name": group.file_name}
        meta = {
            "_hoodie_commit_time": instant,
            "_hoodie_record_key": self.layout.record_key(row),
            "_hoodie_partition_path": group.folder,
            "_hoodie_file_name": group.file_name,
        }
        return {**meta, **{name: row.get(name) for name in MATRIX_COLUMNS.names}}


def _rank(row: Row) -> float:
    return float("-inf") if row["ts"] is None else row["ts"]


def _later(stored: Row, row: Row) -> bool:
    """Whether an incoming row is late; one that does not know its time cannot be."""
    return None not in (stored["ts"], row["ts"]) and stored["ts"] > row["ts"]


def _grew(found: Group, kept: Group) -> bool:
    return len(found.rows) > len(kept.rows)


def _task(group: Group) -> int:
    return int(group.rows[0]["_hoodie_commit_seqno"].split("_")[1])
